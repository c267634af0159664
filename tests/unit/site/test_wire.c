/* Datagrams: to the byte, and what is refused. */
#include "site_test.h"

#include "base/bytes.h"

#include "lib/golden.h"

#define GOLDEN "tests/unit/site/messages.golden"

static const struct site_coordinate somewhere = {{1000, -2000, 0, 8000000}, 500, 0.25f};

static void put_rumours(struct buf *out)
{
	size_t at = section_begin(out, SECTION_RUMOURS);
	put_status(out, &(struct status){0x1122334455667788, 7, SITE_SUSPECT, 9, 0x99});
	put_status(out, &(struct status){0xaa, 1, SITE_LEFT, 1, 0});
	section_end(out, at);
}

static void put_places(struct buf *out)
{
	size_t at = section_begin(out, SECTION_COORDINATE);
	put_number(out, 3, 4);
	put_coordinate(out, &somewhere);
	section_end(out, at);
	at = section_begin(out, SECTION_COORDINATES);
	put_place(out, &(struct place){.id = 0xaa, .stamp = 4, .coordinate = somewhere});
	section_end(out, at);
}

static void put_head(struct buf *out, uint8_t type)
{
	struct message head = {.type = type,
	                       .incarnation = 0x01020304,
	                       .card_version = 0x1112131415161718,
	                       .law = 0x21222324,
	                       .sequence = 0x31323334,
	                       .target = 0x4142434445464748};
	message_begin(out, &head);
}

static void make_ping(struct buf *out)
{
	put_head(out, TYPE_PING);
	put_places(out);
	put_rumours(out);
}

static void make_ack(struct buf *out)
{
	put_head(out, TYPE_ACK);
}

static void make_ask(struct buf *out)
{
	put_head(out, TYPE_ASK);
	put_rumours(out);
}

static void make_passed(struct buf *out)
{
	put_head(out, TYPE_PASSED);
}

static void make_nack(struct buf *out)
{
	put_head(out, TYPE_NACK);
}

static void make_late_ack(struct buf *out)
{
	put_head(out, TYPE_ACK);
	size_t at = section_begin(out, SECTION_WAITED);
	put_number(out, 20000, WAITED_BYTES);
	section_end(out, at);
}

static void make_wants(struct buf *out)
{
	put_head(out, TYPE_NEWS);
	size_t at = section_begin(out, SECTION_WANT);
	put_number(out, SITE_CARD, 1);
	put_number(out, 0xaa, 8);
	put_number(out, SITE_ROOT, 1);
	put_number(out, 0xbb, 8);
	section_end(out, at);
	at = section_begin(out, SECTION_RECORD);
	buf_put(out, STR("a record"));
	section_end(out, at);
	at = section_begin(out, SECTION_OUTCAST);
	buf_put(out, STR("no"));
	section_end(out, at);
}

static void make_cells(struct buf *out)
{
	put_head(out, TYPE_NEWS);
	size_t at = section_begin(out, SECTION_CELL);
	put_number(out, 9, 1);
	put_number(out, 0x1ff, 2);
	put_item(out, &(struct item){SITE_CARD, 0xaa, 5, 6, SITE_LOST});
	put_item(out, &(struct item){SITE_REMOVAL, 0xbb, 7, 0, 0});
	section_end(out, at);
	at = section_begin(out, SECTION_CELL);
	put_number(out, 8, 1);
	put_number(out, 0, 2);
	section_end(out, at);
	at = section_begin(out, SECTION_OFFER);
	put_item(out, &(struct item){SITE_ROOT, 0xcc, 8, 0, 0});
	section_end(out, at);
}

static void make_digest(struct buf *out)
{
	put_head(out, TYPE_NEWS);
	size_t at = section_begin(out, SECTION_DIGEST);
	for (uint32_t i = 0; i < SITE_BUCKETS; i++)
		put_number(out, i * 0x01010101, 4);
	section_end(out, at);
}

