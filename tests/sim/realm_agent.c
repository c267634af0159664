/* A request on its way from its user to struct replica, and what follows from what has changed. Follows src/engine/submit.c, names.c and follow.c. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct str type_names[] = {STR_INIT("sample.project"), STR_INIT("sample.server"), STR_INIT("sample.pool")};

/* Classes: 0 makes it, or sets all of it; 1 changes it; 2 adds to it; 3 deletes it. What is added lands on top of what was set. */
enum { CLASSES = 4 };
#define D ORDER_DEFAULT
static const uint8_t plain[CLASSES * CLASSES] = {D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D};
static const uint8_t of_pools[CLASSES * CLASSES] = {D, D, D, D, D, D, ORDER_KEEP, D, D, ORDER_REVERSE,
                                                    D, D, D, D, D, D};
#undef D

static const struct replica_class classes[] = {
	[REALM_MAKE] = {STR_INIT("create"), ORDER_CREATE, 0, 0, false},
	[REALM_RENAME] = {STR_INIT("rename"), ORDER_ASSIGN, 0, 1, true},
	[REALM_SET] = {STR_INIT("set"), ORDER_ASSIGN, 0, 1, true},
	[REALM_ADD] = {STR_INIT("add"), ORDER_RELATIVE, 0, 2, false},
	[REALM_DELETE] = {STR_INIT("delete"), ORDER_DELETE, 0, 3, true},
};

uint32_t realm_thing_new(struct realm *realm, enum realm_kind kind)
{
	CHECK(realm->things_count < REALM_THINGS);
	struct realm_thing *thing = &realm->things[realm->things_count];
	*thing = (struct realm_thing){.kind = kind};
	thing->id = replica_id_make(1700000000000 + realm->sim.now_us / 1000, 7, realm->things_count + 1);
	return realm->things_count++;
}

/* ---- Telling ------------------------------------------------------------------------------------------------------------------ */

struct verdict {
	uint32_t job, round, accepted;
	int code;
};

static void tell(struct realm *realm, struct realm_site *it, struct realm_ticket *ticket, bool accepted, int code)
{
	struct verdict verdict = {ticket->job, ticket->round, accepted, code};
	if (ticket->answered) {
		realm_violation(realm, "a user is answered twice");
		return;
	}
	ticket->answered = true;
	if (ticket->forwarded)
		realm_send(realm, it->number, realm->jobs[ticket->job]->site, 'f', &verdict, sizeof(verdict));
	else
		realm_job_told(realm, ticket->job, ticket->round, accepted, code);
}

/* What users know from now on. */
static void note(struct realm *realm, const struct realm_ticket *ticket, bool accepted)
{
	struct realm_thing *thing = &realm->things[ticket->request.thing];
	if (ticket->request.verb == REALM_ADD)
		thing->open -= ticket->request.size;
	if (!accepted)
		return;
	switch (ticket->request.verb) {
	case REALM_MAKE:
		thing->made = true;
		thing->made_us = realm->sim.now_us;
		thing->name = ticket->request.name;
		break;
	case REALM_RENAME: thing->name = ticket->request.name; break;
	case REALM_DELETE: thing->deleted = true; break;
	case REALM_ADD: thing->least += ticket->request.size; break;
	case REALM_SET:
	case REALM_STATE: break;
	}
}

void realm_answered(struct realm *realm, struct realm_site *it, const struct realm_deed *deed)
{
	if (deed->ticket == 0 || deed->ticket > realm->tickets_count)
		return;
	struct realm_ticket *ticket = &realm->tickets[deed->ticket - 1];
	if (ticket->site != it->number || ticket->generation != it->generation)
		return;
	realm_tell(realm, "s%" PRIu32 " answers: verb %d on thing %" PRIu32 " is %s (%d)", it->number,
	           (int)ticket->request.verb, ticket->request.thing, deed->accepted ? "accepted" : "refused", deed->code);
	note(realm, ticket, deed->accepted);
	tell(realm, it, ticket, deed->accepted, deed->accepted ? 0 : deed->code ? deed->code : ERR_CONFLICT);
}

/* ---- Handing in ------------------------------------------------------------------------------------------------------------------ */

