/* The agent of a site, as far as struct cross_names sees it: rows, commits, and the deeds that wait for them. */
#include "sim/span.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

enum { COMMIT_MOST_US = 3000, RESTART_MOST_US = 500000, UNKNOWN_MOST_US = 3000000 };

_Static_assert((int)CROSS_TABLES <= (int)REPLICA_TABLES, "rows of names are kept in the same tables");

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

static int host_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	struct span_site *it = context;
	const struct choir_row *found = choir_rows_get(&it->rows, (enum replica_table)table, key);
	if (!found)
		return ERR_NOT_FOUND;
	buf_put(row, choir_row_value(found));
	return 0;
}

static void host_put(void *context, enum cross_table table, struct str key, struct str row)
{
	struct span_site *it = context;
	choir_rows_put(&it->rows, (enum replica_table)table, key, row);
}

static void host_remove(void *context, enum cross_table table, struct str key)
{
	struct span_site *it = context;
	choir_rows_remove(&it->rows, (enum replica_table)table, key);
}

static int host_scan(void *context, enum cross_table table, struct str prefix,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct span_site *it = context;
	const struct choir_table *rows = &it->rows.tables[table];
	uint32_t changes = it->rows.changes_count;
	for (uint32_t i = choir_rows_find(&it->rows, (enum replica_table)table, prefix); i < rows->count; i++) {
		struct str key = choir_row_key(rows->rows[i]);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0)
			break;
		if (!each(each_context, key, choir_row_value(rows->rows[i])))
			break;
		CHECK(it->rows.changes_count == changes);
	}
	return 0;
}

/* ---- Deeds ----------------------------------------------------------------------------------------------------------------- */

static struct span_deed *new_deed(struct span_site *it, enum span_deed_kind kind)
{
	if (it->deeds_count == it->deeds_capacity) {
		it->deeds_capacity = it->deeds_capacity ? 2 * it->deeds_capacity : 8;
		it->deeds = realloc(it->deeds, it->deeds_capacity * sizeof(*it->deeds));
		CHECK(it->deeds != NULL);
	}
	struct span_deed *deed = &it->deeds[it->deeds_count++];
	*deed = (struct span_deed){.kind = kind};
	return deed;
}

static void host_send(void *context, site_id to, struct str message)
{
	struct span_deed *deed = new_deed(context, SPAN_SEND);
	CHECK(message.length <= LIMIT_CROSS_MESSAGE_BYTES);
	deed->to = to;
	buf_put(&deed->bytes, message);
}

static void host_answer(void *context, const struct cross_answer *answer)
{
	new_deed(context, SPAN_ANSWER)->answer = *answer;
}

static void host_lost(void *context, const struct cross_lost *lost)
{
	struct span_deed *deed = new_deed(context, SPAN_LOST);
	deed->child = lost->claim.child;
	deed->name = span_name_number(lost->claim.name);
}

static enum cross_fate host_fate(void *context, const struct cross_claim *claim)
{
	struct span_site *it = context;
	struct span_child *child = span_child_of(it->span, claim->child);
	if (it->span->sim.now_us < it->unknown_until_us)
		return CROSS_UNKNOWN;
	return child && child->alive && child->site == it->number && str_equal(span_name(child->name), claim->name)
	           ? CROSS_EXISTS
	           : CROSS_ABSENT;
}

static uint64_t host_random(void *context)
{
	struct span_site *it = context;
	return sim_random_next(&it->random);
}

static void told_lost(struct span *span, const struct span_deed *deed)
{
	struct span_child *child = span_child_of(span, deed->child);
	if (child && child->name == deed->name && span->options.mutation != SPAN_SILENT) {
		span->figures.lost += !child->lost;
		child->lost = true;
	}
}

static void perform(struct span *span, struct span_site *it, const struct span_deed *deed)
{
	uint32_t to;
	switch (deed->kind) {
	case SPAN_SEND:
		span->quiet_since_us = span->sim.now_us;
		span->figures.messages++;
		to = span_site_of(span, deed->to);
		if (to == SPAN_NOBODY || to == it->number)
			span_violation(span, "s%" PRIu32 " sends to nobody", it->number);
		else
			sim_send(&span->sim, it->number, to, buf_str(&deed->bytes));
		break;
	case SPAN_ANSWER: span_answered(span, it, &deed->answer); break;
	case SPAN_LOST: told_lost(span, deed); break;
	}
}

