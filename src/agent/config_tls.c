/* front_tls and instances_tls: the certificates of a service, for its clients and for its instances. */
#include "agent/config_int.h"

enum { CERTIFICATE, KEY, ROOTS, NAME, KEYS_COUNT };

/* One side while it is read. */
struct side {
	const struct yaml_entry *entry;
	struct yaml_entry found[KEYS_COUNT];
	struct config_value values[KEYS_COUNT]; /* of those that were found */
	struct buf texts[KEYS_COUNT];           /* of the files */
};

static void side_free(struct side *side)
{
	for (int i = 0; i < KEYS_COUNT; i++) {
		if (i == KEY && side->texts[i].at != NULL)
			explicit_bzero(side->texts[i].at, side->texts[i].capacity);
		buf_free(&side->texts[i]);
	}
}

/* Reads the file that a key names. A key is a secret, the others are for everybody. */
static int read_file(struct config_load *load, struct side *side, int key)
{
	struct config_value *value = &side->values[key];
	struct err err = {0};
	if (side->found[key].value == NULL)
		return 0;
	int code = config_value_of(load, &side->found[key], "the path of a PEM file, such as tls/front.pem", value);
	if (code != 0)
		return code;
	const char *path = config_path(load, value->text);
	code = load->around->read(path, key == KEY, LIMIT_AGENT_PEM_BYTES + 1, &side->texts[key], &err);
	if (code != 0)
		return config_value_fail(load, value, code, ": %s", err.text);
	if (side->texts[key].length > LIMIT_AGENT_PEM_BYTES)
		return config_value_fail(load, value, ERR_LIMIT,
		                         " is " TEXT_NAME_FMT ", which is longer than %d bytes, the limit of a PEM file",
		                         TEXT_NAME(value->text), LIMIT_AGENT_PEM_BYTES);
	return 0;
}

static int missing(struct config_load *load, const struct side *side, const char *key, const char *why)
{
	return yaml_fail(&load->yaml, ERR_INVALID, side->entry->key_node->start_mark,
	                 TEXT_NAME_FMT " has no `%s`, %s, such as `%s: tls/site.%s`", TEXT_NAME(side->entry->key), key, why,
	                 key, key[0] == 'k' ? "key" : "pem");
}

/* What is wrong with a file is told where it is named. The text begins with the key that http_tls_new() was given as a name. */
static int tell(struct config_load *load, const struct side *side, const char *const *keys, const struct err *err)
{
	for (int i = 0; i < KEYS_COUNT; i++) {
		size_t length = keys[i] != NULL ? strlen(keys[i]) : 0;
		if (length == 0 || side->values[i].text.at == NULL || strncmp(err->text, keys[i], length) != 0 ||
		    strncmp(err->text + length, ": ", 2) != 0)
			continue;
		return config_value_fail(load, &side->values[i], err->code, " is " TEXT_NAME_FMT "%s",
		                         TEXT_NAME(side->values[i].text), err->text + length);
	}
	return yaml_fail(&load->yaml, err->code, side->entry->key_node->start_mark, TEXT_NAME_FMT ": %s",
	                 TEXT_NAME(side->entry->key), err->text);
}

static int make_side(struct config_load *load, struct side *side, const char *const *keys, bool server,
                     struct http_tls **tls)
{
	struct err err = {0};
	struct http_tls_options options = {
		.server = server,
		.certificate_pem = buf_str(&side->texts[CERTIFICATE]),
		.key_pem = buf_str(&side->texts[KEY]),
		.roots_pem = buf_str(&side->texts[ROOTS]),
		.verify = server && side->found[ROOTS].value == NULL ? HTTP_TLS_VERIFY_NONE : HTTP_TLS_VERIFY_ALWAYS,
		.certificate_name = keys[CERTIFICATE],
		.key_name = keys[KEY],
		.roots_name = keys[ROOTS],
	};
	int code = http_tls_new(tls, &options, &err);
	return code == 0 ? 0 : tell(load, side, keys, &err);
}

static int read_side(struct config_load *load, struct side *side, const char *const *keys, const char *example)
{
	int code = yaml_check_mapping(&load->yaml, side->entry->value, side->entry->key, example);
	if (code == 0)
		code = config_keys(load, side->entry->value, keys, side->found);
	for (int i = CERTIFICATE; code == 0 && i <= ROOTS; i++)
		code = read_file(load, side, i);
	return code;
}

