/* Records and their bodies: to the byte, and what is refused. */
#include "site_test.h"

#include "lib/golden.h"

#define GOLDEN "tests/unit/site/records.golden"

static const struct site_offer offers[] = {{STR_INIT("image"), STR_INIT("2.1")}, {STR_INIT("compute"), STR_INIT("")}};
static const struct site_tag tags[] = {{STR_INIT("region"), STR_INIT("north")}, {STR_INIT("tier"), STR_INIT("")}};

static struct site_card full_card(void)
{
	return (struct site_card){.name = STR("Site1"),
	                          .address = {.family = 6, .ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = 7946},
	                          .version = STR("0.2.0"),
	                          .authority = true,
	                          .born_ms = INT64_C(1700000000123),
	                          .certificate = STR("certificate"),
	                          .services = offers,
	                          .services_count = COUNT(offers),
	                          .tags = tags,
	                          .tags_count = COUNT(tags)};
}

static void make_record(struct buf *out, uint8_t kind, struct str body)
{
	site_record_begin(out, kind, UINT64_C(0x0123456789abcdef), UINT64_C(0x00000000cafe0001), body);
	site_record_finish(out, SIGNED);
}

static void make_card(struct buf *out)
{
	struct site_card card = full_card();
	struct buf body = {0};
	assert_ok(site_card_encode(&body, &card, NULL));
	make_record(out, SITE_CARD, buf_str(&body));
	buf_free(&body);
}

static void make_small_card(struct buf *out)
{
	struct site_card card = {.name = STR("S"), .version = STR(""), .certificate = STR("")};
	struct buf body = {0};
	assert_ok(site_card_encode(&body, &card, NULL));
	make_record(out, SITE_CARD, buf_str(&body));
	buf_free(&body);
}

static void make_removal(struct buf *out)
{
	struct site_removal removal = {
		.kind = SITE_FORGET, .name = STR("Site1"), .signer = 7, .wall_ms = INT64_C(1700000000456)};
	struct buf body = {0};
	site_removal_encode(&body, &removal);
	make_record(out, SITE_REMOVAL, buf_str(&body));
	buf_free(&body);
}

static void make_root(struct buf *out)
{
	struct site_root root = {.trusted = true, .certificate = STR("root"), .signer = 7};
	struct buf body = {0};
	site_root_encode(&body, &root);
	make_record(out, SITE_ROOT, buf_str(&body));
	buf_free(&body);
}

static const struct {
	const char *name;
	void (*make)(struct buf *out);
} records[] = {{"card", make_card}, {"small card", make_small_card}, {"removal", make_removal}, {"root", make_root}};

static void put_hex(struct buf *out, struct str bytes)
{
	for (size_t i = 0; i < bytes.length; i++)
		buf_printf(out, "%s%02x", i == 0 ? "" : i % 32 == 0 ? "\n" : " ", (unsigned char)bytes.at[i]);
	buf_put(out, STR("\n"));
}

/* docs/protocol/gossip.md, to the byte. */
static void the_bytes_are_those_of_the_protocol(void **state)
{
	(void)state;
	struct buf made = {0}, record = {0};
	for (size_t i = 0; i < COUNT(records); i++) {
		buf_clear(&record);
		records[i].make(&record);
		buf_printf(&made, "%s, %zu bytes\n", records[i].name, record.length);
		put_hex(&made, buf_str(&record));
	}
	golden_check(GOLDEN, &made);
	buf_free(&made);
	buf_free(&record);
}

/* ---- There and back ------------------------------------------------------------------------------------------------- */

