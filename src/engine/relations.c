/* Who refers to whom: the rows, and when they change.
 *
 *   f FROM            what it refers to: src/relation/record.c
 *   t TARGET FROM     that it does: kinds, 1 byte. TARGET is relation_target_key()
 *   r FROM            that it relies on something; empty
 *
 * They are put in the session in which src/replica puts its own rows on what happened, so both are there after a crash, or neither.
 * An operation counts when it has run here: in that order, whatever order it was asked in elsewhere. One that is run again, because
 * a concurrent one goes before it, is told again.
 *
 * A row of a replicant says what is in its path, by the collection, and when it is over with it. */
#include "engine/relations.h"
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

static const enum replica_table TABLE = (enum replica_table)ENGINE_RELATIONS;

static void id_put(struct buf *key, struct replica_id id)
{
	buf_put(key, str_make((const char *)id.bytes, sizeof(id.bytes)));
}

static void from_key(struct buf *key, char kind, struct replica_id from)
{
	buf_clear(key);
	buf_put_char(key, kind);
	id_put(key, from);
}

/* ---- Changing them --------------------------------------------------------------------------------------------------- */

/* The key under which a fact is found from its other end. */
static void to_key(const struct engine *engine, const struct relation_fact *fact, struct replica_id from,
                   struct buf *key)
{
	buf_clear(key);
	buf_put_char(key, 't');
	relation_fact_key(fact, engine->options.self, key);
	id_put(key, from);
}

static bool is_first_to(const struct relation_record *record, uint32_t fact, site_id self)
{
	for (uint32_t i = 0; i < fact; i++) {
		const struct relation_fact *a = &record->facts[i], *b = &record->facts[fact];
		site_id at = a->sites_count > 0 ? a->sites[0] : self, other = b->sites_count > 0 ? b->sites[0] : self;
		if (relation_target_equal(&a->to, &b->to) && (a->to.managed || at == other))
			return false;
	}
	return true;
}

/* From one record to the next: only what differs is put. */
static void change_ends(struct engine *engine, struct replica_id from, const struct relation_record *old,
                        const struct relation_record *new)
{
	site_id self = engine->options.self;
	struct buf key = {0};
	for (uint32_t i = 0; i < old->count; i++) {
		if (!is_first_to(old, i, self) || relation_kinds_to(new, &old->facts[i], self) != 0)
			continue;
		to_key(engine, &old->facts[i], from, &key);
		engine_row_remove(engine, TABLE, buf_str(&key));
	}
	for (uint32_t i = 0; i < new->count; i++) {
		uint32_t kinds = relation_kinds_to(new, &new->facts[i], self);
		char row = (char)kinds;
		if (!is_first_to(new, i, self) || relation_kinds_to(old, &new->facts[i], self) == kinds)
			continue;
		to_key(engine, &new->facts[i], from, &key);
		engine_row_put(engine, TABLE, buf_str(&key), str_make(&row, 1));
	}
	bool relied = relation_relies(old), relies = relation_relies(new);
	if (relied || relies)
		engine_risk_look(engine, from);
	from_key(&key, 'r', from);
	if (relies && !relied)
		engine_row_put(engine, TABLE, buf_str(&key), STR(""));
	else if (relied && !relies)
		engine_row_remove(engine, TABLE, buf_str(&key));
	buf_free(&key);
}

static void change(struct engine *engine, struct replica_id from, const struct relation_record *old,
                   const struct relation_record *new)
{
	struct buf key = {0}, row = {0}, before = {0};
	relation_record_put(new, &row);
	relation_record_put(old, &before);
	if (!str_equal(buf_str(&row), buf_str(&before))) {
		change_ends(engine, from, old, new);
		from_key(&key, 'f', from);
		if (new->count > 0)
			engine_row_put(engine, TABLE, buf_str(&key), buf_str(&row));
		else
			engine_row_remove(engine, TABLE, buf_str(&key));
	}
	buf_free(&key);
	buf_free(&row);
	buf_free(&before);
}

bool engine_relations_from(struct engine *engine, struct replica_id from, struct arena *arena,
                           struct relation_record *record)
{
	struct buf key = {0}, row = {0};
	from_key(&key, 'f', from);
	int code = engine_row_get(engine, TABLE, buf_str(&key), &row);
	struct str kept = str_make(arena_copy(arena, row.at ? row.at : "", row.length), row.length);
	record->count = 0;
	record->more = false;
	if (code == 0)
		code = relation_record_parse(kept, record, NULL);
	buf_free(&key);
	buf_free(&row);
	return code == 0;
}

