/* Names: two replicants that were made apart under one natural name become one.
 *
 * The earlier create in T (stamp, then site) wins; the other replicant becomes an alias of that one. Who decides is one site alone:
 * the one that issued the later create, as soon as it knows both. So there is never more than one word on it.
 *   1. It issues a merge: an operation on the winner that names the loser. It is ordered, told and forgotten like any other, has a
 *      facet of its own, and no effect at a service. All members of the loser are members of the winner, so all get it.
 *   2. Who knows the merge, the issuer first, does in one event, and before it runs anything else on the winner:
 *      - what it has at its service under that name goes over to the winner (local id, name). The winner's create counts as run
 *        there. Its state is another one: the report says `foreign`. If the create can be replayed as a replace, it is, and all
 *        after it. Else, once all was run, the report says `stuck`, and a member that has the winner's state gives it (repair.c),
 *        when all have met, so that it covers nothing that it has not seen. Whatever sets the whole, or deletes it, ends it too;
 *      - what its own users did to the loser is issued anew on the winner, once, as it was asked for: it is in line with the winner's
 *        by the rules, with the stamp of when it was asked for. Not again: the create, which lost; what was superseded, or covered by
 *        a later replace; repairs; and, where the
 *        site's users deleted the loser, anything: create and delete cancel each other, and the winner stays. Nor where the winner
 *        is known to be deleted: a delete wins;
 *      - what is in doubt, and what waits for its turn, goes over as well;
 *      - the loser's operations are dropped and its row becomes that of an alias. A late message on it is dropped: who sent it gets
 *        the merge with the winner's operations.
 *   3. Until the merge came, whichever of the two creates was not run at a member waits there.
 *
 * The decider knows a delete of either: there is nothing to merge, and the other one is run as soon as the name is free. It comes to
 * know of one later: it is concurrent with the merge as with any other change, and wins or loses by the description's rules.
 * Three: the decider of each takes the one that it meets; aliases may lead to aliases, always to an earlier create. A merge that a
 * site issued on what became an alias meanwhile is issued anew with its other operations.
 * A crash: all of it is in one commit. A member that is busy with the loser or the winner ends that first.
 * The decider was removed from the mesh: nobody merges; the create is run, rejected by its service, and people are told (blob.c). So it
 * is with different members, or rules, and with `weak`.
 * Members come and go (members.c): the loser's have to be the winner's from the start, to which others may have been added. A site
 * is added to what may yet lose only by its decider, which then merges it no more; and a member leaves neither of the two while a merge is due.
 * Who is a member of the loser and not of the winner all the same, since it was forced out, is told to go (members.c).
 * An alias is remembered as long as what it leads to. Its operations are found by their old ids: shown as superseded, by what they
 * became where they were issued, else by the merge. */
#include "replica/checkpoint.h"

#include "replica/order_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { MERGE_FACET = UINT16_MAX };

static const struct replica_id no_id;

/* ---- Aliases ---------------------------------------------------------------------------------------------------------------- */

/* Each leads to an earlier create: there are no rings. */
int replicant_resolve(struct replica *replica, struct replica_id id, struct replicant **r)
{
	int code = replicant_load(replica, id, r);
	for (uint32_t hops = 0; code == 0 && (*r)->kind == REPLICANT_ALIAS && hops < LIMIT_REPLICA_ALIASES; hops++)
		code = replicant_load(replica, (*r)->alias, r);
	if (code == 0 && (*r)->kind == REPLICANT_ALIAS)
		code = ERR_NOT_FOUND;
	return code;
}

/* META: under which id an operation of what became an alias goes on. */
static void moved_key_put(struct buf *out, const struct replica_op_id *op)
{
	buf_put_char(out, 'm');
	op_key_put(out, op);
}

static void note_moved(struct replica *replica, struct replica_op_id from, struct replica_op_id to)
{
	struct buf key = {0}, row = {0};
	moved_key_put(&key, &from);
	moved_row_put(&row, &to);
	replica->host.put(replica->host.context, REPLICA_META, buf_str(&key), buf_str(&row));
	expire_add(replica, replica->now.wall_ms + REPLICA_KEY_MS, REPLICA_META, buf_str(&key));
	buf_free(&key);
	buf_free(&row);
}

