/* The configuration as a whole: its parts, what takes their place, and the file itself. */
#include "agent/config_int.h"

#include "agent/file.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>

static const struct yaml_format agent_format = {
	.thing = "a configuration",
	.file = "a configuration file",
	.deepest = "a header that carries a scope",
	.least = "a configuration has at least `site`, `api` and `services`",
	.bytes = LIMIT_AGENT_FILE_BYTES,
};

static const char *const part_names[] = {
	[AGENT_SITE] = "site",        [AGENT_API] = "api",
	[AGENT_PEER] = "peer",        [AGENT_ADVERTISE] = "advertise",
	[AGENT_STATE] = "state",      [AGENT_APPLICATION] = "application",
	[AGENT_THREADS] = "threads",  [AGENT_LOG] = "log",
	[PART_SERVICES] = "services", [PART_SEEDS] = "seeds",
	[PART_TAGS] = "tags",         [PART_TIMEOUTS] = "timeouts",
	[PART_LIMITS] = "limits",     [PART_POLICY] = "policy",
	[PART_WEBHOOKS] = "webhooks", NULL,
};

const char *agent_option_name(enum agent_option option)
{
	return part_names[option];
}

void agent_overrides_add_environment(struct agent_overrides *overrides)
{
	static const char *const variables[] = {
		[AGENT_SITE] = "CHEOPS_SITE",       [AGENT_API] = "CHEOPS_API",
		[AGENT_PEER] = "CHEOPS_PEER",       [AGENT_ADVERTISE] = "CHEOPS_ADVERTISE",
		[AGENT_STATE] = "CHEOPS_STATE",     [AGENT_APPLICATION] = "CHEOPS_APPLICATION",
		[AGENT_THREADS] = "CHEOPS_THREADS", [AGENT_LOG] = "CHEOPS_LOG"};
	for (int i = 0; i < AGENT_OPTIONS_COUNT; i++) {
		struct agent_override *override = &overrides->of[i];
		const char *value = getenv(variables[i]);
		if (override->value == NULL && value != NULL && *value != '\0')
			*override = (struct agent_override){.value = value, .from = variables[i]};
	}
}

/* ---- Options that flags and environment may set, too ------------------------------------------------------------ */

int config_option(struct config_load *load, enum agent_option option, const char *what, struct config_value *value,
                  bool *given)
{
	const struct agent_override *override = &load->options->overrides.of[option];
	*given = true;
	if (override->value != NULL) {
		*value = (struct config_value){
			.key = str_of(part_names[option]), .text = str_of(override->value), .from = override->from};
		return 0;
	}
	*given = load->parts[option].value != NULL;
	return *given ? config_value_of(load, &load->parts[option], what, value) : 0;
}

static int missing(struct config_load *load, const char *key, const char *example)
{
	return yaml_fail(&load->yaml, ERR_INVALID, load->root->start_mark,
	                 "there is no `%s`, which every agent needs, such as `%s`", key, example);
}

static int read_site(struct config_load *load)
{
	struct config_value value;
	bool given;
	int code = config_option(load, AGENT_SITE, "the name of this site, such as Site1", &value, &given);
	if (code == 0 && !given)
		code = missing(load, "site", "site: Site1");
	return code == 0 ? config_name(load, &value, &load->config->site) : code;
}

static int read_api(struct config_load *load)
{
	struct config_value value;
	bool given;
	int code = config_option(load, AGENT_API, "an address, such as 127.0.0.1:8079", &value, &given);
	if (code == 0 && !given)
		code = missing(load, "api", "api: 127.0.0.1:8079");
	return code == 0 ? config_listen(load, &value, STR("api"), &load->config->api) : code;
}

static int read_peer(struct config_load *load)
{
	struct config_value value;
	bool given;
	int code = config_option(load, AGENT_PEER, "an address, such as 0.0.0.0:8070", &value, &given);
	return code == 0 && given ? config_listen(load, &value, STR("peer"), &load->config->peer) : code;
}

static int read_threads(struct config_load *load)
{
	struct config_value value;
	bool given;
	uint32_t cores = load->around->cores;
	load->config->threads = cores < 1 ? 1 : cores > LIMIT_AGENT_THREADS ? LIMIT_AGENT_THREADS : cores;
	int code = config_option(load, AGENT_THREADS, "a number, such as 2", &value, &given);
	if (code != 0 || !given)
		return code;
	struct config_range range = {.least = 1, .most = LIMIT_AGENT_THREADS};
	return config_count(load, &value, range, &load->config->threads);
}

