/* The application at a site: items, and what it does with requests, or fails to. It is a process of its own: it stays when
 * the agent dies. A request that is under way at that moment has its effect then, or never: that one which was taken for
 * lost is executed much later is beyond what anybody could find out over HTTP. */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	EXECUTE_MOST_US = 10000,
	SLOW_MOST_US = 4000000,
	MUTE_CHANCE = 70,
	REFUSE_CHANCE = 80, /* per cent */
	MUTATION_CHANCE = 20,
};

static const struct str service_name = STR_INIT("choir");

/* ---- Items -------------------------------------------------------------------------------------------------------- */

void choir_item_id(const struct choir_site *it, const struct choir_item *item, char local_id[CHOIR_ID_BYTES])
{
	if (choir_types[item->kind].chosen)
		snprintf(local_id, CHOIR_ID_BYTES, "zone-%" PRIu32, item->name);
	else if (item->kind == CHOIR_COUNTER)
		snprintf(local_id, CHOIR_ID_BYTES, "%" PRIu32, 1000 * (it->number + 1) + item->number);
	else
		snprintf(local_id, CHOIR_ID_BYTES, "s%" PRIu32 "-%" PRIu32, it->number, item->number);
}

struct choir_item *choir_item_of(struct choir_site *it, const char *local_id)
{
	char id[CHOIR_ID_BYTES];
	for (uint32_t i = 0; i < it->items_count; i++) {
		if (it->items[i].number == 0)
			continue;
		choir_item_id(it, &it->items[i], id);
		if (strcmp(id, local_id) == 0)
			return &it->items[i];
	}
	return NULL;
}

static struct choir_item *item_named(struct choir_site *it, enum choir_kind kind, uint32_t name)
{
	for (uint32_t i = 0; i < it->items_count; i++) {
		struct choir_item *item = &it->items[i];
		if (item->number != 0 && item->kind == kind && item->name == name)
			return item;
	}
	return NULL;
}

static struct choir_item *new_item(struct choir_site *it, const struct choir_request *request)
{
	struct choir_item *item = NULL;
	for (uint32_t i = 0; i < it->items_count && !item; i++)
		item = it->items[i].number == 0 ? &it->items[i] : NULL;
	if (!item) {
		if (it->items_count == it->items_capacity) {
			it->items_capacity = it->items_capacity ? 2 * it->items_capacity : 8;
			it->items = realloc(it->items, it->items_capacity * sizeof(*it->items));
			CHECK(it->items != NULL);
		}
		item = &it->items[it->items_count++];
	}
	*item = (struct choir_item){.number = ++it->items_made, .replicant = request->replicant, .name = request->name};
	item->kind = (enum choir_kind)request->kind;
	return item;
}

/* ---- What it does ------------------------------------------------------------------------------------------------- */

static enum replica_outcome_kind say(struct choir_call *call, enum replica_outcome_kind outcome, int status)
{
	call->status = status;
	return outcome;
}

bool choir_is_dangling(const struct choir_site *it, const struct choir_request *request)
{
	for (uint32_t i = 0; request->value.refers && i < it->items_count; i++)
		if (it->items[i].number != 0 && it->items[i].replicant == request->value.refers - 1)
			return false;
	return request->value.refers != 0 && request->verb == CHOIR_CREATE;
}

static void apply(struct choir *choir, struct choir_site *it, struct choir_item *item, const struct choir_call *call)
{
	struct choir_request request = call->request;
	int times = 1;
	bool relative = choir_verb_effect((enum choir_verb)request.verb) == ORDER_RELATIVE;
	bool unlucky = choir->options.mutation != CHOIR_SOUND && sim_random_below(&it->luck, 100) < MUTATION_CHANCE;
	if (choir->options.mutation == CHOIR_TWICE && relative && unlucky)
		times = 2;
	if (choir->options.mutation == CHOIR_NEVER && unlucky && request.verb != CHOIR_CREATE)
		times = 0;
	if (call->kind == REPLICA_RUN_CREATE_AS_REPLACE)
		request.verb = CHOIR_PUT;
	for (int i = 0; i < times; i++)
		choir_apply(&item->state, &request);
	item->touched_us = choir->sim.now_us;
}

void choir_item_make(struct choir *choir, struct choir_site *it, const struct choir_request *request,
                     char local_id[CHOIR_ID_BYTES])
{
	struct choir_item *item = new_item(it, request);
	choir_apply(&item->state, request);
	item->touched_us = choir->sim.now_us;
	choir_item_id(it, item, local_id);
}

