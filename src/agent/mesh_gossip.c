/* The protocol of src/site on a UDP socket, sealed by src/trust: what the two ask of their host. */
#include "agent/mesh_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { DATAGRAMS_PER_ROUND = 256 };
static const int64_t WAITED_MOST_NS = INT64_C(10) * 1000 * 1000 * 1000;

/* ---- The table's host -------------------------------------------------------------------------------------------- */

/* The card of a site, and its version. */
static bool find_card(struct agent_mesh *mesh, site_id id, struct site_card *card, uint64_t *version)
{
	uint32_t number = site_find(mesh->site, id);
	struct site_member member;
	if (number != SCOPE_NO_INDEX)
		site_member(mesh->site, number, &member);
	else if (!site_claimant(mesh->site, id, &member.card)) /* one that is told that it is refused */
		return false;
	arena_reset(&mesh->scratch);
	*version = member.card.version;
	return site_card_parse(&mesh->scratch, member.card.body, card, NULL) == 0;
}

static void send_to(struct agent_mesh *mesh, const struct site_address *to, struct str bytes)
{
	struct http_address address;
	http_address_of_site(&address, to);
	/* Nobody is told of a failure: to the protocol it is a datagram that was lost. */
	ssize_t sent = sendto(mesh->udp.fd, bytes.at, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL,
	                      (const struct sockaddr *)&address.socket, address.length);
	(void)sent;
}

static void host_send(void *context, site_id to, const struct site_address *address, struct str bytes)
{
	struct agent_mesh *mesh = context;
	struct outgoing head = {to, *address, bytes.length};
	buf_put(&mesh->outgoing, str_make((const char *)&head, sizeof(head)));
	buf_put(&mesh->outgoing, bytes);
}

/* When the certificate of a card ends; INT64_MAX: it cannot be read. */
static int64_t end_of(struct agent_mesh *mesh, const struct site_record *record)
{
	struct site_card card;
	struct trust_certificate about;
	arena_reset(&mesh->scratch);
	if (site_card_parse(&mesh->scratch, record->body, &card, NULL) != 0 ||
	    trust_certificate_read(card.certificate, &about, NULL) != 0)
		return INT64_MAX;
	return about.to_ms;
}

static bool host_verify(void *context, const struct site_record *record)
{
	struct agent_mesh *mesh = context;
	struct err err = {0};
	int64_t now_ms = agent_now().wall_ms;
	/* Our own card is one also when our certificate has ended: that is for others to refuse. And a site whose certificate ended
	 * while this one was away has another by now: it stays in the table, where it is lost, and nothing of it is opened
	 * (is_vouched) before it has shown that one. */
	bool own = record->subject == trust_key_id(mesh->identity->key);
	if (record->kind == SITE_CARD && (own || mesh->loading)) {
		int64_t end_ms = end_of(mesh, record);
		now_ms = now_ms > end_ms ? end_ms : now_ms;
	}
	if (trust_check_record(mesh->identity->roots, record, now_ms, &err))
		return true;
	log_event(mesh->options.log, LOG_DEBUG, "a record was refused", LOG_STR("error", str_of(err.text)));
	return false;
}

static uint64_t host_random(void *context)
{
	(void)context;
	uint64_t number;
	ssize_t got = getrandom(&number, sizeof(number), 0);
	CHECK(got == sizeof(number));
	return number;
}

