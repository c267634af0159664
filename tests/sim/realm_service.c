/* The services: they have items, give them ids, and do what they are asked, soon or late. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALL_MOST_US = 60000, SLOW_CALL_MOST_US = 5000000, REFUSED_ONE_IN = 3 };

/* ---- What it does ---------------------------------------------------------------------------------------------------------- */

static void say(struct realm_call *call, enum replica_outcome_kind outcome, int status)
{
	call->outcome = outcome;
	call->status = status;
}

/* As it is at this moment: the item may be gone when the answer comes. */
static void say_id(struct realm *realm, struct realm_call *call)
{
	const struct realm_item *item = &realm->items[call->site][call->thing];
	bool found = call->outcome == REPLICA_ACCEPTED && item->there;
	snprintf(call->local_id, sizeof(call->local_id), "%s", found ? item->local_id : "");
}

/* What became of a request, in case its agent dies before that is durable. */
static void note_outcome(struct realm *realm, const struct realm_call *call)
{
	struct realm_site *it = &realm->sites[call->site];
	it->doubts = realloc(it->doubts, (it->doubts_count + 1) * sizeof(*it->doubts));
	CHECK(it->doubts != NULL);
	it->doubts[it->doubts_count++] = (struct realm_doubt){
		.chance = call->request.chance, .happened = call->happened && call->outcome == REPLICA_ACCEPTED};
}

static void apply(struct realm *realm, struct realm_call *call, struct realm_item *item)
{
	const struct realm_request *request = &call->request;
	const struct realm_thing *thing = &realm->things[call->thing];
	int64_t part = 0;
	if (request->verb != REALM_SET && request->verb != REALM_ADD)
		item->name = request->name;
	if (thing->kind == REALM_POOL) {
		if (realm_part(&realm->sites[call->site], request, &part) != 0) {
			realm_violation(realm, "s%" PRIu32 " cannot divide %" PRId64, call->site, request->size);
			return;
		}
		item->part = request->verb == REALM_ADD ? item->part + part : part;
		item->total = request->verb == REALM_ADD ? item->total + request->total : request->total;
	}
	if (thing->kind == REALM_CHILD && (request->verb == REALM_MAKE || request->verb == REALM_RENAME))
		realm_check_name(realm, call->thing);
}

static void make(struct realm *realm, struct realm_call *call, struct realm_item *item)
{
	const struct realm_thing *thing = &realm->things[call->thing];
	const struct realm_site *it = &realm->sites[call->site];
	if (call->first && it->refuses && sim_mix(call->task, call->op.number) % REFUSED_ONE_IN == 0) {
		say(call, REPLICA_REFUSED, 422);
		return;
	}
	if (thing->kind == REALM_CHILD && !realm->items[call->site][thing->container].there) {
		say(call, REPLICA_REFUSED, 404);
		return;
	}
	if (item->there) {
		realm_violation(realm, "s%" PRIu32 " makes thing %" PRIu32 " twice", call->site, call->thing);
		return;
	}
	memset(item, 0, sizeof(*item));
	item->there = true;
	snprintf(item->local_id, sizeof(item->local_id), "i%u-%u", call->site, ++realm->ids_made);
	apply(realm, call, item);
	say(call, REPLICA_ACCEPTED, 201);
}

/* What is in a container is deleted with it, or it is not deleted. */
static bool remove_contents(struct realm *realm, uint32_t site, uint32_t container)
{
	for (uint32_t i = 0; i < realm->things_count; i++) {
		struct realm_item *item = &realm->items[site][i];
		if (realm->things[i].kind != REALM_CHILD || realm->things[i].container != container || !item->there)
			continue;
		if (!realm->things[container].cascades)
			return false;
		item->there = false;
	}
	return true;
}

static void delete_item(struct realm *realm, struct realm_call *call, struct realm_item *item)
{
	bool leaves = call->kind == REPLICA_LEAVE;
	if (!item->there) {
		say(call, call->first && !call->request.settles ? REPLICA_REFUSED : REPLICA_ACCEPTED, 404);
	} else if (realm->things[call->thing].kind == REALM_CONTAINER && !remove_contents(realm, call->site, call->thing)) {
		say(call, REPLICA_REFUSED, 409);
	} else {
		item->there = leaves && realm->options.mutation == REALM_KEEPING;
		say(call, REPLICA_ACCEPTED, 204);
	}
}

