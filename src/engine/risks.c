/* Who is at risk (DESIGN 9): replicants with a copy here whose site cannot get at what they rely on.
 *
 *   k FROM     what of it is at risk, and why: src/relation/risk.c
 *   g TARGET   what is no replicant, and was deleted by a request that came by here, for good; empty
 *
 * Looked at are
 *   those whose references have changed, or what they refer to came, went, or was deleted: before the commit of that, so that both are
 *   told of together
 *   all that rely on something, when the mesh says of a site that it is lost, or there again: some at a time, so that nobody waits
 * Whoever is at risk, or is not any more, is told of once, as a change (changes.c): the rows remember it over restarts. A suspicion is no
 * reason yet. After a start other sites count as lost until they are heard of: nothing is concluded from that for a while.
 */
#include "engine/engine_int.h"
#include "engine/relations.h"

#include "base/check.h"

#include <stdlib.h>

enum {
	AT_ONCE = 128,      /* looked at before others have their turn */
	UNHEARD_MS = 15000, /* after a start */
	BETWEEN_MS = 2,     /* turns */
};

static const enum replica_table TABLE = (enum replica_table)ENGINE_RELATIONS;

static struct str id_str(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}

static void key_of(struct buf *key, char kind, struct str rest)
{
	buf_clear(key);
	buf_put_char(key, kind);
	buf_put(key, rest);
}

/* ---- What is known ---------------------------------------------------------------------------------------------------- */

static void find_replicant(struct engine *engine, struct replica_id id, struct relation_place *place)
{
	struct buf row = {0};
	struct replica_here here = {.alias = true, .other = id};
	int code = 0;
	for (int i = 0; code == 0 && i <= LIMIT_REPLICA_ALIASES && here.alias; i++) {
		struct replica_id next = here.other;
		buf_clear(&row);
		code = engine_row_get(engine, REPLICA_REPLICANTS, id_str(&next), &row);
		if (code == 0)
			code = replica_here_parse(buf_str(&row), engine->options.self, &here, NULL);
	}
	buf_free(&row);
	/* Whoever relies on it was not made before it was here: if it has no id here, it was deleted. */
	place->gone = code == ERR_NOT_FOUND || (code == 0 && (here.gone || (!here.witness && here.local_id_bytes == 0)));
	place->here = !here.witness;
	place->sites_count = code == 0 && here.witness ? here.holders_count : 0;
	if (place->sites_count > 0)
		memcpy(place->sites, here.holders, place->sites_count * sizeof(place->sites[0]));
}

static void gone_key(struct buf *key, const struct relation_target *target, site_id site)
{
	buf_clear(key);
	buf_put_char(key, 'g');
	relation_target_key(target, site, key);
}

bool engine_relied_was_deleted(struct engine *engine, const struct relation_target *target, site_id site)
{
	struct buf key = {0}, row = {0};
	gone_key(&key, target, site);
	bool deleted = engine_row_get(engine, TABLE, buf_str(&key), &row) == 0;
	buf_free(&key);
	buf_free(&row);
	return deleted;
}

static bool is_known(struct engine *engine, struct replica_id id)
{
	struct buf row = {0};
	bool known = engine_row_get(engine, REPLICA_REPLICANTS, id_str(&id), &row) == 0;
	buf_free(&row);
	return known;
}

/* What the scope takes from another site need not be known here by its meta-id: then only that site counts. */
static void find(void *context, const struct relation_fact *fact, struct relation_place *place)
{
	struct engine *engine = context;
	bool shared = fact->sites_count > 0;
	if (!fact->to.managed)
		place->gone = engine_relied_was_deleted(engine, &fact->to, shared ? fact->sites[0] : engine->options.self);
	else if (!shared || is_known(engine, fact->to.id))
		find_replicant(engine, fact->to.id, place);
	place->here |= !fact->to.managed && !shared;
}

