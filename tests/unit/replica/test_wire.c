/* Messages and rows: to the byte, back again, and refused where they are cut short or changed. */
#include "world.h"

#include "lib/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN "tests/unit/replica/rows.golden"

static const site_id members[3] = {0x1101, 0x1102, 0x1103};
static const uint8_t resolutions[4] = {ORDER_TAKE_ONE, ORDER_ANY, ORDER_KEEP, ORDER_DEFAULT};
static const struct replica_id reference = {
	{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0x07, 0x80, 0, 0, 0, 0, 0, 0, 0x02}};

static struct replicant *replicant_blank(void)
{
	struct replicant *r = calloc(1, sizeof(*r));
	assert_non_null(r);
	arena_init(&r->order_arena, 0);
	r->queue_end = &r->queue;
	r->id = world_id(1);
	return r;
}

static void replicant_end(struct replicant *r)
{
	replicant_wipe(r);
	free(r);
}

/* At the second of three members: the third has rejected what the first issued. */
static struct replicant *replicant_made(void)
{
	struct replicant *r = replicant_blank();
	struct replica_create create = {.service = STR_INIT("image"),
	                                .type = STR_INIT("image.image"),
	                                .collection = STR_INIT("/images"),
	                                .name = STR_INIT("cirros"),
	                                .rules = {.classes = 2, .resolutions = resolutions, .create_replays = true}};
	header_take(r, &create);
	replicant_shape(r, members, 3, members[1]);
	r->base[0] = 1;
	r->known[0] = 2;
	r->handled[0] = 2;
	r->members[0].has[0] = 2;
	r->members[0].told = 5;
	r->members[2].has[0] = 1;
	for (uint32_t i = 0; i < 3; i++) {
		struct report *report = &r->members[i].report;
		report->number = 7 + i;
		report->settled[0] = i == 2 ? 1 : 2;
		report->created = true;
		report->local_id_bytes = 2;
		report->local_id_quoted = i == 1;
		memcpy(report->local_id, "17", 2);
	}
	static char answer[] = "quota exceeded";
	r->members[2].report.stuck = true;
	r->members[2].report.distance = 3;
	report_except(&r->members[2].report, &(struct exception){0, 2, REPLICA_REJECTED, 403, sizeof(answer) - 1, answer});
	return r;
}

static void make_operation(struct buf *out)
{
	struct replica_class class = {
		.name = STR_INIT("upload"), .effect = ORDER_REPLACE, .class = 1, .facet = 2, .repeatable = true};
	struct replica_request request = {.head = STR_INIT("PUT /file"),
	                                  .body = STR_INIT("body"),
	                                  .blob = STR_INIT("0123456789abcdef0123456789abcdef"),
	                                  .blob_bytes = 1 << 20,
	                                  .secret = STR_INIT("sealed"),
	                                  .references = &reference,
	                                  .references_count = 1};
	uint32_t seen[3] = {1, 0, 4};
	struct buf content = {0};
	op_content_put(&content, &class, &request, OP_REPAIR);
	op_row_put(out, 0x018bcfe568000001, seen, 3, buf_str(&content));
	buf_free(&content);
}

static void make_replicant(struct buf *out)
{
	struct replicant *r = replicant_made();
	head_put(out, r);
	replicant_end(r);
}

static void make_gone(struct buf *out)
{
	struct replicant *r = replicant_made();
	r->kind = REPLICANT_GONE;
	r->gone_ms = 1700000000000;
	head_put(out, r);
	replicant_end(r);
}

static void make_alias(struct buf *out)
{
	struct replicant *r = replicant_blank();
	r->kind = REPLICANT_ALIAS;
	r->alias = reference;
	r->winner = 0x1101;
	r->merge = (struct replica_op_id){reference, 0x1102, 4};
	head_put(out, r);
	replicant_end(r);
}

static void make_merge(struct buf *out)
{
	struct replica_class class = {
		.name = STR_INIT("merge"), .effect = ORDER_RELATIVE, .facet = UINT16_MAX, .repeatable = true};
	struct replica_request request = {.references = &reference, .references_count = 1};
	uint32_t seen[3] = {1, 0, 0};
	struct buf content = {0};
	op_content_put(&content, &class, &request, OP_MERGE);
	op_row_put(out, 0x018bcfe568000001, seen, 3, buf_str(&content));
	buf_free(&content);
}

static void make_moved(struct buf *out)
{
	moved_row_put(out, &(struct replica_op_id){world_id(1), 0x1102, 3});
}

static int parse_moved(struct str bytes)
{
	struct replica_op_id op;
	return moved_row_parse(bytes, &op, NULL);
}

