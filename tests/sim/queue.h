/* What is going to happen, the earliest first; of things at one time, the one that was put in first. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
	uint64_t at_us;
	uint64_t number; /* set by sim_queue_put() */
	uint32_t kind;
	uint32_t node;
	uint64_t argument; /* means something to the kind */
	void *packet;
};

struct sim_queue {
	struct sim_event *events; /* a heap with four children to a parent: flat, and kind to the cache */
	size_t count;
	size_t capacity;
	uint64_t numbers;
};

/* A zeroed queue is empty. Freeing it does not free packets. */
void sim_queue_free(struct sim_queue *queue);
void sim_queue_put(struct sim_queue *queue, struct sim_event event);
/* False: nothing is due until then (inclusive). */
bool sim_queue_take(struct sim_queue *queue, uint64_t until_us, struct sim_event *event);

#endif
