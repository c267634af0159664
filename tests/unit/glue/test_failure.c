/* What an agent has to say, in the form in which a service tells its errors. */
#include "glue_test.h"

#define SERVICES(errors)                                                                                               \
	"format: 1\napplication: a\nservices: {image: {errors: " errors                                                    \
	"}, other: }\ntypes: {'image.x': {item: '/x/{id}'}}\n"

static const struct glue_failure failure = {.status = 504,
                                            .reason = STR_INIT("Gateway Timeout"),
                                            .type = STR_INIT("no-answer"),
                                            .title = STR_INIT("No answer"),
                                            .detail = STR_INIT("\"image\" <at>\\Site2 &\n\x01Z\xc3\xbcrich")};

static void check(const char *text, const char *type, const char *expected)
{
	struct glue *glue = read_fine(text);
	struct buf made = {0};
	struct str content_type = STR("");
	assert_true(glue_failure_is_shaped(glue, STR("image")));
	assert_true(glue_failure_put(glue, STR("image"), &failure, &made, &content_type));
	assert_string_equal(buf_c(&made), expected);
	assert_true(str_equal(content_type, str_of(type)));
	buf_free(&made);
	glue_free(glue);
}

static void texts_are_written_as_the_content_wants_it(void **state)
{
	(void)state;
	check(SERVICES(
			  "{body: '{\"e\": {\"code\": {status}, \"of\": \"{reason}\", \"m\": \"{detail}\", \"{}\": \"{type}\"}}'}"),
	      "application/json",
	      "{\"e\": {\"code\": 504, \"of\": \"Gateway Timeout\", \"m\": \"\\\"image\\\" <at>\\\\Site2 "
	      "&\\n\\u0001Z\xc3\xbcrich\", "
	      "\"{}\": \"no-answer\"}}");
	check(SERVICES("{type: text/html; charset=UTF-8, body: '<h1>{status}</h1> {title}: {detail}'}"),
	      "text/html; charset=UTF-8", "<h1>504</h1> No answer: \"image\" &lt;at&gt;\\Site2 &amp;  Z\xc3\xbcrich");
	check(SERVICES("{type: text/plain, body: '{message} {Message} {', names: {'*': x}}"), "text/plain",
	      "No answer: \"image\" <at>\\Site2 &  Z\xc3\xbcrich {Message} {");
}

static void errors_have_names(void **state)
{
	(void)state;
	check(SERVICES("{type: text/plain, body: '{name}', names: {404: a, 504: b, '*': c}}"), "text/plain", "b");
	check(SERVICES("{type: text/plain, body: '{name}', names: {404: a, '*': c}}"), "text/plain", "c");
}

static void a_service_of_which_nothing_is_said(void **state)
{
	(void)state;
	struct glue *glue = read_fine(SERVICES("{body: '\"{message}\"'}"));
	struct buf made = {0};
	struct str content_type;
	assert_false(glue_failure_is_shaped(glue, STR("other")));
	assert_false(glue_failure_put(glue, STR("other"), &failure, &made, &content_type));
	assert_false(glue_failure_put(glue, STR("unknown"), &failure, &made, &content_type));
	assert_false(glue_failure_put(NULL, STR("image"), &failure, &made, &content_type));
	assert_int_equal(made.length, 0);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_written_as_the_content_wants_it),
		cmocka_unit_test(errors_have_names),
		cmocka_unit_test(a_service_of_which_nothing_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
