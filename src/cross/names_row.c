/* Rows of names and their keys (docs/protocol/cross.md). */
#include "cross/names_int.h"

#include "base/check.h"

enum { CLAIM_UNCHECKED = 1, CLAIM_NOTED = 2, NAME_KEPT = 1, NAME_UNCHECKED = 2, NAME_ORPHAN = 4, LIST_OPTIMISTIC = 1 };

/* ---- Keys ------------------------------------------------------------------------------------------------------------- */

static void add(struct key *key, struct str bytes)
{
	CHECK(key->length + bytes.length <= sizeof(key->bytes));
	memcpy(key->bytes + key->length, bytes.at, bytes.length);
	key->length += bytes.length;
}

static void add_text(struct key *key, struct str text)
{
	CHECK(text.length <= LIMIT_REPLICA_NAME_BYTES);
	char length = (char)(unsigned char)text.length;
	add(key, str_make(&length, 1));
	add(key, text);
}

struct key key_of_name(const struct cross_claim *claim)
{
	struct key key = {0};
	add(&key, str_make((const char *)claim->container.bytes, 16));
	add_text(&key, claim->type);
	add_text(&key, claim->name);
	return key;
}

struct key key_of_claim(const struct cross_claim *claim)
{
	struct key key = key_of_name(claim);
	add(&key, str_make((const char *)claim->child.bytes, 16));
	return key;
}

static void read_id(struct reader *reader, struct replica_id *id)
{
	struct str bytes = read_bytes(reader, sizeof(id->bytes));
	if (bytes.length == sizeof(id->bytes))
		memcpy(id->bytes, bytes.at, sizeof(id->bytes));
}

static void put_id(struct buf *out, const struct replica_id *id)
{
	buf_put(out, names_id_str(id));
}

bool key_parse(struct str key, bool with_child, struct cross_claim *claim)
{
	struct reader reader = reader_of(key);
	*claim = (struct cross_claim){0};
	read_id(&reader, &claim->container);
	claim->type = read_bytes(&reader, read_8(&reader));
	claim->name = read_bytes(&reader, read_8(&reader));
	if (with_child)
		read_id(&reader, &claim->child);
	return !reader.failed && reader.left == 0 && claim->name.length > 0 &&
	       claim->name.length <= LIMIT_REPLICA_NAME_BYTES && claim->type.length <= LIMIT_REPLICA_NAME_BYTES;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------- */

void claim_row_put(const struct claim_row *row, struct buf *out)
{
	put_number(out, NAMES_ROW_VERSION, 1);
	put_number(out, row->state, 1);
	put_number(out, (row->unchecked ? CLAIM_UNCHECKED : 0u) | (row->noted ? CLAIM_NOTED : 0u), 1);
	put_number(out, row->stamp, 8);
	put_number(out, row->nonce, 8);
	put_id(out, &row->holder);
	put_number(out, row->holder_site, 8);
	put_number(out, row->old_length, 1);
	buf_put(out, str_make(row->old, row->old_length));
}

static bool ended(const struct reader *reader)
{
	return !reader->failed && reader->left == 0;
}

bool claim_row_parse(struct str bytes, struct claim_row *row)
{
	struct reader reader = reader_of(bytes);
	*row = (struct claim_row){0};
	uint8_t version = read_8(&reader);
	row->state = read_8(&reader);
	uint8_t flags = read_8(&reader);
	row->unchecked = flags & CLAIM_UNCHECKED;
	row->noted = flags & CLAIM_NOTED;
	row->stamp = read_64(&reader);
	row->nonce = read_64(&reader);
	read_id(&reader, &row->holder);
	row->holder_site = read_64(&reader);
	struct str old = read_bytes(&reader, read_8(&reader));
	if (old.length > sizeof(row->old))
		return false;
	row->old_length = (uint8_t)old.length;
	memcpy(row->old, old.at, old.length);
	return ended(&reader) && version == NAMES_ROW_VERSION && row->state <= CROSS_LOST;
}

void name_row_put(const struct name_row *row, struct buf *out)
{
	put_number(out, NAMES_ROW_VERSION, 1);
	put_number(out,
	           (row->kept ? NAME_KEPT : 0u) | (row->unchecked ? NAME_UNCHECKED : 0u) | (row->orphan ? NAME_ORPHAN : 0u),
	           1);
	put_id(out, &row->child);
	put_number(out, row->site, 8);
	put_number(out, row->stamp, 8);
	put_number(out, row->nonce, 8);
}

bool name_row_parse(struct str bytes, struct name_row *row)
{
	struct reader reader = reader_of(bytes);
	*row = (struct name_row){0};
	uint8_t version = read_8(&reader), flags = read_8(&reader);
	row->kept = flags & NAME_KEPT;
	row->unchecked = flags & NAME_UNCHECKED;
	row->orphan = flags & NAME_ORPHAN;
	read_id(&reader, &row->child);
	row->site = read_64(&reader);
	row->stamp = read_64(&reader);
	row->nonce = read_64(&reader);
	return ended(&reader) && version == NAMES_ROW_VERSION;
}

void rival_row_put(const struct rival_row *row, struct buf *out)
{
	put_number(out, NAMES_ROW_VERSION, 1);
	put_number(out, row->unchecked, 1);
	put_number(out, row->site, 8);
	put_number(out, row->stamp, 8);
	put_number(out, row->nonce, 8);
	put_number(out, row->had, 8);
}

bool rival_row_parse(struct str bytes, struct rival_row *row)
{
	struct reader reader = reader_of(bytes);
	*row = (struct rival_row){0};
	uint8_t version = read_8(&reader);
	row->unchecked = read_8(&reader);
	row->site = read_64(&reader);
	row->stamp = read_64(&reader);
	row->nonce = read_64(&reader);
	row->had = read_64(&reader);
	return ended(&reader) && version == NAMES_ROW_VERSION;
}

/* ---- Lists of sites ---------------------------------------------------------------------------------------------------- */

void container_put(const struct cross_container *list, struct buf *out)
{
	put_number(out, list->since, 8);
	put_number(out, list->optimistic ? LIST_OPTIMISTIC : 0, 1);
	put_number(out, list->count, 1);
	for (uint32_t i = 0; i < list->count; i++) {
		put_number(out, list->sites[i].site, 8);
		put_number(out, list->sites[i].joined, 8);
	}
}

bool container_read(struct reader *reader, struct cross_container *list)
{
	list->since = read_64(reader);
	list->optimistic = read_8(reader) & LIST_OPTIMISTIC;
	list->count = read_8(reader);
	if (list->count == 0 || list->count > LIMIT_REPLICA_MEMBERS || list->since > list->term)
		return false;
	for (uint32_t i = 0; i < list->count; i++) {
		list->sites[i].site = read_64(reader);
		list->sites[i].joined = read_64(reader);
		for (uint32_t k = 0; k < i; k++) {
			if (list->sites[k].site == list->sites[i].site)
				return false;
		}
	}
	return !reader->failed;
}
