/* What the tests of the configuration share: surroundings without names to look up or anything random. */
#ifndef TESTS_UNIT_AGENT_CONFIG_TEST_H
#define TESTS_UNIT_AGENT_CONFIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config.h"
#include "config_files.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define MINIMAL                                                                                                        \
	"site: Site1\n"                                                                                                    \
	"api: 127.0.0.1:8079\n"                                                                                            \
	"services: {compute: {front: 127.0.0.1:8081, instances: 127.0.0.1:9081}}\n"

/* 127.0.0.1:80 and the like. */
static inline int numeric_look_up(struct http_address *address, struct str text, struct err *err)
{
	char host[32] = "", rest[2];
	unsigned port = 0;
	struct sockaddr_in *in = (struct sockaddr_in *)&address->socket;
	*address = (struct http_address){.length = sizeof(*in)};
	snprintf(address->text, sizeof(address->text), "%.*s", STR_FMT(text));
	*in = (struct sockaddr_in){.sin_family = AF_INET};
	if (sscanf(address->text, "%31[0-9.]:%5u%1s", host, &port, rest) == 2 && port > 0 && port < 65536 &&
	    inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_port = htons((uint16_t)port);
		return 0;
	}
	return err_set(err, ERR_INVALID, "`%.*s` is not an address", STR_FMT(utf8_truncate(text, 48)));
}

static inline struct agent_surroundings quiet_surroundings(void)
{
	return (struct agent_surroundings){.look_up = numeric_look_up, .read = read_test_file, .cores = 3};
}

/* Parses a text as PATH; the error is in *err. */
static inline int parse_as(const char *path, struct str text, struct proxy_config **config, struct err *err)
{
	struct agent_options options = {.path = path};
	struct agent_surroundings around = quiet_surroundings();
	return agent_config_parse(text, &options, &around, config, err);
}

/* It has to be accepted. */
static inline struct proxy_config *parse_fine(const char *text)
{
	struct err err = {0};
	struct proxy_config *config = NULL;
	if (parse_as("agent.yaml", str_of(text), &config, &err) != 0)
		fail_msg("%s", err.text);
	return config;
}

#endif
