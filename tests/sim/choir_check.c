/* How replicated resources bear it: the checks. docs/simulator.md lists them.
 *
 * With each message and commit: nobody hears of what is not his; nothing that was refused goes anywhere; an operation does
 *                     not change once others know of it.
 * With each execution: all that it had seen was dealt with before; nothing is created twice.
 * After each step:    no entry is in a list twice, and none before what it had seen; memory and messages are bounded.
 * At the end:         choir_end.c.
 */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	VIOLATIONS_SHOWN = 8,
	MEMORY_BYTES = 1 << 20,
	MESSAGES_PER_PEER = 40, /* in one second */
};

void choir_violation(struct choir *choir, uint32_t replicant, const char *format, ...)
{
	if (choir->violations_count++ == 0) {
		choir->violation_us = choir->sim.now_us;
		choir->violation_of = replicant;
	}
	if (choir->violations_count > VIOLATIONS_SHOWN)
		return;
	va_list arguments;
	va_start(arguments, format);
	double at_s = (double)choir->sim.now_us / CHOIR_SECOND_US;
	buf_printf(&choir->violations, "  step %" PRIu64 " (%.3f s): ", choir->sim.now_us / CHOIR_STEP_US, at_s);
	if (replicant != CHOIR_NOBODY)
		buf_printf(&choir->violations, "r%" PRIu32 ": ", replicant);
	buf_vprintf(&choir->violations, format, arguments);
	buf_put_char(&choir->violations, '\n');
	va_end(arguments);
}

/* ---- Who hears of what -------------------------------------------------------------------------------------------- */

/* Ids of replicants are marked, see choir_plan_users(). Calls back for each that is found in the bytes. */
typedef void found_id(struct choir *choir, uint32_t replicant, void *context);

static void find_ids(struct choir *choir, struct str bytes, found_id *found, void *context)
{
	const char *at = bytes.at, *end = bytes.at + bytes.length;
	while (at && (at = memmem(at, (size_t)(end - at), "CHR", 3)) != NULL) {
		struct replica_id id;
		if (at - bytes.at >= 9 && end - at >= 7) {
			memcpy(id.bytes, at - 9, sizeof(id.bytes));
			uint32_t replicant = choir_replicant_of(choir, id);
			if (replicant != CHOIR_NOBODY)
				found(choir, replicant, context);
		}
		at++;
	}
}

struct hearing {
	const struct choir_site *who;
	const char *what;
	enum replica_table table; /* of rows */
};

static void must_be_member(struct choir *choir, uint32_t replicant, void *context)
{
	const struct hearing *hearing = context;
	const struct choir_replicant *it = &choir->replicants[replicant];
	if (!it->conflict && !choir_needed_names(choir, it, hearing->who) &&
	    choir_member_of(it, hearing->who->number) == CHOIR_NOBODY)
		choir_violation(choir, replicant, "s%" PRIu32 " is no member, and %s it", hearing->who->number, hearing->what);
}

static void may_be_kept(struct choir *choir, uint32_t replicant, void *context)
{
	const struct hearing *hearing = context;
	must_be_member(choir, replicant, context);
	choir_weak_keeps(choir, hearing->who, hearing->table, replicant);
}

bool choir_is_asked(const struct choir *choir, const struct choir_action *action)
{
	for (uint32_t i = 0; i < choir->actions_count; i++)
		if (choir->actions[i].wish == CHOIR_WISH_REPEAT && &choir->actions[choir->actions[i].of] == action &&
		    choir->actions[i].open)
			return true;
	return action->open > 0;
}

/* It was refused, and nobody asked again. */
static bool is_void(const struct choir *choir, uint32_t token)
{
	if (token == 0 || token > choir->actions_count)
		return false;
	const struct choir_action *action = &choir->actions[token - 1];
	if (action->wish == CHOIR_WISH_REPEAT)
		action = &choir->actions[action->of];
	return action->refused && !action->acknowledged && !action->undecided && !action->maybe &&
	       !choir_is_asked(choir, action);
}

