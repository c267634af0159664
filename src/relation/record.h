/* What one resource refers to, as one site knows it: the facts that are in force, in one row (docs/relations.md).
 *
 * A fact is a reference with a kind: where it stands, and what stands there. An operation that runs says anew what stands in the
 * places that it has, so what counts is the last that ran. What the path says (a container) stays for life.
 *
 * Pure: rows in, rows out. */
#ifndef RELATION_RECORD_H
#define RELATION_RECORD_H

#include "glue/glue.h"
#include "replica/replica.h"

#include "base/arena.h"

enum relation_where {
	RELATION_IN_PATH,
	RELATION_IN_BODY,
	RELATION_IN_ANSWER, /* what the service said of it: the parts that it made */
	RELATION_WHERES,
};

/* What is referred to: a replicant, or what a service calls so at some site. */
struct relation_target {
	bool managed;
	struct replica_id id; /* managed */
	/* Otherwise: */
	struct str service;
	struct str type; /* as glue_type_put() has it; of a type whose name has variables, as the description has it */
	struct str collection; /* as in struct engine_name: "" where ids are unique among all of the type */
	struct str name;       /* its id there */
};

struct relation_fact {
	enum relation_where where;
	struct str place; /* a pointer, without `*`; of a facet behind `FACET:`; a variable of the path */
	enum glue_kind kind;
	struct relation_target to;
	/* The sites that it is taken from, any of them will do, as the scope said; none: this site. */
	site_id sites[LIMIT_RELATION_SITES];
	uint32_t sites_count;
};

struct relation_record {
	struct relation_fact facts[LIMIT_RELATION_FACTS];
	uint32_t count;
	bool more; /* there were more than are kept */
};

/* What stood in the place, or below it, does so no more. "": all; with a `FACET:`, all of that facet. */
void relation_record_clear(struct relation_record *record, enum relation_where where, struct str place);
/* Instead of what stood in that very place. Slices have to live as long as the record. */
void relation_record_set(struct relation_record *record, const struct relation_fact *fact);

void relation_record_put(const struct relation_record *record, struct buf *out);
/* ERR_CORRUPT. Slices of the row. */
int relation_record_parse(struct str row, struct relation_record *record, struct err *err);

bool relation_target_equal(const struct relation_target *a, const struct relation_target *b);
/* Under which a target is found: RELATION_KEY_BYTES, of what is managed its meta-id. Two targets may have the same one, if somebody
 * tries hard: whoever finds something by it compares. `site` is where it is, if it is not managed. */
enum { RELATION_KEY_BYTES = 17 };
void relation_target_key(const struct relation_target *target, site_id site, struct buf *key);
/* Of a fact, at this site. */
void relation_fact_key(const struct relation_fact *fact, site_id self, struct buf *key);

/* The kinds by which it refers to that target: bits 1 << enum glue_kind. */
uint32_t relation_kinds_to(const struct relation_record *record, const struct relation_fact *fact, site_id self);
bool relation_relies(const struct relation_record *record);

#endif
