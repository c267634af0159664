/* Ids: what stands for what. Users and other sites say meta-ids, the services here their own.
 *
 * Everything is read from what was committed last (overlay.c), so any thread may ask.
 */
#include "engine/engine_int.h"

#include "base/percent.h"

/* ---- Looking up -------------------------------------------------------------------------------------------------- */

/* The replicant's row says which local id it has here. An alias leads to another one, which may be one too. */
static bool read_replicant(struct engine *engine, const struct look *look, struct engine_found *found)
{
	struct replica_here here = {.alias = true, .other = found->id};
	for (int i = 0; i <= LIMIT_REPLICA_ALIASES && here.alias; i++) {
		struct str row;
		found->id = here.other;
		if (!engine_look_get(look, REPLICA_REPLICANTS, str_make((const char *)found->id.bytes, sizeof(found->id.bytes)),
		                     &row) ||
		    replica_here_parse(row, engine->options.self, &here, NULL) != 0)
			return false;
	}
	found->deleted = here.gone;
	found->left = here.left;
	memcpy(found->local_id, here.local_id, here.local_id_bytes);
	found->local_id_bytes = here.local_id_bytes;
	found->local_id_quoted = here.local_id_quoted;
	found->span = here.span;
	found->prime = here.prime;
	found->witness = here.witness;
	found->holders_count = here.holders_count;
	if (here.holders_count > 0)
		memcpy(found->holders, here.holders, here.holders_count * sizeof(found->holders[0]));
	return !here.alias;
}

/* A longer one is no replica's: check_create() of src/replica. */
static bool is_short(struct str text)
{
	return text.length <= LIMIT_REPLICA_NAME_BYTES;
}

/* Its key; false: there is none. */
static bool put_local_key(const struct engine_name *name, struct buf *key)
{
	if (!is_short(name->service) || !is_short(name->type) || !is_short(name->collection))
		return false;
	replica_local_key(&(struct replica_local){name->service, name->type, name->collection, name->id}, key);
	return true;
}

static bool get_local(const struct look *look, struct str key, struct engine_found *found)
{
	struct str row;
	return engine_look_get(look, REPLICA_LOCALS, key, &row) && replica_local_parse(row, &found->id) == 0;
}

static bool find_local(const struct look *look, const struct engine_name *name, struct engine_found *found)
{
	struct buf key = {0};
	bool known = put_local_key(name, &key) && get_local(look, buf_str(&key), found);
	buf_free(&key);
	return known;
}

static bool may_be_replicant(const struct engine *engine, struct replica_id id)
{
	return engine_sieve_may_have(engine, REPLICA_REPLICANTS, str_make((const char *)id.bytes, sizeof(id.bytes)));
}

/* In the store, where it may be there. */
static bool find_stored(struct engine *engine, bool meta, bool local, struct str key, struct engine_found *found)
{
	struct look look;
	if ((!meta && !local) || !engine_look_begin(engine, &look))
		return false;
	found->by_meta_id = meta && read_replicant(engine, &look, found);
	bool known = found->by_meta_id || (local && get_local(&look, key, found) && read_replicant(engine, &look, found));
	engine_look_end(&look);
	return known;
}

bool engine_find(struct engine *engine, const struct engine_name *name, struct engine_found *found)
{
	char bytes[LIMIT_STORE_KEY_BYTES + 1];
	struct buf key = {bytes, 0, sizeof(bytes)}; /* no key is longer: see is_short() */
	if (name->id.length == 0 || !is_short(name->id) || !engine_has_any(engine))
		return false;
	bool meta = replica_id_parse(name->id, &found->id) && may_be_replicant(engine, found->id);
	bool local = put_local_key(name, &key) && engine_sieve_may_have(engine, REPLICA_LOCALS, buf_str(&key));
	return find_stored(engine, meta, local, buf_str(&key), found);
}

bool engine_has_any(const struct engine *engine)
{
	return atomic_load_explicit(&engine->any, memory_order_relaxed);
}

/* In the store. One whose last row is removed, and that the store still has, counts: whoever asks looks closer. */
static bool is_stored(const struct look *look, struct str prefix)
{
	struct store_cursor *cursor;
	struct store_row row;
	struct store_range range = {.table = REPLICA_LOCALS, .index = -1, .prefix = prefix};
	if (store_scan(look->session, &range, &cursor, NULL) != 0)
		return false;
	bool found = store_next(cursor, &row, NULL) > 0;
	store_cursor_free(cursor);
	return found;
}