static enum replica_outcome_kind create(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	const struct choir_request *request = &call->request;
	if (choir_is_dangling(it, request))
		return say(call, REPLICA_REFUSED, 422);
	if (request->name && item_named(it, (enum choir_kind)request->kind, request->name))
		return say(call, REPLICA_REFUSED, 409);
	struct choir_item *item = new_item(it, request);
	apply(choir, it, item, call);
	choir_item_id(it, item, call->made_id);
	return say(call, REPLICA_ACCEPTED, 201);
}

static enum replica_outcome_kind change(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	struct choir_item *item = choir_item_of(it, call->local_id);
	bool by_name = !item && choir_types[call->request.kind].chosen && call->request.verb == CHOIR_PUT;
	/* The name is in its path, also where the agent knows no id: what a PUT has made that was not answered, the next one finds. */
	if (by_name)
		item = item_named(it, (enum choir_kind)call->request.kind, call->request.name);
	if ((by_name && (!item || item->replicant != call->request.replicant)) || (!item && call->kind == REPLICA_RUN_ANEW))
		return create(choir, it, call);
	if (!item)
		return say(call, REPLICA_REFUSED, 404);
	apply(choir, it, item, call);
	if (by_name)
		choir_item_id(it, item, call->made_id);
	return say(call, REPLICA_ACCEPTED, 200);
}

/* That it is gone already is what was wanted: the host takes 404 for a success here. */
static enum replica_outcome_kind delete (struct choir_site *it, struct choir_call *call) {
	struct choir_item *item = choir_item_of(it, call->local_id); if (item) item->number = 0;
	return say(call, REPLICA_ACCEPTED, item ? 204 : 404);
}

/* The file of a state that is given. Its agent looks first whether the item has it: then nothing is sent. If not, and the blob is not
 * here, it says so, and gets it (src/engine/state.c). True: that was all. */
static bool look_at_file(struct choir_site *it, struct choir_call *call, enum replica_outcome_kind *outcome)
{
	const struct choir_request *request = &call->request;
	bool given = request->verb == CHOIR_UPLOAD && request->value.file != 0;
	const struct choir_item *item = given ? choir_item_of(it, call->local_id) : NULL;
	bool same = item && item->state.file == request->value.file;
	if (same)
		*outcome = say(call, REPLICA_ACCEPTED, 200);
	else if (given && !choir_blob_here(it, request->value.file))
		*outcome = say(call, REPLICA_FAILED, 0);
	else
		return false;
	return true;
}

static enum replica_outcome_kind run(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	if (call->request.poison >> it->number & 1)
		return say(call, REPLICA_REFUSED, 422);
	if (call->request.verb == CHOIR_UPLOAD && !choir_blob_here(it, choir_file_of(&call->request)))
		choir_violation(choir, call->request.replicant, "s%" PRIu32 " runs #%" PRIu32 " without its blob", it->number,
		                call->request.token);
	switch ((enum choir_verb)call->request.verb) {
	case CHOIR_CREATE: return call->kind == REPLICA_RUN ? create(choir, it, call) : change(choir, it, call);
	case CHOIR_DELETE: return delete (it, call);
	default: return change(choir, it, call);
	}
}

/* Whose the agent takes an item for, by its own rows. */
static bool is_of_another(struct choir_site *it, const struct choir_item *item, struct replica_id id)
{
	char local_id[CHOIR_ID_BYTES];
	struct buf key = {0};
	struct replica_id found;
	choir_item_id(it, item, local_id);
	replica_local_key(&(struct replica_local){.service = service_name,
	                                          .type = str_of(choir_types[item->kind].name),
	                                          .id = str_of(local_id)},
	                  &key);
	const struct choir_row *row = choir_rows_get(&it->rows, REPLICA_LOCALS, buf_str(&key));
	bool other = row && replica_local_parse(choir_row_value(row), &found) == 0 &&
	             memcmp(found.bytes, id.bytes, sizeof(id.bytes)) != 0;
	buf_free(&key);
	return other;
}