static void host_event(void *context, const struct site_event *event)
{
	static const struct {
		enum log_level level;
		const char *text;
	} messages[] = {
		[SITE_EVENT_JOINED] = {LOG_INFO, "a site has joined"},
		[SITE_EVENT_ALIVE] = {LOG_INFO, "a site is there"},
		[SITE_EVENT_SUSPECT] = {LOG_INFO, "a site does not answer; it may be slow, cut off or dead"},
		[SITE_EVENT_LOST] = {LOG_WARN, "a site is lost: cut off or dead"},
		[SITE_EVENT_LEFT] = {LOG_INFO, "a site has stopped"},
		[SITE_EVENT_REVOKED] = {LOG_WARN, "a site was revoked, and is shut out"},
		[SITE_EVENT_REMOVED] = {LOG_WARN, "a site was removed"},
		[SITE_EVENT_CARD] = {LOG_DEBUG, "a site says something new of itself"},
		[SITE_EVENT_ROOT] = {LOG_INFO, "the authority says something new of its roots"},
		[SITE_EVENT_CONFLICT] = {LOG_WARN, "a site claims a name that another one has, and is refused"},
		[SITE_EVENT_OUTCAST] = {LOG_ERROR, "the other sites refuse this one"},
	};
	struct agent_mesh *mesh = context;
	const struct log *log = mesh->options.log;
	if (event->text.length)
		log_event(log, messages[event->kind].level, messages[event->kind].text, LOG_STR("site", event->name),
		          LOG_STR("detail", event->text));
	else
		log_event(log, messages[event->kind].level, messages[event->kind].text, LOG_STR("site", event->name));
	mesh->roots_changed |= event->kind == SITE_EVENT_ROOT;
	if (event->kind == SITE_EVENT_CARD && event->subject == trust_key_id(mesh->identity->key)) {
		uint64_t version = 0;
		for (size_t i = 0; i < event->text.length && event->text.at[i] >= '0' && event->text.at[i] <= '9'; i++)
			version = version * 10 + (uint64_t)(event->text.at[i] - '0');
		mesh->card_version = version > mesh->card_version ? version : mesh->card_version;
		mesh->card_outdated = true;
	}
	if (event->kind == SITE_EVENT_REVOKED || event->kind == SITE_EVENT_REMOVED)
		buf_put(&mesh->shut_out, str_make((const char *)&event->subject, sizeof(event->subject)));
}

void mesh_forget(struct agent_mesh *mesh)
{
	site_id id;
	for (size_t at = 0; at < mesh->shut_out.length; at += sizeof(id)) {
		memcpy(&id, mesh->shut_out.at + at, sizeof(id));
		trust_seal_forget(mesh->seal, id);
		free(map_remove(&mesh->vouched, str_make((const char *)&id, sizeof(id))));
	}
	buf_clear(&mesh->shut_out);
}

static struct str seal_certificate(void *context, site_id id);

/* It waits for a greeting. Or the certificate that we know has ended: then the site is shown our card, and greets us with a new
 * one of its own, if it has. */
static void send_otherwise(struct agent_mesh *mesh, const struct outgoing *head)
{
	site_delayed(mesh->site, head->to);
	if (seal_certificate(mesh, head->to).length == 0)
		trust_seal_knock(mesh->seal, &head->address, agent_now().us);
}

void mesh_flush(struct agent_mesh *mesh)
{
	struct buf queue = mesh->outgoing;
	mesh->outgoing = (struct buf){0};
	for (size_t at = 0; at < queue.length;) {
		struct outgoing head;
		memcpy(&head, queue.at + at, sizeof(head));
		at += sizeof(head);
		mesh->sending = &head;
		if (site_is_removed(mesh->site, head.to)) /* that it was */
			trust_seal_send_last(mesh->seal, head.to, str_make(queue.at + at, head.length));
		else if (!trust_seal_send(mesh->seal, head.to, str_make(queue.at + at, head.length), agent_now().us))
			send_otherwise(mesh, &head);
		at += head.length;
	}
	mesh->sending = NULL;
	buf_free(&queue);
}

/* ---- The seal's host --------------------------------------------------------------------------------------------- */

/* To check a certificate takes long enough for a flood of datagrams to be felt: it is done once. */
static bool is_vouched(struct agent_mesh *mesh, site_id id, uint64_t version, struct str certificate)
{
	struct vouched *vouched = map_get(&mesh->vouched, str_make((const char *)&id, sizeof(id)));
	int64_t now_ms = agent_now().wall_ms;
	struct trust_certificate about;
	if (vouched && vouched->card_version == version && vouched->roots_number == mesh->roots_number)
		return now_ms <= vouched->to_ms;
	if (trust_check(mesh->identity->roots, certificate, now_ms, &about, NULL) != 0)
		return false;
	if (!vouched) {
		vouched = calloc(1, sizeof(*vouched));
		CHECK(vouched);
		vouched->id = id;
		map_set(&mesh->vouched, str_make((const char *)&vouched->id, sizeof(vouched->id)), vouched);
	}
	vouched->card_version = version;
	vouched->roots_number = mesh->roots_number;
	vouched->to_ms = about.to_ms;
	return true;
}