static void a_card_comes_back_as_it_was(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct site_record record;
	struct site_card card, wanted = full_card();
	struct arena arena;
	arena_init(&arena, 0);
	make_card(&bytes);
	assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
	assert_int_equal(record.kind, SITE_CARD);
	assert_int_equal(record.subject, UINT64_C(0x0123456789abcdef));
	assert_int_equal(record.version, 0xcafe0001);
	assert_true(str_equal(record.signature, SIGNED));
	assert_int_equal(record.signed_bytes.length + 2 + record.signature.length, bytes.length);
	assert_ok(site_card_parse(&arena, record.body, &card, NULL));
	assert_true(str_equal(card.name, wanted.name) && str_equal(card.version, wanted.version));
	assert_true(str_equal(card.certificate, wanted.certificate) && card.authority && card.born_ms == wanted.born_ms);
	assert_memory_equal(&card.address, &wanted.address, sizeof(card.address));
	assert_int_equal(card.services_count, 2);
	assert_true(str_equal(card.services[0].version, STR("2.1")) && str_equal(card.services[1].service, STR("compute")));
	assert_int_equal(card.tags_count, 2);
	assert_true(str_equal(card.tags[0].key, STR("region")) && str_equal(card.tags[1].value, STR("")));
	arena_free(&arena);
	buf_free(&bytes);
}

static void removals_and_roots_come_back_as_they_were(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct site_record record;
	struct site_removal removal;
	struct site_root root;
	make_removal(&bytes);
	assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
	assert_ok(site_removal_parse(record.body, &removal, NULL));
	assert_true(removal.kind == SITE_FORGET && str_equal(removal.name, STR("Site1")) && removal.signer == 7);
	assert_int_equal(removal.wall_ms, INT64_C(1700000000456));
	buf_clear(&bytes);
	make_root(&bytes);
	assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
	assert_ok(site_root_parse(record.body, &root, NULL));
	assert_true(root.trusted && str_equal(root.certificate, STR("root")) && root.signer == 7);
	buf_free(&bytes);
}

static void fields_of_a_later_version_are_skipped(void **state)
{
	(void)state;
	struct buf body = {0};
	struct site_card card = full_card(), parsed;
	struct site_removal removal;
	struct site_root root;
	struct arena arena;
	arena_init(&arena, 0);
	assert_ok(site_card_encode(&body, &card, NULL));
	buf_put(&body, STR("\x63\x00\x03new\x63\x00\x00")); /* twice: it may be a list */
	assert_ok(site_card_parse(&arena, buf_str(&body), &parsed, NULL));
	assert_int_equal(parsed.services_count, 2);
	buf_clear(&body);
	site_removal_encode(&body, &(struct site_removal){.kind = SITE_REVOKE, .name = STR("x"), .signer = 1});
	buf_put(&body, STR("\x63\x00\x01n\x63\x00\x01n"));
	assert_ok(site_removal_parse(buf_str(&body), &removal, NULL));
	buf_clear(&body);
	site_root_encode(&body, &(struct site_root){.certificate = STR(""), .signer = 1});
	buf_put(&body, STR("\xff\x00\x01n\xff\x00\x01n"));
	assert_ok(site_root_parse(buf_str(&body), &root, NULL));
	assert_false(root.trusted);
	arena_free(&arena);
	buf_free(&body);
}

/* ---- Refusals ------------------------------------------------------------------------------------------------------- */

/* In memory of exactly its size, so that a read past the end is seen. */
static int parse_exactly(struct str bytes)
{
	struct site_record record;
	struct err err = {0};
	char *exact = malloc(bytes.length > 0 ? bytes.length : 1);
	memcpy(exact, bytes.at, bytes.length);
	int code = site_record_parse(str_make(exact, bytes.length), &record, &err);
	assert_true(code == 0 || err.text[0] != '\0');
	free(exact);
	return code;
}

static void every_prefix_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(records); i++) {
		struct buf bytes = {0};
		struct site_record record;
		records[i].make(&bytes);
		for (size_t length = 0; length < bytes.length; length++)
			assert_int_not_equal(parse_exactly(str_make(bytes.at, length)), 0);
		buf_put_char(&bytes, 'x');
		assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_CORRUPT);
		buf_free(&bytes);
	}
}