static enum replica_outcome_kind inquire(struct choir_site *it, struct choir_call *call)
{
	const struct choir_request *request = &call->request;
	if (request->verb == CHOIR_DELETE)
		return say(call, choir_item_of(it, call->local_id) ? REPLICA_REFUSED : REPLICA_ACCEPTED, 200);
	bool makes = request->verb == CHOIR_CREATE || call->kind == REPLICA_INQUIRE_ANEW;
	if (!makes || request->name == 0)
		return say(call, REPLICA_UNKNOWN, 0);
	struct choir_item *item = item_named(it, (enum choir_kind)request->kind, request->name);
	if (!item || is_of_another(it, item, call->op.replicant))
		return say(call, REPLICA_REFUSED, 404);
	choir_item_id(it, item, call->made_id);
	return say(call, REPLICA_ACCEPTED, 200);
}

/* Its file, if it has one: an operation of its own, on its facet. */
static void read_file(struct choir *choir, const struct choir_request *state, struct choir_call *call)
{
	struct choir_request request = {.verb = CHOIR_UPLOAD, .kind = state->kind, .name = state->name};
	buf_clear(&call->file);
	call->file_token = state->value.file;
	if (call->file_token == 0)
		return;
	request.token = choir->tokens_count;
	request.replicant = state->replicant;
	request.value.file = state->value.file;
	choir_token(choir, request.token)->replicant = request.replicant;
	choir_request_put(&call->file, &request);
}

/* A replace that would make of any item what this one is. */
static enum replica_outcome_kind read_state(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	struct choir_item *item = choir_item_of(it, call->local_id);
	if (!item)
		return say(call, REPLICA_REFUSED, 404);
	struct choir_request request = {.verb = CHOIR_PUT, .kind = (uint8_t)item->kind, .name = item->name};
	request.token = choir->tokens_count;
	request.replicant = choir_replicant_of(choir, call->op.replicant);
	request.value = item->state;
	choir_token(choir, request.token)->replicant = request.replicant;
	buf_clear(&call->state);
	choir_request_put(&call->state, &request);
	call->request = request;
	read_file(choir, &request, call);
	return say(call, REPLICA_ACCEPTED, 200);
}

/* A create that would make it anywhere; its file, if it has one, follows as another request, with a blob. */
static enum replica_outcome_kind read_copy(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	enum replica_outcome_kind outcome = read_state(choir, it, call);
	if (outcome != REPLICA_ACCEPTED)
		return outcome;
	call->request.verb = CHOIR_CREATE;
	call->request.value.file = 0;
	buf_clear(&call->state);
	choir_request_put(&call->state, &call->request);
	return outcome;
}

/* ---- Requests on their way ---------------------------------------------------------------------------------------- */

static const char *const outcomes[] = {"accepted", "refused", "credential", "failed", "unknown"};
static const char *const kinds[] = {"run",      "run create as replace", "inquire", "read state",
                                    "run anew", "read a copy",           "leave",   "inquire about anew"};

static uint32_t new_call(struct choir *choir)
{
	for (uint32_t i = 0; i < choir->calls_count; i++)
		if (!choir->calls[i].used)
			return i;
	if (choir->calls_count == choir->calls_capacity) {
		choir->calls_capacity = choir->calls_capacity ? 2 * choir->calls_capacity : 16;
		choir->calls = realloc(choir->calls, choir->calls_capacity * sizeof(*choir->calls));
		CHECK(choir->calls != NULL);
	}
	choir->calls[choir->calls_count] = (struct choir_call){0};
	return choir->calls_count++;
}

static bool suffers(const struct choir_site *it, enum sim_fault_kind kind)
{
	return it->service >> kind & 1;
}

void choir_call(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	uint32_t number = new_call(choir);
	struct choir_call *call = &choir->calls[number];
	struct buf state = call->state, file = call->file;
	*call = (struct choir_call){.used = true, .site = it->number, .generation = it->generation};
	call->state = state;
	call->file = file;
	call->task = deed->task.number;
	call->kind = deed->task.kind;
	call->op = deed->task.op;
	call->first = deed->task.first;
	call->fresh = deed->fresh;
	memcpy(call->local_id, deed->local_id, sizeof(call->local_id));
	uint32_t replicant = choir_replicant_of(choir, deed->task.op.replicant);
	bool without = call->kind == REPLICA_READ_STATE || call->kind == REPLICA_READ_COPY || call->kind == REPLICA_LEAVE;
	if (!choir_request_parse(buf_str(&deed->bytes), &call->request) && !without)
		choir_violation(choir, replicant, "s%" PRIu32 ": a task without its request", it->number);
	uint64_t most_us = suffers(it, SIM_SERVICE_SLOW) ? SLOW_MOST_US : EXECUTE_MOST_US;
	uint64_t at_us = choir->sim.now_us + sim_random_range(&it->luck, 100, most_us);
	choir->quiet_since_us = choir->sim.now_us;
	choir_at(choir, at_us, CHOIR_ACT_EXECUTE, number);
	choir_at(choir, at_us + sim_random_range(&it->luck, 1, most_us), CHOIR_ACT_ANSWER, number);
}

