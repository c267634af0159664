/* Users: who wants what, where and when, drawn before the run; what they are told; and those who look after what went
 * wrong. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	POISON_CHANCE = 4, /* all per cent */
	DELETE_CHANCE = 6,
	KEY_CHANCE = 30,
	REPEAT_CHANCE = 10,
	REPLAY_CHANCE = 50,
	LOSING_CHANCE = 20,
	WEAK_CHANCE = 15,
	PLACED_CHANCE = 60,
	WITNESS_CHANCE = 60,
	SECRET_CHANCE = 50,
	SERVER_CHANCE = 40, /* more of those that need others, if these are deleted */
	JUDGE_CHANCE = 3,
	RARELY_CHANCE = 50, /* hardly anything sets the whole of it: */
	RARE_CHANCE = 5,
	TOGETHER_CHANCE = 30, /* at the same instant as others */
	TOGETHER_US = 500000,
	NAMES = 3, /* to choose from, where they may clash */
	REPEAT_MOST_US = 5 * CHOIR_SECOND_US,
};

/* ---- What they want ----------------------------------------------------------------------------------------------- */

static bool chance(struct sim_random *random, uint32_t per_cent)
{
	return sim_random_below(random, 100) < per_cent;
}

static void draw_members(struct choir *choir, struct sim_random *random, struct choir_replicant *it)
{
	bool chosen[CHOIR_SITES] = {false};
	it->members_count = (uint32_t)sim_random_range(random, 2, choir->options.sites);
	for (uint32_t i = 0; i < it->members_count;) {
		uint32_t site = (uint32_t)sim_random_below(random, choir->options.sites);
		i += !chosen[site];
		chosen[site] = true;
	}
	/* In the order of their ids, as the room numbers them. */
	for (uint32_t i = 0; i < it->members_count; i++) {
		uint32_t least = CHOIR_NOBODY;
		for (uint32_t k = 0; k < choir->options.sites; k++) {
			if (chosen[k] && (least == CHOIR_NOBODY || choir->sites[k].id < choir->sites[least].id))
				least = k;
		}
		chosen[least] = false;
		it->members[i] = least;
	}
	it->founders = it->members_count;
}

/* Some are to hold it, the others to know of it. What refers to others, or is named, is left to other worlds. */
static void draw_witnesses(struct choir *choir, struct choir_replicant *it)
{
	struct sim_random random;
	sim_random_seed(&random, choir->options.seed, UINT64_C(9) << 32 | it->number);
	if (!choir->options.placed || it->weak || !chance(&random, PLACED_CHANCE))
		return;
	uint32_t holder = (uint32_t)sim_random_below(&random, it->members_count);
	for (uint32_t i = 0; i < it->members_count; i++)
		if (i != holder && chance(&random, WITNESS_CHANCE))
			it->witnesses |= 1u << it->members[i];
	it->placed = it->witnesses != 0;
}

/* Any, but nothing that is simply wrong: any order of what does not commute. */
static uint8_t draw_resolution(struct sim_random *random, uint32_t x, uint32_t y)
{
	static const uint8_t choices[] = {ORDER_ANY, ORDER_KEEP, ORDER_REVERSE, ORDER_TAKE_ONE, 255};
	bool commute = x != CHOIR_PUT && y != CHOIR_PUT && (x != y || x == CHOIR_INCREMENT);
	uint8_t choice = choices[sim_random_below(random, sizeof(choices))];
	if ((x == CHOIR_UPLOAD) != (y == CHOIR_UPLOAD))
		return 255; /* another facet: there is nothing to resolve */
	return choice == ORDER_ANY && !commute ? ORDER_KEEP : choice;
}

static void draw_rules(struct choir *choir, struct sim_random *random, struct choir_replicant *it)
{
	memset(it->rules.resolutions, 255, sizeof(it->rules.resolutions));
	it->rules.resolutions[CHOIR_APPEND * CHOIR_VERBS + CHOIR_APPEND] = choir_types[it->kind].appends;
	it->rules.create_replays = chance(random, REPLAY_CHANCE);
	it->rules.delete_loses = choir->options.losing_deletes && chance(random, LOSING_CHANCE);
	for (uint32_t x = CHOIR_PUT; choir->options.wild && x < CHOIR_DELETE; x++)
		for (uint32_t y = CHOIR_PUT; y < CHOIR_DELETE; y++)
			it->rules.resolutions[x * CHOIR_VERBS + y] = draw_resolution(random, x, y);
}