/* What is in a container is known at all of its sites, as they are known here (proxy/container.c). */
static uint32_t members_of(struct realm *realm, struct realm_site *it, const struct realm_ticket *ticket,
                           site_id *members)
{
	const struct realm_thing *thing = &realm->things[ticket->request.thing];
	struct arena arena;
	struct replica_view view;
	uint32_t count = 0;
	arena_init(&arena, 0);
	if (thing->kind == REALM_CHILD) {
		if (realm_look(it, &arena, thing->container, &view))
			for (uint32_t i = 0; i < view.members_count; i++)
				members[count++] = view.members[i].site;
	} else {
		for (uint32_t i = 0; i < realm->options.sites; i++)
			if (ticket->holders >> i & 1)
				members[count++] = realm->sites[i].id;
	}
	arena_free(&arena);
	return count;
}

static void put_collection(const struct realm *realm, const struct realm_thing *thing, char out[80])
{
	struct buf id = {0};
	if (thing->kind == REALM_CHILD)
		replica_id_put(realm->things[thing->container].id, &id);
	snprintf(out, 80,
	         thing->kind == REALM_POOL        ? "/pools%s"
	         : thing->kind == REALM_CONTAINER ? "/projects%s"
	                                          : "/projects/%s/servers",
	         id.at ? buf_c(&id) : "");
	buf_free(&id);
}

static void hand_in(struct realm *realm, struct realm_site *it, uint32_t number)
{
	struct realm_ticket *ticket = &realm->tickets[number - 1];
	struct realm_thing *thing = &realm->things[ticket->request.thing];
	site_id members[REALM_SITES], holders[REALM_SITES];
	char collection[80];
	uint32_t members_count = members_of(realm, it, ticket, members), holders_count = 0;
	for (uint32_t i = 0; i < members_count; i++)
		if (ticket->holders >> realm_site_of(realm, members[i]) & 1)
			holders[holders_count++] = members[i];
	put_collection(realm, thing, collection);
	struct replica_create create = {.service = STR("sample"),
	                                .type = type_names[thing->kind],
	                                .collection = str_of(collection),
	                                .name = thing->kind == REALM_CHILD ? realm_name(ticket->request.name) : STR(""),
	                                .members = members,
	                                .members_count = members_count,
	                                .consistency = REPLICA_EVENTUAL,
	                                .rules = {.classes = CLASSES,
	                                          .resolutions = thing->kind == REALM_POOL ? of_pools : plain,
	                                          .create_replays = thing->kind == REALM_POOL},
	                                .span = thing->kind == REALM_CONTAINER ? REPLICA_CONTAINER
	                                        : thing->kind == REALM_POOL    ? REPLICA_DIVIDED
	                                                                       : REPLICA_PLACED,
	                                .prime = it->id,
	                                .holders = holders,
	                                .holders_count = thing->kind == REALM_CHILD ? holders_count : 0};
	struct replica_submission submission = {.ticket = number,
	                                        .create = ticket->request.verb == REALM_MAKE ? &create : NULL,
	                                        .replicant = thing->id,
	                                        .class = classes[ticket->request.verb],
	                                        .key = STR("")};
	struct buf bytes = {0};
	realm_put_request(&ticket->request, &bytes, &submission.request);
	if (thing->kind == REALM_CHILD && ticket->request.verb == REALM_MAKE) {
		submission.request.references = &realm->things[thing->container].id;
		submission.request.references_count = 1;
	}
	if (ticket->request.verb == REALM_DELETE && !thing->doomed) {
		thing->doomed = true;
		thing->doomed_us = realm->sim.now_us;
	}
	if (ticket->request.verb == REALM_ADD)
		thing->open += ticket->request.size;
	thing->handed = true;
	replica_submit(it->replica, &submission, realm_now(realm, it));
	if (realm->tickets[number - 1].claims)
		cross_children_over(it->children, thing->id);
	buf_free(&bytes);
	realm_leave(it);
}

