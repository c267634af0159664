/* A world and a scope: the plan keeps what DESIGN 4 promises, whatever they are.
 *
 * The input is one line that describes the world, then the text of the scope; without a line feed it is all text.
 *     byte 0    how many sites, an index into sizes[] (modulo its length)
 *     byte 1    how many services, 0 to 3 (modulo 4)
 *     the rest  one byte per site, over and over: what the enum below says of its bits
 * Sites are named Site1, Site2...; services are compute, image and volume.
 */
#include "scope_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bits of the byte that describes a site. The low five choose its distances from the others too. */
enum {
	BITS_STATE = 0x03, /* 0 and 3: present, 1: unknown, 2: absent */
	BIT_EAST = 0x04,
	BIT_TIER = 0x08,
	BITS_VERSION = 0x30, /* index into versions[] */
	BIT_COMPUTE = 0x40,
	BIT_IMAGE = 0x80,
};

/* Small worlds, and some past the limit of sites in one plan. */
static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 8, 13, 40, 257, 300};
static const char *const versions[] = {"2.1", "v2.3", "3", ""};
static const char *const services[] = {"compute", "image", "volume"};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), ROWS_MOST = 13, HEADER_MOST = 64 };

struct world {
	struct str header;
	struct scope_table *table;
	struct scope_view view;
};

static unsigned site_bits(const struct world *world, uint32_t site)
{
	if (world->header.length < 3)
		return BIT_COMPUTE | BIT_IMAGE;
	size_t described = world->header.length - 2;
	return (unsigned char)world->header.at[2 + site % described];
}

/* From 0 to 31 ms, 0 meaning that it is not known. Not the same both ways. */
static void add_distances(const struct world *world, uint32_t sites)
{
	uint32_t rows = sites < ROWS_MOST ? sites : ROWS_MOST;
	for (uint32_t from = 0; from < rows; from++) {
		for (uint32_t to = 0; to < sites; to++) {
			uint32_t ms = (7 * site_bits(world, from) + 13 * site_bits(world, to) + from * to) % 32;
			if (ms > 0)
				scope_table_set_rtt(world->table, from, to, 1000 * ms);
		}
	}
}

static void add_services(const struct world *world, uint32_t sites, uint32_t count)
{
	for (uint32_t service = 0; service < count; service++) {
		CHECK(scope_table_add_service(world->table, str_of(services[service])) == service);
		for (uint32_t site = 0; site < sites; site++) {
			unsigned bits = site_bits(world, site);
			if (service == 2 || (bits & (service == 0 ? BIT_COMPUTE : BIT_IMAGE)))
				scope_table_offer(world->table, service, site,
				                  str_of(versions[((bits & BITS_VERSION) >> 4) * (service != 1)]));
		}
	}
}

static void world_make(struct world *world, struct arena *arena)
{
	unsigned size = world->header.length > 0 ? (unsigned char)world->header.at[0] : 4;
	unsigned offered = world->header.length > 1 ? (unsigned char)world->header.at[1] : 0;
	uint32_t sites = sizes[size % SIZES];
	world->table = scope_table_new(arena);
	for (uint32_t i = 0; i < sites; i++) {
		unsigned bits = site_bits(world, i);
		enum scope_state state =
			(bits & BITS_STATE) == BITS_STATE ? SCOPE_PRESENT : (enum scope_state)(bits & BITS_STATE);
		struct buf name = {0};
		buf_printf(&name, "Site%u", i + 1);
		struct scope_site site = {buf_str(&name), state, state == SCOPE_UNKNOWN ? INT64_C(1793527200000) : 0};
		CHECK(scope_table_add_site(world->table, site) == i);
		buf_free(&name);
		scope_table_tag(world->table, i, STR("region"), bits & BIT_EAST ? STR("east") : STR("west"));
		if (bits & BIT_TIER)
			scope_table_tag(world->table, i, STR("tier"), STR("1"));
	}
	add_distances(world, sites);
	add_services(world, sites, offered % 4);
	world->view = scope_table_view(world->table);
}

/* ---- What a plan promises --------------------------------------------------------------------------------------- */

struct visit {
	const struct scope_view *view;
	uint32_t service; /* or SCOPE_NO_INDEX */
	char major;       /* of its version at the sites visited so far; 0: none known */
	uint32_t count;
	bool visited[300];
};

