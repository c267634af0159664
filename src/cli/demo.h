/* What `cheops demo` starts: sites on this machine, each with an agent and the services of the sample application.
 *
 *     cmd_demo.c      arguments and help
 *     demo.c          start, wait until all answers, run, stop
 *     demo_place.c    ports, and the folder with configurations, state and logs
 *     demo_process.c  the processes
 *     demo_join.c     how the sites become one mesh
 *     demo_guide.c    what is printed
 *     demo_attempts.c what there is to try
 *
 * Ports, of site number i (from 0), from base_port + 100 i: +0 API, +1 to +3 fronts, +4 for other agents, +11 to +13
 * the services themselves. So with 8100, compute of Site2 is met at 8201.
 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/cli.h"

#include <sys/types.h>

enum demo_part { DEMO_COMPUTE, DEMO_IMAGE, DEMO_NETWORK, DEMO_AGENT, DEMO_PARTS };
enum { DEMO_SERVICES = DEMO_AGENT }; /* the parts before */

enum { DEMO_SITE_PORTS = 100, DEMO_PORT_API = 0, DEMO_PORT_FRONTS = 1, DEMO_PORT_PEER = 4, DEMO_PORT_SERVICES = 11 };
enum { DEMO_PORT_LAST = DEMO_PORT_SERVICES + DEMO_SERVICES - 1 };

struct demo_options {
	const char *dir;     /* NULL: a temporary one */
	const char *sample;  /* the sample application; NULL: look for it */
	const char *forward; /* what its services forward; NULL: the default */
	unsigned sites_count;
	unsigned base_port;
	bool json;
	bool keep;
};

struct demo_child {
	bool started;
	pid_t pid;       /* 0: does not run */
	int status;      /* once it has ended, as waitpid() gives it */
	off_t log_start; /* what its log had before */
};

struct demo {
	struct demo_options options;
	struct buf program; /* this executable */
	struct buf sample;
	struct buf dir;
	bool made_dir; /* a temporary one */
	int lock;      /* of the folder; -1: not held */
	int signals;   /* signalfd; -1: none */
	struct demo_child children[LIMIT_DEMO_SITES][DEMO_PARTS];
};

/* demo.c: runs it all. Returns the exit status. */
int demo_run(const struct demo_options *options);
int64_t demo_now_ms(void);

/* demo_place.c */
extern const char *const demo_part_names[DEMO_PARTS];
unsigned demo_port(const struct demo *demo, unsigned site, unsigned offset);
/* What the compute service carries the scope along with, as the configuration says it. NULL: no such mode. */
const char *demo_carry_of(const char *forward);
/* Each returns CLI_FINE, or has told what is wrong. */
int demo_find_programs(struct demo *demo);
int demo_check_ports(const struct demo *demo);
int demo_make_place(struct demo *demo);
/* Gives the folder back: removes it if it was made for this run and is not to be kept. */
void demo_leave_place(struct demo *demo);
/* The path of something below a site's folder: "agent", ".log". The caller frees it. */
struct buf demo_path(const struct demo *demo, unsigned site, const char *name, const char *suffix);

/* demo_process.c */
enum demo_event { DEMO_NOTHING, DEMO_STOP, DEMO_CHILD };
int demo_watch(struct demo *demo);
int demo_start(struct demo *demo, unsigned site, enum demo_part part);
/* What happens first within the time: a signal to stop, or one of the processes ended. timeout_ms -1: no limit. */
enum demo_event demo_wait(struct demo *demo, int timeout_ms);
/* Tells of each process that was started and has ended, with the end of its log. */
void demo_tell_ended(struct demo *demo);
/* The last lines that it wrote. */
void demo_tell_log(const struct demo *demo, unsigned site, enum demo_part part);
/* Ends all: the agents first, so that requests under way can finish. */
void demo_stop(struct demo *demo);

/* What must not come from the user's environment. In the new process. */
void demo_clean_environment(void);

/* demo_join.c. Each returns CLI_FINE, or has told what is wrong. */
int demo_init(const struct demo *demo);                /* the first site, before its agent starts */
int demo_join(const struct demo *demo, unsigned site); /* another one, once the first answers */
/* Does the agent of the site know all the others, and that they are there? */
bool demo_sees_all(const struct demo *demo, unsigned site);

/* demo_attempts.c: one request each, the last one without a path. */
struct demo_attempt {
	const char *why;     /* one line of explanation; NULL: it belongs to the one before */
	unsigned sites;      /* that it takes */
	unsigned sites_most; /* with more there is another one instead; 0: any number */
	const char *setting; /* a command before it; NULL: none */
	const char *before;  /* what is piped into it; NULL: nothing */
	const char *keep;    /* the variable that is to be the id of what was made; NULL: the answer is shown */
	const char *with;    /* arguments of curl, ending with a space; NULL: none */
	unsigned site;       /* to which it is sent, from 0 */
	enum demo_part service;
	const char *path;  /* within double quotes */
	const char *after; /* what its answer is piped into, behind it; NULL: nothing */
};
extern const struct demo_attempt demo_attempts[];

/* demo_guide.c */
void demo_put_json(struct buf *out, const struct demo *demo);
/* What to try: text that a shell can run as it stands. */
void demo_put_guide(struct buf *out, const struct demo *demo);

#endif
