/* Is another site to be reached on the data path? What answers and failures make of that (DESIGN 11). Pure: time is an
 * argument.
 *
 *              an answer                 silence, two errors in a row, or a refusal
 *   UNKNOWN ───────────────▶ UP ◀──────────────────────────────────────────▶ DOWN
 *                                 two answers in a row; one, if it was short
 *
 * - Every answer counts, whatever its status, of requests and of probes: the way there and back works.
 * - A refused connection is an answer of the other machine itself, and is believed at once. Of other errors two in a row are.
 * - A path that was down for some time has to answer twice, so that one that works now and then is not used in turns. A
 *   short outage was probably none: a pause of the other agent, or a row of lost packets.
 *
 * Silence is what a dead path and a lost packet have in common. So it is asked how likely it is that all of them were lost:
 *
 *   1. A probe should be **heard of** after a round trip and what it varies by: an answer, or the other machine's kernel
 *      acknowledged something, as it does when it takes a connection. That is one packet there and one back, and each probe
 *      is on a connection of its own: one packet's luck is not another's.
 *   2. If it is not, further probes are sent at its side, a short while apart.
 *   3. When so many in a row were not heard of that they cannot all have been lost, the path is down. How many, is said by the
 *      loss that was measured on this path: needed().
 *   4. If any was heard of, the path is not dead, and counting begins anew. What did not come yet has to be sent again by TCP,
 *      or the agent hangs behind a kernel that works: for that there is a longer time (proxy_health_hang_us).
 *
 * So to leave a dead path takes two round trips, a second at most where no packets were lost lately, and some more probes where
 * they were. It depends on what was measured, not on what might be. What it all amounts to was found with a model of TCP
 * (tests/unit/proxy/test_lossy.c).
 *
 * The first time nothing was measured: the round trip is what gossip tells, and of the loss it is known that satellite links
 * have more. If gossip has lost the site as well, the first silence is believed: that makes two who say so. A probe that is
 * heard of after the path was given up takes that back: the silence was only the distance. (Not where the agent hung: its kernel
 * was heard of before.) With each failure the next wait is
 * longer, so that also a site that is farther off than all expect is reached in the end.
 *
 * How long an answer takes is smoothed as TCP does it (RFC 6298). An answer that took so long that something must have been sent
 * again counts as a loss and says nothing of the distance, unless the next one took as long. */
#include "proxy/proxy_int.h"

enum {
	DUE_LEAST_US = 250 * 1000,
	DUE_MOST_US = 8 * 1000 * 1000,
	DUE_UNKNOWN_US = 500 * 1000,         /* of a site whose distance nobody knows */
	DUE_EXTRA_US = 100 * 1000,           /* the first time */
	DUE_GROWN_MOST_US = 2 * 1000 * 1000, /* TCP repeats what asks for a connection after one second, three, seven */
	DOUBLINGS_MOST = 5,
	SPREAD_LEAST_US = 60 * 1000,
	REPEATED_LEAST_US = 150 * 1000, /* more than a round trip: TCP repeats nothing before 200 ms */
	OVERDUE_LEAST_US = 100 * 1000,
	OVERDUE_UNKNOWN_US = 150 * 1000,
	BESIDE_LEAST_US = 50 * 1000,
	BESIDE_OF_RTT = 8,               /* packets that follow each other closely are lost together */
	HANG_EXTRA_US = 500 * 1000,      /* for a packet that is repeated, and for what the agent does */
	HANG_FIRST_US = 1000 * 1000,     /* for handshakes that are made for the first time */
	HANG_LOSSY_US = 3 * 1000 * 1000, /* for packets that are repeated, one after the other */
	CONNECT_UNKNOWN_US = 3 * 1000 * 1000,
	SHORT_OUTAGE_US = 3 * 1000 * 1000,
	FAILURES_TO_DOWN = 2,
	ANSWERS_TO_UP = 2,
	CONNECT_ROUND_TRIPS = 10, /* two of TCP and TLS, and what it takes to repeat what was lost, twice in a row */
	FAR_US = 300 * 1000,      /* satellite links are, and lose packets */
	FAR_TIMES = 6,            /* the round trips that time-outs of TCP take in the end, each twice the one before */
	FAR_MOST_US = 30 * 1000 * 1000,
	SAMPLES_FIRST = 4,
	SAMPLES_MOST = 64,     /* for so many answers a loss is remembered, more or less */
	SAMPLES_FEW = 16,      /* say little */
	LOSS_OF_PERCENT = 655, /* of PROXY_LOSS_ALL */
	SILENT_FIRST = 5,
	SILENT_FIRST_FAR = 6,
	DELAY_LEAST_US = 50 * 1000, /* below it a pause of a scheduler would start the next one */
	DELAY_MOST_US = 1000 * 1000,
	DELAY_UNKNOWN_US = 200 * 1000,
};

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t far_us(uint64_t distance_us)
{
	return distance_us > FAR_US ? clamp(FAR_TIMES * (distance_us - FAR_US), 0, FAR_MOST_US) : 0;
}

