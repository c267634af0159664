/* The scanner of JSON: what it tells, what it refuses and where, whole and in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is told, in short: `{` `[` `s` `n` `l` a value begins, `k` and `=` a key and a scalar with their tokens, `)` an object or
 * array ends, `.` the end, `!` the end of what is JSON. */
static void tell(struct glue_json *json, struct buf *log)
{
	static const char kinds[] = {'{', '[', 's', 'n', 'l'};
	for (;;) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_MORE: return;
		case GLUE_JSON_KEY: buf_printf(log, "k%.*s", STR_FMT(json->token)); break;
		case GLUE_JSON_VALUE: buf_put_char(log, kinds[json->kind]); break;
		case GLUE_JSON_SCALAR: buf_printf(log, "=%.*s", STR_FMT(json->token)); break;
		case GLUE_JSON_CLOSE: buf_put_char(log, ')'); break;
		case GLUE_JSON_END: buf_put_char(log, '.'); return;
		case GLUE_JSON_BAD: buf_put_char(log, '!'); return;
		}
	}
}

/* Scans a text in pieces of so many bytes. Each piece is gone once it is used up. */
static int scan(struct str text, size_t piece, bool many, struct buf *log, struct err *err)
{
	struct glue_json json;
	glue_json_init(&json, many);
	buf_clear(log);
	for (size_t at = 0; at < text.length; at += piece) {
		struct buf bytes = {0};
		buf_put(&bytes, str_make(text.at + at, text.length - at < piece ? text.length - at : piece));
		glue_json_feed(&json, buf_str(&bytes));
		tell(&json, log);
		int code = log->length > 0 && log->at[log->length - 1] == '!' ? glue_json_complain(&json, err) : 0;
		buf_free(&bytes);
		if (code)
			return code;
	}
	glue_json_finish(&json);
	tell(&json, log);
	assert_int_equal(glue_json_next(&json), log->at[log->length - 1] == '.' ? GLUE_JSON_END : GLUE_JSON_BAD);
	return log->at[log->length - 1] == '.' ? 0 : glue_json_complain(&json, err);
}

static void what_is_told(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *told;
	} cases[] = {
		{"{\"a\": [1, {}]}", "{k\"a\"[n=1{)))."},
		{"{}", "{)."},
		{" [ ] ", "[)."},
		{"\"\"", "s=\"\"."},
		{"0", "n=0."},
		{"-0.5e+10", "n=-0.5e+10."},
		{"\t12\r\n", "n=12."},
		{"[true,false,null]", "[l=truel=falsel=null)."},
		{"{\"a\":1,\"a\":\"b\"}", "{k\"a\"n=1k\"a\"s=\"b\")."},
		{"[\"a\\\"b\\\\\",\"\\u00e9\\ud83d\\ude00\"]", "[s=\"a\\\"b\\\\\"s=\"\\u00e9\\ud83d\\ude00\")."},
		{"\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"", "s=\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"."},
		{"\"\\ud800\"", "s=\"\\ud800\"."},
		{"\"\x7f\"", "s=\"\x7f\"."},
		{"{\"a\":{\"b\":{\"c\":[[[]]]}}}", "{k\"a\"{k\"b\"{k\"c\"[[[))))))."},
	};
	struct buf log = {0};
	struct err err;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
			assert_int_equal(scan(str_of(cases[i].text), piece, false, &log, &err), 0);
			assert_string_equal(buf_c(&log), cases[i].told);
		}
	}
	buf_free(&log);
}

