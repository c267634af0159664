/* What the tests of descriptions share: reading one, from a text or from apps/, and asking it. */
#ifndef TESTS_UNIT_GLUE_GLUE_TEST_H
#define TESTS_UNIT_GLUE_GLUE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/glue.h"
#include "lib/golden.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline int read_text(struct glue **glue, struct str text, struct err *err)
{
	struct glue_options options = {.path = "app.yaml", .hash_key = {1, 2}};
	return glue_read(glue, text, &options, err);
}

/* It has to be accepted. */
static inline struct glue *read_fine(const char *text)
{
	struct err err = {0};
	struct glue *glue = NULL;
	if (read_text(&glue, str_of(text), &err) != 0)
		fail_msg("%s", err.text);
	return glue;
}

static inline struct glue *read_app(const char *path)
{
	struct buf text = {0};
	golden_read(path, &text);
	struct glue *glue = read_fine(buf_c(&text));
	buf_free(&text);
	return glue;
}

/* A request written as "METHOD PATH[?QUERY]". */
static inline struct glue_request request_of(const char *service, const char *text)
{
	const char *space = strchr(text, ' ');
	assert_non_null(space);
	struct str target = str_of(space + 1);
	const char *mark = strchr(space, '?');
	struct glue_request request = {.service = str_of(service),
	                               .method = str_make(text, (size_t)(space - text)),
	                               .path = target,
	                               .query = STR(""),
	                               .content_type = STR("application/json")};
	if (mark != NULL) {
		request.path = str_make(target.at, (size_t)(mark - target.at));
		request.query = str_of(mark + 1);
	}
	return request;
}

/* What it is, as one line: "TYPE OPERATION EFFECT id=… in=COLLECTION name=value…"; "" for nothing; "?" before the operation
 * where the body has to say. */
static inline void put_match(struct buf *out, const struct glue *glue, const struct glue_request *request)
{
	struct glue_match match;
	if (!glue_match(glue, request, &match))
		return;
	glue_type_put(&match, out);
	buf_printf(out, " %s", match.needs_body ? "?" : "");
	if (match.operation != NULL)
		buf_printf(out, "%.*s %s", STR_FMT(glue_operation_name(match.operation)),
		           glue_effect_name(glue_operation_effect(match.operation)));
	if (match.id.length > 0)
		buf_printf(out, " id=%.*s", STR_FMT(match.id));
	buf_put(out, STR(" in="));
	glue_collection_put(&match, out);
}

#define assert_match(glue, service, text, expected)                                                                    \
	do {                                                                                                               \
		struct buf got_ = {0};                                                                                         \
		struct glue_request request_ = request_of(service, text);                                                      \
		put_match(&got_, glue, &request_);                                                                             \
		if (strcmp(buf_c(&got_), expected) != 0)                                                                       \
			fail_msg("%s: got \"%s\", expected \"%s\"", text, buf_c(&got_), expected);                                 \
		buf_free(&got_);                                                                                               \
	} while (0)

#endif
