/* Where two comparable texts differ.
 *
 * Both are as glue_comparable() writes them: no white space, members sorted. So the members of two objects are gone through side by
 * side, and a value that is equal in both is equal byte by byte: nothing is parsed but what differs.
 */
#include "glue/glue.h"
#include "glue/json.h"

#include <stdlib.h>

struct differing {
	struct buf pointer;
	struct buf scratch;
	uint32_t told, most;
	bool more;
	void (*each)(void *context, const struct glue_difference *difference);
	void *context;
};

/* ---- Walking ------------------------------------------------------------------------------------------------------- */

static size_t string_end(struct str text, size_t at)
{
	for (at++; at < text.length && text.at[at] != '"'; at++)
		at += text.at[at] == '\\';
	return at < text.length ? at + 1 : text.length;
}

/* The value that begins there. */
static struct str value_at(struct str text, size_t at)
{
	size_t depth = 0, end = at;
	while (end < text.length) {
		char c = text.at[end];
		if (depth == 0 && (c == ',' || c == '}' || c == ']'))
			break;
		if (c == '"') {
			end = string_end(text, end);
			continue;
		}
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		end++;
	}
	return str_make(text.at + at, end - at);
}

/* A member or an element of a text, and where the next one is. */
struct part {
	struct str key; /* `"name":` */
	struct str value;
	size_t next;
};

/* False: there are no more. `at` is 1 for the first. */
static bool part_at(struct str text, size_t at, bool object, struct part *part)
{
	if (at + 1 >= text.length)
		return false;
	size_t value = object ? string_end(text, at) + 1 : at;
	value = value < text.length ? value : text.length;
	part->key = str_make(text.at + at, value - at);
	part->value = value_at(text, value);
	part->next = value + part->value.length + 1;
	return true;
}

static bool begins(struct str text, char c)
{
	return text.length > 0 && text.at[0] == c;
}

/* ---- Telling ------------------------------------------------------------------------------------------------------- */

static void put_name(struct differing *differing, struct str key)
{
	struct str token = str_make(key.at, key.length - 1), name = token;
	if (!glue_json_string(token, true, &differing->scratch, &name))
		name = str_make(token.at + 1, token.length - 2); /* half a surrogate pair: as it is written */
	buf_put_char(&differing->pointer, '/');
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] == '~')
			buf_put(&differing->pointer, STR("~0"));
		else if (name.at[i] == '/')
			buf_put(&differing->pointer, STR("~1"));
		else
			buf_put_char(&differing->pointer, name.at[i]);
	}
}

static void tell(struct differing *differing, struct str a, struct str b)
{
	if (differing->told == differing->most) {
		differing->more = true;
		return;
	}
	differing->told++;
	differing->each(differing->context, &(struct glue_difference){buf_str(&differing->pointer), a, b});
}

static void compare(struct differing *differing, struct str a, struct str b);

/* Back to what was there before a name was put. */
static void cut(struct buf *pointer, size_t length)
{
	pointer->length = length;
	if (pointer->at)
		pointer->at[length] = '\0';
}

static void compare_objects(struct differing *differing, struct str a, struct str b)
{
	struct part x, y;
	bool left = part_at(a, 1, true, &x), right = part_at(b, 1, true, &y);
	while ((left || right) && !differing->more) {
		size_t before = differing->pointer.length;
		int order = !left ? 1 : !right ? -1 : str_compare(x.key, y.key);
		put_name(differing, order <= 0 ? x.key : y.key);
		compare(differing, order <= 0 ? x.value : STR(""), order >= 0 ? y.value : STR(""));
		cut(&differing->pointer, before);
		if (order <= 0)
			left = part_at(a, x.next, true, &x);
		if (order >= 0)
			right = part_at(b, y.next, true, &y);
	}
}

static void compare_arrays(struct differing *differing, struct str a, struct str b)
{
	struct part x, y;
	bool left = part_at(a, 1, false, &x), right = part_at(b, 1, false, &y);
	for (uint32_t index = 0; (left || right) && !differing->more; index++) {
		size_t before = differing->pointer.length;
		buf_printf(&differing->pointer, "/%u", index);
		compare(differing, left ? x.value : STR(""), right ? y.value : STR(""));
		cut(&differing->pointer, before);
		left = left && part_at(a, x.next, false, &x);
		right = right && part_at(b, y.next, false, &y);
	}
}

/* Their nesting is bounded: they were read with that bound. */
static void compare(struct differing *differing, struct str a, struct str b)
{
	if (str_equal(a, b) || differing->more)
		return;
	if (begins(a, '{') && begins(b, '{'))
		compare_objects(differing, a, b);
	else if (begins(a, '[') && begins(b, '['))
		compare_arrays(differing, a, b);
	else
		tell(differing, a, b);
}

uint32_t glue_differences(struct str a, struct str b, uint32_t most, bool *more,
                          void (*each)(void *context, const struct glue_difference *difference), void *context)
{
	struct differing differing = {.most = most, .each = each, .context = context};
	compare(&differing, a, b);
	*more = differing.more;
	buf_free(&differing.pointer);
	buf_free(&differing.scratch);
	return differing.told;
}
