/* The world: what there is, what happens when, and one run of it. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	CONVERGE_S = 240,
	IDLE_S = 60,
	EMPTY_S = 240,
	TOMBSTONES_S = 700,
	FOLLOW_US = 500000,
	PEOPLE_S = 5,
	INDEX_BITS = 8
};

static const int64_t epoch_ms = 1700000000000;

struct realm_options realm_options_default(uint64_t seed, uint32_t sites)
{
	struct realm_options options = {.seed = seed, .sites = sites, .steps = 300, .kinds = REALM_FAULTS};
	options.faults = 15;
	options.actions = 100;
	options.optimistic = true;
	options.weather = (struct sim_weather){.loss = 0.005, .duplicate = 0.005, .reorder = 0.01, .jitter = 0.05};
	return options;
}

void realm_options_vary(struct realm_options *options)
{
	struct sim_random random;
	sim_random_seed(&random, options->seed, 7);
	options->sites = (uint32_t)sim_random_range(&random, 2, sim_random_chance(&random, 0.3) ? REALM_SITES : 4);
	options->actions = (uint32_t)sim_random_range(&random, 5, 20 + options->steps);
	options->faults =
		sim_random_chance(&random, 0.1) ? 0 : (uint32_t)sim_random_range(&random, 1, 1 + options->steps / 10);
	options->kinds = REALM_FAULTS;
	uint32_t one = (uint32_t)sim_random_below(&random, SIM_FAULT_KINDS);
	if (sim_random_chance(&random, 0.3) && REALM_FAULTS >> one & 1)
		options->kinds = 1u << one;
	options->optimistic = sim_random_chance(&random, 0.5);
	options->weather.loss = sim_random_chance(&random, 0.5) ? 0 : 0.02 * sim_random_unit(&random);
}

/* ---- Small things -------------------------------------------------------------------------------------------------------- */

void realm_at(struct realm *realm, uint64_t at_us, enum realm_act act, uint32_t number)
{
	sim_at(&realm->sim, at_us, (uint64_t)act << 32 | number);
}

__attribute__((format(printf, 3, 0))) static void put_line(struct realm *realm, struct buf *out, const char *format,
                                                           va_list arguments)
{
	buf_printf(out, "  %9.3f s: ", (double)realm->sim.now_us / REALM_SECOND_US);
	buf_vprintf(out, format, arguments);
	buf_put_char(out, '\n');
}

void realm_tell(struct realm *realm, const char *format, ...)
{
	if (!realm->options.trace)
		return;
	struct buf line = {0};
	va_list arguments;
	va_start(arguments, format);
	put_line(realm, &line, format, arguments);
	va_end(arguments);
	printf("%s", buf_c(&line));
	buf_free(&line);
}

void realm_violation(struct realm *realm, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (realm->violations_count++ == 0)
		realm->violation_us = realm->sim.now_us;
	if (realm->violations_count <= 10)
		put_line(realm, &realm->violations, format, arguments);
	va_end(arguments);
}

struct replica_now realm_now(const struct realm *realm, const struct realm_site *it)
{
	int64_t wall_ms = epoch_ms + (int64_t)(realm->sim.now_us / 1000) + it->wall_offset_ms;
	return (struct replica_now){.us = realm->sim.now_us, .wall_ms = (uint64_t)wall_ms};
}

uint32_t realm_site_of(const struct realm *realm, site_id id)
{
	uint32_t number = (uint32_t)(id & ((1u << INDEX_BITS) - 1)) - 1;
	return number < realm->options.sites && realm->sites[number].id == id ? number : REALM_NOBODY;
}

uint32_t realm_thing_of(const struct realm *realm, struct replica_id id)
{
	for (uint32_t i = 0; i < realm->things_count; i++)
		if (memcmp(realm->things[i].id.bytes, id.bytes, sizeof(id.bytes)) == 0)
			return i;
	return REALM_NOBODY;
}

static const char *const names[REALM_NAMES] = {"blue", "yellow", "red", "green", "black"};

struct str realm_name(uint32_t number)
{
	return str_of(names[number]);
}

uint32_t realm_name_number(struct str name)
{
	for (uint32_t i = 0; i < REALM_NAMES; i++)
		if (str_equal(name, realm_name(i)))
			return i;
	return REALM_NOBODY;
}

const char *realm_kind_name(enum realm_kind kind)
{
	static const char *const kinds[] = {"container", "child", "pool"};
	return kinds[kind];
}

bool realm_look(struct realm_site *it, struct arena *arena, uint32_t thing, struct replica_view *view)
{
	return replica_look(it->replica, arena, it->realm->things[thing].id, view) == 0 && !view->deleted && !view->left;
}

const struct replica_member_view *realm_member(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return &view->members[i];
	return NULL;
}

/* ---- Events --------------------------------------------------------------------------------------------------------------- */

