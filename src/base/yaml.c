#include "base/yaml.h"

#include "base/check.h"
#include "base/map.h"
#include "base/text.h"

/* ---- Complaints ------------------------------------------------------------------------------------------------- */

int yaml_vfail(const struct yaml_reader *reader, int code, yaml_mark_t mark, const char *format, va_list arguments)
{
	struct buf text = {0};
	buf_vprintf(&text, format, arguments);
	err_set(reader->err, code, TEXT_PATH_FMT ":%zu:%zu: %s", TEXT_PATH(reader->path), mark.line + 1, mark.column + 1,
	        buf_c(&text));
	if (reader->complained != NULL)
		reader->complained(reader->context, code, mark, buf_str(&text));
	buf_free(&text);
	return code;
}

int yaml_fail(const struct yaml_reader *reader, int code, yaml_mark_t mark, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	yaml_vfail(reader, code, mark, format, arguments);
	va_end(arguments);
	return code;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

struct str yaml_text(const yaml_node_t *node)
{
	return str_make((const char *)node->data.scalar.value, node->data.scalar.length);
}

bool yaml_is_null(const yaml_node_t *node)
{
	if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	struct str text = yaml_text(node);
	return text.length == 0 || str_equal(text, STR("~")) || str_equal_nocase(text, STR("null"));
}

bool yaml_is_empty(const yaml_node_t *node)
{
	return yaml_is_null(node) || (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0);
}

const char *yaml_kind(const yaml_node_t *node)
{
	if (node->type == YAML_MAPPING_NODE)
		return "a mapping";
	if (node->type == YAML_SEQUENCE_NODE)
		return "a list";
	return yaml_is_empty(node) ? "empty" : "a single value";
}

size_t yaml_entries_count(const yaml_node_t *node)
{
	if (node->type != YAML_MAPPING_NODE)
		return 0;
	return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
}

struct yaml_entry yaml_entry_at(const struct yaml_reader *reader, const yaml_node_t *node, size_t index)
{
	CHECK(index < yaml_entries_count(node));
	yaml_node_pair_t pair = node->data.mapping.pairs.start[index];
	struct yaml_entry entry = {.key_node = yaml_document_get_node(reader->document, pair.key),
	                           .value = yaml_document_get_node(reader->document, pair.value)};
	if (entry.key_node->type == YAML_SCALAR_NODE)
		entry.key = yaml_text(entry.key_node);
	return entry;
}

size_t yaml_items_count(const yaml_node_t *node)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return 0;
	return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

const yaml_node_t *yaml_item_at(const struct yaml_reader *reader, const yaml_node_t *node, size_t index)
{
	CHECK(index < yaml_items_count(node));
	return yaml_document_get_node(reader->document, node->data.sequence.items.start[index]);
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

int yaml_check_printable(const struct yaml_reader *reader, const yaml_node_t *node)
{
	struct str text = yaml_text(node);
	if (text_is_printable(text))
		return 0;
	return yaml_fail(reader, ERR_INVALID, node->start_mark,
	                 TEXT_NAME_FMT " contains a control character; only printable text is accepted", TEXT_NAME(text));
}

static int check_key(const struct yaml_reader *reader, const struct yaml_entry *entry, struct str owner)
{
	if (entry->key_node->type != YAML_SCALAR_NODE)
		return yaml_fail(reader, ERR_INVALID, entry->key_node->start_mark,
		                 "a key of " TEXT_NAME_FMT " is %s; keys have to be names", TEXT_NAME(owner),
		                 yaml_kind(entry->key_node));
	if (entry->key.length == 0)
		return yaml_fail(reader, ERR_INVALID, entry->key_node->start_mark,
		                 "a key of " TEXT_NAME_FMT " is empty; keys have to be names", TEXT_NAME(owner));
	return yaml_check_printable(reader, entry->key_node);
}

/* Each key is a name, and there once. */
static int check_keys(const struct yaml_reader *reader, const yaml_node_t *node, struct str owner)
{
	struct map seen;
	map_init(&seen, reader->hash_key);
	int code = 0;
	for (size_t i = 0; code == 0 && i < yaml_entries_count(node); i++) {
		struct yaml_entry entry = yaml_entry_at(reader, node, i);
		code = check_key(reader, &entry, owner);
		if (code != 0)
			break;
		const yaml_node_t *before = map_set(&seen, entry.key, (void *)entry.key_node);
		if (before != NULL)
			code = yaml_fail(reader, ERR_CONFLICT, entry.key_node->start_mark,
			                 TEXT_NAME_FMT " is here for the second time; the first is in line %zu",
			                 TEXT_NAME(entry.key), before->start_mark.line + 1);
	}
	map_free(&seen);
	return code;
}

int yaml_check_mapping(struct yaml_reader *reader, const yaml_node_t *node, struct str owner, const char *example)
{
	if (node->type != YAML_MAPPING_NODE && !yaml_is_null(node))
		return yaml_fail(reader, ERR_INVALID, node->start_mark,
		                 TEXT_NAME_FMT " is %s; it has to be a mapping, such as `%s`", TEXT_NAME(owner),
		                 yaml_kind(node), example);
	reader->entries += yaml_entries_count(node);
	size_t most = reader->format->bytes / LIMIT_YAML_ENTRY_BYTES;
	if (reader->entries > most)
		return yaml_fail(reader, ERR_LIMIT, node->start_mark,
		                 "aliases make this more than %zu entries, the limit of %s", most, reader->format->thing);
	return check_keys(reader, node, owner);
}

int yaml_check_value(const struct yaml_reader *reader, const struct yaml_entry *entry, const char *what)
{
	const yaml_node_t *value = entry->value;
	if (value->type != YAML_SCALAR_NODE || yaml_is_empty(value))
		return yaml_fail(reader, ERR_INVALID, value->start_mark, TEXT_NAME_FMT " is %s; it has to be %s",
		                 TEXT_NAME(entry->key), yaml_kind(value), what);
	return yaml_check_printable(reader, value);
}

int yaml_choose(const struct yaml_reader *reader, const yaml_node_t *node, const char *const *words, const char *what)
{
	struct str text = yaml_text(node);
	struct suggest suggest;
	struct buf accepted = {0};
	suggest_start(&suggest, text);
	for (int i = 0; words[i] != NULL; i++) {
		if (str_equal(text, str_of(words[i]))) {
			buf_free(&accepted);
			return i;
		}
		suggest_offer(&suggest, str_of(words[i]));
		buf_printf(&accepted, "%s`%s`", i == 0 ? "" : words[i + 1] == NULL ? " and " : ", ", words[i]);
	}
	char meant[TEXT_SUGGESTION_BYTES];
	int code = yaml_fail(reader, ERR_INVALID, node->start_mark, "unknown %s " TEXT_NAME_FMT ": accepted are %s%s", what,
	                     TEXT_NAME(text), buf_c(&accepted), text_did_you_mean(&suggest, meant));
	buf_free(&accepted);
	return code;
}

/* ---- libyaml ---------------------------------------------------------------------------------------------------- */

/* What libyaml found wrong. Its reader, which meets broken encodings, knows the byte and not the line. */
static int fail_parser(const struct yaml_reader *reader, const yaml_parser_t *parser, struct str text)
{
	yaml_mark_t mark = parser->problem_mark;
	if (parser->error == YAML_MEMORY_ERROR)
		return yaml_fail(reader, ERR_NO_MEMORY, mark, "out of memory");
	if (parser->error == YAML_READER_ERROR) {
		mark = (yaml_mark_t){0};
		for (size_t i = 0; i < parser->problem_offset && i < text.length; i++) {
			mark.column = text.at[i] == '\n' ? 0 : mark.column + 1;
			mark.line += text.at[i] == '\n';
		}
	}
	return yaml_fail(reader, ERR_INVALID, mark, "not valid YAML: %s%s%s",
	                 parser->context != NULL ? parser->context : "", parser->context != NULL ? ", " : "",
	                 parser->problem != NULL ? parser->problem : "unknown problem");
}

static bool has_anchor(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT: return event->data.scalar.anchor != NULL;
	case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.anchor != NULL;
	case YAML_MAPPING_START_EVENT: return event->data.mapping_start.anchor != NULL;
	default: return false;
	}
}

struct survey {
	int nesting;
	int anchors;
	int documents;
};

static int survey_event(const struct yaml_reader *reader, struct survey *survey, const yaml_event_t *event)
{
	survey->nesting += event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
	survey->nesting -= event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
	survey->documents += event->type == YAML_DOCUMENT_START_EVENT;
	survey->anchors += has_anchor(event);
	if (survey->nesting > LIMIT_YAML_NESTING)
		return yaml_fail(reader, ERR_LIMIT, event->start_mark, "nested too deeply; %s goes no deeper than %s",
		                 reader->format->file, reader->format->deepest);
	if (survey->documents > 1)
		return yaml_fail(reader, ERR_INVALID, event->start_mark, "a second document begins here; %s has one",
		                 reader->format->file);
	if (survey->anchors > LIMIT_YAML_ANCHORS)
		return yaml_fail(reader, ERR_LIMIT, event->start_mark, "more than %d anchors", LIMIT_YAML_ANCHORS);
	return 0;
}

static int survey_text(const struct yaml_reader *reader, yaml_parser_t *parser, struct str text)
{
	struct survey survey = {0};
	int code = 0;
	for (bool more = true; code == 0 && more;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return fail_parser(reader, parser, text);
		code = survey_event(reader, &survey, &event);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	if (code == 0 && survey.documents == 0)
		return yaml_fail(reader, ERR_INVALID, (yaml_mark_t){0}, "the file is empty; %s", reader->format->least);
	return code;
}

static void parser_start(yaml_parser_t *parser, struct str text)
{
	CHECK(yaml_parser_initialize(parser));
	yaml_parser_set_input_string(parser, (const unsigned char *)text.at, text.length);
}

int yaml_read(struct yaml_reader *reader, struct str text, int (*read)(void *context, const yaml_node_t *root),
              void *context)
{
	yaml_parser_t parser;
	parser_start(&parser, text);
	int code = survey_text(reader, &parser, text);
	yaml_parser_delete(&parser);
	if (code != 0)
		return code;

	parser_start(&parser, text);
	yaml_document_t document;
	if (yaml_parser_load(&parser, &document)) {
		reader->document = &document;
		reader->entries = 0;
		code = read(context, yaml_document_get_root_node(&document));
		reader->document = NULL;
		yaml_document_delete(&document);
	} else {
		code = fail_parser(reader, &parser, text);
	}
	yaml_parser_delete(&parser);
	return code;
}