/* Of `|`. That of `;` is the user's, whatever is known of the sites. */
static void check_order(const struct scope_step *group)
{
	for (uint32_t i = 1; group->op == SCOPE_ANY_OF && i < group->of_count; i++) {
		const struct scope_step *before = group->of[i - 1], *after = group->of[i];
		CHECK(before->state <= after->state);
		if (before->state == after->state)
			CHECK((uint64_t)before->latency_us <= (uint64_t)after->latency_us);
	}
}

/* A site stands once among the parts of a group. */
static void check_distinct(const struct scope_step *group)
{
	bool seen[300] = {false};
	for (uint32_t i = 0; i < group->of_count; i++) {
		if (group->of[i]->op != SCOPE_ONE)
			continue;
		CHECK(!seen[group->of[i]->site_index]);
		seen[group->of[i]->site_index] = true;
	}
}

/* Sites work together on a service in one major version, as far as versions are known. */
static void check_version(struct visit *visit, uint32_t site)
{
	struct str version;
	if (visit->service == SCOPE_NO_INDEX ||
	    !visit->view->offers(visit->view->context, visit->service, site, &version) || version.length == 0)
		return;
	char major = version.at[version.at[0] == 'v'];
	CHECK(visit->major == '\0' || visit->major == major);
	visit->major = major;
}

static void check_step(struct visit *visit, const struct scope_step *step)
{
	CHECK(step->latency_us >= SCOPE_RTT_UNKNOWN && step->state <= SCOPE_ABSENT);
	if (step->op == SCOPE_ONE) {
		CHECK(step->of_count == 0 && step->site_index < visit->view->sites_count);
		CHECK(str_equal(step->site, visit->view->site(visit->view->context, step->site_index).name));
		check_version(visit, step->site_index);
		visit->visited[step->site_index] = true;
		visit->count++;
		return;
	}
	/* Of one part there is only strong(Site1) and the like. */
	CHECK(step->of_count >= (step->op == SCOPE_ALL_OF ? 1 : 2));
	check_distinct(step);
	if (step->op == SCOPE_OTHERWISE || step->op == SCOPE_ANY_OF)
		check_order(step);
	for (uint32_t i = 0; i < step->of_count; i++) {
		CHECK(step->op != SCOPE_SPAN_OF || step->of[i]->op == SCOPE_ONE);
		/* `a; (b; c)` is `a; b; c`: else what is away in the inner one would be tried before the rest of the outer. */
		CHECK(step->of[i]->op != step->op);
		check_step(visit, step->of[i]);
	}
}

/* Nothing named is dropped, but for what stands below a `!`. */
static void check_named(const struct visit *visit, const struct scope_node *node)
{
	if (node->kind == SCOPE_NODE_SITE) {
		uint32_t site = visit->view->find_site(visit->view->context, node->name);
		CHECK(site != SCOPE_NO_INDEX && visit->visited[site]);
	}
	if (node->kind == SCOPE_NODE_NOT)
		return;
	for (const struct scope_node *child = node->first; child; child = child->next)
		check_named(visit, child);
}

static const struct scope_entry *entry_of(const struct scope *scope, const struct scope_request *request)
{
	const struct scope_entry *found = NULL;
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		struct str name = scope->entries[i].service;
		if (name.length == 0 ? !found && !request->inner : str_equal(name, request->service))
			found = &scope->entries[i];
	}
	return found;
}

static void show(struct buf *out, const struct scope_plan *plan)
{
	scope_plan_json(out, plan);
	CHECK(json_is_well_formed(buf_str(out)));
	scope_plan_draw(out, plan, false);
	for (uint32_t i = 0; i < plan->warnings_count; i++)
		CHECK(plan->warnings[i].length > 0 && is_printable(plan->warnings[i], false));
}

static void check_plan(const struct scope *scope, const struct scope_request *request, const struct scope_view *view,
                       const struct scope_plan *plan)
{
	struct visit visit = {.view = view, .service = view->find_service(view->context, request->service)};
	CHECK(str_equal(plan->service, request->service));
	CHECK(str_equal(plan->at, view->site(view->context, request->at).name));
	CHECK(plan->warnings_count <= LIMIT_SCOPE_WARNINGS);
	check_step(&visit, plan->root);
	CHECK(visit.count >= 1 && visit.count <= LIMIT_SCOPE_SITES);
	const struct scope_entry *entry = entry_of(scope, request);
	if (entry)
		check_named(&visit, entry->location);
	else
		CHECK(plan->root->op == SCOPE_ONE && plan->root->site_index == request->at);
}

