#include "order_test.h"

#include <ctype.h>
#include <stdlib.h>

static const char effect_letters[] = "craid";

static int class_of(char letter)
{
	const char *at = strchr(effect_letters, letter);
	if (at)
		return (int)(at - effect_letters);
	assert_true(isdigit((unsigned char)letter));
	return 5 + letter - '0';
}

uint32_t test_op(const struct test_set *test, const char *name)
{
	for (uint32_t i = 0; i < test->set.ops_count; i++)
		if (test->ops[i].member == (uint32_t)(name[0] - 'A') && test->ops[i].number == strtoul(name + 1, NULL, 10))
			return i;
	fail_msg("no operation %s", name);
	return 0;
}

static void see(struct test_set *test, uint32_t *seen, uint32_t member, uint32_t number)
{
	if (number == 0)
		return;
	char name[16];
	snprintf(name, sizeof(name), "%c%u", (char)('A' + member), number);
	const struct order_op *op = &test->ops[test_op(test, name)];
	for (uint32_t i = 0; i < TEST_MEMBERS; i++)
		if (seen[i] < op->seen[i])
			seen[i] = op->seen[i];
	if (seen[member] < number)
		seen[member] = number;
}

static const char *parse_op(struct test_set *test, const char *at)
{
	uint32_t index = test->set.ops_count;
	assert_true(index < TEST_OPS);
	struct order_op *op = &test->ops[index];
	uint32_t *seen = test->seen[index];
	op->member = (uint32_t)(*at++ - 'A');
	assert_true(op->member < TEST_MEMBERS);
	op->effect = (uint8_t)class_of(*at++);
	op->class = op->effect;
	op->stamp = 10 * ((uint64_t)index + 1);
	op->number = 1;
	for (uint32_t i = 0; i < index; i++)
		if (test->ops[i].member == op->member)
			op->number++;
	see(test, seen, op->member, op->number - 1);
	char *end = (char *)(uintptr_t)at;
	if (*end == ':')
		op->class = (uint8_t)(5 + strtoul(end + 1, &end, 10));
	if (*end == '/')
		op->facet = (uint16_t)strtoul(end + 1, &end, 10);
	if (*end == '(') {
		for (end++; *end != ')';) {
			uint32_t member = (uint32_t)(*end - 'A');
			see(test, seen, member, (uint32_t)strtoul(end + 1, &end, 10));
		}
		end++;
	}
	op->seen = seen;
	test->set.ops_count++;
	return end;
}

void test_set_make(struct test_set *test, const char *text)
{
	memset(test, 0, sizeof(*test));
	memset(test->resolutions, ORDER_DEFAULT, sizeof(test->resolutions));
	test->set = (struct order_set){.ops = test->ops, .members_count = TEST_MEMBERS, .base = test->base};
	test->set.rules = (struct order_rules){.classes = TEST_CLASSES, .resolutions = test->resolutions};
	while (*text) {
		text = parse_op(test, text);
		while (*text == ' ')
			text++;
	}
}

void test_set_rules(struct test_set *test, const char *text)
{
	static const char letters[] = "OAKRF"; /* as enum order_resolution */
	while (*text) {
		size_t place = (size_t)class_of(text[0]) * TEST_CLASSES + (size_t)class_of(text[2]);
		test->resolutions[place] = (uint8_t)(strchr(letters, text[1]) - letters);
		text += 3;
		while (*text == ' ')
			text++;
	}
}

void test_names(const struct test_set *test, const uint32_t *ops, uint32_t count, char text[256])
{
	size_t length = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < count && length < 240; i++)
		length += (size_t)snprintf(text + length, 256 - length, "%s%c%u", i > 0 ? " " : "",
		                           (char)('A' + test->ops[ops[i]].member), test->ops[ops[i]].number);
}
