/* Members that come and go (docs/protocol/replica.md, "Members"; decision 0015).
 *
 * Who the members are is a set that only grows, with marks that are only ever set: added, leaving, its item stays, removed. Two
 * who hear of each other's changes merge them; nobody has to agree with anybody. At each site members are numbered in the order
 * in which it heard of them; what comes from elsewhere is read through a lens, from the sender's numbers to ours.
 *
 * To add a site, at a member A that is settled for all it knows, with nothing rejected or in doubt:
 *   1. A reads its own copy through the API, with its files, adds the site to the members, and issues an operation C, the copy: a
 *      create that only the new member N runs. It had seen all that A has done, K. To all others, and to the order, it is nothing.
 *      Right before it come its parts, which are of the same kind: each sets a file, or another facet (adopt.c).
 *   2. N hears of it from A, or from whoever heard of it: what is forgotten there (the base), the operations since, and C.
 *   3. N runs C, and the parts. Its item then is what A's was, which is what K is in order: N enters K into X as if it had run it,
 *      in that order. From then on it is a member like any other, and goes on with what is concurrent with C.
 * Until then N has settled nothing, so whoever knows of N forgets nothing. Who does not know of it yet may go on forgetting, but
 * only what A had settled in a report that does not tell of C: that is in K. So no operation that N lacks is forgotten by all, and a
 * base that N is given is always within K.
 * C or a part is refused at N, or in doubt: as with any create; N waits, and so does forgetting, until a person has it run again or
 * drops N.
 * All others are gone before N has heard of C, the last one with its site: N goes, too.
 * Deleted meanwhile: N has nothing to make. While the delete is the last of the order it keeps C, as the delete may yet lose.
 * Two who add the same site: N takes one of the copies, with its parts; the other is nothing to it.
 * Files are blobs that only A and N need, so A does not leave before N has them.
 *
 * To drop a site S: it is marked as leaving. When S hears that, its users are refused, and it goes when some other member has settled
 * all that S knows, nothing of it rejected or in doubt, knows that S is leaving, and is not leaving itself: S marks itself as removed, deletes its item
 * (unless that is to stay), forgets all but a tombstone, and tells everybody. Who has heard it waits for S no more.
 * A container goes only when the host lets it (replica_let_go()): what is in it, and its names, are none of this room's business.
 * All are leaving: the one with the least id stays. If S cannot be reached, the drop is pending; or it is forced: then who was
 * asked marks it as removed. What S alone has is lost. S, when it is back, is told, and goes; where it knows of nobody that is to stay with
 * the item, it leaves its own to the service.
 *
 * Nothing is forgotten while some member is not known to know all the marks: so when S was forced out all that are left have
 * told each other what they have of S's operations before any of them forgets something that these are concurrent with.
 *
 * A site that was removed does not come back to the same replicant: its numbers could be taken twice. */
#include "replica/checkpoint.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- The list ------------------------------------------------------------------------------------------------------------ */

uint8_t member_flags(const struct replicant *r, uint32_t member)
{
	const struct member *it = &r->members[member];
	return (uint8_t)((it->removed ? MEMBER_REMOVED : 0) | (it->added ? MEMBER_ADDED : 0) |
	                 (it->leaving ? MEMBER_LEAVING : 0) | (it->keeps ? MEMBER_KEEPS : 0) |
	                 (it->witness ? MEMBER_WITNESS : 0) | (it->holds ? MEMBER_HOLDS : 0) |
	                 (it->behind ? MEMBER_BEHIND : 0) | (member == r->self && r->newcomer ? MEMBER_NEWCOMER : 0));
}

void member_take_flags(struct replicant *r, uint32_t member, uint8_t flags)
{
	struct member *it = &r->members[member];
	it->removed = flags & MEMBER_REMOVED;
	it->added = flags & MEMBER_ADDED;
	it->leaving = flags & MEMBER_LEAVING;
	it->keeps = flags & MEMBER_KEEPS;
	it->witness = flags & MEMBER_WITNESS;
	it->holds = flags & MEMBER_HOLDS;
	it->behind = flags & MEMBER_BEHIND;
	if (member == r->self)
		r->newcomer = flags & MEMBER_NEWCOMER;
}