static enum choir_kind draw_kind(struct choir *choir, struct sim_random *random)
{
	if (choir->options.needed && choir->options.types >> CHOIR_SERVER & 1 && chance(random, SERVER_CHANCE))
		return CHOIR_SERVER;
	for (;;) {
		uint32_t kind = (uint32_t)sim_random_below(random, CHOIR_KINDS);
		if (choir->options.types >> kind & 1)
			return (enum choir_kind)kind;
	}
}

/* Another one that is everywhere where this one is. */
static uint32_t draw_reference(struct choir *choir, const struct choir_replicant *it)
{
	for (uint32_t i = 0; i < it->number; i++) {
		const struct choir_replicant *other = &choir->replicants[i];
		bool everywhere = !other->weak && other->kind != CHOIR_SERVER && other->witnesses == 0;
		for (uint32_t k = 0; k < it->members_count; k++)
			everywhere = everywhere && choir_member_of(other, it->members[k]) != CHOIR_NOBODY;
		if (everywhere)
			return i + 1;
	}
	return 0;
}

/* Of several at different members (--names): those of the same ones would become one, which is another world (--rivals). */
static uint32_t draw_name(struct choir *choir, struct sim_random *random, const struct choir_replicant *it)
{
	uint32_t own = 1000 + it->number, name = 1 + (uint32_t)sim_random_below(random, NAMES);
	for (uint32_t i = 0; i < it->number; i++) {
		const struct choir_replicant *other = &choir->replicants[i];
		bool same = other->kind == it->kind && other->name == name && other->members_count == it->members_count;
		if (same && memcmp(other->members, it->members, it->members_count * sizeof(it->members[0])) == 0)
			return own;
	}
	return name;
}

static void draw_replicant(struct choir *choir, uint32_t number)
{
	struct choir_replicant *it = &choir->replicants[number];
	struct sim_random random;
	sim_random_seed(&random, choir->options.seed, UINT64_C(3) << 32 | number);
	*it = (struct choir_replicant){.number = number, .kind = draw_kind(choir, &random)};
	/* The number can be found in the id wherever it stands. */
	it->id = replica_id_make(UINT64_C(1750000000000) + number, sim_random_next(&random),
	                         UINT64_C(0x0043485200000000) | number);
	it->weak = choir->options.weak && chance(&random, WEAK_CHANCE);
	it->rarely_put = choir_types[it->kind].verbs & ~(1u << CHOIR_PUT | 1u << CHOIR_CREATE | 1u << CHOIR_DELETE) &&
	                 chance(&random, RARELY_CHANCE);
	draw_members(choir, &random, it);
	draw_witnesses(choir, it);
	draw_rules(choir, &random, it);
	if (choir_types[it->kind].named)
		it->name = choir->options.names ? draw_name(choir, &random, it) : 1000 + number;
	if (choir_types[it->kind].refers)
		it->refers = draw_reference(choir, it);
	if (choir->options.rivals)
		choir_names_draw(choir, it);
	choir_found_draw(choir, it);
}

static bool is_referred_to(const struct choir *choir, uint32_t number)
{
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		if (choir->replicants[i].refers == number + 1)
			return true;
	return false;
}

static enum choir_verb draw_verb(struct choir *choir, struct sim_random *random, const struct choir_replicant *it)
{
	if (chance(random, DELETE_CHANCE) && !is_referred_to(choir, it->number))
		return CHOIR_DELETE;
	for (;;) {
		uint32_t verb = (uint32_t)sim_random_range(random, CHOIR_PUT, CHOIR_UPLOAD);
		bool rare = verb == CHOIR_PUT && it->rarely_put && !chance(random, RARE_CHANCE);
		if (choir_types[it->kind].verbs >> verb & 1 && !rare)
			return (enum choir_verb)verb;
	}
}

