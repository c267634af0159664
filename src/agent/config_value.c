/* Single values of the configuration: what is accepted, and what is said of anything else. */
#include "agent/config_int.h"

#include "base/check.h"

int config_value_of(struct config_load *load, const struct yaml_entry *entry, const char *what,
                    struct config_value *value)
{
	int code = yaml_check_value(&load->yaml, entry, what);
	if (code == 0)
		*value =
			(struct config_value){.key = entry->key, .text = yaml_text(entry->value), .mark = entry->value->start_mark};
	return code;
}

int config_value_fail(struct config_load *load, const struct config_value *value, int code, const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	if (value->from != NULL)
		err_set(load->yaml.err, code, "%s%s", value->from, buf_c(&text));
	else
		yaml_fail(&load->yaml, code, value->mark, TEXT_NAME_FMT "%s", TEXT_NAME(value->key), buf_c(&text));
	buf_free(&text);
	return code;
}

struct str config_copy(struct config_load *load, struct str text)
{
	return str_make(arena_copy(&load->config->arena, text.at, text.length), text.length);
}

size_t config_list_count(const yaml_node_t *node)
{
	return node->type == YAML_SEQUENCE_NODE ? yaml_items_count(node) : 1;
}

struct yaml_entry config_list_item(struct config_load *load, const struct yaml_entry *list, size_t index)
{
	struct yaml_entry item = *list;
	if (list->value->type == YAML_SEQUENCE_NODE)
		item.value = yaml_item_at(&load->yaml, list->value, index);
	return item;
}

const char *config_path(struct config_load *load, struct str text)
{
	const char *slash = strrchr(load->options->path, '/');
	struct buf path = {0};
	if (text.at[0] != '/' && slash != NULL)
		buf_put(&path, str_make(load->options->path, (size_t)(slash + 1 - load->options->path)));
	buf_put(&path, text);
	const char *copy = config_copy(load, buf_str(&path)).at;
	buf_free(&path);
	return copy;
}

/* ---- Names and words -------------------------------------------------------------------------------------------- */

int config_name(struct config_load *load, const struct config_value *value, struct str *name)
{
	if (value->text.length == 0)
		return config_value_fail(load, value, ERR_INVALID, " is empty; it has to be a name");
	if (!text_is_printable(value->text))
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT
		                         ", which contains a control character; only printable text is accepted",
		                         TEXT_NAME(value->text));
	if (value->text.length > LIMIT_AGENT_NAME_BYTES)
		return config_value_fail(load, value, ERR_LIMIT, " is " TEXT_NAME_FMT ", of %zu bytes; the limit is %d",
		                         TEXT_NAME(value->text), value->text.length, LIMIT_AGENT_NAME_BYTES);
	*name = config_copy(load, value->text);
	return 0;
}

int config_check_key(struct config_load *load, const struct yaml_entry *entry, const char *what)
{
	if (entry->key.length <= LIMIT_AGENT_NAME_BYTES)
		return 0;
	return yaml_fail(&load->yaml, ERR_LIMIT, entry->key_node->start_mark,
	                 "the name of %s, " TEXT_NAME_FMT ", has %zu bytes; the limit is %d", what, TEXT_NAME(entry->key),
	                 entry->key.length, LIMIT_AGENT_NAME_BYTES);
}

int config_word(struct config_load *load, const struct config_value *value, const char *const *words)
{
	struct suggest suggest;
	struct buf accepted = {0};
	char meant[TEXT_SUGGESTION_BYTES];
	int code = -1;
	suggest_start(&suggest, value->text);
	for (int i = 0; words[i] != NULL && code < 0; i++) {
		if (str_equal(value->text, str_of(words[i])))
			code = i;
		suggest_offer(&suggest, str_of(words[i]));
		buf_printf(&accepted, "%s`%s`", i == 0 ? "" : words[i + 1] == NULL ? " and " : ", ", words[i]);
	}
	if (code < 0)
		code = config_value_fail(load, value, ERR_INVALID, " is " TEXT_NAME_FMT "; accepted are %s%s",
		                         TEXT_NAME(value->text), buf_c(&accepted), text_did_you_mean(&suggest, meant));
	buf_free(&accepted);
	return code;
}