static enum relation_reach reach(void *context, site_id site)
{
	struct engine *engine = context;
	const struct risks *risks = &engine->risks;
	const struct site_place *place = engine_find_place(engine, site);
	bool alive =
		site == engine->options.self || (place && (place->state == SITE_ALIVE || place->state == SITE_SUSPECT));
	if (alive)
		return RELATION_REACHED;
	bool left = !place || place->state == SITE_LEFT || place->state == SITE_REVOKED;
	if (left && engine->sites)
		return RELATION_LOST;
	bool met = map_get(&risks->met, str_make((const char *)&site, sizeof(site))) != NULL;
	return risks->settled || met ? RELATION_LOST : RELATION_UNHEARD;
}

/* ---- One of them ------------------------------------------------------------------------------------------------------ */

static void tell(struct engine *engine, struct replica_id id, const struct relation_risks *risks)
{
	struct replica_event event = {.kind = REPLICA_EVENT_SAFE, .op.replicant = id};
	if (risks->record.count > 0) {
		const struct relation_fact *fact = &risks->record.facts[0];
		struct relation_place place = {0};
		event.kind = REPLICA_EVENT_AT_RISK;
		if (fact->to.managed)
			event.into = fact->to.id;
		if (fact->sites_count == 0)
			find(engine, fact, &place);
		if (risks->why[0] == RELATION_UNREACHABLE)
			event.member = fact->sites_count > 0 ? fact->sites[0] : place.sites[0];
	}
	struct action *action = calloc(1, sizeof(*action));
	CHECK(action);
	action->kind = ACTION_EVENT;
	action->event = event;
	engine_hold(engine, action);
}

static void keep(struct engine *engine, struct replica_id id, const struct relation_risks *before,
                 const struct relation_risks *now)
{
	struct buf key = {0}, row = {0}, old = {0};
	bool was = before->record.count > 0, is = now->record.count > 0;
	relation_risks_put(now, &row);
	relation_risks_put(before, &old);
	key_of(&key, 'k', id_str(&id));
	if (is && !str_equal(buf_str(&row), buf_str(&old)))
		engine_row_put(engine, TABLE, buf_str(&key), buf_str(&row));
	else if (was && !is)
		engine_row_remove(engine, TABLE, buf_str(&key));
	if (was != is) {
		engine->risks.count = is ? engine->risks.count + 1 : engine->risks.count - 1;
		tell(engine, id, now);
	}
	buf_free(&key);
	buf_free(&row);
	buf_free(&old);
}

static void load(struct engine *engine, struct replica_id id, struct arena *arena, struct relation_risks *risks)
{
	struct buf key = {0}, row = {0};
	key_of(&key, 'k', id_str(&id));
	risks->record.count = 0;
	if (engine_row_get(engine, TABLE, buf_str(&key), &row) == 0)
		relation_risks_parse(str_make(arena_copy(arena, row.at ? row.at : "", row.length), row.length), risks, NULL);
	buf_free(&key);
	buf_free(&row);
}

enum relation_risk engine_risk_for(struct engine *engine, const struct relation_fact *fact)
{
	struct relation_world world = {engine, find, reach};
	return relation_fact_risk(fact, &world);
}

/* A world in which one more site is lost. */
struct without {
	struct engine *engine;
	site_id site;
};

static void find_without(void *context, const struct relation_fact *fact, struct relation_place *place)
{
	const struct without *without = context;
	find(without->engine, fact, place);
}

static enum relation_reach reach_without(void *context, site_id site)
{
	const struct without *without = context;
	return site == without->site ? RELATION_LOST : reach(without->engine, site);
}

bool engine_risks_without(struct engine *engine, struct arena *arena, struct replica_id id, site_id site,
                          struct relation_risks *risks)
{
	struct relation_record *record = calloc(1, sizeof(*record));
	CHECK(record);
	engine_relations_from(engine, id, arena, record);
	risks->record.count = 0;
	for (uint32_t i = 0; i < record->count; i++) {
		const struct relation_fact *fact = &record->facts[i];
		struct without without = {engine, site};
		struct relation_world world = {&without, find_without, reach_without};
		if (engine_risk_for(engine, fact) != RELATION_SAFE || relation_fact_risk(fact, &world) != RELATION_UNREACHABLE)
			continue;
		risks->why[risks->record.count] = RELATION_UNREACHABLE;
		risks->record.facts[risks->record.count++] = *fact;
	}
	free(record);
	return risks->record.count > 0;
}

