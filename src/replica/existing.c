/* An item that exists already becomes a replicant (docs/requirements.md).
 *
 * Somebody made it at the service of this site without a word to anybody else. Its replicant has this site as its only member, and begins
 * where one ends up that was created here and whose create was forgotten: operation 1 of this site is in the base, nothing is known beyond
 * it, the item is there under its local id. Nothing is run, and nobody has to be told. From then on it is a replicant like any other: it is
 * changed by operations, and extended to further sites, each of which begins with a copy (members.c).
 *
 * Two ask for the same item: the second finds the local id, and is given the replicant that there is. A crash: all of it is in one commit,
 * or none.
 * Another replicant has its natural name here, and no copy, since this item was in its way: that has to be settled by a person first. One that is made elsewhere
 * later, for other members, never becomes one with it (merge.c): its create is rejected where the name is taken, as it was before. */
#include "replica/replica_int.h"

static int check(const struct replica_adoption *adoption, struct err *err)
{
	const struct replica_create *create = adoption->create;
	const struct str names[] = {create->service, create->type, create->collection, create->name, adoption->local_id};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].length > LIMIT_REPLICA_NAME_BYTES)
			return err_set(err, ERR_LIMIT, "a name of %zu bytes; at most %d can be replicated", names[i].length,
			               LIMIT_REPLICA_NAME_BYTES);
	if (adoption->local_id.length == 0)
		return err_set(err, ERR_INVALID, "it has no id at its service");
	if (create->rules.classes > LIMIT_REPLICA_CLASSES)
		return err_set(err, ERR_LIMIT, "%u classes of operations; at most %d", create->rules.classes,
		               LIMIT_REPLICA_CLASSES);
	if (create->consistency != REPLICA_EVENTUAL || create->span != REPLICA_ALIKE)
		return err_set(err, ERR_INVALID, "what exists becomes copies that are alike, `eventual`");
	return 0;
}

/* True: it is a replicant already, or the store is broken (*code). */
static bool is_there(struct replica *replica, const struct replica_adoption *adoption, struct replica_id *id, int *code,
                     struct err *err)
{
	const struct replica_create *create = adoption->create;
	struct replicant *r;
	buf_clear(&replica->key);
	replica_local_key(&(struct replica_local){create->service, create->type,
	                                          create->ids_in_collection ? create->collection : STR(""),
	                                          adoption->local_id},
	                  &replica->key);
	*code = row_get(replica, REPLICA_LOCALS, buf_str(&replica->key), &replica->row);
	if (*code == ERR_NOT_FOUND)
		return false;
	if (*code == 0)
		*code = replica_local_parse(buf_str(&replica->row), id);
	if (*code == 0)
		*code = replicant_resolve(replica, *id, &r);
	if (*code != 0) {
		err_set(err, *code, "what is stored of it cannot be read: %s", err_phrase(*code));
	} else {
		*id = r->id;
		if (r->kind != REPLICANT_LIVE || lane_is_closed(r))
			*code = err_set(err, ERR_NOT_FOUND, "it was deleted");
	}
	return true;
}

static void begin(struct replica *replica, struct replicant *r, const struct replica_adoption *adoption)
{
	struct report *own = own_report(r);
	r->base[0] = r->known[0] = r->handled[0] = 1;
	r->members[0].has[0] = own->settled[0] = 1;
	own->created = true;
	r->head_dirty = r->lane_dirty = r->report_dirty = true;
	local_set(replica, r, adoption->local_id, adoption->local_id_quoted);
	name_set(replica, r);
	replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
	work_add(replica, r);
}

int existing_take(struct replica *replica, const struct replica_adoption *adoption, struct replica_id *id,
                  struct err *err)
{
	struct replicant *r;
	int code = check(adoption, err);
	if (code != 0 || is_there(replica, adoption, id, &code, err))
		return code;
	code = replicant_load(replica, adoption->replicant, &r);
	if (code != ERR_NOT_FOUND)
		return err_set(err, ERR_CONFLICT, "there is a replicant of that id already");
	r = replicant_new(replica, adoption->replicant);
	header_take(r, adoption->create);
	replicant_shape(r, &replica->options.self, 1, replica->options.self);
	const struct replicant *other = name_other(replica, r);
	if (other && other->kind == REPLICANT_LIVE) {
		r->kind = REPLICANT_NONE;
		work_add(replica, r);
		return err_set(err, ERR_CONFLICT,
		               "another replicated resource has that name, and is waiting for it here: see to that one first");
	}
	begin(replica, r, adoption);
	*id = r->id;
	return 0;
}
