/* Messages: what is read does not depend on how the bytes come. Each text is fed whole, byte by byte, and in two pieces
 * wherever it can be cut; what is found has to be the same. What each text is refused for, or read as, is in the tables. */
#include "http_test.h"

#include "base/check.h"

static const struct http_limits limits = {.head_bytes = 1024, .fields = 16, .target_bytes = 128};

/* What was found in a text, as text. */
struct story {
	struct buf text;
	struct buf body;
	enum http_bad bad;
};

static void tell_head(struct story *story, const struct http_head *head, bool request)
{
	static const char *const framings[] = {"none", "length", "chunked", "until close"};
	if (request)
		buf_printf(&story->text, "%.*s %.*s", STR_FMT(http_method_name(head->method)), STR_FMT(http_target(head)));
	else
		buf_printf(&story->text, "%u %.*s", head->status, (int)head->reason_length, head->base + head->reason);
	buf_printf(&story->text, " 1.%u %s", head->minor, framings[head->framing]);
	if (head->framing == HTTP_BODY_LENGTH)
		buf_printf(&story->text, " %llu", (unsigned long long)head->length);
	buf_put(&story->text, head->keep_alive ? STR(" keep") : STR(" close"));
	buf_put(&story->text, head->upgrade ? STR(" upgrade") : STR(""));
	buf_put(&story->text, head->expects_continue ? STR(" continue") : STR(""));
	for (uint32_t i = 0; i < head->fields_count; i++)
		buf_printf(&story->text, "|%.*s=%.*s", STR_FMT(http_field_name(head, &head->fields[i])),
		           STR_FMT(http_field_value(head, &head->fields[i])));
	buf_put_char(&story->text, '\n');
}

/* Puts a piece behind what is in the buffer. The memory is of exactly that size, so that a sanitizer sees who reads on. */
static void add(struct http_buffer *buffer, struct str piece)
{
	char *larger = malloc(buffer->end + piece.length + 1);
	assert_non_null(larger);
	if (buffer->end)
		memcpy(larger, buffer->at, buffer->end);
	memcpy(larger + buffer->end, piece.at, piece.length);
	free(buffer->at);
	buffer->at = larger;
	buffer->end += (uint32_t)piece.length;
	buffer->size = buffer->end;
}

/* Feeds what is in the buffer. False: the message is over, in one way or the other. */
static bool feed(struct http_parser *parser, struct http_buffer *buffer, bool request, struct story *story)
{
	for (;;) {
		uint32_t at, length;
		enum http_progress progress = http_parser_feed(parser, buffer, &at, &length);
		assert_true(buffer->start <= buffer->end && at + length <= buffer->end);
		if (progress == HTTP_PROGRESS_BROKEN) {
			const char *reason;
			story->bad = http_parser_bad(parser, &reason);
			assert_int_not_equal(story->bad, HTTP_OK);
			assert_true(reason[0] != '\0');
			return false;
		}
		if (length)
			buf_put(&story->body, str_make(buffer->at + at, length));
		if (progress == HTTP_PROGRESS_HEAD) {
			tell_head(story, http_parser_head(parser), request);
			continue;
		}
		if (progress == HTTP_PROGRESS_DONE) {
			buf_printf(&story->text, "[%.*s]\n", STR_FMT(buf_str(&story->body)));
			buf_put(&story->text, http_parser_trailers(parser));
			return false;
		}
		assert_int_equal(buffer->start, buffer->end);
		/* Behind the head the buffer is used anew. */
		if (http_parser_head(parser)->bytes > 0)
			buffer->start = buffer->end = 0;
		return true;
	}
}

/* Reads one message of the text, in pieces of which the first has `first` bytes and the others `step`. */
static void read_text(struct str text, bool request, const char *method, size_t first, size_t step, struct story *story)
{
	struct http_parser *parser = http_parser_new(request, &limits);
	struct http_buffer buffer = {0};
	uint8_t number = 0;
	while (!str_equal(http_method_name(number), str_of(method)))
		number++;
	http_parser_start(parser, number);
	size_t at = 0, piece = first;
	bool more = true;
	while (more && at < text.length) {
		piece = piece < text.length - at ? piece : text.length - at;
		add(&buffer, str_make(text.at + at, piece));
		at += piece;
		piece = step;
		more = feed(parser, &buffer, request, story);
	}
	if (more) {
		enum http_progress end = http_parser_finish(parser);
		buf_printf(&story->text, "[%.*s] %s\n", STR_FMT(buf_str(&story->body)),
		           end == HTTP_PROGRESS_DONE ? "ends" : "is cut short");
	}
	free(buffer.at);
	http_parser_free(parser);
}

