/* Facets of all copies, to be compared (verify.h): those of this site are read (facets.h), the agents of other members are asked for
 * theirs. And what others ask of this one.
 *
 *   GET /cheops/v1/copies/ID/facets, mutual TLS; answered with the digest of each once all were read, or it took too long
 */
#include "engine/verify_facets.h"

#include "engine/facets.h"

#include "base/check.h"

#include <jansson.h>
#include <stdlib.h>

enum {
	FACETS_MS = 300 * 1000, /* for an agent to read all facets of a copy */
	ROUND_MS = FACETS_MS + 20000,
	ANSWER_BYTES = 64 << 10,
};

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

/* ---- Of this site ------------------------------------------------------------------------------------------------------ */

static struct engine_facet_reading reading_of(struct arena *arena, const struct facet_part *part)
{
	struct engine_facet_reading reading = {.name = copy(arena, part->facet.name), .kind = part->kind};
	char name[ENGINE_BLOB_NAME_BYTES];
	if (part->kind == ENGINE_FACET_FAILED)
		reading.reason = copy(arena, str_of(part->err.text));
	if (part->kind != ENGINE_FACET_HERE)
		return reading;
	engine_blob_name(str_make((const char *)part->hash, sizeof(part->hash)), name);
	reading.digest = copy(arena, str_of(name));
	reading.bytes = part->bytes;
	return reading;
}

static void read_all(struct facets *facets)
{
	struct copying *copying = facets->context;
	struct engine_facet_reading *readings =
		arena_array(&copying->arena, struct engine_facet_reading, facets->parts_count + 1);
	for (uint32_t i = 0; i < facets->parts_count; i++)
		readings[i] = reading_of(&copying->arena, &facets->parts[i]);
	copying->reading.facets = readings;
	copying->reading.facets_count = facets->parts_count;
	engine_copy_facets_end(copying);
	engine_copy_take_facets(copying);
}

void engine_copy_facets_start(struct copying *copying, const struct engine_service *service)
{
	struct facets *facets = calloc(1, sizeof(*facets));
	CHECK(facets);
	facets->engine = copying->engine;
	facets->setup = &copying->setup->about;
	facets->service = service;
	facets->type = copying->match.type;
	facets->own = copying->own;
	facets->limit_ms = FACETS_MS;
	facets->done = read_all;
	facets->context = copying;
	buf_put(&facets->item, buf_str(&copying->target));
	engine_facets_add(facets);
	copying->facets = facets;
	engine_facets_start(facets);
}

void engine_copy_facets_end(struct copying *copying)
{
	if (!copying->facets)
		return;
	engine_facets_end(copying->facets);
	free(copying->facets);
	copying->facets = NULL;
}

/* ---- Of others ---------------------------------------------------------------------------------------------------------- */

static void one_more(struct facet_round *round)
{
	if (--round->pending == 0)
		round->done(round);
}

static void put_failed(struct facet_asked *asked, struct str reason)
{
	asked->reading = (struct engine_reading){.kind = ENGINE_READ_FAILED, .reason = copy(asked->round->arena, reason)};
}

static struct str text_of(struct arena *arena, const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json, name);
	if (!json_is_string(value))
		return STR("");
	return copy(arena, str_make(json_string_value(value), json_string_length(value)));
}

/* False: it makes no sense. */
static bool read_facet(struct arena *arena, const json_t *json, struct engine_facet_reading *facet)
{
	struct str kind = text_of(arena, json, "state");
	*facet = (struct engine_facet_reading){.name = text_of(arena, json, "facet"),
	                                       .kind = ENGINE_FACETS,
	                                       .digest = text_of(arena, json, "digest"),
	                                       .bytes = (uint64_t)json_integer_value(json_object_get(json, "bytes")),
	                                       .reason = text_of(arena, json, "reason")};
	for (int i = 0; i < ENGINE_FACETS; i++)
		if (str_equal(kind, str_of(engine_facet_kind_name((enum engine_facet)i))))
			facet->kind = (enum engine_facet)i;
	return facet->kind != ENGINE_FACETS && facet->name.length > 0 &&
	       (facet->kind != ENGINE_FACET_HERE || facet->digest.length == 2 * (size_t)ENGINE_BLOB_BYTES);
}

