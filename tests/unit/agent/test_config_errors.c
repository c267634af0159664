/* What a person is told: config_errors.golden holds wrong configurations and the message that each gets, word for word.
 *
 * A block of the file is lines `> ...`, the configuration; before them perhaps `! KEY VALUE`, which is given as --KEY; then
 * the message; then an empty line. The line `> ...` that is nothing but three dots stands for a minimal configuration, the
 * line `> .s` for one without services. `\x1b` is that byte. To accept new messages run the test with
 * CHEOPS_UPDATE_GOLDEN=1, then read the difference as a user would.
 */
#include "config_test.h"

#include "base/text.h"
#include "lib/golden.h"

static const char golden_path[] = "tests/unit/agent/config_errors.golden";

/* A configuration under way. */
struct block {
	struct buf text;
	struct agent_options options;
	struct buf kept; /* the values of the options */
};

static void add_line(struct block *block, struct str line)
{
	if (str_equal(line, STR("...")))
		buf_put(&block->text, STR(MINIMAL));
	else if (str_equal(line, STR(".s")))
		buf_put(&block->text, STR("site: Site1\napi: 127.0.0.1:8079\n"));
	else {
		for (size_t i = 0; i < line.length; i++) {
			if (line.length - i >= 4 && line.at[i] == '\\' && line.at[i + 1] == 'x') {
				char digits[3] = {line.at[i + 2], line.at[i + 3], 0};
				buf_put_char(&block->text, (char)strtol(digits, NULL, 16));
				i += 3;
			} else {
				buf_put_char(&block->text, line.at[i]);
			}
		}
		buf_put_char(&block->text, '\n');
	}
}

static void add_option(struct block *block, struct str line)
{
	static const char *const flags[] = {
		[AGENT_SITE] = "--site",           [AGENT_API] = "--api",     [AGENT_PEER] = "--peer",
		[AGENT_ADVERTISE] = "--advertise", [AGENT_STATE] = "--state", [AGENT_APPLICATION] = "--application",
		[AGENT_THREADS] = "--threads",     [AGENT_LOG] = "--log"};
	struct str rest = line;
	const char *space = memchr(line.at, ' ', line.length);
	assert_non_null(space);
	size_t length = (size_t)(space - line.at);
	rest = str_make(space + 1, line.length - length - 1);
	for (int i = 0; i < AGENT_OPTIONS_COUNT; i++) {
		if (!str_equal(str_make(line.at, length), str_of(agent_option_name((enum agent_option)i))))
			continue;
		buf_put(&block->kept, rest);
		block->options.overrides.of[i] = (struct agent_override){buf_c(&block->kept), flags[i]};
		return;
	}
	fail_msg("no option %.*s", STR_FMT(line));
}

static void put_message(struct block *block, struct buf *out)
{
	struct agent_surroundings around = quiet_surroundings();
	struct err err = {0};
	struct proxy_config *config = NULL;
	block->options.path = "agent.yaml";
	int code = agent_config_parse(buf_str(&block->text), &block->options, &around, &config, &err);
	assert_int_equal(code, err.code);
	assert_true(strlen(err.text) < sizeof(err.text) - 1);
	text_put_harmless(out, code == 0 ? STR("(accepted)") : str_of(err.text));
	buf_put(out, STR("\n\n"));
	proxy_config_drop(config);
	buf_free(&block->text);
	buf_free(&block->kept);
	*block = (struct block){0};
}

/* Makes the whole file anew from its inputs; counts them. */
static unsigned make_all(struct str rest, struct buf *out)
{
	struct block block = {0};
	unsigned count = 0;
	while (rest.length > 0) {
		struct str line = golden_line(&rest);
		bool input = line.length >= 2 && line.at[1] == ' ' && (line.at[0] == '>' || line.at[0] == '!');
		if (input || (line.length > 0 && line.at[0] == '#'))
			buf_printf(out, "%.*s\n", STR_FMT(line));
		if (line.length > 0 && line.at[0] == '#')
			buf_put_char(out, '\n');
		struct str value = str_make(line.at + 2, input ? line.length - 2 : 0);
		if (input && line.at[0] == '!')
			add_option(&block, value);
		else if (input)
			add_line(&block, value);
		if (input && (rest.length == 0 || (rest.at[0] != '>' && rest.at[0] != '!'))) {
			put_message(&block, out);
			count++;
		}
	}
	return count;
}

static void messages_are_the_reviewed_ones(void **state)
{
	(void)state;
	struct buf golden = {0}, made = {0};
	golden_read(golden_path, &golden);
	unsigned count = make_all(buf_str(&golden), &made);
	assert_true(count >= 80);
	assert_null(strstr(buf_c(&made), "(accepted)"));
	golden_check(golden_path, &made);
	buf_free(&golden);
	buf_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_the_reviewed_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
