/* Inside the reading of a configuration: config.c (the whole), config_value.c (single values), and a file for each part. */
#ifndef AGENT_CONFIG_INT_H
#define AGENT_CONFIG_INT_H

#include "agent/config.h"
#include "base/text.h"
#include "base/yaml.h"
#include "engine/ask.h"

/* The parts of the file, in the order in which complaints list them; those of enum agent_option come first. */
enum config_part {
	PART_SERVICES = AGENT_OPTIONS_COUNT,
	PART_SEEDS,
	PART_TAGS,
	PART_TIMEOUTS,
	PART_LIMITS,
	PART_POLICY,
	PART_WEBHOOKS,
	PARTS_COUNT,
};

/* An address that the agent listens on. */
struct config_listener {
	const struct http_address *address;
	struct str name; /* "api", or that of a service */
};

struct config_load {
	struct yaml_reader yaml;
	const struct agent_options *options;
	const struct agent_surroundings *around;
	struct proxy_config *config;
	const yaml_node_t *root;
	struct yaml_entry parts[PARTS_COUNT]; /* value NULL: not in the file */
	struct config_listener listeners[LIMIT_AGENT_SERVICES + 2];
	uint32_t listeners_count;
};

/* A single value, from the file or from elsewhere. */
struct config_value {
	struct str key;
	struct str text;
	yaml_mark_t mark;
	const char *from; /* the flag or variable; NULL: the file */
};

/* ---- Values (config_value.c) ------------------------------------------------------------------------------------ */

/* The value of an entry of the file. It has to be a single one; `what` says what of. */
int config_value_of(struct config_load *load, const struct yaml_entry *entry, const char *what,
                    struct config_value *value);

/* Complains: "`threads`" or "--threads", then the text. Returns the code. */
__attribute__((format(printf, 4, 5))) int config_value_fail(struct config_load *load, const struct config_value *value,
                                                            int code, const char *format, ...);

/* The value of an option, from wherever it is set; *given says whether it is. */
int config_option(struct config_load *load, enum agent_option option, const char *what, struct config_value *value,
                  bool *given);

/* A copy in the configuration's arena. */
struct str config_copy(struct config_load *load, struct str text);

/* A list, or a single value that stands for a list of one. */
size_t config_list_count(const yaml_node_t *node);
struct yaml_entry config_list_item(struct config_load *load, const struct yaml_entry *list, size_t index);

/* A path from the file: a relative one begins in the folder of the configuration. */
const char *config_path(struct config_load *load, struct str text);

/* Names, versions, tags: printable and not too long. The result is a copy. */
int config_name(struct config_load *load, const struct config_value *value, struct str *name);

/* The same for a key. */
int config_check_key(struct config_load *load, const struct yaml_entry *entry, const char *what);

/* An index into words, which end with NULL. */
int config_word(struct config_load *load, const struct config_value *value, const char *const *words);

/* A number in a range; `unit` is what it counts. */
struct config_range {
	uint64_t least;
	uint64_t most;
	bool zero; /* 0 is accepted too, and means: no limit */
};
int config_count(struct config_load *load, const struct config_value *value, struct config_range range,
                 uint32_t *count);
/* Bytes, with or without KiB or MiB. */
int config_size(struct config_load *load, const struct config_value *value, struct config_range range, uint32_t *bytes);
/* In µs: us, ms, s, min, h. */
int config_duration(struct config_load *load, const struct config_value *value, struct config_range range_us,
                    uint64_t *duration_us);

int config_address(struct config_load *load, const struct config_value *value, struct http_address *address);

/* An address to listen on, which nobody else here listens on. `address` stays where it is. */
int config_listen(struct config_load *load, const struct config_value *value, struct str name,
                  struct http_address *address);
/* Who listens there; NULL: nobody. */
const struct config_listener *config_listener_find(const struct config_load *load, const struct http_address *address);
bool config_same_address(const struct http_address *a, const struct http_address *b);

/* Reads the entries of a mapping whose keys are `keys` (the last is NULL) into found, which has a place for each. */
int config_keys(struct config_load *load, const yaml_node_t *node, const char *const *keys, struct yaml_entry *found);

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

int config_services(struct config_load *load); /* config_services.c */
int config_application(struct config_load *load);
int config_state(struct config_load *load); /* config_sites.c */
int config_advertise(struct config_load *load);
int config_seeds(struct config_load *load);
int config_tags(struct config_load *load);
int config_tag_list(struct config_load *load, const yaml_node_t *node, struct site_tag **tags, uint32_t *count);
int config_front_tls(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service);
int config_instances_tls(struct config_load *load, const struct yaml_entry *entry,
                         struct proxy_service *service); /* config_tls.c */
int config_policy(struct config_load *load);             /* config_policy.c */
int config_webhooks(struct config_load *load);           /* config_webhooks.c */

#endif
