/* Messages on names of sites that mean ill, what hosts ask, and the time between them: nothing crashes, and what is stored can be read
 * again.
 *
 * The input, again and again: a byte whose two lower bits say who speaks: 0 the prime, 2 another site, 3 a stranger, and 1 the host, as the
 * other bits say; else those say how much later that is. Of one who speaks, two bytes of length and a message follow; the container's id is
 * put into it here, and so is the term where it is 0. */
#include "cross/names_int.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP_US = 200000, ROWS_MOST = 4096 };

struct row {
	uint8_t table;
	struct buf key, row;
};

struct host {
	struct row *rows;
	uint32_t count;
	uint64_t random;
};

static uint32_t find(struct host *host, enum cross_table table, struct str key)
{
	uint32_t i = 0;
	while (i < host->count && !(host->rows[i].table == table && str_equal(buf_str(&host->rows[i].key), key)))
		i++;
	return i;
}

static int host_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	struct host *host = context;
	uint32_t at = find(host, table, key);
	if (at < host->count)
		buf_put(row, buf_str(&host->rows[at].row));
	return at < host->count ? 0 : ERR_NOT_FOUND;
}

static void host_put(void *context, enum cross_table table, struct str key, struct str row)
{
	struct host *host = context;
	uint32_t at = find(host, table, key);
	CHECK(key.length > 0 && key.length <= LIMIT_STORE_KEY_BYTES && at < ROWS_MOST);
	if (at == host->count) {
		host->rows[host->count++] = (struct row){.table = (uint8_t)table};
		buf_put(&host->rows[at].key, key);
	}
	buf_clear(&host->rows[at].row);
	buf_put(&host->rows[at].row, row);
}

static void host_remove(void *context, enum cross_table table, struct str key)
{
	struct host *host = context;
	uint32_t at = find(host, table, key);
	if (at == host->count)
		return;
	buf_free(&host->rows[at].key);
	buf_free(&host->rows[at].row);
	host->rows[at] = host->rows[--host->count];
}

static int host_scan(void *context, enum cross_table table, struct str prefix,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct host *host = context;
	for (uint32_t i = 0; i < host->count; i++) {
		struct str key = buf_str(&host->rows[i].key);
		if (host->rows[i].table == table && key.length >= prefix.length &&
		    memcmp(key.at, prefix.at, prefix.length) == 0 && !each(each_context, key, buf_str(&host->rows[i].row)))
			break;
	}
	return 0;
}

static void host_send(void *context, site_id to, struct str message)
{
	(void)context;
	struct message head;
	struct reader rest;
	CHECK(to != 0x1102 && names_message_open(message, &head, &rest) == 0);
}

static void host_answer(void *context, const struct cross_answer *answer)
{
	(void)context;
	CHECK(answer->ticket != 0);
}

static void host_lost(void *context, const struct cross_lost *lost)
{
	(void)context;
	CHECK(lost->claim.name.length > 0);
}

static enum cross_fate host_fate(void *context, const struct cross_claim *claim)
{
	(void)context;
	return (enum cross_fate)(claim->name.length % 3);
}

static uint64_t host_random(void *context)
{
	struct host *host = context;
	return host->random++;
}

static struct cross_names *start(struct host *host, struct replica_now now)
{
	struct cross_names_options options = cross_names_options_default();
	struct cross_names_host functions = {host,        host_get,  host_put,  host_remove, host_scan, host_send,
	                                     host_answer, host_lost, host_fate, host_random, NULL};
	struct cross_names *names;
	options.self = 0x1102;
	CHECK(cross_names_new(&names, &options, &functions, now, NULL) == 0);
	return names;
}

static struct replica_id id_of(unsigned number)
{
	struct replica_id id = {{0}};
	id.bytes[15] = (uint8_t)number;
	return id;
}

static void speak(struct cross_names *names, site_id from, struct str said, struct replica_now now)
{
	struct cross_container list;
	char *exact = malloc(said.length + 1); /* so that a read past its end is seen */
	CHECK(exact != NULL);
	memcpy(exact, said.at, said.length);
	if (said.length >= 18)
		memset(exact + 2, 0, 16);
	if (said.length >= 26 && memcmp(exact + 18, "\0\0\0\0\0\0\0\0", 8) == 0 && cross_names_get(names, id_of(0), &list))
		exact[25] = (char)list.term;
	cross_names_receive(names, from, str_make(exact, said.length), now);
	free(exact);
}

static void ask(struct cross_names *names, unsigned what, struct replica_now now)
{
	static const char *const words[] = {"a", "b", "cc"};
	struct cross_claim claim = {id_of(0), STR_INIT("t"), str_of(words[what % 3]), id_of(1 + what / 3 % 2)};
	switch (what / 6 % 4) {
	case 0: cross_names_claim(names, &claim, what > 40 ? STR("cc") : STR(""), 1 + what, now, NULL); break;
	case 1: cross_names_kept(names, &claim, now); break;
	case 2: cross_names_release(names, &claim, now); break;
	case 3: cross_names_adopt(names, &claim, now, NULL); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const site_id senders[] = {0x1101, 0, 0x1103, 0x9999};
	struct host host = {.random = 1};
	struct replica_now now = {.us = 1000000, .wall_ms = 1700000000000};
	struct cross_container list;
	host.rows = calloc(ROWS_MOST, sizeof(*host.rows));
	CHECK(host.rows != NULL);
	struct cross_names *names = start(&host, now);
	/* Who is prime depends on the length: this site, or another one. */
	bool is_prime = size % 2;
	cross_container_make(&list, (site_id[]){is_prime ? 0x1102 : 0x1101, is_prime ? 0x1101 : 0x1102, 0x1103}, 3,
	                     size % 4 > 1);
	cross_names_set(names, id_of(0), &list, now);
	for (size_t at = 0; at < size && at < 4096;) {
		unsigned from = data[at] & 3, rest = data[at] >> 2;
		at++;
		if (from == 1) {
			ask(names, rest, now);
		} else {
			now.us += rest * STEP_US;
			now.wall_ms += rest * STEP_US / 1000;
		}
		if (from != 1 && size - at >= 2) {
			size_t length = (size_t)data[at] << 8 | data[at + 1];
			at += 2;
			length = length < size - at ? length : size - at;
			speak(names, senders[from], str_make((const char *)data + at, length), now);
			at += length;
		}
		for (unsigned i = 0; i < 100 && cross_names_due(names) <= now.us; i++)
			cross_names_tick(names, now);
		CHECK(cross_names_due(names) > now.us);
	}
	CHECK(cross_names_counters(names).damaged == 0);
	cross_names_free(names);
	names = start(&host, now);
	CHECK(cross_names_counters(names).damaged == 0);
	cross_names_free(names);
	for (uint32_t i = 0; i < host.count; i++) {
		buf_free(&host.rows[i].key);
		buf_free(&host.rows[i].row);
	}
	free(host.rows);
	return 0;
}