/* An empty list of roots would trust those of the system, which is not what is meant. */
static int check_roots(struct config_load *load, const struct side *side)
{
	if (side->found[ROOTS].value == NULL || side->texts[ROOTS].length > 0)
		return 0;
	return config_value_fail(load, &side->values[ROOTS], ERR_INVALID, " is " TEXT_NAME_FMT ", which is empty",
	                         TEXT_NAME(side->values[ROOTS].text));
}

int config_front_tls(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	static const char *const keys[] = {
		[CERTIFICATE] = "certificate", [KEY] = "key", [ROOTS] = "clients", [NAME] = NULL};
	struct side side = {.entry = entry};
	int code = read_side(load, &side, keys, "front_tls: {certificate: front.pem, key: front.key}");
	if (code == 0 && side.found[CERTIFICATE].value == NULL)
		code = missing(load, &side, "certificate", "which clients are shown");
	if (code == 0 && side.found[KEY].value == NULL)
		code = missing(load, &side, "key", "which belongs to the certificate");
	if (code == 0)
		code = check_roots(load, &side);
	if (code == 0)
		code = make_side(load, &side, keys, true, &service->front_tls);
	side_free(&side);
	return code;
}

/* ---- Instances -------------------------------------------------------------------------------------------------- */

/* A host, or an address: what may stand in a certificate. */
static int read_name(struct config_load *load, struct side *side, const char **name)
{
	static const char marks[] = ".-_:";
	struct config_value *value = &side->values[NAME];
	*name = NULL;
	if (side->found[NAME].value == NULL)
		return 0;
	int code = config_value_of(load, &side->found[NAME], "the name of a host, such as compute.internal", value);
	if (code != 0)
		return code;
	bool good = value->text.length <= LIMIT_AGENT_HOST_BYTES;
	for (size_t i = 0; good && i < value->text.length; i++) {
		char c = value->text.at[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		good = plain || (c != '\0' && strchr(marks, c) != NULL);
	}
	if (!good)
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT "; it has to be the name or the address of a host, of at most %d "
		                         "bytes, as it stands in the certificate of the instances",
		                         TEXT_NAME(value->text), LIMIT_AGENT_HOST_BYTES);
	*name = config_copy(load, value->text).at;
	return 0;
}

/* What stands before the port of an address, without brackets. */
static const char *host_of(struct config_load *load, const struct http_address *address)
{
	struct str host = str_of(address->text);
	const char *colon = strrchr(address->text, ':');
	if (colon != NULL)
		host.length = (size_t)(colon - host.at);
	if (host.length > 2 && host.at[0] == '[' && host.at[host.length - 1] == ']')
		host = str_make(host.at + 1, host.length - 2);
	return config_copy(load, host).at;
}

static void set_names(struct config_load *load, struct proxy_service *service, const char *name)
{
	const char **names = arena_array(&load->config->arena, const char *, service->instances_count);
	for (uint32_t i = 0; i < service->instances_count; i++)
		names[i] = name != NULL ? name : host_of(load, &service->instances[i]);
	service->instances_names = names;
}

int config_instances_tls(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	static const char *const keys[] = {
		[CERTIFICATE] = "certificate", [KEY] = "key", [ROOTS] = "ca", [NAME] = "name", NULL};
	struct side side = {.entry = entry};
	const char *name = NULL;
	int code = read_side(load, &side, keys, "instances_tls: {ca: ca.pem}");
	if (code == 0 && side.found[CERTIFICATE].value != NULL && side.found[KEY].value == NULL)
		code = missing(load, &side, "key", "which belongs to the certificate");
	if (code == 0 && side.found[KEY].value != NULL && side.found[CERTIFICATE].value == NULL)
		code = missing(load, &side, "certificate", "which the key belongs to");
	if (code == 0)
		code = check_roots(load, &side);
	if (code == 0)
		code = read_name(load, &side, &name);
	if (code == 0)
		code = make_side(load, &side, keys, false, &service->instances_tls);
	if (code == 0)
		set_names(load, service, name);
	side_free(&side);
	return code;
}
