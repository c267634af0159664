/* A binary heap of the times, and a store of frames of one size with a list of the free ones. Both have a fixed capacity,
 * of which the system gives memory only for what was ever in use. */
#include "wan.h"

#include "base/check.h"

#include <stdlib.h>

struct entry {
	int64_t due_ns;
	uint64_t number; /* of its arrival: keeps the order of those due at one time */
	uint32_t frame;
};

struct wan_queue {
	uint32_t capacity, count;
	uint32_t free_count, used; /* frames [used, capacity) were never in use */
	uint64_t arrivals;
	struct entry *heap;
	uint32_t *free;
	struct wan_frame *frames;
};

struct wan_queue *wan_queue_new(uint32_t capacity)
{
	struct wan_queue *queue = calloc(1, sizeof(*queue));
	CHECK(queue != NULL && capacity > 0);
	queue->capacity = capacity;
	queue->heap = calloc(capacity, sizeof(queue->heap[0]));
	queue->free = calloc(capacity, sizeof(queue->free[0]));
	queue->frames = calloc(capacity, sizeof(queue->frames[0]));
	CHECK(queue->heap != NULL && queue->free != NULL && queue->frames != NULL);
	return queue;
}

void wan_queue_free(struct wan_queue *queue)
{
	if (queue == NULL)
		return;
	free(queue->heap);
	free(queue->free);
	free(queue->frames);
	free(queue);
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void rise(struct entry *heap, uint32_t at, struct entry entry)
{
	while (at > 0 && is_before(&entry, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = entry;
}

static void sink(struct entry *heap, uint32_t count, struct entry entry)
{
	uint32_t at = 0, child;
	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (is_before(&entry, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = entry;
}

struct wan_frame *wan_queue_put(struct wan_queue *queue, int64_t due_ns)
{
	if (queue->count == queue->capacity)
		return NULL;
	uint32_t frame = queue->free_count > 0 ? queue->free[--queue->free_count] : queue->used++;
	rise(queue->heap, queue->count++, (struct entry){due_ns, queue->arrivals++, frame});
	return &queue->frames[frame];
}

int64_t wan_queue_next_ns(const struct wan_queue *queue)
{
	return queue->count > 0 ? queue->heap[0].due_ns : WAN_NEVER;
}

const struct wan_frame *wan_queue_take(struct wan_queue *queue, int64_t now_ns)
{
	if (queue->count == 0 || queue->heap[0].due_ns > now_ns)
		return NULL;
	uint32_t frame = queue->heap[0].frame;
	queue->count--;
	if (queue->count > 0)
		sink(queue->heap, queue->count, queue->heap[queue->count]);
	queue->free[queue->free_count++] = frame;
	return &queue->frames[frame];
}

uint32_t wan_queue_count(const struct wan_queue *queue)
{
	return queue->count;
}
