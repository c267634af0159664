/* Where lists have to be asked for, by type (DESIGN 8): sites that hold what this one is a witness of, and sites that have other parts of what is
 * divided.
 *
 * A list of volumes at a witness is to show volumes of other sites. Which sites those are cannot be read from all replicants at each list, so
 * it is counted: for each type, kind and site, how many live replicants there are. Nearly all types have none, and are told so by one
 * look at memory.
 *
 *   1. a row of a replicant is put or removed: what the old one counted is taken off, what the new one counts is added
 *   2. the numbers of the type are put as one row, in the same commit: they are right after whatever crash
 *   3. a start reads these rows; and after a commit that failed they are read again
 *
 * Whoever asks may be told of a site before the commit: it is asked in vain. Rows, in numbers of the most significant byte first:
 *
 *     key   service and type, as keys of locals begin
 *     row   version (1), then for each: kind (1), site (8), count (8)
 *     key   one zero byte; row: version. The replicants of this store were counted. Where it is not there, a version that did not
 *           count has made them: all are gone through, once
 */
#include "engine/engine_int.h"

#include "base/bytes.h"
#include "base/check.h"

#include <stdlib.h>

enum { ROW_VERSION = 1, KINDS = 2 };

enum kind { HELD, PART };

struct spread_site {
	enum kind kind;
	site_id site;
	uint64_t count;
};

struct spread_type {
	struct str prefix;
	struct spread_site *sites;
	uint32_t count, capacity;
	char bytes[];
};

static const enum replica_table TABLE = (enum replica_table)ENGINE_SPREAD;
static const struct str counted_key = STR_INIT("\0");

/* ---- In memory ------------------------------------------------------------------------------------------------------- */

void engine_spread_open(struct engine *engine)
{
	pthread_rwlock_init(&engine->spread.lock, NULL);
	map_init(&engine->spread.types, engine->options.hash_key);
}

static void drop_types(struct engine *engine)
{
	struct spread *spread = &engine->spread;
	size_t cursor = 0;
	struct str key;
	void *value;
	atomic_store_explicit(&spread->any, false, memory_order_release);
	while (map_next(&spread->types, &cursor, &key, &value)) {
		free(((struct spread_type *)value)->sites);
		free(value);
	}
	map_free(&spread->types);
	map_init(&spread->types, engine->options.hash_key);
}

void engine_spread_close(struct engine *engine)
{
	drop_types(engine);
	map_free(&engine->spread.types);
	pthread_rwlock_destroy(&engine->spread.lock);
}

static struct spread_type *type_of(struct spread *spread, struct str prefix)
{
	struct spread_type *type = map_get(&spread->types, prefix);
	if (type)
		return type;
	type = calloc(1, sizeof(*type) + prefix.length);
	CHECK(type);
	memcpy(type->bytes, prefix.at, prefix.length);
	type->prefix = str_make(type->bytes, prefix.length);
	map_set(&spread->types, type->prefix, type);
	return type;
}

static struct spread_site *site_of(struct spread_type *type, enum kind kind, site_id site)
{
	for (uint32_t i = 0; i < type->count; i++)
		if (type->sites[i].kind == kind && type->sites[i].site == site)
			return &type->sites[i];
	if (type->count == type->capacity) {
		type->capacity = type->capacity ? 2 * type->capacity : 4;
		type->sites = realloc(type->sites, type->capacity * sizeof(*type->sites));
		CHECK(type->sites);
	}
	type->sites[type->count] = (struct spread_site){.kind = kind, .site = site};
	return &type->sites[type->count++];
}

static void add(struct spread *spread, struct str prefix, const struct replica_spread *about, int change)
{
	struct spread_type *type = about->others_count > 0 ? type_of(spread, prefix) : NULL;
	for (uint32_t i = 0; i < about->others_count; i++) {
		struct spread_site *site = site_of(type, about->witness ? HELD : PART, about->others[i]);
		if (change > 0)
			site->count++;
		else if (site->count > 0) /* less would be damage, which is not made worse */
			site->count--;
		if (site->count == 0)
			*site = type->sites[--type->count];
	}
}

static void note_any(struct spread *spread)
{
	size_t cursor = 0;
	struct str key;
	void *value;
	bool any = false;
	while (!any && map_next(&spread->types, &cursor, &key, &value))
		any = ((const struct spread_type *)value)->count > 0;
	atomic_store_explicit(&spread->any, any, memory_order_release);
}

/* ---- Changes --------------------------------------------------------------------------------------------------------- */

static void store_type(struct engine *engine, struct str prefix)
{
	const struct spread_type *type = prefix.length > 0 ? map_get(&engine->spread.types, prefix) : NULL;
	struct buf row = {0};
	if (!type)
		return;
	put_number(&row, ROW_VERSION, 1);
	for (uint32_t i = 0; i < type->count; i++) {
		put_number(&row, type->sites[i].kind, 1);
		put_number(&row, type->sites[i].site, 8);
		put_number(&row, type->sites[i].count, 8);
	}
	if (type->count > 0)
		engine_row_put(engine, TABLE, prefix, buf_str(&row));
	else
		engine_row_remove(engine, TABLE, prefix);
	buf_free(&row);
}

