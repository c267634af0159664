/* The agent of a site, as far as struct replica sees it: rows, commits, and the deeds that wait for them. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	COMMIT_MOST_US = 3000,    /* after the first change */
	RESTART_MOST_US = 500000, /* after a commit that failed */
	NOISE = 100,
	LEAK_BYTES = 64 << 10,
	FETCH_LEAST_US = 2000,
	FETCH_MOST_US = 200000,
	FETCH_AGAIN_US = 500000,
	LATE_CHANCE = 30, /* one message in so many comes once more, */
	LATE_MOST_US = 60 * CHOIR_SECOND_US,
	WRONG_GUESSES = 20, /* one guess in so many on who can be reached */
};

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int host_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	struct choir_site *it = context;
	const struct choir_row *found = choir_rows_get(&it->rows, table, key);
	if (!found)
		return ERR_NOT_FOUND;
	buf_put(row, choir_row_value(found));
	return 0;
}

static void host_put(void *context, enum replica_table table, struct str key, struct str row)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	choir_rows_put(&it->rows, table, key, row);
	sim_alloc_account(before);
}

static void host_remove(void *context, enum replica_table table, struct str key)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	if (!(it->choir->options.mutation == CHOIR_HOARDER && table == REPLICA_OUTBOX))
		choir_rows_remove(&it->rows, table, key);
	sim_alloc_account(before);
}

static int host_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct choir_site *it = context;
	const struct choir_table *rows = &it->rows.tables[table];
	uint32_t changes = it->rows.changes_count;
	for (uint32_t i = choir_rows_find(&it->rows, table, str_compare(from, prefix) > 0 ? from : prefix); i < rows->count;
	     i++) {
		struct str key = choir_row_key(rows->rows[i]);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0)
			break;
		if (!each(each_context, key, choir_row_value(rows->rows[i])))
			break;
		if (it->rows.changes_count != changes) {
			choir_violation(it->choir, CHOIR_NOBODY, "s%" PRIu32 ": rows change while they are read", it->number);
			return ERR_IO;
		}
	}
	return 0;
}

/* ---- Deeds -------------------------------------------------------------------------------------------------------- */

static struct choir_deed *new_deed(struct choir_site *it, enum choir_deed_kind kind)
{
	if (it->deeds_count == it->deeds_capacity) {
		it->deeds_capacity = it->deeds_capacity ? 2 * it->deeds_capacity : 8;
		it->deeds = realloc(it->deeds, it->deeds_capacity * sizeof(*it->deeds));
		CHECK(it->deeds != NULL);
	}
	struct choir_deed *deed = &it->deeds[it->deeds_count++];
	*deed = (struct choir_deed){.kind = kind};
	return deed;
}

/* Every other site puts what waits for the same commit together, as the engine does. */
static bool join(struct choir_site *it, site_id to, struct str message)
{
	for (uint32_t i = it->deeds_count; i-- > 0 && (it->choir->options.seed + it->number) % 2 == 0;)
		if (it->deeds[i].kind == CHOIR_SEND && it->deeds[i].to == to)
			return replica_join(&it->deeds[i].bytes, 0, message);
	return false;
}

static void host_send(void *context, site_id to, struct str message)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	choir_check_clock(it->choir, it, message);
	if (join(it, to, message)) {
		sim_alloc_account(before);
		return;
	}
	struct choir_deed *deed = new_deed(it, CHOIR_SEND);
	deed->to = to;
	buf_put(&deed->bytes, message);
	sim_alloc_account(before);
}

static void copy_id(char to[CHOIR_ID_BYTES], struct str id)
{
	CHECK(id.length < CHOIR_ID_BYTES);
	memcpy(to, id.at, id.length);
	to[id.length] = '\0';
}

static void host_execute(void *context, const struct replica_task *task)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	struct choir_deed *deed = new_deed(it, CHOIR_EXECUTE);
	deed->task = *task;
	deed->task.class = NULL;
	deed->task.request = NULL;
	copy_id(deed->local_id, task->local_id);
	choir_weak_runs(it->choir, it, task);
	if (task->request) {
		buf_put(&deed->bytes, task->request->body);
		deed->fresh = str_equal(task->request->secret, STR("fresh"));
		if (task->kind == REPLICA_RUN && !task->first) { /* a user does not wait for what is due again */
			choir_check_task(it->choir, it, task->op, task->request->body);
			struct choir_request request;
			if (task->op.site != it->id && choir_request_parse(task->request->body, &request))
				choir_check_needed(it->choir, it, &request);
		}
	}
	sim_alloc_account(before);
}

