/* How far sites have come with their parts, and whether these are of one whole.
 *
 * Each part that is read comes with its standing: how many operations its site has carried out, and which. Parts are of one whole where all
 * standings are the same: what a site has is a function of the set of operations that it has carried out (src/replica/order.h). So whoever
 * puts parts together needs nobody to hold still, and no clock, to know whether a change was on its way between them.
 *
 *     ?                                            it is being changed, or its agent does not know yet
 *     12-0123456789abcdef-0123456789abcdef         12 operations, a digest of which, a digest of the sites that have parts
 *     …-lacks                                      of these, one was refused there, or is in doubt
 *     …-lost=0123456789abcdef                      that site went away with its part
 */
#include "cross/cross.h"

#include <stdlib.h>

static uint64_t mix(uint64_t digest, uint64_t value)
{
	uint64_t z = digest ^ (value + UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t cross_sites_digest(const site_id *sites, uint32_t count)
{
	uint64_t digest = 0;
	for (uint32_t i = 0; i < count; i++)
		digest += mix(0, sites[i]); /* in whatever order */
	return digest;
}

site_id cross_division_lost(const struct cross_division *division, const site_id *sites, uint32_t count)
{
	for (uint32_t i = 0; i < division->count; i++) {
		uint32_t at = 0;
		while (at < count && sites[at] != division->shares[i].site)
			at++;
		if (at == count && division->shares[i].weight > 0)
			return division->shares[i].site;
	}
	return 0;
}

void cross_standing_put(const struct cross_standing *standing, struct buf *out)
{
	if (!standing->settled) {
		buf_put_char(out, '?');
		return;
	}
	buf_printf(out, "%llu-%016llx-%016llx", (unsigned long long)standing->operations,
	           (unsigned long long)standing->digest, (unsigned long long)standing->sites);
	if (standing->lacks)
		buf_put(out, STR("-lacks"));
	if (standing->lost)
		buf_printf(out, "-lost=%016llx", (unsigned long long)standing->lost);
}

/* Digits up to the end, or to a `-`, which is taken as well. */
static bool take_number(struct str *text, unsigned base, size_t most, uint64_t *number)
{
	size_t at = 0;
	*number = 0;
	for (; at < text->length && text->at[at] != '-'; at++) {
		int digit = str_hex_value(text->at[at]);
		if (digit < 0 || (unsigned)digit >= base || at >= most)
			return false;
		*number = *number * base + (unsigned)digit;
	}
	size_t taken = at < text->length ? at + 1 : at;
	*text = str_make(text->at + taken, text->length - taken);
	return at > 0;
}

static bool take_word(struct str *text, struct str word)
{
	if (text->length < word.length || memcmp(text->at, word.at, word.length) != 0)
		return false;
	*text = str_make(text->at + word.length, text->length - word.length);
	return true;
}

struct cross_standing cross_standing_parse(struct str text)
{
	struct cross_standing standing = {0}, unknown = {0};
	bool sound = take_number(&text, 10, 19, &standing.operations) && take_number(&text, 16, 16, &standing.digest) &&
	             take_number(&text, 16, 16, &standing.sites);
	if (sound && take_word(&text, STR("lacks"))) {
		standing.lacks = true;
		sound = text.length == 0 || take_word(&text, STR("-"));
	}
	if (sound && take_word(&text, STR("lost=")))
		sound = take_number(&text, 16, 16, &standing.lost);
	standing.settled = true;
	return sound && text.length == 0 ? standing : unknown;
}

static bool is_same(const struct cross_standing *a, const struct cross_standing *b)
{
	return a->operations == b->operations && a->digest == b->digest;
}

/* The one that has carried out most. Where two have as many, and others, neither has all. */
static const struct cross_standing *find_newest(const struct cross_standing *standings, uint32_t count)
{
	const struct cross_standing *newest = NULL;
	for (uint32_t i = 0; i < count; i++)
		if (standings[i].settled && (!newest || standings[i].operations > newest->operations))
			newest = &standings[i];
	for (uint32_t i = 0; i < count && newest; i++)
		if (standings[i].settled && standings[i].operations == newest->operations && !is_same(&standings[i], newest))
			return NULL;
	return newest;
}

void cross_standings_compare(const struct cross_standing *standings, uint32_t count, const uint64_t *sites,
                             enum cross_verdict *verdicts)
{
	const struct cross_standing *newest = find_newest(standings, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct cross_standing *standing = &standings[i];
		if (!standing->settled)
			verdicts[i] = CROSS_CHANGING;
		else if (!newest || !is_same(standing, newest))
			verdicts[i] = CROSS_BEHIND;
		else if (sites && standing->sites != *sites)
			verdicts[i] = CROSS_OTHER_SITES;
		else
			verdicts[i] = standing->lacks ? CROSS_LACKS : CROSS_FITS;
	}
}

const char *cross_verdict_reason(enum cross_verdict verdict)
{
	static const char *const reasons[CROSS_VERDICTS] = {[CROSS_CHANGING] = "behind",
	                                                    [CROSS_BEHIND] = "behind",
	                                                    [CROSS_OTHER_SITES] = "behind",
	                                                    [CROSS_LACKS] = "rejected"};
	return reasons[verdict];
}

const char *cross_verdict_phrase(enum cross_verdict verdict)
{
	static const char *const phrases[CROSS_VERDICTS] = {
		[CROSS_FITS] = "its part is of the same whole",
		[CROSS_CHANGING] = "its part is being changed",
		[CROSS_BEHIND] = "a change has not reached all parts yet",
		[CROSS_OTHER_SITES] = "a site is being added, or withdrawn",
		[CROSS_LACKS] = "an operation was refused there, or is in doubt",
	};
	return phrases[verdict];
}
