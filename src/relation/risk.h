/* Who is at risk: one whose site cannot get at what it relies on, because that is only at sites which cannot be reached, or is gone
 * (DESIGN 9, docs/relations.md). Pure: what is known of the world is asked. */
#ifndef RELATION_RISK_H
#define RELATION_RISK_H

#include "relation/record.h"

enum relation_risk {
	RELATION_SAFE,
	RELATION_UNDECIDED,   /* not known yet: it stays what it was */
	RELATION_UNREACHABLE, /* it is at sites that cannot be reached, all of them */
	RELATION_GONE,
	RELATION_RISKS,
};

const char *relation_risk_name(enum relation_risk risk); /* "safe", "undecided", "unreachable", "gone" */

enum relation_reach {
	RELATION_REACHED,
	RELATION_LOST,
	RELATION_UNHEARD, /* not heard of since this agent was started: it may be there */
};

/* What is known of a target. */
struct relation_place {
	bool gone;
	bool here;                            /* this site has it; else: */
	site_id sites[LIMIT_REPLICA_HOLDERS]; /* those that have */
	uint32_t sites_count;
};

struct relation_world {
	void *context;
	void (*find)(void *context, const struct relation_fact *fact, struct relation_place *place);
	enum relation_reach (*reach)(void *context, site_id site); /* of any site, this one too */
};

enum relation_risk relation_fact_risk(const struct relation_fact *fact, const struct relation_world *world);

/* What of a record is at risk, and why each. */
struct relation_risks {
	struct relation_record record;
	uint8_t why[LIMIT_RELATION_FACTS]; /* enum relation_risk */
};

/* `before`: what was told last, which stands where nothing is decided; NULL: nothing was. */
void relation_risks_find(const struct relation_record *record, const struct relation_world *world,
                         const struct relation_risks *before, struct relation_risks *risks);
void relation_risks_put(const struct relation_risks *risks, struct buf *out);
int relation_risks_parse(struct str row, struct relation_risks *risks, struct err *err);

#endif
