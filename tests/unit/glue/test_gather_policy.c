/* Lists of several sites, with what the caller knows of replicated resources: some are left out, and parts of one become one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/gather.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define A "01890000-0000-7000-8000-00000000000a"
#define B "01890000-0000-7000-8000-00000000000b"
#define C "01890000-0000-7000-8000-00000000000c"
#define REPLICA(id) "\"cheops-replica\":\"" id "\""

static const struct str site_names[] = {STR_INIT("Site1"), STR_INIT("Site2"), STR_INIT("Site3")};

struct scene {
	const char *texts[3];
	const char *expected;
	bool only[3];
	bool names;
	bool expects;          /* all sites should have a part of all */
	const char *faults[3]; /* by name; NULL: ok */
	int lacks[3];
	const char *unfit[3];
};

/* B is not known here. */
static bool knows(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES])
{
	(void)context;
	return id[GLUE_GATHER_ID_BYTES - 1] != 0x0b;
}

/* The parts side by side; one that says "bad" is of no use, and nothing can be made of "worse". */
static bool combine(void *context, struct glue_gather_part *parts, uint32_t count, struct buf *out, struct err *err)
{
	(void)context;
	size_t before = out->length;
	buf_put(out, STR("{\"of\":["));
	for (uint32_t i = 0, shown = 0; i < count; i++) {
		assert_true(parts[i].text.length >= 2 && parts[i].text.at[0] == '{' &&
		            parts[i].text.at[parts[i].text.length - 1] == '}');
		if (memmem(parts[i].text.at, parts[i].text.length, "worse", 5)) {
			out->length = before;
			err_set(err, ERR_LIMIT, "nothing can be made of it");
			return false;
		}
		if (memmem(parts[i].text.at, parts[i].text.length, "bad", 3)) {
			parts[i].left_out = true;
			err_set(&parts[i].why, ERR_INVALID, "it is bad");
			continue;
		}
		if (str_equal(parts[i].says, STR("late"))) {
			parts[i].unfit = "behind";
			err_set(&parts[i].why, ERR_UNAVAILABLE, "it is late");
		}
		buf_put(out, shown++ ? STR(",") : STR(""));
		buf_put(out, parts[i].text);
	}
	buf_put(out, STR("]}"));
	return true;
}

static void expect_all(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES], bool sites[LIMIT_GATHER_SITES])
{
	(void)context;
	(void)id;
	for (int i = 0; i < 3; i++)
		sites[i] = true;
}

static void gather(const struct scene *scene, size_t piece, struct buf *out)
{
	struct glue_gather_options options = {.sites_count = 3,
	                                      .list = STR("/l"),
	                                      .names = scene->names ? site_names : NULL,
	                                      .policy = {.knows = knows, .combine = combine}};
	options.policy.expects = scene->expects ? expect_all : NULL;
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		glue_gather_marked(gather, i);
		if (scene->only[i])
			glue_gather_only(gather, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct str text = str_of(scene->texts[i]);
		for (size_t at = 0; at < text.length; at += piece)
			glue_gather_feed(gather, i, str_make(text.at + at, text.length - at < piece ? text.length - at : piece),
			                 out);
		glue_gather_end(gather, i, out);
	}
	assert_int_equal(out->length, 0);
	assert_true(glue_gather_begin(gather, out));
	/* All was there: so what is missing is known before an answer begins. */
	assert_int_equal(glue_gather_turn(gather), 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct str text;
		const char *unfit;
		assert_string_equal(glue_gather_fault_name(glue_gather_fault(gather, i, &text)),
		                    scene->faults[i] ? scene->faults[i] : "ok");
		assert_int_equal(glue_gather_lacks(gather, i, &text, &unfit), scene->lacks[i]);
		assert_int_equal(text.length > 0, scene->lacks[i] != 0);
		assert_string_equal(unfit ? unfit : "", scene->unfit[i] ? scene->unfit[i] : "");
	}
	glue_gather_free(gather);
}