int config_keys(struct config_load *load, const yaml_node_t *node, const char *const *keys, struct yaml_entry *found)
{
	for (size_t i = 0; i < yaml_entries_count(node); i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, i);
		int key = yaml_choose(&load->yaml, entry.key_node, keys, "key");
		if (key < 0)
			return key;
		found[key] = entry;
	}
	return 0;
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* A decimal number at the start of a text, in millionths, and what follows it. */
struct number {
	uint64_t millionths;
	struct str unit;
	bool whole; /* without a fraction */
};

enum { MILLION = 1000000 };
static const uint64_t number_most = UINT64_C(1000000000000);

static bool is_digit(struct str text, size_t at)
{
	return at < text.length && text.at[at] >= '0' && text.at[at] <= '9';
}

/* False if it does not start with a number, or with one that is finer or greater than anything here. */
static bool number_read(struct str text, struct number *number)
{
	uint64_t value = 0;
	size_t at = 0;
	for (; is_digit(text, at); at++) {
		value = value * 10 + (uint64_t)(text.at[at] - '0');
		if (value > number_most)
			return false;
	}
	if (at == 0)
		return false;
	value *= MILLION;
	number->whole = true;
	if (at < text.length && text.at[at] == '.') {
		uint64_t weight = MILLION / 10;
		number->whole = false;
		if (!is_digit(text, ++at))
			return false;
		for (; is_digit(text, at); at++, weight /= 10) {
			if (weight == 0 && text.at[at] != '0')
				return false;
			value += weight * (uint64_t)(text.at[at] - '0');
		}
	}
	number->millionths = value;
	while (at < text.length && text.at[at] == ' ')
		at++;
	number->unit = str_make(text.at + at, text.length - at);
	return true;
}

static bool in_range(uint64_t value, struct config_range range)
{
	return (value >= range.least && value <= range.most) || (range.zero && value == 0);
}

int config_count(struct config_load *load, const struct config_value *value, struct config_range range, uint32_t *count)
{
	struct number number;
	if (number_read(value->text, &number) && number.whole && number.unit.length == 0 &&
	    in_range(number.millionths / MILLION, range)) {
		*count = (uint32_t)(number.millionths / MILLION);
		return 0;
	}
	return config_value_fail(load, value, ERR_INVALID,
	                         " is " TEXT_NAME_FMT "; it has to be a whole number from %llu to %llu",
	                         TEXT_NAME(value->text), (unsigned long long)range.least, (unsigned long long)range.most);
}

static void put_size(struct buf *out, uint64_t bytes)
{
	if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
		buf_printf(out, "%lluMiB", (unsigned long long)bytes >> 20);
	else if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
		buf_printf(out, "%lluKiB", (unsigned long long)bytes >> 10);
	else
		buf_printf(out, "%llu bytes", (unsigned long long)bytes);
}

static bool size_read(struct str text, uint64_t *bytes)
{
	static const struct {
		const char *unit;
		uint64_t bytes;
	} units[] = {{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}};
	struct number number;
	if (!number_read(text, &number) || !number.whole)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (str_equal(number.unit, str_of(units[i].unit)))
			return !__builtin_mul_overflow(number.millionths / MILLION, units[i].bytes, bytes);
	}
	return false;
}

int config_size(struct config_load *load, const struct config_value *value, struct config_range range, uint32_t *bytes)
{
	uint64_t read;
	if (size_read(value->text, &read) && in_range(read, range)) {
		*bytes = (uint32_t)read;
		return 0;
	}
	struct buf least = {0}, most = {0};
	put_size(&least, range.least);
	put_size(&most, range.most);
	int code = config_value_fail(load, value, ERR_INVALID,
	                             " is " TEXT_NAME_FMT "; it has to be a size from %s to %s: a number of bytes, or with "
	                             "`KiB` or `MiB` behind it",
	                             TEXT_NAME(value->text), buf_c(&least), buf_c(&most));
	buf_free(&least);
	buf_free(&most);
	return code;
}

