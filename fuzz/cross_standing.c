/* Any text as the standings of parts, one a line, as other agents send them: what is read can be written, and is read as the same again; and where all
 * fit they are of one whole. */
#include "base/check.h"
#include "base/limits.h"
#include "cross/cross.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct cross_standing *a, const struct cross_standing *b)
{
	return a->settled == b->settled && a->operations == b->operations && a->digest == b->digest &&
	       a->sites == b->sites && a->lacks == b->lacks && a->lost == b->lost;
}

static struct cross_standing read_one(struct str text)
{
	struct buf again = {0};
	struct cross_standing standing = cross_standing_parse(text);
	cross_standing_put(&standing, &again);
	struct cross_standing read = cross_standing_parse(buf_str(&again));
	CHECK(is_same(&standing, &read));
	buf_free(&again);
	return standing;
}

static void check_whole(const struct cross_standing *standings, uint32_t count)
{
	enum cross_verdict verdicts[LIMIT_REPLICA_MEMBERS];
	cross_standings_compare(standings, count, NULL, verdicts);
	for (uint32_t i = 0; i < count; i++) {
		CHECK(verdicts[i] != CROSS_FITS || (standings[i].settled && !standings[i].lacks));
		for (uint32_t k = 0; k < count; k++)
			CHECK(verdicts[i] != CROSS_FITS || verdicts[k] != CROSS_FITS ||
			      (standings[i].operations == standings[k].operations && standings[i].digest == standings[k].digest));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cross_standing standings[LIMIT_REPLICA_MEMBERS] = {0};
	struct str text = str_make((const char *)data, size);
	uint32_t count = 0;
	while (text.length > 0 && count < LIMIT_REPLICA_MEMBERS) {
		const char *end = memchr(text.at, '\n', text.length);
		size_t length = end ? (size_t)(end - text.at) : text.length;
		standings[count++] = read_one(str_make(text.at, length));
		length += end != NULL;
		text = str_make(text.at + length, text.length - length);
	}
	check_whole(standings, count);
	return 0;
}
