/* The room: its life, its events, its timers.
 *
 * Each call into it is one event: what came is taken, then every replicant that it touched goes through its lane, forgets, tells
 * others and is put as rows, and last what was written for peers is sent. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

void *replica_grow(void *memory, uint32_t *capacity, uint32_t count, size_t bytes)
{
	if (count <= *capacity)
		return memory;
	*capacity = count + count / 2 + 4;
	memory = realloc(memory, *capacity * bytes);
	CHECK(memory != NULL);
	return memory;
}

uint64_t replica_draw(struct replica *replica)
{
	uint64_t (*draw)(void *context) = replica->host.random;
	return draw(replica->host.context);
}

/* ---- Telling ----------------------------------------------------------------------------------------------------------- */

void replica_tell(struct replica *replica, const struct replicant *r, uint32_t number, uint32_t issuer, uint32_t member,
                  enum replica_member_state state)
{
	struct replica_event event = {.kind = REPLICA_EVENT_OPERATION,
	                              .op = op_id(r, issuer, number),
	                              .member = r->members[member].site,
	                              .state = state};
	if (replica->host.event)
		replica->host.event(replica->host.context, &event);
}

void replica_tell_replicant(struct replica *replica, const struct replicant *r, enum replica_event_kind kind)
{
	struct replica_event event = {.kind = kind, .op = {.replicant = r->id}};
	if (replica->host.event)
		replica->host.event(replica->host.context, &event);
}

/* ---- Timers: a heap by time and id -------------------------------------------------------------------------------------- */

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->us != b->us ? a->us < b->us : memcmp(a->id.bytes, b->id.bytes, sizeof(a->id.bytes)) < 0;
}

static void swap_timers(struct timer *a, struct timer *b)
{
	struct timer c = *a;
	*a = *b;
	*b = c;
}

void replica_fire(struct replica *replica, struct replicant *r, uint64_t at_us)
{
	if (r->timer_us != 0 && r->timer_us <= at_us)
		return;
	r->timer_us = at_us;
	replica->timers =
		replica_grow(replica->timers, &replica->timers_capacity, replica->timers_count + 1, sizeof(struct timer));
	uint32_t at = replica->timers_count++;
	replica->timers[at] = (struct timer){at_us, r->id};
	for (; at > 0 && is_before(&replica->timers[at], &replica->timers[(at - 1) / 2]); at = (at - 1) / 2)
		swap_timers(&replica->timers[at], &replica->timers[(at - 1) / 2]);
}

static struct timer take_timer(struct replica *replica)
{
	struct timer *timers = replica->timers, first = timers[0];
	uint32_t count = --replica->timers_count;
	timers[0] = timers[count];
	for (uint32_t at = 0;;) {
		uint32_t least = at;
		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
			if (is_before(&timers[child], &timers[least]))
				least = child;
		if (least == at)
			return first;
		swap_timers(&timers[at], &timers[least]);
		at = least;
	}
}

static void take_timers(struct replica *replica)
{
	while (replica->timers_count > 0 && replica->timers[0].us <= replica->now.us && !replica->broken) {
		struct timer timer = take_timer(replica);
		struct replicant *r;
		if (replicant_load(replica, timer.id, &r) != 0)
			continue;
		if (r->timer_us != 0 && r->timer_us != timer.us)
			continue; /* an earlier one came since, and what is still to come was asked for anew */
		r->timer_us = 0;
		work_add(replica, r);
	}
}

/* ---- An event -------------------------------------------------------------------------------------------------------------- */

static bool enter(struct replica *replica, struct replica_now now)
{
	replica->now = now;
	return !replica->broken;
}

static void do_work(struct replica *replica)
{
	for (uint32_t i = 0; i < replica->work_count && !replica->broken; i++) {
		struct replicant *r = replica->work[i];
		r->in_work = false;
		r->pins++;
		merge_consider(replica, r);
		lane_pump(replica, r);
		forget_settled(replica, r);
		sync_check(replica, r);
		repair_consider(replica, r);
		replicant_save(replica, r);
		r->pins--;
		if (r->kind == REPLICANT_NONE && !r->in_work)
			replicant_drop(replica, r);
	}
	for (uint32_t i = 0; i < replica->work_count && replica->broken; i++)
		replica->work[i]->in_work = false;
	replica->work_count = 0;
}

