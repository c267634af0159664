/* All sites and links. Hardware addresses are fixed, so there is nothing to learn, and nothing is flooded: a frame that
 * is for no site is dropped, and counted. */
#include "wan.h"

#include "base/check.h"

#include <stdlib.h>

void wan_mac_of(unsigned site, unsigned char mac[WAN_MAC_BYTES])
{
	unsigned number = site + 1;
	const unsigned char made[WAN_MAC_BYTES] = {0x02, 0x77, 0, 0, (unsigned char)(number >> 8), (unsigned char)number};
	memcpy(mac, made, WAN_MAC_BYTES);
}

struct wan_net *wan_net_new(unsigned sites_count, uint64_t seed)
{
	CHECK(sites_count >= 1 && sites_count <= WAN_SITES_MAX);
	struct wan_net *net = calloc(1, sizeof(*net));
	CHECK(net != NULL);
	net->sites_count = sites_count;
	net->links = calloc((size_t)sites_count * sites_count, sizeof(net->links[0]));
	net->names = calloc(sites_count, sizeof(net->names[0]));
	net->queue = wan_queue_new(WAN_FRAMES_MAX);
	CHECK(net->links != NULL && net->names != NULL);
	for (unsigned from = 0; from < sites_count; from++) {
		for (unsigned to = 0; to < sites_count; to++)
			wan_link_init(wan_net_link(net, from, to), seed, from, to);
	}
	return net;
}

void wan_net_free(struct wan_net *net)
{
	if (net == NULL)
		return;
	wan_queue_free(net->queue);
	free(net->links);
	free(net->names);
	free(net);
}

struct wan_link *wan_net_link(struct wan_net *net, unsigned from, unsigned to)
{
	CHECK(from < net->sites_count && to < net->sites_count);
	return &net->links[(size_t)from * net->sites_count + to];
}

int wan_net_find(const struct wan_net *net, struct str name)
{
	for (unsigned site = 0; site < net->sites_count; site++) {
		if (str_equal(str_of(net->names[site]), name))
			return (int)site;
	}
	return -1;
}

/* The site that has the address, or -1. */
static int site_of_mac(const struct wan_net *net, const unsigned char *mac)
{
	unsigned number = (unsigned)mac[4] << 8 | mac[5];
	unsigned char expected[WAN_MAC_BYTES];
	if (number < 1 || number > net->sites_count)
		return -1;
	wan_mac_of(number - 1, expected);
	return memcmp(mac, expected, WAN_MAC_BYTES) == 0 ? (int)number - 1 : -1;
}

static void put_frame(struct wan_net *net, int64_t due_ns, const struct wan_frame *head, const void *bytes)
{
	struct wan_link *link = wan_net_link(net, head->from, head->to);
	struct wan_frame *frame = wan_queue_put(net->queue, due_ns);
	if (frame == NULL) {
		link->counts.overflow++;
		return;
	}
	frame->from = head->from;
	frame->to = head->to;
	frame->cuts = link->cuts;
	frame->length = head->length;
	memcpy(frame->bytes, bytes, head->length);
	link->counts.queued++;
}

void wan_net_send(struct wan_net *net, int64_t now_ns, unsigned from, const void *bytes, size_t length)
{
	enum { HEADER_BYTES = 14 };
	int to = length >= HEADER_BYTES ? site_of_mac(net, bytes) : -1;
	net->too_long += length > WAN_FRAME_BYTES;
	net->strangers += to < 0 || (unsigned)to == from;
	if (length > WAN_FRAME_BYTES || to < 0 || (unsigned)to == from)
		return;
	struct wan_frame head;
	head.from = from;
	head.to = (unsigned)to;
	head.length = (uint32_t)length;
	int64_t due_ns[2];
	unsigned copies = wan_link_pass(wan_net_link(net, from, head.to), now_ns, length, due_ns);
	for (unsigned i = 0; i < copies; i++)
		put_frame(net, due_ns[i], &head, bytes);
}

const struct wan_frame *wan_net_receive(struct wan_net *net, int64_t now_ns)
{
	const struct wan_frame *frame;
	while ((frame = wan_queue_take(net->queue, now_ns)) != NULL) {
		struct wan_link *link = wan_net_link(net, frame->from, frame->to);
		link->counts.queued--;
		if (!link->cut && frame->cuts == link->cuts)
			return frame;
		link->counts.cut++;
	}
	return NULL;
}

void wan_net_delivered(struct wan_net *net, const struct wan_frame *frame, bool taken)
{
	struct wan_link *link = wan_net_link(net, frame->from, frame->to);
	*(taken ? &link->counts.delivered : &link->counts.refused) += 1;
}

int64_t wan_net_next_ns(const struct wan_net *net)
{
	return wan_queue_next_ns(net->queue);
}
