/* One direction of a message: bytes come from one connection, pass a parser that knows where the message ends, and go out
 * on another, framed for it.
 *
 * What waits to be sent is the head, then a short list of pieces: per read the chunk's line, the bytes where they lie in
 * the buffer, the line end; then the last chunk and the trailer. Only when all pieces are sent is the next read done. This
 * is the back-pressure, and it bounds the memory of a body of any size by one buffer.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <stdio.h>

void proxy_stream_reset(struct proxy_stream *stream)
{
	buf_clear(&stream->head);
	buf_clear(&stream->tail);
	stream->from = stream->to = NULL;
	stream->head_sent = 0;
	stream->first = stream->count = 0;
	stream->chunked = stream->complete = stream->over = stream->large = stream->broken = false;
	stream->sent_bytes = 0;
	glue_splicer_free(stream->splicer);
	stream->splicer = NULL;
	buf_clear(&stream->spliced);
}

void proxy_stream_push(struct proxy_stream *stream, const char *at, size_t length)
{
	if (length == 0)
		return;
	if (stream->first == stream->count)
		stream->first = stream->count = 0;
	CHECK((size_t)stream->count < sizeof(stream->pieces) / sizeof(stream->pieces[0]));
	stream->pieces[stream->count++] = (struct iovec){(void *)at, length};
}

void proxy_stream_push_bytes(struct proxy_stream *stream, struct str bytes)
{
	if (bytes.length == 0)
		return;
	if (stream->chunked) {
		int line = snprintf(stream->chunk_line, sizeof(stream->chunk_line), "%zx\r\n", bytes.length);
		proxy_stream_push(stream, stream->chunk_line, (size_t)line);
	}
	proxy_stream_push(stream, bytes.at, bytes.length);
	if (stream->chunked)
		proxy_stream_push(stream, "\r\n", 2);
}

void proxy_stream_push_body(struct proxy_stream *stream, uint32_t body, uint32_t length)
{
	struct str bytes = length > 0 ? str_make(stream->from->in.at + body, length) : STR("");
	if (!stream->splicer) {
		proxy_stream_push_bytes(stream, bytes);
		return;
	}
	/* All that was spliced before is sent: nothing is read while anything is unsent. What is no JSON passes as it is. */
	buf_clear(&stream->spliced);
	if (length > 0)
		glue_splice(stream->splicer, bytes, &stream->spliced, NULL);
	if (stream->complete)
		glue_splice_end(stream->splicer, &stream->spliced, NULL);
	proxy_stream_push_bytes(stream, buf_str(&stream->spliced));
}

void proxy_stream_finish(struct proxy_stream *stream)
{
	stream->complete = true;
	if (!stream->chunked)
		return;
	buf_put(&stream->tail, STR("0\r\n"));
	buf_put(&stream->tail, http_parser_trailers(stream->parser));
	buf_put(&stream->tail, STR("\r\n"));
	proxy_stream_push(stream, stream->tail.at, stream->tail.length);
}

/* ---- Sending ---------------------------------------------------------------------------------------------------- */

static void drop_sent(struct proxy_stream *stream, size_t sent)
{
	stream->sent_bytes += sent;
	size_t head = stream->head.length - stream->head_sent;
	head = sent < head ? sent : head;
	stream->head_sent += head;
	for (sent -= head; sent > 0;) {
		struct iovec *piece = &stream->pieces[stream->first];
		if (sent < piece->iov_len) {
			piece->iov_base = (char *)piece->iov_base + sent;
			piece->iov_len -= sent;
			return;
		}
		sent -= piece->iov_len;
		stream->first++;
	}
}

