/* Replicants: in memory while something happens to them, and as rows.
 *
 * One is loaded by three reads: its row, its lane, its operations. What an event changed is put before the event ends, so any
 * that nothing pins can be dropped at any time between two events; the oldest are, past a bound.
 *
 * A row that makes no sense: the replicant is not loaded, what is asked of it is refused with ERR_CORRUPT, others go on. A store
 * that cannot be read: the room does nothing more; its host makes a new one. */
#include "replica/checkpoint.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- In memory ----------------------------------------------------------------------------------------------------- */

struct replicant *replicant_new(struct replica *replica, struct replica_id id)
{
	struct replicant *r = calloc(1, sizeof(*r));
	CHECK(r != NULL);
	r->id = id;
	r->queue_end = &r->queue;
	arena_init(&r->order_arena, 0);
	map_set(&replica->replicants, id_str(&r->id), r);
	r->older = replica->newest;
	if (replica->newest)
		replica->newest->newer = r;
	else
		replica->oldest = r;
	replica->newest = r;
	return r;
}

static uint32_t *vector_new(uint32_t count)
{
	uint32_t *vector = calloc(count, sizeof(*vector));
	CHECK(vector != NULL);
	return vector;
}

/* Once the members are known. They are in order. */
void replicant_shape(struct replicant *r, const site_id *members, uint32_t count, site_id self)
{
	CHECK(r->members == NULL);
	r->members = calloc(count, sizeof(*r->members));
	CHECK(r->members != NULL);
	r->members_count = count;
	r->base = vector_new(count);
	r->known = vector_new(count);
	r->handled = vector_new(count);
	for (uint32_t i = 0; i < count; i++) {
		r->members[i].site = members[i];
		r->members[i].has = vector_new(count);
		r->members[i].report.settled = vector_new(count);
		if (members[i] == self)
			r->self = i;
	}
}

static void forget_ops(struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count; i++)
		free(r->ops[i]);
	free(r->ops);
	r->ops = NULL;
	r->ops_count = r->ops_capacity = 0;
}

/* All that it has, but its id and its place. */
void replicant_wipe(struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		free(r->members[i].has);
		free(r->members[i].sent);
		free(r->members[i].report.settled);
		report_clear(&r->members[i].report);
	}
	free(r->members);
	free(r->base);
	free(r->known);
	free(r->handled);
	free(r->steps);
	free(r->withheld);
	free(r->task.intent);
	buf_free(&r->task.key);
	buf_free(&r->task.content);
	buf_free(&r->text);
	forget_ops(r);
	candidate_drop(r);
	arena_free(&r->order_arena);
	while (r->queue) {
		struct submission *next = r->queue->next;
		submission_free(r->queue);
		r->queue = next;
	}
}

static void unlink_replicant(struct replica *replica, struct replicant *r)
{
	*(r->older ? &r->older->newer : &replica->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &replica->newest) = r->older;
	r->older = r->newer = NULL;
}

void replicant_drop(struct replica *replica, struct replicant *r)
{
	map_remove(&replica->replicants, id_str(&r->id));
	unlink_replicant(replica, r);
	replicant_wipe(r);
	free(r);
}

/* What is in memory alone. How long a failed one still waits is not worth it. */
static bool is_pinned(const struct replicant *r)
{
	bool repairs = r->repair_us != 0 || r->alone_us != 0;
	bool waits = r->kind == REPLICANT_LIVE && r->behind_by_us != 0;
	return r->pins > 0 || r->in_work || r->queue || r->task.task != 0 || r->extend != 0 || repairs || waits;
}

void replicants_trim(struct replica *replica)
{
	struct replicant *r = replica->oldest;
	while (r && replica->replicants.count > replica->options.loaded_most) {
		struct replicant *newer = r->newer;
		if (!is_pinned(r))
			replicant_drop(replica, r);
		r = newer;
	}
}