static void host_answer(void *context, const struct replica_answer *answer)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	struct choir_deed *deed = new_deed(it, CHOIR_ANSWER);
	deed->ticket = answer->ticket;
	deed->code = answer->code;
	deed->op = answer->op;
	deed->outcome = answer->outcome.kind;
	deed->repeated = answer->repeated;
	deed->kept = answer->kept;
	buf_put(&deed->bytes, answer->text);
	sim_alloc_account(before);
}

static void host_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	struct choir_site *it = context;
	(void)bytes;
	int64_t *before = sim_alloc_account(NULL);
	struct choir_deed *deed = new_deed(it, CHOIR_FETCH);
	deed->to = from;
	buf_put(&deed->bytes, blob);
	sim_alloc_account(before);
}

static void host_drop(void *context, struct str blob)
{
	struct choir_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	struct choir_deed *deed = new_deed(it, CHOIR_DROP);
	buf_put(&deed->bytes, blob);
	sim_alloc_account(before);
}

static const char *state_name(enum replica_member_state state)
{
	static const char *const names[] = {"pending", "applied", "superseded", "rejected", "rejected (credential)",
	                                    "in doubt"};
	return state <= REPLICA_IN_DOUBT ? names[state] : "?";
}

/* That it is shown as rejected is as good as that it ran: who had seen it may run. */
static void note_exception(struct choir *choir, const struct choir_site *it, const struct replica_event *event)
{
	uint32_t replicant = choir_replicant_of(choir, event->op.replicant);
	if (replicant == CHOIR_NOBODY || event->kind != REPLICA_EVENT_OPERATION || event->member != it->id)
		return;
	struct choir_replicant *of = &choir->replicants[replicant];
	uint32_t member = choir_member_of(of, choir_site_of(choir, event->op.site));
	const struct choir_op *op = choir_op_of(of, member, event->op.number);
	if (!op)
		return;
	struct choir_token *token = choir_token(choir, op->request.token);
	token->refused[it->number] |= event->state >= REPLICA_REJECTED;
	token->unsure[it->number] |= event->state == REPLICA_IN_DOUBT;
	token->rejected[it->number] = event->state == REPLICA_REJECTED || event->state == REPLICA_REJECTED_CREDENTIAL;
	token->moot[it->number] = false;
}

static void host_event(void *context, const struct replica_event *event)
{
	static const char *const kinds[] = {"operation", "replicant", "repaired", "conflict", "merged"};
	struct choir_site *it = context;
	struct choir *choir = it->choir;
	int64_t *before = sim_alloc_account(NULL);
	uint32_t replicant = choir_replicant_of(choir, event->op.replicant);
	char label[32];
	choir_label(choir, event->op, label);
	choir->figures.events++;
	note_exception(choir, it, event);
	if (event->kind == REPLICA_EVENT_CONFLICT)
		choir->figures.conflicts++;
	choir_tell(choir, replicant, "s%" PRIu32 " says: %s %s, s%d %s", it->number, kinds[event->kind], label,
	           (int)choir_site_of(choir, event->member), state_name(event->state));
	sim_alloc_account(before);
}

static bool host_reachable(void *context, site_id site)
{
	struct choir_site *it = context;
	uint32_t number = choir_site_of(it->choir, site);
	bool guess = number != CHOIR_NOBODY && it->reaches[number];
	return sim_random_below(&it->random, WRONG_GUESSES) ? guess : !guess;
}

static uint64_t host_random(void *context)
{
	struct choir_site *it = context;
	if (it->choir->options.mutation == CHOIR_FICKLE)
		return sim_mix((uint64_t)(uintptr_t)it, sim_random_next(&it->random));
	return sim_random_next(&it->random);
}

/* ---- Blobs -------------------------------------------------------------------------------------------------------- */

/* The hash of a blob is its token, and zeros. */
static struct choir_blob *blob_of(struct choir_site *it, uint32_t token)
{
	for (uint32_t i = 0; i < it->blobs_count; i++)
		if (it->blobs[i].token == token)
			return &it->blobs[i];
	if (it->blobs_count == it->blobs_capacity) {
		it->blobs_capacity = it->blobs_capacity ? 2 * it->blobs_capacity : 8;
		it->blobs = realloc(it->blobs, it->blobs_capacity * sizeof(*it->blobs));
		CHECK(it->blobs != NULL);
	}
	it->blobs[it->blobs_count] = (struct choir_blob){.token = token};
	return &it->blobs[it->blobs_count++];
}

