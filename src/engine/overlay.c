/* What others look up, and the store does not have yet.
 *
 * Loops of the data plane read ids from the store (ids.c), and a commit of the store costs ten times one of the journal. So rows that
 * they read and that only the journal has are kept here too, in memory, until the store has them:
 *   1. a row is put or removed that is looked up (locals; relations; replicants, where what is said of this site changes): it is noted
 *   2. the journal has it: what was noted is published, and found from then on. Only then are users answered
 *   3. the store has it, half a second later at the most: nothing is published any more
 * Whoever looks something up asks here first, then the store. Both under one lock, and the store's session is begun under it: so it is never
 * too late for here and too early for there. Where nothing is published, which is most of the time, nobody takes the lock: the store
 * was complete before the number of rows became 0.
 *
 * What is here is in the journal, so it is at most as large. A store that fails loses what was noted; what was published is durable. */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct overlay_row {
	struct overlay_row *next; /* of those that are noted */
	uint8_t which;            /* of the maps */
	bool removed;
	struct str key, row;
	char bytes[];
};

static int which_of(enum replica_table table)
{
	switch ((int)table) {
	case REPLICA_REPLICANTS: return 0;
	case REPLICA_LOCALS: return 1;
	case ENGINE_RELATIONS: return 2;
	default: return -1;
	}
}

void engine_overlay_open(struct engine *engine)
{
	struct overlay *overlay = &engine->overlay;
	pthread_rwlock_init(&overlay->lock, NULL);
	for (int i = 0; i < ENGINE_OVERLAYS; i++)
		map_init(&overlay->rows[i], engine->options.hash_key);
	overlay->last = &overlay->noted;
}

static void drop_noted(struct overlay *overlay)
{
	while (overlay->noted) {
		struct overlay_row *row = overlay->noted;
		overlay->noted = row->next;
		free(row);
	}
	overlay->last = &overlay->noted;
}

static void drop_published(struct overlay *overlay)
{
	for (int i = 0; i < ENGINE_OVERLAYS; i++) {
		size_t cursor = 0;
		struct str key;
		void *row;
		while (map_next(&overlay->rows[i], &cursor, &key, &row))
			free(row);
		struct hash_key hash_key = overlay->rows[i].key;
		map_free(&overlay->rows[i]);
		map_init(&overlay->rows[i], hash_key);
	}
	for (uint32_t i = 0; i < overlay->types_count; i++)
		buf_free(&overlay->types[i]);
	overlay->types_count = 0;
}

void engine_overlay_close(struct engine *engine)
{
	drop_noted(&engine->overlay);
	drop_published(&engine->overlay);
	for (int i = 0; i < ENGINE_OVERLAYS; i++)
		map_free(&engine->overlay.rows[i]);
	free(engine->overlay.types);
	pthread_rwlock_destroy(&engine->overlay.lock);
}

/* ---- In the engine's thread ------------------------------------------------------------------------------------------ */

void engine_overlay_note(struct engine *engine, enum replica_table table, struct str key, const struct str *row)
{
	struct overlay *overlay = &engine->overlay;
	size_t length = row ? row->length : 0;
	struct overlay_row *noted = malloc(sizeof(*noted) + key.length + length);
	CHECK(noted && which_of(table) >= 0);
	*noted = (struct overlay_row){.which = (uint8_t)which_of(table),
	                              .removed = row == NULL,
	                              .key = str_make(noted->bytes, key.length),
	                              .row = str_make(noted->bytes + key.length, length)};
	memcpy(noted->bytes, key.at, key.length);
	if (length > 0)
		memcpy(noted->bytes + key.length, row->at, length);
	*overlay->last = noted;
	overlay->last = &noted->next;
}

bool engine_local_type(struct str key, struct str *prefix)
{
	size_t first = key.length > 0 ? (unsigned char)key.at[0] : 0;
	size_t length = key.length > first + 1 ? first + 2 + (unsigned char)key.at[first + 1] : key.length + 1;
	if (length > key.length)
		return false;
	*prefix = str_make(key.at, length);
	return true;
}

/* The types of what is published: service and type, as the keys of locals begin. */
static void publish_type(struct overlay *overlay, struct str key)
{
	struct str type;
	if (!engine_local_type(key, &type))
		return; /* nobody could find it by its type */
	for (uint32_t i = 0; i < overlay->types_count; i++)
		if (str_equal(buf_str(&overlay->types[i]), type))
			return;
	overlay->types = realloc(overlay->types, (overlay->types_count + 1) * sizeof(*overlay->types));
	CHECK(overlay->types);
	overlay->types[overlay->types_count] = (struct buf){0};
	buf_put(&overlay->types[overlay->types_count++], type);
}