static void draw_request(struct choir *choir, struct sim_random *random, struct choir_action *action,
                         enum choir_verb verb)
{
	const struct choir_replicant *it = &choir->replicants[action->replicant];
	struct choir_request *request = &action->request;
	*request = (struct choir_request){.verb = (uint8_t)verb, .kind = (uint8_t)it->kind, .replicant = it->number};
	request->name = it->name;
	request->mask = (uint8_t)sim_random_range(random, 1, (1u << CHOIR_FIELDS) - 1);
	request->value.number = (int64_t)sim_random_below(random, UINT64_C(1) << 31) - (INT64_C(1) << 30);
	if (verb == CHOIR_CREATE || verb == CHOIR_PUT)
		request->value.refers = it->refers;
	if (chance(random, POISON_CHANCE)) {
		uint32_t at = it->members[sim_random_below(random, it->members_count)];
		request->poison = at != action->site || chance(random, 50) ? 1u << at : 0;
	}
	if (verb == CHOIR_CREATE && it->found) /* it was accepted when it was made */
		request->poison = 0;
}

static void draw_action(struct choir *choir, struct sim_random *random, uint32_t number)
{
	uint64_t span_us = (uint64_t)choir->options.steps * CHOIR_STEP_US;
	struct choir_action *action = &choir->actions[number];
	bool creates = number < choir->replicants_count;
	*action = (struct choir_action){.wish = creates ? CHOIR_WISH_CREATE : CHOIR_WISH_CHANGE};
	action->replicant = creates ? number : (uint32_t)sim_random_below(random, choir->replicants_count);
	const struct choir_replicant *it = &choir->replicants[action->replicant];
	/* Those that are created later refer to those that were created before. */
	uint64_t from_us = creates ? span_us * number / (2 * choir->replicants_count) : choir->actions[it->number].at_us;
	uint64_t to_us = creates ? from_us + span_us / (2 * choir->replicants_count) : span_us;
	action->at_us = sim_random_range(random, from_us, to_us);
	if (!creates && chance(random, TOGETHER_CHANCE))
		action->at_us = (action->at_us + TOGETHER_US) / TOGETHER_US * TOGETHER_US;
	action->site = it->members[sim_random_below(random, it->members_count)];
	while (it->witnesses >> action->site & 1) /* the data plane sends it on */
		action->site = it->members[sim_random_below(random, it->members_count)];
	action->keyed = chance(random, KEY_CHANCE);
	draw_request(choir, random, action, creates ? CHOIR_CREATE : draw_verb(choir, random, it));
	if (choir->options.needed && !creates)
		choir_needed_action(choir, random, action);
	it = &choir->replicants[action->replicant];
	action->request.token = number + 1;
	for (uint32_t i = 0; i < CHOIR_FIELDS; i++)
		action->request.value.fields[i] = action->request.token;
	if (choir_types[it->kind].verbs >> CHOIR_APPEND & 1 && action->request.verb <= CHOIR_PUT) {
		action->request.value.entries[0] = action->request.token;
		action->request.value.entries_count = 1;
	}
	if (choir->options.rivals)
		choir_names_action(choir, random, action);
}

/* The same once more: he got no answer, or pressed the button twice. */
static void draw_repeat(struct choir *choir, struct sim_random *random, uint32_t number)
{
	uint32_t of = choir->replicants_count + (uint32_t)sim_random_below(random, number + 1 - choir->replicants_count);
	if (of >= number || choir->actions[of].wish != CHOIR_WISH_CHANGE || !choir->actions[of].keyed) {
		draw_action(choir, random, number);
		return;
	}
	struct choir_action *action = &choir->actions[number];
	*action = choir->actions[of];
	action->wish = CHOIR_WISH_REPEAT;
	action->of = of;
	action->at_us += sim_random_below(random, REPEAT_MOST_US);
}

void choir_plan_users(struct choir *choir)
{
	choir->replicants_count = choir->options.replicants;
	choir->actions_count = choir->options.replicants + choir->options.actions;
	choir->replicants = calloc(choir->replicants_count, sizeof(*choir->replicants));
	choir->actions = calloc(choir->actions_count, sizeof(*choir->actions));
	CHECK(choir->replicants != NULL && choir->actions != NULL);
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		draw_replicant(choir, i);
	for (uint32_t i = 0; i < choir->actions_count; i++) {
		struct sim_random random;
		sim_random_seed(&random, choir->options.seed, UINT64_C(4) << 32 | i);
		if (i >= choir->replicants_count && chance(&random, REPEAT_CHANCE))
			draw_repeat(choir, &random, i);
		else
			draw_action(choir, &random, i);
		choir_token(choir, i + 1)->replicant = choir->actions[i].replicant;
	}
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		choir->replicants[i].creator = i;
}

