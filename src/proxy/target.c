/* Servers, and the connections to them that can serve again.
 *
 * A server that cannot be reached is left out. It is tried in the background until a connection comes about; that
 * connection is then the first idle one. Idle connections are used last in, first out, so that the surplus of a busy hour
 * grows old and is closed.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"
#include "trust/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void list_remove(struct proxy_link *link)
{
	link->previous->next = link->next;
	link->next->previous = link->previous;
	link->previous = link->next = NULL;
}

static void list_push(struct proxy_link *head, struct proxy_link *link)
{
	link->next = head->next;
	link->previous = head;
	head->next->previous = link;
	head->next = link;
}

static void link_release(struct http_source *source)
{
	free(source);
}

/* Takes an idle link out of the list and closes it. */
static void close_idle(struct proxy_link *link)
{
	list_remove(link);
	link->target->idle_count--;
	http_conn_close(&link->conn);
}

/* ---- Probes ----------------------------------------------------------------------------------------------------- */

static void probe_again(struct proxy_target *target)
{
	target->probing = NULL;
	http_timer_set(target->proxy->loop, &target->probe_timer, PROXY_PROBE_MS);
}

static void probe_changed(struct proxy_link *link)
{
	struct proxy_target *target = link->target;
	if (link->conn.connecting)
		return;
	if (link->conn.failed) {
		http_conn_close(&link->conn);
		probe_again(target);
		return;
	}
	target->down = false;
	target->probing = NULL;
	target->active++;
	list_push(&target->used, link);
	proxy_link_give(link, true);
	link->probe = false;
}

static void start_probe(struct http_timer *timer);

void proxy_target_failed(struct proxy_target *target)
{
	proxy_count(&target->proxy->counters.upstream_failures, 1);
	target->down = true;
	if (target->closed)
		return;
	if (!target->probing && !target->probe_timer.deadline_ms)
		http_timer_set(target->proxy->loop, &target->probe_timer, PROXY_PROBE_MS);
}

/* ---- Links ------------------------------------------------------------------------------------------------------ */

/* An agent has to be that of the site which is meant: any other of the mesh would pass the handshake, too. */
static void prove(struct proxy_link *link)
{
	struct buf der = {0};
	struct trust_certificate about = {0};
	link->proven = true;
	if (http_conn_certificate(&link->conn, &der))
		trust_certificate_read(buf_str(&der), &about, NULL);
	buf_free(&der);
	if (about.id == link->target->site)
		return;
	link->conn.failed = true;
	link->conn.writable = link->conn.readable = false;
	link->conn.error = EKEYREJECTED; /* which reads well enough in what users are told */
}

static void note_why(struct proxy_target *target, const char *why)
{
	snprintf(target->why, sizeof(target->why), "%s", why);
}

static void link_changed(struct http_conn *conn)
{
	struct proxy_link *link = (struct proxy_link *)conn;
	if (conn->failed)
		note_why(link->target, http_conn_error_text(conn));
	if (link->probe)
		probe_changed(link);
	else if (link->exchange)
		proxy_exchange_run(link->exchange);
	else if (link->attempt)
		proxy_attempt_changed(link->attempt);
	else if (conn->readable) { /* idle: the server closed it, or sent what nobody asked for */
		http_kept_closed(&link->kept, &link->target->habit, http_loop_now_ms(conn->loop));
		close_idle(link);
	}
}

static struct proxy_peer *peer_of(const struct proxy_target *target)
{
	return (struct proxy_peer *)((const char *)target - offsetof(struct proxy_peer, target));
}

/* Behind a satellite it takes seconds, however good the path is. */
static uint64_t connect_ms(const struct proxy_target *target)
{
	uint64_t ms = target->proxy->state->config->timeouts.connect_ms;
	if (!target->site)
		return ms;
	const struct proxy_peer *peer = peer_of(target);
	return ms + proxy_health_connect_us(&peer->health, proxy_peer_estimate_us(peer)) / 1000;
}

/* Time is over; but if the other machine has taken the connection it is known how far away it is, and that may be farther
 * than was thought: then the handshake has as long as it needs from there. */
static bool has_more_time(struct proxy_link *link)
{
	uint64_t way_us, waited_ms = http_loop_now_ms(link->conn.loop) - link->begun_ms;
	if (!link->conn.connecting || !link->target->site || !http_conn_is_taken(&link->conn, &way_us))
		return false;
	proxy_health_taken(&peer_of(link->target)->health, way_us);
	uint64_t most_ms = connect_ms(link->target);
	if (waited_ms >= most_ms)
		return false;
	http_timer_set(link->conn.loop, &link->conn.timer, most_ms - waited_ms);
	return true;
}

static void link_expired(struct http_conn *conn)
{
	struct proxy_link *link = (struct proxy_link *)conn;
	if (has_more_time(link))
		return;
	if (conn->connecting)
		note_why(link->target, "no connection in time");
	if (link->probe) {
		struct proxy_target *target = link->target;
		http_conn_close(conn);
		probe_again(target);
	} else if (link->exchange) {
		proxy_exchange_link_failed(link->exchange, true);
	} else if (link->attempt) {
		proxy_attempt_expired(link->attempt);
	} else {
		close_idle(link);
	}
}

