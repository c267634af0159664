/* What strangers send: each kind of wrong input has its own fault, and none costs more than its length.
 *
 * The words of the messages are in errors.golden; here it is about limits, and about the amount of work. Time would be a
 * poor measure of that, so it is memory taken from the arena, and questions asked of the view, that are counted.
 */
#include "scope_test.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Each its own fault ------------------------------------------------------------------------------------------ */

struct bad {
	struct str text;
	const char *fault;
};

#define BAD(text, fault)                                                                                               \
	{                                                                                                                  \
		STR_INIT(text), (fault)                                                                                        \
	}

static void check_refused(const struct world *world, struct str text, const char *fault)
{
	struct outcome outcome = outcome_plan(world, text, "compute");
	if (outcome.code >= 0)
		fail_msg("accepted: %.*s", STR_FMT(text));
	if (strcmp(scope_fault_name(outcome.diag.fault), fault) != 0)
		fail_msg("%.*s: %s: %s", STR_FMT(text), scope_fault_name(outcome.diag.fault), outcome.diag.message);
	assert_true(outcome.diag.offset <= text.length && outcome.diag.length <= text.length - outcome.diag.offset);
	assert_true(outcome.diag.message[0] != '\0' && strlen(outcome.diag.message) < 200);
	outcome_free(&outcome);
}

static void check_all_refused(const struct bad *rows, size_t count)
{
	struct world world;
	world_open(&world);
	for (size_t i = 0; i < count; i++)
		check_refused(&world, rows[i].text, rows[i].fault);
	world_close(&world);
}

static void test_bytes(void **state)
{
	(void)state;
	static const struct bad rows[] = {
		BAD("", "empty"),
		BAD(" \t\r\n\\\n", "empty"),
		BAD("{}", "empty"),
		BAD("Site1\0", "control-character"),
		BAD("\0", "control-character"),
		BAD("\"Site\0001\"", "control-character"),
		BAD("\"\\u0000\"", "control-character"),
		BAD("{\"compute\": \"Site1\\u0000\"}", "control-character"),
		BAD("Site1 \x07", "control-character"),
		BAD("Site1\v", "control-character"),
		BAD("\"a\nb\"", "control-character"),
		BAD("\"a\\nb\"", "control-character"),
		BAD("Site1\x7f", "control-character"),
		BAD("\"\xc2\x9b[31m\"", "control-character"),
		/* characters that turn a line around, or break it */
		BAD("\"\xe2\x80\xae\"", "control-character"),
		BAD("Site1 \xe2\x81\xa6", "control-character"),
		BAD("\"\\u202e\"", "control-character"),
		BAD("\"\\u2066\"", "control-character"),
		BAD("\"\xe2\x80\x8f\"", "control-character"),
		BAD("\"\xe2\x80\xa8\"", "control-character"),
		BAD("Site1 \x80", "invalid-utf8"),
		BAD("\"\xff\"", "invalid-utf8"),
		BAD("\"\xc0\xaf\"", "invalid-utf8"),         /* overlong */
		BAD("\"\xe0\x80\xaf\"", "invalid-utf8"),     /* overlong */
		BAD("\"\xed\xa0\x80\"", "invalid-utf8"),     /* surrogate */
		BAD("\"\xf4\x90\x80\x80\"", "invalid-utf8"), /* beyond U+10FFFF */
		BAD("\"\xf0\x9f\x98\"", "invalid-utf8"),     /* cut short */
		BAD("\"\xf0\x9f\x98", "invalid-utf8"),
		BAD("Site1 ? Site2", "unexpected-character"),
		BAD("Site1 \\ Site2", "unexpected-character"),
		BAD("Z\xc3\xbcrich", "unexpected-character"),
		BAD("\"Site1", "unterminated-string"),
		BAD("\"", "unterminated-string"),
		BAD("\"\\\"", "unterminated-string"),
		BAD("\"\\", "bad-escape"),
		BAD("\"\\x41\"", "bad-escape"),
		BAD("\"\\u12\"", "bad-escape"),
		BAD("\"\\ud83d\"", "bad-escape"),
		BAD("\"\\ude00\"", "bad-escape"),
		BAD("\"\\ud83d\\u0041\"", "bad-escape"),
		BAD("\"\"", "empty-name"),
		BAD("{\"\": \"Site1\"}", "empty-name"),
	};
	check_all_refused(rows, COUNT(rows));
}

