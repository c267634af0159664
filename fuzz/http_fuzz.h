/* Messages as the proxy reads them: into a buffer that grows while the head is incomplete and is used anew afterwards, cut
 * into pieces at any place. And a second opinion on each message, of a reader that knows nothing but RFC 9112's grammar. */
#ifndef FUZZ_HTTP_FUZZ_H
#define FUZZ_HTTP_FUZZ_H

#include "base/check.h"
#include "http/http_int.h"

#include <stdlib.h>

enum { FUZZ_HEAD_BYTES = 2048, FUZZ_FIELDS = 24, FUZZ_TARGET_BYTES = 512, FUZZ_MESSAGES = 8, FUZZ_INPUT_BYTES = 16384 };

/* What was found, as text that can be compared. */
struct fuzz_story {
	struct buf text;
	bool limited; /* ended by a limit, which is met sooner or later depending on the pieces */
	bool broken;
};

struct fuzz_feed {
	struct str input;
	size_t next;     /* first byte of input that is not in the buffer yet */
	uint32_t random; /* 0: all at once */
	struct http_buffer buffer;
};

static inline void fuzz_read(struct fuzz_feed *feed)
{
	size_t piece = feed->input.length - feed->next;
	if (feed->random) {
		feed->random = feed->random * 1664525 + 1013904223;
		size_t most = (feed->random >> 28) < 12 ? 1 + (feed->random >> 24 & 7) : 1 + (feed->random >> 16 & 255);
		piece = piece < most ? piece : most;
	}
	/* Of exactly the size that is needed, so that the address sanitizer sees who reads on. */
	struct http_buffer *buffer = &feed->buffer;
	char *moved = malloc(buffer->end + piece + 1);
	CHECK(moved);
	if (buffer->end)
		memcpy(moved, buffer->at, buffer->end);
	memcpy(moved + buffer->end, feed->input.at + feed->next, piece);
	free(buffer->at);
	buffer->at = moved;
	buffer->end += (uint32_t)piece;
	buffer->size = buffer->end;
	feed->next += piece;
}

/* Where in the input the parser has come to. */
static inline size_t fuzz_place(const struct fuzz_feed *feed)
{
	return feed->next - (feed->buffer.end - feed->buffer.start);
}

/* ---- The second opinion ----------------------------------------------------------------------------------------- */

static inline bool fuzz_is_token(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if (!memchr("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", text.at[i], 77))
			return false;
	return text.length > 0;
}

