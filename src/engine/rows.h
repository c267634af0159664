/* What the engine keeps: rows of src/replica and its own, on their way to the store, and as other threads see them. All of it belongs to the
 * engine's thread, except where said.
 *
 * A row that is put goes through all of this:
 *   rows.c      to the tables; what is secret is sealed. Who refers to whom, and where there is something of a type, is kept along
 *   behind.c    waits in memory, so that the store has it once, however often it changes
 *   journal.c   is durable, with all others of one commit, before the store has it
 *   overlay.c   is seen by other threads, which read the store
 *   sieve.c     is known to them as something that may be a replica's
 */
#ifndef ENGINE_ROWS_H
#define ENGINE_ROWS_H

#include "engine/engine.h"

#include "base/map.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* See journal.c. */
struct journal {
	bool on;
	bool broken;  /* nothing more is written to it */
	bool seen;    /* what changed is read by others: the store itself is to be committed */
	bool turning; /* the session that is being committed begins the next generation */
	int fd;
	uint64_t generation, number, at; /* of the next commit */
	uint64_t commits;
	struct buf notes; /* since the last one */
	struct buf out;
	struct http_timer timer;
};

enum { ENGINE_OVERLAYS = 3 };

/* See overlay.c. */
struct overlay {
	pthread_rwlock_t lock;
	atomic_bool any; /* rows are published; any thread reads */
	struct map rows[ENGINE_OVERLAYS];
	struct buf *types;
	uint32_t types_count;
	struct overlay_row *noted, **last; /* since the last commit, of the engine's thread */
};

/* Tables of the engine itself, behind those of src/replica. */
enum engine_table {
	ENGINE_CHANGES = REPLICA_TABLES, /* number of the first: the changes of one commit */
	ENGINE_HOOKS,                    /* name: up to which change it was told */
	ENGINE_CROSS_CONTAINERS,         /* those of src/cross (names.c) */
	ENGINE_CROSS_CLAIMS,
	ENGINE_CROSS_NAMES,
	ENGINE_CROSS_RIVALS,
	ENGINE_CROSS_META,
	ENGINE_CROSS_CHILDREN,
	ENGINE_RELATIONS, /* who refers to whom: relations.c */
	ENGINE_SPREAD,    /* service and type: at which other sites there is something of it (spread.c) */
	ENGINE_DIVISIONS, /* meta-id of what is divided: its division */
	ENGINE_TABLES,
};

/* See behind.c. */
struct behind {
	bool on;
	struct map rows[ENGINE_TABLES];
	struct behind_row *dirty[ENGINE_TABLES]; /* not in the store's session */
	struct behind_row *new, **last_new;      /* not in the journal */
	uint32_t count;
};

enum { ENGINE_SIEVE_LAYERS = 24, ENGINE_SIEVE_BUCKETS = 64 };

/* See sieve.c. */
struct sieve {
	_Atomic(struct sieve_layer *) layers[ENGINE_SIEVE_LAYERS]; /* each larger than the one before */
	_Atomic(struct sieve_type *) types[ENGINE_SIEVE_BUCKETS];
	atomic_bool ready;    /* what was stored at the start is in it */
	atomic_bool full;     /* what came later may not be */
	pthread_mutex_t lock; /* of those that add */
	uint64_t keys_expected;
	pthread_t thread;
	bool started;
	atomic_bool stop;
};

/* See spread.c. */
struct spread {
	pthread_rwlock_t lock; /* the engine's thread alone changes it */
	atomic_bool any;       /* there is something to be found; any thread reads */
	struct map types;      /* by what keys of locals begin with: struct spread_type */
};

/* See standing.c. */
struct standings {
	pthread_rwlock_t lock; /* the engine's thread alone changes them */
	struct map parts;      /* by meta-id */
	atomic_uint_least64_t changes;
	struct buf due; /* ids to be looked at before the next commit */
};

/* What a row changes of it. */
struct spread_change {
	struct replica_spread before, now;
	struct buf before_type, type;
};

/* rows.c: the tables of src/replica, and ours, in src/store. */
extern const struct store_schema engine_schema;
int engine_row_get(void *context, enum replica_table table, struct str key, struct buf *row);
void engine_row_put(void *context, enum replica_table table, struct str key, struct str row);
void engine_row_remove(void *context, enum replica_table table, struct str key);
int engine_row_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                    bool (*each)(void *each_context, struct str key, struct str row), void *each_context);
/* Is it kept in another form, and which: appended. */
bool engine_row_is_sealed(uint32_t table);
void engine_row_seal(struct engine *engine, uint32_t table, struct str key, struct str row, struct buf *out);
/* As src/replica has put it last, or as it is stored; ERR_NOT_FOUND. A slice until something is put. For tables that are not sealed. */
int engine_row_before(struct engine *engine, uint32_t table, struct str key, struct str *row);