/* ---- Asking ------------------------------------------------------------------------------------------------------- */

static struct choir_action *origin_of(struct choir *choir, uint32_t action)
{
	struct choir_action *it = &choir->actions[action];
	return it->wish == CHOIR_WISH_REPEAT ? &choir->actions[it->of] : it;
}

static uint64_t new_ticket(struct choir *choir, uint32_t action)
{
	if (choir->tickets == choir->tickets_capacity) {
		choir->tickets_capacity = choir->tickets_capacity ? 2 * choir->tickets_capacity : 64;
		choir->ticket_actions = realloc(choir->ticket_actions, choir->tickets_capacity * sizeof(uint32_t));
		CHECK(choir->ticket_actions != NULL);
	}
	choir->ticket_actions[choir->tickets] = action;
	return ++choir->tickets; /* from 1 on: 0 is nobody's */
}

/* What the room is told of it. */
struct asking {
	site_id holders[CHOIR_SITES];
	struct replica_create create;
	struct replica_submission submission;
	struct buf body;
	char key[32];
	char name[16];
	char blob[32];
	site_id members[CHOIR_SITES];
	struct replica_id references[CHOIR_NEEDING];
};

static void fill_create(struct choir *choir, struct asking *asking, const struct choir_replicant *it)
{
	struct replica_create *create = &asking->create;
	create->service = STR("choir");
	create->type = str_of(choir_types[it->kind].name);
	if (it->name) {
		snprintf(asking->name, sizeof(asking->name), "%" PRIu32, it->name);
		create->collection = STR("/all");
		create->name = str_of(asking->name);
	}
	for (uint32_t i = 0; i < it->founders; i++)
		asking->members[i] = choir->sites[it->members[i]].id;
	create->members = asking->members;
	create->members_count = it->founders;
	create->consistency = it->weak ? REPLICA_WEAK : REPLICA_EVENTUAL;
	create->rules = (struct order_rules){.classes = CHOIR_VERBS, .resolutions = it->rules.resolutions};
	create->rules.delete_loses = it->rules.delete_loses;
	create->rules.create_replays = it->rules.create_replays;
	for (uint32_t i = 0; i < it->founders && it->placed; i++)
		if (!(it->witnesses >> it->members[i] & 1))
			asking->holders[create->holders_count++] = asking->members[i];
	create->span = it->placed ? REPLICA_PLACED : REPLICA_ALIKE;
	create->holders = asking->holders;
	create->prime = asking->holders[0];
	asking->submission.create = create;
}

static void fill(struct choir *choir, struct asking *asking, const struct choir_action *action, uint32_t number)
{
	const struct choir_replicant *it = &choir->replicants[action->replicant];
	struct replica_submission *submission = &asking->submission;
	enum choir_verb verb = (enum choir_verb)action->request.verb;
	submission->ticket = new_ticket(choir, number);
	submission->replicant = it->id;
	submission->class = (struct replica_class){.name = str_of(choir_verb_name(verb)), .class = (uint8_t)verb};
	submission->class.effect = (uint8_t)choir_verb_effect(verb);
	submission->class.facet = verb == CHOIR_UPLOAD;
	submission->class.repeatable = choir_verb_repeatable(verb);
	choir_request_put(&asking->body, &action->request);
	submission->request.head = str_of(choir_verb_name(verb));
	submission->request.body = buf_str(&asking->body);
	if (action->request.token % 100 < SECRET_CHANCE)
		submission->request.secret = STR("stale");
	if (verb == CHOIR_UPLOAD) {
		memcpy(asking->blob, &action->request.token, sizeof(action->request.token));
		submission->request.blob = str_make(asking->blob, sizeof(asking->blob));
		submission->request.blob_bytes = 1000;
		choir_blob_spool(&choir->sites[action->site], action->request.token);
	}
	if (action->request.value.refers) {
		asking->references[0] = choir->replicants[action->request.value.refers - 1].id;
		submission->request.references_count = 1;
	}
	if (choir->options.needed && verb == CHOIR_DELETE)
		submission->request.references_count =
			choir_needed_by(choir, &choir->sites[action->site], origin_of(choir, number), asking->references);
	submission->request.references = asking->references;
	if (action->keyed) {
		snprintf(asking->key, sizeof(asking->key), "user-%" PRIu32, action->request.token);
		submission->key = str_of(asking->key);
	}
	if (verb == CHOIR_CREATE)
		fill_create(choir, asking, it);
}

