/* Trees of what depends on what. A resource that refers to itself in a circle is shown once with what is below it; depth and number are
 * limited, and where something is left out it is said. */
#include "engine/deps.h"
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct growing {
	struct engine *engine;
	struct arena *arena;
	enum engine_deps_view view;
	struct engine_dep *deps;
	uint32_t count;
	bool full;
};

const char *engine_dep_word_name(enum engine_dep_word word)
{
	static const char *const names[ENGINE_DEP_WORDS] = {[ENGINE_DEP_ROOT] = "",
	                                                    [ENGINE_DEP_REQUIRED] = "requires",
	                                                    [ENGINE_DEP_RELIED] = "relies-on",
	                                                    [ENGINE_DEP_PART] = "part",
	                                                    [ENGINE_DEP_CONTAINER] = "in",
	                                                    [ENGINE_DEP_CONTENT] = "contains",
	                                                    [ENGINE_DEP_REQUIRES] = "required-by",
	                                                    [ENGINE_DEP_RELIES] = "relied-on-by",
	                                                    [ENGINE_DEP_WHOLE] = "part-of"};
	CHECK(word < ENGINE_DEP_WORDS);
	return names[word];
}

/* ---- One of them ------------------------------------------------------------------------------------------------------- */

static bool is_shown(const struct growing *growing, const struct engine_dep *dep)
{
	for (uint32_t i = 0; i < growing->count; i++) {
		const struct engine_dep *other = &growing->deps[i];
		bool same_site =
			dep->target.managed || (other->sites_count == dep->sites_count &&
		                            memcmp(other->sites, dep->sites, dep->sites_count * sizeof(site_id)) == 0);
		if (same_site && relation_target_equal(&other->target, &dep->target))
			return true;
	}
	return false;
}

static void look_at(struct growing *growing, struct engine_dep *dep)
{
	struct engine *engine = growing->engine;
	if (!dep->target.managed) {
		site_id site = dep->sites_count > 0 ? dep->sites[0] : engine->options.self;
		dep->gone = engine_relied_was_deleted(engine, &dep->target, site);
		return;
	}
	struct replica_view *view = arena_new(growing->arena, struct replica_view);
	if (replica_look(engine->replica, growing->arena, dep->target.id, view) == 0) {
		dep->view = view;
		dep->target.id = view->id;
		dep->gone = view->deleted && !view->left;
	}
}

static struct engine_dep *add(struct growing *growing, const struct engine_dep *dep)
{
	if (growing->count == LIMIT_DEPS_SHOWN) {
		growing->full = true;
		return NULL;
	}
	struct engine_dep *added = &growing->deps[growing->count];
	*added = *dep;
	look_at(growing, added);
	added->again = is_shown(growing, added);
	growing->count++;
	return added;
}

static void grow(struct growing *growing, uint32_t at);

/* Below the one at `above`. */
static void grow_one(struct growing *growing, uint32_t above, struct engine_dep *dep)
{
	uint32_t at = growing->count;
	dep->depth = growing->deps[above].depth + 1;
	if (add(growing, dep))
		grow(growing, at);
	else
		growing->deps[above].cut = true;
}

/* ---- What it refers to -------------------------------------------------------------------------------------------------- */

static void grow_facts(struct growing *growing, uint32_t above, uint32_t kinds)
{
	static const enum engine_dep_word words[GLUE_KINDS] = {[GLUE_REQUIREMENT] = ENGINE_DEP_REQUIRED,
	                                                       [GLUE_RELIANCE] = ENGINE_DEP_RELIED,
	                                                       [GLUE_COMPOSITION] = ENGINE_DEP_PART,
	                                                       [GLUE_CONTAINED] = ENGINE_DEP_CONTAINER};
	struct relation_record *record = calloc(1, sizeof(*record)); /* it is large, and not needed for long */
	CHECK(record);
	engine_relations_from(growing->engine, growing->deps[above].target.id, growing->arena, record);
	growing->deps[above].cut |= record->more;
	for (uint32_t i = 0; i < record->count; i++) {
		const struct relation_fact *fact = &record->facts[i];
		struct engine_dep dep = {.word = words[fact->kind],
		                         .place = fact->where == RELATION_IN_BODY ? fact->place : STR(""),
		                         .target = fact->to,
		                         .sites_count = fact->sites_count};
		if (!(kinds & 1U << fact->kind))
			continue;
		memcpy(dep.sites, fact->sites, sizeof(dep.sites));
		dep.risk = engine_risk_for(growing->engine, fact);
		grow_one(growing, above, &dep);
	}
	free(record);
}

/* ---- Who refers to it --------------------------------------------------------------------------------------------------- */

struct referrers {
	struct engine_referrer *at;
	uint32_t count;
	bool more;
};

static bool take(void *context, const struct engine_referrer *referrer)
{
	struct referrers *referrers = context;
	referrers->more = referrers->count == LIMIT_DEPS_SHOWN;
	if (!referrers->more)
		referrers->at[referrers->count++] = *referrer;
	return !referrers->more;
}

