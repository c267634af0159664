/* The agent: configuration and wiring. What a site runs; `cheops agent` starts it. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>

/* The scalar options of the configuration. Each may also be given by flag or environment: flag, environment, file, in this
 * order. */
enum agent_option {
	AGENT_SITE,
	AGENT_API,
	AGENT_PEER,
	AGENT_ADVERTISE,
	AGENT_STATE,
	AGENT_APPLICATION,
	AGENT_THREADS,
	AGENT_LOG,
	AGENT_OPTIONS_COUNT,
};

/* "site", "api", ...: the key in the file; the flag is --site, the variable CHEOPS_SITE. */
const char *agent_option_name(enum agent_option option);

/* A value that takes the place of the file's. */
struct agent_override {
	const char *value; /* NULL: none */
	const char *from;  /* "--site", "CHEOPS_SITE": for complaints */
};

struct agent_overrides {
	struct agent_override of[AGENT_OPTIONS_COUNT];
};

/* Adds what the environment says, where nothing is said yet. The strings stay the environment's. */
void agent_overrides_add_environment(struct agent_overrides *overrides);

struct agent_options {
	const char *path; /* of the configuration */
	struct agent_overrides overrides;
	bool allow_core; /* for debugging: a core has all secrets in it */
};

/* Runs until it is told to stop. Returns the exit status. */
int agent_run(const struct agent_options *options);

#endif