/* ---- Durations -------------------------------------------------------------------------------------------------- */

static const struct {
	const char *unit;
	uint64_t us;
} duration_units[] = {
	{"us", 1}, {"ms", 1000}, {"s", MILLION}, {"min", UINT64_C(60) * MILLION}, {"h", UINT64_C(3600) * MILLION}};

enum { DURATION_UNITS = sizeof(duration_units) / sizeof(duration_units[0]) };

static bool duration_read(struct str text, uint64_t *us)
{
	struct number number;
	if (!number_read(text, &number))
		return false;
	*us = 0;
	if (number.millionths == 0 && number.unit.length == 0)
		return true;
	for (size_t i = 0; i < DURATION_UNITS; i++) {
		uint64_t product;
		if (!str_equal(number.unit, str_of(duration_units[i].unit)))
			continue;
		if (__builtin_mul_overflow(number.millionths, duration_units[i].us, &product) || product % MILLION != 0)
			return false;
		*us = product / MILLION;
		return true;
	}
	return false;
}

/* In the greatest unit that makes it a whole number. */
static void put_duration(struct buf *out, uint64_t us)
{
	size_t unit = DURATION_UNITS - 1;
	while (unit > 0 && us % duration_units[unit].us != 0)
		unit--;
	if (us == 0)
		unit = 1;
	buf_printf(out, "%llu%s", (unsigned long long)(us / duration_units[unit].us), duration_units[unit].unit);
}

int config_duration(struct config_load *load, const struct config_value *value, struct config_range range_us,
                    uint64_t *duration_us)
{
	if (duration_read(value->text, duration_us) && in_range(*duration_us, range_us))
		return 0;
	struct buf least = {0}, most = {0};
	put_duration(&least, range_us.least);
	put_duration(&most, range_us.most);
	int code = config_value_fail(load, value, ERR_INVALID,
	                             " is " TEXT_NAME_FMT "; it has to be a duration from %s to %s%s: a number with `us`, "
	                             "`ms`, `s`, `min` or `h` behind it",
	                             TEXT_NAME(value->text), buf_c(&least), buf_c(&most),
	                             range_us.zero ? ", or 0 for no limit" : "");
	buf_free(&least);
	buf_free(&most);
	return code;
}

/* ---- Addresses -------------------------------------------------------------------------------------------------- */

int config_address(struct config_load *load, const struct config_value *value, struct http_address *address)
{
	struct err err = {0};
	int code = load->around->look_up(address, value->text, &err);
	return code == 0 ? 0 : config_value_fail(load, value, code, ": %s", err.text);
}

bool config_same_address(const struct http_address *a, const struct http_address *b)
{
	return a->length == b->length && memcmp(&a->socket, &b->socket, a->length) == 0;
}

const struct config_listener *config_listener_find(const struct config_load *load, const struct http_address *address)
{
	for (uint32_t i = 0; i < load->listeners_count; i++) {
		if (config_same_address(load->listeners[i].address, address))
			return &load->listeners[i];
	}
	return NULL;
}

int config_listen(struct config_load *load, const struct config_value *value, struct str name,
                  struct http_address *address)
{
	int code = config_address(load, value, address);
	if (code != 0)
		return code;
	const struct config_listener *other = config_listener_find(load, address);
	if (other != NULL)
		return config_value_fail(load, value, ERR_CONFLICT,
		                         " is " TEXT_NAME_FMT ", where " TEXT_NAME_FMT
		                         " listens already; each needs an address of its own",
		                         TEXT_NAME(value->text), TEXT_NAME(other->name));
	CHECK(load->listeners_count < sizeof(load->listeners) / sizeof(load->listeners[0]));
	load->listeners[load->listeners_count++] = (struct config_listener){.address = address, .name = name};
	return 0;
}
