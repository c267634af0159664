/* A message of another member.
 *
 * 1. Its clock is taken note of. One that is too old is dropped: it may speak of what was deleted and forgotten meanwhile. One
 *    from a clock that is far ahead is dropped too.
 * 2. Each section is taken by itself: what the sender has, what it reports, and operations that are new here. An operation is
 *    taken when all that it had seen is here; they are sent in such an order. Else it is dropped, and comes again.
 * 3. Who asked for an answer gets one (sync.c).
 *
 * Unknown here: a replicant comes with its header and its create. If the create is not there, "I have nothing" is answered, upon
 * which all is sent. What comes of who numbers the members in another way is read through a lens (members.c). Gone here: GONE is answered, upon which the other one forgets it too, if it has deleted its own.
 * Of who is no member nothing is taken, and it is told nothing. What makes no sense is counted; the rest of the message is
 * dropped. */
#include "replica/replica_int.h"

#include <stdlib.h>

static void drop(struct replica *replica)
{
	replica->counters.messages_dropped++;
}

/* ---- Operations -------------------------------------------------------------------------------------------------------------- */

static bool stamp_is_later(const struct replicant *r, const struct op *op)
{
	for (uint32_t m = 0; m < r->members_count; m++) {
		const struct op *seen = op->seen[m] > 0 ? op_find(r, m, op->seen[m]) : NULL;
		if (seen && seen->stamp >= op->stamp)
			return false;
	}
	return true;
}

/* Sound by itself, and with what its issuer said before. */
static bool op_is_sound(const struct replicant *r, const struct op *op)
{
	const struct op *before = op_find(r, op->member, op->number - 1);
	bool classed = r->rules.resolutions == NULL || op->class < r->rules.classes;
	return op->seen[op->member] == op->number - 1 && classed &&
	       (op->flags & OP_REPAIR ? op->effect == ORDER_REPLACE : true) &&
	       (r->members[op->member].removed || r->members[r->self].added || r->members[r->self].holds ||
	        vector_covers(op->seen, r->base, r->members_count)) &&
	       (!before || vector_covers(op->seen, before->seen, r->members_count)) && stamp_is_later(r, op);
}

enum taken { TAKEN, TAKEN_BEFORE, TAKEN_EARLY, TAKEN_WRONG };

/* With what it had seen as this site numbers the members. */
static void put_row(struct buf *out, const struct replicant *r, const struct op_row *row, const struct op *op,
                    struct str bytes)
{
	op_row_put(out, op->stamp, op->seen, r->members_count, op_content_of(row, bytes));
}

/* None if it speaks of members that its sender did not list. */
static struct op *read_op(const struct replicant *r, const struct op_row *row, const struct sync_op *sent,
                          const struct lens *lens)
{
	if (row->members_count > lens->count)
		return NULL;
	struct op *op = op_new(row, sent->member, sent->number, r->members_count, sent->row.length);
	struct reader reader = {row->seen, (size_t)row->members_count * 4, false};
	struct lens its = *lens;
	its.count = row->members_count;
	lens_vector(&its, &reader, op->seen, r->members_count);
	return op;
}

