/* Inside the agent: what the thread of control has. agent.c starts and stops; mesh.c talks to the other sites; authority.c
 * signs for them, where this site has the authority's key; renew.c keeps this site's own certificate fresh.
 *
 * Everything here belongs to the thread of control, which runs a loop of its own, except where it says otherwise. */
#ifndef AGENT_AGENT_INT_H
#define AGENT_AGENT_INT_H

#include "agent/agent.h"

#include "agent/config.h"
#include "agent/identity.h"
#include "api/api.h"

struct agent;

/* ---- The other sites (mesh.c) ------------------------------------------------------------------------------------ */

struct agent_mesh;

struct agent_mesh_options {
	struct http_loop *loop; /* of the thread of control */
	const struct log *log;
	struct hash_key hash_key;
	/* There is a new snapshot, or a new certificate: the loops have to know. Takes the reference over. */
	void (*publish)(void *context, struct proxy_mesh *mesh);
	void *context;
};

struct agent_mesh *agent_mesh_new(const struct agent_mesh_options *options);
void agent_mesh_free(struct agent_mesh *mesh);

/* Applies a configuration, which the mesh keeps a reference to: opens the port, reads the identity, tells others what has
 * changed, and publishes. On failure nothing has changed. */
int agent_mesh_configure(struct agent_mesh *mesh, struct proxy_config *config, struct err *err);
/* Tells the others that this site stops, and writes the table. */
void agent_mesh_leave(struct agent_mesh *mesh);

/* NULL: this site is not part of a mesh. */
struct site *agent_mesh_site(struct agent_mesh *mesh);
struct agent_identity *agent_mesh_identity(struct agent_mesh *mesh);
const struct trust_seal_counters *agent_mesh_seal(struct agent_mesh *mesh);
const struct proxy_config *agent_mesh_config(const struct agent_mesh *mesh);
const struct log *agent_mesh_log(const struct agent_mesh *mesh);
struct http_loop *agent_mesh_loop(const struct agent_mesh *mesh);
struct http_tls *agent_mesh_client(struct agent_mesh *mesh); /* to call other agents; not a new reference */

/* The loops get what they do not have yet, at once: whoever asks the API what is known may rely on it with the next request. */
void agent_mesh_catch_up(struct agent_mesh *mesh);

struct site_now agent_now(void);

/* For how long the list of trusted roots has been what it is. */
uint64_t agent_mesh_roots_age_ms(const struct agent_mesh *mesh);

/* Signs a record with the authority's key, keeps it, and sends it to everybody. */
int agent_mesh_announce(struct agent_mesh *mesh, uint8_t kind, site_id subject, struct str body, struct err *err);
/* The certificate of this site, or the list of roots, has changed and is stored: everything that is made of them is made
 * anew. */
int agent_mesh_renewed(struct agent_mesh *mesh, struct err *err);

/* ---- The authority (authority.c) --------------------------------------------------------------------------------- */

struct agent_authority;

struct agent_authority *agent_authority_new(struct agent_mesh *mesh);
void agent_authority_free(struct agent_authority *authority);
/* What the API asks for: the functions of struct api_mesh. */
extern const struct api_mesh_functions agent_authority_functions;

/* ---- Renewal (renew.c) ------------------------------------------------------------------------------------------- */

struct agent_renewal;

struct agent_renewal *agent_renewal_new(struct agent_mesh *mesh);
void agent_renewal_free(struct agent_renewal *renewal);

/* Signs a request of a site whose name and key are known to be its own, for as long as this authority does. */
int agent_authority_sign(struct agent_mesh *mesh, struct str request_der, struct buf *certificate_der, struct err *err);
/* All trusted roots, as PEM. */
void agent_roots_write(const struct agent_identity *identity, struct buf *pem);

#endif