static enum replica_outcome_kind serve(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	struct choir_token *token = choir_token(choir, call->request.token);
	enum replica_outcome_kind outcome;
	if (call->kind == REPLICA_INQUIRE || call->kind == REPLICA_INQUIRE_ANEW)
		return inquire(it, call);
	if (call->kind == REPLICA_READ_STATE)
		return read_state(choir, it, call);
	if (call->kind == REPLICA_READ_COPY)
		return read_copy(choir, it, call);
	if (call->kind == REPLICA_LEAVE)
		return delete (it, call);
	choir_check_execution(choir, it, call);
	if (!look_at_file(it, call, &outcome))
		outcome = run(choir, it, call);
	if (outcome == REPLICA_FAILED)
		return outcome;
	choir_check_created(choir, it, call);
	choir->figures.executions++;
	it->executions++;
	token->effect[it->number] = outcome == REPLICA_ACCEPTED;
	token = choir_token(choir, call->request.token);
	token->ran[it->number] |= outcome == REPLICA_ACCEPTED;
	token->runs[it->number] += outcome == REPLICA_ACCEPTED;
	if (outcome == REPLICA_ACCEPTED)
		choir_adopted(choir, it, call);
	if (outcome == REPLICA_ACCEPTED && call->kind == REPLICA_RUN && call->request.verb == CHOIR_CREATE)
		choir_note_made(choir, it, &choir->replicants[token->replicant]);
	token->refused[it->number] |= outcome == REPLICA_REFUSED;
	return outcome;
}

static bool only_reads(const struct choir_call *call)
{
	return call->kind == REPLICA_INQUIRE || call->kind == REPLICA_INQUIRE_ANEW || call->kind == REPLICA_READ_STATE ||
	       call->kind == REPLICA_READ_COPY;
}

/* What reads only, and is not answered, can be asked again. */
static void execute(struct choir *choir, struct choir_site *it, struct choir_call *call)
{
	bool reads = only_reads(call);
	uint32_t dice = (uint32_t)sim_random_below(&it->luck, 100);
	call->executed = true;
	if (suffers(it, SIM_SERVICE_DOWN) || suffers(it, SIM_SERVICE_BUSY)) {
		call->outcome = say(call, REPLICA_FAILED, suffers(it, SIM_SERVICE_BUSY) ? 503 : 0);
	} else if (suffers(it, SIM_SERVICE_LOGIN) && !call->fresh && !reads) {
		call->outcome = say(call, REPLICA_CREDENTIAL, 401);
		choir_token(choir, call->request.token)->refused[it->number] = true;
	} else if (suffers(it, SIM_SERVICE_REFUSES) && !reads && dice < REFUSE_CHANCE) {
		call->outcome = say(call, REPLICA_REFUSED, 403);
		if (call->kind == REPLICA_LEAVE)
			choir->replicants[choir_replicant_of(choir, call->op.replicant)].kept |= 1u << it->number;
		choir_token(choir, call->request.token)->refused[it->number] = true;
	} else if (suffers(it, SIM_SERVICE_MUTE) && dice < MUTE_CHANCE) {
		if (!reads && dice & 1)
			serve(choir, it, call);
		else if (!reads)
			choir_token(choir, call->request.token)->effect[it->number] = false;
		call->outcome = say(call, reads ? REPLICA_FAILED : REPLICA_UNKNOWN, 0);
		call->made_id[0] = '\0';
	} else {
		call->outcome = serve(choir, it, call);
	}
	if (choir->options.mutation == CHOIR_LIAR && call->outcome == REPLICA_REFUSED && call->kind == REPLICA_RUN)
		call->outcome = REPLICA_ACCEPTED;
}

void choir_execute(struct choir *choir, uint32_t number)
{
	struct choir_call *call = &choir->calls[number];
	if (call->used && !call->executed)
		execute(choir, &choir->sites[call->site], call);
}

/* It runs an operation, maybe once more. */
static bool runs(enum replica_task_kind kind)
{
	return kind == REPLICA_RUN || kind == REPLICA_RUN_CREATE_AS_REPLACE || kind == REPLICA_RUN_ANEW;
}