static const struct {
	const char *name;
	void (*make)(struct buf *out);
	size_t ends[6]; /* where it may end, too: behind the head and each section */
} messages[] = {
	{"PING", make_ping, {22, 46, 78}},
	{"ACK", make_ack, {0}},
	{"ASK", make_ask, {30}},
	{"PASSED", make_passed, {0}},
	{"NACK", make_nack, {0}},
	{"NEWS: wants, record, outcast", make_wants, {18, 39, 50}},
	{"NEWS: cells, offer", make_cells, {18, 68, 74}},
	{"NEWS: digest", make_digest, {18}},
	{"ACK: waited", make_late_ack, {22}},
};

static void the_bytes_are_those_of_the_protocol(void **state)
{
	(void)state;
	struct buf made = {0}, bytes = {0};
	for (size_t i = 0; i < COUNT(messages); i++) {
		buf_clear(&bytes);
		messages[i].make(&bytes);
		buf_printf(&made, "%s, %zu bytes\n", messages[i].name, bytes.length);
		for (size_t at = 0; at < bytes.length; at++)
			buf_printf(&made, "%s%02x", at == 0 ? "" : at % 32 == 0 ? "\n" : " ", (unsigned char)bytes.at[at]);
		buf_put(&made, STR("\n"));
	}
	golden_check(GOLDEN, &made);
	buf_free(&made);
	buf_free(&bytes);
}

static void a_message_comes_back_as_it_was(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct message message;
	make_ask(&bytes);
	assert_ok(message_parse(buf_str(&bytes), &message));
	assert_int_equal(message.type, TYPE_ASK);
	assert_int_equal(message.incarnation, 0x01020304);
	assert_int_equal(message.card_version, 0x1112131415161718);
	assert_int_equal(message.law, 0x21222324);
	assert_int_equal(message.sequence, 0x31323334);
	assert_int_equal(message.target, 0x4142434445464748);
	assert_int_equal(message.sections_count, 1);
	struct reader reader = reader_of(message.sections[0].bytes);
	struct status status = read_status(&reader);
	assert_true(status.id == 0x1122334455667788 && status.incarnation == 7 && status.state == SITE_SUSPECT);
	assert_true(status.card_version == 9 && status.accuser == 0x99);
	buf_free(&bytes);
}

static void coordinates_survive_the_wire(void **state)
{
	(void)state;
	static const float axes[] = {0, 1, -1, 1000, -8388607, 8388607, 9000000, -9000000};
	static const float wanted[] = {0, 1, -1, 1000, -8388607, 8388607, 8388607, -8388607};
	for (size_t i = 0; i < COUNT(axes); i++) {
		struct buf bytes = {0};
		struct site_coordinate coordinate = {{axes[i], 0, 0, axes[i]}, 12, 0.5f};
		put_coordinate(&bytes, &coordinate);
		assert_int_equal(bytes.length, COORDINATE_BYTES);
		struct reader reader = reader_of(buf_str(&bytes));
		struct site_coordinate back = read_coordinate(&reader);
		assert_true(back.at[0] == wanted[i] && back.at[3] == wanted[i] && back.height == 12 && back.error == 0.5f);
		buf_free(&bytes);
	}
}

/* In memory of exactly its size. */
static int parse_exactly(struct str bytes, struct message *message)
{
	char *exact = malloc(bytes.length > 0 ? bytes.length : 1);
	memcpy(exact, bytes.at, bytes.length);
	int code = message_parse(str_make(exact, bytes.length), message);
	free(exact);
	return code;
}

static bool may_end(size_t message, size_t length)
{
	for (size_t i = 0; i < COUNT(messages[0].ends); i++)
		if (messages[message].ends[i] == length)
			return length > 0;
	return false;
}

static void every_prefix_is_refused_unless_it_is_a_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(messages); i++) {
		struct buf bytes = {0};
		struct message message;
		messages[i].make(&bytes);
		assert_ok(parse_exactly(buf_str(&bytes), &message));
		for (size_t length = 0; length < bytes.length; length++)
			assert_int_equal(parse_exactly(str_make(bytes.at, length), &message) == 0, may_end(i, length));
		buf_free(&bytes);
	}
}

static void every_flipped_byte_is_survived(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(messages); i++) {
		struct buf bytes = {0};
		struct message message;
		struct world *world = world_of(3);
		messages[i].make(&bytes);
		for (size_t at = 0; at < bytes.length; at++) {
			for (unsigned bit = 0; bit < 8; bit++) {
				bytes.at[at] = (char)(bytes.at[at] ^ 1 << bit);
				parse_exactly(buf_str(&bytes), &message);
				site_receive(world->nodes[0].site, world_id(1), buf_str(&bytes), world->now);
				bytes.at[at] = (char)(bytes.at[at] ^ 1 << bit);
			}
		}
		world_free(world);
		buf_free(&bytes);
	}
}

