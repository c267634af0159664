/* The engine of the simulator: virtual time, nodes that exchange datagrams, processes that die, pause and lag.
 *
 * It knows nothing of what the nodes do: a client says what happens when a datagram comes or a time is reached. All
 * that happens follows from the seed; sim->digest sums it up. One thread, one process; time is in µs from 0.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/network.h"
#include "sim/queue.h"

#include "base/str.h"

enum { SIM_INBOX = 256 }; /* datagrams that wait for a paused process; more are lost, as with a socket's buffer */

struct sim_client {
	void *context;
	/* Called for running nodes only. */
	void (*receive)(void *context, uint32_t node, uint32_t from, struct str bytes);
	/* The time that node's due() asked for has come. */
	void (*tick)(void *context, uint32_t node);
	/* When the node wants to be called next; UINT64_MAX: never. Asked after each of the calls above. */
	uint64_t (*due)(void *context, uint32_t node);
	/* What sim_at() asked for. */
	void (*act)(void *context, uint64_t what);
};

struct sim_node {
	bool up;
	uint32_t generation; /* of the process: what was meant for an earlier one is dropped */
	uint32_t inbox;
	uint64_t timer_at_us; /* of the timer that counts; UINT64_MAX: none */
	uint64_t paused_until_us;
	uint64_t lag_us; /* everything is handled so much late */
	uint64_t ticks;
};

struct sim {
	uint64_t now_us;
	uint64_t digest;
	struct sim_client client;
	struct sim_network network;
	struct sim_queue queue;
	struct sim_node *nodes;
	uint64_t datagrams, delivered, overflowed, events;
	uint64_t spins; /* ticks after which a node was due at once again */
};

void sim_init(struct sim *sim, const struct sim_network_options *options, struct sim_client client);
void sim_free(struct sim *sim);

/* The process of a node. One that stops loses what waits for it; datagrams under way reach the next one. */
void sim_start(struct sim *sim, uint32_t node);
void sim_stop(struct sim *sim, uint32_t node);
void sim_pause(struct sim *sim, uint32_t node, uint64_t until_us);
void sim_lag(struct sim *sim, uint32_t node, uint64_t lag_us);
/* After something from outside was done to a node: asks due() again. */
void sim_poke(struct sim *sim, uint32_t node);

void sim_send(struct sim *sim, uint32_t from, uint32_t to, struct str bytes);
void sim_at(struct sim *sim, uint64_t at_us, uint64_t what);
/* Adds something that happened to the digest. */
void sim_note(struct sim *sim, uint64_t what);

/* Until then, inclusive. */
void sim_run(struct sim *sim, uint64_t until_us);

#endif
