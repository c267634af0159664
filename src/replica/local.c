/* Local ids and natural names: from what a service calls a thing to its replicant. */
#include "replica/replica_int.h"

static struct str local_key(struct replica *replica, const struct replicant *r)
{
	const struct report *report = &r->members[r->self].report;
	buf_clear(&replica->key);
	replica_local_key(&(struct replica_local){r->service, r->type, r->ids_in_collection ? r->collection : STR(""),
	                                          str_make(report->local_id, report->local_id_bytes)},
	                  &replica->key);
	return buf_str(&replica->key);
}

/* Does the row name this replicant? Another one may have taken the name since. */
static bool is_ours(struct replica *replica, enum replica_table table, struct str key, const struct replicant *r)
{
	struct replica_id id;
	struct buf row = {0};
	bool ours =
		row_get(replica, table, key, &row) == 0 && replica_local_parse(buf_str(&row), &id) == 0 && id_equal(id, r->id);
	buf_free(&row);
	return ours;
}

static void put(struct replica *replica, enum replica_table table, struct str key, const struct replicant *r)
{
	struct buf row = {0};
	local_row_put(&row, r->id);
	replica->host.put(replica->host.context, table, key, buf_str(&row));
	buf_free(&row);
}

void local_clear(struct replica *replica, struct replicant *r)
{
	struct report *report = own_report(r);
	if (report->local_id_bytes == 0)
		return;
	struct str key = local_key(replica, r);
	if (is_ours(replica, REPLICA_LOCALS, key, r))
		replica->host.remove(replica->host.context, REPLICA_LOCALS, key);
	report->local_id_bytes = 0;
	r->report_dirty = r->lane_dirty = r->head_dirty = true; /* the head is what the data plane reads it from */
}

void local_set(struct replica *replica, struct replicant *r, struct str local_id, bool quoted)
{
	struct report *report = own_report(r);
	if (str_equal(local_id, str_make(report->local_id, report->local_id_bytes)) && report->local_id_quoted == quoted)
		return;
	local_clear(replica, r);
	memcpy(report->local_id, local_id.at, local_id.length);
	report->local_id_bytes = (uint8_t)local_id.length;
	report->local_id_quoted = quoted;
	put(replica, REPLICA_LOCALS, local_key(replica, r), r);
	r->report_dirty = r->lane_dirty = r->head_dirty = true;
}

static struct str name_key(struct replica *replica, const struct replicant *r)
{
	buf_clear(&replica->key);
	name_key_put(&replica->key, r);
	return buf_str(&replica->key);
}

struct replicant *name_other(struct replica *replica, const struct replicant *r)
{
	struct replica_id id;
	struct replicant *other = NULL;
	struct buf row = {0};
	if (r->name.length > 0 && row_get(replica, REPLICA_NAMES, name_key(replica, r), &row) == 0 &&
	    replica_local_parse(buf_str(&row), &id) == 0 && !id_equal(id, r->id) &&
	    replicant_load(replica, id, &other) != 0)
		other = NULL;
	buf_free(&row);
	return other;
}

void name_set(struct replica *replica, const struct replicant *r)
{
	struct replicant *other = name_other(replica, r);
	if (r->name.length > 0 && !is_witness(r))
		put(replica, REPLICA_NAMES, name_key(replica, r), r);
	if (other)
		work_add(replica, other); /* which may have to become one with it */
}

void name_note(struct replica *replica, const struct replicant *r)
{
	const struct replicant *other = name_other(replica, r);
	if (r->name.length > 0 && !is_witness(r) && (!other || other->kind != REPLICANT_LIVE))
		put(replica, REPLICA_NAMES, name_key(replica, r), r);
}

/* The other replicant that has its natural name here; NULL: none, or it is gone. */
struct replicant *name_holder(struct replica *replica, const struct replicant *r)
{
	struct replicant *other = name_other(replica, r);
	return other && other->kind == REPLICANT_LIVE && own_report(other)->created ? other : NULL;
}

void name_clear(struct replica *replica, const struct replicant *r)
{
	if (r->name.length > 0 && is_ours(replica, REPLICA_NAMES, name_key(replica, r), r))
		replica->host.remove(replica->host.context, REPLICA_NAMES, name_key(replica, r));
}
