#include "sim/sim.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

/* The life of a datagram: SEND puts an ARRIVE into the queue, for each copy that the network lets through. On arrival a
 * running process handles it at once; a paused or lagging one finds it in its inbox (HANDLE) later. */
enum { EVENT_ARRIVE, EVENT_HANDLE, EVENT_TIMER, EVENT_ACT };

struct packet {
	uint32_t from;
	uint32_t length;
	char bytes[];
};

void sim_init(struct sim *sim, const struct sim_network_options *options, struct sim_client client)
{
	*sim = (struct sim){.client = client, .digest = options->seed};
	sim_network_init(&sim->network, options);
	sim->nodes = calloc(options->nodes, sizeof(*sim->nodes));
	CHECK(sim->nodes != NULL);
	for (uint32_t i = 0; i < options->nodes; i++)
		sim->nodes[i].timer_at_us = UINT64_MAX;
}

void sim_free(struct sim *sim)
{
	struct sim_event event;
	while (sim_queue_take(&sim->queue, UINT64_MAX, &event))
		free(event.packet);
	sim_queue_free(&sim->queue);
	sim_network_free(&sim->network);
	free(sim->nodes);
	*sim = (struct sim){0};
}

void sim_note(struct sim *sim, uint64_t what)
{
	sim->digest = sim_mix(sim->digest ^ sim->now_us, what);
}

void sim_at(struct sim *sim, uint64_t at_us, uint64_t what)
{
	CHECK(at_us >= sim->now_us);
	sim_queue_put(&sim->queue, (struct sim_event){.at_us = at_us, .kind = EVENT_ACT, .argument = what});
}

/* ---- Processes --------------------------------------------------------------------------------------------------- */

void sim_start(struct sim *sim, uint32_t node)
{
	struct sim_node *it = &sim->nodes[node];
	CHECK(!it->up);
	*it =
		(struct sim_node){.up = true, .generation = it->generation + 1, .timer_at_us = UINT64_MAX, .ticks = it->ticks};
	sim_poke(sim, node);
}

void sim_stop(struct sim *sim, uint32_t node)
{
	sim->nodes[node].up = false;
	sim->nodes[node].timer_at_us = UINT64_MAX;
}

void sim_pause(struct sim *sim, uint32_t node, uint64_t until_us)
{
	sim->nodes[node].paused_until_us = until_us;
}

void sim_lag(struct sim *sim, uint32_t node, uint64_t lag_us)
{
	sim->nodes[node].lag_us = lag_us;
}

static void put_timer(struct sim *sim, uint32_t node, uint64_t at_us)
{
	sim->nodes[node].timer_at_us = at_us;
	uint64_t generation = sim->nodes[node].generation;
	sim_queue_put(&sim->queue,
	              (struct sim_event){.at_us = at_us, .kind = EVENT_TIMER, .node = node, .argument = generation});
}