static void sections_of_a_later_version_are_skipped(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct message message;
	make_ping(&bytes);
	buf_put(&bytes, STR("\xee\x00\x03new"));
	put_rumours(&bytes);
	assert_ok(message_parse(buf_str(&bytes), &message));
	assert_int_equal(message.sections_count, 4);
	buf_free(&bytes);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	static const struct {
		uint8_t tag;
		struct str bytes;
	} sections[] = {
		{SECTION_COORDINATE, STR_INIT("")},
		{SECTION_COORDINATE, STR_INIT("\0\0\0\1\0\0\1\0\0\1\0\0\1\0\0\1\xff\xff\xff\x40\0")}, /* below the ground */
		{SECTION_RUMOURS, STR_INIT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")}, /* of nobody */
		{SECTION_RUMOURS,
	     STR_INIT("\0\0\0\0\0\0\0\1\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")}, /* revoked: by record */
		{SECTION_RECORD, STR_INIT("")},
		{SECTION_WANT, STR_INIT("\4\0\0\0\0\0\0\0\1")}, /* of kind 4 */
		{SECTION_WANT, STR_INIT("\1\0\0\0\0\0\0\0\0")},
		{SECTION_DIGEST, STR_INIT("\1\2\3\4")},
		{SECTION_CELL, STR_INIT("\7\0\0")},                                        /* fewer bits than a bucket */
		{SECTION_CELL, STR_INIT("\x11\0\0")},                                      /* more than a cell */
		{SECTION_CELL, STR_INIT("\x8\1\0")},                                       /* a ninth bit */
		{SECTION_CELL, STR_INIT("\x8\0\0\0")},                                     /* not an item */
		{SECTION_OFFER, STR_INIT("\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\2")}, /* a removal that is lost */
		{SECTION_OUTCAST, STR_INIT("two\nlines")},
		{SECTION_WAITED, STR_INIT("\1\2\3")},
		{SECTION_WAITED, STR_INIT("\1\2\3\4\5")},
	};
	for (size_t i = 0; i < COUNT(sections); i++) {
		struct buf bytes = {0};
		struct message message;
		make_ack(&bytes);
		size_t at = section_begin(&bytes, (enum section_tag)sections[i].tag);
		buf_put(&bytes, sections[i].bytes);
		patch_16(&bytes, at + 1, sections[i].bytes.length);
		assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_CORRUPT);
		buf_free(&bytes);
	}
}

static void other_versions_and_types_are_refused(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct message message;
	make_ack(&bytes);
	bytes.at[0] = 2;
	assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_VERSION);
	bytes.at[0] = 1;
	bytes.at[1] = 0;
	assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_CORRUPT);
	bytes.at[1] = TYPES;
	assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_CORRUPT);
	buf_clear(&bytes);
	put_head(&bytes, TYPE_NEWS);
	buf_put_repeat(&bytes, '\0', LIMIT_SITE_DATAGRAM_BYTES);
	assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_CORRUPT);
	buf_free(&bytes);
}

/* More of them than there can be in an honest datagram. */
static void too_many_sections_are_refused(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct message message;
	put_head(&bytes, TYPE_NEWS);
	for (int i = 0; i <= SITE_SECTIONS; i++)
		buf_put(&bytes, STR("\3\0\0"));
	assert_int_equal(message_parse(buf_str(&bytes), &message), ERR_CORRUPT);
	buf_free(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_those_of_the_protocol),
		cmocka_unit_test(a_message_comes_back_as_it_was),
		cmocka_unit_test(coordinates_survive_the_wire),
		cmocka_unit_test(every_prefix_is_refused_unless_it_is_a_message),
		cmocka_unit_test(every_flipped_byte_is_survived),
		cmocka_unit_test(sections_of_a_later_version_are_skipped),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(other_versions_and_types_are_refused),
		cmocka_unit_test(too_many_sections_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
