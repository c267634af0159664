#include "cli/verify.h"

#include <stdlib.h>
#include <unistd.h>

/* The longest that agents take to read files (engine/verify_facets.c), and more. */
enum { PROGRESS_EVERY = 50, ANSWER_MS = 360000, DIGEST_SHOWN = 12 };

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

static void show_progress(size_t done, size_t count)
{
	struct buf text = {0};
	if (count < 2)
		return;
	if (isatty(STDERR_FILENO))
		buf_printf(&text, "\rcompared %zu of %zu%s", done, count, done == count ? "\n" : "");
	else if (done % PROGRESS_EVERY == 0 || done == count)
		buf_printf(&text, "compared %zu of %zu\n", done, count);
	cli_print_error(buf_str(&text));
	buf_free(&text);
}

static bool is_gone(const struct cli_reply *reply)
{
	return reply->json && str_equal(cli_json_text(reply->json, "type"), STR("urn:cheops:problem:no-such-replicant"));
}

static int by_name(const void *a, const void *b)
{
	return str_compare(cli_json_text(*(json_t *const *)a, "site"), cli_json_text(*(json_t *const *)b, "site"));
}

static void sort_members(json_t *verify)
{
	json_t *sorted[LIMIT_REPLICA_MEMBERS] = {NULL}, *members = json_object_get(verify, "members");
	size_t count = json_array_size(members) < LIMIT_REPLICA_MEMBERS ? json_array_size(members) : LIMIT_REPLICA_MEMBERS;
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_incref(json_array_get(members, i));
	qsort(sorted, count, sizeof(sorted[0]), by_name);
	for (size_t i = 0; i < count; i++)
		json_array_set_new(members, i, sorted[i]);
}

/* *gone: there is nothing to compare any more. */
static int ask_one(const struct http_address *address, json_t *item, bool *gone)
{
	struct buf target = {0};
	struct cli_reply reply;
	int status = CLI_FINE;
	buf_put(&target, STR("/cheops/v1/replicants/"));
	buf_put(&target, cli_json_text(item, "id"));
	buf_put(&target, STR("/verify"));
	struct cli_question question = {
		.address = address, .method = "GET", .target = buf_str(&target), .patience_ms = ANSWER_MS};
	int code = cli_ask(&question, &reply);
	*gone = is_gone(&reply);
	if (code != 0) {
		cli_say("%s", reply.err.text);
		status = CLI_REFUSED;
	} else if (cli_reply_is_good(&reply)) {
		sort_members(reply.json);
		json_object_set(item, "verify", reply.json);
	} else if (!*gone) {
		status = cli_tell_problem(&reply, "");
	}
	cli_reply_free(&reply);
	buf_free(&target);
	return status;
}

int cli_verify_ask(const struct http_address *address, json_t *items)
{
	size_t count = json_array_size(items), done = 0;
	for (size_t i = 0; i < json_array_size(items);) {
		bool gone;
		int status = ask_one(address, json_array_get(items, i), &gone);
		if (status != CLI_FINE)
			return status;
		if (gone)
			json_array_remove(items, i);
		else
			i++;
		show_progress(++done, count);
	}
	return CLI_FINE;
}

static struct str word_of(const json_t *item)
{
	return cli_json_text(json_object_get(item, "verify"), "verify");
}

