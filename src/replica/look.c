/* To look at: replicants and operations as they are known here, and sessions.
 *
 * What is said of another member is what it reported last: it may have done more since. */
#include "replica/replica_int.h"

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

/* ---- Replicants ------------------------------------------------------------------------------------------------------------ */

static void look_at_member(struct arena *arena, const struct replicant *r, uint32_t member,
                           struct replica_member_view *view)
{
	const struct report *report = &r->members[member].report;
	*view = (struct replica_member_view){.site = r->members[member].site,
	                                     .local_id = copy(arena, str_make(report->local_id, report->local_id_bytes)),
	                                     .local_id_quoted = report->local_id_quoted,
	                                     .stuck = report->stuck,
	                                     .diverged = report->diverged,
	                                     .leaving = r->members[member].leaving,
	                                     .witness = member_witnesses(&r->members[member]),
	                                     .settled = true};
	for (uint32_t i = 0; i < r->members_count && r->kind == REPLICANT_LIVE; i++)
		if (report->settled[i] < r->known[i])
			view->pending += r->known[i] - report->settled[i];
	for (uint32_t i = 0; i < report->exceptions_count && r->kind == REPLICANT_LIVE; i++) {
		uint8_t state = report->exceptions[i].state;
		view->in_doubt += state == REPLICA_IN_DOUBT;
		view->rejected += state == REPLICA_REJECTED || state == REPLICA_REJECTED_CREDENTIAL;
		view->pending += state == REPLICA_PENDING; /* a person wants it to be run again */
	}
	view->settled = view->pending == 0;
	bool came = r->members[member].added || r->members[member].holds;
	bool begun = view->witness ? !vector_is_zero(report->settled, r->members_count) : report->created;
	view->joining = came && !begun && r->kind == REPLICANT_LIVE;
	if (member == r->self)
		view->in_doubt += r->withheld_count;
}

/* The same everywhere, however a site numbers them. */
static void members_by_id(const struct replicant *r, uint32_t *order)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		uint32_t at = i;
		for (; at > 0 && r->members[order[at - 1]].site > r->members[i].site; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

int replica_look(struct replica *replica, struct arena *arena, struct replica_id id, struct replica_view *view)
{
	struct replicant *r;
	int code = replicant_resolve(replica, id, &r);
	if (code != 0)
		return code;
	struct replica_member_view *members = arena_array(arena, struct replica_member_view, r->members_count);
	uint32_t count = 0, order[LIMIT_REPLICA_MEMBERS];
	members_by_id(r, order);
	for (uint32_t i = 0; i < r->members_count; i++)
		if (!r->members[order[i]].removed)
			look_at_member(arena, r, order[i], &members[count++]);
	*view = (struct replica_view){.id = r->id,
	                              .service = copy(arena, r->service),
	                              .type = copy(arena, r->type),
	                              .collection = copy(arena, r->collection),
	                              .name = copy(arena, r->name),
	                              .consistency = r->consistency,
	                              .span = r->span,
	                              .prime = r->span == REPLICA_ALIKE ? 0 : witness_prime(r),
	                              .deleted = r->kind != REPLICANT_LIVE || lane_is_deleted(r),
	                              .left = r->kind == REPLICANT_LEFT,
	                              .busy = r->queue || r->unsure || r->redo || r->deletes || r->task.what != TASK_NONE,
	                              .members = members,
	                              .members_count = count,
	                              .operations = r->ops_count};
	replicants_trim(replica);
	return 0;
}

/* ---- Operations ------------------------------------------------------------------------------------------------------------- */

static const struct step *find_step(const struct replicant *r, const struct op *op)
{
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].member == op->member && r->steps[i].number == op->number)
			return &r->steps[i];
	return NULL;
}

static enum replica_member_state state_at(const struct replicant *r, uint32_t member, const struct op *op,
                                          enum order_fate fate)
{
	const struct report *report = &r->members[member].report;
	const struct step *step = member == r->self ? find_step(r, op) : NULL;
	bool settled = report->settled[op->member] >= op->number;
	if (report_exception(report, op->member, op->number))
		return exception_shown(report_exception(report, op->member, op->number));
	if (step && step->how == ORDER_REJECTED)
		return REPLICA_REJECTED; /* and a person let it be */
	if (fate == ORDER_SUPERSEDED)
		return settled ? REPLICA_SUPERSEDED : REPLICA_PENDING;
	return settled || step ? REPLICA_APPLIED : REPLICA_PENDING;
}

