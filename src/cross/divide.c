/* Division of a whole by weights: Webster's method, which is Sainte-Laguë's.
 *
 * Units are handed out one by one, each to the site for which weight / (2 * parts so far + 1) is greatest; of equals, to the one that stands
 * first. Since nobody counts up to 2^63, all but a few are handed out at once: with h units, n sites and a sum of weights W, the k-th unit
 * of a site is among those with weight / (2k - 1) > W / (2h - n) for (weight * (2h - n) / W) odd numbers below. These come first in the order above,
 * whoever is first, and there are at least h - n and at most h of them. The rest, at most n, goes one by one.
 *
 * Balinski and Young ("Fair Representation", 1982) prove of such methods: more units take none from anybody (so a change of the total by d moves
 * |d|), and what some of the sites get is divided among them as if there were no others (so a site that comes takes from the others, and they
 * do not exchange anything). The unit tests look at both. */
#include "cross/cross_int.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

typedef unsigned __int128 wide;

enum { DIVISION_VERSION = 1, DIVISION_HEAD = 2, DIVISION_SHARE = 16 };

#define WEIGHT_MOST (UINT64_MAX >> 1)

void cross_cut(struct buf *buf, size_t length)
{
	buf->length = length;
	if (buf->at)
		buf->at[length] = '\0';
}

/* ---- Numbers --------------------------------------------------------------------------------------------------------- */

static bool comes_before(const struct cross_division *division, const uint64_t *parts, uint32_t a, uint32_t b)
{
	wide x = (wide)division->shares[a].weight * (2 * (wide)parts[b] + 1);
	wide y = (wide)division->shares[b].weight * (2 * (wide)parts[a] + 1);
	return x > y || (x == y && a < b);
}

static void give_one(const struct cross_division *division, uint64_t *parts)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < division->count; i++) {
		if (comes_before(division, parts, i, best))
			best = i;
	}
	parts[best]++;
}

int cross_apportion(uint64_t whole, const struct cross_division *division, uint64_t parts[LIMIT_REPLICA_MEMBERS],
                    struct err *err)
{
	wide sum = 0;
	for (uint32_t i = 0; i < division->count; i++) {
		CHECK(division->shares[i].weight <= WEIGHT_MOST);
		sum += division->shares[i].weight;
	}
	if (sum == 0)
		return err_set(err, ERR_INVALID, "nothing can be divided: all weights are 0");
	CHECK(whole <= UINT64_MAX >> 1 || whole == (uint64_t)1 << 63);
	wide given = 0, steps = (wide)whole * 2 > division->count ? (wide)whole * 2 - division->count : 0;
	for (uint32_t i = 0; i < division->count; i++) {
		wide product = (wide)division->shares[i].weight * steps;
		parts[i] = (uint64_t)((product / sum + (product % sum != 0)) / 2);
		given += parts[i];
	}
	CHECK(given <= whole);
	for (; given < whole; given++)
		give_one(division, parts);
	return 0;
}

/* A change by little, again and again, must not go to the same site each time. The units stand in a row of length W, the sum of the weights, W / whole
 * apart and shifted by chance; each goes to the site into whose stretch of the row it falls. So the parts add up, each is what it should be within one unit, and
 * on average exactly that. */
int cross_apportion_change(uint64_t whole, const struct cross_division *division, uint64_t chance,
                           uint64_t parts[LIMIT_REPLICA_MEMBERS], struct err *err)
{
	enum { SPARE = 6 }; /* so that the sum of 64 weights has no more than 63 bits */
	wide sum = 0, before = 0, behind = 0;
	bool large = false;
	for (uint32_t i = 0; i < division->count; i++)
		large = large || division->shares[i].weight >> (63 - SPARE) != 0;
	for (uint32_t i = 0; i < division->count; i++)
		sum += division->shares[i].weight >> (large ? SPARE : 0);
	if (sum == 0)
		return err_set(err, ERR_INVALID, "nothing can be divided: all weights are 0");
	uint64_t shift = (uint64_t)(chance % sum);
	for (uint32_t i = 0; i < division->count; i++) {
		behind += division->shares[i].weight >> (large ? SPARE : 0);
		parts[i] = (uint64_t)((whole * behind + shift) / sum - (whole * before + shift) / sum);
		before = behind;
	}
	return 0;
}

