#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "limits.h"
#include "memory.h"

struct store {
	char *path;
	int dir;
	json_t *records;              /* id to record, in the order of creation */
	pthread_mutex_t records_lock; /* held for a lookup, never while a disk works */
	pthread_mutex_t change_lock;  /* one change of existing records at a time */
};

static const char *member(const json_t *record, const char *name)
{
	const char *text = json_string_value(json_object_get(record, name));
	return text == NULL ? "" : text;
}

/* ---- reading it all at the start ---------------------------------------------------------------------------------- */

static json_t *read_record(struct store *store, const char *name)
{
	json_error_t why = {.text = "", .line = 0};
	int fd = openat(store->dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "cheops-sample: %s/%s: %s\n", store->path, name, strerror(errno));
		return NULL;
	}
	json_t *record = json_loadfd(fd, 0, &why);
	close(fd);
	const char *id = member(record, "id");
	size_t length = strlen(id);
	if (length > 0 && strncmp(id, name, length) == 0 && strcmp(name + length, ".json") == 0)
		return record;
	fprintf(stderr, "cheops-sample: %s/%s:%d: not a record: %s\n", store->path, name, why.line,
	        record == NULL ? why.text : "its \"id\" is not the file's name");
	json_decref(record);
	return NULL;
}

struct loading {
	struct store *store;
	json_t *found; /* array */
};

static int load_one(void *context, const char *name)
{
	struct loading *loading = context;
	json_t *record = read_record(loading->store, name);
	if (record == NULL)
		return -EINVAL;
	json_array_append_new(loading->found, record);
	return 0;
}

static int by_creation(const void *left, const void *right)
{
	const json_t *a = *(json_t *const *)left;
	const json_t *b = *(json_t *const *)right;
	int order = strcmp(member(a, "created"), member(b, "created"));
	return order != 0 ? order : strcmp(member(a, "id"), member(b, "id"));
}

/* A directory knows no order, and a list that changed its order at a restart would surprise. */
static void keep_sorted(struct store *store, const json_t *found)
{
	size_t count = json_array_size(found);
	json_t **sorted = need(calloc(count + 1, sizeof(json_t *)));
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(found, i);
	qsort(sorted, count, sizeof(json_t *), by_creation);
	for (size_t i = 0; i < count; i++)
		json_object_set(store->records, member(sorted[i], "id"), sorted[i]);
	free(sorted);
}

static int load(struct store *store)
{
	struct loading loading = {.store = store, .found = need(json_array())};
	int status = disk_each(store->dir, load_one, &loading);
	if (status == 0)
		keep_sorted(store, loading.found);
	json_decref(loading.found);
	return status;
}

struct store *store_open(const char *data, const char *name)
{
	struct store *store = NEW(struct store);
	store->path = text_of("%s/%s", data, name);
	store->records = need(json_object());
	pthread_mutex_init(&store->records_lock, NULL);
	pthread_mutex_init(&store->change_lock, NULL);
	store->dir = disk_open_dir(store->path);
	int status = store->dir < 0 ? store->dir : load(store);
	if (status == 0)
		return store;
	fprintf(stderr, "cheops-sample: cannot read %s: %s\n", store->path, strerror(-status));
	store_close(store);
	return NULL;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	if (store->dir >= 0)
		close(store->dir);
	pthread_mutex_destroy(&store->records_lock);
	pthread_mutex_destroy(&store->change_lock);
	json_decref(store->records);
	free(store->path);
	free(store);
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

json_t *store_get(struct store *store, const char *id)
{
	pthread_mutex_lock(&store->records_lock);
	json_t *record = json_object_get(store->records, id);
	json_t *copy = record == NULL ? NULL : need(json_deep_copy(record));
	pthread_mutex_unlock(&store->records_lock);
	return copy;
}

json_t *store_list(struct store *store)
{
	json_t *list = need(json_array());
	const char *id;
	json_t *record;
	pthread_mutex_lock(&store->records_lock);
	json_object_foreach(store->records, id, record)
	{
		json_array_append_new(list, need(json_deep_copy(record)));
	}
	pthread_mutex_unlock(&store->records_lock);
	return list;
}

bool store_has(struct store *store, const char *id)
{
	pthread_mutex_lock(&store->records_lock);
	bool has = json_object_get(store->records, id) != NULL;
	pthread_mutex_unlock(&store->records_lock);
	return has;
}

size_t store_count(struct store *store)
{
	pthread_mutex_lock(&store->records_lock);
	size_t count = json_object_size(store->records);
	pthread_mutex_unlock(&store->records_lock);
	return count;
}

static bool has_room_for(struct store *store, const char *id)
{
	pthread_mutex_lock(&store->records_lock);
	bool room = json_object_size(store->records) < LIMIT_RECORDS || json_object_get(store->records, id) != NULL;
	pthread_mutex_unlock(&store->records_lock);
	return room;
}

/* ---- changing ----------------------------------------------------------------------------------------------------- */

int store_put(struct store *store, json_t *record)
{
	const char *id = member(record, "id");
	if (!has_room_for(store, id))
		return -ENOSPC;
	char *name = text_of("%s.json", id);
	char *text = need(json_dumps(record, JSON_INDENT(2)));
	int status = disk_replace(store->dir, name, text, strlen(text));
	free(text);
	free(name);
	if (status != 0)
		return status;
	json_t *copy = need(json_deep_copy(record));
	/* Seen by others only now that it can no longer be lost. */
	pthread_mutex_lock(&store->records_lock);
	json_object_set_new(store->records, id, copy);
	pthread_mutex_unlock(&store->records_lock);
	return 0;
}

int store_remove(struct store *store, const char *id)
{
	if (!store_has(store, id))
		return -ENOENT;
	char *name = text_of("%s.json", id);
	int status = disk_remove(store->dir, name);
	free(name);
	if (status == 0) {
		pthread_mutex_lock(&store->records_lock);
		json_object_del(store->records, id);
		pthread_mutex_unlock(&store->records_lock);
	}
	return status;
}

void store_lock(struct store *store)
{
	pthread_mutex_lock(&store->change_lock);
}

void store_unlock(struct store *store)
{
	pthread_mutex_unlock(&store->change_lock);
}
