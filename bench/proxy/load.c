/* The client: keeps connections busy, checks every answer, and says how long they took and what the proxies spent.
 *
 * usage: load MODE TARGET [KEY=VALUE]...        (TARGET: 127.0.0.1:PORT)
 *
 *   requests   `connections` (32) keep-alive connections, each with one request at a time, for `warmup` (0.5) and then
 *              `seconds` (5); at most `count` (100 million) requests
 *   idle       opens `connections`, one request each, prints "open N", and keeps them until its standard input ends; then
 *              one more request on each, to see that the proxy kept them, too, and "kept N"
 *   download   GET /bytes/N, N being `bytes`
 *   upload     POST /bytes, of `bytes`
 *
 *   header='Name: value'    sent with each request, besides Host, User-Agent and Accept; may be given twice
 *   path=/...               asked for by `requests` and `idle` (/)
 *   cpu=PID,PID...          processes whose CPU time is read at both ends of the measured interval
 *
 * It prints lines `KEY VALUE`. An answer other than 200 with ANSWER_BYTES bytes, a connection that is closed, or ten
 * seconds without any answer end it with status 1 and a sentence. The CPU time is that of all threads of the process,
 * ended ones included, from the clock that clock_getcpuclockid(3) names: exact to the nanosecond, not to the tick. */
#include "net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 65536
#define SECONDS_MAX 600.0
#define BYTES_MAX ((uint64_t)1 << 44)
#define CPUS_MAX 8
#define ANSWER_ROOM 4096
#define CHUNK_BYTES ((size_t)256 << 10)
#define SILENCE_MS 10000
#define EVENTS_MAX 256

struct options {
	const char *mode;
	struct sockaddr_in target;
	unsigned connections;
	double warmup, seconds;
	uint64_t count, bytes;
	char headers[1024];
	const char *path;
	int cpus_count;
	pid_t cpus[CPUS_MAX];
};

static struct options options = {
	.path = "/", .connections = 32, .warmup = 0.5, .seconds = 5, .count = 100000000, .bytes = 1 << 30};
static char request[2048];
static size_t request_length;

/* ---- CPU time of other processes ------------------------------------------------------------------------------------- */

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec spent;
	int failed = clock_getcpuclockid(pid, &clock);
	if (failed == 0 && clock_gettime(clock, &spent) != 0)
		failed = errno;
	if (failed != 0)
		die(failed, "the CPU time of process %d", (int)pid);
	return (uint64_t)spent.tv_sec * 1000000000U + (uint64_t)spent.tv_nsec;
}

static void cpus_read(uint64_t *spent)
{
	for (int i = 0; i < options.cpus_count; i++)
		spent[i] = cpu_ns(options.cpus[i]);
}

static void cpus_print(const uint64_t *before, const uint64_t *after)
{
	for (int i = 0; i < options.cpus_count; i++)
		printf("cpu_ns_%d %llu\n", (int)options.cpus[i], (unsigned long long)(after[i] - before[i]));
}

/* ---- latencies: 128 buckets to each power of two, so within 1 % ------------------------------------------------------ */

#define SUB_BITS 7
#define SUB_COUNT (1U << SUB_BITS)

static uint64_t buckets[64 * SUB_COUNT];
static uint64_t latency_max;

static size_t bucket_of(uint64_t ns)
{
	if (ns < SUB_COUNT)
		return (size_t)ns;
	unsigned shift = 63U - (unsigned)__builtin_clzll(ns) - SUB_BITS;
	return (size_t)(shift + 1) * SUB_COUNT + (size_t)((ns >> shift) - SUB_COUNT);
}

static double bucket_middle(size_t bucket)
{
	if (bucket < SUB_COUNT)
		return (double)bucket;
	unsigned shift = (unsigned)(bucket / SUB_COUNT) - 1;
	return ldexp((double)(bucket % SUB_COUNT + SUB_COUNT) + 0.5, (int)shift);
}

static void latency_add(uint64_t ns)
{
	buckets[bucket_of(ns)]++;
	if (ns > latency_max)
		latency_max = ns;
}

