/* Tokens that were given out: each serves once, also over a restart; and a file that is damaged is refused as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/identity.h"
#include "agent/tokens.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const int64_t NOW_MS = INT64_C(1790000000000), HOUR_MS = INT64_C(3600000);

static char place[64];

static int make_place(void **state)
{
	(void)state;
	snprintf(place, sizeof(place), "/tmp/cheops-tokens-XXXXXX");
	return mkdtemp(place) == NULL ? -1 : 0;
}

static void drop(const char *name)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%s", place, name);
	unlink(buf_c(&path));
	buf_free(&path);
}

static int drop_place(void **state)
{
	(void)state;
	drop("tokens");
	drop("issued");
	return rmdir(place);
}

static void write_file(const char *name, struct str text)
{
	assert_int_equal(agent_file_write(place, name, text, true, NULL), 0);
}

static void read_file(const char *name, struct buf *text)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%s", place, name);
	assert_int_equal(agent_file_read(buf_c(&path), 1 << 20, text, NULL), 0);
	buf_free(&path);
}

static void give_out(struct agent_tokens *tokens, struct trust_token *token, const char *name)
{
	struct err err = {0};
	*token = (struct trust_token){.ends_ms = NOW_MS + HOUR_MS};
	snprintf(token->name, sizeof(token->name), "%s", name);
	trust_token_make(token);
	if (agent_tokens_load(tokens, place, &err) != 0 || agent_tokens_add(tokens, place, token, NOW_MS, &err) != 0)
		fail_msg("%s", err.text);
}

/* As an agent does that has just started. */
static enum agent_token_state look_up(const struct trust_token *token, const char *name, int64_t now_ms)
{
	struct agent_tokens tokens = {0};
	struct agent_token *found;
	struct err err = {0};
	if (agent_tokens_load(&tokens, place, &err) != 0)
		fail_msg("%s", err.text);
	enum agent_token_state state = agent_tokens_find(&tokens, token, str_of(name), now_ms, &found);
	agent_tokens_free(&tokens);
	return state;
}

static void a_token_serves_once_over_restarts(void **state)
{
	(void)state;
	struct agent_tokens tokens = {0};
	struct agent_token *found;
	struct trust_token any, named, stranger = {0};
	give_out(&tokens, &any, "");
	give_out(&tokens, &named, "Zürich 1");
	trust_token_make(&stranger);
	assert_int_equal(look_up(&stranger, "Site2", NOW_MS), AGENT_TOKEN_UNKNOWN);
	assert_int_equal(look_up(&any, "Site2", NOW_MS), AGENT_TOKEN_GOOD);
	assert_int_equal(look_up(&any, "Site2", NOW_MS + HOUR_MS + 1), AGENT_TOKEN_EXPIRED);
	assert_int_equal(look_up(&named, "Site2", NOW_MS), AGENT_TOKEN_FOR_ANOTHER);
	assert_int_equal(look_up(&named, "Zürich 1", NOW_MS), AGENT_TOKEN_GOOD);
	assert_int_equal(agent_tokens_find(&tokens, &any, STR("Site2"), NOW_MS, &found), AGENT_TOKEN_GOOD);
	assert_int_equal(agent_tokens_strike(&tokens, place, found, NULL), 0);
	assert_int_equal(look_up(&any, "Site2", NOW_MS), AGENT_TOKEN_USED);
	assert_int_equal(look_up(&named, "Zürich 1", NOW_MS), AGENT_TOKEN_GOOD);
	agent_tokens_free(&tokens);
}

/* It was not written that the token is used, so nothing may be signed for it, and it is as good as before. */
static void a_token_that_cannot_be_struck_off_is_not_used(void **state)
{
	(void)state;
	struct agent_tokens tokens = {0};
	struct agent_token *found;
	struct trust_token token;
	struct err err = {0};
	give_out(&tokens, &token, "");
	assert_int_equal(agent_tokens_find(&tokens, &token, STR("Site2"), NOW_MS, &found), AGENT_TOKEN_GOOD);
	assert_true(agent_tokens_strike(&tokens, "/dev/null/state", found, &err) < 0);
	assert_true(strlen(err.text) > 0);
	assert_int_equal(agent_tokens_find(&tokens, &token, STR("Site2"), NOW_MS, &found), AGENT_TOKEN_GOOD);
	struct trust_token lost = token;
	trust_token_make(&lost);
	assert_true(agent_tokens_add(&tokens, "/dev/null/state", &lost, NOW_MS, &err) < 0);
	assert_int_equal(agent_tokens_find(&tokens, &lost, STR("Site2"), NOW_MS, &found), AGENT_TOKEN_UNKNOWN);
	agent_tokens_free(&tokens);
}

