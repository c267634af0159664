/* Lists: ids in the order of their rows, a page at a time. Nothing is loaded for it. */
#include "replica/replica_int.h"

struct page {
	struct str after; /* key; "": from the first */
	bool (*take)(struct page *page, struct str key);
	struct replica_id *ids;
	struct replica_op_id *ops;
	uint32_t most;
	uint32_t count;
};

static bool take_id(struct page *page, struct str key)
{
	struct replica_id *id = &page->ids[page->count];
	if (key.length != sizeof(id->bytes))
		return false;
	memcpy(id->bytes, key.at, key.length);
	return true;
}

static bool take_op(struct page *page, struct str key)
{
	return op_key_parse(key, &page->ops[page->count]) && page->ops[page->count].number > 0; /* else a checkpoint */
}

static bool take_row(void *context, struct str key, struct str row)
{
	(void)row;
	struct page *page = context;
	if (!str_equal(key, page->after) && page->take(page, key))
		page->count++;
	return page->count < page->most;
}

static uint32_t read_page(struct replica *replica, enum replica_table table, struct str prefix, struct page *page)
{
	if (page->most > 0)
		replica->host.scan(replica->host.context, table, prefix, page->after, take_row, page);
	return page->count;
}

uint32_t replica_list(struct replica *replica, const struct replica_id *after, struct replica_id *ids, uint32_t most)
{
	struct page page = {.after = after ? id_str(after) : STR(""), .take = take_id, .ids = ids, .most = most};
	return read_page(replica, REPLICA_REPLICANTS, STR(""), &page);
}

uint32_t replica_list_ops(struct replica *replica, const struct replica_id *of, const struct replica_op_id *after,
                          struct replica_op_id *ops, uint32_t most)
{
	struct buf key = {0};
	struct replicant *r;
	if (of && replicant_resolve(replica, *of, &r) == 0)
		of = &r->id; /* those of an alias are what they became */
	if (after)
		op_key_put(&key, after);
	struct page page = {.after = buf_str(&key), .take = take_op, .ops = ops, .most = most};
	uint32_t count = read_page(replica, REPLICA_OPERATIONS, of ? id_str(of) : STR(""), &page);
	buf_free(&key);
	return count;
}