static struct str seal_certificate(void *context, site_id id)
{
	struct agent_mesh *mesh = context;
	struct site_card card;
	uint64_t version;
	if (site_is_removed(mesh->site, id) || !find_card(mesh, id, &card, &version) ||
	    !is_vouched(mesh, id, version, card.certificate))
		return STR("");
	return card.certificate;
}

static void seal_card(void *context, struct str record)
{
	struct agent_mesh *mesh = context;
	site_add_record(mesh->site, record, agent_now(), NULL);
}

static void seal_record(void *context, struct str bytes)
{
	struct agent_mesh *mesh = context;
	struct site_record record;
	if (site_record_parse(bytes, &record, NULL) == 0 && record.kind == SITE_CARD)
		site_knock(mesh->site, bytes, agent_now(), NULL);
	else
		site_add_record(mesh->site, bytes, agent_now(), NULL);
}

/* The record of the root that signed a removal; empty: it was there from the start. */
static struct str root_of(const struct agent_mesh *mesh, const struct site_record *removal)
{
	struct site_record root;
	struct site_removal about;
	if (site_removal_parse(removal->body, &about, NULL) != 0)
		return STR("");
	for (uint32_t n = 0; site_record_at(mesh->site, SITE_ROOT, n, &root); n++)
		if (root.subject == about.signer)
			return root.bytes;
	return STR("");
}

/* What a site is told that was shut out. If it was away while one root replaced another, it does not know the root that signed
 * the removal; but that one was vouched for by the root before, which it knows. So it is told of the two in turn. */
static struct str seal_removal(void *context, site_id id)
{
	struct agent_mesh *mesh = context;
	struct site_record record;
	if (!site_removal_of(mesh->site, id, &record))
		return STR("");
	struct str root = root_of(mesh, &record);
	mesh->told_root = root.length > 0 && !mesh->told_root;
	return mesh->told_root ? root : record.bytes;
}

static void seal_send(void *context, site_id to, struct str datagram)
{
	struct agent_mesh *mesh = context;
	struct site_card card;
	uint64_t version;
	/* Where the table says: it may know better than the card, or there is no card any more. What had to wait for a greeting
	 * goes to where the site is now. */
	if (mesh->sending && mesh->sending->to == to)
		send_to(mesh, &mesh->sending->address, datagram);
	else if (find_card(mesh, to, &card, &version))
		send_to(mesh, &card.address, datagram);
}

static void seal_reply(void *context, const struct site_address *to, struct str datagram)
{
	send_to(context, to, datagram);
}

/* How long ago the datagram came that is read. The kernel stamps it with the wall clock, which may be set meanwhile: what makes
 * no sense is left out. */
static uint64_t waited_us(const struct agent_mesh *mesh)
{
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	int64_t ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - mesh->came_ns;
	return mesh->came_ns > 0 && ns > 0 && ns < WAITED_MOST_NS ? (uint64_t)ns / 1000 : 0;
}

static void seal_opened(void *context, site_id from, struct str bytes)
{
	struct agent_mesh *mesh = context;
	struct site_now now = agent_now();
	now.waited_us = waited_us(mesh);
	site_receive(mesh->site, from, bytes, now);
}

/* ---- The socket -------------------------------------------------------------------------------------------------- */

static int64_t came_ns(struct msghdr *head)
{
	for (struct cmsghdr *item = CMSG_FIRSTHDR(head); item; item = CMSG_NXTHDR(head, item)) {
		struct timespec came;
		if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&came, CMSG_DATA(item), sizeof(came));
		return (int64_t)came.tv_sec * 1000000000 + came.tv_nsec;
	}
	return 0;
}

