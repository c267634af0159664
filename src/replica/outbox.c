/* Peers, and what they are still to be told.
 *
 * 1. What is new goes at once, or a little later together with other things (sync.c says which). A message is written piece by
 *    piece while an event is handled, and sent at its end.
 * 2. What was not confirmed is a row in the outbox, and nothing else. After a while the outbox of a peer is gone through from
 *    its beginning; as long as the peer answers, message after message, each when the one before was answered.
 * 3. A peer that does not answer is tried less and less often. One that cannot be reached, as far as the host knows, gets one
 *    section now and then. So a thousand pending operations for a dead site cost rows, and no time.
 * 4. When it is met again (replica_met(), or it says something), its outbox is gone through at once. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { OUT_SOFT_BYTES = LIMIT_REPLICA_MESSAGE_BYTES / 2 }; /* a section of any kind still fits behind that */

/* ---- The table of peers ---------------------------------------------------------------------------------------------------- */

struct peer *peer_get(struct replica *replica, site_id site)
{
	uint32_t low = 0, high = replica->peers_count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (replica->peers[middle]->site == site)
			return replica->peers[middle];
		if (replica->peers[middle]->site < site)
			low = middle + 1;
		else
			high = middle;
	}
	struct peer *peer = calloc(1, sizeof(*peer));
	CHECK(peer != NULL);
	*peer = (struct peer){
		.site = site, .ready_us = UINT64_MAX, .try_us = UINT64_MAX, .retry_us = replica->options.retry_least_us};
	replica->peers =
		replica_grow(replica->peers, &replica->peers_capacity, replica->peers_count + 1, sizeof(struct peer *));
	memmove(replica->peers + low + 1, replica->peers + low, (replica->peers_count - low) * sizeof(struct peer *));
	replica->peers[low] = peer;
	replica->peers_count++;
	return peer;
}

void peers_free(struct replica *replica)
{
	for (uint32_t i = 0; i < replica->peers_count; i++) {
		free(replica->peers[i]->ready);
		buf_free(&replica->peers[i]->out);
		free(replica->peers[i]);
	}
	free(replica->peers);
}

/* ---- Messages --------------------------------------------------------------------------------------------------------------- */

static void send_out(struct replica *replica, struct peer *peer)
{
	if (peer->out.length == 0)
		return;
	CHECK(peer->out.length <= LIMIT_REPLICA_MESSAGE_BYTES);
	replica->counters.messages_sent++;
	replica->counters.bytes_sent += peer->out.length;
	replica->host.send(replica->host.context, peer->site, buf_str(&peer->out));
	buf_clear(&peer->out);
}

struct buf *peer_out(struct replica *replica, struct peer *peer)
{
	if (peer->out.length > OUT_SOFT_BYTES)
		send_out(replica, peer);
	if (peer->out.length == 0)
		sync_message_begin(&peer->out, hlc_tick(&replica->clock, replica->now.wall_ms));
	return &peer->out;
}

/* ---- What is owed ------------------------------------------------------------------------------------------------------------ */

static uint64_t jittered(struct replica *replica, uint64_t us)
{
	return us + replica_draw(replica) % (us / 4 + 1);
}

static void try_by(struct peer *peer, uint64_t at_us)
{
	if (peer->try_us > at_us)
		peer->try_us = at_us;
}

void peer_owe(struct replica *replica, struct replicant *r, uint32_t member, bool owed)
{
	struct member *to = &r->members[member];
	if (r->kind == REPLICANT_LIVE && !to->removed && owed == to->in_outbox)
		return;
	struct peer *peer = peer_get(replica, to->site);
	struct buf key = {0}, row = {0};
	outbox_key_put(&key, to->site, r->id);
	if (r->kind != REPLICANT_LIVE || to->removed)
		to->in_outbox = row_get(replica, REPLICA_OUTBOX, buf_str(&key), &row) == 0;
	if (owed && !to->in_outbox) {
		buf_clear(&row);
		blank_row_put(&row);
		replica->host.put(replica->host.context, REPLICA_OUTBOX, buf_str(&key), buf_str(&row));
		peer->owed++;
		if (peer->try_us == UINT64_MAX)
			peer->try_us = replica->now.us + jittered(replica, peer->retry_us);
	} else if (!owed && to->in_outbox) {
		replica->host.remove(replica->host.context, REPLICA_OUTBOX, buf_str(&key));
		peer->owed--;
		if (peer->owed == 0) {
			peer->try_us = UINT64_MAX;
			peer->passing = false;
		}
	}
	to->in_outbox = owed;
	buf_free(&key);
	buf_free(&row);
}

void peer_ready(struct replica *replica, struct replicant *r, uint32_t member, uint64_t at_us)
{
	struct member *to = &r->members[member];
	struct peer *peer = peer_get(replica, to->site);
	if (peer->ready_us > at_us)
		peer->ready_us = at_us;
	if (to->ready)
		return;
	to->ready = true;
	peer->ready = replica_grow(peer->ready, &peer->ready_capacity, peer->ready_count + 1, sizeof(*peer->ready));
	peer->ready[peer->ready_count++] = r->id;
}

void peer_heard(struct replica *replica, struct peer *peer)
{
	uint64_t least_us = replica->options.retry_least_us;
	bool was_silent = peer->retry_us > least_us;
	peer->heard_us = replica->now.us;
	peer->retry_us = least_us;
	if (peer->owed > 0 && peer->passing)
		try_by(peer, replica->now.us);
	else if (peer->owed > 0 && was_silent) /* two that take each other for silent would answer each other without end */
		try_by(peer, peer->tried_us + least_us > replica->now.us ? peer->tried_us + least_us : replica->now.us);
}

/* ---- Going through --------------------------------------------------------------------------------------------------------------- */

