/* The commands of the control socket. One line is one command; its answer is any number of lines, and then `ok` or
 * `error: ` with what is wrong and what would be right. A command that is refused has changed nothing.
 *
 *     set A>B delay=10ms loss=1%     one way; A<>B: both ways; * is every site
 *     cut A<>B                       what is under way is lost as well
 *     heal *<>*
 *     show [PAIR]                    the rules, one line per ordered pair, as `set` takes them, and cut=yes or no
 *     stats [PAIR]                   what was counted since the start
 *     sites                          the names, in order
 */
#include "wan.h"

#include "base/text.h"

enum { WORDS_MAX = 16 };

/* The ordered pairs that a command is about. -1: every site. */
struct pairs {
	int from, to;
	bool both;
};

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

struct key {
	struct str name;
	int (*read)(struct wan_rules *rules, struct str text, struct err *err);
	void (*put)(struct buf *out, const struct wan_rules *rules);
};

#define DURATION_KEY(key)                                                                                              \
	static int read_##key(struct wan_rules *rules, struct str text, struct err *err)                                   \
	{                                                                                                                  \
		return wan_read_duration(text, &rules->key##_ns, err);                                                         \
	}                                                                                                                  \
	static void put_##key(struct buf *out, const struct wan_rules *rules)                                              \
	{                                                                                                                  \
		wan_put_duration(out, rules->key##_ns);                                                                        \
	}

#define SHARE_KEY(key)                                                                                                 \
	static int read_##key(struct wan_rules *rules, struct str text, struct err *err)                                   \
	{                                                                                                                  \
		return wan_read_share(text, &rules->key, err);                                                                 \
	}                                                                                                                  \
	static void put_##key(struct buf *out, const struct wan_rules *rules)                                              \
	{                                                                                                                  \
		wan_put_share(out, rules->key);                                                                                \
	}

DURATION_KEY(delay)
DURATION_KEY(jitter)
DURATION_KEY(reorder_by)
SHARE_KEY(loss)
SHARE_KEY(duplicate)
SHARE_KEY(reorder)

static int read_rate(struct wan_rules *rules, struct str text, struct err *err)
{
	return wan_read_rate(text, &rules->rate_bps, err);
}

static void put_rate(struct buf *out, const struct wan_rules *rules)
{
	wan_put_rate(out, rules->rate_bps);
}

static int read_queue(struct wan_rules *rules, struct str text, struct err *err)
{
	return wan_read_queue(text, &rules->queue_ns, &rules->queue_bytes, err);
}

static void put_queue(struct buf *out, const struct wan_rules *rules)
{
	wan_put_queue(out, rules->queue_ns, rules->queue_bytes);
}

static const struct key keys[] = {
	{STR_INIT("delay"), read_delay, put_delay},       {STR_INIT("jitter"), read_jitter, put_jitter},
	{STR_INIT("loss"), read_loss, put_loss},          {STR_INIT("duplicate"), read_duplicate, put_duplicate},
	{STR_INIT("reorder"), read_reorder, put_reorder}, {STR_INIT("reorder_by"), read_reorder_by, put_reorder_by},
	{STR_INIT("rate"), read_rate, put_rate},          {STR_INIT("queue"), read_queue, put_queue},
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static const struct key *find_key(struct str name, struct err *err)
{
	struct suggest suggest;
	char likely[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, name);
	for (unsigned i = 0; i < KEYS; i++) {
		if (str_equal(keys[i].name, name))
			return &keys[i];
		suggest_offer(&suggest, keys[i].name);
	}
	err_set(err, ERR_INVALID,
	        "unknown key " TEXT_NAME_FMT
	        "; the keys are delay, jitter, loss, duplicate, reorder, reorder_by, rate, queue%s",
	        TEXT_NAME(name), text_did_you_mean(&suggest, likely));
	return NULL;
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------ */

static int find_site(const struct wan_net *net, struct str name, int *site, struct err *err)
{
	struct suggest suggest;
	char likely[TEXT_SUGGESTION_BYTES];
	*site = str_equal(name, STR("*")) ? -1 : wan_net_find(net, name);
	if (*site >= 0 || str_equal(name, STR("*")))
		return 0;
	suggest_start(&suggest, name);
	for (unsigned i = 0; i < net->sites_count; i++)
		suggest_offer(&suggest, str_of(net->names[i]));
	return err_set(err, ERR_NOT_FOUND, "no site " TEXT_NAME_FMT "; there are %u, %s to %s, and * is every one%s",
	               TEXT_NAME(name), net->sites_count, net->names[0], net->names[net->sites_count - 1],
	               text_did_you_mean(&suggest, likely));
}

static int read_pairs(const struct wan_net *net, struct str text, struct pairs *pairs, struct err *err)
{
	const char *arrow = memchr(text.at, '>', text.length);
	if (arrow == NULL)
		return err_set(err, ERR_INVALID,
		               TEXT_NAME_FMT " is no pair of sites; write Site1>Site2 for one way, Site1<>Site2 for both",
		               TEXT_NAME(text));
	size_t left = (size_t)(arrow - text.at), right = left + 1;
	pairs->both = left > 0 && text.at[left - 1] == '<';
	left -= pairs->both;
	int code = find_site(net, str_make(text.at, left), &pairs->from, err);
	if (code == 0)
		code = find_site(net, str_make(text.at + right, text.length - right), &pairs->to, err);
	if (code == 0 && pairs->from >= 0 && pairs->from == pairs->to)
		return err_set(err, ERR_INVALID, TEXT_NAME_FMT " is one site: there is no network between it and itself",
		               TEXT_NAME(text));
	return code;
}

static bool are_from_to(const struct pairs *pairs, int from, int to)
{
	return (pairs->from < 0 || pairs->from == from) && (pairs->to < 0 || pairs->to == to);
}

/* The next link of the pairs, after `*at`, which starts at 0. NULL: no more. */
static struct wan_link *next_link(struct wan_net *net, const struct pairs *pairs, unsigned *at)
{
	while (*at < net->sites_count * net->sites_count) {
		int from = (int)(*at / net->sites_count), to = (int)(*at % net->sites_count);
		++*at;
		if (from != to && (are_from_to(pairs, from, to) || (pairs->both && are_from_to(pairs, to, from))))
			return wan_net_link(net, (unsigned)from, (unsigned)to);
	}
	return NULL;
}

/* ---- Commands: words[0] is the command itself ------------------------------------------------------------------- */

struct request {
	struct wan_net *net;
	struct str words[WORDS_MAX];
	unsigned count;
	struct pairs pairs;
	struct buf *out;
};

static int read_rule(struct wan_rules *rules, struct str word, struct err *err)
{
	const char *equals = memchr(word.at, '=', word.length);
	if (equals == NULL)
		return err_set(err, ERR_INVALID, TEXT_NAME_FMT " has no value; write for example delay=10ms", TEXT_NAME(word));
	struct str name = str_make(word.at, (size_t)(equals - word.at));
	const struct key *key = find_key(name, err);
	if (key == NULL)
		return ERR_INVALID;
	int code = key->read(rules, str_make(equals + 1, word.length - name.length - 1), err);
	return code == 0 ? 0 : err_context(err, code, "%.*s", STR_FMT(name));
}

static int run_set(struct request *request, struct err *err)
{
	if (request->count < 3)
		return err_set(err, ERR_INVALID, "nothing to set; write for example: set Site1<>Site2 delay=10ms loss=1%%");
	struct wan_rules trial = wan_rules_default();
	for (unsigned i = 2; i < request->count; i++) {
		int code = read_rule(&trial, request->words[i], err);
		if (code != 0)
			return code;
	}
	unsigned at = 0;
	struct wan_link *link;
	while ((link = next_link(request->net, &request->pairs, &at)) != NULL) {
		for (unsigned i = 2; i < request->count; i++)
			(void)read_rule(&link->rules, request->words[i], NULL);
	}
	return 0;
}

static int run_cut(struct request *request, struct err *err)
{
	(void)err;
	unsigned at = 0;
	struct wan_link *link;
	while ((link = next_link(request->net, &request->pairs, &at)) != NULL)
		wan_link_cut(link);
	return 0;
}

static int run_heal(struct request *request, struct err *err)
{
	(void)err;
	unsigned at = 0;
	struct wan_link *link;
	while ((link = next_link(request->net, &request->pairs, &at)) != NULL)
		wan_link_heal(link);
	return 0;
}

/* "Site1>Site2": the link before `at`. */
static void put_pair(struct request *request, unsigned at)
{
	const struct wan_net *net = request->net;
	buf_printf(request->out, "%s>%s", net->names[(at - 1) / net->sites_count], net->names[(at - 1) % net->sites_count]);
}

static int run_show(struct request *request, struct err *err)
{
	(void)err;
	unsigned at = 0;
	struct wan_link *link;
	while ((link = next_link(request->net, &request->pairs, &at)) != NULL) {
		put_pair(request, at);
		for (unsigned i = 0; i < KEYS; i++) {
			buf_printf(request->out, " %.*s=", STR_FMT(keys[i].name));
			keys[i].put(request->out, &link->rules);
		}
		buf_printf(request->out, " cut=%s\n", link->cut ? "yes" : "no");
	}
	return 0;
}

static void put_counts(struct buf *out, const struct wan_counts *counts)
{
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{"frames", counts->frames},
		{"bytes", counts->bytes},
		{"delivered", counts->delivered},
		{"lost", counts->lost},
		{"full", counts->full},
		{"cut", counts->cut},
		{"duplicated", counts->duplicated},
		{"reordered", counts->reordered},
		{"overflow", counts->overflow},
		{"refused", counts->refused},
		{"queued", counts->queued},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		buf_printf(out, " %s=%llu", all[i].name, (unsigned long long)all[i].value);
	buf_put_char(out, '\n');
}

static int run_stats(struct request *request, struct err *err)
{
	(void)err;
	unsigned at = 0;
	struct wan_link *link;
	while ((link = next_link(request->net, &request->pairs, &at)) != NULL) {
		put_pair(request, at);
		put_counts(request->out, &link->counts);
	}
	if (request->count == 1)
		buf_printf(request->out, "switch queued=%u strangers=%llu too_long=%llu\n",
		           (unsigned)wan_queue_count(request->net->queue), (unsigned long long)request->net->strangers,
		           (unsigned long long)request->net->too_long);
	return 0;
}

static int run_sites(struct request *request, struct err *err)
{
	(void)err;
	for (unsigned site = 0; site < request->net->sites_count; site++)
		buf_printf(request->out, "%s\n", request->net->names[site]);
	return 0;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

enum need { NEEDS_PAIR, MAY_HAVE_PAIR, TAKES_NOTHING };

static const struct command {
	struct str name;
	enum need need;
	bool takes_more; /* words after the pair */
	int (*run)(struct request *request, struct err *err);
} commands[] = {
	{STR_INIT("set"), NEEDS_PAIR, true, run_set},         {STR_INIT("cut"), NEEDS_PAIR, false, run_cut},
	{STR_INIT("heal"), NEEDS_PAIR, false, run_heal},      {STR_INIT("show"), MAY_HAVE_PAIR, false, run_show},
	{STR_INIT("stats"), MAY_HAVE_PAIR, false, run_stats}, {STR_INIT("sites"), TAKES_NOTHING, false, run_sites},
};

static const struct command *find_command(struct str name, struct err *err)
{
	struct suggest suggest;
	char likely[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, name);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (str_equal(commands[i].name, name))
			return &commands[i];
		suggest_offer(&suggest, commands[i].name);
	}
	err_set(err, ERR_INVALID,
	        "unknown command " TEXT_NAME_FMT "; the commands are set, cut, heal, show, stats, sites%s", TEXT_NAME(name),
	        text_did_you_mean(&suggest, likely));
	return NULL;
}

static int split(struct request *request, struct str line, struct err *err)
{
	while (line.length > 0) {
		size_t length = 0;
		while (length < line.length && line.at[length] != ' ')
			length++;
		if (length > 0 && request->count == WORDS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d words", WORDS_MAX);
		if (length > 0)
			request->words[request->count++] = str_make(line.at, length);
		length += length < line.length;
		line = str_make(line.at + length, line.length - length);
	}
	return request->count > 0 ? 0 : err_set(err, ERR_INVALID, "an empty line; write a command, for example: show");
}

static int check_words(const struct command *command, struct request *request, struct err *err)
{
	unsigned words = request->count - 1, most = command->need == TAKES_NOTHING ? 0
	                                            : command->takes_more          ? WORDS_MAX
	                                                                           : 1;
	if (words < 1 && command->need == NEEDS_PAIR)
		return err_set(err, ERR_INVALID,
		               "%.*s needs a pair of sites; write Site1>Site2 for one way, Site1<>Site2 for both",
		               STR_FMT(command->name));
	if (words > most)
		return err_set(err, ERR_INVALID, "%.*s takes %s; " TEXT_NAME_FMT " is too much", STR_FMT(command->name),
		               most == 0 ? "nothing" : "one pair of sites, such as Site1<>Site2",
		               TEXT_NAME(request->words[most + 1]));
	return 0;
}

static int run_line(struct request *request, struct str line, struct err *err)
{
	if (!text_is_printable(line))
		return err_set(err, ERR_INVALID, "a line with control characters, or that is not UTF-8");
	int code = split(request, line, err);
	if (code != 0)
		return code;
	const struct command *command = find_command(request->words[0], err);
	if (command == NULL)
		return ERR_INVALID;
	code = check_words(command, request, err);
	if (code == 0 && request->count > 1)
		code = read_pairs(request->net, request->words[1], &request->pairs, err);
	return code == 0 ? command->run(request, err) : code;
}

void wan_control_run(struct wan_net *net, struct str line, struct buf *out)
{
	struct request request = {.net = net, .pairs = {-1, -1, false}, .out = out};
	struct err err = {0};
	if (run_line(&request, line, &err) == 0)
		buf_put(out, STR("ok\n"));
	else
		buf_printf(out, "error: %s\n", err.text);
}
