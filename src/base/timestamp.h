/* Times for people: RFC 3339 in UTC, with milliseconds where they are not zero. Times for machines: ms since 1970. */
#ifndef BASE_TIMESTAMP_H
#define BASE_TIMESTAMP_H

#include "base/str.h"

enum { TIMESTAMP_BYTES = 32 };

/* "2026-11-15T08:54:39Z". Years 0000 to 9999; a time outside is shown as the nearest one inside. */
void timestamp_format(int64_t ms, char out[TIMESTAMP_BYTES]);

/* Reads RFC 3339, with any offset and any fraction of a second (cut to milliseconds). False if it is not a time. */
bool timestamp_parse(struct str text, int64_t *ms);

#endif
