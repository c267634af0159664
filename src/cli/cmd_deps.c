/* cheops deps: what depends on what, as the agent of this site knows it. */
#include "cli/listing.h"
#include "cli/watch.h"

#include "base/percent.h"
#include "replica/replica.h"

enum { OPTION_SITE, OPTIONS_OWN };

static const struct cli_option options[] = {
	[OPTION_SITE] = {"site", 0, "SITE", "impact: what would suffer if that site went away"},
	[OPTIONS_OWN] = CLI_WATCH_OPTIONS,
	{0},
};

enum action { ACTION_NONE, ACTION_TREE, ACTION_WHY, ACTION_IMPACT, ACTIONS };

static const char *const names[ACTIONS] = {[ACTION_TREE] = "tree", [ACTION_WHY] = "why", [ACTION_IMPACT] = "impact"};

static const char about[] = "Shows what depends on what, of replicated resources and what they refer to.\n"
							"\n"
							"usage: cheops deps tree RESOURCE [OPTION]...\n"
							"       cheops deps why RESOURCE [OPTION]...\n"
							"       cheops deps impact RESOURCE [OPTION]...\n"
							"       cheops deps impact --site SITE [OPTION]...\n"
							"\n"
							"Actions:\n"
							"  tree    what it needs, and what that needs; its parts, and what is in it\n"
							"  why     who refers to it, and who to these: why is it here?\n"
							"  impact  who would suffer if it went: who relies on it, what is in it, its parts\n";

static const char more[] =
	"RESOURCE  a meta-id, as `cheops get` shows it; or TYPE/NAME, where NAME is the name of a replicated\n"
	"          resource, or the id of one that is not, at this site: `stack/web`, `image.secret/42`\n"
	"\n"
	"It is what the agent that is asked knows: of resources that its site has, or knows of. What sites that are\n"
	"not concerned by any of them hold, others know.\n"
	"Exit status: 0 fine, 1 refused or no answer, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  cheops deps tree stack/web\n"
	"  cheops deps why image.secret/8e1f4bca-7b2e-4a4e-9a41-b0f4a0fbcd4c\n"
	"  cheops deps impact 01890a5d-ac96-774b-bcce-b302099a8057 -o json\n"
	"  cheops deps impact --site Site2\n";

struct deps_call {
	enum action action;
	const char *resource;
	const char *site;
	struct cli_watch watch;
};

/* ---- Arguments ----------------------------------------------------------------------------------------------------- */

static int take_action(struct deps_call *call, const char *value)
{
	int action = 0;
	int status = cli_choose_action("deps", names, ACTIONS, "one of tree, why and impact", value, &action);
	call->action = (enum action)action;
	return status;
}

static int take(void *context, int kind, const char *value)
{
	struct deps_call *call = context;
	struct replica_id id;
	if (kind == OPTION_SITE) {
		call->site = value;
		return CLI_FINE;
	}
	if (call->action == ACTION_NONE)
		return take_action(call, value);
	if (call->resource != NULL)
		return cli_usage("deps", "what is " TEXT_NAME_FMT "? One resource is named already", TEXT_NAME(str_of(value)));
	const char *slash = strchr(value, '/');
	bool named = slash != NULL && slash != value && slash[1] != '\0' && text_is_printable(str_of(value));
	if (!named && !replica_id_parse(str_of(value), &id))
		return cli_usage("deps",
		                 TEXT_NAME_FMT
		                 " is no resource; a meta-id is one (`cheops get` shows them), or TYPE/NAME, such as "
		                 "`stack/web`",
		                 TEXT_NAME(str_of(value)));
	call->resource = value;
	return CLI_FINE;
}

static int check(const void *context)
{
	const struct deps_call *call = context;
	if (call->action == ACTION_NONE)
		return cli_usage("deps", "what is to be shown? One of tree, why and impact is missing");
	if (call->site != NULL && call->action != ACTION_IMPACT)
		return cli_usage("deps", "--site goes with impact only: what would suffer if that site went away");
	if (call->site != NULL && call->resource != NULL)
		return cli_usage("deps", "either a resource goes away, or a site: name one of them");
	if (call->site == NULL && call->resource == NULL)
		return cli_usage("deps", "of what? A meta-id is missing, or TYPE/NAME%s",
		                 call->action == ACTION_IMPACT ? ", or --site SITE" : "");
	return CLI_FINE;
}

