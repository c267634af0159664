/* What a person is told: errors.golden holds wrong descriptions and the findings that each gets, word for word.
 *
 * A block of the file is lines `> ...`, the description; then its findings, one per line; then an empty line. The line `> ...`
 * that is nothing but three dots stands for a head with two services and the beginning of a type, whose keys come next. To accept
 * new messages run the test with CHEOPS_UPDATE_GOLDEN=1, then read the difference as a user would.
 */
#include "glue_test.h"

#include "base/text.h"

static const char golden_path[] = "tests/unit/glue/errors.golden";

#define HEAD                                                                                                           \
	"format: 1\n"                                                                                                      \
	"application: a\n"                                                                                                 \
	"services: {image: , compute: }\n"                                                                                 \
	"types:\n"                                                                                                         \
	"  image.image:\n"

struct findings {
	struct buf *out;
	unsigned errors;
};

static void put_finding(void *context, const struct glue_finding *finding)
{
	struct findings *findings = context;
	bool error = finding->severity == GLUE_ERROR;
	findings->errors += error;
	struct buf line = {0};
	buf_printf(&line, "%u:%u: %s: %.*s [%.*s]", finding->line, finding->column, error ? "error" : "warning",
	           STR_FMT(finding->message), STR_FMT(finding->where));
	text_put_harmless(findings->out, buf_str(&line));
	buf_put_char(findings->out, '\n');
	buf_free(&line);
}

static void put_findings(struct buf *text, struct buf *out)
{
	struct glue *glue = NULL;
	struct err err = {0};
	struct findings findings = {.out = out};
	struct glue_options options = {
		.path = "app.yaml", .hash_key = {1, 2}, .finding = put_finding, .context = &findings};
	int code = glue_read(&glue, buf_str(text), &options, &err);
	assert_int_equal(code, err.code);
	assert_int_equal(code != 0, findings.errors > 0);
	assert_true(code == 0 || strncmp(err.text, "app.yaml:", 9) == 0);
	assert_int_equal(code == 0, glue != NULL);
	if (code == 0)
		buf_put(out, STR("(accepted)\n"));
	buf_put_char(out, '\n');
	glue_free(glue);
	buf_clear(text);
}

/* Makes the whole file anew from its inputs; counts them. */
static unsigned make_all(struct str rest, struct buf *out)
{
	struct buf text = {0};
	unsigned count = 0;
	while (rest.length > 0) {
		struct str line = golden_line(&rest);
		bool input = line.length >= 1 && line.at[0] == '>';
		bool comment = line.length >= 1 && line.at[0] == '#';
		if (input || comment)
			buf_printf(out, "%.*s\n%s", STR_FMT(line), comment ? "\n" : "");
		if (!input)
			continue;
		struct str value = line.length >= 2 ? str_make(line.at + 2, line.length - 2) : STR("");
		if (str_equal(value, STR("...")))
			buf_put(&text, STR(HEAD));
		else
			buf_printf(&text, "%.*s\n", STR_FMT(value));
		if (rest.length == 0 || rest.at[0] != '>') {
			put_findings(&text, out);
			count++;
		}
	}
	buf_free(&text);
	return count;
}