/* A record that is being changed, and what it was. */
struct revision {
	struct engine *engine;
	struct replica_id from;
	struct arena arena;
	struct relation_record *old;
	struct relation_record *new;
};

static void revision_begin(struct revision *revision, struct engine *engine, struct replica_id from)
{
	*revision = (struct revision){.engine = engine, .from = from};
	arena_init(&revision->arena, 0);
	revision->old = arena_new(&revision->arena, struct relation_record);
	revision->new = arena_new(&revision->arena, struct relation_record);
	engine_relations_from(engine, from, &revision->arena, revision->old);
	memcpy(revision->new, revision->old, sizeof(*revision->new));
}

static void revision_end(struct revision *revision)
{
	change(revision->engine, revision->from, revision->old, revision->new);
	arena_free(&revision->arena);
}

static void forget(struct engine *engine, struct replica_id from)
{
	struct revision revision;
	revision_begin(&revision, engine, from);
	revision.new->count = 0;
	revision.new->more = false;
	revision_end(&revision);
}

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

/* ---- What is meant --------------------------------------------------------------------------------------------------- */

/* A request whose references are looked at: of an operation, or the path of a replicant. */
struct reading_of {
	struct revision *revision;
	const struct glue_match *match;
	struct engine_name own;
	struct str scope; /* that goes with the operation; "": none */
	struct str facet;
	enum relation_where where;
	bool partial; /* what it does not say stays */
	uint32_t variables;
};

static void gather_sites(const struct site_snapshot *sites, const struct scope_step *step, struct relation_fact *fact)
{
	for (uint32_t i = 0; i < step->of_count; i++)
		gather_sites(sites, step->of[i], fact);
	if (step->op == SCOPE_ONE && step->site_index < sites->places_count && fact->sites_count < LIMIT_RELATION_SITES)
		fact->sites[fact->sites_count++] = sites->places[step->site_index].id;
}

/* Where the service here takes it from: the scope may name another site. */
static void find_sites(const struct reading_of *reading, struct str service, struct relation_fact *fact)
{
	struct engine *engine = reading->revision->engine;
	struct arena *arena = &reading->revision->arena;
	struct scope *scope;
	struct scope_diag diag;
	const struct scope_plan *plan;
	struct scope_request request = {.service = service, .inner = true};
	if (reading->scope.length == 0 || !engine->sites || str_equal(service, reading->match->service_name))
		return;
	request.at = site_snapshot_find(engine->sites, engine->options.self);
	if (request.at == SCOPE_NO_INDEX || scope_parse(arena, copy(arena, reading->scope), &scope, &diag) != 0 ||
	    scope_check(arena, scope, &diag) != 0 ||
	    scope_evaluate(arena, scope, &request, &engine->sites->view, &plan, &diag) != 0)
		return;
	gather_sites(engine->sites, plan->root, fact);
	if (fact->sites_count == 1 && fact->sites[0] == engine->options.self)
		fact->sites_count = 0;
}

static struct str service_of(const struct glue_type *type, struct str own)
{
	struct str service = type ? glue_type_service(type) : STR("*");
	return str_equal(service, STR("*")) ? own : service;
}

/* What a place names: a replicant, by its meta-id or as the service here calls it; else what is called so there. */
static void find_target(const struct reading_of *reading, const struct glue_place *place, struct relation_fact *fact)
{
	struct arena *arena = &reading->revision->arena;
	struct engine_to_meta to = {.engine = reading->revision->engine, .own = reading->own};
	struct engine_found found;
	struct relation_target *target = &fact->to;
	target->managed = replica_id_is(place->value, &target->id);
	if (!target->managed && fact->sites_count == 0 && engine_place_find(&to, place, &found)) {
		target->managed = true;
		target->id = found.id;
	}
	if (target->managed)
		return;
	target->service = service_of(place->type, reading->match->service_name);
	target->type = copy(arena, place->type ? glue_type_name(place->type) : STR(""));
	target->service = copy(arena, target->service);
	target->name = copy(arena, place->value);
	if (place->type && glue_type_ids_in_collection(place->type))
		target->collection = copy(arena, glue_type_only_collection(place->type));
}

