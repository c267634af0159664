/* A new member, at who adds it (members.c has the protocol): it waits until all is settled here, reads its own copy, and issues it.
 *
 * To be a witness (witness.c) nothing is read, and the operation asks for nothing. A witness that is to hold the resource gets a copy like who is new. */
#include "replica/replica_int.h"

#include "base/check.h"

static void answer_extend(struct replica *replica, struct replicant *r, const struct replica_answer *answer)
{
	struct replica_answer told = *answer;
	told.ticket = r->extend_ticket;
	r->extend = 0;
	r->extend_ticket = 0;
	if (told.ticket != 0)
		replica->host.answer(replica->host.context, &told);
}

void members_extend_refuse(struct replica *replica, struct replicant *r, int code, const char *text)
{
	if (r->extend != 0)
		answer_extend(replica, r, &(struct replica_answer){.code = code, .text = str_of(text)});
}

/* Nothing of what counts is missing here; or it is about to be run again. */
static bool is_whole(const struct replicant *r)
{
	const struct report *own = &r->members[r->self].report;
	for (uint32_t i = 0; i < own->exceptions_count; i++)
		if (own->exceptions[i].state != REPLICA_PENDING)
			return false;
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].how != ORDER_DONE && r->steps[i].how != ORDER_REPLAYED &&
		    !report_exception(own, r->steps[i].member, r->steps[i].number))
			return false;
	return r->withheld_count == 0;
}

static bool is_settled(const struct replicant *r)
{
	const struct report *own = &r->members[r->self].report;
	return !r->redo && !r->merges && !own->stuck && !own->foreign && own->exceptions_count == 0 &&
	       vector_equal(own->settled, r->known, r->members_count);
}

/* The last word when time is up. */
static const char *why_not_yet(const struct replicant *r)
{
	if (r->members[r->self].report.foreign)
		return "the copy here was made as another one of its name, and waits for its state: try again, or ask another "
			   "member";
	if (merge_may_come(r))
		return "not every member is known to have made it, and another one of its name may turn up: try again, or ask "
			   "the site that created it";
	return "this site has not yet executed all that it knows of: try again, or ask another member";
}

static uint64_t hold_us(const struct replicant *r)
{
	return r->extend_by_us - REPLICA_EXTEND_US + REPLICA_HOLD_US;
}

bool members_holds(const struct replica *replica, const struct replicant *r)
{
	return r->extend != 0 && replica->now.us >= hold_us(r);
}

static const struct op *issue_one(struct replica *replica, struct replicant *r, const struct replica_class *given,
                                  uint8_t flags, const struct replica_request *request)
{
	struct buf content = {0};
	struct replica_class class = *given;
	class.effect = ORDER_ADOPT;
	class.class = 0;
	op_content_put(&content, &class, request, (uint8_t)(OP_ADOPT | flags));
	put_number(&content, r->extend, 8);
	struct op *op = lane_number(replica, r, buf_str(&content));
	buf_free(&content);
	lane_issue(replica, r, op);
	lane_append(r, op);
	if (r->handled[r->self] + 1 == op->number)
		r->handled[r->self]++;
	replica_tell(replica, r, op->number, op->member, r->self, REPLICA_APPLIED);
	return op;
}

static void answer_issued(struct replica *replica, struct replicant *r, const struct op *op, int status)
{
	answer_extend(replica, r,
	              &(struct replica_answer){.op = op_id(r, op->member, op->number),
	                                       .outcome = {.kind = REPLICA_ACCEPTED, .status = status},
	                                       .text = STR("")});
}

/* The copy last: who has it has its parts. */
static void issue_copy(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	uint32_t member = member_index(r, r->extend);
	if (member == UINT32_MAX) {
		member = members_add(r, r->extend);
		members_mark(replica, r, member, MEMBER_ADDED);
	}
	if (r->span == REPLICA_PLACED)
		members_mark(replica, r, member, MEMBER_HOLDS);
	members_changed(replica, r);
	for (uint32_t i = 0; i < outcome->parts_count; i++)
		issue_one(replica, r, &outcome->parts[i].class, 0, &outcome->parts[i].request);
	struct replica_class class = outcome->state_class;
	class.facet = 0;
	answer_issued(replica, r, issue_one(replica, r, &class, 0, &outcome->state), outcome->status);
}

/* Nothing is copied; but which operations it need not hear of any more has to be fixed for a witness as well. */
static void issue_witness(struct replica *replica, struct replicant *r)
{
	struct replica_class class = {.name = STR("witness"), .repeatable = true};
	members_mark(replica, r, members_add(r, r->extend), MEMBER_ADDED | MEMBER_WITNESS);
	members_changed(replica, r);
	answer_issued(replica, r, issue_one(replica, r, &class, OP_WITNESS, &(struct replica_request){.head = STR("")}), 0);
}

/* May it become a member; or, if it is one, hold what it only knows of? */
static int check_site(const struct replica *replica, const struct replicant *r, site_id site, bool hold,
                      struct err *err)
{
	uint32_t member = member_index(r, site);
	bool is = member != UINT32_MAX, witness = is && member_witnesses(&r->members[member]);
	if (members_is_removed(replica, site)) /* it may have been so since this was asked for */
		return err_set(err, ERR_CONFLICT, "that site was removed from the mesh");
	if (is && r->members[member].removed)
		return err_set(err, ERR_CONFLICT, "that site was a member before, and cannot come back to the same resource");
	if (witness && !hold)
		return err_set(err, ERR_CONFLICT, "that site knows of it already; to have the resource there, move it");
	if (witness && r->members[member].leaving)
		return err_set(err, ERR_CONFLICT, "that site is leaving, and cannot come back to the same resource");
	if (is && !witness)
		return err_set(err, ERR_CONFLICT, "that site is a member already");
	if (!is && r->members_count == LIMIT_REPLICA_MEMBERS)
		return err_set(err, ERR_LIMIT, "%u members, those who left included; there can be %d", r->members_count,
		               LIMIT_REPLICA_MEMBERS);
	return 0;
}

