/* This site among the others: the protocol of src/site on a UDP socket, sealed by src/trust, and what the loops see of it.
 *
 *   a datagram comes    it is opened (or refused and counted), and handed to the table of sites
 *   a timer             the table probes, gossips, compares; what it sends is sealed
 *   the table changed   the loops get a new snapshot, soon but not more often than PUBLISH_MS; the file a new copy, later
 *   a seed is due       this site's card is shown at the addresses of the configuration at which nobody is known to be
 *   a root changed      the list of roots is written, and TLS starts anew with it
 *
 * The table does not like to be called back, so what it sends and tells is noted first, and done by settle() afterwards.
 *
 * A site without an identity (no `cheops site init` or `join` yet) has no socket, and snapshots with itself alone.
 */
#include "agent/mesh_int.h"

#include "agent/file.h"
#include "base/check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	PUBLISH_MS = 100,        /* between two snapshots */
	PUBLISH_DRIFT_MS = 5000, /* where only distances changed */
	STORE_MS = 2000,         /* from a change of the table to its file */
	TABLE_FILE_BYTES = 64 << 20,
	SEED_ALONE_MS = 1000, /* between tries of the seeds */
	SEED_MS = 10000,
	SEED_FIRST_MS = 100, /* after the configuration */
};

static const double drift_most = 0.1; /* of a distance, before the loops are told */

struct site_now agent_now(void)
{
	struct timespec mono, wall;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct site_now){.us = (uint64_t)mono.tv_sec * 1000000 + (uint64_t)mono.tv_nsec / 1000,
	                         .wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000};
}

/* ---- Access ------------------------------------------------------------------------------------------------------ */

struct site *agent_mesh_site(struct agent_mesh *mesh)
{
	return mesh->site;
}

struct agent_identity *agent_mesh_identity(struct agent_mesh *mesh)
{
	return mesh->identity;
}

const struct trust_seal_counters *agent_mesh_seal(struct agent_mesh *mesh)
{
	return mesh->seal ? trust_seal_counters(mesh->seal) : NULL;
}

const struct proxy_config *agent_mesh_config(const struct agent_mesh *mesh)
{
	return mesh->config;
}

const struct log *agent_mesh_log(const struct agent_mesh *mesh)
{
	return mesh->options.log;
}

struct http_loop *agent_mesh_loop(const struct agent_mesh *mesh)
{
	return mesh->options.loop;
}

struct http_tls *agent_mesh_client(struct agent_mesh *mesh)
{
	return mesh->client;
}

/* ---- What the loops see ------------------------------------------------------------------------------------------ */

/* Only this site: for one that is not part of a mesh. */
static struct site_snapshot *snapshot_alone(struct agent_mesh *mesh)
{
	const struct proxy_config *config = mesh->config;
	struct site_offer *offers = calloc(config->services_count + 1, sizeof(*offers));
	CHECK(offers);
	for (uint32_t i = 0; i < config->services_count; i++)
		offers[i] = (struct site_offer){config->services[i].name, config->services[i].version};
	struct site_snapshot_entry self = {
		.place = {.id = 1, .name = config->site, .tags = config->tags, .tags_count = config->tags_count},
		.services = offers,
		.services_count = config->services_count};
	struct site_snapshot *snapshot = site_snapshot_make(&self, 1, NULL, 0, ++mesh->snapshots);
	free(offers);
	return snapshot;
}

void mesh_publish(struct agent_mesh *mesh)
{
	struct site_snapshot *snapshot =
		mesh->site ? site_snapshot_new(mesh->site, ++mesh->snapshots) : snapshot_alone(mesh);
	if (mesh->site) {
		mesh->published_epoch = site_epoch(mesh->site);
		site_drift_reset(mesh->site);
	}
	mesh->published_ms = http_loop_now_ms(mesh->options.loop);
	http_timer_clear(mesh->options.loop, &mesh->publish_timer);
	mesh->options.publish(mesh->options.context,
	                      proxy_mesh_new(snapshot, mesh->server ? http_tls_keep(mesh->server) : NULL,
	                                     mesh->client ? http_tls_keep(mesh->client) : NULL));
}

static void publish_due(struct http_timer *timer)
{
	mesh_publish((struct agent_mesh *)((char *)timer - offsetof(struct agent_mesh, publish_timer)));
}

void agent_mesh_catch_up(struct agent_mesh *mesh)
{
	if (mesh->site && site_epoch(mesh->site) != mesh->published_epoch)
		mesh_publish(mesh);
}

/* Does what the table asked for. That may make it ask for more. */
void mesh_settle(struct agent_mesh *mesh)
{
	if (mesh->roots_changed) {
		mesh->roots_changed = false;
		mesh_take_roots(mesh);
	}
	if (mesh->card_outdated) {
		mesh->card_outdated = false;
		mesh_tell_card(mesh, NULL);
	}
	while (mesh->outgoing.length > 0)
		mesh_flush(mesh);
	mesh_forget(mesh);
}