bool merge_moved(struct replica *replica, struct replica_op_id *op)
{
	bool moved = false;
	struct buf key = {0}, row = {0};
	for (uint32_t hops = 0; hops < LIMIT_REPLICA_ALIASES; hops++) {
		struct replica_op_id to;
		buf_clear(&key);
		moved_key_put(&key, op);
		if (row_get(replica, REPLICA_META, buf_str(&key), &row) != 0 || moved_row_parse(buf_str(&row), &to, NULL) != 0)
			break;
		*op = to;
		moved = true;
	}
	buf_free(&key);
	buf_free(&row);
	return moved;
}

/* The create lost against the other create; what its issuer did not issue anew was lost in the merge. */
struct replica_op_id merge_successor(struct replica *replica, const struct replicant *alias, struct replica_op_id op)
{
	if (merge_moved(replica, &op))
		return op;
	bool create = op.site == alias->merge.site && op.number == 1 && alias->winner != 0;
	return create ? (struct replica_op_id){alias->alias, alias->winner, 1} : alias->merge;
}

/* ---- Who is to become one --------------------------------------------------------------------------------------------------- */

/* Always the first of its issuer's. NULL: it is not known, or forgotten. */
static const struct op *create_of(const struct replicant *r)
{
	for (uint32_t m = 0; m < r->members_count; m++) {
		const struct op *op = op_find(r, m, 1);
		if (op && op->effect == ORDER_CREATE)
			return op;
	}
	return NULL;
}

static bool rules_equal(const struct order_rules *a, const struct order_rules *b)
{
	size_t table = a->resolutions ? (size_t)a->classes * a->classes : 0;
	return a->classes == b->classes && a->delete_loses == b->delete_loses && a->create_replays == b->create_replays &&
	       (a->resolutions == NULL) == (b->resolutions == NULL) &&
	       (table == 0 || memcmp(a->resolutions, b->resolutions, table) == 0);
}

static bool is_alike(const struct replicant *a, const struct replicant *b)
{
	return a->name.length > 0 && a->consistency == REPLICA_EVENTUAL && b->consistency == REPLICA_EVENTUAL &&
	       a->span == REPLICA_ALIKE && b->span == REPLICA_ALIKE && str_equal(a->name, b->name) &&
	       str_equal(a->collection, b->collection) && str_equal(a->type, b->type) &&
	       str_equal(a->service, b->service) && rules_equal(&a->rules, &b->rules);
}

/* They were made for the same sites, and all that have the loser are still members of the winner: they hear of the merge, and have no
 * copy of the winner to begin with. Sites may have been added to the winner; one that was added to the loser would not hear of it. */
static bool members_fit(const struct replicant *winner, const struct replicant *loser)
{
	uint32_t founders = 0;
	for (uint32_t i = 0; i < winner->members_count; i++)
		founders += !winner->members[i].added;
	for (uint32_t i = 0; i < loser->members_count; i++) {
		const struct member *it = &loser->members[i];
		uint32_t member = it->added ? UINT32_MAX : member_index(winner, it->site);
		bool founder = member != UINT32_MAX && !winner->members[member].added;
		if (!it->added && !founder)
			return false;
		if (!it->removed && (it->added || winner->members[member].removed))
			return false;
		founders -= !it->added;
	}
	return founders == 0;
}

/* The one whose create is later. */
static struct replicant *later_of(struct replicant *a, struct replicant *b)
{
	if (a->kind != REPLICANT_LIVE || b->kind != REPLICANT_LIVE || !is_alike(a, b))
		return NULL;
	const struct op *x = create_of(a), *y = create_of(b);
	if ((!x && !y) || lane_ends_deleted(a) || lane_ends_deleted(b))
		return NULL;
	if (!x || !y) {
		/* A create that everybody has run and forgotten is earlier than any that is known: who issued this one has deleted that
		 * other one before, or that delete has lost since. */
		const struct replicant *old = x ? b : a;
		return vector_is_zero(old->base, old->members_count) ? NULL : x ? a : b;
	}
	bool first = x->stamp != y->stamp ? x->stamp < y->stamp : a->members[x->member].site < b->members[y->member].site;
	return first ? b : a;
}

