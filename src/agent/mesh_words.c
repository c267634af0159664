/* What this site says and signs, whom it trusts, and what follows from both for TLS. */
#include "agent/mesh_int.h"

#include "base/check.h"

#include <stdlib.h>

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

void agent_roots_write(const struct agent_identity *identity, struct buf *pem)
{
	for (uint32_t i = 0; i < trust_roots_count(identity->roots); i++)
		trust_pem_write(pem, trust_roots_at(identity->roots, i));
}

/* ---- Signed words ------------------------------------------------------------------------------------------------ */

/* What this site says of itself. */
static int make_card(struct agent_mesh *mesh, struct buf *record, struct err *err)
{
	const struct proxy_config *config = mesh->config;
	struct agent_identity *identity = mesh->identity;
	struct site_offer *offers = calloc(config->services_count + 1, sizeof(*offers));
	CHECK(offers);
	for (uint32_t i = 0; i < config->services_count; i++)
		offers[i] = (struct site_offer){config->services[i].name, config->services[i].version};
	struct site_card card = {.name = config->site,
	                         .address = config->advertise,
	                         .version = STR(CHEOPS_VERSION),
	                         .born_ms = identity->born_ms,
	                         .authority = identity->root_key != NULL,
	                         .certificate = buf_str(&identity->certificate),
	                         .services = offers,
	                         .services_count = config->services_count,
	                         .tags = config->tags,
	                         .tags_count = config->tags_count};
	struct buf body = {0}, signature = {0};
	int code = site_card_encode(&body, &card, err);
	if (code == 0) {
		uint64_t wall = (uint64_t)agent_now().wall_ms;
		mesh->card_version = mesh->card_version + 1 > wall ? mesh->card_version + 1 : wall;
		site_record_begin(record, SITE_CARD, trust_key_id(identity->key), mesh->card_version, buf_str(&body));
		trust_sign(identity->key, buf_str(record), &signature);
		site_record_finish(record, buf_str(&signature));
	}
	free(offers);
	buf_free(&body);
	buf_free(&signature);
	return code;
}

int mesh_tell_card(struct agent_mesh *mesh, struct err *err)
{
	struct buf record = {0};
	int code = make_card(mesh, &record, err);
	if (code == 0) {
		trust_seal_set_card(mesh->seal, buf_str(&record));
		code = site_set_card(mesh->site, buf_str(&record), agent_now(), err);
	}
	buf_free(&record);
	return code;
}

int agent_mesh_announce(struct agent_mesh *mesh, uint8_t kind, site_id subject, struct str body, struct err *err)
{
	struct buf record = {0}, signature = {0};
	site_record_begin(&record, kind, subject, (uint64_t)agent_now().wall_ms, body);
	trust_sign(mesh->identity->root_key, buf_str(&record), &signature);
	site_record_finish(&record, buf_str(&signature));
	int code = site_add_record(mesh->site, buf_str(&record), agent_now(), err);
	buf_free(&record);
	buf_free(&signature);
	if (code == 0) {
		mesh_publish(mesh); /* this site shuts out at once, too */
		mesh_store(mesh);
		mesh_review(mesh);
	}
	return code;
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

int mesh_make_tls(struct agent_mesh *mesh, struct err *err)
{
	struct agent_identity *identity = mesh->identity;
	struct buf chain = {0}, key = {0}, roots = {0};
	trust_pem_write(&chain, buf_str(&identity->certificate));
	/* Roots come along, so that a site which joins can compare their fingerprint with that of its token. */
	agent_roots_write(identity, &chain);
	agent_roots_write(identity, &roots);
	trust_key_write(identity->key, &key);
	struct http_tls_options options = {.server = true,
	                                   .peers = true,
	                                   .certificate_pem = buf_str(&chain),
	                                   .key_pem = buf_str(&key),
	                                   .roots_pem = buf_str(&roots),
	                                   .verify = HTTP_TLS_VERIFY_IF_GIVEN};
	struct http_tls *server = NULL, *client = NULL;
	int code = http_tls_new(&server, &options, err);
	options.server = false;
	options.verify = HTTP_TLS_VERIFY_ALWAYS;
	if (code == 0)
		code = http_tls_new(&client, &options, err);
	explicit_bzero(key.at, key.length);
	buf_free(&chain);
	buf_free(&key);
	buf_free(&roots);
	if (code) {
		http_tls_drop(server);
		return code;
	}
	http_tls_drop(mesh->server);
	http_tls_drop(mesh->client);
	mesh->server = server;
	mesh->client = client;
	return 0;
}

/* Roots that a trusted one vouches for are trusted from now on; those that were retired no longer. */
static int sync_roots(struct agent_mesh *mesh, bool *changed, struct err *err)
{
	struct trust_roots *roots = mesh->identity->roots;
	struct site_record record;
	struct site_root root;
	int code = 0;
	for (uint32_t n = 0; code == 0 && site_record_at(mesh->site, SITE_ROOT, n, &record); n++) {
		bool had = trust_roots_find(roots, record.subject).length > 0;
		if (site_root_parse(record.body, &root, NULL) != 0 || root.trusted == had)
			continue;
		*changed = true;
		if (root.trusted)
			code = trust_roots_add(roots, root.certificate, err);
		else
			trust_roots_remove(roots, record.subject);
	}
	return code;
}

void mesh_take_roots(struct agent_mesh *mesh)
{
	struct buf pem = {0};
	struct err err = {0};
	bool changed = false;
	int code = sync_roots(mesh, &changed, &err);
	if (!changed)
		return;
	mesh->roots_number++;
	mesh->roots_us = agent_now().us;
	agent_roots_write(mesh->identity, &pem);
	if (code == 0)
		code = agent_file_write(mesh->config->state, "roots.pem", buf_str(&pem), false, &err);
	if (code == 0)
		code = mesh_make_tls(mesh, &err);
	buf_free(&pem);
	if (code)
		log_event(mesh->options.log, LOG_ERROR, "the list of trusted roots has changed, but cannot be used",
		          LOG_STR("error", str_of(err.text)));
	else
		log_event(mesh->options.log, LOG_INFO, "the list of trusted roots has changed",
		          LOG_INT("roots", trust_roots_count(mesh->identity->roots)));
	mesh_publish(mesh);
}

uint64_t agent_mesh_roots_age_ms(const struct agent_mesh *mesh)
{
	return (agent_now().us - mesh->roots_us) / 1000;
}

int agent_mesh_renewed(struct agent_mesh *mesh, struct err *err)
{
	int code = mesh_make_tls(mesh, err);
	mesh_publish(mesh); /* first: who hears of the new certificate may stop to trust the old one */
	if (code == 0)
		code = mesh_tell_card(mesh, err);
	mesh_review(mesh);
	return code;
}
