#include "cli/listing.h"

#include "base/percent.h"

enum { LISTED_MOST = 10000 };

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

void cli_query_add(struct buf *target, const char *name, const char *value)
{
	if (value == NULL)
		return;
	bool first = memchr(target->at, '?', target->length) == NULL;
	buf_printf(target, "%c%s=", first ? '?' : '&', name);
	percent_encode(target, str_of(value));
}

static int ask_page(const struct cli_list *list, const char *after, json_t **page)
{
	struct buf target = {0};
	buf_put(&target, list->target);
	cli_query_add(&target, "after", after);
	struct cli_question question = {.address = list->address, .method = "GET", .target = buf_str(&target)};
	int status = cli_ask_or_tell(&question, page);
	buf_free(&target);
	if (status == CLI_FINE && !json_is_array(json_object_get(*page, list->name))) {
		cli_say("what %s answers has no list of %s in it; is it an agent?", list->address->text, list->name);
		json_decref(*page);
		status = CLI_REFUSED;
	}
	return status;
}

int cli_list_ask(const struct cli_list *list, json_t **json)
{
	json_t *answer, *page;
	int status = ask_page(list, NULL, &answer);
	if (status != CLI_FINE)
		return status;
	for (const char *after; (after = json_string_value(json_object_get(answer, "next"))) != NULL;) {
		json_t *all = json_object_get(answer, list->name);
		if (json_array_size(all) >= LISTED_MOST) {
			cli_say("these are the first %zu; there are more: say which ones you want", json_array_size(all));
			break;
		}
		status = ask_page(list, after, &page);
		if (status != CLI_FINE) {
			json_decref(answer);
			return status;
		}
		json_t *next = json_object_get(page, "next");
		bool more = json_array_size(json_object_get(page, list->name)) > 0; /* else it might go on like that for ever */
		json_array_extend(all, json_object_get(page, list->name));
		json_object_set_new(answer, "next", more && next != NULL ? json_incref(next) : json_null());
		json_decref(page);
	}
	*json = answer;
	return CLI_FINE;
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

const char *cli_state_colour(struct str state)
{
	static const struct {
		struct str state;
		const char *colour;
	} colours[] = {{STR_INIT("settled"), CLI_GREEN},
	               {STR_INIT("applied"), CLI_GREEN},
	               {STR_INIT("pending"), CLI_YELLOW},
	               {STR_INIT("stuck"), CLI_YELLOW},
	               {STR_INIT("deleted"), CLI_DIM},
	               {STR_INIT("left"), CLI_DIM},
	               {STR_INIT("superseded"), CLI_DIM},
	               {STR_INIT("rejected"), CLI_RED},
	               {STR_INIT("in-doubt"), CLI_RED},
	               {STR_INIT("diverged"), CLI_RED},
	               {STR_INIT("rejected-credential"), CLI_RED}};
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
		if (str_equal(state, colours[i].state))
			return colours[i].colour;
	}
	return "";
}

/* What a site that is not present had reported may not be what it has done since. */
static void put_absence(struct buf *out, const json_t *member)
{
	struct str shown = cli_json_text(member, "shown");
	int64_t since_ms;
	if (shown.length == 0 || str_equal(shown, STR("present")))
		return;
	buf_put(out, STR(" ("));
	buf_put(out, shown);
	if (cli_json_time(member, "since", &since_ms)) {
		buf_put(out, STR(" since "));
		cli_put_clock(out, since_ms, cli_now_ms());
	}
	buf_put_char(out, ')');
}

static int by_name(const void *a, const void *b)
{
	struct str one = cli_json_text(*(json_t *const *)a, "site"), other = cli_json_text(*(json_t *const *)b, "site");
	size_t length = one.length < other.length ? one.length : other.length;
	int order = memcmp(one.at, other.at, length);
	return order ? order : (one.length > other.length) - (one.length < other.length);
}

size_t cli_members(const json_t *item, json_t **sorted)
{
	json_t *member;
	size_t index, count = 0;
	json_array_foreach(json_object_get(item, "members"), index, member)
	{
		if (count < LIMIT_REPLICA_MEMBERS)
			sorted[count++] = member;
	}
	qsort(sorted, count, sizeof(sorted[0]), by_name);
	return count;
}

void cli_put_members(struct buf *out, const json_t *item)
{
	json_t *sorted[LIMIT_REPLICA_MEMBERS];
	size_t count = cli_members(item, sorted);
	for (size_t i = 0; i < count; i++) {
		double number;
		buf_put(out, i > 0 ? STR(", ") : STR(""));
		buf_put(out, cli_json_text(sorted[i], "site"));
		buf_put_char(out, ' ');
		buf_put(out, cli_json_text(sorted[i], "state"));
		if (cli_json_number(sorted[i], "status", &number))
			buf_printf(out, " %.0f", number);
		put_absence(out, sorted[i]);
	}
}
