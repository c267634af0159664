/* What a create requires is brought to where it runs (`with_requirements(…)`; DESIGN 9, docs/requirements.md).
 *
 * The body was read to know what is required (owner.c). Then the engine adopts and extends what is missing somewhere (engine/bring.h), while the exchange
 * is PENDING, and the request goes on:
 *   this site is among those where it runs    at once: it becomes an operation that refers to what is required, and waits for that at
 *                                             each site where it is not yet
 *   it runs elsewhere                         when it is there; the body then names it by its id there, if that is one site, else by its
 *                                             meta-id
 */
#include "proxy/proxy_int.h"

#include "proxy/bring.h"

#include "base/percent.h"

#include <stdio.h>

enum { THERE_MS = 60000 };

void proxy_need_note(void *context, const struct relation_need *need)
{
	struct proxy_exchange *exchange = context;
	struct proxy_needs *needs = exchange->needs;
	if (needs->count == LIMIT_ENGINE_BROUGHT) {
		needs->more = true;
		return;
	}
	struct proxy_need *one = &needs->list[needs->count++];
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	*one = (struct proxy_need){
		.type = need->type,
		.id = str_make(arena_copy(&exchange->arena, need->id.at, need->id.length), need->id.length)};
	for (uint32_t i = 0; i < need->sites_count && one->sites_count < LIMIT_REPLICA_MEMBERS; i++)
		one->sites[one->sites_count++] = sites->places[need->sites[i]].id;
}

/* ---- Told, and not done ------------------------------------------------------------------------------------------------ */

static bool is_member(site_id site, const site_id *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (members[i] == site)
			return true;
	return false;
}

void proxy_put_needs(const struct proxy_exchange *exchange, struct buf *out)
{
	struct engine *engine = exchange->proxy->shared->engine;
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	const struct proxy_needs *needs = exchange->needs;
	bool any = false;
	buf_put(out, STR(",\"brings\":["));
	for (uint32_t i = 0; engine && i < needs->count; i++) {
		const struct proxy_need *need = &needs->list[i];
		struct engine_found found;
		site_id members[LIMIT_REPLICA_MEMBERS];
		bool known = engine_find(
			engine, &(struct engine_name){glue_type_service(need->type), glue_type_name(need->type), STR(""), need->id},
			&found);
		uint32_t count = known ? engine_members(engine, found.id, members) : 0, missing = 0;
		for (uint32_t k = 0; k < need->sites_count; k++) {
			uint32_t place = site_snapshot_find(sites, need->sites[k]);
			if (place == PROXY_HERE || place == SCOPE_NO_INDEX || is_member(need->sites[k], members, count))
				continue;
			if (missing++ == 0) {
				buf_put(out, any ? STR(",{\"type\":") : STR("{\"type\":"));
				buf_put_json(out, glue_type_name(need->type));
				buf_put(out, STR(",\"id\":"));
				buf_put_json(out, need->id);
				buf_put(out, known ? STR(",\"replicated\":true,\"to\":[") : STR(",\"replicated\":false,\"to\":["));
			} else {
				buf_put_char(out, ',');
			}
			buf_put_json(out, sites->places[place].name);
		}
		any |= missing > 0;
		buf_put(out, missing > 0 ? STR("]}") : STR(""));
	}
	buf_put_char(out, ']');
}

/* ---- What it is called there -------------------------------------------------------------------------------------------- */

struct renaming {
	const struct proxy_needs *needs;
	const struct engine_brought_one *ones;
	bool local; /* by the id that it has there; else by its meta-id */
};

static bool rename_place(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	const struct renaming *renaming = context;
	for (uint32_t i = 0; i < renaming->needs->count; i++) {
		const struct proxy_need *need = &renaming->needs->list[i];
		const struct engine_brought_one *one = &renaming->ones[i];
		if (place->kind != GLUE_PLACE_REFERENCE || place->type != need->type || !str_equal(place->value, need->id))
			continue;
		if (renaming->local && one->local_id.length == 0)
			return false;
		if (renaming->local)
			buf_put(value, one->local_id);
		else
			replica_id_put(one->id, value);
		*quoted = !renaming->local || one->local_id_quoted;
		return true;
	}
	return false;
}

void proxy_set_length(struct proxy_exchange *exchange, struct http_head *head, size_t length)
{
	struct http_field *field = http_find(head, HTTP_FIELD_CONTENT_LENGTH);
	char text[24];
	int digits = snprintf(text, sizeof(text), "%zu", length);
	if (head->framing != HTTP_BODY_LENGTH || !field)
		return;
	char *base = arena_alloc(&exchange->arena, head->bytes + (size_t)digits, 1);
	memcpy(base, head->base, head->bytes);
	memcpy(base + head->bytes, text, (size_t)digits);
	field->value = head->bytes;
	field->value_length = (uint32_t)digits;
	head->base = base;
	head->bytes += (uint32_t)digits;
	head->length = length;
}

