/* What a configuration becomes. What is said of wrong ones is in test_config_errors.c. */
#include "config_test.h"

#include <sys/stat.h>
#include <unistd.h>

#define assert_str_equal(s, literal)                                                                                   \
	do {                                                                                                               \
		struct str str_ = (s);                                                                                         \
		assert_int_equal(str_.length, strlen(literal));                                                                \
		assert_memory_equal(str_.at, (literal), str_.length);                                                          \
	} while (0)

static const char full[] = "site: Site1\n"
						   "api: 127.0.0.1:8079\n"
						   "peer: 127.0.0.1:8070\n"
						   "threads: 2\n"
						   "log: debug\n"
						   "advertise: 192.0.2.1:8071\n"
						   "state: /var/lib/elsewhere\n"
						   "seeds: [192.0.2.2:8070, 192.0.2.3:8072]\n"
						   "services:\n"
						   "  compute:\n"
						   "    front: 127.0.0.1:8081\n"
						   "    instances: [127.0.0.1:9081, 127.0.0.1:9082]\n"
						   "    version: 2.1\n"
						   "    carry: [traceparent, request-id:X-Request-Id, append:X-Auth-Token:network]\n"
						   "  image: {front: 127.0.0.1:8082, instances: 127.0.0.1:9083, carry: []}\n"
						   "  network: {front: 127.0.0.1:8083, instances: [127.0.0.1:9083]}\n"
						   "tags: {region: east, tier: gold}\n"
						   "timeouts: {connect: 500ms, header: 1.5s, answer: 2min, idle: 1h, request: 0s, stop: 1s}\n"
						   "limits: {head: 8KiB, fields: 64, target: 2000, connections: 7}\n";

static void every_key_is_taken_over(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(full);
	assert_str_equal(config->site, "Site1");
	assert_string_equal(config->api.text, "127.0.0.1:8079");
	assert_string_equal(config->peer.text, "127.0.0.1:8070");
	assert_true(config->peer.length > 0);
	assert_int_equal(config->threads, 2);
	assert_int_equal(config->log_level, LOG_DEBUG);
	assert_int_equal(config->timeouts.connect_ms, 500);
	assert_int_equal(config->timeouts.header_ms, 1500);
	assert_int_equal(config->timeouts.answer_ms, 120000);
	assert_int_equal(config->timeouts.idle_ms, 3600000);
	assert_int_equal(config->timeouts.request_ms, 0);
	assert_int_equal(config->timeouts.stop_ms, 1000);
	assert_int_equal(config->limits.head_bytes, 8192);
	assert_int_equal(config->limits.fields, 64);
	assert_int_equal(config->limits.target_bytes, 2000);
	assert_int_equal(config->connections, 7);
	proxy_config_drop(config);
}

static void services_are_in_the_order_of_the_file(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(full);
	assert_int_equal(config->services_count, 3);
	const struct proxy_service *compute = &config->services[0], *image = &config->services[1];
	assert_str_equal(compute->name, "compute");
	assert_str_equal(image->name, "image");
	assert_int_equal(image->index, 1);
	assert_string_equal(compute->front.text, "127.0.0.1:8081");
	assert_int_equal(compute->instances_count, 2);
	assert_string_equal(compute->instances[1].text, "127.0.0.1:9082");
	assert_int_equal(image->instances_count, 1);
	assert_str_equal(compute->version, "2.1");
	assert_str_equal(image->version, "");
	proxy_config_drop(config);
}

