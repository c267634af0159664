/* The policy for peers: which rule decides, what it allows, and how much. Time is an argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

#include <pthread.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint64_t second_ns = UINT64_C(1000000000);

/* ---- Which rule ------------------------------------------------------------------------------------------------- */

static const struct str partners[] = {STR_INIT("Site2"), STR_INIT("Site3")};
static const struct site_tag gold = {STR_INIT("tier"), STR_INIT("gold")};
static const struct site_tag both[] = {{STR_INIT("tier"), STR_INIT("gold")}, {STR_INIT("region"), STR_INIT("west")}};

static struct proxy_rule rules[] = {
	{.name = STR_INIT("golden partners"), .sites = partners, .sites_count = 2, .tags = &gold, .tags_count = 1},
	{.name = STR_INIT("partners"), .sites = partners, .sites_count = 2},
	{.name = STR_INIT("golden west"), .tags = both, .tags_count = 2},
	{.name = STR_INIT("Site9"), .sites = (const struct str[]){STR_INIT("Site9")}, .sites_count = 1},
};

static void the_first_rule_that_names_the_peer_decides(void **state)
{
	(void)state;
	static const struct site_tag west[] = {{STR_INIT("region"), STR_INIT("west")},
	                                       {STR_INIT("other"), STR_INIT("x")},
	                                       {STR_INIT("tier"), STR_INIT("gold")}};
	struct proxy_policy policy = {.rules = rules, .rules_count = COUNT(rules)};
	assert_int_equal(proxy_policy_find(&policy, STR("Site2"), &gold, 1), 0);
	assert_int_equal(proxy_policy_find(&policy, STR("Site3"), west, 3), 0);
	assert_int_equal(proxy_policy_find(&policy, STR("Site2"), NULL, 0), 1);
	assert_int_equal(proxy_policy_find(&policy, STR("Site2"), west, 2), 1);
	assert_int_equal(proxy_policy_find(&policy, STR("Site4"), west, 3), 2);
	assert_int_equal(proxy_policy_find(&policy, STR("Site4"), west, 2), SCOPE_NO_INDEX);
	assert_int_equal(proxy_policy_find(&policy, STR("Site9"), NULL, 0), 3);
	assert_int_equal(proxy_policy_find(&policy, STR("Site"), NULL, 0), SCOPE_NO_INDEX);
	assert_int_equal(proxy_policy_find(&policy, STR(""), NULL, 0), SCOPE_NO_INDEX);
	policy.rules_count = 0;
	assert_int_equal(proxy_policy_find(&policy, STR("Site2"), NULL, 0), SCOPE_NO_INDEX);
}

static void a_rule_without_sites_and_tags_names_everybody(void **state)
{
	(void)state;
	struct proxy_rule everybody = {.name = STR("all")};
	struct proxy_policy policy = {.rules = &everybody, .rules_count = 1};
	assert_int_equal(proxy_policy_find(&policy, STR("anyone"), NULL, 0), 0);
}

static void a_rule_allows_services_and_operations(void **state)
{
	(void)state;
	struct proxy_rule reading = {.all_services = true, .read = true};
	assert_true(proxy_rule_allows(&reading, 0, true) && proxy_rule_allows(&reading, 63, true));
	assert_false(proxy_rule_allows(&reading, 0, false));
	struct proxy_rule image = {.services = UINT64_C(1) << 63 | 1, .read = true, .write = true};
	assert_true(proxy_rule_allows(&image, 0, false) && proxy_rule_allows(&image, 63, true));
	assert_false(proxy_rule_allows(&image, 1, true) || proxy_rule_allows(&image, 62, false));
	struct proxy_rule nothing = {.read = true, .write = true};
	assert_false(proxy_rule_allows(&nothing, 0, true));
}

/* ---- How much --------------------------------------------------------------------------------------------------- */

struct table {
	struct proxy_quotas *quotas;
	struct proxy_quota *quota;
	struct proxy_rule rule;
	uint64_t wait_ns;
};

static int open_table(void **state)
{
	static struct table table;
	table = (struct table){.quotas = proxy_quotas_new()};
	table.quota = proxy_quota_take(table.quotas, STR("partners"));
	*state = &table;
	return 0;
}

static int close_table(void **state)
{
	struct table *table = *state;
	proxy_quota_give(table->quotas, table->quota);
	proxy_quotas_free(table->quotas);
	return 0;
}

static bool enter(struct table *table, uint64_t now_ns)
{
	return proxy_quota_enter(table->quota, &table->rule, now_ns, &table->wait_ns);
}

/* How many of `tries` requests at this moment get in; those that do are over at once. */
static unsigned admitted(struct table *table, unsigned tries, uint64_t now_ns)
{
	unsigned count = 0;
	for (unsigned i = 0; i < tries; i++) {
		if (!enter(table, now_ns))
			continue;
		proxy_quota_leave(table->quota);
		count++;
	}
	return count;
}