static void old_tokens_are_forgotten_and_there_are_not_too_many(void **state)
{
	(void)state;
	struct agent_tokens tokens = {0};
	struct buf lines = {0};
	struct trust_token token;
	struct err err = {0};
	for (int i = 0; i < AGENT_TOKENS_MOST; i++)
		buf_printf(&lines, "%064x %lld %d \n", i, (long long)(NOW_MS + i), i % 2);
	write_file("tokens", buf_str(&lines));
	assert_int_equal(agent_tokens_load(&tokens, place, &err), 0);
	assert_int_equal(tokens.count, AGENT_TOKENS_MOST);
	token = (struct trust_token){.ends_ms = NOW_MS + HOUR_MS};
	trust_token_make(&token);
	assert_int_equal(agent_tokens_add(&tokens, place, &token, NOW_MS, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "1000"));
	const int64_t later_ms = NOW_MS + AGENT_TOKEN_TTL_MOST_MS + 400;
	assert_int_equal(agent_tokens_add(&tokens, place, &token, later_ms, &err), 0);
	assert_int_equal(tokens.count, AGENT_TOKENS_MOST - 400); /* those of 0 to 400 went, one came */
	agent_tokens_free(&tokens);
	buf_free(&lines);
}

/* Between two good lines. Neither those nor the file are lost; once it is mended, all is as before. */
static void check_damage(const char *name, struct str first, struct str bad, struct str last,
                         int (*load)(struct err *err, uint32_t *count))
{
	struct buf text = {0}, after = {0};
	struct err err = {0};
	uint32_t count;
	buf_put(&text, first);
	buf_put(&text, bad);
	buf_put(&text, last);
	write_file(name, buf_str(&text));
	if (load(&err, &count) != ERR_CORRUPT)
		fail_msg("taken: %.*s", STR_FMT(bad));
	assert_non_null(strstr(err.text, name));
	assert_non_null(strstr(err.text, "damaged"));
	read_file(name, &after);
	assert_true(str_equal(buf_str(&text), buf_str(&after)));
	buf_clear(&text);
	buf_put(&text, first);
	buf_put(&text, last);
	write_file(name, buf_str(&text));
	assert_int_equal(load(&err, &count), 0);
	assert_int_equal(count, 2);
	buf_free(&text);
	buf_free(&after);
}

static int load_tokens(struct err *err, uint32_t *count)
{
	struct agent_tokens tokens = {0};
	int code = agent_tokens_load(&tokens, place, err);
	assert_true(tokens.loaded == (code == 0) && (code == 0 || tokens.count == 0));
	*count = tokens.count;
	agent_tokens_free(&tokens);
	return code;
}

static void a_damaged_file_of_tokens_is_refused(void **state)
{
	(void)state;
	static const struct str bad[] = {
		STR_INIT("?\n"),
		STR_INIT("\n"),
		STR_INIT("0011 1790000000000 0 \n"),
		STR_INIT("0011223344556677 8899aabbccddeeff00112233445566778899aabbccddeef 1790000000000 0 \n"),
		STR_INIT("00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff 1790000000000 0 \n"),
		STR_INIT(DIGEST "\n"),
		STR_INIT(DIGEST " 1790000000000\n"),
		STR_INIT(DIGEST " 1790000000000 0\n"),
		STR_INIT(DIGEST " 1790000000000 2 \n"),
		STR_INIT(DIGEST " 1790000000000 01 \n"),
		STR_INIT(DIGEST " 1790000000000  1 \n"),
		STR_INIT(DIGEST "  1790000000000 1 \n"),
		STR_INIT(DIGEST " 0x1790 1 \n"),
		STR_INIT(DIGEST " 99999999999999999999 1 \n"),
		STR_INIT(DIGEST " 1790000000000 1 Site\t2\n"),
		STR_INIT(DIGEST " 1790000000000 1 \xc3\n"),
		STR_INIT(DIGEST " 1790000000000 1 Site2\r\n"),
		STR_INIT(DIGEST " 1790000000000 1 a\0b\n"),
	};
	for (size_t i = 0; i < COUNT(bad); i++)
		check_damage("tokens", STR(DIGEST " 1790000000000 1 \n"), bad[i], STR(DIGEST " 1790000000000 0  Site 2\n"),
		             load_tokens);
}