static void save_meta(struct replica *replica)
{
	struct buf row = {0};
	if (replica->clock.last < replica->clock_stored && replica->task_next < replica->task_stored)
		return;
	uint64_t ms =
		hlc_ms(replica->clock.last) > replica->now.wall_ms ? hlc_ms(replica->clock.last) : replica->now.wall_ms;
	replica->clock_stored = (ms + REPLICA_RESERVE_MS) << 16;
	replica->task_stored = replica->task_next + REPLICA_RESERVE_TASKS;
	meta_row_put(&row, &(struct meta_row){replica->clock_stored, replica->task_stored});
	replica->host.put(replica->host.context, REPLICA_META, STR("clock"), buf_str(&row));
	buf_free(&row);
}

static void leave(struct replica *replica)
{
	do_work(replica);
	if (replica->broken)
		return;
	peers_flush(replica);
	save_meta(replica);
	replicants_trim(replica);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------ */

struct replica_options replica_options_default(void)
{
	return (struct replica_options){.retry_least_us = 1000000,
	                                .retry_most_us = 60000000,
	                                .relay_us = 3000000,
	                                .repair_alone_us = 300000000,
	                                .weak_lend_us = 60000000,
	                                .tombstone_ms = UINT64_C(24) * 3600000,
	                                .message_age_ms = UINT64_C(12) * 3600000,
	                                .clock_ahead_ms = 600000,
	                                .running_most = 64,
	                                .kept_most = REPLICA_KEPT,
	                                .loaded_most = REPLICA_LOADED};
}

static int read_meta(struct replica *replica, struct err *err)
{
	struct meta_row row = {0};
	int code = row_get(replica, REPLICA_META, STR("clock"), &replica->row);
	if (code == 0)
		code = meta_row_parse(buf_str(&replica->row), &row, err);
	else if (code == ERR_NOT_FOUND)
		code = 0;
	else
		err_set(err, code, "the store cannot be read: %s", err_phrase(code));
	replica->clock.last = replica->clock_stored = row.clock;
	replica->task_next = replica->task_stored = row.tasks > 0 ? row.tasks : 1;
	return code;
}

struct ids {
	struct replica_id *ids;
	uint32_t count, capacity;
};

static bool collect_id(void *context, struct str key, struct str row)
{
	struct ids *ids = context;
	(void)row;
	if (key.length != sizeof(struct replica_id))
		return true;
	ids->ids = replica_grow(ids->ids, &ids->capacity, ids->count + 1, sizeof(*ids->ids));
	memcpy(ids->ids[ids->count++].bytes, key.at, sizeof(struct replica_id));
	return true;
}

static bool count_op(void *context, struct str key, struct str row)
{
	struct replica_op_id op;
	(void)row;
	*(uint64_t *)context += !op_key_parse(key, &op) || op.number > 0; /* else a checkpoint */
	return true;
}

/* Every lane that has something in it looks what it has to do. */
static int resume(struct replica *replica, struct err *err)
{
	struct ids ids = {0};
	void *context = replica->host.context;
	int code = replica->host.scan(context, REPLICA_LANES, STR(""), STR(""), collect_id, &ids);
	if (code == 0)
		code = replica->host.scan(context, REPLICA_OPERATIONS, STR(""), STR(""), count_op,
		                          &replica->counters.pending_operations);
	if (code == 0)
		code = weak_start(replica);
	if (code == 0)
		code = peers_start(replica);
	replica->counters.pending_replicants = ids.count;
	for (uint32_t i = 0; i < ids.count && code == 0 && !replica->broken; i++) {
		struct replicant *r;
		if (replicant_load(replica, ids.ids[i], &r) != 0)
			continue;
		doubt_recover(replica, r);
		work_add(replica, r);
		do_work(replica);
		replicants_trim(replica);
	}
	free(ids.ids);
	if (code != 0 || replica->broken)
		return err_set(err, code ? code : ERR_IO, "the store cannot be read");
	return 0;
}

int replica_new(struct replica **out, const struct replica_options *options, const struct replica_host *host,
                struct replica_now now, struct err *err)
{
	struct replica *replica = calloc(1, sizeof(*replica));
	CHECK(replica != NULL && options->self != 0 && options->retry_least_us > 0 && options->running_most > 0);
	CHECK(host->get && host->put && host->remove && host->scan && host->send && host->execute && host->answer);
	CHECK(host->fetch && host->drop && host->reachable && host->random);
	replica->options = *options;
	replica->host = *host;
	replica->now = now;
	replica->expire_us = now.us;
	map_init(&replica->replicants, options->hash_key);
	int code = read_meta(replica, err);
	if (code == 0)
		code = resume(replica, err);
	if (code != 0) {
		replica_free(replica);
		return code;
	}
	leave(replica);
	*out = replica;
	return 0;
}

void replica_free(struct replica *replica)
{
	if (!replica)
		return;
	while (replica->newest)
		replicant_drop(replica, replica->newest);
	map_free(&replica->replicants);
	peers_free(replica);
	weak_free(replica);
	free(replica->work);
	free(replica->timers);
	free(replica->waiters);
	free(replica->running);
	free(replica->slots);
	free(replica->removed);
	buf_free(&replica->key);
	buf_free(&replica->row);
	free(replica);
}

/* ---- Events ------------------------------------------------------------------------------------------------------------------ */

void replica_submit(struct replica *replica, const struct replica_submission *submission, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	submit_take(replica, submission);
	leave(replica);
}

void replica_give_state(struct replica *replica, struct replica_id id, uint64_t ticket, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	repair_ask(replica, id, ticket);
	leave(replica);
}

static bool take_running(struct replica *replica, uint64_t task, struct replica_id *id)
{
	for (uint32_t i = 0; i < replica->running_count; i++) {
		if (replica->running[i].task != task)
			continue;
		*id = replica->running[i].id;
		memmove(&replica->running[i], &replica->running[i + 1],
		        (replica->running_count - i - 1) * sizeof(struct running));
		replica->running_count--;
		replica->counters.running--;
		return true;
	}
	return false;
}

void replica_executed(struct replica *replica, uint64_t task, const struct replica_outcome *outcome,
                      struct replica_now now)
{
	struct replica_id id;
	struct replicant *r;
	if (!enter(replica, now) || !take_running(replica, task, &id))
		return;
	if (replicant_load(replica, id, &r) == 0 && r->task.task == task)
		outcome_take(replica, r, outcome);
	lane_wake_slots(replica);
	leave(replica);
}

void replica_receive(struct replica *replica, site_id from, struct str message, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	receive_message(replica, from, message);
	leave(replica);
}

void replica_fetched(struct replica *replica, struct str blob, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	blob_came(replica, blob);
	leave(replica);
}

void replica_met(struct replica *replica, site_id site, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	struct peer *peer = peer_get(replica, site);
	peer->retry_us = replica->options.retry_least_us;
	peer->passing = false;
	peer->tried_us = 0;
	if (peer->owed > 0)
		peer->try_us = now.us;
	leave(replica);
}

int replica_judge(struct replica *replica, struct replica_op_id op, enum replica_verdict verdict, struct str secret,
                  struct replica_now now, struct err *err)
{
	if (!enter(replica, now))
		return err_set(err, ERR_IO, "the store is broken");
	int code = doubt_judge(replica, op, verdict, secret, err);
	leave(replica);
	return code;
}

int replica_extend(struct replica *replica, struct replica_id id, const struct replica_extension *extension,
                   struct replica_now now, struct err *err)
{
	CHECK(extension->ticket != 0 && extension->site != 0 && extension->site != replica->options.self);
	if (!enter(replica, now))
		return err_set(err, ERR_IO, "the store is broken");
	int code = members_ask_extend(replica, id, extension, err);
	leave(replica);
	return code;
}

bool replica_is_extending(struct replica *replica, struct replica_id id)
{
	struct replicant *r;
	return !replica->broken && replicant_resolve(replica, id, &r) == 0 && r->kind == REPLICANT_LIVE && r->extend != 0;
}

int replica_adopt(struct replica *replica, const struct replica_adoption *adoption, struct replica_now now,
                  struct replica_id *id, struct err *err)
{
	if (!enter(replica, now))
		return err_set(err, ERR_IO, "the store is broken");
	int code = existing_take(replica, adoption, id, err);
	leave(replica);
	return code;
}

int replica_drop(struct replica *replica, struct replica_id id, const struct replica_drop *drop, struct replica_now now,
                 struct err *err)
{
	if (!enter(replica, now))
		return err_set(err, ERR_IO, "the store is broken");
	int code = members_ask_drop(replica, id, drop, err);
	leave(replica);
	return code;
}

bool replica_is_leaving(struct replica *replica, struct replica_id id)
{
	struct replicant *r;
	return !replica->broken && replicant_resolve(replica, id, &r) == 0 && r->kind == REPLICANT_LIVE &&
	       members_is_leaving(r);
}

bool replica_has_left(struct replica *replica, struct replica_id id, site_id site)
{
	struct replicant *r;
	if (replica->broken || replicant_resolve(replica, id, &r) != 0 || r->kind != REPLICANT_LIVE)
		return false;
	uint32_t member = member_index(r, site);
	return member != UINT32_MAX && r->members[member].removed;
}

void replica_let_go(struct replica *replica, struct replica_id id, struct replica_now now)
{
	struct replicant *r;
	if (!enter(replica, now))
		return;
	if (replicant_resolve(replica, id, &r) == 0 && r->kind == REPLICANT_LIVE) {
		r->let_go = true;
		work_add(replica, r);
	}
	leave(replica);
	/* It counts for this moment only: what it rests on may be otherwise in the next. */
	if (!replica->broken && replicant_resolve(replica, id, &r) == 0)
		r->let_go = false;
}

static void remove_member(struct replica *replica, struct replicant *r, site_id site)
{
	uint32_t member = member_index(r, site);
	if (member == UINT32_MAX || member == r->self)
		return;
	members_remove(replica, r, member);
	peer_owe(replica, r, member, false);
}

void replica_site_removed(struct replica *replica, site_id site, struct replica_now now)
{
	struct ids ids = {0};
	if (!enter(replica, now))
		return;
	if (!members_is_removed(replica, site)) {
		replica->removed = replica_grow(replica->removed, &replica->removed_capacity, replica->removed_count + 1,
		                                sizeof(*replica->removed));
		replica->removed[replica->removed_count++] = site;
	}
	if (replica->host.scan(replica->host.context, REPLICA_REPLICANTS, STR(""), STR(""), collect_id, &ids) != 0)
		replica->broken = true;
	for (uint32_t i = 0; i < ids.count && !replica->broken; i++) {
		struct replicant *r;
		if (replicant_load(replica, ids.ids[i], &r) == 0 && r->kind != REPLICANT_ALIAS)
			remove_member(replica, r, site);
		do_work(replica);
		replicants_trim(replica);
	}
	free(ids.ids);
	leave(replica);
}

uint64_t replica_due(const struct replica *replica)
{
	if (replica->broken)
		return UINT64_MAX;
	uint64_t due = peers_due(replica);
	if (replica->timers_count > 0 && replica->timers[0].us < due)
		due = replica->timers[0].us;
	uint64_t lent = weak_due(replica);
	due = lent < due ? lent : due;
	return replica->expire_us < due ? replica->expire_us : due;
}

void replica_tick(struct replica *replica, struct replica_now now)
{
	if (!enter(replica, now))
		return;
	take_timers(replica);
	expire_tick(replica);
	weak_tick(replica);
	leave(replica);
}

struct replica_counters replica_counters(const struct replica *replica)
{
	return replica->counters;
}