static void the_rate_is_kept_and_a_pause_gives_a_burst(void **state)
{
	struct table *table = *state;
	uint64_t now = 77 * second_ns;
	table->rule.rate = 100;
	assert_int_equal(admitted(table, 1000, now), 100);
	assert_true(table->wait_ns > 0 && table->wait_ns <= second_ns / 100);
	assert_int_equal(admitted(table, 1000, now + second_ns / 100 - 1), 0);
	assert_int_equal(admitted(table, 1000, now + second_ns / 100), 1);
	assert_int_equal(admitted(table, 1000, now + second_ns / 2), 49);
	assert_int_equal(admitted(table, 1000, now + 3600 * second_ns),
	                 100); /* a long pause gives no more than one second */
	unsigned sum = 0;
	for (uint64_t ms = 1; ms <= 10000; ms++)
		sum += admitted(table, 3, now + 3600 * second_ns + ms * 1000000);
	assert_int_equal(sum, 1000);
}

static void rates_of_any_size(void **state)
{
	struct table *table = *state;
	static const uint32_t rates[] = {1, 2, 3, 7, 1000, 999983, LIMIT_POLICY_RATE};
	uint64_t now = second_ns;
	for (size_t i = 0; i < COUNT(rates); i++, now += 10 * second_ns) {
		table->rule.rate = rates[i];
		unsigned got = admitted(table, LIMIT_POLICY_RATE + 10, now);
		assert_in_range(got, rates[i], rates[i] + rates[i] / 1000 + 1); /* a share of a second is whole nanoseconds */
	}
}

/* A clock of another loop may be a little behind. */
static void time_may_go_back_a_little(void **state)
{
	struct table *table = *state;
	table->rule.rate = 10;
	assert_int_equal(admitted(table, 100, 5 * second_ns), 10);
	assert_int_equal(admitted(table, 100, 5 * second_ns - 1000000), 0);
	assert_int_equal(admitted(table, 100, 6 * second_ns), 10);
}

static void so_many_at_once(void **state)
{
	struct table *table = *state;
	table->rule.concurrent = 3;
	assert_true(enter(table, 1) && enter(table, 1) && enter(table, 1));
	assert_false(enter(table, 1));
	assert_int_equal(table->wait_ns, 0); /* nobody knows when */
	proxy_quota_leave(table->quota);
	assert_true(enter(table, 1));
	assert_false(enter(table, 1));
	for (int i = 0; i < 3; i++)
		proxy_quota_leave(table->quota);
}

/* Who finds no place does not use up the rate; whom the rate refuses takes no place. */
static void a_refusal_costs_nothing(void **state)
{
	struct table *table = *state;
	table->rule = (struct proxy_rule){.rate = 2, .concurrent = 1};
	assert_true(enter(table, second_ns));
	for (int i = 0; i < 100; i++)
		assert_false(enter(table, second_ns));
	proxy_quota_leave(table->quota);
	assert_int_equal(admitted(table, 100, second_ns), 1);
	assert_true(table->wait_ns > 0);
	assert_int_equal(admitted(table, 100, 5 * second_ns), 2);
}

/* A reload: the rule is taken anew before the old configuration goes. Who is inside still counts. */
static void a_new_configuration_goes_on_counting(void **state)
{
	struct table *table = *state;
	table->rule.concurrent = 2;
	assert_true(enter(table, 1) && enter(table, 1));
	struct proxy_quota *again = proxy_quota_take(table->quotas, STR("partners"));
	struct proxy_quota *other = proxy_quota_take(table->quotas, STR("partner"));
	assert_ptr_equal(again, table->quota);
	assert_ptr_not_equal(other, table->quota);
	proxy_quota_give(table->quotas, table->quota);
	table->rule.concurrent = 3;
	assert_true(enter(table, 1));
	assert_false(enter(table, 1));
	for (int i = 0; i < 3; i++)
		proxy_quota_leave(table->quota);
	proxy_quota_give(table->quotas, other);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000 };

static struct table *shared;
static atomic_uint inside, most_inside, let_in;

static void *come_and_go(void *context)
{
	(void)context;
	for (int i = 0; i < ROUNDS; i++) {
		struct proxy_quota *quota = proxy_quota_take(shared->quotas, STR("partners"));
		uint64_t wait_ns;
		if (proxy_quota_enter(quota, &shared->rule, second_ns, &wait_ns)) {
			unsigned now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
			while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
				;
			atomic_fetch_add(&let_in, 1);
			atomic_fetch_sub(&inside, 1);
			proxy_quota_leave(quota);
		}
		proxy_quota_give(shared->quotas, quota);
	}
	return NULL;
}

static void loops_share_a_quota(void **state)
{
	shared = *state;
	shared->rule = (struct proxy_rule){.rate = 1000, .concurrent = 2};
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(let_in, 1000);
	assert_in_range(most_inside, 1, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_rule_that_names_the_peer_decides),
		cmocka_unit_test(a_rule_without_sites_and_tags_names_everybody),
		cmocka_unit_test(a_rule_allows_services_and_operations),
		cmocka_unit_test_setup_teardown(the_rate_is_kept_and_a_pause_gives_a_burst, open_table, close_table),
		cmocka_unit_test_setup_teardown(rates_of_any_size, open_table, close_table),
		cmocka_unit_test_setup_teardown(time_may_go_back_a_little, open_table, close_table),
		cmocka_unit_test_setup_teardown(so_many_at_once, open_table, close_table),
		cmocka_unit_test_setup_teardown(a_refusal_costs_nothing, open_table, close_table),
		cmocka_unit_test_setup_teardown(a_new_configuration_goes_on_counting, open_table, close_table),
		cmocka_unit_test_setup_teardown(loops_share_a_quota, open_table, close_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
