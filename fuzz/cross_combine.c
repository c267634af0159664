/* Answers of sites that mean ill: nothing crashes, what comes out is JSON, and a site cannot spoil what the others said.
 *
 * The input: a byte, then bodies, each ended by a 0. The byte's bits say whose are missing. */
#include "cross/cross_int.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SITES = 4 };

static const struct cross_rule rules[] = {{STR_INIT("/size"), CROSS_TOGETHER}, {STR_INIT("/used"), CROSS_SUM},
                                          {STR_INIT("/tags"), CROSS_UNION},    {STR_INIT("/log"), CROSS_CONCAT},
                                          {STR_INIT("/least"), CROSS_MIN},     {STR_INIT("/s/most"), CROSS_MAX},
                                          {STR_INIT("/s/ready"), CROSS_SUM},   {STR_INIT("/owner"), CROSS_PRIME}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cross_part parts[SITES] = {{.site = STR_INIT("Site1")}};
	struct cross_combined combined;
	struct buf out = {0}, canonical = {0};
	struct err err = {0};
	if (size == 0 || size > 1 << 16)
		return 0;
	char *exact = malloc(size);
	CHECK(exact != NULL);
	memcpy(exact, data, size);
	size_t at = 1;
	for (uint32_t i = 0; i < SITES; i++) {
		const char *end = at < size ? memchr(exact + at, 0, size - at) : NULL;
		size_t length = end ? (size_t)(end - exact) - at : size - at;
		parts[i] = (struct cross_part){.site = STR_INIT("Site1"),
		                               .body = str_make(exact + at, length),
		                               .missing = (unsigned char)exact[0] >> i & 1};
		at += length + (end != NULL);
	}
	if (cross_combine(rules, sizeof(rules) / sizeof(rules[0]), parts, SITES, &out, &combined, &err) == 0) {
		CHECK(combined.whole > 0 && combined.base < SITES && !parts[combined.base].missing);
		CHECK(cross_element_canonical(buf_str(&out), &canonical, &err) == 0);
	} else {
		CHECK(err.text[0] != '\0' && out.length == 0);
	}
	for (uint32_t i = 0; i < SITES; i++)
		CHECK(parts[i].left_out == (parts[i].why.code != 0));
	buf_free(&out);
	buf_free(&canonical);
	free(exact);
	return 0;
}
