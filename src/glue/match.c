/* What is this request? The path leads through the service's trie to an endpoint; of the operations there the first that the
 * method, the query and the content type allow is it, or, where bodies tell them apart, one of those that they allow. */
#include "glue/match.h"

#include "base/check.h"
#include "base/text.h"
#include "glue/json.h"

/* ---- Methods ----------------------------------------------------------------------------------------------------- */

static const struct str method_names[GLUE_METHODS] = {
	[GLUE_GET] = STR_INIT("GET"),         [GLUE_HEAD] = STR_INIT("HEAD"),   [GLUE_POST] = STR_INIT("POST"),
	[GLUE_PUT] = STR_INIT("PUT"),         [GLUE_PATCH] = STR_INIT("PATCH"), [GLUE_DELETE_METHOD] = STR_INIT("DELETE"),
	[GLUE_OPTIONS] = STR_INIT("OPTIONS"),
};

int glue_method_find(struct str name)
{
	for (int i = 0; i < GLUE_METHODS; i++) {
		if (str_equal(method_names[i], name))
			return i;
	}
	return -1;
}

const char *glue_method_name(enum glue_method method)
{
	return method_names[method].at;
}

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

/* The next byte of a query's text, decoded; *at moves past it. */
static int next_byte(struct str text, size_t *at)
{
	char c = text.at[(*at)++];
	if (c == '+')
		return ' ';
	if (c != '%' || text.length - *at < 2)
		return (uint8_t)c;
	int high = str_hex_value(text.at[*at]), low = str_hex_value(text.at[*at + 1]);
	if (high < 0 || low < 0)
		return '%';
	*at += 2;
	return high * 16 + low;
}

static bool decodes_to(struct str text, struct str wanted)
{
	size_t at = 0;
	for (size_t i = 0; i < wanted.length; i++) {
		if (at == text.length || next_byte(text, &at) != (uint8_t)wanted.at[i])
			return false;
	}
	return at == text.length;
}

static bool value_fits(const struct glue_condition *condition, struct str value)
{
	for (uint32_t i = 0; i < condition->values.count; i++) {
		if (decodes_to(value, condition->values.at[i]))
			return true;
	}
	return condition->values.count == 0;
}

static bool query_fits(const struct glue_condition *condition, struct str query)
{
	while (query.length > 0) {
		const char *and = memchr(query.at, '&', query.length);
		struct str member = str_make(query.at, and != NULL ? (size_t)(and-query.at) : query.length);
		size_t taken = member.length + (and != NULL);
		query = str_make(query.at + taken, query.length - taken);
		const char *equals = member.length > 0 ? memchr(member.at, '=', member.length) : NULL;
		size_t name_length = equals != NULL ? (size_t)(equals - member.at) : member.length;
		size_t value_at = name_length + (equals != NULL);
		if (decodes_to(str_make(member.at, name_length), condition->name) &&
		    value_fits(condition, str_make(member.at + value_at, member.length - value_at)))
			return true;
	}
	return false;
}

/* Without parameters. */
static struct str media_type(struct str content_type)
{
	const char *semicolon = content_type.length > 0 ? memchr(content_type.at, ';', content_type.length) : NULL;
	if (semicolon != NULL)
		content_type.length = (size_t)(semicolon - content_type.at);
	while (content_type.length > 0 &&
	       (content_type.at[content_type.length - 1] == ' ' || content_type.at[content_type.length - 1] == '\t'))
		content_type.length--;
	return content_type;
}

static bool content_fits(const struct glue_operation *operation, struct str content_type)
{
	if (operation->contents.count == 0)
		return true;
	struct str media = media_type(content_type);
	for (uint32_t i = 0; i < operation->contents.count; i++) {
		if (str_equal_nocase(operation->contents.at[i], media))
			return true;
	}
	return false;
}

