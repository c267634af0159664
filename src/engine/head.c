/* A request as it travels between members: the first line, the fields, and nothing of one connection or one site.
 *
 *     POST /images\n
 *     content-type: application/json\r\n
 *     accept: application/json\r\n
 */
#include "engine/engine_int.h"

bool engine_field_next(struct str *fields, struct str name, struct str *value)
{
	while (fields->length > 0) {
		const char *end = memchr(fields->at, '\n', fields->length);
		size_t line = end ? (size_t)(end - fields->at) + 1 : fields->length;
		const char *colon = memchr(fields->at, ':', line);
		size_t before = colon ? (size_t)(colon - fields->at) : line;
		bool found = colon && str_equal_nocase(str_make(fields->at, before), name);
		if (found)
			*value = str_make(colon + 1, line - before - 1);
		*fields = str_make(fields->at + line, fields->length - line);
		if (!found)
			continue;
		while (value->length > 0 && strchr(" \t", value->at[0]))
			*value = str_make(value->at + 1, value->length - 1);
		while (value->length > 0 && strchr("\r\n \t", value->at[value->length - 1]))
			value->length--;
		return true;
	}
	return false;
}

struct str engine_field(struct str fields, struct str name)
{
	struct str value;
	return engine_field_next(&fields, name, &value) ? value : STR("");
}

void engine_head_put(const struct engine_head *head, struct buf *out)
{
	buf_put(out, head->method);
	buf_put_char(out, ' ');
	buf_put(out, head->target);
	buf_put_char(out, '\n');
	buf_put(out, head->fields);
}

/* Of one connection, of one site, or between agents: they have no business in what another site is to run. */
static bool is_banned(struct str name)
{
	static const char *const banned[] = {"connection",        "content-length",   "expect", "forwarded", "host",
	                                     "keep-alive",        "proxy-connection", "scope",  "te",        "trailer",
	                                     "transfer-encoding", "upgrade",          "via",    "x-scope"};
	for (size_t i = 0; i < sizeof(banned) / sizeof(banned[0]); i++)
		if (str_equal_nocase(name, str_of(banned[i])))
			return true;
	static const struct str own = STR_INIT("cheops-");
	return name.length > own.length && str_equal_nocase(str_make(name.at, own.length), own);
}

/* Where the services are that the one is to call which runs it: of an operation's own, and never from a user. */
static const struct str scope_field = STR_INIT("cheops-scope");
/* How it is divided: the same. */
const struct str engine_division_field = STR_INIT("cheops-division");

void engine_scope_put(struct buf *fields, struct str scope)
{
	if (scope.length == 0)
		return;
	buf_put(fields, scope_field);
	buf_put(fields, STR(": "));
	buf_put(fields, scope);
	buf_put(fields, STR("\r\n"));
}

struct str engine_scope_of(struct str fields)
{
	return engine_field(fields, scope_field);
}

static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] <= ' ' || text.at[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", text.at[i]))
			return false;
	return text.length > 0;
}

static bool is_plain(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if (((unsigned char)text.at[i] < ' ' && text.at[i] != '\t') || text.at[i] == 0x7f)
			return false;
	return true;
}

/* "Name: value\r\n", again and again. */
static int check_fields(struct str fields, struct err *err)
{
	while (fields.length > 0) {
		const char *end = memchr(fields.at, '\n', fields.length);
		const char *colon = memchr(fields.at, ':', fields.length);
		if (!end || end == fields.at || end[-1] != '\r' || !colon || colon > end)
			return err_set(err, ERR_CORRUPT, "a header of an operation's request is cut short");
		struct str name = str_make(fields.at, (size_t)(colon - fields.at));
		if (!is_token(name) || !is_plain(str_make(colon + 1, (size_t)(end - 1 - (colon + 1)))) ||
		    (is_banned(name) && !str_equal(name, scope_field) && !str_equal(name, engine_division_field)))
			return err_set(err, ERR_CORRUPT, "a header of an operation's request may not be there");
		fields = str_make(end + 1, fields.length - (size_t)(end + 1 - fields.at));
	}
	return 0;
}

int engine_head_parse(struct str text, struct engine_head *head, struct err *err)
{
	const char *end = memchr(text.at, '\n', text.length);
	const char *space = end ? memchr(text.at, ' ', (size_t)(end - text.at)) : NULL;
	if (!space)
		return err_set(err, ERR_CORRUPT, "the request of an operation has no first line");
	head->method = str_make(text.at, (size_t)(space - text.at));
	head->target = str_make(space + 1, (size_t)(end - space - 1));
	head->fields = str_make(end + 1, text.length - (size_t)(end + 1 - text.at));
	bool plain = is_plain(head->target) && !memchr(head->target.at, ' ', head->target.length);
	if (!is_token(head->method) || head->target.length == 0 || head->target.at[0] != '/' || !plain)
		return err_set(err, ERR_CORRUPT, "the request of an operation has no good first line");
	head->content_type = engine_field(head->fields, STR("content-type"));
	return check_fields(head->fields, err);
}

void engine_fields_put(struct buf *out, struct str fields, bool (*wanted)(void *context, struct str name),
                       void *context)
{
	while (fields.length > 0) {
		const char *end = memchr(fields.at, '\n', fields.length);
		size_t line = end ? (size_t)(end - fields.at) + 1 : fields.length;
		const char *colon = memchr(fields.at, ':', line);
		struct str name = str_make(fields.at, colon ? (size_t)(colon - fields.at) : 0);
		if (is_token(name) && !is_banned(name) && wanted(context, name))
			buf_put(out, str_make(fields.at, line));
		fields = str_make(fields.at + line, fields.length - line);
	}
}

/* Can an answer of such a type be looked into? */
static bool is_readable(struct str range)
{
	return memmem(range.at, range.length, "json", 4) || memmem(range.at, range.length, "*/*", 3) ||
	       memmem(range.at, range.length, "application/*", 13);
}

/* Those of a list that are readable; "": none is. */
static void put_readable(struct buf *out, struct str list)
{
	while (list.length > 0) {
		const char *comma = memchr(list.at, ',', list.length);
		struct str range = str_make(list.at, comma ? (size_t)(comma - list.at) : list.length);
		size_t taken = range.length + (comma != NULL);
		list = str_make(list.at + taken, list.length - taken);
		if (!is_readable(range))
			continue;
		while (range.length > 0 && strchr(" \t\r\n", range.at[0]))
			range = str_make(range.at + 1, range.length - 1);
		while (range.length > 0 && strchr(" \t\r\n", range.at[range.length - 1]))
			range.length--;
		buf_put(out, out->length > 0 ? STR(", ") : STR(""));
		buf_put(out, range);
	}
}

static bool is_no_accept(void *context, struct str name)
{
	(void)context;
	return !str_equal_nocase(name, STR("accept"));
}

void engine_fields_readable(struct str fields, struct buf *out)
{
	struct buf ranges = {0};
	struct str accept = engine_field(fields, STR("accept"));
	if (accept.length == 0) {
		buf_put(out, fields);
		return;
	}
	put_readable(&ranges, accept);
	engine_fields_put(out, fields, is_no_accept, NULL);
	buf_printf(out, "Accept: %s\r\n", ranges.length > 0 ? buf_c(&ranges) : "application/json");
	buf_free(&ranges);
}
