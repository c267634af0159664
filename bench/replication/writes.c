/* The client: keeps writers busy, each with one write under way, and says how many were acknowledged and how long they took.
 *
 * usage: writes WHAT TARGET[,TARGET]... [KEY=VALUE]...       (TARGET: 127.0.0.1:PORT)
 *
 *   create     POST /things
 *   update     PUT on the paths of `keys`, a file with one per line; each writer has its own of them, one after the other
 *   patch      PATCH on them
 *   put        etcd's KV.Put, by gRPC, of keys of its own
 *
 *   clients=N     writers, each with a connection of its own, in turn to one of the targets (1)
 *   warmup=S, seconds=S     the measured interval, and before it (0.5, 3)
 *   count=N       at most so many writes, warm-up included (100 million): then it ends, and there is no warm-up
 *   bytes=N       of the value (100)
 *   header='Name: value'    with each HTTP request; may be given twice
 *   created=FILE  create: the paths of what was made are written there
 *
 * It prints lines `KEY VALUE`. A write that is refused, a connection that is closed, or ten seconds without any answer end it
 * with status 1 and a sentence.
 *
 * Of HTTP/2 and gRPC there is what this one call needs: the header fields are sent whole once and by their index in HPACK's
 * dynamic table from then on, so that a put costs etcd as little as it can. A unary call that failed has no message in its
 * answer; so an answer that has one and is complete is an acknowledgement. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 4096
#define TARGETS_MAX 16
#define KEYS_MAX 2000000
#define VALUE_MAX 1000
#define ROOM 8192
#define SILENCE_MS 10000
#define EVENTS_MAX 256

enum what { CREATE, UPDATE, PATCH, PUT };

struct options {
	enum what what;
	struct sockaddr_in targets[TARGETS_MAX];
	unsigned targets_count, clients;
	double warmup, seconds;
	uint64_t count;
	unsigned bytes;
	char headers[1024];
	const char *keys, *created;
};

static struct options options = {.clients = 1, .warmup = 0.5, .seconds = 3, .count = 100000000, .bytes = 100};
static char **keys;
static size_t keys_count;
static FILE *created;

struct client {
	int fd;
	unsigned number, target;
	size_t key; /* the next */
	uint64_t sent_at, writes;
	size_t length; /* of what was received and not taken yet */
	uint32_t stream;
	bool started, message; /* HTTP/2: the preface is sent; the answer has had a message */
	char in[ROOM];
};

static uint64_t sent_count, completed, measured_from; /* measured_from: 0 during the warm-up */

/* ---- Latencies: 128 buckets to each power of two, so within 1 % ------------------------------------------------------ */

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

/* ---- HTTP/1.1 -------------------------------------------------------------------------------------------------------- */

