/* The world: what there is, what happens when, and one run of it. */
#include "sim/span.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CONVERGE_S = 240, IDLE_S = 60, INDEX_BITS = 8, GOSSIP_US = 300000 };

static const int64_t epoch_ms = 1700000000000;

struct span_options span_options_default(uint64_t seed, uint32_t sites)
{
	struct span_options options = {.seed = seed, .sites = sites, .steps = 300, .kinds = SPAN_FAULTS};
	options.faults = 15;
	options.actions = 80;
	options.changes = 3;
	options.optimistic = true;
	options.adopts = true;
	options.withdraws = true;
	options.weather = (struct sim_weather){.loss = 0.005, .duplicate = 0.005, .reorder = 0.01, .jitter = 0.05};
	return options;
}

void span_options_vary(struct span_options *options)
{
	struct sim_random random;
	sim_random_seed(&random, options->seed, 7);
	options->sites = (uint32_t)sim_random_range(&random, 2, sim_random_chance(&random, 0.3) ? SPAN_SITES : 4);
	options->actions = (uint32_t)sim_random_range(&random, 5, 20 + options->steps);
	options->faults =
		sim_random_chance(&random, 0.1) ? 0 : (uint32_t)sim_random_range(&random, 1, 1 + options->steps / 10);
	options->changes = sim_random_chance(&random, 0.4) ? 0 : (uint32_t)sim_random_range(&random, 1, 6);
	options->kinds = SPAN_FAULTS;
	uint32_t one = (uint32_t)sim_random_below(&random, SIM_FAULT_KINDS);
	if (sim_random_chance(&random, 0.3) && SPAN_FAULTS >> one & 1)
		options->kinds = 1u << one;
	options->optimistic = sim_random_chance(&random, 0.4);
	options->adopts = sim_random_chance(&random, 0.4);
	options->weather.loss = sim_random_chance(&random, 0.5) ? 0 : 0.02 * sim_random_unit(&random);
	options->withdraws = sim_random_chance(&random, 0.7);
}

/* ---- Small things -------------------------------------------------------------------------------------------------------- */

void span_at(struct span *span, uint64_t at_us, enum span_act act, uint32_t number)
{
	sim_at(&span->sim, at_us, (uint64_t)act << 32 | number);
}

__attribute__((format(printf, 3, 0))) static void put_line(struct span *span, struct buf *out, const char *format,
                                                           va_list arguments)
{
	buf_printf(out, "  %9.3f s: ", (double)span->sim.now_us / SPAN_SECOND_US);
	buf_vprintf(out, format, arguments);
	buf_put_char(out, '\n');
}

void span_tell(struct span *span, const char *format, ...)
{
	if (!span->options.trace)
		return;
	struct buf line = {0};
	va_list arguments;
	va_start(arguments, format);
	put_line(span, &line, format, arguments);
	va_end(arguments);
	printf("%s", buf_c(&line));
	buf_free(&line);
}

void span_violation(struct span *span, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (span->violations_count++ == 0)
		span->violation_us = span->sim.now_us;
	if (span->violations_count <= 10)
		put_line(span, &span->violations, format, arguments);
	va_end(arguments);
}

struct replica_now span_now(const struct span *span, const struct span_site *it)
{
	int64_t wall_ms = epoch_ms + (int64_t)(span->sim.now_us / 1000) + it->wall_offset_ms;
	return (struct replica_now){.us = span->sim.now_us, .wall_ms = (uint64_t)wall_ms};
}

uint32_t span_site_of(const struct span *span, site_id id)
{
	uint32_t number = (uint32_t)(id & ((1u << INDEX_BITS) - 1)) - 1;
	return number < span->options.sites && span->sites[number].id == id ? number : SPAN_NOBODY;
}

struct span_child *span_child_of(struct span *span, struct replica_id id)
{
	for (uint32_t i = 0; i < span->children_count; i++) {
		if (memcmp(span->children[i].id.bytes, id.bytes, sizeof(id.bytes)) == 0)
			return &span->children[i];
	}
	return NULL;
}

static const char *const names[SPAN_NAMES] = {"blue", "yellow", "red", "green", "black", "white"};

struct str span_name(uint32_t number)
{
	return str_of(names[number]);
}

