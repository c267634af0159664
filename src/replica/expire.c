/* What is kept for a time: tombstones, aliases, operations that became others, and Idempotency-Keys. There is a row in META for each, under the time at which it ends, so
 * that only what has ended is looked at. */
#include "replica/replica_int.h"

#include <stdlib.h>

enum { KEY_HEAD = 1 + 8 + 1 };

static uint64_t us_until(const struct replica *replica, uint64_t at_ms)
{
	uint64_t now_ms = replica->now.wall_ms;
	uint64_t wait_us = at_ms > now_ms ? (at_ms - now_ms) * 1000 : 0;
	return replica->now.us + (wait_us > REPLICA_EXPIRE_US ? wait_us : REPLICA_EXPIRE_US);
}

void expire_add(struct replica *replica, uint64_t at_ms, enum replica_table table, struct str key)
{
	struct buf expiry = {0}, row = {0};
	buf_put_char(&expiry, 'e');
	put_number(&expiry, at_ms, 8);
	put_number(&expiry, table, 1);
	buf_put(&expiry, key);
	blank_row_put(&row);
	replica->host.put(replica->host.context, REPLICA_META, buf_str(&expiry), buf_str(&row));
	buf_free(&expiry);
	buf_free(&row);
	uint64_t at_us = us_until(replica, at_ms);
	if (at_us < replica->expire_us)
		replica->expire_us = at_us;
}

struct expired {
	uint64_t now_ms, next_ms;
	struct buf keys[REPLICA_EXPIRIES];
	uint32_t count;
};

static bool collect(void *context, struct str key, struct str row)
{
	struct expired *expired = context;
	struct reader reader = reader_of(key);
	(void)row;
	read_8(&reader);
	uint64_t at_ms = read_64(&reader);
	if (at_ms > expired->now_ms || expired->count == REPLICA_EXPIRIES) {
		expired->next_ms = at_ms;
		return false;
	}
	if (key.length > KEY_HEAD)
		buf_put(&expired->keys[expired->count++], key);
	return true;
}

/* As long as what it leads to is there, and remembered. */
static bool is_alias_needed(struct replica *replica, struct replicant *r)
{
	struct replicant *other;
	if (r->kind != REPLICANT_ALIAS || replicant_load(replica, r->alias, &other) != 0)
		return false;
	expire_add(replica, replica->now.wall_ms + replica->options.tombstone_ms, REPLICA_REPLICANTS, id_str(&r->id));
	return true;
}

static void end_one(struct replica *replica, struct str expiry)
{
	struct str key = str_make(expiry.at + KEY_HEAD, expiry.length - KEY_HEAD);
	uint8_t table = (uint8_t)expiry.at[KEY_HEAD - 1];
	struct replicant *r;
	struct replica_id id;
	replica->host.remove(replica->host.context, REPLICA_META, expiry);
	if (table == REPLICA_KEYS) {
		key_forget(replica, key);
	} else if (table == REPLICA_META) {
		replica->host.remove(replica->host.context, REPLICA_META, key);
	} else if (table == REPLICA_REPLICANTS && key.length == sizeof(id.bytes)) {
		memcpy(id.bytes, key.at, sizeof(id.bytes));
		if (replicant_load(replica, id, &r) != 0 || r->kind == REPLICANT_LIVE || is_alias_needed(replica, r))
			return;
		if (r->kind == REPLICANT_LEFT && !members_left_for_good(r)) {
			expire_add(replica, replica->now.wall_ms + replica->options.tombstone_ms, REPLICA_REPLICANTS, key);
			return;
		}
		for (uint32_t i = 0; i < r->members_count && r->kind != REPLICANT_ALIAS; i++)
			if (i != r->self)
				peer_owe(replica, r, i, false);
		r->kind = REPLICANT_NONE;
		r->head_dirty = true;
		work_add(replica, r);
	}
}

void expire_tick(struct replica *replica)
{
	if (replica->expire_us > replica->now.us)
		return;
	struct expired *expired = calloc(1, sizeof(*expired));
	if (!expired)
		return;
	expired->now_ms = replica->now.wall_ms;
	if (replica->host.scan(replica->host.context, REPLICA_META, STR("e"), STR(""), collect, expired) != 0)
		replica->broken = true;
	for (uint32_t i = 0; i < expired->count; i++) {
		if (!replica->broken)
			end_one(replica, buf_str(&expired->keys[i]));
		buf_free(&expired->keys[i]);
	}
	replica->expire_us = expired->next_ms > 0 ? us_until(replica, expired->next_ms) : UINT64_MAX;
	if (expired->count == REPLICA_EXPIRIES)
		replica->expire_us = replica->now.us + 1;
	free(expired);
}
