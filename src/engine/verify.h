/* Comparing the copies of a replicant, as the services of its members have them, and giving one to all.
 *
 * Somebody may have changed a copy behind the agents' backs, through the service itself. Nobody is told of that; whoever wants to
 * know asks (`cheops get --verify`), and says whose copy is right (`cheops repair`).
 *
 * engine_verify():
 *   1. this agent reads its own copy through its service, with its own credential: ids become meta-ids, what the description calls
 *      volatile is left out, the rest is put into one form (glue_comparable())
 *   2. meanwhile it asks the agents of the other members for theirs (GET /cheops/v1/copies/ID on their port for agents: only
 *      members are answered)
 *   3. the largest group of equal copies is what the others are compared with; of two that are as large, none is right
 * A copy is only compared with those that have seen the same operations. One that has not carried out all that it knows, or has less
 * than another one, or changed while it was read, is `not settled`; it is not called different.
 * Nothing is written, and nothing waits for it: it reads beside the lane.
 *
 * Facets, such as files, are compared behind that, where the description can read and set them as a whole (facets.h): each agent
 * reads those of its copy through a hash, and says what came (GET /cheops/v1/copies/ID/facets). It is a question of its own, since it
 * may take minutes: only members are asked that have answered the first one.
 *
 * engine_give(): the agent of the chosen member (asked at its port for agents, if it is another one) has src/replica issue its copy
 * as a `replace` that had seen everything, and each of its facets as another one behind it.
 *
 * What goes wrong: a site that cannot be reached, or whose service does not answer, is `unknown`, with the reason; the others are
 * compared all the same.
 */
#ifndef ENGINE_VERIFY_H
#define ENGINE_VERIFY_H

#include "engine/engine.h"

#include "base/arena.h"

/* ---- One copy --------------------------------------------------------------------------------------------------------- */

enum engine_read {
	ENGINE_READ_HERE,
	ENGINE_READ_MISSING,   /* the service has nothing of that id, or never had */
	ENGINE_READ_UNSETTLED, /* it is being changed */
	ENGINE_READ_FAILED,    /* nobody can say */
	ENGINE_READS,
};

const char *engine_read_name(enum engine_read kind); /* "here", "missing"... */

enum engine_facet {
	ENGINE_FACET_HERE,
	ENGINE_FACET_NONE,   /* the item has none */
	ENGINE_FACET_FAILED, /* nobody can say */
	ENGINE_FACETS,
};

const char *engine_facet_kind_name(enum engine_facet kind); /* "here", "none", "unknown" */

struct engine_facet_reading {
	struct str name;
	enum engine_facet kind;
	struct str digest; /* HERE: SHA-256 in hexadecimal, of a file its own */
	uint64_t bytes;
	struct str reason; /* FAILED: why, for people */
};

struct engine_reading {
	enum engine_read kind;
	struct str session; /* what it has seen: replica_session_put() */
	struct str digest;  /* HERE: SHA-256 in hexadecimal */
	struct str text;    /* HERE: in comparable form; "": it is no JSON, or longer than LIMIT_ENGINE_COMPARED_BYTES */
	struct str reason;  /* otherwise: why, for people */
	struct str
		parts; /* HERE: what its application made for it, [{"service":…,"type":…,"id":…}]; "": it has no such things */
	const struct engine_facet_reading *facets; /* instead of `digest` and `text`, where they were asked for */
	uint32_t facets_count;
};

struct engine_copy_question {
	struct replica_id replicant;
	bool facets;  /* not the item: its facets */
	site_id from; /* the member that asks */
	/* In the loop of the question, once; or dropped(), as in struct engine_question. ERR_NOT_FOUND: it is no member, or there is
	 * no such replicant. */
	struct http_loop *loop;
	void (*done)(void *context, int code, const struct engine_reading *reading);
	void (*dropped)(void *context);
	void *context;
};

void engine_copy_ask(struct engine *engine, const struct engine_copy_question *question);