static int apportion(uint64_t whole, const struct cross_division *division, const uint64_t *chance,
                     uint64_t parts[LIMIT_REPLICA_MEMBERS], struct err *err)
{
	return chance ? cross_apportion_change(whole, division, *chance, parts, err)
	              : cross_apportion(whole, division, parts, err);
}

static int divide(int64_t whole, const struct cross_division *division, const uint64_t *chance, int64_t *parts,
                  struct err *err)
{
	uint64_t magnitudes[LIMIT_REPLICA_MEMBERS];
	uint64_t magnitude = whole < 0 ? -(uint64_t)whole : (uint64_t)whole;
	int code = apportion(magnitude, division, chance, magnitudes, err);
	for (uint32_t i = 0; code == 0 && i < division->count; i++)
		parts[i] = (int64_t)(whole < 0 ? -magnitudes[i] : magnitudes[i]);
	return code;
}

int cross_divide(int64_t whole, const struct cross_division *division, int64_t parts[LIMIT_REPLICA_MEMBERS],
                 struct err *err)
{
	return divide(whole, division, NULL, parts, err);
}

int cross_divide_change(int64_t change, const struct cross_division *division, uint64_t chance,
                        int64_t parts[LIMIT_REPLICA_MEMBERS], struct err *err)
{
	return divide(change, division, &chance, parts, err);
}

/* ---- Divisions ------------------------------------------------------------------------------------------------------- */

void cross_division_evenly(const struct cross_site *sites, uint32_t count, struct cross_division *division)
{
	CHECK(count <= LIMIT_REPLICA_MEMBERS);
	division->count = count;
	for (uint32_t i = 0; i < count; i++) {
		division->shares[i].site = sites[i].id;
		division->shares[i].weight = 1;
	}
}

int cross_division_by_tags(const struct cross_site *sites, const struct str *tags, uint32_t count, struct str tag_name,
                           struct cross_division *division, struct err *err)
{
	CHECK(count <= LIMIT_REPLICA_MEMBERS);
	struct cross_number weights[LIMIT_REPLICA_MEMBERS], zero = {0};
	bool any = false;
	for (uint32_t i = 0; i < count; i++) {
		if (tags[i].length == 0)
			return err_set(err, ERR_INVALID,
			               TEXT_NAME_FMT " has no tag " TEXT_NAME_FMT ", which says how much each site gets",
			               TEXT_NAME(sites[i].name), TEXT_NAME(tag_name));
		if (cross_number_parse(tags[i], &weights[i], NULL) || weights[i].units < 0)
			return err_set(err, ERR_INVALID,
			               "the tag " TEXT_NAME_FMT " of " TEXT_NAME_FMT " is " TEXT_NAME_FMT
			               "; it has to be a number that is not negative, such as 4 or 1.5",
			               TEXT_NAME(tag_name), TEXT_NAME(sites[i].name), TEXT_NAME(tags[i]));
		zero.scale = weights[i].scale > zero.scale ? weights[i].scale : zero.scale;
		any = any || weights[i].units > 0;
	}
	if (!any)
		return err_set(err, ERR_INVALID, "the tag " TEXT_NAME_FMT " is 0 at all sites: nothing can be divided by it",
		               TEXT_NAME(tag_name));
	division->count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (!cross_number_add(&weights[i], zero)) /* to the same decimal places */
			return err_set(err, ERR_LIMIT,
			               "the tag " TEXT_NAME_FMT " of " TEXT_NAME_FMT " is too large, at %u decimal places",
			               TEXT_NAME(tag_name), TEXT_NAME(sites[i].name), zero.scale);
		division->shares[i].site = sites[i].id;
		division->shares[i].weight = (uint64_t)weights[i].units;
	}
	return 0;
}

