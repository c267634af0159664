#include "glue/load.h"

#include "base/text.h"

/* ---- Where ------------------------------------------------------------------------------------------------------- */

size_t glue_enter(struct glue_load *load, struct str part)
{
	size_t where = load->where.length;
	if (where > 0)
		buf_put_char(&load->where, '.');
	buf_put(&load->where, part);
	return where;
}

void glue_leave(struct glue_load *load, size_t where)
{
	load->where.length = where;
	if (load->where.at != NULL)
		load->where.at[where] = '\0';
}

/* ---- Findings ---------------------------------------------------------------------------------------------------- */

static struct str keep(struct glue_load *load, struct str text)
{
	return str_make(arena_copy(&load->scratch, text.at, text.length), text.length);
}

static void add(struct glue_load *load, int code, yaml_mark_t mark, struct str message)
{
	load->errors_count += code != 0;
	if (load->findings_count == LIMIT_GLUE_FINDINGS)
		return;
	/* Aliases bring one node, and what is wrong with it, more than once. */
	for (uint32_t i = 0; i < load->findings_count; i++) {
		const struct glue_finding *other = &load->findings[i];
		if (other->line == mark.line + 1 && other->column == mark.column + 1 && str_equal(other->message, message))
			return;
	}
	load->codes[load->findings_count] = code;
	load->findings[load->findings_count++] = (struct glue_finding){
		.severity = code == 0 ? GLUE_WARNING : GLUE_ERROR,
		.line = (uint32_t)mark.line + 1,
		.column = (uint32_t)mark.column + 1,
		.where = keep(load, buf_str(&load->where)),
		.message = keep(load, message),
	};
}

void glue_load_told(void *context, int code, yaml_mark_t mark, struct str text)
{
	add(context, code, mark, text);
}

__attribute__((format(printf, 4, 0))) static void vtell(struct glue_load *load, int code, yaml_mark_t mark,
                                                        const char *format, va_list arguments)
{
	struct buf text = {0};
	buf_vprintf(&text, format, arguments);
	add(load, code, mark, buf_str(&text));
	buf_free(&text);
}

void glue_complain(struct glue_load *load, int code, yaml_mark_t mark, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vtell(load, code, mark, format, arguments);
	va_end(arguments);
}

void glue_warn(struct glue_load *load, yaml_mark_t mark, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vtell(load, 0, mark, format, arguments);
	va_end(arguments);
}

static bool comes_before(const struct glue_finding *a, const struct glue_finding *b)
{
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* In the order of the file; two at one place stay as they are. There are few. */
static void sort(struct glue_load *load)
{
	for (uint32_t i = 1; i < load->findings_count; i++) {
		struct glue_finding finding = load->findings[i];
		int code = load->codes[i];
		uint32_t at = i;
		for (; at > 0 && comes_before(&finding, &load->findings[at - 1]); at--) {
			load->findings[at] = load->findings[at - 1];
			load->codes[at] = load->codes[at - 1];
		}
		load->findings[at] = finding;
		load->codes[at] = code;
	}
}

int glue_load_finish(struct glue_load *load, struct err *err)
{
	int code = 0;
	sort(load);
	for (uint32_t i = 0; i < load->findings_count; i++) {
		const struct glue_finding *finding = &load->findings[i];
		if (code == 0 && load->codes[i] != 0)
			code = err_set(err, load->codes[i], TEXT_PATH_FMT ":%u:%u: %.*s", TEXT_PATH(load->options->path),
			               finding->line, finding->column, STR_FMT(finding->message));
		if (load->options->finding != NULL)
			load->options->finding(load->options->context, finding);
	}
	/* A hundred warnings, then an error. */
	if (code == 0 && load->errors_count > 0)
		code = err_set(err, ERR_LIMIT, TEXT_PATH_FMT ": more than %d findings", TEXT_PATH(load->options->path),
		               LIMIT_GLUE_FINDINGS);
	return code;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

struct str glue_copy(struct glue_load *load, struct str text)
{
	return str_make(arena_copy(load->arena, text.at, text.length), text.length);
}

bool glue_mapping(struct glue_load *load, const struct yaml_entry *entry, const char *example, uint32_t most)
{
	if (yaml_check_mapping(&load->yaml, entry->value, entry->key, example) != 0)
		return false;
	size_t count = yaml_entries_count(entry->value);
	if (count <= most)
		return true;
	glue_complain(load, ERR_LIMIT, entry->key_node->start_mark, TEXT_NAME_FMT " has %zu entries; the limit is %u",
	              TEXT_NAME(entry->key), count, most);
	return false;
}

bool glue_keys(struct glue_load *load, const struct yaml_entry *owner, const char *const *keys, const char *example,
               struct yaml_entry *found)
{
	if (yaml_check_mapping(&load->yaml, owner->value, owner->key, example) != 0)
		return false;
	for (size_t i = 0; i < yaml_entries_count(owner->value); i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, owner->value, i);
		int key = yaml_choose(&load->yaml, entry.key_node, keys, "key");
		if (key >= 0)
			found[key] = entry;
	}
	return true;
}

static bool take_text(struct glue_load *load, yaml_mark_t mark, struct str key, struct str text, size_t most,
                      struct str *out)
{
	if (text.length > most) {
		glue_complain(load, ERR_LIMIT, mark, TEXT_NAME_FMT " is " TEXT_NAME_FMT ", of %zu bytes; the limit is %zu",
		              TEXT_NAME(key), TEXT_NAME(text), text.length, most);
		return false;
	}
	*out = glue_copy(load, text);
	return true;
}

bool glue_text(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *text)
{
	if (yaml_check_value(&load->yaml, entry, what) != 0)
		return false;
	return take_text(load, entry->value->start_mark, entry->key, yaml_text(entry->value), LIMIT_GLUE_TEXT_BYTES, text);
}

bool glue_name(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *name)
{
	if (yaml_check_value(&load->yaml, entry, what) != 0)
		return false;
	return take_text(load, entry->value->start_mark, entry->key, yaml_text(entry->value), LIMIT_GLUE_NAME_BYTES, name);
}

bool glue_key_name(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *name)
{
	return take_text(load, entry->key_node->start_mark, str_of(what), entry->key, LIMIT_GLUE_NAME_BYTES, name);
}

bool glue_flag(struct glue_load *load, const struct yaml_entry *entry, bool *flag)
{
	static const char *const words[] = {"false", "true", NULL};
	int word;
	if (!glue_word(load, entry, words, "value", &word))
		return false;
	*flag = word == 1;
	return true;
}

bool glue_word(struct glue_load *load, const struct yaml_entry *entry, const char *const *words, const char *what,
               int *word)
{
	if (yaml_check_value(&load->yaml, entry, "a single word") != 0)
		return false;
	int chosen = yaml_choose(&load->yaml, entry->value, words, what);
	if (chosen >= 0)
		*word = chosen;
	return chosen >= 0;
}

bool glue_number(struct glue_load *load, const struct yaml_entry *entry, const char *what, uint32_t least,
                 uint32_t most, uint32_t *number)
{
	if (yaml_check_value(&load->yaml, entry, what) != 0)
		return false;
	struct str text = yaml_text(entry->value);
	uint64_t value = 0;
	bool digits = true;
	for (size_t i = 0; i < text.length; i++) {
		digits &= text.at[i] >= '0' && text.at[i] <= '9';
		value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(text.at[i] - '0');
	}
	if (digits && value >= least && value <= most) {
		*number = (uint32_t)value;
		return true;
	}
	glue_complain(load, ERR_INVALID, entry->value->start_mark,
	              TEXT_NAME_FMT " has " TEXT_NAME_FMT "; it has to be %s, a whole number from %u to %u",
	              TEXT_NAME(entry->key), TEXT_NAME(text), what, least, most);
	return false;
}

bool glue_is_pointer(struct str text)
{
	if (text.length > 0 && text.at[0] != '/')
		return false;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] == '~' && (i + 1 == text.length || (text.at[i + 1] != '0' && text.at[i + 1] != '1')))
			return false;
	}
	return text.length <= LIMIT_GLUE_TEXT_BYTES;
}