static void story_free(struct story *story)
{
	buf_free(&story->text);
	buf_free(&story->body);
}

static void check_pieces(const char *name, struct str text, bool request, const char *method, const struct story *whole,
                         size_t first, size_t step)
{
	struct story story = {0};
	read_text(text, request, method, first, step, &story);
	if (story.bad != whole->bad || (whole->bad == HTTP_OK && !str_equal(buf_str(&story.text), buf_str(&whole->text)))) {
		print_error("%s, pieces of %zu and %zu:\n%.*s\nwhole:\n%.*s\n", name, first, step,
		            STR_FMT(buf_str(&story.text)), STR_FMT(buf_str(&whole->text)));
		fail();
	}
	story_free(&story);
}

/* Whole, byte by byte, and cut in two at every place. */
static void check_text(const char *name, struct str text, bool request, const char *method, enum http_bad bad,
                       const char *wanted)
{
	struct story whole = {0};
	read_text(text, request, method, text.length, 1, &whole);
	if (whole.bad != bad || (bad == HTTP_OK && strcmp(buf_c(&whole.text), wanted) != 0)) {
		print_error("%s: bad %d, wanted %d:\n%s\nwanted:\n%s\n", name, whole.bad, bad, buf_c(&whole.text), wanted);
		fail();
	}
	check_pieces(name, text, request, method, &whole, 1, 1);
	for (size_t cut = 1; cut < text.length; cut++)
		check_pieces(name, text, request, method, &whole, cut, text.length);
	story_free(&whole);
}

struct row {
	const char *method; /* that is answered */
	struct str text;
	enum http_bad bad;
	const char *wanted;
};

static void check_rows(const struct row *rows, size_t count, bool request)
{
	for (size_t i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "row %zu", i);
		check_text(name, rows[i].text, request, rows[i].method ? rows[i].method : "GET", rows[i].bad, rows[i].wanted);
	}
}

#define HOST "Host: h\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static void requests_are_read_in_any_pieces(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "\r\n"), HTTP_OK, "GET / 1.1 none keep|Host=h\n[]\n"},
		{NULL, STR_INIT("GET /a?b=%20 HTTP/1.0\r\n\r\n"), HTTP_OK, "GET /a?b=%20 1.0 none close\n[]\n"},
		{NULL, STR_INIT("\r\nGET / HTTP/1.1\r\n" HOST "\r\nGET"), HTTP_OK, "GET / 1.1 none keep|Host=h\n[]\n"},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A:\r\nB: \t\r\nC:c c \r\n\r\n"), HTTP_OK,
	     "GET / 1.1 none keep|Host=h|A=|B=|C=c c\n[]\n"},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET"), HTTP_OK,
	     "POST / 1.1 length 5 keep|Host=h|Content-Length=5\n[hello]\n"},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\nhello"), HTTP_OK,
	     "POST / 1.1 none keep|Host=h|Content-Length=0\n[]\n"},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n2;x=y\r\nhe\r\n0003\r\nllo\r\n0\r\n\r\nGET"), HTTP_OK,
	     "POST / 1.1 chunked keep|Host=h|Transfer-Encoding=chunked\n[hello]\n"},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n1\r\nx\r\n0\r\nA: 1\r\nB:\r\nHost: x\r\nC: 3 \r\n\r\n"),
	     HTTP_OK, "POST / 1.1 chunked keep|Host=h|Transfer-Encoding=chunked\n[x]\nA: 1\r\nB: \r\nC: 3\r\n"},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel"), HTTP_OK,
	     "POST / 1.1 length 5 keep|Host=h|Content-Length=5\n[hel] is cut short\n"},
		{NULL, STR_INIT("GET http://other:81/p HTTP/1.1\r\n" HOST "\r\n"), HTTP_OK,
	     "GET /p 1.1 none keep|Host=other:81\n[]\n"},
		{NULL, STR_INIT("GET http://other HTTP/1.1\r\n" HOST "\r\n"), HTTP_OK, "GET / 1.1 none keep|Host=other\n[]\n"},
		{NULL, STR_INIT("OPTIONS http://other HTTP/1.1\r\n" HOST "\r\n"), HTTP_OK,
	     "OPTIONS * 1.1 none keep|Host=other\n[]\n"},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "Connection: x, close\r\n\r\n"), HTTP_OK,
	     "GET / 1.1 none close|Host=h|Connection=x, close\n[]\n"},
		{NULL, STR_INIT("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), HTTP_OK,
	     "GET / 1.0 none keep|Connection=keep-alive\n[]\n"},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: x\r\n\r\nraw"), HTTP_OK,
	     "GET / 1.1 none keep upgrade|Host=h|Connection=upgrade|Upgrade=x\n[]\n"},
		{NULL, STR_INIT("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"), HTTP_OK,
	     "PUT / 1.1 length 1 keep continue|Host=h|Expect=100-Continue|Content-Length=1\n[x]\n"},
	};
	check_rows(rows, COUNT(rows), true);
}

