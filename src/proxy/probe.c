/* Probing the data path: a real request to the agents of the sites that this one works with.
 *
 *   1. A request uses a peer. From then on, and until a minute after its last use, its path is watched.
 *   2. When nothing has come back from it for a moment, `GET /cheops/v1/health` is sent to it, on a connection for probes
 *      that goes the same way as that of requests: same port, same protocol, same loop.
 *   3. The answer, whatever its status, says that the path works, and how long the way there and back takes (health.c).
 *
 * What goes wrong, and what is done about it:
 *   it is not heard of      after a round trip and a little more further probes are sent at its side, on new connections,
 *                           because the fault may lie with the old one. When too many were not heard of, the path is down.
 *                           Answers are still waited for, and count whenever they come
 *   it is heard of, but there is no answer    the other kernel works: something was lost and is repeated, or the agent hangs.
 *                           That has a time of its own (health.c)
 *   no connection           an error; refused, the path is down at once
 *   the path is new         nothing tells how long it takes but gossip. If the connection is taken after the path was given
 *                           up, that is taken back
 *   it closes the connection  between probes that is its right; before the answer it is an error
 *   the path is down        requests that wait for it and may be repeated elsewhere move on (attempt.c); those that have
 *                           nowhere to go, and that the other machine has not acknowledged, fail; probes go on
 */
#include "proxy/proxy_int.h"

#include <errno.h>

enum {
	WATCHED_US = 60 * 1000 * 1000, /* after the last use */
	QUIET_US = 150 * 1000,         /* without an answer, before a probe is sent */
	SOON_MS = 50,                  /* a request is off, and the last answer is old */
	LATE_MS = 30 * 1000,           /* for so long an answer is still waited for */
	STRANDED_US = 1000 * 1000,     /* since a request began that the other machine should have acknowledged */
	HEARD_LEAST_US = 10 * 1000,    /* the kernel counts in ticks: of before a probe was sent, or after? */
};

static void probe_changed(struct http_conn *conn);
static void probe_expired(struct http_conn *conn);

static uint64_t now_us(const struct proxy_peer *peer)
{
	return http_loop_now_us(peer->target.proxy->loop);
}

static void tell(struct proxy_peer *peer)
{
	if (!peer->target.closed)
		proxy_paths_tell(peer->target.proxy->shared->paths, peer->id, &peer->health, now_us(peer));
}

int64_t proxy_peer_estimate_us(const struct proxy_peer *peer)
{
	const struct proxy_mesh *mesh = peer->target.proxy->mesh;
	uint32_t number = mesh ? site_snapshot_find(mesh->sites, peer->id) : SCOPE_NO_INDEX;
	if (number == SCOPE_NO_INDEX)
		return SCOPE_RTT_UNKNOWN;
	return mesh->sites->view.rtt_us(mesh->sites->view.context, PROXY_HERE, number);
}

/* ---- What is learnt ---------------------------------------------------------------------------------------------- */

/* Does gossip see the site? Where it does not, that is a hint for a path that nobody has used, and no more. */
static bool is_lost(const struct proxy_peer *peer)
{
	const struct proxy_mesh *mesh = peer->target.proxy->mesh;
	uint32_t number = mesh ? site_snapshot_find(mesh->sites, peer->id) : SCOPE_NO_INDEX;
	return number != SCOPE_NO_INDEX && mesh->sites->view.site(mesh->sites->view.context, number).state != SCOPE_PRESENT;
}

static void log_state(const struct proxy_peer *peer)
{
	bool down = peer->health.state == PROXY_PATH_DOWN;
	log_event(peer->target.proxy->shared->log, down ? LOG_WARN : LOG_INFO,
	          down ? "a site is not to be reached on the data path" : "a site is to be reached on the data path",
	          LOG_STR("site", peer->name), LOG_STR("address", str_of(peer->target.address.text)));
}

