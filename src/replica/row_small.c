/* The short rows and the keys of all rows (docs/protocol/replica.md, "Rows"). */
#include "replica/replica_int.h"

int row_version_check(uint8_t version, const char *what, struct err *err)
{
	if (version >= REPLICA_ROW_OLDEST && version <= REPLICA_ROW_VERSION)
		return 0;
	return err_set(err, ERR_VERSION, "%s in format %u; this agent reads %d to %d", what, version, REPLICA_ROW_OLDEST,
	               REPLICA_ROW_VERSION);
}

static int begin(struct reader *reader, const char *what, struct err *err)
{
	uint8_t version = read_8(reader);
	if (reader->failed)
		return err_set(err, ERR_CORRUPT, "%s is empty", what);
	return row_version_check(version, what, err);
}

static int end(const struct reader *reader, bool sound, const char *what, struct err *err)
{
	if (reader->failed || reader->left > 0 || !sound)
		return err_set(err, ERR_CORRUPT, "%s makes no sense", what);
	return 0;
}

static struct replica_id read_id(struct reader *reader)
{
	struct replica_id id = {{0}};
	struct str bytes = read_bytes(reader, sizeof(id.bytes));
	if (bytes.length == sizeof(id.bytes))
		memcpy(id.bytes, bytes.at, sizeof(id.bytes));
	return id;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

void key_row_put(struct buf *out, const struct key_row *row)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	op_key_put(out, &row->op);
	put_number(out, row->kind, 1);
	put_number(out, row->status, 2);
}

int key_row_parse(struct str bytes, struct key_row *row, struct err *err)
{
	struct reader reader = reader_of(bytes);
	int code = begin(&reader, "the row of an Idempotency-Key", err);
	if (code)
		return code;
	row->op.replicant = read_id(&reader);
	row->op.site = read_64(&reader);
	row->op.number = read_32(&reader);
	row->kind = read_8(&reader);
	row->status = read_16(&reader);
	return end(&reader, row->kind <= REPLICA_UNKNOWN, "the row of an Idempotency-Key", err);
}

void local_row_put(struct buf *out, struct replica_id id)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	buf_put(out, id_str(&id));
}

int replica_local_parse(struct str row, struct replica_id *id)
{
	struct reader reader = reader_of(row);
	int code = begin(&reader, "the row of a local id", NULL);
	if (code)
		return code;
	*id = read_id(&reader);
	return end(&reader, true, "the row of a local id", NULL);
}

void moved_row_put(struct buf *out, const struct replica_op_id *op)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	op_key_put(out, op);
}

int moved_row_parse(struct str bytes, struct replica_op_id *op, struct err *err)
{
	struct reader reader = reader_of(bytes);
	int code = begin(&reader, "the row of an operation that became another one", err);
	if (code)
		return code;
	op->replicant = read_id(&reader);
	op->site = read_64(&reader);
	op->number = read_32(&reader);
	return end(&reader, op->number > 0, "the row of an operation that became another one", err);
}

void meta_row_put(struct buf *out, const struct meta_row *row)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	put_number(out, row->clock, 8);
	put_number(out, row->tasks, 8);
}

int meta_row_parse(struct str bytes, struct meta_row *row, struct err *err)
{
	struct reader reader = reader_of(bytes);
	int code = begin(&reader, "the row of the clock", err);
	if (code)
		return code;
	row->clock = read_64(&reader);
	row->tasks = read_64(&reader);
	/* A clock at its end could not go on. */
	return end(&reader, row->clock < UINT64_MAX >> 1 && row->tasks < UINT64_MAX >> 1, "the row of the clock", err);
}

void blob_row_put(struct buf *out, bool here)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	put_number(out, here, 1);
}

int blob_row_parse(struct str bytes, bool *here, struct err *err)
{
	struct reader reader = reader_of(bytes);
	int code = begin(&reader, "the row of a blob", err);
	if (code)
		return code;
	uint8_t value = read_8(&reader);
	*here = value == 1;
	return end(&reader, value <= 1, "the row of a blob", err);
}

void blank_row_put(struct buf *out)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
}

int blank_row_parse(struct str bytes, struct err *err)
{
	struct reader reader = reader_of(bytes);
	int code = begin(&reader, "a row that only has a key", err);
	return code ? code : end(&reader, true, "a row that only has a key", err);
}

/* ---- Keys ---------------------------------------------------------------------------------------------------------- */

void op_key_put(struct buf *out, const struct replica_op_id *op)
{
	buf_put(out, id_str(&op->replicant));
	put_number(out, op->site, 8);
	put_number(out, op->number, 4);
}

bool op_key_parse(struct str key, struct replica_op_id *op)
{
	struct reader reader = reader_of(key);
	op->replicant = read_id(&reader);
	op->site = read_64(&reader);
	op->number = read_32(&reader);
	return !reader.failed && reader.left == 0;
}

void outbox_key_put(struct buf *out, site_id site, struct replica_id id)
{
	put_number(out, site, 8);
	buf_put(out, id_str(&id));
}

void blob_key_put(struct buf *out, struct str blob, const struct replica_op_id *op)
{
	buf_put(out, blob);
	op_key_put(out, op);
}

/* Names of up to 200 bytes, four of which would not fit into a key of the store: a key has the first two as they are, for
 * who looks at it, and a digest of what they belong to. */
static const struct hash_key NAME_KEYS[2] = {{0x6368656f70732072, 0x65706c696361206e},
                                             {0x6e616d6573206f66, 0x20636f7069657320}};

static void put_digest(struct buf *out, struct str text)
{
	for (size_t i = 0; i < 2; i++)
		put_number(out, hash_bytes(&NAME_KEYS[i], text), 8);
}

void replica_local_prefix(struct str service, struct str type, struct buf *prefix)
{
	put_text(prefix, service);
	put_text(prefix, type);
}

void replica_local_key(const struct replica_local *local, struct buf *key)
{
	struct buf rest = {0};
	replica_local_prefix(local->service, local->type, key);
	if (key->length + 1 + local->collection.length + local->id.length <= LIMIT_STORE_KEY_BYTES) {
		put_text(key, local->collection);
		buf_put(key, local->id);
		return;
	}
	put_text(&rest, local->collection);
	buf_put(&rest, local->id);
	put_digest(key, buf_str(&rest));
	buf_free(&rest);
}

void name_key_put(struct buf *out, const struct replicant *r)
{
	struct buf whole = {0};
	put_text(&whole, r->service);
	put_text(&whole, r->type);
	put_text(&whole, r->collection);
	put_text(&whole, r->name);
	if (whole.length <= LIMIT_STORE_KEY_BYTES) {
		buf_put(out, buf_str(&whole));
	} else {
		put_text(out, r->service);
		put_digest(out, buf_str(&whole));
	}
	buf_free(&whole);
}