void members_put(struct buf *out, const struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		put_number(out, r->members[i].site, 8);
		put_number(out, member_flags(r, i) & MEMBER_LISTED, 1);
	}
}

static uint32_t *vector_grow(uint32_t *vector, uint32_t count)
{
	vector = realloc(vector, count * sizeof(*vector));
	CHECK(vector != NULL);
	vector[count - 1] = 0;
	return vector;
}

static struct op *op_grow(struct op *op, uint32_t count)
{
	op = realloc(op, sizeof(*op) + count * sizeof(op->seen[0]));
	CHECK(op != NULL);
	op->seen[count - 1] = 0;
	return op;
}

/* Nothing that is there moves: the new one is the last. */
uint32_t members_add(struct replicant *r, site_id site)
{
	uint32_t count = r->members_count + 1;
	CHECK(count <= LIMIT_REPLICA_MEMBERS);
	r->members = realloc(r->members, count * sizeof(*r->members));
	CHECK(r->members != NULL);
	r->members[count - 1] = (struct member){.site = site, .behind = true};
	r->members[count - 1].has = calloc(count, sizeof(uint32_t));
	r->members[count - 1].report.settled = calloc(count, sizeof(uint32_t));
	CHECK(r->members[count - 1].has != NULL && r->members[count - 1].report.settled != NULL);
	for (uint32_t i = 0; i + 1 < count; i++) {
		struct member *member = &r->members[i];
		member->has = vector_grow(member->has, count);
		member->report.settled = vector_grow(member->report.settled, count);
		if (member->sent)
			member->sent = vector_grow(member->sent, count);
	}
	r->base = vector_grow(r->base, count);
	r->known = vector_grow(r->known, count);
	r->handled = vector_grow(r->handled, count);
	for (uint32_t i = 0; i < r->ops_count; i++)
		r->ops[i] = op_grow(r->ops[i], count);
	if (r->task.intent)
		r->task.intent = op_grow(r->task.intent, count);
	r->members_count = count;
	r->ordered = false;
	return count - 1;
}

/* What this site knows of the members has grown: all others are to show that they know it too. */
void members_changed(struct replica *replica, struct replicant *r)
{
	r->head_dirty = r->listed = true;
	if (r->kind == REPLICANT_LEFT)
		return;
	for (uint32_t i = 0; i < r->members_count; i++)
		r->members[i].behind = i != r->self;
	/* Vectors are longer now, in all rows but those of operations. */
	r->lane_dirty |= r->kind == REPLICANT_LIVE;
	if (r->name.length > 0)
		references_wake(replica, r); /* it may not become one with what waits for that any more, or may now */
	replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
	work_add(replica, r);
}

bool members_mark(struct replica *replica, struct replicant *r, uint32_t member, uint8_t flags)
{
	struct member *it = &r->members[member];
	uint8_t before = member_flags(r, member) & MEMBER_LISTED, after = before | (flags & MEMBER_LISTED);
	if (after == before)
		return false;
	it->added = after & MEMBER_ADDED;
	it->leaving = after & MEMBER_LEAVING;
	it->keeps = after & MEMBER_KEEPS;
	it->witness = after & MEMBER_WITNESS;
	if ((after & MEMBER_HOLDS) && !it->holds) {
		it->holds = true;
		if (member == r->self)
			witness_ends(replica, r);
	}
	if ((after & MEMBER_REMOVED) && !it->removed) {
		if (member != r->self)
			peer_owe(replica, r, member, false);
		it->removed = true;
	}
	return true;
}

void members_remove(struct replica *replica, struct replicant *r, uint32_t member)
{
	if (members_mark(replica, r, member, MEMBER_REMOVED))
		members_changed(replica, r);
}

struct listed {
	site_id site;
	uint8_t flags;
};

static bool read_list(struct reader *reader, uint32_t count, struct listed *list)
{
	for (uint32_t i = 0; i < count; i++) {
		list[i].site = read_64(reader);
		list[i].flags = read_8(reader);
		if (list[i].site == 0 || (list[i].flags & ~MEMBER_LISTED) != 0)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (list[k].site == list[i].site)
				return false;
	}
	return count > 0 && !reader->failed;
}