static enum engine_dep_word word_of(uint32_t kinds)
{
	if (kinds & 1U << GLUE_RELIANCE)
		return ENGINE_DEP_RELIES;
	if (kinds & 1U << GLUE_CONTAINED)
		return ENGINE_DEP_CONTENT;
	return kinds & 1U << GLUE_COMPOSITION ? ENGINE_DEP_WHOLE : ENGINE_DEP_REQUIRES;
}

static void grow_referrers(struct growing *growing, uint32_t above, uint32_t kinds)
{
	struct referrers referrers = {.at = calloc(LIMIT_DEPS_SHOWN, sizeof(*referrers.at))};
	CHECK(referrers.at);
	const struct engine_dep *dep = &growing->deps[above];
	site_id site = dep->sites_count > 0 ? dep->sites[0] : growing->engine->options.self;
	engine_relations_to(growing->engine, &dep->target, site, kinds, take, &referrers);
	growing->deps[above].cut |= referrers.more;
	for (uint32_t i = 0; i < referrers.count; i++) {
		struct engine_dep below = {.word = word_of(referrers.at[i].kinds & kinds),
		                           .target = {.managed = true, .id = referrers.at[i].from}};
		grow_one(growing, above, &below);
	}
	free(referrers.at);
}

/* ---- Trees ------------------------------------------------------------------------------------------------------------- */

enum {
	NEEDS = 1U << GLUE_REQUIREMENT | 1U << GLUE_RELIANCE | 1U << GLUE_COMPOSITION | 1U << GLUE_CONTAINED,
	CONTENTS = 1U << GLUE_CONTAINED,
	/* Who is made of a part, or requires something, goes on without it. */
	SUFFERS = 1U << GLUE_RELIANCE | 1U << GLUE_CONTAINED,
	ANY = UINT32_MAX,
};

static void grow(struct growing *growing, uint32_t at)
{
	struct engine_dep *dep = &growing->deps[at];
	bool managed = dep->target.managed;
	if (dep->again || growing->full)
		return;
	if (dep->depth == LIMIT_DEPS_DEPTH) {
		dep->cut = true;
		return;
	}
	switch (growing->view) {
	case ENGINE_DEPS_TREE:
		if (managed)
			grow_facts(growing, at, NEEDS);
		/* What else is in a container is not why one of them needs it. */
		if (managed && growing->deps[at].word != ENGINE_DEP_CONTAINER)
			grow_referrers(growing, at, CONTENTS);
		break;
	case ENGINE_DEPS_WHY: grow_referrers(growing, at, ANY); break;
	case ENGINE_DEPS_IMPACT:
		if (managed)
			grow_facts(growing, at, 1U << GLUE_COMPOSITION);
		grow_referrers(growing, at, SUFFERS);
		break;
	case ENGINE_DEPS_VIEWS: break;
	}
}

static int refuse_unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
	               "nothing is known of it at this site: no replicated resource has that id, and none refers to it; "
	               "other sites may know it");
}

int engine_deps_find(struct engine *engine, struct arena *arena, const struct relation_target *root,
                     enum engine_deps_view view, struct engine_deps *deps, struct err *err)
{
	struct growing growing = {.engine = engine,
	                          .arena = arena,
	                          .view = view,
	                          .deps = arena_array(arena, struct engine_dep, LIMIT_DEPS_SHOWN)};
	struct referrers any = {.at = arena_array(arena, struct engine_referrer, LIMIT_DEPS_SHOWN)};
	add(&growing, &(struct engine_dep){.target = *root});
	if (!growing.deps[0].view)
		engine_relations_to(engine, &growing.deps[0].target, engine->options.self, ANY, take, &any);
	if (!growing.deps[0].view && any.count == 0)
		return refuse_unknown(err);
	grow(&growing, 0);
	*deps = (struct engine_deps){growing.deps, growing.count};
	return 0;
}

/* ---- A site that goes --------------------------------------------------------------------------------------------------- */

enum engine_loss engine_loss_of(struct engine *engine, struct arena *arena, const struct replica_view *view,
                                site_id site, const struct relation_risks **risks)
{
	bool holds = false, others = false;
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct replica_member_view *member = &view->members[i];
		holds |= member->site == site && !member->witness;
		others |= member->site != site && !member->witness;
	}
	*risks = NULL;
	if (holds && !others)
		return ENGINE_LOSS_ALL;
	struct relation_risks *found = calloc(1, sizeof(*found));
	CHECK(found);
	bool relied = engine_risks_without(engine, arena, view->id, site, found);
	if (relied) {
		struct relation_risks *kept = arena_new(arena, struct relation_risks);
		*kept = *found;
		*risks = kept;
	}
	free(found);
	return relied ? ENGINE_LOSS_RELIED : holds ? ENGINE_LOSS_COPY : ENGINE_LOSS_NONE;
}