/* `sent` has the member as it is numbered here. */
static enum taken take_op(struct replica *replica, struct replicant *r, const struct sync_op *sent,
                          const struct lens *lens)
{
	struct op_row row;
	if (sent->number <= r->known[sent->member])
		return TAKEN_BEFORE;
	if (members_holds(replica, r))
		return TAKEN_EARLY;
	/* Nobody else can tell what we did. */
	if (sent->member == r->self || op_row_parse(sent->row, &row, NULL) != 0)
		return TAKEN_WRONG;
	if (sent->number != r->known[sent->member] + 1)
		return TAKEN_EARLY;
	if (r->known[sent->member] - r->base[sent->member] >= 2 * LIMIT_REPLICA_OPERATIONS)
		return TAKEN_WRONG;
	struct op *op = read_op(r, &row, sent, lens);
	if (op == NULL)
		return TAKEN_WRONG;
	if (!vector_covers(r->known, op->seen, r->members_count)) {
		free(op);
		return TAKEN_EARLY;
	}
	if (!op_is_sound(r, op) ||
	    !hlc_observe(&replica->clock, row.stamp, replica->now.wall_ms, replica->options.clock_ahead_ms)) {
		free(op);
		return TAKEN_WRONG;
	}
	op_insert(r, op);
	if (lens->same) {
		op_store(replica, r, op->member, op->number, sent->row);
	} else {
		struct buf bytes = {0};
		put_row(&bytes, r, &row, op, sent->row);
		op_store(replica, r, op->member, op->number, buf_str(&bytes));
		buf_free(&bytes);
	}
	if ((row.flags & OP_BLOB) && !is_witness(r))
		blob_need(replica, r, op->member, op->number, &row.request, false);
	replica->counters.delivered++;
	r->lane_dirty = true;
	replica_tell(replica, r, op->number, op->member, r->self, REPLICA_PENDING);
	return TAKEN;
}

static bool take_ops(struct replica *replica, struct replicant *r, uint32_t from, struct reader *reader,
                     const struct lens *lens)
{
	while (reader->left > 0) {
		struct sync_op op;
		if (!sync_op_read(reader, &op, lens->count))
			return false;
		op.member = lens->to[op.member];
		switch (take_op(replica, r, &op, lens)) {
		case TAKEN_WRONG: return false;
		case TAKEN_EARLY: r->members[from].ack = true; break;
		default: break;
		}
	}
	return true;
}

/* ---- Reports ------------------------------------------------------------------------------------------------------------------ */

static enum replica_member_state state_of(const struct report *report, const struct op *op)
{
	const struct exception *exception = report_exception(report, op->member, op->number);
	return exception ? exception_shown(exception) : REPLICA_APPLIED;
}

static void tell_changes(struct replica *replica, const struct replicant *r, uint32_t from, const struct report *old)
{
	const struct report *new = &r->members[from].report;
	if (!replica->host.event)
		return;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		if (op->number > new->settled[op->member])
			continue;
		enum replica_member_state now = state_of(new, op);
		if (op->number > old->settled[op->member] || now != state_of(old, op))
			replica_tell(replica, r, op->number, op->member, from, now);
	}
	if (old->local_id_bytes != new->local_id_bytes || memcmp(old->local_id, new->local_id, new->local_id_bytes) != 0)
		replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
}

static bool take_report(struct replica *replica, struct replicant *r, uint32_t from, struct reader *reader,
                        const struct lens *lens)
{
	struct report *old = &r->members[from].report;
	struct report new = {.settled = calloc(LIMIT_REPLICA_MEMBERS, sizeof(uint32_t))};
	bool sound = new.settled &&report_read(reader, &new, lens->count);
	if (sound && !lens->same)
		report_map(&new, lens);
	/* A member's promise is not taken back: what it has settled it has. But what a witness has settled it had only heard of. */
	bool anew = sound && new.holding && !old->holding;
	bool later =
		sound && new.number > old->number && (anew || vector_covers(new.settled, old->settled, r->members_count));
	struct report dropped = later ? *old : new;
	if (later) {
		*old = new;
		tell_changes(replica, r, from, &dropped);
		r->head_dirty = true;
	}
	report_clear(&dropped);
	free(dropped.settled);
	return sound;
}

/* ---- Sections ------------------------------------------------------------------------------------------------------------------ */

static bool take_vectors(struct replicant *r, uint32_t from, struct reader *reader, const struct lens *lens)
{
	uint32_t has[LIMIT_REPLICA_MEMBERS];
	struct member *member = &r->members[from];
	lens_vector(lens, reader, has, r->members_count);
	uint32_t told = read_32(reader);
	if (reader->failed)
		return false;
	if (has[r->self] > r->known[r->self])
		has[r->self] = r->known[r->self]; /* there are no more */
	if (!vector_covers(member->has, has, r->members_count)) {
		vector_raise(member->has, has, r->members_count);
		r->head_dirty = true;
	}
	if (told > member->told && told <= own_report(r)->number) {
		member->told = told;
		r->head_dirty = true;
	}
	return true;
}

