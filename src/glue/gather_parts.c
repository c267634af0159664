/* Parts of divided resources in lists of several sites: kept until all sites were read, and handed out resource by resource. */
#include "glue/gather_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { ID_BYTES = GLUE_GATHER_ID_BYTES };

struct gather_kept {
	uint32_t site;
	bool prime;
	size_t at, length; /* in the text */
	size_t says, says_length;
	uint32_t next; /* of the same resource, and one more; 0: none */
};

struct gather_one {
	unsigned char id[ID_BYTES];
	size_t lead, lead_length;
	uint32_t first, last; /* of what is kept, and one more */
};

static void *grow(void *array, uint32_t *capacity, size_t item)
{
	*capacity = *capacity ? 2 * *capacity : 16;
	array = realloc(array, *capacity * item);
	CHECK(array);
	return array;
}

/* Its place in the table, or the free one where it belongs. */
static uint32_t *place_of(const struct gather_parts *parts, const unsigned char id[ID_BYTES])
{
	size_t at = hash_bytes(&parts->hash_key, str_make((const char *)id, ID_BYTES));
	for (;; at++) {
		uint32_t *place = &parts->places[at & (parts->places_size - 1)];
		if (*place == 0 || memcmp(parts->ones[*place - 1].id, id, ID_BYTES) == 0)
			return place;
	}
}

static void grow_places(struct gather_parts *parts)
{
	free(parts->places);
	parts->places_size = parts->places_size ? 2 * parts->places_size : 64;
	parts->places = calloc(parts->places_size, sizeof(*parts->places));
	CHECK(parts->places);
	for (uint32_t i = 0; i < parts->ones_count; i++)
		*place_of(parts, parts->ones[i].id) = i + 1;
}

static size_t keep_text(struct gather_parts *parts, struct str text)
{
	size_t at = parts->text.length;
	buf_put(&parts->text, text);
	return at;
}

static struct gather_one *one_of(struct gather_parts *parts, const unsigned char id[ID_BYTES], struct str lead)
{
	if (2 * (size_t)parts->ones_count >= parts->places_size)
		grow_places(parts);
	uint32_t *place = place_of(parts, id);
	if (*place != 0)
		return &parts->ones[*place - 1];
	if (parts->ones_count == parts->ones_capacity)
		parts->ones = grow(parts->ones, &parts->ones_capacity, sizeof(*parts->ones));
	struct gather_one *one = &parts->ones[parts->ones_count++];
	*one = (struct gather_one){.lead = keep_text(parts, lead), .lead_length = lead.length};
	memcpy(one->id, id, ID_BYTES);
	*place = parts->ones_count;
	return one;
}

bool gather_parts_keep(struct gather_parts *parts, const unsigned char id[ID_BYTES], const struct gather_part *part)
{
	if (parts->kept_count == LIMIT_GATHER_PARTS ||
	    parts->text.length + part->lead.length + part->text.length + part->says.length + 1 > LIMIT_GATHER_PARTS_BYTES)
		return false;
	struct gather_one *one = one_of(parts, id, part->lead);
	for (uint32_t i = one->first; i != 0; i = parts->kept[i - 1].next)
		if (parts->kept[i - 1].site == part->site)
			return true;
	if (parts->kept_count == parts->kept_capacity)
		parts->kept = grow(parts->kept, &parts->kept_capacity, sizeof(*parts->kept));
	struct gather_kept *kept = &parts->kept[parts->kept_count++];
	*kept = (struct gather_kept){.site = part->site, .prime = part->prime, .length = part->text.length + 1};
	kept->at = keep_text(parts, STR("{"));
	keep_text(parts, part->text);
	kept->says = keep_text(parts, part->says);
	kept->says_length = part->says.length;
	*(one->last ? &parts->kept[one->last - 1].next : &one->first) = parts->kept_count;
	one->last = parts->kept_count;
	return true;
}

bool gather_parts_take(struct gather_parts *parts, struct gather_whole *whole)
{
	if (parts->taken == parts->ones_count)
		return false;
	const struct gather_one *one = &parts->ones[parts->taken++];
	memcpy(whole->id, one->id, ID_BYTES);
	whole->lead = str_make(parts->text.at + one->lead, one->lead_length);
	whole->count = 0;
	for (uint32_t i = one->first; i != 0 && whole->count < LIMIT_GATHER_SITES; i = parts->kept[i - 1].next) {
		const struct gather_kept *kept = &parts->kept[i - 1];
		/* The sites come one after the other; only the prime's part has to get to the front. */
		uint32_t at = kept->prime ? 0 : whole->count;
		memmove(&whole->parts[at + 1], &whole->parts[at], (whole->count - at) * sizeof(whole->parts[0]));
		whole->parts[at] = (struct glue_gather_part){.site = kept->site,
		                                             .text = str_make(parts->text.at + kept->at, kept->length),
		                                             .says = str_make(parts->text.at + kept->says, kept->says_length)};
		whole->count++;
	}
	return true;
}

void gather_parts_free(struct gather_parts *parts)
{
	free(parts->kept);
	free(parts->ones);
	free(parts->places);
	buf_free(&parts->text);
	struct hash_key hash_key = parts->hash_key;
	*parts = (struct gather_parts){.hash_key = hash_key};
}
