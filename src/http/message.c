/* Messages: llhttp, compiled in its strict mode, finds the syntax; what it leaves open is decided here.
 *
 * llhttp tells fields piece by piece; since the head stays in one buffer, the pieces of a field lie side by side, and where
 * they do not, a line was folded: refused. After the head the rules of RFC 9112 that make two readers of one message agree
 * on where it ends are checked once more on the fields themselves, because that is what request smuggling lives on:
 * one Content-Length, or one Transfer-Encoding that is "chunked", never both; one Host; a known version and target form.
 *
 * Body bytes are moved together where chunk framing lay between them, so that whoever sends them on has one piece.
 */
#include "http/http_int.h"

#include "base/check.h"

#include <llhttp/llhttp.h>
#include <stdlib.h>

struct http_parser {
	llhttp_t ll; /* first */
	bool request;
	bool paused;
	bool head_done;
	bool complete;
	bool in_value;     /* the last piece was of a value */
	bool begun;        /* some of it was fed */
	bool in_trailer;   /* behind the last chunk */
	bool line_begins;  /* in the trailer: the next byte is the first of a line, */
	bool after_cr;     /* or has to be LF */
	bool chunk_header; /* one was seen in this feed */
	uint8_t request_method;
	struct http_limits limits;
	enum http_bad bad;
	const char *reason;
	char *base;
	uint32_t message_start;  /* where it begins in the buffer, until the head is complete */
	uint32_t fed_end;        /* behind what may be looked at */
	uint32_t chunk_overhead; /* bytes since the last chunk header that are not of the body */
	uint32_t body_end;       /* where the next body byte goes; the first of this feed is at the feed's start */
	bool body_seen;
	uint32_t body_start;
	struct http_head head;
	struct buf trailers;
	size_t trailer_start; /* in trailers: of the field that is being read, and */
	size_t trailer_name;  /* the length of its name, once that is known */
};

/* ---- What llhttp tells ------------------------------------------------------------------------------------------ */

static int refuse(struct http_parser *parser, enum http_bad bad, const char *reason)
{
	parser->bad = bad;
	parser->reason = reason;
	return HPE_USER;
}

static struct http_parser *parser_of(llhttp_t *ll)
{
	return (struct http_parser *)ll;
}

/* Extends a place in the head by a piece, which has to lie right behind it. */
static bool extend(struct http_parser *parser, uint32_t *start, uint32_t *length, const char *at, size_t piece)
{
	uint32_t offset = (uint32_t)(at - parser->base);
	if (*length == 0)
		*start = offset;
	else if (*start + *length != offset)
		return false;
	*length += (uint32_t)piece;
	return true;
}

static int on_url(llhttp_t *ll, const char *at, size_t length)
{
	struct http_parser *parser = parser_of(ll);
	struct http_head *head = &parser->head;
	if (!extend(parser, &head->target, &head->target_length, at, length))
		return refuse(parser, HTTP_BAD_TARGET, "the target is broken over lines");
	if (head->target_length > parser->limits.target_bytes)
		return refuse(parser, HTTP_BAD_TARGET_LENGTH, "the target is longer than the limit");
	return 0;
}

static int on_status(llhttp_t *ll, const char *at, size_t length)
{
	struct http_parser *parser = parser_of(ll);
	extend(parser, &parser->head.reason, &parser->head.reason_length, at, length);
	return 0;
}

/* The field that was read is complete. What frames or routes a message, or is Cheops' own, has no meaning in a trailer
 * (RFC 9110, 6.5.1), but a server may merge it into the head: it is left out, as are spaces around a value. */
static void trailer_end(struct http_parser *parser)
{
	struct buf *out = &parser->trailers;
	if (!parser->in_value)
		return;
	parser->in_value = false;
	while (out->at[out->length - 1] == ' ' || out->at[out->length - 1] == '\t')
		out->length--;
	if (out->at[out->length - 1] == ':')
		buf_put_char(out, ' ');
	buf_put(out, STR("\r\n"));
	if (http_field_id_of(str_make(out->at + parser->trailer_start, parser->trailer_name)) != HTTP_FIELD_OTHER)
		out->length = parser->trailer_start;
	parser->trailer_start = out->length;
}