static enum http_io send_pieces(struct proxy_stream *stream)
{
	while (stream->head_sent < stream->head.length || stream->first < stream->count) {
		struct iovec pieces[1 + sizeof(stream->pieces) / sizeof(stream->pieces[0])];
		int count = 0;
		if (stream->head_sent < stream->head.length)
			pieces[count++] =
				(struct iovec){stream->head.at + stream->head_sent, stream->head.length - stream->head_sent};
		for (int i = stream->first; i < stream->count; i++)
			pieces[count++] = stream->pieces[i];
		size_t sent;
		enum http_io io = http_conn_write(stream->to, pieces, count, &sent);
		drop_sent(stream, sent);
		if (io != HTTP_IO_SOME)
			return io;
	}
	return HTTP_IO_SOME;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* All that was read is sent: the buffer starts afresh, larger if the last read filled it. */
static void recycle_buffer(struct proxy_stream *stream)
{
	struct http_conn *from = stream->from;
	if (from->in.start < from->in.end)
		return;
	from->in.start = from->in.end = 0;
	if (stream->large && from->in.size < LIMIT_HTTP_BUFFER_BYTES) {
		http_buffer_give(from->loop, &from->in);
		http_buffer_take(from->loop, &from->in, LIMIT_HTTP_BUFFER_BYTES);
	}
}

/* Bytes of another protocol, or the end of them. */
static enum proxy_pump read_raw(struct proxy_stream *stream)
{
	struct http_conn *from = stream->from;
	if (from->in.start == from->in.end) {
		enum http_io io = http_conn_read(from);
		if (io == HTTP_IO_BLOCKED)
			return PROXY_PUMP_WAIT;
		if (io == HTTP_IO_FAILED)
			return PROXY_PUMP_FROM_FAILED;
		if (io == HTTP_IO_END) {
			stream->complete = true;
			return PROXY_PUMP_DONE;
		}
		stream->large = from->in.end == from->in.size;
	}
	proxy_stream_push(stream, from->in.at + from->in.start, from->in.end - from->in.start);
	from->in.start = from->in.end;
	return PROXY_PUMP_DONE;
}

static enum proxy_pump read_message(struct proxy_stream *stream)
{
	struct http_conn *from = stream->from;
	uint32_t body, length;
	enum http_progress progress = http_parser_feed(stream->parser, &from->in, &body, &length);
	if (progress == HTTP_PROGRESS_MORE && length == 0) {
		recycle_buffer(stream);
		enum http_io io = http_conn_read(from);
		if (io == HTTP_IO_BLOCKED)
			return PROXY_PUMP_WAIT;
		if (io == HTTP_IO_FAILED)
			return PROXY_PUMP_FROM_FAILED;
		stream->large = from->in.end == from->in.size;
		progress = io == HTTP_IO_END ? http_parser_finish(stream->parser)
		                             : http_parser_feed(stream->parser, &from->in, &body, &length);
	}
	if (progress == HTTP_PROGRESS_BROKEN)
		return PROXY_PUMP_FROM_FAILED;
	stream->complete = progress == HTTP_PROGRESS_DONE;
	proxy_stream_push_body(stream, body, length);
	if (progress == HTTP_PROGRESS_DONE)
		proxy_stream_finish(stream);
	return PROXY_PUMP_DONE;
}

enum proxy_pump proxy_stream_pump(struct proxy_stream *stream)
{
	for (int reads = 0;; reads++) {
		if (stream->broken)
			return PROXY_PUMP_FROM_FAILED;
		enum http_io io = send_pieces(stream);
		if (io == HTTP_IO_BLOCKED)
			return PROXY_PUMP_WAIT;
		if (io == HTTP_IO_FAILED)
			return PROXY_PUMP_TO_FAILED;
		if (stream->complete)
			return PROXY_PUMP_DONE;
		if (reads == PROXY_PUMP_READS) { /* both ends are quick: others want to get on, too */
			http_loop_again(stream->from->loop, &stream->from->source);
			return PROXY_PUMP_WAIT;
		}
		if (!stream->parser)
			recycle_buffer(stream);
		enum proxy_pump read = stream->parser ? read_message(stream) : read_raw(stream);
		if (read != PROXY_PUMP_DONE)
			return read;
	}
}

bool proxy_stream_prime(struct proxy_stream *stream)
{
	uint32_t body, length;
	enum http_progress progress = http_parser_feed(stream->parser, &stream->from->in, &body, &length);
	if (progress == HTTP_PROGRESS_BROKEN)
		return false;
	stream->complete = progress == HTTP_PROGRESS_DONE;
	proxy_stream_push_body(stream, body, length);
	if (progress == HTTP_PROGRESS_DONE)
		proxy_stream_finish(stream);
	return true;
}

bool proxy_stream_flush(struct proxy_stream *stream)
{
	return send_pieces(stream) != HTTP_IO_FAILED;
}
