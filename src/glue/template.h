/* Path templates: "/v2/images/{id}/file", and how a path is cut into segments. Only for this room. */
#ifndef GLUE_TEMPLATE_H
#define GLUE_TEMPLATE_H

#include "glue/glue_int.h"

/* A path, cut at each `/`. A `/` at its end leaves an empty segment, which only a template with such an end fits. */
struct glue_segments {
	struct str at[LIMIT_GLUE_SEGMENTS];
	uint32_t count;
};

/* False for a path that a service might read in another way: one that does not begin with `/`, with an empty or dot segment,
 * with `%2F`, `%5C`, `%00`, a percent-encoded character that needs no encoding (%61, %2E), a broken `%`, a backslash; or with more than
 * LIMIT_GLUE_SEGMENTS. */
bool glue_segments_cut(struct str path, struct glue_segments *segments);

/* Reads a template. On failure err says what is wrong with it. */
int glue_template_parse(struct arena *arena, struct str text, struct glue_template *template, struct err *err);

/* Have they the same literals and variables at the same places, as far as `shorter` goes? */
bool glue_template_begins(const struct glue_template *template, const struct glue_template *shorter);

/* Without the empty one at the end. */
uint32_t glue_template_depth(const struct glue_template *template);

/* The variable of that name; -1: there is none. */
int glue_template_variable(const struct glue_template *template, struct str name);

/* The same with a prefix before it. The text of the result is whole. */
void glue_template_prefix(struct arena *arena, const struct glue_template *template, const struct glue_template *prefix,
                          struct glue_template *whole);

/* Letters, digits and `_`, not beginning with a digit. */
bool glue_is_variable_name(struct str text);

#endif
