/* What the loops found out about the paths to other sites, for readers in other threads.
 *
 * Each loop judges for itself, by what came back to it; here the last word of any of them counts. A word holds for a while:
 * who no longer works with a site no longer knows.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { HOLDS_MS = 20 * 1000 };

struct entry {
	site_id id;
	enum proxy_path_state state;
	uint64_t told_ms;
	uint64_t answer_ms;
	uint64_t rtt_us, variation_us;
};

struct proxy_paths {
	pthread_mutex_t lock;
	struct map map;
};

struct proxy_paths *proxy_paths_new(struct hash_key key)
{
	struct proxy_paths *paths = calloc(1, sizeof(*paths));
	CHECK(paths);
	pthread_mutex_init(&paths->lock, NULL);
	map_init(&paths->map, key);
	return paths;
}

void proxy_paths_free(struct proxy_paths *paths)
{
	struct str key;
	void *value;
	if (!paths)
		return;
	for (size_t cursor = 0; map_next(&paths->map, &cursor, &key, &value);)
		free(value);
	map_free(&paths->map);
	pthread_mutex_destroy(&paths->lock);
	free(paths);
}

static struct str key_of(const site_id *id)
{
	return str_make((const char *)id, sizeof(*id));
}

void proxy_paths_tell(struct proxy_paths *paths, site_id id, const struct proxy_health *health, uint64_t now_us)
{
	if (!paths)
		return;
	pthread_mutex_lock(&paths->lock);
	struct entry *entry = map_get(&paths->map, key_of(&id));
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		CHECK(entry);
		entry->id = id;
		map_set(&paths->map, key_of(&entry->id), entry);
	}
	entry->state = health->state;
	entry->told_ms = now_us / 1000;
	if (health->answer_us / 1000 > entry->answer_ms)
		entry->answer_ms = health->answer_us / 1000;
	if (health->rtt_us > 0) {
		entry->rtt_us = health->rtt_us;
		entry->variation_us = health->variation_us;
	}
	pthread_mutex_unlock(&paths->lock);
}

void proxy_paths_forget(struct proxy_paths *paths, site_id id)
{
	if (!paths)
		return;
	pthread_mutex_lock(&paths->lock);
	free(map_remove(&paths->map, key_of(&id)));
	pthread_mutex_unlock(&paths->lock);
}

bool proxy_paths_read(struct proxy_paths *paths, site_id id, struct proxy_path *path)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now); /* the clock of the loops */
	uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	*path = (struct proxy_path){.state = PROXY_PATH_UNKNOWN};
	if (!paths)
		return false;
	pthread_mutex_lock(&paths->lock);
	const struct entry *entry = map_get(&paths->map, key_of(&id));
	if (entry) {
		bool holds = now_ms < entry->told_ms + HOLDS_MS;
		path->state = holds ? entry->state : PROXY_PATH_UNKNOWN;
		path->answered = entry->answer_ms > 0;
		path->answer_age_ms = now_ms > entry->answer_ms ? now_ms - entry->answer_ms : 0;
		path->rtt_us = entry->rtt_us;
		path->variation_us = entry->variation_us;
	}
	pthread_mutex_unlock(&paths->lock);
	return entry != NULL;
}

const char *proxy_path_state_name(enum proxy_path_state state)
{
	static const char *const names[] = {
		[PROXY_PATH_UNKNOWN] = "unknown", [PROXY_PATH_UP] = "up", [PROXY_PATH_DOWN] = "down"};
	return names[state];
}