bool engine_has_type(struct engine *engine, struct str service, struct str type)
{
	char bytes[LIMIT_STORE_KEY_BYTES + 1];
	struct buf prefix = {bytes, 0, sizeof(bytes)};
	struct look look;
	struct str new;
	if (!engine_has_any(engine) || !is_short(service) || !is_short(type))
		return false;
	replica_local_prefix(service, type, &prefix);
	if (engine_sieve_knows(engine))
		return engine_sieve_has_type(engine, buf_str(&prefix));
	if (!engine_look_begin(engine, &look))
		return false;
	bool found = is_stored(&look, buf_str(&prefix));
	for (uint32_t i = 0; !found && engine_look_type(&look, i, &new); i++)
		found = str_equal(new, buf_str(&prefix));
	engine_look_end(&look);
	return found;
}

/* ---- Replacing --------------------------------------------------------------------------------------------------- */

static bool put_local(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct engine *engine = context;
	struct engine_found found;
	struct replica_id id;
	if ((place->kind != GLUE_PLACE_ID && place->kind != GLUE_PLACE_REFERENCE) || place->relation == GLUE_COMPOSITION)
		return false;
	if (!replica_id_parse(place->value, &id)) /* no need to ask the store, as most requests would */
		return false;
	if (!engine_find(engine, &(struct engine_name){.id = place->value}, &found) || found.local_id_bytes == 0)
		return false;
	buf_put(value, str_make(found.local_id, found.local_id_bytes));
	*quoted = found.local_id_quoted;
	return true;
}

struct glue_replacer engine_to_local(struct engine *engine)
{
	return (struct glue_replacer){engine, put_local};
}

/* ---- By what is said of a reference ---- */

/* Does a type have a name with variables for parts of it? One stands for a part without dots, the last one for all that is left. */
static bool fits(struct str pattern, struct str name)
{
	while (pattern.length > 0 && pattern.at[0] != '{') {
		if (name.length == 0 || name.at[0] != pattern.at[0])
			return false;
		pattern = str_make(pattern.at + 1, pattern.length - 1);
		name = str_make(name.at + 1, name.length - 1);
	}
	if (pattern.length == 0)
		return name.length == 0;
	const char *close = memchr(pattern.at, '}', pattern.length);
	size_t variable = close ? (size_t)(close + 1 - pattern.at) : pattern.length;
	struct str rest = str_make(pattern.at + variable, pattern.length - variable);
	if (rest.length == 0)
		return name.length > 0;
	const char *dot = name.length > 0 ? memchr(name.at, '.', name.length) : NULL;
	size_t part = dot ? (size_t)(dot - name.at) : name.length;
	return part > 0 && fits(rest, str_make(name.at + part, name.length - part));
}

static struct str service_of(struct str type)
{
	const char *dot = memchr(type.at, '.', type.length);
	return str_make(type.at, dot ? (size_t)(dot - type.at) : type.length);
}

static struct str after_service(struct str type)
{
	size_t taken = service_of(type).length + 1;
	return taken < type.length ? str_make(type.at + taken, type.length - taken) : STR("");
}

/* What a key of locals begins with. */
static bool split_type(struct str key, struct buf *service, struct buf *type)
{
	size_t first = key.length > 0 ? (unsigned char)key.at[0] : 0;
	size_t second = key.length > first + 1 ? (unsigned char)key.at[first + 1] : 0;
	buf_clear(service);
	buf_clear(type);
	if (key.length < first + second + 2)
		return false;
	buf_put(service, str_make(key.at + 1, first));
	buf_put(type, str_make(key.at + first + 2, second));
	return true;
}

/* The first row from `from` on, with the service and the type in its key; false: there is none. */
static bool next_type(struct store_session *session, struct str from, struct buf *service, struct buf *type)
{
	struct store_cursor *cursor;
	struct store_row row;
	struct store_range range = {.table = REPLICA_LOCALS, .index = -1, .from = from};
	if (store_scan(session, &range, &cursor, NULL) != 0)
		return false;
	bool found = store_next(cursor, &row, NULL) > 0 && split_type(row.key, service, type);
	store_cursor_free(cursor);
	return found;
}

/* Who has that id, of the types that may be meant. */
struct any {
	const struct engine_to_meta *to;
	const struct look *look;
	const struct glue_type *wanted;
	struct str id;
	struct engine_found *found; /* the first */
	uint32_t count;
};

static void try_type(struct any *any, struct str service, struct str type)
{
	struct str pattern = any->wanted ? glue_type_name(any->wanted) : STR("*.{any}");
	bool one_service = any->wanted && !str_equal(service_of(pattern), STR("*"));
	struct str wanted_service = one_service ? service_of(pattern) : any->wanted ? any->to->own.service : service;
	struct engine_name name = {.service = service, .type = type, .id = any->id};
	struct engine_found one;
	if (str_equal(service, wanted_service) && fits(after_service(pattern), after_service(type)) &&
	    find_local(any->look, &name, &one) && read_replicant(any->to->engine, any->look, &one) && any->count++ == 0)
		*any->found = one;
}

/* A reference to a type that is not known for sure: each of those that have replicas here is asked. Is the id that of two, nobody
 * can tell, and it is none's. */
