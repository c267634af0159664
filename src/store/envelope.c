/* The envelope of a value, and keys (docs/protocol/store.md). */
#include "store/store_int.h"

#include "base/bytes.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"

#include <stdio.h>

/* ---- Envelope ------------------------------------------------------------------------------------------------------- */

/* Against accidents only: who can write the file can write this, too. The key is in it, so that a row that turns up under
 * another key is noticed. */
static uint32_t checksum(struct str key, uint32_t version, struct str row)
{
	static const struct hash_key of_keys = {0x63686f6570732073, 0x746f7265206b6579};
	struct hash_key of_rows = {hash_bytes(&of_keys, key),
	                           0x746f726520726f77 ^ ((uint64_t)version << 8 | ENVELOPE_FORM)};
	uint64_t hash = hash_bytes(&of_rows, row);
	return (uint32_t)(hash ^ hash >> 32);
}

void envelope_put(struct buf *out, struct str key, uint32_t version, struct str row)
{
	CHECK(version <= LIMIT_STORE_ROW_VERSION);
	put_number(out, ENVELOPE_FORM, 1);
	put_number(out, version, 2);
	put_number(out, checksum(key, version, row), 4);
	buf_put(out, row);
}

int envelope_open(struct str key, struct str value, uint32_t *version, struct str *row, struct err *err)
{
	struct reader reader = reader_of(value);
	uint8_t form = read_8(&reader);
	*version = read_16(&reader);
	uint32_t sum = read_32(&reader);
	if (reader.failed)
		return err_set(err, ERR_CORRUPT, "cut short: %zu bytes, of which %d are the envelope", value.length,
		               ENVELOPE_BYTES);
	*row = read_rest(&reader);
	if (form != ENVELOPE_FORM || sum != checksum(key, *version, *row))
		return err_set(err, ERR_CORRUPT, "its check sum does not match");
	return 0;
}

/* ---- Keys ----------------------------------------------------------------------------------------------------------- */

void key_of_row(struct key *out, uint32_t space, struct str key)
{
	CHECK(space < SPACES && key.length < sizeof(out->bytes));
	out->bytes[0] = (char)(unsigned char)space;
	if (key.length > 0)
		memcpy(out->bytes + 1, key.at, key.length);
	out->length = key.length + 1;
}

/* A key in an index ends with 00 00; a zero byte in it is written as 00 ff. So the order stays what it was, no key is the
 * beginning of another one, and the key of the row can follow. */
int key_of_entry(struct key *out, uint32_t space, struct str index, const struct str *row, bool open)
{
	size_t at = 1;
	out->bytes[0] = (char)(unsigned char)space;
	for (size_t i = 0; i < index.length; i++) {
		if (at + 2 > sizeof(out->bytes))
			return ERR_LIMIT;
		out->bytes[at++] = index.at[i];
		if (index.at[i] == '\0')
			out->bytes[at++] = (char)0xff;
	}
	if (!open) {
		size_t rest = 2 + (row ? row->length : 0);
		if (at + rest > sizeof(out->bytes))
			return ERR_LIMIT;
		memset(out->bytes + at, 0, 2);
		if (row && row->length > 0)
			memcpy(out->bytes + at + 2, row->at, row->length);
		at += rest;
	}
	out->length = at;
	return 0;
}

int key_split(struct str entry, struct buf *index, struct str *row)
{
	buf_clear(index);
	for (size_t i = 1; i < entry.length; i++) {
		if (entry.at[i] != '\0') {
			buf_put_char(index, entry.at[i]);
			continue;
		}
		if (++i == entry.length)
			return ERR_CORRUPT;
		if (entry.at[i] == '\0') {
			*row = str_make(entry.at + i + 1, entry.length - i - 1);
			return 0;
		}
		if (entry.at[i] != (char)0xff)
			return ERR_CORRUPT;
		buf_put_char(index, '\0');
	}
	return ERR_CORRUPT;
}

const char *key_shown(struct str key, char out[KEY_SHOWN_BYTES])
{
	if (key.length > 0 && text_is_printable(key)) {
		snprintf(out, KEY_SHOWN_BYTES, TEXT_NAME_FMT, TEXT_NAME(key));
		return out;
	}
	enum { SHOWN = 32 };
	size_t at = 0;
	at += (size_t)snprintf(out, KEY_SHOWN_BYTES, "0x");
	for (size_t i = 0; i < key.length && i < SHOWN; i++)
		at += (size_t)snprintf(out + at, KEY_SHOWN_BYTES - at, "%02x", (unsigned char)key.at[i]);
	if (key.length > SHOWN)
		snprintf(out + at, KEY_SHOWN_BYTES - at, "…");
	return out;
}