void cross_division_put(const struct cross_division *division, struct buf *out)
{
	put_number(out, DIVISION_VERSION, 1);
	put_number(out, division->count, 1);
	for (uint32_t i = 0; i < division->count; i++) {
		put_number(out, division->shares[i].site, 8);
		put_number(out, division->shares[i].weight, 8);
	}
}

static uint32_t index_of(const struct cross_division *division, site_id site)
{
	uint32_t i = 0;
	while (i < division->count && division->shares[i].site != site)
		i++;
	return i;
}

int cross_division_parse(struct str bytes, struct cross_division *division, struct err *err)
{
	struct reader reader = reader_of(bytes);
	uint8_t version = read_8(&reader), count = read_8(&reader);
	if (!reader.failed && version != DIVISION_VERSION)
		return err_set(err, ERR_VERSION, "a division in format %u; this agent reads %d", version, DIVISION_VERSION);
	bool sound = !reader.failed && count > 0 && count <= LIMIT_REPLICA_MEMBERS &&
	             bytes.length == DIVISION_HEAD + (size_t)count * DIVISION_SHARE;
	wide sum = 0;
	division->count = 0;
	for (uint32_t i = 0; sound && i < count; i++) {
		site_id site = read_64(&reader);
		uint64_t weight = read_64(&reader);
		sound = weight <= WEIGHT_MOST && index_of(division, site) == i;
		division->shares[i].site = site;
		division->shares[i].weight = weight;
		division->count++;
		sum += weight;
	}
	if (!sound || sum == 0) {
		division->count = 0;
		return err_set(err, ERR_CORRUPT, "a division makes no sense");
	}
	return 0;
}

int cross_division_add(struct cross_division *division, site_id site, uint64_t weight, struct err *err)
{
	if (index_of(division, site) < division->count)
		return err_set(err, ERR_CONFLICT, "the site has a part already");
	if (division->count == LIMIT_REPLICA_MEMBERS)
		return err_set(err, ERR_LIMIT, "a resource has parts at no more than %d sites", LIMIT_REPLICA_MEMBERS);
	if (weight > WEIGHT_MOST)
		return err_set(err, ERR_LIMIT, "a weight has to fit into 63 bits");
	division->shares[division->count].site = site;
	division->shares[division->count++].weight = weight;
	return 0;
}

int cross_division_withdraw(struct cross_division *division, site_id site, struct err *err)
{
	uint32_t at = index_of(division, site);
	if (at == division->count)
		return err_set(err, ERR_NOT_FOUND, "the site has no part");
	wide left = 0;
	for (uint32_t i = 0; i < division->count; i++)
		left += i == at ? 0 : division->shares[i].weight;
	if (left == 0)
		return err_set(err, ERR_INVALID, "no other site has a weight: what this one has could go nowhere");
	memmove(&division->shares[at], &division->shares[at + 1], (division->count - at - 1) * sizeof(division->shares[0]));
	division->count--;
	return 0;
}

uint64_t cross_division_mean(const struct cross_division *division)
{
	wide sum = 0;
	for (uint32_t i = 0; i < division->count; i++)
		sum += division->shares[i].weight;
	uint64_t mean = division->count > 0 ? (uint64_t)(sum / division->count) : 0;
	return mean > 0 ? mean : 1;
}

/* ---- Bodies ---------------------------------------------------------------------------------------------------------- */

struct way {
	const struct cross_division *division;
	uint32_t share;         /* whose part */
	const uint64_t *chance; /* of a change; NULL: a whole is divided */
};

