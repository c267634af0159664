/* The switch of the lab: every site has one end, a TAP device in the site's network namespace, and the switch carries
 * frames from end to end as a wide-area network would.
 *
 *     queue.c    frames under way, by the time at which they arrive        pure
 *     link.c     what happens to a frame between one site and another      pure
 *     net.c      all sites, all links                                      pure
 *     value.c    10ms, 7%, 10mbit, 64KiB: read and written                 pure
 *     control.c  the commands of the control socket                        pure
 *     tap.c      one site's end: device, addresses, neighbours
 *     clients.c  connections to the control socket
 *     switch.c   arguments, and the loop
 *
 * Time is in nanoseconds of the monotonic clock, and is an argument; so is the seed of all that is random.
 */
#ifndef WAN_H
#define WAN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	WAN_SITES_MAX = 200,
	WAN_NAME_BYTES = 32,       /* of a site's name */
	WAN_MTU = 1400,            /* of a site's device */
	WAN_FRAME_BYTES = 1514,    /* the longest frame; longer ones are dropped and counted */
	WAN_FRAMES_MAX = 1 << 15,  /* under way at once, over all links: 49 MiB, taken from the system as they are needed */
	WAN_BATCH = 32,            /* frames read from one end before the others have their turn */
	WAN_CLIENTS_MAX = 64,      /* connections to the control socket */
	WAN_LINE_BYTES = 1024,     /* one command */
	WAN_REPLY_BYTES = 8 << 20, /* of answers that a client has not read yet */
	WAN_DURATION_MAX_S = 60,
};

#define WAN_NEVER INT64_MAX

/* ---- queue.c: frames, ordered by the time at which they are due ------------------------------------------------- */

struct wan_frame {
	unsigned from, to;
	uint32_t cuts; /* of the link, when the frame was sent */
	uint32_t length;
	unsigned char bytes[WAN_FRAME_BYTES];
};

struct wan_queue;

struct wan_queue *wan_queue_new(uint32_t capacity);
void wan_queue_free(struct wan_queue *queue);

/* A frame to be filled in, due at that time. Frames that are due at the same time leave as they came. NULL: full. */
struct wan_frame *wan_queue_put(struct wan_queue *queue, int64_t due_ns);

/* When the next frame is due. WAN_NEVER: there is none. */
int64_t wan_queue_next_ns(const struct wan_queue *queue);

/* The next frame if it is due by now, or NULL. It may be read until the next call of wan_queue_put(). */
const struct wan_frame *wan_queue_take(struct wan_queue *queue, int64_t now_ns);

uint32_t wan_queue_count(const struct wan_queue *queue);

/* ---- link.c: the way from one site to another ------------------------------------------------------------------- */

struct wan_rules {
	int64_t delay_ns;
	int64_t jitter_ns; /* the delay differs by at most this, mostly by much less: bell-shaped, deviation 0.29 of it */
	double loss;       /* probabilities */
	double duplicate;
	double reorder;        /* of a frame to be held back, so that those after it overtake */
	int64_t reorder_by_ns; /* by how much */
	uint64_t rate_bps;     /* 0: no limit */
	int64_t queue_ns;      /* what would wait longer for its turn on the line is dropped, */
	uint64_t queue_bytes;  /* or what would have more before it; 0: queue_ns holds */
};

struct wan_counts {
	uint64_t frames, bytes; /* sent, whatever became of them */
	uint64_t delivered;     /* duplicates count too */
	uint64_t lost;          /* by chance */
	uint64_t full;          /* dropped before a line that was too busy */
	uint64_t cut;           /* by a cut, also on the way */
	uint64_t duplicated, reordered;
	uint64_t overflow; /* dropped because WAN_FRAMES_MAX were under way */
	uint64_t refused;  /* the device did not take it: it is down, or was removed */
	uint64_t queued;   /* now under way */
};

struct wan_link {
	struct wan_rules rules;
	struct wan_counts counts;
	bool cut;
	uint32_t cuts;        /* how often it was cut */
	uint64_t random;      /* state: the fate of the n-th frame depends on nothing but the seed and the two sites */
	int64_t line_free_ns; /* when the line has sent all that it was given */
	int64_t last_due_ns;  /* of those in order */
};