/* A new member begins where another one has forgotten: who has forgotten more may know no more of the rest. */
static void take_base(struct replica *replica, struct replicant *r, const uint32_t *base)
{
	uint32_t kept = 0;
	if (!r->newcomer || !vector_covers(base, r->base, r->members_count) ||
	    vector_equal(base, r->base, r->members_count))
		return;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		struct op *op = r->ops[i];
		if (op->number > base[op->member]) {
			r->ops[kept++] = op;
			continue;
		}
		if (op->flags & OP_BLOB)
			blob_done(replica, r, op->member, op->number);
		op_unstore(replica, r, op->member, op->number);
		free(op);
	}
	r->ops_count = kept;
	vector_copy(r->base, base, r->members_count);
	vector_raise(r->known, base, r->members_count);
	vector_raise(r->handled, base, r->members_count);
	r->ordered = false;
	r->head_dirty = r->lane_dirty = true;
}

/* Who the members are for the sender, and what has been forgotten there. False: that cannot be told. */
static bool take_list(struct replica *replica, struct replicant *r, uint32_t from, struct section *section, bool fresh,
                      struct lens *lens)
{
	struct reader *reader = &section->rest;
	uint32_t base[LIMIT_REPLICA_MEMBERS];
	if (section->flags & SYNC_LIST) {
		if (!members_take(replica, r, from, reader, section->members_count, lens))
			return false;
	} else {
		members_same(r, from, lens);
	}
	if ((section->flags & SYNC_HEADER) == 0)
		return true;
	lens_vector(lens, reader, base, r->members_count);
	struct member *self = &r->members[r->self];
	if (fresh)
		r->newcomer = self->added || self->holds;
	if (reader->failed || (fresh && (self->removed || (!r->newcomer && !vector_is_zero(base, r->members_count)))))
		return false;
	take_base(replica, r, base);
	return true;
}

/* `fresh`: it was not known here before; its header is read already. */
static void take_state(struct replica *replica, struct replicant *r, site_id from, struct section *section, bool fresh)
{
	struct reader *reader = &section->rest;
	struct lens lens;
	uint32_t member = member_index(r, from);
	bool sound = true;
	if (!fresh && (section->flags & SYNC_HEADER)) {
		struct replicant other = {0};
		sound = read_header(reader, &other, replica->options.self);
		replicant_wipe(&other);
	}
	bool readable = (section->flags & SYNC_LIST) || section->digest == members_digest(r);
	r->members[member].digest = section->digest;
	if (!readable) { /* who are its members? It is told ours, and will answer with its own */
		r->members[member].ack = true;
		work_add(replica, r);
		return;
	}
	sound = sound && take_list(replica, r, member, section, fresh, &lens) && take_vectors(r, member, reader, &lens);
	if (sound && (section->flags & SYNC_REPORT))
		sound = take_report(replica, r, member, reader, &lens);
	sound = sound && take_ops(replica, r, member, reader, &lens);
	if (!sound)
		drop(replica);
	if (section->flags & SYNC_ASK)
		r->members[member].ack = true;
	r->fresh = true;
	work_add(replica, r);
}

static void take_known(struct replica *replica, struct replicant *r, site_id from, struct section *section)
{
	uint32_t member = member_index(r, from);
	if (member == UINT32_MAX || r->consistency != REPLICA_EVENTUAL) {
		drop(replica);
		return;
	}
	if (r->members[member].removed) { /* it may not know */
		members_answer(replica, r, member, false);
		return;
	}
	if (section->flags & SYNC_NOTHING) {
		memset(r->members[member].has, 0, r->members_count * sizeof(uint32_t));
		r->members[member].told = 0;
		free(r->members[member].sent);
		r->members[member].sent = NULL;
		r->members[member].sent_bytes = 0;
		r->head_dirty = r->fresh = true;
		work_add(replica, r);
		return;
	}
	take_state(replica, r, from, section, false);
}

