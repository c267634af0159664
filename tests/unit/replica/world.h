/* A few sites by hand: each has a struct replica, rows in memory, a model application, and queues of what it asked for. Time goes
 * when the test says so; messages and tasks can be held, lost, doubled and turned round.
 *
 * The application has counters: an item has a value and a mark, `create 23`, `set 29` (replace: both), `mark x` (assign), `add 13`
 * (relative), `let 7` (assign: the value alone), `create 23 @x` (its name, of one letter, is unique at a site), `times 3` (relative, and its order matters), `delete`.
 * An item may have a file, of one letter, in a facet of its own: `file x`, whose body is a blob. It comes only with a state. */
#ifndef TESTS_REPLICA_WORLD_H
#define TESTS_REPLICA_WORLD_H

#include "replica/replica_int.h"

enum { WORLD_SITES = 8, WORLD_ITEMS = 2048, WORLD_ANSWERS = 4096 };

/* What a site's service does with what comes. */
enum service_mode {
	SERVICE_FINE,
	SERVICE_DOWN,   /* no connection */
	SERVICE_REFUSE, /* 422 */
	SERVICE_LOSES_ANSWERS,
	SERVICE_LOSES_REQUESTS, /* and nobody knows that */
	SERVICE_CREDENTIAL,     /* 401 */
	SERVICE_FULL,           /* 507 to creates */
	SERVICE_MAKES_NOTHING,  /* creates fail, and may work later */
};

struct world_row {
	struct buf key;
	struct buf row;
};

struct world_table {
	struct world_row *rows; /* by key */
	uint32_t count, capacity;
};

struct world_item {
	bool there;
	int64_t value;
	char mark;
	char file;        /* 0: none */
	char name;        /* 0: none */
	char made[64];    /* by which request */
	uint32_t changes; /* how often it was changed: exactly once? */
};

struct world_task {
	uint64_t number;
	enum replica_task_kind kind;
	struct replica_op_id op;
	bool first;
	char text[64];
	char local_id[32];
};

struct world_message {
	site_id from, to;
	struct buf bytes;
	uint64_t at_us;
};

struct world_blob {
	char sha[32];
	site_id from;
};

struct world;

struct world_site {
	struct world *world;
	site_id id;
	struct replica *replica; /* NULL: it is down */
	struct world_table tables[REPLICA_TABLES];
	struct world_item items[WORLD_ITEMS]; /* by local id: "1", "2"... */
	uint32_t items_count;
	enum service_mode mode;
	bool inquiry_blind; /* the service cannot say whether something happened */
	bool unreachable;   /* as the others believe */
	bool hold_tasks;
	bool no_state; /* READ_STATE is refused */
	struct world_task *tasks;
	uint32_t tasks_count, tasks_capacity;
	char happened[WORLD_ANSWERS][64]; /* what the service did, for inquiries: no two requests are the same */
	uint32_t happened_count;
	uint32_t runs, fetches, drops, puts, events;
	uint64_t reads, ticks; /* rows that were read; timers that fired */
	struct world_blob fetched;
	char has_blob;   /* that of a file that came; 0: none */
	char secret[64]; /* the last one that a task came with */
};

struct world_answer {
	bool there;
	struct replica_answer answer;
	char text[160];
};

struct world {
	struct world_site sites[WORLD_SITES];
	uint32_t sites_count;
	struct replica_options options;
	struct replica_now now;
	uint64_t random;
	uint64_t ticket;
	struct world_answer answers[WORLD_ANSWERS]; /* by ticket */
	struct world_message *messages;
	uint32_t messages_count, messages_capacity;
	bool cut[WORLD_SITES][WORLD_SITES];
	uint32_t lose_percent, double_percent;
	bool shuffle;
	uint64_t latency_us;
	struct order_rules rules;
	uint32_t holders; /* of what is created, as bits: the other members are witnesses. 0: all have it alike */
	enum replica_span
		span; /* DIVIDED: of each number the second site has twice as much as the first, the third three times... */
	uint64_t sent;
};

struct world *world_new(uint32_t sites);
void world_free(struct world *world);
/* Goes on for that long: tasks run, messages come, timers fire. */
void world_go(struct world *world, uint64_t us);
void world_crash(struct world *world, uint32_t site); /* tasks and messages that it has not sent are lost */
void world_start(struct world *world, uint32_t site);
/* From now on `group` (a bit for each site) and the rest do not hear each other; 0: all do. */
void world_cut(struct world *world, uint32_t group);
void world_met(struct world *world);

struct replica_id world_id(uint32_t number);
/* Returns the ticket. `members`: a bit for each site. */
uint64_t world_create(struct world *world, uint32_t site, uint32_t number, uint32_t members, const char *text);
uint64_t world_ask(struct world *world, uint32_t site, uint32_t number, const char *text);
uint64_t world_give(struct world *world, uint32_t site, uint32_t number); /* what that site has, to all */
uint64_t world_extend(struct world *world, uint32_t site, uint32_t number, uint32_t to);
int world_drop(struct world *world, uint32_t site, uint32_t number, uint32_t who, bool force);
uint64_t world_submit(struct world *world, uint32_t site, const struct replica_submission *submission);
struct replica_class world_class(const char *text);

/* What the service of a site has for a replicant; NULL: nothing. */
struct world_item *world_item(struct world *world, uint32_t site, uint32_t number);
/* The same by any of its ids, where it became one with another; how many items there are; the number to which an id leads, 0: none. */
struct world_item *world_item_by(struct world *world, uint32_t site, uint32_t number);
uint32_t world_items_at(const struct world *world, uint32_t site);
uint32_t world_leads_to(struct world *world, uint32_t site, uint32_t number);
uint32_t world_rows(const struct world *world, uint32_t site, enum replica_table table);
struct replica_view world_look(struct world *world, uint32_t site, uint32_t number, struct arena *arena);
struct replica_op_view world_look_op(struct world *world, uint32_t site, struct replica_op_id op, struct arena *arena);
/* Runs the first task that is held. */
void world_run_task(struct world *world, uint32_t site);

/* The rows of one site, for who builds its own host. */
int world_get(void *context, enum replica_table table, struct str key, struct buf *row);
void world_put(void *context, enum replica_table table, struct str key, struct str row);
void world_remove(void *context, enum replica_table table, struct str key);
int world_scan(void *context, enum replica_table table, struct str prefix, struct str from,
               bool (*each)(void *each_context, struct str key, struct str row), void *each_context);

#endif