/* ---- One scope, asked in several ways --------------------------------------------------------------------------- */

static void same_diag(const struct scope_diag *a, const struct scope_diag *b)
{
	CHECK(a->fault == b->fault && a->offset == b->offset && a->length == b->length);
	CHECK(strcmp(a->message, b->message) == 0 && strcmp(a->hint, b->hint) == 0);
}

/* Through the cache, the first time and again, comes the same as without. */
static void check_cached(struct scope_cache *cache, struct str text, const struct scope_request *request,
                         const struct scope_view *view, const struct buf *expected, const struct scope_diag *refusal)
{
	for (int i = 0; i < 2; i++) {
		struct scope_lease *lease;
		struct scope_diag diag;
		int code = scope_cache_get(cache, text, request, view, &lease, &diag);
		CHECK((code == 0) == (expected->length > 0));
		if (code) {
			same_diag(&diag, refusal);
			continue;
		}
		struct buf shown = {0};
		show(&shown, scope_lease_plan(lease));
		CHECK(str_equal(buf_str(&shown), buf_str(expected)));
		CHECK(str_equal(scope_text(scope_lease_scope(lease)), text));
		buf_free(&shown);
		scope_lease_drop(lease);
	}
}

static void evaluate(struct scope_cache *cache, const struct scope *scope, const struct scope_request *request,
                     const struct scope_view *view)
{
	struct arena arena;
	struct scope_diag diags[2] = {0};
	struct buf shown[2] = {0};
	arena_init(&arena, 0);
	for (int i = 0; i < 2; i++) {
		const struct scope_plan *plan = NULL;
		int code = scope_evaluate(&arena, scope, request, view, &plan, &diags[i]);
		if (code) {
			check_diag(scope->text, code, &diags[i]);
		} else {
			check_plan(scope, request, view, plan);
			show(&shown[i], plan);
		}
	}
	CHECK(str_equal(buf_str(&shown[0]), buf_str(&shown[1])));
	same_diag(&diags[0], &diags[1]);
	check_cached(cache, scope->text, request, view, &shown[0], &diags[0]);
	buf_free(&shown[0]);
	buf_free(&shown[1]);
	arena_free(&arena);
}

static void ask(const struct scope *scope, const struct scope_view *view)
{
	struct scope_cache *cache = scope_cache_new((struct hash_key){1, 2});
	const struct str addressed[] = {scope_entry_service(scope, scope->entries_count - 1), STR("compute"), STR("")};
	/* A large world is dear to ask: once will do. */
	size_t asked = view->sites_count > LIMIT_SCOPE_SITES ? 1 : sizeof(addressed) / sizeof(addressed[0]);
	for (size_t i = 0; i < asked; i++) {
		struct scope_request request = {.service = addressed[i], .at = 0};
		evaluate(cache, scope, &request, view);
		request.inner = asked > 1;
		if (request.inner)
			evaluate(cache, scope, &request, view);
		request = (struct scope_request){.service = addressed[i], .at = view->sites_count - 1};
		if (request.at > 0 && asked > 1)
			evaluate(cache, scope, &request, view);
	}
	struct scope_cache_stats stats = scope_cache_stats(cache);
	CHECK(stats.entries <= LIMIT_SCOPE_CACHE_ENTRIES && stats.bytes <= LIMIT_SCOPE_CACHE_BYTES);
	scope_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = size ? str_make((const char *)data, size) : STR("");
	size_t searched = size < HEADER_MOST ? size : HEADER_MOST;
	const char *line_feed = searched ? memchr(input.at, '\n', searched) : NULL;
	size_t header = line_feed ? (size_t)(line_feed - input.at) : 0;
	struct str text = line_feed ? str_make(line_feed + 1, size - header - 1) : input;
	struct world world = {.header = str_make(input.at, header)};
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	arena_init(&arena, 0);
	/* The world is only made for a scope that will be asked for. */
	int code = scope_parse(&arena, text, &scope, &diag);
	if (code == 0)
		code = scope_check(&arena, scope, &diag);
	if (code) {
		check_diag(text, code, &diag);
	} else {
		world_make(&world, &arena);
		ask(scope, &world.view);
	}
	arena_free(&arena);
	return 0;
}
