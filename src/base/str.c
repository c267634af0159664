#include "base/str.h"

#include "base/check.h"
#include "base/limits.h"

#include <limits.h>

static unsigned char fold(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool str_equal_nocase(struct str a, struct str b)
{
	if (a.length != b.length)
		return false;
	for (size_t i = 0; i < a.length; i++)
		if (fold(a.at[i]) != fold(b.at[i]))
			return false;
	return true;
}

int str_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int str_compare(struct str a, struct str b)
{
	size_t common = a.length < b.length ? a.length : b.length;
	int order = common > 0 ? memcmp(a.at, b.at, common) : 0;
	if (order != 0)
		return order;
	return (a.length > b.length) - (a.length < b.length);
}

/* "Did you mean" measures with the optimal string alignment distance: Damerau-Levenshtein where no stretch is edited
 * twice. Row i of its table holds the distances between the first i bytes of a and each prefix of b; three rows turn. */
enum {
	ROWS_COUNT = 3,
	CELLS_COUNT = LIMIT_SUGGEST_NAME_BYTES + 1,
	CLOSE_MOST = 3, /* farther than this, a suggestion puzzles more than it helps */
};

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Fills row i >= 1 and returns its smallest cell. */
static unsigned fill_row(struct str a, struct str b, size_t i, unsigned rows[ROWS_COUNT][CELLS_COUNT])
{
	unsigned *row = rows[i % ROWS_COUNT];
	const unsigned *above = rows[(i + 2) % ROWS_COUNT];
	const unsigned *two_above = rows[(i + 1) % ROWS_COUNT];
	row[0] = (unsigned)i;
	unsigned smallest = row[0];
	for (size_t j = 1; j <= b.length; j++) {
		unsigned char from = fold(a.at[i - 1]);
		unsigned char to = fold(b.at[j - 1]);
		row[j] = least(above[j - 1] + (from != to), least(above[j], row[j - 1]) + 1);
		if (i > 1 && j > 1 && from == fold(b.at[j - 2]) && fold(a.at[i - 2]) == to)
			row[j] = least(row[j], two_above[j - 2] + 1);
		smallest = least(smallest, row[j]);
	}
	return smallest;
}

unsigned str_distance(struct str a, struct str b, unsigned at_most)
{
	CHECK(at_most < UINT_MAX);
	if (a.length > LIMIT_SUGGEST_NAME_BYTES || b.length > LIMIT_SUGGEST_NAME_BYTES)
		return at_most + 1;
	size_t gap = a.length > b.length ? a.length - b.length : b.length - a.length;
	if (gap > at_most)
		return at_most + 1;
	unsigned rows[ROWS_COUNT][CELLS_COUNT];
	for (size_t j = 0; j <= b.length; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.length; i++) {
		/* No later row has a smaller cell. A swap reaches back two rows, but costs one, and neighbouring cells differ by
		 * at most one. */
		if (fill_row(a, b, i, rows) > at_most)
			return at_most + 1;
	}
	return least(rows[a.length % ROWS_COUNT][b.length], at_most + 1);
}

void suggest_start(struct suggest *suggest, struct str wanted)
{
	unsigned close = wanted.length / 3 < CLOSE_MOST ? (unsigned)wanted.length / 3 : CLOSE_MOST;
	*suggest = (struct suggest){.wanted = wanted, .distance = (close > 0 ? close : 1) + 1};
}

void suggest_offer(struct suggest *suggest, struct str candidate)
{
	if (suggest->distance == 0 || candidate.length == 0)
		return;
	unsigned distance = str_distance(suggest->wanted, candidate, suggest->distance - 1);
	if (distance < suggest->distance) {
		suggest->best = candidate;
		suggest->distance = distance;
	}
}