static void make_lane(struct buf *out)
{
	struct replicant *r = replicant_made();
	struct step steps[] = {{0, 2, ORDER_DONE}, {0, 3, ORDER_DONE}, {2, 1, ORDER_REJECTED}};
	struct withheld withheld[] = {{REPLICA_WITHHELD | 1u, 2, true}};
	r->steps = steps;
	r->steps_count = 3;
	r->withheld = withheld;
	r->withheld_count = 1;
	r->task = (struct task){.what = TASK_DELIVERED, .kind = REPLICA_RUN, .member = 2, .number = 2, .standing = true};
	r->unsure = true;
	lane_put(out, r);
	r->steps = NULL;
	r->withheld = NULL;
	replicant_end(r);
}

static void make_key(struct buf *out)
{
	key_row_put(out, &(struct key_row){{world_id(1), 0x1102, 3}, REPLICA_ACCEPTED, 201});
}

static void make_local(struct buf *out)
{
	local_row_put(out, world_id(1));
}

static void make_meta(struct buf *out)
{
	meta_row_put(out, &(struct meta_row){0x018bcfe568000001, 1024});
}

static void make_blob(struct buf *out)
{
	blob_row_put(out, true);
}

static void make_blank(struct buf *out)
{
	blank_row_put(out);
}

static void make_message(struct buf *out)
{
	struct replicant *r = replicant_made();
	struct section section = {.kind = SYNC_STATE,
	                          .flags = SYNC_ASK | SYNC_HEADER | SYNC_REPORT,
	                          .id = r->id,
	                          .members_count = 3,
	                          .digest = members_digest(r)};
	struct buf row = {0};
	sync_message_begin(out, 0x018bcfe568000001);
	size_t at = sync_section_begin(out, &section);
	put_header(out, r);
	put_vector(out, r->known, 3);
	put_number(out, 9, 4);
	report_put(out, own_report(r), 3);
	make_operation(&row);
	sync_op_put(out, &(struct sync_op){0, 2, buf_str(&row)});
	sync_section_end(out, at);
	section = (struct section){.kind = SYNC_GONE, .flags = SYNC_ASK, .id = reference};
	sync_section_end(out, sync_section_begin(out, &section));
	section = (struct section){.kind = SYNC_STATE, .flags = SYNC_NOTHING, .id = reference};
	sync_section_end(out, sync_section_begin(out, &section));
	buf_free(&row);
	replicant_end(r);
}

/* ---- Parsers: 0, or why not ----------------------------------------------------------------------------------------------- */

static int parse_operation(struct str bytes)
{
	struct op_row row;
	return op_row_parse(bytes, &row, NULL);
}

static int parse_replicant(struct str bytes)
{
	struct replicant *r = replicant_blank();
	int code = head_parse(bytes, r, members[1], NULL);
	replicant_end(r);
	return code;
}

static int parse_lane(struct str bytes)
{
	struct replicant *r = replicant_blank();
	replicant_shape(r, members, 3, members[1]);
	int code = lane_parse(bytes, r, NULL);
	replicant_end(r);
	return code;
}

static int parse_key(struct str bytes)
{
	struct key_row row;
	return key_row_parse(bytes, &row, NULL);
}

static int parse_local(struct str bytes)
{
	struct replica_id id;
	return replica_local_parse(bytes, &id);
}

static int parse_meta(struct str bytes)
{
	struct meta_row row;
	return meta_row_parse(bytes, &row, NULL);
}

static int parse_blob(struct str bytes)
{
	bool here;
	return blob_row_parse(bytes, &here, NULL);
}

static int parse_blank(struct str bytes)
{
	return blank_row_parse(bytes, NULL);
}

static int parse_message(struct str bytes)
{
	struct reader sections;
	struct section section;
	uint64_t clock;
	int code = sync_message_open(bytes, &clock, &sections);
	if (code != 0)
		return code;
	do
		code = sync_section_read(&sections, &section);
	while (code == 1);
	return code;
}

static const struct {
	const char *name;
	void (*make)(struct buf *out);
	int (*parse)(struct str bytes);
	bool sections; /* it may end behind any */
} rows[] = {
	{"operation", make_operation, parse_operation, false},
	{"replicant", make_replicant, parse_replicant, false},
	{"replicant that is gone", make_gone, parse_replicant, false},
	{"alias", make_alias, parse_replicant, false},
	{"merge", make_merge, parse_operation, false},
	{"operation that became another one", make_moved, parse_moved, false},
	{"lane", make_lane, parse_lane, false},
	{"key", make_key, parse_key, false},
	{"local id or name", make_local, parse_local, false},
	{"clock", make_meta, parse_meta, false},
	{"blob", make_blob, parse_blob, false},
	{"outbox, or what expires", make_blank, parse_blank, false},
	{"message: SYNC, GONE, nothing", make_message, parse_message, true},
};