void engine_overlay_publish(struct engine *engine)
{
	struct overlay *overlay = &engine->overlay;
	if (!overlay->noted)
		return;
	pthread_rwlock_wrlock(&overlay->lock);
	while (overlay->noted) {
		struct overlay_row *row = overlay->noted;
		struct map *rows = &overlay->rows[row->which];
		overlay->noted = row->next;
		free(map_remove(rows, row->key)); /* its key is a slice of it */
		map_set(rows, row->key, row);
		if (row->which == which_of(REPLICA_LOCALS) && !row->removed)
			publish_type(overlay, row->key);
	}
	overlay->last = &overlay->noted;
	atomic_store_explicit(&overlay->any, true, memory_order_release);
	pthread_rwlock_unlock(&overlay->lock);
}

void engine_overlay_settled(struct engine *engine, bool done)
{
	struct overlay *overlay = &engine->overlay;
	drop_noted(overlay);
	if (!done || !atomic_load_explicit(&overlay->any, memory_order_relaxed))
		return;
	pthread_rwlock_wrlock(&overlay->lock);
	drop_published(overlay);
	atomic_store_explicit(&overlay->any, false, memory_order_release);
	pthread_rwlock_unlock(&overlay->lock);
}

/* ---- In any thread ---------------------------------------------------------------------------------------------------- */

bool engine_look_begin(struct engine *engine, struct look *look)
{
	struct overlay *overlay = &engine->overlay;
	*look = (struct look){.overlay = atomic_load_explicit(&overlay->any, memory_order_acquire) ? overlay : NULL};
	if (look->overlay)
		pthread_rwlock_rdlock(&overlay->lock);
	if (store_begin_read(engine->store, &look->session, NULL) == 0)
		return true;
	if (look->overlay)
		pthread_rwlock_unlock(&overlay->lock);
	return false;
}

void engine_look_end(struct look *look)
{
	store_abort(look->session);
	if (look->overlay)
		pthread_rwlock_unlock(&look->overlay->lock);
}

bool engine_look_get(const struct look *look, enum replica_table table, struct str key, struct str *row)
{
	const struct overlay_row *found = look->overlay ? map_get(&look->overlay->rows[which_of(table)], key) : NULL;
	if (!found)
		return store_get(look->session, table, key, row, NULL) == 0;
	*row = found->row;
	return !found->removed;
}

static int compare_keys(const void *a, const void *b)
{
	const struct overlay_row *const *x = a, *const *y = b;
	return str_compare((*x)->key, (*y)->key);
}

static bool starts_with(struct str text, struct str prefix)
{
	return text.length >= prefix.length && memcmp(text.at, prefix.at, prefix.length) == 0;
}

/* Those that are published, sorted: half a second's worth of rows at the most are gone through. */
static uint32_t published(const struct look *look, enum replica_table table, struct str prefix,
                          const struct overlay_row ***out)
{
	const struct overlay_row **rows = NULL;
	uint32_t count = 0, capacity = 0;
	size_t cursor = 0;
	struct str key;
	void *row;
	while (look->overlay && map_next(&look->overlay->rows[which_of(table)], &cursor, &key, &row)) {
		if (!starts_with(key, prefix))
			continue;
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			rows = realloc(rows, capacity * sizeof(*rows));
			CHECK(rows);
		}
		rows[count++] = row;
	}
	if (count > 0)
		qsort(rows, count, sizeof(*rows), compare_keys);
	*out = rows;
	return count;
}

bool engine_look_scan(const struct look *look, enum replica_table table, struct str prefix,
                      bool (*each)(void *context, struct str key, struct str row), void *context)
{
	struct store_cursor *cursor;
	struct store_row row;
	struct store_range range = {.table = (uint32_t)table, .index = -1, .prefix = prefix};
	const struct overlay_row **rows;
	if (store_scan(look->session, &range, &cursor, NULL) != 0)
		return false;
	uint32_t count = published(look, table, prefix, &rows), at = 0;
	int code = 1;
	bool more = true;
	/* Both are in order: of each, the next; what is published counts where both have it. */
	while (more && (code = store_next(cursor, &row, NULL)) > 0) {
		for (; more && at < count && str_compare(rows[at]->key, row.key) < 0; at++)
			more = rows[at]->removed || each(context, rows[at]->key, rows[at]->row);
		bool newer = at < count && str_equal(rows[at]->key, row.key);
		if (more && !newer)
			more = each(context, row.key, row.row);
	}
	for (; more && code == 0 && at < count; at++)
		more = rows[at]->removed || each(context, rows[at]->key, rows[at]->row);
	free(rows);
	store_cursor_free(cursor);
	return code >= 0;
}

bool engine_look_type(const struct look *look, uint32_t index, struct str *type)
{
	if (!look->overlay || index >= look->overlay->types_count)
		return false;
	*type = buf_str(&look->overlay->types[index]);
	return true;
}