static void run(struct realm *realm, struct realm_call *call, struct realm_item *item)
{
	switch (call->request.verb) {
	case REALM_MAKE:
		if (call->kind == REPLICA_RUN_CREATE_AS_REPLACE && item->there) {
			apply(realm, call, item);
			say(call, REPLICA_ACCEPTED, 200);
		} else {
			make(realm, call, item);
		}
		break;
	case REALM_DELETE: delete_item(realm, call, item); break;
	case REALM_RENAME:
	case REALM_SET:
	case REALM_ADD:
	case REALM_STATE:
		if (!item->there && call->kind == REPLICA_RUN_ANEW) {
			make(realm, call, item);
		} else if (!item->there) {
			say(call, REPLICA_REFUSED, 404);
		} else {
			apply(realm, call, item);
			say(call, REPLICA_ACCEPTED, 200);
		}
		break;
	}
}

/* By name, or id: of what changes something nobody can tell. */
static void inquire(struct realm *realm, struct realm_call *call, const struct realm_item *item)
{
	struct realm_site *it = &realm->sites[call->site];
	bool makes = call->has_request && call->request.verb == REALM_MAKE;
	bool deletes = call->has_request && call->request.verb == REALM_DELETE;
	if (makes || call->kind == REPLICA_INQUIRE_ANEW)
		say(call, item->there ? REPLICA_ACCEPTED : REPLICA_REFUSED, 200);
	else if (deletes)
		say(call, item->there ? REPLICA_REFUSED : REPLICA_ACCEPTED, 200);
	else
		say(call, REPLICA_UNKNOWN, 0);
	uint32_t found = it->doubts_count;
	while (found > 0 && it->doubts[found - 1].chance != call->request.chance)
		found--;
	if (found == 0) { /* it never came here */
		note_outcome(realm, call);
		found = it->doubts_count;
		it->doubts[found - 1].happened = false;
	}
	it->doubts[found - 1].op = call->op; /* a person will be asked */
}

/* A copy for a new member has nothing of what is divided (engine_parts_none()). */
static void read_item(struct realm *realm, struct realm_call *call, const struct realm_item *item)
{
	struct realm_site *it = &realm->sites[call->site];
	bool copies = call->kind == REPLICA_READ_COPY;
	if (!item->there) {
		say(call, REPLICA_REFUSED, 404);
		return;
	}
	call->state = (struct realm_request){
		.verb = copies ? REALM_MAKE : REALM_STATE, .thing = call->thing, .name = item->name, .total = item->total};
	say(call, REPLICA_ACCEPTED, 200);
	if (realm->things[call->thing].kind == REALM_POOL) {
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		if (!it->replica || !realm_look(it, &arena, call->thing, &view) ||
		    !realm_division_now(it, &view, &call->state.division))
			say(call, REPLICA_REFUSED, 0);
		arena_free(&arena);
	}
}

static void happen(struct realm *realm, struct realm_call *call)
{
	struct realm_item *item = &realm->items[call->site][call->thing];
	call->happened = true;
	switch (call->kind) {
	case REPLICA_RUN:
	case REPLICA_RUN_CREATE_AS_REPLACE:
	case REPLICA_RUN_ANEW: run(realm, call, item); break;
	case REPLICA_INQUIRE:
	case REPLICA_INQUIRE_ANEW: inquire(realm, call, item); break;
	case REPLICA_READ_STATE:
	case REPLICA_READ_COPY: read_item(realm, call, item); break;
	case REPLICA_LEAVE: delete_item(realm, call, item); break;
	}
	say_id(realm, call);
	realm_tell(realm,
	           "s%" PRIu32 " service: task %d, verb %d on thing %" PRIu32 " (op s%" PRIu32 ".%" PRIu32
	           "): %d%s, size %" PRId64 " of %" PRId64,
	           call->site, (int)call->kind, (int)call->request.verb, call->thing, realm_site_of(realm, call->op.site),
	           call->op.number, call->status, item->there ? "" : ", not there", item->part, item->total);
}

/* ---- The agent hears of it -------------------------------------------------------------------------------------------------- */

void realm_put_request(const struct realm_request *request, struct buf *bytes, struct replica_request *out)
{
	buf_printf(bytes, "%d %" PRIu32 " %" PRIu32 " %d %" PRId64 " %" PRId64 " %" PRIx64 ";", (int)request->verb,
	           request->thing, request->name, (int)request->settles, request->size, request->total, request->chance);
	if (request->division.count > 0)
		cross_division_put(&request->division, bytes);
	*out = (struct replica_request){.head = STR("x"), .body = buf_str(bytes), .blob = STR(""), .secret = STR("")};
}