static int read_log(struct config_load *load)
{
	const char *words[LOG_DEBUG + 2] = {NULL};
	for (enum log_level level = LOG_ERROR; level <= LOG_DEBUG; level++)
		words[level] = log_level_name(level);
	struct config_value value;
	bool given;
	load->config->log_level = LOG_INFO;
	int code = config_option(load, AGENT_LOG, "one of `error`, `warn`, `info` and `debug`", &value, &given);
	if (code != 0 || !given)
		return code;
	int level = config_word(load, &value, words);
	if (level < 0)
		return level;
	load->config->log_level = (enum log_level)level;
	return 0;
}

/* ---- Timeouts and limits ---------------------------------------------------------------------------------------- */

static int read_timeout(struct config_load *load, const struct yaml_entry *entry, bool zero, uint64_t *timeout_ms)
{
	struct config_value value;
	struct config_range range = {.least = 1000, .most = LIMIT_AGENT_TIMEOUT_S * UINT64_C(1000000), .zero = zero};
	uint64_t us;
	if (entry->value == NULL)
		return 0;
	int code = config_value_of(load, entry, "a duration, such as 2s", &value);
	if (code == 0)
		code = config_duration(load, &value, range, &us);
	if (code == 0)
		*timeout_ms = us / 1000;
	return code;
}

static int read_timeouts(struct config_load *load)
{
	enum { CONNECT, HEADER, ANSWER, IDLE, REQUEST, STOP, COUNT };
	static const char *const keys[] = {[CONNECT] = "connect",
	                                   [HEADER] = "header",
	                                   [ANSWER] = "answer",
	                                   [IDLE] = "idle",
	                                   [REQUEST] = "request",
	                                   [STOP] = "stop",
	                                   NULL};
	struct proxy_timeouts *timeouts = &load->config->timeouts;
	*timeouts = (struct proxy_timeouts){
		.connect_ms = 2000, .header_ms = 10000, .answer_ms = 60000, .idle_ms = 60000, .stop_ms = 30000};
	uint64_t *const fields[] = {
		[CONNECT] = &timeouts->connect_ms, [HEADER] = &timeouts->header_ms,   [ANSWER] = &timeouts->answer_ms,
		[IDLE] = &timeouts->idle_ms,       [REQUEST] = &timeouts->request_ms, [STOP] = &timeouts->stop_ms};
	const yaml_node_t *node = load->parts[PART_TIMEOUTS].value;
	struct yaml_entry found[COUNT] = {0};
	if (node == NULL)
		return 0;
	int code = yaml_check_mapping(&load->yaml, node, STR("timeouts"), "timeouts: {connect: 2s}");
	if (code == 0)
		code = config_keys(load, node, keys, found);
	for (int i = 0; code == 0 && i < COUNT; i++)
		code = read_timeout(load, &found[i], i == ANSWER || i == REQUEST, fields[i]);
	return code;
}

static int read_limit(struct config_load *load, const struct yaml_entry *entry, bool size, struct config_range range,
                      uint32_t *limit)
{
	struct config_value value;
	if (entry->value == NULL)
		return 0;
	int code = config_value_of(load, entry, size ? "a size, such as 32KiB" : "a number, such as 128", &value);
	if (code != 0)
		return code;
	return size ? config_size(load, &value, range, limit) : config_count(load, &value, range, limit);
}