/* Who is to be a witness gets no copy: whatever the one here is like does not matter. */
static void extend_to_witness(struct replica *replica, struct replicant *r)
{
	struct err err = {0};
	bool settled = !r->redo && vector_equal(own_report(r)->settled, r->known, r->members_count);
	/* Behind a delete nothing may come: it would not be the end any more. */
	if (lane_is_closed(r) || lane_ends_deleted(r))
		members_extend_refuse(replica, r, ERR_NOT_FOUND, "it was deleted meanwhile");
	else if (replica->now.us >= r->extend_by_us)
		members_extend_refuse(replica, r, ERR_UNAVAILABLE, why_not_yet(r));
	else if (!settled || !own_report(r)->created)
		replica_fire(replica, r, members_holds(replica, r) ? r->extend_by_us : hold_us(r));
	else if (check_site(replica, r, r->extend, false, &err) != 0)
		members_extend_refuse(replica, r, err.code, err.text);
	else
		issue_witness(replica, r);
	if (r->extend == 0)
		work_add(replica, r); /* what was held goes on */
}

void members_extend(struct replica *replica, struct replicant *r)
{
	if (r->extend == 0 || r->task.what != TASK_NONE || r->kind != REPLICANT_LIVE)
		return;
	if (r->span == REPLICA_PLACED && !r->extend_holds) {
		extend_to_witness(replica, r);
		return;
	}
	if (lane_is_closed(r))
		members_extend_refuse(replica, r, ERR_NOT_FOUND, "it was deleted meanwhile");
	else if (!is_whole(r))
		members_extend_refuse(replica, r, ERR_CONFLICT,
		                      "an operation is rejected or in doubt here: see to that first, or ask another member");
	else if (own_report(r)->diverged)
		members_extend_refuse(replica, r, ERR_CONFLICT, "the copy here is not what it ought to be: ask another member");
	else if (own_report(r)->lacking)
		members_extend_refuse(
			replica, r, ERR_CONFLICT,
			"something is missing from the copy here that was rejected and let be: ask another member, or repair it");
	else if (replica->now.us >= r->extend_by_us)
		members_extend_refuse(replica, r, ERR_UNAVAILABLE, why_not_yet(r));
	if (r->extend == 0) {
		work_add(replica, r); /* what was held goes on */
		return;
	}
	bool holds = members_holds(replica, r);
	replica_fire(replica, r, holds ? r->extend_by_us : hold_us(r));
	if (!is_settled(r) || !own_report(r)->created || (r->queue && !holds) || merge_may_come(r) ||
	    replica->running_count >= replica->options.running_most)
		return;
	r->task = (struct task){.what = TASK_COPY, .kind = REPLICA_READ_COPY, .member = r->self};
	struct op_row row = {0};
	lane_execute(replica, r, &row);
}

static int check_copy(const struct replica_outcome *outcome, struct err *err)
{
	int code = op_check(&outcome->state_class, &outcome->state, err);
	for (uint32_t i = 0; i < outcome->parts_count && code == 0; i++) {
		const struct replica_part *part = &outcome->parts[i];
		CHECK(part->class.facet != 0);
		code = op_check(&part->class, &part->request, err);
	}
	return code;
}

/* The copy was read. */
void members_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct err err = {0};
	if (r->extend == 0)
		return;
	if (outcome->kind == REPLICA_FAILED || outcome->kind == REPLICA_UNKNOWN) {
		lane_wait(replica, r);
	} else if (outcome->kind != REPLICA_ACCEPTED) {
		struct buf text = {0};
		buf_printf(&text, "the copy here cannot be read, or not be given to another site: %.*s",
		           STR_FMT(outcome->answer));
		members_extend_refuse(replica, r, ERR_CONFLICT, buf_c(&text));
		buf_free(&text);
	} else if (check_site(replica, r, r->extend, r->extend_holds, &err) != 0 || check_copy(outcome, &err) != 0) {
		members_extend_refuse(replica, r, err.code, err.text);
	} else {
		issue_copy(replica, r, outcome);
	}
}

int members_ask_extend(struct replica *replica, struct replica_id id, const struct replica_extension *extension,
                       struct err *err)
{
	struct replicant *r;
	int code = members_find(replica, id, &r, err);
	if (code == 0)
		code = check_site(replica, r, extension->site, extension->hold && r->span == REPLICA_PLACED, err);
	if (code != 0)
		return code;
	if (is_witness(r))
		return err_set(err, ERR_UNAVAILABLE, "this site only knows of it: ask one that has it");
	if (!own_report(r)->created || r->newcomer)
		return err_set(err, ERR_UNAVAILABLE, "it has not been made at this site yet: ask another member");
	if (members_is_leaving(r))
		return err_set(err, ERR_CONFLICT, "this site is leaving: ask another member");
	if (r->extend != 0)
		return err_set(err, ERR_CONFLICT, "another site is being added to it: try again when that is done");
	r->extend = extension->site;
	r->extend_holds = extension->hold;
	r->extend_ticket = extension->ticket;
	r->extend_by_us = replica->now.us + REPLICA_EXTEND_US;
	work_add(replica, r);
	return 0;
}