/* Withheld: nobody but this site has it. */
static void look_at_withheld(struct replicant *r, struct replica_op_view *view)
{
	view->members[0].site = r->members[r->self].site;
	view->members[0].state = REPLICA_IN_DOUBT;
	view->members[0].answer = STR("");
	view->members_count = 1;
}

static void look_at_states(struct arena *arena, struct replicant *r, const struct op *op, struct replica_op_view *view)
{
	enum order_fate fate = ORDER_COUNTS;
	if (op && r->ops_count > 1) {
		lane_order(r);
		const struct order_place *place = &r->sequence.places[op_index(r, op->member, op->number)];
		fate = place->fate;
		if (fate == ORDER_SUPERSEDED)
			view->superseded_by = op_id(r, r->ops[place->by]->member, r->ops[place->by]->number);
	}
	uint32_t order[LIMIT_REPLICA_MEMBERS];
	members_by_id(r, order);
	for (uint32_t k = 0; k < r->members_count; k++) {
		uint32_t i = order[k];
		if (r->members[i].removed)
			continue;
		const struct exception *exception = op ? report_exception(&r->members[i].report, op->member, op->number) : NULL;
		uint32_t at = view->members_count++;
		view->members[at].site = r->members[i].site;
		view->members[at].state = op ? state_at(r, i, op, fate) : REPLICA_APPLIED;
		view->members[at].status = exception ? exception->status : 0;
		view->members[at].answer =
			exception ? copy(arena, str_make(exception->answer, exception->answer_bytes)) : STR("");
	}
}

/* Its replicant became an alias: what was asked for goes on as another operation, or is none any more. */
static int look_at_lost(struct replica *replica, const struct replicant *alias, struct replica_op_view *view)
{
	struct replicant *r;
	int code = replicant_resolve(replica, alias->id, &r);
	uint32_t member = code == 0 ? member_index(r, view->id.site) : UINT32_MAX;
	if (code != 0 || member == UINT32_MAX || view->id.number == 0)
		return ERR_NOT_FOUND;
	view->class.name = STR("");
	view->superseded_by = merge_successor(replica, alias, view->id);
	for (uint32_t i = 0; i < r->members_count; i++) {
		if (r->members[i].removed)
			continue;
		uint32_t at = view->members_count++;
		view->members[at].site = r->members[i].site;
		view->members[at].state = REPLICA_SUPERSEDED;
		view->members[at].answer = STR("");
	}
	return 0;
}

/* What another member is not known to have made: as far as this site has a copy itself, and that one is to have one. */
static bool is_missed_at(struct replica *replica, site_id site, const struct replica_id *references, uint32_t count,
                         struct replica_id *missing)
{
	for (uint32_t i = 0; i < count; i++) {
		struct replicant *other;
		if (replicant_resolve(replica, references[i], &other) != 0 || other->kind != REPLICANT_LIVE)
			continue;
		uint32_t member = member_index(other, site);
		const struct member *it = member != UINT32_MAX ? &other->members[member] : NULL;
		if (!it || it->removed || it->witness || it->report.created)
			continue;
		*missing = other->id;
		return true;
	}
	return false;
}

/* It would wait for ever for what has no copy here: so that is shown. */
static void look_at_references(struct replica *replica, const struct replicant *r, const struct replica_id *references,
                               uint32_t count, struct replica_op_view *view)
{
	bool pending = false;
	for (uint32_t i = 0; i < view->members_count; i++) {
		bool here = view->members[i].site == r->members[r->self].site, open = view->members[i].state == REPLICA_PENDING;
		pending |= here && open;
		if (open && !here)
			view->members[i].waits =
				is_missed_at(replica, view->members[i].site, references, count, &view->members[i].waits_for);
	}
	if (!pending)
		return;
	enum reference found = references_look(replica, r, references, count, &view->waits_for);
	view->waits = found != REFERENCE_HERE;
	view->waits_unheard = found == REFERENCE_UNKNOWN;
}

