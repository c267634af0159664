/* What the data plane sees of the sites: snapshots, and the view of them that scopes are evaluated with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "site/site.h"

#include <stdio.h>
#include <stdlib.h>

#define assert_str_equal(s, literal)                                                                                   \
	do {                                                                                                               \
		struct str str_ = (s);                                                                                         \
		assert_int_equal(str_.length, strlen(literal));                                                                \
		assert_memory_equal(str_.at, (literal), str_.length);                                                          \
	} while (0)

/* ---- Three sites -------------------------------------------------------------------------------------------------- */

static const struct site_tag west[] = {{STR_INIT("region"), STR_INIT("west")}, {STR_INIT("tier"), STR_INIT("gold")}};
static const struct site_offer here_offers[] = {{STR_INIT("compute"), STR_INIT("2.1")},
                                                {STR_INIT("image"), STR_INIT("")}};
static const struct site_offer there_offers[] = {{STR_INIT("volume"), STR_INIT("1.0")},
                                                 {STR_INIT("compute"), STR_INIT("2.3")}};

static const struct site_snapshot_entry three[] = {
	{.place = {.id = 900,
               .name = STR_INIT("Site1"),
               .address = {4, {192, 0, 2, 1}, 8070},
               .state = SITE_ALIVE,
               .tags = west,
               .tags_count = 2},
     .since_ms = 11,
     .rtt_us = SCOPE_RTT_UNKNOWN,
     .coordinate = {.at = {0}, .height = 100, .error = 0.1F},
     .services = here_offers,
     .services_count = 2},
	{.place = {.id = 100, .name = STR_INIT("Site2"), .address = {4, {192, 0, 2, 2}, 8070}, .state = SITE_LOST},
     .since_ms = 22,
     .rtt_us = 8000,
     .coordinate = {.at = {3000, 4000}, .height = 200, .error = 0.1F},
     .services = there_offers,
     .services_count = 2},
	{.place = {.id = 500, .name = STR_INIT("Site 3"), .address = {6, {0x20, 1}, 99}, .state = SITE_SUSPECT},
     .rtt_us = SCOPE_RTT_UNKNOWN,
     .coordinate = {.at = {3000, 0}, .height = 50, .error = 0.1F}},
};

static struct site_snapshot *make_three(void)
{
	static const site_id removed[] = {77, 7, 700};
	return site_snapshot_make(three, 3, removed, 3, 42);
}

/* ---- The view ----------------------------------------------------------------------------------------------------- */

static void sites_are_shown_as_scopes_know_them(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	assert_int_equal(view->sites_count, 3);
	assert_int_equal(view->epoch, 42);
	struct scope_site site = view->site(view->context, 0);
	assert_str_equal(site.name, "Site1");
	assert_int_equal(site.state, SCOPE_PRESENT);
	assert_int_equal(site.since_ms, 11);
	site = view->site(view->context, 1);
	assert_int_equal(site.state, SCOPE_UNKNOWN);
	assert_int_equal(site.since_ms, 22);
	/* A suspect may still say that it is there. */
	assert_int_equal(view->site(view->context, 2).state, SCOPE_PRESENT);
	site_snapshot_drop(snapshot);
}

static void each_state_has_its_meaning_for_scopes(void **state)
{
	(void)state;
	static const enum scope_state shown[SITE_STATES] = {[SITE_ALIVE] = SCOPE_PRESENT,
	                                                    [SITE_SUSPECT] = SCOPE_PRESENT,
	                                                    [SITE_LOST] = SCOPE_UNKNOWN,
	                                                    [SITE_LEFT] = SCOPE_ABSENT,
	                                                    [SITE_REVOKED] = SCOPE_ABSENT};
	for (int i = 0; i < SITE_STATES; i++)
		assert_int_equal(site_scope_state((enum site_state)i), shown[i]);
}

static void sites_are_found_by_name(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	assert_int_equal(view->find_site(view->context, STR("Site1")), 0);
	assert_int_equal(view->find_site(view->context, STR("Site 3")), 2);
	assert_int_equal(view->find_site(view->context, STR("site1")), SCOPE_NO_INDEX);
	assert_int_equal(view->find_site(view->context, STR("")), SCOPE_NO_INDEX);
	assert_int_equal(view->find_site(view->context, STR("compute")), SCOPE_NO_INDEX);
	site_snapshot_drop(snapshot);
}

/* From and to this site what was measured counts; everything else is by coordinates. */
static void distances_are_measured_or_estimated(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(view->rtt_us(view->context, i, i), 0);
	assert_int_equal(view->rtt_us(view->context, 0, 1), 8000);
	assert_int_equal(view->rtt_us(view->context, 1, 0), 8000);
	assert_int_equal(view->rtt_us(view->context, 0, 2), 3000 + 100 + 50);
	assert_int_equal(view->rtt_us(view->context, 1, 2), 4000 + 200 + 50);
	assert_int_equal(view->rtt_us(view->context, 2, 1), 4000 + 200 + 50);
	site_snapshot_drop(snapshot);
}

