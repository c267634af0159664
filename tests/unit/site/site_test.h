/* What the tests of this room share: a few sites in a small world, with its own clock, network and signatures. */
#ifndef SITE_TEST_H
#define SITE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "site/site_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { WORLD_SITES = 32, SECOND_US = 1000000 };

struct world;

struct datagram {
	uint64_t at_us;
	uint64_t order; /* the first sent of two that arrive together comes first */
	uint32_t from;
	uint32_t to;
	struct buf bytes;
};

struct node {
	struct world *world;
	uint32_t number;
	site_id id;
	char name[32];
	int64_t born_ms;
	uint8_t moves;     /* how often its address changed */
	uint64_t version;  /* of its card */
	struct site *site; /* NULL: down */
	uint32_t events[SITE_EVENT_OUTCAST + 1];
	char outcast[256];
	uint32_t lost_of[WORLD_SITES]; /* times that it called each one lost */
	uint32_t sent_to[WORLD_SITES];
};

struct world {
	struct site_now now;
	struct site_timing timing;
	uint64_t random;
	struct node nodes[WORLD_SITES];
	uint32_t count;
	uint32_t one_way_us[WORLD_SITES][WORLD_SITES];
	uint32_t waits_us[WORLD_SITES];     /* so long a datagram waits there until it is read */
	bool cut[WORLD_SITES][WORLD_SITES]; /* from, to */
	double loss;
	struct datagram *flying;
	size_t flying_count;
	size_t flying_capacity;
	uint64_t order;
	struct buf tap; /* copies of datagrams, with two bytes of length each; kept while `tapped` */
	bool tapped;
	uint64_t verified;
};

/* Signatures that the world takes for good, and that it does not. */
#define SIGNED STR("signed")
#define FORGED STR("forged")

struct world *world_new(uint32_t sites);
void world_free(struct world *world);
/* It knows nothing, and says nothing yet. */
void world_make(struct world *world, uint32_t number);
/* It knows nothing but itself. */
void world_start(struct world *world, uint32_t number);
/* It is gone, from one moment to the other. */
void world_crash(struct world *world, uint32_t number);
void world_introduce(struct world *world, uint32_t to, uint32_t whom);
/* The first so many, at once; each of the others is introduced to the first. */
void world_start_some(struct world *world, uint32_t count);
/* All start, and know the first. */
struct world *world_of(uint32_t sites);
void world_run(struct world *world, uint64_t us);
/* Until the condition holds: false if it does not within so many seconds. */
bool world_until(struct world *world, bool (*condition)(struct world *world), unsigned seconds);
void world_cut(struct world *world, uint32_t a, uint32_t b, bool cut); /* both ways */

site_id world_id(uint32_t number);
void world_card(struct world *world, uint32_t number, struct buf *record);
void world_set_card(struct world *world, uint32_t number); /* the next version */
void world_removal(struct world *world, uint32_t number, enum site_removal_kind kind, uint64_t version,
                   struct str signature, struct buf *record);
void world_root(site_id subject, uint64_t version, struct str signature, struct buf *record);
int world_add(struct world *world, uint32_t at, const struct buf *record);

/* SITE_STATES: not in the table. */
enum site_state world_state(const struct world *world, uint32_t at, uint32_t of);
bool world_all_see(const struct world *world, uint32_t of, enum site_state state);
/* Every running site sees every running site alive. */
bool world_agrees(struct world *world);

#define assert_ok(code) assert_int_equal((code), 0)

#endif
