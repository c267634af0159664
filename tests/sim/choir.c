/* The world: its sites, what the engine calls, and the words in which it is told. */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { INDEX_BITS = 8 };

static const int64_t epoch_ms = INT64_C(1750000000000);

bool choir_tells(const struct choir *choir, uint32_t replicant)
{
	return choir->options.trace ||
	       (choir->options.story != CHOIR_NOBODY && (replicant == CHOIR_NOBODY || replicant == choir->options.story));
}

void choir_tell(struct choir *choir, uint32_t replicant, const char *format, ...)
{
	if (!choir_tells(choir, replicant))
		return;
	va_list arguments;
	va_start(arguments, format);
	printf("%12.6f ", (double)choir->sim.now_us / CHOIR_SECOND_US);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
}

void choir_at(struct choir *choir, uint64_t at_us, enum choir_act act, uint32_t number)
{
	sim_at(&choir->sim, at_us, (uint64_t)act << 32 | number);
}

struct replica_now choir_now(const struct choir *choir, const struct choir_site *it)
{
	int64_t wall_ms = epoch_ms + (int64_t)(choir->sim.now_us / 1000) + it->wall_offset_ms;
	return (struct replica_now){.us = choir->sim.now_us, .wall_ms = (uint64_t)wall_ms};
}

static site_id id_of(const struct choir *choir, uint32_t number)
{
	return sim_mix(choir->options.seed, number) << INDEX_BITS | (number + 1);
}

uint32_t choir_site_of(const struct choir *choir, site_id id)
{
	uint32_t number = (uint32_t)(id & ((1u << INDEX_BITS) - 1)) - 1;
	return number < choir->options.sites && id_of(choir, number) == id ? number : CHOIR_NOBODY;
}

uint32_t choir_replicant_of(const struct choir *choir, struct replica_id id)
{
	uint32_t number = 0;
	for (uint32_t i = 12; i < 16; i++)
		number = number << 8 | id.bytes[i];
	if (number >= choir->replicants_count ||
	    memcmp(id.bytes, choir->replicants[number].id.bytes, sizeof(id.bytes)) != 0)
		return CHOIR_NOBODY;
	return number;
}

uint32_t choir_member_of(const struct choir_replicant *replicant, uint32_t site)
{
	for (uint32_t i = 0; i < replicant->members_count; i++)
		if (replicant->members[i] == site)
			return i;
	return CHOIR_NOBODY;
}

void choir_label(const struct choir *choir, struct replica_op_id op, char label[32])
{
	snprintf(label, 32, "r%" PRIu32 ".s%" PRIu32 ".%" PRIu32, choir_replicant_of(choir, op.replicant),
	         choir_site_of(choir, op.site), op.number);
}

struct choir_token *choir_token(struct choir *choir, uint32_t token)
{
	CHECK(token <= UINT32_MAX / 2);
	if (token >= choir->tokens_capacity) {
		uint32_t capacity = 2 * (token + 1);
		choir->tokens = realloc(choir->tokens, capacity * sizeof(*choir->tokens));
		CHECK(choir->tokens != NULL);
		memset(&choir->tokens[choir->tokens_capacity], 0, (capacity - choir->tokens_capacity) * sizeof(*choir->tokens));
		choir->tokens_capacity = capacity;
	}
	if (token >= choir->tokens_count)
		choir->tokens_count = token + 1;
	return &choir->tokens[token];
}

/* ---- What the engine calls ---------------------------------------------------------------------------------------- */

static void on_receive(void *context, uint32_t node, uint32_t from, struct str bytes)
{
	struct choir *choir = context;
	struct choir_site *it = &choir->sites[node];
	if (choir->options.trace)
		choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " hears s%" PRIu32 ", %zu bytes", node, from, bytes.length);
	if (choir->sites[from].removed && choir_has_heard(choir, it))
		return; /* nobody lets it in any more */
	choir_note_clock(choir, it, bytes);
	choir_weak_hears(choir, it, bytes);
	choir_enter(it);
	for (int i = choir->options.mutation == CHOIR_ECHO ? 2 : 1; i > 0; i--)
		replica_receive(it->replica, choir->sites[from].id, bytes, choir_now(choir, it));
	choir_leave(it);
}

static void on_tick(void *context, uint32_t node)
{
	struct choir *choir = context;
	struct choir_site *it = &choir->sites[node];
	choir_enter(it);
	replica_tick(it->replica, choir_now(choir, it));
	choir_leave(it);
}

static uint64_t on_due(void *context, uint32_t node)
{
	const struct choir *choir = context;
	return choir->sites[node].replica ? replica_due(choir->sites[node].replica) : UINT64_MAX;
}

