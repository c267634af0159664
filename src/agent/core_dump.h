/* What a process leaves behind when it crashes. */
#ifndef AGENT_CORE_DUMP_H
#define AGENT_CORE_DUMP_H

#include "base/err.h"

/* From here on this process leaves no core, whoever collects them, and no other process of its user may read its memory.
 * Descendants that are other programs are not concerned. ERR_IO: the system refuses it. */
int agent_forbid_core(struct err *err);

#endif