/* ---- Which one ----------------------------------------------------------------------------------------------------- */

/* Those of the type, and of that name, that are replicated; the first one's id. */
static size_t count_named(const json_t *answer, const char *name, struct str *id)
{
	size_t index, count = 0;
	json_t *item;
	json_array_foreach(json_object_get(answer, "replicants"), index, item)
	{
		if (!str_equal(cli_json_text(item, "name"), str_of(name)) &&
		    !str_equal(cli_json_text(item, "id"), str_of(name)))
			continue;
		if (count++ == 0)
			*id = cli_json_text(item, "id");
	}
	return count;
}

static int tell_several(const char *resource, const json_t *answer, const char *name)
{
	struct buf ids = {0};
	size_t index, count = 0;
	json_t *item;
	json_array_foreach(json_object_get(answer, "replicants"), index, item)
	{
		if (!str_equal(cli_json_text(item, "name"), str_of(name)))
			continue;
		if (count++ < 8)
			buf_printf(&ids, "%s%.*s", count > 1 ? ", " : "", STR_FMT(cli_json_text(item, "id")));
	}
	cli_say("%zu replicated resources are called " TEXT_NAME_FMT "; say which one by its id: %s%s", count,
	        TEXT_NAME(str_of(resource)), buf_c(&ids), count > 8 ? "..." : "");
	buf_free(&ids);
	return CLI_REFUSED;
}

/* TYPE/NAME: the target of the question is completed. What is not replicated under that name is asked for by its id. */
static int find_named(const struct deps_call *call, struct buf *target)
{
	const char *slash = strchr(call->resource, '/'), *name = slash + 1;
	struct buf type = {0}, list = {0};
	struct str id = STR("");
	json_t *answer;
	buf_put(&type, str_make(call->resource, (size_t)(slash - call->resource)));
	buf_put(&list, STR("/cheops/v1/replicants"));
	cli_query_add(&list, "type", buf_c(&type));
	cli_query_add(&list, "limit", "200");
	int status = cli_list_ask(
		&(struct cli_list){.address = &call->watch.address, .target = buf_str(&list), .name = "replicants"}, &answer);
	if (status == CLI_FINE) {
		size_t count = count_named(answer, name, &id);
		if (count > 1) {
			status = tell_several(call->resource, answer, name);
		} else if (count == 1) {
			buf_put(target, STR("&of="));
			percent_encode(target, id);
		} else {
			cli_query_add(target, "type", buf_c(&type));
			cli_query_add(target, "local_id", name);
		}
		json_decref(answer);
	}
	buf_free(&type);
	buf_free(&list);
	return status;
}

/* ---- Showing ------------------------------------------------------------------------------------------------------- */

struct drawing {
	struct buf *out;
	bool colour;
	struct buf front; /* what stands before the lines of what is below */
};

static void put_coloured(struct drawing *drawing, const char *colour, struct str text)
{
	bool on = drawing->colour && colour[0] != '\0';
	buf_put(drawing->out, on ? str_of(colour) : STR(""));
	text_put_harmless(drawing->out, text);
	buf_put(drawing->out, on ? STR(CLI_PLAIN) : STR(""));
}

static void put_sites(struct buf *out, const json_t *sites)
{
	size_t index;
	json_t *site;
	json_array_foreach(sites, index, site)
	{
		buf_put(out, index > 0 ? STR(", ") : STR(""));
		text_put_harmless(out, str_make(json_string_value(site), json_string_length(site)));
	}
}

/* "relies on", "part of". */
static void put_relation(struct buf *out, struct str relation)
{
	for (size_t i = 0; i < relation.length; i++)
		buf_put_char(out, relation.at[i] == '-' ? ' ' : relation.at[i]);
	buf_put(out, relation.length > 0 ? STR(" ") : STR(""));
}

