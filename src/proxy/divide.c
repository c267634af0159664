/* Divisible resources (DESIGN 8): each site has a part, and who asks for it by its id gets the whole.
 *
 * A read, when all goes well:
 *   1. The request names what is divided, by its meta-id or a name that users chose, and no site.
 *   2. All of its sites are asked at once, the prime first in line, as with `&` (gather.c). Each answers with its own part.
 *   3. cross_combine() makes one body of them, by the rules of the description; the head is that of the first site that is in it.
 *   4. Each part comes with its standing, the operations that its site has carried out. Are they all the same, it is the whole.
 *
 * What goes wrong:
 *   a site does not answer, answers with 4xx or 5xx,     the answer is without it, and says so: `Cheops-Partial`
 *   or with something of which nothing can be made
 *   a change has not reached all sites                   what they have is put together, and those that are behind are named
 *   a site was forced out, or removed, with its part     that site is named, until it is divided anew
 *   a sum does not fit into 64 bits                      a problem; no number is made up
 *   none answers                                         as with `&`
 */
#include "proxy/gather.h"

#include <stdio.h>

/* ---- Rules ------------------------------------------------------------------------------------------------------- */

static enum cross_function function_of(enum glue_combine combine)
{
	static const enum cross_function functions[GLUE_COMBINES] = {
		[GLUE_SUM] = CROSS_SUM, [GLUE_UNION] = CROSS_UNION, [GLUE_CONCAT] = CROSS_CONCAT,
		[GLUE_MIN] = CROSS_MIN, [GLUE_MAX] = CROSS_MAX,     [GLUE_PRIME] = CROSS_PRIME,
	};
	return functions[combine];
}

static struct str within(struct arena *arena, struct str object, struct str pointer)
{
	struct buf text = {0};
	if (object.length == 0)
		return pointer;
	buf_put(&text, object);
	buf_put(&text, pointer);
	struct str whole = str_make(arena_copy(arena, text.at, text.length), text.length);
	buf_free(&text);
	return whole;
}

static bool is_combined(const struct glue_cross *cross, struct str pointer)
{
	for (uint32_t i = 0; i < cross->combine_count; i++)
		if (str_equal(cross->combine[i].pointer, pointer))
			return true;
	return false;
}

uint32_t proxy_combine_rules(struct arena *arena, const struct glue_type *type, struct str object,
                             const struct cross_rule **out)
{
	const struct glue_cross *cross = glue_type_cross(type);
	struct cross_rule *rules = arena_array(arena, struct cross_rule, cross->divide_count + cross->combine_count);
	uint32_t count = 0;
	for (uint32_t i = 0; i < cross->divide_count; i++)
		if (!is_combined(cross, cross->divide[i]))
			rules[count++] = (struct cross_rule){within(arena, object, cross->divide[i]), CROSS_TOGETHER};
	for (uint32_t i = 0; i < cross->combine_count; i++)
		rules[count++] =
			(struct cross_rule){within(arena, object, cross->combine[i].pointer), function_of(cross->combine[i].as)};
	*out = rules;
	return count;
}

/* ---- `%` --------------------------------------------------------------------------------------------------------- */

static int refuse_choice(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {.status = 501,
	                                .type = "not-yet",
	                                .title = "This collaboration is not carried out yet",
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem, "inside of `%%` there can only be sites, not a choice of them (`;`, `|`)");
	return -1;
}

int proxy_divide_choose(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	const struct scope_step *root = plan->root;
	bool here = false;
	for (uint32_t i = 0; i < root->of_count; i++) {
		if (root->of[i]->op != SCOPE_ONE)
			return refuse_choice(exchange);
		here |= root->of[i]->site_index == PROXY_HERE;
	}
	if (here)
		exchange->resource->copies = root;
	else if (exchange->carrier != PROXY_CARRIER_PEER)
		proxy_trial_new(exchange, plan); /* any of them makes it for all */
	return 0;
}

/* ---- Reads ------------------------------------------------------------------------------------------------------- */

