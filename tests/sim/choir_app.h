/* The model application of the simulator of replicated resources: what a request is, what it does to an item, and what
 * the order of requests on one item has to be, by the letter of DESIGN 7 and without a look at src/replica/order.c.
 *
 * All items are made of the same parts; which verbs there are makes the kinds:
 *   page      a value that is only ever replaced
 *   record    fields that can be set one by one
 *   counter   a number that is set, or changed by so much
 *   bag       a list to which is appended, in any order
 *   log       the same, and the order matters
 *   stack     the same, and of two that are appended at once the later one comes first
 *   file      a record with a file, which is set on its own (a facet)
 *   volume    a record with a name that is there once; the service assigns the id
 *   zone      the same, and the name is the id; PUT makes what is not there
 *   server    a record that refers to another item
 *   medley    all verbs together
 */
#ifndef SIM_CHOIR_APP_H
#define SIM_CHOIR_APP_H

#include "replica/order.h"

#include "base/buf.h"

enum { CHOIR_SITES = 9, CHOIR_FIELDS = 4, CHOIR_ENTRIES = 400 };

enum choir_verb {
	CHOIR_CREATE,
	CHOIR_PUT,
	CHOIR_PATCH,
	CHOIR_INCREMENT,
	CHOIR_APPEND,
	CHOIR_UPLOAD,
	CHOIR_DELETE,
	CHOIR_VERBS,
};

enum choir_kind {
	CHOIR_PAGE,
	CHOIR_RECORD,
	CHOIR_COUNTER,
	CHOIR_BAG,
	CHOIR_LOG,
	CHOIR_STACK,
	CHOIR_FILE,
	CHOIR_VOLUME,
	CHOIR_ZONE,
	CHOIR_SERVER,
	CHOIR_MEDLEY,
	CHOIR_KINDS,
};

struct choir_type {
	const char *name;
	uint32_t verbs;  /* as bits */
	uint8_t appends; /* enum order_resolution of two of them; 255: the default */
	bool named;
	bool chosen; /* the name is the id */
	bool refers;
};

extern const struct choir_type choir_types[CHOIR_KINDS];

const char *choir_verb_name(enum choir_verb verb);
enum order_effect choir_verb_effect(enum choir_verb verb);
bool choir_verb_repeatable(enum choir_verb verb);

/* An item, without what may differ from site to site. */
struct choir_state {
	uint32_t fields[CHOIR_FIELDS];
	int64_t number;
	uint32_t file;   /* a token; 0: none */
	uint32_t refers; /* number of a replicant + 1 */
	uint32_t entries_count;
	uint32_t entries[CHOIR_ENTRIES]; /* tokens */
};

/* A request. Its token is unique: found in messages, rows and items it says where it came from. */
struct choir_request {
	uint32_t token;
	uint8_t verb;
	uint8_t kind;
	uint8_t mask;             /* PATCH: these fields */
	uint32_t poison;          /* the services of these sites, as bits, take it for invalid */
	uint32_t replicant;       /* its number in the world */
	uint32_t name;            /* 0: none */
	struct choir_state value; /* UPLOAD: the file is its own, by its token; or that which a state has that is given */
};

/* In front of the token, wherever a request stands. */
#define CHOIR_MARK "#CHOIR#"

void choir_request_put(struct buf *out, const struct choir_request *request);
bool choir_request_parse(struct str body, struct choir_request *request);

/* UPLOAD: what is in the file: its own token, or, if it is a copy of another one, that one's. */
uint32_t choir_file_of(const struct choir_request *request);
/* What a request that is accepted does to an item. */
void choir_apply(struct choir_state *state, const struct choir_request *request);
bool choir_state_equal(const struct choir_state *a, const struct choir_state *b, bool any_order);
void choir_state_print(struct buf *out, const struct choir_state *state);

/* ---- DESIGN 7, "Ordering, exactly" -------------------------------------------------------------------------------- */

struct choir_op {
	uint32_t member; /* index among the replicant's */
	uint64_t site;   /* its id: decides between equal stamps */
	uint32_t number;
	uint64_t stamp;
	uint32_t seen[CHOIR_SITES];
	uint8_t effect;
	uint8_t class;
	uint16_t facet;
	bool repair;
	bool issued;     /* others may know of it: it does not change any more */
	uint32_t known;  /* sites that have it, or had it, on disk, as bits */
	uint64_t digest; /* of all that may never change */
	struct choir_request request;
};

struct choir_rules {
	uint8_t resolutions[CHOIR_VERBS * CHOIR_VERBS]; /* 255: the default */
	bool delete_loses;
	bool create_replays;
};

bool choir_saw(const struct choir_op *y, const struct choir_op *x);
/* Writes E as indexes into ops; returns how many. Space is for all of them. Those `without` which it is to be have no effect,
 * also not on others: they were rejected; NULL: all count. */
uint32_t choir_sequence(const struct choir_op *ops, uint32_t count, const struct choir_rules *rules,
                        const bool *without, uint32_t *sequence);

#endif