bool proxy_health_is_new(const struct proxy_health *health)
{
	return health->rtt_us == 0 && health->answer_us == 0;
}

/* The round trip, by the best that is known of it; 0: nothing. */
static uint64_t distance_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t estimate = estimate_us == SCOPE_RTT_UNKNOWN ? 0 : (uint64_t)estimate_us;
	if (health->rtt_us > 0)
		return health->rtt_us;
	/* A request that was answered took a round trip at the least. The quickest: others had to wait for a service, or were there when the
	 * agent hung. */
	bool told = health->quickest_us > 0 && (estimate_us < 0 || health->quickest_us <= estimate + DUE_LEAST_US);
	return larger(larger(health->way_us, estimate), told ? health->quickest_us : 0);
}

static bool is_distance_known(const struct proxy_health *health, int64_t estimate_us)
{
	return distance_us(health, estimate_us) > 0 || estimate_us != SCOPE_RTT_UNKNOWN;
}

/* ---- Loss -------------------------------------------------------------------------------------------------------- */

static void note_loss(struct proxy_health *health, bool lost)
{
	uint32_t share = SAMPLES_FIRST + health->samples;
	share = share < SAMPLES_MOST ? share : SAMPLES_MOST;
	health->samples += health->samples < SAMPLES_MOST;
	health->loss -= health->loss / share;
	health->loss += lost ? PROXY_LOSS_ALL / share : 0;
}

/* Something else came when this should have. Where nothing was measured it may only be farther than all think, and after an
 * outage it says nothing. */
void proxy_health_lost(struct proxy_health *health)
{
	if (!proxy_health_is_new(health) && health->state != PROXY_PATH_DOWN)
		note_loss(health, true);
}

static bool is_lossy(const struct proxy_health *health)
{
	return health->loss > LOSS_OF_PERCENT / 5;
}

/* So many probes in a row are not lost by chance: less than once in some ten million times, for what was measured. */
static uint32_t needed(const struct proxy_health *health, int64_t estimate_us)
{
	static const struct {
		uint32_t loss;
		uint32_t silent;
	} rows[] = {{LOSS_OF_PERCENT / 5, 4},   {4 * LOSS_OF_PERCENT, 6},   {8 * LOSS_OF_PERCENT, 8},
	            {20 * LOSS_OF_PERCENT, 10}, {35 * LOSS_OF_PERCENT, 14}, {PROXY_LOSS_ALL, 18}};
	uint32_t i = 0;
	if (proxy_health_is_new(health))
		return distance_us(health, estimate_us) > FAR_US ? SILENT_FIRST_FAR : SILENT_FIRST;
	while (health->loss > rows[i].loss && rows[i].loss < PROXY_LOSS_ALL)
		i++;
	bool few = health->samples < SAMPLES_FEW && rows[i].silent < SILENT_FIRST;
	return few ? SILENT_FIRST : rows[i].silent;
}

/* ---- What is learnt ---------------------------------------------------------------------------------------------- */