/* ---- All of them ------------------------------------------------------------------------------------------------------ */

enum engine_verdict {
	ENGINE_SAME,
	ENGINE_DIFFERS,
	ENGINE_MISSING,
	ENGINE_NOT_SETTLED,
	ENGINE_UNKNOWN,
	ENGINE_VERDICTS,
};

const char *engine_verdict_name(enum engine_verdict verdict); /* "same", "differs", "not-settled"... */

/* What becomes of readings. Pure. *reference: one of the largest group, `count`: there is none; *tie: others are as large, and
 * all differ from each other. */
void engine_compare(const struct engine_reading *readings, uint32_t count, enum engine_verdict *verdicts,
                    uint32_t *reference, bool *tie);

/* The same of one facet. `readings` has that facet of each member, NULL where it was not asked, or has not said; verdicts are SAME for
 * such a one. */
void engine_facets_compare(const struct engine_facet_reading *const *readings, uint32_t count,
                           enum engine_verdict *verdicts, uint32_t *reference, bool *tie);

/* What of a value is shown: a scalar, cut short; of anything larger, that it is there; of what its name calls secret, nothing. */
void engine_value_show(struct str pointer, struct str value, struct buf *out);

struct engine_difference {
	struct str pointer;
	struct str here;      /* at this member; "": it is not there */
	struct str elsewhere; /* in what it is compared with */
};

struct engine_facet_verdict {
	const struct engine_facet_reading *reading;
	enum engine_verdict verdict; /* MISSING: there is none here, and others have one */
	site_id reference;           /* with whose it was compared; 0: with none */
};

struct engine_member_verdict {
	site_id site;
	enum engine_verdict verdict; /* of its facets as well: one that differs makes it DIFFERS */
	struct str reason;           /* "" for SAME */
	struct str parts;            /* as in struct engine_reading */
	const struct engine_facet_verdict *facets;
	uint32_t facets_count;
	const struct engine_difference *differences;
	uint32_t differences_count;
	bool more; /* there are others */
};

struct engine_verified {
	int code; /* 0; or ERR_NOT_FOUND, ERR_LIMIT, ERR_UNAVAILABLE */
	struct str text;
	const struct replica_view *view;
	const struct engine_member_verdict *members;
	uint32_t members_count;
	const struct engine_reading *readings; /* of each: what it was judged by, as it was read */
	site_id reference;                     /* what was compared with; 0: there was no copy to compare with */
	bool tie;
	const struct str *not_compared; /* facets that cannot be: those that no request reads, or sets as a whole */
	uint32_t not_compared_count;
	const struct str
		*not_removable; /* facets that no request takes away: a repair leaves them where others have them */
	uint32_t not_removable_count;
	site_id self;
	const struct site_snapshot *sites;
};

struct engine_verification {
	struct replica_id replicant;
	bool parts; /* only what each is made of: facets are not looked at */
	/* As in struct engine_question. */
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_verified *verified);
	void (*dropped)(void *context);
	void *context;
};

void engine_verify(struct engine *engine, const struct engine_verification *verification);

/* ---- The copy of one for all ------------------------------------------------------------------------------------------ */

struct engine_given {
	unsigned status;    /* 200; or of a refusal, with `problem` and `text` */
	struct str problem; /* as in docs/problems.md */
	struct str text;
	struct replica_op_id op;
	struct str
		left; /* facets that this copy has not, and that nothing takes away from the others: names, a space between */
	uint32_t parts; /* its files and other facets, each an operation of its own: the numbers that follow */
};

struct engine_gift {
	struct replica_id replicant;
	struct str from; /* whose copy: a site's name; "": this one's */
	site_id asker;   /* another agent; 0: a user */
	/* As in struct engine_question. */
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_given *given);
	void (*dropped)(void *context);
	void *context;
};

void engine_give(struct engine *engine, const struct engine_gift *gift);

#endif