static bool find_any(const struct engine_to_meta *to, const struct glue_type *wanted, struct str id,
                     struct engine_found *found)
{
	struct look look;
	struct buf service = {0}, type = {0}, from = {0};
	struct any any = {.to = to, .look = &look, .wanted = wanted, .id = id, .found = found};
	struct str new;
	if (!is_short(id) || id.length == 0 || !engine_has_any(to->engine) || !engine_look_begin(to->engine, &look))
		return false;
	for (uint32_t i = 0; i < LIMIT_ENGINE_TYPES && next_type(look.session, buf_str(&from), &service, &type); i++) {
		try_type(&any, buf_str(&service), buf_str(&type));
		buf_clear(&from);
		replica_local_prefix(buf_str(&service), buf_str(&type), &from);
		/* Past all of this type. */
		while (from.length < LIMIT_STORE_KEY_BYTES)
			buf_put_char(&from, (char)0xff);
	}
	for (uint32_t i = 0; i < LIMIT_ENGINE_TYPES && engine_look_type(&look, i, &new); i++)
		if (!is_stored(&look, new) && split_type(new, &service, &type))
			try_type(&any, buf_str(&service), buf_str(&type));
	found->by_meta_id = false;
	engine_look_end(&look);
	buf_free(&service);
	buf_free(&type);
	buf_free(&from);
	return any.count == 1;
}

/* By the path up to it, which says of which type it is and in which collection. */
static bool find_item(const struct engine_to_meta *to, const struct glue_match *item, struct str id,
                      struct engine_found *found)
{
	struct buf type = {0}, collection = {0};
	glue_type_put(item, &type);
	if (glue_type_ids_in_collection(item->type))
		engine_collection_put(to->engine, item, &collection);
	bool known = engine_find(
		to->engine, &(struct engine_name){item->service_name, buf_str(&type), buf_str(&collection), id}, found);
	buf_free(&type);
	buf_free(&collection);
	return known && !found->by_meta_id;
}

static bool find_own(const struct engine_to_meta *to, struct str id, struct engine_found *found)
{
	struct engine_name name = to->own;
	name.id = id;
	return engine_find(to->engine, &name, found) && !found->by_meta_id;
}

bool engine_place_find(const struct engine_to_meta *to, const struct glue_place *place, struct engine_found *found)
{
	if (place->kind != GLUE_PLACE_ID && place->kind != GLUE_PLACE_REFERENCE)
		return false;
	if (place->item)
		return find_item(to, place->item, place->value, found);
	if (place->kind == GLUE_PLACE_ID)
		return find_own(to, place->value, found);
	struct str type = place->type ? glue_type_name(place->type) : STR("");
	if (type.length == 0 || type.at[0] == '*' || memchr(type.at, '{', type.length))
		return find_any(to, place->type, place->value, found);
	struct engine_name name = {.service = service_of(type), .type = type, .collection = STR(""), .id = place->value};
	if (glue_type_ids_in_collection(place->type))
		name.collection = glue_type_only_collection(place->type);
	return engine_find(to->engine, &name, found) && !found->by_meta_id;
}

void engine_collection_put(struct engine *engine, const struct glue_match *match, struct buf *out)
{
	struct engine_to_meta to = {.engine = engine, .own = {.service = match->service_name}};
	struct glue_replacer meta = engine_to_meta(&to);
	glue_collection_splice(match, &meta, out);
}

/* ---- In texts ---- */

/* Each segment that is an id of this type: of a link that leads to nothing which the description knows. */
static bool put_own_segments(const struct engine_to_meta *to, struct str link, struct buf *value)
{
	bool replaced = false;
	while (link.length > 0) {
		const char *slash = memchr(link.at, '/', link.length);
		size_t segment = slash ? (size_t)(slash - link.at) : link.length;
		struct engine_found found;
		if (segment > 0 && find_own(to, str_make(link.at, segment), &found)) {
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

bool engine_link_put(const struct engine_to_meta *to, struct str link, const struct glue_replacer *replacer,
                     struct buf *value)
{
	size_t before = value->length;
	if (to->glue) {
		glue_splice_link(to->glue, to->own.service, link, replacer, value);
		if (!str_equal(str_make(value->at + before, value->length - before), link))
			return true;
		value->length = before;
	}
	return put_own_segments(to, link, value);
}

static bool put_meta(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	const struct engine_to_meta *to = context;
	struct engine_found found;
	*quoted = true;
	if (place->relation == GLUE_COMPOSITION) /* a part is of this site alone */
		return false;
	if (place->kind == GLUE_PLACE_LINK)
		return engine_link_put(to, place->value, &(struct glue_replacer){context, put_meta}, value);
	/* What its user chose is the same everywhere. */
	const struct glue_type *type = place->item ? place->item->type : place->type;
	if (type && glue_type_identity(type) == GLUE_CHOSEN)
		return false;
	if (!engine_place_find(to, place, &found))
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