static void put_what(struct buf *out, const json_t *item)
{
	struct str type = cli_json_text(item, "type"), id = cli_json_text(item, "id"), name = cli_json_text(item, "name");
	text_put_harmless(out, type);
	buf_put(out, type.length > 0 ? STR(" ") : STR(""));
	text_put_harmless(out, id.length > 0 ? id : cli_json_text(item, "local_id"));
	if (name.length == 0)
		return;
	buf_put(out, STR(" ("));
	text_put_harmless(out, name);
	buf_put_char(out, ')');
}

static void put_node(struct drawing *drawing, const json_t *item)
{
	struct buf *out = drawing->out;
	struct str state = cli_json_text(item, "state"), lost = cli_json_text(item, "lost");
	const json_t *from = json_object_get(item, "from");
	put_relation(out, cli_json_text(item, "relation"));
	put_what(out, item);
	buf_put(out, STR("  "));
	put_coloured(drawing, str_equal(state, STR("gone")) ? CLI_RED : cli_state_colour(state), state);
	if (json_array_size(json_object_get(item, "at_risk")) > 0) {
		buf_put(out, STR(", "));
		put_coloured(drawing, CLI_RED, STR("at risk"));
	}
	buf_put(out, STR("  "));
	put_sites(out, json_object_get(item, "sites"));
	if (json_array_size(from) > 0 && json_object_get(item, "id") != NULL &&
	    json_is_string(json_object_get(item, "id"))) {
		buf_put(out, STR(", taken from "));
		put_sites(out, from);
	}
	if (str_equal(lost, STR("unreachable"))) {
		buf_put(out, STR(", "));
		put_coloured(drawing, CLI_RED, STR("which cannot be reached"));
	}
	if (json_is_true(json_object_get(item, "again")))
		put_coloured(drawing, CLI_DIM, STR("  (see above)"));
	buf_put_char(out, '\n');
}

/* The depth is limited by the agent; and by JSON's, if it is none. */
static void draw_below(struct drawing *drawing, const json_t *item)
{
	const json_t *below = json_object_get(item, "below");
	bool cut = json_is_true(json_object_get(item, "cut"));
	size_t index, length = drawing->front.length;
	json_t *one;
	json_array_foreach(below, index, one)
	{
		bool last = index + 1 == json_array_size(below) && !cut;
		buf_put(drawing->out, buf_str(&drawing->front));
		buf_put(drawing->out, last ? STR("└─ ") : STR("├─ "));
		put_node(drawing, one);
		buf_put(&drawing->front, last ? STR("   ") : STR("│  "));
		draw_below(drawing, one);
		drawing->front.length = length;
	}
	if (cut) {
		buf_put(drawing->out, buf_str(&drawing->front));
		buf_put(drawing->out, STR("└─ ... and more, which is not shown\n"));
	}
}

static void put_tree(const struct deps_call *call, struct buf *out, const json_t *answer)
{
	struct drawing drawing = {.out = out, .colour = cli_watch_colour(&call->watch)};
	const json_t *root = json_object_get(answer, "root");
	put_node(&drawing, root);
	draw_below(&drawing, root);
	if (json_array_size(json_object_get(root, "below")) == 0 && call->action != ACTION_TREE)
		buf_put(out, call->action == ACTION_WHY ? STR("nothing that this site knows of refers to it\n")
		                                        : STR("nothing that this site knows of would suffer\n"));
	buf_free(&drawing.front);
}

static void add_lost(struct cli_table *table, const json_t *item)
{
	struct buf text = {0};
	size_t index;
	json_t *one;
	json_array_foreach(json_object_get(item, "relies_on"), index, one)
	{
		buf_put(&text, index > 0 ? STR(", ") : STR("relies on "));
		put_what(&text, one);
	}
	cli_table_add(table, CLI_RED, text.length > 0 ? buf_str(&text) : STR("the only copy"));
	buf_free(&text);
}