static void scopes_follow_as_said(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(full);
	const struct proxy_service *compute = &config->services[0];
	assert_int_equal(compute->carry_count, 3);
	assert_int_equal(compute->carry[0].kind, PROXY_CARRY_TRACEPARENT);
	assert_int_equal(compute->carry[1].kind, PROXY_CARRY_REQUEST_ID);
	assert_str_equal(compute->carry[1].header, "X-Request-Id");
	assert_str_equal(compute->carry[1].prefix, "");
	assert_int_equal(compute->carry[2].kind, PROXY_CARRY_APPEND);
	assert_str_equal(compute->carry[2].header, "X-Auth-Token");
	assert_str_equal(compute->carry[2].service, "network");
	assert_int_equal(config->services[1].carry_count, 0);
	const struct proxy_service *network = &config->services[2];
	assert_int_equal(network->carry_count, 2);
	assert_int_equal(network->carry[0].kind, PROXY_CARRY_HEADER);
	assert_int_equal(network->carry[1].kind, PROXY_CARRY_BAGGAGE);
	proxy_config_drop(config);
}

static void a_request_id_may_have_a_prefix(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine("site: S\napi: 127.0.0.1:1\nservices: {s: {front: 127.0.0.1:2, instances: "
	                                         "127.0.0.1:3, carry: 'request-id:X-OpenStack-Request-ID:req-'}}\n");
	const struct proxy_carry *carry = &config->services[0].carry[0];
	assert_int_equal(config->services[0].carry_count, 1);
	assert_str_equal(carry->header, "X-OpenStack-Request-ID");
	assert_str_equal(carry->prefix, "req-");
	proxy_config_drop(config);
}

static void osprofiler_has_its_keys_in_a_file(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine("site: S\napi: 127.0.0.1:1\nservices: {s: {front: 127.0.0.1:2, instances: "
	                                         "127.0.0.1:3, carry: 'osprofiler:profiler.keys'}}\n");
	const struct proxy_carry *carry = &config->services[0].carry[0];
	assert_int_equal(carry->kind, PROXY_CARRY_OSPROFILER);
	assert_int_equal(carry->keys.count, 2);
	assert_str_equal(carry->keys.at[0], "LABKEY");
	assert_str_equal(carry->keys.at[1], "second key");
	proxy_config_drop(config);
}

static void what_the_others_are_told_is_taken_over(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(full);
	static const uint8_t ip[4] = {192, 0, 2, 1};
	assert_int_equal(config->advertise.family, 4);
	assert_memory_equal(config->advertise.ip, ip, sizeof(ip));
	assert_int_equal(config->advertise.port, 8071);
	assert_string_equal(config->state, "/var/lib/elsewhere");
	assert_int_equal(config->seeds_count, 2);
	assert_int_equal(config->seeds[0].family, 4);
	assert_int_equal(config->seeds[0].port, 8070);
	assert_int_equal(config->seeds[1].family, 4);
	assert_int_equal(config->seeds[1].port, 8072);
	assert_int_equal(config->tags_count, 2);
	assert_str_equal(config->tags[0].key, "region");
	assert_str_equal(config->tags[0].value, "east");
	assert_str_equal(config->tags[1].key, "tier");
	assert_false(config->meshed); /* that is for the agent to find out */
	proxy_config_drop(config);
}

static void one_seed_needs_no_list(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL "peer: 127.0.0.1:8070\nseeds: 192.0.2.2:8070\n");
	assert_int_equal(config->seeds_count, 1);
	proxy_config_drop(config);
	config = parse_fine(MINIMAL "peer: 127.0.0.1:8070\nseeds: []\n");
	assert_int_equal(config->seeds_count, 0);
	proxy_config_drop(config);
}

/* Where the agent listens is where it is met, unless that is every address. */
static void where_it_listens_is_what_is_advertised(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL "peer: 127.0.0.1:8070\n");
	assert_int_equal(config->advertise.family, 4);
	assert_int_equal(config->advertise.port, 8070);
	proxy_config_drop(config);
	config = parse_fine(MINIMAL "peer: 0.0.0.0:8070\n");
	assert_int_equal(config->advertise.family, 0);
	proxy_config_drop(config);
}

static void a_relative_state_begins_where_the_file_is(void **state)
{
	(void)state;
	struct proxy_config *config = NULL;
	struct err err = {0};
	assert_int_equal(parse_as("/etc/cheops/agent.yaml", STR(MINIMAL "state: kept\n"), &config, &err), 0);
	assert_string_equal(config->state, "/etc/cheops/kept");
	proxy_config_drop(config);
}