/* The rules of a perfect link, and what applies when something is switched on without saying how much. */
struct wan_rules wan_rules_default(void);

void wan_link_init(struct wan_link *link, uint64_t seed, unsigned from, unsigned to);

/* What becomes of a frame that is sent now. Returns how many copies arrive, 0 to 2, and when. Counts. */
unsigned wan_link_pass(struct wan_link *link, int64_t now_ns, size_t length, int64_t due_ns[2]);

/* What is under way is lost as well. */
void wan_link_cut(struct wan_link *link);
void wan_link_heal(struct wan_link *link);

/* ---- net.c: all sites, all links -------------------------------------------------------------------------------- */

struct wan_net {
	unsigned sites_count;
	struct wan_link *links; /* [from][to] */
	struct wan_queue *queue;
	char (*names)[WAN_NAME_BYTES + 1];
	uint64_t strangers; /* frames for nobody: broadcast, multicast, an address of no site */
	uint64_t too_long;
};

/* Sites are called nothing yet: the caller fills in the names. */
struct wan_net *wan_net_new(unsigned sites_count, uint64_t seed);
void wan_net_free(struct wan_net *net);
struct wan_link *wan_net_link(struct wan_net *net, unsigned from, unsigned to);

/* The site of that name, or -1. */
int wan_net_find(const struct wan_net *net, struct str name);

/* A frame as the end of `from` sent it, with its Ethernet header; the bytes are copied. */
void wan_net_send(struct wan_net *net, int64_t now_ns, unsigned from, const void *bytes, size_t length);

/* The next frame that arrives by now, or NULL; and when the next one does. The caller says what the device did. */
const struct wan_frame *wan_net_receive(struct wan_net *net, int64_t now_ns);
void wan_net_delivered(struct wan_net *net, const struct wan_frame *frame, bool taken);
int64_t wan_net_next_ns(const struct wan_net *net);

/* The hardware address of a site: 02:77 and then its number, from 1. */
enum { WAN_MAC_BYTES = 6 };
void wan_mac_of(unsigned site, unsigned char mac[WAN_MAC_BYTES]);

/* ---- value.c ---------------------------------------------------------------------------------------------------- */

/* Each reads all of the text, or says what would be right. */
int wan_read_duration(struct str text, int64_t *ns, struct err *err);
int wan_read_share(struct str text, double *share, struct err *err);
int wan_read_rate(struct str text, uint64_t *bps, struct err *err);
/* A duration or a number of bytes; the other one becomes 0. */
int wan_read_queue(struct str text, int64_t *ns, uint64_t *bytes, struct err *err);

void wan_put_duration(struct buf *out, int64_t ns);
void wan_put_share(struct buf *out, double share);
void wan_put_rate(struct buf *out, uint64_t bps);
void wan_put_queue(struct buf *out, int64_t ns, uint64_t bytes);

/* ---- control.c -------------------------------------------------------------------------------------------------- */

/* Runs one command, and appends its answer: lines, of which the last is `ok` or `error: ` and what is wrong. */
void wan_control_run(struct wan_net *net, struct str line, struct buf *out);

/* ---- tap.c ------------------------------------------------------------------------------------------------------ */

struct wan_end {
	unsigned site, sites_count;
	const char *netns; /* path of the namespace */
};

/* Makes the device `wan0` there, with its addresses, those of all other sites, and the loopback interface up. Returns
 * the descriptor, which does not block, or a negative code. The process is in the namespace it was in before. */
int wan_tap_open(const struct wan_end *end, struct err *err);

/* ---- clients.c -------------------------------------------------------------------------------------------------- */

struct wan_clients;

/* epoll events of the control socket and its clients have numbers from `first_event` on, one per client and one more.
 * Does not own the descriptors. */
struct wan_clients *wan_clients_new(struct wan_net *net, int epoll, int listener, uint32_t first_event);
void wan_clients_free(struct wan_clients *clients);
void wan_clients_ready(struct wan_clients *clients, uint32_t event);

#endif
