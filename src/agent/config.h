/* The agent's configuration file (docs/agent.md), checked whole and made into what the proxy runs on.
 *
 * The first thing that is wrong is told as "FILE:LINE:COLUMN: ...", or with the name of the flag or variable that it comes
 * from; then *config is left alone. On success the caller has one reference to *config: proxy_config_drop().
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include "agent/agent.h"
#include "proxy/proxy.h"

/* Reads the file of the options. */
int agent_config_load(const struct agent_options *options, struct proxy_config **config, struct err *err);

/* Finds out whether this site is part of a mesh (config->meshed), and whether the configuration has what that needs. */
int agent_mesh_check(struct proxy_config *config, struct err *err);

/* The path of a description that is shipped: beside the executable once it is installed, and in the source tree. False: there
 * is none of that name. */
bool agent_application_find(struct str name, struct buf *path);

/* What agent_config_load() takes from the world, so that tests can give something else. */
struct agent_surroundings {
	/* As http_address_parse(), which is the real one. */
	int (*look_up)(struct http_address *address, struct str text, struct err *err);
	/* As agent_file_read() and, for a secret, agent_secret_read(). */
	int (*read)(const char *path, bool secret, size_t at_most, struct buf *out, struct err *err);
	/* As agent_application_find(); NULL: none is shipped. */
	bool (*application)(struct str name, struct buf *path);
	uint32_t cores;           /* the default for `threads` */
	struct hash_key hash_key; /* random */
};

/* The same from memory. The path is for complaints, and paths in the file begin in its folder. */
int agent_config_parse(struct str text, const struct agent_options *options, const struct agent_surroundings *around,
                       struct proxy_config **config, struct err *err);

#endif
