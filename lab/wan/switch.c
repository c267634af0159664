/* cheops-wan-switch: the network between the sites of a lab. `lab/wan/up` starts it; see docs/lab-wan.md.
 *
 *   1. makes each site's end (tap.c), and says `ready`
 *   2. reads frames as they are sent, and finds out when they arrive (net.c)
 *   3. writes each to the end of its destination when that time has come
 *
 * One thread; it waits for devices, the control socket and the timer at once. It ends when its standard input does: that
 * is a pipe from the process that started it, so it ends with that one, however that ends. The devices go with it.
 */
#include "wan.h"

#include "base/check.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Numbers of events: the sites, and then these. */
enum { EVENT_TIMER = WAN_SITES_MAX, EVENT_INPUT, EVENT_CLIENTS };
enum { EVENTS_MAX = 64, STATUS_FINE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

struct options {
	uint64_t seed;
	int control; /* descriptor that listens */
	unsigned sites_count;
	char **sites; /* NAME=PATH */
};

struct wan_switch {
	struct wan_net *net;
	struct wan_clients *clients;
	int epoll, timer;
	int64_t armed_ns; /* what the timer is set to */
	int taps[WAN_SITES_MAX];
};

/* ---- Frames ----------------------------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void read_frames(struct wan_switch *that, unsigned site)
{
	unsigned char bytes[WAN_FRAME_BYTES + 1]; /* one more tells those that are too long */
	for (unsigned i = 0; i < WAN_BATCH; i++) {
		ssize_t length = read(that->taps[site], bytes, sizeof(bytes));
		if (length <= 0)
			return;
		wan_net_send(that->net, now_ns(), site, bytes, (size_t)length);
	}
}

static void write_frames(struct wan_switch *that)
{
	const struct wan_frame *frame;
	while ((frame = wan_net_receive(that->net, now_ns())) != NULL) {
		ssize_t written = write(that->taps[frame->to], frame->bytes, frame->length);
		wan_net_delivered(that->net, frame, written == (ssize_t)frame->length);
	}
}

static void set_timer(struct wan_switch *that)
{
	int64_t next_ns = wan_net_next_ns(that->net);
	if (next_ns == that->armed_ns || next_ns == WAN_NEVER)
		return;
	struct itimerspec at = {.it_value = {.tv_sec = next_ns / 1000000000, .tv_nsec = next_ns % 1000000000}};
	CHECK(timerfd_settime(that->timer, TFD_TIMER_ABSTIME, &at, NULL) == 0);
	that->armed_ns = next_ns;
}

/* ---- The loop --------------------------------------------------------------------------------------------------- */

/* False: the process that started us is gone, or wants us to end. */
static bool handle(struct wan_switch *that, uint32_t event)
{
	uint64_t times;
	char ignored[64];
	if (event < WAN_SITES_MAX)
		read_frames(that, event);
	else if (event == EVENT_TIMER)
		(void)!read(that->timer, &times, sizeof(times));
	else if (event == EVENT_INPUT)
		return read(STDIN_FILENO, ignored, sizeof(ignored)) > 0;
	else
		wan_clients_ready(that->clients, event);
	return true;
}

static int loop(struct wan_switch *that)
{
	struct epoll_event events[EVENTS_MAX];
	for (;;) {
		write_frames(that);
		set_timer(that);
		int count = epoll_wait(that->epoll, events, EVENTS_MAX, -1);
		for (int i = 0; i < count; i++) {
			if (!handle(that, events[i].data.u32))
				return STATUS_FINE;
		}
		if (count < 0 && errno != EINTR) {
			fprintf(stderr, "cheops-wan-switch: cannot wait: %s\n", strerror(errno));
			return STATUS_FAILED;
		}
	}
}

/* ---- Start ------------------------------------------------------------------------------------------------------ */