/* Whatever a byte is changed to, what is accepted holds together. */
static void every_flipped_byte_is_survived(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(records); i++) {
		struct buf bytes = {0};
		records[i].make(&bytes);
		for (size_t at = 0; at < bytes.length; at++) {
			for (unsigned bit = 0; bit < 8; bit++) {
				struct site_record record;
				struct err err = {0};
				bytes.at[at] = (char)(bytes.at[at] ^ 1 << bit);
				if (site_record_parse(buf_str(&bytes), &record, &err) == 0) {
					struct held *held = held_new(NULL, &record, &err);
					assert_true(held || err.text[0] != '\0');
					held_drop(held);
				} else {
					assert_true(err.text[0] != '\0');
				}
				bytes.at[at] = (char)(bytes.at[at] ^ 1 << bit);
			}
		}
		buf_free(&bytes);
	}
}

static void bodies_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	static const struct {
		uint8_t kind;
		struct str body;
	} bodies[] = {
		{SITE_CARD, STR_INIT("")},                                       /* no name */
		{SITE_CARD, STR_INIT("\1\0\0")},                                 /* an empty one */
		{SITE_CARD, STR_INIT("\1\0\1a\1\0\1b")},                         /* two */
		{SITE_CARD, STR_INIT("\1\0\2\xc3\x28")},                         /* not UTF-8 */
		{SITE_CARD, STR_INIT("\1\0\2a\n")},                              /* a line end in it */
		{SITE_CARD, STR_INIT("\1\0\1a\2\0\7\5\0\1\1\2\3\4")},            /* an address of a family 5 */
		{SITE_CARD, STR_INIT("\1\0\1a\2\0\6\4\0\1\1\2\3")},              /* an address cut short */
		{SITE_CARD, STR_INIT("\1\0\1a\2\0\x8\4\0\1\1\2\3\4\5")},         /* too long */
		{SITE_CARD, STR_INIT("\1\0\1a\4\0\1\2")},                        /* neither yes nor no */
		{SITE_CARD, STR_INIT("\1\0\1a\4\0\2\0\1")},                      /* a flag of two bytes */
		{SITE_CARD, STR_INIT("\1\0\1a\6\0\2\2x")},                       /* a service whose name is cut short */
		{SITE_CARD, STR_INIT("\1\0\1a\6\0\1\0")},                        /* one without a name */
		{SITE_CARD, STR_INIT("\1\0\1a\7\0\0")},                          /* an empty tag */
		{SITE_CARD, STR_INIT("\1\0\1a\x8\0\x8\x80\0\0\0\0\0\0\0")},      /* born before time */
		{SITE_CARD, STR_INIT("\1\0\1a\x63\0\5abc")},                     /* an unknown field cut short */
		{SITE_REMOVAL, STR_INIT("")},                                    /* nothing */
		{SITE_REMOVAL, STR_INIT("\1\0\1\1")},                            /* no name */
		{SITE_REMOVAL, STR_INIT("\2\0\1a")},                             /* no kind */
		{SITE_REMOVAL, STR_INIT("\1\0\1\3\2\0\1a")},                     /* an unknown kind */
		{SITE_REMOVAL, STR_INIT("\1\0\1\1\2\0\1a\3\0\7\0\0\0\0\0\0\1")}, /* a signer of seven bytes */
		{SITE_REMOVAL, STR_INIT("\1\0\1\1\1\0\1\1\2\0\1a")},             /* its kind twice */
		{SITE_ROOT, STR_INIT("")},                                       /* nothing */
		{SITE_ROOT, STR_INIT("\1\0\1\1")},                               /* no signer */
		{SITE_ROOT, STR_INIT("\3\0\x8\0\0\0\0\0\0\0\1")},                /* trusted or not? */
		{SITE_ROOT, STR_INIT("\1\0\1\2\3\0\x8\0\0\0\0\0\0\0\1")},        /* trusted: 2 */
	};
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct buf bytes = {0};
		struct site_record record;
		struct err err = {0};
		make_record(&bytes, bodies[i].kind, bodies[i].body);
		assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
		assert_null(held_new(NULL, &record, &err));
		assert_int_equal(err.code, ERR_CORRUPT);
		buf_free(&bytes);
	}
}

