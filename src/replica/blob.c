/* What an operation needs before it can run: its blob, and the replicants that it refers to.
 *
 * A blob is needed by operations, one row for each, which says whether the blob is here. One that is not is fetched when the
 * operation comes, and again, from another member, while the operation waits for it. With the last row it is dropped. If it went with a
 * site that was removed, the operation is rejected, for people to decide on.
 *
 * The file of a state that is given (repair.c) may well be what this member has already. It is not fetched when it comes: the host is
 * asked to run the operation, looks whether there is anything to set, and if so says that it needs the blob, by FAILED. From then on it
 * is one like any other.
 *
 * The files of a copy (adopt.c) are for one member: others need no blob for them, and have none to give.
 *
 * The same name again, after a delete: the create waits until the delete was run here, though they are different replicants. Made
 * apart: it waits until they became one (merge.c).
 *
 * A reference is here when what it names was made here, or is gone: then the service says so. A user's operation does not wait; it is
 * refused while the create of what it refers to runs, or is in doubt: if that never came to be, the other members would wait for ever. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Blobs ---------------------------------------------------------------------------------------------------------------- */

struct blob_look {
	uint32_t rows;
	bool here;
};

static bool look_at_row(void *context, struct str key, struct str row)
{
	struct blob_look *look = context;
	bool here = false;
	(void)key;
	look->rows++;
	if (blob_row_parse(row, &here, NULL) == 0)
		look->here |= here;
	return true;
}

static struct blob_look look_at(struct replica *replica, struct str blob)
{
	struct blob_look look = {0};
	if (replica->host.scan(replica->host.context, REPLICA_BLOBS, blob, STR(""), look_at_row, &look) != 0)
		replica->broken = true;
	return look;
}

/* The host looks first. */
static bool is_looked_at(const struct op *op)
{
	return (op->flags & OP_REPAIR) && op->facet != 0;
}

/* Members who said that they have the operation, its issuer first; another one each time. */
static site_id choose_source(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number)
{
	const struct member *issuer = &r->members[member];
	const struct op *op = op_find(r, member, number);
	site_id sources[LIMIT_REPLICA_MEMBERS];
	uint32_t count = 0;
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct member *each = &r->members[i];
		if (i != r->self && !each->removed && !member_witnesses(each) && (i == member || each->has[member] >= number) &&
		    replica->host.reachable(replica->host.context, each->site))
			sources[count++] = each->site;
	}
	/* Who was equal already has never fetched the file of a state. */
	bool issuer_alone = op && (op->adopts != 0 || (is_looked_at(op) && !issuer->removed &&
	                                               replica->host.reachable(replica->host.context, issuer->site)));
	if (count == 0 || r->retry_us == 0 || issuer_alone)
		return issuer->site;
	return sources[replica_draw(replica) % count];
}

bool blob_row_set(struct replica *replica, struct str blob, const struct replica_op_id *op, bool here)
{
	struct buf key = {0}, row = {0};
	here |= look_at(replica, blob).here;
	blob_key_put(&key, blob, op);
	blob_row_put(&row, here);
	replica->host.put(replica->host.context, REPLICA_BLOBS, buf_str(&key), buf_str(&row));
	buf_free(&key);
	buf_free(&row);
	return here;
}

void blob_row_clear(struct replica *replica, struct str blob, const struct replica_op_id *op)
{
	struct buf key = {0};
	blob_key_put(&key, blob, op);
	replica->host.remove(replica->host.context, REPLICA_BLOBS, buf_str(&key));
	buf_free(&key);
	if (look_at(replica, blob).rows == 0)
		replica->host.drop(replica->host.context, blob);
}

void blob_need(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number,
               const struct replica_request *request, bool here)
{
	struct replica_op_id op = op_id(r, member, number);
	const struct op *known = op_find(r, member, number);
	bool lazily = known && is_looked_at(known);
	if (known && known->adopts != 0 && known->adopts != r->members[r->self].site && member != r->self)
		return;
	here = blob_row_set(replica, request->blob, &op, here);
	if (!here && !lazily)
		replica->host.fetch(replica->host.context, request->blob, request->blob_bytes,
		                    choose_source(replica, r, member, number));
}

void blob_done(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number)
{
	struct replica_op_id op = op_id(r, member, number);
	struct op_row row;
	if (op_fetch(replica, r, member, number, &row) != 0 || (row.flags & OP_BLOB) == 0)
		return;
	char blob[REPLICA_BLOB_BYTES];
	memcpy(blob, row.request.blob.at, sizeof(blob));
	blob_row_clear(replica, str_make(blob, sizeof(blob)), &op);
}

bool blob_is_here(struct replica *replica, struct replicant *r, const struct op *op,
                  const struct replica_request *request)
{
	if (request->blob.length == 0 || look_at(replica, request->blob).here)
		return true;
	if (is_looked_at(op) && r->retry_us == 0)
		return true;
	lane_wait(replica, r);
	replica->host.fetch(replica->host.context, request->blob, request->blob_bytes,
	                    choose_source(replica, r, op->member, op->number));
	return false;
}