static void watch(struct wan_switch *that, int fd, uint32_t number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
	CHECK(epoll_ctl(that->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* Frames have to leave in time also when the sites keep the machine busy. */
static void take_priority(void)
{
	enum { NICE = -15, SLACK_NS = 1 };
	const struct sched_param lowest = {.sched_priority = 1};
	if (sched_setscheduler(0, SCHED_FIFO, &lowest) != 0)
		(void)setpriority(PRIO_PROCESS, 0, NICE);
	(void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
}

static int open_ends(struct wan_switch *that, const struct options *options)
{
	for (unsigned site = 0; site < options->sites_count; site++) {
		const char *path = strchr(options->sites[site], '=') + 1;
		struct wan_end end = {.site = site, .sites_count = options->sites_count, .netns = path};
		struct err err = {0};
		that->taps[site] = wan_tap_open(&end, &err);
		if (that->taps[site] < 0) {
			fprintf(stderr, "cheops-wan-switch: %s\n", err.text);
			return STATUS_FAILED;
		}
		watch(that, that->taps[site], site);
	}
	return STATUS_FINE;
}

static void name_sites(struct wan_net *net, const struct options *options)
{
	for (unsigned site = 0; site < options->sites_count; site++) {
		size_t length = strcspn(options->sites[site], "=");
		memcpy(net->names[site], options->sites[site], length);
	}
}

static int run(const struct options *options)
{
	struct wan_switch that = {.armed_ns = WAN_NEVER};
	that.epoll = epoll_create1(EPOLL_CLOEXEC);
	that.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	CHECK(that.epoll >= 0 && that.timer >= 0);
	that.net = wan_net_new(options->sites_count, options->seed);
	name_sites(that.net, options);
	that.clients = wan_clients_new(that.net, that.epoll, options->control, EVENT_CLIENTS);
	watch(&that, that.timer, EVENT_TIMER);
	watch(&that, STDIN_FILENO, EVENT_INPUT);
	take_priority();
	int status = open_ends(&that, options);
	if (status == STATUS_FINE) {
		puts("ready");
		fflush(stdout);
		status = loop(&that);
	}
	wan_clients_free(that.clients);
	wan_net_free(that.net);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static const char usage_text[] =
	"usage: cheops-wan-switch --control-fd NUMBER [--seed NUMBER] SITE=NAMESPACE...\n"
	"\n"
	"Joins network namespaces, each given by its path, by a network with delays and faults. lab/wan/up starts it.\n"
	"  --control-fd NUMBER   descriptor of a UNIX socket that listens: commands come there\n"
	"  --seed NUMBER         of all that is random (default: 1)\n"
	"It ends when its standard input, which has to be a pipe or a socket, does.\n";

static bool read_count(const char *text, uint64_t most, uint64_t *number)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	*number = value;
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && value <= most;
}

static int check_sites(const struct options *options)
{
	if (options->sites_count < 1 || options->sites_count > WAN_SITES_MAX) {
		fprintf(stderr, "cheops-wan-switch: %u sites; there can be 1 to %d\n", options->sites_count, WAN_SITES_MAX);
		return STATUS_USAGE;
	}
	for (unsigned i = 0; i < options->sites_count; i++) {
		size_t length = strcspn(options->sites[i], "=");
		if (length >= 1 && length <= WAN_NAME_BYTES && options->sites[i][length] == '=' &&
		    strcspn(options->sites[i], "<>* ") >= length)
			continue;
		fprintf(stderr, "cheops-wan-switch: '%s' is no SITE=NAMESPACE, with a name of 1 to %d bytes\n",
		        options->sites[i], WAN_NAME_BYTES);
		return STATUS_USAGE;
	}
	return STATUS_FINE;
}

static int read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {{"control-fd", required_argument, NULL, 'c'},
	                                      {"seed", required_argument, NULL, 's'},
	                                      {"help", no_argument, NULL, 'h'},
	                                      {0}};
	enum { DESCRIPTOR_MAX = 1 << 20 };
	uint64_t number = 0;
	int letter;
	while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (letter == 'h') {
			fputs(usage_text, stdout);
			exit(STATUS_FINE);
		}
		if (letter == '?' || !read_count(optarg, letter == 'c' ? DESCRIPTOR_MAX : UINT64_MAX, &number)) {
			fputs(usage_text, stderr);
			return STATUS_USAGE;
		}
		if (letter == 'c')
			options->control = (int)number;
		else
			options->seed = number;
	}
	options->sites = argv + optind;
	options->sites_count = (unsigned)(argc - optind);
	if (options->control < 0) {
		fputs("cheops-wan-switch: --control-fd is missing\n", stderr);
		return STATUS_USAGE;
	}
	return check_sites(options);
}

int main(int argc, char **argv)
{
	struct options options = {.seed = 1, .control = -1};
	int status = read_options(argc, argv, &options);
	return status == STATUS_FINE ? run(&options) : status;
}