static void look_at(struct engine *engine, struct replica_id id)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct relation_record *record = arena_new(&arena, struct relation_record);
	struct relation_risks *before = arena_new(&arena, struct relation_risks);
	struct relation_risks *now = arena_new(&arena, struct relation_risks);
	load(engine, id, &arena, before);
	if (engine_relations_from(engine, id, &arena, record))
		relation_risks_find(record, &(struct relation_world){engine, find, reach}, before, now);
	keep(engine, id, before, now);
	arena_free(&arena);
}

/* ---- Those that changed ------------------------------------------------------------------------------------------------ */

void engine_risk_look(struct engine *engine, struct replica_id id)
{
	buf_put(&engine->risks.due, id_str(&id));
}

static bool take_id(struct buf *ids, struct replica_id *id)
{
	if (ids->length < sizeof(id->bytes))
		return false;
	ids->length -= sizeof(id->bytes);
	memcpy(id->bytes, ids->at + ids->length, sizeof(id->bytes));
	return true;
}

void engine_risks_review(struct engine *engine)
{
	struct replica_id id;
	/* Nothing is known of other sites yet: it is looked at when something is. */
	while (engine->failure.code == 0 && take_id(&engine->risks.due, &id))
		if (engine->sites)
			look_at(engine, id);
}

/* ---- All of them, some at a time --------------------------------------------------------------------------------------- */

struct page {
	struct buf ids;
	struct replica_id after;
	bool begun;
};

static bool note(void *context, struct str key, struct str row)
{
	struct page *page = context;
	struct replica_id id;
	(void)row;
	if (key.length != 1 + sizeof(id.bytes))
		return true;
	memcpy(id.bytes, key.at + 1, sizeof(id.bytes));
	if (page->begun && memcmp(id.bytes, page->after.bytes, sizeof(id.bytes)) == 0)
		return true;
	buf_put(&page->ids, id_str(&id));
	return page->ids.length < AT_ONCE * sizeof(id.bytes);
}

/* The next of those that rely on something. */
static bool sweep_some(struct engine *engine)
{
	struct risks *risks = &engine->risks;
	struct page page = {.after = risks->after, .begun = risks->begun};
	struct buf from = {0};
	struct replica_id id;
	if (risks->begun)
		key_of(&from, 'r', id_str(&risks->after));
	int code = engine_row_scan(engine, TABLE, STR("r"), buf_str(&from), note, &page);
	size_t count = page.ids.length / sizeof(id.bytes);
	if (count > 0)
		memcpy(risks->after.bytes, page.ids.at + (count - 1) * sizeof(id.bytes), sizeof(id.bytes));
	risks->begun = true;
	while (take_id(&page.ids, &id))
		look_at(engine, id);
	buf_free(&page.ids);
	buf_free(&from);
	return code == 0 && count == AT_ONCE;
}

static void sweep(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, risks.timer));
	engine->risks.timed = false;
	if (!engine->replica || !engine->sites)
		return;
	bool more = sweep_some(engine);
	engine_changed_soon(engine);
	if (!more)
		return;
	engine->risks.timed = true;
	http_timer_set(engine->loop, &engine->risks.timer, BETWEEN_MS);
}

/* From the first, whatever was under way. */
static void sweep_all(struct engine *engine)
{
	struct risks *risks = &engine->risks;
	risks->begun = false;
	if (risks->timed)
		http_timer_clear(engine->loop, &risks->timer);
	risks->timer.fire = sweep;
	risks->timed = true;
	http_timer_set(engine->loop, &risks->timer, 0);
}

static bool is_alive(const struct site_place *place)
{
	return place->state == SITE_ALIVE || place->state == SITE_SUSPECT;
}

/* That a site was there in this life is remembered: only then is its loss one. */
static void remember(struct engine *engine, site_id site)
{
	struct risks *risks = &engine->risks;
	struct str key = str_make((const char *)&site, sizeof(site));
	if (map_get(&risks->met, key))
		return;
	site_id *kept = malloc(sizeof(*kept));
	CHECK(kept);
	*kept = site;
	map_set(&risks->met, str_make((const char *)kept, sizeof(*kept)), kept);
}

static void settle(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, risks.settling));
	engine->risks.settled = true;
	sweep_all(engine);
}

