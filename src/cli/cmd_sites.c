/* cheops sites: what the agent of this site knows of all sites. */
#include "cli/listing.h"

enum { OPTION_FROM, OPTIONS_OWN };
enum { EXPIRES_SOON_DAYS = 14 };

static const struct cli_option options[] = {
	[OPTION_FROM] = {"from", 0, "SITE", "distances from that site, instead of this one"},
	[OPTIONS_OWN] = CLI_WATCH_OPTIONS,
	{0},
};

static const char about[] =
	"Shows the sites: who is there, since when, how far away, and whose certificate ends when.\n"
	"\n"
	"usage: cheops sites [OPTION]...\n";

static const char more[] =
	"STATE     `present` it answers; `suspect` it did not answer somebody, and may still say that it is\n"
	"          there; `unknown since` nothing is heard of it: stopped or cut off, which cannot be told\n"
	"          from here; `absent since` it said that it stops; `revoked` it is shut out\n"
	"RTT       the round trip, as measured; ESTIMATE the same from network coordinates\n"
	"PATH      the way that requests take, where this site works with that one\n"
	"EXPIRES   the site's certificate; `!` within 14 days\n"
	"\n"
	"Without --api or CHEOPS_API the agent is asked where its configuration (-c, or\n"
	"/etc/cheops/agent.yaml) says, else at 127.0.0.1:8079. Times are in the machine's zone.\n"
	"Exit status: 0 fine, 1 refused or no answer, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  cheops sites\n"
	"  cheops sites --from Site2\n"
	"  cheops sites --watch --api 127.0.0.1:8100\n"
	"  cheops sites -o json | jq -r '.sites[] | select(.shown == \"unknown\") | .name'\n";

struct sites_call {
	const char *from;
	struct cli_watch watch;
};

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static int take_from(struct sites_call *call, const char *value)
{
	call->from = value;
	if (*value == '\0' || !text_is_printable(str_of(value)))
		return cli_usage("sites", "--from " TEXT_NAME_FMT " is not the name of a site", TEXT_NAME(str_of(value)));
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct sites_call *call = context;
	switch (kind) {
	case OPTION_FROM: return take_from(call, value);
	default:
		return cli_usage("sites", "what is " TEXT_NAME_FMT "? All sites are shown; `cheops site` does things to one",
		                 TEXT_NAME(str_of(value)));
	}
}

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

static void add(struct cli_table *table, const char *colour, struct buf *text)
{
	cli_table_add(table, colour, buf_str(text));
	buf_free(text);
}

static void add_name(struct cli_table *table, const json_t *site, struct str self)
{
	struct buf text = {0};
	struct str name = cli_json_text(site, "name");
	bool here = name.length > 0 && str_equal(name, self), authority = json_is_true(json_object_get(site, "authority"));
	buf_put(&text, name);
	if (here || authority)
		buf_printf(&text, " (%s%s%s)", here ? "this site" : "", here && authority ? ", " : "",
		           authority ? "authority" : "");
	add(table, here ? CLI_BOLD : "", &text);
}

static const char *state_colour(struct str state)
{
	static const struct {
		struct str state;
		const char *colour;
	} colours[] = {{STR_INIT("alive"), CLI_GREEN},
	               {STR_INIT("suspect"), CLI_YELLOW},
	               {STR_INIT("lost"), CLI_YELLOW},
	               {STR_INIT("left"), CLI_DIM},
	               {STR_INIT("revoked"), CLI_RED}};
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
		if (str_equal(state, colours[i].state))
			return colours[i].colour;
	}
	return "";
}

/* `present 2h` is there; `unknown since T (age)` may be or not; `absent since T (left)` is known not to be. */
static void add_state(struct cli_table *table, const json_t *site, int64_t now_ms)
{
	struct str state = cli_json_text(site, "state"), shown = cli_json_text(site, "shown");
	struct buf text = {0};
	int64_t since_ms;
	bool dated = cli_json_time(site, "since", &since_ms), suspect = str_equal(state, STR("suspect"));
	bool present = str_equal(shown, STR("present")), unknown = str_equal(shown, STR("unknown"));
	if (str_equal(state, STR("revoked"))) {
		buf_put(&text, STR("revoked"));
		add(table, CLI_RED, &text);
		return;
	}
	buf_put(&text, suspect || shown.length == 0 ? state : shown);
	if (dated && (present || suspect)) {
		buf_put_char(&text, ' ');
		cli_put_age(&text, now_ms - since_ms);
	} else if (dated) {
		buf_put(&text, STR(" since "));
		cli_put_clock(&text, since_ms, now_ms);
	}
	if (unknown && dated) {
		buf_put(&text, STR(" ("));
		cli_put_age(&text, now_ms - since_ms);
		buf_put_char(&text, ')');
	} else if (str_equal(shown, STR("absent")) && state.length > 0) {
		buf_printf(&text, " (%.*s)", STR_FMT(utf8_truncate(state, LIMIT_NAME_SHOWN_BYTES)));
	}
	add(table, state_colour(state), &text);
}