static void what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *message;
	} cases[] = {
		{"", "no JSON: it ends at byte 0, where there should be a value"},
		{"  ", "no JSON: it ends at byte 2, where there should be a value"},
		{"{", "no JSON: it ends at byte 1, where there should be a key in quotes or `}`"},
		{"{\"a", "no JSON: it ends at byte 3, where there should be the rest of a string"},
		{"{\"a\"", "no JSON: it ends at byte 4, where there should be `:`"},
		{"{\"a\":", "no JSON: it ends at byte 5, where there should be a value"},
		{"{\"a\":1", "no JSON: it ends at byte 6, where there should be `,` or `}`"},
		{"{\"a\":1,", "no JSON: it ends at byte 7, where there should be a key in quotes"},
		{"{\"a\":1,}", "no JSON at byte 7: there is `}`, and should be a key in quotes"},
		{"{a:1}", "no JSON at byte 1: there is `a`, and should be a key in quotes or `}`"},
		{"{\"a\" 1}", "no JSON at byte 5: there is `1`, and should be `:`"},
		{"{\"a\":1 \"b\":2}", "no JSON at byte 7: there is `\"`, and should be `,` or `}`"},
		{"[", "no JSON: it ends at byte 1, where there should be a value or `]`"},
		{"[,", "no JSON at byte 1: there is `,`, and should be a value or `]`"},
		{"[1,]", "no JSON at byte 3: there is `]`, and should be a value"},
		{"[1 2]", "no JSON at byte 3: there is `2`, and should be `,` or `]`"},
		{"[1}", "no JSON at byte 2: there is `}`, and should be `,` or `]`"},
		{"]", "no JSON at byte 0: there is `]`, and should be a value"},
		{"01", "no JSON at byte 1: there is `1`, and should be nothing more"},
		{"-", "no JSON: it ends at byte 1, where there should be a digit"},
		{"-a", "no JSON at byte 1: there is `a`, and should be a digit"},
		{"1.", "no JSON: it ends at byte 2, where there should be a digit"},
		{"[1.]", "no JSON at byte 3: there is `]`, and should be a digit"},
		{"1e", "no JSON: it ends at byte 2, where there should be a digit"},
		{"1e+", "no JSON: it ends at byte 3, where there should be a digit"},
		{".5", "no JSON at byte 0: there is `.`, and should be a value"},
		{"+1", "no JSON at byte 0: there is `+`, and should be a value"},
		{"1.5.2", "no JSON at byte 3: there is `.`, and should be nothing more"},
		{"NaN", "no JSON at byte 0: there is `N`, and should be a value"},
		{"nul", "no JSON: it ends at byte 3, where there should be true, false or null"},
		{"nulL", "no JSON at byte 3: there is `L`, and should be true, false or null"},
		{"truee", "no JSON at byte 4: there is `e`, and should be nothing more"},
		{"{} {}", "no JSON at byte 3: there is `{`, and should be nothing more"},
		{"'a'", "no JSON at byte 0: there is `'`, and should be a value"},
		{"\"a\nb\"", "no JSON at byte 2: there is 0x0a, and should be an escape in place of a control character"},
		{"\"\\x\"", "no JSON at byte 2: there is `x`, and should be one of \" \\ / b f n r t u after a backslash"},
		{"\"\\u12g4\"", "no JSON at byte 5: there is `g`, and should be four hexadecimal digits after \\u"},
		{"\"\\u12", "no JSON: it ends at byte 5, where there should be the rest of a string"},
		{"\"\x80\"", "no JSON at byte 1: there is 0x80, and should be UTF-8"},
		{"\"\xc0\xaf\"", "no JSON at byte 1: there is 0xc0, and should be UTF-8"},
		{"\"\xc3(\"", "no JSON at byte 2: there is `(`, and should be UTF-8"},
		{"\"\xe0\x80\x80\"", "no JSON at byte 2: there is 0x80, and should be UTF-8"},
		{"\"\xed\xa0\x80\"", "no JSON at byte 2: there is 0xa0, and should be UTF-8"},
		{"\"\xf0\x9f\x98\"", "no JSON at byte 4: there is `\"`, and should be UTF-8"},
		{"\"\xf4\x90\x80\x80\"", "no JSON at byte 2: there is 0x90, and should be UTF-8"},
		{"\"\xf5\x80\x80\x80\"", "no JSON at byte 1: there is 0xf5, and should be UTF-8"},
		{"\xef\xbb\xbf{}", "no JSON at byte 0: there is 0xef, and should be a value"},
		{"// a\n1", "no JSON at byte 0: there is `/`, and should be a value"},
		{"\v1", "no JSON at byte 0: there is 0x0b, and should be a value"},
	};
	struct buf log = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 1; piece <= strlen(cases[i].text) + 1; piece++) {
			struct err err = {0};
			assert_int_equal(scan(str_of(cases[i].text), piece, false, &log, &err), ERR_INVALID);
			assert_string_equal(err.text, cases[i].message);
		}
	}
	buf_free(&log);
}

