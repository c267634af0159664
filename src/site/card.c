/* The bodies of records: fields of a number, a length and a value (docs/protocol/gossip.md, "Bodies").
 *
 * A field that is not known is skipped: a later version may add some. One that is known is read strictly, and may come
 * only once unless it is a list. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/text.h"

enum card_field {
	CARD_NAME = 1,
	CARD_ADDRESS,
	CARD_VERSION,
	CARD_AUTHORITY,
	CARD_CERTIFICATE,
	CARD_SERVICE,
	CARD_TAG,
	CARD_BORN,
	CARD_FIELDS,
};

enum removal_field {
	REMOVAL_KIND = 1,
	REMOVAL_NAME,
	REMOVAL_SIGNER,
	REMOVAL_WHEN,
	REMOVAL_FIELDS,
};

enum root_field {
	ROOT_TRUSTED = 1,
	ROOT_CERTIFICATE,
	ROOT_SIGNER,
	ROOT_FIELDS,
};

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static void put_field(struct buf *out, uint8_t field, struct str value)
{
	put_number(out, field, 1);
	put_number(out, value.length, 2);
	buf_put(out, value);
}

static void put_number_field(struct buf *out, uint8_t field, uint64_t number, unsigned bytes)
{
	put_number(out, field, 1);
	put_number(out, bytes, 2);
	put_number(out, number, bytes);
}

static void put_pair_field(struct buf *out, uint8_t field, struct str first, struct str second)
{
	put_number(out, field, 1);
	put_number(out, 1 + first.length + second.length, 2);
	put_number(out, first.length, 1);
	buf_put(out, first);
	buf_put(out, second);
}

struct field {
	uint8_t number;
	struct str value;
};

static bool next_field(struct reader *reader, struct field *field)
{
	if (reader->failed || reader->left == 0)
		return false;
	field->number = read_8(reader);
	field->value = read_bytes(reader, read_16(reader));
	return !reader->failed;
}

static int bad_field(struct err *err, const char *what, const struct field *field)
{
	return err_set(err, ERR_CORRUPT, "field %u of a %s has %zu bytes that make no sense", field->number, what,
	               field->value.length);
}

/* Which fields were there: of those that may come only once. Known ones have numbers below 32. */
struct seen {
	const char *what;
	uint8_t known;  /* fields from here on are not */
	uint32_t lists; /* a bit for each that may come again */
	uint32_t bits;
};

static int check_once(struct seen *seen, const struct field *field, struct err *err)
{
	if (field->number >= seen->known)
		return 0;
	uint32_t bit = UINT32_C(1) << field->number;
	if (seen->bits & bit & ~seen->lists)
		return err_set(err, ERR_CORRUPT, "field %u of a %s comes twice", field->number, seen->what);
	seen->bits |= bit;
	return 0;
}

static bool take_number(struct str value, unsigned bytes, uint64_t *number)
{
	struct reader reader = reader_of(value);
	*number = read_number(&reader, bytes);
	return value.length == bytes;
}

static bool take_flag(struct str value, bool *flag)
{
	uint64_t number;
	bool good = take_number(value, 1, &number) && number <= 1;
	*flag = number == 1;
	return good;
}

static bool take_when(struct str value, int64_t *when_ms)
{
	uint64_t number;
	bool good = take_number(value, 8, &number) && number <= INT64_MAX;
	*when_ms = (int64_t)number;
	return good;
}

static bool take_name(struct str value, bool may_be_empty, struct str *name)
{
	*name = value;
	return value.length <= LIMIT_AGENT_NAME_BYTES && (may_be_empty || value.length > 0) && text_is_printable(value);
}

static bool take_pair(struct str value, struct str *first, struct str *second)
{
	struct reader reader = reader_of(value);
	struct str one = read_bytes(&reader, read_8(&reader));
	struct str two = read_rest(&reader);
	return !reader.failed && take_name(one, false, first) && take_name(two, true, second);
}

static bool take_address(struct str value, struct site_address *address)
{
	struct reader reader = reader_of(value);
	*address = (struct site_address){.family = read_8(&reader), .port = read_16(&reader)};
	size_t bytes = address->family == 4 ? 4 : 16;
	struct str ip = read_bytes(&reader, bytes);
	memcpy(address->ip, ip.at, ip.length);
	return !reader.failed && reader.left == 0 && (address->family == 4 || address->family == 6);
}

/* ---- Cards ------------------------------------------------------------------------------------------------------- */

static void put_address(struct buf *out, const struct site_address *address)
{
	size_t bytes = address->family == 4 ? 4 : 16;
	put_number(out, CARD_ADDRESS, 1);
	put_number(out, 3 + bytes, 2);
	put_number(out, address->family, 1);
	put_number(out, address->port, 2);
	buf_put(out, str_make((const char *)address->ip, bytes));
}