/* Requests are marked as well. */
static void find_requests(struct choir *choir, const struct choir_site *it, struct str bytes)
{
	const char *at = bytes.at, *end = bytes.at + bytes.length;
	size_t mark = sizeof(CHOIR_MARK) - 1;
	while (at && (at = memmem(at, (size_t)(end - at), CHOIR_MARK, mark)) != NULL) {
		uint32_t token;
		at += mark;
		if ((size_t)(end - at) < sizeof(token))
			break;
		memcpy(&token, at, sizeof(token));
		if (token >= choir->tokens_count)
			continue;
		const struct choir_token *known = &choir->tokens[token];
		if (is_void(choir, token))
			choir_violation(choir, known->replicant, "s%" PRIu32 " sends #%" PRIu32 ", which was refused", it->number,
			                token);
		if (known->op)
			choir->replicants[known->replicant].ops[known->op - 1].issued = true;
	}
}

static void put_id(struct choir *choir, uint32_t replicant, void *context)
{
	(void)choir;
	buf_printf(context, " r%" PRIu32, replicant);
}

void choir_check_message(struct choir *choir, struct choir_site *it, uint32_t to, struct str message)
{
	if (choir->options.trace) {
		struct buf ids = {0};
		find_ids(choir, message, put_id, &ids);
		choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " sends s%" PRIu32 " %zu bytes on%s", it->number, to,
		           message.length, buf_c(&ids));
		buf_free(&ids);
	}
	struct hearing sender = {.who = it, .what = "sends"}, receiver = {.who = &choir->sites[to], .what = "is sent"};
	if (message.length > LIMIT_REPLICA_MESSAGE_BYTES)
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " sends a message of %zu bytes", it->number, message.length);
	find_ids(choir, message, must_be_member, &sender);
	find_ids(choir, message, must_be_member, &receiver);
	find_requests(choir, it, message);
	uint64_t most = (uint64_t)MESSAGES_PER_PEER * choir->options.sites;
	if (it->second_messages > most)
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " sends more than %" PRIu64 " messages in one second",
		                it->number, most);
}

void choir_check_blob(struct choir *choir, struct choir_site *it, struct choir_site *from, uint32_t token)
{
	const struct choir_replicant *of = &choir->replicants[choir_token(choir, token)->replicant];
	if (choir_member_of(of, it->number) == CHOIR_NOBODY || choir_member_of(of, from->number) == CHOIR_NOBODY)
		choir_violation(choir, of->number,
		                "a blob goes from s%" PRIu32 " to s%" PRIu32 ", not both of which are members", from->number,
		                it->number);
}

/* ---- What is on disk ---------------------------------------------------------------------------------------------- */

struct choir_op *choir_op_of(struct choir_replicant *it, uint32_t member, uint32_t number)
{
	for (uint32_t i = 0; i < it->ops_count; i++)
		if (it->ops[i].member == member && it->ops[i].number == number)
			return &it->ops[i];
	return NULL;
}

struct choir_op *choir_op_add(struct choir_replicant *it)
{
	if (it->ops_count == it->ops_capacity) {
		it->ops_capacity = it->ops_capacity ? 2 * it->ops_capacity : 8;
		it->ops = realloc(it->ops, it->ops_capacity * sizeof(*it->ops));
		CHECK(it->ops != NULL);
	}
	return &it->ops[it->ops_count++];
}

/* An operation on somebody's disk: nobody may have another one of that name. Until others may know of it, it can be
 * withdrawn, and its number be used again. */