uint32_t realm_ticket_add(struct realm *realm, struct realm_site *it, const struct realm_ticket *ticket)
{
	if (realm->tickets_count == realm->tickets_capacity) {
		realm->tickets_capacity = realm->tickets_capacity ? 2 * realm->tickets_capacity : 64;
		realm->tickets = realloc(realm->tickets, realm->tickets_capacity * sizeof(*realm->tickets));
		CHECK(realm->tickets != NULL);
	}
	struct realm_ticket *kept = &realm->tickets[realm->tickets_count++];
	*kept = *ticket;
	kept->site = it->number;
	kept->generation = it->generation;
	kept->request.chance = sim_mix(realm->options.seed, 1000 + realm->tickets_count);
	return realm->tickets_count;
}

/* engine_names_ready() */
void realm_submit(struct realm *realm, struct realm_site *it, const struct realm_ticket *asked)
{
	uint32_t number = realm_ticket_add(realm, it, asked);
	struct realm_ticket *ticket = &realm->tickets[number - 1];
	const struct realm_thing *thing = &realm->things[ticket->request.thing];
	bool names = ticket->request.verb == REALM_MAKE || ticket->request.verb == REALM_RENAME;
	int code = CROSS_NOTHING_TO_ASK;
	site_id at = 0;
	if (thing->kind == REALM_CHILD && names) {
		struct cross_wish wish = {.creates = ticket->request.verb == REALM_MAKE,
		                          .container = realm->things[thing->container].id,
		                          .type = type_names[REALM_CHILD],
		                          .child = thing->id,
		                          .name = realm_name(ticket->request.name)};
		code = cross_children_claim(it->children, &wish, number, realm_now(realm, it), &at, NULL);
	}
	ticket->claims = code == CROSS_ASKED_FOR;
	if (code == CROSS_NOTHING_TO_ASK)
		hand_in(realm, it, number);
	else if (code != CROSS_ASKED_FOR)
		tell(realm, it, ticket, false, code);
	realm_leave(it);
}

/* engine_names_answered() */
void realm_granted(struct realm *realm, struct realm_site *it, const struct cross_answer *answer)
{
	struct realm_ticket *ticket = &realm->tickets[answer->ticket - 1];
	if (ticket->site != it->number || ticket->generation != it->generation)
		return;
	realm->figures.taken += answer->code == ERR_CONFLICT;
	realm->figures.unavailable += answer->code == ERR_UNAVAILABLE;
	realm_tell(realm, "s%" PRIu32 ": the name %.*s for thing %" PRIu32 " in thing %" PRIu32 ": %d%s", it->number,
	           STR_FMT(realm_name(ticket->request.name)), ticket->request.thing,
	           realm->things[ticket->request.thing].container, answer->code, answer->unchecked ? ", unchecked" : "");
	if (answer->code == 0 || (answer->code == ERR_CONFLICT && realm->options.mutation == REALM_GENEROUS)) {
		realm->things[ticket->request.thing].unchecked |= answer->unchecked;
		hand_in(realm, it, (uint32_t)answer->ticket);
	} else {
		tell(realm, it, ticket, false, answer->code);
	}
}

/* ---- What follows ------------------------------------------------------------------------------------------------------------------ */

/* What engine_relations_to() has: those that this site knows of. */
uint32_t realm_children_of(struct realm_site *it, uint32_t container, uint32_t *children)
{
	const struct realm *realm = it->realm;
	uint32_t count = 0;
	for (uint32_t i = 0; i < realm->things_count; i++) {
		struct arena arena;
		struct replica_view view;
		if (realm->things[i].kind != REALM_CHILD || realm->things[i].container != container)
			continue;
		arena_init(&arena, 0);
		if (realm_look(it, &arena, i, &view))
			children[count++] = i;
		arena_free(&arena);
	}
	return count;
}

/* held_at(): as far as is known here. */
bool realm_holds(struct realm_site *it, uint32_t container, uint32_t site)
{
	uint32_t children[REALM_THINGS], count = realm_children_of(it, container, children);
	bool holds = false;
	for (uint32_t i = 0; i < count && !holds; i++) {
		struct arena arena;
		struct replica_view child;
		arena_init(&arena, 0);
		const struct replica_member_view *member =
			realm_look(it, &arena, children[i], &child) ? realm_member(&child, it->realm->sites[site].id) : NULL;
		holds = member && !member->witness;
		arena_free(&arena);
	}
	return holds;
}