/* Who has left wants others to know that, and no more. */
static bool covers(const struct replicant *r, const struct listed *list, uint32_t count)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t member = member_index(r, list[i].site);
		if (r->kind == REPLICANT_LEFT && member == r->self && (list[i].flags & MEMBER_REMOVED))
			return true;
		found += member != UINT32_MAX && (member_flags(r, member) & MEMBER_LISTED & ~list[i].flags) == 0;
	}
	return found == r->members_count;
}

static void caught_up(struct replicant *r, uint32_t from)
{
	r->head_dirty |= r->members[from].behind;
	r->members[from].behind = false;
}

bool members_is_removed(const struct replica *replica, site_id site)
{
	for (uint32_t i = 0; i < replica->removed_count; i++)
		if (replica->removed[i] == site)
			return true;
	return false;
}

bool members_take(struct replica *replica, struct replicant *r, uint32_t from, struct reader *reader, uint32_t count,
                  struct lens *lens)
{
	struct listed list[LIMIT_REPLICA_MEMBERS];
	uint32_t new = 0;
	bool grew = false;
	if (!read_list(reader, count, list))
		return false;
	for (uint32_t i = 0; i < count; i++)
		new += member_index(r, list[i].site) == UINT32_MAX;
	if (new > LIMIT_REPLICA_MEMBERS - r->members_count)
		return false;
	*lens = (struct lens){.count = count, .same = true};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t member = member_index(r, list[i].site);
		if (member == UINT32_MAX) {
			member = members_add(r, list[i].site);
			r->members[member].behind = r->kind != REPLICANT_LEFT;
			grew = true;
		}
		bool removed = members_is_removed(replica, list[i].site) && member != r->self;
		grew |= members_mark(replica, r, member, (uint8_t)(list[i].flags | (removed ? MEMBER_REMOVED : 0)));
		lens->to[i] = (uint8_t)member;
		lens->same &= member == i;
	}
	if (grew)
		members_changed(replica, r);
	if (covers(r, list, count))
		caught_up(r, from);
	return true;
}

void members_same(struct replicant *r, uint32_t from, struct lens *lens)
{
	*lens = (struct lens){.count = r->members_count, .same = true};
	for (uint32_t i = 0; i < r->members_count; i++)
		lens->to[i] = (uint8_t)i;
	caught_up(r, from);
}

void lens_vector(const struct lens *lens, struct reader *reader, uint32_t *vector, uint32_t count)
{
	memset(vector, 0, count * sizeof(*vector));
	for (uint32_t i = 0; i < lens->count; i++)
		vector[lens->to[i]] = read_32(reader);
}

bool members_agree(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed && r->members[i].behind)
			return false;
	return true;
}

/* ---- Sections ------------------------------------------------------------------------------------------------------------- */

void members_emit(struct replica *replica, struct peer *peer, const struct replicant *r, bool ask)
{
	struct buf *out = peer_out(replica, peer);
	size_t at = sync_section_begin(out, &(struct section){.kind = SYNC_MEMBERS,
	                                                      .flags = (uint8_t)(SYNC_LIST | (ask ? SYNC_ASK : 0)),
	                                                      .id = r->id,
	                                                      .members_count = (uint8_t)r->members_count,
	                                                      .digest = members_digest(r)});
	members_put(out, r);
	sync_section_end(out, at);
}

/* One answer to many questions: who missed it asks again. */
void members_answer(struct replica *replica, struct replicant *r, uint32_t member, bool ask)
{
	struct member *to = &r->members[member];
	if (to->sent_us != 0 && replica->now.us < to->sent_us + replica->options.retry_least_us / 2)
		return;
	to->sent_us = replica->now.us;
	members_emit(replica, peer_get(replica, to->site), r, ask && to->behind);
}

/* It became an alias, which its members hear with the operations of what it is now. Who is no member of that, since it was forced out, or was
 * added to the one and not to the other, is told that it is no member of the alias either. */
void members_answer_of_alias(struct replica *replica, const struct replicant *alias, site_id to)
{
	struct replicant *r;
	uint32_t member = UINT32_MAX;
	if (replicant_resolve(replica, alias->id, &r) == 0)
		member = member_index(r, to);
	else
		r = NULL;
	replica->counters.messages_dropped++;
	if (!r || r->kind == REPLICANT_LEFT || (member != UINT32_MAX && !r->members[member].removed))
		return;
	struct buf *out = peer_out(replica, peer_get(replica, to));
	size_t at = sync_section_begin(
		out, &(struct section){.kind = SYNC_MEMBERS, .flags = SYNC_LIST, .id = alias->id, .members_count = 1});
	put_number(out, to, 8);
	put_number(out, MEMBER_REMOVED, 1);
	sync_section_end(out, at);
}

