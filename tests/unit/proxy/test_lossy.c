/* A path that loses packets is not taken for a dead one, and a dead one is left soon: what health.c decides, on a model of TCP
 * and TLS as they are on Linux, and of what probe.c does.
 *
 *   a connection   SYN, and back. A SYN that got no answer is repeated after 1, 3, 7, 15, 31 s. With a round trip of two
 *                  seconds the first repetition always goes out, needless or not.
 *   TLS 1.3        2 packets there, 3 back; then 3 there, which the first request is a part of, and 2 back
 *   later          a packet there, a packet back
 *
 * Of a flight each packet is lost for itself. What is missing is sent again after two round trips and 200 ms (tail loss probe,
 * RFC 8985) or the retransmission time-out, whichever is sooner; then after that time-out, and twice as long each time. The
 * time-out is the round trip and four times its variation, which is half a round trip at first and a quarter less with each
 * answer (RFC 6298), but 200 ms at least. If more than one packet is missing the others follow a round trip later. A real
 * stack is better at it where later packets of a flight arrive: the model is on the safe side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

#include <stdlib.h>

enum { MS = 1000, S = 1000 * MS, QUIET = 150 * MS, SOON = 50 * MS, LATE = 30 * S, MINUTE = 60, PATHS = 31 };

static const uint64_t never = UINT64_MAX;

struct model_probe {
	bool busy, late, open, heard, greeted;
	unsigned samples; /* of the round trip, on its connection */
	uint64_t begun_us, asked_us, deadline_us;
	uint64_t taken_us, greeted_us, answered_us; /* when that will be so */
};

