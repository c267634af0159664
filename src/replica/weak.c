/* `weak`, with a body that is a blob: it is kept for a while, for those who are told once (docs/protocol/replica.md, "Weak").
 *
 * 1. A user's request runs here, with its blob. Accepted: the other members are told, once, and the blob is lent: it stays for
 *    `weak_lend_us`, in which they may begin to fetch it. What is being sent then goes on to its end.
 * 2. Who is told keeps the message in memory, and fetches the blob from the sender; the message is taken when it is here. If that takes
 *    longer than WEAK_WAITS times as long, both are dropped, and nobody is told.
 * 3. What was run needs its blob no more.
 *
 * A blob is needed by a row, as with any operation, but the rows are of this life only: at a start they are removed, and so is what
 * they needed. Nothing is tried again, neither here nor there. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { WEAK_WAITS = 60 };

struct loan {
	struct loan *next;
	struct replica_op_id op; /* of its row */
	uint8_t blob[REPLICA_BLOB_BYTES];
	uint64_t until_us;
	/* What waits for it; `from` 0: nothing. */
	site_id from;
	uint8_t flags;
	uint8_t members_count;
	struct buf rest;
};

static struct str blob_of(const struct loan *loan)
{
	return str_make((const char *)loan->blob, sizeof(loan->blob));
}

static uint32_t count(const struct replica *replica)
{
	uint32_t found = 0;
	for (const struct loan *loan = replica->loans; loan; loan = loan->next)
		found++;
	return found;
}

static struct loan *lend(struct replica *replica, struct replica_id id, struct str blob, uint64_t until_us)
{
	struct loan *loan = calloc(1, sizeof(*loan));
	CHECK(loan != NULL);
	loan->op = (struct replica_op_id){id, replica->options.self, REPLICA_LENT | (++replica->loans_made % REPLICA_LENT)};
	loan->until_us = until_us;
	memcpy(loan->blob, blob.at, sizeof(loan->blob));
	loan->next = replica->loans;
	replica->loans = loan;
	return loan;
}

uint32_t weak_need(struct replica *replica, const struct replicant *r, struct str blob)
{
	struct loan *loan = lend(replica, r->id, blob, UINT64_MAX);
	blob_row_set(replica, blob, &loan->op, true);
	return loan->op.number;
}

static void end(struct replica *replica, struct loan *loan)
{
	struct loan **at = &replica->loans;
	while (*at != loan)
		at = &(*at)->next;
	*at = loan->next;
	blob_row_clear(replica, blob_of(loan), &loan->op);
	buf_free(&loan->rest);
	free(loan);
}

void weak_ran(struct replica *replica, uint32_t number, bool lends)
{
	for (struct loan *loan = replica->loans, *next; loan && number != 0; loan = next) {
		next = loan->next;
		if (loan->op.number != number)
			continue;
		if (lends && count(replica) <= LIMIT_REPLICA_LOANS)
			loan->until_us = replica->now.us + replica->options.weak_lend_us;
		else
			end(replica, loan);
	}
}

bool weak_await(struct replica *replica, site_id from, const struct section *section, struct str rest,
                const struct replica_request *request, uint32_t *number)
{
	uint64_t until_us = replica->now.us + WEAK_WAITS * replica->options.weak_lend_us;
	if (count(replica) >= LIMIT_REPLICA_LOANS)
		return false;
	struct loan *loan = lend(replica, section->id, request->blob, until_us);
	*number = loan->op.number;
	if (blob_row_set(replica, request->blob, &loan->op, false))
		return true;
	loan->from = from;
	loan->flags = section->flags;
	loan->members_count = section->members_count;
	buf_put(&loan->rest, rest);
	replica->host.fetch(replica->host.context, request->blob, request->blob_bytes, from);
	return false;
}

void weak_came(struct replica *replica, struct str blob)
{
	for (struct loan *loan = replica->loans, *next; loan; loan = next) {
		next = loan->next; /* it may be ended */
		if (loan->from == 0 || !str_equal(blob_of(loan), blob))
			continue;
		struct section section = {.kind = SYNC_WEAK,
		                          .flags = loan->flags,
		                          .id = loan->op.replicant,
		                          .members_count = loan->members_count,
		                          .rest = reader_of(buf_str(&loan->rest))};
		site_id from = loan->from;
		loan->from = 0;
		receive_weak(replica, from, &section, loan->op.number);
	}
}

uint64_t weak_due(const struct replica *replica)
{
	uint64_t due = UINT64_MAX;
	for (const struct loan *loan = replica->loans; loan; loan = loan->next)
		due = loan->until_us < due ? loan->until_us : due;
	return due;
}

void weak_tick(struct replica *replica)
{
	for (struct loan *loan = replica->loans, *next; loan; loan = next) {
		next = loan->next;
		if (loan->until_us <= replica->now.us)
			end(replica, loan);
	}
}

struct lent_rows {
	char *keys; /* each a blob and the key of an operation */
	uint32_t count, capacity;
};

enum { LENT_KEY_BYTES = REPLICA_BLOB_BYTES + 16 + 8 + 4 };

static bool collect(void *context, struct str key, struct str row)
{
	struct lent_rows *rows = context;
	struct replica_op_id op;
	(void)row;
	if (key.length != LENT_KEY_BYTES ||
	    !op_key_parse(str_make(key.at + REPLICA_BLOB_BYTES, key.length - REPLICA_BLOB_BYTES), &op) ||
	    (op.number & REPLICA_WITHHELD) || !(op.number & REPLICA_LENT))
		return true;
	rows->keys = replica_grow(rows->keys, &rows->capacity, rows->count + 1, LENT_KEY_BYTES);
	memcpy(rows->keys + (size_t)rows->count++ * LENT_KEY_BYTES, key.at, LENT_KEY_BYTES);
	return true;
}

int weak_start(struct replica *replica)
{
	struct lent_rows rows = {0};
	int code = replica->host.scan(replica->host.context, REPLICA_BLOBS, STR(""), STR(""), collect, &rows);
	for (uint32_t i = 0; i < rows.count; i++) {
		const char *key = rows.keys + (size_t)i * LENT_KEY_BYTES;
		struct replica_op_id op;
		if (op_key_parse(str_make(key + REPLICA_BLOB_BYTES, LENT_KEY_BYTES - REPLICA_BLOB_BYTES), &op))
			blob_row_clear(replica, str_make(key, REPLICA_BLOB_BYTES), &op);
	}
	free(rows.keys);
	return code;
}

void weak_free(struct replica *replica)
{
	for (struct loan *loan = replica->loans, *next; loan; loan = next) {
		next = loan->next;
		buf_free(&loan->rest);
		free(loan);
	}
}