/* That it is to be run is on disk, and its agent dies before it asks: it has not happened, whatever an earlier run did. */
void choir_call_lost(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	struct choir_request request;
	if (runs(deed->task.kind) && choir_request_parse(buf_str(&deed->bytes), &request))
		choir_token(choir, request.token)->effect[it->number] = false;
}

void choir_calls_end(struct choir *choir, struct choir_site *it)
{
	for (uint32_t i = 0; i < choir->calls_count; i++) {
		struct choir_call *call = &choir->calls[i];
		if (!call->used || call->site != it->number || call->executed)
			continue;
		if (runs(call->kind))
			choir_token(choir, call->request.token)->effect[it->number] = false; /* that of an earlier run is over */
		if (sim_random_below(&it->luck, 2))
			execute(choir, it, call);
		call->executed = true;
	}
}

/* What outcome_of() refers to. */
struct told_file {
	struct replica_part part;
	char hash[32];
};

static struct replica_outcome outcome_of(const struct choir_call *call, struct told_file *file)
{
	struct replica_outcome outcome = {.kind = call->outcome, .status = call->status};
	outcome.local_id = str_of(call->made_id);
	outcome.local_id_quoted = call->request.kind != CHOIR_COUNTER;
	outcome.answer = call->outcome == REPLICA_REFUSED ? STR("no") : STR("");
	if (call->kind == REPLICA_READ_COPY && call->outcome == REPLICA_ACCEPTED) {
		outcome.state = (struct replica_request){.head = STR("copy"), .body = buf_str(&call->state)};
		outcome.state_class = (struct replica_class){.name = STR("copy"), .effect = ORDER_CREATE};
	}
	if (call->kind == REPLICA_READ_STATE && call->outcome == REPLICA_ACCEPTED) {
		outcome.state = (struct replica_request){.head = STR("put"), .body = buf_str(&call->state)};
		outcome.state_class = (struct replica_class){.name = STR("put"), .effect = ORDER_REPLACE, .class = CHOIR_PUT};
		outcome.state_class.repeatable = true;
	}
	bool reads = call->kind == REPLICA_READ_STATE || call->kind == REPLICA_READ_COPY;
	if (reads && call->outcome == REPLICA_ACCEPTED && call->file.length > 0) {
		memcpy(file->hash, &call->file_token, sizeof(call->file_token));
		file->part.request = (struct replica_request){.head = STR("upload"), .body = buf_str(&call->file)};
		file->part.request.blob = str_make(file->hash, sizeof(file->hash));
		file->part.request.blob_bytes = 1000;
		file->part.class = (struct replica_class){.name = STR("upload"), .effect = ORDER_REPLACE, .facet = 1};
		file->part.class.class = CHOIR_UPLOAD;
		file->part.class.repeatable = true;
		outcome.parts = &file->part;
		outcome.parts_count = 1;
	}
	return outcome;
}

/* An answer to an agent that is gone comes to nobody. */
void choir_answer(struct choir *choir, uint32_t number)
{
	struct choir_call *call = &choir->calls[number];
	struct choir_site *it = &choir->sites[call->site];
	CHECK(call->used);
	call->used = false;
	if (call->kind == REPLICA_RUN && call->outcome == REPLICA_UNKNOWN)
		choir_token(choir, call->request.token)->tried[it->number] = true;
	char label[32];
	choir_label(choir, call->op, label);
	choir_tell(choir, choir_replicant_of(choir, call->op.replicant),
	           "s%" PRIu32 " service: %s %s (%s #%" PRIu32 ") on '%s': %s %d%s", it->number, kinds[call->kind], label,
	           choir_verb_name((enum choir_verb)call->request.verb), call->request.token, call->local_id,
	           outcomes[call->outcome], call->status, call->generation != it->generation ? ", which nobody hears" : "");
	choir->quiet_since_us = choir->sim.now_us;
	if (!it->replica || call->generation != it->generation)
		return;
	struct told_file file = {0};
	struct replica_outcome outcome = outcome_of(call, &file);
	uint32_t spooled = outcome.parts_count > 0 ? call->file_token : 0;
	if (spooled)
		choir_blob_spool(it, spooled);
	choir_enter(it);
	replica_executed(it->replica, call->task, &outcome, choir_now(choir, it));
	choir_leave(it);
	if (spooled)
		choir_blob_unspool(it, spooled); /* unless it was issued */
}
