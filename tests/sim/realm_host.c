/* The agent of a site, as far as the rooms see it: rows, commits, and the deeds that wait for them. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMMIT_MOST_US = 3000, RESTART_MOST_US = 500000, WRONG_GUESSES = 20 };

_Static_assert((int)CROSS_TABLES <= (int)REPLICA_TABLES, "rows of names are kept in the same tables");

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

static int get_row(const struct choir_rows *rows, int table, struct str key, struct buf *row)
{
	const struct choir_row *found = choir_rows_get(rows, (enum replica_table)table, key);
	if (found)
		buf_put(row, choir_row_value(found));
	return found ? 0 : ERR_NOT_FOUND;
}

static int scan_rows(const struct choir_rows *rows, int table, struct str prefix, struct str from,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	const struct choir_table *all = &rows->tables[table];
	uint32_t changes = rows->changes_count;
	struct str begin = str_compare(from, prefix) > 0 ? from : prefix;
	for (uint32_t i = choir_rows_find(rows, (enum replica_table)table, begin); i < all->count; i++) {
		struct str key = choir_row_key(all->rows[i]);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0 ||
		    !each(each_context, key, choir_row_value(all->rows[i])))
			break;
		CHECK(rows->changes_count == changes);
	}
	return 0;
}

static int replica_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	return get_row(&((struct realm_site *)context)->rows, (int)table, key, row);
}

static void replica_put(void *context, enum replica_table table, struct str key, struct str row)
{
	choir_rows_put(&((struct realm_site *)context)->rows, table, key, row);
}

static void replica_remove(void *context, enum replica_table table, struct str key)
{
	choir_rows_remove(&((struct realm_site *)context)->rows, table, key);
}

static int replica_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                        bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	return scan_rows(&((struct realm_site *)context)->rows, (int)table, prefix, from, each, each_context);
}

static int names_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	return get_row(&((struct realm_site *)context)->name_rows, (int)table, key, row);
}

static void names_put(void *context, enum cross_table table, struct str key, struct str row)
{
	choir_rows_put(&((struct realm_site *)context)->name_rows, (enum replica_table)table, key, row);
}

static void names_remove(void *context, enum cross_table table, struct str key)
{
	choir_rows_remove(&((struct realm_site *)context)->name_rows, (enum replica_table)table, key);
}

static int names_scan(void *context, enum cross_table table, struct str prefix,
                      bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	return scan_rows(&((struct realm_site *)context)->name_rows, (int)table, prefix, STR(""), each, each_context);
}

static uint32_t changes_of(const struct realm_site *it)
{
	return it->rows.changes_count + it->name_rows.changes_count + it->divisions.changes_count;
}

static void commit_rows(struct realm_site *it)
{
	choir_rows_commit(&it->rows);
	choir_rows_commit(&it->name_rows);
	choir_rows_commit(&it->divisions);
}

static void rollback_rows(struct realm_site *it)
{
	choir_rows_rollback(&it->rows);
	choir_rows_rollback(&it->name_rows);
	choir_rows_rollback(&it->divisions);
}

/* ---- Deeds ----------------------------------------------------------------------------------------------------------------- */

static struct realm_deed *new_deed(struct realm_site *it, enum realm_deed_kind kind)
{
	if (it->deeds_count == it->deeds_capacity) {
		it->deeds_capacity = it->deeds_capacity ? 2 * it->deeds_capacity : 8;
		it->deeds = realloc(it->deeds, it->deeds_capacity * sizeof(*it->deeds));
		CHECK(it->deeds != NULL);
	}
	struct realm_deed *deed = &it->deeds[it->deeds_count++];
	*deed = (struct realm_deed){.kind = kind};
	return deed;
}

static void hold_message(struct realm_site *it, enum realm_deed_kind kind, site_id to, struct str message)
{
	struct realm_deed *deed = new_deed(it, kind);
	deed->to = to;
	buf_put(&deed->bytes, message);
}

static void hold_replica(void *context, site_id to, struct str message)
{
	hold_message(context, REALM_TALK, to, message);
}

static void hold_names(void *context, site_id to, struct str message)
{
	CHECK(message.length <= LIMIT_CROSS_MESSAGE_BYTES);
	hold_message(context, REALM_TALK_NAMES, to, message);
}

static void hold_execute(void *context, const struct replica_task *task)
{
	struct realm_site *it = context;
	struct realm_call *call = calloc(1, sizeof(*call));
	CHECK(call != NULL);
	*call = (struct realm_call){.site = it->number,
	                            .generation = it->generation,
	                            .thing = realm_thing_of(it->realm, task->op.replicant),
	                            .task = task->number,
	                            .kind = task->kind,
	                            .op = task->op,
	                            .effect = task->class ? task->class->effect : 0,
	                            .first = task->first};
	snprintf(call->local_id, sizeof(call->local_id), "%.*s", STR_FMT(task->local_id));
	call->has_request = task->request && realm_parse_request(task->request->body, &call->request);
	new_deed(it, REALM_EXECUTE)->call = call;
}

