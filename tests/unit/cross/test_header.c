/* Cheops-Divide: what it means, and what is said where it means nothing. */
#include "cross_test.h"

#include <stdio.h>

static const struct cross_site sites[] = {{101, STR_INIT("Site1")}, {102, STR_INIT("Site2")}};
static const struct str pointers[] = {STR_INIT("/size"), STR_INIT("/hosts")};

static void check(const char *header, const char *body, const char *expected)
{
	struct cross_fields fields = {pointers, 2};
	struct cross_division division;
	struct err err = {0};
	char found[400];
	int code = cross_division_of_header(str_of(header), sites, 2, str_of(body), &fields, &division, &err);
	if (code == 0)
		snprintf(found, sizeof(found), "%llu:%llu", (unsigned long long)division.shares[0].weight,
		         (unsigned long long)division.shares[1].weight);
	assert_string_equal(code ? err.text : found, expected);
}

static void parts_and_weights_are_understood(void **state)
{
	(void)state;
	check("Site1=4 Site2=2", "{\"size\":6}", "4:2");
	check("Site2=2, \"Site1\"=4 ", "{\"size\":6}", "4:2");
	check("Site1=1.5 Site2=0.5", "{\"size\":2.0}", "15:5");
	check("Site1=1.50 Site2=0.50", "{\"size\":2.0}", "15:5");
	check("Site1=-4 Site2=0", "{\"size\":-4}", "4:0");
	check("Site1=1 Site2=2", "{\"hosts\":[1,2,3]}", "1:2");
	check("weights; Site1=2 Site2=1", "{\"size\":7}", "2:1");
	check("weights;Site1=0.5 Site2=1", "{}", "5:10");
	check("evenly", "{\"size\":7}", "1:1");
	check("Site1=0 Site2=0", "{\"size\":0}", "1:1");
}

static void the_place_and_the_remedy_are_named(void **state)
{
	(void)state;
	check("Site1=4 Site2=2", "{\"size\":7}",
	      "Cheops-Divide: the parts add up to 6, but `/size` is 7; for shares of any size say `weights; …`");
	check("Site1=4 Sit2=2", "{\"size\":6}",
	      "Cheops-Divide: column 9: `Sit2` is no site of this resource; did you mean `Site2`?");
	check("Site1=4 Site1=2", "{\"size\":6}", "Cheops-Divide: column 9: `Site1` is named twice");
	check("Site1=6", "{\"size\":6}",
	      "Cheops-Divide: column 8: nothing is said of `Site2`; if it is to have no part, say so with =0");
	check("Site1 =6", "{\"size\":6}",
	      "Cheops-Divide: column 6: `=` and a number are expected behind `Site1`, without spaces");
	check("Site1=", "{\"size\":6}", "Cheops-Divide: column 7: a number is expected here, as in `Site1=4 Site2=2`");
	check("Site1=four Site2=2", "{\"size\":6}", "Cheops-Divide: column 7: 'four' is no number as JSON writes them");
	check("Site1=4;Site2=2", "{\"size\":6}",
	      "Cheops-Divide: column 8: the name of a site is expected here, as in `Site1=4 Site2=2`");
	check("\"Site1=4", "{\"size\":6}", "Cheops-Divide: column 1: the name that begins here has no closing \"");
	check("\"Site1\\", "{\"size\":6}", "Cheops-Divide: column 1: the name that begins here has no closing \"");
	check("Site1=0.5 Site2=5.5", "{\"size\":6}",
	      "Cheops-Divide: the part of `Site1` has more decimal places than `/size`");
	check("Site1=8 Site2=-2", "{\"size\":6}", "Cheops-Divide: the part of `Site2` has another sign than `/size`");
	check("Site1=8 Site2=2", "{\"name\":6}", "Cheops-Divide: the request has nothing that is divided, such as /size");
	check("Site1=8 Site2=2", "{\"size\":{}}",
	      "Cheops-Divide: `/size` is neither a number nor a list: it cannot be divided");
	check("weights; Site1=0 Site2=0", "{\"size\":6}",
	      "Cheops-Divide: all are 0: at least one site has to get something");
	check("weights; Site1=-1 Site2=2", "{\"size\":6}", "Cheops-Divide: the weight of `Site1` is negative");
	check(" ", "{\"size\":6}",
	      "Cheops-Divide: it is empty; it looks like `Site1=4 Site2=2`, `weights; Site1=2 Site2=1` or `evenly`");
	check("Site1=9223372036854775807 Site2=9223372036854775807", "{\"size\":6}",
	      "Cheops-Divide: the parts together do not fit into 64 bits");
}

static void a_long_header_is_refused(void **state)
{
	(void)state;
	struct cross_fields fields = {pointers, 2};
	struct cross_division division;
	struct buf header = {0};
	buf_put_repeat(&header, ' ', LIMIT_CROSS_HEADER_BYTES + 1);
	assert_int_equal(cross_division_of_header(buf_str(&header), sites, 2, STR("{}"), &fields, &division, NULL),
	                 ERR_LIMIT);
	buf_free(&header);
}

/* What the user has given is what each site gets, and what an update of the total goes by. */
static void given_parts_are_the_parts(void **state)
{
	(void)state;
	struct cross_fields fields = {pointers, 2};
	struct cross_division division;
	struct buf out = {0};
	struct str body = STR("{\"size\":7.5,\"hosts\":[1,2,3]}");
	assert_int_equal(cross_division_of_header(STR("Site1=0.1 Site2=7.4"), sites, 2, body, &fields, &division, NULL), 0);
	assert_int_equal(cross_divide_body(body, &fields, &division, 101, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"size\":0.1,\"hosts\":[]}");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_and_weights_are_understood),
		cmocka_unit_test(the_place_and_the_remedy_are_named),
		cmocka_unit_test(a_long_header_is_refused),
		cmocka_unit_test(given_parts_are_the_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