static void on_receive(void *context, uint32_t node, uint32_t from, struct str bytes)
{
	struct realm *realm = context;
	struct realm_site *it = &realm->sites[node];
	if (!realm_receive(realm, it, from, bytes))
		realm_job_message(realm, it, from, bytes.at[0], str_make(bytes.at + 1, bytes.length - 1));
}

static void on_tick(void *context, uint32_t node)
{
	struct realm *realm = context;
	struct realm_site *it = &realm->sites[node];
	replica_tick(it->replica, realm_now(realm, it));
	cross_names_tick(cross_children_names(it->children), realm_now(realm, it));
	realm_leave(it);
}

static uint64_t on_due(void *context, uint32_t node)
{
	const struct realm *realm = context;
	const struct realm_site *it = &realm->sites[node];
	if (!it->replica)
		return UINT64_MAX;
	uint64_t one = replica_due(it->replica), other = cross_names_due(cross_children_names(it->children));
	return one < other ? one : other;
}

static void on_act(void *context, uint64_t what)
{
	struct realm *realm = context;
	uint32_t number = (uint32_t)what;
	struct realm_site *it = number < REALM_SITES ? &realm->sites[number] : NULL;
	switch ((enum realm_act)(what >> 32)) {
	case REALM_ACT_BEGIN:
		if (!realm->healed)
			realm_fault_begin(realm, number);
		break;
	case REALM_ACT_END:
		if (!realm->healed)
			realm_fault_end(realm, number);
		break;
	case REALM_ACT_FLAP: realm_fault_flap(realm, number); break;
	case REALM_ACT_COMMIT: realm_commit(realm, it); break;
	case REALM_ACT_CRASH:
		if (it->crash_at_commit) /* nothing was committed in time */
			realm_crash(realm, it);
		break;
	case REALM_ACT_RESTART:
		if (!it->replica)
			realm_start(realm, it);
		break;
	case REALM_ACT_USER: realm_act_user(realm, number); break;
	case REALM_ACT_SERVICE: realm_act_service(realm, number); break;
	case REALM_ACT_FOLLOW:
		realm_act_follow(realm, it);
		realm_at(realm, realm->sim.now_us + FOLLOW_US, REALM_ACT_FOLLOW, number);
		break;
	case REALM_ACT_JOB: realm_act_job(realm, number); break;
	}
}

/* ---- One run -------------------------------------------------------------------------------------------------------------- */

void realm_init(struct realm *realm, const struct realm_options *options)
{
	*realm = (struct realm){.options = *options};
	struct sim_network_options network = {
		.seed = options->seed, .nodes = options->sites, .span_us = 60000, .weather = options->weather};
	sim_init(&realm->sim, &network, (struct sim_client){realm, on_receive, on_tick, on_due, on_act});
	sim_random_seed(&realm->random, options->seed, 1);
	for (uint32_t i = 0; i < options->sites; i++) {
		struct realm_site *it = &realm->sites[i];
		it->realm = realm;
		it->number = i;
		it->id = sim_mix(options->seed, i) << INDEX_BITS | (i + 1);
		it->redividing = REALM_NOBODY;
		sim_random_seed(&it->luck, options->seed, 100 + i);
		sim_random_seed(&it->random, options->seed, 200 + i);
	}
	struct sim_plan_options plan = {.seed = options->seed,
	                                .sites = options->sites,
	                                .to_us = (uint64_t)options->steps * REALM_STEP_US,
	                                .faults = options->faults,
	                                .kinds = options->kinds};
	sim_faults_init(&realm->faults, &realm->sim, &plan, &options->keep_faults, &realm->options.weather);
	realm_draw(realm);
}

void realm_free(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		struct realm_site *it = &realm->sites[i];
		realm_crash(realm, it);
		choir_rows_free(&it->rows);
		choir_rows_free(&it->name_rows);
		choir_rows_free(&it->divisions);
		free(it->deeds);
		free(it->doubts);
	}
	for (uint32_t i = 0; i < realm->calls_count; i++)
		free(realm->calls[i]);
	realm_jobs_free(realm);
	sim_faults_free(&realm->faults);
	sim_free(&realm->sim);
	free(realm->calls);
	free(realm->actions);
	free(realm->tickets);
	buf_free(&realm->violations);
}

static void pass(struct realm *realm, uint64_t us)
{
	uint64_t end_us = realm->sim.now_us + us;
	while (realm->sim.now_us < end_us && realm->violations_count == 0) {
		uint64_t next_us = realm->sim.now_us + REALM_STEP_US;
		sim_run(&realm->sim, next_us < end_us ? next_us : end_us);
	}
}