static void note_op(struct choir *choir, struct choir_site *it, const struct choir_op *op, uint32_t replicant)
{
	struct choir_replicant *of = &choir->replicants[replicant];
	struct choir_op *known = choir_op_of(of, op->member, op->number);
	if (known && known->digest == op->digest) {
		known->known |= 1u << it->number;
		return;
	}
	if (known && known->issued) {
		choir_violation(choir, replicant,
		                "s%" PRIu32 ": operation s%" PRIu32 ".%" PRIu32 " (#%" PRIu32 ") is another one than #%" PRIu32
		                ", which others know by that name",
		                it->number, of->members[op->member], op->number, op->request.token, known->request.token);
		return;
	}
	if (it->number != of->members[op->member])
		choir_violation(choir, replicant, "s%" PRIu32 " has s%" PRIu32 ".%" PRIu32 ", which its issuer has not",
		                it->number, of->members[op->member], op->number);
	if (!known)
		known = choir_op_add(of);
	else if (choir_token(choir, known->request.token)->op == known - of->ops + 1)
		choir_token(choir, known->request.token)->op = 0;
	*known = *op;
	known->known = 1u << it->number;
	choir_token(choir, op->request.token)->op = (uint32_t)(known - of->ops) + 1;
	if (op->repair && !of->repaired)
		choir->figures.repairs++;
	if (op->repair)
		choir_check_given(choir, it, of, known);
	of->repaired |= op->repair;
}

/* An operation comes after all that it had seen. */
static void check_seen(struct choir *choir, struct choir_site *it, const struct choir_op *op, uint32_t replicant)
{
	const struct choir_replicant *of = &choir->replicants[replicant];
	for (uint32_t i = 0; i < of->ops_count; i++) {
		const struct choir_op *x = &of->ops[i];
		bool same = x->member == op->member && x->number == op->number;
		if (!same && choir_saw(op, x) && !(x->known >> it->number & 1) && !choir_peek_has(choir, it, of, x) &&
		    !choir_peek_forgotten(choir, it, of, x))
			choir_violation(choir, replicant,
			                "s%" PRIu32 " has #%" PRIu32 ", and not #%" PRIu32 ", which that had seen", it->number,
			                op->request.token, x->request.token);
		if (!same && choir_saw(op, x) && x->stamp >= op->stamp)
			choir_violation(choir, replicant, "#%" PRIu32 " is stamped before #%" PRIu32 ", which it had seen",
			                op->request.token, x->request.token);
	}
}

void choir_check_commit(struct choir *choir, struct choir_site *it)
{
	struct hearing keeper = {.who = it, .what = "keeps a row of"};
	for (uint32_t i = 0; i < it->rows.changes_count; i++)
		if (it->rows.changes[i].after && it->rows.changes[i].table == REPLICA_REPLICANTS)
			choir_found_commit(choir, it, choir_row_key(it->rows.changes[i].after));
	for (uint32_t i = 0; i < it->rows.changes_count; i++) {
		const struct choir_change *change = &it->rows.changes[i];
		struct choir_op op;
		uint32_t replicant;
		if (!change->after)
			continue;
		keeper.table = change->table;
		find_ids(choir, str_make(change->after->bytes, change->after->key_length + change->after->length), may_be_kept,
		         &keeper);
		if (change->table != REPLICA_OPERATIONS)
			continue;
		bool sound = choir_peek(choir, it, change->after, &op, &replicant);
		if (replicant != CHOIR_NOBODY && choir->replicants[replicant].conflict)
			continue;
		if (!sound)
			choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 ": a row of an operation makes no sense", it->number);
		else if (!choir_peek_withheld(op.number)) {
			note_op(choir, it, &op, replicant);
			check_seen(choir, it, &op, replicant);
		}
	}
	/* With the rows as they are now: a number that was given up may have been taken again. */
	for (uint32_t i = 0; i < it->rows.changes_count; i++) {
		const struct choir_change *change = &it->rows.changes[i];
		if (change->after && (change->table == REPLICA_LANES || change->table == REPLICA_REPLICANTS))
			choir_check_alone(choir, it, choir_row_key(change->after));
	}
}

/* ---- Clocks ------------------------------------------------------------------------------------------------------- */

/* The stamp in front of a message (docs/protocol/replica.md). */
static uint64_t clock_of(struct str message)
{
	uint64_t clock = 0;
	for (size_t i = 1; i <= 8 && i < message.length; i++)
		clock = clock << 8 | (unsigned char)message.at[i];
	return clock;
}