static void put_ms(struct buf *out, double ms)
{
	buf_printf(out, ms < 1 ? "%.2fms" : ms < 10 ? "%.1fms" : "%.0fms", ms);
}

static void add_ms(struct cli_table *table, const json_t *object, const char *name)
{
	struct buf text = {0};
	double ms;
	if (cli_json_number(object, name, &ms))
		put_ms(&text, ms);
	add(table, "", &text);
}

static void add_path(struct cli_table *table, const json_t *site)
{
	const json_t *path = json_object_get(site, "path");
	struct str state = cli_json_text(path, "state");
	bool up = str_equal(state, STR("up")), down = str_equal(state, STR("down"));
	struct buf text = {0};
	double ms;
	buf_put(&text, state);
	if (up && cli_json_number(path, "rtt_ms", &ms)) {
		buf_put_char(&text, ' ');
		put_ms(&text, ms);
	} else if (down && cli_json_number(path, "age_ms", &ms) && ms >= 0 && ms < 1e15) {
		buf_put_char(&text, ' ');
		cli_put_age(&text, (int64_t)ms);
	}
	add(table, up ? CLI_GREEN : down ? CLI_RED : "", &text);
}

static void add_tags(struct cli_table *table, const json_t *site)
{
	struct buf text = {0};
	const char *key;
	json_t *value;
	json_object_foreach(json_object_get(site, "tags"), key, value)
	{
		buf_printf(&text, "%s%s", text.length > 0 ? "," : "", key);
		if (json_is_string(value) && json_string_length(value) > 0)
			buf_printf(&text, "=%s", json_string_value(value));
	}
	add(table, "", &text);
}

static void add_expiry(struct cli_table *table, const json_t *site, int64_t now_ms)
{
	const int64_t soon_ms = EXPIRES_SOON_DAYS * INT64_C(86400000);
	struct buf text = {0};
	const char *colour = "";
	int64_t ends_ms;
	if (cli_json_time(json_object_get(site, "certificate"), "expires", &ends_ms)) {
		bool over = ends_ms <= now_ms, soon = ends_ms - now_ms <= soon_ms;
		buf_put(&text, over ? STR("expired ") : STR(""));
		cli_put_age(&text, over ? now_ms - ends_ms : ends_ms - now_ms);
		buf_put(&text, over ? STR(" ago !") : soon ? STR(" !") : STR(""));
		colour = over ? CLI_RED : soon ? CLI_YELLOW : "";
	}
	add(table, colour, &text);
}

/* ---- The table -------------------------------------------------------------------------------------------------- */

static void put_table(struct buf *out, const json_t *answer, bool colour)
{
	static const char *const titles[] = {"NAME",    "STATE", "RTT",     "ESTIMATE", "PATH",
	                                     "VERSION", "TAGS",  "EXPIRES", NULL};
	struct str self = cli_json_text(answer, "site"), from = cli_json_text(answer, "from");
	int64_t now_ms = cli_now_ms();
	struct cli_table table;
	size_t index;
	json_t *site;
	if (from.length > 0 && !str_equal(from, self)) {
		buf_put(out, STR("Distances from "));
		text_put_harmless(out, from);
		buf_put(out, STR(", as known at "));
		text_put_harmless(out, self);
		buf_put(out, STR(":\n"));
	}
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "sites"), index, site)
	{
		add_name(&table, site, self);
		add_state(&table, site, now_ms);
		add_ms(&table, site, "rtt_ms");
		add_ms(&table, site, "estimate_ms");
		add_path(&table, site);
		cli_table_add(&table, "", cli_json_text(site, "version"));
		add_tags(&table, site);
		add_expiry(&table, site, now_ms);
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

static int show(const void *context, struct buf *out)
{
	const struct sites_call *call = context;
	struct buf target = {0};
	json_t *answer;
	buf_put(&target, STR("/cheops/v1/sites"));
	cli_query_add(&target, "from", call->from);
	struct cli_list list = {.address = &call->watch.address, .target = buf_str(&target), .name = "sites"};
	int status = cli_list_ask(&list, &answer);
	buf_free(&target);
	if (status != CLI_FINE)
		return status;
	if (!cli_watch_put_data(&call->watch, out, answer))
		put_table(out, answer, cli_watch_colour(&call->watch));
	json_decref(answer);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	static const struct cli_watcher watcher = {
		.command = "sites",
		.about = about,
		.more = more,
		.options = options,
		.options_own = OPTIONS_OWN,
		.take = take,
		.show = show,
	};
	struct sites_call call = {.watch.call = &call};
	return cli_watch_run(&watcher, &call.watch, argc, argv);
}

const struct cli_command cli_command_sites = {"sites", "show the sites: who is there, since when, how far", run};