static void put_lists(struct buf *out, const struct site_card *card, size_t *services_bytes, size_t *tags_bytes)
{
	size_t start = out->length;
	for (uint32_t i = 0; i < card->services_count; i++)
		put_pair_field(out, CARD_SERVICE, card->services[i].service, card->services[i].version);
	*services_bytes = out->length - start;
	for (uint32_t i = 0; i < card->tags_count; i++)
		put_pair_field(out, CARD_TAG, card->tags[i].key, card->tags[i].value);
	*tags_bytes = out->length - start - *services_bytes;
}

static bool card_is_sound(const struct site_card *card)
{
	struct str ignored;
	bool sound = take_name(card->name, false, &ignored) && take_name(card->version, true, &ignored) &&
	             card->services_count <= LIMIT_AGENT_SERVICES && card->tags_count <= LIMIT_AGENT_TAGS &&
	             card->born_ms >= 0 && card->certificate.length <= LIMIT_SITE_CARD_BYTES &&
	             (card->address.family == 0 || card->address.family == 4 || card->address.family == 6);
	for (uint32_t i = 0; sound && i < card->services_count; i++)
		sound = take_name(card->services[i].service, false, &ignored) &&
		        take_name(card->services[i].version, true, &ignored);
	for (uint32_t i = 0; sound && i < card->tags_count; i++)
		sound = take_name(card->tags[i].key, false, &ignored) && take_name(card->tags[i].value, true, &ignored);
	return sound;
}

int site_card_encode(struct buf *out, const struct site_card *card, struct err *err)
{
	if (!card_is_sound(card))
		return err_set(err, ERR_INVALID,
		               "a card needs a name; names, versions and tags are printable and have at most %d bytes; "
		               "at most %d services and %d tags fit",
		               LIMIT_AGENT_NAME_BYTES, LIMIT_AGENT_SERVICES, LIMIT_AGENT_TAGS);
	size_t start = out->length, services_bytes, tags_bytes;
	put_field(out, CARD_NAME, card->name);
	if (card->address.family != 0)
		put_address(out, &card->address);
	put_field(out, CARD_VERSION, card->version);
	if (card->authority)
		put_number_field(out, CARD_AUTHORITY, 1, 1);
	put_number_field(out, CARD_BORN, (uint64_t)card->born_ms, 8);
	put_field(out, CARD_CERTIFICATE, card->certificate);
	put_lists(out, card, &services_bytes, &tags_bytes);
	size_t bytes = out->length - start;
	if (bytes <= SITE_BODY_BYTES)
		return 0;
	out->length = start;
	return err_set(err, ERR_LIMIT,
	               "the card of site " TEXT_NAME_FMT " has %zu bytes and has to fit into a datagram: at most %d. "
	               "The certificate takes %zu, the services %zu, the tags %zu: give it fewer or shorter ones",
	               TEXT_NAME(card->name), bytes, SITE_BODY_BYTES, card->certificate.length, services_bytes, tags_bytes);
}

/* Where the lists go; NULL: they are only counted. */
struct card_lists {
	struct site_offer *services;
	struct site_tag *tags;
};

static bool take_service(struct str value, struct site_card *card, const struct card_lists *lists)
{
	struct site_offer offer;
	if (!take_pair(value, &offer.service, &offer.version) || card->services_count >= LIMIT_AGENT_SERVICES)
		return false;
	if (lists->services)
		lists->services[card->services_count] = offer;
	card->services_count++;
	return true;
}

static bool take_tag(struct str value, struct site_card *card, const struct card_lists *lists)
{
	struct site_tag tag;
	if (!take_pair(value, &tag.key, &tag.value) || card->tags_count >= LIMIT_AGENT_TAGS)
		return false;
	if (lists->tags)
		lists->tags[card->tags_count] = tag;
	card->tags_count++;
	return true;
}

static bool take_card_field(const struct field *field, struct site_card *card, const struct card_lists *lists)
{
	switch (field->number) {
	case CARD_NAME: return take_name(field->value, false, &card->name);
	case CARD_ADDRESS: return take_address(field->value, &card->address);
	case CARD_VERSION: return take_name(field->value, true, &card->version);
	case CARD_AUTHORITY: return take_flag(field->value, &card->authority);
	case CARD_CERTIFICATE: card->certificate = field->value; return true;
	case CARD_SERVICE: return take_service(field->value, card, lists);
	case CARD_TAG: return take_tag(field->value, card, lists);
	case CARD_BORN: return take_when(field->value, &card->born_ms);
	default: return true;
	}
}

