/* Hybrid logical clock (Kulkarni et al., 2014): stamps that follow cause and effect and stay close to wall-clock time.
 *
 * A stamp is 48 bits of milliseconds since 1970 and 16 bits of counter, so stamps compare as plain integers. The counter
 * orders what happens within a millisecond; when it overflows, the stamp borrows from the next millisecond. The clock
 * never goes back, whatever the wall clock does. Time is an argument: the clock reads none.
 */
#ifndef BASE_HLC_H
#define BASE_HLC_H

#include <stdbool.h>
#include <stdint.h>

struct hlc {
	uint64_t last; /* latest stamp issued or seen */
};

/* A stamp for an event of this site: later than all stamps issued or observed before. */
uint64_t hlc_tick(struct hlc *clock, uint64_t now_ms);

/* Takes note of a stamp that came from elsewhere, so that what follows here is later. Refuses (false, nothing changes) a
 * stamp that is more than max_ahead_ms ahead of now_ms: one site with a mad clock must not pull all others along. */
bool hlc_observe(struct hlc *clock, uint64_t stamp, uint64_t now_ms, uint64_t max_ahead_ms);

static inline uint64_t hlc_ms(uint64_t stamp)
{
	return stamp >> 16;
}

static inline uint16_t hlc_counter(uint64_t stamp)
{
	return (uint16_t)stamp;
}

#endif
