/* The life of a demo:
 *
 *   1. find the programs, see that the ports are free, make the folder with what the agents read
 *   2. start all processes, have the sites join, and wait until every service and every agent answers, and each agent
 *      knows of all others
 *   3. say that it is ready, and wait for a signal
 *   4. stop all processes, remove the folder
 *
 * What goes wrong: a port is taken, or the folder cannot be used: nothing is started. A process ends by itself, or does
 * not answer in time: it is named, with the end of its log, and all others are stopped. The demo is killed: the kernel
 * kills the processes too.
 */
#include "cli/demo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 60 * 1000, RETRY_MS = 20, ANSWER_S = 5 };

int64_t demo_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Is it there? ----------------------------------------------------------------------------------------------- */

static bool ask(int fd, unsigned port, const char *path)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval bound = {.tv_sec = ANSWER_S};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return false;
	char text[256];
	int length =
		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", path, port);
	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
		return false;
	static const char fine[] = "HTTP/1.1 200 ";
	enum { FINE_BYTES = sizeof(fine) - 1 };
	return recv(fd, text, FINE_BYTES, MSG_WAITALL) == FINE_BYTES && memcmp(text, fine, FINE_BYTES) == 0;
}

static bool answers(unsigned port, const char *path)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool fine = ask(fd, port, path);
	close(fd);
	return fine;
}

/* The services first: an agent that finds one missing would leave it out for a while. */
static bool part_answers(const struct demo *demo, unsigned site, enum demo_part part)
{
	if (part != DEMO_AGENT)
		return answers(demo_port(demo, site, DEMO_PORT_SERVICES + part), "/healthz");
	if (!answers(demo_port(demo, site, DEMO_PORT_API), "/cheops/v1/health"))
		return false;
	for (unsigned i = 0; i < DEMO_SERVICES; i++) {
		if (!answers(demo_port(demo, site, DEMO_PORT_FRONTS + i), "/healthz"))
			return false;
	}
	return true;
}

/* Waits for one part. DEMO_NOTHING: it answers. */
static enum demo_event await_part(struct demo *demo, unsigned site, enum demo_part part, int64_t until_ms)
{
	while (!part_answers(demo, site, part)) {
		enum demo_event event = demo_wait(demo, RETRY_MS);
		if (event != DEMO_NOTHING)
			return event;
		if (demo_now_ms() > until_ms) {
			cli_say("%s of Site%u does not answer within %d s", demo_part_names[part], site + 1, READY_MS / 1000);
			demo_tell_log(demo, site, part);
			return DEMO_CHILD;
		}
	}
	return DEMO_NOTHING;
}

/* Waits until the agent of a site sees all sites. */
static enum demo_event await_sight(struct demo *demo, unsigned site, int64_t until_ms)
{
	while (!demo_sees_all(demo, site)) {
		enum demo_event event = demo_wait(demo, RETRY_MS);
		if (event != DEMO_NOTHING)
			return event;
		if (demo_now_ms() > until_ms) {
			cli_say("Site%u does not see all sites within %d s", site + 1, READY_MS / 1000);
			demo_tell_log(demo, site, DEMO_AGENT);
			return DEMO_CHILD;
		}
	}
	return DEMO_NOTHING;
}

static enum demo_event await_all(struct demo *demo)
{
	int64_t until_ms = demo_now_ms() + READY_MS;
	enum demo_event event = DEMO_NOTHING;
	for (unsigned site = 0; event == DEMO_NOTHING && site < demo->options.sites_count; site++) {
		for (unsigned part = 0; event == DEMO_NOTHING && part < DEMO_PARTS; part++)
			event = await_part(demo, site, (enum demo_part)part, until_ms);
	}
	for (unsigned site = 0; event == DEMO_NOTHING && site < demo->options.sites_count; site++)
		event = await_sight(demo, site, until_ms);
	return event;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* The others join through it. */
static int await_first(struct demo *demo)
{
	int64_t until_ms = demo_now_ms() + READY_MS;
	enum demo_event event = DEMO_NOTHING;
	for (unsigned part = 0; event == DEMO_NOTHING && part < DEMO_PARTS; part++)
		event = await_part(demo, 0, (enum demo_part)part, until_ms);
	if (event == DEMO_CHILD)
		demo_tell_ended(demo);
	return event == DEMO_NOTHING ? CLI_FINE : CLI_REFUSED;
}

static int start_all(struct demo *demo)
{
	int status = demo_init(demo);
	for (unsigned site = 0; site < demo->options.sites_count; site++) {
		for (unsigned part = 0; status == CLI_FINE && part < DEMO_PARTS; part++) {
			if (part == DEMO_AGENT && site > 0)
				status = demo_join(demo, site);
			if (status == CLI_FINE)
				status = demo_start(demo, site, (enum demo_part)part);
			if (status == CLI_FINE && part == DEMO_AGENT && site == 0)
				status = await_first(demo);
		}
	}
	return status;
}

static int say_ready(const struct demo *demo)
{
	struct buf out = {0};
	if (demo->options.json)
		demo_put_json(&out, demo);
	else
		demo_put_guide(&out, demo);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

static int serve(struct demo *demo)
{
	enum demo_event event = await_all(demo);
	if (event == DEMO_NOTHING) {
		int status = say_ready(demo);
		if (status != CLI_FINE)
			return status;
		while (event == DEMO_NOTHING)
			event = demo_wait(demo, -1);
	}
	if (event == DEMO_STOP)
		return CLI_FINE;
	demo_tell_ended(demo);
	return CLI_REFUSED;
}

static int run(struct demo *demo)
{
	int status = demo_find_programs(demo);
	if (status == CLI_FINE)
		status = demo_check_ports(demo);
	if (status == CLI_FINE)
		status = demo_watch(demo);
	if (status == CLI_FINE)
		status = demo_make_place(demo);
	if (status == CLI_FINE)
		status = start_all(demo);
	if (status == CLI_FINE)
		status = serve(demo);
	demo_stop(demo);
	return status;
}

int demo_run(const struct demo_options *options)
{
	struct demo demo = {.options = *options, .lock = -1, .signals = -1};
	int status = run(&demo);
	demo_leave_place(&demo);
	if (demo.signals >= 0)
		close(demo.signals);
	buf_free(&demo.program);
	buf_free(&demo.sample);
	buf_free(&demo.dir);
	return status;
}
