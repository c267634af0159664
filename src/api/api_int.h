/* Inside the API: answers, and the jobs that the thread of control does. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/api.h"

#include "engine/ask.h"

extern const char api_json[]; /* content types */
extern const char api_problem_json[];

/* What a handler in the thread of control makes. */
struct api_answer {
	unsigned status;
	const char *type;
	struct buf body;
};

struct api_job {
	struct http_task task;
	struct proxy_exchange *exchange;
	struct http_loop *loop;
	const struct api_route *route;
	struct api_agent *agent;
	/* the request: copies */
	struct buf target;
	struct buf body;
	bool peer;
	site_id from;
	struct api_answer answer;
};

enum { API_ID_SEGMENT = 3 }; /* where paths of this API have an id: /cheops/v1/operations/{id} */

struct api_route {
	struct str path; /* `{id}` in it, or any name in braces, stands for any segment */
	struct str method;
	/* One of them: in the loop that was asked, or in the thread of control. */
	void (*handle)(const struct api_agent *agent, const struct proxy_call *call);
	void (*control)(struct api_job *job, const struct api_mesh *mesh);
	bool peers; /* other agents may ask, too: on their port only these are answered */
};

void api_put_problem(struct buf *body, unsigned status, const char *type, const char *title, const char *detail);
/* As the answer of a job. */
void api_refuse(struct api_job *job, const struct api_refusal *refusal, const char *detail);

/* The value of a parameter of the query, percent-decoded; "" if it is not there. */
struct str api_query(struct arena *arena, struct str target, const char *name);

/* The n-th segment of the path, from 0 on; "" if it has fewer. */
struct str api_segment(struct str target, uint32_t n);
/* Is it the path of the route? */
bool api_path_matches(struct str pattern, struct str path);
/* Decimal digits, at most that large. */
bool api_number(struct str text, uint64_t most, uint64_t *number);
/* In the loop of the exchange. */
void api_answer_problem(struct proxy_exchange *exchange, const struct api_refusal *refusal, const char *detail,
                        struct str fields);
/* The engine; NULL: there is none, and the exchange is answered. */
extern const struct api_refusal api_no_engine;
struct engine *api_engine(const struct api_agent *agent, struct proxy_exchange *exchange);
void api_put_time(struct buf *out, int64_t ms); /* null where it is not known */

/* replicas.c */
void api_put_site_name(struct buf *out, const struct engine_reply *reply, site_id site);
/* {"site":..,"shown":..,"since":.. and no closing brace: whether it can be asked at all */
void api_put_site(struct buf *out, const struct engine_reply *reply, site_id site);
void api_get_replicants(const struct api_agent *agent, const struct proxy_call *call);
void api_get_replicant(const struct api_agent *agent, const struct proxy_call *call);
void api_get_operations(const struct api_agent *agent, const struct proxy_call *call);
void api_get_operation(const struct api_agent *agent, const struct proxy_call *call);
void api_post_retry(const struct api_agent *agent, const struct proxy_call *call);
void api_post_happened(const struct api_agent *agent, const struct proxy_call *call);
void api_get_parts(const struct api_agent *agent, const struct proxy_call *call);
void api_post_replicant(const struct api_agent *agent, const struct proxy_call *call);
/* Answers as a GET of it would be. */
void api_show_replicant(const struct api_agent *agent, struct proxy_exchange *exchange, struct http_loop *loop,
                        struct replica_id id);
void api_put_member(const struct api_agent *agent, const struct proxy_call *call);
void api_delete_member(const struct api_agent *agent, const struct proxy_call *call);
void api_post_dismiss(const struct api_agent *agent, const struct proxy_call *call);

/* verify.c */
void api_get_verify(const struct api_agent *agent, const struct proxy_call *call);
void api_post_repair(const struct api_agent *agent, const struct proxy_call *call);
void api_get_copy(const struct api_agent *agent, const struct proxy_call *call);
void api_get_copy_facets(const struct api_agent *agent, const struct proxy_call *call);
void api_post_give(const struct api_agent *agent, const struct proxy_call *call);

/* changes.c */
void api_get_changes(const struct api_agent *agent, const struct proxy_call *call);

/* hooks.c */
void api_get_webhooks(const struct api_agent *agent, const struct proxy_call *call);

/* sites.c */
void api_get_sites(struct api_job *job, const struct api_mesh *mesh);
void api_post_token(struct api_job *job, const struct api_mesh *mesh);
void api_post_remove(struct api_job *job, const struct api_mesh *mesh);
void api_post_revoke(struct api_job *job, const struct api_mesh *mesh);
void api_get_authority(struct api_job *job, const struct api_mesh *mesh);
void api_post_rotate(struct api_job *job, const struct api_mesh *mesh);
void api_post_retire(struct api_job *job, const struct api_mesh *mesh);
void api_post_join(struct api_job *job, const struct api_mesh *mesh);
void api_post_renew(struct api_job *job, const struct api_mesh *mesh);

/* metrics.c */
void api_get_metrics(struct api_job *job, const struct api_mesh *mesh);

/* replicas.c: how the copies of one stand: as the worst of them. */
enum engine_copy api_worst_copy(const struct replica_view *view);

/* deps.c */
void api_get_deps(const struct api_agent *agent, const struct proxy_call *call);
void api_get_suffering(const struct api_agent *agent, const struct proxy_call *call);
/* What of it is at risk at this site, and why: a list of JSON; null: nothing. */
void api_put_risks(struct buf *out, const struct engine_reply *reply, struct replica_id id);

#endif