static bool follow_child(struct realm_site *it, const struct replica_view *child, const struct replica_view *container)
{
	struct replica_now now = realm_now(it->realm, it);
	bool left = false;
	if (child->prime != it->id)
		return false;
	for (uint32_t i = 0; i < container->members_count && !left; i++) {
		const struct replica_member_view *member = &container->members[i];
		struct replica_extension extension = {.site = member->site, .ticket = UINT64_MAX};
		if (member->leaving || member->joining || realm_member(child, member->site))
			continue;
		int code = replica_extend(it->replica, child->id, &extension, now, NULL);
		left = code == 0 || code == ERR_UNAVAILABLE;
	}
	for (uint32_t i = 0; i < child->members_count; i++) {
		const struct replica_member_view *member = &child->members[i], *of = realm_member(container, member->site);
		if (!(of && !of->leaving) && member->site != it->id && !member->leaving)
			replica_drop(it->replica, child->id, &(struct replica_drop){.site = member->site}, now, NULL);
	}
	return left;
}

/* is_deleting(): a copy that this site is to hold no more. */
static bool is_deleting(struct realm_site *it, uint32_t container)
{
	const struct realm *realm = it->realm;
	bool deleting = false;
	for (uint32_t i = 0; i < realm->things_count && !deleting; i++) {
		struct arena arena;
		struct replica_view view;
		if (realm->things[i].kind != REALM_CHILD || realm->things[i].container != container)
			continue;
		arena_init(&arena, 0);
		deleting = replica_look(it->replica, &arena, realm->things[i].id, &view) == 0 && view.left && view.busy;
		arena_free(&arena);
	}
	return deleting;
}

/* go_on_leaving(): this site knows best what it holds. */
static void go_on_leaving(struct realm_site *it, const struct replica_view *container)
{
	struct replica_now now = realm_now(it->realm, it);
	uint32_t thing = realm_thing_of(it->realm, container->id);
	if (!realm_holds(it, thing, it->number) && !is_deleting(it, thing) &&
	    cross_children_may_leave(it->children, container, now))
		replica_let_go(it->replica, container->id, now);
}

static bool follow_container(struct realm_site *it, const struct replica_view *container, uint32_t thing)
{
	uint32_t children[REALM_THINGS], count;
	bool left = false;
	cross_children_follow(it->children, container, realm_now(it->realm, it));
	if (replica_is_leaving(it->replica, container->id)) {
		go_on_leaving(it, container);
		left = replica_is_leaving(it->replica, container->id);
	}
	count = realm_children_of(it, thing, children);
	for (uint32_t i = 0; i < count; i++) {
		struct arena arena;
		struct replica_view child;
		arena_init(&arena, 0);
		if (realm_look(it, &arena, children[i], &child))
			left |= follow_child(it, &child, container);
		arena_free(&arena);
	}
	return left;
}

static bool is_deleted(struct realm_site *it, uint32_t thing)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool deleted =
		replica_look(it->replica, &arena, it->realm->things[thing].id, &view) == 0 && view.deleted && !view.left;
	arena_free(&arena);
	return deleted;
}

/* engine_orphans_follow(): what is in a container that is not here any more goes, too. True: it has to be looked at again. */
static bool follow_orphans(struct realm *realm, struct realm_site *it, uint32_t container)
{
	uint32_t children[REALM_THINGS], count = is_deleted(it, container) ? realm_children_of(it, container, children) : 0;
	bool left = false;
	for (uint32_t i = 0; i < count; i++) {
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		bool ours = realm_look(it, &arena, children[i], &view) && view.prime == it->id;
		bool made = ours && !view.busy && realm_member(&view, it->id)->local_id.length > 0;
		arena_free(&arena);
		left |= ours;
		if (!made)
			continue;
		struct realm_job *job = realm_job_new(realm, REALM_DO, it->number, children[i]);
		job->request.verb = REALM_DELETE;
		job->request.settles = true;
		realm->figures.orphans++;
		realm_job_begin(realm, job);
	}
	return left;
}