static double latency_us(double share, uint64_t count)
{
	uint64_t rank = (uint64_t)(share * (double)count), seen = 0;
	for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
		seen += buckets[i];
		if (seen > rank)
			return bucket_middle(i) / 1000;
	}
	return (double)latency_max / 1000;
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

_Noreturn static void answer_refuse(const char *what, const char *answer, size_t length)
{
	int shown = length < 400 ? (int)length : 400;
	die(0, "%s, expected status 200 with %d bytes; the answer begins:\n%.*s", what, ANSWER_BYTES, shown, answer);
}

/* Whether an answer is complete. Ends the program if it is not the one that the backend gives. */
static bool answer_complete(const char *answer, size_t length)
{
	const char *end = memmem(answer, length, "\r\n\r\n", 4);
	if (end == NULL) {
		if (length == ANSWER_ROOM)
			answer_refuse("a head without an end", answer, length);
		return false;
	}
	size_t head = (size_t)(end + 4 - answer);
	if (head < 13 || memcmp(answer, "HTTP/1.1 200 ", 13) != 0)
		answer_refuse("another status", answer, length);
	if (header_number(answer, head, "content-length:", 0) != ANSWER_BYTES)
		answer_refuse("another length", answer, length);
	if (length < head + ANSWER_BYTES)
		return false;
	if (length > head + ANSWER_BYTES)
		answer_refuse("more than the answer", answer, length);
	/* 99 times 'x' and an end of line: see backend.c. Zeros answer an upload. */
	char first = answer[head];
	if ((first != 'x' && first != '0') || memcmp(answer + head, answer + head + 1, ANSWER_BYTES - 2) != 0)
		answer_refuse("another body", answer, length);
	return true;
}

/* ---- mode: requests -------------------------------------------------------------------------------------------------- */

struct connection {
	int fd;
	size_t length;
	uint64_t sent_at;
	char answer[ANSWER_ROOM];
};

static uint64_t completed, measured_from; /* measured_from: 0 during the warm-up */

static void request_send(struct connection *c, uint64_t now)
{
	c->length = 0;
	c->sent_at = now;
	ssize_t sent = send(c->fd, request, request_length, MSG_NOSIGNAL);
	if (sent != (ssize_t)request_length)
		die(sent < 0 ? errno : 0, "sending a request on a kept-alive connection");
}

static void on_readable(struct connection *c)
{
	ssize_t got = recv(c->fd, c->answer + c->length, sizeof(c->answer) - c->length, 0);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0)
		die(got < 0 ? errno : 0, "a connection was closed after %zu bytes of an answer", c->length);
	c->length += (size_t)got;
	if (!answer_complete(c->answer, c->length))
		return;
	uint64_t now = now_ns();
	completed++;
	if (measured_from != 0)
		latency_add(now - c->sent_at);
	request_send(c, now);
}

static void requests_run(int poller, double seconds)
{
	uint64_t until = now_ns() + (uint64_t)(seconds * 1e9), started_with = completed;
	while (now_ns() < until && completed < options.count) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(poller, events, EVENTS_MAX, SILENCE_MS);
		if (count < 0 && errno != EINTR)
			die(errno, "epoll_wait");
		if (count == 0)
			die(0, "no answer within %d ms, after %llu", SILENCE_MS, (unsigned long long)(completed - started_with));
		for (int i = 0; i < count; i++)
			on_readable(events[i].data.ptr);
	}
}

static void mode_requests(void)
{
	struct connection *connections = calloc(options.connections, sizeof(*connections));
	int poller = epoll_create1(EPOLL_CLOEXEC);
	if (connections == NULL || poller < 0)
		die(errno, "starting");
	for (unsigned i = 0; i < options.connections; i++) {
		struct connection *c = &connections[i];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
		c->fd = connect_to(&options.target, true);
		set_non_blocking(c->fd);
		if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) != 0)
			die(errno, "epoll_ctl");
		request_send(c, now_ns());
	}
	requests_run(poller, options.warmup);

	uint64_t before[CPUS_MAX], after[CPUS_MAX], warm = completed;
	measured_from = now_ns();
	cpus_read(before);
	requests_run(poller, options.seconds);
	cpus_read(after);
	double seconds = (double)(now_ns() - measured_from) / 1e9;
	uint64_t count = completed - warm;
	if (count == 0)
		die(0, "no request was answered");
	printf("requests %llu\nseconds %.6f\n", (unsigned long long)count, seconds);
	printf("p50_us %.1f\np99_us %.1f\np999_us %.1f\nmax_us %.1f\n", latency_us(0.5, count), latency_us(0.99, count),
	       latency_us(0.999, count), (double)latency_max / 1000);
	cpus_print(before, after);
	for (unsigned i = 0; i < options.connections; i++)
		close(connections[i].fd);
	free(connections);
}

