/* What happens to a frame, in this order:
 *
 *   1. the link is cut: dropped
 *   2. chance: lost; or there will be a second copy
 *   3. the line: with a rate, a frame starts when those before it are sent, and takes its bits' time; if it would have
 *      to wait too long, it is dropped
 *   4. the way: delay, give or take jitter, but never before the one that was sent before it: jitter alone does not
 *      reorder, as it does not where a network's queues are what makes it
 *   5. chance: held back for some more time; those after it overtake
 *
 * For every frame the same number of random numbers is drawn, whatever the rules: so with one seed the same frames are
 * lost, whether or not there is jitter as well.
 */
#include "wan.h"

static const int64_t NS_PER_MS = 1000000, NS_PER_S = 1000000000;

/* SplitMix64 (Steele, Lea and Flood, 2014): one addition and a mix, good enough for lots, and the state is one word. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool draw_lot(uint64_t *state, double probability)
{
	return (double)(draw(state) >> 11) * 0x1p-53 < probability;
}

/* From -1 to 1, bell-shaped: the mean of four. */
static double draw_bell(uint64_t *state)
{
	uint64_t bits = draw(state);
	unsigned sum = 0;
	for (unsigned i = 0; i < 4; i++)
		sum += (unsigned)(bits >> (16 * i)) & 0xffff;
	return (double)sum / (2 * 65535.0) - 1;
}

struct wan_rules wan_rules_default(void)
{
	return (struct wan_rules){.reorder_by_ns = 10 * NS_PER_MS, .queue_ns = 100 * NS_PER_MS};
}

void wan_link_init(struct wan_link *link, uint64_t seed, unsigned from, unsigned to)
{
	uint64_t state = seed ^ ((uint64_t)from << 32 | to) * 0xd6e8feb86659fd93u;
	*link = (struct wan_link){.rules = wan_rules_default(), .random = draw(&state)};
}

static bool is_line_full(const struct wan_rules *rules, int64_t wait_ns)
{
	if (rules->queue_bytes == 0)
		return wait_ns > rules->queue_ns;
	return (double)wait_ns * (double)rules->rate_bps / 8e9 > (double)rules->queue_bytes;
}

/* When the line has sent it, or WAN_NEVER: too many wait. */
static int64_t pass_line(struct wan_link *link, int64_t now_ns, size_t length)
{
	const struct wan_rules *rules = &link->rules;
	if (rules->rate_bps == 0)
		return now_ns;
	int64_t start_ns = link->line_free_ns > now_ns ? link->line_free_ns : now_ns;
	if (is_line_full(rules, start_ns - now_ns)) {
		link->counts.full++;
		return WAN_NEVER;
	}
	link->line_free_ns = start_ns + (int64_t)((double)length * 8 * (double)NS_PER_S / (double)rules->rate_bps);
	return link->line_free_ns;
}

static int64_t pass_way(struct wan_link *link, int64_t sent_ns, double bell, bool held_back)
{
	const struct wan_rules *rules = &link->rules;
	int64_t way_ns = rules->delay_ns + (int64_t)(bell * (double)rules->jitter_ns);
	int64_t due_ns = sent_ns + (way_ns > 0 ? way_ns : 0);
	if (due_ns < link->last_due_ns)
		due_ns = link->last_due_ns;
	if (held_back) {
		link->counts.reordered++;
		return due_ns + rules->reorder_by_ns;
	}
	link->last_due_ns = due_ns;
	return due_ns;
}

unsigned wan_link_pass(struct wan_link *link, int64_t now_ns, size_t length, int64_t due_ns[2])
{
	const struct wan_rules *rules = &link->rules;
	bool lost = draw_lot(&link->random, rules->loss);
	bool duplicated = draw_lot(&link->random, rules->duplicate);
	bool held_back = draw_lot(&link->random, rules->reorder);
	double bell = draw_bell(&link->random);
	link->counts.frames++;
	link->counts.bytes += length;
	if (link->cut || lost) {
		*(link->cut ? &link->counts.cut : &link->counts.lost) += 1;
		return 0;
	}
	unsigned copies = 0;
	for (unsigned i = 0; i < 1u + duplicated; i++) {
		int64_t sent_ns = pass_line(link, now_ns, length);
		if (sent_ns == WAN_NEVER)
			break;
		due_ns[copies++] = pass_way(link, sent_ns, bell, held_back && i == 0);
	}
	link->counts.duplicated += copies == 2;
	return copies;
}

void wan_link_cut(struct wan_link *link)
{
	link->cuts += !link->cut;
	link->cut = true;
}

void wan_link_heal(struct wan_link *link)
{
	link->cut = false;
}