static bool is_kept(struct str place, struct str value)
{
	return place.length <= LIMIT_GLUE_VALUE_BYTES && value.length > 0 && value.length <= LIMIT_REPLICA_NAME_BYTES;
}

static struct str place_of(const struct reading_of *reading, struct str pointer)
{
	struct buf text = {0};
	if (reading->facet.length > 0) {
		buf_put(&text, reading->facet);
		buf_put_char(&text, ':');
	}
	buf_put(&text, pointer);
	struct str place = copy(&reading->revision->arena, buf_str(&text));
	buf_free(&text);
	return place;
}

static void take_fact(struct reading_of *reading, struct str pointer, const struct glue_place *place)
{
	struct relation_fact fact = {.where = reading->where, .place = place_of(reading, pointer), .kind = place->relation};
	find_sites(reading, service_of(place->type, reading->match->service_name), &fact);
	find_target(reading, place, &fact);
	relation_record_set(reading->revision->new, &fact);
}

/* ---- What bodies say ------------------------------------------------------------------------------------------------- */

static void take_saying(void *context, const struct glue_saying *saying)
{
	struct reading_of *reading = context;
	if (saying->value.length == 0) {
		relation_record_clear(reading->revision->new, reading->where, place_of(reading, saying->place));
		return;
	}
	struct glue_place place = {.kind = GLUE_PLACE_REFERENCE,
	                           .type = saying->type,
	                           .value = saying->value,
	                           .relation = saying->relation,
	                           .quoted = true};
	/* Parts are the service's to name. */
	if (saying->relation != GLUE_UNRELATED && saying->relation != GLUE_COMPOSITION &&
	    is_kept(saying->place, saying->value))
		take_fact(reading, saying->place, &place);
}

/* May its body say something that is recorded? */
static bool says_something(const struct glue_operation *operation)
{
	for (uint32_t i = 0; i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->where == GLUE_IN_BODY && relation->kind != GLUE_UNRELATED)
			return true;
	}
	return false;
}

/* A body that is a file is in the run only if somebody had to look into it. */
static struct str body_of(const struct run *run, struct revision *revision)
{
	struct buf body = {0};
	if (run->request.body.length > 0 || run->request.blob.length == 0 ||
	    run->request.blob_bytes > LIMIT_REPLICA_READ_BYTES ||
	    engine_blobs_read(run->engine, run->request.blob, &body, NULL) != 0)
		return run->request.body;
	struct str kept = copy(&revision->arena, buf_str(&body));
	buf_free(&body);
	return kept;
}

static void take_body(struct reading_of *reading, const struct glue_operation *operation, struct str body)
{
	reading->where = RELATION_IN_BODY;
	if (!reading->partial)
		relation_record_clear(reading->revision->new, RELATION_IN_BODY, place_of(reading, STR("")));
	glue_sayings(operation, body, take_saying, reading, NULL);
}

/* What the service says that it is made of, each time that it says anything. */
static bool take_part(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct reading_of *reading = context;
	struct buf name = {0};
	(void)value;
	(void)quoted;
	if (place->kind != GLUE_PLACE_REFERENCE || place->relation != GLUE_COMPOSITION || !is_kept(STR(""), place->value))
		return false;
	buf_printf(&name, "/%u", reading->variables++);
	take_fact(reading, buf_str(&name), place);
	buf_free(&name);
	return false;
}

static void take_parts(struct reading_of *reading, const struct glue_operation *operation, struct str answer)
{
	struct buf unused = {0};
	const struct glue_places *places = glue_answer_places(operation);
	if (!places || answer.length == 0)
		return;
	reading->where = RELATION_IN_ANSWER;
	reading->scope = STR(""); /* they are here */
	relation_record_clear(reading->revision->new, RELATION_IN_ANSWER, STR(""));
	engine_splice(places, &(struct glue_replacer){reading, take_part}, answer, &unused);
	buf_free(&unused);
}

static bool has_run(const struct run *run)
{
	switch (run->task.kind) {
	case REPLICA_RUN:
	case REPLICA_RUN_CREATE_AS_REPLACE:
	case REPLICA_RUN_ANEW:
	case REPLICA_INQUIRE:
	case REPLICA_INQUIRE_ANEW:
	case REPLICA_LEAVE: return true;
	case REPLICA_READ_STATE:
	case REPLICA_READ_COPY: break;
	}
	return false;
}

