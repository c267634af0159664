/* What is told to whom (docs/protocol/replica.md, "SYNC").
 *
 * A member is owed something on a replicant while it has not said that it has all operations known here, or has not confirmed our
 * last report. While that is so there is a row in the outbox, and outbox.c tries. At once:
 *   operations of this site's users, with what they had seen, go as soon as they are issued;
 *   a report, or an answer to who asked for one, goes a little later, so that several go together;
 *   what others issued goes to a third member only after a while: its issuer has most likely sent it.
 * What is on the way is not sent again until it is time to try again. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

bool sync_owes(const struct replicant *r, uint32_t member)
{
	const struct member *to = &r->members[member];
	if (member == r->self || to->removed || r->consistency == REPLICA_WEAK ||
	    vector_is_zero(r->known, r->members_count))
		return false;
	return to->behind || !vector_covers(to->has, r->known, r->members_count) ||
	       to->told < r->members[r->self].report.number;
}

/* ---- Sections ------------------------------------------------------------------------------------------------------------- */

static int compare_stamps(const void *a, const void *b)
{
	const struct op *x = *(const struct op *const *)a, *y = *(const struct op *const *)b;
	if (x->stamp != y->stamp)
		return x->stamp < y->stamp ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static uint32_t *sent_of(struct replicant *r, struct member *to)
{
	if (to->sent == NULL) {
		to->sent = calloc(r->members_count, sizeof(*to->sent));
		CHECK(to->sent != NULL);
	}
	return to->sent;
}

/* Operations that it lacks and that are not on the way, up to a number of each member's: those of ours and all that they had
 * seen; or all. */
static void wanted_vector(struct replicant *r, const struct member *to, bool all, uint32_t *wanted)
{
	uint32_t count = r->members_count;
	vector_copy(wanted, to->sent, count);
	if (all) {
		vector_raise(wanted, r->known, count);
		return;
	}
	const struct op *last = op_find(r, r->self, r->known[r->self]);
	if (last && last->number > to->sent[r->self]) {
		vector_raise(wanted, last->seen, count);
		wanted[r->self] = last->number;
	}
}

static uint32_t choose_ops(struct replicant *r, struct member *to, bool all, const struct op **chosen)
{
	uint32_t wanted[LIMIT_REPLICA_MEMBERS], count = 0;
	wanted_vector(r, to, all, wanted);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		if (op->number > to->sent[op->member] && op->number <= wanted[op->member])
			chosen[count++] = op;
	}
	qsort(chosen, count, sizeof(*chosen), compare_stamps);
	return count;
}

/* In the order of their stamps, so that each comes after all that it had seen. Returns how many. */
static uint32_t put_ops(struct replica *replica, struct buf *out, struct replicant *r, uint32_t member)
{
	struct member *to = &r->members[member];
	bool all = to->relay_us != 0 && to->relay_us <= replica->now.us;
	const struct op **chosen = calloc(r->ops_count + 1, sizeof(*chosen));
	CHECK(chosen != NULL);
	uint32_t count = choose_ops(r, to, all, chosen), done = 0;
	for (; done < count && to->sent_bytes < REPLICA_EMIT_BYTES; done++) {
		struct op_row row;
		const struct op *op = chosen[done];
		if (op_fetch(replica, r, op->member, op->number, &row) != 0)
			break;
		if (to->sent_bytes == 0)
			to->sent_us = replica->now.us;
		sync_op_put(out, &(struct sync_op){(uint8_t)op->member, op->number, buf_str(&replica->row)});
		to->sent[op->member] = op->number;
		to->sent_bytes += replica->row.length;
	}
	free(chosen);
	return done;
}

/* What it has said that it has is not on the way; `again`: nor is anything else. */
static void renew_sent(struct replicant *r, struct member *to, bool again)
{
	uint32_t *sent = sent_of(r, to);
	if (again)
		vector_copy(sent, to->has, r->members_count);
	else
		vector_raise(sent, to->has, r->members_count);
	if (vector_covers(to->has, sent, r->members_count))
		to->sent_bytes = 0;
}