static void a_site_without_coordinates_is_nowhere(void **state)
{
	(void)state;
	struct site_snapshot_entry entries[3];
	memcpy(entries, three, sizeof(entries));
	entries[2].coordinate = (struct site_coordinate){0};
	struct site_snapshot *snapshot = site_snapshot_make(entries, 3, NULL, 0, 1);
	const struct scope_view *view = &snapshot->view;
	assert_int_equal(view->rtt_us(view->context, 0, 2), SCOPE_RTT_UNKNOWN);
	assert_int_equal(view->rtt_us(view->context, 1, 2), SCOPE_RTT_UNKNOWN);
	assert_int_equal(view->rtt_us(view->context, 0, 1), 8000);
	site_snapshot_drop(snapshot);
}

static void tags_are_listed(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	struct str key, value;
	assert_true(view->tag(view->context, 0, 1, &key, &value));
	assert_str_equal(key, "tier");
	assert_str_equal(value, "gold");
	assert_false(view->tag(view->context, 0, 2, &key, &value));
	assert_false(view->tag(view->context, 1, 0, &key, &value));
	site_snapshot_drop(snapshot);
}

/* Services have the numbers in which sites name them first, ours before all others. */
static void services_are_those_of_all_sites(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	assert_int_equal(view->services_count, 3);
	assert_str_equal(view->service(view->context, 0), "compute");
	assert_str_equal(view->service(view->context, 1), "image");
	assert_str_equal(view->service(view->context, 2), "volume");
	assert_int_equal(view->find_service(view->context, STR("volume")), 2);
	assert_int_equal(view->find_service(view->context, STR("network")), SCOPE_NO_INDEX);
	site_snapshot_drop(snapshot);
}

static void versions_are_known_by_site(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	const struct scope_view *view = &snapshot->view;
	struct str version;
	assert_true(view->offers(view->context, 0, 0, &version));
	assert_str_equal(version, "2.1");
	assert_true(view->offers(view->context, 0, 1, &version));
	assert_str_equal(version, "2.3");
	assert_true(view->offers(view->context, 1, 0, &version)); /* which one is not known */
	assert_str_equal(version, "");
	assert_false(view->offers(view->context, 1, 1, &version));
	for (uint32_t service = 0; service < 3; service++)
		assert_false(view->offers(view->context, service, 2, &version));
	site_snapshot_drop(snapshot);
}

/* What sites say of themselves may be more than there is room for: the rest is left out, and nothing else happens. */
static void more_services_than_a_view_has(void **state)
{
	(void)state;
	enum { SITES = 8, EACH = 64 };
	static char names[SITES * EACH][24];
	static struct site_offer offers[SITES * EACH];
	struct site_snapshot_entry entries[SITES] = {0};
	for (int i = 0; i < SITES * EACH; i++) {
		snprintf(names[i], sizeof(names[i]), "service%d", i);
		offers[i] = (struct site_offer){str_of(names[i]), STR("1")};
	}
	for (int i = 0; i < SITES; i++) {
		entries[i] = three[i % 3];
		entries[i].place.name = str_of(names[i]);
		entries[i].services = &offers[i * EACH];
		entries[i].services_count = EACH;
	}
	struct site_snapshot *snapshot = site_snapshot_make(entries, SITES, NULL, 0, 1);
	const struct scope_view *view = &snapshot->view;
	struct str version;
	assert_int_equal(view->services_count, LIMIT_VIEW_SERVICES);
	assert_true(view->offers(view->context, LIMIT_VIEW_SERVICES - 1, LIMIT_VIEW_SERVICES / EACH - 1, &version));
	assert_int_equal(view->find_service(view->context, str_of(names[SITES * EACH - 1])), SCOPE_NO_INDEX);
	site_snapshot_drop(snapshot);
}

/* A view is for scopes: the whole way from a text to a place. */
static void scopes_are_evaluated_with_it(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	struct arena arena;
	struct scope *scope;
	const struct scope_plan *plan;
	struct scope_diag diag;
	struct scope_request request = {.service = STR("compute"), .at = 0};
	arena_init(&arena, 0);
	assert_int_equal(scope_parse(&arena, STR("Site2"), &scope, &diag), 0);
	assert_int_equal(scope_check(&arena, scope, &diag), 0);
	assert_int_equal(scope_evaluate(&arena, scope, &request, &snapshot->view, &plan, &diag), 0);
	assert_int_equal(plan->root->op, SCOPE_ONE);
	assert_int_equal(plan->root->site_index, 1);
	arena_free(&arena);
	site_snapshot_drop(snapshot);
}

/* ---- What was copied ---------------------------------------------------------------------------------------------- */