uint32_t span_name_number(struct str name)
{
	for (uint32_t i = 0; i < SPAN_NAMES; i++) {
		if (str_equal(name, span_name(i)))
			return i;
	}
	return SPAN_NOBODY;
}

bool span_is_member(const struct cross_container *list, site_id site)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->sites[i].site == site)
			return true;
	}
	return false;
}

/* ---- Events --------------------------------------------------------------------------------------------------------------- */

static void on_receive(void *context, uint32_t node, uint32_t from, struct str bytes)
{
	struct span *span = context;
	struct span_site *it = &span->sites[node];
	if (span_pool_receive(span, it, bytes))
		return;
	cross_names_receive(it->names, span->sites[from].id, bytes, span_now(span, it));
	span_leave(it);
}

static void on_tick(void *context, uint32_t node)
{
	struct span *span = context;
	struct span_site *it = &span->sites[node];
	cross_names_tick(it->names, span_now(span, it));
	span_leave(it);
}

static uint64_t on_due(void *context, uint32_t node)
{
	const struct span *span = context;
	const struct span_site *it = &span->sites[node];
	return it->names ? cross_names_due(it->names) : UINT64_MAX;
}

static void on_act(void *context, uint64_t what)
{
	struct span *span = context;
	uint32_t number = (uint32_t)what;
	struct span_site *it = number < SPAN_SITES ? &span->sites[number] : NULL;
	switch ((enum span_act)(what >> 32)) {
	case SPAN_ACT_BEGIN:
		if (!span->healed)
			span_fault_begin(span, number);
		break;
	case SPAN_ACT_END:
		if (!span->healed)
			span_fault_end(span, number);
		break;
	case SPAN_ACT_FLAP: span_fault_flap(span, number); break;
	case SPAN_ACT_COMMIT: span_commit(span, it); break;
	case SPAN_ACT_CRASH:
		if (it->crash_at_commit) /* nothing was committed in time */
			span_crash(span, it);
		break;
	case SPAN_ACT_RESTART:
		if (!it->names && !it->dead)
			span_start(span, it);
		break;
	case SPAN_ACT_USER: span_act_user(span, number); break;
	case SPAN_ACT_SERVICE: span_act_service(span, number); break;
	case SPAN_ACT_CHANGE: span_act_change(span, number); break;
	case SPAN_ACT_GOSSIP: span_pool_gossip(span, it); break;
	case SPAN_ACT_WITHDRAW: span_act_withdraw(span, number); break;
	case SPAN_ACT_HEAR: span_act_hear(span, number); break;
	}
}

/* ---- One run -------------------------------------------------------------------------------------------------------------- */

static void init_sites(struct span *span)
{
	for (uint32_t i = 0; i < span->options.sites; i++) {
		struct span_site *it = &span->sites[i];
		it->span = span;
		it->number = i;
		it->id = sim_mix(span->options.seed, i) << INDEX_BITS | (i + 1);
		sim_random_seed(&it->luck, span->options.seed, 100 + i);
		sim_random_seed(&it->random, span->options.seed, 200 + i);
	}
}

void span_init(struct span *span, const struct span_options *options)
{
	*span = (struct span){.options = *options};
	struct sim_network_options network = {
		.seed = options->seed, .nodes = options->sites, .span_us = 60000, .weather = options->weather};
	sim_init(&span->sim, &network, (struct sim_client){span, on_receive, on_tick, on_due, on_act});
	sim_random_seed(&span->random, options->seed, 1);
	init_sites(span);
	struct sim_plan_options plan = {.seed = options->seed,
	                                .sites = options->sites,
	                                .to_us = (uint64_t)options->steps * SPAN_STEP_US,
	                                .faults = options->faults,
	                                .kinds = options->kinds};
	sim_faults_init(&span->faults, &span->sim, &plan, &options->keep_faults, &span->options.weather);
	span_draw(span);
}

void span_free(struct span *span)
{
	for (uint32_t i = 0; i < span->options.sites; i++) {
		if (span->sites[i].names)
			span_crash(span, &span->sites[i]);
		choir_rows_free(&span->sites[i].rows);
		free(span->sites[i].deeds);
	}
	sim_faults_free(&span->faults);
	sim_free(&span->sim);
	free(span->actions);
	free(span->changes);
	free(span->children);
	buf_free(&span->violations);
}