/* What it was, with the ids that travel. */
static bool match_of(const struct run *run, struct engine_head *head, struct glue_request *asked,
                     struct glue_match *match)
{
	if (!run->setup || engine_head_parse(run->request.head, head, NULL) != 0)
		return false;
	*asked = engine_request_of(run->task.service, head->method, head->target, head->content_type);
	return glue_match(run->setup->about.glue, asked, match) &&
	       (!match->needs_body || glue_match_body(run->setup->about.glue, run->request.body, match, NULL));
}

static bool look_at_risk(void *context, const struct engine_referrer *referrer)
{
	engine_risk_look(context, referrer->from);
	return true;
}

/* By the description; of a type with variables in its name nobody knows beforehand. */
static bool may_be_relied(const struct engine *engine, struct str name)
{
	const struct glue *glue = engine->setup ? engine->setup->about.glue : NULL;
	for (uint32_t i = 0; glue && i < glue_types_count(glue); i++) {
		const struct glue_type *type = glue_type_at(glue, i);
		struct str known = glue_type_name(type);
		if (glue_type_may_be_relied(type) && (str_equal(known, name) || memchr(known.at, '{', known.length)))
			return true;
	}
	return !glue;
}

/* It came, or went: who relies on it is looked at when src/replica has heard of it. */
static void look_at_dependants(const struct run *run)
{
	struct relation_target target = {.managed = true, .id = run->task.op.replicant};
	uint8_t effect = run->class.effect;
	bool all = run->class.facet == 0 && (effect == ORDER_CREATE || effect == ORDER_DELETE || effect == ORDER_ADOPT);
	bool changes = all || run->task.kind == REPLICA_LEAVE || run->task.kind == REPLICA_RUN_ANEW;
	if (changes && may_be_relied(run->engine, run->task.type))
		engine_relations_to(run->engine, &target, 0, 1U << GLUE_RELIANCE, look_at_risk, run->engine);
}

/* ---- What paths say --------------------------------------------------------------------------------------------------- */

static bool take_place(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct reading_of *reading = context;
	struct buf name = {0};
	(void)value;
	(void)quoted;
	if (place->kind != GLUE_PLACE_REFERENCE || place->relation == GLUE_UNRELATED || !is_kept(STR(""), place->value))
		return false;
	buf_printf(&name, "path:%u", reading->variables++);
	take_fact(reading, buf_str(&name), place);
	buf_free(&name);
	return false;
}

/* The collection is a path: of a list, or of a create. */
static bool match_collection(const struct glue *glue, const struct replica_about *about, struct glue_request *asked,
                             struct glue_match *match)
{
	static const char *const methods[] = {"POST", "GET", "PUT"};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		*asked = engine_request_of(about->service, str_of(methods[i]), about->collection, STR(""));
		if (glue_match(glue, asked, match))
			return true;
	}
	return false;
}

static bool says_in_path(const struct glue_operation *operation)
{
	for (uint32_t i = 0; operation && i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->where == GLUE_IN_PATH && relation->kind != GLUE_UNRELATED)
			return true;
	}
	return false;
}

static void take_path(struct engine *engine, struct replica_id from, const struct replica_about *about)
{
	struct glue_request asked;
	struct glue_match match;
	struct buf unused = {0};
	struct setup *setup = engine->setup;
	if (!setup || !setup->about.glue || !match_collection(setup->about.glue, about, &asked, &match) ||
	    (!match.needs_body && !says_in_path(match.operation)))
		return;
	struct revision revision;
	revision_begin(&revision, engine, from);
	struct reading_of reading = {.revision = &revision,
	                             .match = &match,
	                             .own = {.service = about->service, .type = about->type},
	                             .where = RELATION_IN_PATH};
	glue_splice_target(&match, &asked, &(struct glue_replacer){&reading, take_place}, &unused);
	buf_free(&unused);
	revision_end(&revision);
}

/* ---- What has run --------------------------------------------------------------------------------------------------- */