static const struct scene scenes[] = {
	/* of others, what is known here: not what has no mark, not B */
	{.texts = {"{\"l\":[{\"x\":1},2]}", "{\"l\":[{" REPLICA(A) ",\"x\":3},{\"x\":4},5,{" REPLICA(B) ",\"x\":6}]}",
               "{\"l\":[{" REPLICA(B) "},{" REPLICA(A) ",\"x\":7},{" REPLICA(C) ",\"x\":8}]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[{\"x\":1},2,{\"x\":3},{\"x\":8}]}"},
	/* its own are all shown, and what it has itself is not shown again */
	{.texts = {"{\"l\":[{" REPLICA(B) ",\"x\":1},{" REPLICA(A) ",\"x\":2}]}", "{\"l\":[{" REPLICA(A) ",\"x\":3}]}",
               "{\"l\":[{" REPLICA(B) ",\"x\":4}]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[{\"x\":1},{\"x\":2}]}"},
	/* nothing at all */
	{.texts = {"{\"l\":[]}", "{\"l\":[{\"x\":3}]}", "{\"l\":[[]]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[]}"},
	{.texts = {"{\"l\":null}", "{\"l\":[{" REPLICA(B) "}]}", "{\"l\":[0]}"},
     .only = {false, true, true},
     .expected = "{\"l\":null}"},
	{.texts = {"{\"l\":null}", "{\"l\":[{" REPLICA(A) "}]}", "{\"l\":[0]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[{}]}"},
	/* a mark that makes no sense is none */
	{.texts = {"{\"l\":[1]}", "{\"l\":[{\"cheops-replica\":\"\",\"x\":2},{\"cheops-replica\":7,\"x\":3}]}",
               "{\"l\":[{\"cheops-replica\":\";part\"},{\"cheops-replica\":\"x;prime\"}]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[1]}"},
	/* what a site says of its part reaches who puts them together, and an unfit one is in it and told of */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime;early") ",\"x\":1}]}", "{\"l\":[{" REPLICA(A ";part;late") ",\"x\":2}]}",
               "{\"l\":[{" REPLICA(A ";part;") ",\"x\":3}]}"},
     .expected = "{\"l\":[{\"of\":[{\"x\":1},{\"x\":2},{\"x\":3}]}]}",
     .lacks = {0, ERR_UNAVAILABLE, 0},
     .unfit = {NULL, "behind", NULL}},
	/* parts become one, the prime's first, at the end */
	{.texts = {"{\"l\":[{" REPLICA(A ";part") ",\"x\":1},{\"x\":2}]}", "{\"l\":[{" REPLICA(A ";part") ",\"x\":3}]}",
               "{\"l\":[ {" REPLICA(A ";prime") ", \"x\":4}, 5]}"},
     .expected = "{\"l\":[{\"x\":2}, 5,{\"of\":[{ \"x\":4},{\"x\":1},{\"x\":3}]}]}"},
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") "}]}", "{\"l\":[{" REPLICA(C ";prime") "}]}",
               "{\"l\":[{" REPLICA(C ";part") "}, {" REPLICA(A ";part") "}]}"},
     .expected = "{\"l\":[{\"of\":[{},{}]},{\"of\":[{},{}]}]}"},
	/* also where nothing else is */
	{.texts = {"{\"l\":null,\"n\":0}", "{\"l\":[]}", "{\"l\":[{" REPLICA(A ";part") ",\"x\":4}]}"},
     .expected = "{\"l\":[{\"of\":[{\"x\":4}]}],\"n\":0}"},
	/* one site has one part; and what it says that it is, later, is not heard */
	{.texts = {"{\"l\":[{" REPLICA(A ";part") ",\"x\":1},{" REPLICA(A ";prime") ",\"x\":2},{" REPLICA(A) ",\"x\":3}]}",
               "{\"l\":[{" REPLICA(A ";prime") ",\"x\":4}]}", "{\"l\":[]}"},
     .expected = "{\"l\":[{\"x\":3},{\"of\":[{\"x\":4},{\"x\":1}]}]}"},
	/* those of others that are not known here do not count */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") ",\"x\":1}]}",
               "{\"l\":[{" REPLICA(B ";prime") ",\"x\":2},{" REPLICA(A ";part") ",\"x\":3}]}", "{\"l\":[]}"},
     .only = {false, true, true},
     .expected = "{\"l\":[{\"of\":[{\"x\":1},{\"x\":3}]}]}"},
	/* whose it is */
	{.texts = {"{\"l\":[{" REPLICA(A ";part") ",\"x\":1}]}", "{\"l\":[{" REPLICA(A ";prime") "}]}", "{\"l\":[{}]}"},
     .names = true,
     .expected = "{\"l\":[{\"cheops-site\":\"Site3\"},{\"cheops-site\":\"Site2\",\"of\":[{},{\"x\":1}]}]}"},
	/* who should have one, and has none; of who failed that is known */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") ",\"x\":1}]}", "{\"l\":[]}", "{\"l\":7}"},
     .expects = true,
     .faults = {NULL, NULL, "no-list"},
     .lacks = {0, ERR_NOT_FOUND, 0},
     .expected = "{\"l\":[{\"of\":[{\"x\":1}]}]}"},
	/* what a part says is of no use: the others are shown */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") ",\"x\":1}]}", "{\"l\":[{" REPLICA(A ";part") ",\"x\":\"bad\"}]}",
               "{\"l\":[{" REPLICA(A ";part") ",\"x\":3}]}"},
     .lacks = {0, ERR_INVALID, 0},
     .expected = "{\"l\":[{\"of\":[{\"x\":1},{\"x\":3}]}]}"},
	/* nothing can be made of it: it is not shown, and all who have some of it are named */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") ",\"x\":1}]}", "{\"l\":[{" REPLICA(A ";part") ",\"x\":\"worse\"}]}",
               "{\"l\":[{\"x\":3}]}"},
     .lacks = {ERR_LIMIT, ERR_LIMIT, 0},
     .expected = "{\"l\":[{\"x\":3}]}"},
	/* what breaks off takes nothing along but itself */
	{.texts = {"{\"l\":[{" REPLICA(A ";prime") ",\"x\":1}],\"n\":1}",
               "{\"l\":[{" REPLICA(A ";part") ",\"x\":", "{\"l\":[{" REPLICA(A ";part") ",\"x\":3}]}"},
     .expects = true,
     .faults = {NULL, "no-json", NULL},
     .expected = "{\"l\":[{\"of\":[{\"x\":1},{\"x\":3}]}],\"n\":1}"},
};