static bool operation_fits(const struct glue_operation *operation, const struct glue_request *request, uint32_t method)
{
	if ((operation->methods & method) == 0 || !content_fits(operation, request->content_type))
		return false;
	for (uint32_t i = 0; i < operation->conditions_count; i++) {
		if (!query_fits(&operation->conditions[i], request->query))
			return false;
	}
	return true;
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

struct search {
	const struct glue_request *request;
	uint32_t method; /* its bit */
	struct glue_match *match;
	const struct glue_candidate *chosen;
};

/* Takes the endpoint if one of its operations fits. */
static bool accept(void *context, const struct glue_endpoint *endpoint)
{
	struct search *search = context;
	struct glue_match *match = search->match;
	if ((endpoint->methods & search->method) == 0)
		return false;
	match->candidates = 0;
	match->operation = NULL;
	search->chosen = NULL;
	for (uint32_t i = 0; i < endpoint->count && match->operation == NULL; i++) {
		const struct glue_candidate *candidate = &endpoint->candidates[i];
		if (!operation_fits(candidate->operation, search->request, search->method))
			continue;
		match->candidates |= UINT64_C(1) << i;
		if (candidate->operation->key.length == 0)
			match->operation = candidate->operation;
		if (search->chosen == NULL || match->operation != NULL)
			search->chosen = candidate;
	}
	return search->chosen != NULL;
}

const struct glue_service *glue_service_find(const struct glue *glue, struct str name)
{
	for (uint32_t i = 0; i < glue->services_count; i++) {
		if (str_equal(glue->services[i].about.name, name))
			return &glue->services[i];
	}
	return glue->any;
}

static void fill_values(const struct glue_template *template, const struct glue_segments *segments,
                        struct glue_value values[LIMIT_GLUE_VARIABLES], uint32_t *count)
{
	*count = template->variables_count;
	for (uint32_t i = 0; i < template->variables_count; i++) {
		const struct glue_variable *variable = &template->variables[i];
		values[i] = (struct glue_value){variable->name, segments->at[variable->segment]};
	}
	if (template->takes_rest) {
		struct str *last = &values[*count - 1].text;
		struct str end = segments->at[segments->count - 1];
		last->length = (size_t)(end.at + end.length - last->at);
	}
}

static void fill(struct glue_match *match, const struct glue_candidate *candidate, const struct glue_segments *segments)
{
	const struct glue_template *template = candidate->template;
	match->template = template;
	match->type = candidate->operation->type;
	fill_values(template, segments, match->values, &match->values_count);
	match->id = template->id_variable >= 0 ? match->values[template->id_variable].text : STR("");
	match->collection = STR("");
	if (template->collection_segments > 0) {
		struct str last = segments->at[template->collection_segments - 1];
		match->collection = str_make(match->path.at, (size_t)(last.at + last.length - match->path.at));
	}
}

bool glue_match(const struct glue *glue, const struct glue_request *request, struct glue_match *match)
{
	const struct glue_service *service = glue_service_find(glue, request->service);
	int method = glue_method_find(request->method);
	struct glue_segments segments;
	if (service == NULL || method < 0 || !glue_segments_cut(request->path, &segments))
		return false;
	struct search search = {.request = request, .method = 1u << method, .match = match};
	const struct glue_endpoint *endpoint = glue_trie_find(service->root, &segments, accept, &search);
	if (endpoint == NULL)
		return false;
	match->service = service;
	match->service_name = request->service;
	match->endpoint = endpoint;
	match->key = STR("");
	match->needs_body = match->operation == NULL || (match->candidates & (match->candidates - 1)) != 0;
	match->path = request->path;
	fill(match, search.chosen, &segments);
	return true;
}

/* ---- By its body ------------------------------------------------------------------------------------------------- */

/* The name of the first member of a JSON object: a slice of the body or, where it has escapes, of `scratch`. False: there is
 * none. */
static bool first_member(struct str body, struct buf *scratch, struct str *key)
{
	struct glue_json json;
	glue_json_init(&json, false);
	glue_json_feed(&json, body);
	return glue_json_next(&json) == GLUE_JSON_VALUE && json.kind == GLUE_JSON_OBJECT &&
	       glue_json_next(&json) == GLUE_JSON_KEY && glue_json_string(json.token, json.escaped, scratch, key);
}

static void describe_keys(const struct glue_match *match, struct buf *out)
{
	const struct glue_endpoint *endpoint = match->endpoint;
	for (uint32_t i = 0; i < endpoint->count; i++) {
		if ((match->candidates >> i & 1) != 0)
			buf_printf(out, "%s" TEXT_NAME_FMT, out->length == 0 ? "" : ", ",
			           TEXT_NAME(endpoint->candidates[i].operation->key));
	}
}

bool glue_match_body(const struct glue *glue, struct str body, struct glue_match *match, struct err *err)
{
	(void)glue;
	const struct glue_endpoint *endpoint = match->endpoint;
	struct str key = {0};
	struct buf scratch = {0};
	bool found = first_member(body, &scratch, &key);
	for (uint32_t i = 0; i < endpoint->count; i++) {
		const struct glue_candidate *candidate = &endpoint->candidates[i];
		struct str wanted = candidate->operation->key;
		if ((match->candidates >> i & 1) == 0)
			continue;
		if (wanted.length > 0 && (!found || (!str_equal(wanted, STR("*")) && !str_equal(wanted, key))))
			continue;
		struct glue_segments segments;
		CHECK(glue_segments_cut(match->path, &segments));
		match->operation = candidate->operation;
		fill(match, candidate, &segments);
		/* The scratch is gone when the match is read. */
		match->key = scratch.length > 0 || wanted.length == 0 ? wanted : key;
		match->needs_body = false;
		buf_free(&scratch);
		return true;
	}
	struct buf known = {0};
	describe_keys(match, &known);
	if (found)
		err_set(err, ERR_NOT_FOUND, "the body's first member is " TEXT_NAME_FMT "; described are %s", TEXT_NAME(key),
		        buf_c(&known));
	else
		err_set(err, ERR_INVALID, "the body is no JSON object with a first member; described are %s", buf_c(&known));
	buf_free(&known);
	return false;
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

static bool accept_any(void *context, const struct glue_endpoint *endpoint)
{
	(void)context;
	return endpoint->count > 0;
}

const struct glue_template *glue_find_template(const struct glue *glue, struct str service, struct str path,
                                               struct glue_value values[LIMIT_GLUE_VARIABLES], uint32_t *values_count,
                                               const struct glue_type **type)
{
	const struct glue_service *entry = glue_service_find(glue, service);
	struct glue_segments segments;
	if (entry == NULL || !glue_segments_cut(path, &segments))
		return NULL;
	const struct glue_endpoint *endpoint = glue_trie_find(entry->root, &segments, accept_any, NULL);
	if (endpoint == NULL)
		return NULL;
	const struct glue_candidate *first = &endpoint->candidates[0];
	fill_values(first->template, &segments, values, values_count);
	*type = first->operation->type;
	return first->template;
}

bool glue_match_item(const struct glue_service *service, struct str service_name, struct str path,
                     struct glue_match *match)
{
	struct glue_segments segments;
	if (service == NULL || !glue_segments_cut(path, &segments))
		return false;
	const struct glue_endpoint *endpoint = glue_trie_find(service->root, &segments, accept_any, NULL);
	if (endpoint == NULL)
		return false;
	*match = (struct glue_match){
		.service = service, .service_name = service_name, .path = path, .endpoint = endpoint, .key = STR("")};
	fill(match, &endpoint->candidates[0], &segments);
	const struct glue_template *template = match->template;
	return template->id_variable >= 0 && template->variables[template->id_variable].segment + 1 == segments.count;
}