static void malformed_requests_are_refused_in_any_pieces(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{NULL, STR_INIT("GET / HTTP/1.1\r\n\r\n"), HTTP_BAD_HOST, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), HTTP_BAD_HOST, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), HTTP_BAD_HOST, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"), HTTP_BAD_HOST, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\n" HOST "\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET  / HTTP/1.1\r\n" HOST "\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A: 1\r\n 2\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A:\r\n 2\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A: 1\r\n \r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A: 1\r\n\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A: \1\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "A: \0\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED CHUNKED "\r\n0\r\n\r\n"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("POST / HTTP/1.0\r\n" CHUNKED "\r\n0\r\n\r\n"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), HTTP_BAD_CODING, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nA: 1\r\n 2\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nA: 1\r\n\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n10000000000000001\r\nx"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("GET / HTTP/2.0\r\n" HOST "\r\n"), HTTP_BAD_VERSION, NULL},
		{NULL, STR_INIT("CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"), HTTP_BAD_METHOD, NULL},
		{NULL, STR_INIT("FLY / HTTP/1.1\r\n" HOST "\r\n"), HTTP_BAD_METHOD, NULL},
		{NULL, STR_INIT("GET /#f HTTP/1.1\r\n" HOST "\r\n"), HTTP_BAD_TARGET, NULL},
		{NULL, STR_INIT("GET * HTTP/1.1\r\n" HOST "\r\n"), HTTP_BAD_TARGET, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n"), HTTP_BAD_EXPECTATION, NULL},
		{NULL, STR_INIT("GET / HTTP/1.1\r\n" HOST "Scope: a\r\nScope: b\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
	};
	check_rows(rows, COUNT(rows), true);
}

static void responses_are_read_in_any_pieces(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP"), HTTP_OK,
	     "200 OK 1.1 length 2 keep|Content-Length=2\n[ok]\n"},
		{NULL, STR_INIT("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"), HTTP_OK,
	     "200  1.1 none keep|Content-Length=0\n[]\n"},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\n\r\nall of it"), HTTP_OK,
	     "200 OK 1.1 until close close\n[all of it] ends\n"},
		{NULL, STR_INIT("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), HTTP_OK,
	     "200 OK 1.0 length 2 close|Content-Length=2\n[ok]\n"},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\n" CHUNKED "\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n"), HTTP_OK,
	     "200 OK 1.1 chunked keep|Transfer-Encoding=chunked\n[ok]\nA: b\r\n"},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\n" CHUNKED "\r\n2\r\nok\r\n"), HTTP_OK,
	     "200 OK 1.1 chunked keep|Transfer-Encoding=chunked\n[ok] is cut short\n"},
		{NULL, STR_INIT("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok"), HTTP_OK,
	     "204 No 1.1 none keep|Content-Length=2\n[]\n"},
		{NULL, STR_INIT("HTTP/1.1 304 No\r\n" CHUNKED "\r\n0\r\n"), HTTP_OK,
	     "304 No 1.1 none keep|Transfer-Encoding=chunked\n[]\n"},
		{"HEAD", STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), HTTP_OK,
	     "200 OK 1.1 none keep|Content-Length=2\n[]\n"},
		{NULL, STR_INIT("HTTP/1.1 103 Hint\r\nLink: x\r\n\r\nHTTP/1.1 200"), HTTP_OK,
	     "103 Hint 1.1 none keep|Link=x\n[]\n"},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), HTTP_OK,
	     "200 OK 1.1 none close|Connection=close|Content-Length=0\n[]\n"},
	};
	check_rows(rows, COUNT(rows), false);
}

