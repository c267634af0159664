/* What the files of this room share: the engine below a store, the envelope of an entry, keys, the catalogue. */
#ifndef STORE_STORE_INT_H
#define STORE_STORE_INT_H

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Engine ---------------------------------------------------------------------------------------------------------
 *
 * An engine keeps entries: bytes under a key of bytes, all in one order (that of memcmp, a prefix first), of which a whole
 * set is changed at once or not at all. Tables, indexes and versions are built on that, once, in store.c and schema.c. */

enum { ENGINE_KEY_BYTES = 511 }; /* LMDB's bound; both engines have it */

struct engine_entry {
	struct str key;
	struct str value;
};

struct store_engine {
	void *context;
	void (*close)(void *context);
	/* A slot has one reading transaction at a time, and whoever holds the slot calls alone. */
	int (*begin_read)(void *context, uint32_t slot, void **txn, struct err *err);
	/* One at a time, and it ends in the thread where it began. */
	int (*begin_write)(void *context, void **txn, struct err *err);
	int (*commit)(void *txn, struct err *err);
	void (*abort)(void *txn);
	uint64_t (*number)(void *txn);           /* which commit a writing one will be; in a reading one: was */
	int (*room)(void *txn, struct err *err); /* 0, or ERR_LIMIT: full, only removing makes sense */
	int (*get)(void *txn, struct str key, struct str *value, struct err *err); /* ERR_NOT_FOUND, without a text */
	/* Value and key lie elsewhere than in the engine. After an error the transaction can only be aborted. */
	int (*put)(void *txn, struct str key, struct str value, struct err *err);
	int (*remove)(void *txn, struct str key, struct err *err); /* ERR_NOT_FOUND does no harm */
	/* 1: an entry; 0: none. In a writing transaction a cursor is good until the next put or remove. */
	int (*cursor_open)(void *txn, void **cursor, struct err *err);
	int (*cursor_seek)(void *cursor, struct str at_least, struct engine_entry *entry, struct err *err);
	int (*cursor_next)(void *cursor, struct engine_entry *entry, struct err *err);
	void (*cursor_close)(void *cursor);
	int (*usage)(void *context, struct store_usage *usage, struct err *err); /* bytes only */
	void (*cool)(void *context); /* what was read need not stay in memory; NULL: it lies nowhere else */
};

int engine_open_lmdb(struct store_engine *engine, const struct store_options *options, struct err *err);
void engine_open_memory(struct store_engine *engine);

/* ---- Envelope (docs/protocol/store.md) ------------------------------------------------------------------------------
 *
 * Every value has one: the form of the envelope, the version of the row, a check sum of key, version and row. */

enum { ENVELOPE_BYTES = 7, ENVELOPE_FORM = 1 };

void envelope_put(struct buf *out, struct str key, uint32_t version, struct str row);
/* ERR_CORRUPT. */
int envelope_open(struct str key, struct str value, uint32_t *version, struct str *row, struct err *err);

/* ---- Keys -----------------------------------------------------------------------------------------------------------
 *
 * The first byte of an engine's key is the space: that of the catalogue, of a table, of an index. */

enum { SPACE_CATALOGUE = 0, SPACES = 256 };

struct key {
	size_t length;
	char bytes[ENGINE_KEY_BYTES];
};

static inline struct str key_str(const struct key *key)
{
	return str_make(key->bytes, key->length);
}

/* Of a row. The key is no longer than LIMIT_STORE_KEY_BYTES. */
void key_of_row(struct key *out, uint32_t space, struct str key);
/* Of a row in an index; row NULL: what all rows with that key begin with; `open`: and those with a longer key.
 * ERR_LIMIT where it is too long. */
int key_of_entry(struct key *out, uint32_t space, struct str index, const struct str *row, bool open);
/* Takes the key of an entry in an index apart. ERR_CORRUPT. */
int key_split(struct str entry, struct buf *index, struct str *row);
/* For messages: as text if it is text, otherwise in hexadecimal; cut where it is long. */
enum { KEY_SHOWN_BYTES = 80 };
const char *key_shown(struct str key, char out[KEY_SHOWN_BYTES]);

/* ---- Catalogue ------------------------------------------------------------------------------------------------------
 *
 * In space 0: 'f' the version of the format; 's' what each commit writes anew; 't' NAME a table; 'i' TABLE 0 NAME an index. */

