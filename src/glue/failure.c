/* How a service tells its errors: what an agent itself has to say of a request is told in that form, since the clients of the
 * service know no other.
 *
 *     errors:
 *       type: application/json
 *       body: '{"{name}": {"code": {status}, "message": "{message}"}}'
 *       names: {404: itemNotFound, "*": computeFault}
 *
 * In the body, {status} and the other words are replaced; any other brace is one. What is put in is written as the type of the
 * content wants it, so that no text of ours can break the form.
 */
#include "glue/glue_int.h"
#include "glue/json.h"
#include "glue/load.h"

#include "base/text.h"

enum { STATUS, REASON, NAME, TYPE, TITLE, DETAIL, MESSAGE, WORDS };
static const char *const words[] = {[STATUS] = "status", [REASON] = "reason", [NAME] = "name",       [TYPE] = "type",
                                    [TITLE] = "title",   [DETAIL] = "detail", [MESSAGE] = "message", NULL};

enum form { PLAIN, JSON, MARKUP };

static bool mentions(struct str text, struct str word)
{
	for (size_t i = 0; i + word.length <= text.length; i++)
		if (str_equal_nocase(str_make(text.at + i, word.length), word))
			return true;
	return false;
}

static enum form form_of(struct str content_type)
{
	if (mentions(content_type, STR("json")))
		return JSON;
	return mentions(content_type, STR("html")) || mentions(content_type, STR("xml")) ? MARKUP : PLAIN;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_json(struct buf *out, struct str text)
{
	struct buf quoted = {0};
	buf_put_json(&quoted, text);
	buf_put(out, str_make(quoted.at + 1, quoted.length - 2));
	buf_free(&quoted);
}

static void put_plain(struct buf *out, struct str text, bool markup)
{
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (markup && (c == '<' || c == '>' || c == '&'))
			buf_put(out, c == '<' ? STR("&lt;") : c == '>' ? STR("&gt;") : STR("&amp;"));
		else
			buf_put_char(out, c < ' ' || c == 0x7f ? ' ' : (char)c);
	}
}

static void put_text(struct buf *out, enum form form, struct str text)
{
	if (form == JSON)
		put_json(out, text);
	else
		put_plain(out, text, form == MARKUP);
}

static struct str name_of(const struct glue_shape *shape, unsigned status)
{
	for (uint32_t i = 0; i < shape->names_count; i++)
		if (shape->names[i].status == status)
			return shape->names[i].name;
	return shape->other;
}

static void put_word(struct buf *out, const struct glue_shape *shape, const struct glue_failure *failure, int word)
{
	enum form form = form_of(shape->type);
	switch (word) {
	case STATUS: buf_put_number(out, failure->status, 3); break;
	case REASON: put_text(out, form, failure->reason); break;
	case NAME: put_text(out, form, name_of(shape, failure->status)); break;
	case TYPE: put_text(out, form, failure->type); break;
	case TITLE: put_text(out, form, failure->title); break;
	case DETAIL: put_text(out, form, failure->detail); break;
	default:
		put_text(out, form, failure->title);
		put_text(out, form, STR(": "));
		put_text(out, form, failure->detail);
		break;
	}
}

/* The length of `{word}` at the beginning of the text, where it is nothing but small letters; 0: it is none. */
static size_t braced(struct str text)
{
	size_t end = 1;
	if (text.length == 0 || text.at[0] != '{')
		return 0;
	while (end < text.length && text.at[end] >= 'a' && text.at[end] <= 'z')
		end++;
	return end > 1 && end < text.length && text.at[end] == '}' ? end + 1 : 0;
}

static int word_at(struct str text, size_t length)
{
	struct str word = str_make(text.at + 1, length - 2);
	for (int i = 0; i < WORDS; i++)
		if (str_equal(word, str_of(words[i])))
			return i;
	return WORDS;
}

static void put_shape(struct buf *out, const struct glue_shape *shape, const struct glue_failure *failure)
{
	struct str rest = shape->body;
	while (rest.length > 0) {
		size_t length = braced(rest);
		if (length > 0)
			put_word(out, shape, failure, word_at(rest, length));
		else
			buf_put_char(out, rest.at[0]);
		length += length == 0;
		rest = str_make(rest.at + length, rest.length - length);
	}
}

bool glue_failure_put(const struct glue *glue, struct str service, const struct glue_failure *failure, struct buf *out,
                      struct str *content_type)
{
	const struct glue_service *found = glue ? glue_service_find(glue, service) : NULL;
	if (!found || found->shape.body.length == 0)
		return false;
	put_shape(out, &found->shape, failure);
	*content_type = found->shape.type;
	return true;
}

