/* Struct replica and struct cross_children together, at three sites in one process, with a small service each. A test says what happens, and when. */
#ifndef TEST_CHILDREN_WORLD_H
#define TEST_CHILDREN_WORLD_H

#include "cross_test.h"

#include "cross/children.h"

#include "sim/choir_rows.h"

enum { SITES = 3, HELD = 512, ITEMS = 4096, USERS = 4096, WIRE = 4096, SECOND = 1000000, NAMES = 5 };

struct item {
	bool there;
	uint32_t site;
	struct replica_id id;
	char name[16];
};

enum held_kind { HELD_REPLICA, HELD_NAMES, HELD_RUN, HELD_GRANT };

struct held {
	enum held_kind kind;
	uint32_t to;
	struct buf bytes;
	uint64_t task;
	enum replica_task_kind what;
	struct replica_id id;
	char verb[32];
	struct cross_answer answer;
	bool done; /* the service has done it, and its answer is on the way */
	struct replica_outcome outcome;
	char local_id[16];
};

struct site {
	uint32_t number;
	struct replica *replica;
	struct cross_children *children;
	struct choir_rows rows; /* of replicants */
	struct choir_rows name_rows;
	struct held held[HELD]; /* until the commit */
	uint32_t held_count;
	struct held runs[HELD]; /* at the service */
	uint32_t runs_count;
	uint32_t lost;
};

/* What somebody asked for. */
struct user {
	uint32_t site;
	enum { MAKES, RENAMES, DELETES } wants;
	uint32_t holders; /* MAKES: a bit per site; 0: that site alone */
	struct replica_id child;
	char name[16];
	bool answered;
	int code; /* of the answer: 0, or why not */
	bool accepted;
};

extern struct site sites[SITES];
extern struct item items[ITEMS];
extern uint32_t items_count;
extern struct user users[USERS];
extern uint64_t users_count;
extern uint32_t wire_count;
extern bool cut[SITES], optimistic, removed[SITES], refusing;
extern uint64_t now_us, luck;
extern struct replica_id container;

site_id id_of(uint32_t number);
struct replica_now now(void);
bool same(struct replica_id a, struct replica_id b);
struct replica_id make_id(void);
struct item *item_of(uint32_t site, struct replica_id id);
void commit(uint32_t number);
void crash(uint32_t number);
void deliver(uint32_t index, bool keep);
void serve_one(struct site *it, uint32_t index);
uint64_t ask(uint32_t at, const struct user *wish);
uint64_t make(uint32_t at, const char *name);
uint64_t make_at(uint32_t at, const char *name, uint32_t holders);
uint64_t change(uint32_t at, struct replica_id child, const char *name);
void settle(uint64_t seconds);
void follow(uint32_t number);
int withdraw(uint32_t at, uint32_t number);
bool has_left(uint32_t number);
/* The site is removed from the mesh, and does not come back. */
void remove_site(uint32_t number);
/* It is forced out of the container; 0, or why not. */
int force_out(uint32_t at, uint32_t number);
/* Is a child held by several sites? What is asked of one then comes to the others later. */
bool is_shared(struct replica_id id);
bool was_asked_for(struct replica_id id);
int setup(void **state);
int teardown(void **state);
void make_container(void);

#endif
