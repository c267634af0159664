/* Is another site to be reached on the data path? What answers and failures make of that (DESIGN 11). Pure: time is an
 * argument.
 *
 *              an answer                      two failures in a row, or a refusal
 *   UNKNOWN ───────────────▶ UP ◀──────────────────────────────────────────▶ DOWN
 *                                 two answers in a row; one, if it was short
 *
 * - Every answer counts, whatever its status, of requests and of probes: the way there and back works.
 * - One failure may be a lost packet or one bad connection; two in a row, the second on a new connection, are believed. A
 *   refused connection is an answer of the other machine itself, and is believed at once. So is the first failure on a path
 *   of which nothing is known, to a site that gossip has lost as well: that makes two who say so.
 * - A path that was down for some time has to answer twice, so that one that works now and then is not used in turns. A
 *   short outage was probably none: a pause of the other agent, or a row of lost packets.
 *
 * How long an answer should take is told by earlier ones, as TCP does it (RFC 6298): the smoothed round trip and four times its
 * variation. But the variation counts as half of the round trip at the least. On a steady path that loses packets the
 * variation gets small, and each lost packet, which TCP repeats after about one round trip, would be taken for a failure:
 * with this floor the answer to a repeated packet is still in time.
 *
 * The first time nothing was measured. A dead site shows in that the connection is not even taken, which is one way there and
 * back: for that the wait is short, twice the distance that gossip tells and a little more, or as if it were some way off where
 * gossip knows nothing. Once it is taken its site is not dead, and the distance is measured: then there is time for lost
 * packets of a handshake to be repeated, which TCP does after up to three round trips. If it is taken after its time was over,
 * the silence was only the distance, and what followed from it is taken back. With each failure the next wait is longer, so
 * that also a site that is farther off than all expect is reached in the end.
 *
 * That is enough where packets are seldom lost. A path that loses many, each flight of a handshake some, is waited for longer,
 * and meanwhile further probes are sent at the side of the first; what they need was found with a model of TCP
 * (tests/unit/proxy/test_lossy.c):
 * - A path of more than 300 ms is taken for one of that kind from the start, as satellite links are: what is more than that
 *   counts six times. To leave a dead one there takes many seconds, which nobody expects otherwise.
 * - So is one, at any distance, where an answer took so long that something must have been sent again: until a good number of
 *   answers was quick. A path that has been steady does not pay for it.
 */
#include "proxy/proxy_int.h"

enum {
	TIMEOUT_LEAST_US = 250 * 1000,
	TIMEOUT_MOST_US = 8 * 1000 * 1000,
	FIRST_TIMEOUT_MOST_US = 5 * 1000 * 1000,
	FIRST_TIMEOUT_EXTRA_US = 300 * 1000,
	FIRST_TIMEOUT_UNKNOWN_US = 500 * 1000,  /* of a site whose distance nobody knows */
	FIRST_GROWN_MOST_US = 2 * 1000 * 1000,  /* TCP repeats what asks for a connection after one second, three, seven */
	FIRST_TAKEN_MOST_US = 15 * 1000 * 1000, /* of a connection that was taken: the site is not dead */
	FIRST_DOUBLINGS_MOST = 5,
	CONNECT_UNKNOWN_US = 3 * 1000 * 1000,
	SECOND_LEAST_US = 250 * 1000,
	SHORT_OUTAGE_US = 3 * 1000 * 1000,
	FAILURES_TO_DOWN = 2,
	ANSWERS_TO_UP = 2,
	CONNECT_ROUND_TRIPS = 10, /* two of TCP and TLS, and what it takes to repeat what was lost, twice in a row */
	FAR_US = 300 * 1000,
	FAR_TIMES = 6, /* the round trips that time-outs of TCP take in the end, each twice the one before */
	FAR_MOST_US = 30 * 1000 * 1000,
	DOUBT_ANSWERS = 64, /* in time, one after the other, until a path that was late counts as steady again */
	DOUBT_US = 3 * 1000 * 1000,
	DELAY_LEAST_US = 50 * 1000, /* a tick of the loop */
	DELAY_MOST_US = 1000 * 1000,
	DELAY_UNKNOWN_US = 200 * 1000,
};

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static uint64_t far_us(uint64_t distance_us)
{
	return distance_us > FAR_US ? clamp(FAR_TIMES * (distance_us - FAR_US), 0, FAR_MOST_US) : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The round trip, by the best that is known of it; 0: nothing. */
static uint64_t distance_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t estimate = estimate_us == SCOPE_RTT_UNKNOWN ? 0 : (uint64_t)estimate_us;
	return health->rtt_us > 0 ? health->rtt_us : larger(health->way_us, estimate);
}