static void test_numbers(void **state)
{
	(void)state;
	static const struct bad rows[] = {
		BAD("nearest(0)", "number-range"),
		BAD("nearest(257)", "number-range"),
		BAD("nearest(9999999999999)", "number-range"),
		BAD("nearest(18446744073709551617)", "number-range"),
		BAD("nearest(340282366920938463463374607431768211457)", "number-range"),
		BAD("around(Site1, 86401s)", "number-range"),
		BAD("around(Site1, 9223372036854775808us)", "number-range"),
		BAD("around(Site1, 18446744073709551616ms)", "number-range"),
		BAD("around(Site1, 0.5us)", "number-range"),
		BAD("around(Site1, 1.0000001s)", "number-range"),
		BAD("around(Site1, 10parsec)", "unknown-unit"),
		BAD("around(Site1, 10MS)", "unknown-unit"),
		BAD("around(Site1, 10min)", "unknown-unit"),
		BAD("around(Site1, 10)", "unknown-unit"),
		BAD("Site1 & 10ms", "not-a-site"),
		BAD("3", "not-a-site"),
		BAD("18446744073709551617", "not-a-site"),
	};
	check_all_refused(rows, COUNT(rows));
}

static void test_functions_and_arguments(void **state)
{
	(void)state;
	static const struct bad rows[] = {
		BAD("arround(Site1, 10ms)", "unknown-function"),
		BAD("Site1(Site2)", "unknown-function"),
		BAD("Around(Site1, 10ms)", "unknown-function"),
		BAD("all", "reserved-name"),
		BAD("Site1 & nearest", "reserved-name"),
		BAD("around(Site1)", "argument-count"),
		BAD("around()", "argument-count"),
		BAD("nearest()", "argument-count"),
		BAD("strong()", "argument-count"),
		BAD("tagged()", "argument-count"),
		BAD("tagged(a=1, a=2, a=3, a=4, a=5, a=6, a=7, a=8, a=9)", "argument-count"),
		BAD("around(10ms, Site1)", "argument-kind"),
		BAD("around(Site1, Site2)", "argument-kind"),
		BAD("around(Site1, \"10ms\")", "argument-kind"),
		BAD("around(Site1 & Site2, 10ms)", "argument-kind"),
		BAD("around(all(), 10ms)", "argument-kind"),
		BAD("around(!Site1, 10ms)", "argument-kind"),
		BAD("nearest(Site1)", "argument-kind"),
		BAD("nearest(3ms)", "argument-kind"),
		BAD("nearest(-1)", "argument-kind"),
		BAD("nearest(1.5)", "argument-kind"),
		BAD("tagged(region)", "argument-kind"),
		BAD("tagged(=west)", "argument-kind"),
		BAD("tagged(region=)", "argument-kind"),
		BAD("strong(10ms)", "not-a-site"),
		BAD("strong(Site1; Site2)", "no-meaning"),
		BAD("Site1 & Site1", "same-site-twice"),
		BAD("strong(weak(Site1 & Site2))", "mixed-consistency"),
		BAD("with_requirements(Site1) & Site2", "no-meaning"),
		BAD("with_requirements(with_requirements(Site1))", "no-meaning"),
		BAD("strong(with_requirements(Site1 & Site2))", "no-meaning"),
		BAD("!with_requirements(Site1)", "no-meaning"),
		BAD("with_requirements()", "argument-count"),
		BAD("with_requirements(Site1, Site2)", "argument-count"),
		BAD("Site1, compute: Site2", "ambiguous-service"),
		BAD("compute: Site1, compute: Site2", "duplicate-service"),
		BAD("Sit1", "unknown-site"),
		BAD("comput: Site1", "unknown-service"),
		BAD("!(Site1 & Site2 & Site3 & Site4 & Site5)", "no-site-left"),
	};
	check_all_refused(rows, COUNT(rows));
	struct world world;
	world_open(&world);
	struct outcome outcome = outcome_plan(&world, STR("Site1 & Site2"), "volume");
	assert_string_equal(scope_fault_name(outcome.diag.fault), "version-mismatch");
	outcome_free(&outcome);
	world_close(&world);
}

