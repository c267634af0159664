#include "glue/template.h"

#include "base/text.h"

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

enum { PLAIN, SLASH, DOT, PERCENT, BAD };

static const uint8_t kinds[256] = {
	['/'] = SLASH, ['.'] = DOT, ['%'] = PERCENT, ['\\'] = BAD, [0 ... 32] = BAD, [127] = BAD,
};

/* Of what would stand there decoded: %XX is read the same way by everybody only if the character has to be encoded, and
 * separates nothing for those who decode first. */
static bool has_one_reading(char high, char low)
{
	int h = str_hex_value(high), l = str_hex_value(low);
	if (h < 0 || l < 0)
		return false;
	char c = (char)(h * 16 + l);
	bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
	                  c == '.' || c == '_' || c == '~';
	return !unreserved && c != '/' && c != '\\' && c != '\0';
}

static bool is_dots(struct str segment)
{
	return segment.at[0] == '.' && (segment.length == 1 || (segment.length == 2 && segment.at[1] == '.'));
}

bool glue_segments_cut(struct str path, struct glue_segments *segments)
{
	if (path.length == 0 || path.at[0] != '/')
		return false;
	uint32_t count = 0;
	size_t start = 1;
	for (size_t i = 1; i <= path.length; i++) {
		uint8_t kind = i < path.length ? kinds[(uint8_t)path.at[i]] : SLASH;
		if (__builtin_expect(kind == PLAIN || kind == DOT, 1))
			continue;
		if (kind == PERCENT && path.length - i >= 3 && has_one_reading(path.at[i + 1], path.at[i + 2]))
			continue;
		if (kind != SLASH || count == LIMIT_GLUE_SEGMENTS)
			return false;
		struct str segment = str_make(path.at + start, i - start);
		if (segment.length == 0 ? i < path.length : is_dots(segment))
			return false;
		segments->at[count++] = segment;
		start = i + 1;
	}
	segments->count = count;
	return true;
}

/* ---- Templates --------------------------------------------------------------------------------------------------- */