void proxy_peer_answered(struct proxy_peer *peer, uint64_t first_byte_us)
{
	if (first_byte_us > 0)
		proxy_health_first_byte(&peer->health, first_byte_us);
	if (!proxy_health_answered(&peer->health, now_us(peer)))
		return;
	log_state(peer);
	tell(peer);
}

static void went_down(struct proxy_peer *peer)
{
	proxy_count(&peer->target.proxy->counters.lost_paths, 1);
	log_state(peer);
	tell(peer);
	proxy_peer_leave(peer);
}

static enum proxy_failure failure_of(const struct proxy_peer *peer)
{
	return is_lost(peer) ? PROXY_FAILURE_OF_LOST : PROXY_FAILURE;
}

void proxy_peer_failed(struct proxy_peer *peer, bool refused)
{
	if (proxy_health_failed(&peer->health, now_us(peer), refused ? PROXY_FAILURE_REFUSED : failure_of(peer)))
		went_down(peer);
}

/* ---- One probe --------------------------------------------------------------------------------------------------- */

static struct proxy_probe *probe_of(struct http_conn *conn)
{
	return conn->owner;
}

static void probe_close(struct proxy_probe *probe)
{
	if (probe->link)
		http_conn_close(&probe->link->conn);
	probe->link = NULL;
	probe->busy = probe->late = probe->heard = false;
}

static void set_deadline(struct proxy_probe *probe, uint64_t delay_us)
{
	struct http_conn *conn = &probe->link->conn;
	http_timer_clear(conn->loop, &conn->timer);
	http_timer_set(conn->loop, &conn->timer, delay_us / 1000);
}

static uint64_t hang_us(const struct proxy_peer *peer)
{
	return proxy_health_hang_us(&peer->health, proxy_peer_estimate_us(peer));
}

static void probe_begin(struct proxy_probe *probe)
{
	struct proxy_peer *peer = probe->peer;
	probe->busy = true;
	probe->late = probe->heard = false;
	probe->sent = 0;
	probe->begun_us = probe->asked_us = now_us(peer);
	http_parser_start(probe->parser, 0);
	proxy_count(&peer->target.proxy->counters.probes, 1);
	proxy_health_asked(&peer->health, probe->begun_us);
	set_deadline(probe, proxy_health_due_us(&peer->health, proxy_peer_estimate_us(peer)));
}

static int probe_connect(struct proxy_probe *probe)
{
	struct proxy_peer *peer = probe->peer;
	if (proxy_link_connect(&peer->target, &probe->link, NULL) != 0) {
		probe->link = NULL;
		return -1;
	}
	struct http_conn *conn = &probe->link->conn;
	conn->owner = probe;
	conn->changed = probe_changed;
	conn->expired = probe_expired;
	return 0;
}

/* Has the other machine acknowledged anything since the probe was begun? Then it was at *at_us. */
static bool is_heard(const struct proxy_probe *probe, uint64_t *at_us)
{
	uint64_t ago_us, age_us = now_us(probe->peer) - probe->begun_us;
	if (!http_conn_heard(&probe->link->conn, &ago_us) || (!probe->connects && ago_us + HEARD_LEAST_US > age_us))
		return false;
	*at_us = now_us(probe->peer) - (ago_us < age_us ? ago_us : age_us);
	return true;
}

static int probe_rank(const struct proxy_probe *probe)
{
	return !probe->busy ? 0 : probe->late ? 1 : 2;
}

/* One that has a connection and nothing to do; else one without, or the oldest whose time is over. */
static struct proxy_probe *choose_probe(struct proxy_peer *peer, bool fresh)
{
	struct proxy_probe *probes = peer->probes;
	for (int i = 0; i < PROXY_PROBES && !fresh; i++)
		if (probes[i].link && !probes[i].busy)
			return &probes[i];
	struct proxy_probe *chosen = &probes[0];
	for (int i = 1; i < PROXY_PROBES; i++) {
		int rank = probe_rank(&probes[i]), chosen_rank = probe_rank(chosen);
		if (rank < chosen_rank || (rank == chosen_rank && probes[i].begun_us < chosen->begun_us))
			chosen = &probes[i];
	}
	probe_close(chosen);
	return chosen;
}

