/* Boxes: opened by who sealed them, where they were sealed for, and unchanged. */
#include "trust/trust.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct trust_box *make(void)
{
	struct buf key = {0};
	struct trust_box *box;
	struct err err = {0};
	assert_int_equal(trust_box_key_make(&key, &err), 0);
	assert_int_equal(key.length, TRUST_BOX_KEY_BYTES);
	assert_int_equal(trust_box_new(&box, buf_str(&key), &err), 0);
	buf_free(&key);
	return box;
}

static void what_was_put_in_comes_out(void **state)
{
	(void)state;
	struct trust_box *box = make();
	const size_t lengths[] = {0, 1, 15, 16, 17, 1000, 70000};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct buf bytes = {0}, sealed = {0}, again = {0};
		struct err err = {0};
		buf_put_repeat(&bytes, 's', lengths[i]);
		buf_put(&sealed, STR("before"));
		trust_box_seal(box, STR("place"), buf_str(&bytes), &sealed);
		assert_int_equal(sealed.length, 6 + lengths[i] + TRUST_BOX_EXTRA_BYTES);
		struct str box_only = str_make(sealed.at + 6, sealed.length - 6);
		assert_int_equal(trust_box_open(box, STR("place"), box_only, &again, &err), 0);
		assert_true(str_equal(buf_str(&again), buf_str(&bytes)));
		assert_null(lengths[i] > 3 ? memmem(sealed.at, sealed.length, "ssss", 4) : NULL);
		buf_free(&bytes);
		buf_free(&sealed);
		buf_free(&again);
	}
	trust_box_free(box);
}

static void nothing_else_is_opened(void **state)
{
	(void)state;
	struct trust_box *box = make(), *other = make();
	struct buf sealed = {0}, out = {0};
	struct err err = {0};
	trust_box_seal(box, STR("here"), STR("a secret"), &sealed);
	assert_int_equal(trust_box_open(other, STR("here"), buf_str(&sealed), &out, &err), ERR_CORRUPT);
	assert_int_equal(trust_box_open(box, STR("there"), buf_str(&sealed), &out, &err), ERR_CORRUPT);
	for (size_t i = 0; i < sealed.length; i++) {
		sealed.at[i] ^= 1;
		assert_int_equal(trust_box_open(box, STR("here"), buf_str(&sealed), &out, &err), ERR_CORRUPT);
		sealed.at[i] ^= 1;
		struct str cut = str_make(sealed.at, i);
		assert_int_equal(trust_box_open(box, STR("here"), cut, &out, &err), ERR_CORRUPT);
	}
	assert_int_equal(out.length, 0);
	assert_int_equal(trust_box_open(box, STR("here"), buf_str(&sealed), &out, &err), 0);
	buf_free(&sealed);
	buf_free(&out);
	trust_box_free(box);
	trust_box_free(other);
}

static void equal_contents_look_different(void **state)
{
	(void)state;
	struct trust_box *box = make();
	struct buf a = {0}, b = {0};
	trust_box_seal(box, STR("x"), STR("the same"), &a);
	trust_box_seal(box, STR("x"), STR("the same"), &b);
	assert_false(str_equal(buf_str(&a), buf_str(&b)));
	buf_free(&a);
	buf_free(&b);
	trust_box_free(box);
}

static void a_key_has_its_length(void **state)
{
	(void)state;
	struct trust_box *box;
	struct err err = {0};
	assert_int_equal(trust_box_new(&box, STR("too short"), &err), ERR_INVALID);
	assert_string_equal(err.text, "the key has 9 bytes; it has to have 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_in_comes_out),
		cmocka_unit_test(nothing_else_is_opened),
		cmocka_unit_test(equal_contents_look_different),
		cmocka_unit_test(a_key_has_its_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