/* So much longer than it should take an answer is waited for. */
static uint64_t patience_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t far = far_us(distance_us(health, estimate_us));
	return health->doubt > 0 ? larger(far, DOUBT_US) : far;
}

bool proxy_health_answered(struct proxy_health *health, uint64_t now_us)
{
	health->answer_us = now_us;
	health->failures = 0;
	if (health->state == PROXY_PATH_UP)
		return false;
	health->answers++;
	uint32_t needed = now_us - health->down_us < SHORT_OUTAGE_US ? 1 : ANSWERS_TO_UP;
	if (health->state == PROXY_PATH_DOWN && health->answers < needed)
		return false;
	health->state = PROXY_PATH_UP;
	return true;
}

bool proxy_health_failed(struct proxy_health *health, uint64_t now_us, enum proxy_failure failure)
{
	health->answers = 0;
	health->failures++;
	bool believed = failure == PROXY_FAILURE_REFUSED ||
	                (failure == PROXY_FAILURE_OF_LOST && health->state == PROXY_PATH_UNKNOWN) ||
	                health->failures >= FAILURES_TO_DOWN;
	if (health->state == PROXY_PATH_DOWN || !believed)
		return false;
	health->state = PROXY_PATH_DOWN;
	health->down_us = now_us;
	return true;
}

void proxy_health_forget(struct proxy_health *health)
{
	health->state = PROXY_PATH_UNKNOWN;
	health->failures = health->answers = 0;
}

bool proxy_health_is_new(const struct proxy_health *health)
{
	return health->rtt_us == 0 && health->answer_us == 0;
}

void proxy_health_taken(struct proxy_health *health, uint64_t way_us)
{
	if (way_us > 0)
		health->way_us = way_us;
}

bool proxy_health_refuted(struct proxy_health *health)
{
	health->failures = 0;
	if (health->state != PROXY_PATH_DOWN || !proxy_health_is_new(health))
		return false;
	health->state = PROXY_PATH_UNKNOWN;
	return true;
}

static uint64_t first_timeout_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t first = FIRST_TIMEOUT_UNKNOWN_US;
	if (health->way_us > 0)
		first = 6 * health->way_us + FIRST_TIMEOUT_EXTRA_US;
	else if (estimate_us != SCOPE_RTT_UNKNOWN)
		first = clamp(2 * (uint64_t)estimate_us + FIRST_TIMEOUT_EXTRA_US, 0, FIRST_TIMEOUT_MOST_US);
	uint64_t doublings = clamp(health->failures, FAILURES_TO_DOWN - 1, FIRST_DOUBLINGS_MOST) - (FAILURES_TO_DOWN - 1);
	uint64_t grown = clamp(first << doublings, 0, FIRST_GROWN_MOST_US);
	return clamp(grown > first ? grown : first, 0, FIRST_TAKEN_MOST_US);
}

static uint64_t due_us(const struct proxy_health *health, int64_t estimate_us)
{
	if (health->rtt_us == 0) {
		/* A request that was answered took a round trip at the least. */
		if (health->first_byte_us > 0 &&
		    (estimate_us < 0 || health->first_byte_us <= (uint64_t)estimate_us + TIMEOUT_LEAST_US))
			return clamp(3 * health->first_byte_us, TIMEOUT_LEAST_US, FIRST_TIMEOUT_MOST_US);
		return first_timeout_us(health, estimate_us);
	}
	uint64_t variation = health->variation_us > health->rtt_us / 2 ? health->variation_us : health->rtt_us / 2;
	return clamp(health->rtt_us + 4 * variation, TIMEOUT_LEAST_US, TIMEOUT_MOST_US);
}