static bool is_same(const struct spread_change *change)
{
	const struct replica_spread *before = &change->before, *now = &change->now;
	return before->witness == now->witness && before->others_count == now->others_count &&
	       memcmp(before->others, now->others, now->others_count * sizeof(now->others[0])) == 0 &&
	       str_equal(buf_str(&change->before_type), buf_str(&change->type));
}

static void release(struct spread_change *change)
{
	buf_free(&change->before_type);
	buf_free(&change->type);
}

bool engine_spread_look(struct engine *engine, struct str key, const struct str *row, struct spread_change *change)
{
	struct str before;
	change->before_type = change->type = (struct buf){0};
	change->before.others_count = change->now.others_count = 0;
	change->before.witness = change->now.witness = false;
	if (row && !replica_spread_parse(*row, engine->options.self, &change->now, &change->type))
		return false;
	if (engine_row_before(engine, REPLICA_REPLICANTS, key, &before) == 0)
		replica_spread_parse(before, engine->options.self, &change->before, &change->before_type);
	if (change->before.others_count + change->now.others_count > 0 && !is_same(change))
		return true;
	release(change);
	return false;
}

void engine_spread_apply(struct engine *engine, struct spread_change *change)
{
	struct spread *spread = &engine->spread;
	struct str before = buf_str(&change->before_type), now = buf_str(&change->type);
	pthread_rwlock_wrlock(&spread->lock);
	add(spread, now, &change->now, 1);
	add(spread, before, &change->before, -1);
	note_any(spread);
	pthread_rwlock_unlock(&spread->lock);
	store_type(engine, now);
	if (!str_equal(before, now))
		store_type(engine, before);
	release(change);
}

/* ---- At a start ------------------------------------------------------------------------------------------------------ */

static bool load_row(void *context, struct str key, struct str row)
{
	struct engine *engine = context;
	struct reader reader = reader_of(row);
	if (str_equal(key, counted_key))
		return true;
	if (read_8(&reader) != ROW_VERSION)
		return true;
	struct spread_type *type = type_of(&engine->spread, key);
	while (reader.left > 0) {
		uint8_t kind = read_8(&reader);
		site_id site = read_64(&reader);
		uint64_t count = read_64(&reader);
		if (reader.failed)
			break;
		if (kind < KINDS && count > 0)
			site_of(type, (enum kind)kind, site)->count = count;
	}
	return true;
}

static bool count_row(void *context, struct str key, struct str row)
{
	struct engine *engine = context;
	struct replica_spread about;
	struct buf prefix = {0};
	(void)key;
	replica_spread_parse(row, engine->options.self, &about, &prefix);
	add(&engine->spread, buf_str(&prefix), &about, 1);
	buf_free(&prefix);
	return true;
}

static void store_all(struct engine *engine)
{
	size_t cursor = 0;
	struct str key;
	void *value;
	while (map_next(&engine->spread.types, &cursor, &key, &value))
		store_type(engine, key);
	engine_row_put(engine, TABLE, counted_key, STR("\1"));
}

int engine_spread_load(struct engine *engine, struct err *err)
{
	struct buf counted = {0};
	pthread_rwlock_wrlock(&engine->spread.lock);
	drop_types(engine);
	int code = engine_row_get(engine, TABLE, counted_key, &counted);
	bool anew = code == ERR_NOT_FOUND;
	if (code == 0 || anew)
		code = anew ? engine_row_scan(engine, REPLICA_REPLICANTS, STR(""), STR(""), count_row, engine)
		            : engine_row_scan(engine, TABLE, STR(""), STR(""), load_row, engine);
	note_any(&engine->spread);
	pthread_rwlock_unlock(&engine->spread.lock);
	buf_free(&counted);
	if (code == 0 && anew)
		store_all(engine);
	if (code)
		*err = engine->failure;
	return code;
}

/* ---- In any thread --------------------------------------------------------------------------------------------------- */

static void tell(const struct spread_type *type, struct engine_spread *spread)
{
	for (uint32_t i = 0; i < type->count; i++) {
		bool told = false;
		for (uint32_t k = 0; k < spread->count && !told; k++)
			told = spread->sites[k] == type->sites[i].site;
		if (!told && spread->count < LIMIT_ENGINE_SPREAD)
			spread->sites[spread->count++] = type->sites[i].site;
		spread->divided |= type->sites[i].kind == PART;
	}
}

bool engine_spread(struct engine *engine, struct str service, struct str type, struct engine_spread *spread)
{
	char bytes[2 * (LIMIT_REPLICA_NAME_BYTES + 1) + 1];
	struct buf prefix = {bytes, 0, sizeof(bytes)};
	spread->count = 0;
	spread->divided = false;
	if (!atomic_load_explicit(&engine->spread.any, memory_order_acquire) || service.length > LIMIT_REPLICA_NAME_BYTES ||
	    type.length > LIMIT_REPLICA_NAME_BYTES)
		return false;
	replica_local_prefix(service, type, &prefix);
	pthread_rwlock_rdlock(&engine->spread.lock);
	const struct spread_type *found = map_get(&engine->spread.types, buf_str(&prefix));
	if (found)
		tell(found, spread);
	pthread_rwlock_unlock(&engine->spread.lock);
	return spread->count > 0;
}