/* From or to who has left. Somebody who was removed has no say in who else is. */
void members_message(struct replica *replica, struct replicant *r, site_id from, struct section *section)
{
	struct lens lens;
	struct peer *peer = peer_get(replica, from);
	uint32_t member = r ? member_index(r, from) : UINT32_MAX;
	/* It may have been added after this site had left. */
	bool unknown = r && r->kind == REPLICANT_LEFT && member == UINT32_MAX;
	if (!r || unknown || r->kind == REPLICANT_GONE || r->kind == REPLICANT_ALIAS) {
		if (member != UINT32_MAX && r->kind == REPLICANT_GONE)
			peer_owe(replica, r, member, false); /* it knows */
		if (section->flags & SYNC_ASK)
			sync_emit_gone(replica, peer, section->id, false);
		return;
	}
	if (member == UINT32_MAX) {
		replica->counters.messages_dropped++;
		return;
	}
	bool heard =
		!r->members[member].removed && members_take(replica, r, member, &section->rest, section->members_count, &lens);
	bool told = r->members[member].removed || (r->kind == REPLICANT_LEFT && heard && !r->members[member].behind);
	if (told)
		peer_owe(replica, r, member, false);
	work_add(replica, r);
	if (section->flags & SYNC_ASK)
		members_answer(replica, r, member, false);
}

/* ---- What is asked for ---------------------------------------------------------------------------------------------------------- */

int members_find(struct replica *replica, struct replica_id id, struct replicant **r, struct err *err)
{
	int code = replicant_resolve(replica, id, r);
	if (code != 0 && code != ERR_NOT_FOUND)
		return err_set(err, code, "what is stored of it cannot be read: %s", err_phrase(code));
	if (code != 0)
		return err_set(err, ERR_NOT_FOUND, "no replicant of that id is known here");
	if ((*r)->kind == REPLICANT_LEFT)
		return err_set(err, ERR_NOT_FOUND, "this site is no member of it any more");
	if ((*r)->kind != REPLICANT_LIVE || lane_is_closed(*r))
		return err_set(err, ERR_NOT_FOUND, "it was deleted");
	if (vector_is_zero((*r)->known, (*r)->members_count))
		return err_set(err, ERR_UNAVAILABLE, "it has not been made yet");
	if ((*r)->consistency == REPLICA_WEAK)
		return err_set(err, ERR_INVALID, "the members of what is replicated `weak` stay as they are");
	return 0;
}

/* ---- Leaving ------------------------------------------------------------------------------------------------------------------------ */

static bool holds_and_is_made(const struct member *it)
{
	return !it->removed && !member_witnesses(it) && it->report.created;
}

/* It stays as far as is known: it is not leaving, or all are and it is the one that may not: the one with the least id of those that have it.
 * Who has it knows that before others do, so the least of them is always sure that it is the one. */
static bool stays(const struct replicant *r, uint32_t member)
{
	const struct member *it = &r->members[member];
	bool made = false;
	if (it->removed || !it->leaving)
		return !it->removed;
	for (uint32_t i = 0; i < r->members_count; i++)
		made |= holds_and_is_made(&r->members[i]);
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct member *other = &r->members[i];
		bool may = made ? holds_and_is_made(other) : !other->removed && !member_witnesses(other);
		if (!other->removed && !member_witnesses(other) && (!other->leaving || (may && other->site < it->site)))
			return false;
	}
	return made ? holds_and_is_made(it) : !member_witnesses(it);
}

/* At another one, which stays. */
static bool is_elsewhere(const struct replicant *r, uint32_t member)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != member && stays(r, i) && r->members[i].report.created)
			return true;
	return false;
}

/* What only some hold is used here until another one has it: there may be nobody else to ask. */
bool members_is_leaving(const struct replicant *r)
{
	if (r->members[r->self].removed || stays(r, r->self))
		return r->members[r->self].removed;
	return r->span != REPLICA_PLACED || is_elsewhere(r, r->self);
}

