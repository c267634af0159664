/* What depends on what, to be shown (docs/relations.md): what one resource needs, who refers to it, what would suffer if it, or a
 * site, went away. Of what this site knows; in the engine's thread. */
#ifndef ENGINE_DEPS_H
#define ENGINE_DEPS_H

#include "engine/relations.h"

enum engine_deps_view {
	ENGINE_DEPS_TREE,   /* what it needs, and what it is made of, or contains */
	ENGINE_DEPS_WHY,    /* who refers to it */
	ENGINE_DEPS_IMPACT, /* who would suffer if it went: who relies on it, what is in it, its parts */
	ENGINE_DEPS_VIEWS,
};

/* How one relates to the one above it. */
enum engine_dep_word {
	ENGINE_DEP_ROOT,
	ENGINE_DEP_REQUIRED,  /* the one above requires it */
	ENGINE_DEP_RELIED,    /* relies on it */
	ENGINE_DEP_PART,      /* is made of it */
	ENGINE_DEP_CONTAINER, /* is in it */
	ENGINE_DEP_CONTENT,   /* it is in the one above */
	ENGINE_DEP_REQUIRES,  /* it requires the one above */
	ENGINE_DEP_RELIES,    /* relies on it */
	ENGINE_DEP_WHOLE,     /* is made of it */
	ENGINE_DEP_WORDS,
};

/* "requires", "relies-on", "part", "in", "contains", "required-by", "relied-on-by", "part-of": from the one above. */
const char *engine_dep_word_name(enum engine_dep_word word);

/* They come in the order of a drawing: each right behind the one above it, or what is below a sibling. */
struct engine_dep {
	uint32_t depth; /* 0: the one that was asked for */
	enum engine_dep_word word;
	struct str place; /* where it stands; "": it is a referrer */
	struct relation_target target;
	const struct replica_view *view;     /* NULL: it is no replicant, or not known here */
	site_id sites[LIMIT_RELATION_SITES]; /* that it is taken from, if the scope said so */
	uint32_t sites_count;
	enum relation_risk risk; /* of what is relied on: for the one above */
	bool gone;
	bool again; /* it is shown elsewhere: not what is below it */
	bool cut;   /* not all that is below it is shown: too deep, too many */
};

struct engine_deps {
	const struct engine_dep *deps;
	uint32_t count;
};

/* ERR_NOT_FOUND: nothing is known of it here. */
int engine_deps_find(struct engine *engine, struct arena *arena, const struct relation_target *root,
                     enum engine_deps_view view, struct engine_deps *deps, struct err *err);

/* What one replicant would lose if a site went away. */
enum engine_loss {
	ENGINE_LOSS_NONE,
	ENGINE_LOSS_COPY,   /* one of several copies, or its part */
	ENGINE_LOSS_ALL,    /* the only site that holds it */
	ENGINE_LOSS_RELIED, /* what it relies on */
};

struct engine_suffering {
	const struct replica_view *view;
	enum engine_loss loss;
	const struct relation_risks *risks; /* RELIED: what; else NULL */
};

enum engine_loss engine_loss_of(struct engine *engine, struct arena *arena, const struct replica_view *view,
                                site_id site, const struct relation_risks **risks);

#endif