static int read_limits(struct config_load *load)
{
	enum { HEAD, FIELDS, TARGET, CONNECTIONS, COUNT };
	static const char *const keys[] = {
		[HEAD] = "head", [FIELDS] = "fields", [TARGET] = "target", [CONNECTIONS] = "connections", NULL};
	struct http_limits *limits = &load->config->limits;
	*limits = (struct http_limits){.head_bytes = 32 << 10, .fields = 128};
	load->config->connections = 20000;
	const yaml_node_t *node = load->parts[PART_LIMITS].value;
	struct yaml_entry found[COUNT] = {0};
	int code = 0;
	if (node != NULL)
		code = yaml_check_mapping(&load->yaml, node, STR("limits"), "limits: {head: 32KiB}");
	if (code == 0 && node != NULL)
		code = config_keys(load, node, keys, found);
	if (code == 0)
		code = read_limit(load, &found[HEAD], true,
		                  (struct config_range){LIMIT_AGENT_HEAD_LEAST_BYTES, LIMIT_AGENT_HEAD_BYTES, false},
		                  &limits->head_bytes);
	if (code == 0)
		code = read_limit(load, &found[FIELDS], false,
		                  (struct config_range){LIMIT_AGENT_FIELDS_LEAST, LIMIT_AGENT_FIELDS, false}, &limits->fields);
	/* A target is a part of a head. */
	limits->target_bytes = limits->head_bytes / 2;
	if (code == 0)
		code = read_limit(load, &found[TARGET], true,
		                  (struct config_range){LIMIT_AGENT_TARGET_LEAST_BYTES, limits->head_bytes, false},
		                  &limits->target_bytes);
	if (code == 0)
		code = read_limit(load, &found[CONNECTIONS], false, (struct config_range){1, LIMIT_AGENT_CONNECTIONS, false},
		                  &load->config->connections);
	return code;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int read_root(void *context, const yaml_node_t *root)
{
	struct config_load *load = context;
	/* In this order: listeners before those who must not name them. */
	static int (*const read[])(struct config_load *) = {
		read_site,     read_api,    read_peer,       read_threads,    read_log,
		read_timeouts, read_limits, config_services, config_state,    config_advertise,
		config_seeds,  config_tags, config_policy,   config_webhooks, config_application};
	if (root->type != YAML_MAPPING_NODE)
		return yaml_fail(&load->yaml, ERR_INVALID, root->start_mark,
		                 "the file is %s; a configuration is a mapping with the keys `site`, `api`, `services` and "
		                 "others",
		                 yaml_kind(root));
	load->root = root;
	int code = yaml_check_mapping(&load->yaml, root, STR("the configuration"), "");
	if (code == 0)
		code = config_keys(load, root, part_names, load->parts);
	for (size_t i = 0; code == 0 && i < sizeof(read) / sizeof(read[0]); i++)
		code = read[i](load);
	return code;
}

static struct proxy_config *config_new(void)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct proxy_config *config = arena_new(&arena, struct proxy_config);
	config->arena = arena;
	atomic_init(&config->references, 1);
	return config;
}

int agent_config_parse(struct str text, const struct agent_options *options, const struct agent_surroundings *around,
                       struct proxy_config **config, struct err *err)
{
	struct config_load load = {
		.yaml = {.path = options->path, .format = &agent_format, .hash_key = around->hash_key, .err = err},
		.options = options,
		.around = around,
		.config = config_new(),
	};
	int code = yaml_read(&load.yaml, text, read_root, &load);
	if (code == 0)
		*config = load.config;
	else
		proxy_config_drop(load.config);
	return code;
}

/* Of those that this process may use. */
static uint32_t count_cores(void)
{
	cpu_set_t cores;
	return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? (uint32_t)CPU_COUNT(&cores) : 1;
}

static int read_any_file(const char *path, bool secret, size_t at_most, struct buf *out, struct err *err)
{
	return secret ? agent_secret_read(path, at_most, out, err) : agent_file_read(path, at_most, out, err);
}

int agent_config_load(const struct agent_options *options, struct proxy_config **config, struct err *err)
{
	struct agent_surroundings around = {.look_up = http_address_parse,
	                                    .read = read_any_file,
	                                    .application = agent_application_find,
	                                    .cores = count_cores()};
	struct buf text = {0};
	if (getrandom(&around.hash_key, sizeof(around.hash_key), 0) != sizeof(around.hash_key))
		return err_set(err, ERR_IO, "the operating system gives no random numbers");
	int code = agent_file_read(options->path, LIMIT_AGENT_FILE_BYTES + 1, &text, err);
	if (code == 0 && text.length > LIMIT_AGENT_FILE_BYTES)
		code = err_set(err, ERR_LIMIT, "`" TEXT_PATH_FMT "` is longer than %d bytes, the limit of a configuration file",
		               TEXT_PATH(options->path), LIMIT_AGENT_FILE_BYTES);
	if (code == 0)
		code = agent_config_parse(buf_str(&text), options, &around, config, err);
	buf_free(&text);
	return code;
}
