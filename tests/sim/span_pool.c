/* Divisible resources: each site has the latest operation that it has heard of, whole body and division, and runs its own part of it.
 * How operations get there, in which order, is the affair of src/replica and its own simulator; here it is gossip, and the latest counts. What
 * is looked at is that parts add up to the total whenever all have the same, after any updates, divisions, sites that come and go, and that
 * nothing is left of what was deleted or of a site that was withdrawn. */
#include "sim/span.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

enum { GOSSIP_US = 300000, POOL_MARK = 0xff };

static const struct str pointer = STR_INIT("/size");

static bool is_later(const struct span_pool_op *a, const struct span_pool_op *b)
{
	return a->stamp != b->stamp ? a->stamp > b->stamp : a->site > b->site;
}

static void adopt(struct span *span, struct span_site *it, uint32_t pool, const struct span_pool_op *op)
{
	if (!is_later(op, &span->pools[pool].at[it->number]))
		return;
	span->pools[pool].at[it->number] = *op;
	if (!it->commit_asked) {
		it->commit_asked = true;
		span_at(span, span->sim.now_us + 1 + sim_random_below(&it->luck, 3000), SPAN_ACT_COMMIT, it->number);
	}
}

/* ---- Operations ---------------------------------------------------------------------------------------------------------------- */

static void set_total(struct span_pool_op *op, uint64_t dice)
{
	int64_t total = (int64_t)(dice % 2000) - 200;
	if (dice % 5 == 0)
		snprintf(op->body, sizeof(op->body), "{\"id\": 7, \"size\" : %lld.%02u}", (long long)total,
		         (unsigned)(dice >> 20) % 100);
	else
		snprintf(op->body, sizeof(op->body), "{\"id\": 7, \"size\" : %lld}", (long long)total);
}

static void draw_weights(const struct span *span, struct span_pool_op *op, uint64_t dice)
{
	op->division.count = 0;
	for (uint32_t i = 0; i < span->options.sites; i++) {
		if (!span->sites[i].dead && (op->division.count == 0 || dice >> i & 1))
			CHECK(cross_division_add(&op->division, span->sites[i].id, 1 + (dice >> (8 + i)) % 4, NULL) == 0);
	}
}

static void change(struct span *span, struct span_pool_op *op, uint64_t dice)
{
	const struct span_site *it = &span->sites[(dice >> 30) % span->options.sites];
	switch (dice % 8) {
	case 0: draw_weights(span, op, dice >> 4); break;
	case 1:
		if (!it->dead)
			cross_division_add(&op->division, it->id, (dice >> 12) % 3, NULL);
		break;
	case 2: cross_division_withdraw(&op->division, it->id, NULL); break;
	case 3: op->deleted = true; break;
	default: set_total(op, dice >> 4); break;
	}
}

void span_pool_user(struct span *span, const struct span_action *action)
{
	struct span_site *it = &span->sites[action->site];
	uint32_t pool = (uint32_t)(action->dice >> 3) % SPAN_POOLS;
	struct span_pool_op op = span->pools[pool].at[it->number];
	if (op.stamp == 0 || op.deleted) {
		op.deleted = false;
		draw_weights(span, &op, action->dice >> 7);
		set_total(&op, action->dice >> 21);
	} else {
		change(span, &op, sim_mix(action->dice, 5));
	}
	op.stamp++;
	op.site = it->number;
	adopt(span, it, pool, &op);
}

/* ---- Gossip ---------------------------------------------------------------------------------------------------------------------- */

void span_pool_gossip(struct span *span, struct span_site *it)
{
	span_at(span, span->sim.now_us + GOSSIP_US, SPAN_ACT_GOSSIP, it->number);
	uint32_t to = (uint32_t)sim_random_below(&it->luck, span->options.sites);
	for (uint32_t i = 0; i < SPAN_POOLS && it->names && to != it->number; i++) {
		struct buf message = {0};
		const struct span_pool_op *op = &span->pools[i].durable[it->number];
		if (op->stamp == 0)
			continue;
		buf_put_char(&message, (char)POOL_MARK);
		buf_put_char(&message, (char)i);
		buf_put(&message, str_make((const char *)op, sizeof(*op)));
		sim_send(&span->sim, it->number, to, buf_str(&message));
		buf_free(&message);
	}
}

bool span_pool_receive(struct span *span, struct span_site *it, struct str bytes)
{
	struct span_pool_op op;
	if (bytes.length != 2 + sizeof(op) || (unsigned char)bytes.at[0] != POOL_MARK)
		return false;
	memcpy(&op, bytes.at + 2, sizeof(op));
	adopt(span, it, (uint32_t)bytes.at[1], &op);
	return true;
}

/* ---- The part of a site ------------------------------------------------------------------------------------------------------------ */