/* ---- At the limits, and one past them ----------------------------------------------------------------------------- */

static void check_parsed(const struct buf *text, const char *fault)
{
	struct outcome outcome = outcome_parse(buf_str(text));
	const char *found = scope_fault_name(outcome.diag.fault);
	if (strcmp(found, fault) != 0)
		fail_msg("%.40s... (%zu bytes): %s, expected %s", buf_c(text), text->length, found, fault);
	outcome_free(&outcome);
}

/* `count` units, with `between` between them; a `#` in the unit becomes its number. */
struct repeated {
	const char *start, *unit, *between, *end;
};

static void put_repeated(struct buf *out, const struct repeated *repeated, unsigned count)
{
	buf_put(out, str_of(repeated->start));
	for (unsigned i = 0; i < count; i++) {
		if (i > 0)
			buf_put(out, str_of(repeated->between));
		for (const char *c = repeated->unit; *c; c++) {
			if (*c == '#')
				buf_printf(out, "%u", i);
			else
				buf_put_char(out, *c);
		}
	}
	buf_put(out, str_of(repeated->end));
}

static void test_limits(void **state)
{
	(void)state;
	static const struct {
		struct repeated of;
		unsigned most; /* that are accepted; one more is not */
		const char *fault;
	} limits[] = {
		{{"", "a", "", ""}, LIMIT_SCOPE_TEXT_BYTES, "too-long"},
		{{"a", " ", "", ""}, LIMIT_SCOPE_TEXT_BYTES - 1, "too-long"},
		{{"\"", "\xc3\xa9", "", "\""}, LIMIT_SCOPE_TEXT_BYTES / 2 - 1, "too-long"},
		{{"", "s#", ";", ""}, LIMIT_SCOPE_SITES, "too-many-sites"},
		{{"", "s#", " & ", ""}, LIMIT_SCOPE_SITES, "too-many-sites"},
		{{"{\"x\": \"", "s#", "%", "\"}"}, LIMIT_SCOPE_SITES, "too-many-sites"},
		{{"", "y#: a", ", ", ""}, LIMIT_SCOPE_ENTRIES, "too-many-entries"},
		{{"{", "\"y#\":\"a\"", ",", "}"}, LIMIT_SCOPE_ENTRIES, "too-many-entries"},
		{{"", "all()", ";", ""}, LIMIT_SCOPE_CALLS, "too-many-calls"},
		{{"", "!a", "|", ""}, LIMIT_SCOPE_CALLS, "too-many-calls"},
		{{"{", "\"y#\": \"all()\"", ",", "}"}, LIMIT_SCOPE_CALLS, "too-many-calls"},
		{{"", "!", "", "a"}, LIMIT_SCOPE_NESTING, "too-deep"},
		{{"a; ((((", "!", "", "b))))"}, LIMIT_SCOPE_NESTING - 4, "too-deep"},
		{{"tagged(", "a=#", ",", ")"}, LIMIT_SCOPE_TAGS, "argument-count"},
	};
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct buf text = {0};
		put_repeated(&text, &limits[i].of, limits[i].most);
		check_parsed(&text, "none");
		buf_clear(&text);
		put_repeated(&text, &limits[i].of, limits[i].most + 1);
		check_parsed(&text, limits[i].fault);
		buf_free(&text);
	}
}