static int card_walk(struct str body, struct site_card *card, const struct card_lists *lists, struct err *err)
{
	struct reader reader = reader_of(body);
	struct field field;
	struct seen seen = {"card", CARD_FIELDS, 1u << CARD_SERVICE | 1u << CARD_TAG, 0};
	*card = (struct site_card){.name = STR(""), .version = STR(""), .certificate = STR("")};
	while (next_field(&reader, &field)) {
		int code = check_once(&seen, &field, err);
		if (code)
			return code;
		if (!take_card_field(&field, card, lists))
			return bad_field(err, "card", &field);
	}
	if (reader.failed)
		return err_set(err, ERR_CORRUPT, "a card that is cut short at %zu bytes", body.length);
	return card->name.length > 0 ? 0 : err_set(err, ERR_CORRUPT, "a card without a name");
}

int site_card_glance(struct str body, struct site_card *card, struct err *err)
{
	return card_walk(body, card, &(struct card_lists){NULL, NULL}, err);
}

int site_card_parse(struct arena *arena, struct str body, struct site_card *card, struct err *err)
{
	int code = site_card_glance(body, card, err);
	if (code)
		return code;
	struct card_lists lists = {.services = arena_array(arena, struct site_offer, card->services_count),
	                           .tags = arena_array(arena, struct site_tag, card->tags_count)};
	code = card_walk(body, card, &lists, err);
	card->services = lists.services;
	card->tags = lists.tags;
	return code;
}

/* ---- Removals ---------------------------------------------------------------------------------------------------- */

void site_removal_encode(struct buf *out, const struct site_removal *removal)
{
	put_number_field(out, REMOVAL_KIND, (uint64_t)removal->kind, 1);
	put_field(out, REMOVAL_NAME, removal->name);
	put_number_field(out, REMOVAL_SIGNER, removal->signer, 8);
	put_number_field(out, REMOVAL_WHEN, (uint64_t)removal->wall_ms, 8);
}

static bool take_removal_field(const struct field *field, struct site_removal *removal)
{
	uint64_t number;
	bool good = true;
	switch (field->number) {
	case REMOVAL_KIND:
		good = take_number(field->value, 1, &number) && (number == SITE_REVOKE || number == SITE_FORGET);
		removal->kind = number == SITE_FORGET ? SITE_FORGET : SITE_REVOKE;
		return good;
	case REMOVAL_NAME: return take_name(field->value, false, &removal->name);
	case REMOVAL_SIGNER:
		good = take_number(field->value, 8, &number);
		removal->signer = number;
		return good;
	case REMOVAL_WHEN: return take_when(field->value, &removal->wall_ms);
	default: return true;
	}
}

int site_removal_parse(struct str body, struct site_removal *removal, struct err *err)
{
	struct reader reader = reader_of(body);
	struct field field;
	struct seen seen = {"removal", REMOVAL_FIELDS, 0, 0};
	*removal = (struct site_removal){.name = STR("")};
	while (next_field(&reader, &field)) {
		int code = check_once(&seen, &field, err);
		if (code)
			return code;
		if (!take_removal_field(&field, removal))
			return bad_field(err, "removal", &field);
	}
	if (reader.failed)
		return err_set(err, ERR_CORRUPT, "a removal that is cut short at %zu bytes", body.length);
	if (removal->kind == 0 || removal->name.length == 0)
		return err_set(err, ERR_CORRUPT, "a removal without its kind or the name of the site");
	return 0;
}

/* ---- Roots ------------------------------------------------------------------------------------------------------- */

void site_root_encode(struct buf *out, const struct site_root *root)
{
	put_number_field(out, ROOT_TRUSTED, root->trusted ? 1 : 0, 1);
	put_number_field(out, ROOT_SIGNER, root->signer, 8);
	put_field(out, ROOT_CERTIFICATE, root->certificate);
}

static bool take_root_field(const struct field *field, struct site_root *root)
{
	uint64_t number;
	bool good;
	switch (field->number) {
	case ROOT_TRUSTED: return take_flag(field->value, &root->trusted);
	case ROOT_CERTIFICATE: root->certificate = field->value; return true;
	case ROOT_SIGNER:
		good = take_number(field->value, 8, &number);
		root->signer = number;
		return good && number != 0;
	default: return true;
	}
}

int site_root_parse(struct str body, struct site_root *root, struct err *err)
{
	struct reader reader = reader_of(body);
	struct field field;
	const uint32_t required = 1u << ROOT_TRUSTED | 1u << ROOT_SIGNER;
	struct seen seen = {"root", ROOT_FIELDS, 0, 0};
	*root = (struct site_root){.certificate = STR("")};
	while (next_field(&reader, &field)) {
		int code = check_once(&seen, &field, err);
		if (code)
			return code;
		if (!take_root_field(&field, root))
			return bad_field(err, "root", &field);
	}
	if (reader.failed)
		return err_set(err, ERR_CORRUPT, "a root that is cut short at %zu bytes", body.length);
	if ((seen.bits & required) != required)
		return err_set(err, ERR_CORRUPT, "a root without its signer, or without saying whether it is trusted");
	return 0;
}
