/* Datagrams: writing them, and taking them apart (docs/protocol/gossip.md, "Messages").
 *
 * A datagram is checked as a whole before any of it is used. A section that is not known is skipped. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/text.h"

#include <math.h>

/* ---- Writing ------------------------------------------------------------------------------------------------------- */

static bool has_target(uint8_t type)
{
	return type == TYPE_ASK || type == TYPE_PASSED || type == TYPE_NACK;
}

void message_begin(struct buf *out, const struct message *message)
{
	put_number(out, SITE_WIRE_VERSION, 1);
	put_number(out, message->type, 1);
	put_number(out, message->incarnation, 4);
	put_number(out, message->card_version, 8);
	put_number(out, message->law, 4);
	if (message->type != TYPE_NEWS)
		put_number(out, message->sequence, 4);
	if (has_target(message->type))
		put_number(out, message->target, 8);
}

size_t section_begin(struct buf *out, enum section_tag tag)
{
	size_t at = out->length;
	put_number(out, tag, 1);
	put_number(out, 0, 2);
	return at;
}

void section_end(struct buf *out, size_t at)
{
	size_t length = out->length - at - SECTION_HEAD_BYTES;
	if (length == 0)
		out->length = at;
	else
		patch_16(out, at + 1, length);
}

/* Lengths in µs, three bytes each: 8 s to either side. */
enum { AXIS_MOST = 0x7fffff };

static uint64_t axis_number(float axis)
{
	float most = (float)AXIS_MOST;
	return (uint64_t)(int64_t)lrintf(fminf(fmaxf(axis, -most), most)) & 0xffffff;
}

void put_coordinate(struct buf *out, const struct site_coordinate *coordinate)
{
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		put_number(out, axis_number(coordinate->at[i]), 3);
	put_number(out, axis_number(coordinate->height), 3);
	put_number(out, (uint64_t)lrintf(fminf(coordinate->error * 32768.0f, 65535.0f)), 2);
}

void put_place(struct buf *out, const struct place *place)
{
	put_number(out, place->id, 8);
	put_number(out, place->stamp, 4);
	put_coordinate(out, &place->coordinate);
}

void put_status(struct buf *out, const struct status *status)
{
	put_number(out, status->id, 8);
	put_number(out, status->incarnation, 4);
	put_number(out, status->state, 1);
	put_number(out, status->card_version, 8);
	put_number(out, status->accuser, 8);
}

void put_item(struct buf *out, const struct item *item)
{
	put_number(out, item->kind, 1);
	put_number(out, item->subject, 8);
	put_number(out, item->version, 8);
	put_number(out, item->incarnation, 4);
	put_number(out, item->state, 1);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

static float read_axis(struct reader *reader)
{
	int32_t number = (int32_t)read_number(reader, 3);
	return (float)(number > AXIS_MOST ? number - 0x1000000 : number);
}

struct site_coordinate read_coordinate(struct reader *reader)
{
	struct site_coordinate coordinate;
	for (int i = 0; i < SITE_DIMENSIONS; i++)
		coordinate.at[i] = read_axis(reader);
	coordinate.height = read_axis(reader);
	coordinate.error = (float)read_16(reader) / 32768.0f;
	return coordinate;
}

struct place read_place(struct reader *reader)
{
	struct place place = {.id = read_64(reader)};
	place.stamp = read_32(reader);
	place.coordinate = read_coordinate(reader);
	return place;
}

struct status read_status(struct reader *reader)
{
	struct status status = {.id = read_64(reader)};
	status.incarnation = read_32(reader);
	status.state = read_8(reader);
	status.card_version = read_64(reader);
	status.accuser = read_64(reader);
	return status;
}

struct item read_item(struct reader *reader)
{
	struct item item = {.kind = read_8(reader)};
	item.subject = read_64(reader);
	item.version = read_64(reader);
	item.incarnation = read_32(reader);
	item.state = read_8(reader);
	return item;
}

/* ---- Checking ------------------------------------------------------------------------------------------------------ */

static bool is_kind(uint8_t kind)
{
	return kind >= SITE_CARD && kind < SITE_RECORD_KINDS;
}

static bool places_are_sound(struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		struct place place = read_place(&reader);
		if (reader.failed || place.id == 0 || !coordinate_is_sound(&place.coordinate))
			return false;
	}
	return true;
}

