/* Network coordinates (Dabek, Cox, Kaashoek, Morris: Vivaldi, 2004; the filters: Ledlie, Gardner, Seltzer, 2007).
 *
 * Each site has a place in a space of four dimensions and a height, for what all paths to it have in common. A spring as long
 * as the measured round trip pulls or pushes it; it moves a part of the way, the more the less sure it is of its place
 * compared with the other. What keeps it stable:
 * - of the last few round trips to one peer a low one counts (the paper: the lower quartile), since what disturbs a round trip
 *   makes it longer: neither a late answer nor a busy minute moves anything;
 * - a weak pull to the origin keeps the whole cloud from wandering off;
 * - a step is bounded, and samples beyond reason are not taken. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/check.h"

#include <math.h>

static const float CE = 0.25f, CC = 0.25f; /* of the paper: how fast error and place follow */
static const float ERROR_LEAST = 0.01f, ERROR_MOST = 1.5f;
static const float HEIGHT_LEAST = 10.0f; /* µs */
static const float REACH_US = 8.0e6f;    /* of an axis: what fits into a datagram */
static const float GRAVITY_US = 1.0e6f;  /* where the pull to the origin is as many µs per step: far away */
static const float STEP_MOST = 0.5f;     /* of the round trip, in one step */
static const double SURPRISE = 0.25;     /* of the distance that others went by: they are told soon */
static const double DRIFT_LEAST_US = 10000.0;
enum { RTT_LEAST_US = 1, RTT_MOST_US = 30 * 1000000 };

/* ---- One step ------------------------------------------------------------------------------------------------------ */

static float span(const struct site_coordinate *a, const struct site_coordinate *b)
{
	float sum = 0.0f;
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		sum += (a->at[i] - b->at[i]) * (a->at[i] - b->at[i]);
	return sqrtf(sum);
}

static float distance(const struct site_coordinate *a, const struct site_coordinate *b)
{
	return span(a, b) + a->height + b->height;
}

/* Away from the other one; anywhere if both are at one place. */
static void direction(const struct site_coordinate *at, const struct site_coordinate *other, uint64_t random,
                      float unit[SITE_DIMENSIONS])
{
	float length = span(at, other);
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		unit[i] = length > 1.0f ? (at->at[i] - other->at[i]) / length
		                        : ((float)(random >> 16 * i & 0xffff) - 32767.5f) / 65536.0f;
}

static void pull_to_origin(struct site_coordinate *at)
{
	struct site_coordinate origin = {.error = 1.0f};
	float length = span(at, &origin);
	float pull = length / GRAVITY_US;
	for (int i = 0; i < SITE_DIMENSIONS && length > 1.0f; i++) {
		at->at[i] -= at->at[i] / length * fminf(pull * pull, length / 16.0f);
		at->at[i] = fminf(fmaxf(at->at[i], -REACH_US), REACH_US);
	}
}

bool coordinate_is_sound(const struct site_coordinate *coordinate)
{
	bool sound = isfinite(coordinate->error) && coordinate->error > 0.0f && isfinite(coordinate->height) &&
	             coordinate->height >= 0.0f && coordinate->height <= 2.0f * REACH_US;
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		sound = sound && isfinite(coordinate->at[i]) && fabsf(coordinate->at[i]) <= 2.0f * REACH_US;
	return sound;
}

bool coordinate_move(struct site_coordinate *at, const struct site_coordinate *other, uint32_t rtt_us, uint64_t random)
{
	if (rtt_us < RTT_LEAST_US || rtt_us > RTT_MOST_US)
		return false;
	struct site_coordinate peer = *other;
	if (!coordinate_is_sound(&peer))
		peer = (struct site_coordinate){.error = ERROR_MOST};
	if (!coordinate_is_sound(at))
		*at = (struct site_coordinate){.height = HEIGHT_LEAST, .error = 1.0f};
	float rtt = (float)rtt_us, far = distance(at, &peer);
	float weight = at->error / (at->error + peer.error);
	float error = fabsf(far - rtt) / rtt;
	at->error = fminf(fmaxf(error * CE * weight + at->error * (1.0f - CE * weight), ERROR_LEAST), ERROR_MOST);

	float step = CC * weight * (rtt - far);
	step = fminf(fmaxf(step, -STEP_MOST * rtt), STEP_MOST * rtt);
	float unit[SITE_DIMENSIONS];
	direction(at, &peer, random, unit);
	float flat = span(at, &peer);
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		at->at[i] += unit[i] * step;
	if (flat > 1.0f)
		at->height = fmaxf(HEIGHT_LEAST, at->height + (at->height + peer.height) * step / flat);
	at->height = fminf(at->height, REACH_US);
	pull_to_origin(at);
	return true;
}

/* ---- Samples ------------------------------------------------------------------------------------------------------- */

static struct filter *filter_of(struct site *site, site_id id)
{
	struct filter *filter = &site->filters[site_place(id) % SITE_FILTERS];
	if (filter->id != id)
		*filter = (struct filter){.id = id};
	return filter;
}