static void start_probe(struct proxy_peer *peer, bool fresh)
{
	struct proxy_probe *probe = choose_probe(peer, fresh);
	probe->peer = peer;
	if (!probe->parser)
		probe->parser = http_parser_new(false, &peer->target.proxy->state->config->limits);
	probe->connects = !probe->link;
	if (probe->connects && probe_connect(probe) != 0) {
		proxy_count(&peer->target.proxy->counters.probe_failures, 1);
		proxy_peer_failed(peer, false);
		return;
	}
	probe_begin(probe);
	probe_changed(&probe->link->conn);
}

/* They are no longer needed; but those that were not heard of when they should have been were lost. */
static void close_others(struct proxy_probe *probe)
{
	struct proxy_peer *peer = probe->peer;
	uint64_t overdue_us = proxy_health_beside_us(&peer->health, proxy_peer_estimate_us(peer), PROXY_WAITING_FIRST);
	for (int i = 0; i < PROXY_PROBES; i++) {
		struct proxy_probe *other = &peer->probes[i];
		if (other == probe)
			continue;
		bool lost = other->busy && !other->late && !is_heard(other, &(uint64_t){0}) &&
		            now_us(peer) - other->begun_us >= overdue_us;
		if (lost)
			proxy_health_lost(&peer->health);
		probe_close(other);
	}
}

static void probe_answered(struct proxy_probe *probe)
{
	struct proxy_peer *peer = probe->peer;
	bool again = http_parser_head(probe->parser)->keep_alive;
	probe->busy = false;
	close_others(probe);
	proxy_health_measured(&peer->health, now_us(peer) - probe->asked_us, probe->late);
	if (again) {
		http_buffer_give(probe->link->conn.loop, &probe->link->conn.in);
		http_timer_clear(probe->link->conn.loop, &probe->link->conn.timer);
	} else {
		probe_close(probe);
	}
	proxy_peer_answered(peer, 0);
	tell(peer);
}

/* A failure counts once, also if the answer is waited for in vain later on. */
static void probe_failed(struct proxy_probe *probe, bool refused)
{
	struct proxy_peer *peer = probe->peer;
	bool counts = !probe->late;
	probe_close(probe);
	if (!counts)
		return;
	proxy_count(&peer->target.proxy->counters.probe_failures, 1);
	proxy_peer_failed(peer, refused);
	tell(peer);
}

static int count_waiting(const struct proxy_peer *peer)
{
	int count = 0;
	for (int i = 0; i < PROXY_PROBES; i++)
		count += peer->probes[i].busy && !peer->probes[i].late;
	return count;
}

/* What the kernel has heard since the last time that we looked. */
static void review(struct proxy_peer *peer)
{
	for (int i = 0; i < PROXY_PROBES; i++) {
		struct proxy_probe *probe = &peer->probes[i];
		uint64_t at_us, way_us;
		if (!probe->busy || !is_heard(probe, &at_us))
			continue;
		if (peer->health.rtt_us == 0 && http_conn_is_taken(&probe->link->conn, &way_us))
			proxy_health_taken(&peer->health, way_us);
		if (!probe->heard && probe->late) { /* the silence was only the distance */
			probe->late = false;
			set_deadline(probe, hang_us(peer));
		}
		probe->heard = true;
		if (proxy_health_heard(&peer->health, at_us))
			tell(peer);
	}
}

static void check_hangs(struct proxy_peer *peer)
{
	if (proxy_health_hangs(&peer->health, now_us(peer), proxy_peer_estimate_us(peer)))
		went_down(peer);
}