/* Its issuer was removed, and whoever is left was asked again and again: each of them waits as this site does. */
bool blob_is_lost(struct replica *replica, const struct replicant *r, const struct op *op,
                  const struct replica_request *request)
{
	if (request->blob.length == 0 || !r->members[op->member].removed || r->retry_us < replica->options.retry_most_us)
		return false;
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed &&
		    !replica->host.reachable(replica->host.context, r->members[i].site))
			return false; /* it may have it */
	return !look_at(replica, request->blob).here;
}

bool blob_is_awaited(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number)
{
	struct op_row row;
	return op_fetch(replica, r, member, number, &row) == 0 && (row.flags & OP_BLOB) &&
	       !look_at(replica, row.request.blob).here;
}

struct blob_rows {
	struct replica_op_id *ops;
	uint32_t count, capacity;
};

static bool collect_row(void *context, struct str key, struct str row)
{
	struct blob_rows *rows = context;
	struct replica_op_id op;
	(void)row;
	if (key.length <= REPLICA_BLOB_BYTES ||
	    !op_key_parse(str_make(key.at + REPLICA_BLOB_BYTES, key.length - REPLICA_BLOB_BYTES), &op))
		return true;
	rows->ops = replica_grow(rows->ops, &rows->capacity, rows->count + 1, sizeof(*rows->ops));
	rows->ops[rows->count++] = op;
	return true;
}

void blob_came(struct replica *replica, struct str blob)
{
	struct blob_rows rows = {0};
	struct buf key = {0}, row = {0};
	if (blob.length != REPLICA_BLOB_BYTES)
		return;
	if (replica->host.scan(replica->host.context, REPLICA_BLOBS, blob, STR(""), collect_row, &rows) != 0)
		replica->broken = true;
	if (rows.count == 0)
		replica->host.drop(replica->host.context, blob); /* nobody needs it any more */
	blob_row_put(&row, true);
	for (uint32_t i = 0; i < rows.count; i++) {
		struct replicant *r;
		buf_clear(&key);
		blob_key_put(&key, blob, &rows.ops[i]);
		replica->host.put(replica->host.context, REPLICA_BLOBS, buf_str(&key), buf_str(&row));
		if (replicant_load(replica, rows.ops[i].replicant, &r) != 0)
			continue;
		r->not_before_us = 0;
		r->retry_us = 0;
		work_add(replica, r);
	}
	free(rows.ops);
	buf_free(&key);
	buf_free(&row);
	weak_came(replica, blob);
}

static bool is_queued(const struct replicant *r, struct str blob)
{
	for (const struct submission *each = r->queue; each; each = each->next)
		if (each->has_blob && memcmp(each->blob, blob.at, sizeof(each->blob)) == 0)
			return true;
	return false;
}

bool replica_needs_blob(struct replica *replica, struct str blob)
{
	CHECK(blob.length == REPLICA_BLOB_BYTES);
	if (look_at(replica, blob).rows > 0 || replica->broken)
		return true;
	void *r;
	struct str key;
	for (size_t cursor = 0; map_next(&replica->replicants, &cursor, &key, &r);)
		if (is_queued(r, blob))
			return true;
	return false;
}

/* ---- References -------------------------------------------------------------------------------------------------------------- */

static void wait_for(struct replica *replica, struct replica_id reference, struct replica_id id)
{
	for (uint32_t i = 0; i < replica->waiters_count; i++)
		if (id_equal(replica->waiters[i].reference, reference) && id_equal(replica->waiters[i].id, id))
			return;
	replica->waiters =
		replica_grow(replica->waiters, &replica->waiters_capacity, replica->waiters_count + 1, sizeof(struct waiter));
	replica->waiters[replica->waiters_count++] = (struct waiter){reference, id};
}

static void wait_no_more(struct replica *replica, struct replica_id id)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < replica->waiters_count; i++)
		if (!id_equal(replica->waiters[i].id, id))
			replica->waiters[kept++] = replica->waiters[i];
	replica->waiters_count = kept;
}

/* The first that is not here; one that is awaited before one that nobody has heard of. */
enum reference references_look(struct replica *replica, const struct replicant *r, const struct replica_id *references,
                               uint32_t count, struct replica_id *missing)
{
	enum reference found = REFERENCE_HERE;
	for (uint32_t i = 0; i < count; i++) {
		struct replicant *other;
		struct replica_id id;
		memcpy(&id, &references[i], sizeof(id));
		if (id_equal(id, r->id))
			continue;
		if (replicant_resolve(replica, id, &other) != 0) {
			if (found == REFERENCE_HERE)
				*missing = id;
			found = REFERENCE_UNKNOWN;
			continue;
		}
		/* What is gone, be it here alone, or was rejected here, will not come: who refers to it is rejected as well, for all to see.
		 * What lies elsewhere is found by its meta-id. */
		bool here = other->kind != REPLICANT_LIVE || own_report(other)->created || is_witness(other) ||
		            lane_is_deleted(other) || (lane_is_refused(other) && !lane_comes_back(other));
		if (here)
			continue;
		*missing = other->id;
		return REFERENCE_AWAITED;
	}
	return found;
}

