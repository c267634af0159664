/* Rows: refused with a reason, or taken and the same when written again; and a store that somebody has damaged.
 *
 * The first byte says what the rest is: a row of one of the kinds; or, from 8 on, what is put in the place of a good row of one of the
 * tables before the room is started. */
#include "replica_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct replica_now now = {.us = 1000000, .wall_ms = 1700000000000};

static void check_told(int code, const struct err *err)
{
	CHECK((code == ERR_CORRUPT || code == ERR_VERSION) && err->code == code && err->text[0] != '\0');
}

/* Written again, it is of the latest format. */
static bool is_same(const struct buf *again, struct str bytes)
{
	return again->length == bytes.length && (unsigned char)bytes.at[0] >= REPLICA_ROW_OLDEST &&
	       again->at[0] == REPLICA_ROW_VERSION && memcmp(again->at + 1, bytes.at + 1, bytes.length - 1) == 0;
}

static void check_op(struct str bytes)
{
	struct op_row row;
	struct err err = {0};
	struct buf again = {0}, content = {0};
	uint32_t seen[LIMIT_REPLICA_MEMBERS];
	int code = op_row_parse(bytes, &row, &err);
	if (code) {
		check_told(code, &err);
		return;
	}
	struct reader reader = {row.seen, (size_t)row.members_count * 4, false};
	read_vector(&reader, seen, row.members_count);
	op_content_put(&content, &row.class, &row.request, row.flags & (OP_REPAIR | OP_CONDITIONAL | OP_MERGE | OP_ADOPT));
	if (row.flags & OP_ADOPT)
		put_number(&content, row.adopts, 8);
	op_row_put(&again, row.stamp, seen, row.members_count, buf_str(&content));
	CHECK(is_same(&again, bytes));
	if (row.flags & OP_ADOPT)
		row.class.effect = ORDER_CREATE; /* no request has the other one */
	CHECK(op_check(&row.class, &row.request, NULL) == 0);
	buf_free(&again);
	buf_free(&content);
}

static struct replicant *blank(void)
{
	struct replicant *r = calloc(1, sizeof(*r));
	CHECK(r != NULL);
	arena_init(&r->order_arena, 0);
	r->queue_end = &r->queue;
	return r;
}

static void check_head(struct str bytes)
{
	struct replicant *r = blank();
	struct err err = {0};
	struct buf again = {0}, third = {0};
	int code = head_parse(bytes, r, fuzz_site_id(1), &err);
	if (code) {
		check_told(code, &err);
	} else {
		/* A vector may be written at length though it is `base`: what is written now is not. */
		struct replicant *other = blank();
		head_put(&again, r);
		CHECK(head_parse(buf_str(&again), other, fuzz_site_id(1), NULL) == 0);
		head_put(&third, other);
		CHECK(str_equal(buf_str(&again), buf_str(&third)));
		replicant_wipe(other);
		free(other);
	}
	replicant_wipe(r);
	free(r);
	buf_free(&again);
	buf_free(&third);
}

static void check_lane(struct str bytes)
{
	site_id members[3] = {fuzz_site_id(0), fuzz_site_id(1), fuzz_site_id(2)};
	struct replicant *r = blank();
	struct err err = {0};
	replicant_shape(r, members, 3, fuzz_site_id(1));
	int code = lane_parse(bytes, r, &err);
	if (code) {
		check_told(code, &err);
	} else {
		struct replicant *other = blank();
		struct buf again = {0}, third = {0};
		replicant_shape(other, members, 3, fuzz_site_id(1));
		lane_put(&again, r);
		CHECK(lane_parse(buf_str(&again), other, NULL) == 0);
		lane_put(&third, other);
		CHECK(str_equal(buf_str(&again), buf_str(&third)));
		replicant_wipe(other);
		free(other);
		buf_free(&again);
		buf_free(&third);
	}
	replicant_wipe(r);
	free(r);
}

static void check_key(struct str bytes)
{
	struct key_row row;
	struct err err = {0};
	struct buf again = {0};
	int code = key_row_parse(bytes, &row, &err);
	if (code)
		check_told(code, &err);
	else
		key_row_put(&again, &row);
	CHECK(code || is_same(&again, bytes));
	buf_free(&again);
}

static void check_meta(struct str bytes)
{
	struct meta_row row;
	struct err err = {0};
	struct buf again = {0};
	int code = meta_row_parse(bytes, &row, &err);
	if (code)
		check_told(code, &err);
	else
		meta_row_put(&again, &row);
	CHECK(code || is_same(&again, bytes));
	buf_free(&again);
}

static void check_blob(struct str bytes)
{
	bool here;
	struct err err = {0};
	int code = blob_row_parse(bytes, &here, &err);
	if (code)
		check_told(code, &err);
}

static void check_blank(struct str bytes)
{
	struct err err = {0};
	int code = blank_row_parse(bytes, &err);
	if (code)
		check_told(code, &err);
}

static void check_local(struct str bytes)
{
	struct replica_id id;
	struct buf again = {0};
	int code = replica_local_parse(bytes, &id);
	CHECK(code == 0 || code == ERR_CORRUPT || code == ERR_VERSION);
	if (code == 0)
		local_row_put(&again, id);
	CHECK(code || is_same(&again, bytes));
	buf_free(&again);
}

/* A replicant with an operation that the others do not have yet. */
static void fill(struct fuzz_host *host)
{
	struct replica *replica = fuzz_replica(host, now);
	CHECK(replica != NULL);
	fuzz_create(replica, host, STR("key"), now);
	replica_free(replica);
}

static void check_damaged(enum replica_table table, struct str bytes)
{
	struct fuzz_host host = {.random = 1};
	fill(&host);
	if (host.counts[table] == 0)
		fuzz_put(&host, table, STR("a key"), bytes);
	buf_clear(&host.rows[table][0].row);
	buf_put(&host.rows[table][0].row, bytes);
	struct replica *replica = fuzz_replica(&host, now);
	struct replica_now later = now;
	for (unsigned i = 0; replica && i < 40; i++) {
		later.us += 500000;
		later.wall_ms += 500;
		replica_tick(replica, later);
		fuzz_finish(replica, &host, i, later);
	}
	replica_free(replica);
	fuzz_free(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str bytes) = {check_op,   check_head, check_lane,  check_key,
	                                                   check_meta, check_blob, check_blank, check_local};
	if (size == 0)
		return 0;
	struct str bytes = size > 1 ? str_make((const char *)data + 1, size - 1) : STR("");
	if (data[0] < 8)
		checks[data[0]](bytes);
	else
		check_damaged(data[0] % REPLICA_TABLES, bytes);
	return 0;
}
