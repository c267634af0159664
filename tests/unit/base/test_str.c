#include "base_test.h"

#include "base/limits.h"
#include "base/str.h"

static void equality(void **state)
{
	(void)state;
	const struct {
		struct str a, b;
		bool equal, equal_nocase;
	} cases[] = {
		{STR(""), STR(""), true, true},
		{STR(""), {NULL, 0}, true, true},
		{STR("a"), STR(""), false, false},
		{STR("Site1"), STR("Site1"), true, true},
		{STR("Site1"), STR("sITE1"), false, true},
		{STR("Site1"), STR("Site2"), false, false},
		{STR("Site1"), STR("Site"), false, false},
		{STR("a\0b"), STR("a\0c"), false, false},
		{STR("a\0b"), STR("A\0B"), false, true},
		{STR("AZaz"), STR("azAZ"), false, true},
		{STR("@"), STR("`"), false, false}, /* the neighbours of A and Z */
		{STR("["), STR("{"), false, false},
		{STR("\xc3\x89"), STR("\xc3\xa9"), false, false}, /* beyond ASCII case counts */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(str_equal(cases[i].a, cases[i].b), cases[i].equal);
		assert_int_equal(str_equal(cases[i].b, cases[i].a), cases[i].equal);
		assert_int_equal(str_equal_nocase(cases[i].a, cases[i].b), cases[i].equal_nocase);
		assert_int_equal(str_equal_nocase(cases[i].b, cases[i].a), cases[i].equal_nocase);
	}
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void order_is_that_of_bytes(void **state)
{
	(void)state;
	const struct str sorted[] = {
		{NULL, 0}, STR("\0"), STR("\0a"), STR("A"),    STR("a"),    STR("a\0"),
		STR("aa"), STR("ab"), STR("b"),   STR("\x80"), STR("\xff"),
	};
	for (size_t i = 0; i < COUNT(sorted); i++)
		for (size_t j = 0; j < COUNT(sorted); j++)
			assert_int_equal(sign(str_compare(sorted[i], sorted[j])), (i > j) - (i < j));
}

static void slices(void **state)
{
	(void)state;
	struct str whole = str_of("Site1 & Site2");
	assert_int_equal(whole.length, 13);
	assert_str_equal(str_make(whole.at + 8, 5), STR("Site2"));
	char shown[16];
	snprintf(shown, sizeof(shown), "%.*s", STR_FMT(str_make(whole.at, 5)));
	assert_string_equal(shown, "Site1");
}

/* Table 3-7 of The Unicode Standard, which the implementation does not use: which second byte a leading byte allows. The
 * bytes behind it are always 0x80 to 0xbf. */
static const struct well_formed {
	unsigned char lead_low, lead_high, second_low, second_high;
	size_t length;
} well_formed[] = {
	{0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static size_t model_length(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < COUNT(well_formed); i++) {
		const struct well_formed *row = &well_formed[i];
		if (bytes[0] < row->lead_low || bytes[0] > row->lead_high)
			continue;
		bool good =
			count >= row->length && (row->length < 2 || (bytes[1] >= row->second_low && bytes[1] <= row->second_high));
		for (size_t j = 2; good && j < row->length; j++)
			good = bytes[j] >= 0x80 && bytes[j] <= 0xbf;
		return good ? row->length : 0;
	}
	return 0;
}

static void check_decode(const unsigned char *bytes, size_t count)
{
	/* In memory of its own, so that reading past the end is found. */
	char *exact = malloc(count);
	assert_non_null(exact);
	memcpy(exact, bytes, count);
	uint32_t code_point = 0xdeadbeef;
	size_t length = utf8_decode(str_make(exact, count), &code_point);
	if (length != model_length(bytes, count)) {
		print_error("%02x %02x... of %zu bytes: decoded %zu\n", bytes[0], count > 1 ? bytes[1] : 0, count, length);
		fail();
	}
	if (length > 0) {
		char again[4];
		assert_int_equal(utf8_encode(code_point, again), length);
		assert_memory_equal(again, exact, length);
	}
	free(exact);
}

static void decodes_all_short_sequences(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		check_decode((const unsigned char[]){(unsigned char)first}, 1);
		for (unsigned second = 0; second < 256; second++)
			check_decode((const unsigned char[]){(unsigned char)first, (unsigned char)second}, 2);
	}
}

static void decodes_long_sequences_at_their_borders(void **state)
{
	(void)state;
	static const unsigned char borders[] = {0x00, 0x7f, 0x80, 0x81, 0xbe, 0xbf, 0xc0, 0xff};
	for (unsigned first = 0xc0; first < 256; first++)
		for (unsigned second = 0; second < 256; second++)
			for (size_t i = 0; i < COUNT(borders); i++) {
				unsigned char bytes[4] = {(unsigned char)first, (unsigned char)second, borders[i]};
				check_decode(bytes, 3);
				for (size_t j = 0; j < COUNT(borders); j++) {
					bytes[3] = borders[j];
					check_decode(bytes, 4);
				}
			}
}

static void encodes_all_code_points(void **state)
{
	(void)state;
	for (uint32_t code_point = 0; code_point < 0x110000; code_point++) {
		char out[5] = "....";
		out[4] = '#';
		size_t length = utf8_encode(code_point, out);
		assert_true(out[4] == '#');
		if (code_point >= 0xd800 && code_point <= 0xdfff) {
			assert_int_equal(length, 0);
			continue;
		}
		assert_int_equal(length, code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4);
		assert_int_equal(model_length((const unsigned char *)out, length), length);
		uint32_t decoded = 0;
		assert_int_equal(utf8_decode(str_make(out, length), &decoded), length);
		assert_int_equal(decoded, code_point);
		for (size_t cut = 0; cut < length; cut++)
			assert_int_equal(utf8_decode(str_make(out, cut), &decoded), 0);
	}
	char out[4];
	assert_int_equal(utf8_encode(0x110000, out), 0);
	assert_int_equal(utf8_encode(UINT32_MAX, out), 0);
}

static void encodes_known_characters(void **state)
{
	(void)state;
	const struct {
		uint32_t code_point;
		struct str bytes;
	} cases[] = {
		{0, STR("\0")},
		{'A', STR("A")},
		{0x7f, STR("\x7f")},
		{0x80, STR("\xc2\x80")},
		{0xe9, STR("\xc3\xa9")},
		{0x7ff, STR("\xdf\xbf")},
		{0x800, STR("\xe0\xa0\x80")},
		{0x20ac, STR("\xe2\x82\xac")},
		{0xd7ff, STR("\xed\x9f\xbf")},
		{0xe000, STR("\xee\x80\x80")},
		{0xffff, STR("\xef\xbf\xbf")},
		{0x10000, STR("\xf0\x90\x80\x80")},
		{0x1f600, STR("\xf0\x9f\x98\x80")},
		{0x10ffff, STR("\xf4\x8f\xbf\xbf")},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char out[4];
		assert_str_equal(str_make(out, utf8_encode(cases[i].code_point, out)), cases[i].bytes);
	}
}

/* Random text, half of it broken, and where its pieces end, found from the left. */
static size_t random_text(uint64_t *seed, char *text, bool *is_border)
{
	const struct str pieces[] = {
		STR("a"),        STR("\xc3\xa9"),     STR("\xe2\x82\xac"), STR("\xf0\x9f\x98\x80"), STR("\x80"), STR("\xc3"),
		STR("\xe2\x82"), STR("\xf0\x9f\x98"), STR("\xff"),         STR("\xed\xa0\x80"),
	};
	size_t length = 0;
	size_t wanted = random_below(seed, 24);
	while (length < wanted) {
		struct str piece = pieces[random_below(seed, COUNT(pieces))];
		memcpy(text + length, piece.at, piece.length);
		length += piece.length;
	}
	memset(is_border, 0, length + 1);
	for (size_t i = 0; i < length;) {
		is_border[i] = true;
		size_t bytes = model_length((const unsigned char *)text + i, length - i);
		i += bytes > 0 ? bytes : 1;
	}
	is_border[length] = true;
	return length;
}

static void truncation_and_length_agree_with_a_scan(void **state)
{
	(void)state;
	uint64_t seed = 7;
	for (int round = 0; round < 20000; round++) {
		char text[32];
		bool is_border[33];
		size_t length = random_text(&seed, text, is_border);
		size_t borders = 0;
		for (size_t max_bytes = 0; max_bytes <= length + 2; max_bytes++) {
			size_t wanted = max_bytes < length ? max_bytes : length;
			while (!is_border[wanted])
				wanted--;
			struct str cut = utf8_truncate(str_make(text, length), max_bytes);
			assert_ptr_equal(cut.at, text);
			assert_int_equal(cut.length, wanted);
			borders += max_bytes < length && is_border[max_bytes];
		}
		assert_int_equal(utf8_length(str_make(text, length)), borders);
	}
}

static void lengths_in_characters(void **state)
{
	(void)state;
	assert_int_equal(utf8_length(STR("")), 0);
	assert_int_equal(utf8_length((struct str){NULL, 0}), 0);
	assert_int_equal(utf8_length(STR("\xc3\xa9t\xc3\xa9")), 3);
	assert_int_equal(utf8_length(STR("a\xff\xe2\x82z")), 5);
}

static void distances(void **state)
{
	(void)state;
	const struct {
		const char *a, *b;
		unsigned at_most, wanted;
	} cases[] = {
		{"", "", 0, 0},
		{"", "abc", 5, 3},
		{"Site1", "Site1", 0, 0},
		{"Site1", "sITE1", 0, 0},
		{"Site1", "Site2", 3, 1},
		{"Site1", "Site", 3, 1},
		{"Site1", "Stie1", 3, 1}, /* a swap */
		{"Site1", "iStE1", 3, 1},
		{"glance", "glnace", 3, 1},
		{"ca", "abc", 5, 3}, /* 2 without the rule that no stretch is edited twice */
		{"kitten", "sitting", 5, 3},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 3}, /* gives up */
		{"kitten", "sitting", 0, 1},
		{"abcdef", "uvwxyz", 2, 3},
		{"abcdef", "uvwxyz", 9, 6},
		{"a", "abcdefgh", 3, 4}, /* the lengths alone tell */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(str_distance(str_of(cases[i].a), str_of(cases[i].b), cases[i].at_most), cases[i].wanted);
		assert_int_equal(str_distance(str_of(cases[i].b), str_of(cases[i].a), cases[i].at_most), cases[i].wanted);
	}
}