void realm_act_follow(struct realm *realm, struct realm_site *it)
{
	bool left = false;
	if (!it->replica || !it->stale)
		return;
	for (uint32_t i = 0; i < realm->things_count; i++) {
		struct arena arena;
		struct replica_view view;
		if (realm->things[i].kind == REALM_CHILD || !realm->things[i].handed)
			continue;
		arena_init(&arena, 0);
		bool known = realm_look(it, &arena, i, &view);
		if (known && view.span == REPLICA_CONTAINER)
			left |= follow_container(it, &view, i);
		else if (known && view.span == REPLICA_DIVIDED)
			left |= realm_follow_pool(realm, it, &view, i);
		else if (!known && realm->things[i].kind == REALM_POOL && realm->options.mutation != REALM_HOARDING)
			realm_forget_division(it, i);
		else if (!known && realm->things[i].kind == REALM_CONTAINER && realm->options.mutation != REALM_ORPHANING)
			left |= follow_orphans(realm, it, i);
		arena_free(&arena);
	}
	it->stale = left;
	realm_leave(it);
}

/* ---- People ------------------------------------------------------------------------------------------------------------------------ */

/* A container that is not empty at a site is not deleted there: who sees that deletes what is in it, and has it tried again. */
static void empty(struct realm *realm, struct realm_site *it, uint32_t container)
{
	for (uint32_t i = 0; i < realm->things_count; i++) {
		if (realm->things[i].kind != REALM_CHILD || realm->things[i].container != container ||
		    !realm->items[it->number][i].there)
			continue;
		struct realm_job *job = realm_job_new(realm, REALM_DO, it->number, i);
		job->request.verb = REALM_DELETE;
		realm_job_begin(realm, job);
	}
}

/* Nobody knows before the agent has found out that it cannot. */
static bool happened(const struct realm_site *it, struct replica_op_id op, bool *yes)
{
	for (uint32_t i = it->doubts_count; i-- > 0;)
		if (it->doubts[i].op.number == op.number && it->doubts[i].op.site == op.site &&
		    memcmp(it->doubts[i].op.replicant.bytes, op.replicant.bytes, sizeof(op.replicant.bytes)) == 0)
			return *yes = it->doubts[i].happened, true;
	return false;
}

static void judge(struct realm *realm, struct realm_site *it, struct replica_op_id op, enum replica_member_state state)
{
	uint32_t thing = realm_thing_of(realm, op.replicant);
	enum replica_verdict verdict = REPLICA_RETRY;
	bool yes = false;
	if (state == REPLICA_IN_DOUBT && !happened(it, op, &yes))
		return;
	if (state == REPLICA_IN_DOUBT)
		verdict = yes ? REPLICA_HAPPENED : op.number >= 1u << 31 ? REPLICA_DISMISS : REPLICA_RETRY;
	else if (realm->things[thing].kind == REALM_CONTAINER)
		empty(realm, it, thing);
	realm->figures.judged++;
	realm_tell(realm, "s%" PRIu32 ": a person says %d of s%" PRIu32 ".%" PRIu32 " of thing %" PRIu32, it->number,
	           (int)verdict, realm_site_of(realm, op.site), op.number, thing);
	replica_judge(it->replica, op, verdict, STR(""), realm_now(realm, it), NULL);
}

/* A container leaves a site when nothing of it is there any more: who waits for that deletes it. */
static void empty_who_leave(struct realm *realm, struct realm_site *it)
{
	for (uint32_t i = 0; i < realm->things_count && it->replica; i++)
		if (realm->things[i].kind == REALM_CONTAINER && replica_is_leaving(it->replica, realm->things[i].id))
			empty(realm, it, i);
}

void realm_people(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		struct realm_site *it = &realm->sites[i];
		struct replica_op_id ops[64];
		uint32_t count = it->replica ? replica_list_ops(it->replica, NULL, NULL, ops, 64) : 0;
		for (uint32_t k = 0; k < count; k++) {
			struct arena arena;
			struct replica_op_view view;
			enum replica_member_state state = REPLICA_PENDING;
			arena_init(&arena, 0);
			if (replica_look_op(it->replica, &arena, ops[k], &view) == 0)
				for (uint32_t m = 0; m < view.members_count; m++)
					if (view.members[m].site == it->id)
						state = view.members[m].state;
			arena_free(&arena);
			if (state == REPLICA_IN_DOUBT || state == REPLICA_REJECTED)
				judge(realm, it, ops[k], state);
		}
		empty_who_leave(realm, it);
		realm_leave(it);
	}
}
