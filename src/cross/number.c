/* Decimal numbers, exactly: no floating point is near them. */
#include "cross/cross_int.h"

#include "base/text.h"

static int64_t power_of_ten(unsigned exponent)
{
	int64_t power = 1;
	while (exponent-- > 0)
		power *= 10;
	return power;
}

static bool rescale(struct cross_number *number, uint8_t scale)
{
	if (__builtin_mul_overflow(number->units, power_of_ten(scale - number->scale), &number->units))
		return false;
	number->scale = scale;
	return true;
}

/* The exponent of a number that is well formed; far beyond any use at the most. */
static int64_t exponent_of(struct str text)
{
	size_t at = 0;
	bool negative = text.length > 0 && text.at[0] == '-';
	int64_t exponent = 0;
	if (text.length > 0 && (text.at[0] == '-' || text.at[0] == '+'))
		at++;
	for (; at < text.length && exponent < 1000000; at++)
		exponent = 10 * exponent + (text.at[at] - '0');
	return negative ? -exponent : exponent;
}

int cross_number_parse(struct str text, struct cross_number *number, struct err *err)
{
	if (!glue_json_is_number(text))
		return err_set(err, ERR_INVALID, "'%.*s' is no number as JSON writes them", STR_FMT(text_shown(text)));
	bool negative = text.at[0] == '-', fits = true, in_fraction = false;
	int64_t units = 0, scale = 0;
	size_t at = negative;
	for (; at < text.length && text.at[at] != 'e' && text.at[at] != 'E'; at++) {
		if (text.at[at] == '.') {
			in_fraction = true;
			continue;
		}
		int64_t digit = text.at[at] - '0';
		fits = fits && !__builtin_mul_overflow(units, 10, &units) &&
		       !__builtin_add_overflow(units, negative ? -digit : digit, &units);
		scale += in_fraction;
	}
	if (at < text.length)
		scale -= exponent_of(str_make(text.at + at + 1, text.length - at - 1));
	if (units == 0 && scale < 0)
		scale = 0;
	for (; fits && scale < 0; scale++)
		fits = !__builtin_mul_overflow(units, 10, &units);
	if (!fits)
		return err_set(err, ERR_LIMIT, "%.*s%s does not fit into 64 bits", STR_FMT(text_shown(text)),
		               text_ellipsis(text));
	if (scale > LIMIT_CROSS_DECIMALS)
		return err_set(err, ERR_LIMIT, "%.*s%s has more than %d decimal places", STR_FMT(text_shown(text)),
		               text_ellipsis(text), LIMIT_CROSS_DECIMALS);
	*number = (struct cross_number){units, (uint8_t)scale};
	return 0;
}

void cross_number_put(struct cross_number number, struct buf *out)
{
	uint64_t magnitude = number.units < 0 ? -(uint64_t)number.units : (uint64_t)number.units;
	uint64_t power = (uint64_t)power_of_ten(number.scale);
	if (number.units < 0)
		buf_put_char(out, '-');
	buf_put_number(out, magnitude / power, 1);
	if (number.scale > 0) {
		buf_put_char(out, '.');
		buf_put_number(out, magnitude % power, number.scale);
	}
}

bool cross_number_add(struct cross_number *sum, struct cross_number other)
{
	uint8_t scale = sum->scale > other.scale ? sum->scale : other.scale;
	struct cross_number result = *sum;
	if (!rescale(&result, scale) || !rescale(&other, scale) ||
	    __builtin_add_overflow(result.units, other.units, &result.units))
		return false;
	*sum = result;
	return true;
}

int cross_number_compare(struct cross_number a, struct cross_number b)
{
	/* 63 bits and 18 decimal places make 123: no number is too large for this. */
	__int128 x = (__int128)a.units * power_of_ten(b.scale), y = (__int128)b.units * power_of_ten(a.scale);
	return (x > y) - (x < y);
}
