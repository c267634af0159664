/* Divisible resources (DESIGN 8): each site has a part, and who asks for it by its id gets the whole.
 *
 * A read, when all goes well:
 *   1. The request names what is divided, by its meta-id or a name that users chose, and no site.
 *   2. All of its sites are asked at once, the prime first in line, as with `&` (gather.c). Each answers with its own part.
 *   3. cross_combine() makes one body of them, by the rules of the description; the head is that of the first site that is in it.
 *
 * What goes wrong:
 *   a site does not answer, answers with 4xx or 5xx,     the answer is without it, and says so: `Cheops-Partial`
 *   or with something of which nothing can be made
 *   a sum does not fit into 64 bits                      a problem; no number is made up
 *   none answers                                         as with `&`
 */
#include "proxy/gather.h"

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