static void test_nesting(void **state)
{
	(void)state;
	static const char *const opening[] = {"(", "weak(", "fallback(", "!("};
	for (size_t i = 0; i < COUNT(opening); i++) {
		unsigned each = opening[i][0] == '!' ? 2 : 1; /* levels */
		for (unsigned past = 0; past <= 1; past++) {
			unsigned levels = LIMIT_SCOPE_NESTING / each + past;
			struct buf text = {0};
			for (unsigned n = 0; n < levels; n++)
				buf_put(&text, str_of(opening[i]));
			buf_put(&text, STR("a"));
			buf_put_repeat(&text, ')', levels);
			/* fallback() of a choice has no meaning, but it was deep enough to be found out */
			check_parsed(&text, past ? "too-deep" : opening[i][0] == 'f' ? "no-meaning" : "none");
			buf_free(&text);
		}
	}
}

/* Past a limit, the message names it. */
static void test_messages_name_the_limit(void **state)
{
	(void)state;
	static const struct repeated past[] = {
		{"", "a", "", ""}, {"", "s#", ";", ""}, {"", "y#:a", ",", ""}, {"", "all()", ";", ""}, {"", "(", "", ""}};
	static const int limits[] = {LIMIT_SCOPE_TEXT_BYTES, LIMIT_SCOPE_SITES, LIMIT_SCOPE_ENTRIES, LIMIT_SCOPE_CALLS,
	                             LIMIT_SCOPE_NESTING};
	for (size_t i = 0; i < COUNT(past); i++) {
		struct buf text = {0};
		char digits[16];
		put_repeated(&text, &past[i], (unsigned)limits[i] + 1);
		struct outcome outcome = outcome_parse(buf_str(&text));
		snprintf(digits, sizeof(digits), "%d", limits[i]);
		assert_int_equal(outcome.code, ERR_LIMIT);
		assert_non_null(strstr(outcome.diag.message, digits));
		outcome_free(&outcome);
		buf_free(&text);
	}
}

/* The plan, too, has a limit: functions may stand for more sites than anybody could name. */
static void test_too_many_sites_in_the_plan(void **state)
{
	(void)state;
	struct world world = {.table = NULL};
	arena_init(&world.arena, 0);
	world.table = scope_table_new(&world.arena);
	for (unsigned i = 0; i < LIMIT_SCOPE_SITES + 2; i++) {
		char name[16];
		int length = snprintf(name, sizeof(name), "Site%u", i + 1);
		scope_table_add_site(world.table, (struct scope_site){.name = str_make(name, (size_t)length)});
	}
	world.view = scope_table_view(world.table);
	check_refused(&world, STR("all()"), "too-many-sites");
	check_refused(&world, STR("nearest(200); either(nearest(57))"), "too-many-sites");
	struct outcome outcome = outcome_plan(&world, STR("nearest(200); either(nearest(56))"), "");
	assert_int_equal(outcome.code, 0);
	outcome_free(&outcome);
	/* Alternatives that nobody will reach are left out instead, and the plan says so. */
	outcome = outcome_plan(&world, STR("!Site1"), "");
	assert_int_equal(outcome.code, 0);
	assert_non_null(strstr(buf_c(&outcome.warnings), "only the nearest 256 of 257 sites"));
	outcome_free(&outcome);
	world_close(&world);
}