void choir_submit(struct choir *choir, uint32_t number)
{
	struct choir_action *action = &choir->actions[number], *origin = origin_of(choir, number);
	if (action->wish == CHOIR_WISH_CREATE && choir->replicants[action->replicant].found) {
		choir_found_ask(choir, number);
		return;
	}
	choir_go_elsewhere(choir, action);
	struct choir_site *it = &choir->sites[action->site];
	if (!it->replica || (origin != action && origin->skipped) || choir_knows_better(choir, it, action))
		return;
	struct asking asking = {0};
	fill(choir, &asking, action, number);
	action->open++;
	choir->figures.actions++;
	choir_weak_asks(choir, action);
	choir_tell(choir, action->replicant, "s%" PRIu32 " user: %s #%" PRIu32 " on r%" PRIu32 " (%s)%s", it->number,
	           choir_verb_name((enum choir_verb)action->request.verb), action->request.token, action->replicant,
	           choir_types[action->request.kind].name, origin != action ? ", again" : "");
	choir_enter(it);
	replica_submit(it->replica, &asking.submission, choir_now(choir, it));
	choir_leave(it);
	buf_free(&asking.body);
}

/* ---- Being answered ----------------------------------------------------------------------------------------------- */

/* What was acknowledged is durable at this very moment. */
static void acknowledge(struct choir *choir, struct choir_site *it, struct choir_action *action,
                        struct replica_op_id op)
{
	struct choir_replicant *replicant = &choir->replicants[action->replicant];
	if (action->acknowledged && (action->op.number != op.number || action->op.site != op.site) && !replicant->weak)
		choir_violation(choir, replicant->number, "#%" PRIu32 " was acknowledged twice, as different operations",
		                action->request.token);
	action->acknowledged = true;
	action->op = op;
	choir->figures.acknowledged++;
	choir_weak_acknowledged(choir, it, action);
	if (replicant->weak || replicant->conflict || action->request.verb == CHOIR_VERBS)
		return;
	uint32_t member = choir_member_of(replicant, it->number);
	for (uint32_t i = 0; i < replicant->ops_count; i++) {
		struct choir_op *known = &replicant->ops[i];
		if (known->request.token == action->request.token && known->member == member && known->number == op.number) {
			known->issued = true;
			choir_session_note(choir, it, op);
			return;
		}
	}
	choir_violation(choir, replicant->number, "s%" PRIu32 " acknowledges #%" PRIu32 ", which is not on its disk",
	                it->number, action->request.token);
}

void choir_answered(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	static const char *const outcomes[] = {"accepted", "refused", "credential", "failed", "unknown"};
	if (choir_change_answered(choir, it, deed))
		return;
	if (deed->ticket - 1 >= choir->tickets || choir->ticket_actions[deed->ticket - 1] == CHOIR_NOBODY) {
		choir_violation(choir, CHOIR_NOBODY, "s%" PRIu32 " answers what nobody asked", it->number);
		return;
	}
	uint32_t number = choir->ticket_actions[deed->ticket - 1];
	struct choir_action *asked = &choir->actions[number], *origin = origin_of(choir, number);
	char label[32];
	choir->ticket_actions[deed->ticket - 1] = CHOIR_NOBODY;
	asked->open--;
	choir_label(choir, deed->op, label);
	choir_tell(choir, asked->replicant, "s%" PRIu32 " user of #%" PRIu32 " is told: %s %s%s%s", it->number,
	           asked->request.token, deed->code ? err_phrase(deed->code) : outcomes[deed->outcome],
	           deed->code ? buf_c(&deed->bytes) : label, deed->repeated ? ", repeated" : "",
	           deed->repeated && origin == asked ? "?" : "");
	if (deed->code == 0 && deed->outcome == REPLICA_ACCEPTED) {
		acknowledge(choir, it, origin, deed->op);
	} else if (deed->code == 0 && deed->outcome == REPLICA_UNKNOWN) {
		origin->undecided = true;
		origin->op = deed->op;
		choir->figures.lost_answers++;
	} else {
		origin->refused = true;
		choir->figures.refused++;
	}
	if (asked->request.verb == CHOIR_UPLOAD && !choir_is_asked(choir, origin))
		choir_blob_unspool(it, asked->request.token);
}