static void put_suffering(const struct deps_call *call, struct buf *out, const json_t *answer)
{
	static const char *const titles[] = {"ID", "TYPE", "NAME", "LOSES", "SITES", NULL};
	struct cli_table table;
	size_t index;
	json_t *item;
	double copies = 0;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "suffering"), index, item)
	{
		struct buf sites = {0};
		cli_table_add(&table, "", cli_json_text(item, "id"));
		cli_table_add(&table, "", cli_json_text(item, "type"));
		cli_table_add(&table, "", cli_json_text(item, "name"));
		add_lost(&table, item);
		put_sites(&sites, json_object_get(item, "sites"));
		cli_table_add(&table, "", buf_str(&sites));
		buf_free(&sites);
	}
	if (index > 0)
		cli_table_put(out, &table, cli_watch_colour(&call->watch));
	else
		buf_printf(out, "nothing that this site knows of would suffer if %s went away\n", call->site);
	cli_table_free(&table);
	cli_json_number(answer, "copies", &copies);
	if (copies > 0)
		buf_printf(out, "%s%.0f would lose one of several copies, and go on\n", index > 0 ? "\n" : "", copies);
}

/* ---- Asking -------------------------------------------------------------------------------------------------------- */

/* Pages are put together; the copies of each are counted by itself. */
static int ask_site(const struct deps_call *call, json_t **answer)
{
	struct buf target = {0}, path = {0};
	double copies = 0;
	int status = CLI_FINE;
	*answer = NULL;
	buf_put(&path, STR("/cheops/v1/deps/sites/"));
	percent_encode(&path, str_of(call->site));
	cli_query_add(&path, "limit", "200");
	for (bool goes_on = true; goes_on && status == CLI_FINE;) {
		json_t *page;
		double some = 0;
		const char *after = *answer ? json_string_value(json_object_get(*answer, "next")) : NULL;
		buf_clear(&target);
		buf_put(&target, buf_str(&path));
		cli_query_add(&target, "after", after);
		status = cli_ask_or_tell(
			&(struct cli_question){.address = &call->watch.address, .method = "GET", .target = buf_str(&target)},
			&page);
		if (status != CLI_FINE)
			break;
		cli_json_number(page, "copies", &some);
		copies += some;
		const char *next = json_string_value(json_object_get(page, "next"));
		goes_on = next != NULL && (after == NULL || strcmp(next, after) != 0);
		if (*answer != NULL) {
			json_array_extend(json_object_get(*answer, "suffering"), json_object_get(page, "suffering"));
			json_object_set(*answer, "next", json_object_get(page, "next"));
			json_decref(page);
		} else {
			*answer = page;
		}
	}
	if (status == CLI_FINE)
		json_object_set_new(*answer, "copies", json_integer((json_int_t)copies));
	else if (*answer != NULL)
		json_decref(*answer);
	buf_free(&target);
	buf_free(&path);
	return status;
}

static int ask_resource(const struct deps_call *call, json_t **answer)
{
	struct replica_id id;
	struct buf target = {0};
	int status = CLI_FINE;
	buf_put(&target, STR("/cheops/v1/deps"));
	cli_query_add(&target, "view", names[call->action]);
	if (replica_id_parse(str_of(call->resource), &id))
		cli_query_add(&target, "of", call->resource);
	else
		status = find_named(call, &target);
	if (status == CLI_FINE)
		status = cli_ask_or_tell(
			&(struct cli_question){.address = &call->watch.address, .method = "GET", .target = buf_str(&target)},
			answer);
	buf_free(&target);
	return status;
}

static int show(const void *context, struct buf *out)
{
	const struct deps_call *call = context;
	json_t *answer;
	int status = call->site != NULL ? ask_site(call, &answer) : ask_resource(call, &answer);
	if (status != CLI_FINE)
		return status;
	if (!cli_watch_put_data(&call->watch, out, answer))
		(call->site != NULL ? put_suffering : put_tree)(call, out, answer);
	json_decref(answer);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	static const struct cli_watcher watcher = {
		.command = "deps",
		.about = about,
		.more = more,
		.options = options,
		.options_own = OPTIONS_OWN,
		.take = take,
		.check = check,
		.show = show,
	};
	struct deps_call call = {.watch.call = &call};
	return cli_watch_run(&watcher, &call.watch, argc, argv);
}

const struct cli_command cli_command_deps = {"deps", "show what depends on what", run};