static int load_issued(struct err *err, uint32_t *count)
{
	struct agent_issued issued = {0};
	int code = agent_issued_load(&issued, place, err);
	assert_true(issued.loaded == (code == 0) && (code == 0 || issued.count == 0));
	*count = issued.count;
	agent_issued_free(&issued);
	return code;
}

static void a_damaged_file_of_names_is_refused(void **state)
{
	(void)state;
	static const struct str bad[] = {
		STR_INIT("?\n"),
		STR_INIT("\n"),
		STR_INIT("00112233aabbccdd\n"),
		STR_INIT("00112233aabbccdd \n"),
		STR_INIT("112233aabbccdd Site2\n"),
		STR_INIT("00112233AABBCCDD Site2\n"),
		STR_INIT("00112233aabbccdd00 Site2\n"),
		STR_INIT("-0112233aabbccdd Site2\n"),
		STR_INIT("00112233aabbccdd Site\a\n"),
	};
	for (size_t i = 0; i < COUNT(bad); i++)
		check_damage("issued", STR("00112233aabbccdd Site2\n"), bad[i], STR("ffeeddccbbaa9988 a b\n"), load_issued);
}

/* A name at the end of a line is a shorter name when it is cut, and would be free for anybody. */
static void a_file_that_was_cut_is_refused(void **state)
{
	(void)state;
	static const char whole[] = DIGEST " 1790000000000 0 Site2\n";
	struct err err = {0};
	uint32_t count;
	for (size_t length = 1; length < sizeof(whole) - 1; length++) {
		write_file("tokens", str_make(whole, length));
		assert_int_equal(load_tokens(&err, &count), ERR_CORRUPT);
		assert_non_null(strstr(err.text, "cut"));
	}
	write_file("tokens", str_of(whole));
	assert_int_equal(load_tokens(&err, &count), 0);
	assert_int_equal(count, 1);
}

static void names_are_kept_until_they_are_forgotten(void **state)
{
	(void)state;
	struct agent_issued issued = {0};
	struct buf text = {0};
	struct err err = {0};
	drop("issued");
	assert_int_equal(agent_issued_load(&issued, place, &err), 0);
	assert_int_equal(agent_issued_add(&issued, place, 1, STR("Site1"), &err), 0);
	assert_int_equal(agent_issued_add(&issued, place, UINT64_C(0xfedcba9876543210), STR("Zürich 1"), &err), 0);
	assert_true(agent_issued_add(&issued, "/dev/null/state", 3, STR("Site3"), &err) < 0);
	assert_true(agent_issued_forget(&issued, "/dev/null/state", 1, &err) < 0);
	assert_int_equal(issued.count, 2);
	read_file("issued", &text);
	assert_string_equal(buf_c(&text), "0000000000000001 Site1\nfedcba9876543210 Zürich 1\n");
	assert_int_equal(agent_issued_forget(&issued, place, 1, &err), 0);
	agent_issued_free(&issued);
	assert_int_equal(agent_issued_load(&issued, place, &err), 0);
	assert_int_equal(issued.count, 1);
	assert_string_equal(issued.at[0].name, "Zürich 1");
	assert_true(issued.at[0].id == UINT64_C(0xfedcba9876543210));
	agent_issued_free(&issued);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_serves_once_over_restarts),
		cmocka_unit_test(a_token_that_cannot_be_struck_off_is_not_used),
		cmocka_unit_test(old_tokens_are_forgotten_and_there_are_not_too_many),
		cmocka_unit_test(a_damaged_file_of_tokens_is_refused),
		cmocka_unit_test(a_damaged_file_of_names_is_refused),
		cmocka_unit_test(a_file_that_was_cut_is_refused),
		cmocka_unit_test(names_are_kept_until_they_are_forgotten),
	};
	return cmocka_run_group_tests(tests, make_place, drop_place);
}