int replica_look_op(struct replica *replica, struct arena *arena, struct replica_op_id id, struct replica_op_view *view)
{
	struct replicant *r;
	struct op_row row = {.class = {.name = STR_INIT("")}};
	*view = (struct replica_op_view){.id = id};
	int code = replicant_load(replica, id.replicant, &r);
	if (code == 0 && r->kind == REPLICANT_ALIAS)
		return look_at_lost(replica, r, view);
	if (code != 0)
		return code;
	uint32_t member = member_index(r, id.site);
	if (member == UINT32_MAX || id.number == 0)
		return ERR_NOT_FOUND;
	bool forgotten = id.number <= r->base[member];
	bool known =
		!forgotten && (id.number <= r->known[member] || (member == r->self && (id.number & REPLICA_WITHHELD) != 0));
	if (!forgotten && !known)
		return ERR_NOT_FOUND;
	if (known)
		code = op_fetch(replica, r, member, id.number, &row);
	if (code != 0)
		return code;
	view->class = row.class;
	view->class.name = copy(arena, row.class.name);
	view->stamp = row.stamp;
	view->repair = row.flags & OP_REPAIR;
	view->merges = (row.flags & OP_MERGE) && row.request.references_count == 1;
	if (view->merges)
		memcpy(&view->merged, row.request.references, sizeof(view->merged));
	uint32_t references_count = view->merges ? 0 : row.request.references_count;
	struct replica_id *references = arena_array(arena, struct replica_id, references_count + 1);
	if (references_count > 0)
		memcpy(references, row.request.references, references_count * sizeof(*references));
	if (id.number & REPLICA_WITHHELD)
		look_at_withheld(r, view);
	else
		look_at_states(arena, r, op_find(r, member, id.number), view);
	look_at_references(replica, r, references, references_count, view);
	replicants_trim(replica);
	return 0;
}

/* ---- How far this site has come --------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t digest, uint64_t value)
{
	uint64_t z = digest ^ (value + UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

int replica_standing(struct replica *replica, struct replica_id id, struct replica_standing *standing)
{
	struct replicant *r;
	int code = replicant_resolve(replica, id, &r);
	if (code == 0 && (r->kind != REPLICANT_LIVE || !own_report(r)->created))
		code = ERR_NOT_FOUND;
	if (code != 0)
		return code;
	const struct report *own = own_report(r);
	bool reads = r->task.what == TASK_NONE || r->task.what == TASK_STATE || r->task.what == TASK_COPY ||
	             r->task.what == TASK_CHECKPOINT;
	uint32_t order[LIMIT_REPLICA_MEMBERS];
	*standing = (struct replica_standing){
		.settled = !r->redo && !own->stuck && vector_equal(own->settled, r->known, r->members_count),
		.quiet = reads && !r->unsure,
		.lacks = own->lacking || own->foreign || r->withheld_count > 0 || lane_lacks(r, false)};
	members_by_id(r, order);
	for (uint32_t k = 0; k < r->members_count; k++) {
		uint32_t i = order[k], number = own->settled[i];
		if (!r->members[i].removed)
			standing->members[standing->members_count++] = r->members[i].site;
		if (number > 0)
			standing->digest = mix(mix(standing->digest, r->members[i].site), number);
		standing->operations += number;
	}
	replicants_trim(replica);
	return 0;
}

/* ---- Sessions: "META-ID", then ":SITE.NUMBER" of each member whose operations this site has handled ---------------------------- */

void replica_session_put(struct replica *replica, struct replica_id id, struct buf *out)
{
	struct replicant *r;
	if (replicant_resolve(replica, id, &r) != 0)
		return;
	replica_id_put(r->id, out);
	/* In one order: what two sites say is the same if they have seen the same. */
	uint32_t order[LIMIT_REPLICA_MEMBERS];
	members_by_id(r, order);
	bool here = r->kind == REPLICANT_LIVE || r->kind == REPLICANT_LEFT; /* what it took until then reaches the others */
	for (uint32_t k = 0; k < r->members_count && here; k++) {
		uint32_t i = order[k];
		/* Of its own, all: also what was accepted while an earlier one is still being made sure of. */
		uint32_t number = i == r->self ? r->known[i] : r->handled[i];
		if (number == 0)
			continue;
		buf_put_char(out, ':');
		for (unsigned shift = 64; shift > 0; shift -= 4)
			buf_put_char(out, "0123456789abcdef"[r->members[i].site >> (shift - 4) & 15]);
		buf_put_char(out, '.');
		buf_put_number(out, number, 1);
	}
	replicants_trim(replica);
}