static void run(struct span *span, struct span_site *it, struct span_pool *pool)
{
	struct span_pool_op op = pool->at[it->number];
	struct cross_fields fields = {&pointer, 1};
	struct buf part = {0};
	struct err err = {0};
	pool->parts[it->number][0] = '\0';
	if (span->options.mutation == SPAN_UNFAIR && it->number == 1)
		op.division.shares[0].weight += 7;
	if (!op.deleted && span_site_of(span, op.division.shares[0].site) != SPAN_NOBODY) {
		int code = cross_divide_body(str_of(op.body), &fields, &op.division, it->id, &part, &err);
		if (code == 0)
			snprintf(pool->parts[it->number], sizeof(pool->parts[0]), "%s", buf_c(&part));
		else if (code != ERR_NOT_FOUND)
			span_violation(span, "s%" PRIu32 " cannot divide %s: %s", it->number, op.body, err.text);
	}
	buf_free(&part);
}

void span_pool_commit(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < SPAN_POOLS; i++) {
		struct span_pool *pool = &span->pools[i];
		if (pool->at[it->number].stamp == 0 || !is_later(&pool->at[it->number], &pool->durable[it->number]))
			continue;
		pool->durable[it->number] = pool->at[it->number];
		run(span, it, pool);
	}
}

void span_pool_crash(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < SPAN_POOLS; i++)
		span->pools[i].at[it->number] = span->pools[i].durable[it->number];
}

/* ---- All of it ---------------------------------------------------------------------------------------------------------------------- */

/* What a dead site had has to go to others: somebody says so. */
static bool without_the_dead(struct span *span, uint32_t number, const struct span_pool_op *op, struct span_site *it)
{
	for (uint32_t i = 0; i < op->division.count && !op->deleted; i++) {
		uint32_t site = span_site_of(span, op->division.shares[i].site);
		if (!span->sites[site].dead)
			continue;
		struct span_pool_op next = *op;
		if (cross_division_withdraw(&next.division, op->division.shares[i].site, NULL))
			next.deleted = true;
		next.stamp++;
		next.site = it->number;
		adopt(span, it, number, &next);
		return false;
	}
	return true;
}

static bool adds_up(struct span *span, const struct span_pool *pool, const struct span_pool_op *op, struct buf *why)
{
	static const struct cross_rule rule = {STR_INIT("/size"), CROSS_TOGETHER};
	struct cross_part parts[SPAN_SITES];
	struct cross_combined combined;
	struct buf whole = {0};
	struct err err = {0};
	for (uint32_t i = 0; i < op->division.count; i++) {
		uint32_t site = span_site_of(span, op->division.shares[i].site);
		parts[i] = (struct cross_part){.site = STR_INIT("a site"), .body = str_of(pool->parts[site])};
	}
	int code = cross_combine(&rule, 1, parts, op->division.count, &whole, &combined, &err);
	bool right = code == 0 && combined.whole == op->division.count && str_equal(buf_str(&whole), str_of(op->body));
	if (!right)
		buf_printf(why, "the parts of %s come together as %s", op->body, code ? err.text : buf_c(&whole));
	buf_free(&whole);
	return right;
}

static bool has_share(const struct span_pool_op *op, site_id site)
{
	for (uint32_t i = 0; i < op->division.count; i++) {
		if (op->division.shares[i].site == site)
			return !op->deleted;
	}
	return false;
}

static bool pool_right(struct span *span, uint32_t number, struct buf *why)
{
	const struct span_pool *pool = &span->pools[number];
	struct span_site *first = NULL;
	for (uint32_t i = 0; i < span->options.sites; i++) {
		struct span_site *it = &span->sites[i];
		if (it->dead)
			continue;
		first = first ? first : it;
		if (is_later(&pool->at[i], &pool->durable[first->number]) ||
		    is_later(&pool->durable[first->number], &pool->durable[i])) {
			buf_printf(why, "s%" PRIu32 " has another idea of pool %" PRIu32, i, number);
			return false;
		}
	}
	const struct span_pool_op *op = &pool->durable[first->number];
	if (op->stamp == 0)
		return true;
	if (!without_the_dead(span, number, op, first)) {
		buf_printf(why, "a dead site has a part");
		return false;
	}
	for (uint32_t i = 0; i < span->options.sites; i++) {
		if (!span->sites[i].dead && !has_share(op, span->sites[i].id) && pool->parts[i][0] != '\0') {
			buf_printf(why, "s%" PRIu32 " has a part of pool %" PRIu32 " that is nobody's", i, number);
			return false;
		}
	}
	return op->deleted || adds_up(span, pool, op, why);
}

bool span_pools_right(struct span *span, struct buf *why)
{
	for (uint32_t i = 0; i < SPAN_POOLS; i++) {
		if (!pool_right(span, i, why))
			return false;
	}
	return true;
}
