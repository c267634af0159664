#include "identity.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

void uuid_make(char uuid[UUID_BYTES])
{
	uint8_t b[16];
	/* Up to 256 bytes come whole, or not at all when a signal came first (getrandom(2)). */
	while (getrandom(b, sizeof(b), 0) != sizeof(b)) {
		if (errno != EINTR)
			abort();
	}
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* version 4 */
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80); /* variant of RFC 9562 */
	snprintf(uuid, UUID_BYTES, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
	         b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

void timestamp_make(char timestamp[TIMESTAMP_BYTES])
{
	struct timespec now;
	struct tm utc;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	char seconds[TIMESTAMP_BYTES - 8];
	if (strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		abort(); /* a year of more than nine digits */
	snprintf(timestamp, TIMESTAMP_BYTES, "%s.%06uZ", seconds, (unsigned)now.tv_nsec / 1000U % 1000000U);
}