/* Of the last few to this peer: the lower quartile. */
static uint32_t filtered(struct filter *filter, uint32_t rtt_us)
{
	filter->samples_us[filter->next] = rtt_us;
	filter->next = (uint8_t)((filter->next + 1) % SITE_SAMPLES);
	if (filter->count < SITE_SAMPLES)
		filter->count++;
	uint32_t sorted[SITE_SAMPLES] = {0};
	for (uint32_t i = 0; i < filter->count; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > filter->samples_us[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = filter->samples_us[i];
	}
	return sorted[(filter->count - 1) / 4];
}

/* How much a distance from here changed, as a part of it. */
static void note_drift(struct site *site, float moved_us, const struct site_coordinate *other)
{
	float far = fmaxf(distance(&site->members[0].coordinate, other), 1000.0f);
	double part = (double)(moved_us / far);
	site->drift_most = fmax(site->drift_most, part);
}

static void note_own_drift(struct site *site, const struct site_coordinate *other)
{
	const struct site_coordinate *own = &site->members[0].coordinate;
	float moved = span(own, &site->anchor) + fabsf(own->height - site->anchor.height);
	note_drift(site, moved, other);
}

/* What was measured counts for more than the estimate. The first time it may be far from that, as of a satellite where
 * coordinates have only begun to move: who sends requests there has to know at once how long to wait. */
static void note_measured(struct site *site, int64_t before_us, uint32_t rtt_us, bool first)
{
	double before = fmax((double)before_us, DRIFT_LEAST_US);
	double part = before_us < 0 ? 1.0 : fabs((double)rtt_us - (double)before_us) / before;
	if (first && part > SURPRISE)
		site->epoch++;
	else
		site->drift_most = fmax(site->drift_most, part);
}

void coordinate_sample(struct site *site, uint32_t number, uint64_t rtt_us)
{
	struct member *member = &site->members[number], *self = &site->members[0];
	if (rtt_us > RTT_MOST_US)
		return;
	int64_t before_us = probe_rtt_us(site, number);
	bool first = member->rtt_us == 0;
	uint32_t low_us = filtered(filter_of(site, member->id), rtt_us < RTT_LEAST_US ? RTT_LEAST_US : (uint32_t)rtt_us);
	member->rtt_us = member->rtt_us == 0 ? low_us : member->rtt_us - member->rtt_us / 4 + low_us / 4;
	if (member->rtt_us == 0)
		member->rtt_us = 1;
	note_measured(site, before_us, member->rtt_us, first);
	if (coordinate_move(&self->coordinate, &member->coordinate, low_us, site_draw(site)) &&
	    coordinate_is_sound(&member->coordinate))
		note_own_drift(site, &member->coordinate);
}

/* ---- Where others are ------------------------------------------------------------------------------------------------ */

static void hear_of_own(struct site *site, const struct place *place)
{
	/* From before we started again: ours has to count more. */
	if (compare_numbers(place->stamp, site->members[0].stamp, false) > 0)
		site->members[0].stamp = place->stamp + 1;
}

void coordinate_hear(struct site *site, const struct place *place, bool direct)
{
	uint32_t number = table_find(site, place->id);
	if (number == 0)
		hear_of_own(site, place);
	if (number == 0 || number == SITE_NONE)
		return;
	struct member *member = &site->members[number];
	bool known = coordinate_is_sound(&member->coordinate);
	int compared = known ? compare_numbers(place->stamp, member->stamp, direct) : 1;
	if (compared < 0 || (compared == 0 && !direct) || !coordinate_is_sound(&place->coordinate))
		return;
	if (known) {
		float moved =
			span(&place->coordinate, &member->coordinate) + fabsf(place->coordinate.height - member->coordinate.height);
		note_drift(site, moved, &place->coordinate);
		site->drift_sum += (double)(moved / fmaxf(distance(&site->members[0].coordinate, &place->coordinate), 1000.0f));
	} else {
		site->drift_sum += 1.0;
	}
	member->coordinate = place->coordinate;
	member->stamp = place->stamp;
	if (compared > 0)
		news_add_place(site, place->id);
}

/* So rarely that all announcements together stay a few per second, however many sites there are. */
void coordinate_tick(struct site *site)
{
	if (site->place_us > site->now.us)
		return;
	uint64_t seconds = site_live_count(site) / 5;
	site->place_us = site->now.us + site_jitter(site, (seconds < 10 ? 10 : seconds) * 1000000);
	if (!coordinate_is_sound(&site->members[0].coordinate))
		return;
	site->members[0].stamp++;
	news_add_place(site, site->options.self);
}

double site_drift(const struct site *site)
{
	double mean = site->drift_sum / (double)site->members_count;
	return fmax(site->drift_most, mean);
}

void site_drift_reset(struct site *site)
{
	site->anchor = site->members[0].coordinate;
	site->drift_most = site->drift_sum = 0.0;
}

int64_t site_estimate_us(const struct site *site, uint32_t from, uint32_t to)
{
	CHECK(from < site->members_count && to < site->members_count);
	return from == to ? 0 : site_coordinate_us(&site->members[from].coordinate, &site->members[to].coordinate);
}