static void what_is_left_out_has_a_default(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL);
	assert_int_equal(config->threads, 3);
	assert_int_equal(config->log_level, LOG_INFO);
	assert_int_equal(config->peer.length, 0);
	assert_int_equal(config->tags_count, 0);
	assert_int_equal(config->advertise.family, 0);
	assert_string_equal(config->state, "/var/lib/cheops");
	assert_int_equal(config->timeouts.connect_ms, 2000);
	assert_int_equal(config->timeouts.header_ms, 10000);
	assert_int_equal(config->timeouts.answer_ms, 60000);
	assert_int_equal(config->timeouts.idle_ms, 60000);
	assert_int_equal(config->timeouts.request_ms, 0);
	assert_int_equal(config->timeouts.stop_ms, 30000);
	assert_int_equal(config->limits.head_bytes, 32 << 10);
	assert_int_equal(config->limits.target_bytes, 16 << 10);
	assert_int_equal(config->limits.fields, 128);
	assert_int_equal(config->connections, 20000);
	proxy_config_drop(config);
}

static void a_smaller_head_has_a_smaller_target(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL "limits: {head: 1KiB}\n");
	assert_int_equal(config->limits.target_bytes, 512);
	proxy_config_drop(config);
}

static void references_are_counted(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL);
	assert_ptr_equal(proxy_config_keep(config), config);
	proxy_config_drop(config);
	assert_str_equal(config->site, "Site1");
	proxy_config_drop(config);
	proxy_config_drop(NULL);
}

/* ---- TLS -------------------------------------------------------------------------------------------------------- */

static void certificates_are_read(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(
		"site: Site1\napi: 127.0.0.1:8079\nservices:\n"
		"  plain: {front: 127.0.0.1:1, instances: 127.0.0.1:2}\n"
		"  front: {front: 127.0.0.1:3, instances: 127.0.0.1:4, front_tls: {certificate: good.pem, key: good.key}}\n"
		"  clients: {front: 127.0.0.1:5, instances: 127.0.0.1:6,\n"
		"            front_tls: {certificate: /etc/cheops/good.pem, key: good.key, clients: good.pem}}\n"
		"  instances: {front: 127.0.0.1:7, instances: [127.0.0.1:8, 127.0.0.2:8], instances_tls: }\n"
		"  named: {front: 127.0.0.1:9, instances: [127.0.0.1:10, 127.0.0.2:10],\n"
		"          instances_tls: {ca: good.pem, name: named.example, certificate: good.pem, key: good.key}}\n");
	const struct proxy_service *services = config->services;
	assert_true(!services[0].front_tls && !services[0].instances_tls);
	assert_true(services[1].front_tls && !services[1].instances_tls);
	assert_true(services[2].front_tls && !services[2].instances_tls);
	assert_true(!services[3].front_tls && services[3].instances_tls);
	assert_string_equal(services[3].instances_names[0], "127.0.0.1");
	assert_string_equal(services[3].instances_names[1], "127.0.0.2");
	assert_string_equal(services[4].instances_names[0], "named.example");
	assert_string_equal(services[4].instances_names[1], "named.example");
	proxy_config_drop(config);
}

/* ---- Policy ----------------------------------------------------------------------------------------------------- */

static void without_a_policy_everything_is_allowed(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL);
	assert_true(config->policy.rules_count == 0 && !config->policy.refuse_others);
	proxy_config_drop(config);
}