static inline struct str fuzz_trim(struct str text)
{
	while (text.length && (text.at[0] == ' ' || text.at[0] == '\t'))
		text = str_make(text.at + 1, text.length - 1);
	while (text.length && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* Takes a line that ends with CR LF off the text. There must be one, with no other CR or LF in it, nor a control. (llhttp
 * lets DEL pass in the extensions of chunks, which are thrown away.) */
static inline struct str fuzz_line_of(struct str *text, bool thrown_away)
{
	for (size_t i = 0; i + 1 < text->length; i++) {
		unsigned char c = (unsigned char)text->at[i];
		if (c == '\r' && text->at[i + 1] == '\n') {
			struct str line = str_make(text->at, i);
			*text = str_make(text->at + i + 2, text->length - i - 2);
			return line;
		}
		CHECK((c >= 0x20 || c == '\t') && (c != 0x7f || thrown_away));
	}
	CHECK(false);
	return STR("");
}

static inline struct str fuzz_line(struct str *text)
{
	return fuzz_line_of(text, false);
}

static inline void fuzz_split_field(struct str line, struct str *name, struct str *value)
{
	const char *colon = line.length ? memchr(line.at, ':', line.length) : NULL;
	CHECK(colon);
	*name = str_make(line.at, (size_t)(colon - line.at));
	*value = fuzz_trim(str_make(colon + 1, line.length - name->length - 1));
	CHECK(fuzz_is_token(*name));
}

/* The head, from its first byte to behind its empty line: do we find the same fields and the same framing? */
static inline void fuzz_check_head(const struct http_head *head, struct str text, bool request, bool no_body)
{
	while (request && text.length > 1 && text.at[0] == '\r' && text.at[1] == '\n')
		text = str_make(text.at + 2, text.length - 2);
	struct str start = fuzz_line(&text), name, value, length = {0}, coding = {0};
	CHECK(start.length > 8);
	unsigned lengths = 0, codings = 0, hosts = 0, count = 0;
	bool minor = request ? start.at[start.length - 1] == '1' : start.at[7] == '1';
	for (struct str line; (line = fuzz_line(&text)).length > 0; count++) {
		fuzz_split_field(line, &name, &value);
		CHECK(count < head->fields_count);
		CHECK(str_equal(name, http_field_name(head, &head->fields[count])));
		bool host = str_equal_nocase(name, STR("host"));
		/* In absolute form the target's authority takes the place of Host. */
		CHECK(host || str_equal(value, http_field_value(head, &head->fields[count])));
		hosts += host;
		if (str_equal_nocase(name, STR("content-length"))) {
			lengths++;
			length = value;
		} else if (str_equal_nocase(name, STR("transfer-encoding"))) {
			codings++;
			coding = value;
		}
	}
	CHECK(text.length == 0 && count == head->fields_count && head->minor == minor);
	CHECK(lengths <= 1 && codings <= 1 && lengths + codings <= 1);
	CHECK(!request || hosts == 1 || (hosts == 0 && !minor));
	uint64_t number = 0;
	for (size_t i = 0; i < length.length; i++) {
		CHECK(length.at[i] >= '0' && length.at[i] <= '9' && number < UINT64_MAX / 10 - 9);
		number = number * 10 + (uint64_t)(length.at[i] - '0');
	}
	enum http_framing framing = request ? HTTP_BODY_NONE : HTTP_BODY_UNTIL_CLOSE;
	if (codings) {
		CHECK(minor && str_equal_nocase(coding, STR("chunked")));
		framing = HTTP_BODY_CHUNKED;
	} else if (lengths) {
		CHECK(length.length > 0);
		framing = number ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	}
	CHECK(head->framing == (no_body ? HTTP_BODY_NONE : framing));
	CHECK(head->framing != HTTP_BODY_LENGTH || head->length == number);
}

/* A chunked body, from its first byte to its last: does it hold these bytes, and this trailer? */
static inline void fuzz_check_chunks(struct str text, struct str body, struct str trailers)
{
	for (;;) {
		struct str line = fuzz_line_of(&text, true);
		uint64_t size = 0;
		size_t digits = 0;
		for (; digits < line.length && line.at[digits] != ';'; digits++) {
			const char *hex = memchr("0123456789abcdef0123456789ABCDEF", line.at[digits], 32);
			CHECK(hex && size < UINT64_MAX / 16);
			size = size * 16 + (uint64_t)(hex - "0123456789abcdef0123456789ABCDEF") % 16;
		}
		CHECK(digits > 0);
		if (size == 0)
			break;
		CHECK(text.length >= size + 2 && body.length >= size && memcmp(text.at, body.at, size) == 0);
		CHECK(text.at[size] == '\r' && text.at[size + 1] == '\n');
		text = str_make(text.at + size + 2, text.length - size - 2);
		body = str_make(body.at + size, body.length - size);
	}
	CHECK(body.length == 0);
	for (struct str line, name, value; (line = fuzz_line(&text)).length > 0;) {
		fuzz_split_field(line, &name, &value);
		if (trailers.length <= name.length || trailers.at[name.length] != ':' ||
		    !str_equal(str_make(trailers.at, name.length), name))
			continue; /* left out */
		struct str kept = fuzz_line(&trailers), kept_name, kept_value;
		fuzz_split_field(kept, &kept_name, &kept_value);
		CHECK(str_equal(kept_name, name) && str_equal(kept_value, value));
	}
	CHECK(text.length == 0 && trailers.length == 0);
}

/* ---- One connection --------------------------------------------------------------------------------------------- */

static inline void fuzz_tell_head(struct fuzz_story *story, const struct http_head *head)
{
	buf_printf(&story->text, "head %u.%u %u framing %d length %llu keep %d upgrade %d continue %d present %x\n",
	           head->method, head->minor, head->status, head->framing, (unsigned long long)head->length,
	           head->keep_alive, head->upgrade, head->expects_continue, head->present);
	buf_put(&story->text, http_target(head));
	buf_put(&story->text, str_make(head->base + head->reason, head->reason_length));
	for (uint32_t i = 0; i < head->fields_count; i++) {
		buf_put_char(&story->text, '\n');
		buf_put(&story->text, http_field_name(head, &head->fields[i]));
		buf_put_char(&story->text, ':');
		buf_put(&story->text, http_field_value(head, &head->fields[i]));
	}
}

/* Reads one message to its end. False: there is nothing more to read. */
static inline bool fuzz_message(struct http_parser *parser, struct fuzz_feed *feed, bool request, uint8_t method,
                                struct fuzz_story *story)
{
	struct buf body = {0};
	struct http_head *head = http_parser_head(parser);
	size_t began = fuzz_place(feed), body_began = 0;
	bool head_done = false, more = false;
	for (;;) {
		uint32_t at, length;
		uint32_t before = feed->buffer.start;
		enum http_progress progress = http_parser_feed(parser, &feed->buffer, &at, &length);
		CHECK(feed->buffer.start >= before && feed->buffer.start <= feed->buffer.end);
		if (progress == HTTP_PROGRESS_BROKEN) {
			const char *reason;
			enum http_bad bad = http_parser_bad(parser, &reason);
			CHECK(bad != HTTP_OK && http_bad_status(bad) >= 400);
			story->broken = true;
			story->limited = bad == HTTP_BAD_FIELDS_SIZE || bad == HTTP_BAD_TARGET_LENGTH;
			break;
		}
		if (progress == HTTP_PROGRESS_HEAD) {
			CHECK(!head_done && length == 0);
			head_done = true;
			body_began = fuzz_place(feed);
			bool no_body = !request && (http_method_is_head(method) || head->status == 204 || head->status == 304 ||
			                            head->status < 200);
			fuzz_check_head(head, str_make(feed->input.at + began, body_began - began), request, no_body);
			fuzz_tell_head(story, head);
			continue;
		}
		CHECK(at + length <= feed->buffer.end && (length == 0 || head_done));
		if (length)
			buf_put(&body, str_make(feed->buffer.at + at, length));
		if (progress == HTTP_PROGRESS_DONE) {
			CHECK(head_done);
			more = true;
			break;
		}
		CHECK(feed->buffer.start == feed->buffer.end); /* all was taken */
		if (head_done)
			feed->buffer.start = feed->buffer.end = 0;
		if (feed->next == feed->input.length) {
			enum http_progress end = http_parser_finish(parser);
			CHECK(end == HTTP_PROGRESS_BROKEN || (head_done && head->framing == HTTP_BODY_UNTIL_CLOSE));
			buf_printf(&story->text, "\nend %d\n", end);
			break;
		}
		fuzz_read(feed);
	}
	if (more) {
		struct str trailers = http_parser_trailers(parser);
		size_t end = fuzz_place(feed);
		struct str raw = str_make(feed->input.at + body_began, end - body_began);
		if (head->framing == HTTP_BODY_CHUNKED)
			fuzz_check_chunks(raw, buf_str(&body), trailers);
		else
			CHECK(raw.length == body.length && memcmp(raw.at, buf_str(&body).at, raw.length) == 0 &&
			      body.length == (head->framing == HTTP_BODY_LENGTH ? head->length : 0));
		buf_printf(&story->text, "\ndone at %zu\n", end);
		buf_put(&story->text, trailers);
	}
	/* What was passed on of a message that turns out to be malformed depends on the pieces. */
	if (!story->broken)
		buf_put(&story->text, buf_str(&body));
	buf_free(&body);
	return more;
}

static inline void fuzz_connection(struct str input, uint32_t random, bool request, uint8_t method,
                                   struct fuzz_story *story)
{
	struct http_limits limits = {FUZZ_HEAD_BYTES, FUZZ_FIELDS, FUZZ_TARGET_BYTES};
	struct http_parser *parser = http_parser_new(request, &limits);
	struct fuzz_feed feed = {.input = input, .random = random};
	for (int i = 0; i < FUZZ_MESSAGES; i++) {
		http_parser_start(parser, method);
		if (!fuzz_message(parser, &feed, request, method, story))
			break;
		/* The rest moves to the front, as between two requests on a connection. */
		feed.buffer.end -= feed.buffer.start;
		if (feed.buffer.end)
			memmove(feed.buffer.at, feed.buffer.at + feed.buffer.start, feed.buffer.end);
		feed.buffer.start = 0;
	}
	free(feed.buffer.at);
	http_parser_free(parser);
}

/* The same bytes in other pieces are the same messages. */
static inline void fuzz_compare(struct str input, uint32_t seed, bool request, uint8_t method)
{
	struct fuzz_story whole = {0}, pieces = {0};
	fuzz_connection(input, 0, request, method, &whole);
	fuzz_connection(input, seed | 1, request, method, &pieces);
	if (!whole.limited && !pieces.limited) {
		CHECK(whole.broken == pieces.broken);
		CHECK(str_equal(buf_str(&whole.text), buf_str(&pieces.text)));
	}
	buf_free(&whole.text);
	buf_free(&pieces.text);
}

#endif