static bool statuses_are_sound(struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		struct status status = read_status(&reader);
		if (reader.failed || status.id == 0 || status.state > SITE_LEFT)
			return false;
	}
	return true;
}

static bool items_are_sound(struct reader reader)
{
	while (reader.left > 0) {
		struct item item = read_item(&reader);
		bool stateless = item.kind == SITE_CARD || (item.state == 0 && item.incarnation == 0);
		if (reader.failed || !is_kind(item.kind) || item.subject == 0 || item.state > SITE_LEFT || !stateless)
			return false;
	}
	return true;
}

static bool wants_are_sound(struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		uint8_t kind = read_8(&reader);
		if (read_64(&reader) == 0 || reader.failed || !is_kind(kind))
			return false;
	}
	return bytes.length <= (size_t)SITE_WANTS_SENT * WANT_BYTES;
}

static bool cell_is_sound(struct str bytes)
{
	struct reader reader = reader_of(bytes);
	unsigned bits = read_8(&reader);
	unsigned prefix = read_16(&reader);
	if (reader.failed || bits < SITE_BUCKET_BITS || bits > SITE_CELL_BITS || prefix >> bits != 0)
		return false;
	return items_are_sound(reader);
}

static bool coordinate_section_is_sound(struct str bytes)
{
	struct reader reader = reader_of(bytes);
	read_32(&reader);
	struct site_coordinate coordinate = read_coordinate(&reader);
	return !reader.failed && reader.left == 0 && (coordinate.error <= 0.0f || coordinate_is_sound(&coordinate));
}

static bool section_is_sound(const struct section *section)
{
	struct str bytes = section->bytes;
	switch (section->tag) {
	case SECTION_COORDINATE: return coordinate_section_is_sound(bytes);
	case SECTION_COORDINATES: return places_are_sound(bytes);
	case SECTION_RUMOURS: return statuses_are_sound(bytes);
	case SECTION_RECORD: return bytes.length > 0 && bytes.length <= LIMIT_SITE_CARD_BYTES;
	case SECTION_WANT: return wants_are_sound(bytes);
	case SECTION_DIGEST: return bytes.length == (size_t)SITE_BUCKETS * 4;
	case SECTION_CELL: return cell_is_sound(bytes);
	case SECTION_OFFER: return items_are_sound(reader_of(bytes));
	case SECTION_OUTCAST: return bytes.length <= OUTCAST_BYTES && text_is_printable(bytes);
	case SECTION_WAITED: return bytes.length == WAITED_BYTES;
	default: return true;
	}
}

static int parse_sections(struct reader *reader, struct message *message)
{
	while (reader->left > 0) {
		struct section section = {.tag = read_8(reader)};
		section.bytes = read_bytes(reader, read_16(reader));
		if (reader->failed || !section_is_sound(&section))
			return ERR_CORRUPT;
		if (section.tag == 0 || section.tag >= SECTION_TAGS)
			continue;
		if (message->sections_count >= SITE_SECTIONS)
			return ERR_CORRUPT;
		message->sections[message->sections_count++] = section;
	}
	return 0;
}

int message_parse(struct str bytes, struct message *message)
{
	if (bytes.length > LIMIT_SITE_DATAGRAM_BYTES)
		return ERR_CORRUPT;
	struct reader reader = reader_of(bytes);
	uint8_t version = read_8(&reader);
	if (!reader.failed && version != SITE_WIRE_VERSION)
		return ERR_VERSION;
	message->type = read_8(&reader);
	message->incarnation = read_32(&reader);
	message->card_version = read_64(&reader);
	message->law = read_32(&reader);
	message->sequence = message->type != TYPE_NEWS ? read_32(&reader) : 0;
	message->target = has_target(message->type) ? read_64(&reader) : 0;
	message->sections_count = 0;
	if (reader.failed || message->type < TYPE_PING || message->type >= TYPES)
		return ERR_CORRUPT;
	if (has_target(message->type) && message->target == 0)
		return ERR_CORRUPT;
	return parse_sections(&reader, message);
}
