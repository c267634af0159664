/* Messages on names, to the byte (docs/protocol/cross.md). */
#include "cross/names_int.h"

enum { ITEM_UNCHECKED = 1 };

void names_message_begin(struct buf *out, const struct message *message)
{
	put_number(out, NAMES_WIRE_VERSION, 1);
	put_number(out, message->kind, 1);
	buf_put(out, names_id_str(&message->container));
	put_number(out, message->term, 8);
}

static void read_id(struct reader *reader, struct replica_id *id)
{
	struct str bytes = read_bytes(reader, sizeof(id->bytes));
	if (bytes.length == sizeof(id->bytes))
		memcpy(id->bytes, bytes.at, sizeof(id->bytes));
}

int names_message_open(struct str bytes, struct message *message, struct reader *rest)
{
	*rest = reader_of(bytes);
	*message = (struct message){0};
	if (bytes.length > LIMIT_CROSS_MESSAGE_BYTES)
		return ERR_CORRUPT;
	uint8_t version = read_8(rest);
	message->kind = read_8(rest);
	read_id(rest, &message->container);
	message->term = read_64(rest);
	if (rest->failed)
		return ERR_CORRUPT;
	return version == NAMES_WIRE_VERSION ? 0 : ERR_VERSION;
}

static void put_claim(struct buf *out, const struct cross_claim *claim, uint64_t stamp)
{
	put_number(out, claim->type.length, 1);
	buf_put(out, claim->type);
	put_number(out, claim->name.length, 1);
	buf_put(out, claim->name);
	buf_put(out, names_id_str(&claim->child));
	put_number(out, stamp, 8);
}

static bool read_claim(struct reader *reader, const struct message *message, struct cross_claim *claim, uint64_t *stamp)
{
	claim->container = message->container;
	claim->type = read_bytes(reader, read_8(reader));
	claim->name = read_bytes(reader, read_8(reader));
	read_id(reader, &claim->child);
	*stamp = read_64(reader);
	return !reader->failed && claim->name.length > 0 && claim->name.length <= LIMIT_REPLICA_NAME_BYTES &&
	       claim->type.length <= LIMIT_REPLICA_NAME_BYTES;
}

void claim_item_put(struct buf *out, const struct claim_item *item)
{
	put_claim(out, &item->claim, item->stamp);
	put_number(out, item->state, 1);
	put_number(out, item->unchecked ? ITEM_UNCHECKED : 0, 1);
	put_number(out, item->nonce, 8);
}

bool claim_item_read(struct reader *reader, const struct message *message, struct claim_item *item)
{
	*item = (struct claim_item){0};
	if (!read_claim(reader, message, &item->claim, &item->stamp))
		return false;
	item->state = read_8(reader);
	item->unchecked = read_8(reader) & ITEM_UNCHECKED;
	item->nonce = read_64(reader);
	return !reader->failed && item->state <= CROSS_LOST;
}

void verdict_item_put(struct buf *out, const struct verdict_item *item)
{
	put_claim(out, &item->claim, item->stamp);
	put_number(out, item->kind, 1);
	put_number(out, item->unchecked ? ITEM_UNCHECKED : 0, 1);
	put_number(out, item->nonce, 8);
	buf_put(out, names_id_str(&item->holder));
	put_number(out, item->holder_site, 8);
}

bool verdict_item_read(struct reader *reader, const struct message *message, struct verdict_item *item)
{
	*item = (struct verdict_item){0};
	if (!read_claim(reader, message, &item->claim, &item->stamp))
		return false;
	item->kind = read_8(reader);
	item->unchecked = read_8(reader) & ITEM_UNCHECKED;
	item->nonce = read_64(reader);
	read_id(reader, &item->holder);
	item->holder_site = read_64(reader);
	return !reader->failed && item->kind > 0 && item->kind < VERDICT_KINDS;
}