bool realm_parse_request(struct str bytes, struct realm_request *request)
{
	char text[160] = "";
	int verb, settles, used = 0;
	memset(request, 0, sizeof(*request));
	if (bytes.length == 0) /* what leaves has none */
		return false;
	memcpy(text, bytes.at, bytes.length < sizeof(text) - 1 ? bytes.length : sizeof(text) - 1);
	if (sscanf(text, "%d %" SCNu32 " %" SCNu32 " %d %" SCNd64 " %" SCNd64 " %" SCNx64 ";%n", &verb, &request->thing,
	           &request->name, &settles, &request->size, &request->total, &request->chance, &used) != 7)
		return false;
	struct str rest = str_make(bytes.at + used, bytes.length - (size_t)used);
	request->verb = (enum realm_verb)verb;
	request->settles = settles != 0;
	return rest.length == 0 || cross_division_parse(rest, &request->division, NULL) == 0;
}

/* engine_run_tell() */
static void tell(struct realm *realm, struct realm_call *call)
{
	struct realm_site *it = &realm->sites[call->site];
	struct replica_id id = realm->things[call->thing].id;
	struct replica_outcome outcome = {
		.kind = call->outcome, .status = call->status, .answer = STR(""), .local_id = STR("")};
	bool accepted = call->outcome == REPLICA_ACCEPTED;
	if (accepted)
		outcome.local_id = str_of(call->local_id);
	struct buf bytes = {0};
	if (call->kind == REPLICA_READ_STATE || call->kind == REPLICA_READ_COPY) {
		realm_put_request(&call->state, &bytes, &outcome.state);
		outcome.state_class = (struct replica_class){
			.name = STR("state"), .effect = call->kind == REPLICA_READ_COPY ? ORDER_CREATE : ORDER_REPLACE};
		outcome.state_class.repeatable = call->kind == REPLICA_READ_STATE;
	}
	if (accepted)
		realm_division_ran(it, call);
	replica_executed(it->replica, call->task, &outcome, realm_now(realm, it));
	if (accepted && call->has_request &&
	    (call->request.verb == REALM_MAKE || call->request.verb == REALM_RENAME || call->request.verb == REALM_STATE))
		cross_children_named(it->children, id, realm_name(call->request.name), realm_now(realm, it));
	cross_children_note(it->children, id);
	buf_free(&bytes);
	realm_leave(it);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------ */

static uint64_t delay(struct realm_site *it)
{
	return 1 + sim_random_below(&it->luck, it->slow ? SLOW_CALL_MOST_US : CALL_MOST_US);
}

void realm_execute(struct realm *realm, struct realm_call *call)
{
	if (realm->calls_count == realm->calls_capacity) {
		realm->calls_capacity = realm->calls_capacity ? 2 * realm->calls_capacity : 256;
		realm->calls = realloc(realm->calls, realm->calls_capacity * sizeof(*realm->calls));
		CHECK(realm->calls != NULL);
	}
	realm->calls[realm->calls_count] = call;
	realm_at(realm, realm->sim.now_us + delay(&realm->sites[call->site]), REALM_ACT_SERVICE, realm->calls_count++);
}

/* It has its effect, or its answer comes. */
void realm_act_service(struct realm *realm, uint32_t number)
{
	struct realm_call *call = realm->calls[number];
	if (!call || call->over)
		return;
	if (!call->happened) {
		happen(realm, call);
		realm_at(realm, realm->sim.now_us + delay(&realm->sites[call->site]), REALM_ACT_SERVICE, number);
		return;
	}
	call->over = true;
	if (call->kind == REPLICA_RUN)
		note_outcome(realm, call);
	tell(realm, call);
	free(call);
	realm->calls[number] = NULL;
}

/* The agent dies: what was under way happens, or not, and nobody hears of it. */
void realm_calls_end(struct realm *realm, struct realm_site *it)
{
	for (uint32_t i = 0; i < realm->calls_count; i++) {
		struct realm_call *call = realm->calls[i];
		if (!call || call->site != it->number)
			continue;
		bool reads = call->kind == REPLICA_READ_COPY || call->kind == REPLICA_READ_STATE;
		if (!call->happened && !reads && sim_random_below(&it->luck, 2) == 0)
			happen(realm, call);
		if (call->kind == REPLICA_RUN)
			note_outcome(realm, call);
		free(call);
		realm->calls[i] = NULL;
	}
}
