/* Ids: what stands for what. Users and other sites say meta-ids, the services here their own.
 *
 * Everything is read from what was committed last, so any thread may ask.
 */
#include "engine/engine_int.h"

#include "base/percent.h"

/* ---- Looking up -------------------------------------------------------------------------------------------------- */

/* The replicant's row says which local id it has here. An alias leads to another one, which is none. */
static bool read_replicant(struct engine *engine, struct store_session *session, struct engine_found *found)
{
	struct replica_here here = {.alias = true, .other = found->id};
	for (int i = 0; i < 2 && here.alias; i++) {
		struct str row;
		found->id = here.other;
		if (store_get(session, REPLICA_REPLICANTS, str_make((const char *)found->id.bytes, sizeof(found->id.bytes)),
		              &row, NULL) != 0 ||
		    replica_here_parse(row, engine->options.self, &here, NULL) != 0)
			return false;
	}
	found->deleted = here.gone;
	memcpy(found->local_id, here.local_id, here.local_id_bytes);
	found->local_id_bytes = here.local_id_bytes;
	found->local_id_quoted = here.local_id_quoted;
	return !here.alias;
}

static bool find_local(struct store_session *session, struct str service, struct str type, struct str id,
                       struct engine_found *found)
{
	struct buf key = {0};
	struct str row;
	replica_local_key(service, type, id, &key);
	bool known = key.length <= LIMIT_STORE_KEY_BYTES &&
	             store_get(session, REPLICA_LOCALS, buf_str(&key), &row, NULL) == 0 &&
	             replica_local_parse(row, &found->id) == 0;
	buf_free(&key);
	return known;
}

bool engine_find(struct engine *engine, struct str service, struct str type, struct str id, struct engine_found *found)
{
	struct store_session *session;
	if (id.length == 0 || id.length > LIMIT_REPLICA_NAME_BYTES || !engine_has_any(engine) ||
	    store_begin_read(engine->store, &session, NULL) != 0)
		return false;
	found->by_meta_id = replica_id_parse(id, &found->id) && read_replicant(engine, session, found);
	bool known =
		found->by_meta_id || (find_local(session, service, type, id, found) && read_replicant(engine, session, found));
	store_abort(session);
	return known;
}

bool engine_has_any(const struct engine *engine)
{
	return atomic_load_explicit(&engine->any, memory_order_relaxed);
}

bool engine_has_type(struct engine *engine, struct str service, struct str type)
{
	struct store_session *session;
	struct store_cursor *cursor;
	struct store_row row;
	struct buf prefix = {0};
	bool found = false;
	if (!engine_has_any(engine) || store_begin_read(engine->store, &session, NULL) != 0)
		return false;
	replica_local_key(service, type, STR(""), &prefix);
	struct store_range range = {.table = REPLICA_LOCALS, .index = -1, .prefix = buf_str(&prefix)};
	if (store_scan(session, &range, &cursor, NULL) == 0) {
		found = store_next(cursor, &row, NULL) > 0;
		store_cursor_free(cursor);
	}
	buf_free(&prefix);
	store_abort(session);
	return found;
}

/* ---- Replacing --------------------------------------------------------------------------------------------------- */

static bool put_local(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct engine *engine = context;
	struct engine_found found;
	if (place->kind != GLUE_PLACE_ID && place->kind != GLUE_PLACE_REFERENCE)
		return false;
	if (!engine_find(engine, STR(""), STR(""), place->value, &found) || found.local_id_bytes == 0)
		return false;
	buf_put(value, str_make(found.local_id, found.local_id_bytes));
	*quoted = found.local_id_quoted;
	return true;
}

struct glue_replacer engine_to_local(struct engine *engine)
{
	return (struct glue_replacer){engine, put_local};
}

static bool find_named(const struct engine_to_meta *to, const struct glue_type *type, struct str value,
                       struct engine_found *found)
{
	struct str name = type ? glue_type_name(type) : to->type;
	const char *dot = memchr(name.at, '.', name.length);
	struct str service = type && dot ? str_make(name.at, (size_t)(dot - name.at)) : to->service;
	return engine_find(to->engine, service, name, value, found) && !found->by_meta_id;
}

/* Each segment that is an id of this type. */
static bool put_meta_link(const struct engine_to_meta *to, struct str link, struct buf *value)
{
	bool replaced = false;
	while (link.length > 0) {
		const char *slash = memchr(link.at, '/', link.length);
		size_t segment = slash ? (size_t)(slash - link.at) : link.length;
		struct engine_found found;
		if (segment > 0 && find_named(to, NULL, str_make(link.at, segment), &found)) {
			replica_id_put(found.id, value);
			replaced = true;
		} else {
			buf_put(value, str_make(link.at, segment));
		}
		size_t taken = segment + (slash != NULL);
		if (slash)
			buf_put_char(value, '/');
		link = str_make(link.at + taken, link.length - taken);
	}
	return replaced;
}

static bool put_meta(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	const struct engine_to_meta *to = context;
	struct engine_found found;
	*quoted = true;
	if (place->kind == GLUE_PLACE_LINK)
		return put_meta_link(to, place->value, value);
	if (place->kind == GLUE_PLACE_NAME)
		return false;
	if (!find_named(to, place->kind == GLUE_PLACE_ID ? NULL : place->type, place->value, &found))
		return false;
	replica_id_put(found.id, value);
	return true;
}

struct glue_replacer engine_to_meta(struct engine_to_meta *context)
{
	return (struct glue_replacer){context, put_meta};
}

void engine_splice(const struct glue_places *places, const struct glue_replacer *replacer, struct str body,
                   struct buf *out)
{
	if (!places || body.length == 0) {
		buf_put(out, body);
		return;
	}
	struct glue_splicer *splicer = glue_splicer_new(places, replacer);
	glue_splice(splicer, body, out, NULL);
	glue_splice_end(splicer, out, NULL);
	glue_splicer_free(splicer);
}