/* After anything that may have changed the table: who has to be told, and when is its next turn? */
void mesh_review(struct agent_mesh *mesh)
{
	mesh_settle(mesh);
	struct http_loop *loop = mesh->options.loop;
	uint64_t epoch = site_epoch(mesh->site), now_ms = http_loop_now_ms(loop), now_us = agent_now().us;
	bool changed = epoch != mesh->published_epoch, drifted = site_drift(mesh->site) > drift_most;
	uint64_t due_ms = mesh->published_ms + (changed ? PUBLISH_MS : PUBLISH_DRIFT_MS);
	bool sooner = mesh->publish_timer.deadline_ms == 0 || due_ms < mesh->publish_timer.deadline_ms;
	if ((changed || drifted) && sooner)
		http_timer_set(loop, &mesh->publish_timer, due_ms > now_ms ? due_ms - now_ms : 0);
	if (epoch != mesh->stored_epoch && mesh->store_timer.deadline_ms == 0)
		http_timer_set(loop, &mesh->store_timer, STORE_MS);
	uint64_t due_us = site_due(mesh->site), seal_us = trust_seal_due(mesh->seal);
	due_us = seal_us < due_us ? seal_us : due_us;
	http_timer_clear(loop, &mesh->tick_timer);
	http_timer_set(loop, &mesh->tick_timer, due_us > now_us ? (due_us - now_us) / 1000 : 0);
}

static void tick_due(struct http_timer *timer)
{
	struct agent_mesh *mesh = (struct agent_mesh *)((char *)timer - offsetof(struct agent_mesh, tick_timer));
	struct site_now now = agent_now();
	if (now.us >= site_due(mesh->site))
		site_tick(mesh->site, now);
	trust_seal_tick(mesh->seal, now.us);
	mesh_review(mesh);
}

/* Sites that are not where they were. Whoever is there will greet us, if it takes our card. */
static void seed_due(struct http_timer *timer)
{
	struct agent_mesh *mesh = (struct agent_mesh *)((char *)timer - offsetof(struct agent_mesh, seed_timer));
	const struct proxy_config *config = mesh->config;
	for (uint32_t i = 0; i < config->seeds_count; i++)
		if (!site_is_met_at(mesh->site, &config->seeds[i]))
			trust_seal_knock(mesh->seal, &config->seeds[i], agent_now().us);
	if (config->seeds_count > 0)
		http_timer_set(mesh->options.loop, timer, site_is_alone(mesh->site) ? SEED_ALONE_MS : SEED_MS);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

void mesh_store(struct agent_mesh *mesh)
{
	struct buf bytes = {0};
	struct err err = {0};
	site_dump(mesh->site, &bytes);
	mesh->stored_epoch = site_epoch(mesh->site);
	if (agent_file_write(mesh->config->state, "sites", buf_str(&bytes), false, &err) != 0)
		log_event(mesh->options.log, LOG_ERROR, "the table of sites cannot be kept",
		          LOG_STR("error", str_of(err.text)));
	buf_free(&bytes);
}

static void store_due(struct http_timer *timer)
{
	mesh_store((struct agent_mesh *)((char *)timer - offsetof(struct agent_mesh, store_timer)));
}

static int read_state_file(struct agent_mesh *mesh, const char *name, struct buf *bytes, struct err *err)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%s", mesh->config->state, name);
	int code = agent_file_read(buf_c(&path), TABLE_FILE_BYTES, bytes, err);
	buf_free(&path);
	return code;
}

/* A table that cannot be read is not the end: the others are met again through whoever finds us. */
static void load_table(struct agent_mesh *mesh)
{
	struct buf bytes = {0};
	struct err err = {0};
	int code = read_state_file(mesh, "sites", &bytes, &err);
	mesh->loading = true;
	if (code == 0)
		code = site_load(mesh->site, buf_str(&bytes), agent_now(), &err);
	mesh->loading = false;
	if (code != 0 && code != ERR_NOT_FOUND)
		log_event(mesh->options.log, LOG_ERROR, "the table of sites cannot be read; starting with an empty one",
		          LOG_STR("error", str_of(err.text)));
	buf_free(&bytes);
}

/* What the site that we joined by knew: records with two bytes of length each. */
static void load_joined(struct agent_mesh *mesh)
{
	struct buf bytes = {0};
	if (read_state_file(mesh, "records.join", &bytes, NULL) != 0)
		return;
	for (size_t at = 0; at + 2 <= bytes.length;) {
		size_t length = (size_t)(unsigned char)bytes.at[at] << 8 | (unsigned char)bytes.at[at + 1];
		at += 2;
		if (length > bytes.length - at)
			break;
		site_add_record(mesh->site, str_make(bytes.at + at, length), agent_now(), NULL);
		at += length;
	}
	buf_free(&bytes);
	struct buf path = {0};
	buf_printf(&path, "%s/records.join", mesh->config->state);
	mesh_store(mesh);
	unlink(buf_c(&path));
	buf_free(&path);
}

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

