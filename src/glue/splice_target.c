/* Ids in what is no body: the target of a request, and links in answers.
 *
 * A target is rewritten where its template has the id or a reference (the path), and in the members that the type calls
 * references (the query). A link is a path, or a whole URL; what its path is, is looked up as if it were asked for. All that
 * is not replaced is copied as it came, also the way in which it is percent-encoded.
 */
#include "glue/match.h"
#include "glue/places.h"

#include "base/arena.h"
#include "base/percent.h"

/* One text, and how far it is written. */
struct rewrite {
	struct str text;
	size_t copied;
	const struct glue_replacer *replacer;
	struct buf *out;
	struct arena arena; /* for decoded values */
	/* Whose path it is, and where that begins in the text. */
	const struct glue_service *service;
	struct str service_name;
	size_t path;
	bool is_link; /* which leads to an item that need not be of the type of whoever shows it */
};

static void rewrite_begin(struct rewrite *rewrite, struct str text, const struct glue_replacer *replacer,
                          struct buf *out)
{
	*rewrite = (struct rewrite){.text = text, .replacer = replacer, .out = out};
	arena_init(&rewrite->arena, 0);
}

static void copy_until(struct rewrite *rewrite, size_t end)
{
	buf_put(rewrite->out, str_make(rewrite->text.at + rewrite->copied, end - rewrite->copied));
	rewrite->copied = end;
}

static void rewrite_end(struct rewrite *rewrite)
{
	copy_until(rewrite, rewrite->text.length);
	arena_free(&rewrite->arena);
}

/* False: it cannot be decoded. */
static bool decode(struct rewrite *rewrite, struct str text, bool in_query, struct str *decoded)
{
	if (!in_query || text.length == 0 || !memchr(text.at, '+', text.length))
		return percent_decode(&rewrite->arena, text, decoded);
	char *spaced = arena_copy(&rewrite->arena, text.at, text.length);
	for (size_t i = 0; i < text.length; i++)
		if (spaced[i] == '+')
			spaced[i] = ' ';
	return percent_decode(&rewrite->arena, str_make(spaced, text.length), decoded);
}

/* Offers the place.length bytes at place.at, which are all of an id, to the replacer. What cannot be decoded is no id. */
static void offer(struct rewrite *rewrite, struct glue_place place, bool in_query)
{
	struct buf value = {0};
	bool quoted = true;
	place.quoted = true;
	if (place.length > LIMIT_GLUE_VALUE_BYTES ||
	    !decode(rewrite, str_make(rewrite->text.at + place.at, place.length), in_query, &place.value))
		return;
	if (rewrite->replacer->replace(rewrite->replacer->context, &place, &value, &quoted)) {
		copy_until(rewrite, place.at);
		percent_encode(rewrite->out, buf_str(&value));
		rewrite->copied += place.length;
	}
	buf_free(&value);
}

/* `value` is a slice of the text. The path up to a reference says what it refers to: in /posts/7/comments/2 the 7 is /posts/7. So does
 * that up to the id in a link. */
static void offer_variable(struct rewrite *rewrite, const struct glue_variable *variable, struct str value)
{
	struct glue_match item;
	struct glue_place place = {
		.kind = variable->kind == GLUE_VARIABLE_ID ? GLUE_PLACE_ID : GLUE_PLACE_REFERENCE,
		.type = variable->type,
		.relation = variable->relation,
		.at = (size_t)(value.at - rewrite->text.at),
		.length = value.length,
	};
	struct str path = str_make(rewrite->text.at + rewrite->path, place.at + place.length - rewrite->path);
	if (variable->kind == GLUE_VARIABLE_PLAIN)
		return;
	if ((variable->kind == GLUE_VARIABLE_REFERENCE || rewrite->is_link) &&
	    glue_match_item(rewrite->service, rewrite->service_name, path, &item) &&
	    (variable->type == NULL || item.type == variable->type))
		place.item = &item;
	offer(rewrite, place, false);
}

/* values are slices of the text. */
static void rewrite_path(struct rewrite *rewrite, const struct glue_template *template, const struct glue_value *values)
{
	for (uint32_t i = 0; i < template->variables_count; i++)
		offer_variable(rewrite, &template->variables[i], values[i].text);
}

static const struct glue_reference *reference_find(struct rewrite *rewrite, const struct glue_type *type,
                                                   struct str name)
{
	struct str decoded;
	if (!decode(rewrite, name, true, &decoded))
		return NULL;
	for (uint32_t i = 0; i < type->in_query.count; i++)
		if (str_equal(type->in_query.at[i].place, decoded))
			return &type->in_query.at[i];
	return NULL;
}

/* Where the id begins in a member of a query; 0 as well if that cannot be said: a URL may be percent-encoded, but then the whole of it. */
static size_t id_begin(struct rewrite *rewrite, struct str value)
{
	struct str decoded;
	if (!decode(rewrite, value, true, &decoded) || glue_reference_begin(decoded) == 0)
		return 0;
	for (size_t at = value.length; at > 0; at--) {
		if (value.at[at - 1] == '/')
			return at;
		if (value.length - at >= 2 && value.at[at - 1] == '%' && value.at[at] == '2' &&
		    (value.at[at + 1] | 0x20) == 'f')
			return at + 2;
	}
	return 0;
}