void engine_relations_ran(const struct run *run)
{
	struct engine_head head;
	struct glue_request asked;
	struct glue_match match;
	struct replica_id from = run->task.op.replicant;
	if (!has_run(run))
		return;
	look_at_dependants(run);
	if (run->task.kind == REPLICA_LEAVE || (run->class.effect == ORDER_DELETE && run->class.facet == 0)) {
		forget(run->engine, from);
		return;
	}
	if (!match_of(run, &head, &asked, &match))
		return;
	/* It may have been deleted before, and is there again: a delete lost. */
	if (run->class.effect == ORDER_CREATE && run->class.facet == 0)
		take_path(run->engine, from,
		          &(struct replica_about){
					  .service = run->task.service, .type = run->task.type, .collection = run->task.collection});
	if (!says_something(match.operation))
		return;
	enum glue_effect effect = glue_operation_effect(match.operation);
	/* What an action refers to it needs while it runs. */
	if (effect != GLUE_CREATE && effect != GLUE_REPLACE && effect != GLUE_ASSIGN)
		return;
	struct revision revision;
	revision_begin(&revision, run->engine, from);
	struct reading_of reading = {.revision = &revision,
	                             .match = &match,
	                             .own = run->own,
	                             .scope = engine_scope_of(head.fields),
	                             .facet = glue_operation_facet(match.operation),
	                             .partial = effect == GLUE_ASSIGN};
	take_body(&reading, match.operation, body_of(run, &revision));
	if (glue_facet_number(match.operation) == 0)
		take_parts(&reading, match.operation, run->answer);
	revision_end(&revision);
}

/* ---- One that became another ------------------------------------------------------------------------------------------ */

struct moving {
	struct buf froms;
};

static bool note_from(void *context, const struct engine_referrer *referrer)
{
	struct moving *moving = context;
	id_put(&moving->froms, referrer->from);
	return true;
}

static void move_one(struct engine *engine, struct replica_id from, struct replica_id old, struct replica_id new)
{
	struct revision revision;
	revision_begin(&revision, engine, from);
	for (uint32_t i = 0; i < revision.new->count; i++) {
		struct relation_target *to = &revision.new->facts[i].to;
		if (to->managed && memcmp(to->id.bytes, old.bytes, sizeof(old.bytes)) == 0)
			to->id = new;
	}
	revision_end(&revision);
}

/* Whoever referred to it refers to what it became. */
static void move_targets(struct engine *engine, struct replica_id old, struct replica_id new)
{
	struct moving moving = {0};
	struct relation_target target = {.managed = true, .id = old};
	engine_relations_to(engine, &target, 0, UINT32_MAX, note_from, &moving);
	for (size_t at = 0; at < moving.froms.length; at += sizeof(old.bytes)) {
		struct replica_id from;
		memcpy(from.bytes, moving.froms.at + at, sizeof(from.bytes));
		move_one(engine, from, old, new);
	}
	buf_free(&moving.froms);
}

void engine_relations_row(struct engine *engine, struct str key, const struct str *row)
{
	struct replica_about about, was;
	struct replica_here here;
	struct replica_id id;
	struct str before;
	bool lives = row && replica_about_parse(*row, &about);
	bool lived = engine_row_before(engine, REPLICA_REPLICANTS, key, &before) == 0 && replica_about_parse(before, &was);
	if (lives == lived || key.length != sizeof(id.bytes))
		return;
	memcpy(id.bytes, key.at, sizeof(id.bytes));
	struct relation_target target = {.managed = true, .id = id};
	if (may_be_relied(engine, lives ? about.type : was.type))
		engine_relations_to(engine, &target, 0, 1U << GLUE_RELIANCE, look_at_risk, engine);
	if (lives) {
		take_path(engine, id, &about);
		return;
	}
	if (row && replica_here_parse(*row, engine->options.self, &here, NULL) == 0 && here.alias)
		move_targets(engine, id, here.other);
	forget(engine, id);
}

/* ---- Looking ---------------------------------------------------------------------------------------------------------- */

struct asking {
	struct engine *engine;
	const struct look *look; /* NULL: in the engine's thread */
	const struct relation_target *to;
	site_id site;
	uint32_t kinds;
	engine_referrer_each *each;
	void *context;
	struct relation_record *record; /* of one that is checked */
};

static bool from_of(struct str key, struct replica_id *from)
{
	size_t front = 1 + RELATION_KEY_BYTES;
	if (key.length != front + sizeof(from->bytes))
		return false;
	memcpy(from->bytes, key.at + front, sizeof(from->bytes));
	return true;
}

/* Of what is no replicant the key is a hash. Where it is looked at from the engine's thread a row may not be got while others are
 * gone through, so whoever asks there compares. */