void choir_note_clock(struct choir *choir, struct choir_site *it, struct str message)
{
	uint64_t clock = clock_of(message), ms = clock >> 16, now_ms = choir_now(choir, it).wall_ms;
	bool taken = ms <= now_ms + it->limits.clock_ahead_ms && ms + it->limits.message_age_ms >= now_ms;
	if (taken && clock > it->heard_clock)
		it->heard_clock = clock;
}

void choir_check_clock(struct choir *choir, const struct choir_site *it, struct str message)
{
	if (clock_of(message) <= it->heard_clock)
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " sends a message that is stamped before what it has heard",
		                it->number);
}

/* ---- What is executed --------------------------------------------------------------------------------------------- */

/* It is issued, as far as that site knows: its own as soon as they were accepted; its state, which is there, at once. One that is withheld
 * since is not: it gave up its number. */
static bool counts_at(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                      const struct choir_op *op)
{
	bool own = of->members[op->member] == it->number;
	bool here = choir_peek_has(choir, it, of, op) || choir_peek_forgotten(choir, it, of, op);
	if (op->issued)
		return here || op->known >> it->number & 1;
	return own && here && (op->repair || choir_token(choir, op->request.token)->ran[it->number]);
}

/* By what that site knows, some later replace or delete makes it needless, or it lost: it may be skipped. `op` is run now: what became
 * of it before does not count. */
static bool is_needless_if(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                           const struct choir_op *x, const struct choir_op *op, bool kept)
{
	uint32_t *sequence = calloc(of->ops_count + 1, sizeof(*sequence)), count = 0;
	struct choir_op *ops = calloc(of->ops_count + 1, sizeof(*ops));
	bool *without = calloc(of->ops_count + 1, sizeof(*without));
	CHECK(sequence != NULL && ops != NULL && without != NULL);
	for (uint32_t i = 0; i < of->ops_count; i++) {
		const struct choir_token *token = choir_token(choir, of->ops[i].request.token);
		if (!counts_at(choir, it, of, &of->ops[i]) || of->ops[i].effect == ORDER_ADOPT)
			continue;
		bool rejected = token->rejected[it->number] && !token->moot[it->number];
		without[count] = rejected && &of->ops[i] != op && !(kept && token->ran[it->number]);
		ops[count++] = of->ops[i];
	}
	uint32_t length = choir_sequence(ops, count, &of->rules, without, sequence);
	bool found = false, covered = false;
	for (uint32_t i = 0; i < length; i++) {
		const struct choir_op *z = &ops[sequence[i]];
		if (z->member == x->member && z->number == x->number)
			found = true;
		else if (found && (z->effect == ORDER_DELETE || (z->effect == ORDER_REPLACE && z->facet == x->facet)))
			covered = true;
	}
	free(sequence);
	free(ops);
	free(without);
	return !found || covered;
}

/* What is shown as rejected may have had its effect before, and that may have stayed. */
static bool is_needless(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                        const struct choir_op *x, const struct choir_op *op)
{
	return is_needless_if(choir, it, of, x, op, false) || is_needless_if(choir, it, of, x, op, true);
}

bool choir_is_needless(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                       const struct choir_op *op)
{
	return is_needless(choir, it, of, op, NULL);
}

/* What concerns another facet may come before or after. What its own issuer was told to be unknown, and runs again, counts as
 * seen by what follows there, run or not. */
static void check_causes(struct choir *choir, struct choir_site *it, const struct choir_replicant *of,
                         const struct choir_op *op)
{
	for (uint32_t i = 0; i < of->ops_count; i++) {
		const struct choir_op *x = &of->ops[i];
		bool apart = x->facet != op->facet && x->effect != ORDER_CREATE && op->effect != ORDER_DELETE;
		if (x == op || !choir_saw(op, x) || apart || x->effect == ORDER_ADOPT)
			continue;
		const struct choir_token *token = choir_token(choir, x->request.token);
		bool own = of->members[x->member] == it->number;
		if (token->ran[it->number] || token->refused[it->number] || token->doubted[it->number] || own ||
		    is_needless(choir, it, of, x, op))
			continue;
		choir_violation(choir, of->number,
		                "s%" PRIu32 " runs #%" PRIu32 ", which had seen #%" PRIu32 ", which did not run there",
		                it->number, op->request.token, x->request.token);
	}
}

