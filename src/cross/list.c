/* Lists: their elements, and which site has which.
 *
 * Each site gets as many elements as cross_apportion() gives it of their number: the balance is exact. Which ones: every element has its
 * own ranking of the sites, by a hash of what it is (Thaler and Ravishankar, "rendezvous", 1998), and takes the first one that has room
 * left; those with a smaller hash choose first. Nothing of it depends on where an element stands in the list, nor on what was before. An element
 * that comes or goes moves the few that make room for it; a site that goes gives its elements to the others, and they keep theirs but
 * for the last to choose. A split into runs would keep the order, but the first site to leave would move half of everything.
 *
 * Equal elements are told apart by their number among equals. The hash is a fixed one: it has to be the same at all sites, in every
 * version. */
#include "cross/cross_int.h"

#include "glue/places.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

static const struct hash_key element_key = {0x63726f7373206c69, 0x7374206974656d73};

/* ---- Elements ------------------------------------------------------------------------------------------------------- */

static int add(struct cross_list *list, struct str element, struct err *err)
{
	if (list->count == LIMIT_CROSS_ELEMENTS)
		return err_set(err, ERR_LIMIT, "a list of more than %d elements", LIMIT_CROSS_ELEMENTS);
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 16;
		list->elements = realloc(list->elements, list->capacity * sizeof(*list->elements));
		CHECK(list->elements != NULL);
	}
	list->elements[list->count++] = element;
	return 0;
}

int cross_list_read(struct str text, struct cross_list *list, struct err *err)
{
	struct glue_json *json = malloc(sizeof(*json));
	CHECK(json != NULL);
	uint32_t depth = 0;
	size_t begin = 0;
	int code = 0;
	bool more = true;
	*list = (struct cross_list){0};
	glue_json_init(json, false);
	glue_json_feed(json, text);
	while (code == 0 && more) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_KEY: break;
		case GLUE_JSON_VALUE:
			if (depth == 1)
				begin = json->token_at;
			if (json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY)
				depth++;
			break;
		case GLUE_JSON_SCALAR:
			if (depth == 1)
				code = add(list, str_make(text.at + begin, json->token_at + json->token.length - begin), err);
			break;
		case GLUE_JSON_CLOSE:
			if (--depth == 1)
				code = add(list, str_make(text.at + begin, (size_t)(json->at - json->piece) - begin), err);
			break;
		case GLUE_JSON_MORE: glue_json_finish(json); break;
		case GLUE_JSON_END: more = false; break;
		case GLUE_JSON_BAD: code = glue_json_complain(json, err); break;
		}
	}
	free(json);
	return code;
}

void cross_list_free(struct cross_list *list)
{
	free(list->elements);
	*list = (struct cross_list){0};
}

int cross_element_canonical(struct str element, struct buf *out, struct err *err)
{
	struct glue_places *none = glue_places_new();
	int code = glue_places_without(none, element, out, err);
	glue_places_free(none);
	return code;
}

/* ---- Which site has which ------------------------------------------------------------------------------------------- */

struct chooser {
	uint64_t hash; /* of what the element is */
	uint32_t number;
};

static int by_hash(const void *a, const void *b)
{
	const struct chooser *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Equal elements have equal hashes, and stand behind each other: each gets another one, by its number among them. */
static void tell_apart(struct chooser *choosers, uint32_t count)
{
	uint32_t among = 0;
	uint64_t before = 0;
	for (uint32_t i = 0; i < count; i++) {
		among = i > 0 && choosers[i].hash == before ? among + 1 : 0;
		before = choosers[i].hash;
		uint64_t both[2] = {before, among};
		struct buf bytes = {0};
		put_number(&bytes, both[0], 8);
		put_number(&bytes, both[1], 8);
		choosers[i].hash = hash_bytes(&element_key, buf_str(&bytes));
		buf_free(&bytes);
	}
}

static uint64_t claim_of(uint64_t element, site_id site)
{
	char bytes[16];
	for (unsigned i = 0; i < 8; i++) {
		bytes[i] = (char)(unsigned char)(element >> 8 * (7 - i));
		bytes[8 + i] = (char)(unsigned char)(site >> 8 * (7 - i));
	}
	return hash_bytes(&element_key, str_make(bytes, sizeof(bytes)));
}

static uint32_t choose(uint64_t element, const struct cross_division *division, const uint64_t *room)
{
	uint32_t best = division->count;
	uint64_t best_claim = 0;
	for (uint32_t i = 0; i < division->count; i++) {
		if (room[i] == 0)
			continue;
		uint64_t claim = claim_of(element, division->shares[i].site);
		if (best == division->count || claim > best_claim) {
			best = i;
			best_claim = claim;
		}
	}
	CHECK(best < division->count); /* the parts add up */
	return best;
}

int cross_list_place(const struct cross_list *list, const struct cross_division *division, uint64_t *room,
                     uint32_t *owners, struct err *err)
{
	int code = 0;
	if (list->count == 0)
		return 0;
	struct chooser *choosers = calloc(list->count, sizeof(*choosers));
	CHECK(choosers != NULL);
	struct buf canonical = {0};
	for (uint32_t i = 0; code == 0 && i < list->count; i++) {
		buf_clear(&canonical);
		code = cross_element_canonical(list->elements[i], &canonical, err);
		choosers[i] = (struct chooser){hash_bytes(&element_key, buf_str(&canonical)), i};
	}
	if (code == 0) {
		qsort(choosers, list->count, sizeof(*choosers), by_hash);
		tell_apart(choosers, list->count);
		qsort(choosers, list->count, sizeof(*choosers), by_hash);
		for (uint32_t i = 0; i < list->count; i++) {
			uint32_t owner = choose(choosers[i].hash, division, room);
			room[owner]--;
			owners[choosers[i].number] = owner;
		}
	}
	buf_free(&canonical);
	free(choosers);
	return code;
}
