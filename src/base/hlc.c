#include "base/hlc.h"

#include "base/check.h"

/* The last millisecond of the 48 bits is never reached, so that there is always a later stamp. It is in the year 10889. */
static const uint64_t ms_end = ((uint64_t)1 << 48) - 1;

uint64_t hlc_tick(struct hlc *clock, uint64_t now_ms)
{
	/* Also catches a caller that counts in micro- or nanoseconds. */
	CHECK(now_ms < ms_end);
	CHECK(clock->last < UINT64_MAX);
	uint64_t now = now_ms << 16;
	clock->last = now > clock->last ? now : clock->last + 1;
	return clock->last;
}

bool hlc_observe(struct hlc *clock, uint64_t stamp, uint64_t now_ms, uint64_t max_ahead_ms)
{
	uint64_t ms = hlc_ms(stamp);
	if (ms >= ms_end || (ms > now_ms && ms - now_ms > max_ahead_ms))
		return false;
	if (stamp > clock->last)
		clock->last = stamp;
	return true;
}