static bool read_digits(struct str *text, unsigned base, char end, uint64_t *number)
{
	size_t at = 0;
	*number = 0;
	for (; at < text->length && text->at[at] != end; at++) {
		int digit = str_hex_value(text->at[at]);
		if (digit < 0 || (unsigned)digit >= base || at >= 16)
			return false;
		*number = *number * base + (unsigned)digit;
	}
	size_t taken = at < text->length ? at + 1 : at;
	*text = str_make(text->at + taken, text->length - taken);
	return at > 0;
}

/* Its site was removed, and nobody who is left has it: it will not come. */
static bool is_lost(const struct replicant *r, uint32_t member, uint64_t number)
{
	if (!r->members[member].removed || r->known[member] >= number || !members_agree(r))
		return false;
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed && r->members[i].has[member] >= number)
			return false;
	return true;
}

bool replica_session_met(struct replica *replica, struct str session)
{
	enum { ID_BYTES = 36 };
	struct replica_id id;
	struct replicant *r;
	if (session.length < ID_BYTES || !replica_id_parse(str_make(session.at, ID_BYTES), &id))
		return true; /* it is none of ours: there is nothing to wait for */
	int code = replicant_resolve(replica, id, &r);
	/* Numbers of what became an alias say nothing of what it is now; it became so after this site had heard of its operations. */
	if (code != 0 || r->kind != REPLICANT_LIVE || !id_equal(r->id, id))
		return code == 0;
	struct str rest = str_make(session.at + ID_BYTES, session.length - ID_BYTES);
	while (rest.length > 0 && rest.at[0] == ':') {
		uint64_t site, number;
		rest = str_make(rest.at + 1, rest.length - 1);
		if (!read_digits(&rest, 16, '.', &site))
			return true;
		/* The next `:` stays where it is. */
		size_t digits = 0;
		while (digits < rest.length && rest.at[digits] != ':')
			digits++;
		struct str text = str_make(rest.at, digits);
		rest = str_make(rest.at + digits, rest.length - digits);
		if (!read_digits(&text, 10, ':', &number))
			return true;
		uint32_t member = member_index(r, site);
		if (member == UINT32_MAX)
			return false; /* it was added, and this site has not heard of that yet */
		if (member != r->self && r->handled[member] < number && !is_lost(r, member, number))
			return false;
	}
	return true;
}

/* ---- Without a struct replica --------------------------------------------------------------------------------------- */

int replica_here_parse(struct str row, site_id self, struct replica_here *here, struct err *err)
{
	struct replicant r = {0};
	if (here_skim(row, self, here))
		return 0;
	int code = head_parse(row, &r, self, err);
	*here = (struct replica_here){.alias = code == 0 && r.kind == REPLICANT_ALIAS,
	                              .gone = r.kind == REPLICANT_GONE || r.kind == REPLICANT_LEFT,
	                              .left = r.kind == REPLICANT_LEFT};
	if (here->alias)
		here->other = r.alias;
	if (code == 0 && r.kind == REPLICANT_LIVE) {
		const struct report *report = &r.members[r.self].report;
		memcpy(here->local_id, report->local_id, report->local_id_bytes);
		here->local_id_bytes = report->local_id_bytes;
		here->local_id_quoted = report->local_id_quoted;
		here->members = here_members(&r);
		here->span = r.span;
		here->prime = r.span != REPLICA_ALIKE ? witness_prime(&r) : 0;
		here->witness = witness_sends_on(&r);
		if (here->witness)
			here->holders_count = witness_holders(&r, here->holders, LIMIT_REPLICA_HOLDERS);
	}
	replicant_wipe(&r);
	return code;
}

uint32_t replica_members_parse(struct str row, site_id self, site_id members[LIMIT_REPLICA_MEMBERS])
{
	struct replicant r = {0};
	uint32_t count = 0;
	if (head_parse(row, &r, self, NULL) == 0 && r.kind == REPLICANT_LIVE) {
		for (uint32_t i = 0; i < r.members_count; i++) {
			if (!r.members[i].removed)
				members[count++] = r.members[i].site;
		}
	}
	replicant_wipe(&r);
	return count;
}