int proxy_link_connect(struct proxy_target *target, struct proxy_link **out, struct err *err)
{
	struct proxy_link *link = calloc(1, sizeof(*link));
	CHECK(link);
	link->target = target;
	link->begun_ms = http_loop_now_ms(target->proxy->loop);
	link->kept.proven = target->site != 0; /* agents say when they close one */
	link->conn.changed = link_changed;
	link->conn.expired = link_expired;
	link->conn.source.release = link_release;
	int code = http_conn_connect(&link->conn, target->proxy->loop, &target->address, err);
	if (code) {
		free(link);
		return code;
	}
	if (target->site)
		http_conn_tls_connect(&link->conn, target->proxy->mesh->client, NULL);
	else if (target->tls)
		http_conn_tls_connect(&link->conn, target->tls, target->tls_name);
	http_timer_set(target->proxy->loop, &link->conn.timer, connect_ms(target));
	*out = link;
	return 0;
}

bool proxy_link_stands(struct proxy_link *link)
{
	if (!link->conn.failed && !link->proven && link->target->site)
		prove(link);
	return !link->conn.failed;
}

static void start_probe(struct http_timer *timer)
{
	struct proxy_target *target = (struct proxy_target *)((char *)timer - offsetof(struct proxy_target, probe_timer));
	struct proxy_link *link;
	if (proxy_link_connect(target, &link, NULL) != 0) {
		probe_again(target);
		return;
	}
	link->probe = true;
	target->probing = link;
}

/* The one last used that is good enough for the request (kept.c); NULL: none. */
static struct proxy_link *take_idle(struct proxy_target *target, bool repeatable)
{
	uint64_t now_ms = http_loop_now_ms(target->proxy->loop);
	for (struct proxy_link *link = target->idle.next; link != &target->idle; link = link->next) {
		if (!repeatable && !http_kept_is_sure(&link->kept, &target->habit, now_ms))
			continue;
		list_remove(link);
		target->idle_count--;
		link->reused = true;
		return link;
	}
	if (!repeatable && http_kept_are_enough(target->idle_count))
		close_idle(target->idle.next);
	return NULL;
}

int proxy_target_take(struct proxy_target *target, struct proxy_exchange *exchange, bool fresh, struct err *err)
{
	struct proxy_link *link =
		fresh ? NULL : take_idle(target, http_method_is_safe(exchange->method) && !exchange->has_body);
	if (!link) {
		int code = proxy_link_connect(target, &link, err);
		if (code)
			return code;
	}
	target->active++;
	link->told = false;
	list_push(&target->used, link);
	link->exchange = exchange;
	exchange->link = link;
	return 0;
}

void proxy_link_give(struct proxy_link *link, bool reusable)
{
	struct proxy_target *target = link->target;
	struct http_conn *conn = &link->conn;
	link->exchange = NULL;
	link->attempt = NULL;
	list_remove(link);
	target->active--;
	if (!reusable || conn->readable || conn->ended || conn->failed || conn->in.start < conn->in.end || target->closed ||
	    target->idle_count == PROXY_IDLE_LINKS_MOST) {
		http_conn_close(conn);
		return;
	}
	http_buffer_give(conn->loop, &conn->in);
	http_kept_idle(&link->kept, &target->habit, !link->probe, http_loop_now_ms(conn->loop));
	target->idle_count++;
	list_push(&target->idle, link);
	http_timer_set(conn->loop, &conn->timer, PROXY_IDLE_LINK_MS);
}

/* Nothing of an answer has come, and the other machine has not even acknowledged all of the request. If it has, a service may be at
 * work on it: what it says is worth to be waited for. */
static bool waits_in_vain(const struct proxy_link *link, uint64_t least_us)
{
	const struct proxy_exchange *exchange = link->exchange;
	return exchange && exchange->phase == PROXY_RUNNING && !exchange->response_head && link->conn.in.end == 0 &&
	       http_loop_now_us(link->conn.loop) - exchange->started_us >= least_us && !http_conn_is_delivered(&link->conn);
}

struct proxy_exchange *proxy_target_stranded(struct proxy_target *target, uint64_t least_us)
{
	for (struct proxy_link *link = target->used.next; link != &target->used; link = link->next) {
		if (link->told || !waits_in_vain(link, least_us))
			continue;
		link->told = true;
		return link->exchange;
	}
	return NULL;
}

/* ---- Targets ---------------------------------------------------------------------------------------------------- */

void proxy_target_init(struct proxy_target *target, struct proxy *proxy, const struct http_address *address)
{
	*target = (struct proxy_target){.proxy = proxy, .address = *address};
	target->idle.next = target->idle.previous = &target->idle;
	target->used.next = target->used.previous = &target->used;
	target->probe_timer.fire = start_probe;
}

void proxy_target_close(struct proxy_target *target)
{
	target->closed = true;
	while (target->idle.next != &target->idle)
		close_idle(target->idle.next);
	http_timer_clear(target->proxy->loop, &target->probe_timer);
	if (target->probing)
		http_conn_close(&target->probing->conn);
	target->probing = NULL;
}