void sync_emit(struct replica *replica, struct peer *peer, struct replicant *r, uint32_t member, bool again)
{
	struct member *to = &r->members[member];
	const struct report *report = own_report(r);
	uint32_t digest = members_digest(r);
	/* Who begins with a copy hears of the base again until it has one: that may have grown, or be another's. */
	bool copies = ((to->added || to->holds) && vector_is_zero(to->report.settled, r->members_count)) ||
	              (to->holds && !to->report.holding);
	bool new = copies || vector_is_zero(to->has, r->members_count), tell = to->told < report->number;
	bool list = new || to->behind || to->digest != digest;
	struct section section = {.kind = SYNC_STATE,
	                          .flags = (uint8_t)((new ? SYNC_HEADER : 0) | (list ? SYNC_LIST : 0) |
	                                             (tell ? SYNC_REPORT : 0) | (tell || to->behind ? SYNC_ASK : 0)),
	                          .id = r->id,
	                          .members_count = (uint8_t)r->members_count,
	                          .digest = digest};
	struct buf *out = peer_out(replica, peer);
	to->ack = false;
	renew_sent(r, to, again && replica->now.us >= to->sent_us + replica->options.retry_least_us);
	size_t at = sync_section_begin(out, &section);
	if (new)
		put_header(out, r);
	if (list)
		members_put(out, r);
	if (new)
		put_vector(out, r->base, r->members_count);
	put_vector(out, r->known, r->members_count);
	put_number(out, to->report.number, 4);
	if (tell)
		report_put(out, report, r->members_count);
	/* Who sends something new wants to hear that it came. Mere answers are not answered. */
	if (put_ops(replica, out, r, member) > 0)
		sync_section_ask(out, at);
	sync_section_end(out, at);
}

void sync_emit_gone(struct replica *replica, struct peer *peer, struct replica_id id, bool ask)
{
	struct buf *out = peer_out(replica, peer);
	sync_section_end(
		out, sync_section_begin(out, &(struct section){.kind = SYNC_GONE, .flags = ask ? SYNC_ASK : 0, .id = id}));
}

void sync_emit_nothing(struct replica *replica, struct peer *peer, struct replica_id id)
{
	struct buf *out = peer_out(replica, peer);
	sync_section_end(out,
	                 sync_section_begin(out, &(struct section){.kind = SYNC_STATE, .flags = SYNC_NOTHING, .id = id}));
}

void sync_emit_weak(struct replica *replica, const struct replicant *r, struct str content, bool creates)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		if (i == r->self || r->members[i].removed)
			continue;
		struct buf *out = peer_out(replica, peer_get(replica, r->members[i].site));
		size_t at = sync_section_begin(out, &(struct section){.kind = SYNC_WEAK,
		                                                      .flags = creates ? SYNC_HEADER : 0,
		                                                      .id = r->id,
		                                                      .members_count = (uint8_t)r->members_count,
		                                                      .digest = members_digest(r)});
		if (creates)
			put_header(out, r);
		buf_put(out, content);
		sync_section_end(out, at);
	}
}

/* ---- When ------------------------------------------------------------------------------------------------------------------ */

/* Is there something that is not on the way, and not too much that is? */
static bool has_unsent(struct replicant *r, struct member *to, bool all)
{
	uint32_t wanted[LIMIT_REPLICA_MEMBERS];
	renew_sent(r, to, false);
	wanted_vector(r, to, all, wanted);
	return to->sent_bytes < REPLICA_EMIT_BYTES && !vector_covers(to->sent, wanted, r->members_count);
}

static void check_member(struct replica *replica, struct replicant *r, uint32_t member, bool reported)
{
	struct member *to = &r->members[member];
	peer_owe(replica, r, member, sync_owes(r, member));
	bool lacks = !vector_covers(to->has, r->known, r->members_count);
	if (!lacks)
		to->relay_us = 0;
	else if (to->relay_us == 0)
		to->relay_us = replica->now.us + replica->options.relay_us;
	bool relays = lacks && to->relay_us <= replica->now.us;
	if (lacks && (r->fresh || relays) && has_unsent(r, to, relays))
		peer_ready(replica, r, member, replica->now.us);
	else if (reported || to->ack)
		peer_ready(replica, r, member, replica->now.us + REPLICA_SOON_US);
	if (lacks && to->relay_us > replica->now.us)
		replica_fire(replica, r, to->relay_us);
}

void sync_check(struct replica *replica, struct replicant *r)
{
	if (r->kind != REPLICANT_LIVE)
		return;
	bool reported = r->report_dirty && !vector_is_zero(r->known, r->members_count), listed = r->listed;
	r->listed = false;
	if (reported) {
		own_report(r)->number++;
		own_report(r)->excepted = lane_lacks(r, false);
		own_report(r)->holding = r->members[r->self].holds;
		r->report_dirty = false;
		r->lane_dirty = true;
	}
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed && r->consistency != REPLICA_WEAK)
			check_member(replica, r, i, reported || listed);
	r->fresh = false;
}