static void several_texts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *told; /* NULL: refused */
	} cases[] = {
		{"", "."},
		{" \n", "."},
		{"{}\n{}\n", "{){)."},
		{"{}[]{}", "{)[){)."},
		{"1 2\n\"a\" true", "n=1n=2s=\"a\"l=true."},
		{"1", "n=1."},
		{"true[]", NULL},
		{"1\"a\"", NULL},
		{"\"a\"\"b\"", NULL},
		{"{},{}", NULL},
		{"{}\n{", NULL},
	};
	struct buf log = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 1; piece <= strlen(cases[i].text) + 1; piece++) {
			int code = scan(str_of(cases[i].text), piece, true, &log, NULL);
			assert_int_equal(code, cases[i].told ? 0 : ERR_INVALID);
			if (cases[i].told)
				assert_string_equal(buf_c(&log), cases[i].told);
		}
	}
	buf_free(&log);
}

static void nested_too_deep(void **state)
{
	(void)state;
	struct buf text = {0}, log = {0};
	struct err err = {0};
	for (int i = 0; i < LIMIT_GLUE_NESTING; i++)
		buf_put(&text, i % 2 ? STR("{\"a\":") : STR("["));
	buf_put_char(&text, '0');
	for (int i = LIMIT_GLUE_NESTING - 1; i >= 0; i--)
		buf_put_char(&text, i % 2 ? '}' : ']');
	assert_int_equal(scan(buf_str(&text), 1, false, &log, &err), 0);
	assert_int_equal(scan(buf_str(&text), text.length, false, &log, &err), 0);

	buf_clear(&text);
	buf_put_repeat(&text, '[', LIMIT_GLUE_NESTING + 1);
	for (size_t piece = 1; piece < 4; piece++) {
		assert_int_equal(scan(buf_str(&text), piece, false, &log, &err), ERR_LIMIT);
		assert_string_equal(err.text, "JSON at byte 256 is nested deeper than 256");
	}
	buf_free(&text);
	buf_free(&log);
}

/* Tells nothing of the members named `skip`, nor of elements that are arrays. */
static void skipping(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *told;
	} cases[] = {
		{"{\"skip\":1,\"a\":2}", "k\"skip\"k\"a\"=2)."},
		{"{\"skip\":{\"x\":[{\"y\":[]},\"}\"]},\"a\":2}", "k\"skip\"k\"a\"=2)."},
		{"{\"a\":{\"skip\":[1,2]},\"b\":3}", "k\"a\"k\"skip\")k\"b\"=3)."},
		{"[[[1]],2,[],{\"skip\":[]}]", "."},
		{"{\"skip\":\"x\"}", "k\"skip\")."},
		{"{\"skip\":[tru]}", "k\"skip\"!"},
	};
	struct buf log = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
			struct glue_json json;
			enum glue_json_event event;
			size_t at = 0, length = strlen(cases[i].text);
			glue_json_init(&json, false);
			buf_clear(&log);
			do {
				event = glue_json_next(&json);
				if (event == GLUE_JSON_MORE && at == length)
					glue_json_finish(&json);
				if (event == GLUE_JSON_MORE && at < length) {
					size_t part = length - at < piece ? length - at : piece;
					glue_json_feed(&json, str_make(cases[i].text + at, part));
					at += part;
				}
				if (event == GLUE_JSON_KEY)
					buf_printf(&log, "k%.*s", STR_FMT(json.token));
				if (event == GLUE_JSON_SCALAR)
					buf_printf(&log, "=%.*s", STR_FMT(json.token));
				if (event == GLUE_JSON_CLOSE)
					buf_put_char(&log, ')');
				if ((event == GLUE_JSON_KEY && str_equal(json.token, STR("\"skip\""))) ||
				    (event == GLUE_JSON_VALUE && json.kind == GLUE_JSON_ARRAY))
					glue_json_skip(&json);
			} while (event != GLUE_JSON_END && event != GLUE_JSON_BAD);
			buf_put_char(&log, event == GLUE_JSON_END ? '.' : '!');
			assert_string_equal(buf_c(&log), cases[i].told);
		}
	}
	buf_free(&log);
}