static void flush_ready(struct replica *replica, struct peer *peer)
{
	bool reachable = replica->host.reachable(replica->host.context, peer->site);
	peer->ready_us = UINT64_MAX;
	for (uint32_t i = 0; i < peer->ready_count; i++) {
		struct replicant *r;
		if (replicant_load(replica, peer->ready[i], &r) != 0 ||
		    (r->kind != REPLICANT_LIVE && r->kind != REPLICANT_GONE))
			continue;
		uint32_t member = member_index(r, peer->site);
		if (member == UINT32_MAX)
			continue;
		r->members[member].ready = false;
		if (r->kind == REPLICANT_GONE)
			sync_emit_gone(replica, peer, r->id, false);
		else if (reachable && !r->members[member].removed)
			sync_emit(replica, peer, r, member, false);
		else
			r->members[member].ack = false;
	}
	peer->ready_count = 0;
}

struct page {
	struct replica_id *ids;
	uint32_t count, most;
	bool more;
};

static bool take_row(void *context, struct str key, struct str row)
{
	struct page *page = context;
	(void)row;
	if (key.length != sizeof(site_id) + sizeof(struct replica_id))
		return true;
	if (page->count == page->most) {
		page->more = true;
		return false;
	}
	memcpy(page->ids[page->count++].bytes, key.at + sizeof(site_id), sizeof(struct replica_id));
	return true;
}

static void read_page(struct replica *replica, const struct peer *peer, struct page *page)
{
	struct buf prefix = {0}, from = {0};
	put_number(&prefix, peer->site, 8);
	buf_put(&from, buf_str(&prefix));
	if (peer->passing)
		buf_put(&from, id_str(&peer->cursor));
	if (replica->host.scan(replica->host.context, REPLICA_OUTBOX, buf_str(&prefix), buf_str(&from), take_row, page) !=
	    0)
		replica->broken = true;
	buf_free(&prefix);
	buf_free(&from);
}

static void try_one(struct replica *replica, struct peer *peer, struct replica_id id)
{
	struct replicant *r;
	int code = replicant_load(replica, id, &r);
	uint32_t member = code == 0 ? member_index(r, peer->site) : UINT32_MAX;
	if (member == UINT32_MAX) {
		struct buf key = {0};
		outbox_key_put(&key, peer->site, id);
		replica->host.remove(replica->host.context, REPLICA_OUTBOX, buf_str(&key));
		buf_free(&key);
		peer->owed -= peer->owed > 0;
	} else if (r->kind == REPLICANT_LEFT || r->members[member].removed) {
		members_answer(replica, r, member, true);
	} else if (r->kind == REPLICANT_GONE) {
		sync_emit_gone(replica, peer, id, true);
	} else if (!sync_owes(r, member)) {
		peer_owe(replica, r, member, false);
	} else {
		sync_emit(replica, peer, r, member, true);
	}
}

static void pass(struct replica *replica, struct peer *peer)
{
	bool reachable = replica->host.reachable(replica->host.context, peer->site);
	bool answered = peer->heard_us >= peer->tried_us && peer->heard_us > 0;
	struct page page = {.most = reachable ? REPLICA_PASS : 1};
	if (!answered)
		peer->passing = false; /* what was sent may be lost: from the beginning */
	page.ids = calloc(page.most, sizeof(*page.ids));
	CHECK(page.ids != NULL);
	read_page(replica, peer, &page);
	uint32_t tried = 0;
	while (tried < page.count && peer->out.length < OUT_SOFT_BYTES)
		try_one(replica, peer, page.ids[tried++]);
	peer->passing = page.count > 0 && (tried < page.count || page.more) && peer->owed > 0;
	if (peer->passing) {
		/* Past the last one that was tried. */
		peer->cursor = page.ids[tried > 0 ? tried - 1 : 0];
		for (size_t i = sizeof(peer->cursor.bytes); i-- > 0 && ++peer->cursor.bytes[i] == 0;)
			;
	}
	free(page.ids);
	uint64_t most = replica->options.retry_most_us;
	if (!answered && peer->tried_us > 0)
		peer->retry_us = peer->retry_us > most / 2 ? most : peer->retry_us * 2;
	if (!reachable)
		peer->retry_us = most;
	peer->tried_us = replica->now.us;
	peer->try_us = peer->owed > 0 ? replica->now.us + jittered(replica, peer->retry_us) : UINT64_MAX;
}

void peers_flush(struct replica *replica)
{
	for (uint32_t i = 0; i < replica->peers_count && !replica->broken; i++) {
		struct peer *peer = replica->peers[i];
		if (peer->ready_us <= replica->now.us)
			flush_ready(replica, peer);
		if (peer->try_us <= replica->now.us)
			pass(replica, peer);
		send_out(replica, peer);
	}
}

uint64_t peers_due(const struct replica *replica)
{
	uint64_t due = UINT64_MAX;
	for (uint32_t i = 0; i < replica->peers_count; i++) {
		const struct peer *peer = replica->peers[i];
		uint64_t at = peer->ready_us < peer->try_us ? peer->ready_us : peer->try_us;
		due = at < due ? at : due;
	}
	return due;
}

static bool count_row(void *context, struct str key, struct str row)
{
	struct replica *replica = context;
	struct reader reader = reader_of(key);
	(void)row;
	peer_get(replica, read_64(&reader))->owed++;
	return true;
}

int peers_start(struct replica *replica)
{
	int code = replica->host.scan(replica->host.context, REPLICA_OUTBOX, STR(""), STR(""), count_row, replica);
	for (uint32_t i = 0; i < replica->peers_count; i++)
		replica->peers[i]->try_us = replica->now.us + jittered(replica, REPLICA_SOON_US);
	return code;
}
