/* Suspicion before death (SWIM, 4.2; Lifeguard, IV.B).
 *
 * Who does not answer is suspected first. It hears of that, and says that it is alive; if it does not in time, it is lost.
 * The time grows with the logarithm of the number of sites, since news take that long, and is a few round trips to the
 * suspect at the least. It is long while one site alone accuses it, which may itself be at fault, and shrinks with each
 * other one that does not reach it either. Where too few do, we may have missed its denial: we probe it ourselves before
 * the time is over. */
#include "site/site_int.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

enum {
	PERIODS_LEAST = 5,    /* of probing, that a suspect has, however few sites there are */
	ROUND_TRIPS = 4,      /* that a suspect has at the least */
	LONGEST = 3,          /* times the shortest, while nobody confirms it */
	STRANGER_US = 750000, /* the round trip to one whose distance is not known */
};

/* ---- The heap ------------------------------------------------------------------------------------------------------ */

static void heap_put(struct site *site, uint32_t at, struct suspicion *suspicion)
{
	site->suspicions[at] = suspicion;
	suspicion->heap_at = at;
}

static void heap_up(struct site *site, uint32_t at)
{
	struct suspicion *moving = site->suspicions[at];
	while (at > 0 && site->suspicions[(at - 1) / 2]->deadline_us > moving->deadline_us) {
		heap_put(site, at, site->suspicions[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(site, at, moving);
}

static void heap_down(struct site *site, uint32_t at)
{
	struct suspicion *moving = site->suspicions[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= site->suspicions_count)
			break;
		if (child + 1 < site->suspicions_count &&
		    site->suspicions[child + 1]->deadline_us < site->suspicions[child]->deadline_us)
			child++;
		if (site->suspicions[child]->deadline_us >= moving->deadline_us)
			break;
		heap_put(site, at, site->suspicions[child]);
		at = child;
	}
	heap_put(site, at, moving);
}

static void heap_add(struct site *site, struct suspicion *suspicion)
{
	site->suspicions =
		site_grow(site->suspicions, &site->suspicions_capacity, site->suspicions_count + 1, sizeof(struct suspicion *));
	heap_put(site, site->suspicions_count++, suspicion);
	heap_up(site, suspicion->heap_at);
}

static void heap_remove(struct site *site, uint32_t at)
{
	struct suspicion *last = site->suspicions[--site->suspicions_count];
	if (at == site->suspicions_count)
		return;
	heap_put(site, at, last);
	heap_up(site, at);
	heap_down(site, last->heap_at);
}

/* ---- Times --------------------------------------------------------------------------------------------------------- */

/* 9 periods among a thousand sites, 6⅓ among ten. */
static double shortest_us(const struct site *site, uint32_t number)
{
	double period = (double)site->options.timing.probe_us;
	double shortest = period * (PERIODS_LEAST + 4.0 / 3.0 * log10((double)site_live_count(site) + 1.0));
	int64_t rtt_us = probe_rtt_us(site, number);
	if (rtt_us < 0)
		rtt_us = STRANGER_US;
	return fmax(shortest, ROUND_TRIPS * (double)rtt_us);
}

uint64_t suspicion_least_us(const struct site *site)
{
	return PERIODS_LEAST * site->options.timing.probe_us;
}

static void set_deadline(struct site *site, uint32_t number, struct suspicion *suspicion)
{
	double shortest = shortest_us(site, number), timeout = shortest;
	if (suspicion->confirmations < suspicion->needed) {
		double share = log(suspicion->confirmations + 1.0) / log(suspicion->needed + 1.0);
		timeout = shortest * (LONGEST - (LONGEST - 1) * share);
		if (!suspicion->checked)
			timeout = timeout * 3 / 4;
	}
	suspicion->deadline_us = suspicion->started_us + (uint64_t)timeout;
}

void suspicion_start(struct site *site, uint32_t number, site_id accuser)
{
	struct hot *hot = news_hot(site, number);
	struct suspicion *suspicion = hot->suspicion;
	if (suspicion) /* of an earlier incarnation */
		heap_remove(site, suspicion->heap_at);
	else
		suspicion = malloc(sizeof(*suspicion));
	CHECK(suspicion != NULL);
	uint32_t others = site_live_count(site);
	*suspicion =
		(struct suspicion){.started_us = site->now.us, .hot = site->members[number].hot, .accusers = {accuser}};
	others = others > 2 ? others - 2 : 0; /* without this site and the suspect */
	suspicion->needed = (uint8_t)(others < SITE_CONFIRMATIONS ? others : SITE_CONFIRMATIONS);
	if (site->options.timing.plain)
		suspicion->needed = 0; /* the shortest time, whoever says so */
	set_deadline(site, number, suspicion);
	hot->suspicion = suspicion;
	heap_add(site, suspicion);
}

bool suspicion_confirm(struct site *site, uint32_t number, site_id accuser)
{
	uint32_t entry = site->members[number].hot;
	struct suspicion *suspicion = entry == SITE_NONE ? NULL : site->hots[entry].suspicion;
	if (!suspicion || accuser == 0 || suspicion->confirmations >= suspicion->needed)
		return false;
	for (uint32_t i = 0; i <= suspicion->confirmations; i++)
		if (suspicion->accusers[i] == accuser)
			return false;
	suspicion->accusers[++suspicion->confirmations] = accuser;
	heap_remove(site, suspicion->heap_at);
	set_deadline(site, number, suspicion);
	heap_add(site, suspicion);
	return true;
}

void suspicion_end(struct site *site, uint32_t number)
{
	uint32_t entry = site->members[number].hot;
	if (entry == SITE_NONE || !site->hots[entry].suspicion)
		return;
	heap_remove(site, site->hots[entry].suspicion->heap_at);
	free(site->hots[entry].suspicion);
	site->hots[entry].suspicion = NULL;
	news_release(site, number);
}

uint64_t suspicion_due(const struct site *site)
{
	return site->suspicions_count > 0 ? site->suspicions[0]->deadline_us : UINT64_MAX;
}

/* Three quarters of the time are over. */
static void check_suspect(struct site *site, uint32_t number, struct suspicion *suspicion)
{
	suspicion->checked = true;
	heap_remove(site, suspicion->heap_at);
	set_deadline(site, number, suspicion);
	heap_add(site, suspicion);
	probe_hasten(site, site->members[number].id);
}

void suspicion_tick(struct site *site)
{
	while (suspicion_due(site) <= site->now.us) {
		struct suspicion *suspicion = site->suspicions[0];
		uint32_t number = site->hots[suspicion->hot].member;
		if (suspicion->confirmations < suspicion->needed && !suspicion->checked) {
			check_suspect(site, number, suspicion);
			continue;
		}
		member_set_state(site, number, SITE_LOST, site->members[number].incarnation);
		news_add(site, number, site->options.self);
	}
}

void suspicion_delay(struct site *site, uint64_t us)
{
	for (uint32_t i = 0; i < site->suspicions_count; i++) {
		site->suspicions[i]->started_us += us;
		site->suspicions[i]->deadline_us += us; /* all alike: the heap stays one */
	}
}

void suspicion_free(struct site *site)
{
	for (uint32_t i = 0; i < site->suspicions_count; i++)
		free(site->suspicions[i]);
	free(site->suspicions);
}