/* The path works, or did then: what was not heard of before was lost. */
static void note_life(struct proxy_health *health, uint64_t at_us)
{
	for (uint32_t i = 0; i < health->silent; i++)
		proxy_health_lost(health);
	health->silent = 0;
	health->life_us = larger(health->life_us, at_us);
}

void proxy_health_asked(struct proxy_health *health, uint64_t now_us)
{
	if (health->asked_us == 0)
		health->asked_us = now_us;
}

bool proxy_health_answered(struct proxy_health *health, uint64_t now_us)
{
	note_life(health, now_us);
	health->answer_us = now_us;
	health->asked_us = 0;
	health->failures = 0;
	health->hung = false;
	if (health->state == PROXY_PATH_UP)
		return false;
	health->answers++;
	uint32_t needed_answers = now_us - health->down_us < SHORT_OUTAGE_US ? 1 : ANSWERS_TO_UP;
	if (health->state == PROXY_PATH_DOWN && health->answers < needed_answers)
		return false;
	health->state = PROXY_PATH_UP;
	return true;
}

bool proxy_health_heard(struct proxy_health *health, uint64_t at_us)
{
	if (at_us <= health->life_us)
		return false;
	note_life(health, at_us);
	if (health->state != PROXY_PATH_DOWN || !proxy_health_is_new(health) || health->hung)
		return false;
	health->failures = 0;
	health->asked_us = at_us;
	health->state = PROXY_PATH_UNKNOWN;
	return true;
}

static bool go_down(struct proxy_health *health, uint64_t now_us)
{
	if (health->state == PROXY_PATH_DOWN)
		return false;
	health->state = PROXY_PATH_DOWN;
	health->down_us = now_us;
	return true;
}

/* On a path that nobody has used gossip is a witness. */
static bool is_believed(const struct proxy_health *health, enum proxy_failure failure)
{
	return failure == PROXY_FAILURE_REFUSED ||
	       (failure == PROXY_FAILURE_OF_LOST && health->state == PROXY_PATH_UNKNOWN);
}

bool proxy_health_failed(struct proxy_health *health, uint64_t now_us, enum proxy_failure failure)
{
	health->answers = 0;
	health->failures++;
	return (is_believed(health, failure) || health->failures >= FAILURES_TO_DOWN) && go_down(health, now_us);
}

bool proxy_health_silent(struct proxy_health *health, const struct proxy_silence *silence)
{
	health->answers = 0;
	if (silence->begun_us + distance_us(health, silence->estimate_us) <= health->life_us) {
		proxy_health_lost(health);
		return false;
	}
	health->silent++;
	bool enough = health->silent >= needed(health, silence->estimate_us);
	return (is_believed(health, silence->failure) || enough) && go_down(health, silence->now_us);
}

bool proxy_health_hangs(struct proxy_health *health, uint64_t now_us, int64_t estimate_us)
{
	if (health->asked_us == 0 || now_us - health->asked_us < proxy_health_hang_us(health, estimate_us))
		return false;
	health->hung |= health->life_us >= health->asked_us;
	return go_down(health, now_us);
}

void proxy_health_forget(struct proxy_health *health)
{
	health->state = PROXY_PATH_UNKNOWN;
	health->failures = health->answers = health->silent = 0;
	health->asked_us = 0;
	health->hung = false;
}

void proxy_health_taken(struct proxy_health *health, uint64_t way_us)
{
	if (way_us > 0)
		health->way_us = way_us;
}

/* ---- How long ---------------------------------------------------------------------------------------------------- */

/* The round trip, what it varies by, and how long a kernel may keep an acknowledgement to itself. */
static uint64_t expected_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t distance = distance_us(health, estimate_us), spread = larger(distance / 4, SPREAD_LEAST_US);
	return distance + (health->rtt_us > 0 ? larger(4 * health->variation_us, spread) : spread);
}

