/* The processes of a demo. Each is in a process group of its own, so that Ctrl-C in a terminal reaches the demo alone,
 * which then stops them in order; and each is killed by the kernel if the demo dies. */
#include "cli/demo.h"

#include "agent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_MS = 4000, TAIL_BYTES = 4096, TAIL_LINES = 10 };

/* ---- Signals ---------------------------------------------------------------------------------------------------- */

int demo_watch(struct demo *demo)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, SIG_DFL); /* whoever started us may have ignored it, and then nobody could be waited for */
	demo->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (demo->signals >= 0)
		return CLI_FINE;
	cli_say("cannot wait for signals: %s", strerror(errno));
	return CLI_REFUSED;
}

/* Takes note of the processes that have ended. True if there was one. */
static bool reap(struct demo *demo)
{
	bool found = false;
	for (unsigned site = 0; site < demo->options.sites_count; site++) {
		for (unsigned part = 0; part < DEMO_PARTS; part++) {
			struct demo_child *child = &demo->children[site][part];
			if (child->pid == 0 || waitpid(child->pid, &child->status, WNOHANG) != child->pid)
				continue;
			child->pid = 0;
			found = true;
		}
	}
	return found;
}

enum demo_event demo_wait(struct demo *demo, int timeout_ms)
{
	struct pollfd wait = {.fd = demo->signals, .events = POLLIN};
	struct signalfd_siginfo info;
	if (poll(&wait, 1, timeout_ms) <= 0)
		return DEMO_NOTHING;
	enum demo_event event = DEMO_NOTHING;
	while (read(demo->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			event = DEMO_STOP;
	}
	bool ended = reap(demo);
	return event == DEMO_NOTHING && ended ? DEMO_CHILD : event;
}

/* ---- Start ------------------------------------------------------------------------------------------------------ */

/* What must not come from the user's environment: it would move an agent, or send calls between services to a proxy. */
void demo_clean_environment(void)
{
	static const char *const names[] = {"CHEOPS_SITE",  "CHEOPS_API",     "CHEOPS_PEER", "CHEOPS_ADVERTISE",
	                                    "CHEOPS_STATE", "CHEOPS_THREADS", "CHEOPS_LOG",  "NOTIFY_SOCKET",
	                                    "FORWARD",      "http_proxy",     "all_proxy",   "ALL_PROXY"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* Services find each other as services do: by an address in the environment. It is that of the agent's front. */
static void set_environment(const struct demo *demo, unsigned site)
{
	static const char *const variables[DEMO_SERVICES] = {
		[DEMO_COMPUTE] = "COMPUTE_URL", [DEMO_IMAGE] = "IMAGE_URL", [DEMO_NETWORK] = "NETWORK_URL"};
	char text[64];
	for (unsigned i = 0; i < DEMO_SERVICES; i++) {
		snprintf(text, sizeof(text), "http://127.0.0.1:%u", demo_port(demo, site, DEMO_PORT_FRONTS + i));
		setenv(variables[i], text, 1);
	}
	snprintf(text, sizeof(text), "Site%u", site + 1);
	setenv("SITE_NAME", text, 1);
}

static void run_service(const struct demo *demo, unsigned site, enum demo_part part)
{
	const char *name = demo_part_names[part];
	struct buf data = demo_path(demo, site, name, ""), requests = demo_path(demo, site, name, ".requests");
	char listen[64];
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", demo_port(demo, site, DEMO_PORT_SERVICES + part));
	const char *forward = demo->options.forward != NULL ? demo->options.forward : "headers";
	set_environment(demo, site);
	execl(buf_c(&demo->sample), "cheops-sample", name, "--listen", listen, "--data", buf_c(&data), "--forward", forward,
	      "--access-log", buf_c(&requests), (char *)NULL);
	cli_say("cannot run %s: %s", buf_c(&demo->sample), strerror(errno));
}

static void run_agent(const struct demo *demo, unsigned site)
{
	struct buf config = demo_path(demo, site, "agent", ".yaml");
	execl(buf_c(&demo->program), "cheops", "agent", "-c", buf_c(&config), (char *)NULL);
	cli_say("cannot run %s: %s", buf_c(&demo->program), strerror(errno));
}

/* In the new process. */
static _Noreturn void become(const struct demo *demo, unsigned site, enum demo_part part, int log, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before it was watched */
		_exit(CLI_REFUSED);
	setpgid(0, 0);
	int nothing = open("/dev/null", O_RDONLY);
	dup2(nothing, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	demo_clean_environment();
	if (part == DEMO_AGENT)
		run_agent(demo, site);
	else
		run_service(demo, site, part);
	_exit(CLI_REFUSED);
}

int demo_start(struct demo *demo, unsigned site, enum demo_part part)
{
	struct demo_child *child = &demo->children[site][part];
	struct buf path = demo_path(demo, site, demo_part_names[part], ".log");
	int log = open(buf_c(&path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0) {
		cli_say("cannot write " TEXT_PATH_FMT ": %s", TEXT_PATH(buf_c(&path)), strerror(errno));
		buf_free(&path);
		return CLI_REFUSED;
	}
	buf_free(&path);
	child->log_start = lseek(log, 0, SEEK_END);
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		become(demo, site, part, log, parent);
	close(log);
	if (pid < 0) {
		cli_say("cannot start a process: %s", strerror(errno));
		return CLI_REFUSED;
	}
	child->started = true;
	child->pid = pid;
	child->status = 0;
	return CLI_FINE;
}

/* ---- What a process left behind --------------------------------------------------------------------------------- */

/* The end of the log, of what was written since this start. */
static void read_tail(const char *path, off_t start, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	if (fd < 0 || fstat(fd, &about) != 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (about.st_size - start > TAIL_BYTES)
		start = about.st_size - TAIL_BYTES;
	if (lseek(fd, start, SEEK_SET) == start)
		(void)agent_descriptor_read(fd, TAIL_BYTES, out);
	close(fd);
}

/* The last lines of a text. */
static struct str last_lines(struct str text, int lines)
{
	while (text.length > 0 && text.at[text.length - 1] == '\n')
		text.length--;
	size_t start = text.length;
	while (start > 0 && (text.at[start - 1] != '\n' || --lines > 0))
		start--;
	return str_make(text.at + start, text.length - start);
}

void demo_tell_log(const struct demo *demo, unsigned site, enum demo_part part)
{
	struct buf path = demo_path(demo, site, demo_part_names[part], ".log"), text = {0}, out = {0};
	read_tail(buf_c(&path), demo->children[site][part].log_start, &text);
	struct str rest = last_lines(buf_str(&text), TAIL_LINES);
	buf_put(&out, rest.length > 0 ? STR("Its last lines, in ") : STR("It wrote nothing to "));
	text_put_harmless(&out, buf_str(&path));
	buf_put(&out, rest.length > 0 ? STR(":\n") : STR(".\n"));
	while (rest.length > 0) {
		const char *end = memchr(rest.at, '\n', rest.length);
		size_t length = end != NULL ? (size_t)(end - rest.at) : rest.length;
		buf_put(&out, STR("  "));
		text_put_harmless(&out, str_make(rest.at, length));
		buf_put_char(&out, '\n');
		length += end != NULL;
		rest = str_make(rest.at + length, rest.length - length);
	}
	cli_print_error(buf_str(&out));
	buf_free(&path);
	buf_free(&text);
	buf_free(&out);
}

static void tell_end(const struct demo *demo, unsigned site, enum demo_part part)
{
	int status = demo->children[site][part].status;
	if (WIFSIGNALED(status))
		cli_say("%s of Site%u was ended by signal %d (%s)", demo_part_names[part], site + 1, WTERMSIG(status),
		        strsignal(WTERMSIG(status)));
	else
		cli_say("%s of Site%u ended by itself, with exit status %d", demo_part_names[part], site + 1,
		        WEXITSTATUS(status));
	demo_tell_log(demo, site, part);
}

void demo_tell_ended(struct demo *demo)
{
	reap(demo);
	for (unsigned site = 0; site < demo->options.sites_count; site++) {
		for (unsigned part = 0; part < DEMO_PARTS; part++) {
			if (demo->children[site][part].started && demo->children[site][part].pid == 0)
				tell_end(demo, site, (enum demo_part)part);
		}
	}
}

/* ---- Stop ------------------------------------------------------------------------------------------------------- */

/* Sends a signal to those that run, of the parts from first to last. Returns how many do. */
static unsigned signal_parts(struct demo *demo, unsigned first, unsigned last, int number)
{
	unsigned running = 0;
	for (unsigned site = 0; site < demo->options.sites_count; site++) {
		for (unsigned part = first; part <= last; part++) {
			pid_t pid = demo->children[site][part].pid;
			if (pid == 0)
				continue;
			running++;
			if (number != 0)
				kill(pid, number);
		}
	}
	return running;
}

/* Asks them to end, and makes them when they take too long, or when the user asks again. False: the user did. */
static bool stop_parts(struct demo *demo, unsigned first, unsigned last, bool patient)
{
	signal_parts(demo, first, last, patient ? SIGTERM : SIGKILL);
	int64_t left_ms, until_ms = demo_now_ms() + STOP_MS;
	while (patient && signal_parts(demo, first, last, 0) > 0 && (left_ms = until_ms - demo_now_ms()) > 0) {
		patient = demo_wait(demo, (int)left_ms) != DEMO_STOP;
		reap(demo);
	}
	while (signal_parts(demo, first, last, SIGKILL) > 0) {
		(void)demo_wait(demo, STOP_MS);
		reap(demo);
	}
	return patient;
}

void demo_stop(struct demo *demo)
{
	bool patient = stop_parts(demo, DEMO_AGENT, DEMO_AGENT, true);
	stop_parts(demo, 0, DEMO_SERVICES - 1, patient);
}