/* Something may be there that nobody knows how to delete: a person has to look. */
static bool is_made_in_doubt(const struct replicant *r)
{
	const struct report *own = &r->members[r->self].report;
	bool unknown = !own->created && own->local_id_bytes == 0;
	for (uint32_t i = 0; i < own->exceptions_count && unknown; i++)
		if (own->exceptions[i].state == REPLICA_IN_DOUBT)
			return true;
	return false;
}

/* Something that nobody has decided on yet. */
static bool has_open(const struct report *report)
{
	for (uint32_t i = 0; i < report->exceptions_count; i++)
		if (report->exceptions[i].state != EXCEPTION_DISMISSED)
			return true;
	return false;
}

/* Files of a copy that this site has given, and that nobody else has. */
static bool is_giving(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		uint32_t to = op->adopts != 0 ? member_index(r, op->adopts) : UINT32_MAX;
		if (op->member == r->self && (op->flags & OP_BLOB) && to != UINT32_MAX && !r->members[to].removed &&
		    r->members[to].report.settled[r->self] < op->number)
			return true;
	}
	return false;
}

static bool can_leave(struct replica *replica, struct replicant *r)
{
	if (stays(r, r->self) || r->unsure || r->task.what != TASK_NONE || r->withheld_count > 0 || r->queue ||
	    is_made_in_doubt(r) || is_giving(r) || merge_is_awaited(replica, r))
		return false;
	if (replica->options.holds_containers && r->span == REPLICA_CONTAINER && !r->let_go)
		return false;
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct member *other = &r->members[i];
		bool whole =
			other->report.created && !other->report.stuck && !other->report.foreign && !has_open(&other->report);
		/* A witness has nothing of its own: it is enough that another one has heard as much. */
		bool has = is_witness(r) ? vector_covers(other->has, r->known, r->members_count)
		                         : whole && vector_covers(other->report.settled, r->known, r->members_count);
		if (i != r->self && stays(r, i) && !member_witnesses(other) && !other->behind && has)
			return true;
	}
	return false;
}

/* Nobody might have it any more: this one was forced out by a witness that relied on another one; that one was dropped meanwhile, and may have
 * left, relying on this one. What is here is kept, as the service's own. (Who holds it, and forces another one out, goes on holding it.) */
static bool is_last(const struct replicant *r)
{
	if (r->span != REPLICA_PLACED)
		return false;
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct member *other = &r->members[i];
		if (i != r->self && !other->removed && !other->leaving && !member_witnesses(other) &&
		    !witness_holds_nothing(r, i))
			return false;
	}
	return true;
}

static void leave(struct replica *replica, struct replicant *r)
{
	struct report *own = own_report(r);
	/* Who is new may have made the item, and not all of it. */
	bool deletes = (own->created || r->newcomer) && !is_witness(r) && own->local_id_bytes > 0 &&
	               !r->members[r->self].keeps && !(r->members[r->self].removed && is_last(r));
	members_extend_refuse(replica, r, ERR_CONFLICT, "this site is leaving");
	queue_refuse(replica, r, ERR_NOT_FOUND, "this site is no member of it any more");
	while (r->withheld_count > 0)
		doubt_drop(replica, r, r->withheld[0].number);
	checkpoint_drop(replica, r);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		struct op *op = r->ops[i];
		if (op->flags & OP_BLOB)
			blob_done(replica, r, op->member, op->number);
		op_unstore(replica, r, op->member, op->number);
		free(op);
	}
	r->ops_count = r->steps_count = 0;
	outcome_end(r); /* nothing that may have had an effect: that is made sure of first */
	r->unsure = r->redo = r->ordered = r->merges = false;
	r->repair_us = r->alone_us = 0;
	vector_copy(r->base, r->known, r->members_count);
	r->members[r->self].removed = true;
	members_changed(replica, r);
	char local_id[LIMIT_REPLICA_NAME_BYTES];
	uint8_t local_id_bytes = own->local_id_bytes;
	memcpy(local_id, own->local_id, local_id_bytes);
	local_clear(replica, r);
	name_clear(replica, r);
	if (deletes) { /* nobody finds the replicant by it any more */
		memcpy(own->local_id, local_id, local_id_bytes);
		own->local_id_bytes = local_id_bytes;
	}
	own->created = false;
	r->kind = REPLICANT_LEFT;
	r->deletes = deletes;
	r->newcomer = false;
	r->not_before_us = r->retry_us = 0;
	r->gone_ms = replica->now.wall_ms;
	r->head_dirty = r->lane_dirty = true;
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed) /* one that was forced out may still have to be told */
			peer_owe(replica, r, i, true);
	expire_add(replica, replica->now.wall_ms + replica->options.tombstone_ms, REPLICA_REPLICANTS, id_str(&r->id));
	references_wake(replica, r);
	replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
	work_add(replica, r);
}