/* The hint about an unknown service lists those there are, as far as there is room: whatever their number and length. */
static void test_a_long_list_of_services(void **state)
{
	(void)state;
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
	for (unsigned odd = 1; odd <= LIMIT_NAME_SHOWN_BYTES + 1; odd++) {
		struct world world;
		world_open(&world);
		for (unsigned i = 0; i < 12; i++) {
			char name[64];
			int length = snprintf(name, sizeof(name), "%c%.*s", 'A' + (int)i, i == 4 ? (int)odd - 1 : 39, letters);
			assert_true(scope_table_add_service(world.table, str_make(name, (size_t)length)) != SCOPE_NO_INDEX);
		}
		world.view = scope_table_view(world.table);
		struct outcome outcome = outcome_plan(&world, STR("0123456789: Site1"), "compute");
		assert_int_equal(outcome.diag.fault, SCOPE_FAULT_UNKNOWN_SERVICE);
		struct str hint = str_of(outcome.diag.hint);
		assert_true(hint.length < LIMIT_ERROR_TEXT_BYTES && hint.length > LIMIT_ERROR_TEXT_BYTES / 2);
		assert_string_equal(hint.at + hint.length - strlen("…"), "…");
		outcome_free(&outcome);
		world_close(&world);
	}
}

/* Tabs, and what a terminal must not get, take one column each, so that the caret stands below its place. */
static void test_carets_below_odd_characters(void **state)
{
	(void)state;
	const struct str text = STR("a\t&\t\x07 \"\xe2\x80\xae\"");
	struct outcome outcome = outcome_parse(text);
	struct buf out = {0};
	scope_diag_render(&out, text, &outcome.diag, false);
	assert_non_null(strstr(buf_c(&out), "\n  | a & \xef\xbf\xbd \"\xef\xbf\xbd\"\n  |     ^\n"));
	buf_free(&out);
	outcome_free(&outcome);
}

/* ---- No more work than bytes --------------------------------------------------------------------------------------- */

/* Units that make up texts which a careless parser handles in quadratic time, or in memory without bound. */
static const struct repeated hostile[] = {
	{"", "(", "", ""},
	{"", ")", "", ""},
	{"", "!", "", ""},
	{"", ";", "", ""},
	{"", "&", "", ""},
	{"", "|", "", ""},
	{"", "%", "", ""},
	{"", ",", "", ""},
	{"", ":", "", ""},
	{"", "/", "", ""},
	{"", "=", "", ""},
	{"", "{", "", ""},
	{"", "}", "", ""},
	{"", "\"", "", ""},
	{"", "\\", "", ""},
	{"", "\\\n", "", ""},
	{"\"", "\\\\", "", ""},
	{"\"", "\\\\", "", "\""},
	{"\"", "\\u00e9", "", "\""},
	{"\"", "\\ud83d\\ude00", "", "\""},
	{"\"", "\xf0\x9f\x98\x80", "", "\""},
	{"", "\xc3\xa9", "", ""},
	{"", "\xe2\x80\xae", "", ""},
	{"", "\x80", "", ""},
	{"", "@", "", ""},
	{"", " ", "", ""},
	{"", "\n", "", "&"},
	{"", "a", "", ""},
	{"", "1", "", ""},
	{"around(a, 1.", "0", "", "s)"},
	{"nearest(", "0", "", "1)"},
	{"", "a", ";", ""},
	{"", "a", "&", ""},
	{"", "a", "|", ""},
	{"", "a", "%", ""},
	{"", "a", " ", ""},
	{"", "a 1", ";", ""},
	{"", "a", ",", ""},
	{"", "a", ":", ""},
	{"", "a", "/", ""},
	{"", "s#:a", ",", ""},
	{"", "all();", "", ""},
	{"", "!a;", "", ""},
	{"", "(a)", ";", ""},
	{"", "(a;", "", ""},
	{"", "((a)", ";", ""},
	{"", "around(a,1ms)", "&", ""},
	{"tagged(", "a=b", ",", ")"},
	{"", "\"a\"", "", ""},
	{"", "\"a b\"", "&", ""},
	{"{\"a\":\"", "b;", "", "b\"}"},
	{"{\"a\":\"", "\\u0062;", "", "b\"}"},
	{"{\"a\":\"", "\\\"b c\\\";", "", "b\"}"},
	{"{", "\"s#\":\"a;b\"", ",", "}"},
	{"{", "\"s#\":\"a\"", ",", ""},
	{"{\"a\":", "\"b\":", "", ""},
};