static void places_are_copies(void **state)
{
	(void)state;
	char name[] = "Site1", key[] = "region", value[] = "west", service[] = "compute", version[] = "2.1";
	struct site_tag tag = {str_of(key), str_of(value)};
	struct site_offer offer = {str_of(service), str_of(version)};
	site_id removed[] = {5};
	struct site_snapshot_entry entry = {.place = {.id = 1, .name = str_of(name), .tags = &tag, .tags_count = 1},
	                                    .services = &offer,
	                                    .services_count = 1};
	struct site_snapshot *snapshot = site_snapshot_make(&entry, 1, removed, 1, 1);
	memset(name, 'x', sizeof(name) - 1);
	memset(key, 'x', sizeof(key) - 1);
	memset(value, 'x', sizeof(value) - 1);
	memset(service, 'x', sizeof(service) - 1);
	memset(version, 'x', sizeof(version) - 1);
	removed[0] = 6;
	const struct scope_view *view = &snapshot->view;
	struct str text;
	assert_str_equal(snapshot->places[0].name, "Site1");
	assert_str_equal(snapshot->places[0].tags[0].key, "region");
	assert_str_equal(snapshot->places[0].tags[0].value, "west");
	assert_int_equal(view->find_site(view->context, STR("Site1")), 0);
	assert_int_equal(view->find_service(view->context, STR("compute")), 0);
	assert_true(view->offers(view->context, 0, 0, &text));
	assert_str_equal(text, "2.1");
	assert_true(site_snapshot_is_removed(snapshot, 5));
	site_snapshot_drop(snapshot);
}

static void places_have_what_is_needed_to_go_there(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	assert_int_equal(snapshot->places_count, 3);
	assert_int_equal(snapshot->number, 42);
	assert_int_equal(snapshot->places[1].address.port, 8070);
	assert_int_equal(snapshot->places[1].address.ip[3], 2);
	assert_int_equal(snapshot->places[2].address.family, 6);
	assert_int_equal(snapshot->places[1].state, SITE_LOST);
	site_snapshot_drop(snapshot);
}

/* ---- Looking up --------------------------------------------------------------------------------------------------- */

static void places_are_found_by_id(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	assert_int_equal(site_snapshot_find(snapshot, 900), 0);
	assert_int_equal(site_snapshot_find(snapshot, 100), 1);
	assert_int_equal(site_snapshot_find(snapshot, 500), 2);
	static const site_id strangers[] = {0, 99, 101, 499, 501, 899, 901, UINT64_MAX};
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		assert_int_equal(site_snapshot_find(snapshot, strangers[i]), SCOPE_NO_INDEX);
	site_snapshot_drop(snapshot);
}

static void those_who_were_shut_out_are_known(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	static const site_id removed[] = {7, 77, 700}, others[] = {0, 6, 8, 78, 699, 701, 900, UINT64_MAX};
	for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
		assert_true(site_snapshot_is_removed(snapshot, removed[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(site_snapshot_is_removed(snapshot, others[i]));
	site_snapshot_drop(snapshot);
	snapshot = site_snapshot_make(three, 1, NULL, 0, 1);
	assert_false(site_snapshot_is_removed(snapshot, 7));
	site_snapshot_drop(snapshot);
}

static void many_sites_are_found(void **state)
{
	(void)state;
	enum { MANY = 1000 };
	struct site_snapshot_entry *entries = calloc(MANY, sizeof(*entries));
	static char names[MANY][16];
	assert_non_null(entries);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "Site%u", i);
		entries[i].place.name = str_of(names[i]);
		entries[i].place.id = (i + 1) * UINT64_C(0x9e3779b97f4a7c15); /* in no order */
	}
	struct site_snapshot *snapshot = site_snapshot_make(entries, MANY, NULL, 0, 1);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(site_snapshot_find(snapshot, entries[i].place.id), i);
		assert_int_equal(snapshot->view.find_site(snapshot->view.context, str_of(names[i])), i);
	}
	site_snapshot_drop(snapshot);
	free(entries);
}

/* ---- References --------------------------------------------------------------------------------------------------- */

/* The sanitizers would tell of a snapshot that is freed too early, twice, or never. */
static void the_last_one_frees_it(void **state)
{
	(void)state;
	struct site_snapshot *snapshot = make_three();
	assert_ptr_equal(site_snapshot_keep(snapshot), snapshot);
	assert_ptr_equal(site_snapshot_keep(snapshot), snapshot);
	site_snapshot_drop(snapshot);
	site_snapshot_drop(snapshot);
	assert_str_equal(snapshot->places[2].name, "Site 3");
	site_snapshot_drop(snapshot);
	site_snapshot_drop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_are_shown_as_scopes_know_them),
		cmocka_unit_test(each_state_has_its_meaning_for_scopes),
		cmocka_unit_test(sites_are_found_by_name),
		cmocka_unit_test(distances_are_measured_or_estimated),
		cmocka_unit_test(a_site_without_coordinates_is_nowhere),
		cmocka_unit_test(tags_are_listed),
		cmocka_unit_test(services_are_those_of_all_sites),
		cmocka_unit_test(versions_are_known_by_site),
		cmocka_unit_test(more_services_than_a_view_has),
		cmocka_unit_test(scopes_are_evaluated_with_it),
		cmocka_unit_test(places_are_copies),
		cmocka_unit_test(places_have_what_is_needed_to_go_there),
		cmocka_unit_test(places_are_found_by_id),
		cmocka_unit_test(those_who_were_shut_out_are_known),
		cmocka_unit_test(many_sites_are_found),
		cmocka_unit_test(the_last_one_frees_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
