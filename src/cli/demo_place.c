/* Where a demo lives: its ports, its programs, and its folder.
 *
 *     DIR/lock                 held while a demo uses the folder
 *     DIR/Site1/agent.yaml     written at each start
 *     DIR/Site1/state/         the agent's key and certificate, and the sites that it knows; made anew on other ports
 *     DIR/Site1/compute/       the service's state
 *     DIR/Site1/compute.log    what it says, as agent.log
 *     DIR/Site1/compute.requests   what it was asked, one JSON line each
 */
#include "cli/demo.h"

#include "agent/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_OPEN = 16, CONFIG_BYTES = 1 << 16 };

const char *const demo_part_names[DEMO_PARTS] = {
	[DEMO_COMPUTE] = "compute", [DEMO_IMAGE] = "image", [DEMO_NETWORK] = "network", [DEMO_AGENT] = "agent"};

/* ---- Ports ------------------------------------------------------------------------------------------------------ */

unsigned demo_port(const struct demo *demo, unsigned site, unsigned offset)
{
	return demo->options.base_port + DEMO_SITE_PORTS * site + offset;
}

/* What the port is for; NULL: nothing. */
static const char *port_use(unsigned offset)
{
	if (offset == DEMO_PORT_API)
		return "the API";
	if (offset == DEMO_PORT_PEER)
		return "the agent's port for other agents";
	if (offset >= DEMO_PORT_FRONTS && offset < DEMO_PORT_FRONTS + DEMO_SERVICES)
		return demo_part_names[offset - DEMO_PORT_FRONTS];
	if (offset >= DEMO_PORT_SERVICES && offset <= DEMO_PORT_LAST)
		return "a service";
	return NULL;
}

/* 0, or why nobody can listen there. */
static int port_error(unsigned port, int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = 1;
	if (fd < 0)
		return errno;
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int error = bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
	close(fd);
	return error;
}

/* The first port that cannot be had: 0 or why, its site and what it is for. */
static int find_taken(const struct demo *demo, unsigned *site, unsigned *offset)
{
	for (*site = 0; *site < demo->options.sites_count; ++*site) {
		for (*offset = 0; *offset <= DEMO_PORT_LAST; ++*offset) {
			unsigned port = demo_port(demo, *site, *offset);
			int error = port_use(*offset) != NULL ? port_error(port, SOCK_STREAM) : 0;
			if (error == 0 && *offset == DEMO_PORT_PEER)
				error = port_error(port, SOCK_DGRAM);
			if (error != 0)
				return error;
		}
	}
	return 0;
}

/* Another base, a thousand up or more, where all ports are free; 0 if none was found. */
static unsigned find_free_base(const struct demo *demo)
{
	enum { STEP = 1000, MOST_BASE = 60000 };
	struct demo other = {.options = demo->options};
	unsigned site, offset;
	while ((other.options.base_port += STEP) <= MOST_BASE) {
		if (find_taken(&other, &site, &offset) == 0)
			return other.options.base_port;
	}
	return 0;
}

int demo_check_ports(const struct demo *demo)
{
	unsigned site, offset;
	int error = find_taken(demo, &site, &offset);
	if (error == 0)
		return CLI_FINE;
	unsigned port = demo_port(demo, site, offset);
	if (error != EADDRINUSE) {
		cli_say("cannot listen on port %u: %s", port, strerror(error));
		return CLI_REFUSED;
	}
	unsigned free_base = find_free_base(demo);
	if (free_base != 0)
		cli_say("port %u (%s at Site%u) is taken; choose other ports, for example with --base-port %u", port,
		        port_use(offset), site + 1, free_base);
	else
		cli_say("port %u (%s at Site%u) is taken; choose other ports with --base-port", port, port_use(offset),
		        site + 1);
	return CLI_REFUSED;
}