/* The query is the text from `at` to `end`. */
static void rewrite_query(struct rewrite *rewrite, const struct glue_type *type, size_t at, size_t end)
{
	while (type->in_query.count > 0 && at < end) {
		const char *from = rewrite->text.at + at;
		const char *and = memchr(from, '&', end - at);
		size_t length = and? (size_t)(and-from) : end - at;
		const char *equals = memchr(from, '=', length);
		size_t name = equals ? (size_t)(equals - from) : length;
		const struct glue_reference *reference = equals ? reference_find(rewrite, type, str_make(from, name)) : NULL;
		if (reference) {
			size_t before = id_begin(rewrite, str_make(equals + 1, length - name - 1));
			struct glue_place place = {.kind = GLUE_PLACE_REFERENCE,
			                           .type = reference->type,
			                           .relation = reference->kind,
			                           .at = at + name + 1 + before,
			                           .length = length - name - 1 - before};
			offer(rewrite, place, true);
		}
		at += length + 1;
	}
}

void glue_splice_target(const struct glue_match *match, const struct glue_request *request,
                        const struct glue_replacer *replacer, struct buf *out)
{
	struct rewrite rewrite;
	rewrite_begin(&rewrite, request->path, replacer, out);
	rewrite.service = match->service;
	rewrite.service_name = match->service_name;
	rewrite_path(&rewrite, match->template, match->values);
	rewrite_end(&rewrite);
	if (request->query.length == 0)
		return;
	buf_put_char(out, '?');
	rewrite_begin(&rewrite, request->query, replacer, out);
	rewrite_query(&rewrite, match->type, 0, request->query.length);
	rewrite_end(&rewrite);
}

bool glue_reference_splice(const struct glue_match *match, uint32_t variable, const struct glue_replacer *replacer,
                           struct buf *out)
{
	struct rewrite rewrite;
	struct str value = match->values[variable].text;
	struct str path = str_make(match->path.at, (size_t)(value.at + value.length - match->path.at));
	rewrite_begin(&rewrite, path, replacer, out);
	rewrite.service = match->service;
	rewrite.service_name = match->service_name;
	rewrite.copied = path.length - value.length; /* what is before it is not asked for */
	offer_variable(&rewrite, &match->template->variables[variable], value);
	bool replaced = rewrite.copied == path.length;
	arena_free(&rewrite.arena);
	return replaced;
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

size_t glue_link_path(struct str link)
{
	size_t at = 0;
	while (at < link.length && link.at[at] != '/' && link.at[at] != '?' && link.at[at] != '#')
		at++;
	/* The first slash is a path's, unless a colon or nothing is before it and another slash behind. */
	if (link.length - at < 2 || link.at[at] != '/' || link.at[at + 1] != '/' || (at > 0 && link.at[at - 1] != ':'))
		return at == 0 ? 0 : link.length;
	for (at += 2; at < link.length && link.at[at] != '/' && link.at[at] != '?' && link.at[at] != '#';)
		at++;
	return at;
}

static size_t until(struct str text, size_t at, const char *stops)
{
	while (at < text.length && !strchr(stops, text.at[at]))
		at++;
	return at;
}

/* A whole URL says which host it is for, and that may be another service's; a path is for the one that answers. */
static const struct glue_template *link_template(const struct glue *glue, struct str *service, struct str path,
                                                 bool anywhere, struct glue_value *values,
                                                 const struct glue_type **type)
{
	uint32_t count;
	const struct glue_template *template = glue_find_template(glue, *service, path, values, &count, type);
	for (uint32_t i = 0; !template && anywhere && i < glue->services_count; i++) {
		template = glue_find_template(glue, glue->services[i].about.name, path, values, &count, type);
		if (template)
			*service = glue->services[i].about.name;
	}
	return template;
}

void glue_splice_link(const struct glue *glue, struct str service, struct str link,
                      const struct glue_replacer *replacer, struct buf *out)
{
	struct rewrite rewrite;
	struct glue_value values[LIMIT_GLUE_VARIABLES];
	const struct glue_type *type;
	size_t path = glue_link_path(link), query = until(link, path, "?#"), fragment = until(link, query, "#");
	const struct glue_template *template = NULL;
	if (query > path)
		template = link_template(glue, &service, str_make(link.at + path, query - path), path > 0, values, &type);
	rewrite_begin(&rewrite, link, replacer, out);
	rewrite.service = glue_service_find(glue, service);
	rewrite.service_name = service;
	rewrite.path = path;
	rewrite.is_link = true;
	if (template) {
		rewrite_path(&rewrite, template, values);
		rewrite_query(&rewrite, type, query < fragment ? query + 1 : query, fragment);
	}
	rewrite_end(&rewrite);
}
