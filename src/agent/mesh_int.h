/* Inside the mesh of the agent: mesh.c (configuration, files, what the loops see), mesh_gossip.c (the socket, and what the
 * table and the seal ask for), mesh_words.c (cards, announcements, roots, TLS). */
#ifndef AGENT_MESH_INT_H
#define AGENT_MESH_INT_H

#include "agent/agent_int.h"

#include "base/arena.h"
#include "base/map.h"

struct agent_mesh {
	struct agent_mesh_options options;
	struct proxy_config *config;
	struct agent_identity *identity; /* NULL: not part of a mesh, as is everything below */
	struct site *site;
	struct trust_seal *seal;
	struct http_tls *server, *client;
	struct http_source udp;
	char udp_address[64];
	struct arena scratch; /* for one card at a time */
	struct http_timer tick_timer;
	struct http_timer publish_timer;
	struct http_timer store_timer;
	struct http_timer seed_timer;
	uint64_t snapshots;
	uint64_t published_epoch, stored_epoch;
	uint64_t published_ms;
	uint64_t card_version;
	/* what the table wants to have done */
	struct buf outgoing;            /* struct outgoing and the bytes, one behind the other */
	const struct outgoing *sending; /* while it is sealed */
	int64_t came_ns;                /* the datagram that is read, by the kernel's wall clock; 0: not known */
	bool told_root;                 /* the last time that one who was shut out was told something */
	struct buf shut_out;            /* ids: the keys that are shared with them are forgotten once they were told */
	bool roots_changed;
	bool loading;          /* from the file */
	struct map vouched;    /* ids to struct vouched: certificates that were checked */
	uint64_t roots_number; /* of the list of roots: they are checked again after each change */
	uint64_t roots_us;     /* when it last changed; 0: before this start */
	bool card_outdated;    /* others have a later one: from before our clock went back, say */
};

/* A certificate that is good: of this card, under these roots, until then. */
struct vouched {
	site_id id;
	uint64_t card_version;
	uint64_t roots_number;
	int64_t to_ms;
};

struct outgoing {
	site_id to;
	struct site_address address;
	size_t length;
};

/* mesh.c */
/* After anything that may have changed the table: does what it asked for, and sees when its next turn is. */
void mesh_review(struct agent_mesh *mesh);
/* What the table asked for; that may make it ask for more. */
void mesh_settle(struct agent_mesh *mesh);
void mesh_publish(struct agent_mesh *mesh);
void mesh_store(struct agent_mesh *mesh);

/* mesh_gossip.c */
int mesh_open(struct agent_mesh *mesh, const struct proxy_config *config, struct err *err);
void mesh_start(struct agent_mesh *mesh, struct agent_identity *identity);
void mesh_stop(struct agent_mesh *mesh);
/* Seals and sends what the table has noted. */
void mesh_flush(struct agent_mesh *mesh);
/* The keys shared with sites that were shut out, after what was to be sent to them. */
void mesh_forget(struct agent_mesh *mesh);

/* mesh_words.c */
/* Signs a new card of this site, and tells it. */
int mesh_tell_card(struct agent_mesh *mesh, struct err *err);
int mesh_make_tls(struct agent_mesh *mesh, struct err *err);
/* Trusts the roots that the records say, no more and no less. */
void mesh_take_roots(struct agent_mesh *mesh);

#endif