static void the_bytes_are_those_of_the_protocol(void **state)
{
	(void)state;
	struct buf made = {0}, bytes = {0};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&bytes);
		rows[i].make(&bytes);
		buf_printf(&made, "%s, %zu bytes\n", rows[i].name, bytes.length);
		for (size_t at = 0; at < bytes.length; at++)
			buf_printf(&made, "%s%02x", at == 0 ? "" : at % 32 == 0 ? "\n" : " ", (unsigned char)bytes.at[at]);
		buf_put(&made, STR("\n"));
	}
	golden_check(GOLDEN, &made);
	buf_free(&made);
	buf_free(&bytes);
}

/* In memory of exactly its size. */
static int parse_exactly(size_t row, struct str bytes)
{
	char *exact = malloc(bytes.length > 0 ? bytes.length : 1);
	assert_non_null(exact);
	memcpy(exact, bytes.at, bytes.length);
	int code = rows[row].parse(str_make(exact, bytes.length));
	free(exact);
	return code;
}

static void what_is_cut_short_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf bytes = {0};
		uint32_t accepted = 0;
		rows[i].make(&bytes);
		assert_int_equal(parse_exactly(i, buf_str(&bytes)), 0);
		for (size_t length = 0; length < bytes.length; length++) {
			int code = parse_exactly(i, str_make(bytes.at, length));
			assert_true(code == 0 || code == ERR_CORRUPT);
			accepted += code == 0;
		}
		assert_int_equal(accepted, rows[i].sections ? 3 : 0); /* behind the head, and two of its sections */
		/* One byte too many; another version. */
		buf_put_char(&bytes, 7);
		assert_int_equal(parse_exactly(i, buf_str(&bytes)), ERR_CORRUPT);
		bytes.at[0]++;
		assert_int_equal(parse_exactly(i, buf_str(&bytes)), ERR_VERSION);
		bytes.at[0] = 1; /* local ids were known without their collection; messages without members that come and go */
		assert_int_equal(parse_exactly(i, buf_str(&bytes)), ERR_VERSION);
		buf_free(&bytes);
	}
}

/* Whatever one byte becomes: refused, or taken; never more than that. */
static void what_is_changed_does_no_harm(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf bytes = {0};
		rows[i].make(&bytes);
		for (size_t at = 0; at < bytes.length; at++) {
			char was = bytes.at[at];
			for (unsigned change = 1; change < 256; change += 7) {
				bytes.at[at] = (char)(was ^ (char)change);
				int code = parse_exactly(i, buf_str(&bytes));
				assert_true(code == 0 || code == ERR_CORRUPT || code == ERR_VERSION);
			}
			bytes.at[at] = was;
		}
		buf_free(&bytes);
	}
}

static void a_replicant_comes_back_as_it_was(void **state)
{
	(void)state;
	struct buf bytes = {0};
	struct replicant *r = replicant_blank();
	make_replicant(&bytes);
	assert_int_equal(head_parse(buf_str(&bytes), r, members[1], NULL), 0);
	assert_int_equal(r->self, 1);
	assert_true(str_equal(r->name, STR("cirros")) && str_equal(r->collection, STR("/images")));
	assert_true(r->rules.create_replays && !r->rules.delete_loses);
	assert_memory_equal(r->rules.resolutions, resolutions, sizeof(resolutions));
	assert_int_equal(r->base[0], 1);
	assert_int_equal(r->members[0].told, 5);
	assert_int_equal(r->members[2].report.number, 9);
	assert_int_equal(report_exception(&r->members[2].report, 0, 2)->status, 403);
	assert_null(report_exception(&r->members[2].report, 0, 1));
	replicant_end(r);
	/* At a site that is no member it makes no sense. */
	r = replicant_blank();
	assert_int_equal(head_parse(buf_str(&bytes), r, 0x77, NULL), ERR_CORRUPT);
	replicant_end(r);
	buf_free(&bytes);
}

/* Keys fit into a store whatever the names are, and differ where these do. */
static void keys_are_bounded(void **state)
{
	char name[LIMIT_REPLICA_NAME_BYTES];
	struct buf one = {0}, other = {0};
	(void)state;
	memset(name, 'n', sizeof(name));
	struct str full = str_make(name, sizeof(name)), less = str_make(name, sizeof(name) - 1);
	replica_local_key(&(struct replica_local){full, full, full, full}, &one);
	replica_local_key(&(struct replica_local){full, full, full, less}, &other);
	assert_true(one.length <= LIMIT_STORE_KEY_BYTES);
	assert_false(str_equal(buf_str(&one), buf_str(&other)));
	buf_clear(&other);
	replica_local_key(&(struct replica_local){full, full, less, full}, &other);
	assert_false(str_equal(buf_str(&one), buf_str(&other)));
	struct replicant r = {.service = full, .type = full, .collection = full, .name = full};
	buf_clear(&one);
	buf_clear(&other);
	name_key_put(&one, &r);
	r.name = less;
	name_key_put(&other, &r);
	assert_true(one.length <= LIMIT_STORE_KEY_BYTES);
	assert_false(str_equal(buf_str(&one), buf_str(&other)));
	buf_free(&one);
	buf_free(&other);
}

