/* Datagrams of members who mean ill, and the time between them: nothing crashes, the table holds together, and what is sent
 * stays in proportion to what came.
 *
 * The input: a byte whose two lower bits say who speaks (0: nobody, time passes) and the others how much later that is;
 * then, of one who speaks, two bytes of length and the datagram. */
#include "site_fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	STEP_US = 40000,
	ANSWERS = 48 + SITE_FANOUT, /* datagrams that one may cause: a broadcast to all, answers, questions */
};

static void speak(struct site *site, struct fuzz_host *host, unsigned from, struct str bytes, struct site_now now)
{
	uint64_t before = host->sent;
	char *exact = malloc(bytes.length > 0 ? bytes.length : 1); /* so that a read past its end is seen */
	CHECK(exact != NULL);
	memcpy(exact, bytes.at, bytes.length);
	site_receive(site, fuzz_id(from), str_make(exact, bytes.length), now);
	free(exact);
	CHECK(host->sent - before <= ANSWERS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_host host = {.random = 1};
	struct site_now now = {.us = 1000000, .wall_ms = 1700000000000};
	struct site *site = fuzz_site(&host, now);
	for (size_t at = 0; at < size;) {
		unsigned from = data[at] & 3;
		now.us += (uint64_t)(data[at] >> 2) * STEP_US;
		now.wall_ms += (data[at] >> 2) * STEP_US / 1000;
		at++;
		if (from != 0 && size - at >= 2) {
			size_t length = (size_t)data[at] << 8 | data[at + 1];
			at += 2;
			length = length < size - at ? length : size - at;
			speak(site, &host, from, str_make((const char *)data + at, length), now);
			at += length;
		}
		if (site_due(site) <= now.us)
			site_tick(site, now);
		CHECK(site_due(site) > now.us);
		fuzz_check(site);
	}
	struct buf stored = {0};
	site_dump(site, &stored);
	buf_free(&stored);
	site_free(site);
	return 0;
}
