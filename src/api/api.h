/* Cheops' own HTTP API, below /cheops/v1: health, version, metrics, reload, what this agent knows of the sites, and what the
 * authority does for them. docs/openapi.yaml describes it.
 *
 * Questions that need only what the loops have are answered in the loop that was asked. The others become jobs for the
 * thread of control (struct api_job): api_job_run() runs there.
 */
#ifndef API_API_H
#define API_API_H

#include "proxy/proxy.h"
#include "site/site.h"
#include "trust/trust.h"

/* ---- What the thread of control can do ---------------------------------------------------------------------------- */

/* Why something was refused: becomes a problem document (docs/problems.md). The detail is in the struct err. */
struct api_refusal {
	unsigned status;
	const char *type;
	const char *title;
};

struct api_token {
	struct buf text;
	int64_t ends_ms;
};

struct api_joined {
	struct buf certificate; /* DER */
	struct buf roots;       /* PEM */
	struct buf records;     /* JSON array of base64, without brackets */
	uint32_t sites;         /* that are known, with the new one */
};

/* All return 0, or a negative code with the refusal and the text set. */
struct api_mesh_functions {
	int (*token)(void *context, struct str name, int64_t ttl_ms, struct api_token *token, struct api_refusal *refusal,
	             struct err *err);
	int (*join)(void *context, struct str token, struct str name, struct str request_der, struct api_joined *joined,
	            struct api_refusal *refusal, struct err *err);
	int (*renew)(void *context, site_id from, struct str request_der, struct api_joined *joined,
	             struct api_refusal *refusal, struct err *err);
	int (*remove)(void *context, struct str name, enum site_removal_kind kind, struct api_refusal *refusal,
	              struct err *err);
	int (*rotate)(void *context, struct api_refusal *refusal, struct err *err);
	int (*retire)(void *context, bool force, struct api_refusal *refusal, struct err *err);
};

struct api_mesh {
	void *context;
	const struct api_mesh_functions *functions;
	const struct site *site; /* NULL: this site is not part of a mesh */
	const struct trust_roots *roots;
	site_id signs; /* the root that signs here; 0: the authority is elsewhere */
	const struct trust_seal_counters *seal;
	struct proxy_config *config;
	struct proxy_paths *paths;
	struct site_now now;
};

/* ---- Jobs ---------------------------------------------------------------------------------------------------------- */

struct api_job;

/* In the thread of control. Answers the job in its own loop, and frees it. */
void api_job_run(struct api_job *job, const struct api_mesh *mesh);
/* A reload was asked for and done, with "" or what is wrong. */
void api_job_reloaded(struct api_job *job, const char *error);
bool api_job_is_reload(const struct api_job *job);
/* The agent stops: nobody waits any more. */
void api_job_free(struct api_job *job);

/* What the API asks of the agent. */
struct api_agent {
	void *context;
	/* The configuration in force: the caller drops it. Any thread. */
	struct proxy_config *(*config)(void *context);
	/* NULL: there is none. Any thread. */
	struct engine *(*engine)(void *context);
	uint32_t proxies_count;
	struct proxy *const *proxies;
	/* Hands a job to the thread of control. Any thread. */
	void (*ask)(void *context, struct api_job *job);
};

/* The handler for struct proxy_shared; its context is the struct api_agent. */
void api_handle(void *context, const struct proxy_call *call);

#endif
