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

	LIMIT_API_LIST = 200,        /* items of a page that the API lists */
	LIMIT_API_LISTENERS = 64,    /* that follow changes at a time */
	LIMIT_ENGINE_WAITS = 1024,   /* requests that wait for an operation to be applied, or for a change */
	LIMIT_ENGINE_WAIT_S = 300,   /* that `Prefer: wait=N` may ask for */
	LIMIT_ENGINE_EARLY = 256,    /* operations answered before they were done, of which it is remembered what became */
	LIMIT_ENGINE_SPREAD = 128,   /* sites that a list is asked for, or named as not asked */
	LIMIT_ENGINE_TYPES = 1024,   /* with replicas, among which what a reference names is looked for */
	LIMIT_ENGINE_CHANGES = 4096, /* remembered, for those who follow them */
	LIMIT_ENGINE_VERIFIES = 64,  /* replicants whose copies are compared, or read for others, at a time */
	LIMIT_ENGINE_BRINGS = 256,   /* requests for which what they require is brought along, at a time; */
	LIMIT_ENGINE_BROUGHT = 32,   /* things that one of them may require, with what those require, */
	LIMIT_ENGINE_BROUGHT_DEEP = 8,         /* and so on, so far */
	LIMIT_ENGINE_PARTS = 256,              /* of one copy that are told of */
	LIMIT_ENGINE_ELEMENTS = 256,           /* of a list that a new member gets one by one */
	LIMIT_ENGINE_GIFTS = 64,               /* states that are given on request, at a time */
	LIMIT_ENGINE_COMPARED_BYTES = 1 << 20, /* of a copy that is sent to be compared: of a longer one, its digest */
	LIMIT_ENGINE_DIFFERENCES = 20,         /* told of one copy */
	LIMIT_ENGINE_SHOWN_BYTES = 80,         /* of a value that differs */
	LIMIT_ENGINE_HOOK_EVENTS = 64,         /* told to a webhook in one request */
	LIMIT_API_BODY_BYTES = 64 << 10,       /* of a request to the agent's own API */

	/* requests that may be tried at several sites */
	LIMIT_PROXY_KEPT_BODY_BYTES = 64 << 10, /* larger bodies are streamed, and go to one site */
	LIMIT_PROXY_RACERS = 8,                 /* attempts of one request at a time */
	LIMIT_PROXY_TOLD_ATTEMPTS = 32,         /* listed in one answer */

	/* what carries a scope */
	LIMIT_PROXY_PROFILE_BYTES = 1 << 10, /* a trace of osprofiler, as its header has it */

	/* answers of several sites put together */
	LIMIT_GATHER_SITES = 64,
	LIMIT_GATHER_WINDOW_BYTES =
		16 << 10, /* of a list, read before the answer begins: what is wrong there is told in its head */
	LIMIT_GATHER_AROUND_BYTES = 256 << 10, /* before the array of a list, and again behind it */
	LIMIT_GATHER_ELEMENT_BYTES = 4 << 20,  /* of one element */
	LIMIT_GATHER_REPLICAS = 1 << 20,       /* shown in one list: each is remembered, to be shown once */
	LIMIT_GATHER_PARTS = 1 << 16,          /* of divided resources in one list: they wait for each other, */
	LIMIT_GATHER_PARTS_BYTES = 16 << 20,   /* and have so many bytes */
	LIMIT_GATHER_BODY_BYTES = 1 << 20,     /* of an answer that is no list, from one site, */
	LIMIT_GATHER_BODIES_BYTES = 16 << 20,  /* and from all of them */

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

	/* descriptions of applications */
	LIMIT_GLUE_FILE_BYTES = 1 << 20,
	LIMIT_GLUE_SERVICES = 64,
	LIMIT_GLUE_TYPES = 512,
	LIMIT_GLUE_TEMPLATES = 4096,   /* of all types together, and of all their operations */
	LIMIT_GLUE_OPERATIONS = 64,    /* of one type */
	LIMIT_GLUE_FACETS = 16,        /* of one type */
	LIMIT_GLUE_POINTERS = 128,     /* of one type */
	LIMIT_GLUE_SEGMENTS = 32,      /* of a path */
	LIMIT_GLUE_VARIABLES = 8,      /* of a template */
	LIMIT_GLUE_NAME_BYTES = 128,   /* of a service, a type, an operation, a variable, a header */
	LIMIT_GLUE_TEXT_BYTES = 512,   /* of a template, a pointer, a query, any other text */
	LIMIT_GLUE_PREFIXES = 8,       /* of one service */
	LIMIT_GLUE_HEADERS = 16,       /* of one service's credentials */
	LIMIT_GLUE_STATUSES = 8,       /* that blame a credential */
	LIMIT_GLUE_ERROR_NAMES = 32,   /* of errors of one service */
	LIMIT_GLUE_RULES = 128,        /* resolutions of one type */
	LIMIT_GLUE_VALUES = 16,        /* methods, contents, query members or their values, of one operation */
	LIMIT_GLUE_NESTING = 256,      /* of JSON that ids are looked for in */
	LIMIT_GLUE_VALUE_BYTES = 2048, /* a longer value is no id and no link */
	LIMIT_GLUE_MEMBER_BYTES =
		256, /* of a name in a pointer: with every byte escaped (\\u0041), it fits into a value's */
	LIMIT_GLUE_PLACES_NODES = 4096,
	LIMIT_GLUE_COMPARE_BYTES = 16 << 20,   /* of a body that is compared */
	LIMIT_GLUE_FINDINGS = 100,             /* told of one file */
	LIMIT_GLUE_EXPLAINED_BYTES = 16 << 20, /* a body that `cheops app explain` is given */
	LIMIT_GLUE_OPENAPI_BYTES = 64 << 20,   /* a file that `cheops app import` reads */

	/* the store */
	LIMIT_STORE_KEY_BYTES = 480,   /* with what the store adds, LMDB takes 511 */
	LIMIT_STORE_INDEX_BYTES = 508, /* key in an index and key of the row, together */
	LIMIT_STORE_ROW_BYTES = 16 << 20,
	LIMIT_STORE_ROW_VERSION = 65535,
	LIMIT_STORE_TABLES = 32,
	LIMIT_STORE_INDEXES = 4,     /* of one table */
	LIMIT_STORE_NAME_BYTES = 32, /* of a table or index */
	LIMIT_STORE_READERS = 126,   /* at a time */
	LIMIT_STORE_UNSYNCED = 1024, /* commits that a crash of the memory engine can lose */
	LIMIT_STORE_DEFAULT_GB = 64, /* what is used of the file, where the configuration does not say */

	/* replicated resources */
	LIMIT_REPLICA_MEMBERS = 64,
	LIMIT_REPLICA_HOLDERS = 8,       /* of what lies elsewhere: sites that a request for it is sent on to */
	LIMIT_REPLICA_ALIASES = 64,      /* that lead to each other: one for each member at most */
	LIMIT_REPLICA_CLASSES = 64,      /* operations that the rules of one replicant tell apart */
	LIMIT_REPLICA_OPERATIONS = 4096, /* of one replicant, not yet executed everywhere */
	LIMIT_REPLICA_REPLAYED =
		2048, /* of what is divided: changes that may have to be run again. No more are taken then */
	LIMIT_REPLICA_MESSAGE_BYTES = 1 << 20, /* between members */
	LIMIT_REPLICA_HEAD_BYTES = 16 << 10,   /* of a request, as it travels */
	LIMIT_REPLICA_BODY_BYTES = 64 << 10,   /* a longer body travels as a blob */
	LIMIT_REPLICA_READ_BYTES = 4 << 20,    /* of a body that ids are looked for in, and so is read as a whole */
	LIMIT_REPLICA_BLOB_GB = 1024,          /* of any other body */
	LIMIT_REPLICA_SECRET_BYTES = 16 << 10,
	LIMIT_REPLICA_REFERENCES = 64,    /* of one request */
	LIMIT_REPLICA_ANSWER_BYTES = 512, /* kept of a service's answer, for people */
	LIMIT_REPLICA_QUEUE = 256,        /* requests of users that wait for their turn on one replicant */
	LIMIT_REPLICA_LOANS = 1024,       /* long bodies of what is `weak` that are kept for others, or waited for */
	LIMIT_REPLICA_KEY_BYTES = 400,    /* of an Idempotency-Key with whom it is from */
	LIMIT_REPLICA_NAME_BYTES = 200,   /* of a service, a type, a local id */

	/* what refers to what */
	LIMIT_DEPS_SHOWN = 500,        /* resources in one tree of what depends on what, */
	LIMIT_DEPS_DEPTH = 16,         /* and how deep it goes */
	LIMIT_RELATION_FACTS = 128,    /* references with a kind, of one resource */
	LIMIT_RELATION_NAMED = 8,      /* of those that rely on what is deleted, in its answer; */
	LIMIT_RELATION_COUNTED = 1000, /* and counted, beside these */
	LIMIT_RELATION_SITES = 8,      /* that what is referred to is taken from: any of them will do */

	/* cross resources */
	LIMIT_CROSS_FIELDS = 32,               /* of a body that are divided, or combined */
	LIMIT_CROSS_ELEMENTS = 1 << 16,        /* of a list that is divided, or put together */
	LIMIT_CROSS_DECIMALS = 18,             /* decimal places of a number that is divided, or summed */
	LIMIT_CROSS_HEADER_BYTES = 4096,       /* of Cheops-Divide */
	LIMIT_CROSS_MESSAGE_BYTES = 64 << 10,  /* on names, between the sites of a container */
	LIMIT_CROSS_CONTENTS = 4096,           /* of a container, that are deleted with it at a time */
	LIMIT_CROSS_CONTENTS_SHOWN = 64,       /* of these, in an answer */
	LIMIT_CROSS_WAITING = 4096,            /* names asked for, of one site, that are not decided yet */
	LIMIT_CROSS_COMBINED_BYTES = 64 << 20, /* of what the parts of a resource are put together to */

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
	LIMIT_AGENT_CREDENTIAL_BYTES = 8 << 10, /* of this agent, for a service */
	LIMIT_AGENT_WEBHOOKS = 16,
	LIMIT_AGENT_URL_BYTES = 1024,           /* of a webhook */
	LIMIT_AGENT_SECRET_BYTES = 1024,        /* that webhooks are signed with; all keys of osprofiler */
	LIMIT_AGENT_KEYS = 8,                   /* of osprofiler */
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
