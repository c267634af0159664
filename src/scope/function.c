/* The functions of the language, and the numbers that they take. */
#include "scope/scope_int.h"

const struct scope_function_info scope_functions[SCOPE_FN_COUNT] = {
	[SCOPE_FN_AROUND] = {STR_INIT("around"), {SCOPE_ARG_SITE, SCOPE_ARG_DURATION}, "around(Site1, 10ms)"},
	[SCOPE_FN_ALL] = {STR_INIT("all"), {SCOPE_ARG_NONE}, "all()"},
	[SCOPE_FN_NEAREST] = {STR_INIT("nearest"), {SCOPE_ARG_INTEGER}, "nearest(3)"},
	[SCOPE_FN_TAGGED] = {STR_INIT("tagged"), {SCOPE_ARG_TAGS}, "tagged(region=west)"},
	[SCOPE_FN_FALLBACK] = {STR_INIT("fallback"), {SCOPE_ARG_LOCATION}, "fallback(all())"},
	[SCOPE_FN_EITHER] = {STR_INIT("either"), {SCOPE_ARG_LOCATION}, "either(nearest(3))"},
	[SCOPE_FN_STRONG] = {STR_INIT("strong"), {SCOPE_ARG_LOCATION}, "strong(Site1 & Site2)"},
	[SCOPE_FN_EVENTUAL] = {STR_INIT("eventual"), {SCOPE_ARG_LOCATION}, "eventual(Site1 & Site2)"},
	[SCOPE_FN_WEAK] = {STR_INIT("weak"), {SCOPE_ARG_LOCATION}, "weak(Site1 & Site2)"},
	[SCOPE_FN_WITH_REQUIREMENTS] = {STR_INIT("with_requirements"),
                                    {SCOPE_ARG_LOCATION},
                                    "with_requirements(Site1 & Site2)"},
};

enum scope_function scope_function_find(struct str name)
{
	for (enum scope_function f = 0; f < SCOPE_FN_COUNT; f++)
		if (str_equal(scope_functions[f].name, name))
			return f;
	return SCOPE_FN_COUNT;
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

static const struct {
	struct str name;
	int64_t us;
} units[] = {{STR_INIT("us"), 1}, {STR_INIT("ms"), 1000}, {STR_INIT("s"), 1000000}};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

static const int64_t duration_most_us = INT64_C(1000000) * LIMIT_SCOPE_DURATION_S;

static size_t count_digits(struct str word, size_t from)
{
	size_t at = from;
	while (at < word.length && word.at[at] >= '0' && word.at[at] <= '9')
		at++;
	return at - from;
}

/* The decimal number in word[from, from+count), or -1 past 12 digits, which is more than anything here accepts. */
static int64_t read_digits(struct str word, size_t from, size_t count)
{
	if (count > 12)
		return -1;
	int64_t value = 0;
	for (size_t i = from; i < from + count; i++)
		value = value * 10 + (word.at[i] - '0');
	return value;
}

static enum scope_number read_duration(struct str word, size_t whole, size_t fraction, int64_t unit_us, int64_t *value)
{
	int64_t parts = read_digits(word, 0, whole);
	if (parts < 0 || parts > duration_most_us / unit_us)
		return SCOPE_NUMBER_OUT_OF_RANGE;
	*value = parts * unit_us;
	int64_t place = unit_us;
	for (size_t i = whole + 1; i < whole + 1 + fraction; i++) {
		place /= 10;
		int digit = word.at[i] - '0';
		if (place == 0 && digit != 0)
			return SCOPE_NUMBER_OUT_OF_RANGE;
		*value += place * digit;
	}
	return *value > duration_most_us ? SCOPE_NUMBER_OUT_OF_RANGE : SCOPE_NUMBER_DURATION;
}

enum scope_number scope_number_read(struct str word, int64_t *value)
{
	size_t whole = count_digits(word, 0);
	if (whole == 0)
		return SCOPE_NUMBER_NONE;
	size_t fraction = 0, unit = whole;
	if (unit < word.length && word.at[unit] == '.') {
		fraction = count_digits(word, whole + 1);
		if (fraction == 0)
			return SCOPE_NUMBER_NONE;
		unit += 1 + fraction;
	}
	struct str suffix = str_make(word.at + unit, word.length - unit);
	if (suffix.length == 0) {
		if (fraction > 0)
			return SCOPE_NUMBER_NONE;
		*value = read_digits(word, 0, whole);
		return *value < 0 ? SCOPE_NUMBER_OUT_OF_RANGE : SCOPE_NUMBER_INTEGER;
	}
	for (size_t i = 0; i < UNITS; i++)
		if (str_equal(suffix, units[i].name))
			return read_duration(word, whole, fraction, units[i].us, value);
	for (size_t i = 0; i < suffix.length; i++)
		if (!((suffix.at[i] | 0x20) >= 'a' && (suffix.at[i] | 0x20) <= 'z'))
			return SCOPE_NUMBER_NONE;
	return SCOPE_NUMBER_OTHER_UNIT;
}

bool scope_reads_as_number(struct str word)
{
	int64_t ignored;
	enum scope_number number = scope_number_read(word, &ignored);
	return number != SCOPE_NUMBER_NONE && number != SCOPE_NUMBER_OTHER_UNIT;
}

void scope_duration_print(struct buf *out, int64_t duration_us)
{
	size_t unit = UNITS - 1;
	while (unit > 0 && duration_us % units[unit].us != 0)
		unit--;
	if (duration_us == 0)
		unit = 1;
	buf_printf(out, "%lld%.*s", (long long)(duration_us / units[unit].us), STR_FMT(units[unit].name));
}