/* ---- Programs --------------------------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat about;
	return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

static bool try_sample(struct demo *demo, struct str folder)
{
	buf_clear(&demo->sample);
	buf_printf(&demo->sample, "%.*s/cheops-sample", STR_FMT(folder));
	return is_program(buf_c(&demo->sample));
}

static bool find_in_path(struct demo *demo)
{
	const char *rest = getenv("PATH");
	while (rest != NULL && *rest != '\0') {
		size_t length = strcspn(rest, ":");
		if (length > 0 && try_sample(demo, str_make(rest, length)))
			return true;
		rest += length + (rest[length] == ':');
	}
	return false;
}

static int find_sample(struct demo *demo)
{
	if (demo->options.sample != NULL) {
		buf_put(&demo->sample, str_of(demo->options.sample));
		if (is_program(buf_c(&demo->sample)))
			return CLI_FINE;
		cli_say("--sample is " TEXT_PATH_FMT ", which is not a program", TEXT_PATH(demo->options.sample));
		return CLI_REFUSED;
	}
	const char *name = strrchr(buf_c(&demo->program), '/');
	struct str folder = str_make(buf_c(&demo->program), name != NULL ? (size_t)(name - demo->program.at) : 0);
	if (try_sample(demo, folder) || find_in_path(demo))
		return CLI_FINE;
	cli_say("the sample application, cheops-sample, is neither in %.*s nor in a folder of PATH; give its path with "
	        "--sample",
	        STR_FMT(folder));
	return CLI_REFUSED;
}

int demo_find_programs(struct demo *demo)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
	if (length < 0 || (size_t)length >= sizeof(path)) {
		cli_say("cannot find out where this program is: %s", strerror(length < 0 ? errno : ENAMETOOLONG));
		return CLI_REFUSED;
	}
	buf_put(&demo->program, str_make(path, (size_t)length));
	int status = find_sample(demo);
	if (!is_program(buf_c(&demo->program))) {
		/* The file was replaced while it runs. Its agents are to be the same program. */
		buf_clear(&demo->program);
		buf_put(&demo->program, STR("/proc/self/exe"));
	}
	return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

struct buf demo_path(const struct demo *demo, unsigned site, const char *name, const char *suffix)
{
	struct buf path = {0};
	buf_printf(&path, "%s/Site%u/%s%s", buf_c(&demo->dir), site + 1, name, suffix);
	return path;
}

static int cannot(const char *what, const char *path)
{
	cli_say("cannot %s " TEXT_PATH_FMT ": %s", what, TEXT_PATH(path), strerror(errno));
	return CLI_REFUSED;
}

static int write_file(const char *path, struct str text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		return flags & O_EXCL && errno == EEXIST ? CLI_FINE : cannot("write", path);
	ssize_t written = write(fd, text.at, text.length);
	if (written >= 0 && (size_t)written < text.length)
		errno = ENOSPC;
	bool failed = written != (ssize_t)text.length;
	if (failed)
		(void)cannot("write", path);
	close(fd);
	return failed ? CLI_REFUSED : CLI_FINE;
}

const char *demo_carry_of(const char *forward)
{
	static const struct {
		const char *forward, *carry;
	} modes[] = {
		{"headers", "[header]"},
		{"baggage", "[baggage]"},
		{"trace", "[traceparent]"},
		{"request-id", "[\"request-id:X-Request-Id\"]"},
		{"header=X-Auth-Token", "[\"append:X-Auth-Token\"]"},
		{"none", "[]"},
	};
	if (forward == NULL)
		return "[header, baggage]";
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(forward, modes[i].forward) == 0)
			return modes[i].carry;
	}
	return NULL;
}

/* Everything shares one machine, which may be busy: hundreds of requests at once are as many TLS handshakes. */
static void put_config(struct buf *out, const struct demo *demo, unsigned site)
{
	buf_printf(out,
	           "# Written by `cheops demo` at each start.\n"
	           "site: Site%u\n"
	           "api: 127.0.0.1:%u\n"
	           "peer: 127.0.0.1:%u\n"
	           "threads: 2\n"
	           "state: state\n"
	           "application: sample\n"
	           "timeouts: {connect: 10s, stop: 3s}\n"
	           "services:\n",
	           site + 1, demo_port(demo, site, DEMO_PORT_API), demo_port(demo, site, DEMO_PORT_PEER));
	for (unsigned i = 0; i < DEMO_SERVICES; i++) {
		/* compute calls the others, which call nobody */
		const char *carry = i == DEMO_COMPUTE ? demo_carry_of(demo->options.forward) : "[]";
		buf_printf(out, "  %s:\n    front: 127.0.0.1:%u\n    instances: 127.0.0.1:%u\n    carry: %s\n",
		           demo_part_names[i], demo_port(demo, site, DEMO_PORT_FRONTS + i),
		           demo_port(demo, site, DEMO_PORT_SERVICES + i), carry);
	}
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
	(void)about;
	(void)kind;
	(void)walk;
	return remove(path);
}

