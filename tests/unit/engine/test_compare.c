/* Which copies are the same, and what is shown of a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/verify.h"

enum { MOST = 5 };

#define HERE(text, seen)                                                                                               \
	{                                                                                                                  \
		.kind = ENGINE_READ_HERE, .digest = STR_INIT(text), .session = STR_INIT(seen)                                  \
	}
#define MISSING(seen)                                                                                                  \
	{                                                                                                                  \
		.kind = ENGINE_READ_MISSING, .session = STR_INIT(seen)                                                         \
	}
#define UNSETTLED                                                                                                      \
	{                                                                                                                  \
		.kind = ENGINE_READ_UNSETTLED, .session = STR_INIT("")                                                         \
	}
#define FAILED                                                                                                         \
	{                                                                                                                  \
		.kind = ENGINE_READ_FAILED, .session = STR_INIT("")                                                            \
	}

static const struct {
	struct engine_reading readings[MOST];
	uint32_t count;
	const char *words; /* the first letter of each */
	uint32_t reference;
	bool tie;
} cases[] = {
	{{HERE("a", "i:1.1"), HERE("a", "i:1.1"), HERE("a", "i:1.1")}, 3, "sss", 0, false},
	{{HERE("b", "i:1.1"), HERE("a", "i:1.1"), HERE("a", "i:1.1")}, 3, "dss", 1, false},
	{{HERE("a", "i:1.1"), HERE("b", "i:1.1")}, 2, "dd", 0, true},
	{{HERE("a", "i"), HERE("b", "i"), HERE("c", "i")}, 3, "ddd", 0, true},
	{{HERE("c", "i"), HERE("a", "i"), HERE("b", "i"), HERE("b", "i"), HERE("a", "i")}, 5, "ddddd", 1, true},
	{{HERE("a", "i:1.1"), MISSING("i:1.1"), MISSING("i:1.1")}, 3, "smm", 0, false},
	{{MISSING("i:1.1"), MISSING("i:1.1")}, 2, "mm", 2, false},
	{{HERE("a", "i:1.1"), FAILED, UNSETTLED}, 3, "sun", 0, false},
	{{FAILED, FAILED}, 2, "uu", 2, false},
	/* Who has seen less is not called different, be it that its copy is the same by chance. */
	{{HERE("a", "i:1.2"), HERE("b", "i:1.1"), HERE("a", "i:1.2:2.0")}, 3, "snn", 0, false},
	{{HERE("a", "i:1.10:2.3"), HERE("b", "i:1.9:2.3"), MISSING("i:2.3")}, 3, "snn", 0, false},
	/* Nobody has seen all: there is nothing to compare with. */
	{{HERE("a", "i:1.2:2.1"), HERE("b", "i:1.1:2.2")}, 2, "nn", 2, false},
};

#define FILE_HERE(text)                                                                                                \
	{                                                                                                                  \
		.kind = ENGINE_FACET_HERE, .digest = STR_INIT(text)                                                            \
	}
#define NO_FILE                                                                                                        \
	{                                                                                                                  \
		.kind = ENGINE_FACET_NONE                                                                                      \
	}
#define FILE_UNKNOWN                                                                                                   \
	{                                                                                                                  \
		.kind = ENGINE_FACET_FAILED                                                                                    \
	}

static const struct {
	struct engine_facet_reading readings[MOST];
	uint32_t count;
	uint32_t absent;   /* a bit for each that was not asked */
	const char *words; /* the first letter of each */
	uint32_t reference;
	bool tie;
} facets[] = {
	{{FILE_HERE("a"), FILE_HERE("a"), FILE_HERE("a")}, 3, 0, "sss", 0, false},
	{{FILE_HERE("b"), FILE_HERE("a"), FILE_HERE("a")}, 3, 0, "dss", 1, false},
	{{FILE_HERE("a"), NO_FILE, FILE_HERE("a")}, 3, 0, "sms", 0, false},
	{{NO_FILE, NO_FILE, FILE_HERE("a")}, 3, 0, "ssd", 0, false},
	{{NO_FILE, NO_FILE}, 2, 0, "ss", 0, false},
	{{FILE_HERE("a"), FILE_HERE("b")}, 2, 0, "dd", 0, true},
	{{FILE_HERE("a"), NO_FILE}, 2, 0, "dm", 0, true},
	{{FILE_HERE("a"), FILE_UNKNOWN, FILE_HERE("a")}, 3, 0, "sus", 0, false},
	{{FILE_UNKNOWN, FILE_UNKNOWN}, 2, 0, "uu", 2, false},
	/* Whose item could not be compared does not count. */
	{{FILE_HERE("b"), FILE_HERE("b"), FILE_HERE("a")}, 3, 3, "sss", 2, false},
	{{FILE_HERE("c"), FILE_HERE("a"), FILE_HERE("b"), FILE_HERE("b"), FILE_HERE("a")}, 5, 0, "ddddd", 1, true},
};

static void facet_verdicts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(facets) / sizeof(facets[0]); i++) {
		const struct engine_facet_reading *readings[MOST];
		enum engine_verdict found[MOST];
		char words[MOST + 1] = "";
		uint32_t reference;
		bool tie;
		for (uint32_t k = 0; k < facets[i].count; k++)
			readings[k] = facets[i].absent >> k & 1 ? NULL : &facets[i].readings[k];
		engine_facets_compare(readings, facets[i].count, found, &reference, &tie);
		for (uint32_t k = 0; k < facets[i].count; k++)
			words[k] = engine_verdict_name(found[k])[0];
		assert_string_equal(words, facets[i].words);
		assert_int_equal(reference, facets[i].reference);
		assert_int_equal(tie, facets[i].tie);
	}
}

static void verdicts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum engine_verdict found[MOST];
		char words[MOST + 1] = "";
		uint32_t reference;
		bool tie;
		engine_compare(cases[i].readings, cases[i].count, found, &reference, &tie);
		for (uint32_t k = 0; k < cases[i].count; k++)
			words[k] = engine_verdict_name(found[k])[0];
		assert_string_equal(words, cases[i].words);
		assert_int_equal(reference, cases[i].reference);
		assert_int_equal(tie, cases[i].tie);
	}
}

static void assert_shown(const char *pointer, const char *value, const char *shown)
{
	struct buf out = {0};
	engine_value_show(str_of(pointer), str_of(value), &out);
	assert_string_equal(buf_c(&out), shown);
	buf_free(&out);
}

static void values(void **state)
{
	(void)state;
	char longer[LIMIT_ENGINE_SHOWN_BYTES + 20];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	struct buf cut = {0};
	buf_printf(&cut, "%.*s...", LIMIT_ENGINE_SHOWN_BYTES, longer);
	assert_shown("/size", "23", "23");
	assert_shown("/size", "", "");
	assert_shown("/size", longer, buf_c(&cut));
	assert_shown("/in", "{\"password\":\"x\"}", "{...}");
	assert_shown("/in", "{}", "{}");
	assert_shown("/in", "[1]", "[...]");
	assert_shown("/adminPassword", "\"x\"", "(not shown)");
	assert_shown("/secrets/0/value", "\"x\"", "(not shown)");
	assert_shown("/Token", "{}", "(not shown)");
	buf_free(&cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),
		cmocka_unit_test(facet_verdicts),
		cmocka_unit_test(values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