int agent_mesh_check(struct proxy_config *config, struct err *err)
{
	config->meshed = agent_identity_exists(config->state);
	if (config->meshed && config->peer.length == 0)
		return err_set(err, ERR_INVALID,
		               "this site is part of a mesh (%s/site.crt), but the configuration has no `peer`: the address to "
		               "listen on for other agents, such as `peer: 0.0.0.0:8070`",
		               config->state);
	if (config->meshed && config->advertise.family == 0)
		return err_set(err, ERR_INVALID,
		               "`peer` is %s, which other agents cannot be told; add where they reach this one, such as "
		               "`advertise: 192.0.2.1:8070`",
		               config->peer.text);
	return 0;
}

/* The identity of the folder, at the first configuration that has one. It does not change while the agent runs, except
 * through the agent itself. */
static int load_identity(struct agent_mesh *mesh, const struct proxy_config *config, struct agent_identity **identity,
                         struct err *err)
{
	*identity = NULL;
	if (!config->meshed || mesh->identity)
		return 0;
	int code = agent_identity_load(config->state, identity, err);
	if (code)
		return code;
	if (str_equal(str_of((*identity)->about.name), config->site))
		return 0;
	code = err_set(err, ERR_CONFLICT,
	               "the certificate in %s is that of `%s`, but `site` is `%.*s`: a site keeps its name; take another "
	               "folder for `state`, or the name back",
	               config->state, (*identity)->about.name, STR_FMT(config->site));
	agent_identity_free(*identity);
	*identity = NULL;
	return code;
}

int agent_mesh_configure(struct agent_mesh *mesh, struct proxy_config *config, struct err *err)
{
	struct agent_identity *identity;
	int code = load_identity(mesh, config, &identity, err);
	if (code == 0 && config->meshed)
		code = mesh_open(mesh, config, err);
	if (code) {
		if (identity)
			agent_identity_free(identity);
		return code;
	}
	struct proxy_config *before = mesh->config;
	mesh->config = proxy_config_keep(config);
	if (identity) {
		mesh_start(mesh, identity);
		load_table(mesh);
		load_joined(mesh);
		mesh->stored_epoch = site_epoch(mesh->site);
		code = mesh_make_tls(mesh, err);
	}
	if (code == 0 && mesh->site)
		code = mesh_tell_card(mesh, err);
	if (code) {
		/* Such as a card that is too long: others are told what was in force. */
		mesh->config = before;
		before = config;
	}
	proxy_config_drop(before);
	if (code == 0) {
		mesh_publish(mesh);
		if (mesh->site)
			mesh_review(mesh);
		http_timer_clear(mesh->options.loop, &mesh->seed_timer);
		if (mesh->site)
			http_timer_set(mesh->options.loop, &mesh->seed_timer, SEED_FIRST_MS);
	}
	return code;
}

void agent_mesh_leave(struct agent_mesh *mesh)
{
	if (!mesh->site)
		return;
	site_leave(mesh->site, agent_now());
	mesh_settle(mesh);
	http_timer_clear(mesh->options.loop, &mesh->tick_timer);
	http_timer_clear(mesh->options.loop, &mesh->seed_timer);
	mesh_store(mesh);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct agent_mesh *agent_mesh_new(const struct agent_mesh_options *options)
{
	struct agent_mesh *mesh = calloc(1, sizeof(*mesh));
	CHECK(mesh);
	mesh->options = *options;
	mesh->udp.fd = -1;
	mesh->tick_timer.fire = tick_due;
	mesh->publish_timer.fire = publish_due;
	mesh->store_timer.fire = store_due;
	mesh->seed_timer.fire = seed_due;
	arena_init(&mesh->scratch, 0);
	map_init(&mesh->vouched, options->hash_key);
	return mesh;
}

void agent_mesh_free(struct agent_mesh *mesh)
{
	if (!mesh)
		return;
	http_timer_clear(mesh->options.loop, &mesh->tick_timer);
	http_timer_clear(mesh->options.loop, &mesh->publish_timer);
	http_timer_clear(mesh->options.loop, &mesh->store_timer);
	http_timer_clear(mesh->options.loop, &mesh->seed_timer);
	mesh_stop(mesh);
	if (mesh->identity)
		agent_identity_free(mesh->identity);
	http_tls_drop(mesh->server);
	http_tls_drop(mesh->client);
	proxy_config_drop(mesh->config);
	arena_free(&mesh->scratch);
	buf_free(&mesh->outgoing);
	buf_free(&mesh->shut_out);
	free(mesh);
}