static ssize_t read_datagram(struct agent_mesh *mesh, char *bytes, size_t size, struct http_address *from)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec piece = {bytes, size};
	struct msghdr head = {.msg_name = &from->socket,
	                      .msg_namelen = sizeof(from->socket),
	                      .msg_iov = &piece,
	                      .msg_iovlen = 1,
	                      .msg_control = control,
	                      .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(mesh->udp.fd, &head, MSG_DONTWAIT);
	if (got < 0)
		return got;
	from->length = head.msg_namelen;
	mesh->came_ns = came_ns(&head);
	return got;
}

static void udp_ready(struct http_source *source, uint32_t events)
{
	(void)events;
	struct agent_mesh *mesh = (struct agent_mesh *)((char *)source - offsetof(struct agent_mesh, udp));
	for (int i = 0; i < DATAGRAMS_PER_ROUND && source->fd >= 0; i++) {
		char bytes[2048]; /* more than any datagram of ours: a longer one is cut, and refused */
		struct http_address from = {0};
		ssize_t got = read_datagram(mesh, bytes, sizeof(bytes), &from);
		struct site_address address;
		if (got < 0 && errno != EINTR && errno != ECONNREFUSED)
			break;
		if (got >= 0 && http_address_to_site(&from, &address))
			trust_seal_receive(mesh->seal, &address, str_make(bytes, (size_t)got), agent_now().us);
	}
	mesh_review(mesh);
}

static int open_udp(const struct http_address *address, int *out, struct err *err)
{
	int fd = socket(address->socket.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, ERR_IO, "cannot open a socket: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&address->socket, address->length) != 0) {
		int code = err_set(err, ERR_IO, "cannot listen on %s (UDP): %s", address->text, strerror(errno));
		close(fd);
		return code;
	}
	/* Without it distances are measured from when a datagram is read, which is later on a busy machine. */
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
	*out = fd;
	return 0;
}

/* The socket of the configuration: the one that is open, or a new one. */
int mesh_open(struct agent_mesh *mesh, const struct proxy_config *config, struct err *err)
{
	int fd = -1;
	if (mesh->udp.fd >= 0 && strcmp(mesh->udp_address, config->peer.text) == 0)
		return 0;
	int code = open_udp(&config->peer, &fd, err);
	if (code)
		return code;
	if (mesh->udp.fd >= 0)
		http_loop_close(mesh->options.loop, &mesh->udp);
	mesh->udp.fd = fd;
	mesh->udp.ready = udp_ready;
	snprintf(mesh->udp_address, sizeof(mesh->udp_address), "%s", config->peer.text);
	return http_loop_add(mesh->options.loop, &mesh->udp, EPOLLIN, err);
}

void mesh_start(struct agent_mesh *mesh, struct agent_identity *identity)
{
	struct site_host site_host = {mesh, host_send, host_verify, host_random, host_event};
	struct trust_seal_host seal_host = {.context = mesh,
	                                    .certificate = seal_certificate,
	                                    .card = seal_card,
	                                    .record = seal_record,
	                                    .removal = seal_removal,
	                                    .send = seal_send,
	                                    .reply = seal_reply,
	                                    .opened = seal_opened};
	struct site_options options = {
		.self = trust_key_id(identity->key), .timing = site_timing_default(), .hash_key = mesh->options.hash_key};
	mesh->identity = identity;
	mesh->seal = trust_seal_new(identity->key, host_random(NULL), &seal_host);
	mesh->site = site_new(&options, &site_host);
}

void mesh_stop(struct agent_mesh *mesh)
{
	size_t cursor = 0;
	struct str key;
	void *value;
	if (mesh->udp.fd >= 0)
		close(mesh->udp.fd); /* the loop has ended, and will not release it any more */
	if (mesh->site)
		site_free(mesh->site);
	if (mesh->seal)
		trust_seal_free(mesh->seal);
	while (map_next(&mesh->vouched, &cursor, &key, &value))
		free(value);
	map_free(&mesh->vouched);
}