/* Each value differs from the one before. */
static size_t value_make(const struct client *c, char *into)
{
	static const char filling[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	int length = snprintf(into, VALUE_MAX, "{\"n\":\"%u.%llu.", c->number, (unsigned long long)c->writes);
	size_t at = (size_t)length;
	for (; at + 2 < options.bytes; at++)
		into[at] = filling[at % (sizeof(filling) - 1)];
	memcpy(into + at, "\"}", 3);
	return at + 2;
}

static const char *key_next(struct client *c)
{
	const char *key = keys[c->key];
	c->key += options.clients;
	if (c->key >= keys_count)
		c->key = c->number % keys_count;
	return key;
}

static size_t http_make(struct client *c, char *out)
{
	static const char *const methods[] = {[CREATE] = "POST", [UPDATE] = "PUT", [PATCH] = "PATCH"};
	char value[VALUE_MAX + 8];
	size_t bytes = value_make(c, value);
	return (size_t)snprintf(
		out, ROOM,
		"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/%sjson\r\n%sContent-Length: "
		"%zu\r\n\r\n%s",
		methods[options.what], options.what == CREATE ? "/things" : key_next(c),
		ntohs(options.targets[c->target].sin_port), options.what == PATCH ? "merge-patch+" : "", options.headers, bytes,
		value);
}

static void note_created(const char *head, size_t length)
{
	static const char location[] = "\r\nLocation: ";
	const char *at = memmem(head, length, location, strlen(location));
	const char *end = at != NULL ? strstr(at + 2, "\r\n") : NULL;
	if (end == NULL)
		die(0, "an item was made, and its answer has no Location:\n%.*s", (int)length, head);
	at += strlen(location);
	fprintf(created, "%.*s\n", (int)(end - at), at);
}

/* Takes one answer; false if it is not complete yet. */
static bool http_answered(struct client *c)
{
	c->in[c->length] = '\0';
	const char *end = memmem(c->in, c->length, "\r\n\r\n", 4);
	if (end == NULL)
		return false;
	size_t head = (size_t)(end + 4 - c->in);
	if (memcmp(c->in, "HTTP/1.1 20", 11) != 0)
		die(0, "a write was refused:\n%.*s", (int)(c->length < 1000 ? c->length : 1000), c->in);
	uint64_t body = header_number(c->in, head, "content-length:", UINT64_MAX);
	if (body == UINT64_MAX)
		die(0, "an answer without a length:\n%.*s", (int)head, c->in);
	if (c->length < head + body)
		return false;
	if (created != NULL)
		note_created(c->in, head);
	c->length = 0;
	return true;
}

/* ---- gRPC ------------------------------------------------------------------------------------------------------------ */

enum { FRAME_DATA, FRAME_HEADERS, FRAME_RESET = 3, FRAME_SETTINGS = 4, FRAME_PING = 6, FRAME_GOAWAY, FRAME_WINDOW };
enum { FLAG_END_STREAM = 1, FLAG_ACK = 1, FLAG_END_HEADERS = 4, FRAME_HEAD = 9 };

static char *put_frame(char *at, size_t length, uint8_t type, uint8_t flags, uint32_t stream)
{
	uint8_t head[FRAME_HEAD] = {
		(uint8_t)(length >> 16), (uint8_t)(length >> 8),  (uint8_t)length,        type,           flags,
		(uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
	memcpy(at, head, sizeof(head));
	return at + sizeof(head);
}

static char *put_text(char *at, const char *text)
{
	size_t length = strlen(text); /* below 127 each: one byte of length, in HPACK and in protobuf */
	*at++ = (char)length;
	memcpy(at, text, length);
	return at + length;
}

/* RFC 7541: the first time with what is to be entered into the dynamic table, which then has te, content-type, :authority
 * and :path at 62 to 65. */
static char *put_fields(const struct client *c, char *at)
{
	static const char indexed[] = {(char)0x83, (char)0x86, (char)0xc1, (char)0xc0, (char)0xbf, (char)0xbe};
	if (c->started) {
		memcpy(at, indexed, sizeof(indexed));
		return at + sizeof(indexed);
	}
	char authority[32];
	snprintf(authority, sizeof(authority), "127.0.0.1:%u", ntohs(options.targets[c->target].sin_port));
	memcpy(at, indexed, 2);
	at[2] = 0x44;
	at = put_text(at + 3, "/etcdserverpb.KV/Put");
	*at++ = 0x41;
	at = put_text(at, authority);
	*at++ = 0x5f;
	at = put_text(at, "application/grpc");
	*at++ = 0x40;
	at = put_text(at, "te");
	return put_text(at, "trailers");
}

/* PutRequest: field 1 is the key, 2 the value. */
static size_t put_message(struct client *c, char *out)
{
	char key[64], value[VALUE_MAX + 8];
	snprintf(key, sizeof(key), "bench/%05u/%012llu", c->number, (unsigned long long)(c->writes % 1000));
	size_t bytes = value_make(c, value);
	char *at = out + 5;
	*at++ = 0x0a;
	at = put_text(at, key);
	*at++ = 0x12;
	if (bytes > 127)
		*at++ = (char)(bytes & 0x7f) | (char)0x80;
	*at++ = (char)(bytes > 127 ? bytes >> 7 : bytes);
	memcpy(at, value, bytes);
	at += bytes;
	size_t length = (size_t)(at - out) - 5;
	uint8_t prefix[5] = {0, 0, 0, (uint8_t)(length >> 8), (uint8_t)length};
	memcpy(out, prefix, sizeof(prefix));
	return length + 5;
}

static size_t grpc_make(struct client *c, char *out)
{
	/* After the preface: no settings of ours, and more room for answers than will ever be used. */
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\4\10\0\0\0\0\0\x7f\0\0\0";
	char *at = out, fields[256], message[VALUE_MAX + 128];
	size_t fields_length = (size_t)(put_fields(c, fields) - fields), message_length = put_message(c, message);
	if (!c->started) {
		memcpy(at, preface, sizeof(preface) - 1);
		at += sizeof(preface) - 1;
	}
	c->stream = c->started ? c->stream + 2 : 1;
	c->started = true;
	c->message = false;
	at = put_frame(at, fields_length, FRAME_HEADERS, FLAG_END_HEADERS, c->stream);
	memcpy(at, fields, fields_length);
	at = put_frame(at + fields_length, message_length, FRAME_DATA, FLAG_END_STREAM, c->stream);
	memcpy(at, message, message_length);
	return (size_t)(at + message_length - out);
}

static void send_all(struct client *c, const char *bytes, size_t length)
{
	ssize_t sent = send(c->fd, bytes, length, MSG_NOSIGNAL);
	if (sent != (ssize_t)length)
		die(sent < 0 ? errno : 0, "sending a write");
}

/* True if it ended the answer. */
static bool frame_take(struct client *c, const uint8_t *head, size_t length)
{
	char echo[FRAME_HEAD + 8];
	uint8_t type = head[3], flags = head[4];
	switch (type) {
	case FRAME_DATA: c->message |= length > 5; break;
	case FRAME_HEADERS:
		if ((flags & FLAG_END_STREAM) && !c->message)
			die(0, "etcd refused a put");
		return flags & FLAG_END_STREAM;
	case FRAME_SETTINGS:
		if (!(flags & FLAG_ACK))
			send_all(c, echo, (size_t)(put_frame(echo, 0, FRAME_SETTINGS, FLAG_ACK, 0) - echo));
		break;
	case FRAME_PING:
		if (!(flags & FLAG_ACK)) {
			memcpy(put_frame(echo, 8, FRAME_PING, FLAG_ACK, 0), head + FRAME_HEAD, 8);
			send_all(c, echo, sizeof(echo));
		}
		break;
	case FRAME_RESET:
	case FRAME_GOAWAY: die(0, "etcd ended the connection (frame type %u)", type);
	default: break;
	}
	return false;
}

static bool grpc_answered(struct client *c)
{
	size_t at = 0;
	bool ended = false;
	while (c->length - at >= FRAME_HEAD) {
		const uint8_t *head = (const uint8_t *)c->in + at;
		size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (length + FRAME_HEAD > ROOM)
			die(0, "a frame of %zu bytes", length);
		if (c->length - at < FRAME_HEAD + length)
			break;
		ended |= frame_take(c, head, length);
		at += FRAME_HEAD + length;
	}
	c->length -= at;
	memmove(c->in, c->in + at, c->length);
	return ended;
}

/* ---- Writers --------------------------------------------------------------------------------------------------------- */

static void write_send(struct client *c, uint64_t now)
{
	char out[ROOM];
	if (sent_count == options.count)
		return;
	size_t length = options.what == PUT ? grpc_make(c, out) : http_make(c, out);
	sent_count++;
	c->writes++;
	c->sent_at = now;
	send_all(c, out, length);
}

static void on_readable(struct client *c)
{
	ssize_t got = recv(c->fd, c->in + c->length, ROOM - 1 - c->length, 0);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0)
		die(got < 0 ? errno : 0, "a connection was closed while a write was under way");
	c->length += (size_t)got;
	if (!(options.what == PUT ? grpc_answered(c) : http_answered(c)))
		return;
	uint64_t now = now_ns(), took = now - c->sent_at;
	completed++;
	if (measured_from != 0) {
		buckets[bucket_of(took)]++;
		latency_max = took > latency_max ? took : latency_max;
	}
	write_send(c, now);
}

static void writes_run(int poller, double seconds)
{
	uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);
	while (now_ns() < until && completed < options.count) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(poller, events, EVENTS_MAX, SILENCE_MS);
		if (count < 0 && errno != EINTR)
			die(errno, "epoll_wait");
		if (count == 0)
			die(0, "no answer within %d ms, after %llu", SILENCE_MS, (unsigned long long)completed);
		for (int i = 0; i < count; i++)
			on_readable(events[i].data.ptr);
	}
}

