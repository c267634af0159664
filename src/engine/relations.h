/* Who refers to whom, among what this site knows (DESIGN 9, docs/relations.md).
 *
 * Recorded of each replicant that this site is a member of, as holder or as witness: what its path says (the container that it is
 * in) as soon as it is known here, and what the bodies of its operations say when they have run here. A witness runs nothing, and
 * knows what the path says. It is forgotten when the replicant is deleted here, leaves this site, or becomes another one's alias.
 *
 * `from` is always a replicant; `to` is one too, or what a service of some site calls so (struct relation_target). Only references
 * with a kind are recorded. */
#ifndef ENGINE_RELATIONS_H
#define ENGINE_RELATIONS_H

#include "engine/engine.h"
#include "relation/record.h"
#include "relation/risk.h"

/* One that refers to what was asked for. */
struct engine_referrer {
	struct replica_id from;
	uint32_t kinds; /* bits 1 << enum glue_kind */
};

/* Ends when `each` returns false. In the order of their meta-ids. */
typedef bool engine_referrer_each(void *context, const struct engine_referrer *referrer);

/* ---- Any thread, at once: as of the last commit --------------------------------------------------------------------- */

/* Who refers to a replicant; of a container with GLUE_CONTAINED among the kinds: what is in it. `kinds`: bits, of which one has to be
 * there. False: the store cannot be read. */
bool engine_referrers(struct engine *engine, struct replica_id to, uint32_t kinds, engine_referrer_each *each,
                      void *context);
/* And to what is no replicant, of a site. */
struct engine_local {
	struct engine_name name;
	site_id site;
};
bool engine_referrers_local(struct engine *engine, const struct engine_local *to, uint32_t kinds,
                            engine_referrer_each *each, void *context);
/* What one refers to; slices are of the arena. False: nothing is recorded. */
bool engine_refers(struct engine *engine, struct replica_id from, struct arena *arena, struct relation_record *record);

/* What a replicant is, in short; slices are of the struct. False: it is not here, or gone. */
struct engine_about {
	struct str type;
	struct str name; /* "": it has none */
	char text[2 * LIMIT_REPLICA_NAME_BYTES];
};

bool engine_about(struct engine *engine, struct replica_id id, struct engine_about *about);

/* What is no replicant was deleted at that site, for good: who relies on it is at risk. Any thread, takes effect soon. */
void engine_relied_is_gone(struct engine *engine, const struct engine_name *name, site_id site);

/* Why a replicant is at risk at this site: what it relies on, of what it refers to, and why each. Slices are of the arena. False: it is
 * not. */
bool engine_risk_of(struct engine *engine, struct replica_id id, struct arena *arena, struct relation_risks *risks);

/* ---- The engine's thread: with what was put since -------------------------------------------------------------------- */

struct run;

bool engine_relations_to(struct engine *engine, const struct relation_target *to, site_id site, uint32_t kinds,
                         engine_referrer_each *each, void *context);
bool engine_relations_from(struct engine *engine, struct replica_id from, struct arena *arena,
                           struct relation_record *record);

/* The row of a replicant is about to be put, or (NULL) removed. */
void engine_relations_row(struct engine *engine, struct str key, const struct str *row);
/* An operation had its effect here; before src/replica is told. */
void engine_relations_ran(const struct run *run);

/* risks.c: who is at risk. */
enum relation_risk engine_risk_for(struct engine *engine, const struct relation_fact *fact);
/* What of it would be, and is not, if a site were lost. False: nothing. Slices are of the arena. */
bool engine_risks_without(struct engine *engine, struct arena *arena, struct replica_id id, site_id site,
                          struct relation_risks *risks);
/* What is no replicant, of that site: was it deleted? */
bool engine_relied_was_deleted(struct engine *engine, const struct relation_target *target, site_id site);
/* What it relies on has changed, or may have. */
void engine_risk_look(struct engine *engine, struct replica_id id);
/* Before a commit: those are looked at. */
void engine_risks_review(struct engine *engine);
/* Sites have come, or gone: `before` is what was known of them; NULL: nothing. */
void engine_risks_meet(struct engine *engine, const struct site_snapshot *before);
/* How many there are is counted anew, from the rows. */
int engine_risks_load(struct engine *engine);
void engine_risks_free(struct engine *engine);

#endif