void choir_users_lose(struct choir *choir, struct choir_site *it)
{
	for (uint64_t i = 0; i < choir->tickets; i++) {
		uint32_t number = choir->ticket_actions[i];
		if (number == CHOIR_NOBODY || choir->actions[number].site != it->number)
			continue;
		choir->ticket_actions[i] = CHOIR_NOBODY;
		choir->actions[number].open--;
		origin_of(choir, number)->maybe = true;
	}
}

/* ---- Looking after it --------------------------------------------------------------------------------------------- */

/* A copy waits for the state of another one, which is given when people have decided (docs/replication.md): they see that. */
static bool is_waited_for(const struct choir *choir, struct choir_site *it, const struct choir_op *op)
{
	struct arena arena;
	struct replica_view view;
	bool stuck = false;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	if (replica_look(it->replica, &arena, choir->replicants[op->request.replicant].id, &view) == 0)
		for (uint32_t i = 0; i < view.members_count; i++)
			stuck |= view.members[i].stuck;
	arena_free(&arena);
	sim_alloc_account(before);
	return choir->healed && stuck;
}

/* Something else is in doubt here, of which nobody can say that it happened before a delete of this site is decided on (doubt.c): who tries
 * to is told so. */
static bool is_in_the_way(const struct choir *choir, const struct choir_site *it, const struct choir_op *op)
{
	const struct choir_table *table = &it->rows.tables[REPLICA_OPERATIONS];
	bool found = false;
	for (uint32_t i = 0; i < table->count && op->effect == ORDER_DELETE && choir->healed && !found; i++) {
		struct choir_op other;
		uint32_t replicant;
		found = choir_peek(choir, it, table->rows[i], &other, &replicant) && replicant == op->request.replicant &&
		        choir_peek_withheld(other.number);
	}
	return found;
}

static bool has_id(struct choir_site *it, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	bool found = false;
	sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	int status = replica_look(it->replica, &arena, id, &view);
	for (uint32_t i = 0; status == 0 && i < view.members_count; i++)
		found |= view.members[i].site == it->id && view.members[i].local_id.length > 0;
	arena_free(&arena);
	sim_alloc_account(NULL);
	return found;
}

/* A create, or a PUT that makes it, or makes it anew. */
static bool makes(struct choir *choir, struct choir_site *it, const struct choir_op *op)
{
	bool put = op->request.verb == CHOIR_PUT;
	return op->request.verb == CHOIR_CREATE || (put && !has_id(it, choir->replicants[op->request.replicant].id));
}

/* In doubt. Someone looks into the service, and says what is true. What makes it cannot be said to have happened, as nobody
 * could say what its id is: what was made is taken away, and it is tried again. */
static enum replica_verdict decide(struct choir *choir, struct choir_site *it, const struct choir_op *op,
                                   enum replica_member_state state)
{
	const struct choir_token *token = choir_token(choir, op->request.token);
	uint32_t dice = (uint32_t)sim_random_below(&choir->random, 100);
	if (state != REPLICA_IN_DOUBT) {
		bool lets_be = dice < (is_waited_for(choir, it, op) || is_in_the_way(choir, it, op) ? 50 : 10);
		bool hopeless = op->request.poison >> it->number & 1 ||
		                (choir->options.needed && op->effect == ORDER_CREATE && choir_is_dangling(it, &op->request));
		return hopeless && lets_be ? REPLICA_DISMISS : REPLICA_RETRY;
	}
	if (makes(choir, it, op))
		return REPLICA_RETRY;
	if (token->effect[it->number])
		return REPLICA_HAPPENED;
	return dice < 70 || choir->options.rivals ? REPLICA_RETRY : REPLICA_DISMISS;
}