static void no_distance_between_long_names(void **state)
{
	(void)state;
	char a[LIMIT_SUGGEST_NAME_BYTES + 1];
	char b[LIMIT_SUGGEST_NAME_BYTES + 1];
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	size_t limit = LIMIT_SUGGEST_NAME_BYTES;
	assert_int_equal(str_distance(str_make(a, limit), str_make(a, limit), 3), 0);
	assert_int_equal(str_distance(str_make(a, limit), str_make(b, limit), 1000), limit);
	assert_int_equal(str_distance(str_make(a, limit + 1), str_make(a, limit), 3), 4);
	assert_int_equal(str_distance(str_make(a, limit), str_make(a, limit + 1), 3), 4);
}

/* The recurrence itself, without any of the savings. */
static unsigned model_distance(const char *a, size_t i, const char *b, size_t j)
{
	if (i == 0 || j == 0)
		return (unsigned)(i + j);
	unsigned best = model_distance(a, i - 1, b, j - 1) + (a[i - 1] != b[j - 1]);
	unsigned without_a = model_distance(a, i - 1, b, j) + 1;
	unsigned without_b = model_distance(a, i, b, j - 1) + 1;
	best = without_a < best ? without_a : best;
	best = without_b < best ? without_b : best;
	if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
		unsigned swapped = model_distance(a, i - 2, b, j - 2) + 1;
		best = swapped < best ? swapped : best;
	}
	return best;
}

