/* Preferences of users who write (RFC 7240).
 *
 *     wait=N                    the answer waits until every member has the operation, N seconds at the most; Cheops-Replicas says
 *                               who has it then
 *     respond-async             the answer is 202 as soon as the operation is durable here; where it is to be followed is in Location
 *     cheops-contents           of the delete of a container: what is in it is deleted, too (contents.c)
 *     respond-async, wait=N     the same, but only if the service here has not answered within N seconds
 *
 * An operation that was answered with 202 may still be refused by the service here. Then nobody else ever hears of it, and no trace
 * of it stays on disk; its user is told by what is noted here, in memory, for the last of them.
 */
#include "engine/engine_int.h"

#include <string.h>

/* ---- What is preferred? -------------------------------------------------------------------------------------------- */

static struct str trim(struct str text)
{
	while (text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
		text = str_make(text.at + 1, text.length - 1);
	while (text.length > 0 && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* A number of seconds, perhaps in quotes; what is none, or 0, is no preference. */
static uint64_t read_seconds(struct str text)
{
	uint64_t seconds = 0;
	if (text.length >= 2 && text.at[0] == '"' && text.at[text.length - 1] == '"')
		text = str_make(text.at + 1, text.length - 2);
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return 0;
		seconds = seconds * 10 + (uint64_t)(text.at[i] - '0');
		seconds = seconds < LIMIT_ENGINE_WAIT_S ? seconds : LIMIT_ENGINE_WAIT_S;
	}
	return seconds;
}

/* The first of a name counts. Parameters after a semicolon are none that we know. */
static void take_preference(struct str text, struct preference *preference)
{
	const char *semicolon = memchr(text.at, ';', text.length);
	text = trim(semicolon ? str_make(text.at, (size_t)(semicolon - text.at)) : text);
	const char *equals = text.length > 0 ? memchr(text.at, '=', text.length) : NULL;
	struct str name = trim(equals ? str_make(text.at, (size_t)(equals - text.at)) : text);
	struct str value = equals ? trim(str_make(equals + 1, text.length - (size_t)(equals + 1 - text.at))) : STR("");
	if (str_equal_nocase(name, STR("respond-async")))
		preference->respond_async = true;
	else if (str_equal_nocase(name, STR("cheops-contents")))
		preference->contents = true;
	else if (str_equal_nocase(name, STR("wait")) && preference->wait_s == 0)
		preference->wait_s = read_seconds(value);
}

void engine_prefer_read(struct str value, struct preference *preference)
{
	while (value.length > 0) {
		const char *comma = memchr(value.at, ',', value.length);
		size_t length = comma ? (size_t)(comma - value.at) : value.length;
		if (length > 0)
			take_preference(str_make(value.at, length), preference);
		length += comma ? 1 : 0;
		value = str_make(value.at + length, value.length - length);
	}
}

/* ---- What became of those who were answered early ------------------------------------------------------------------- */

static struct early *find_early(struct engine *engine, const struct replica_op_id *op)
{
	for (uint32_t i = 0; i < LIMIT_ENGINE_EARLY; i++) {
		struct early *early = &engine->early[i];
		if (early->ticket != 0 && early->op.number == op->number && early->op.site == op->site &&
		    memcmp(early->op.replicant.bytes, op->replicant.bytes, sizeof(op->replicant.bytes)) == 0)
			return early;
	}
	return NULL;
}

void engine_early_answered(struct engine *engine, const struct replica_answer *answer)
{
	for (uint32_t i = 0; i < LIMIT_ENGINE_EARLY; i++) {
		struct early *early = &engine->early[i];
		if (early->ticket != answer->ticket)
			continue;
		if (answer->code == 0 && answer->outcome.kind == REPLICA_ACCEPTED) {
			early->ticket = 0; /* it goes on like any other */
			return;
		}
		struct str text = answer->code ? answer->text : answer->outcome.answer;
		early->bytes = text.length < sizeof(early->text) ? text.length : sizeof(early->text);
		memcpy(early->text, text.at, early->bytes);
		early->status = answer->outcome.status;
		early->state = answer->outcome.kind == REPLICA_UNKNOWN ? REPLICA_IN_DOUBT : REPLICA_REJECTED;
		engine_waits_mark(engine, &early->op.replicant);
		return;
	}
}

int engine_look_op(struct engine *engine, struct arena *arena, struct replica_op_id op, struct replica_op_view *view)
{
	int code = engine->replica ? replica_look_op(engine->replica, arena, op, view) : ERR_UNAVAILABLE;
	struct early *early = code == ERR_NOT_FOUND ? find_early(engine, &op) : NULL;
	if (!early)
		return code;
	*view = (struct replica_op_view){.id = op, .stamp = early->wall_ms << 16, .members_count = 1};
	view->class.name = str_make(arena_copy(arena, early->name, early->name_bytes), early->name_bytes);
	view->class.effect = early->effect;
	view->members[0].site = engine->options.self;
	view->members[0].state = early->state;
	view->members[0].status = early->status;
	view->members[0].answer = str_make(arena_copy(arena, early->text, early->bytes), early->bytes);
	return 0;
}

/* 202: nothing more is known than what it is called. */
static void answer_early(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	struct early *early = &engine->early[engine->early_next++ % LIMIT_ENGINE_EARLY];
	*early = (struct early){.ticket = ticket->number,
	                        .op = ticket->op,
	                        .state = REPLICA_PENDING,
	                        .wall_ms = engine_now().wall_ms,
	                        .effect = ticket->effect};
	struct str name = glue_operation_name(ticket->match.operation);
	early->name_bytes = name.length < sizeof(early->name) ? name.length : sizeof(early->name);
	memcpy(early->name, name.at, early->name_bytes);
	ticket->answer.status = 202;
	struct buf *fields = &ticket->answer_fields, *body = &ticket->answer_body;
	buf_put(fields, STR("Content-Type: application/json\r\nPreference-Applied: respond-async\r\nLocation: "));
	if (ticket->setup->about.api.length > 0) {
		buf_put(fields, STR("http://"));
		buf_put(fields, ticket->setup->about.api);
	}
	buf_put(fields, STR("/cheops/v1/operations/"));
	replica_op_id_put(ticket->op, fields);
	buf_put(fields, STR("\r\nCheops-Operation: "));
	replica_op_id_put(ticket->op, fields);
	buf_put(fields, STR("\r\n"));
	buf_put(body, STR("{\"operation\":\""));
	replica_op_id_put(ticket->op, body);
	buf_put(body, STR("\",\"id\":\""));
	replica_id_put(ticket->op.replicant, body);
	buf_put(body, STR("\"}\n"));
	engine_ticket_finish(ticket);
}

/* ---- When to answer ------------------------------------------------------------------------------------------------ */

static void early_over(struct wait *wait)
{
	struct ticket *ticket = (struct ticket *)((char *)wait - offsetof(struct ticket, wait));
	if (!ticket->answered)
		answer_early(ticket);
}

/* What it was is durable, and goes to the service here now. */
void engine_ticket_started(struct engine *engine, const struct run *run)
{
	struct ticket *ticket = run->task.first ? engine_ticket(engine, run->task.ticket) : NULL;
	if (ticket)
		ticket->started = true;
	if (!ticket || !ticket->preference.respond_async || ticket->answered || ticket->wait.waiting)
		return;
	ticket->op = run->task.op;
	ticket->effect = run->class.effect;
	if (ticket->preference.wait_s == 0) {
		answer_early(ticket);
		return;
	}
	/* Its own answer is what it waits for: that ends it. */
	ticket->wait = (struct wait){.op = ticket->op, .until = ENGINE_ALL, .answer = true, .over = early_over};
	engine_wait_start(engine, &ticket->wait, ticket->preference.wait_s * 1000);
}

static void members_over(struct wait *wait)
{
	struct ticket *ticket = (struct ticket *)((char *)wait - offsetof(struct ticket, wait));
	engine_put_replicas(ticket);
	buf_printf(&ticket->answer_fields, "Preference-Applied: wait=%llu\r\n",
	           (unsigned long long)ticket->preference.wait_s);
	engine_changed(ticket->engine);
	engine_ticket_finish(ticket);
}

/* For the other members. */
bool engine_ticket_waits(const struct ticket *ticket)
{
	return ticket->preference.wait_s > 0 && !ticket->preference.respond_async;
}

void engine_ticket_answered(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	ticket->durable = true;
	engine_wait_end(&ticket->wait);
	if (!ticket->accepted || !engine_ticket_waits(ticket)) {
		if (!engine_names_frees(ticket))
			engine_ticket_finish(ticket);
		return;
	}
	ticket->wait = (struct wait){.op = ticket->op, .until = ENGINE_ALL, .over = members_over};
	if (!engine_wait_start(engine, &ticket->wait, ticket->preference.wait_s * 1000))
		members_over(&ticket->wait); /* too many wait already */
	engine_changed(engine);          /* it may be so already */
}