/* This site waits for a copy, and nobody is left that could give it, or tell of it: the last one was removed from the mesh with it. */
static bool is_in_vain(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed)
			return false;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (r->ops[i]->adopts == r->members[r->self].site)
			return false;
	return r->newcomer && r->task.what == TASK_NONE;
}

bool members_first(struct replica *replica, struct replicant *r)
{
	if (r->members[r->self].removed || can_leave(replica, r) || is_in_vain(r)) {
		leave(replica, r);
		return true;
	}
	return r->newcomer && !is_witness(r) && members_join(replica, r);
}

void members_pump_left(struct replica *replica, struct replicant *r)
{
	if (!r->deletes || r->task.task != 0)
		return;
	if (r->not_before_us > replica->now.us) {
		replica_fire(replica, r, r->not_before_us);
		return;
	}
	r->task = (struct task){.what = TASK_LEAVE, .kind = REPLICA_LEAVE, .member = r->self};
	struct op_row row = {0};
	lane_execute(replica, r, &row);
}

void members_deleted(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	if (outcome->kind != REPLICA_ACCEPTED && outcome->kind != REPLICA_REFUSED) {
		lane_wait(replica, r);
		return;
	}
	/* What its service does not want to delete is its own from now on. */
	r->deletes = false;
	own_report(r)->local_id_bytes = 0;
	r->head_dirty = r->lane_dirty = true;
	references_wake(replica, r); /* its name is free */
	replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
	work_add(replica, r);
}

bool members_left_for_good(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed && r->members[i].behind)
			return false;
	return !r->deletes && r->task.task == 0;
}

int members_ask_drop(struct replica *replica, struct replica_id id, const struct replica_drop *drop, struct err *err)
{
	struct replicant *r;
	int code = members_find(replica, id, &r, err);
	if (code != 0)
		return code;
	uint32_t member = member_index(r, drop->site), staying = 0;
	if (member == UINT32_MAX)
		return err_set(err, ERR_NOT_FOUND, "that site is no member of it");
	if (r->members[member].removed)
		return err_set(err, ERR_NOT_FOUND, "that site is no member of it any more");
	/* Who has none of it can be given up; so can who waits for its copy, if somebody has it, also one that is to leave. */
	bool joining = !r->members[member].report.created, made = false;
	for (uint32_t i = 0; i < r->members_count; i++)
		made |= i != member && holds_and_is_made(&r->members[i]);
	bool witness = member_witnesses(&r->members[member]) || (joining && made);
	for (uint32_t i = 0; i < r->members_count; i++)
		staying += i != member && !r->members[i].removed && !r->members[i].leaving && !member_witnesses(&r->members[i]);
	if (staying == 0 && !witness && r->span == REPLICA_PLACED)
		return err_set(err, ERR_CONFLICT,
		               "no other site holds it: move it to another one, or delete the resource instead");
	if (staying == 0 && !witness)
		return err_set(err, ERR_CONFLICT, "it is the last member that stays: delete the resource instead");
	if (drop->force && member == r->self)
		return err_set(err, ERR_INVALID, "a site that answers need not be forced out: drop it without force");
	if (drop->force && !is_elsewhere(r, member))
		return err_set(err, ERR_CONFLICT,
		               "no other member is known to have it: wait until one has, or delete the resource");
	uint8_t flags = (uint8_t)(MEMBER_LEAVING | (drop->keep ? MEMBER_KEEPS : 0) | (drop->force ? MEMBER_REMOVED : 0));
	if (members_mark(replica, r, member, flags))
		members_changed(replica, r);
	if (drop->force)
		peer_owe(replica, r, member, true); /* it may be there after all, and is to hear of it */
	return 0;
}