static void read_answer(struct facet_asked *asked, struct str body)
{
	struct arena *arena = asked->round->arena;
	struct engine_reading *reading = &asked->reading;
	json_t *json = json_loadb(body.at, body.length, 0, NULL);
	const json_t *list = json_object_get(json, "facets");
	size_t count = json_array_size(list);
	struct str kind = text_of(arena, json, "copy");
	*reading = (struct engine_reading){
		.kind = ENGINE_READS, .session = text_of(arena, json, "session"), .reason = text_of(arena, json, "reason")};
	for (int i = 0; i < ENGINE_READS; i++)
		if (str_equal(kind, str_of(engine_read_name((enum engine_read)i))))
			reading->kind = (enum engine_read)i;
	bool sound = reading->kind != ENGINE_READS && count <= LIMIT_GLUE_FACETS;
	struct engine_facet_reading *facets = arena_array(arena, struct engine_facet_reading, LIMIT_GLUE_FACETS);
	for (size_t i = 0; i < count && sound; i++)
		sound = read_facet(arena, json_array_get(list, i), &facets[i]);
	reading->facets = facets;
	reading->facets_count = sound ? (uint32_t)count : 0;
	json_decref(json);
	if (!sound)
		put_failed(asked, STR("the agent there answers with something else than the facets of a copy"));
}

static void answered(struct asking *asking, struct str body, struct str failure)
{
	struct facet_asked *asked = (struct facet_asked *)((char *)asking - offsetof(struct facet_asked, asking));
	if (failure.length > 0)
		put_failed(asked, failure);
	else
		read_answer(asked, body);
	one_more(asked->round);
}

static void ask_agent(struct facet_asked *asked)
{
	asked->asking.unknown = "the agent there does not compare files: is it of an earlier version?";
	asked->asking.done = answered;
	engine_asking_start(asked->round->engine, &asked->asking,
	                    &(struct asking_about){.replicant = asked->round->replicant,
	                                           .part = STR("/facets"),
	                                           .timeout_ms = ROUND_MS,
	                                           .answer_bytes = ANSWER_BYTES});
}

/* ---- All of them -------------------------------------------------------------------------------------------------------- */

static void own_done(struct copying *copying)
{
	struct facet_round *round = (struct facet_round *)((char *)copying - offsetof(struct facet_round, copying));
	struct engine_reading *reading = &round->asked[round->own].reading;
	*reading = copying->reading;
	reading->session = copy(round->arena, reading->session);
	reading->reason = copy(round->arena, reading->reason);
	struct engine_facet_reading *facets =
		arena_array(round->arena, struct engine_facet_reading, reading->facets_count + 1);
	for (uint32_t i = 0; i < reading->facets_count; i++) {
		facets[i] = reading->facets[i];
		facets[i].name = copy(round->arena, facets[i].name);
		facets[i].digest = copy(round->arena, facets[i].digest);
		facets[i].reason = copy(round->arena, facets[i].reason);
	}
	reading->facets = facets;
	one_more(round);
}

void engine_round_start(struct facet_round *round)
{
	struct engine *engine = round->engine;
	round->pending = 1;
	for (uint32_t i = 0; i < round->asked_count; i++) {
		round->asked[i].round = round;
		round->pending += round->asked[i].wanted;
	}
	for (uint32_t i = 0; i < round->asked_count; i++) {
		if (!round->asked[i].wanted)
			continue;
		if (round->asked[i].asking.site != engine->options.self) {
			ask_agent(&round->asked[i]);
			continue;
		}
		round->own = i;
		round->copying =
			(struct copying){.engine = engine, .replicant = round->replicant, .wants_facets = true, .done = own_done};
		round->copying_begun = true;
		engine_copy_start(&round->copying);
	}
	one_more(round);
}

void engine_round_review(struct facet_round *round)
{
	for (uint32_t i = 0; i < round->asked_count; i++) {
		struct facet_asked *asked = &round->asked[i];
		if (!asked->asking.call || engine_reachable(round->engine, asked->asking.site))
			continue;
		engine_asking_end(&asked->asking);
		put_failed(asked, STR("the site cannot be reached any more"));
		if (round->pending == 1) { /* the last word: whoever started it may free it */
			one_more(round);
			return;
		}
		one_more(round);
	}
}