void engine_risks_meet(struct engine *engine, const struct site_snapshot *before)
{
	const struct site_snapshot *now = engine->sites;
	bool changed = !before || before->places_count != now->places_count;
	for (uint32_t i = 0; i < now->places_count; i++) {
		const struct site_place *place = &now->places[i];
		uint32_t was = before ? site_snapshot_find(before, place->id) : SCOPE_NO_INDEX;
		changed |= was == SCOPE_NO_INDEX || is_alive(&before->places[was]) != is_alive(place);
		if (is_alive(place))
			remember(engine, place->id);
	}
	if (!before) {
		engine->risks.settling.fire = settle;
		http_timer_set(engine->loop, &engine->risks.settling, UNHEARD_MS);
	}
	if (changed)
		sweep_all(engine);
}

/* ---- From elsewhere ---------------------------------------------------------------------------------------------------- */

struct gone {
	struct http_task task;
	struct engine *engine;
	struct relation_target target;
	site_id site;
	struct buf text;
};

static bool look_later(void *context, const struct engine_referrer *referrer)
{
	engine_risk_look(context, referrer->from);
	return true;
}

static void take_gone(struct http_task *task)
{
	struct gone *gone = (struct gone *)task;
	struct engine *engine = gone->engine;
	struct buf key = {0};
	if (engine->replica) {
		gone_key(&key, &gone->target, gone->site);
		engine_row_put(engine, TABLE, buf_str(&key), STR(""));
		engine_relations_to(engine, &gone->target, gone->site, 1U << GLUE_RELIANCE, look_later, engine);
		engine_changed(engine);
	}
	buf_free(&key);
	buf_free(&gone->text);
	free(gone);
}

static struct str cut(const struct buf *text, size_t *at, size_t length)
{
	struct str part = str_make(buf_c(text) + *at, length);
	*at += length;
	return part;
}

void engine_relied_is_gone(struct engine *engine, const struct engine_name *name, site_id site)
{
	struct gone *gone = calloc(1, sizeof(*gone));
	size_t at = 0;
	CHECK(gone);
	buf_put(&gone->text, name->service);
	buf_put(&gone->text, name->type);
	buf_put(&gone->text, name->collection);
	buf_put(&gone->text, name->id);
	gone->target.service = cut(&gone->text, &at, name->service.length);
	gone->target.type = cut(&gone->text, &at, name->type.length);
	gone->target.collection = cut(&gone->text, &at, name->collection.length);
	gone->target.name = cut(&gone->text, &at, name->id.length);
	gone->engine = engine;
	gone->site = site;
	gone->task.run = take_gone;
	http_loop_post(engine->loop, &gone->task);
}

bool engine_risk_of(struct engine *engine, struct replica_id id, struct arena *arena, struct relation_risks *risks)
{
	struct look look;
	struct buf key = {0};
	struct str row;
	risks->record.count = 0;
	if (!engine_look_begin(engine, &look))
		return false;
	key_of(&key, 'k', id_str(&id));
	bool known = engine_look_get(&look, TABLE, buf_str(&key), &row);
	struct str kept = known ? str_make(arena_copy(arena, row.at, row.length), row.length) : STR("");
	engine_look_end(&look);
	buf_free(&key);
	return known && relation_risks_parse(kept, risks, NULL) == 0;
}

/* ---- Life -------------------------------------------------------------------------------------------------------------- */

static bool count_one(void *context, struct str key, struct str row)
{
	(void)key;
	(void)row;
	(*(uint64_t *)context)++;
	return true;
}

int engine_risks_load(struct engine *engine)
{
	buf_clear(&engine->risks.due);
	engine->risks.count = 0;
	if (engine->sites)
		sweep_all(engine); /* what changed while the store could not be used */
	return engine_row_scan(engine, TABLE, STR("k"), STR(""), count_one, &engine->risks.count);
}

void engine_risks_free(struct engine *engine)
{
	size_t cursor = 0;
	struct str key;
	void *site;
	while (map_next(&engine->risks.met, &cursor, &key, &site))
		free(site);
	map_free(&engine->risks.met);
	buf_free(&engine->risks.due);
}
