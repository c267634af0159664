/* The order in which the sites of a plan are tried.
 *
 * A plan of `;` and `|`, nested in any way, becomes a list of candidates in waves:
 *
 *     one site     one wave with that site
 *     a ; b        the waves of a, then those of b
 *     a & b, a % b as a ; b: any of them takes an operation for all (replicate.c, span.c)
 *     a | b        the first wave of a together with the first of b, then the second ones, and so on
 *
 *     (1 | 2) ; 3          {1, 2} {3}
 *     (1 ; 2) | 3          {1, 3} {2}
 *     (1 ; 2) | (3 ; 4)    {1, 3} {2, 4}
 *
 * A wave begins when all that was started before has failed. Inside a wave the sites are started one after the other, each
 * a short delay after the one before, or at once when one fails. A site that comes up twice counts where it comes first.
 *
 * Sites that are known to be down are passed over; when no other is left they are tried after all, in their order. All of
 * this is pure: whether a site is down is asked.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

const struct scope_step *proxy_schedule_unable(const struct scope_step *step)
{
	if (step->op == SCOPE_ALL_OF || step->op == SCOPE_SPAN_OF)
		return step;
	for (uint32_t i = 0; i < step->of_count; i++) {
		const struct scope_step *found = proxy_schedule_unable(step->of[i]);
		if (found)
			return found;
	}
	return NULL;
}

static uint32_t count_sites(const struct scope_step *step)
{
	uint32_t count = step->op == SCOPE_ONE;
	for (uint32_t i = 0; i < step->of_count; i++)
		count += count_sites(step->of[i]);
	return count;
}

/* Adds the sites of a step from that wave on. Returns the wave behind the last. */
static uint32_t add_step(struct proxy_schedule *schedule, const struct scope_step *step, uint32_t wave)
{
	uint32_t end = wave;
	if (step->op == SCOPE_ONE) {
		schedule->candidates[schedule->count++] =
			(struct proxy_candidate){.place = step->site_index, .name = step->site, .wave = wave};
		return wave + 1;
	}
	for (uint32_t i = 0; i < step->of_count; i++) {
		uint32_t behind = add_step(schedule, step->of[i], step->op == SCOPE_ANY_OF ? wave : end);
		end = behind > end ? behind : end;
	}
	return end;
}

/* By wave, in the order in which they were found. They nearly always are already. */
static void order_waves(struct proxy_schedule *schedule)
{
	for (uint32_t i = 1; i < schedule->count; i++) {
		struct proxy_candidate candidate = schedule->candidates[i];
		uint32_t at = i;
		for (; at > 0 && schedule->candidates[at - 1].wave > candidate.wave; at--)
			schedule->candidates[at] = schedule->candidates[at - 1];
		schedule->candidates[at] = candidate;
	}
}

static void drop_repeated(struct proxy_schedule *schedule, struct arena *arena, uint32_t places_count)
{
	uint64_t *seen = arena_array(arena, uint64_t, places_count / 64 + 1);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < schedule->count; i++) {
		uint32_t place = schedule->candidates[i].place;
		CHECK(place < places_count);
		if (seen[place / 64] >> place % 64 & 1)
			continue;
		seen[place / 64] |= UINT64_C(1) << place % 64;
		schedule->candidates[kept++] = schedule->candidates[i];
	}
	schedule->count = kept;
}

void proxy_schedule_make(struct proxy_schedule *schedule, struct arena *arena, const struct scope_step *root,
                         uint32_t places_count)
{
	*schedule = (struct proxy_schedule){.candidates = arena_array(arena, struct proxy_candidate, count_sites(root))};
	add_step(schedule, root, 0);
	order_waves(schedule);
	drop_repeated(schedule, arena, places_count);
	for (uint32_t i = 1; i < schedule->count; i++)
		schedule->races |= schedule->candidates[i].wave == schedule->candidates[i - 1].wave;
}

struct proxy_candidate *proxy_schedule_next(struct proxy_schedule *schedule, bool under_way,
                                            bool (*is_down)(void *context, const struct proxy_candidate *candidate),
                                            void *context)
{
	struct proxy_candidate *last_resort = NULL;
	for (uint32_t i = schedule->passed; i < schedule->count; i++) {
		struct proxy_candidate *candidate = &schedule->candidates[i];
		if (candidate->state == PROXY_CANDIDATE_STARTED) {
			schedule->passed += i == schedule->passed;
			continue;
		}
		if (under_way && candidate->wave > schedule->wave)
			return NULL; /* a further wave has to wait */
		if (candidate->state == PROXY_CANDIDATE_WAITING && !is_down(context, candidate))
			return candidate;
		candidate->state = PROXY_CANDIDATE_SKIPPED;
		if (!last_resort)
			last_resort = candidate;
	}
	return under_way ? NULL : last_resort;
}

void proxy_schedule_started(struct proxy_schedule *schedule, struct proxy_candidate *candidate)
{
	candidate->state = PROXY_CANDIDATE_STARTED;
	schedule->wave = candidate->wave;
}