/* Only the earliest timer of a node counts; one that became too early finds out when it rings. */
void sim_poke(struct sim *sim, uint32_t node)
{
	if (!sim->nodes[node].up)
		return;
	uint64_t due_us = sim->client.due(sim->client.context, node);
	if (due_us < sim->nodes[node].timer_at_us)
		put_timer(sim, node, due_us > sim->now_us ? due_us : sim->now_us);
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

static struct packet *packet_new(uint32_t from, struct str bytes)
{
	struct packet *packet = malloc(sizeof(*packet) + bytes.length);
	CHECK(packet != NULL);
	packet->from = from;
	packet->length = (uint32_t)bytes.length;
	if (bytes.length > 0)
		memcpy(packet->bytes, bytes.at, bytes.length);
	return packet;
}

void sim_send(struct sim *sim, uint32_t from, uint32_t to, struct str bytes)
{
	uint64_t delays_us[SIM_COPIES];
	uint32_t copies = sim_network_route(&sim->network, from, to, delays_us);
	sim->datagrams++;
	for (uint32_t i = 0; i < copies; i++) {
		struct sim_event event = {.at_us = sim->now_us + delays_us[i], .kind = EVENT_ARRIVE, .node = to};
		event.packet = packet_new(from, bytes);
		sim_queue_put(&sim->queue, event);
	}
}

static uint64_t packet_digest(const struct packet *packet)
{
	static const struct hash_key key = {1, 2};
	return hash_bytes(&key, str_make(packet->bytes, packet->length)) + packet->from;
}

static void handle(struct sim *sim, const struct sim_event *event)
{
	struct packet *packet = event->packet;
	sim->delivered++;
	sim_note(sim, sim_mix(event->node, packet_digest(packet)));
	sim->client.receive(sim->client.context, event->node, packet->from, str_make(packet->bytes, packet->length));
	free(packet);
	sim_poke(sim, event->node);
}

/* Puts a datagram that came, or comes out of the inbox too early, where it waits. False: it can be handled now. */
static bool waits(struct sim *sim, struct sim_event event)
{
	const struct sim_node *node = &sim->nodes[event.node];
	uint64_t lag_us = event.kind == EVENT_ARRIVE ? node->lag_us : 0;
	uint64_t ready_us = sim->now_us + lag_us;
	if (node->paused_until_us > ready_us)
		ready_us = node->paused_until_us;
	if (ready_us <= sim->now_us)
		return false;
	event.at_us = ready_us;
	event.kind = EVENT_HANDLE;
	event.argument = node->generation;
	sim_queue_put(&sim->queue, event);
	return true;
}

static void arrive(struct sim *sim, const struct sim_event *event)
{
	struct sim_node *node = &sim->nodes[event->node];
	if (!node->up) {
		free(event->packet);
	} else if (node->inbox >= SIM_INBOX) {
		sim->overflowed++;
		free(event->packet);
	} else if (waits(sim, *event)) {
		node->inbox++;
	} else {
		handle(sim, event);
	}
}

static void take_from_inbox(struct sim *sim, const struct sim_event *event)
{
	struct sim_node *node = &sim->nodes[event->node];
	if (!node->up || node->generation != event->argument) {
		free(event->packet);
	} else if (!waits(sim, *event)) {
		node->inbox--;
		handle(sim, event);
	}
}

static void ring(struct sim *sim, const struct sim_event *event)
{
	struct sim_node *node = &sim->nodes[event->node];
	if (!node->up || node->generation != event->argument || node->timer_at_us != event->at_us)
		return;
	uint64_t due_us = sim->client.due(sim->client.context, event->node);
	uint64_t wanted_us = due_us == UINT64_MAX ? due_us : due_us + node->lag_us;
	if (node->paused_until_us > wanted_us)
		wanted_us = node->paused_until_us;
	node->timer_at_us = UINT64_MAX;
	if (wanted_us > sim->now_us) {
		if (wanted_us != UINT64_MAX)
			put_timer(sim, event->node, wanted_us);
		return;
	}
	node->ticks++;
	sim->client.tick(sim->client.context, event->node);
	if (!node->up)
		return;
	if (sim->client.due(sim->client.context, event->node) <= sim->now_us) {
		sim->spins++;
		put_timer(sim, event->node, sim->now_us + 1);
	} else {
		sim_poke(sim, event->node);
	}
}

void sim_run(struct sim *sim, uint64_t until_us)
{
	struct sim_event event;
	while (sim_queue_take(&sim->queue, until_us, &event)) {
		sim->now_us = event.at_us;
		sim->events++;
		switch (event.kind) {
		case EVENT_ARRIVE: arrive(sim, &event); break;
		case EVENT_HANDLE: take_from_inbox(sim, &event); break;
		case EVENT_TIMER: ring(sim, &event); break;
		case EVENT_ACT: sim->client.act(sim->client.context, event.argument); break;
		default: UNREACHABLE("no such event");
		}
	}
	sim->now_us = until_us;
}