bool glue_check_pointer(struct glue_load *load, yaml_mark_t mark, struct str pointer)
{
	if (glue_is_pointer(pointer))
		return true;
	glue_complain(load, ERR_INVALID, mark,
	              TEXT_NAME_FMT " is no JSON pointer; one looks like `/image/id`, with `*` for any element or member, "
	                            "`~1` for a `/` in a name, and has at most %d bytes",
	              TEXT_NAME(pointer), LIMIT_GLUE_TEXT_BYTES);
	return false;
}

bool glue_pointer(struct glue_load *load, const struct yaml_entry *entry, struct str *pointer)
{
	/* "", in quotes, is the whole. */
	if (entry->value->type == YAML_SCALAR_NODE && yaml_text(entry->value).length == 0 && !yaml_is_null(entry->value)) {
		*pointer = STR("");
		return true;
	}
	return glue_text(load, entry, "a JSON pointer, such as `/image/id`", pointer) &&
	       glue_check_pointer(load, entry->value->start_mark, *pointer);
}

/* RFC 9110, 5.6.2. */
bool glue_is_token(struct str text)
{
	for (size_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!plain && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return text.length > 0;
}

size_t glue_list_count(const yaml_node_t *node)
{
	return node->type == YAML_SEQUENCE_NODE ? yaml_items_count(node) : 1;
}

struct yaml_entry glue_list_item(struct glue_load *load, const struct yaml_entry *list, size_t index)
{
	struct yaml_entry item = *list;
	if (list->value->type == YAML_SEQUENCE_NODE)
		item.value = yaml_item_at(&load->yaml, list->value, index);
	return item;
}

struct glue_texts glue_list(struct glue_load *load, const struct yaml_entry *entry, uint32_t most,
                            bool (*read)(struct glue_load *, const struct yaml_entry *, struct str *))
{
	struct glue_texts texts = {0};
	size_t count = glue_list_count(entry->value);
	if (count > most) {
		glue_complain(load, ERR_LIMIT, entry->value->start_mark, TEXT_NAME_FMT " has %zu values; the limit is %u",
		              TEXT_NAME(entry->key), count, most);
		return texts;
	}
	texts.at = arena_array(load->arena, struct str, count);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry item = glue_list_item(load, entry, i);
		struct str text;
		if (!read(load, &item, &text))
			continue;
		bool twice = false;
		for (uint32_t j = 0; j < texts.count; j++)
			twice |= str_equal(texts.at[j], text);
		if (twice)
			glue_complain(load, ERR_CONFLICT, item.value->start_mark,
			              TEXT_NAME_FMT " has " TEXT_NAME_FMT " twice; once is enough", TEXT_NAME(entry->key),
			              TEXT_NAME(text));
		else
			texts.at[texts.count++] = text;
	}
	return texts;
}