static void rules_are_read(void **state)
{
	(void)state;
	struct proxy_config *config =
		parse_fine("site: Site1\napi: 127.0.0.1:8079\nservices:\n"
	               "  compute: {front: 127.0.0.1:1, instances: 127.0.0.1:2}\n"
	               "  image: {front: 127.0.0.1:3, instances: 127.0.0.1:4}\n"
	               "policy:\n  others: refuse\n  rules:\n"
	               "  - {name: partners, sites: [Site2, Site3], services: image, operations: [read], rate: 100}\n"
	               "  - {name: family, tags: {owner: us, tier: 1}, concurrent: 20}\n"
	               "  - {name: nobody, sites: Site9, services: []}\n");
	const struct proxy_rule *rules = config->policy.rules;
	assert_true(config->policy.refuse_others);
	assert_int_equal(config->policy.rules_count, 3);
	assert_str_equal(rules[0].name, "partners");
	assert_int_equal(rules[0].sites_count, 2);
	assert_str_equal(rules[0].sites[1], "Site3");
	assert_true(rules[0].services == 2 && !rules[0].all_services && rules[0].read && !rules[0].write);
	assert_true(rules[0].rate == 100 && rules[0].concurrent == 0);
	assert_int_equal(rules[1].tags_count, 2);
	assert_str_equal(rules[1].tags[1].value, "1");
	assert_true(rules[1].all_services && rules[1].read && rules[1].write && rules[1].sites_count == 0);
	assert_true(rules[1].rate == 0 && rules[1].concurrent == 20);
	assert_true(!rules[2].all_services && rules[2].services == 0);
	proxy_config_drop(config);
}

/* ---- Flags and environment -------------------------------------------------------------------------------------- */

static void flags_beat_the_environment_which_beats_the_file(void **state)
{
	(void)state;
	struct agent_options options = {.path = "agent.yaml"};
	struct agent_surroundings around = quiet_surroundings();
	struct err err = {0};
	struct proxy_config *config = NULL;
	options.overrides.of[AGENT_SITE] = (struct agent_override){"Flagged", "--site"};
	setenv("CHEOPS_SITE", "Environs", 1);
	setenv("CHEOPS_THREADS", "9", 1);
	setenv("CHEOPS_LOG", "", 1); /* as if it was not set */
	agent_overrides_add_environment(&options.overrides);
	assert_int_equal(agent_config_parse(STR(MINIMAL "threads: 4\nlog: warn\n"), &options, &around, &config, &err), 0);
	assert_str_equal(config->site, "Flagged");
	assert_int_equal(config->threads, 9);
	assert_int_equal(config->log_level, LOG_WARN);
	proxy_config_drop(config);
	unsetenv("CHEOPS_SITE");
	unsetenv("CHEOPS_THREADS");
	unsetenv("CHEOPS_LOG");
}

