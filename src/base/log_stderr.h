/* The log sink of a running program: standard error, with a time stamp for people, or with a priority prefix when
 * standard error is systemd's journal (JOURNAL_STREAM), which stamps lines itself. The one shell in this room. */
#ifndef BASE_LOG_STDERR_H
#define BASE_LOG_STDERR_H

#include "base/log.h"

struct log_sink log_stderr_sink(void);

#endif
