/* A few sites with seals, joined by a network that the test controls. Datagrams lie in a queue until they are
 * carried; all that were ever sent are on a tape. */
#ifndef SEAL_WORLD_H
#define SEAL_WORLD_H

#include "trust_test.h"

#include "trust/seal_int.h"

enum { NODES = 4, KNOWN_MOST = 8, PACKETS_MOST = 60000, MESSAGES_MOST = 20000 };

struct packet {
	int from;
	int to;
	struct buf bytes;
};

struct world;

struct node {
	struct world *world;
	struct holder holder;
	struct trust_seal *seal;
	struct buf card;
	site_id known_ids[KNOWN_MOST];
	struct buf known[KNOWN_MOST]; /* certificates */
	int known_count;
	int asked;          /* for certificates */
	int cards;          /* brought by greetings, or for all to read */
	int outcast;        /* times that it was told that it is shut out, by who may */
	site_id removed;    /* whom it has shut out, */
	struct buf removal; /* by this record */
	uint64_t opened;    /* over all starts */
	struct buf last;    /* what was opened last */
	site_id last_from;
	struct trust_seal_counters before; /* of earlier starts */
};

struct world {
	struct holder root;
	struct trust_roots *roots;
	struct node nodes[NODES];
	struct packet queue[PACKETS_MOST];
	size_t queue_start, queue_end;
	struct packet tape[PACKETS_MOST];
	size_t tape_end;
	bool recording;
	uint64_t now_us;
	uint64_t boots;
	uint32_t messages;
	uint8_t seen[MESSAGES_MOST]; /* how often a message was opened */
};

struct world *world_new(void);
void world_free(struct world *world);
/* `node` knows the certificate of `other`; or no longer. */
void meet(struct world *world, int node, int other);
void know(struct node *node, site_id id, struct str certificate);
void unknow(struct world *world, int node, int other);
void meet_all(struct world *world);
void restart(struct world *world, int node);

site_id id_at(struct world *world, int node);
struct site_address address_at(int node);
struct seal_peer *peer_at(struct world *world, int node, int other);
/* Counters over all starts of the node. */
struct trust_seal_counters counted(struct world *world, int node);

/* A message with a number of its own, which is returned. */
uint32_t say(struct world *world, int from, int to);
bool arrived(struct world *world, uint32_t message);

/* Carries one datagram, or drops it; false: there is none. */
bool carry_one(struct world *world);
void lose_one(struct world *world);
/* All of them, and what they cause: fails if that does not end. */
void carry_all(struct world *world);
/* Lets time pass, with what is due, and carries all. */
void pass(struct world *world, uint64_t us);
void give(struct world *world, int to, int from, struct str bytes);
size_t in_flight(const struct world *world);

#endif
