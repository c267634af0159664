/* Records, their bodies, and stored tables: refused with a reason, or taken and the same when written again.
 *
 * The first byte says what the rest is: a record, the body of a card, of a removal, of a root, or a stored table, whose
 * check sum is put right here. */
#include "site_fuzz.h"

#include "base/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct site_now now = {.us = 1000000, .wall_ms = 1700000000000};

static void check_told(int code, const struct err *err)
{
	CHECK(code < 0 && err->code == code && err->text[0] != '\0');
}

static void check_record(struct str bytes)
{
	struct site_record record;
	struct err err = {0};
	int code = site_record_parse(bytes, &record, &err);
	if (code) {
		check_told(code, &err);
		return;
	}
	struct buf again = {0};
	site_record_begin(&again, record.kind, record.subject, record.version, record.body);
	CHECK(str_equal(buf_str(&again), record.signed_bytes));
	site_record_finish(&again, record.signature);
	CHECK(str_equal(buf_str(&again), bytes));
	buf_free(&again);
	struct fuzz_host host = {.random = 1};
	struct site *site = fuzz_site(&host, now);
	site_add_record(site, bytes, now, NULL);
	fuzz_check(site);
	site_free(site);
}

static bool same_card(const struct site_card *a, const struct site_card *b)
{
	bool same = str_equal(a->name, b->name) && str_equal(a->version, b->version) && a->authority == b->authority &&
	            a->born_ms == b->born_ms && str_equal(a->certificate, b->certificate) &&
	            memcmp(&a->address, &b->address, sizeof(a->address)) == 0 && a->services_count == b->services_count &&
	            a->tags_count == b->tags_count;
	for (uint32_t i = 0; same && i < a->services_count; i++)
		same = str_equal(a->services[i].service, b->services[i].service) &&
		       str_equal(a->services[i].version, b->services[i].version);
	for (uint32_t i = 0; same && i < a->tags_count; i++)
		same = str_equal(a->tags[i].key, b->tags[i].key) && str_equal(a->tags[i].value, b->tags[i].value);
	return same;
}

static void check_card(struct str body)
{
	struct site_card card, again;
	struct err err = {0};
	struct arena arena;
	struct buf written = {0};
	arena_init(&arena, 0);
	int code = site_card_parse(&arena, body, &card, &err);
	if (code) {
		check_told(code, &err);
	} else if (site_card_encode(&written, &card, &err) == 0) { /* it may be longer than fits into a record */
		CHECK(site_card_parse(&arena, buf_str(&written), &again, NULL) == 0);
		CHECK(same_card(&card, &again));
	}
	arena_free(&arena);
	buf_free(&written);
}

static void check_removal(struct str body)
{
	struct site_removal removal, again;
	struct err err = {0};
	struct buf written = {0};
	int code = site_removal_parse(body, &removal, &err);
	if (code) {
		check_told(code, &err);
		return;
	}
	site_removal_encode(&written, &removal);
	CHECK(site_removal_parse(buf_str(&written), &again, NULL) == 0);
	CHECK(removal.kind == again.kind && str_equal(removal.name, again.name) && removal.signer == again.signer &&
	      removal.wall_ms == again.wall_ms);
	buf_free(&written);
}

static void check_root(struct str body)
{
	struct site_root root, again;
	struct err err = {0};
	struct buf written = {0};
	int code = site_root_parse(body, &root, &err);
	if (code) {
		check_told(code, &err);
		return;
	}
	if (root.certificate.length <= UINT16_MAX) {
		site_root_encode(&written, &root);
		CHECK(site_root_parse(buf_str(&written), &again, NULL) == 0);
		CHECK(root.trusted == again.trusted && str_equal(root.certificate, again.certificate) &&
		      root.signer == again.signer);
	}
	buf_free(&written);
}

static void check_table(struct str bytes)
{
	struct fuzz_host host = {.random = 1};
	struct site *site = fuzz_site(&host, now);
	struct buf stored = {0};
	struct err err = {0};
	buf_put(&stored, bytes);
	put_number(&stored, store_checksum(bytes), 8);
	int code = site_load(site, buf_str(&stored), now, &err);
	if (code)
		check_told(code, &err);
	fuzz_check(site);
	/* What is written now can be loaded. */
	struct site *second = fuzz_site(&host, now);
	buf_clear(&stored);
	site_dump(site, &stored);
	CHECK(site_load(second, buf_str(&stored), now, NULL) == 0);
	fuzz_check(second);
	site_free(second);
	site_free(site);
	buf_free(&stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str bytes) = {check_record, check_card, check_removal, check_root,
	                                                   check_table};
	if (size == 0)
		return 0;
	checks[data[0] % 5](size > 1 ? str_make((const char *)data + 1, size - 1) : STR(""));
	return 0;
}