static void distances_agree_with_a_model(void **state)
{
	(void)state;
	uint64_t seed = 3;
	for (int round = 0; round < 3000; round++) {
		char names[2][6];
		size_t lengths[2];
		for (int n = 0; n < 2; n++) {
			lengths[n] = random_below(&seed, 7);
			for (size_t i = 0; i < lengths[n]; i++)
				names[n][i] = "abc"[random_below(&seed, 3)];
		}
		unsigned wanted = model_distance(names[0], lengths[0], names[1], lengths[1]);
		for (unsigned at_most = 0; at_most < 8; at_most++) {
			unsigned got = str_distance(str_make(names[0], lengths[0]), str_make(names[1], lengths[1]), at_most);
			assert_int_equal(got, wanted <= at_most ? wanted : at_most + 1);
		}
	}
}

static void call_distance_without_bound(void *context)
{
	(void)context;
	str_distance(STR("a"), STR("b"), UINT32_MAX);
}

static void a_distance_needs_a_bound(void **state)
{
	(void)state;
	assert_aborts(call_distance_without_bound, NULL, "at_most < UINT_MAX");
}

static void suggestions(void **state)
{
	(void)state;
	const struct {
		const char *wanted;
		const char *offered[4];
		const char *best;
		unsigned distance;
	} cases[] = {
		{"Site1", {NULL}, "", 2},
		{"Site1", {""}, "", 2},
		{"Site1", {"Paris", "Lyon"}, "", 2},
		{"Stie1", {"Paris", "Site1", "Site2"}, "Site1", 1},
		{"Site9", {"Site1", "Site2"}, "Site1", 1},          /* ties: the first offered */
		{"Site9", {"Site1", "site9", "Site2"}, "site9", 0}, /* case alone always wins */
		{"Site1", {"site1", "Site1"}, "site1", 0},
		{"Site1", {"Site1"}, "Site1", 0},
		{"", {"a"}, "a", 1},
		{"", {""}, "", 2},
		{"a", {"b"}, "b", 1}, /* one is always close enough */
		{"ab", {"cd"}, "", 2},
		{"abcde", {"abcxy"}, "", 2},
		{"abcdef", {"abcdxy"}, "abcdxy", 2},
		{"abcdef", {"abcxyz"}, "", 3},
		{"abcdefghi", {"abcdefxyz"}, "abcdefxyz", 3},
		{"abcdefghijkl", {"abcdefghwxyz"}, "", 4}, /* never more than three */
		{"kubernetes", {"kubrenets", "kubernets", "kuberntes"}, "kubernets", 1},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct suggest suggest;
		suggest_start(&suggest, str_of(cases[i].wanted));
		for (size_t j = 0; j < COUNT(cases[i].offered) && cases[i].offered[j] != NULL; j++)
			suggest_offer(&suggest, str_of(cases[i].offered[j]));
		assert_str_equal(suggest.best, str_of(cases[i].best));
		assert_int_equal(suggest.distance, cases[i].distance);
	}
}

static void hexadecimal_digits(void **state)
{
	(void)state;
	static const char digits[] = "0123456789abcdef", capitals[] = "0123456789ABCDEF";
	for (int c = 0; c < 256; c++) {
		const char *small = c ? strchr(digits, c) : NULL, *capital = c ? strchr(capitals, c) : NULL;
		int value = small ? (int)(small - digits) : capital ? (int)(capital - capitals) : -1;
		assert_int_equal(str_hex_value((char)c), value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality),
		cmocka_unit_test(order_is_that_of_bytes),
		cmocka_unit_test(slices),
		cmocka_unit_test(decodes_all_short_sequences),
		cmocka_unit_test(decodes_long_sequences_at_their_borders),
		cmocka_unit_test(encodes_all_code_points),
		cmocka_unit_test(encodes_known_characters),
		cmocka_unit_test(truncation_and_length_agree_with_a_scan),
		cmocka_unit_test(lengths_in_characters),
		cmocka_unit_test(distances),
		cmocka_unit_test(no_distance_between_long_names),
		cmocka_unit_test(distances_agree_with_a_model),
		cmocka_unit_test(a_distance_needs_a_bound),
		cmocka_unit_test(suggestions),
		cmocka_unit_test(hexadecimal_digits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