static void hold_answer(void *context, const struct replica_answer *answer)
{
	struct realm_deed *deed = new_deed(context, REALM_ANSWER);
	deed->ticket = answer->ticket;
	deed->code = answer->code;
	deed->accepted = answer->code == 0 && answer->outcome.kind == REPLICA_ACCEPTED;
}

static void hold_grant(void *context, const struct cross_answer *answer)
{
	new_deed(context, REALM_GRANT)->answer = *answer;
}

static void hold_lost(void *context, const struct cross_lost *lost)
{
	struct realm_deed *deed = new_deed(context, REALM_LOST);
	deed->lost = *lost;
	deed->name = realm_name_number(lost->claim.name);
}

static void no_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	(void)context, (void)blob, (void)bytes, (void)from;
}

static void no_drop(void *context, struct str blob)
{
	(void)context, (void)blob;
}

static void note_event(void *context, const struct replica_event *event)
{
	struct realm_site *it = context;
	it->stale = true;
	if (it->children)
		cross_children_event(it->children, event);
}

static bool is_reachable(void *context, site_id site)
{
	struct realm_site *it = context;
	uint32_t number = realm_site_of(it->realm, site);
	bool up = number != REALM_NOBODY && it->realm->sites[number].replica != NULL;
	return sim_random_below(&it->luck, WRONG_GUESSES) == 0 ? !up : up;
}

static uint64_t draw(void *context)
{
	return sim_random_next(&((struct realm_site *)context)->random);
}

static bool is_optimistic(void *context, const struct replica_view *view)
{
	struct realm *realm = ((struct realm_site *)context)->realm;
	return realm->things[realm_thing_of(realm, view->id)].optimistic;
}

static bool is_removed(void *context, site_id site)
{
	(void)context, (void)site;
	return false;
}

/* ---- Performing them --------------------------------------------------------------------------------------------------------- */

void realm_send(struct realm *realm, uint32_t from, uint32_t to, char kind, const void *bytes, size_t length)
{
	struct buf message = {0};
	buf_put_char(&message, kind);
	buf_put(&message, str_make(bytes, length));
	sim_send(&realm->sim, from, to, buf_str(&message));
	buf_free(&message);
}

static void talk(struct realm *realm, struct realm_site *it, const struct realm_deed *deed)
{
	uint32_t to = realm_site_of(realm, deed->to);
	realm->quiet_since_us = realm->sim.now_us;
	realm->figures.messages++;
	if (to == REALM_NOBODY || to == it->number)
		realm_violation(realm, "s%" PRIu32 " sends to nobody", it->number);
	else
		realm_send(realm, it->number, to, deed->kind == REALM_TALK ? 'r' : 'n', deed->bytes.at, deed->bytes.length);
}

static void hear_lost(struct realm *realm, const struct realm_deed *deed)
{
	uint32_t thing = realm_thing_of(realm, deed->lost.claim.child);
	if (thing == REALM_NOBODY || deed->name == REALM_NOBODY || realm->options.mutation == REALM_MUTE)
		return;
	realm->figures.lost += !(realm->things[thing].lost >> deed->name & 1);
	realm->things[thing].lost |= 1u << deed->name;
}

static void perform(struct realm *realm, struct realm_site *it, struct realm_deed *deed)
{
	switch (deed->kind) {
	case REALM_TALK:
	case REALM_TALK_NAMES: talk(realm, it, deed); break;
	case REALM_EXECUTE:
		realm_execute(realm, deed->call);
		deed->call = NULL;
		break;
	case REALM_ANSWER: realm_answered(realm, it, deed); break;
	case REALM_GRANT: realm_granted(realm, it, &deed->answer); break;
	case REALM_LOST: hear_lost(realm, deed); break;
	}
}

static void deed_free(struct realm_deed *deed)
{
	buf_free(&deed->bytes);
	free(deed->call);
}

static void perform_all(struct realm *realm, struct realm_site *it, uint32_t most)
{
	/* A grant makes the host call in again, which adds deeds for the next commit. */
	struct realm_deed *deeds = it->deeds;
	uint32_t count = it->deeds_count, generation = it->generation;
	it->deeds = NULL;
	it->deeds_count = it->deeds_capacity = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (i < most && it->replica && it->generation == generation)
			perform(realm, it, &deeds[i]);
		deed_free(&deeds[i]);
	}
	free(deeds);
}