static void pass(struct span *span, uint64_t us)
{
	uint64_t end_us = span->sim.now_us + us;
	while (span->sim.now_us < end_us && span->violations_count == 0) {
		uint64_t next_us = span->sim.now_us + SPAN_STEP_US;
		sim_run(&span->sim, next_us < end_us ? next_us : end_us);
	}
}

static void act(struct span *span)
{
	for (uint32_t i = 0; i < span->options.sites; i++) {
		span_start(span, &span->sites[i]);
		span_at(span, (i + 1) * GOSSIP_US / 9, SPAN_ACT_GOSSIP, i);
	}
	for (uint32_t i = 0; i < span->actions_count; i++) {
		if (!span->actions[i].skipped)
			span_at(span, span->actions[i].at_us, SPAN_ACT_USER, i);
	}
	for (uint32_t i = 0; i < span->changes_count; i++)
		span_at(span, span->changes[i].at_us, SPAN_ACT_CHANGE, i);
	span->figures.faults = sim_faults_plan(&span->faults, (uint64_t)SPAN_ACT_BEGIN << 32, (uint64_t)SPAN_ACT_END << 32);
	pass(span, (uint64_t)span->options.steps * SPAN_STEP_US + SPAN_SECOND_US);
}

static void converge(struct span *span)
{
	struct buf why = {0};
	uint64_t start_us = span->sim.now_us;
	span_tell(span, "all is mended");
	span->healed = true;
	span_heal(span);
	for (uint32_t second = 0; span->violations_count == 0; second++) {
		pass(span, SPAN_SECOND_US);
		if (span->violations_count > 0 || span_converged(span, &why))
			break;
		if (second >= CONVERGE_S) {
			span_violation(span, "not so %" PRIu32 " s after the last fault: %s", second, buf_c(&why));
			break;
		}
	}
	span->figures.heal_s = (double)(span->sim.now_us - start_us) / SPAN_SECOND_US;
	buf_free(&why);
}

static void stay(struct span *span)
{
	struct buf why = {0};
	if (span->violations_count > 0)
		return;
	span_tell(span, "all is quiet");
	pass(span, 30 * SPAN_SECOND_US);
	uint64_t quiet_us = span->sim.now_us;
	pass(span, (uint64_t)IDLE_S * SPAN_SECOND_US);
	if (span->violations_count == 0 && span->quiet_since_us > quiet_us)
		span_violation(span, "messages on names, though nothing is to be said");
	if (span->violations_count == 0 && !span_converged(span, &why))
		span_violation(span, "it was right, and is not any more: %s", buf_c(&why));
	if (span->violations_count == 0)
		span_check_names(span);
	buf_free(&why);
}

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool span_run(struct span *span)
{
	double started_s = cpu_s();
	act(span);
	converge(span);
	stay(span);
	span->figures.cpu_s = cpu_s() - started_s;
	return span->violations_count == 0;
}

void span_report(const struct span *span, struct buf *out)
{
	const struct span_figures *figures = &span->figures;
	const struct {
		const char *what;
		uint64_t number;
	} lines[] = {
		{"users' requests", figures->actions},
		{"  acknowledged", figures->acknowledged},
		{"  accepted unchecked", figures->unchecked},
		{"  refused: the name is taken", figures->taken},
		{"  refused: the prime cannot be asked", figures->unavailable},
		{"  refused by the service", figures->refused},
		{"names lost at healing", figures->lost},
		{"changes of sites", figures->terms},
		{"primes withdrawn", figures->withdrawals},
		{"sites that died for good", figures->deaths},
		{"faults", figures->faults},
		{"crashes", figures->crashes},
		{"commits", figures->commits},
		{"messages", figures->messages},
		{"events", span->sim.events},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		buf_printf(out, "  %-44s %8" PRIu64 "\n", lines[i].what, lines[i].number);
	buf_printf(out, "  %-44s %8.2f\n", "all right after the last fault, s", figures->heal_s);
	buf_printf(out, "  %-44s %8.3f\n", "CPU, s", figures->cpu_s);
	buf_printf(out, "  %-44s %016" PRIx64 "\n", "digest", span->sim.digest);
}