/* As many units as fit. */
static void put_hostile(struct buf *out, const struct repeated *repeated, size_t bytes)
{
	unsigned count = (unsigned)(bytes / (strlen(repeated->unit) + strlen(repeated->between))) + 1;
	do {
		buf_clear(out);
		put_repeated(out, repeated, count--);
	} while (out->length > bytes);
}

/* Bytes of the arena per byte of text: a node and its place in a list for every second byte, at the most. The rest is for
 * tables of a fixed size. */
enum { BYTES_PER_BYTE = 64, BYTES_FIXED = 4 << 10 };

static size_t bytes_to_parse(struct str text)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct buf out = {0};
	arena_init(&arena, 0);
	int code = scope_parse(&arena, text, &scope, &diag);
	if (code == 0)
		code = scope_check(&arena, scope, &diag);
	if (code) {
		assert_true(diag.offset <= text.length && diag.length <= text.length - diag.offset);
		scope_diag_render(&out, text, &diag, false);
		assert_true(out.length < 2048);
	} else {
		scope_print(&out, scope, STR(""));
		assert_true(out.length <= 4 * text.length);
	}
	buf_free(&out);
	size_t used = arena.used_bytes;
	arena_free(&arena);
	return used;
}

static void test_hostile_texts_take_linear_memory(void **state)
{
	(void)state;
	static const size_t lengths[] = {256, 1024, LIMIT_SCOPE_TEXT_BYTES};
	for (size_t i = 0; i < COUNT(hostile); i++) {
		for (size_t n = 0; n < COUNT(lengths); n++) {
			struct buf text = {0};
			put_hostile(&text, &hostile[i], lengths[n]);
			size_t used = bytes_to_parse(buf_str(&text));
			if (used > BYTES_PER_BYTE * text.length + BYTES_FIXED)
				fail_msg("%.30s...: %zu bytes of text took %zu bytes", buf_c(&text), text.length, used);
			buf_free(&text);
		}
	}
}

static void test_an_over_long_text_is_not_even_read(void **state)
{
	(void)state;
	struct arena arena;
	struct scope *scope = NULL;
	struct scope_token *tokens = NULL;
	uint32_t count = 0;
	struct scope_diag diag;
	size_t length = 64 << 20;
	char *text = calloc(1, length);
	assert_non_null(text);
	arena_init(&arena, 0);
	assert_int_equal(scope_parse(&arena, str_make(text, length), &scope, &diag), ERR_LIMIT);
	assert_int_equal(diag.fault, SCOPE_FAULT_TOO_LONG);
	assert_int_equal(scope_tokens(&arena, str_make(text, length), &tokens, &count, &diag), ERR_LIMIT);
	assert_int_equal(diag.fault, SCOPE_FAULT_TOO_LONG);
	assert_true(diag.offset + diag.length <= length);
	assert_int_equal(arena.used_bytes, 0);
	assert_null(scope);
	arena_free(&arena);
	free(text);
}

/* ---- No more questions than calls and sites ------------------------------------------------------------------------ */

/* A view that counts what it is asked. */
struct counting {
	const struct scope_view *inner;
	uint32_t *questions;
};

static const struct counting *asked(const void *context)
{
	const struct counting *counting = context;
	++*counting->questions;
	return counting;
}

static struct scope_site counting_site(const void *context, uint32_t site)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->site(inner->context, site);
}

static uint32_t counting_find_site(const void *context, struct str name)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->find_site(inner->context, name);
}

static int64_t counting_rtt(const void *context, uint32_t from, uint32_t to)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->rtt_us(inner->context, from, to);
}

static bool counting_tag(const void *context, uint32_t site, uint32_t n, struct str *tag_key, struct str *value)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->tag(inner->context, site, n, tag_key, value);
}