/* The scope names one site, or has one chosen: its part is meant. */
static bool names_one(const struct proxy_exchange *exchange)
{
	const struct scope *scope = exchange->lease ? scope_lease_scope(exchange->lease) : NULL;
	enum scope_step_op op = scope ? scope_lease_plan(exchange->lease)->root->op : SCOPE_ONE;
	for (uint32_t i = 0; scope && i < scope_entries_count(scope); i++) {
		struct str service = scope_entry_service(scope, i);
		if (service.length == 0 || str_equal(service, exchange->service->name))
			return op != SCOPE_ALL_OF && op != SCOPE_SPAN_OF;
	}
	return false;
}

bool proxy_is_divided_read(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	if (!resource || !resource->known || resource->found.span != REPLICA_DIVIDED || resource->found.deleted)
		return false;
	if (exchange->client->kind == PROXY_FRONT_PEER || !str_equal(http_method_name(exchange->method), STR("GET")))
		return false;
	bool item = resource->effect == GLUE_READ && !resource->match.needs_body && resource->match.operation &&
	            glue_facet_number(resource->match.operation) == 0;
	bool chosen = glue_type_identity(resource->match.type) == GLUE_CHOSEN;
	return item && (resource->found.by_meta_id || chosen) && !names_one(exchange) &&
	       glue_type_cross(resource->match.type)->strategy == GLUE_DIVISIBLE;
}

/* What the other agents read as the scope. Each answers for itself. */
static void say_where(struct proxy_exchange *exchange, const struct scope_step *root)
{
	struct buf text = {0};
	if (exchange->scope.length > 0)
		return;
	scope_put_service(&text, exchange->service->name);
	for (uint32_t i = 0; i < root->of_count; i++) {
		buf_put(&text, i ? STR(" & ") : STR(": "));
		scope_put_site(&text, root->of[i]->site);
	}
	exchange->scope = str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
	buf_free(&text);
}

int proxy_divide_read(struct proxy_exchange *exchange)
{
	const struct engine_found *found = &exchange->resource->found;
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	site_id members[LIMIT_REPLICA_MEMBERS];
	uint32_t count = engine_members(exchange->proxy->shared->engine, found->id, members), unknown = 0;
	uint64_t sites_digest = cross_sites_digest(members, count);
	struct scope_step root = {.op = SCOPE_ALL_OF};
	const struct scope_step *of[LIMIT_REPLICA_MEMBERS];
	root.of = of;
	for (int prime = 1; prime >= 0; prime--) {
		for (uint32_t i = 0; i < count; i++) {
			if ((members[i] == found->prime) != prime)
				continue;
			uint32_t place =
				site_snapshot_is_removed(sites, members[i]) ? SCOPE_NO_INDEX : site_snapshot_find(sites, members[i]);
			unknown += place == SCOPE_NO_INDEX;
			if (place == SCOPE_NO_INDEX)
				continue;
			of[root.of_count++] = proxy_step_at(exchange, place);
		}
	}
	if (root.of_count == 0)
		return 0; /* it goes at this moment: as the service here has it */
	say_where(exchange, &root);
	const struct scope_plan plan = {
		.service = exchange->service->name, .at = exchange->state->config->site, .root = &root};
	if (proxy_gather_new(exchange, &plan) != 0)
		return -1;
	exchange->trial->gather->divided = true;
	exchange->trial->gather->unknown = unknown;
	exchange->trial->gather->sites = sites_digest;
	return 0;
}

struct cross_standing proxy_divide_standing(const struct proxy_attempt *attempt, struct str says)
{
	static const struct str part = STR_INIT("part;");
	const struct proxy_exchange *exchange = attempt->exchange;
	if (!attempt->peer)
		return engine_standing(exchange->proxy->shared->engine, exchange->resource->found.id, exchange->asked_at);
	if (says.length <= part.length || memcmp(says.at, part.at, part.length) != 0)
		return (struct cross_standing){0};
	return cross_standing_parse(str_make(says.at + part.length, says.length - part.length));
}

/* Of a site that went away with its part. */
static void put_lost(struct proxy_exchange *exchange, site_id lost, struct buf *out)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	uint32_t place = site_snapshot_find(sites, lost);
	char hex[17];
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)lost);
	proxy_put_quoted(out, place == SCOPE_NO_INDEX ? str_of(hex) : sites->places[place].name);
	buf_put(out, STR(";reason=lost"));
}