static void use(struct replica *replica, struct replicant *r)
{
	if (replica->newest == r)
		return;
	unlink_replicant(replica, r);
	r->older = replica->newest;
	if (replica->newest)
		replica->newest->newer = r;
	else
		replica->oldest = r;
	replica->newest = r;
}

void work_add(struct replica *replica, struct replicant *r)
{
	if (r->in_work)
		return;
	replica->work =
		replica_grow(replica->work, &replica->work_capacity, replica->work_count + 1, sizeof(*replica->work));
	replica->work[replica->work_count++] = r;
	r->in_work = true;
}

void work_remove(struct replica *replica, struct replicant *r)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < replica->work_count && r->in_work; i++)
		if (replica->work[i] != r)
			replica->work[kept++] = replica->work[i];
	replica->work_count = r->in_work ? kept : replica->work_count;
	r->in_work = false;
}

uint32_t member_index(const struct replicant *r, site_id site)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (r->members[i].site == site)
			return i;
	return UINT32_MAX;
}

/* ---- Operations ---------------------------------------------------------------------------------------------------- */

uint32_t op_index(const struct replicant *r, uint32_t member, uint32_t number)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < member; i++)
		at += r->known[i] - r->base[i];
	return at + number - r->base[member] - 1;
}

struct op *op_find(const struct replicant *r, uint32_t member, uint32_t number)
{
	if (number <= r->base[member] || number > r->known[member])
		return NULL;
	return r->ops[op_index(r, member, number)];
}

void op_insert(struct replicant *r, struct op *op)
{
	CHECK(op->number == r->known[op->member] + 1);
	r->ops = replica_grow(r->ops, &r->ops_capacity, r->ops_count + 1, sizeof(struct op *));
	uint32_t at = 0;
	for (uint32_t i = 0; i <= op->member; i++)
		at += r->known[i] - r->base[i];
	memmove(r->ops + at + 1, r->ops + at, (r->ops_count - at) * sizeof(struct op *));
	r->ops[at] = op;
	r->ops_count++;
	r->known[op->member]++;
	r->ordered = false;
	r->merges |= (op->flags & OP_MERGE) != 0;
}

struct replica_op_id op_id(const struct replicant *r, uint32_t member, uint32_t number)
{
	return (struct replica_op_id){r->id, r->members[member].site, number};
}

static struct str op_key(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number)
{
	struct replica_op_id id = op_id(r, member, number);
	buf_clear(&replica->key);
	op_key_put(&replica->key, &id);
	return buf_str(&replica->key);
}

void op_store(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number, struct str row)
{
	replica->host.put(replica->host.context, REPLICA_OPERATIONS, op_key(replica, r, member, number), row);
	replica->counters.pending_operations++;
}

void op_store_again(struct replica *replica, struct replicant *r, uint32_t member, uint32_t number,
                    const struct replica_request *request)
{
	struct op_row row;
	struct buf content = {0}, bytes = {0}, before = {0};
	/* `request` may be a slice of what was fetched last. */
	int code = row_get(replica, REPLICA_OPERATIONS, op_key(replica, r, member, number), &before);
	if (code != 0 || op_row_parse(buf_str(&before), &row, NULL) != 0) {
		buf_free(&before);
		return;
	}
	struct replica_class class = row.class;
	if (row.flags & OP_ADOPT)
		class.effect = ORDER_CREATE; /* no request has the other one */
	if (op_check(&class, request, NULL) != 0) {
		buf_free(&before);
		return;
	}
	op_content_put(&content, &row.class, request, row.flags & (OP_REPAIR | OP_CONDITIONAL | OP_ADOPT | OP_WITNESS));
	if (row.flags & OP_ADOPT)
		put_number(&content, row.adopts, 8);
	put_number(&bytes, REPLICA_ROW_VERSION, 1);
	put_number(&bytes, row.stamp, 8);
	put_number(&bytes, row.members_count, 1);
	buf_put(&bytes, str_make((const char *)row.seen, (size_t)row.members_count * 4));
	buf_put(&bytes, buf_str(&content));
	op_store(replica, r, member, number, buf_str(&bytes));
	replica->counters.pending_operations--; /* it was there before */
	struct op *op = op_find(r, member, number);
	if (!op && r->task.intent && member == r->self && r->task.intent->number == number)
		op = r->task.intent;
	if (op)
		op->row_bytes = (uint32_t)bytes.length;
	buf_free(&content);
	buf_free(&bytes);
	buf_free(&before);
}