/* ---- the other modes, on blocking sockets ---------------------------------------------------------------------------- */

static int connect_blocking(void)
{
	struct timeval patience = {.tv_sec = SILENCE_MS / 1000};
	int fd = connect_to(&options.target, true);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

static void send_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
		if (sent <= 0)
			die(errno, "sending");
		bytes += sent;
		length -= (size_t)sent;
	}
}

static size_t receive(int fd, char *into, size_t room)
{
	ssize_t got = recv(fd, into, room, 0);
	if (got <= 0)
		die(got < 0 ? errno : 0, "receiving: the connection was closed too soon");
	return (size_t)got;
}

/* Reads one small answer into `answer`; returns its length. */
static size_t answer_read(int fd, char answer[ANSWER_ROOM])
{
	size_t length = 0;
	do
		length += receive(fd, answer + length, ANSWER_ROOM - length);
	while (!answer_complete(answer, length));
	return length;
}

static void mode_idle(void)
{
	char answer[ANSWER_ROOM];
	int *fds = calloc(options.connections, sizeof(*fds));
	if (fds == NULL)
		die(0, "out of memory");
	for (unsigned i = 0; i < options.connections; i++) {
		fds[i] = connect_blocking();
		send_all(fds[i], request, request_length);
		answer_read(fds[i], answer);
	}
	printf("open %u\n", options.connections);
	fflush(stdout);
	while (read(STDIN_FILENO, answer, sizeof(answer)) > 0)
		;
	for (unsigned i = 0; i < options.connections; i++) {
		send_all(fds[i], request, request_length);
		answer_read(fds[i], answer);
	}
	printf("kept %u\n", options.connections);
	free(fds);
}

static void download(int fd)
{
	static char chunk[CHUNK_BYTES];
	send_all(fd, request, request_length);
	size_t length = 0;
	const char *end = NULL;
	while (end == NULL) {
		if (length >= ANSWER_ROOM)
			answer_refuse("a head without an end", chunk, length);
		length += receive(fd, chunk + length, sizeof(chunk) - length);
		end = memmem(chunk, length, "\r\n\r\n", 4);
	}
	size_t head = (size_t)(end + 4 - chunk);
	if (memcmp(chunk, "HTTP/1.1 200 ", 13) != 0 || header_number(chunk, head, "content-length:", 0) != options.bytes)
		answer_refuse("another answer to GET /bytes", chunk, length);

	const char *body = end + 4;
	length -= head;
	for (uint64_t offset = 0;;) {
		if (length > options.bytes - offset || !pattern_matches(offset, body, length))
			die(0, "the body differs near byte %llu", (unsigned long long)offset);
		offset += length;
		if (offset == options.bytes)
			return;
		body = chunk;
		length = receive(fd, chunk, sizeof(chunk));
	}
}

static void upload(int fd)
{
	char answer[ANSWER_ROOM];
	send_all(fd, request, request_length);
	for (uint64_t offset = 0; offset < options.bytes;) {
		size_t length = options.bytes - offset < CHUNK_BYTES ? (size_t)(options.bytes - offset) : CHUNK_BYTES;
		const char *from = pattern_at(offset, &length);
		send_all(fd, from, length);
		offset += length;
	}
	size_t length = answer_read(fd, answer);
	if (header_number(answer, length, "x-received:", 0) != options.bytes)
		answer_refuse("another number of bytes received", answer, length);
}