void engine_round_end(struct facet_round *round)
{
	for (uint32_t i = 0; i < round->asked_count; i++)
		engine_asking_end(&round->asked[i].asking);
	if (round->copying_begun)
		engine_copy_end(&round->copying);
}

/* ---- What it comes to ----------------------------------------------------------------------------------------------------- */

static const struct engine_facet_reading *find(const struct engine_reading *reading, struct str name)
{
	static const struct engine_facet_reading unknown = {
		.kind = ENGINE_FACET_FAILED,
		.reason = STR_INIT("the description of the application there knows no such facet that can be compared")};
	for (uint32_t i = 0; i < reading->facets_count; i++)
		if (str_equal(reading->facets[i].name, name))
			return &reading->facets[i];
	return &unknown;
}

/* True: what was read of the facets goes with what was read of the item. */
static bool goes_with(const struct engine_reading *item, const struct facet_asked *asked,
                      struct engine_member_verdict *member)
{
	bool same = str_equal(item->session, asked->reading.session);
	if (!asked->wanted)
		return false;
	if (asked->reading.kind == ENGINE_READ_HERE && same)
		return true;
	if (member->verdict != ENGINE_SAME)
		return false;
	bool changed = asked->reading.kind == ENGINE_READ_HERE || asked->reading.kind == ENGINE_READ_UNSETTLED;
	member->verdict = changed ? ENGINE_NOT_SETTLED : ENGINE_UNKNOWN;
	member->reason =
		asked->reading.reason.length > 0 ? asked->reading.reason : STR("it changed while its files were read");
	return false;
}

/* One that differs makes the copy differ; of one that cannot be read nobody knows. */
static void count_in(struct engine_member_verdict *member, const struct engine_facet_verdict *facet)
{
	bool differs = facet->verdict == ENGINE_DIFFERS || facet->verdict == ENGINE_MISSING;
	if (differs && (member->verdict == ENGINE_SAME || member->verdict == ENGINE_UNKNOWN)) {
		member->verdict = ENGINE_DIFFERS;
		member->reason = STR("");
	} else if (facet->verdict == ENGINE_UNKNOWN && member->verdict == ENGINE_SAME) {
		member->verdict = ENGINE_UNKNOWN;
		member->reason = facet->reading->reason;
	}
}

static void judge_facet(struct facet_round *round, struct str name, const bool *counts,
                        struct engine_member_verdict *members, struct engine_facet_verdict **lists, bool *tie)
{
	const struct engine_facet_reading *readings[LIMIT_REPLICA_MEMBERS];
	enum engine_verdict verdicts[LIMIT_REPLICA_MEMBERS];
	uint32_t count = round->asked_count, reference;
	bool even;
	for (uint32_t i = 0; i < count; i++)
		readings[i] = counts[i] ? find(&round->asked[i].reading, name) : NULL;
	engine_facets_compare(readings, count, verdicts, &reference, &even);
	*tie |= even;
	for (uint32_t i = 0; i < count; i++) {
		if (!readings[i])
			continue;
		struct engine_facet_reading *named = arena_new(round->arena, struct engine_facet_reading);
		*named = *readings[i];
		named->name = name;
		struct engine_facet_verdict *facet = &lists[i][members[i].facets_count++];
		*facet = (struct engine_facet_verdict){
			.reading = named, .verdict = verdicts[i], .reference = reference < count ? members[reference].site : 0};
		count_in(&members[i], facet);
	}
}

void engine_round_judge(struct facet_round *round, const struct glue_type *type, const struct engine_reading *items,
                        struct engine_member_verdict *members, bool *tie)
{
	struct engine_facet_verdict *lists[LIMIT_REPLICA_MEMBERS];
	bool counts[LIMIT_REPLICA_MEMBERS];
	struct glue_facet facet;
	for (uint32_t i = 0; i < round->asked_count; i++) {
		bool compared = members[i].verdict == ENGINE_SAME || members[i].verdict == ENGINE_DIFFERS;
		counts[i] = compared && goes_with(&items[i], &round->asked[i], &members[i]);
		lists[i] = arena_array(round->arena, struct engine_facet_verdict, LIMIT_GLUE_FACETS);
		members[i].facets = lists[i];
	}
	for (uint32_t i = 1; i < glue_facets_count(type); i++)
		if (glue_facet_find(type, i, &facet))
			judge_facet(round, copy(round->arena, facet.name), counts, members, lists, tie);
}
