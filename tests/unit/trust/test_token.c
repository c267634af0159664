#include "trust_test.h"

static struct trust_token make_token(const char *name, uint8_t family)
{
	struct trust_token token = {.ends_ms = NOW_MS, .address = {.family = family, .ip = {192, 0, 2, 7}, .port = 7946}};
	trust_token_make(&token);
	memset(token.root, 0xa5, sizeof(token.root));
	strcpy(token.name, name);
	return token;
}

static void assert_same(const struct trust_token *a, const struct trust_token *b)
{
	assert_memory_equal(a->secret, b->secret, sizeof(a->secret));
	assert_memory_equal(a->root, b->root, sizeof(a->root));
	assert_true(a->ends_ms == b->ends_ms);
	assert_memory_equal(a->address.ip, b->address.ip, a->address.family == 4 ? 4 : 16);
	assert_true(a->address.family == b->address.family && a->address.port == b->address.port);
	assert_string_equal(a->name, b->name);
}

static void a_token_says_what_was_put_in(void **state)
{
	(void)state;
	struct buf longest = {0};
	buf_put_repeat(&longest, 'x', LIMIT_AGENT_NAME_BYTES);
	const char *names[] = {"", "a", "Site1", "État 3", "ab", buf_c(&longest)};
	for (size_t i = 0; i < COUNT(names) * 2; i++) {
		struct trust_token token = make_token(names[i / 2], i % 2 ? 4 : 6), again;
		struct buf text = {0};
		struct err err;
		trust_token_write(&token, &text);
		assert_true(text.length <= LIMIT_TRUST_TOKEN_BYTES);
		assert_memory_equal(text.at, "cheops1_", 8);
		assert_int_equal(trust_token_read(buf_str(&text), &again, &err), 0);
		assert_same(&token, &again);
		buf_free(&text);
	}
	buf_free(&longest);
}

static void each_has_a_secret_of_its_own(void **state)
{
	(void)state;
	struct trust_token one = make_token("", 4), two = make_token("", 4);
	unsigned char first[32], second[32];
	trust_token_digest(&one, first);
	trust_token_digest(&two, second);
	assert_memory_not_equal(one.secret, two.secret, sizeof(one.secret));
	assert_memory_not_equal(first, second, sizeof(first));
	strcpy(two.name, "other");
	memcpy(two.secret, one.secret, sizeof(one.secret));
	trust_token_digest(&two, second);
	assert_memory_equal(first, second, sizeof(first));
}

static void each_slip_is_told(void **state)
{
	(void)state;
	struct trust_token token = make_token("Site1", 4), read;
	struct buf text = {0};
	struct err err;
	trust_token_write(&token, &text);
	for (size_t i = 8; i < text.length; i++) {
		char was = text.at[i];
		for (int c = 1; c < 256; c++) {
			if ((char)c == was)
				continue;
			text.at[i] = (char)c;
			assert_refused(trust_token_read(buf_str(&text), &read, &err), err, "cut or mistyped");
			assert_int_equal(err.code, ERR_CORRUPT);
		}
		text.at[i] = was;
	}
	for (size_t cut = 8; cut < text.length; cut++)
		assert_refused(trust_token_read(str_make(text.at, cut), &read, &err), err, "cut or mistyped");
	for (size_t i = 8; i + 1 < text.length; i++) { /* two neighbours swapped */
		char first = text.at[i], second = text.at[i + 1];
		text.at[i] = second, text.at[i + 1] = first;
		if (first != second)
			assert_refused(trust_token_read(buf_str(&text), &read, &err), err, "cut or mistyped");
		text.at[i] = first, text.at[i + 1] = second;
	}
	assert_int_equal(trust_token_read(buf_str(&text), &read, &err), 0);
	buf_put_char(&text, 'A');
	assert_refused(trust_token_read(buf_str(&text), &read, &err), err, "cut or mistyped");
	buf_put_repeat(&text, 'A', 4000);
	assert_refused(trust_token_read(buf_str(&text), &read, &err), err, "cut or mistyped");
	buf_free(&text);
}

static void what_is_no_token_is_told(void **state)
{
	(void)state;
	static const char *const others[] = {"", "cheops", "Cheops1_AAAA", "cheopsx_AAAA", "hello", "cheops1"};
	struct trust_token token;
	struct err err;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_refused(trust_token_read(str_of(others[i]), &token, &err), err, "not a join token");
	assert_refused(trust_token_read(STR("cheops2_AAAA"), &token, &err), err, "another version");
	assert_int_equal(err.code, ERR_VERSION);
}

/* Fixed bytes for fixed values: tokens of one version are read by the next. */
static void the_format_is_pinned(void **state)
{
	(void)state;
	struct trust_token token = {
		.ends_ms = NOW_MS, .address = {.family = 4, .ip = {192, 0, 2, 7}, .port = 7946}, .name = "é"};
	struct buf text = {0};
	for (int i = 0; i < 16; i++)
		token.secret[i] = (unsigned char)i;
	memset(token.root, 0xa5, sizeof(token.root));
	trust_token_write(&token, &text);
	assert_string_equal(
		buf_c(&text),
		"cheops1_AAECAwQFBgcICQoLDA0OD6WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlAAABod5vUoAEwAACBx8KAsOp6q9O0Q");
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_says_what_was_put_in),
		cmocka_unit_test(each_has_a_secret_of_its_own),
		cmocka_unit_test(each_slip_is_told),
		cmocka_unit_test(what_is_no_token_is_told),
		cmocka_unit_test(the_format_is_pinned),
	};
	return cmocka_run_group_tests_name("trust token", tests, NULL, NULL);
}
