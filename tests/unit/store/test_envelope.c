/* Envelopes and keys: to the byte, and what is not one. */
#include "store_test.h"

static void put_hex(struct buf *out, struct str bytes)
{
	for (size_t i = 0; i < bytes.length; i++)
		buf_printf(out, "%02x", (unsigned char)bytes.at[i]);
}

/* Fixed bytes for fixed values: what one version writes, the next one reads. */
static void the_format_is_pinned(void **state)
{
	(void)state;
	static const struct {
		struct str key;
		uint32_t version;
		struct str row;
		const char *hex;
	} cases[] = {
		{STR_INIT("\1k"), 1, STR_INIT("row"), "01000153e1cb18726f77"},
		{STR_INIT("\1k"), 2, STR_INIT("row"), "010002f4b05c3e726f77"},
		{STR_INIT("\2k"), 1, STR_INIT("row"), "010001df5f282a726f77"},
		{STR_INIT("\3red\0\0k"), 0, STR_INIT(""), "0100003e58753f"},
		{STR_INIT("\0f"), 1, STR_INIT("\0\0\0\1"), "0100018c5fa8d500000001"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf value = {0}, hex = {0};
		envelope_put(&value, cases[i].key, cases[i].version, cases[i].row);
		put_hex(&hex, buf_str(&value));
		assert_string_equal(buf_c(&hex), cases[i].hex);
		buf_free(&value);
		buf_free(&hex);
	}
}

static void what_is_put_in_comes_out(void **state)
{
	(void)state;
	struct buf row = {0}, value = {0};
	for (size_t length = 0; length < 300; length += 7) {
		struct str out;
		uint32_t version;
		buf_clear(&row);
		buf_put_repeat(&row, (char)length, length);
		buf_clear(&value);
		envelope_put(&value, STR("key"), (uint32_t)length * 200, buf_str(&row));
		assert_int_equal(value.length, ENVELOPE_BYTES + length);
		assert_int_equal(envelope_open(STR("key"), buf_str(&value), &version, &out, NULL), 0);
		assert_int_equal(version, length * 200);
		assert_true(str_equal(out, buf_str(&row)));
	}
	buf_free(&row);
	buf_free(&value);
}

static void every_bit_counts(void **state)
{
	(void)state;
	struct buf value = {0};
	struct str row, key = STR("key");
	struct err err = {0};
	uint32_t version;
	char other[] = "key";
	envelope_put(&value, key, 3, STR("a row of some bytes"));
	for (size_t bit = 0; bit < value.length * 8; bit++) {
		value.at[bit / 8] ^= (char)(1 << bit % 8);
		assert_refused(envelope_open(key, buf_str(&value), &version, &row, &err), err, ERR_CORRUPT, "its check sum");
		value.at[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t bit = 0; bit < key.length * 8; bit++) {
		other[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(envelope_open(str_make(other, 3), buf_str(&value), &version, &row, &err), ERR_CORRUPT);
		other[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < value.length; cut++)
		assert_int_equal(envelope_open(key, str_make(value.at, cut), &version, &row, &err), ERR_CORRUPT);
	assert_refused(envelope_open(key, STR("\1\0\1"), &version, &row, &err), err, ERR_CORRUPT, "cut short: 3 bytes");
	buf_free(&value);
}

static void keys_of_indexes_are_taken_apart(void **state)
{
	(void)state;
	static const struct {
		struct str index, row, entry;
	} cases[] = {
		{STR_INIT("red"), STR_INIT("k"), STR_INIT("\7red\0\0k")},
		{STR_INIT(""), STR_INIT(""), STR_INIT("\7\0\0")},
		{STR_INIT("\0"), STR_INIT("\0"), STR_INIT("\7\0\xff\0\0\0")},
		{STR_INIT("a\0\xff"), STR_INIT("\xff"), STR_INIT("\7a\0\xff\xff\0\0\xff")},
	};
	struct buf index = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct key key;
		struct str row;
		assert_int_equal(key_of_entry(&key, 7, cases[i].index, &cases[i].row, false), 0);
		assert_true(str_equal(key_str(&key), cases[i].entry));
		assert_int_equal(key_split(key_str(&key), &index, &row), 0);
		assert_true(str_equal(buf_str(&index), cases[i].index) && str_equal(row, cases[i].row));
	}
	static const struct str bad[] = {STR_INIT("\7"), STR_INIT("\7red"), STR_INIT("\7red\0"), STR_INIT("\7red\0\1k"),
	                                 STR_INIT("\7red\0\xff")};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct str row;
		assert_int_equal(key_split(bad[i], &index, &row), ERR_CORRUPT);
	}
	buf_free(&index);
}

static void keys_are_shown_harmlessly(void **state)
{
	(void)state;
	char shown[KEY_SHOWN_BYTES];
	struct buf text = {0};
	assert_string_equal(key_shown(STR("Site1/x"), shown), "`Site1/x`");
	assert_string_equal(key_shown(STR(""), shown), "0x");
	assert_string_equal(key_shown(STR("a\nb"), shown), "0x610a62");
	assert_string_equal(key_shown(STR("\x1b[2J"), shown), "0x1b5b324a");
	buf_put_repeat(&text, '\xee', 480);
	assert_true(strlen(key_shown(buf_str(&text), shown)) < KEY_SHOWN_BYTES);
	memset(text.at, 'x', 480);
	assert_true(strlen(key_shown(buf_str(&text), shown)) < KEY_SHOWN_BYTES);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_format_is_pinned),      cmocka_unit_test(what_is_put_in_comes_out),
		cmocka_unit_test(every_bit_counts),          cmocka_unit_test(keys_of_indexes_are_taken_apart),
		cmocka_unit_test(keys_are_shown_harmlessly),
	};
	return cmocka_run_group_tests_name("store envelope", tests, NULL, NULL);
}