static int trailer_put(struct http_parser *parser, const char *at, size_t length)
{
	if (parser->trailers.length + length > parser->limits.head_bytes)
		return refuse(parser, HTTP_BAD_FIELDS_SIZE, "the trailer is larger than the limit for a head");
	buf_put(&parser->trailers, str_make(at, length));
	return 0;
}

static int trailer_field(struct http_parser *parser, const char *at, size_t length)
{
	trailer_end(parser);
	return trailer_put(parser, at, length);
}

static int trailer_value(struct http_parser *parser, const char *at, size_t length)
{
	if (!parser->in_value) {
		parser->trailer_name = parser->trailers.length - parser->trailer_start;
		if (parser->trailer_name == 0)
			return refuse(parser, HTTP_BAD_SYNTAX, "a field of the trailer has no name");
		buf_put(&parser->trailers, STR(": "));
		parser->in_value = true;
	}
	return trailer_put(parser, at, length);
}

/* llhttp joins folded lines and lets a bare LF and some control characters pass; here they are refused. */
static int trailer_check(struct http_parser *parser, const char *at, const char *end)
{
	for (; at < end; at++) {
		unsigned char c = (unsigned char)*at;
		if (parser->line_begins && (c == ' ' || c == '\t'))
			return refuse(parser, HTTP_BAD_SYNTAX, "a field of the trailer is folded over lines");
		if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7f || parser->after_cr != (c == '\n'))
			return refuse(parser, HTTP_BAD_SYNTAX,
			              "a line of the trailer has a control character in it, or a bare CR or LF");
		parser->line_begins = c == '\n';
		parser->after_cr = c == '\r';
	}
	return 0;
}

static int on_field(llhttp_t *ll, const char *at, size_t length)
{
	struct http_parser *parser = parser_of(ll);
	struct http_head *head = &parser->head;
	if (parser->head_done)
		return trailer_field(parser, at, length);
	if (parser->in_value || head->fields_count == 0) {
		if (head->fields_count == parser->limits.fields)
			return refuse(parser, HTTP_BAD_FIELDS_SIZE, "there are more fields than the limit");
		head->fields[head->fields_count++] = (struct http_field){0};
		parser->in_value = false;
	}
	struct http_field *field = &head->fields[head->fields_count - 1];
	uint32_t name_length = field->name_length;
	if (!extend(parser, &field->name, &name_length, at, length) || name_length > UINT16_MAX)
		return refuse(parser, HTTP_BAD_SYNTAX, "a field name is broken over lines");
	field->name_length = (uint16_t)name_length;
	return 0;
}

static int on_value(llhttp_t *ll, const char *at, size_t length)
{
	struct http_parser *parser = parser_of(ll);
	struct http_head *head = &parser->head;
	if (parser->head_done)
		return trailer_value(parser, at, length);
	if (head->fields_count == 0)
		return refuse(parser, HTTP_BAD_SYNTAX, "a value without a field name");
	parser->in_value = true;
	struct http_field *field = &head->fields[head->fields_count - 1];
	if (length > 0 && !extend(parser, &field->value, &field->value_length, at, length))
		return refuse(parser, HTTP_BAD_SYNTAX, "a field is folded over lines");
	return 0;
}

static int on_body(llhttp_t *ll, const char *at, size_t length)
{
	struct http_parser *parser = parser_of(ll);
	if (!parser->body_seen) {
		parser->body_seen = true;
		parser->body_start = parser->body_end = (uint32_t)(at - parser->base);
	}
	char *to = parser->base + parser->body_end;
	if (to != at)
		memmove(to, at, length);
	parser->body_end += (uint32_t)length;
	return 0;
}

