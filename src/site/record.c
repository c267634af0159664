/* Records: what somebody said once and signed (docs/protocol/gossip.md, "Records").
 *
 *     version 1 | kind 1 | subject 8 | version of the record 8 | length 2 | body | length 2 | signature
 *
 * The signature is over everything before its length. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/check.h"

void site_record_begin(struct buf *out, uint8_t kind, site_id subject, uint64_t version, struct str body)
{
	CHECK(body.length <= UINT16_MAX);
	put_number(out, SITE_RECORD_VERSION, 1);
	put_number(out, kind, 1);
	put_number(out, subject, 8);
	put_number(out, version, 8);
	put_number(out, body.length, 2);
	buf_put(out, body);
}

void site_record_finish(struct buf *out, struct str signature)
{
	CHECK(signature.length <= UINT16_MAX);
	put_number(out, signature.length, 2);
	buf_put(out, signature);
}

static int check_head(const struct site_record *record, struct err *err)
{
	if (record->kind < SITE_CARD || record->kind >= SITE_RECORD_KINDS)
		return err_set(err, ERR_VERSION, "a record of kind %u; known are 1 to %d", record->kind, SITE_RECORD_KINDS - 1);
	if (record->subject == 0)
		return err_set(err, ERR_CORRUPT, "a record without a subject");
	return 0;
}

int site_record_parse(struct str bytes, struct site_record *record, struct err *err)
{
	if (bytes.length > LIMIT_SITE_CARD_BYTES)
		return err_set(err, ERR_LIMIT, "a record of %zu bytes; at most %d are accepted", bytes.length,
		               LIMIT_SITE_CARD_BYTES);
	struct reader reader = reader_of(bytes);
	uint8_t version = read_8(&reader);
	if (!reader.failed && version != SITE_RECORD_VERSION)
		return err_set(err, ERR_VERSION, "a record in format %u; this agent reads %d", version, SITE_RECORD_VERSION);
	struct site_record parsed = {.kind = read_8(&reader), .bytes = bytes};
	parsed.subject = read_64(&reader);
	parsed.version = read_64(&reader);
	parsed.body = read_bytes(&reader, read_16(&reader));
	parsed.signed_bytes = str_make(bytes.at, bytes.length - reader.left);
	parsed.signature = read_bytes(&reader, read_16(&reader));
	if (reader.failed)
		return err_set(err, ERR_CORRUPT, "a record that is cut short at %zu bytes", bytes.length);
	if (reader.left > 0)
		return err_set(err, ERR_CORRUPT, "a record with %zu bytes behind its end", reader.left);
	int code = check_head(&parsed, err);
	if (code == 0)
		*record = parsed;
	return code;
}