void choir_check_execution(struct choir *choir, struct choir_site *it, const struct choir_call *call)
{
	uint32_t replicant = choir_replicant_of(choir, call->op.replicant);
	if (replicant == CHOIR_NOBODY || choir->replicants[replicant].weak)
		return;
	struct choir_replicant *of = &choir->replicants[replicant];
	if (choir_member_of(of, it->number) == CHOIR_NOBODY)
		choir_violation(choir, replicant, "s%" PRIu32 " is no member, and runs #%" PRIu32, it->number,
		                call->request.token);
	if (of->witnesses >> it->number & 1)
		choir_violation(choir, replicant, "s%" PRIu32 " is a witness, and runs #%" PRIu32, it->number,
		                call->request.token);
	if (is_void(choir, call->request.token))
		choir_violation(choir, replicant, "s%" PRIu32 " runs #%" PRIu32 ", which was refused", it->number,
		                call->request.token);
}

/* The state that this site gives counts here at once, and so does the stamp that an operation of its own gets when it is issued: it may be
 * due to them what is run now. */
static void note_own_rows(struct choir *choir, struct choir_site *it)
{
	for (uint32_t i = 0; i < it->rows.changes_count; i++) {
		const struct choir_change *change = &it->rows.changes[i];
		struct choir_op op;
		uint32_t replicant;
		if (!change->after || change->table != REPLICA_OPERATIONS ||
		    !choir_peek(choir, it, change->after, &op, &replicant) ||
		    choir->replicants[replicant].members[op.member] != it->number)
			continue;
		struct choir_op *known = choir_op_of(&choir->replicants[replicant], op.member, op.number);
		if (op.repair)
			note_op(choir, it, &op, replicant);
		else if (known && known->request.token == op.request.token)
			known->stamp = op.stamp;
	}
}

/* What it had not committed is lost, and with it the stamps that operations of its own would have got. Of which the intent alone is left,
 * those may have had their effect, and are made sure of. */
void choir_check_lost(struct choir *choir, struct choir_site *it)
{
	const struct choir_table *table = &it->rows.tables[REPLICA_OPERATIONS];
	for (uint32_t i = 0; i < table->count; i++) {
		struct choir_op op;
		uint32_t replicant;
		if (!choir_peek(choir, it, table->rows[i], &op, &replicant) ||
		    choir->replicants[replicant].members[op.member] != it->number)
			continue;
		const struct choir_replicant *of = &choir->replicants[replicant];
		struct choir_op *known = choir_op_of(&choir->replicants[replicant], op.member, op.number);
		if (!known || known->request.token != op.request.token)
			continue;
		known->stamp = op.stamp;
		if (!choir_peek_issued(it, of, known))
			choir_token(choir, op.request.token)->tried[it->number] = true;
	}
}

void choir_check_task(struct choir *choir, struct choir_site *it, struct replica_op_id id, struct str body)
{
	uint32_t replicant = choir_replicant_of(choir, id.replicant);
	struct choir_request request;
	if (replicant == CHOIR_NOBODY || choir->replicants[replicant].weak || choir->replicants[replicant].conflict ||
	    !choir_request_parse(body, &request))
		return;
	struct choir_replicant *of = &choir->replicants[replicant];
	note_own_rows(choir, it);
	const struct choir_op *op = choir_op_of(of, choir_member_of(of, choir_site_of(choir, id.site)), id.number);
	/* What may have had its effect already is made sure of, whatever came meanwhile. */
	if (op && op->effect != ORDER_ADOPT && op->request.token == request.token &&
	    !choir_token(choir, request.token)->tried[it->number])
		check_causes(choir, it, of, op);
	choir_token(choir, request.token)->tried[it->number] = true;
}