static void take_away(struct choir_site *it, uint32_t replicant)
{
	for (uint32_t i = 0; i < it->items_count; i++)
		if (it->items[i].number != 0 && it->items[i].replicant == replicant)
			it->items[i].number = 0;
}

static void judge(struct choir *choir, struct choir_site *it, struct replica_op_id id, const struct choir_op *op,
                  enum replica_member_state state)
{
	static const char *const verdicts[] = {"retry", "happened", "dismiss"};
	struct err err = {0};
	enum replica_verdict verdict = decide(choir, it, op, state);
	bool made = makes(choir, it, op);
	struct choir_token *token = choir_token(choir, op->request.token);
	char label[32];
	choir_label(choir, id, label);
	choir_tell(choir, op->request.replicant, "s%" PRIu32 " person: %s (#%" PRIu32 "), %s: %s", it->number, label,
	           op->request.token, state == REPLICA_IN_DOUBT ? "in doubt" : "rejected", verdicts[verdict]);
	choir->figures.judged++;
	token->doubted[it->number] = true;
	choir_enter(it);
	int status = replica_judge(it->replica, id, verdict, STR("fresh"), choir_now(choir, it), &err);
	choir_leave(it);
	/* Whose word is not taken does nothing: the agent is just asking the service about it. */
	if (status == 0 && verdict == REPLICA_DISMISS)
		token->dismissed[it->number] = true;
	if (status == 0 && state == REPLICA_IN_DOUBT && made)
		take_away(it, op->request.replicant);
	if (status != 0 && status != ERR_CONFLICT) /* that is: it is being looked into already */
		choir_violation(choir, op->request.replicant, "s%" PRIu32 ": a verdict on %s is refused: %s", it->number, label,
		                err.text);
}

static void look_at(struct choir *choir, struct choir_site *it, const struct choir_row *row)
{
	struct choir_op op;
	uint32_t replicant;
	if (!choir_peek(choir, it, row, &op, &replicant))
		return;
	const struct choir_replicant *known = &choir->replicants[replicant];
	struct replica_op_id id = {.replicant = known->id, .number = op.number};
	id.site = choir->sites[known->members[op.member]].id;
	struct arena arena;
	struct replica_op_view view;
	enum replica_member_state state = REPLICA_APPLIED;
	sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	int status = replica_look_op(it->replica, &arena, id, &view);
	for (uint32_t i = 0; status == 0 && i < view.members_count; i++) {
		if (view.members[i].site == it->id)
			state = view.members[i].state;
	}
	arena_free(&arena);
	sim_alloc_account(NULL);
	if (op.effect == ORDER_ADOPT && state >= REPLICA_REJECTED && choir_give_up(choir, it, &op))
		return;
	bool dismissed = choir_token(choir, op.request.token)->dismissed[it->number];
	if (state == REPLICA_IN_DOUBT || (state >= REPLICA_REJECTED && !dismissed))
		judge(choir, it, id, &op, state);
}

/* Rows may come and go with each verdict: keys are looked up anew. */
static void judge_at(struct choir *choir, struct choir_site *it, bool all)
{
	struct buf key = {0};
	for (;;) {
		const struct choir_table *table = &it->rows.tables[REPLICA_OPERATIONS];
		uint32_t at = key.length ? choir_rows_find(&it->rows, REPLICA_OPERATIONS, buf_str(&key)) : 0;
		if (key.length && at < table->count && str_equal(choir_row_key(table->rows[at]), buf_str(&key)))
			at++;
		if (at >= table->count)
			break;
		buf_clear(&key);
		buf_put(&key, choir_row_key(table->rows[at]));
		if (all || chance(&choir->random, JUDGE_CHANCE))
			look_at(choir, it, table->rows[at]);
	}
	buf_free(&key);
}

void choir_judge(struct choir *choir, bool all)
{
	for (uint32_t i = 0; i < choir->options.sites; i++)
		if (choir->sites[i].replica)
			judge_at(choir, &choir->sites[i], all);
}