/* Whole, a token is a slice however long; in pieces, no more than `kept` is remembered. */
static void long_tokens(void **state)
{
	(void)state;
	struct buf text = {0}, log = {0}, expected = {0};
	for (size_t length = LIMIT_GLUE_VALUE_BYTES - 1; length <= LIMIT_GLUE_VALUE_BYTES + 1; length++) {
		buf_clear(&text);
		buf_put_char(&text, '"');
		buf_put_repeat(&text, 'a', length - 2);
		buf_put_char(&text, '"');
		buf_clear(&expected);
		buf_printf(&expected, "s=%s.", buf_c(&text));
		assert_int_equal(scan(buf_str(&text), length, false, &log, NULL), 0);
		assert_string_equal(buf_c(&log), buf_c(&expected));
		assert_int_equal(scan(buf_str(&text), 7, false, &log, NULL), 0);
		assert_string_equal(buf_c(&log), length <= LIMIT_GLUE_VALUE_BYTES ? buf_c(&expected) : "s=.");
	}
	buf_free(&text);
	buf_free(&log);
	buf_free(&expected);
}

static void strings_decoded(void **state)
{
	(void)state;
	static const struct {
		const char *token;
		struct str value;
		bool is_text;
	} cases[] = {
		{"\"\"", STR_INIT(""), true},
		{"\"a\"", STR_INIT("a"), true},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR_INIT("\"\\/\b\f\n\r\t"), true},
		{"\"a\\u0000b\"", STR_INIT("a\0b"), true},
		{"\"\\u00e9\\u20AC\"", STR_INIT("\xc3\xa9\xe2\x82\xac"), true},
		{"\"x\\ud83d\\uDE00y\"", STR_INIT("x\xf0\x9f\x98\x80y"), true},
		{"\"\\ud800\"", STR_INIT(""), false},
		{"\"\\ud800x\"", STR_INIT(""), false},
		{"\"\\ud800\\n12345\"", STR_INIT(""), false},
		{"\"\\ud800\\u0041\"", STR_INIT(""), false},
		{"\"\\ud800\\ue000\"", STR_INIT(""), false},
		{"\"\\ud800\\ud800\\udc00\"", STR_INIT(""), false},
		{"\"\\udc00\\ud800\"", STR_INIT(""), false},
	};
	struct buf scratch = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str token = str_of(cases[i].token), value;
		bool escaped = memchr(token.at, '\\', token.length) != NULL;
		assert_int_equal(glue_json_string(token, escaped, &scratch, &value), cases[i].is_text);
		if (cases[i].is_text)
			assert_true(str_equal(value, cases[i].value));
	}
	buf_free(&scratch);
}

static void numbers(void **state)
{
	(void)state;
	static const char *const good[] = {"0", "-0", "10", "1.50", "1e5", "-1.5E-07", "123456789012345678901234567890"};
	static const char *const bad[] = {"",   "-",  "+1",  "01", "1.",  ".1", "1e",
	                                  "1 ", " 1", "0x1", "1-", "--1", "a",  "NaN"};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(glue_json_is_number(str_of(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(glue_json_is_number(str_of(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told),    cmocka_unit_test(what_is_refused), cmocka_unit_test(several_texts),
		cmocka_unit_test(nested_too_deep), cmocka_unit_test(skipping),        cmocka_unit_test(long_tokens),
		cmocka_unit_test(strings_decoded), cmocka_unit_test(numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
