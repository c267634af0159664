/* hop_key and hop_key_file: the secret by which agents know each other's requests. It is never shown in a complaint. */
#include "agent/config_int.h"

#include "agent/file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert(sizeof(((struct proxy_config *)NULL)->hop_key) == SHA256_DIGEST_LENGTH, "hop_key");

/* One secret may serve several purposes: this says which. */
static const struct str purpose = STR_INIT("cheops hop key 1\n");

static void derive(struct config_load *load, struct str secret)
{
	struct buf text = {0};
	buf_put(&text, purpose);
	buf_put(&text, secret);
	SHA256((const unsigned char *)text.at, text.length, (unsigned char *)load->config->hop_key);
	OPENSSL_cleanse(text.at, text.length);
	buf_free(&text);
}

static int check_length(struct config_load *load, const struct config_value *value, size_t length)
{
	if (length >= LIMIT_AGENT_KEY_LEAST_BYTES && length <= LIMIT_AGENT_KEY_BYTES)
		return 0;
	return config_value_fail(
		load, value, ERR_INVALID, " has %s%zu bytes; it has to have %d to %d, and be the same for all agents",
		length > LIMIT_AGENT_KEY_BYTES ? "at least " : "", length, LIMIT_AGENT_KEY_LEAST_BYTES, LIMIT_AGENT_KEY_BYTES);
}

static int read_inline(struct config_load *load, const struct yaml_entry *entry)
{
	const yaml_node_t *node = entry->value;
	if (node->type != YAML_SCALAR_NODE || yaml_is_empty(node))
		return yaml_fail(&load->yaml, ERR_INVALID, node->start_mark,
		                 "`hop_key` is %s; it has to be a secret of %d to %d bytes", yaml_kind(node),
		                 LIMIT_AGENT_KEY_LEAST_BYTES, LIMIT_AGENT_KEY_BYTES);
	struct config_value value = {.key = entry->key, .mark = node->start_mark};
	int code = check_length(load, &value, yaml_text(node).length);
	if (code == 0)
		derive(load, yaml_text(node));
	return code;
}

/* Relative paths begin in the folder of the configuration. */
static void put_path(struct buf *out, const char *config_path, struct str path)
{
	const char *slash = strrchr(config_path, '/');
	if (path.at[0] != '/' && slash != NULL)
		buf_put(out, str_make(config_path, (size_t)(slash + 1 - config_path)));
	buf_put(out, path);
}

static int read_key_text(struct config_load *load, const struct config_value *value, const char *path, struct buf *text)
{
	struct err err = {0};
	int code = agent_secret_read(path, LIMIT_AGENT_KEY_BYTES + 2, text, &err);
	if (code != 0)
		return config_value_fail(load, value, code, ": %s", err.text);
	if (text->length > 0 && text->at[text->length - 1] == '\n')
		text->length--;
	return check_length(load, value, text->length);
}

static int read_from_file(struct config_load *load, const struct yaml_entry *entry)
{
	struct config_value value;
	int code = config_value_of(load, entry, "the path of a file, such as /etc/cheops/hop.key", &value);
	if (code != 0)
		return code;
	struct buf path = {0}, text = {0};
	put_path(&path, load->options->path, value.text);
	code = read_key_text(load, &value, buf_c(&path), &text);
	if (code == 0)
		derive(load, buf_str(&text));
	if (text.at != NULL)
		OPENSSL_cleanse(text.at, text.capacity);
	buf_free(&text);
	buf_free(&path);
	return code;
}

int config_hop_key(struct config_load *load)
{
	const struct yaml_entry *inside = &load->parts[PART_HOP_KEY], *file = &load->parts[PART_HOP_KEY_FILE];
	if (inside->value != NULL && file->value != NULL)
		return yaml_fail(&load->yaml, ERR_CONFLICT, file->key_node->start_mark,
		                 "there are both `hop_key` and `hop_key_file`; only one of them is accepted");
	if (inside->value != NULL)
		return read_inline(load, inside);
	if (file->value != NULL)
		return read_from_file(load, file);
	if (load->config->peers_count > 0)
		return yaml_fail(&load->yaml, ERR_INVALID, load->parts[PART_PEERS].key_node->start_mark,
		                 "there are `peers`, but neither `hop_key` nor `hop_key_file`: the secret that all agents "
		                 "share, such as `hop_key_file: /etc/cheops/hop.key`");
	memcpy(load->config->hop_key, load->around->hop_key, sizeof(load->config->hop_key));
	return 0;
}