static uint32_t blob_token(const struct buf *hash)
{
	uint32_t token;
	CHECK(hash->length == 32);
	memcpy(&token, hash->at, sizeof(token));
	return token;
}

void choir_blob_spool(struct choir_site *it, uint32_t token)
{
	blob_of(it, token)->here = true;
}

/* A user's request is answered: if the room has not taken the blob over, it is nobody's. */
void choir_blob_unspool(struct choir_site *it, uint32_t token)
{
	char hash[32] = {0};
	memcpy(hash, &token, sizeof(token));
	const struct choir_table *table = &it->rows.tables[REPLICA_BLOBS];
	uint32_t at = choir_rows_find(&it->rows, REPLICA_BLOBS, str_make(hash, sizeof(hash)));
	if (at >= table->count || table->rows[at]->key_length < sizeof(hash) ||
	    memcmp(table->rows[at]->bytes, hash, sizeof(hash)) != 0)
		choir_blob_drop(it, token);
}

bool choir_blob_here(struct choir_site *it, uint32_t token)
{
	return blob_of(it, token)->here;
}

void choir_blob_drop(struct choir_site *it, uint32_t token)
{
	struct choir_blob *blob = blob_of(it, token);
	blob->here = blob->wanted = false;
}

static void start_fetch(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	struct choir_blob *blob = blob_of(it, blob_token(&deed->bytes));
	uint32_t from = choir_site_of(choir, deed->to);
	if (from == CHOIR_NOBODY) {
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " fetches a blob from nobody", it->number);
		return;
	}
	blob->wanted = true;
	blob->from = from;
	if (blob->scheduled)
		return;
	blob->scheduled = true;
	uint64_t after_us = sim_random_range(&it->luck, FETCH_LEAST_US, FETCH_MOST_US);
	choir_at(choir, choir->sim.now_us + after_us, CHOIR_ACT_FETCH, (blob->token << 8) | it->number);
}

/* A transfer is tried again and again until it is there; one that an agent wanted which is gone is forgotten. */
void choir_fetch(struct choir *choir, struct choir_site *it, uint32_t token)
{
	struct choir_blob *blob = blob_of(it, token);
	struct choir_site *from = &choir->sites[blob->from];
	blob->scheduled = false;
	if (!it->replica || !blob->wanted)
		return;
	uint64_t delays_us[SIM_COPIES];
	bool arrives = from->replica && sim_network_route(&choir->sim.network, from->number, it->number, delays_us) > 0 &&
	               sim_network_route(&choir->sim.network, it->number, from->number, delays_us) > 0;
	if (arrives)
		choir_check_blob(choir, it, from, token);
	if (!arrives || !choir_blob_here(from, token)) {
		blob = blob_of(it, token);
		blob->scheduled = true;
		choir_at(choir, choir->sim.now_us + FETCH_AGAIN_US, CHOIR_ACT_FETCH, (token << 8) | it->number);
		return;
	}
	blob = blob_of(it, token);
	blob->here = true;
	blob->wanted = false;
	char hash[32] = {0};
	memcpy(hash, &token, sizeof(token));
	choir_tell(choir, choir_token(choir, token)->replicant, "s%" PRIu32 " has the blob of #%" PRIu32, it->number,
	           token);
	choir_enter(it);
	replica_fetched(it->replica, str_make(hash, sizeof(hash)), choir_now(choir, it));
	choir_leave(it);
}

/* ---- Commits ------------------------------------------------------------------------------------------------------ */

static void count_message(struct choir *choir, struct choir_site *it)
{
	uint64_t second = choir->sim.now_us / CHOIR_SECOND_US;
	if (it->second != second) {
		it->second = second;
		it->second_messages = 0;
	}
	it->messages++;
	choir->figures.messages++;
	if (++it->second_messages > choir->figures.peak_messages)
		choir->figures.peak_messages = it->second_messages;
}

void choir_late(struct choir *choir, uint32_t number)
{
	const struct choir_late *late = &choir->late[number];
	struct choir_site *it = &choir->sites[late->to];
	if (!it->replica || (choir->sites[late->from].removed && choir_has_heard(choir, it)))
		return;
	choir_note_clock(choir, it, buf_str(&late->bytes));
	choir_weak_hears(choir, it, buf_str(&late->bytes));
	choir_enter(it);
	replica_receive(it->replica, choir->sites[late->from].id, buf_str(&late->bytes), choir_now(choir, it));
	choir_leave(it);
}