/* Of what is `weak`, nothing is kept of what runs: an agent that died meanwhile does not know that it was made, and makes it again if
 * the network brings the message a second time. That it is run no more often than it is heard of is looked at in choir_weak.c. */
void choir_check_created(struct choir *choir, struct choir_site *it, const struct choir_call *call)
{
	uint32_t count = 0, bit = 1u << it->number;
	struct choir_replicant *of = &choir->replicants[call->request.replicant];
	for (uint32_t i = 0; i < it->items_count; i++)
		count += it->items[i].number != 0 && it->items[i].replicant == call->request.replicant;
	if (of->weak && call->request.verb == CHOIR_CREATE) {
		of->made_again |= count > 1 && of->made_by[it->number] != call->generation ? bit : 0;
		of->made_by[it->number] = call->generation;
	}
	if (count > 1 && !(of->made_again & bit))
		choir_violation(choir, call->request.replicant, "s%" PRIu32 " has it twice", it->number);
}

/* Its create was run: what was rejected before may have been so because it was not there (src/replica/order.h). */
void choir_note_made(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of)
{
	for (uint32_t i = 0; i < of->ops_count; i++) {
		struct choir_token *token = choir_token(choir, of->ops[i].request.token);
		token->moot[it->number] = token->rejected[it->number];
	}
}

/* ---- After each step ---------------------------------------------------------------------------------------------- */

static const struct choir_op *op_of_token(struct choir *choir, uint32_t token)
{
	const struct choir_token *known = choir_token(choir, token);
	return known->op ? &choir->replicants[known->replicant].ops[known->op - 1] : NULL;
}

/* It did not work at first, or what was run again before it had undone it: it was run (again) when others that had seen it had run. */
static bool was_put_off(struct choir *choir, const struct choir_site *it, uint32_t token)
{
	const struct choir_token *known = choir_token(choir, token);
	return known->doubted[it->number] || known->refused[it->number] || known->runs[it->number] > 1;
}

static void check_entries(struct choir *choir, const struct choir_site *it, const struct choir_item *item)
{
	const uint32_t *entries = item->state.entries;
	for (uint32_t i = 0; i < item->state.entries_count; i++) {
		const struct choir_op *x = op_of_token(choir, entries[i]);
		for (uint32_t k = i + 1; k < item->state.entries_count; k++) {
			const struct choir_op *y = op_of_token(choir, entries[k]);
			/* By wild rules a repair may lose against what came on top of it: until the next one, this is so. */
			bool may_be = choir->options.wild && choir->replicants[item->replicant].repaired;
			if (entries[i] == entries[k] && !may_be)
				choir_violation(choir, item->replicant, "s%" PRIu32 " has entry #%" PRIu32 " twice", it->number,
				                entries[i]);
			else if (x && y && !choir->options.wild && choir_saw(x, y) && !was_put_off(choir, it, entries[k]) &&
			         !was_put_off(choir, it, entries[i]) &&
			         !choir->replicants[item->replicant].repaired) /* with whatever state there was */
				choir_violation(choir, item->replicant,
				                "s%" PRIu32 " has #%" PRIu32 " before #%" PRIu32 ", which it had seen", it->number,
				                entries[i], entries[k]);
		}
	}
}

void choir_check_step(struct choir *choir)
{
	choir_check_sessions(choir);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		struct choir_site *it = &choir->sites[i];
		for (uint32_t k = 0; k < it->items_count; k++) {
			if (it->items[k].number != 0 && it->items[k].touched_us + CHOIR_STEP_US >= choir->sim.now_us &&
			    !choir->replicants[it->items[k].replicant].weak)
				check_entries(choir, it, &it->items[k]);
		}
		if (it->bytes > MEMORY_BYTES)
			choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " holds %" PRId64 " bytes of memory", it->number,
			                it->bytes);
	}
}
