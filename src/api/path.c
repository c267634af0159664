/* Paths and queries of requests to the API. */
#include "api/api_int.h"

#include "base/percent.h"

static struct str path_of(struct str target)
{
	const char *query = target.length > 0 ? memchr(target.at, '?', target.length) : NULL;
	return str_make(target.at, query ? (size_t)(query - target.at) : target.length);
}

/* Takes the next segment off; the path begins with a slash. */
static struct str next_segment(struct str *path)
{
	const char *end = path->length > 1 ? memchr(path->at + 1, '/', path->length - 1) : NULL;
	size_t length = end ? (size_t)(end - path->at) : path->length;
	struct str segment = str_make(path->at + 1, length - 1);
	*path = str_make(path->at + length, path->length - length);
	return segment;
}

struct str api_segment(struct str target, uint32_t n)
{
	struct str path = path_of(target), segment = STR("");
	for (uint32_t i = 0; i <= n; i++) {
		if (path.length == 0 || path.at[0] != '/')
			return STR("");
		segment = next_segment(&path);
	}
	return segment;
}

bool api_path_matches(struct str pattern, struct str path)
{
	path = path_of(path);
	while (pattern.length > 0 && path.length > 0 && path.at[0] == '/') {
		struct str wanted = next_segment(&pattern), segment = next_segment(&path);
		bool any = wanted.length > 0 && wanted.at[0] == '{' && segment.length > 0;
		if (!any && !str_equal(wanted, segment))
			return false;
	}
	return pattern.length == 0 && path.length == 0;
}

bool api_number(struct str text, uint64_t most, uint64_t *number)
{
	uint64_t value = 0;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9' || value > most / 10)
			return false;
		value = value * 10 + (uint64_t)(text.at[i] - '0');
	}
	*number = value;
	return text.length > 0 && value <= most;
}

struct str api_query(struct arena *arena, struct str target, const char *name)
{
	const char *mark = memchr(target.at, '?', target.length);
	size_t length = strlen(name);
	struct str rest = mark ? str_make(mark + 1, target.length - (size_t)(mark + 1 - target.at)) : STR("");
	while (rest.length > 0) {
		const char *end = memchr(rest.at, '&', rest.length);
		struct str part = str_make(rest.at, end ? (size_t)(end - rest.at) : rest.length);
		rest = end ? str_make(end + 1, rest.length - part.length - 1) : STR("");
		struct str decoded;
		if (part.length > length && memcmp(part.at, name, length) == 0 && part.at[length] == '=' &&
		    percent_decode(arena, str_make(part.at + length + 1, part.length - length - 1), &decoded))
			return decoded;
	}
	return STR("");
}
