/* A header Cheops-Divide and a body that mean ill: nothing crashes, and whatever is divided comes together again.
 *
 * The input: the header, a line's end, the body. */
#include "cross/cross_int.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SITES = 3, FIELDS = 3 };

static const struct cross_site sites[SITES] = {{1, STR_INIT("Site1")}, {2, STR_INIT("Site2")}, {3, STR_INIT("a b")}};
static const struct str pointers[FIELDS] = {STR_INIT("/size"), STR_INIT("/list"), STR_INIT("/a/b")};

/* What is read of all parts has the numbers of the whole, and lists of its length. */
static void check_together(struct str body, struct str whole)
{
	struct cross_fields fields = {pointers, FIELDS};
	struct cross_place was[FIELDS], is[FIELDS];
	CHECK(cross_find(body, &fields, was, NULL) == 0 && cross_find(whole, &fields, is, NULL) == 0);
	for (uint32_t i = 0; i < FIELDS; i++) {
		CHECK(was[i].found == is[i].found);
		if (!was[i].found || was[i].is_null)
			continue;
		struct str a = str_make(body.at + was[i].at, was[i].length), b = str_make(whole.at + is[i].at, is[i].length);
		struct cross_number x, y;
		struct cross_list many, again;
		if (was[i].kind == GLUE_JSON_NUMBER) {
			CHECK(cross_number_parse(a, &x, NULL) == 0 && cross_number_parse(b, &y, NULL) == 0);
			CHECK(x.units == y.units && x.scale == y.scale);
		} else {
			CHECK(cross_list_read(a, &many, NULL) == 0 && cross_list_read(b, &again, NULL) == 0);
			CHECK(many.count == again.count);
			cross_list_free(&many);
			cross_list_free(&again);
		}
	}
}

static void divide(struct str body, const struct cross_division *division)
{
	struct cross_fields fields = {pointers, FIELDS};
	struct buf texts[SITES] = {{0}}, whole = {0};
	struct cross_part parts[SITES] = {{.site = STR_INIT("x")}};
	struct cross_rule rules[FIELDS];
	struct cross_combined combined;
	struct err err;
	int code = 0;
	for (uint32_t i = 0; i < FIELDS; i++)
		rules[i] = (struct cross_rule){pointers[i], CROSS_TOGETHER};
	for (uint32_t i = 0; i < SITES; i++) {
		int this = cross_divide_body(body, &fields, division, sites[i].id, &texts[i], &err);
		CHECK(i == 0 || this == code); /* all sites say the same */
		code = this;
		parts[i].body = buf_str(&texts[i]);
	}
	if (code == 0) {
		CHECK(cross_combine(rules, FIELDS, parts, SITES, &whole, &combined, &err) == 0);
		CHECK(combined.whole == SITES);
		check_together(body, buf_str(&whole));
	}
	for (uint32_t i = 0; i < SITES; i++)
		buf_free(&texts[i]);
	buf_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1 << 16)
		return 0;
	char *exact = malloc(size + 1); /* so that a read past its end is seen */
	CHECK(exact != NULL);
	memcpy(exact, data, size);
	const char *end = memchr(exact, '\n', size);
	size_t header_length = end ? (size_t)(end - exact) : size;
	struct str header = {exact, header_length};
	struct str body = end ? str_make(end + 1, size - header_length - 1) : STR("");
	struct cross_fields fields = {pointers, FIELDS};
	struct cross_division division, back;
	struct err err = {0};
	struct buf bytes = {0};
	if (cross_division_of_header(header, sites, SITES, body, &fields, &division, &err) == 0) {
		cross_division_put(&division, &bytes);
		CHECK(cross_division_parse(buf_str(&bytes), &back, NULL) == 0);
	} else {
		CHECK(err.text[0] != '\0');
		cross_division_evenly(sites, SITES, &division);
	}
	divide(body, &division);
	cross_division_parse(header, &back, NULL);
	buf_free(&bytes);
	free(exact);
	return 0;
}