/* NULL: they stay two. */
static struct replicant *loser_of(struct replicant *a, struct replicant *b)
{
	struct replicant *loser = later_of(a, b);
	return loser && members_fit(loser == a ? b : a, loser) ? loser : NULL;
}

bool merge_is_due(struct replicant *a, struct replicant *b)
{
	const struct replicant *loser = loser_of(a, b);
	return loser && !loser->members[create_of(loser)->member].removed;
}

/* Somebody else may still decide that it becomes another one's alias: a site that is added meanwhile would not hear of it. Where the create
 * is forgotten, all have run it, and whoever had made another one of that name would have waited for the merge. */
bool merge_may_come(const struct replicant *r)
{
	bool named = r->name.length > 0 && r->consistency == REPLICA_EVENTUAL && r->span == REPLICA_ALIKE;
	const struct op *create = named ? create_of(r) : NULL;
	return create && create->member != r->self && !r->members[create->member].removed;
}

/* A member that goes would not hear of a merge, and what it did to the other one would be lost. */
bool merge_is_awaited(struct replica *replica, struct replicant *r)
{
	struct replicant *other = r->name.length > 0 ? name_other(replica, r) : NULL;
	if (!other || !merge_is_due(r, other))
		return false;
	name_wait(replica, other, r);
	return true;
}

static bool is_busy(const struct replicant *r)
{
	return r->task.what != TASK_NONE || r->task.task != 0 || r->unsure;
}

/* ---- At one member ---------------------------------------------------------------------------------------------------------- */

/* All that was done on the winner was done without anything being there. What was reported as settled stays so, but for these. */
static void begin_again(struct replicant *r)
{
	struct report *report = own_report(r);
	const struct op *create = create_of(r);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		if (op != create && op->number <= report->settled[op->member])
			report_except(report, &(struct exception){op->member, op->number, REPLICA_PENDING, 0, 0, NULL});
		else
			report_unexcept(report, op->member, op->number);
	}
	for (uint32_t i = 0; i < r->withheld_count; i++)
		r->withheld[i].place = UINT32_MAX;
	r->steps_count = 0;
	if (create)
		lane_append(r, create);
	r->redo = r->lane_dirty = r->report_dirty = true;
	lane_raise_handled(r);
}

/* What is at this site's service under the name is the winner's from now on. */
static bool take_over(struct replica *replica, struct replicant *winner, struct replicant *loser)
{
	struct report *old = own_report(loser);
	char local_id[LIMIT_REPLICA_NAME_BYTES];
	struct str id = str_make(local_id, old->local_id_bytes);
	bool quoted = old->local_id_quoted, made = old->created && !own_report(winner)->created;
	memcpy(local_id, old->local_id, old->local_id_bytes);
	local_clear(replica, loser);
	name_clear(replica, loser);
	if (!made)
		return false;
	begin_again(winner);
	own_report(winner)->created = true;
	own_report(winner)->foreign = true;
	if (id.length > 0)
		local_set(replica, winner, id, quoted);
	winner->not_before_us = 0;
	winner->retry_us = 0;
	return true;
}

/* That of when it was asked for, so that all that is issued anew, by whomever, keeps its order; but later than all it has seen. */
static uint64_t stamp_of(const struct replicant *r, uint64_t asked)
{
	uint64_t stamp = asked;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		if ((op->member == r->self || op->number <= r->handled[op->member]) && op->stamp >= stamp)
			stamp = op->stamp + 1;
	}
	return stamp;
}

