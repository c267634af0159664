/* Every bound of the product, in one place. A bound that a user can meet is named in the error that it causes. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
	/* scope-lang (DESIGN 4) */
	LIMIT_SCOPE_TEXT_BYTES = 4096,  /* text of one scope */
	LIMIT_SCOPE_SITES = 256,        /* sites named by one scope, and sites in one plan */
	LIMIT_SCOPE_NESTING = 32,       /* parentheses, calls and `!` inside one another */
	LIMIT_SCOPE_CALLS = 32,         /* functions and `!` in one scope: each may sort all sites */
	LIMIT_SCOPE_DURATION_S = 86400, /* the longest duration */
	LIMIT_SCOPE_ENTRIES = 64,       /* services that one scope names */
	LIMIT_SCOPE_TAGS = 8,           /* key=value pairs of one tagged() */
	LIMIT_SCOPE_WARNINGS = 16,      /* warnings kept with one plan */
	LIMIT_SCOPE_CACHED_BYTES = 512, /* longer texts are evaluated each time: they are rare, and would fill the cache */
	LIMIT_SCOPE_CACHED_PLAN_BYTES = 32 << 10, /* nor is a scope kept whose tree and plan take more */
	LIMIT_SCOPE_CACHE_ENTRIES = 512,          /* scopes that one cache remembers, */
	LIMIT_SCOPE_CACHE_BYTES = 4 << 20,        /* and the memory of all of them */

	/* what a person is shown */
	LIMIT_NAME_SHOWN_BYTES = 48,   /* of a name inside a message; the rest becomes an ellipsis */
	LIMIT_PATH_SHOWN_BYTES = 96,   /* of a file's path; its beginning becomes an ellipsis */
	LIMIT_SUGGEST_NAME_BYTES = 64, /* longer names get no "did you mean" */
	LIMIT_ERROR_TEXT_BYTES = 320,  /* one message, one hint */

	/* HTTP */
	LIMIT_HTTP_BUFFER_BYTES = 64 << 10,    /* what one direction of one connection holds at the most */
	LIMIT_TLS_PEER_CHAIN_BYTES = 32 << 10, /* certificates that the other side may show */
	LIMIT_TLS_CHAIN = 8,                   /* certificates between one and its root */

	LIMIT_API_BODY_BYTES = 64 << 10, /* of a request to the agent's own API */

	/* requests that may be tried at several sites */
	LIMIT_PROXY_KEPT_BODY_BYTES = 64 << 10, /* larger bodies are streamed, and go to one site */
	LIMIT_PROXY_RACERS = 8,                 /* attempts of one request at a time */
	LIMIT_PROXY_TOLD_ATTEMPTS = 32,         /* listed in one answer */

	/* logging */
	LIMIT_LOG_LINE_BYTES = 4096,

	/* YAML files: libyaml takes quadratic time on the first two */
	LIMIT_YAML_NESTING = 16,    /* our formats need 5; the rest is for a clearer complaint than "too deep" */
	LIMIT_YAML_ANCHORS = 1000,  /* with `&` */
	LIMIT_YAML_ENTRY_BYTES = 4, /* an entry takes at least `a: ` and a newline: a file has no more than that many */

	/* files that the command line reads */
	LIMIT_VIEW_FILE_BYTES = 1 << 20, /* --view FILE */
	LIMIT_VIEW_SITES = 1000,         /* sites in one table */
	LIMIT_VIEW_SERVICES = 256,       /* services in one table */
	LIMIT_VIEW_RTT_MS = 3600 * 1000, /* the longest round trip */

	LIMIT_CLI_ANSWER_BYTES = 64 << 20, /* what an agent answers: LIMIT_SITES of them fit into it */

	/* cheops demo */
	LIMIT_DEMO_SITES = 20,

	/* sites */
	LIMIT_SITE_DATAGRAM_BYTES = 1200, /* of gossip, with what sealing adds: gets through any network unfragmented */
	LIMIT_SITE_MESSAGE_BYTES = 1140,  /* of gossip, before it is sealed */
	LIMIT_SITE_CARD_BYTES = 960,      /* a whole record: one has to fit into a datagram with others */
	LIMIT_SITES = 20000,              /* in one table */
	LIMIT_SITE_REMOVALS = 20000,      /* remembered */
	LIMIT_SITE_ROOTS = 32,            /* records on roots remembered: those no longer trusted, too */
	LIMIT_TRUST_ROOTS = 8,            /* trusted at once */
	LIMIT_TRUST_FILE_BYTES = 1 << 16, /* a key, a certificate with its chain, a list of roots */
	LIMIT_TRUST_CERTIFICATE_BYTES =
		4096,                      /* one, or a request for one (DER); a site's has to fit into its card as well */
	LIMIT_TRUST_TOKEN_BYTES = 320, /* the text of a join token */

	/* the agent's configuration */
	LIMIT_AGENT_FILE_BYTES = 1 << 20,
	LIMIT_AGENT_NAME_BYTES = 128,    /* of a site, a service, a version, a tag */
	LIMIT_AGENT_SERVICES = 64,       /* at this site: each is a listener in each thread */
	LIMIT_AGENT_INSTANCES = 64,      /* of one service */
	LIMIT_AGENT_TAGS = 64,           /* of one site */
	LIMIT_AGENT_SEEDS = 16,          /* addresses at which other sites may be found */
	LIMIT_POLICY_RULES = 64,         /* for peers */
	LIMIT_POLICY_SITES = 256,        /* that one rule names */
	LIMIT_POLICY_RATE = 1000000,     /* requests per second, or at once, that a rule may set */
	LIMIT_AGENT_PEM_BYTES = 1 << 20, /* a certificate with its chain, a key, a list of roots */
	LIMIT_AGENT_HOST_BYTES = 253,    /* of a name that an instance has to prove */
	LIMIT_AGENT_THREADS = 64,
	LIMIT_AGENT_HEADER_BYTES = 64,          /* name of a header that carries a scope */
	LIMIT_AGENT_PREFIX_BYTES = 32,          /* what stands before the UUID of a request id */
	LIMIT_AGENT_TIMEOUT_S = 86400,          /* any of `timeouts` */
	LIMIT_AGENT_HEAD_LEAST_BYTES = 1 << 10, /* limits of messages: the range of each */
	LIMIT_AGENT_HEAD_BYTES = 48 << 10,      /* a head has to fit into one buffer of http */
	LIMIT_AGENT_FIELDS_LEAST = 16,
	LIMIT_AGENT_FIELDS = 1024,
	LIMIT_AGENT_TARGET_LEAST_BYTES = 256,
	LIMIT_AGENT_CONNECTIONS = 1000000, /* of clients, in each thread */
};

#endif