int cli_verify_status(const json_t *items)
{
	int status = CLI_FINE;
	size_t index;
	json_t *item;
	json_array_foreach(items, index, item)
	{
		struct str word = word_of(item);
		if (str_equal(word, STR("differs")) || str_equal(word, STR("missing")))
			status = CLI_DIFFERS;
		else if (!str_equal(word, STR("same")) && status == CLI_FINE)
			status = CLI_REFUSED;
	}
	return status;
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

static const char *colour_of(struct str word)
{
	if (str_equal(word, STR("same")))
		return CLI_GREEN;
	return str_equal(word, STR("differs")) || str_equal(word, STR("missing")) ? CLI_RED : CLI_YELLOW;
}

/* "unknown since 12:03:14" */
static void put_word(struct buf *out, const json_t *member)
{
	struct str word = cli_json_text(member, "verify");
	int64_t since_ms;
	buf_put(out, word);
	if (!str_equal(word, STR("unknown")) || !cli_json_time(member, "since", &since_ms) ||
	    str_equal(cli_json_text(member, "shown"), STR("present")))
		return;
	buf_put(out, STR(" since "));
	cli_put_clock(out, since_ms, cli_now_ms());
}

void cli_verify_put_list(struct buf *out, const json_t *items, bool colour)
{
	static const char *const titles[] = {"ID", "TYPE", "NAME", "VERIFY", "SITES", NULL};
	struct cli_table table;
	size_t index, at;
	json_t *item, *member;
	cli_table_begin(&table, titles);
	json_array_foreach(items, index, item)
	{
		struct buf members = {0};
		cli_table_add(&table, "", cli_json_text(item, "id"));
		cli_table_add(&table, "", cli_json_text(item, "type"));
		cli_table_add(&table, "", cli_json_text(item, "name"));
		cli_table_add(&table, colour_of(word_of(item)), word_of(item));
		json_array_foreach(json_object_get(json_object_get(item, "verify"), "members"), at, member)
		{
			buf_put(&members, at > 0 ? STR(", ") : STR(""));
			buf_put(&members, cli_json_text(member, "site"));
			buf_put_char(&members, ' ');
			put_word(&members, member);
		}
		cli_table_add(&table, "", buf_str(&members));
		buf_free(&members);
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

static void put_value(struct buf *out, struct str value)
{
	text_put_harmless(out, value.length > 0 ? value : STR("(nothing)"));
}

static void put_differences(struct buf *out, const json_t *member, struct str with)
{
	size_t index;
	json_t *difference;
	json_array_foreach(json_object_get(member, "differences"), index, difference)
	{
		struct str pointer = cli_json_text(difference, "pointer");
		text_put_harmless(out, cli_json_text(member, "site"));
		buf_put(out, STR("  "));
		text_put_harmless(out, pointer.length > 0 ? pointer : STR("(all of it)"));
		buf_put(out, STR(": "));
		put_value(out, cli_json_text(difference, "here"));
		buf_put(out, STR(", at "));
		text_put_harmless(out, with);
		buf_put_char(out, ' ');
		put_value(out, cli_json_text(difference, "elsewhere"));
		buf_put_char(out, '\n');
	}
	if (json_is_true(json_object_get(member, "more"))) {
		text_put_harmless(out, cli_json_text(member, "site"));
		buf_put(out, STR("  and others\n"));
	}
}

/* ---- Facets -------------------------------------------------------------------------------------------------------- */

static const json_t *find_named(const json_t *list, const char *member, struct str name)
{
	size_t index;
	json_t *each;
	json_array_foreach(list, index, each) if (str_equal(cli_json_text(each, member), name)) return each;
	return NULL;
}

/* "1048576 bytes, SHA-256 3a7bd3e2360a..." */
static void put_content(struct buf *out, const json_t *facet)
{
	struct str digest = cli_json_text(facet, "digest"), state = cli_json_text(facet, "state");
	if (str_equal(state, STR("here"))) {
		buf_printf(out, "%lld bytes, SHA-256 ", (long long)json_integer_value(json_object_get(facet, "bytes")));
		text_put_harmless(out, str_make(digest.at, digest.length < DIGEST_SHOWN ? digest.length : DIGEST_SHOWN));
		buf_put(out, STR("..."));
	} else {
		buf_put(out, str_equal(state, STR("none")) ? STR("(none)") : STR("(unknown)"));
	}
}

static void put_facets(struct buf *out, const json_t *verify, const json_t *member)
{
	size_t index;
	json_t *facet;
	json_array_foreach(json_object_get(member, "facets"), index, facet)
	{
		struct str name = cli_json_text(facet, "facet"), with = cli_json_text(facet, "compared_with");
		struct str reason = cli_json_text(facet, "reason");
		const json_t *other = find_named(json_object_get(verify, "members"), "site", with);
		if (str_equal(cli_json_text(facet, "verify"), STR("same")))
			continue;
		text_put_harmless(out, cli_json_text(member, "site"));
		buf_put(out, STR("  "));
		text_put_harmless(out, name);
		buf_put(out, STR(": "));
		put_content(out, facet);
		if (reason.length > 0) {
			buf_put(out, STR(", "));
			text_put_harmless(out, reason);
		} else if (other && !str_equal(with, cli_json_text(member, "site"))) {
			buf_put(out, STR(", at "));
			text_put_harmless(out, with);
			buf_put_char(out, ' ');
			put_content(out, find_named(json_object_get(other, "facets"), "facet", name));
		}
		buf_put_char(out, '\n');
	}
}

static void put_not_compared(struct buf *out, const json_t *verify)
{
	const json_t *facets = json_object_get(verify, "not_compared");
	size_t index;
	json_t *facet;
	json_array_foreach(facets, index, facet)
	{
		buf_put(out, index > 0 ? STR(", ") : STR("Not compared: "));
		text_put_harmless(out, str_of(json_string_value(facet) ? json_string_value(facet) : ""));
	}
	if (json_array_size(facets) > 0)
		buf_put_char(out, '\n');
}

static bool is_none(const json_t *member, struct str name)
{
	const json_t *facet = find_named(json_object_get(member, "facets"), "facet", name);
	return facet && str_equal(cli_json_text(facet, "state"), STR("none"));
}

/* Some have it, and others have none: what a repair can do about it depends on whose copy is right. */
static void put_not_removable(struct buf *out, const json_t *verify)
{
	size_t index, at;
	json_t *facet, *member;
	json_array_foreach(json_object_get(verify, "not_removable"), index, facet)
	{
		struct str name = str_of(json_string_value(facet) ? json_string_value(facet) : "");
		size_t none = 0, all = json_array_size(json_object_get(verify, "members"));
		json_array_foreach(json_object_get(verify, "members"), at, member)
		{
			none += is_none(member, name);
		}
		if (none == 0 || none == all)
			continue;
		buf_put(out, STR("No request of the description takes away: "));
		text_put_harmless(out, name);
		buf_put(out, STR(". Where it is to go, a repair leaves it\n"));
	}
}

void cli_verify_put_one(struct buf *out, const json_t *item, bool colour)
{
	static const char *const titles[] = {"SITE", "VERIFY", "WHY", NULL};
	const json_t *verify = json_object_get(item, "verify");
	struct str with = cli_json_text(verify, "compared_with");
	struct cli_table table;
	size_t index;
	json_t *member;
	text_put_harmless(out, cli_json_text(item, "type"));
	buf_put_char(out, ' ');
	text_put_harmless(out, cli_json_text(item, "id"));
	if (json_is_true(json_object_get(verify, "tie")))
		buf_put(out, STR(", as many copies say one thing as another: none is taken for right"));
	buf_put_char(out, '\n');
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(verify, "members"), index, member)
	{
		struct buf word = {0};
		put_word(&word, member);
		cli_table_add(&table, "", cli_json_text(member, "site"));
		cli_table_add(&table, colour_of(cli_json_text(member, "verify")), buf_str(&word));
		cli_table_add(&table, "", cli_json_text(member, "reason"));
		buf_free(&word);
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
	json_array_foreach(json_object_get(verify, "members"), index, member)
	{
		put_differences(out, member, with);
		put_facets(out, verify, member);
	}
	put_not_compared(out, verify);
	put_not_removable(out, verify);
}
