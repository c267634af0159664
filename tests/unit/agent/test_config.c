/* What a configuration becomes. What is said of wrong ones is in test_config_errors.c. */
#include "config_test.h"

#include <openssl/sha.h>
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
						   "hop_key: at least 16 bytes\n"
						   "services:\n"
						   "  compute:\n"
						   "    front: 127.0.0.1:8081\n"
						   "    instances: [127.0.0.1:9081, 127.0.0.1:9082]\n"
						   "    version: 2.1\n"
						   "    carry: [traceparent, request-id:X-Request-Id, append:X-Auth-Token]\n"
						   "  image: {front: 127.0.0.1:8082, instances: 127.0.0.1:9083, carry: []}\n"
						   "  network: {front: 127.0.0.1:8083, instances: [127.0.0.1:9083]}\n"
						   "peers:\n"
						   "  Site2: {address: 127.0.0.1:8170, rtt: 8.25ms, tags: {region: west, tier: gold},\n"
						   "          services: {compute: '2.3', volume: }}\n"
						   "  Site3: {address: 127.0.0.1:8270}\n"
						   "tags: {region: east}\n"
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

static void the_view_has_this_site_first_then_the_peers(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(full);
	const struct scope_view *view = &config->view;
	struct str key, value, version;
	assert_int_equal(config->site_index, 0);
	assert_int_equal(view->sites_count, 3);
	assert_str_equal(view->site(view->context, 0).name, "Site1");
	assert_str_equal(view->site(view->context, 1).name, "Site2");
	assert_int_equal(config->peers_count, 2);
	assert_str_equal(config->peers[1].name, "Site3");
	assert_int_equal(config->peers[1].site, 2);
	assert_string_equal(config->peers[0].address.text, "127.0.0.1:8170");
	assert_int_equal(config->peers[0].rtt_us, 8250);
	assert_true(config->peers[1].rtt_us == SCOPE_RTT_UNKNOWN);
	assert_int_equal(view->rtt_us(view->context, 0, 1), 8250);
	assert_true(view->rtt_us(view->context, 0, 2) == SCOPE_RTT_UNKNOWN);
	assert_true(view->tag(view->context, 0, 0, &key, &value));
	assert_str_equal(value, "east");
	assert_true(view->tag(view->context, 1, 1, &key, &value));
	assert_str_equal(key, "tier");
	assert_int_equal(view->services_count, 4);
	uint32_t compute = view->find_service(view->context, STR("compute"));
	uint32_t volume = view->find_service(view->context, STR("volume"));
	assert_true(view->offers(view->context, compute, 0, &version));
	assert_str_equal(version, "2.1");
	assert_true(view->offers(view->context, compute, 1, &version));
	assert_str_equal(version, "2.3");
	/* Site2 says what it has, Site3 says nothing and is taken to have what we have. */
	assert_false(view->offers(view->context, view->find_service(view->context, STR("image")), 1, &version));
	assert_true(view->offers(view->context, compute, 2, &version));
	assert_str_equal(version, "");
	assert_false(view->offers(view->context, volume, 0, &version));
	assert_true(view->offers(view->context, volume, 1, &version));
	assert_false(view->offers(view->context, volume, 2, &version));
	proxy_config_drop(config);
}