static void test_scenes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(scenes); i++) {
		for (size_t piece = 1; piece < 200; piece = piece < 8 ? piece + 1 : piece * 3) {
			struct buf out = {0};
			gather(&scenes[i], piece, &out);
			if (strcmp(buf_c(&out), scenes[i].expected) != 0)
				fail_msg("scene %zu, in pieces of %zu: %s", i, piece, buf_c(&out));
			buf_free(&out);
		}
	}
}

/* Without rules there is nothing that could be combined: it is shown once. */
static void test_no_rules(void **state)
{
	(void)state;
	static const char *const texts[] = {"{\"l\":[{" REPLICA(A ";part") ",\"x\":1}]}",
	                                    "{\"l\":[{" REPLICA(A ";prime") ",\"x\":2}]}"};
	struct glue_gather *gather =
		glue_gather_new(&(struct glue_gather_options){.sites_count = 2, .list = STR("/l")}, NULL);
	struct buf out = {0};
	for (uint32_t i = 0; i < 2; i++) {
		glue_gather_marked(gather, i);
		glue_gather_feed(gather, i, str_of(texts[i]), &out);
		glue_gather_end(gather, i, &out);
	}
	assert_true(glue_gather_begin(gather, &out));
	assert_string_equal(buf_c(&out), "{\"l\":[{\"x\":1}]}");
	buf_free(&out);
	glue_gather_free(gather);
}

/* Parts wait in memory, so there is an end to them: the site that has too many is missing from there on, the others are not. */
static void test_limits(void **state)
{
	(void)state;
	struct glue_gather_options options = {.sites_count = 2, .list = STR(""), .policy = {.combine = combine}};
	for (int large = 0; large < 2; large++) {
		struct glue_gather *gather = glue_gather_new(&options, NULL);
		struct buf out = {0}, text = {0}, filler = {0};
		unsigned count = large ? 40 : LIMIT_GATHER_PARTS + 10;
		struct str why;
		for (int i = 0; i < (large ? 1 << 19 : 1); i++)
			buf_put_char(&filler, 'x');
		glue_gather_marked(gather, 0);
		glue_gather_feed(gather, 0, STR("["), &out);
		glue_gather_feed(gather, 1, STR("[\"other\"]"), &out);
		glue_gather_end(gather, 1, &out);
		assert_true(glue_gather_begin(gather, &out));
		for (unsigned i = 0; i < count; i++) {
			buf_clear(&text);
			buf_printf(&text, "%s{\"cheops-replica\":\"01890000-0000-7000-8000-%012x;part\",\"x\":\"", i ? "," : "",
			           i + 1);
			buf_put(&text, buf_str(&filler));
			buf_put(&text, STR("\"}"));
			glue_gather_feed(gather, 0, buf_str(&text), &out);
		}
		glue_gather_feed(gather, 0, STR("]"), &out);
		glue_gather_end(gather, 0, &out);
		assert_int_equal(glue_gather_turn(gather), 2);
		assert_int_equal(glue_gather_fault(gather, 0, &why), GLUE_GATHER_PARTS);
		assert_int_equal(glue_gather_fault(gather, 1, &why), GLUE_GATHER_OK);
		assert_non_null(memmem(out.at, out.length, "\"other\"", 7));
		assert_true(out.length < LIMIT_GATHER_PARTS_BYTES + (size_t)LIMIT_GATHER_PARTS * 16);
		assert_int_equal(out.at[out.length - 1], ']');
		glue_gather_free(gather);
		buf_free(&out);
		buf_free(&text);
		buf_free(&filler);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenes),
		cmocka_unit_test(test_no_rules),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