static bool is_meant(const struct asking *asking, struct replica_id from)
{
	struct buf key = {0};
	struct str row;
	bool meant = false;
	if (asking->to->managed || !asking->look)
		return true;
	from_key(&key, 'f', from);
	if (engine_look_get(asking->look, TABLE, buf_str(&key), &row) &&
	    relation_record_parse(row, asking->record, NULL) == 0)
		for (uint32_t i = 0; i < asking->record->count; i++)
			meant |= relation_target_equal(&asking->record->facts[i].to, asking->to);
	buf_free(&key);
	return meant;
}

static bool tell(void *context, struct str key, struct str row)
{
	const struct asking *asking = context;
	struct engine_referrer referrer;
	if (row.length != 1 || !from_of(key, &referrer.from))
		return true;
	referrer.kinds = (unsigned char)row.at[0];
	if ((referrer.kinds & asking->kinds) == 0 || !is_meant(asking, referrer.from))
		return true;
	return asking->each(asking->context, &referrer);
}

static void prefix_put(const struct asking *asking, struct buf *prefix)
{
	buf_put_char(prefix, 't');
	relation_target_key(asking->to, asking->site, prefix);
}

bool engine_relations_to(struct engine *engine, const struct relation_target *to, site_id site, uint32_t kinds,
                         engine_referrer_each *each, void *context)
{
	struct asking asking = {.engine = engine, .to = to, .site = site, .kinds = kinds, .each = each, .context = context};
	struct buf prefix = {0};
	prefix_put(&asking, &prefix);
	int code = engine_row_scan(engine, TABLE, buf_str(&prefix), STR(""), tell, &asking);
	buf_free(&prefix);
	return code == 0;
}

static bool ask(const struct asking *wanted)
{
	struct engine *engine = wanted->engine;
	struct look look;
	struct buf prefix = {0};
	if (!engine_look_begin(engine, &look))
		return false;
	struct asking asking = *wanted;
	asking.look = &look;
	asking.record = asking.to->managed ? NULL : calloc(1, sizeof(*asking.record));
	CHECK(asking.to->managed || asking.record);
	prefix_put(&asking, &prefix);
	bool fine = engine_look_scan(&look, TABLE, buf_str(&prefix), tell, &asking);
	engine_look_end(&look);
	buf_free(&prefix);
	free(asking.record);
	return fine;
}

bool engine_referrers(struct engine *engine, struct replica_id to, uint32_t kinds, engine_referrer_each *each,
                      void *context)
{
	struct relation_target target = {.managed = true, .id = to};
	return ask(&(struct asking){.engine = engine, .to = &target, .kinds = kinds, .each = each, .context = context});
}

bool engine_referrers_local(struct engine *engine, const struct engine_local *to, uint32_t kinds,
                            engine_referrer_each *each, void *context)
{
	const struct engine_name *name = &to->name;
	struct relation_target target = {
		.service = name->service, .type = name->type, .collection = name->collection, .name = name->id};
	return ask(&(struct asking){
		.engine = engine, .to = &target, .site = to->site, .kinds = kinds, .each = each, .context = context});
}

bool engine_about(struct engine *engine, struct replica_id id, struct engine_about *about)
{
	struct look look;
	struct str row;
	struct replica_about found;
	if (!engine_look_begin(engine, &look))
		return false;
	bool known = engine_look_get(&look, REPLICA_REPLICANTS, str_make((const char *)id.bytes, sizeof(id.bytes)), &row) &&
	             replica_about_parse(row, &found) && found.type.length + found.name.length <= sizeof(about->text);
	if (known) {
		memcpy(about->text, found.type.at, found.type.length);
		memcpy(about->text + found.type.length, found.name.at, found.name.length);
		about->type = str_make(about->text, found.type.length);
		about->name = str_make(about->text + found.type.length, found.name.length);
	}
	engine_look_end(&look);
	return known;
}

bool engine_refers(struct engine *engine, struct replica_id from, struct arena *arena, struct relation_record *record)
{
	struct look look;
	struct buf key = {0};
	struct str row;
	record->count = 0;
	record->more = false;
	if (!engine_look_begin(engine, &look))
		return false;
	from_key(&key, 'f', from);
	bool known = engine_look_get(&look, TABLE, buf_str(&key), &row);
	struct str kept = known ? copy(arena, row) : STR("");
	engine_look_end(&look);
	buf_free(&key);
	return known && relation_record_parse(kept, record, NULL) == 0;
}
