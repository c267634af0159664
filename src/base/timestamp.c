#include "base/timestamp.h"

static const int64_t day_ms = 86400000;

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that the leap day is the last
 * of its year and the days before a month are a linear function of it. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t m = month > 2 ? month - 3 : month + 9;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * m + 2) / 5 + day - 1;
	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_from_days(int64_t days, int *year, int *month, int *day)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t day_of_era = days - era * 146097;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t m = (5 * day_of_year + 2) / 153;
	*day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(year_of_era + era * 400 + (*month <= 2));
}

/* `width` digits of a number, then a character; returns where to go on. */
static char *put_field(char *out, int number, int width, char after)
{
	for (int i = width - 1; i >= 0; i--, number /= 10)
		out[i] = (char)('0' + number % 10);
	out[width] = after;
	return out + width + 1;
}

void timestamp_format(int64_t ms, char out[TIMESTAMP_BYTES])
{
	int64_t first = days_from_date(0, 1, 1) * day_ms, last = days_from_date(10000, 1, 1) * day_ms - 1;
	ms = ms < first ? first : ms > last ? last : ms;
	int64_t days = (ms >= 0 ? ms : ms - (day_ms - 1)) / day_ms;
	int rest = (int)(ms - days * day_ms), year, month, day;
	date_from_days(days, &year, &month, &day);
	out = put_field(out, year, 4, '-');
	out = put_field(out, month, 2, '-');
	out = put_field(out, day, 2, 'T');
	out = put_field(out, rest / 3600000, 2, ':');
	out = put_field(out, rest / 60000 % 60, 2, ':');
	out = put_field(out, rest / 1000 % 60, 2, rest % 1000 ? '.' : 'Z');
	if (rest % 1000)
		out = put_field(out, rest % 1000, 3, 'Z');
	*out = '\0';
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* `count` digits at *at, in the range given; moves on. -1 if they are not there. */
static int read_field(struct str text, size_t *at, size_t count, int least, int most)
{
	int value = 0;
	if (text.length - *at < count)
		return -1;
	for (size_t end = *at + count; *at < end; ++*at) {
		char c = text.at[*at];
		if (c < '0' || c > '9')
			return -1;
		value = value * 10 + (c - '0');
	}
	return value >= least && value <= most ? value : -1;
}

static bool read_char(struct str text, size_t *at, const char *accepted)
{
	if (*at >= text.length || text.at[*at] == '\0' || !strchr(accepted, text.at[*at]))
		return false;
	++*at;
	return true;
}

static bool read_date(struct str text, size_t *at, int64_t *days)
{
	static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year = read_field(text, at, 4, 0, 9999);
	if (year < 0 || !read_char(text, at, "-"))
		return false;
	int month = read_field(text, at, 2, 1, 12);
	if (month < 0 || !read_char(text, at, "-"))
		return false;
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	int day = read_field(text, at, 2, 1, month == 2 && !leap ? 28 : lengths[month - 1]);
	*days = days_from_date(year, month, day);
	return day >= 0;
}

/* Hours, minutes, and seconds with an optional fraction; second 60 is a leap second and counts as the next minute. */
static bool read_time(struct str text, size_t *at, int64_t *ms)
{
	int hour = read_field(text, at, 2, 0, 23);
	if (hour < 0 || !read_char(text, at, ":"))
		return false;
	int minute = read_field(text, at, 2, 0, 59);
	if (minute < 0 || !read_char(text, at, ":"))
		return false;
	int second = read_field(text, at, 2, 0, 60);
	if (second < 0)
		return false;
	*ms = ((hour * INT64_C(60) + minute) * 60 + second) * 1000;
	if (!read_char(text, at, "."))
		return true;
	int64_t place = 100;
	size_t start = *at;
	for (; *at < text.length && text.at[*at] >= '0' && text.at[*at] <= '9'; ++*at, place /= 10)
		*ms += place * (text.at[*at] - '0');
	return *at > start;
}

static bool read_offset(struct str text, size_t *at, int64_t *ms)
{
	*ms = 0;
	if (read_char(text, at, "Zz"))
		return true;
	bool west = *at < text.length && text.at[*at] == '-';
	if (!read_char(text, at, "+-"))
		return false;
	int hour = read_field(text, at, 2, 0, 23);
	if (hour < 0 || !read_char(text, at, ":"))
		return false;
	int minute = read_field(text, at, 2, 0, 59);
	*ms = (hour * INT64_C(60) + minute) * 60000 * (west ? -1 : 1);
	return minute >= 0;
}

bool timestamp_parse(struct str text, int64_t *ms)
{
	size_t at = 0;
	int64_t days, time, offset;
	if (!read_date(text, &at, &days) || !read_char(text, &at, "Tt ") || !read_time(text, &at, &time) ||
	    !read_offset(text, &at, &offset) || at != text.length)
		return false;
	*ms = days * day_ms + time - offset;
	return true;
}