static void malformed_responses_are_refused_in_any_pieces(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{NULL, STR_INIT("hello\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("HTTP/1.1 20 OK\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("HTTP/1.1 099 OK\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("HTTP/1.1 200 O\0K\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("\r\nHTTP/1.1 200 OK\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n"), HTTP_BAD_SYNTAX, NULL},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("HTTP/1.0 200 OK\r\n" CHUNKED "\r\n0\r\n\r\n"), HTTP_BAD_FRAMING, NULL},
		{NULL, STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), HTTP_BAD_CODING, NULL},
	};
	check_rows(rows, COUNT(rows), false);
}

static void check_limit(struct buf *text, enum http_bad bad)
{
	check_text("limit", buf_str(text), true, "GET", bad, "");
	buf_free(text);
}

static void limits_are_met_in_any_pieces(void **state)
{
	(void)state;
	struct buf target = {0}, fields = {0}, field = {0}, trailer = {0}, extension = {0};
	buf_put(&target, STR("GET /"));
	buf_put_repeat(&target, 'a', limits.target_bytes);
	buf_put(&target, STR(" HTTP/1.1\r\n" HOST "\r\n"));
	check_limit(&target, HTTP_BAD_TARGET_LENGTH);
	buf_put(&fields, STR("GET / HTTP/1.1\r\n" HOST));
	for (uint32_t i = 0; i < limits.fields; i++)
		buf_put(&fields, STR("A: 1\r\n"));
	buf_put(&fields, STR("\r\n"));
	check_limit(&fields, HTTP_BAD_FIELDS_SIZE);
	buf_put(&field, STR("GET / HTTP/1.1\r\n" HOST "A: "));
	buf_put_repeat(&field, 'a', limits.head_bytes);
	buf_put(&field, STR("\r\n\r\n"));
	check_limit(&field, HTTP_BAD_FIELDS_SIZE);
	buf_put(&trailer, STR("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nA: "));
	buf_put_repeat(&trailer, 'a', limits.head_bytes);
	buf_put(&trailer, STR("\r\n\r\n"));
	check_limit(&trailer, HTTP_BAD_FIELDS_SIZE);
	buf_put(&extension, STR("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n1;"));
	buf_put_repeat(&extension, 'a', limits.head_bytes + 10);
	check_limit(&extension, HTTP_BAD_FIELDS_SIZE);
}

static void a_parser_is_used_again(void **state)
{
	(void)state;
	struct http_parser *parser = http_parser_new(true, &limits);
	struct str texts[] = {STR("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n1\r\nx\r\n0\r\nA: 1\r\n\r\n"), STR("bad\r\n\r\n"),
	                      STR("POST / HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\r\n"),
	                      STR("GET / HTTP/1.1\r\n" HOST "\r\n")};
	const char *trailers[] = {"A: 1\r\n", NULL, "", ""};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct http_buffer buffer = {0};
		struct story story = {0};
		http_parser_start(parser, 0);
		add(&buffer, texts[i]);
		assert_false(feed(parser, &buffer, true, &story));
		assert_int_equal(story.bad == HTTP_OK, trailers[i] != NULL);
		if (trailers[i])
			assert_true(str_equal(http_parser_trailers(parser), str_of(trailers[i])));
		story_free(&story);
		free(buffer.at);
	}
	http_parser_free(parser);
}

static void every_refusal_has_a_status(void **state)
{
	(void)state;
	for (int bad = HTTP_BAD_SYNTAX; bad <= HTTP_BAD_EXPECTATION; bad++) {
		unsigned status = http_bad_status((enum http_bad)bad);
		assert_in_range(status, 400, 599);
		assert_string_not_equal(http_reason(status), "Unknown");
	}
	assert_string_equal(http_reason(299), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_in_any_pieces),
		cmocka_unit_test(malformed_requests_are_refused_in_any_pieces),
		cmocka_unit_test(responses_are_read_in_any_pieces),
		cmocka_unit_test(malformed_responses_are_refused_in_any_pieces),
		cmocka_unit_test(limits_are_met_in_any_pieces),
		cmocka_unit_test(a_parser_is_used_again),
		cmocka_unit_test(every_refusal_has_a_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