static void probe_expired(struct http_conn *conn)
{
	struct proxy_probe *probe = probe_of(conn);
	struct proxy_peer *peer = probe->peer;
	struct proxy_health *health = &peer->health;
	if (probe->late) {
		probe_close(probe);
		return;
	}
	review(peer);
	uint64_t age_us = now_us(peer) - probe->begun_us, most_us = hang_us(peer);
	bool was_down = health->state == PROXY_PATH_DOWN;
	if (probe->heard && age_us < most_us) {
		set_deadline(probe, most_us - age_us);
		return;
	}
	probe->late = true;
	http_timer_set(conn->loop, &conn->timer, LATE_MS);
	proxy_count(&peer->target.proxy->counters.probe_failures, 1);
	struct proxy_silence silence = {.begun_us = probe->begun_us,
	                                .now_us = now_us(peer),
	                                .estimate_us = proxy_peer_estimate_us(peer),
	                                .failure = failure_of(peer)};
	if (!probe->heard && proxy_health_silent(health, &silence))
		went_down(peer);
	check_hangs(peer);
	tell(peer);
	if (!was_down && health->state != PROXY_PATH_DOWN && count_waiting(peer) == 0)
		start_probe(peer, true);
}

/* False: it failed. */
static bool probe_send(struct proxy_probe *probe)
{
	struct buf *request = &probe->peer->probe_request;
	while (probe->sent < request->length) {
		struct iovec piece = {request->at + probe->sent, request->length - probe->sent};
		size_t sent;
		enum http_io io = http_conn_write(&probe->link->conn, &piece, 1, &sent);
		probe->sent += sent;
		if (io == HTTP_IO_BLOCKED)
			return true;
		if (io == HTTP_IO_FAILED)
			return false;
	}
	return true;
}

/* Reads up to the end of the answer. False: it failed. */
static bool probe_read(struct proxy_probe *probe, bool *done)
{
	struct http_conn *conn = &probe->link->conn;
	uint32_t body, length;
	for (;;) {
		enum http_progress progress = http_parser_feed(probe->parser, &conn->in, &body, &length);
		*done = progress == HTTP_PROGRESS_DONE;
		if (*done || progress == HTTP_PROGRESS_BROKEN)
			return *done;
		if (progress == HTTP_PROGRESS_HEAD) {
			probe->head = true;
			continue;
		}
		if (probe->head)
			conn->in.start = conn->in.end = 0; /* its body tells nothing */
		else if (conn->in.at && !proxy_make_room(conn))
			return false;
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return true;
		if (io != HTTP_IO_SOME)
			return false;
	}
}

static void probe_changed(struct http_conn *conn)
{
	struct proxy_probe *probe = probe_of(conn);
	bool done = false;
	if (conn->connecting)
		return;
	if (!probe->busy) { /* between probes: the other side closed it, or says what nobody asked for */
		if (conn->readable || conn->failed)
			probe_close(probe);
		return;
	}
	if (!proxy_link_stands(probe->link)) {
		probe_failed(probe, conn->error == ECONNREFUSED);
		return;
	}
	if (probe->sent == 0) {
		probe->head = false;
		probe->asked_us = now_us(probe->peer);
	}
	if (!probe_send(probe) || !probe_read(probe, &done))
		probe_failed(probe, false);
	else if (done)
		probe_answered(probe);
}

/* ---- Watching ---------------------------------------------------------------------------------------------------- */

/* The last one that was sent, of those that are waited for; *count of them. */
static const struct proxy_probe *last_waiting(const struct proxy_peer *peer, int *count)
{
	const struct proxy_probe *last = NULL;
	*count = 0;
	for (int i = 0; i < PROXY_PROBES; i++) {
		const struct proxy_probe *probe = &peer->probes[i];
		if (!probe->busy || probe->late)
			continue;
		++*count;
		if (!last || probe->begun_us > last->begun_us)
			last = probe;
	}
	return last;
}