/* Messages that are put together say what each of them said, at the time of the later one. */
static void test_join(void **state)
{
	(void)state;
	struct buf all = {0}, later = {0}, long_one = {0};
	struct section section = {.kind = SYNC_GONE, .id = world_id(1)};
	buf_put(&all, STR("before"));
	sync_message_begin(&all, 100);
	sync_section_end(&all, sync_section_begin(&all, &section));
	sync_message_begin(&later, 200);
	section = (struct section){.kind = SYNC_GONE, .flags = SYNC_ASK, .id = world_id(2)};
	sync_section_end(&later, sync_section_begin(&later, &section));
	assert_true(replica_join(&all, 6, buf_str(&later)));
	uint64_t clock;
	struct reader sections;
	struct str joined = str_make(all.at + 6, all.length - 6);
	assert_int_equal(sync_message_open(joined, &clock, &sections), 0);
	assert_int_equal(clock, 200);
	for (uint32_t i = 1; i <= 2; i++) {
		assert_int_equal(sync_section_read(&sections, &section), 1);
		assert_true(id_equal(section.id, world_id(i)));
		assert_int_equal(section.flags, i == 2 ? SYNC_ASK : 0);
	}
	assert_int_equal(sync_section_read(&sections, &section), 0);
	sync_message_begin(&long_one, 300);
	while (long_one.length < LIMIT_REPLICA_MESSAGE_BYTES)
		buf_put_char(&long_one, 'x');
	size_t before = all.length;
	assert_false(replica_join(&all, 6, buf_str(&long_one)));
	assert_int_equal(all.length, before);
	buf_free(&all);
	buf_free(&later);
	buf_free(&long_one);
}

/* What is looked up is found without taking the row apart: the same, and nothing where the row is cut short or of another kind. */
static void test_here(void **state)
{
	(void)state;
	struct buf live = {0}, other = {0};
	struct replica_here here, parsed;
	make_replicant(&live);
	for (uint32_t i = 0; i < 3; i++) {
		struct replicant *r = replicant_blank();
		assert_int_equal(head_parse(buf_str(&live), r, members[i], NULL), 0);
		memset(&here, 0xff, sizeof(here));
		assert_true(here_skim(buf_str(&live), members[i], &here));
		assert_false(here.alias || here.gone);
		assert_int_equal(here.local_id_bytes, own_report(r)->local_id_bytes);
		assert_memory_equal(here.local_id, own_report(r)->local_id, here.local_id_bytes);
		assert_int_equal(here.local_id_quoted, i == 1);
		assert_true(here.members == here_members(r));
		r->members[(i + 1) % 3].removed = true;
		assert_true(here.members != here_members(r));
		assert_int_equal(replica_here_parse(buf_str(&live), members[i], &parsed, NULL), 0);
		assert_int_equal(parsed.local_id_bytes, 2);
		replicant_end(r);
	}
	for (size_t length = 0; length < live.length; length++) {
		assert_false(here_skim(str_make(live.at, length), members[1], &here));
		assert_int_equal(replica_here_parse(str_make(live.at, length), members[1], &here, NULL), ERR_CORRUPT);
	}
	assert_false(here_skim(buf_str(&live), 0x77, &here));
	buf_put_char(&live, 'x');
	assert_false(here_skim(buf_str(&live), members[1], &here));
	make_gone(&other);
	assert_false(here_skim(buf_str(&other), members[1], &here));
	assert_int_equal(replica_here_parse(buf_str(&other), members[1], &here, NULL), 0);
	assert_true(here.gone);
	buf_clear(&other);
	make_alias(&other);
	assert_int_equal(replica_here_parse(buf_str(&other), members[1], &here, NULL), 0);
	assert_true(here.alias && id_equal(here.other, reference));
	buf_free(&live);
	buf_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_here),
		cmocka_unit_test(test_join),
		cmocka_unit_test(the_bytes_are_those_of_the_protocol),
		cmocka_unit_test(what_is_cut_short_is_refused),
		cmocka_unit_test(what_is_changed_does_no_harm),
		cmocka_unit_test(a_replicant_comes_back_as_it_was),
		cmocka_unit_test(keys_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