static void what_is_left_out_has_a_default(void **state)
{
	(void)state;
	struct proxy_config *config = parse_fine(MINIMAL);
	struct agent_surroundings around = quiet_surroundings();
	assert_int_equal(config->threads, 3);
	assert_int_equal(config->log_level, LOG_INFO);
	assert_int_equal(config->peer.length, 0);
	assert_int_equal(config->peers_count, 0);
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
	assert_memory_equal(config->hop_key, around.hop_key, sizeof(config->hop_key));
	assert_int_equal(config->view.sites_count, 1);
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

/* ---- The key ---------------------------------------------------------------------------------------------------- */

struct folder {
	char path[64];
	char config[96];
	char key[96];
};

static void folder_open(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/cheops-test-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	snprintf(folder->config, sizeof(folder->config), "%s/agent.yaml", folder->path);
	snprintf(folder->key, sizeof(folder->key), "%s/hop.key", folder->path);
}

static void folder_close(struct folder *folder)
{
	unlink(folder->key);
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

static void the_key_is_derived_the_same_from_text_and_file(void **state)
{
	(void)state;
	static const char secret[] = "0123456789abcdef";
	unsigned char expected[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)"cheops hop key 1\n0123456789abcdef", 33, expected);
	struct folder folder;
	struct err err = {0};
	struct proxy_config *config = NULL;
	folder_open(&folder);
	for (int newline = 0; newline <= 1; newline++) {
		char text[32];
		snprintf(text, sizeof(text), "%s%s", secret, newline ? "\n" : "");
		write_file(folder.key, text, 0640);
		assert_int_equal(parse_as(folder.config, STR(MINIMAL "hop_key_file: hop.key\n"), &config, &err), 0);
		assert_memory_equal(config->hop_key, expected, sizeof(expected));
		proxy_config_drop(config);
	}
	folder_close(&folder);
	config = parse_fine(MINIMAL "hop_key: '0123456789abcdef'\n");
	assert_memory_equal(config->hop_key, expected, sizeof(expected));
	proxy_config_drop(config);
}

static void a_key_file_that_others_can_read_is_refused(void **state)
{
	(void)state;
	struct folder folder;
	struct err err = {0};
	struct proxy_config *config = NULL;
	folder_open(&folder);
	write_file(folder.key, "0123456789abcdef\n", 0644);
	assert_int_equal(parse_as(folder.config, STR(MINIMAL "hop_key_file: hop.key\n"), &config, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "agent.yaml:4:15: `hop_key_file`: everybody may read or write `"));
	assert_non_null(strstr(err.text, "hop.key` (mode 644); a secret is for its owner and group: chmod o-rwx"));
	write_file(folder.key, "too short\n", 0600);
	assert_int_equal(parse_as(folder.config, STR(MINIMAL "hop_key_file: hop.key\n"), &config, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "`hop_key_file` has 9 bytes; it has to have 16 to 4096"));
	assert_null(strstr(err.text, "too short"));
	assert_null(config);
	folder_close(&folder);
}

static void a_folder_is_no_key(void **state)
{
	(void)state;
	struct err err = {0};
	struct proxy_config *config = NULL;
	assert_int_equal(parse_as("agent.yaml", STR(MINIMAL "hop_key_file: /tmp\n"), &config, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "`/tmp` is no regular file"));
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

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
		{LIMIT_AGENT_PEERS, MINIMAL "peer: 127.0.0.1:2\nhop_key: 0123456789abcdef\npeers:\n",
	     "  P%d: {address: 10.0.%d.%d:80}\n", "1000 peers; the limit of an agent is 999"},
		{LIMIT_AGENT_SERVICES, "site: S\napi: 127.0.0.1:1\nservices:\n",
	     "  s%d: {front: 10.0.%d.%d:80, instances: 127.0.0.1:3}\n", "65 services; the limit of an agent is 64"},
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
		cmocka_unit_test(the_view_has_this_site_first_then_the_peers),
		cmocka_unit_test(what_is_left_out_has_a_default),
		cmocka_unit_test(a_smaller_head_has_a_smaller_target),
		cmocka_unit_test(references_are_counted),
		cmocka_unit_test(flags_beat_the_environment_which_beats_the_file),
		cmocka_unit_test(flags_may_stand_for_required_keys),
		cmocka_unit_test(the_key_is_derived_the_same_from_text_and_file),
		cmocka_unit_test(a_key_file_that_others_can_read_is_refused),
		cmocka_unit_test(a_folder_is_no_key),
		cmocka_unit_test(a_file_is_loaded_with_real_surroundings),
		cmocka_unit_test(any_prefix_of_a_file_is_dealt_with),
		cmocka_unit_test(counts_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
