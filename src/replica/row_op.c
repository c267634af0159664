/* The row of an operation, which is also how it travels (docs/protocol/replica.md, "Operations").
 *
 * A row is read in two steps: what orders it (stamp, `seen`, effect, class, facet) stays in memory while the replicant is
 * loaded; the request is read again when it is run or sent. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

static void put_long(struct buf *out, struct str bytes)
{
	put_number(out, bytes.length, 4);
	buf_put(out, bytes);
}

static struct str read_long(struct reader *reader, size_t most)
{
	uint32_t length = read_32(reader);
	if (length > most)
		reader->failed = true;
	return read_bytes(reader, reader->failed ? 0 : length);
}

void op_content_put(struct buf *out, const struct replica_class *class, const struct replica_request *request,
                    uint8_t flags)
{
	put_number(out, class->effect, 1);
	put_number(out, class->class, 1);
	put_number(out, class->facet, 2);
	put_number(out, (class->repeatable ? OP_REPEATABLE : 0) | (request->blob.length > 0 ? OP_BLOB : 0) | flags, 1);
	put_text(out, class->name);
	put_long(out, request->head);
	put_long(out, request->body);
	if (request->blob.length > 0) {
		buf_put(out, request->blob);
		put_number(out, request->blob_bytes, 8);
	}
	put_long(out, request->secret);
	put_number(out, request->references_count, 1);
	for (uint32_t i = 0; i < request->references_count; i++)
		buf_put(out, id_str(&request->references[i]));
}

void op_row_put(struct buf *out, uint64_t stamp, const uint32_t *seen, uint32_t members_count, struct str content)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	put_number(out, stamp, 8);
	put_number(out, members_count, 1);
	put_vector(out, seen, members_count);
	buf_put(out, content);
}

static void read_content(struct reader *reader, struct op_row *row)
{
	row->class.effect = read_8(reader);
	row->class.class = read_8(reader);
	row->class.facet = read_16(reader);
	row->flags = read_8(reader);
	row->class.repeatable = row->flags & OP_REPEATABLE;
	row->class.name = read_text(reader);
	row->request.head = read_long(reader, LIMIT_REPLICA_HEAD_BYTES);
	row->request.body = read_long(reader, LIMIT_REPLICA_BODY_BYTES);
	if (row->flags & OP_BLOB) {
		row->request.blob = read_bytes(reader, REPLICA_BLOB_BYTES);
		row->request.blob_bytes = read_64(reader);
	}
	row->request.secret = read_long(reader, LIMIT_REPLICA_SECRET_BYTES);
	row->request.references_count = read_8(reader);
	struct str references = read_bytes(reader, (size_t)row->request.references_count * sizeof(struct replica_id));
	row->request.references = (const struct replica_id *)(const void *)references.at;
	if (row->flags & OP_ADOPT)
		row->adopts = read_64(reader);
}

struct str op_content_of(const struct op_row *row, struct str bytes)
{
	size_t head = 1 + 8 + 1 + (size_t)row->members_count * 4;
	return str_make(bytes.at + head, bytes.length - head);
}

static bool content_is_sound(const struct reader *reader, const struct op_row *row)
{
	bool copy = row->class.effect == ORDER_ADOPT;
	return !reader->failed && reader->left == 0 && (row->class.effect < ORDER_EFFECTS || copy) &&
	       copy == ((row->flags & OP_ADOPT) != 0) && copy == (row->adopts != 0) &&
	       ((row->flags & OP_WITNESS) == 0 || copy) && row->class.class < LIMIT_REPLICA_CLASSES &&
	       (row->flags & ~OP_FLAGS) == 0 && row->class.name.length <= LIMIT_REPLICA_NAME_BYTES &&
	       (!(row->flags & OP_MERGE) || (row->class.effect == ORDER_RELATIVE && row->request.references_count == 1)) &&
	       row->request.references_count <= LIMIT_REPLICA_REFERENCES;
}

int op_content_parse(struct str content, struct op_row *row)
{
	struct reader reader = reader_of(content);
	*row = (struct op_row){0};
	read_content(&reader, row);
	return content_is_sound(&reader, row) ? 0 : ERR_CORRUPT;
}

int op_row_parse(struct str bytes, struct op_row *row, struct err *err)
{
	struct reader reader = reader_of(bytes);
	*row = (struct op_row){0};
	uint8_t version = read_8(&reader);
	if (!reader.failed && row_version_check(version, "an operation", err) != 0)
		return ERR_VERSION;
	row->stamp = read_64(&reader);
	row->members_count = read_8(&reader);
	row->seen = (const unsigned char *)read_bytes(&reader, (size_t)row->members_count * 4).at;
	read_content(&reader, row);
	if (!content_is_sound(&reader, row) || row->members_count == 0 || row->members_count > LIMIT_REPLICA_MEMBERS)
		return err_set(err, ERR_CORRUPT, "an operation of %zu bytes that makes no sense", bytes.length);
	return 0;
}

struct op *op_new(const struct op_row *row, uint32_t member, uint32_t number, uint32_t members_count, size_t bytes)
{
	if (row->members_count > members_count)
		return NULL;
	struct op *op = calloc(1, sizeof(*op) + members_count * sizeof(op->seen[0]));
	CHECK(op != NULL);
	*op = (struct op){.member = member,
	                  .number = number,
	                  .stamp = row->stamp,
	                  .adopts = row->adopts,
	                  .row_bytes = (uint32_t)bytes,
	                  .facet = row->class.facet,
	                  .effect = row->class.effect,
	                  .class = row->class.class,
	                  .flags = row->flags};
	struct reader reader = {row->seen, (size_t)row->members_count * 4, false};
	read_vector(&reader, op->seen, row->members_count);
	return op;
}

int op_check(const struct replica_class *class, const struct replica_request *request, struct err *err)
{
	const struct {
		const char *what;
		size_t length, most;
	} parts[] = {
		{"the name of the operation", class->name.length, LIMIT_REPLICA_NAME_BYTES},
		{"the head of the request", request->head.length, LIMIT_REPLICA_HEAD_BYTES},
		{"the body of the request", request->body.length, LIMIT_REPLICA_BODY_BYTES},
		{"the credentials of the request", request->secret.length, LIMIT_REPLICA_SECRET_BYTES},
	};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].length > parts[i].most)
			return err_set(err, ERR_LIMIT, "%s has %zu bytes; at most %zu can be replicated", parts[i].what,
			               parts[i].length, parts[i].most);
	if (request->references_count > LIMIT_REPLICA_REFERENCES)
		return err_set(err, ERR_LIMIT, "the request refers to %u replicated resources; at most %d can be",
		               request->references_count, LIMIT_REPLICA_REFERENCES);
	if (class->effect >= ORDER_EFFECTS || class->class >= LIMIT_REPLICA_CLASSES)
		return err_set(err, ERR_INVALID, "effect %u and class %u; there are %d effects and %d classes", class->effect,
		               class->class, ORDER_EFFECTS, LIMIT_REPLICA_CLASSES);
	if (request->blob.length != 0 && request->blob.length != REPLICA_BLOB_BYTES)
		return err_set(err, ERR_INVALID, "a blob is named by %d bytes, not %zu", REPLICA_BLOB_BYTES,
		               request->blob.length);
	return 0;
}