uint64_t proxy_health_due_us(const struct proxy_health *health, int64_t estimate_us)
{
	if (!proxy_health_is_new(health))
		return clamp(expected_us(health, estimate_us), DUE_LEAST_US, DUE_MOST_US);
	uint64_t first = DUE_UNKNOWN_US, most = needed(health, estimate_us);
	if (is_distance_known(health, estimate_us))
		first = clamp(expected_us(health, estimate_us) + DUE_EXTRA_US, DUE_LEAST_US, DUE_MOST_US);
	uint64_t doublings = health->silent > most ? clamp(health->silent - most, 0, DOUBLINGS_MOST) : 0;
	return larger(first, clamp(first << doublings, 0, DUE_GROWN_MOST_US));
}

/* On a path that varies much a late answer is not yet a lost one. */
static uint64_t overdue_us(const struct proxy_health *health, int64_t estimate_us)
{
	if (!is_distance_known(health, estimate_us))
		return OVERDUE_UNKNOWN_US;
	return clamp(expected_us(health, estimate_us), OVERDUE_LEAST_US, DUE_MOST_US);
}

uint64_t proxy_health_beside_us(const struct proxy_health *health, int64_t estimate_us, enum proxy_waiting waiting)
{
	uint64_t distance = distance_us(health, estimate_us), due = proxy_health_due_us(health, estimate_us);
	switch (waiting) {
	case PROXY_WAITING_FIRST: return overdue_us(health, estimate_us);
	case PROXY_WAITING_MORE: return larger(larger(BESIDE_LEAST_US, distance / BESIDE_OF_RTT), due / (PROXY_PROBES - 1));
	case PROXY_WAITING_HEARD: break;
	}
	return 3 * distance + HANG_EXTRA_US / 2; /* a handshake goes on, or an answer has to be repeated */
}

uint64_t proxy_health_hang_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t distance = distance_us(health, estimate_us);
	if (proxy_health_is_new(health))
		return HANG_FIRST_US + 6 * distance + far_us(distance);
	uint64_t steady = 2 * distance + expected_us(health, estimate_us) + HANG_EXTRA_US;
	if (!is_lossy(health))
		return steady;
	return steady + HANG_LOSSY_US + 3 * distance + far_us(distance);
}

static uint64_t repeated_us(const struct proxy_health *health)
{
	return larger(expected_us(health, SCOPE_RTT_UNKNOWN), health->rtt_us + REPEATED_LEAST_US);
}

/* An answer for which something had to be repeated says little of the path when it works: it is no sample. But where two in a
 * row took long the path has become slow; it gets there in a few steps, since a sample has a bound as well. */
void proxy_health_measured(struct proxy_health *health, uint64_t rtt_us, bool late)
{
	bool slow = health->rtt_us > 0 && rtt_us > repeated_us(health);
	bool slow_before = health->slow;
	health->slow = late || slow;
	if (health->state != PROXY_PATH_DOWN && !late) /* a late one was counted; after an outage it says nothing */
		note_loss(health, slow);
	if (health->slow && !slow_before)
		return;
	uint64_t most_us = health->rtt_us > 0 ? 2 * proxy_health_due_us(health, SCOPE_RTT_UNKNOWN) : DUE_MOST_US;
	rtt_us = rtt_us < most_us ? rtt_us : most_us;
	if (health->rtt_us == 0) {
		health->rtt_us = rtt_us + 1;
		health->variation_us = rtt_us / 16;
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
	if (health->quickest_us == 0 || first_byte_us < health->quickest_us)
		health->quickest_us = first_byte_us;
	health->slow = false; /* between two late answers there was one that was not */
}

uint64_t proxy_health_connect_us(const struct proxy_health *health, int64_t estimate_us)
{
	uint64_t measured = larger(health->rtt_us, health->way_us);
	if (measured == 0 && estimate_us == SCOPE_RTT_UNKNOWN)
		return CONNECT_UNKNOWN_US;
	uint64_t estimate = estimate_us == SCOPE_RTT_UNKNOWN ? 0 : (uint64_t)estimate_us;
	uint64_t distance = health->rtt_us > 0 ? measured : larger(measured, estimate);
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