static struct op *issue(struct replica *replica, struct replicant *r, struct str content, uint64_t asked, bool done)
{
	struct op *op = lane_number_at(replica, r, content, stamp_of(r, asked));
	lane_issue(replica, r, op);
	if (done)
		lane_append(r, op);
	if (done && r->handled[r->self] + 1 == op->number)
		r->handled[r->self]++;
	replica_tell(replica, r, op->number, r->self, r->self, done ? REPLICA_APPLIED : REPLICA_PENDING);
	return op;
}

static bool has_deleted(struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (r->ops[i]->member == r->self && r->ops[i]->effect == ORDER_DELETE &&
		    r->sequence.places[i].fate != ORDER_SUPERSEDED)
			return true;
	return false;
}

/* Something that is issued anew itself sets all that it had set. */
static bool is_covered(const struct replicant *r, const struct op *op)
{
	uint32_t at = 0, index = op_index(r, op->member, op->number);
	while (at < r->sequence.ops_count && r->sequence.ops[at] != index)
		at++;
	for (at++; at < r->sequence.ops_count; at++) {
		const struct op *later = r->ops[r->sequence.ops[at]];
		bool resets = later->effect == ORDER_DELETE ||
		              (later->facet == op->facet && order_resets(&r->rules, &r->set.ops[r->sequence.ops[at]]));
		if (resets && later->effect != ORDER_CREATE && !(later->flags & OP_REPAIR))
			return true;
	}
	return false;
}

static bool goes_over(struct replicant *r, const struct op *op, bool deleted)
{
	if (op->flags & OP_MERGE)
		return true;
	return !deleted && op->effect != ORDER_CREATE && op->effect != ORDER_DELETE &&
	       !(op->flags & (OP_REPAIR | OP_ADOPT)) &&
	       r->sequence.places[op_index(r, op->member, op->number)].fate != ORDER_SUPERSEDED && !is_covered(r, op);
}

/* `made`: they had their effect on what is the winner's now. */
static void move_ops(struct replica *replica, struct replicant *winner, struct replicant *loser, bool made)
{
	struct buf content = {0};
	lane_order(loser);
	bool deleted = has_deleted(loser) || lane_ends_deleted(winner);
	for (uint32_t number = loser->base[loser->self] + 1; number <= loser->known[loser->self]; number++) {
		const struct op *op = op_find(loser, loser->self, number);
		const struct step *step = lane_find(loser, loser->self, number);
		struct op_row row;
		if (!goes_over(loser, op, deleted))
			continue;
		if (op_fetch(replica, loser, loser->self, number, &row) != 0) {
			replica->broken = true;
			break;
		}
		buf_clear(&content);
		buf_put(&content, op_content_of(&row, buf_str(&replica->row)));
		bool done = op->flags & OP_MERGE || (made && step && step->how == ORDER_DONE);
		const struct op *new = issue(replica, winner, buf_str(&content), op->stamp, done);
		note_moved(replica, op_id(loser, loser->self, number), op_id(winner, winner->self, new->number));
	}
	buf_free(&content);
}

/* What is in doubt stays so, and what waits for its turn is run on the winner. */
static void move_rest(struct replica *replica, struct replicant *winner, struct replicant *loser, bool made)
{
	while (loser->withheld_count > 0) {
		struct withheld each = loser->withheld[0];
		uint32_t number = doubt_take(replica, winner, loser, &each);
		if (replica->broken)
			return;
		if (!made)
			winner->withheld[winner->withheld_count - 1].place = UINT32_MAX;
		note_moved(replica, op_id(loser, loser->self, each.number), op_id(winner, winner->self, number));
		doubt_drop(replica, loser, each.number);
	}
	while (loser->queue) {
		struct submission *submission = loser->queue;
		loser->queue = submission->next;
		submission->next = NULL;
		if (submission->withheld == 0)
			queue_push(winner, submission);
		else
			submission_free(submission); /* a person says so again, of what it is now */
	}
	loser->queue_end = &loser->queue;
	loser->queue_count = 0;
}