void realm_leave(struct realm_site *it)
{
	struct realm *realm = it->realm;
	if (!it->replica)
		return;
	cross_children_review(it->children, realm_now(realm, it));
	if ((it->deeds_count > 0 || changes_of(it) > 0) && !it->commit_asked) {
		it->commit_asked = true;
		realm_at(realm, realm->sim.now_us + sim_random_below(&it->luck, COMMIT_MOST_US + 1), REALM_ACT_COMMIT,
		         it->number);
	}
	sim_poke(&realm->sim, it->number);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------- */

static void stop(struct realm *realm, struct realm_site *it)
{
	sim_stop(&realm->sim, it->number);
	cross_children_free(it->children);
	it->children = NULL;
	replica_free(it->replica);
	it->replica = NULL;
	realm_calls_end(realm, it);
	it->generation++;
	it->crash_at_commit = 0;
	it->redividing = REALM_NOBODY;
	for (uint32_t i = 0; i < it->deeds_count; i++)
		deed_free(&it->deeds[i]);
	it->deeds_count = 0;
	rollback_rows(it);
}

void realm_crash(struct realm *realm, struct realm_site *it)
{
	if (!it->replica)
		return;
	realm_tell(realm, "s%" PRIu32 " crashes, %" PRIu32 " changes and %" PRIu32 " deeds are lost", it->number,
	           changes_of(it), it->deeds_count);
	realm->figures.crashes++;
	stop(realm, it);
}

void realm_commit(struct realm *realm, struct realm_site *it)
{
	it->commit_asked = false;
	if (!it->replica)
		return;
	if (it->disk_full && changes_of(it) > 0) {
		stop(realm, it);
		realm_at(realm, realm->sim.now_us + sim_random_range(&it->luck, 1, RESTART_MOST_US), REALM_ACT_RESTART,
		         it->number);
		return;
	}
	uint32_t crash = it->crash_at_commit;
	if (crash == 1) {
		realm_crash(realm, it);
		return;
	}
	realm->figures.commits++;
	it->stale |= changes_of(it) > 0;
	if (!(realm->options.mutation == REALM_FORGETFUL && sim_random_below(&it->luck, 4) == 0))
		commit_rows(it);
	perform_all(realm, it, crash ? crash - 2 : UINT32_MAX);
	if (crash)
		realm_crash(realm, it);
	else
		realm_leave(it);
}

void realm_start(struct realm *realm, struct realm_site *it)
{
	struct replica_options options = replica_options_default();
	struct cross_names_options names = cross_names_options_default();
	struct replica_host host = {it,           replica_get,  replica_put, replica_remove, replica_scan,
	                            hold_replica, hold_execute, hold_answer, no_fetch,       no_drop,
	                            note_event,   is_reachable, draw};
	struct cross_children_host above = {.names = {.context = it,
	                                              .get = names_get,
	                                              .put = names_put,
	                                              .remove = names_remove,
	                                              .scan = names_scan,
	                                              .send = hold_names,
	                                              .answer = hold_grant,
	                                              .lost = hold_lost,
	                                              .draw = draw},
	                                    .optimistic = is_optimistic,
	                                    .is_removed = is_removed};
	struct err err = {0};
	options.self = names.self = it->id;
	options.hash_key = names.hash_key = (struct hash_key){realm->options.seed, it->number};
	options.retry_least_us = names.retry_least_us = 200000;
	options.retry_most_us = names.retry_most_us = 10 * REALM_SECOND_US;
	options.relay_us = REALM_SECOND_US;
	options.repair_alone_us = 5 * REALM_SECOND_US;
	options.tombstone_ms = 300000;
	options.message_age_ms = 120000;
	options.holds_containers = true;
	names.wait_us = 2 * REALM_SECOND_US;
	realm_tell(realm, "s%" PRIu32 " starts", it->number);
	int code = replica_new(&it->replica, &options, &host, realm_now(realm, it), &err);
	if (code == 0)
		code = cross_children_new(&it->children, &names, it->replica, &above, realm_now(realm, it), &err);
	if (code) {
		realm_violation(realm, "s%" PRIu32 " does not start: %s", it->number, err.text);
		return;
	}
	it->stale = true;
	sim_start(&realm->sim, it->number);
	realm_leave(it);
}

bool realm_receive(struct realm *realm, struct realm_site *it, uint32_t from, struct str bytes)
{
	struct str message = str_make(bytes.at + 1, bytes.length - 1);
	site_id sender = realm->sites[from].id;
	switch (bytes.at[0]) {
	case 'r': replica_receive(it->replica, sender, message, realm_now(realm, it)); break;
	case 'n': cross_children_receive(it->children, sender, message, realm_now(realm, it)); break;
	default: return false;
	}
	realm_leave(it);
	return true;
}
