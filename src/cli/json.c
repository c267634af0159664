/* JSON values: looked into, and written for programs as JSON or YAML. */
#include "cli/client.h"

#include "base/timestamp.h"

struct str cli_json_text(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value)) : STR("");
}

bool cli_json_number(const json_t *object, const char *name, double *number)
{
	const json_t *value = json_object_get(object, name);
	*number = json_number_value(value);
	return json_is_number(value);
}

bool cli_json_time(const json_t *object, const char *name, int64_t *ms)
{
	return timestamp_parse(cli_json_text(object, name), ms);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* What jansson has written: all but ASCII is inside strings, and there \u may stand for what a terminal would act on. */
static void put_escaped(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.length;) {
		uint32_t code_point;
		size_t bytes = utf8_decode(str_make(text.at + i, text.length - i), &code_point);
		if (bytes > 0 && text_is_control(code_point))
			buf_printf(out, "\\u%04x", (unsigned)code_point);
		else
			buf_put(out, str_make(text.at + i, bytes > 0 ? bytes : 1));
		i += bytes > 0 ? bytes : 1;
	}
}

static void put_value(struct buf *out, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	if (text != NULL)
		put_escaped(out, str_of(text));
	free(text);
}

void cli_put_json(struct buf *out, json_t *value)
{
	put_value(out, value);
	buf_put_char(out, '\n');
}

/* ---- YAML ------------------------------------------------------------------------------------------------------- */

/* Without quotes where nobody can take it for anything but a string: YAML 1.1 has many words for true and null. */
static bool is_plain_key(struct str key)
{
	static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_equal_nocase(key, str_of(words[i])))
			return false;
	}
	for (size_t i = 0; i < key.length; i++) {
		char c = key.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '-')))
			return false;
	}
	return key.length > 0;
}

/* A string of JSON is a string of YAML in double quotes. */
static void put_key(struct buf *out, const char *key)
{
	if (is_plain_key(str_of(key))) {
		buf_put(out, str_of(key));
		return;
	}
	json_t *text = json_string(key);
	put_value(out, text);
	json_decref(text);
}

static bool is_block(const json_t *value)
{
	return (json_is_object(value) && json_object_size(value) > 0) ||
	       (json_is_array(value) && json_array_size(value) > 0);
}

static void put_yaml(struct buf *out, const json_t *value, unsigned depth, bool behind_dash);

static void put_yaml_item(struct buf *out, const json_t *value, unsigned depth)
{
	buf_put_repeat(out, ' ', 2 * (size_t)depth);
	buf_put(out, STR("- "));
	if (is_block(value) && json_is_object(value)) {
		put_yaml(out, value, depth + 1, true);
		return;
	}
	/* A list in a list, or the depths of a tree: JSON is YAML, too. */
	put_value(out, value);
	buf_put_char(out, '\n');
}

static void put_yaml_entry(struct buf *out, const char *key, const json_t *value, unsigned depth)
{
	enum { DEPTH_MOST = 16 };
	put_key(out, key);
	buf_put_char(out, ':');
	if (is_block(value) && depth < DEPTH_MOST) {
		buf_put_char(out, '\n');
		put_yaml(out, value, json_is_array(value) ? depth : depth + 1, false);
		return;
	}
	buf_put_char(out, ' ');
	put_value(out, value);
	buf_put_char(out, '\n');
}

static void put_yaml(struct buf *out, const json_t *value, unsigned depth, bool behind_dash)
{
	const char *key;
	size_t index;
	json_t *part;
	json_array_foreach(value, index, part)
	{
		put_yaml_item(out, part, depth);
	}
	json_object_foreach((json_t *)value, key, part)
	{
		if (!behind_dash)
			buf_put_repeat(out, ' ', 2 * (size_t)depth);
		behind_dash = false;
		put_yaml_entry(out, key, part, depth);
	}
}

void cli_put_yaml(struct buf *out, const json_t *value)
{
	if (is_block(value)) {
		put_yaml(out, value, 0, false);
		return;
	}
	put_value(out, value);
	buf_put_char(out, '\n');
}