static void become_alias(struct replica *replica, const struct replicant *winner, struct replicant *loser,
                         struct replica_op_id merge)
{
	const struct op *create = create_of(winner);
	loser->kind = REPLICANT_ALIAS;
	loser->alias = winner->id;
	loser->merge = merge;
	loser->winner = create ? winner->members[create->member].site : 0;
	loser->head_dirty = loser->lane_dirty = true;
	expire_add(replica, replica->now.wall_ms + replica->options.tombstone_ms, REPLICA_REPLICANTS, id_str(&loser->id));
	if (replica->host.event) {
		struct replica_event event = {.kind = REPLICA_EVENT_MERGED, .op = {.replicant = loser->id}, .into = winner->id};
		replica->host.event(replica->host.context, &event);
	}
	replica->counters.merged++;
	work_add(replica, loser);
}

static void drop_loser(struct replica *replica, struct replicant *loser)
{
	for (uint32_t i = 0; i < loser->members_count; i++) {
		if (i != loser->self)
			peer_owe(replica, loser, i, false);
		report_clear(&loser->members[i].report);
	}
	for (uint32_t i = 0; i < loser->ops_count; i++) {
		struct op *op = loser->ops[i];
		if (op->flags & OP_BLOB)
			blob_done(replica, loser, op->member, op->number);
		op_unstore(replica, loser, op->member, op->number);
		free(op);
	}
	checkpoint_drop(replica, loser);
	loser->ops_count = loser->steps_count = 0;
	vector_copy(loser->base, loser->known, loser->members_count);
	loser->ordered = loser->redo = false;
	loser->repair_us = loser->alone_us = 0;
	members_extend_refuse(replica, loser, ERR_UNAVAILABLE, "it became one with another one of its name: try again");
	own_report(loser)->created = false;
}

/* The merge is known here. Neither of them is busy. */
static void become_one(struct replica *replica, struct replicant *winner, struct replicant *loser,
                       struct replica_op_id merge, bool made)
{
	uint32_t before = loser->ops_count;
	move_ops(replica, winner, loser, made);
	move_rest(replica, winner, loser, made);
	/* A replace among them was not the last word: others have changed it since, and issue that anew as well. */
	own_report(winner)->foreign |= made;
	if (replica->broken)
		return;
	for (uint32_t i = 0; i < before; i++)
		if (loser->ops[i]->effect == ORDER_CREATE)
			replica_tell(replica, loser, loser->ops[i]->number, loser->ops[i]->member, loser->self, REPLICA_SUPERSEDED);
	drop_loser(replica, loser);
	become_alias(replica, winner, loser, merge);
	if (own_report(winner)->created)
		name_set(replica, winner);
	else
		name_note(replica, winner);
	references_wake(replica, loser);
	references_wake(replica, winner); /* what refers to it may have waited for its create */
	work_add(replica, winner);
}

/* ---- The decider ------------------------------------------------------------------------------------------------------------ */

static void decide(struct replica *replica, struct replicant *winner, struct replicant *loser)
{
	struct buf content = {0};
	const struct replica_class class = {
		.name = STR("merge"), .effect = ORDER_RELATIVE, .facet = MERGE_FACET, .repeatable = true};
	const struct replica_request request = {.references = &loser->id, .references_count = 1};
	bool made = take_over(replica, winner, loser);
	op_content_put(&content, &class, &request, OP_MERGE);
	const struct op *merge = issue(replica, winner, buf_str(&content), create_of(loser)->stamp, true);
	buf_free(&content);
	become_one(replica, winner, loser, op_id(winner, merge->member, merge->number), made);
}

/* `r` and another one of its name. True: one of them is an alias now. */
static bool look_at_pair(struct replica *replica, struct replicant *r, struct replicant *other)
{
	struct replicant *loser = loser_of(r, other);
	if (!loser || create_of(loser)->member != loser->self)
		return false;
	struct replicant *winner = loser == r ? other : r;
	const struct op *create = create_of(winner);
	lane_raise_handled(winner);
	/* The merge has to come after the create everywhere: it was run here, or is taken for it. */
	if (create && !own_report(loser)->created && winner->handled[create->member] < create->number)
		return false;
	if (is_busy(r) || is_busy(other)) {
		name_wait(replica, other, r);
		return false;
	}
	decide(replica, winner, loser);
	return true;
}