/* A further probe is sent at the side of those that are waited for, when the last of them is overdue. In how long? 0: now. */
static uint64_t until_beside_us(const struct proxy_peer *peer)
{
	int count;
	const struct proxy_probe *last = last_waiting(peer, &count);
	enum proxy_waiting waiting = last && last->heard                          ? PROXY_WAITING_HEARD
	                             : count > 1 || (last && peer->health.silent) ? PROXY_WAITING_MORE
	                                                                          : PROXY_WAITING_FIRST;
	uint64_t due_us = proxy_health_beside_us(&peer->health, proxy_peer_estimate_us(peer), waiting);
	if (count == PROXY_PROBES || peer->health.state == PROXY_PATH_DOWN)
		return QUIET_US;
	uint64_t age_us = last ? now_us(peer) - last->begun_us : 0; /* none: after the first one, which goes now */
	if (last && age_us + SOON_MS * 1000 / 2 >= due_us)
		return 0;
	return due_us - age_us < QUIET_US ? due_us - age_us : QUIET_US;
}

static void close_probes(struct proxy_peer *peer)
{
	for (int i = 0; i < PROXY_PROBES; i++)
		probe_close(&peer->probes[i]);
}

/* Requests that have nowhere else to go, and were sent into the void. What of them is still in the kernel must not arrive later, when
 * their clients have been told that they failed. */
static void fail_stranded(struct proxy_peer *peer)
{
	uint64_t least_us = peer->health.rtt_us * 3 > STRANDED_US ? peer->health.rtt_us * 3 : STRANDED_US;
	for (struct proxy_exchange *exchange; (exchange = proxy_target_stranded(&peer->target, least_us)) != NULL;) {
		http_conn_reset_on_close(&exchange->link->conn);
		proxy_exchange_link_failed(exchange, true);
	}
}

static void watch(struct http_timer *timer)
{
	struct proxy_peer *peer = (struct proxy_peer *)((char *)timer - offsetof(struct proxy_peer, watch_timer));
	struct http_loop *loop = peer->target.proxy->loop;
	uint64_t now = now_us(peer), quiet_us = now - peer->health.answer_us;
	if (now - peer->used_us > WATCHED_US) {
		close_probes(peer);
		proxy_health_forget(&peer->health);
		return;
	}
	if (peer->health.answer_us > 0 && quiet_us < QUIET_US && peer->health.state == PROXY_PATH_UP) {
		tell(peer);
		http_timer_set(loop, &peer->watch_timer, (QUIET_US - quiet_us) / 1000);
		return;
	}
	review(peer);
	check_hangs(peer);
	bool first = count_waiting(peer) == 0;
	uint64_t pause_us = until_beside_us(peer);
	if (first || pause_us == 0)
		start_probe(peer, !first);
	if (pause_us == 0)
		pause_us = until_beside_us(peer);
	if (peer->health.state == PROXY_PATH_DOWN)
		fail_stranded(peer);
	http_timer_set(loop, &peer->watch_timer, pause_us / 1000);
}

void proxy_peer_used(struct proxy_peer *peer)
{
	uint64_t now = now_us(peer);
	bool watched = peer->watch_timer.deadline_ms > 0;
	peer->used_us = now;
	if (peer->target.closed || (watched && now - peer->health.answer_us < QUIET_US))
		return;
	/* A request is off, and it is not known whether the path works: asked soon, if no answer comes before. */
	bool soon = peer->health.state != PROXY_PATH_DOWN && peer->watch_timer.deadline_ms > now / 1000 + SOON_MS;
	if (!watched || soon)
		http_timer_set(peer->target.proxy->loop, &peer->watch_timer, SOON_MS);
}

void proxy_peer_watch_init(struct proxy_peer *peer)
{
	peer->watch_timer.fire = watch;
	buf_put(&peer->probe_request, STR("GET /cheops/v1/health HTTP/1.1\r\nHost: "));
	buf_put(&peer->probe_request, str_of(peer->target.address.text));
	buf_put(&peer->probe_request, STR("\r\n\r\n"));
}

void proxy_peer_watch_end(struct proxy_peer *peer)
{
	http_timer_clear(peer->target.proxy->loop, &peer->watch_timer);
	close_probes(peer);
	for (int i = 0; i < PROXY_PROBES; i++) {
		http_parser_free(peer->probes[i].parser);
		peer->probes[i].parser = NULL;
	}
	buf_free(&peer->probe_request);
}
