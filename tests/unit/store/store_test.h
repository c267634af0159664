/* What the tests of this room share: a store on either engine, in a folder of its own. */
#ifndef STORE_TEST_H
#define STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum engine_kind { ON_LMDB, ON_MEMORY };

/* The same test, once on each engine. */
extern enum engine_kind kind_lmdb, kind_memory;
#define ON_BOTH(test)                                                                                                  \
	{#test " (lmdb)", test, NULL, NULL, &kind_lmdb},                                                                   \
	{                                                                                                                  \
#test " (memory)", test, NULL, NULL, &kind_memory                                                              \
	}

struct world {
	enum engine_kind kind;
	char folder[64]; /* LMDB: not made yet, in a folder that is */
	struct store *store;
};

/* A path for a store in a new folder, which folder_remove() removes with all that is in it. */
void folder_make(char folder[64]);
void folder_remove(const char *folder);

struct world world_open(void **state, const struct store_schema *schema);
/* Closes and opens it again, perhaps with another schema. On an error the world has no store (LMDB) or the old one. */
int world_reopen(struct world *world, const struct store_schema *schema, struct err *err);
void world_close(struct world *world);

/* LMDB, without waiting for the disk. */
int open_folder(struct store **store, const char *folder, const struct store_schema *schema, struct err *err);

/* Table 0 `things`: a row is "COLOUR/REST"; index 0 `colour` by what stands before the slash, rows without one are not in it.
 * Table 1 `names`: index 0 `id`, unique, is the whole row. Table 2 `plain`: none. */
enum { THINGS, NAMES, PLAIN };
extern const struct store_schema plain_schema;
bool colour_of(struct str key, struct str row, struct buf *out);
bool whole_row(struct str key, struct str row, struct buf *out);

/* In a session of its own, which commits. */
void put_one(struct store *store, uint32_t table, const char *key, const char *row);
/* Asserts. NULL: it is not there. */
void assert_row(struct store *store, uint32_t table, const char *key, const char *row);
struct store_session *begin_write(struct store *store);
struct store_session *begin_read(struct store *store);
void commit(struct store_session *session);

/* What a scan gives, as text: "key=row key=row"; of an index "index>key=row". */
void scan_text(struct store_session *session, const struct store_range *range, struct buf *out);
#define assert_scan(session, expected, ...) assert_scan_at((session), &(struct store_range){__VA_ARGS__}, (expected))
void assert_scan_at(struct store_session *session, const struct store_range *range, const char *expected);

/* The call refused with this code, and its text has this in it. */
#define assert_refused(result, err, wanted, part)                                                                      \
	assert_refused_at((result), &(err), (wanted), (part), __FILE__, __LINE__)
void assert_refused_at(int result, const struct err *err, int wanted, const char *part, const char *file, int line);

/* xorshift64* (Vigna, 2016). */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static inline size_t random_below(uint64_t *state, size_t bound)
{
	return (size_t)(random_next(state) >> 33) % bound;
}

#endif