/* What is given elsewhere need not be in the file. */
static void flags_may_stand_for_required_keys(void **state)
{
	(void)state;
	struct agent_options options = {.path = "agent.yaml"};
	struct agent_surroundings around = quiet_surroundings();
	struct err err = {0};
	struct proxy_config *config = NULL;
	options.overrides.of[AGENT_SITE] = (struct agent_override){"Site7", "--site"};
	options.overrides.of[AGENT_API] = (struct agent_override){"127.0.0.1:1", "--api"};
	struct str text = STR("services: {s: {front: 127.0.0.1:2, instances: 127.0.0.1:3}}\n");
	assert_int_equal(agent_config_parse(text, &options, &around, &config, &err), 0);
	assert_string_equal(config->api.text, "127.0.0.1:1");
	proxy_config_drop(config);
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

struct folder {
	char path[64];
	char config[96];
};

static void folder_open(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/cheops-test-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	snprintf(folder->config, sizeof(folder->config), "%s/agent.yaml", folder->path);
}

static void folder_close(struct folder *folder)
{
	unlink(folder->config);
	assert_int_equal(rmdir(folder->path), 0);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static void a_file_is_loaded_with_real_surroundings(void **state)
{
	(void)state;
	struct folder folder;
	struct err err = {0};
	struct proxy_config *config = NULL;
	folder_open(&folder);
	struct agent_options options = {.path = folder.config};
	assert_int_equal(agent_config_load(&options, &config, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "cannot read `"));
	write_file(folder.config, MINIMAL, 0644);
	assert_int_equal(agent_config_load(&options, &config, &err), 0);
	assert_in_range(config->threads, 1, LIMIT_AGENT_THREADS);
	proxy_config_drop(config);
	FILE *file = fopen(folder.config, "a");
	for (int i = 0; i <= LIMIT_AGENT_FILE_BYTES / 16; i++)
		fputs("# 1234567890123\n", file);
	fclose(file);
	assert_int_equal(agent_config_load(&options, &config, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "is longer than 1048576 bytes, the limit of a configuration file"));
	folder_close(&folder);
}

/* A file that was cut anywhere is either refused or still a configuration; each answer frees all. */
static void any_prefix_of_a_file_is_dealt_with(void **state)
{
	(void)state;
	for (size_t length = 0; length < sizeof(full); length++) {
		struct err err = {0};
		struct proxy_config *config = NULL;
		int code = parse_as("agent.yaml", str_make(full, length), &config, &err);
		assert_true(code == 0 ? config != NULL : config == NULL && err.text[0] != '\0');
		proxy_config_drop(config);
	}
}

static void counts_are_limited(void **state)
{
	(void)state;
	struct {
		int most;
		const char *before, *each, *said;
	} cases[] = {
		{LIMIT_AGENT_SERVICES, "site: S\napi: 127.0.0.1:1\nservices:\n",
	     "  s%d: {front: 10.0.%d.%d:80, instances: 127.0.0.1:3}\n", "65 services; the limit of an agent is 64"},
		{LIMIT_AGENT_SEEDS, MINIMAL "peer: 127.0.0.1:9\nseeds:\n", "  - 10.%d.%d.%d:80\n", "17 seeds; the limit is 16"},
		{LIMIT_AGENT_TAGS, MINIMAL "tags:\n", "  t%d: x%d.%d\n", "65 tags; the limit of a site is 64"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf text = {0};
		struct err err = {0};
		struct proxy_config *config = NULL;
		buf_put(&text, str_of(cases[i].before));
		for (int n = 0; n <= cases[i].most; n++) {
			char line[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(line, sizeof(line), cases[i].each, n, n / 250, n % 250);
#pragma GCC diagnostic pop
			if (n == cases[i].most) {
				assert_int_equal(parse_as("a", buf_str(&text), &config, &err), 0);
				proxy_config_drop(config);
			}
			buf_put(&text, str_of(line));
		}
		assert_int_equal(parse_as("a", buf_str(&text), &config, &err), ERR_LIMIT);
		assert_non_null(strstr(err.text, cases[i].said));
		buf_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_taken_over),
		cmocka_unit_test(services_are_in_the_order_of_the_file),
		cmocka_unit_test(scopes_follow_as_said),
		cmocka_unit_test(a_request_id_may_have_a_prefix),
		cmocka_unit_test(osprofiler_has_its_keys_in_a_file),
		cmocka_unit_test(what_the_others_are_told_is_taken_over),
		cmocka_unit_test(one_seed_needs_no_list),
		cmocka_unit_test(where_it_listens_is_what_is_advertised),
		cmocka_unit_test(a_relative_state_begins_where_the_file_is),
		cmocka_unit_test(what_is_left_out_has_a_default),
		cmocka_unit_test(a_smaller_head_has_a_smaller_target),
		cmocka_unit_test(references_are_counted),
		cmocka_unit_test(certificates_are_read),
		cmocka_unit_test(without_a_policy_everything_is_allowed),
		cmocka_unit_test(rules_are_read),
		cmocka_unit_test(flags_beat_the_environment_which_beats_the_file),
		cmocka_unit_test(flags_may_stand_for_required_keys),
		cmocka_unit_test(a_file_is_loaded_with_real_surroundings),
		cmocka_unit_test(any_prefix_of_a_file_is_dealt_with),
		cmocka_unit_test(counts_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