static void drop_deeds(struct span_site *it)
{
	for (uint32_t i = 0; i < it->deeds_count; i++)
		buf_free(&it->deeds[i].bytes);
	it->deeds_count = 0;
}

static void perform_all(struct span *span, struct span_site *it, uint32_t most)
{
	/* An answer may make the host call in again, which adds deeds for the next commit. */
	struct span_deed *deeds = it->deeds;
	uint32_t count = it->deeds_count;
	it->deeds = NULL;
	it->deeds_count = it->deeds_capacity = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (i < most && it->names)
			perform(span, it, &deeds[i]);
		buf_free(&deeds[i].bytes);
	}
	free(deeds);
}

void span_leave(struct span_site *it)
{
	struct span *span = it->span;
	span_heirs_claim(span, it);
	if (span->options.mutation == SPAN_HASTY)
		perform_all(span, it, UINT32_MAX);
	if ((it->deeds_count > 0 || it->rows.changes_count > 0) && !it->commit_asked) {
		it->commit_asked = true;
		span_at(span, span->sim.now_us + sim_random_below(&it->luck, COMMIT_MOST_US + 1), SPAN_ACT_COMMIT, it->number);
	}
	sim_poke(&span->sim, it->number);
}

static void stop(struct span *span, struct span_site *it)
{
	sim_stop(&span->sim, it->number);
	cross_names_free(it->names);
	it->names = NULL;
	it->generation++;
	it->crash_at_commit = 0;
	drop_deeds(it);
	choir_rows_rollback(&it->rows);
	span_pool_crash(span, it);
	span_calls_end(span, it);
	span_withdraw_crashed(span, it);
}

void span_crash(struct span *span, struct span_site *it)
{
	if (!it->names)
		return;
	span_tell(span, "s%" PRIu32 " crashes, %" PRIu32 " changes and %" PRIu32 " deeds are lost", it->number,
	          it->rows.changes_count, it->deeds_count);
	span->figures.crashes++;
	stop(span, it);
}

void span_commit(struct span *span, struct span_site *it)
{
	it->commit_asked = false;
	if (!it->names)
		return;
	if (it->disk_full && it->rows.changes_count > 0) {
		stop(span, it);
		span_at(span, span->sim.now_us + sim_random_range(&it->luck, 1, RESTART_MOST_US), SPAN_ACT_RESTART, it->number);
		return;
	}
	uint32_t crash = it->crash_at_commit;
	if (crash == 1) {
		span_crash(span, it);
		return;
	}
	span->figures.commits++;
	if (!(span->options.mutation == SPAN_FORGETFUL && sim_random_below(&it->luck, 4) == 0))
		choir_rows_commit(&it->rows);
	span_withdraw_committed(span, it);
	span_pool_commit(span, it);
	perform_all(span, it, crash ? crash - 2 : UINT32_MAX);
	if (crash)
		span_crash(span, it);
	else
		span_published(span, it);
}

void span_start(struct span *span, struct span_site *it)
{
	CHECK(it->names == NULL && !it->dead);
	struct cross_names_options options = cross_names_options_default();
	options.self = it->id;
	options.hash_key = (struct hash_key){span->options.seed, it->number};
	options.wait_us = 2 * SPAN_SECOND_US;
	options.retry_least_us = 200000;
	options.retry_most_us = 10 * SPAN_SECOND_US;
	struct cross_names_host host = {it,
	                                host_get,
	                                host_put,
	                                host_remove,
	                                host_scan,
	                                host_send,
	                                host_answer,
	                                host_lost,
	                                host_fate,
	                                host_random,
	                                span_heirs_have_claimed};
	struct err err = {0};
	span_tell(span, "s%" PRIu32 " starts", it->number);
	if (sim_random_chance(&it->luck, 0.3))
		it->unknown_until_us = span->sim.now_us + sim_random_below(&it->luck, UNKNOWN_MOST_US);
	int code = cross_names_new(&it->names, &options, &host, span_now(span, it), &err);
	if (code) {
		span_violation(span, "s%" PRIu32 " does not start: %s", it->number, err.text);
		return;
	}
	sim_start(&span->sim, it->number);
	span_tell_lists(span, it);
	span_adopt_all(span, it);
	span_leave(it);
	span_published(span, it);
}
