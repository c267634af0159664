#include "sim/queue.h"

#include "base/check.h"

#include <stdlib.h>

enum { CHILDREN = 4, FIRST_CAPACITY = 256 };

void sim_queue_free(struct sim_queue *queue)
{
	free(queue->events);
	*queue = (struct sim_queue){0};
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

static void grow(struct sim_queue *queue)
{
	queue->capacity = queue->capacity ? queue->capacity * 2 : FIRST_CAPACITY;
	queue->events = realloc(queue->events, queue->capacity * sizeof(*queue->events));
	CHECK(queue->events != NULL);
}

void sim_queue_put(struct sim_queue *queue, struct sim_event event)
{
	if (queue->count == queue->capacity)
		grow(queue);
	event.number = ++queue->numbers;
	size_t at = queue->count++;
	while (at > 0) {
		size_t parent = (at - 1) / CHILDREN;
		if (!before(&event, &queue->events[parent]))
			break;
		queue->events[at] = queue->events[parent];
		at = parent;
	}
	queue->events[at] = event;
}

/* Lets `event` sink from the top to where it belongs. */
static void sink(struct sim_queue *queue, struct sim_event event)
{
	size_t at = 0;
	for (;;) {
		size_t first = at * CHILDREN + 1, best = first;
		if (first >= queue->count)
			break;
		for (size_t child = first + 1; child < first + CHILDREN && child < queue->count; child++) {
			if (before(&queue->events[child], &queue->events[best]))
				best = child;
		}
		if (!before(&queue->events[best], &event))
			break;
		queue->events[at] = queue->events[best];
		at = best;
	}
	queue->events[at] = event;
}

bool sim_queue_take(struct sim_queue *queue, uint64_t until_us, struct sim_event *event)
{
	if (queue->count == 0 || queue->events[0].at_us > until_us)
		return false;
	*event = queue->events[0];
	struct sim_event last = queue->events[--queue->count];
	if (queue->count > 0)
		sink(queue, last);
	return true;
}