bool glue_failure_is_shaped(const struct glue *glue, struct str service)
{
	const struct glue_service *found = glue ? glue_service_find(glue, service) : NULL;
	return found && found->shape.body.length > 0;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool is_json(struct str text)
{
	struct glue_json json;
	enum glue_json_event event;
	glue_json_init(&json, false);
	glue_json_feed(&json, text);
	do {
		event = glue_json_next(&json);
		if (event == GLUE_JSON_MORE)
			glue_json_finish(&json);
	} while (event != GLUE_JSON_END && event != GLUE_JSON_BAD);
	return event == GLUE_JSON_END;
}

static void check_words(struct glue_load *load, const struct yaml_entry *entry, const struct glue_shape *shape)
{
	struct str rest = shape->body;
	for (size_t i = 0; i < rest.length; i++) {
		struct str here = str_make(rest.at + i, rest.length - i);
		size_t length = braced(here);
		int word = length > 0 ? word_at(here, length) : NAME + WORDS;
		if (word == WORDS) {
			struct suggest suggest;
			char meant[TEXT_SUGGESTION_BYTES];
			suggest_start(&suggest, str_make(here.at + 1, length - 2));
			for (int n = 0; n < WORDS; n++)
				suggest_offer(&suggest, str_of(words[n]));
			glue_complain(load, ERR_INVALID, entry->value->start_mark,
			              "`body` has `%.*s`; accepted are `{status}`, `{reason}`, `{name}`, `{type}`, `{title}`, "
			              "`{detail}` and `{message}`%s",
			              (int)length, here.at, text_did_you_mean(&suggest, meant));
		} else if (word == NAME && shape->names_count == 0 && shape->other.length == 0) {
			glue_complain(load, ERR_INVALID, entry->value->start_mark,
			              "`body` has `{name}`, but there is no `names`, such as {404: itemNotFound, \"*\": fault}");
			return;
		}
	}
}

static void check_body(struct glue_load *load, const struct yaml_entry *entry, const struct glue_shape *shape)
{
	static const struct glue_failure sample = {.status = 502,
	                                           .reason = STR_INIT("r"),
	                                           .type = STR_INIT("t"),
	                                           .title = STR_INIT("\"t\""),
	                                           .detail = STR_INIT("\\d")};
	struct buf made = {0};
	put_shape(&made, shape, &sample);
	if (form_of(shape->type) == JSON && !is_json(buf_str(&made)))
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`body` gives no JSON, but %.*s; texts need quotes around them, as in {\"code\": {status}, "
		              "\"message\": \"{message}\"}",
		              (int)(made.length < 200 ? made.length : 200), made.at);
	buf_free(&made);
}

static bool read_status(struct glue_load *load, const struct yaml_entry *entry, unsigned *status)
{
	*status = 0;
	if (str_equal(entry->key, STR("*")))
		return true;
	bool digits = entry->key.length == 3;
	for (size_t i = 0; i < entry->key.length && digits; i++) {
		digits = entry->key.at[i] >= '0' && entry->key.at[i] <= '9';
		*status = *status * 10 + (unsigned)(entry->key.at[i] - '0');
	}
	if (digits && *status >= 400 && *status <= 599)
		return true;
	glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
	              "`names` has " TEXT_NAME_FMT "; accepted are 400 to 599, and `*` for all others",
	              TEXT_NAME(entry->key));
	return false;
}

static void read_names(struct glue_load *load, const struct yaml_entry *entry, struct glue_shape *shape)
{
	if (!glue_mapping(load, entry, "names: {404: itemNotFound, \"*\": fault}", LIMIT_GLUE_ERROR_NAMES))
		return;
	size_t count = yaml_entries_count(entry->value);
	struct glue_error_name *names = arena_array(load->arena, struct glue_error_name, count + 1);
	shape->names = names;
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = yaml_entry_at(&load->yaml, entry->value, i);
		struct glue_error_name made;
		if (!read_status(load, &one, &made.status) || !glue_name(load, &one, "the name of an error", &made.name))
			continue;
		if (made.status == 0)
			shape->other = made.name;
		else
			names[shape->names_count++] = made;
	}
	if (shape->other.length == 0)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`names` has no `*`: what is an error called that is none of these? As in {\"*\": fault}");
}

static bool is_content_type(struct str text)
{
	const char *slash = text.length > 0 ? memchr(text.at, '/', text.length) : NULL;
	for (size_t i = 0; i < text.length; i++)
		if ((unsigned char)text.at[i] < ' ' || (unsigned char)text.at[i] > '~')
			return false;
	return slash != NULL && slash > text.at && slash + 1 < text.at + text.length;
}

void glue_read_shape(struct glue_load *load, const struct yaml_entry *entry, struct glue_shape *shape)
{
	enum { CONTENT, BODY, NAMES, KEYS };
	static const char *const keys[] = {[CONTENT] = "type", [BODY] = "body", [NAMES] = "names", NULL};
	static const char example[] = "errors: {body: '{\"code\": {status}, \"message\": \"{message}\"}'}";
	struct yaml_entry found[KEYS] = {0};
	struct glue_shape made = {.type = STR("application/json"), .body = STR(""), .other = STR("")};
	if (!glue_keys(load, entry, keys, example, found))
		return;
	if (found[BODY].value == NULL) {
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark, "`errors` has no `body`, as in `%s`", example);
		return;
	}
	if (found[CONTENT].value != NULL &&
	    glue_text(load, &found[CONTENT], "a media type, such as text/html", &made.type) &&
	    !is_content_type(made.type)) {
		glue_complain(load, ERR_INVALID, found[CONTENT].value->start_mark,
		              "`type` is " TEXT_NAME_FMT "; it has to be a media type, such as `text/html; charset=UTF-8`",
		              TEXT_NAME(made.type));
		return;
	}
	if (found[NAMES].value != NULL)
		read_names(load, &found[NAMES], &made);
	uint32_t before = load->errors_count;
	if (!glue_text(load, &found[BODY], "a text, such as '{\"message\": \"{message}\"}'", &made.body))
		return;
	if (made.body.length == 0)
		glue_complain(load, ERR_INVALID, found[BODY].value->start_mark, "`body` is empty; as in `%s`", example);
	check_words(load, &found[BODY], &made);
	if (load->errors_count != before)
		return;
	check_body(load, &found[BODY], &made);
	*shape = made;
}