/* An answer that came late, because of an outage or a lost packet, says little of the path when it works: it is no sample. But
 * where two in a row are late the path has become slow; it gets there in a few steps, since a sample has a bound as well. */
void proxy_health_measured(struct proxy_health *health, uint64_t rtt_us, bool late)
{
	bool late_before = health->late;
	health->late = late;
	bool judged = health->rtt_us > 0 && health->state != PROXY_PATH_DOWN; /* after an outage it says nothing */
	bool repeated = judged && (late || rtt_us > due_us(health, SCOPE_RTT_UNKNOWN) / 2);
	health->doubt = repeated ? DOUBT_ANSWERS : health->doubt - (health->doubt > 0);
	if (late && !late_before)
		return;
	uint64_t most_us = health->rtt_us > 0 ? 2 * due_us(health, SCOPE_RTT_UNKNOWN) : FIRST_TIMEOUT_MOST_US;
	rtt_us = rtt_us < most_us ? rtt_us : most_us;
	if (health->rtt_us == 0) {
		health->rtt_us = rtt_us + 1;
		health->variation_us = rtt_us / 2;
		return;
	}
	uint64_t apart = rtt_us > health->rtt_us ? rtt_us - health->rtt_us : health->rtt_us - rtt_us;
	health->variation_us = (3 * health->variation_us + apart) / 4;
	health->rtt_us = (7 * health->rtt_us + rtt_us) / 8;
	health->rtt_us += health->rtt_us == 0;
}

uint64_t proxy_smooth_us(uint64_t smoothed_us, uint64_t sample_us)
{
	return smoothed_us == 0 ? sample_us + 1 : (7 * smoothed_us + sample_us + 7) / 8;
}

void proxy_health_first_byte(struct proxy_health *health, uint64_t first_byte_us)
{
	health->first_byte_us = proxy_smooth_us(health->first_byte_us, first_byte_us);
	health->late = false; /* between two late answers there was one that was not */
}

uint64_t proxy_health_timeout_us(const struct proxy_health *health, int64_t estimate_us)
{
	return due_us(health, estimate_us) + patience_us(health, estimate_us);
}

uint64_t proxy_health_second_us(const struct proxy_health *health, int64_t estimate_us, bool taken)
{
	uint64_t distance = distance_us(health, estimate_us);
	if (proxy_health_is_new(health) && !taken)
		return clamp(distance + distance / 4, SECOND_LEAST_US, FIRST_TIMEOUT_MOST_US);
	if (patience_us(health, estimate_us) == 0)
		return UINT64_MAX;
	return health->rtt_us > 0 ? due_us(health, estimate_us) + (taken ? 0 : distance) : 3 * distance;
}

uint64_t proxy_health_connect_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t measured = larger(health->rtt_us, health->way_us);
	if (measured == 0 && estimate_us == SCOPE_RTT_UNKNOWN)
		return CONNECT_UNKNOWN_US;
	uint64_t distance = larger(measured, distance_us(health, estimate_us));
	return CONNECT_ROUND_TRIPS * distance + 2 * far_us(distance);
}

uint64_t proxy_race_delay_us(uint64_t first_byte_us, int64_t estimate_us)
{
	if (first_byte_us > 0)
		return clamp(2 * first_byte_us, DELAY_LEAST_US, DELAY_MOST_US);
	if (estimate_us == SCOPE_RTT_UNKNOWN)
		return DELAY_UNKNOWN_US;
	/* The connection has to be made as well. */
	return clamp(3 * (uint64_t)estimate_us + DELAY_LEAST_US, DELAY_LEAST_US, DELAY_MOST_US);
}