/* What agents know of each other has addresses in it. When all of them have moved at once, nobody would find anybody: then
 * the sites join anew. */
static void forget_if_moved(const struct demo *demo, unsigned site, const char *config)
{
	struct buf text = {0}, state = demo_path(demo, site, "state", "");
	char peer[40];
	snprintf(peer, sizeof(peer), "\npeer: 127.0.0.1:%u\n", demo_port(demo, site, DEMO_PORT_PEER));
	if (agent_file_read(config, CONFIG_BYTES, &text, NULL) == 0 && strstr(buf_c(&text), peer) == NULL)
		nftw(buf_c(&state), remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
	buf_free(&text);
	buf_free(&state);
}

static int make_site(const struct demo *demo, unsigned site)
{
	struct buf folder = demo_path(demo, site, "", ""), path = demo_path(demo, site, "agent", ".yaml"), text = {0};
	put_config(&text, demo, site);
	forget_if_moved(demo, site, buf_c(&path));
	int status = CLI_FINE;
	if (mkdir(buf_c(&folder), 0700) != 0 && errno != EEXIST)
		status = cannot("make", buf_c(&folder));
	if (status == CLI_FINE)
		status = write_file(buf_c(&path), buf_str(&text), O_TRUNC);
	buf_free(&folder);
	buf_free(&path);
	buf_free(&text);
	return status;
}

/* ---- The folder ------------------------------------------------------------------------------------------------- */

/* Makes the folder and those above it. */
static int make_folders(struct buf *path)
{
	for (size_t i = 1; i <= path->length; i++) {
		if (i < path->length && path->at[i] != '/')
			continue;
		char kept = path->at[i];
		path->at[i] = '\0';
		bool failed = mkdir(path->at, 0700) != 0 && errno != EEXIST;
		int status = failed ? cannot("make", path->at) : CLI_FINE;
		path->at[i] = kept;
		if (failed)
			return status;
	}
	return CLI_FINE;
}

static int make_temporary(struct demo *demo)
{
	const char *above = getenv("TMPDIR");
	buf_printf(&demo->dir, "%s/cheops-demo-XXXXXX", above != NULL && *above != '\0' ? above : "/tmp");
	if (mkdtemp(demo->dir.at) == NULL)
		return cannot("make", buf_c(&demo->dir));
	demo->made_dir = true;
	return CLI_FINE;
}

/* Two demos in one folder would write into each other's files. */
static int take_lock(struct demo *demo)
{
	struct buf path = {0};
	buf_printf(&path, "%s/lock", buf_c(&demo->dir));
	int status = CLI_FINE;
	demo->lock = open(buf_c(&path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (demo->lock < 0) {
		status = cannot("write", buf_c(&path));
	} else if (flock(demo->lock, LOCK_EX | LOCK_NB) != 0) {
		cli_say("another demo uses " TEXT_PATH_FMT "; choose another folder with --dir", TEXT_PATH(buf_c(&demo->dir)));
		status = CLI_REFUSED;
	}
	buf_free(&path);
	return status;
}

int demo_make_place(struct demo *demo)
{
	int status;
	if (demo->options.dir == NULL) {
		status = make_temporary(demo);
	} else {
		buf_put(&demo->dir, str_of(demo->options.dir));
		status = make_folders(&demo->dir);
	}
	if (status == CLI_FINE)
		status = take_lock(demo);
	for (unsigned site = 0; status == CLI_FINE && site < demo->options.sites_count; site++)
		status = make_site(demo, site);
	return status;
}

void demo_leave_place(struct demo *demo)
{
	if (demo->made_dir && demo->options.keep)
		cli_say("state and logs are kept in " TEXT_PATH_FMT, TEXT_PATH(buf_c(&demo->dir)));
	else if (demo->made_dir && nftw(buf_c(&demo->dir), remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) != 0)
		(void)cannot("remove", buf_c(&demo->dir));
	if (demo->lock >= 0)
		close(demo->lock);
}