static void messages_are_the_reviewed_ones(void **state)
{
	(void)state;
	struct buf golden = {0}, made = {0};
	golden_read(golden_path, &golden);
	assert_true(make_all(buf_str(&golden), &made) >= 60);
	golden_check(golden_path, &made);
	buf_free(&golden);
	buf_free(&made);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------- */

static void expect(struct buf *text, int code, const char *said)
{
	struct glue *glue = NULL;
	struct err err = {0};
	assert_int_equal(read_text(&glue, buf_str(text), &err), code);
	if (strstr(err.text, said) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, said);
	glue_free(glue);
	buf_free(text);
	*text = (struct buf){0};
}

static void limits_are_named(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_put_repeat(&text, '#', LIMIT_GLUE_FILE_BYTES + 1);
	expect(&text, ERR_LIMIT, "is longer than 1048576 bytes");

	buf_put(&text, STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n"));
	for (int i = 0; i <= LIMIT_GLUE_TYPES; i++)
		buf_printf(&text, "  a.t%d: {item: '/t%d/{id}'}\n", i, i);
	expect(&text, ERR_LIMIT, "`types` has 513 entries; the limit is 512");

	/* 512 types of 7 operations each. */
	buf_put(&text, STR("format: 1\napplication: a\nservices: {a: {under: [/x]}}\ntypes:\n"));
	for (int i = 0; i < LIMIT_GLUE_TYPES; i++)
		buf_printf(&text, "  a.t%d: {collection: /t%d, item: '/t%d/{id}'}\n", i, i, i);
	expect(&text, ERR_LIMIT, "more than 4096 paths");

	buf_put(&text,
	        STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n  a.t:\n    item: '/t/{id}'\n    operations:\n"));
	for (int i = 0; i < LIMIT_GLUE_OPERATIONS; i++)
		buf_printf(&text, "      o%d: {method: POST, path: '{item}/o%d'}\n", i, i);
	expect(&text, ERR_LIMIT, "`operations` has 64 entries; the limit is 57");

	buf_put(&text,
	        STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n  a.t:\n    item: '/t/{id}'\n    operations:\n"));
	for (int i = 0; i < LIMIT_GLUE_FACETS; i++)
		buf_printf(&text, "      o%d: {method: PUT, path: '{item}/o%d', facet: f%d}\n", i, i, i);
	expect(&text, ERR_LIMIT, "more than 16 facets");

	buf_put(&text, STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n  a.t: {item: '/t"));
	for (int i = 0; i <= LIMIT_GLUE_VARIABLES; i++)
		buf_printf(&text, "/{v%d}", i);
	buf_put(&text, STR("'}\n"));
	expect(&text, ERR_LIMIT, "more than 8 variables");

	buf_put(&text, STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n  a.t: {item: '"));
	buf_put_repeat(&text, 'x', LIMIT_GLUE_TEXT_BYTES + 1);
	buf_put(&text, STR("'}\n"));
	expect(&text, ERR_LIMIT, "of 513 bytes; the limit is 512");
}

static void a_later_format_is_told_as_such(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_put(&text, STR("news: of tomorrow\nformat: 2\n"));
	expect(&text, ERR_VERSION, "app.yaml:2:9: the format is 2; this version of Cheops reads up to 1");
}

struct counting {
	unsigned count;
	uint32_t line;
};

static void count(void *context, const struct glue_finding *finding)
{
	struct counting *counting = context;
	assert_true(finding->line >= counting->line);
	counting->line = finding->line;
	counting->count++;
}

static void findings_come_in_the_order_of_the_file_and_end_somewhere(void **state)
{
	(void)state;
	struct buf text = {0};
	struct glue *glue = NULL;
	struct err err = {0};
	struct counting counting = {0};
	struct glue_options options = {.path = "app.yaml", .finding = count, .context = &counting};
	buf_put(&text, STR("types:\n"));
	for (int i = 0; i < 2 * LIMIT_GLUE_FINDINGS; i++)
		buf_printf(&text, "  t%d: {item: x}\n", i);
	assert_int_equal(glue_read(&glue, buf_str(&text), &options, &err), ERR_INVALID);
	assert_int_equal(counting.count, LIMIT_GLUE_FINDINGS);
	buf_free(&text);
}

/* Many warnings do not hide that there is an error. */
static void an_error_behind_a_hundred_warnings(void **state)
{
	(void)state;
	struct buf text = {0};
	struct glue *glue = NULL;
	struct err err = {0};
	buf_put(&text, STR("format: 1\napplication: a\nservices: {a: }\ntypes:\n"));
	for (int i = 0; i < LIMIT_GLUE_FINDINGS; i++)
		buf_printf(&text, "  a.t%d: {collection: /x%d, item: '/t%d/{id}'}\n", i, i, i);
	assert_int_equal(read_text(&glue, buf_str(&text), &err), 0);
	glue_free(glue);
	glue = NULL;
	buf_put(&text, STR("  a.last: {item: wrong}\n"));
	assert_int_equal(read_text(&glue, buf_str(&text), &err), ERR_LIMIT);
	assert_string_equal(err.text, "app.yaml: more than 100 findings");
	assert_null(glue);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_the_reviewed_ones),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(a_later_format_is_told_as_such),
		cmocka_unit_test(findings_come_in_the_order_of_the_file_and_end_somewhere),
		cmocka_unit_test(an_error_behind_a_hundred_warnings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
