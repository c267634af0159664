/* What the tests of the lab's switch share. */
#ifndef WAN_TEST_H
#define WAN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wan.h"

static const int64_t MS = 1000000;

/* The smallest frame that goes somewhere: addresses, type, and one byte to tell it by. */
enum { TEST_FRAME_BYTES = 15 };
static inline void test_frame(unsigned char frame[TEST_FRAME_BYTES], unsigned from, unsigned to, unsigned char mark)
{
	memset(frame, 0, TEST_FRAME_BYTES);
	wan_mac_of(to, frame);
	wan_mac_of(from, frame + WAN_MAC_BYTES);
	frame[TEST_FRAME_BYTES - 1] = mark;
}

/* A network of sites called Site1, Site2... */
static inline struct wan_net *test_net(unsigned sites_count)
{
	struct wan_net *net = wan_net_new(sites_count, 1);
	for (unsigned i = 0; i < sites_count; i++) {
		struct buf name = {0};
		buf_printf(&name, "Site%u", i + 1);
		memcpy(net->names[i], name.at, name.length);
		buf_free(&name);
	}
	return net;
}

#endif