struct link {
	/* the line */
	uint64_t random, rtt_us;
	unsigned loss_percent;
	bool dead, hangs; /* hangs: the agent, behind a kernel that works */
	/* what is known of it */
	int64_t estimate_us;
	struct proxy_health health;
	/* probe.c */
	struct model_probe probes[PROXY_PROBES];
	uint64_t now_us, watch_us;
	unsigned downs, sent;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- TCP --------------------------------------------------------------------------------------------------------- */

static bool is_lost(struct link *link)
{
	link->random = link->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(link->random >> 33) % 100 < link->loss_percent;
}

static unsigned lost_of(struct link *link, unsigned packets)
{
	unsigned lost = 0;
	for (unsigned i = 0; i < packets; i++)
		lost += is_lost(link);
	return lost;
}

/* When all of a flight that was sent then has arrived at the other end. */
static uint64_t arrive(struct link *link, uint64_t sent_us, unsigned packets, unsigned samples)
{
	uint64_t spread_us = 2 * link->rtt_us;
	for (unsigned i = 1; i < samples && i < 20; i++)
		spread_us -= spread_us / 4;
	uint64_t timeout_us = link->rtt_us + (spread_us > 200 * MS ? spread_us : 200 * MS);
	uint64_t wait_us = least(2 * link->rtt_us + 200 * MS, timeout_us);
	for (unsigned missing = packets; (missing = lost_of(link, missing)) > 0; wait_us = timeout_us, timeout_us *= 2)
		sent_us += wait_us + (missing > 1 ? link->rtt_us : 0);
	return sent_us + link->rtt_us / 2;
}

static uint64_t be_taken(struct link *link, uint64_t sent_us)
{
	for (uint64_t wait_us = 1 * S; lost_of(link, 2) > 0; wait_us *= 2)
		sent_us += wait_us;
	return sent_us + link->rtt_us;
}

static uint64_t greet(struct link *link, uint64_t taken_us)
{
	return arrive(link, arrive(link, taken_us, 2, 1), 3, 1);
}

/* ---- probe.c ----------------------------------------------------------------------------------------------------- */

static uint64_t hang_us(const struct link *link)
{
	return proxy_health_hang_us(&link->health, link->estimate_us);
}

static unsigned count_waiting(const struct link *link)
{
	unsigned count = 0;
	for (int i = 0; i < PROXY_PROBES; i++)
		count += link->probes[i].busy && !link->probes[i].late;
	return count;
}

static int rank(const struct model_probe *probe)
{
	return !probe->busy ? 0 : probe->late ? 1 : 2;
}

static struct model_probe *choose(struct link *link, bool fresh)
{
	struct model_probe *chosen = &link->probes[0];
	for (int i = 0; i < PROXY_PROBES && !fresh; i++)
		if (link->probes[i].open && !link->probes[i].busy)
			return &link->probes[i];
	for (int i = 1; i < PROXY_PROBES; i++) {
		struct model_probe *probe = &link->probes[i];
		if (rank(probe) < rank(chosen) || (rank(probe) == rank(chosen) && probe->begun_us < chosen->begun_us))
			chosen = probe;
	}
	*chosen = (struct model_probe){0};
	return chosen;
}

static void start(struct link *link, bool fresh)
{
	struct model_probe *probe = choose(link, fresh);
	probe->greeted = probe->open;
	probe->busy = probe->open = true;
	probe->late = probe->heard = false;
	probe->begun_us = probe->asked_us = link->now_us;
	probe->deadline_us = link->now_us + proxy_health_due_us(&link->health, link->estimate_us);
	proxy_health_asked(&link->health, link->now_us);
	link->sent++;
	if (link->dead) {
		probe->taken_us = probe->greeted_us = probe->answered_us = never;
	} else if (probe->greeted) {
		probe->samples++;
		probe->answered_us = arrive(link, arrive(link, link->now_us, 1, probe->samples), 1, probe->samples);
		probe->taken_us = probe->answered_us; /* nothing is heard of it before */
	} else {
		probe->samples = 2;
		probe->taken_us = be_taken(link, link->now_us);
		probe->greeted_us = greet(link, probe->taken_us);
		probe->answered_us = arrive(link, arrive(link, probe->greeted_us, 3, 2), 2, 2);
	}
	if (link->hangs) {
		probe->taken_us = link->now_us + link->rtt_us;
		probe->greeted_us = probe->answered_us = never;
	}
}

/* When the other kernel was heard of last on that connection, since the probe was begun; 0: not at all. */
static uint64_t heard_us(const struct link *link, const struct model_probe *probe)
{
	uint64_t heard = link->now_us >= probe->taken_us ? probe->taken_us : 0;
	return link->now_us >= probe->greeted_us && probe->greeted_us > heard && probe->greeted_us > probe->begun_us
	           ? probe->greeted_us
	           : heard;
}

static void answer(struct link *link, struct model_probe *probe)
{
	uint64_t overdue_us = proxy_health_beside_us(&link->health, link->estimate_us, PROXY_WAITING_FIRST);
	for (int i = 0; i < PROXY_PROBES; i++) {
		struct model_probe *other = &link->probes[i];
		if (other == probe)
			continue;
		bool lost =
			other->busy && !other->late && heard_us(link, other) == 0 && link->now_us - other->begun_us >= overdue_us;
		if (lost)
			proxy_health_lost(&link->health);
		*other = (struct model_probe){0};
	}
	proxy_health_measured(&link->health, link->now_us - probe->asked_us, probe->late);
	probe->busy = probe->late = probe->heard = false;
	proxy_health_answered(&link->health, link->now_us);
}

static void review(struct link *link)
{
	for (int i = 0; i < PROXY_PROBES; i++) {
		struct model_probe *probe = &link->probes[i];
		uint64_t at_us = probe->busy ? heard_us(link, probe) : 0;
		if (at_us == 0)
			continue;
		if (link->health.rtt_us == 0)
			proxy_health_taken(&link->health, link->rtt_us);
		if (!probe->heard && probe->late) {
			probe->late = false;
			probe->deadline_us = link->now_us + hang_us(link);
		}
		probe->heard = true;
		proxy_health_heard(&link->health, at_us);
	}
}

static void check_hangs(struct link *link)
{
	link->downs += proxy_health_hangs(&link->health, link->now_us, link->estimate_us);
}

static void expire(struct link *link, struct model_probe *probe)
{
	if (probe->late) {
		*probe = (struct model_probe){0};
		return;
	}
	review(link);
	bool was_down = link->health.state == PROXY_PATH_DOWN;
	if (probe->heard && link->now_us - probe->begun_us < hang_us(link)) {
		probe->deadline_us = probe->begun_us + hang_us(link);
		return;
	}
	probe->late = true;
	probe->deadline_us = link->now_us + LATE;
	struct proxy_silence silence = {
		.begun_us = probe->begun_us, .now_us = link->now_us, .estimate_us = link->estimate_us};
	if (!probe->heard)
		link->downs += proxy_health_silent(&link->health, &silence);
	check_hangs(link);
	if (!was_down && link->health.state != PROXY_PATH_DOWN && count_waiting(link) == 0)
		start(link, true);
}

static void step(struct link *link, struct model_probe *probe)
{
	if (!probe->busy)
		return;
	if (!probe->greeted && link->now_us >= probe->greeted_us) {
		probe->greeted = true;
		probe->asked_us = link->now_us;
	}
	if (probe->greeted && link->now_us >= probe->answered_us)
		answer(link, probe);
	else if (link->now_us >= probe->deadline_us)
		expire(link, probe);
}

static uint64_t until_beside(const struct link *link)
{
	const struct model_probe *last = NULL;
	int count = 0;
	for (int i = 0; i < PROXY_PROBES; i++) {
		const struct model_probe *probe = &link->probes[i];
		if (!probe->busy || probe->late)
			continue;
		count++;
		if (!last || probe->begun_us > last->begun_us)
			last = probe;
	}
	enum proxy_waiting waiting = last && last->heard                          ? PROXY_WAITING_HEARD
	                             : count > 1 || (last && link->health.silent) ? PROXY_WAITING_MORE
	                                                                          : PROXY_WAITING_FIRST;
	uint64_t due_us = proxy_health_beside_us(&link->health, link->estimate_us, waiting);
	if (count == PROXY_PROBES || link->health.state == PROXY_PATH_DOWN)
		return QUIET;
	uint64_t age_us = last ? link->now_us - last->begun_us : 0;
	return last && age_us + SOON / 2 >= due_us ? 0 : least(due_us - age_us, QUIET);
}

static void watch(struct link *link)
{
	uint64_t quiet_us = link->now_us - link->health.answer_us;
	if (link->health.answer_us > 0 && quiet_us < QUIET && link->health.state == PROXY_PATH_UP) {
		link->watch_us = link->health.answer_us + QUIET;
		return;
	}
	review(link);
	check_hangs(link);
	bool first = count_waiting(link) == 0;
	uint64_t pause_us = until_beside(link);
	if (first || pause_us == 0)
		start(link, !first);
	if (pause_us == 0)
		pause_us = until_beside(link);
	link->watch_us = link->now_us + pause_us;
}

static uint64_t next_of(const struct model_probe *probe)
{
	if (!probe->busy)
		return never;
	return least(probe->deadline_us, probe->greeted ? probe->answered_us : probe->greeted_us);
}

/* Goes on to whatever happens next. */
static void advance(struct link *link)
{
	uint64_t next_us = link->watch_us;
	for (int i = 0; i < PROXY_PROBES; i++)
		next_us = least(next_us, next_of(&link->probes[i]));
	link->now_us = next_us > link->now_us ? next_us : link->now_us;
	for (int i = 0; i < PROXY_PROBES; i++)
		step(link, &link->probes[i]);
	if (link->now_us >= link->watch_us)
		watch(link);
}

/* ---- Paths that are used ----------------------------------------------------------------------------------------- */

static void use(struct link *link, uint64_t minutes)
{
	for (uint64_t end_us = link->now_us + minutes * MINUTE * S; link->now_us < end_us;)
		advance(link);
}

/* How often a path that has answered, and is there, is left nevertheless. */
static unsigned losses_in(uint64_t rtt_us, unsigned loss_percent, uint64_t minutes)
{
	struct link link = {.random = rtt_us + 1,
	                    .rtt_us = rtt_us,
	                    .loss_percent = loss_percent,
	                    .estimate_us = (int64_t)rtt_us,
	                    .now_us = S};
	while (link.health.state != PROXY_PATH_UP || link.health.rtt_us == 0)
		advance(&link);
	link.downs = 0;
	use(&link, minutes);
	return link.downs;
}

static void a_path_that_has_answered_stays_up(void **state)
{
	(void)state;
	static const uint64_t rtts_us[] = {2 * S, 1 * S, 600 * MS, 300 * MS, 100 * MS, 20 * MS, 1 * MS};
	for (size_t i = 0; i < sizeof(rtts_us) / sizeof(rtts_us[0]); i++) {
		assert_int_equal(losses_in(rtts_us[i], 7, 10000), 0);
		assert_int_equal(losses_in(rtts_us[i], 3, 10000), 0);
		/* Few are lost, so that it counts as steady some of the time. */
		assert_in_range(losses_in(rtts_us[i], 1, 10000), 0, 1);
		assert_int_equal(losses_in(rtts_us[i], 0, 100), 0);
	}
}

enum end { DEAD, HANGS };

/* How long it takes until a path that dies is left, or one to an agent that hangs. */
static uint64_t left_once(uint64_t random, enum end end, uint64_t rtt_us, unsigned loss_percent, bool used,
                          int64_t estimate_us)
{
	struct link link = {
		.random = random, .rtt_us = rtt_us, .loss_percent = loss_percent, .estimate_us = estimate_us, .now_us = S};
	if (used)
		use(&link, 5);
	else
		link.watch_us = link.now_us + SOON;
	while (used && link.now_us != link.health.answer_us)
		advance(&link); /* just after an answer */
	uint64_t died_us = link.now_us;
	link.dead = end == DEAD;
	link.hangs = end == HANGS;
	while (link.health.state != PROXY_PATH_DOWN)
		advance(&link);
	return link.now_us - died_us;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return (first > second) - (first < second);
}

/* What was lost just before is chance: the median of some paths. */
static uint64_t left_after(enum end end, uint64_t rtt_us, unsigned loss_percent, bool used, int64_t estimate_us)
{
	uint64_t times_us[PATHS];
	unsigned count = loss_percent == 0 ? 1 : PATHS;
	for (unsigned i = 0; i < count; i++)
		times_us[i] = left_once(i + 1, end, rtt_us, loss_percent, used, estimate_us);
	qsort(times_us, count, sizeof(times_us[0]), compare_times);
	return times_us[count / 2];
}

static unsigned first_lost(uint64_t rtt_us, unsigned loss_percent, int64_t estimate_us, unsigned contacts)
{
	unsigned lost = 0;
	for (unsigned i = 0; i < contacts; i++) {
		struct link link = {.random = (i + 1) * UINT64_C(7919),
		                    .rtt_us = rtt_us,
		                    .loss_percent = loss_percent,
		                    .estimate_us = estimate_us,
		                    .now_us = S,
		                    .watch_us = S + SOON};
		while (link.health.answer_us == 0)
			advance(&link);
		lost += link.downs > 0;
	}
	return lost;
}

static unsigned connections_late(uint64_t rtt_us, unsigned loss_percent, unsigned connections)
{
	struct link link = {.random = 1, .rtt_us = rtt_us, .loss_percent = loss_percent};
	uint64_t most_us = 2 * S + proxy_health_connect_us(&link.health, (int64_t)rtt_us);
	unsigned late = 0;
	for (unsigned i = 0; i < connections; i++)
		late += greet(&link, be_taken(&link, 0)) > most_us;
	return late;
}

/* All of them at most; `used`: since its last answer, which may just have come. */
struct bounds {
	uint64_t rtt_us;
	uint64_t used_us, lossy_us; /* where nothing was lost lately; at 7 % each way */
	uint64_t new_us;            /* since the request */
};

static void check_left(enum end end, const struct bounds *bounds)
{
	uint64_t rtt_us = bounds->rtt_us;
	assert_in_range(left_after(end, rtt_us, 0, true, (int64_t)rtt_us), 0, bounds->used_us);
	assert_in_range(left_after(end, rtt_us, 7, true, (int64_t)rtt_us), 0, bounds->lossy_us);
	assert_in_range(left_after(end, rtt_us, 0, false, (int64_t)rtt_us), 0, bounds->new_us);
}

static void a_dead_path_is_left(void **state)
{
	(void)state;
	static const struct bounds rows[] = {
		{4 * MS, 600 * MS, S, 600 * MS},
		{50 * MS, 650 * MS, S, 650 * MS},
		{100 * MS, 700 * MS, 1200 * MS, 700 * MS},
		{200 * MS, 800 * MS, 1200 * MS, 900 * MS},
		{250 * MS, S, 1400 * MS, S},
		{300 * MS, 1050 * MS, 1700 * MS, 1150 * MS},
		{600 * MS, 1900 * MS, 2600 * MS, 2200 * MS},
		{2 * S, 5900 * MS, 8500 * MS, 7 * S}, /* a satellite */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_left(DEAD, &rows[i]);
		assert_in_range(left_after(DEAD, rows[i].rtt_us, 0, false, SCOPE_RTT_UNKNOWN), 0, 950 * MS);
		/* A second, wherever the round trip is not most of it; else two round trips and what they vary by. */
		uint64_t most_us = rows[i].rtt_us <= 250 * MS ? S : S + rows[i].rtt_us * 5 / 2;
		assert_in_range(left_after(DEAD, rows[i].rtt_us, 0, true, (int64_t)rows[i].rtt_us), 0, most_us);
	}
}

static void an_agent_that_hangs_is_left(void **state)
{
	(void)state;
	static const struct bounds rows[] = {
		{4 * MS, 750 * MS, 4 * S, 1100 * MS},
		{100 * MS, 1050 * MS, 5 * S, 1700 * MS},
		{300 * MS, 1700 * MS, 6 * S, 2900 * MS},
		{2 * S, 7200 * MS, 27 * S, 24 * S},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_left(HANGS, &rows[i]);
}

/* A path that works is asked once for each time that nothing came: further probes go only where one is missing. */
static void a_steady_path_gets_few_probes(void **state)
{
	(void)state;
	static const uint64_t rtts_us[] = {2 * S, 300 * MS, 4 * MS};
	for (size_t i = 0; i < sizeof(rtts_us) / sizeof(rtts_us[0]); i++) {
		struct link link = {.random = 1, .rtt_us = rtts_us[i], .estimate_us = (int64_t)rtts_us[i], .now_us = S};
		use(&link, 1);
		link.sent = 0;
		use(&link, 10);
		assert_in_range(link.sent, 1, 10 * MINUTE * S / (QUIET + rtts_us[i]) + 1);
	}
}

/* Of 10 000. */
static void first_contact_with_a_site_that_is_there(void **state)
{
	(void)state;
	assert_int_equal(first_lost(4 * MS, 0, 4 * MS, 10), 0);
	assert_int_equal(first_lost(300 * MS, 0, 300 * MS, 10), 0);
	assert_int_equal(first_lost(300 * MS, 0, 200 * MS, 10), 0); /* estimates err */
	assert_int_equal(first_lost(600 * MS, 0, SCOPE_RTT_UNKNOWN, 10),
	                 0); /* without any, most of the world is near enough */
	/* Links that lose packets, and are far: fewer than one of a thousand is given up. */
	assert_in_range(first_lost(2 * S, 7, 2 * S, 10000), 0, 1);
	assert_in_range(first_lost(2 * S, 7, 1500 * MS, 10000), 0, 5);
	assert_in_range(first_lost(1 * S, 7, 1 * S, 10000), 0, 5);
	assert_in_range(first_lost(600 * MS, 7, 600 * MS, 10000), 0, 5);
	/* Nearby there are fewer probes: five connections that are all asked for in vain. */
	assert_in_range(first_lost(300 * MS, 7, 300 * MS, 10000), 0, 10);
	assert_in_range(first_lost(100 * MS, 7, 100 * MS, 10000), 0, 10);
	assert_in_range(first_lost(20 * MS, 7, 20 * MS, 10000), 0, 10);
	assert_int_equal(first_lost(20 * MS, 1, 20 * MS, 10000), 0);
	/* A satellite that nobody has told of is left; first_lost() has seen that it is found all the same. */
	assert_int_equal(first_lost(2 * S, 0, SCOPE_RTT_UNKNOWN, 10), 10);
}

/* Of 100 000 connections that requests make, with the 2 s that are configured. */
static void connections_for_requests_come_about(void **state)
{
	(void)state;
	assert_in_range(connections_late(2 * S, 7, 100000), 0, 30);
	assert_in_range(connections_late(1 * S, 7, 100000), 0, 40);
	assert_in_range(connections_late(600 * MS, 7, 100000), 0, 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_has_answered_stays_up),
		cmocka_unit_test(a_dead_path_is_left),
		cmocka_unit_test(an_agent_that_hangs_is_left),
		cmocka_unit_test(a_steady_path_gets_few_probes),
		cmocka_unit_test(first_contact_with_a_site_that_is_there),
		cmocka_unit_test(connections_for_requests_come_about),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