bool glue_is_variable_name(struct str text)
{
	for (size_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return text.length > 0 && text.length <= LIMIT_GLUE_NAME_BYTES;
}

int glue_template_variable(const struct glue_template *template, struct str name)
{
	for (uint32_t i = 0; i < template->variables_count; i++) {
		if (str_equal(template->variables[i].name, name))
			return (int)i;
	}
	return -1;
}

static int add_variable(struct glue_template *template, struct str segment, uint32_t number, bool last, struct err *err)
{
	struct str name = str_make(segment.at + 1, segment.length - 2);
	bool rest = name.length > 0 && name.at[name.length - 1] == '*';
	name.length -= rest;
	if (!glue_is_variable_name(name))
		return err_set(err, ERR_INVALID,
		               TEXT_NAME_FMT " is no variable; its name has letters, digits and `_`, such as `{id}`",
		               TEXT_NAME(segment));
	if (rest && !last)
		return err_set(err, ERR_INVALID,
		               TEXT_NAME_FMT " stands for all segments that are left; nothing can come after it",
		               TEXT_NAME(segment));
	if (glue_template_variable(template, name) >= 0)
		return err_set(err, ERR_CONFLICT, "the variable " TEXT_NAME_FMT " is there twice", TEXT_NAME(segment));
	if (template->variables_count == LIMIT_GLUE_VARIABLES)
		return err_set(err, ERR_LIMIT, "more than %d variables, the limit of a template", LIMIT_GLUE_VARIABLES);
	template->variables[template->variables_count++] = (struct glue_variable){.name = name, .segment = number};
	template->takes_rest = rest;
	return 0;
}

static int add_segment(struct glue_template *template, struct str segment, uint32_t number, bool last, struct err *err)
{
	bool opens = memchr(segment.at, '{', segment.length) != NULL;
	bool closes = memchr(segment.at, '}', segment.length) != NULL;
	if (!opens && !closes) {
		template->segments[number] = segment;
		return 0;
	}
	if (segment.at[0] != '{' || segment.at[segment.length - 1] != '}')
		return err_set(err, ERR_INVALID,
		               "the segment " TEXT_NAME_FMT
		               " is partly a variable; a variable is a whole segment, as in `/{id}`",
		               TEXT_NAME(segment));
	return add_variable(template, segment, number, last, err);
}

int glue_template_parse(struct arena *arena, struct str text, struct glue_template *template, struct err *err)
{
	struct glue_segments segments;
	if (text.length == 0 || text.at[0] != '/')
		return err_set(err, ERR_INVALID, TEXT_NAME_FMT " does not begin with `/`", TEXT_NAME(text));
	if (text.length > LIMIT_GLUE_TEXT_BYTES)
		return err_set(err, ERR_LIMIT, "it has %zu bytes; the limit is %d", text.length, LIMIT_GLUE_TEXT_BYTES);
	if (memchr(text.at, '?', text.length) != NULL || memchr(text.at, '#', text.length) != NULL)
		return err_set(err, ERR_INVALID, TEXT_NAME_FMT " has more than a path; a query is told by `query`",
		               TEXT_NAME(text));
	struct str kept = str_make(arena_copy(arena, text.at, text.length), text.length);
	if (!glue_segments_cut(kept, &segments))
		return err_set(err, ERR_INVALID,
		               TEXT_NAME_FMT
		               " is a path that could be read in several ways; accepted are at most %d segments, none of them "
		               "empty, `.` or `..`, and no needless percent-encoding",
		               TEXT_NAME(text), LIMIT_GLUE_SEGMENTS);
	*template = (struct glue_template){.text = kept,
	                                   .segments = arena_array(arena, struct str, segments.count),
	                                   .variables = arena_array(arena, struct glue_variable, LIMIT_GLUE_VARIABLES),
	                                   .segments_count = segments.count,
	                                   .id_variable = -1};
	int code = 0;
	for (uint32_t i = 0; code == 0 && i < segments.count; i++)
		code = add_segment(template, segments.at[i], i, i + 1 == segments.count, err);
	template->collection_segments = glue_template_depth(template);
	return code;
}

uint32_t glue_template_depth(const struct glue_template *template)
{
	uint32_t count = template->segments_count;
	bool slash = template->segments[count - 1].at != NULL && template->segments[count - 1].length == 0;
	return count - slash;
}

bool glue_template_begins(const struct glue_template *template, const struct glue_template *shorter)
{
	uint32_t depth = glue_template_depth(shorter);
	if (depth > template->segments_count)
		return false;
	for (uint32_t i = 0; i < depth; i++) {
		struct str a = template->segments[i], b = shorter->segments[i];
		if ((a.at == NULL) != (b.at == NULL) || (a.at != NULL && !str_equal(a, b)))
			return false;
	}
	return true;
}

void glue_template_prefix(struct arena *arena, const struct glue_template *template, const struct glue_template *prefix,
                          struct glue_template *whole)
{
	uint32_t depth = glue_template_depth(prefix), count = depth + template->segments_count;
	struct str *segments = arena_array(arena, struct str, count);
	for (uint32_t i = 0; i < count; i++)
		segments[i] = i < depth ? prefix->segments[i] : template->segments[i - depth];
	struct glue_variable *variables = arena_array(arena, struct glue_variable, template->variables_count + 1);
	for (uint32_t i = 0; i < template->variables_count; i++) {
		variables[i] = template->variables[i];
		variables[i].segment += depth;
	}
	char *text = arena_alloc(arena, prefix->text.length + template->text.length, 1);
	memcpy(text, prefix->text.at, prefix->text.length);
	memcpy(text + prefix->text.length, template->text.at, template->text.length);
	*whole = *template;
	whole->text = str_make(text, prefix->text.length + template->text.length);
	whole->segments = segments;
	whole->variables = variables;
	whole->segments_count = count;
	whole->prefix_segments += depth;
	whole->collection_segments += depth;
}