void op_unstore(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number)
{
	replica->host.remove(replica->host.context, REPLICA_OPERATIONS, op_key(replica, r, member, number));
	replica->counters.pending_operations--;
}

int op_fetch(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number, struct op_row *row)
{
	int code = row_get(replica, REPLICA_OPERATIONS, op_key(replica, r, member, number), &replica->row);
	return code ? code : op_row_parse(buf_str(&replica->row), row, NULL);
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

int row_get(struct replica *replica, enum replica_table table, struct str key, struct buf *row)
{
	buf_clear(row);
	int code = replica->host.get(replica->host.context, table, key, row);
	if (code != 0 && code != ERR_NOT_FOUND)
		replica->broken = true;
	return code;
}

struct load {
	struct replicant *r;
	int code;
};

/* Keys are in the order of members and numbers: they come as they are kept. */
static bool load_op(void *context, struct str key, struct str bytes)
{
	struct load *load = context;
	struct replicant *r = load->r;
	struct replica_op_id id;
	struct op_row row;
	uint32_t member = op_key_parse(key, &id) ? member_index(r, id.site) : UINT32_MAX;
	load->code = ERR_CORRUPT;
	if (member == UINT32_MAX || op_row_parse(bytes, &row, NULL) != 0)
		return false;
	bool ours = member == r->self;
	if (ours && id.number == 0) { /* a checkpoint: it is read by itself */
		load->code = 0;
		return true;
	}
	bool intent = ours && r->task.what == TASK_FIRST && id.number == r->task.number;
	if (ours && (id.number & REPLICA_WITHHELD) != 0) {
		load->code = 0;
		return true;
	}
	if (id.number != r->known[member] + 1)
		return false;
	struct op *op = op_new(&row, member, id.number, r->members_count, bytes.length);
	if (op == NULL)
		return false;
	if (intent)
		r->task.intent = op;
	else
		op_insert(r, op);
	load->code = 0;
	return true;
}

/* Whoever has it loaded may be looking at a row that was fetched: nothing of the room's is used here. */
static int load_checkpoint(struct replica *replica, struct replicant *r)
{
	struct replica_op_id id = op_id(r, r->self, 0);
	struct op_row row;
	struct buf key = {0}, bytes = {0};
	int code = ERR_NOT_FOUND;
	if (checkpoint_applies(r)) {
		op_key_put(&key, &id);
		code = row_get(replica, REPLICA_OPERATIONS, buf_str(&key), &bytes);
	}
	if (code == 0 && (op_row_parse(buf_str(&bytes), &row, NULL) != 0 || !checkpoint_load(r, &row)))
		code = ERR_CORRUPT;
	buf_free(&key);
	buf_free(&bytes);
	return code == ERR_NOT_FOUND ? 0 : code;
}

static int load_rows(struct replica *replica, struct replicant *r)
{
	struct load load = {r, 0};
	struct buf row = {0};
	int code = row_get(replica, REPLICA_REPLICANTS, id_str(&r->id), &row);
	if (code == 0)
		code = head_parse(buf_str(&row), r, replica->options.self, NULL);
	if (code != 0 || (r->kind != REPLICANT_LIVE && r->kind != REPLICANT_LEFT))
		goto out;
	if (r->kind == REPLICANT_LIVE && (code = load_checkpoint(replica, r)) != 0)
		goto out;
	code = row_get(replica, REPLICA_LANES, id_str(&r->id), &row);
	r->lane_stored = code == 0;
	if (r->kind == REPLICANT_LEFT) {
		code = code == ERR_NOT_FOUND ? 0 : code;
		goto out;
	}
	if (code == 0)
		code = lane_parse(buf_str(&row), r, NULL);
	else if (code == ERR_NOT_FOUND)
		code = 0;
	if (code != 0 || !r->lane_stored)
		goto out;
	code = replica->host.scan(replica->host.context, REPLICA_OPERATIONS, id_str(&r->id), STR(""), load_op, &load);
	replica->broken |= code != 0;
	code = code != 0 ? code : load.code;
	/* What was done and is settled has to be there. */
	for (uint32_t i = 0; code == 0 && i < r->steps_count; i++)
		if (op_find(r, r->steps[i].member, r->steps[i].number) == NULL)
			code = ERR_CORRUPT;
	if (code == 0 && (!vector_covers(r->known, own_report(r)->settled, r->members_count) ||
	                  !vector_covers(r->known, r->handled, r->members_count)))
		code = ERR_CORRUPT;
out:
	buf_free(&row);
	return code;
}

int replicant_load(struct replica *replica, struct replica_id id, struct replicant **out)
{
	struct replicant *r = map_get(&replica->replicants, id_str(&id));
	*out = NULL;
	if (r) {
		use(replica, r);
		*out = r->kind == REPLICANT_NONE ? NULL : r;
		return *out ? 0 : ERR_NOT_FOUND;
	}
	r = replicant_new(replica, id);
	int code = load_rows(replica, r);
	if (code) {
		replica->counters.damaged += code == ERR_CORRUPT || code == ERR_VERSION;
		replicant_drop(replica, r);
		return code;
	}
	for (uint32_t i = 0; i < r->members_count && r->kind == REPLICANT_LIVE; i++)
		r->members[i].in_outbox = sync_owes(r, i);
	*out = r;
	return 0;
}

static bool lane_is_empty(const struct replicant *r)
{
	const struct report *report = &r->members[r->self].report;
	bool idle = r->task.what == TASK_NONE || r->task.what == TASK_WEAK; /* a weak one is nobody's after a restart */
	return r->ops_count == 0 && idle && r->withheld_count == 0 && report->exceptions_count == 0;
}

static void save_lane(struct replica *replica, struct replicant *r)
{
	void *context = replica->host.context;
	struct str key = id_str(&r->id);
	/* Where something is still to be deleted, a row says that it is to be looked at after a restart. */
	bool empty = r->kind == REPLICANT_LIVE ? lane_is_empty(r) : r->kind != REPLICANT_LEFT || !r->deletes;
	if (!empty) {
		buf_clear(&replica->row);
		lane_put(&replica->row, r);
		replica->host.put(context, REPLICA_LANES, key, buf_str(&replica->row));
	} else if (r->lane_stored) {
		replica->host.remove(context, REPLICA_LANES, key);
	}
	r->head_dirty |= empty != !r->lane_stored; /* it has the report of this site while there is no lane */
	replica->counters.pending_replicants += !empty && !r->lane_stored;
	replica->counters.pending_replicants -= empty && r->lane_stored;
	r->lane_stored = !empty;
	r->head_dirty |= empty;
	r->lane_dirty = false;
}

/* What is weak is nobody's after a crash until it was made: nobody finds out what became of its create. */
static bool is_kept(struct replicant *r)
{
	bool made = r->consistency != REPLICA_WEAK || r->kind != REPLICANT_LIVE || own_report(r)->created;
	return r->kind != REPLICANT_NONE && made;
}

void replicant_save(struct replica *replica, struct replicant *r)
{
	void *context = replica->host.context;
	if (r->lane_dirty)
		save_lane(replica, r);
	if (!r->head_dirty)
		return;
	r->head_dirty = false;
	if (!is_kept(r)) {
		replica->host.remove(context, REPLICA_REPLICANTS, id_str(&r->id));
		return;
	}
	buf_clear(&replica->row);
	head_put(&replica->row, r);
	replica->host.put(context, REPLICA_REPLICANTS, id_str(&r->id), buf_str(&replica->row));
}