/* Stops behind the last one, so that the trailer can be looked at as it stands. */
static int on_chunk_header(llhttp_t *ll)
{
	struct http_parser *parser = parser_of(ll);
	parser->chunk_header = true;
	if (ll->content_length > 0)
		return 0;
	parser->in_trailer = parser->line_begins = true;
	return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *ll)
{
	struct http_parser *parser = parser_of(ll);
	parser->complete = true;
	return HPE_PAUSED;
}

/* ---- Checks on the whole head ----------------------------------------------------------------------------------- */

static bool value_is_clean(struct str value)
{
	for (size_t i = 0; i < value.length; i++) {
		unsigned char c = (unsigned char)value.at[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool is_token(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Is the text at this place? Then goes past it. */
static bool take(const struct http_parser *parser, uint32_t *at, struct str text)
{
	if (*at > parser->fed_end || parser->fed_end - *at < text.length ||
	    memcmp(parser->base + *at, text.at, text.length) != 0)
		return false;
	*at += (uint32_t)text.length;
	return true;
}

static bool take_start_line(const struct http_parser *parser, uint32_t *at)
{
	const struct http_head *head = &parser->head;
	struct str version = head->minor == 1 ? STR("HTTP/1.1") : STR("HTTP/1.0");
	if (parser->request) {
		while (take(parser, at, STR("\r\n")))
			; /* some clients end a body with an empty line */
		if (!take(parser, at, http_method_name(head->method)) || !take(parser, at, STR(" ")) || *at != head->target)
			return false;
		*at += head->target_length;
		return take(parser, at, STR(" ")) && take(parser, at, version) && take(parser, at, STR("\r\n"));
	}
	char status[] = {' ', (char)('0' + head->status / 100 % 10), (char)('0' + head->status / 10 % 10),
	                 (char)('0' + head->status % 10)};
	if (!take(parser, at, version) || !take(parser, at, str_make(status, sizeof(status))))
		return false;
	if (head->reason_length > 0 && (!take(parser, at, STR(" ")) || *at != head->reason))
		return false;
	*at += head->reason_length;
	take(parser, at, STR(" ")); /* before an empty reason */
	return value_is_clean(str_make(parser->base + head->reason, head->reason_length)) && take(parser, at, STR("\r\n"));
}

static void skip_spaces(const struct http_parser *parser, uint32_t *at)
{
	while (*at < parser->fed_end && (parser->base[*at] == ' ' || parser->base[*at] == '\t'))
		(*at)++;
}

/* llhttp lets through what others read in another way: folded lines, line ends without CR, white space where none may be.
 * So what it found has to be, byte for byte, all that is there. */
static int check_lines(struct http_parser *parser)
{
	const struct http_head *head = &parser->head;
	uint32_t at = parser->message_start;
	if (!take_start_line(parser, &at))
		return refuse(parser, HTTP_BAD_SYNTAX,
		              parser->request ? "the request line is not written as it has to be"
		                              : "the status line is not written as it has to be");
	for (uint32_t i = 0; i < head->fields_count; i++) {
		const struct http_field *field = &head->fields[i];
		bool starts = field->name == at;
		at += field->name_length;
		if (!starts || !take(parser, &at, STR(":")))
			return refuse(parser, HTTP_BAD_SYNTAX, "a field does not begin as it has to");
		skip_spaces(parser, &at);
		if (field->value_length > 0 && field->value != at)
			return refuse(parser, HTTP_BAD_SYNTAX, "a field is folded over lines");
		at += field->value_length;
		skip_spaces(parser, &at);
		if (!take(parser, &at, STR("\r\n")))
			return refuse(parser, HTTP_BAD_SYNTAX, "a field does not end with CR and LF, or is folded over lines");
	}
	return take(parser, &at, STR("\r\n")) ? 0
	                                      : refuse(parser, HTTP_BAD_SYNTAX, "the head does not end with an empty line");
}

/* Names, values, and which of the known fields there are. */
static int check_fields(struct http_parser *parser)
{
	struct http_head *head = &parser->head;
	for (uint32_t i = 0; i < head->fields_count; i++) {
		struct http_field *field = &head->fields[i];
		struct str value = http_field_value(head, field);
		while (value.length > 0 && (value.at[value.length - 1] == ' ' || value.at[value.length - 1] == '\t'))
			value.length--;
		field->value_length = (uint32_t)value.length;
		if (field->name_length == 0 || !value_is_clean(value))
			return refuse(parser, HTTP_BAD_SYNTAX, "a field has a control character in it, or no name");
		if (value.length == 0)
			field->value = field->name + field->name_length;
		field->id = (uint8_t)http_field_id_of(http_field_name(head, field));
		uint32_t bit = 1u << field->id;
		bool twice = field->id != HTTP_FIELD_OTHER && head->present & bit;
		if (twice && (field->id == HTTP_FIELD_CONTENT_LENGTH || field->id == HTTP_FIELD_TRANSFER_ENCODING))
			return refuse(parser, HTTP_BAD_FRAMING, "the length of the body is said twice");
		if (twice && field->id == HTTP_FIELD_HOST)
			return refuse(parser, HTTP_BAD_HOST, "there are two Host fields");
		if (twice && field->id == HTTP_FIELD_EXPECT)
			return refuse(parser, HTTP_BAD_EXPECTATION, "there are two Expect fields");
		if (twice && (field->id == HTTP_FIELD_SCOPE || field->id == HTTP_FIELD_X_SCOPE))
			return refuse(parser, HTTP_BAD_SYNTAX, "there are two scopes of one kind");
		head->present |= bit;
	}
	return 0;
}

static bool read_length(struct str value, uint64_t *length)
{
	*length = 0;
	if (value.length == 0 || value.length > 18)
		return false;
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
		*length = *length * 10 + (uint64_t)(value.at[i] - '0');
	}
	return true;
}

static bool has_no_body(const struct http_parser *parser)
{
	const struct http_head *head = &parser->head;
	return http_method_is_head(parser->request_method) || head->status == 204 || head->status == 304 ||
	       (head->status >= 100 && head->status < 200);
}

/* RFC 9112, 6.3, less what is allowed there out of mercy for old software. */
static int check_framing(struct http_parser *parser)
{
	struct http_head *head = &parser->head;
	struct http_field *coding = http_find(head, HTTP_FIELD_TRANSFER_ENCODING);
	struct http_field *length = http_find(head, HTTP_FIELD_CONTENT_LENGTH);
	if (coding && length)
		return refuse(parser, HTTP_BAD_FRAMING, "both Content-Length and Transfer-Encoding are given");
	if (coding && head->minor == 0)
		return refuse(parser, HTTP_BAD_FRAMING, "HTTP/1.0 has no Transfer-Encoding");
	if (coding && !str_equal_nocase(http_field_value(head, coding), STR("chunked")))
		return refuse(parser, HTTP_BAD_CODING, "the only transfer coding known here is chunked");
	if (length && !read_length(http_field_value(head, length), &head->length))
		return refuse(parser, HTTP_BAD_FRAMING, "the Content-Length is not a number of bytes");
	if (!parser->request && has_no_body(parser))
		head->framing = HTTP_BODY_NONE;
	else if (coding)
		head->framing = HTTP_BODY_CHUNKED;
	else if (length)
		head->framing = head->length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	else
		head->framing = parser->request ? HTTP_BODY_NONE : HTTP_BODY_UNTIL_CLOSE;
	return 0;
}

/* host, host:port, [address] or [address]:port (RFC 3986, 3.2), without a user. */
static bool is_authority(struct str text)
{
	size_t host = 0;
	if (text.length > 0 && text.at[0] == '[') {
		for (host = 1; host < text.length && text.at[host] != ']'; host++)
			if (!is_token((unsigned char)text.at[host]) && text.at[host] != ':')
				return false;
		if (host < 2 || host++ == text.length)
			return false;
	} else {
		for (; host < text.length && text.at[host] != ':'; host++) {
			unsigned char c = (unsigned char)text.at[host];
			if (c <= 0x20 || c >= 0x7f || strchr("/?#@\\,\"<>[]^`{|}", c))
				return false;
		}
	}
	if (host == 0 || (host < text.length && text.at[host] != ':'))
		return false;
	for (size_t i = host + 1; i < text.length; i++)
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
	return true;
}

/* Origin-form, absolute-form and `*` are understood; the absolute form's authority replaces Host (RFC 9112, 3.2.2). */
static int check_target(struct http_parser *parser)
{
	struct http_head *head = &parser->head;
	struct str target = http_target(head);
	if (head->method == HTTP_CONNECT)
		return refuse(parser, HTTP_BAD_METHOD, "CONNECT is not served here");
	if (memchr(target.at, '#', target.length))
		return refuse(parser, HTTP_BAD_TARGET, "a target has no fragment");
	for (size_t i = 0; i < target.length; i++)
		if ((unsigned char)target.at[i] <= 0x20 || (unsigned char)target.at[i] >= 0x7f)
			return refuse(parser, HTTP_BAD_TARGET, "the target has a character in it that has to be percent-encoded");
	if (target.at[0] == '/')
		return 0;
	if (str_equal(target, STR("*")))
		return head->method == HTTP_OPTIONS ? 0 : refuse(parser, HTTP_BAD_TARGET, "`*` is for OPTIONS only");
	static const struct str scheme = STR_INIT("http://");
	if (target.length <= scheme.length || !str_equal_nocase(str_make(target.at, scheme.length), scheme))
		return refuse(parser, HTTP_BAD_TARGET, "the target has to start with `/`");
	uint32_t at = (uint32_t)scheme.length;
	while (at < target.length && target.at[at] != '/' && target.at[at] != '?')
		at++;
	struct str authority = str_make(target.at + scheme.length, at - scheme.length);
	struct http_field *host = http_find(head, HTTP_FIELD_HOST);
	if (!is_authority(authority) || !host)
		return refuse(parser, HTTP_BAD_TARGET, "the target is not a URL of this kind of server");
	if (at < target.length && target.at[at] == '?')
		return refuse(parser, HTTP_BAD_TARGET, "the target has no path");
	host->value = head->target + (uint32_t)scheme.length;
	host->value_length = (uint32_t)authority.length;
	head->target += at;
	head->target_length -= at;
	if (head->target_length == 0) {     /* no path: the root, or for OPTIONS the server as a whole (RFC 9112, 3.2.4) */
		head->target = host->value - 1; /* the last slash of the scheme */
		head->target_length = 1;
		parser->base[head->target] = head->method == HTTP_OPTIONS ? '*' : '/';
	}
	return 0;
}

static int check_request(struct http_parser *parser)
{
	struct http_head *head = &parser->head;
	struct http_field *host = http_find(head, HTTP_FIELD_HOST);
	if (!host && head->minor == 1)
		return refuse(parser, HTTP_BAD_HOST, "HTTP/1.1 needs a Host field");
	if (host && host->value_length && !is_authority(http_field_value(head, host)))
		return refuse(parser, HTTP_BAD_HOST, "the Host field is not a host and a port");
	struct http_field *expect = http_find(head, HTTP_FIELD_EXPECT);
	if (expect && !str_equal_nocase(http_field_value(head, expect), STR("100-continue")))
		return refuse(parser, HTTP_BAD_EXPECTATION, "the only expectation known here is 100-continue");
	head->expects_continue = expect && head->minor == 1;
	return check_target(parser);
}

static int on_headers_complete(llhttp_t *ll)
{
	struct http_parser *parser = parser_of(ll);
	struct http_head *head = &parser->head;
	head->base = parser->base;
	head->method = ll->method;
	head->minor = ll->http_minor;
	head->status = ll->status_code;
	if (ll->http_major != 1 || ll->http_minor > 1)
		return refuse(parser, HTTP_BAD_VERSION, "this is not HTTP/1.0 or HTTP/1.1");
	if (!parser->request && (head->status < 100 || head->status > 999))
		return refuse(parser, HTTP_BAD_SYNTAX, "the status is not a number of three digits");
	int code = check_lines(parser);
	if (code == 0)
		code = check_fields(parser);
	if (code == 0)
		code = check_framing(parser);
	if (code == 0 && parser->request)
		code = check_request(parser);
	if (code)
		return code;
	head->keep_alive = llhttp_should_keep_alive(ll) != 0;
	head->upgrade = ll->upgrade != 0;
	parser->head_done = true;
	parser->in_value = false;
	if (!parser->request) {
		head->keep_alive =
			head->framing != HTTP_BODY_UNTIL_CLOSE &&
			(head->minor == 1 ? !(ll->flags & F_CONNECTION_CLOSE) : (ll->flags & F_CONNECTION_KEEP_ALIVE) != 0);
		if (head->framing == HTTP_BODY_NONE)
			ll->flags |= F_SKIPBODY;
	}
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_status = on_status,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_chunk_header = on_chunk_header,
	.on_message_complete = on_message_complete,
};

/* ---- Feeding ---------------------------------------------------------------------------------------------------- */

struct http_parser *http_parser_new(bool request, const struct http_limits *limits)
{
	struct http_parser *parser = calloc(1, sizeof(*parser));
	CHECK(parser);
	parser->request = request;
	parser->limits = *limits;
	parser->head.fields = calloc(limits->fields, sizeof(struct http_field));
	CHECK(parser->head.fields);
	http_parser_start(parser, HTTP_GET);
	return parser;
}

void http_parser_free(struct http_parser *parser)
{
	if (!parser)
		return;
	buf_free(&parser->trailers);
	free(parser->head.fields);
	free(parser);
}

void http_parser_start(struct http_parser *parser, uint8_t request_method)
{
	llhttp_init(&parser->ll, parser->request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
	parser->request_method = request_method;
	parser->paused = parser->head_done = parser->complete = parser->in_value = false;
	parser->begun = parser->in_trailer = parser->line_begins = parser->after_cr = false;
	parser->chunk_overhead = 0;
	parser->trailer_start = 0;
	parser->bad = HTTP_OK;
	parser->reason = NULL;
	buf_clear(&parser->trailers);
	parser->head = (struct http_head){.fields = parser->head.fields};
}

/* A method that nobody knows, or something else altogether? */
static bool method_is_token(const struct http_parser *parser)
{
	uint32_t at = parser->message_start;
	while (take(parser, &at, STR("\r\n")))
		;
	for (; at < parser->fed_end && parser->base[at] != ' '; at++)
		if (!is_token((unsigned char)parser->base[at]))
			return false;
	return true;
}

/* What a failure of llhttp means. A refusal of our own has been noted already. */
static enum http_progress broken(struct http_parser *parser, llhttp_errno_t error)
{
	if (parser->bad == HTTP_OK) {
		parser->bad = HTTP_BAD_SYNTAX;
		parser->reason = llhttp_get_error_reason(&parser->ll);
		if (error == HPE_INVALID_VERSION)
			parser->bad = HTTP_BAD_VERSION;
		else if (error == HPE_INVALID_METHOD)
			parser->bad = method_is_token(parser) ? HTTP_BAD_METHOD : HTTP_BAD_SYNTAX;
		else if (error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_CONTENT_LENGTH ||
		         error == HPE_INVALID_CHUNK_SIZE || error == HPE_INVALID_TRANSFER_ENCODING)
			parser->bad = HTTP_BAD_FRAMING;
	}
	return HTTP_PROGRESS_BROKEN;
}

/* Lets llhttp go over what is in the buffer, and takes that off. */
static llhttp_errno_t execute(struct http_parser *parser, struct http_buffer *buffer)
{
	for (;;) {
		bool trailer = parser->in_trailer;
		const char *from = buffer->at + buffer->start;
		llhttp_errno_t error = llhttp_execute(&parser->ll, from, buffer->end - buffer->start);
		const char *to = error == HPE_OK ? buffer->at + buffer->end : llhttp_get_error_pos(&parser->ll);
		buffer->start = (uint32_t)(to - buffer->at);
		if (trailer && parser->bad == HTTP_OK && trailer_check(parser, from, to) != 0)
			return HPE_USER;
		if (error != HPE_PAUSED || trailer || !parser->in_trailer)
			return error;
		llhttp_resume(&parser->ll);
	}
}

/* Extensions of chunks are thrown away; but not without an end. */
static bool count_overhead(struct http_parser *parser, uint32_t bytes)
{
	if (!parser->head_done || parser->head.framing != HTTP_BODY_CHUNKED)
		return true;
	parser->chunk_overhead = parser->chunk_header ? 0 : parser->chunk_overhead + bytes;
	return parser->in_trailer || parser->chunk_overhead <= parser->limits.head_bytes;
}

enum http_progress http_parser_feed(struct http_parser *parser, struct http_buffer *buffer, uint32_t *body,
                                    uint32_t *body_length)
{
	*body = *body_length = 0;
	if (parser->bad != HTTP_OK)
		return HTTP_PROGRESS_BROKEN;
	if (parser->complete)
		return HTTP_PROGRESS_DONE;
	bool resumed = parser->paused;
	if (parser->paused)
		llhttp_resume(&parser->ll);
	parser->paused = false;
	if (!resumed && buffer->start == buffer->end)
		return HTTP_PROGRESS_MORE;
	if (!parser->begun)
		parser->message_start = buffer->start;
	parser->begun = true;
	parser->base = buffer->at;
	parser->head.base = buffer->at;
	parser->fed_end = buffer->end;
	parser->body_seen = parser->chunk_header = false;
	uint32_t before = buffer->start;
	llhttp_errno_t error = execute(parser, buffer);
	if (parser->body_seen) {
		*body = parser->body_start;
		*body_length = parser->body_end - parser->body_start;
	}
	if (parser->bad == HTTP_OK && !count_overhead(parser, buffer->start - before - *body_length))
		refuse(parser, HTTP_BAD_FIELDS_SIZE, "what stands between two chunks is larger than the limit for a head");
	if (parser->bad != HTTP_OK)
		return HTTP_PROGRESS_BROKEN;
	if (error == HPE_OK) {
		if (!parser->head_done && buffer->end > parser->limits.head_bytes) {
			refuse(parser, HTTP_BAD_FIELDS_SIZE, "the head is larger than the limit");
			return HTTP_PROGRESS_BROKEN;
		}
		return HTTP_PROGRESS_MORE;
	}
	if (parser->complete || error == HPE_PAUSED_UPGRADE) {
		parser->complete = true;
		return HTTP_PROGRESS_DONE;
	}
	if (error != HPE_PAUSED)
		return broken(parser, error);
	parser->paused = true;
	parser->head.bytes = buffer->start;
	if (parser->head.bytes > parser->limits.head_bytes) {
		refuse(parser, HTTP_BAD_FIELDS_SIZE, "the head is larger than the limit");
		return HTTP_PROGRESS_BROKEN;
	}
	return HTTP_PROGRESS_HEAD;
}

enum http_progress http_parser_finish(struct http_parser *parser)
{
	if (parser->complete)
		return HTTP_PROGRESS_DONE;
	if (parser->bad == HTTP_OK && parser->head_done && !parser->request &&
	    parser->head.framing == HTTP_BODY_UNTIL_CLOSE) {
		parser->complete = true;
		return HTTP_PROGRESS_DONE;
	}
	if (parser->bad == HTTP_OK)
		refuse(parser, HTTP_BAD_SYNTAX, "the connection was closed in the middle of a message");
	return HTTP_PROGRESS_BROKEN;
}

struct http_head *http_parser_head(struct http_parser *parser)
{
	return &parser->head;
}

enum http_bad http_parser_bad(const struct http_parser *parser, const char **reason)
{
	*reason = parser->reason ? parser->reason : "";
	return parser->bad;
}

/* While the last value may still grow, its line end is missing; at the end of the message it is added here. */
struct str http_parser_trailers(const struct http_parser *parser)
{
	trailer_end((struct http_parser *)parser);
	return buf_str(&parser->trailers);
}