static void on_act(void *context, uint64_t what)
{
	struct choir *choir = context;
	uint32_t number = (uint32_t)what;
	sim_note(&choir->sim, what);
	switch ((enum choir_act)(what >> 32)) {
	case CHOIR_ACT_BEGIN: choir_fault_begin(choir, number); break;
	case CHOIR_ACT_END: choir_fault_end(choir, number); break;
	case CHOIR_ACT_FLAP: choir_fault_flap(choir, number); break;
	case CHOIR_ACT_COMMIT: choir_commit(choir, &choir->sites[number]); break;
	case CHOIR_ACT_CRASH:
		if (choir->sites[number].crash_at_commit && choir->sim.now_us >= choir->sites[number].crash_by_us)
			choir_crash(choir, &choir->sites[number]);
		break;
	case CHOIR_ACT_RESTART:
		if (!choir->sites[number].replica)
			choir_start(choir, &choir->sites[number]);
		break;
	case CHOIR_ACT_EXECUTE: choir_execute(choir, number); break;
	case CHOIR_ACT_ANSWER: choir_answer(choir, number); break;
	case CHOIR_ACT_USER: choir_submit(choir, number); break;
	case CHOIR_ACT_FETCH: choir_fetch(choir, &choir->sites[number & 0xff], number >> 8); break;
	case CHOIR_ACT_LATE:
		if (!choir->healed)
			choir_late(choir, number);
		break;
	case CHOIR_ACT_MEMBERS: choir_change(choir, number); break;
	case CHOIR_ACT_REMOVE: choir_remove_site(choir, number); break;
	case CHOIR_ACT_HEAR: choir_hear_of_removal(choir, &choir->sites[number]); break;
	}
}

/* ---- The whole ---------------------------------------------------------------------------------------------------- */

static void init_site(struct choir *choir, uint32_t number)
{
	struct choir_site *it = &choir->sites[number];
	*it = (struct choir_site){.choir = choir, .number = number, .id = id_of(choir, number)};
	sim_random_seed(&it->random, choir->options.seed, UINT64_C(1) << 32 | number);
	sim_random_seed(&it->luck, choir->options.seed, UINT64_C(2) << 32 | number);
	memset(it->reaches, 1, sizeof(it->reaches));
}

void choir_init(struct choir *choir, const struct choir_options *options)
{
	CHECK(options->sites >= 2 && options->sites <= CHOIR_SITES);
	*choir = (struct choir){.options = *options, .violation_of = CHOIR_NOBODY};
	if (options->removal) {
		choir->options.weak = choir->options.losing_deletes = false;
		choir->options.types &= ~(1u << CHOIR_SERVER);
		choir->options.types |= choir->options.types == 0 ? 1u << CHOIR_FILE : 0;
	}
	struct sim_plan_options plan = {.seed = options->seed, .sites = options->sites, .faults = options->faults};
	plan.kinds = options->kinds;
	plan.to_us = (uint64_t)options->steps * CHOIR_STEP_US;
	sim_faults_init(&choir->faults, &choir->sim, &plan, &options->keep_faults, &choir->options.weather);
	choir->sites = calloc(options->sites, sizeof(*choir->sites));
	CHECK(choir->sites != NULL);
	for (uint32_t i = 0; i < options->sites; i++)
		init_site(choir, i);
	sim_random_seed(&choir->random, options->seed, 5);
	sim_random_seed(&choir->session_luck, options->seed, 8);
	struct sim_network_options network = {.seed = options->seed, .nodes = options->sites, .span_us = 40000};
	network.weather = options->weather;
	struct sim_client client = {choir, on_receive, on_tick, on_due, on_act};
	sim_init(&choir->sim, &network, client);
	choir_plan_users(choir);
	choir_plan_members(choir);
	choir_plan_removal(choir);
	for (uint32_t i = 0; i < choir->actions_count; i++)
		choir->actions[i].skipped = !sim_list_has(&options->keep_actions, i);
}

static void free_site(struct choir *choir, struct choir_site *it)
{
	if (it->replica)
		choir_crash(choir, it);
	choir_rows_free(&it->rows);
	free(it->deeds);
	free(it->items);
	free(it->blobs);
}

void choir_free(struct choir *choir)
{
	for (uint32_t i = 0; i < choir->options.sites; i++)
		free_site(choir, &choir->sites[i]);
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		free(choir->replicants[i].ops);
	for (uint32_t i = 0; i < choir->calls_count; i++) {
		buf_free(&choir->calls[i].state);
		buf_free(&choir->calls[i].file);
	}
	for (uint32_t i = 0; i < choir->late_count; i++)
		buf_free(&choir->late[i].bytes);
	free(choir->late);
	free(choir->sessions);
	sim_free(&choir->sim);
	sim_faults_free(&choir->faults);
	free(choir->sites);
	free(choir->actions);
	free(choir->changes);
	free(choir->replicants);
	free(choir->tokens);
	free(choir->ticket_actions);
	free(choir->calls);
	buf_free(&choir->violations);
}