static void take_unknown(struct replica *replica, site_id from, struct section *section)
{
	struct reader *reader = &section->rest;
	if (section->flags & SYNC_NOTHING)
		return;
	struct replicant *r = replicant_new(replica, section->id);
	bool sound = (section->flags & SYNC_HEADER) && read_header(reader, r, replica->options.self) &&
	             member_index(r, from) != UINT32_MAX && r->consistency == REPLICA_EVENTUAL &&
	             section->members_count == r->members_count;
	if (sound)
		take_state(replica, r, from, section, true);
	if (sound && !vector_is_zero(r->known, r->members_count)) {
		r->head_dirty = true;
		name_note(replica, r);
		replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
		return;
	}
	work_remove(replica, r);
	replicant_drop(replica, r);
	if (section->flags & SYNC_HEADER)
		drop(replica);
	else
		sync_emit_nothing(replica, peer_get(replica, from), section->id);
}

/* Like any answer, a little later: what was on a slow line comes all at once. */
static void answer_gone(struct replica *replica, struct replicant *r, uint32_t member)
{
	peer_ready(replica, r, member, replica->now.us + REPLICA_SOON_US);
}

/* It deleted it too, or it has not heard yet of who settled it last. */
static void take_gone(struct replica *replica, struct replicant *r, site_id from, const struct section *section)
{
	uint32_t member = r ? member_index(r, from) : UINT32_MAX;
	if (r && r->kind == REPLICANT_LIVE) {
		bool over = lane_is_deleted(r) || lane_is_let_go(r);
		if (member != UINT32_MAX && r->members[member].removed) {
			peer_owe(replica, r, member, false); /* it knows nothing of it: there is nothing to tell */
			return;
		}
		if (member == UINT32_MAX || !over || r->task.what != TASK_NONE) {
			drop(replica);
			return;
		}
		/* Nothing need be told to it any more. */
		vector_copy(r->members[member].has, r->known, r->members_count);
		r->members[member].told = own_report(r)->number;
		r->members[member].behind = false;
		r->head_dirty = true;
		work_add(replica, r);
		forget_gone(replica, r);
	} else if (r && r->kind == REPLICANT_GONE) {
		if (member == UINT32_MAX)
			return;
		peer_owe(replica, r, member, false);
	} else if (r && r->kind == REPLICANT_LEFT && member != UINT32_MAX) {
		r->members[member].behind = false;
		r->head_dirty = true;
		peer_owe(replica, r, member, false);
		work_add(replica, r);
	}
	if (!(section->flags & SYNC_ASK))
		return;
	if (member != UINT32_MAX && (r->kind == REPLICANT_LIVE || r->kind == REPLICANT_GONE))
		answer_gone(replica, r, member);
	else
		sync_emit_gone(replica, peer_get(replica, from), section->id, false);
}