/* spread.c */
void engine_spread_open(struct engine *engine);
void engine_spread_close(struct engine *engine);
/* As it is in the store, or counted, where a version that did not count has left it. */
int engine_spread_load(struct engine *engine, struct err *err);
/* Before a row of a replicant is put, or removed (NULL): does it change something? Then apply it behind that. */
bool engine_spread_look(struct engine *engine, struct str key, const struct str *row, struct spread_change *change);
void engine_spread_apply(struct engine *engine, struct spread_change *change);

/* standing.c */
void engine_standings_open(struct engine *engine);
void engine_standings_close(struct engine *engine);
void engine_standings_drop(struct engine *engine);                               /* all: src/replica starts anew */
void engine_standing_row(struct engine *engine, uint32_t table, struct str key); /* it was put, or removed */
void engine_standing_changes(struct engine *engine, struct replica_id id);       /* an operation is about to run */
void engine_standing_learn(struct engine *engine, struct replica_id id);         /* it is divided */
void engine_standings_review(struct engine *engine);                             /* before a commit */

/* behind.c: rows on their way to the store, in the engine's thread. */
enum behind_found {
	BEHIND_UNKNOWN, /* the store says */
	BEHIND_REMOVED,
	BEHIND_HERE,
};

void engine_behind_open(struct engine *engine);
void engine_behind_drop(struct engine *engine);    /* all of them: they are given up */
void engine_behind_settled(struct engine *engine); /* the store has them */
void engine_behind_put(struct engine *engine, uint32_t table, struct str key, struct str row);
void engine_behind_remove(struct engine *engine, uint32_t table, struct str key);
/* The row is a slice, until something is put. */
enum behind_found engine_behind_get(const struct engine *engine, uint32_t table, struct str key, struct str *row);
void engine_behind_note(struct engine *engine); /* what is new, in the journal: before a commit */
/* Into the store's session, if engine->failure does not say why not: of one table; all. */
void engine_behind_spill(struct engine *engine, uint32_t table);
void engine_behind_settle(struct engine *engine);

/* journal.c: commits without the store's, in the engine's thread. */
void engine_journal_open(struct engine *engine);
void engine_journal_close(struct engine *engine);
/* What it has that the store has not goes into the session, which the next commit ends. */
int engine_journal_replay(struct engine *engine, struct err *err);
/* Before a row is put or (NULL) removed, and after. */
void engine_journal_look(struct engine *engine, enum replica_table table, struct str key, const struct str *row);
bool engine_journal_takes(const struct engine *engine); /* else nothing need be put */
void engine_journal_put(struct engine *engine, enum replica_table table, struct str key, struct str row);
void engine_journal_remove(struct engine *engine, enum replica_table table, struct str key);
/* True: all that was put is durable, and the session goes on. False: the store has to be committed, between these two. */
bool engine_journal_commit(struct engine *engine);
void engine_journal_settle(struct engine *engine);
void engine_journal_settled(struct engine *engine, bool done);

/* overlay.c: what others look up, and the store does not have yet. */
void engine_overlay_open(struct engine *engine);
void engine_overlay_close(struct engine *engine);
/* Before a row is put or (NULL) removed, which the journal is going to have. */
void engine_overlay_note(struct engine *engine, enum replica_table table, struct str key, const struct str *row);
void engine_overlay_publish(struct engine *engine);            /* the journal has it */
void engine_overlay_settled(struct engine *engine, bool done); /* the store has it; or all that was put is lost */

/* What is committed last, in any thread: of the tables replicants, locals and relations. */
struct look {
	struct overlay *overlay; /* NULL: nothing is in it */
	struct store_session *session;
};

bool engine_look_begin(struct engine *engine, struct look *look);
void engine_look_end(struct look *look);
/* The row is a slice, until the end. */
bool engine_look_get(const struct look *look, enum replica_table table, struct str key, struct str *row);
/* All whose keys begin so, in the order of the keys, until `each` returns false; it may ask for others. False: they cannot be read. */
bool engine_look_scan(const struct look *look, enum replica_table table, struct str prefix,
                      bool (*each)(void *context, struct str key, struct str row), void *context);
/* What the keys of locals begin with, of those that the store may not have: service and type. False: there are no more. */
bool engine_look_type(const struct look *look, uint32_t index, struct str *type);

/* sieve.c: what surely is no replica's. */
void engine_sieve_open(struct engine *engine);
void engine_sieve_start(struct engine *engine); /* once the store has all that the journal had */
void engine_sieve_fill(struct engine *engine);  /* what that does, in its thread */
void engine_sieve_close(struct engine *engine);
void engine_sieve_add(struct engine *engine, uint32_t table, struct str key); /* before anybody can know of it */
/* In any thread. Has what was stored been gone through? Else all may be. */
bool engine_sieve_knows(const struct engine *engine);
bool engine_sieve_may_have(const struct engine *engine, enum replica_table table, struct str key);
bool engine_sieve_has_type(const struct engine *engine, struct str prefix);

/* What a key of locals begins with, service and type: a slice. False: it is none. */
bool engine_local_type(struct str key, struct str *prefix);

#endif