static uint32_t counting_find_service(const void *context, struct str name)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->find_service(inner->context, name);
}

static bool counting_offers(const void *context, uint32_t service, uint32_t site, struct str *version)
{
	const struct scope_view *inner = asked(context)->inner;
	return inner->offers(inner->context, service, site, version);
}

static void test_hostile_texts_ask_little_of_the_view(void **state)
{
	(void)state;
	/* Per call or `!` and site: whether it fits, how far it is, and the step for it; per named site two or three. */
	enum { QUESTIONS_PER_SITE = 8, SITES = 5 };
	static const struct repeated dear[] = {
		{"", "all()", ";", ""}, {"", "nearest(5)", "&", ""},        {"", "!Site1", "|", ""},
		{"", "!", "", "Site1"}, {"", "around(Site2, 1s)", ";", ""}, {"", "tagged(region=west)", "|", ""},
		{"", "Site1", ";", ""}, {"", "fallback(all())", "|", ""},
	};
	struct world world;
	world_open(&world);
	uint32_t questions = 0;
	struct counting counting = {&world.view, &questions};
	struct scope_view view = world.view;
	view.context = &counting;
	view.site = counting_site;
	view.find_site = counting_find_site;
	view.rtt_us = counting_rtt;
	view.tag = counting_tag;
	view.find_service = counting_find_service;
	view.offers = counting_offers;
	for (size_t i = 0; i < COUNT(dear); i++) {
		for (unsigned count = 1; count <= 16; count++) {
			struct arena arena;
			struct scope *scope;
			struct scope_diag diag;
			const struct scope_plan *plan;
			struct scope_request request = {.service = STR("compute"), .at = 0};
			struct buf text = {0};
			arena_init(&arena, 0);
			put_repeated(&text, &dear[i], count);
			assert_int_equal(scope_parse(&arena, buf_str(&text), &scope, &diag), 0);
			assert_int_equal(scope_check(&arena, scope, &diag), 0);
			questions = 0;
			int code = scope_evaluate(&arena, scope, &request, &view, &plan, &diag);
			assert_true(code == 0 || diag.fault == SCOPE_FAULT_NO_SITE_LEFT);
			if (questions > QUESTIONS_PER_SITE * SITES * (count + 1))
				fail_msg("%s: %u questions", buf_c(&text), questions);
			buf_free(&text);
			arena_free(&arena);
		}
	}
	world_close(&world);
}

/* 256 names of 14 bytes and a `;` each: short enough as it is, but not with the spaces of the canonical form, which is what
 * would travel on. */
static void test_text_whose_canonical_form_is_too_long(void **state)
{
	(void)state;
	struct buf text = {0};
	for (uint32_t i = 0; i < LIMIT_SCOPE_SITES; i++) {
		buf_put(&text, i ? STR(";s") : STR("s"));
		buf_put_number(&text, i, 14);
	}
	assert_in_range(text.length, LIMIT_SCOPE_TEXT_BYTES - 8, LIMIT_SCOPE_TEXT_BYTES);
	struct outcome outcome = outcome_parse(buf_str(&text));
	assert_string_equal(scope_fault_name(outcome.diag.fault), "too-long");
	assert_non_null(strstr(outcome.diag.message, "in its canonical form"));
	outcome_free(&outcome);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_functions_and_arguments),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_messages_name_the_limit),
		cmocka_unit_test(test_too_many_sites_in_the_plan),
		cmocka_unit_test(test_a_long_list_of_services),
		cmocka_unit_test(test_carets_below_odd_characters),
		cmocka_unit_test(test_hostile_texts_take_linear_memory),
		cmocka_unit_test(test_an_over_long_text_is_not_even_read),
		cmocka_unit_test(test_text_whose_canonical_form_is_too_long),
		cmocka_unit_test(test_hostile_texts_ask_little_of_the_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