/* `loan`: of its body, which is here; 0: it came just now. */
static void take_weak(struct replica *replica, struct replicant *r, site_id from, struct section *section,
                      uint32_t loan)
{
	struct op_row row;
	struct reader all = section->rest;
	if (!r && (section->flags & SYNC_HEADER)) {
		r = replicant_new(replica, section->id);
		if (!read_header(&section->rest, r, replica->options.self) || member_index(r, from) == UINT32_MAX ||
		    r->consistency != REPLICA_WEAK) {
			replicant_drop(replica, r);
			drop(replica);
			return;
		}
		r->head_dirty = true;
	} else if (!r || r->kind != REPLICANT_LIVE || r->consistency != REPLICA_WEAK ||
	           member_index(r, from) == UINT32_MAX || (section->flags & SYNC_HEADER)) {
		drop(replica); /* best effort: its create did not get here */
		return;
	}
	struct str content = read_rest(&section->rest);
	work_add(replica, r);
	bool sound = op_content_parse(content, &row) == 0 && r->queue_count < LIMIT_REPLICA_QUEUE &&
	             (row.class.effect == ORDER_CREATE) == ((section->flags & SYNC_HEADER) != 0);
	bool waits = sound && (row.flags & OP_BLOB) && loan == 0 &&
	             !weak_await(replica, from, section, read_rest(&all), &row.request, &loan);
	if (!sound || waits) {
		r->kind = own_report(r)->created || r->queue || r->task.task ? r->kind : REPLICANT_NONE;
		if (!waits)
			drop(replica);
		return;
	}
	struct submission *submission = calloc(1, sizeof(*submission));
	if (!submission)
		return;
	submission->relayed = true;
	submission->loan = loan;
	submission->member = member_index(r, from);
	buf_put(&submission->content, content);
	queue_push(r, submission);
	replica->counters.delivered++;
}

/* Its body has come. What it is about may have gone meanwhile. */
void receive_weak(struct replica *replica, site_id from, struct section *section, uint32_t loan)
{
	struct replicant *r;
	uint64_t taken = replica->counters.delivered;
	int code = replicant_load(replica, section->id, &r);
	if (code == 0 || code == ERR_NOT_FOUND)
		take_weak(replica, r, from, section, loan);
	if (replica->counters.delivered == taken)
		weak_ran(replica, loan, false);
}

static void take_section(struct replica *replica, site_id from, struct section *section)
{
	struct replicant *r;
	int code = replicant_load(replica, section->id, &r);
	if (code != 0 && code != ERR_NOT_FOUND) {
		drop(replica);
		return;
	}
	uint32_t member = r ? member_index(r, from) : UINT32_MAX;
	if (section->kind == SYNC_GONE) {
		take_gone(replica, r, from, section);
	} else if (section->kind == SYNC_WEAK) {
		take_weak(replica, r, from, section, 0);
	} else if (section->kind == SYNC_MEMBERS) {
		members_message(replica, r, from, section);
	} else if (!r) {
		take_unknown(replica, from, section);
	} else if (r->kind == REPLICANT_LIVE) {
		take_known(replica, r, from, section);
	} else if (r->kind == REPLICANT_ALIAS) {
		members_answer_of_alias(replica, r, from);
	} else if (r->kind == REPLICANT_GONE && member != UINT32_MAX && r->members[member].removed) {
		members_answer(replica, r, member, false); /* it was not asked when the others deleted it */
	} else if (r->kind == REPLICANT_GONE && member != UINT32_MAX) {
		answer_gone(replica, r, member);
	} else if (r->kind == REPLICANT_LEFT && member != UINT32_MAX) {
		members_answer(replica, r, member, true);
	} else {
		drop(replica);
	}
}

void receive_message(struct replica *replica, site_id from, struct str message)
{
	struct reader sections;
	struct section section;
	uint64_t clock = 0;
	replica->counters.messages_received++;
	bool sound = from != 0 && from != replica->options.self && sync_message_open(message, &clock, &sections) == 0;
	uint64_t age_ms = hlc_ms(clock) < replica->now.wall_ms ? replica->now.wall_ms - hlc_ms(clock) : 0;
	if (!sound || age_ms > replica->options.message_age_ms ||
	    !hlc_observe(&replica->clock, clock, replica->now.wall_ms, replica->options.clock_ahead_ms)) {
		drop(replica);
		return;
	}
	peer_heard(replica, peer_get(replica, from));
	for (;;) {
		int more = sync_section_read(&sections, &section);
		if (more < 0)
			drop(replica);
		if (more <= 0)
			break;
		if (section.kind >= SYNC_STATE && section.kind <= SYNC_MEMBERS)
			take_section(replica, from, &section);
	}
}