static int divide_number(struct str text, const struct way *way, struct buf *out, struct err *err)
{
	struct cross_number number;
	int64_t parts[LIMIT_REPLICA_MEMBERS];
	int code = cross_number_parse(text, &number, err);
	if (code == 0)
		code = divide(number.units, way->division, way->chance, parts, err);
	if (code == 0)
		cross_number_put((struct cross_number){parts[way->share], number.scale}, out);
	return code;
}

static int divide_list(struct str text, const struct way *way, struct buf *out, struct err *err)
{
	struct cross_list list;
	uint32_t *owners = NULL;
	uint64_t room[LIMIT_REPLICA_MEMBERS];
	int code = cross_list_read(text, &list, err);
	if (code == 0) {
		owners = calloc((size_t)list.count + 1, sizeof(*owners));
		CHECK(owners != NULL);
		code = apportion(list.count, way->division, way->chance, room, err);
	}
	if (code == 0) {
		code = cross_list_place(&list, way->division, room, owners, err);
	}
	const char *separator = "";
	buf_put_char(out, '[');
	for (uint32_t i = 0; code == 0 && i < list.count; i++) {
		if (owners[i] != way->share)
			continue;
		buf_put(out, str_of(separator));
		buf_put(out, list.elements[i]);
		separator = ",";
	}
	buf_put_char(out, ']');
	free(owners);
	cross_list_free(&list);
	return code;
}

static int divide_field(struct str body, struct str pointer, const struct cross_place *place, const struct way *way,
                        struct buf *out, struct err *err)
{
	struct str value = str_make(body.at + place->at, place->length);
	int code;
	if (place->kind == GLUE_JSON_NUMBER)
		code = divide_number(value, way, out, err);
	else if (place->kind == GLUE_JSON_ARRAY)
		code = divide_list(value, way, out, err);
	else
		code = err_set(err, ERR_INVALID, "only a number or a list can be divided");
	return code ? err_context(err, code, "dividing " TEXT_NAME_FMT, TEXT_NAME(pointer)) : 0;
}

/* The places of a body in the order in which they stand in it. */
static void sort_places(const struct cross_place *places, uint32_t count, uint32_t *order)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;
		for (; at > 0 && places[order[at - 1]].at > places[i].at; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static int divide_body(struct str body, const struct cross_fields *fields, const struct way *way, struct buf *out,
                       struct err *err)
{
	struct cross_place places[LIMIT_CROSS_FIELDS];
	uint32_t order[LIMIT_CROSS_FIELDS];
	size_t before = out->length, copied = 0;
	if (way->share == way->division->count)
		return err_set(err, ERR_NOT_FOUND, "this site has no part of it");
	int code = cross_find(body, fields, places, err);
	if (code)
		return code;
	sort_places(places, fields->count, order);
	for (uint32_t i = 0; code == 0 && i < fields->count; i++) {
		const struct cross_place *place = &places[order[i]];
		if (!place->found || place->is_null)
			continue;
		if (place->at < copied) {
			code =
				err_set(err, ERR_INVALID, TEXT_NAME_FMT " is inside of, or the same as, another field that is divided",
			            TEXT_NAME(fields->pointers[order[i]]));
			break;
		}
		buf_put(out, str_make(body.at + copied, place->at - copied));
		code = divide_field(body, fields->pointers[order[i]], place, way, out, err);
		copied = place->at + place->length;
	}
	if (code) {
		cross_cut(out, before);
		return code;
	}
	buf_put(out, str_make(body.at + copied, body.length - copied));
	return 0;
}

int cross_divide_body(struct str body, const struct cross_fields *fields, const struct cross_division *division,
                      site_id site, struct buf *out, struct err *err)
{
	struct way way = {division, index_of(division, site), NULL};
	return divide_body(body, fields, &way, out, err);
}

int cross_divide_change_body(struct str body, const struct cross_fields *fields, const struct cross_division *division,
                             site_id site, uint64_t chance, struct buf *out, struct err *err)
{
	struct way way = {division, index_of(division, site), &chance};
	return divide_body(body, fields, &way, out, err);
}