static void mode_stream(void (*stream)(int fd))
{
	uint64_t before[CPUS_MAX], after[CPUS_MAX];
	int fd = connect_blocking();
	uint64_t start = now_ns();
	cpus_read(before);
	stream(fd);
	cpus_read(after);
	printf("bytes %llu\nseconds %.6f\n", (unsigned long long)options.bytes, (double)(now_ns() - start) / 1e9);
	cpus_print(before, after);
}

/* ---- options --------------------------------------------------------------------------------------------------------- */

static void options_cpus(const char *list)
{
	for (char *end = NULL; *list != 0; list = *end == ',' ? end + 1 : end) {
		long pid = strtol(list, &end, 10);
		if (end == list || pid <= 0 || (*end != 0 && *end != ','))
			die(0, "cpu=%s: process ids are expected, with commas between them", list);
		if (options.cpus_count == CPUS_MAX)
			die(0, "cpu=: more than %d processes", CPUS_MAX);
		options.cpus[options.cpus_count++] = (pid_t)pid;
	}
}

static double number(const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end != 0 || !(value >= least && value <= most))
		die(0, "'%s': a number from %g to %g is expected", text, least, most);
	return value;
}

static void options_read(int argc, char **argv)
{
	if (argc < 3)
		die(0, "usage: load requests|idle|download|upload 127.0.0.1:PORT [KEY=VALUE]...");
	options.mode = argv[1];
	options.target = address_of(argv[2]);
	for (int i = 3; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		size_t key = value != NULL ? (size_t)(++value - argv[i]) : 0;
		if (key == 12 && memcmp(argv[i], "connections=", key) == 0)
			options.connections = (unsigned)number(value, 1, CONNECTIONS_MAX);
		else if (key == 7 && memcmp(argv[i], "warmup=", key) == 0)
			options.warmup = number(value, 0, SECONDS_MAX);
		else if (key == 8 && memcmp(argv[i], "seconds=", key) == 0)
			options.seconds = number(value, 0, SECONDS_MAX);
		else if (key == 6 && memcmp(argv[i], "count=", key) == 0)
			options.count = (uint64_t)number(value, 1, 1e12);
		else if (key == 6 && memcmp(argv[i], "bytes=", key) == 0)
			options.bytes = (uint64_t)number(value, 1, (double)BYTES_MAX);
		else if (key == 5 && memcmp(argv[i], "path=", key) == 0 && strlen(value) < 200)
			options.path = value;
		else if (key == 4 && memcmp(argv[i], "cpu=", key) == 0)
			options_cpus(value);
		else if (key == 7 && memcmp(argv[i], "header=", key) == 0 &&
		         strlen(options.headers) + strlen(value) + 3 < sizeof(options.headers))
			strcat(strcat(options.headers, value), "\r\n");
		else
			die(0, "'%s' is no option, or too long; see the head of load.c", argv[i]);
	}
}

static void request_make(void)
{
	char line[256], length[64] = "";
	snprintf(line, sizeof(line), "GET %s HTTP/1.1", options.path);
	if (strcmp(options.mode, "download") == 0) {
		snprintf(line, sizeof(line), "GET /bytes/%llu HTTP/1.1", (unsigned long long)options.bytes);
	} else if (strcmp(options.mode, "upload") == 0) {
		snprintf(line, sizeof(line), "POST /bytes HTTP/1.1");
		snprintf(length, sizeof(length), "Content-Length: %llu\r\n", (unsigned long long)options.bytes);
	}
	request_length = (size_t)snprintf(request, sizeof(request),
	                                  "%s\r\nHost: 127.0.0.1:%d\r\nUser-Agent: bench\r\nAccept: */*\r\n%s%s\r\n", line,
	                                  ntohs(options.target.sin_port), options.headers, length);
}

int main(int argc, char **argv)
{
	options_read(argc, argv);
	request_make();
	if (strcmp(options.mode, "requests") == 0)
		mode_requests();
	else if (strcmp(options.mode, "idle") == 0)
		mode_idle();
	else if (strcmp(options.mode, "download") == 0)
		mode_stream(download);
	else if (strcmp(options.mode, "upload") == 0)
		mode_stream(upload);
	else
		die(0, "'%s' is no mode; there are requests, idle, download, upload", options.mode);
}
