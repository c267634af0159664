/* Marks of elements, and which replicas were shown in a list of several sites. */
#include "glue/gather_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { ID_BYTES = GLUE_GATHER_ID_BYTES };

/* ---- Marks ------------------------------------------------------------------------------------------------------- */

static bool id_parse(struct str text, unsigned char id[ID_BYTES])
{
	uint32_t digits = 0;
	unsigned any = 0;
	for (size_t i = 0; i < text.length; i++) {
		int value = str_hex_value(text.at[i]);
		if (text.at[i] == '-')
			continue;
		if (value < 0 || digits == 2 * ID_BYTES)
			return false;
		id[digits / 2] = (unsigned char)(digits % 2 ? id[digits / 2] << 4 | value : value);
		any |= (unsigned)value;
		digits++;
	}
	return digits == 2 * ID_BYTES && any != 0;
}

void gather_mark_parse(struct str text, struct gather_mark *mark)
{
	const char *semicolon = text.length > 0 ? memchr(text.at, ';', text.length) : NULL;
	size_t length = semicolon ? (size_t)(semicolon - text.at) : text.length;
	struct str says = str_make(text.at + length, text.length - length);
	const char *more = says.length > 1 ? memchr(says.at + 1, ';', says.length - 1) : NULL;
	mark->kind = GATHER_UNMARKED;
	mark->says_bytes = 0;
	if (!id_parse(str_make(text.at, length), mark->id))
		return;
	if (more) {
		size_t rest = says.length - (size_t)(more + 1 - says.at);
		says.length = (size_t)(more - says.at);
		mark->says_bytes = (uint8_t)(rest <= GATHER_SAYS_BYTES ? rest : 0);
		memcpy(mark->says, more + 1, mark->says_bytes);
	}
	mark->kind = str_equal(says, str_of(GLUE_GATHER_MARK_PRIME))  ? GATHER_PRIME_PART
	             : str_equal(says, str_of(GLUE_GATHER_MARK_PART)) ? GATHER_PART
	                                                              : GATHER_REPLICA;
}

/* ---- Replicas ---------------------------------------------------------------------------------------------------- */

static bool id_is_free(const unsigned char id[ID_BYTES])
{
	static const unsigned char zeros[ID_BYTES];
	return memcmp(id, zeros, ID_BYTES) == 0;
}

/* Its place, or the free one where it belongs. */
static unsigned char *id_place(const struct gather_shown *shown, const unsigned char id[ID_BYTES])
{
	size_t at = hash_bytes(&shown->hash_key, str_make((const char *)id, ID_BYTES));
	for (;; at++) {
		unsigned char *place = shown->ids[at & (shown->size - 1)];
		if (id_is_free(place) || memcmp(place, id, ID_BYTES) == 0)
			return place;
	}
}

static void grow(struct gather_shown *shown)
{
	unsigned char(*before)[ID_BYTES] = shown->ids;
	size_t size = shown->size;
	shown->size = size ? 2 * size : 64;
	shown->ids = calloc(shown->size, ID_BYTES);
	CHECK(shown->ids);
	for (size_t i = 0; i < size; i++)
		if (!id_is_free(before[i]))
			memcpy(id_place(shown, before[i]), before[i], ID_BYTES);
	free(before);
}

enum gather_shown_result gather_shown_note(struct gather_shown *shown, const unsigned char id[ID_BYTES])
{
	if (2 * shown->count >= shown->size)
		grow(shown);
	unsigned char *place = id_place(shown, id);
	if (!id_is_free(place))
		return GATHER_SHOWN_BEFORE;
	if (shown->count == LIMIT_GATHER_REPLICAS)
		return GATHER_SHOWN_TOO_MANY;
	memcpy(place, id, ID_BYTES);
	shown->count++;
	return GATHER_SHOWN_NOW;
}

void gather_shown_free(struct gather_shown *shown)
{
	free(shown->ids);
	shown->ids = NULL;
	shown->size = shown->count = 0;
}