void merge_consider(struct replica *replica, struct replicant *r)
{
	struct replicant *other = NULL;
	if (r->kind != REPLICANT_LIVE || r->name.length == 0 || (!create_of(r) && !r->newcomer))
		return;
	other = name_other(replica, r);
	if (other && look_at_pair(replica, r, other))
		return;
	if (other && !own_report(r)->created && (lane_is_refused(r) || r->newcomer) && name_holder(replica, r))
		name_wait(replica, other, r); /* also after a restart: it is tried again when the other one is deleted */
	/* Those that waited for this one to have nothing to do. */
	for (uint32_t i = 0; i < replica->waiters_count && !is_busy(r); i++) {
		struct waiter waiter = replica->waiters[i];
		if (id_equal(waiter.reference, r->id) && replicant_load(replica, waiter.id, &other) == 0) {
			if (look_at_pair(replica, other, r))
				return;
			if (other->merges)
				work_add(replica, other);
		}
	}
}

/* ---- Everybody else --------------------------------------------------------------------------------------------------------- */

static bool take_merge(struct replica *replica, struct replicant *winner, const struct op *op, struct replica_id id)
{
	struct replicant *loser;
	struct replica_op_id merge = op_id(winner, op->member, op->number);
	int code = replicant_load(replica, id, &loser);
	if (code == ERR_NOT_FOUND) {
		loser = replicant_new(replica, id); /* it never came here */
		become_alias(replica, winner, loser, merge);
		references_wake(replica, loser);
		return true;
	}
	if (code != 0 || loser->kind != REPLICANT_LIVE || !is_alike(winner, loser))
		return true; /* done before; or nothing that could be done */
	if (is_busy(loser)) {
		name_wait(replica, loser, winner);
		return false;
	}
	if (winner->newcomer) {
		/* It was removed from the loser, and has not heard of that; of the winner it begins with a copy. */
		members_remove(replica, loser, loser->self);
		return true;
	}
	become_one(replica, winner, loser, merge, take_over(replica, winner, loser));
	return true;
}

bool merge_take(struct replica *replica, struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count && r->merges; i++) {
		struct op_row row;
		struct replica_id id = no_id;
		const struct op *op = r->ops[i];
		if (!(op->flags & OP_MERGE))
			continue;
		if (op_fetch(replica, r, op->member, op->number, &row) != 0)
			return false;
		if (row.request.references_count == 1)
			memcpy(&id, row.request.references, sizeof(id));
		if (!id_equal(id, no_id) && !id_equal(id, r->id) && !take_merge(replica, r, op, id))
			return false;
		if (replica->broken)
			return false;
	}
	r->merges = false;
	return true;
}

/* The create can be run as a replace. Once: what its service refuses is left to a repair. */
bool merge_replays(struct replicant *r, struct order_next *next)
{
	const struct op *create = create_of(r);
	if (!r->rules.create_replays || !create || lane_ends_deleted(r) ||
	    report_exception(own_report(r), create->member, create->number))
		return false;
	*next = (struct order_next){
		.action = ORDER_RERUN, .op = op_index(r, create->member, create->number), .as_replace = true, .standing = true};
	return true;
}

/* Something set the whole of it, or took it away: nothing is left of what it was before. */
void merge_reset(struct replicant *r, const struct op *op, bool as_replace)
{
	const struct order_op it = {.effect = op->effect, .class = op->class, .facet = op->facet};
	bool resets = op->effect == ORDER_DELETE || as_replace ||
	              (op->effect == ORDER_REPLACE && op->facet == 0 && order_resets(&r->rules, &it));
	if (!own_report(r)->foreign || !resets)
		return;
	own_report(r)->foreign = own_report(r)->stuck = false; /* if it is for another reason, that is found out anew */
	r->report_dirty = r->lane_dirty = true;
}