static void records_past_the_limits_are_refused(void **state)
{
	(void)state;
	struct buf bytes = {0}, body = {0};
	struct site_record record;
	make_record(&bytes, SITE_RECORD_KINDS, STR(""));
	assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_VERSION);
	bytes.at[1] = 0;
	assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_VERSION);
	bytes.at[0] = 2;
	assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_VERSION);
	buf_clear(&bytes);
	site_record_begin(&bytes, SITE_CARD, 0, 1, STR(""));
	site_record_finish(&bytes, SIGNED);
	assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_CORRUPT);
	buf_clear(&bytes);
	buf_put_repeat(&body, 'x', LIMIT_SITE_CARD_BYTES);
	make_record(&bytes, SITE_CARD, buf_str(&body));
	assert_int_equal(site_record_parse(buf_str(&bytes), &record, NULL), ERR_LIMIT);
	buf_free(&bytes);
	buf_free(&body);
}

/* ---- What a card may say -------------------------------------------------------------------------------------------- */

static void a_card_too_large_says_what_takes_the_room(void **state)
{
	(void)state;
	struct site_card card = full_card();
	struct buf body = {0}, certificate = {0};
	struct err err = {0};
	buf_put_repeat(&certificate, 'c', 900);
	card.certificate = buf_str(&certificate);
	assert_int_equal(site_card_encode(&body, &card, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "Site1"));
	assert_non_null(strstr(err.text, "900"));
	assert_int_equal(body.length, 0);
	/* What just fits is a record that is accepted. */
	size_t fits = 0;
	for (size_t length = 900; length > 0 && fits == 0; length--) {
		card.certificate = str_make(certificate.at, length);
		buf_clear(&body);
		if (site_card_encode(&body, &card, NULL) == 0)
			fits = length;
	}
	struct buf bytes = {0}, signature = {0};
	struct site_record record;
	buf_put_repeat(&signature, 's', SITE_SIGNATURE_BYTES);
	site_record_begin(&bytes, SITE_CARD, 1, 1, buf_str(&body));
	site_record_finish(&bytes, buf_str(&signature));
	assert_int_equal(bytes.length, LIMIT_SITE_CARD_BYTES);
	assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
	buf_free(&bytes);
	buf_free(&signature);
	buf_free(&body);
	buf_free(&certificate);
}

static void a_card_that_others_would_refuse_is_not_made(void **state)
{
	(void)state;
	char long_name[LIMIT_AGENT_NAME_BYTES + 1];
	memset(long_name, 'n', sizeof(long_name));
	struct site_tag bad_tag = {STR(""), STR("x")};
	struct site_offer bad_offer = {STR("a\nb"), STR("")};
	struct site_card cards[7];
	for (size_t i = 0; i < COUNT(cards); i++)
		cards[i] = full_card();
	cards[0].name = STR("");
	cards[1].name = str_make(long_name, sizeof(long_name));
	cards[2].name = STR("a\tb");
	cards[3].address.family = 5;
	cards[4].tags = &bad_tag;
	cards[4].tags_count = 1;
	cards[5].services = &bad_offer;
	cards[5].services_count = 1;
	cards[6].born_ms = -1;
	for (size_t i = 0; i < COUNT(cards); i++) {
		struct buf body = {0};
		struct err err = {0};
		assert_int_equal(site_card_encode(&body, &cards[i], &err), ERR_INVALID);
		assert_true(err.text[0] != '\0');
		buf_free(&body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_those_of_the_protocol),
		cmocka_unit_test(a_card_comes_back_as_it_was),
		cmocka_unit_test(removals_and_roots_come_back_as_they_were),
		cmocka_unit_test(fields_of_a_later_version_are_skipped),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(every_flipped_byte_is_survived),
		cmocka_unit_test(bodies_that_make_no_sense_are_refused),
		cmocka_unit_test(records_past_the_limits_are_refused),
		cmocka_unit_test(a_card_too_large_says_what_takes_the_room),
		cmocka_unit_test(a_card_that_others_would_refuse_is_not_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