static void rename_all(struct proxy_exchange *exchange, const struct engine_brought *brought)
{
	const struct proxy_needs *needs = exchange->needs;
	struct renaming renaming = {needs, brought->ones, scope_lease_plan(exchange->lease)->root->op == SCOPE_ONE};
	struct glue_replacer replacer = {&renaming, rename_place};
	const struct glue_places *places = glue_request_places(needs->operation);
	struct buf body = {0};
	if (!places)
		return;
	struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
	glue_splice(splicer, buf_str(&exchange->body), &body, NULL);
	glue_splice_end(splicer, &body, NULL);
	glue_splicer_free(splicer);
	buf_free(&exchange->body);
	exchange->body = body;
	proxy_set_length(exchange, needs->head, body.length);
}

/* ---- Done, or not -------------------------------------------------------------------------------------------------------- */

static void refuse(struct proxy_exchange *exchange)
{
	const struct proxy_needs *needs = exchange->needs;
	bool absent = needs->code == ERR_NOT_FOUND, later = needs->code == ERR_UNAVAILABLE || needs->code == ERR_TIMEOUT;
	struct str site = exchange->state->config->site;
	struct proxy_problem problem = {.status = later ? 503 : 409,
	                                .type = later    ? "requirement-on-its-way"
	                                        : absent ? "requirement-absent"
	                                                 : "requirement-not-brought",
	                                .title = later    ? "What is required is not there yet"
	                                         : absent ? "What is required is not there"
	                                                  : "What is required cannot be brought along",
	                                .error = "http_request_denied",
	                                .site = site,
	                                .retry_after_s = later ? 5 : 0};
	proxy_count(&exchange->proxy->counters.not_there, 1);
	if (absent)
		proxy_problem(
			exchange, &problem,
			"%s; with_requirements() brings along what %.*s has: send the request to the agent of the site that "
			"has it, or share it, by letting the scope say where its service is",
			needs->text, STR_FMT(site));
	else
		proxy_problem(exchange, &problem, "%s; nothing was made, and the request can be sent again", needs->text);
}

static void go_on(struct proxy_exchange *exchange)
{
	if (exchange->needs->code)
		refuse(exchange);
	else
		exchange->needs->then(exchange);
}

/* In the loop of the exchange. */
static void done(void *context, const struct engine_brought *brought)
{
	struct proxy_exchange *exchange = context;
	struct proxy_needs *needs = exchange->needs;
	needs->code = brought->code;
	if (brought->code)
		snprintf(needs->text, sizeof(needs->text), "%.*s", STR_FMT(brought->text));
	else if (needs->elsewhere && exchange->client)
		rename_all(exchange, brought);
	proxy_resume(exchange, go_on);
}

static void dropped(void *context)
{
	struct proxy_exchange *exchange = context;
	exchange->needs->code = ERR_UNAVAILABLE;
	snprintf(exchange->needs->text, sizeof(exchange->needs->text), "the agent stops");
	proxy_resume(exchange, go_on);
}

static bool runs_here(const struct scope_step *root)
{
	if (root->op == SCOPE_ONE)
		return root->site_index == PROXY_HERE;
	if (root->op == SCOPE_SPAN_OF) /* at its prime, or begun there */
		return root->of[0]->site_index == PROXY_HERE;
	for (uint32_t i = 0; i < root->of_count; i++)
		if (root->of[i]->op == SCOPE_ONE && root->of[i]->site_index == PROXY_HERE)
			return true;
	return false;
}

int proxy_bring(struct proxy_exchange *exchange)
{
	struct proxy_needs *needs = exchange->needs;
	struct engine_wanted wanted[LIMIT_ENGINE_BROUGHT];
	struct buf fields = {0};
	if (needs->more) {
		needs->code = ERR_LIMIT;
		snprintf(needs->text, sizeof(needs->text), "the request requires more than %d things", LIMIT_ENGINE_BROUGHT);
		refuse(exchange);
		return -1;
	}
	for (uint32_t i = 0; i < needs->count; i++) {
		const struct proxy_need *need = &needs->list[i];
		struct buf path = {0};
		buf_put(&path, glue_type_only_collection(need->type));
		buf_put_char(&path, '/');
		percent_encode(&path, need->id);
		wanted[i] =
			(struct engine_wanted){.service = glue_type_service(need->type),
		                           .path = str_make(arena_copy(&exchange->arena, path.at, path.length), path.length),
		                           .sites = need->sites,
		                           .sites_count = need->sites_count};
		buf_free(&path);
	}
	needs->elsewhere = !runs_here(scope_lease_plan(exchange->lease)->root);
	exchange->phase = PROXY_PENDING;
	exchange->deferred = true;
	http_put_fields(&fields, needs->head);
	engine_bring(exchange->proxy->shared->engine, &(struct engine_bring){.wanted = wanted,
	                                                                     .wanted_count = needs->count,
	                                                                     .fields = buf_str(&fields),
	                                                                     .wait_ms = needs->elsewhere ? THERE_MS : 0,
	                                                                     .loop = exchange->proxy->loop,
	                                                                     .done = done,
	                                                                     .dropped = dropped,
	                                                                     .context = exchange});
	if (fields.at)
		explicit_bzero(fields.at, fields.length);
	buf_free(&fields);
	return -1;
}
