/* Messages of members who mean ill, what the service answers, and the time between them: nothing crashes, what is stored can be read
 * again, and what is sent stays in proportion.
 *
 * The input, again and again: a byte whose two lower bits say who speaks: 0 and 2 other members, 3 a stranger, and 1 the service or a
 * user, as the other bits say; else those say how much later that is. Of one who speaks, two bytes of length and the sections of a
 * message follow, whose head is put before them here. */
#include "replica_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP_US = 200000, SENT_PER_BYTE = 4096 };

static void submit(struct replica *replica, uint32_t number, bool creates, struct replica_now now)
{
	site_id members[3] = {fuzz_site_id(0), fuzz_site_id(1), fuzz_site_id(2)};
	struct replica_create create = {
		.service = STR_INIT("sample"), .type = STR_INIT("sample.counter"), .members = members, .members_count = 3};
	struct replica_submission submission = {
		.ticket = 1,
		.create = creates ? &create : NULL,
		.replicant = fuzz_id(number),
		.class = {.name = STR_INIT("x"), .effect = creates ? ORDER_CREATE : ORDER_RELATIVE, .class = creates ? 0 : 3},
		.request = {.head = STR_INIT("head"), .body = STR_INIT("body")}};
	replica_submit(replica, &submission, now);
}

static void speak(struct replica *replica, unsigned from, struct str sections, struct replica_now now)
{
	struct buf message = {0};
	sync_message_begin(&message, now.wall_ms << 16);
	buf_put(&message, sections);
	char *exact = malloc(message.length); /* so that a read past its end is seen */
	CHECK(exact != NULL);
	memcpy(exact, message.at, message.length);
	replica_receive(replica, fuzz_site_id(from), str_make(exact, message.length), now);
	free(exact);
	buf_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_host host = {.random = 1};
	struct replica_now now = {.us = 1000000, .wall_ms = 1700000000000};
	struct replica *replica = fuzz_replica(&host, now);
	CHECK(replica != NULL);
	uint64_t taken = 4096;
	submit(replica, 1, true, now);
	fuzz_finish(replica, &host, 0, now);
	for (size_t at = 0; at < size && at < 4096;) {
		unsigned from = data[at] & 3, rest = data[at] >> 2;
		at++;
		if (from == 1) {
			if (rest < 48)
				fuzz_finish(replica, &host, rest, now);
			else
				submit(replica, 1 + rest % 3, rest < 52, now);
		} else {
			now.us += rest * STEP_US;
			now.wall_ms += rest * STEP_US / 1000;
		}
		if (from != 1 && size - at >= 2) {
			size_t length = (size_t)data[at] << 8 | data[at + 1];
			at += 2;
			length = length < size - at ? length : size - at;
			speak(replica, from, str_make((const char *)data + at, length), now);
			at += length;
			taken += length + 64;
		}
		for (unsigned i = 0; i < 100 && replica_due(replica) <= now.us; i++)
			replica_tick(replica, now);
		CHECK(replica_due(replica) > now.us);
	}
	CHECK(host.sent_bytes <= taken * SENT_PER_BYTE);
	replica_free(replica);
	fuzz_check(&host, now);
	fuzz_free(&host);
	return 0;
}