static void clients_start(int poller, struct client *clients)
{
	for (unsigned i = 0; i < options.clients; i++) {
		struct client *c = &clients[i];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
		c->number = i;
		c->target = i % options.targets_count;
		c->key = keys_count > 0 ? i % keys_count : 0;
		c->fd = connect_to(&options.targets[c->target], true);
		set_non_blocking(c->fd);
		if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) != 0)
			die(errno, "epoll_ctl");
	}
	for (unsigned i = 0; i < options.clients; i++)
		write_send(&clients[i], now_ns());
}

/* ---- Options --------------------------------------------------------------------------------------------------------- */

static void keys_read(const char *path)
{
	FILE *file = fopen(path, "r");
	keys = calloc(KEYS_MAX, sizeof(*keys));
	if (file == NULL || keys == NULL)
		die(errno, "reading %s", path);
	char line[512];
	while (keys_count < KEYS_MAX && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		keys[keys_count] = strdup(line);
		if (keys[keys_count++] == NULL)
			die(0, "out of memory");
	}
	fclose(file);
	if (keys_count < options.clients)
		die(0, "%s has %zu keys, fewer than there are writers", path, keys_count);
}

static bool value_of(const char *argument, const char *key, const char **value)
{
	size_t length = strlen(key);
	if (strncmp(argument, key, length) != 0 || argument[length] != '=')
		return false;
	*value = argument + length + 1;
	return true;
}