/* Those that are in it, and not of the same whole as the others, are told of like those that are missing. */
static void judge_parts(struct proxy_exchange *exchange, const struct cross_part *parts, struct buf *fields)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct cross_standing standings[LIMIT_GATHER_SITES];
	enum cross_verdict verdicts[LIMIT_GATHER_SITES];
	uint32_t numbers[LIMIT_GATHER_SITES], count = 0;
	site_id lost = 0;
	for (uint32_t i = 0; i < gather->count && i < LIMIT_GATHER_SITES; i++) {
		if (parts[i].missing || parts[i].left_out)
			continue;
		standings[count] = gather->parts[i].standing;
		lost = lost ? lost : standings[count].lost;
		numbers[count++] = i;
	}
	cross_standings_compare(standings, count, &gather->sites, verdicts);
	for (uint32_t i = 0; i < count; i++) {
		gather->parts[numbers[i]].reason = cross_verdict_reason(verdicts[i]);
		if (gather->parts[numbers[i]].reason)
			gather->parts[numbers[i]].details = str_of(cross_verdict_phrase(verdicts[i]));
	}
	if (!lost)
		return;
	buf_put(fields, STR("Cheops-Partial: "));
	put_lost(exchange, lost, fields);
	buf_put(fields, STR("\r\n"));
}

static void refuse_parts(struct proxy_exchange *exchange, const struct err *err)
{
	struct proxy_problem problem = {.status = 502,
	                                .type = "parts-not-combined",
	                                .title = "The parts of the resource cannot be put together",
	                                .error = "proxy_internal_response"};
	proxy_problem(exchange, &problem, "%s; the part of one site is shown where the scope names that site alone",
	              err->text);
}

/* What is of use, and why the rest is not. */
static void take_parts(struct proxy_exchange *exchange, struct cross_part *parts)
{
	struct proxy_gather *gather = exchange->trial->gather;
	for (uint32_t i = 0; i < gather->count; i++) {
		struct proxy_part *part = &gather->parts[i];
		bool coded = part->coding.length > 0 && !str_equal_nocase(part->coding, STR("identity"));
		bool fine = part->headed && !part->own && part->status >= 200 && part->status <= 299;
		if (part->headed && !part->reason && (!fine || coded))
			part->reason = fine ? "coding" : "status";
		parts[i] = (struct cross_part){
			.site = gather->names[i], .body = buf_str(&part->body), .missing = !part->headed || part->reason};
		if (part->attempt && part->attempt->error) /* it broke off */
			parts[i].missing = true;
	}
}

void proxy_divide_respond(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	const struct glue_match *match = &exchange->resource->match;
	struct cross_part *parts = arena_array(&exchange->arena, struct cross_part, gather->count);
	const struct cross_rule *rules;
	struct cross_combined combined;
	struct buf body = {0}, fields = {0};
	struct err err = {0};
	uint32_t count =
		proxy_combine_rules(&exchange->arena, match->type, glue_operation_object(match->operation), &rules);
	take_parts(exchange, parts);
	int code = cross_combine(rules, count, parts, gather->count, &body, &combined, &err);
	for (uint32_t i = 0; i < gather->count; i++) {
		if (!parts[i].left_out)
			continue;
		gather->parts[i].reason = "not-combined";
		gather->parts[i].details = str_of(parts[i].why.text);
	}
	if (code == ERR_UNAVAILABLE) {
		proxy_gather_refuse(exchange);
	} else if (code) {
		refuse_parts(exchange, &err);
	} else {
		const struct proxy_part *base = &gather->parts[combined.base];
		buf_put(&fields, base->fields);
		size_t before = fields.length;
		judge_parts(exchange, parts, &fields);
		bool partial = fields.length > before;
		partial |= proxy_put_partial(exchange, &fields);
		for (uint32_t i = 0; i < gather->unknown; i++)
			buf_put(&fields, STR("Cheops-Partial: \"?\";reason=destination_not_found\r\n"));
		if (partial || gather->unknown > 0)
			proxy_count(&exchange->proxy->counters.partial, 1);
		proxy_put_deeds(exchange, &fields);
		proxy_build_whole(exchange, base->status, buf_str(&fields), buf_str(&body));
	}
	buf_free(&body);
	buf_free(&fields);
}