/* A delete refers to those that needed what it deletes, and may not have been made everywhere: it goes behind their creates. One that nobody
 * has heard of here is on its way, as the delete was; or it has no copy here, and never comes. */
static bool waited_enough(struct replica *replica, struct replicant *r)
{
	if (r->behind_by_us == 0)
		r->behind_by_us = replica->now.us + REPLICA_BEHIND_US;
	if (replica->now.us >= r->behind_by_us) {
		wait_no_more(replica, r->id);
		return true;
	}
	replica_fire(replica, r, r->behind_by_us);
	return false;
}

bool references_are_here(struct replica *replica, struct replicant *r, const struct op *op,
                         const struct replica_request *request)
{
	struct replica_id missing;
	enum reference found = references_look(replica, r, request->references, request->references_count, &missing);
	if (found == REFERENCE_HERE ||
	    (found == REFERENCE_UNKNOWN && op->effect == ORDER_DELETE && waited_enough(replica, r)))
		return true;
	wait_for(replica, missing, r->id);
	return false;
}

/* Of a user's operation, which does not wait: whatever it refers to that is known here was issued, so that it comes to the others too. */
bool references_are_certain(struct replica *replica, const struct replicant *r, const struct replica_request *request)
{
	for (uint32_t i = 0; i < request->references_count; i++) {
		struct replicant *other;
		struct replica_id id;
		memcpy(&id, &request->references[i], sizeof(id));
		if (id_equal(id, r->id) || replicant_resolve(replica, id, &other) != 0)
			continue;
		if (other->kind == REPLICANT_LIVE && !own_report(other)->created && !is_witness(other) &&
		    vector_is_zero(other->known, other->members_count))
			return false;
	}
	return true;
}

void name_wait(struct replica *replica, const struct replicant *other, const struct replicant *r)
{
	wait_for(replica, other->id, r->id);
}

/* It is being made: whether the name is free is known when it was. */
static bool is_being_made(const struct replicant *r)
{
	const struct op *op = NULL;
	if (r->kind != REPLICANT_LIVE)
		return false;
	if (r->task.what == TASK_FIRST)
		op = r->task.intent;
	else if (r->task.what == TASK_DELIVERED)
		op = op_find(r, r->task.member, r->task.number);
	/* A user's, in doubt: nothing was issued, and it is withheld. */
	bool withheld = r->withheld_count > 0 && vector_is_zero(r->known, r->members_count);
	bool begun = r->newcomer && r->members[r->self].report.local_id_bytes > 0; /* its files are missing (adopt.c) */
	return withheld || begun || (op && (op->effect == ORDER_CREATE || op->effect == ORDER_ADOPT));
}

bool name_is_in_the_making(struct replica *replica, const struct replicant *r)
{
	const struct replicant *other = name_other(replica, r);
	return other && is_being_made(other);
}

bool name_is_free(struct replica *replica, struct replicant *r, const struct op *op)
{
	bool makes = op->effect == ORDER_CREATE || (op->effect == ORDER_ADOPT && op->facet == 0);
	if (!makes || own_report(r)->created || r->name.length == 0)
		return true;
	struct replicant *holder = name_holder(replica, r), *other = name_other(replica, r);
	if ((holder && (lane_ends_deleted(holder) || merge_is_due(r, holder))) || (other && is_being_made(other))) {
		wait_for(replica, other->id, r->id);
		return false;
	}
	if (!holder)
		name_set(replica, r); /* the next one waits for this one */
	return true;
}

/* Another one has its name, and they do not become one (merge.c). People are told; when the other one is deleted, it is tried again. */
void name_refused(struct replica *replica, struct replicant *r)
{
	struct replicant *other = name_holder(replica, r);
	if (!other)
		return;
	replica_tell_replicant(replica, r, REPLICA_EVENT_CONFLICT);
	wait_for(replica, other->id, r->id);
}

/* Something was made here, or is gone: who waited for it looks again. */
void references_wake(struct replica *replica, const struct replicant *r)
{
	uint32_t kept = 0, count = replica->waiters_count;
	for (uint32_t i = 0; i < count; i++) {
		struct waiter waiter = replica->waiters[i];
		struct replicant *waiting;
		if (!id_equal(waiter.reference, r->id))
			replica->waiters[kept++] = waiter;
		else if (replicant_load(replica, waiter.id, &waiting) == 0) {
			if (!name_holder(replica, waiting))
				doubt_retry_create(replica, waiting);
			else if (waiting->kind == REPLICANT_LIVE && lane_is_refused(waiting))
				replica->waiters[kept++] = waiter; /* the name is not free yet */
			work_add(replica, waiting);
		}
	}
	replica->waiters_count = kept;
}
