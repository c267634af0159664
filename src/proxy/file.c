/* Answers whose body is a file: read as the client takes it, a piece at a time, so that they hold no more than that.
 *
 * The read is done in the loop's own thread. What is asked for is sent once it was written, so it mostly is in memory still;
 * where it is not, the kernel was told to read ahead.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10 };

bool proxy_file_next(struct proxy_exchange *exchange)
{
	struct proxy_file *file = &exchange->file;
	size_t wanted = file->left < PIECE_BYTES ? file->left : PIECE_BYTES;
	/* All of it was sent: its memory serves again. */
	buf_clear(&exchange->body);
	buf_put_repeat(&exchange->body, 0, wanted);
	ssize_t got = pread(file->fd, exchange->body.at, wanted, (off_t)file->at);
	if (got <= 0)
		return false;
	file->at += (uint64_t)got;
	file->left -= (uint64_t)got;
	proxy_count(&exchange->proxy->counters.blob_bytes, got);
	proxy_stream_push(&exchange->response, exchange->body.at, (size_t)got);
	if (file->left == 0) {
		close(file->fd);
		*file = (struct proxy_file){0};
	}
	return true;
}

void proxy_file_close(struct proxy_exchange *exchange)
{
	if (exchange->file.left > 0)
		close(exchange->file.fd);
	exchange->file = (struct proxy_file){0};
}

void proxy_answer_file(struct proxy_exchange *exchange, unsigned status, struct str fields, int fd, uint64_t at,
                       uint64_t bytes)
{
	CHECK(exchange->client && exchange->phase == PROXY_PENDING);
	struct buf lines = {0};
	buf_put(&lines, fields);
	buf_printf(&lines, "Content-Type: application/octet-stream\r\nContent-Length: %llu\r\n", (unsigned long long)bytes);
	proxy_build_file(exchange, status, buf_str(&lines));
	buf_free(&lines);
	if (bytes == 0 || http_method_is_head(exchange->method)) {
		close(fd);
		return;
	}
	posix_fadvise(fd, (off_t)at, (off_t)bytes, POSIX_FADV_SEQUENTIAL);
	exchange->file = (struct proxy_file){fd, at, bytes};
}