enum { STORE_FORMAT = 1, CATALOGUE_VERSION = 1 };

struct catalogue_state {
	uint64_t commits;
	uint64_t rows;
	uint64_t number; /* of the commit, as the engine counts */
};

void catalogue_state_put(struct buf *row, const struct catalogue_state *state);
int catalogue_state_parse(struct str row, struct catalogue_state *state, struct err *err);

/* Fed with every entry of a file in the order of their keys, before anything of it is used. */
struct catalogue_check {
	char names[SPACES][2 * LIMIT_STORE_NAME_BYTES + 32]; /* "table `x`" */
	bool formed;                                         /* the version of the format was there, and is ours */
	struct catalogue_state state;
	uint64_t rows;
	bool is_table[SPACES];
};

int catalogue_check_entry(void *check, struct str key, struct str value, struct err *err);
int catalogue_check_end(struct catalogue_check *check, struct err *err);
/* The commit that wrote an entry 's'; 0: it is damaged. */
uint64_t catalogue_number_of(struct str key, struct str value);

/* ---- Store ---------------------------------------------------------------------------------------------------------- */

struct store_session {
	_Alignas(64) atomic_bool taken; /* of a reading one: somebody has it */
	bool writes;
	bool changed;
	int failed; /* the code that a commit is refused with; 0 */
	uint32_t slot;
	uint32_t cursors;
	struct store *store;
	void *txn;
	int64_t rows_more;
	struct buf value;   /* an envelope that is being put */
	struct buf scratch; /* a key in an index */
};

struct table_place {
	uint32_t space;
	uint32_t indexes[LIMIT_STORE_INDEXES];
};

struct store {
	struct store_engine engine;
	const struct store_schema *schema;
	struct table_place places[LIMIT_STORE_TABLES];
	pthread_mutex_t writing;
	struct store_session writer;
	struct store_session readers[LIMIT_STORE_READERS];
};

/* On an engine that is open; which stays the caller's on an error. */
int store_open_on(struct store **out, const struct store_engine *engine, const struct store_schema *schema,
                  struct err *err);

/* Brings what the engine has to the schema, in one session, and fills store->places. */
int schema_settle(struct store *store, struct err *err);

/* The first entry at `at_least`, or after it: 1, 0, or an error. In a writing session the slices are good until it writes. */
int session_seek(struct store_session *session, struct str at_least, bool after, struct engine_entry *entry,
                 struct err *err);
int session_put_entry(struct store_session *session, struct str key, uint32_t version, struct str row, struct err *err);
int session_remove_entry(struct store_session *session, struct str key, struct err *err);
/* Is another row in a unique index under this key? ERR_CONFLICT. */
int session_check_unique(struct store_session *session, const struct store_index *index, uint32_t space,
                         struct str index_key, struct str row_key, struct err *err);
/* What a row is in its table: its envelope opened, of the table's version. */
int session_open_row(struct store_session *session, uint32_t table, struct str engine_key, struct str value,
                     struct str *row, struct err *err);

/* ---- What LMDB needs around it -------------------------------------------------------------------------------------- */

struct folder {
	char *path;
	int lock; /* descriptor of the file that says who has it */
};

/* Makes it if it is not there, and takes it. ERR_UNAVAILABLE: somebody else has it. */
int folder_open(struct folder *folder, const char *path, struct err *err);
void folder_close(struct folder *folder);
/* What was made in it, and the folder itself, are on disk. */
int folder_sync(const struct folder *folder, struct err *err);

/* What a look at all pages of LMDB's file found. */
struct probe {
	bool empty;     /* there is no file, or nothing in it */
	uint64_t bytes; /* up to the last page that is or was used */
};

/* What is known of the entries there. */
struct probe_view {
	void *context;
	int (*each)(void *context, struct str key, struct str value, struct err *err); /* in the order of their keys */
	struct str number_key; /* of the entry that says in which commit it was written; each commit writes it */
	uint64_t (*number_of)(struct str key, struct str value); /* 0: it does not say */
};

/* Reads the file and checks that all of it hangs together, such that LMDB, which checks nothing, can be let at it. */
int probe_file(const char *path, const struct probe_view *view, struct probe *probe, struct err *err);

#endif