static void option_read(const char *argument)
{
	const char *value;
	if (value_of(argument, "clients", &value))
		options.clients = (unsigned)strtoul(value, NULL, 10);
	else if (value_of(argument, "warmup", &value))
		options.warmup = strtod(value, NULL);
	else if (value_of(argument, "seconds", &value))
		options.seconds = strtod(value, NULL);
	else if (value_of(argument, "count", &value))
		options.count = strtoull(value, NULL, 10);
	else if (value_of(argument, "bytes", &value))
		options.bytes = (unsigned)strtoul(value, NULL, 10);
	else if (value_of(argument, "keys", &value))
		options.keys = value;
	else if (value_of(argument, "created", &value))
		options.created = value;
	else if (value_of(argument, "header", &value))
		snprintf(options.headers + strlen(options.headers), sizeof(options.headers) - strlen(options.headers), "%s\r\n",
		         value);
	else
		die(0, "'%s' is no option; there are clients, warmup, seconds, count, bytes, keys, created, header", argument);
}

static void options_read(int argc, char **argv)
{
	static const char *const names[] = {[CREATE] = "create", [UPDATE] = "update", [PATCH] = "patch", [PUT] = "put"};
	if (argc < 3)
		die(0, "usage: writes create|update|patch|put TARGET[,TARGET]... [KEY=VALUE]...");
	while (options.what <= PUT && strcmp(argv[1], names[options.what]) != 0)
		options.what++;
	if (options.what > PUT)
		die(0, "'%s' cannot be written; there are create, update, patch, put", argv[1]);
	char *next = argv[2];
	for (char *target; (target = strsep(&next, ",")) != NULL && options.targets_count < TARGETS_MAX;)
		options.targets[options.targets_count++] = address_of(target);
	for (int i = 3; i < argc; i++)
		option_read(argv[i]);
	if (options.clients < 1 || options.clients > CLIENTS_MAX || options.bytes < 40 || options.bytes > VALUE_MAX ||
	    options.seconds <= 0 || options.seconds > 600)
		die(0, "clients is from 1 to %d, bytes from 40 to %d, seconds to 600", CLIENTS_MAX, VALUE_MAX);
	if ((options.what == UPDATE || options.what == PATCH) && options.keys == NULL)
		die(0, "what is to be changed? keys=FILE");
}

int main(int argc, char **argv)
{
	options_read(argc, argv);
	if (options.keys != NULL)
		keys_read(options.keys);
	if (options.created != NULL && (created = fopen(options.created, "w")) == NULL)
		die(errno, "writing %s", options.created);
	struct client *clients = calloc(options.clients, sizeof(*clients));
	int poller = epoll_create1(EPOLL_CLOEXEC);
	if (clients == NULL || poller < 0)
		die(errno, "starting");
	bool counted = options.count < 100000000;
	measured_from = counted ? now_ns() : 0;
	clients_start(poller, clients);
	if (!counted)
		writes_run(poller, options.warmup);
	uint64_t warm = completed;
	measured_from = counted ? measured_from : now_ns();
	writes_run(poller, options.seconds);
	double seconds = (double)(now_ns() - measured_from) / 1e9;
	uint64_t count = completed - warm;
	if (count == 0)
		die(0, "no write was acknowledged");
	printf("writes %llu\nall %llu\nseconds %.6f\n", (unsigned long long)count, (unsigned long long)completed, seconds);
	printf("p50_us %.1f\np99_us %.1f\nmax_us %.1f\n", latency_us(0.5, count), latency_us(0.99, count),
	       (double)latency_max / 1000);
	if (created != NULL && fclose(created) != 0)
		die(errno, "writing %s", options.created);
}