static void keep_for_later(struct choir *choir, const struct choir_site *it, uint32_t to, struct str message)
{
	if (choir->late_count == choir->late_capacity) {
		choir->late_capacity = choir->late_capacity ? 2 * choir->late_capacity : 16;
		choir->late = realloc(choir->late, choir->late_capacity * sizeof(*choir->late));
		CHECK(choir->late != NULL);
	}
	struct choir_late *late = &choir->late[choir->late_count];
	*late = (struct choir_late){.from = it->number, .to = to};
	buf_put(&late->bytes, message);
	choir_at(choir, choir->sim.now_us + sim_random_below(&choir->random, LATE_MOST_US), CHOIR_ACT_LATE,
	         choir->late_count++);
}

static void send(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	uint32_t to = choir_site_of(choir, deed->to);
	choir->quiet_since_us = choir->sim.now_us;
	choir->figures.bytes += deed->bytes.length;
	if (to == CHOIR_NOBODY || to == it->number) {
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " sends to nobody", it->number);
		return;
	}
	for (int i = choir->options.mutation == CHOIR_NOISY ? NOISE : 1; i > 0; i--)
		count_message(choir, it);
	if (choir->options.mutation == CHOIR_LEAKY)
		it->bytes += LEAK_BYTES;
	choir_check_message(choir, it, to, buf_str(&deed->bytes));
	choir_weak_sends(choir, to, buf_str(&deed->bytes));
	if (choir->options.mutation == CHOIR_MUTE && it->number == 0)
		return;
	if (choir->options.mutation == CHOIR_GOSSIP)
		choir_check_message(choir, it, (to + 1) % choir->options.sites, buf_str(&deed->bytes));
	sim_send(&choir->sim, it->number, to, buf_str(&deed->bytes));
	if (choir->options.weather.duplicate > 0 && sim_random_below(&choir->random, LATE_CHANCE) == 0)
		keep_for_later(choir, it, to, buf_str(&deed->bytes));
}

static void perform(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	switch (deed->kind) {
	case CHOIR_SEND: send(choir, it, deed); break;
	case CHOIR_EXECUTE: choir_call(choir, it, deed); break;
	case CHOIR_ANSWER: choir_answered(choir, it, deed); break;
	case CHOIR_FETCH: start_fetch(choir, it, deed); break;
	case CHOIR_DROP: choir_blob_unspool(it, blob_token(&deed->bytes)); break; /* it may be needed again */
	}
}

static void drop_deeds(struct choir_site *it)
{
	for (uint32_t i = 0; i < it->deeds_count; i++)
		buf_free(&it->deeds[i].bytes);
	it->deeds_count = 0;
}

static void perform_all(struct choir *choir, struct choir_site *it, uint32_t most)
{
	for (uint32_t i = 0; i < it->deeds_count && i < most; i++)
		perform(choir, it, &it->deeds[i]);
	for (uint32_t i = most; i < it->deeds_count; i++)
		if (it->deeds[i].kind == CHOIR_EXECUTE)
			choir_call_lost(choir, it, &it->deeds[i]);
	drop_deeds(it);
}

/* What need not wait goes at once, as the engine does it. */
static void perform_kept(struct choir *choir, struct choir_site *it)
{
	for (uint32_t i = 0; i < it->deeds_count; i++) {
		struct choir_deed *deed = &it->deeds[i];
		if (deed->kind != CHOIR_ANSWER || !deed->kept)
			continue;
		perform(choir, it, deed);
		choir->figures.kept++;
		buf_free(&deed->bytes);
		memmove(deed, deed + 1, (it->deeds_count - i - 1) * sizeof(*deed));
		it->deeds_count--;
		i--;
	}
}

void choir_enter(struct choir_site *it)
{
	CHECK(it->replica != NULL);
	sim_alloc_account(&it->bytes);
}

void choir_leave(struct choir_site *it)
{
	struct choir *choir = it->choir;
	sim_alloc_account(NULL);
	if (it->bytes > choir->figures.memory_most)
		choir->figures.memory_most = it->bytes;
	perform_kept(choir, it);
	if (choir->options.mutation == CHOIR_HASTY)
		perform_all(choir, it, UINT32_MAX);
	if ((it->deeds_count > 0 || it->rows.changes_count > 0) && !it->commit_asked) {
		it->commit_asked = true;
		choir_at(choir, choir->sim.now_us + sim_random_below(&it->luck, COMMIT_MOST_US + 1), CHOIR_ACT_COMMIT,
		         it->number);
	}
	sim_poke(&choir->sim, it->number);
}

