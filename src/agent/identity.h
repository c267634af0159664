/* Who this site is: its key and certificate, the roots that it trusts, and, at one site at least, the authority's key.
 *
 *     STATE/site.key   STATE/site.crt    the site's own
 *     STATE/roots.pem                    trusted roots
 *     STATE/root.key   STATE/root.crt    the authority's, where this site has it
 *     STATE/born                         when the site was made, ms since 1970
 *     STATE/lifetime                     of certificates that this authority signs, in seconds
 *     STATE/sites                        the table of sites (site_dump), STATE/records those of the authority
 *     STATE/tokens   STATE/issued        what the authority has given out (tokens.h)
 *
 * Files are written whole, into a new file that then takes the old one's place; keys can be read by their owner alone.
 */
#ifndef AGENT_IDENTITY_H
#define AGENT_IDENTITY_H

#include "trust/trust.h"

struct agent_identity {
	struct trust_key *key;
	struct buf certificate; /* DER */
	struct trust_certificate about;
	struct trust_roots *roots;
	struct trust_key *root_key; /* NULL: the authority is elsewhere */
	struct buf root;            /* DER; of the root that signs now */
	int64_t born_ms;
	int64_t lifetime_ms;
};

/* Is there one? Whether it is good, loading it tells. */
bool agent_identity_exists(const char *folder);

/* ERR_NOT_FOUND: there is none in the folder (a site that is not part of a mesh). */
int agent_identity_load(const char *folder, struct agent_identity **identity, struct err *err);
void agent_identity_free(struct agent_identity *identity);

struct agent_init {
	const char *folder;
	struct str site;
	int64_t now_ms;
	int64_t lifetime_ms; /* of site certificates */
	struct str root_pem; /* the operator's own root; "" to make one */
	struct str root_key_pem;
};

enum { AGENT_LIFETIME_DAYS = 90, AGENT_ROOT_LIFETIME_DAYS = 3650, AGENT_LIFETIME_LEAST_S = 1 };

/* Makes the first site: key, root, certificate. ERR_CONFLICT where the folder has an identity already. */
int agent_identity_init(const struct agent_init *init, struct err *err);

/* Joining: a key and a request are made first, and kept nowhere until the answer is there.
 * ERR_CONFLICT where the folder has an identity already. */
int agent_identity_store(const char *folder, const struct trust_key *key, struct str certificate_der,
                         struct str roots_pem, int64_t born_ms, struct err *err);

/* A root with a new key, named after the site and the day. */
int agent_root_make(struct str site, int64_t now_ms, struct trust_key **key, struct buf *der, struct err *err);

/* Writes a file whole: its folder is made where it is not there. A secret is for its owner alone. What root writes belongs to
 * the owner of the folder. */
int agent_file_write(const char *folder, const char *name, struct str bytes, bool secret, struct err *err);

#endif