static void act(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		realm_start(realm, &realm->sites[i]);
		realm_at(realm, (i + 1) * FOLLOW_US / 9, REALM_ACT_FOLLOW, i);
	}
	for (uint32_t i = 0; i < realm->actions_count; i++)
		if (!realm->actions[i].skipped)
			realm_at(realm, realm->actions[i].at_us, REALM_ACT_USER, i);
	realm->figures.faults =
		sim_faults_plan(&realm->faults, (uint64_t)REALM_ACT_BEGIN << 32, (uint64_t)REALM_ACT_END << 32);
	pass(realm, (uint64_t)realm->options.steps * REALM_STEP_US + REALM_SECOND_US);
}

static bool is_empty(struct realm *realm, struct buf *why)
{
	return realm_is_empty(realm, false, why);
}

static bool has_no_rows(struct realm *realm, struct buf *why)
{
	return realm_is_empty(realm, true, why);
}

/* Until it is so; people look after what is theirs, and each() is done now and then. */
static void wait_for(struct realm *realm, uint32_t most_s, bool (*is_so)(struct realm *realm, struct buf *why),
                     void (*each)(struct realm *realm), const char *what)
{
	struct buf why = {0};
	for (uint32_t second = 0; realm->violations_count == 0; second++) {
		if (second % PEOPLE_S == 0)
			realm_people(realm);
		if (each && second % (4 * PEOPLE_S) == 0)
			each(realm);
		pass(realm, REALM_SECOND_US);
		if (realm->violations_count > 0 || is_so(realm, &why))
			break;
		if (second >= most_s)
			realm_violation(realm, "%s, and not so after %" PRIu32 " s: %s", what, second, buf_c(&why));
	}
	buf_free(&why);
}

static void converge(struct realm *realm)
{
	uint64_t start_us = realm->sim.now_us;
	realm_tell(realm, "all is mended");
	realm->healed = true;
	realm_heal(realm);
	wait_for(realm, CONVERGE_S, realm_converged, NULL, "all is mended");
	realm->figures.heal_s = (double)(realm->sim.now_us - start_us) / REALM_SECOND_US;
}

static void stay(struct realm *realm)
{
	struct buf why = {0};
	realm_tell(realm, "all is quiet");
	pass(realm, 30 * REALM_SECOND_US);
	uint64_t quiet_us = realm->sim.now_us;
	pass(realm, (uint64_t)IDLE_S * REALM_SECOND_US);
	if (realm->violations_count == 0 && realm->quiet_since_us > quiet_us)
		realm_violation(realm, "messages, though nothing is to be said");
	if (realm->violations_count == 0 && !realm_converged(realm, &why))
		realm_violation(realm, "it was right, and is not any more: %s", buf_c(&why));
	buf_free(&why);
	if (realm->violations_count > 0)
		return;
	realm->sim.network.weather = (struct sim_weather){0};
	realm_read_all(realm);
	pass(realm, 5 * REALM_SECOND_US);
}

static void delete_all(struct realm *realm)
{
	if (realm->violations_count > 0)
		return;
	realm_tell(realm, "all is deleted");
	wait_for(realm, EMPTY_S, is_empty, realm_delete_all, "all was deleted");
	wait_for(realm, TOMBSTONES_S, has_no_rows, NULL, "all was deleted long ago");
}

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool realm_run(struct realm *realm)
{
	double started_s = cpu_s();
	act(realm);
	converge(realm);
	stay(realm);
	delete_all(realm);
	realm->figures.cpu_s = cpu_s() - started_s;
	return realm->violations_count == 0;
}

void realm_report(const struct realm *realm, struct buf *out)
{
	const struct realm_figures *figures = &realm->figures;
	const struct {
		const char *what;
		uint64_t number;
	} lines[] = {
		{"users' requests", figures->actions},
		{"  accepted, of those and what follows from them", figures->accepted},
		{"  refused", figures->refused},
		{"    the name is taken", figures->taken},
		{"    the prime cannot be asked", figures->unavailable},
		{"names lost at healing", figures->lost},
		{"lists", figures->lists},
		{"  partial", figures->partial},
		{"  with a copy that was being made or deleted", figures->doubled},
		{"reads of what is divided", figures->reads},
		{"  marked", figures->marked},
		{"divided anew", figures->redivided},
		{"sites that came", figures->extended},
		{"sites that left", figures->withdrawn},
		{"children whose container was gone", figures->orphans},
		{"verdicts of people", figures->judged},
		{"faults", figures->faults},
		{"crashes", figures->crashes},
		{"commits", figures->commits},
		{"messages", figures->messages},
		{"events", realm->sim.events},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		buf_printf(out, "  %-48s %8" PRIu64 "\n", lines[i].what, lines[i].number);
	buf_printf(out, "  %-48s %8.2f\n", "all right after the last fault, s", figures->heal_s);
	buf_printf(out, "  %-48s %8.3f\n", "CPU, s", figures->cpu_s);
	buf_printf(out, "  %-48s %016" PRIx64 "\n", "digest", realm->sim.digest);
}