/* Before a crash or a failed commit becomes visible: what users wait for is not answered. */
static void stop(struct choir *choir, struct choir_site *it)
{
	sim_alloc_account(&it->bytes);
	replica_free(it->replica);
	sim_alloc_account(NULL);
	it->replica = NULL;
	it->generation++;
	if (it->bytes != 0 && choir->options.mutation != CHOIR_LEAKY)
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 ": %" PRId64 " bytes are left after replica_free()",
		                it->number, it->bytes);
	it->bytes = 0;
	drop_deeds(it);
	choir_rows_rollback(&it->rows);
	choir_check_lost(choir, it);
	choir_calls_end(choir, it);
	choir_users_lose(choir, it);
	for (uint32_t i = 0; i < it->blobs_count; i++)
		it->blobs[i].wanted = false;
}

static void fail_commit(struct choir *choir, struct choir_site *it)
{
	choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 ": the commit fails, and the agent begins again", it->number);
	choir->figures.failed_commits++;
	stop(choir, it);
	sim_stop(&choir->sim, it->number);
	choir_at(choir, choir->sim.now_us + sim_random_range(&it->luck, 1, RESTART_MOST_US), CHOIR_ACT_RESTART, it->number);
}

void choir_commit(struct choir *choir, struct choir_site *it)
{
	it->commit_asked = false;
	if (!it->replica)
		return;
	if (it->disk_full && it->rows.changes_count > 0) {
		fail_commit(choir, it);
		return;
	}
	if (it->crash_at_commit == 1) {
		choir_crash(choir, it);
		return;
	}
	choir->figures.commits++;
	choir_check_commit(choir, it);
	if (!(choir->options.mutation == CHOIR_AMNESIA && sim_random_below(&it->luck, 4) == 0))
		choir_rows_commit(&it->rows);
	/* What is performed may end in a call back into the room only later: no deed is added meanwhile. */
	perform_all(choir, it, it->crash_at_commit ? it->crash_at_commit - 2 : UINT32_MAX);
	if (it->crash_at_commit)
		choir_crash(choir, it);
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static struct replica_options options_of(const struct choir_site *it)
{
	struct replica_options options = replica_options_default();
	options.self = it->id;
	options.hash_key = (struct hash_key){it->choir->options.seed, it->number};
	options.retry_least_us = 200000;
	options.retry_most_us = 10 * CHOIR_SECOND_US;
	options.relay_us = CHOIR_SECOND_US;
	options.repair_alone_us = 5 * CHOIR_SECOND_US;
	options.weak_lend_us = CHOIR_SECOND_US / 2;
	options.tombstone_ms = 300000;
	options.message_age_ms = 120000;
	return options;
}

void choir_start(struct choir *choir, struct choir_site *it)
{
	CHECK(it->replica == NULL);
	if (it->removed)
		return;
	struct replica_options options = options_of(it);
	it->limits = options;
	it->heard_clock = 0;
	struct replica_host host = {it,         host_get,       host_put,    host_remove, host_scan,
	                            host_send,  host_execute,   host_answer, host_fetch,  host_drop,
	                            host_event, host_reachable, host_random};
	struct err err = {0};
	choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " starts", it->number);
	for (uint32_t i = 0; i < it->blobs_count; i++)
		choir_blob_unspool(it, it->blobs[i].token); /* what came with requests that were never begun */
	sim_alloc_account(&it->bytes);
	int status = replica_new(&it->replica, &options, &host, choir_now(choir, it), &err);
	sim_alloc_account(NULL);
	if (status != 0) {
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " does not start: %s", it->number, err.text);
		return;
	}
	sim_start(&choir->sim, it->number);
	choir_leave(it);
	choir_hear_of_removal(choir, it);
}

void choir_crash(struct choir *choir, struct choir_site *it)
{
	it->crash_at_commit = 0;
	if (!it->replica)
		return;
	choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " crashes, %" PRIu32 " changes and %" PRIu32 " deeds are lost",
	           it->number, it->rows.changes_count, it->deeds_count);
	choir->figures.crashes++;
	sim_stop(&choir->sim, it->number);
	stop(choir, it);
}
