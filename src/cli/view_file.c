/* The view file: its meaning, from the top down. How YAML is read, and what is refused whatever it means, is in base/yaml. */
#include "cli/view_file.h"

#include "agent/file.h"
#include "base/timestamp.h"
#include "base/yaml.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

static const struct yaml_format view_format = {
	.thing = "a view",
	.file = "a view file",
	.deepest = "a site's tags",
	.least = "a view has at least one site, such as `sites: {Site1: {}}`",
	.bytes = LIMIT_VIEW_FILE_BYTES,
};

struct reader {
	struct yaml_reader yaml;
	struct scope_table *table;
	struct scope_view view; /* of the table, once it has all sites */
};

/* ---- Sites ------------------------------------------------------------------------------------------------------ */

static int read_state(const struct reader *reader, const struct yaml_entry *entry, struct scope_site *site)
{
	static const char *const words[] = {"present", "absent", "unknown", NULL};
	static const enum scope_state states[] = {SCOPE_PRESENT, SCOPE_ABSENT, SCOPE_UNKNOWN};
	int code = yaml_check_value(&reader->yaml, entry, "one of `present`, `absent` and `unknown`");
	if (code != 0)
		return code;
	int chosen = yaml_choose(&reader->yaml, entry->value, words, "state");
	if (chosen < 0)
		return chosen;
	site->state = states[chosen];
	return 0;
}

static int read_since(const struct reader *reader, const struct yaml_entry *entry, struct scope_site *site)
{
	int code = yaml_check_value(&reader->yaml, entry, "a time, such as 2024-05-01T12:00:00Z");
	if (code != 0)
		return code;
	if (timestamp_parse(yaml_text(entry->value), &site->since_ms))
		return 0;
	return yaml_fail(&reader->yaml, ERR_INVALID, entry->value->start_mark,
	                 TEXT_NAME_FMT " is not a time; write it as RFC 3339 does: 2024-05-01T12:00:00Z",
	                 TEXT_NAME(yaml_text(entry->value)));
}

static int read_tags(struct reader *reader, const yaml_node_t *node, uint32_t site)
{
	int code = yaml_check_mapping(&reader->yaml, node, STR("tags"), "tags: {region: west}");
	for (size_t i = 0; code == 0 && i < yaml_entries_count(node); i++) {
		struct yaml_entry tag = yaml_entry_at(&reader->yaml, node, i);
		code = yaml_check_value(&reader->yaml, &tag, "a single value, as in `region: west`");
		if (code == 0)
			scope_table_tag(reader->table, site, tag.key, yaml_text(tag.value));
	}
	return code;
}

static int read_site(struct reader *reader, const struct yaml_entry *entry)
{
	enum { STATE, SINCE, TAGS };
	static const char *const keys[] = {[STATE] = "state", [SINCE] = "since", [TAGS] = "tags", NULL};
	struct scope_site site = {.name = entry->key, .state = SCOPE_PRESENT};
	const yaml_node_t *tags = NULL;
	int code = yaml_check_mapping(&reader->yaml, entry->value, entry->key, "Site1: {state: present}");
	for (size_t i = 0; code == 0 && i < yaml_entries_count(entry->value); i++) {
		struct yaml_entry part = yaml_entry_at(&reader->yaml, entry->value, i);
		int key = yaml_choose(&reader->yaml, part.key_node, keys, "key");
		if (key == STATE)
			code = read_state(reader, &part, &site);
		else if (key == SINCE)
			code = read_since(reader, &part, &site);
		else if (key == TAGS)
			tags = part.value;
		else
			code = key;
	}
	if (code != 0)
		return code;
	uint32_t index = scope_table_add_site(reader->table, site);
	return tags != NULL ? read_tags(reader, tags, index) : 0;
}

static int read_sites(struct reader *reader, const yaml_node_t *node)
{
	int code = yaml_check_mapping(&reader->yaml, node, STR("sites"), "sites: {Site1: {state: present}}");
	if (code != 0)
		return code;
	size_t count = yaml_entries_count(node);
	if (count == 0)
		return yaml_fail(&reader->yaml, ERR_INVALID, node->start_mark,
		                 "`sites` is empty; a view has at least one site, such as `sites: {Site1: {}}`");
	if (count > LIMIT_VIEW_SITES)
		return yaml_fail(&reader->yaml, ERR_LIMIT, node->start_mark, "%zu sites; the limit of a view is %d", count,
		                 LIMIT_VIEW_SITES);
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry entry = yaml_entry_at(&reader->yaml, node, i);
		code = read_site(reader, &entry);
	}
	reader->view = scope_table_view(reader->table);
	return code;
}

/* The number of a site that is named outside of `sites`; `where` says which part names it. */
static int find_site(const struct reader *reader, const struct yaml_entry *entry, const char *where, uint32_t *site)
{
	const struct scope_view *view = &reader->view;
	*site = view->find_site(view->context, entry->key);
	if (*site != SCOPE_NO_INDEX)
		return 0;
	struct suggest suggest;
	suggest_start(&suggest, entry->key);
	for (uint32_t i = 0; i < view->sites_count; i++)
		suggest_offer(&suggest, view->site(view->context, i).name);
	char meant[TEXT_SUGGESTION_BYTES];
	return yaml_fail(&reader->yaml, ERR_NOT_FOUND, entry->key_node->start_mark,
	                 "`%s` names " TEXT_NAME_FMT ", which is not under `sites`%s", where, TEXT_NAME(entry->key),
	                 text_did_you_mean(&suggest, meant));
}

/* ---- Round trips ------------------------------------------------------------------------------------------------ */

/* Decimal digits with or without a fraction, in ms; the result in µs, rounded. False if it is anything else. */
static bool parse_ms(struct str text, int64_t *us)
{
	int64_t value = 0;
	size_t at = 0;
	for (; at < text.length && text.at[at] >= '0' && text.at[at] <= '9'; at++) {
		value = value * 10 + (text.at[at] - '0');
		if (value > LIMIT_VIEW_RTT_MS)
			return false;
	}
	if (at == 0)
		return false;
	value *= 1000;
	if (at < text.length && (text.at[at++] != '.' || at == text.length))
		return false;
	int64_t weight = 100;
	for (; at < text.length; at++, weight /= 10) {
		if (text.at[at] < '0' || text.at[at] > '9')
			return false;
		value += weight * (text.at[at] - '0');
		if (weight == 1 && at + 1 < text.length && text.at[at + 1] >= '5')
			value++;
	}
	*us = value;
	return value <= LIMIT_VIEW_RTT_MS * INT64_C(1000);
}

static int read_rtt(const struct reader *reader, const struct yaml_entry *from, uint32_t from_site,
                    const struct yaml_entry *to)
{
	uint32_t to_site;
	int64_t rtt_us = 0;
	int code = find_site(reader, to, "rtt_ms", &to_site);
	if (code == 0)
		code = yaml_check_value(&reader->yaml, to, "a number of ms, such as 8 or 0.35");
	if (code != 0)
		return code;
	struct str text = yaml_text(to->value);
	if (!parse_ms(text, &rtt_us))
		return yaml_fail(&reader->yaml, ERR_INVALID, to->value->start_mark,
		                 "the round trip from " TEXT_NAME_FMT " to " TEXT_NAME_FMT " is " TEXT_NAME_FMT
		                 "; it has to be a number of ms from 0 to %d, such as 8 or 0.35",
		                 TEXT_NAME(from->key), TEXT_NAME(to->key), TEXT_NAME(text), LIMIT_VIEW_RTT_MS);
	if (from_site == to_site && rtt_us != 0)
		return yaml_fail(&reader->yaml, ERR_INVALID, to->value->start_mark,
		                 "the round trip from " TEXT_NAME_FMT " to itself is " TEXT_NAME_FMT
		                 "; it can only be 0, or left out",
		                 TEXT_NAME(from->key), TEXT_NAME(text));
	if (from_site != to_site)
		scope_table_set_rtt(reader->table, from_site, to_site, rtt_us);
	return 0;
}

static int read_rtts(struct reader *reader, const yaml_node_t *node)
{
	int code = yaml_check_mapping(&reader->yaml, node, STR("rtt_ms"), "rtt_ms: {Site1: {Site2: 8}}");
	for (size_t i = 0; code == 0 && i < yaml_entries_count(node); i++) {
		struct yaml_entry from = yaml_entry_at(&reader->yaml, node, i);
		uint32_t from_site;
		code = find_site(reader, &from, "rtt_ms", &from_site);
		if (code == 0)
			code = yaml_check_mapping(&reader->yaml, from.value, from.key, "Site1: {Site2: 8}");
		for (size_t j = 0; code == 0 && j < yaml_entries_count(from.value); j++) {
			struct yaml_entry to = yaml_entry_at(&reader->yaml, from.value, j);
			code = read_rtt(reader, &from, from_site, &to);
		}
	}
	return code;
}

/* ---- Services --------------------------------------------------------------------------------------------------- */

static int read_offer(const struct reader *reader, uint32_t service, const struct yaml_entry *entry)
{
	uint32_t site;
	int code = find_site(reader, entry, "services", &site);
	if (code != 0)
		return code;
	bool known = !yaml_is_empty(entry->value);
	if (known)
		code = yaml_check_value(&reader->yaml, entry, "a version, such as \"2.1\", or empty");
	if (code == 0)
		scope_table_offer(reader->table, service, site, known ? yaml_text(entry->value) : STR(""));
	return code;
}

static int read_services(struct reader *reader, const yaml_node_t *node)
{
	int code = yaml_check_mapping(&reader->yaml, node, STR("services"), "services: {compute: {Site1: \"2.1\"}}");
	if (code == 0 && yaml_entries_count(node) > LIMIT_VIEW_SERVICES)
		return yaml_fail(&reader->yaml, ERR_LIMIT, node->start_mark, "%zu services; the limit of a view is %d",
		                 yaml_entries_count(node), LIMIT_VIEW_SERVICES);
	for (size_t i = 0; code == 0 && i < yaml_entries_count(node); i++) {
		struct yaml_entry entry = yaml_entry_at(&reader->yaml, node, i);
		code = yaml_check_mapping(&reader->yaml, entry.value, entry.key, "compute: {Site1: \"2.1\"}");
		if (code != 0)
			break;
		uint32_t service = scope_table_add_service(reader->table, entry.key);
		for (size_t j = 0; code == 0 && j < yaml_entries_count(entry.value); j++) {
			struct yaml_entry offer = yaml_entry_at(&reader->yaml, entry.value, j);
			code = read_offer(reader, service, &offer);
		}
	}
	return code;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int read_view(void *context, const yaml_node_t *root)
{
	struct reader *reader = context;
	enum { SITES, RTT, SERVICES, PARTS };
	static const char *const keys[] = {[SITES] = "sites", [RTT] = "rtt_ms", [SERVICES] = "services", NULL};
	static int (*const read[])(struct reader *, const yaml_node_t *) = {
		[SITES] = read_sites, [RTT] = read_rtts, [SERVICES] = read_services};
	const yaml_node_t *parts[PARTS] = {NULL};
	if (root->type != YAML_MAPPING_NODE)
		return yaml_fail(&reader->yaml, ERR_INVALID, root->start_mark,
		                 "the file is %s; a view is a mapping with the keys `sites`, `rtt_ms` and `services`",
		                 yaml_kind(root));
	int code = yaml_check_mapping(&reader->yaml, root, STR("the view"), "");
	for (size_t i = 0; code == 0 && i < yaml_entries_count(root); i++) {
		struct yaml_entry entry = yaml_entry_at(&reader->yaml, root, i);
		int key = yaml_choose(&reader->yaml, entry.key_node, keys, "key");
		if (key < 0)
			return key;
		parts[key] = entry.value;
	}
	if (code == 0 && parts[SITES] == NULL)
		return yaml_fail(&reader->yaml, ERR_INVALID, root->start_mark,
		                 "there is no `sites`; a view has at least one site, such as `sites: {Site1: {}}`");
	/* Sites first, wherever they are in the file: all else names them. */
	for (int i = 0; code == 0 && i < PARTS; i++) {
		if (parts[i] != NULL)
			code = read[i](reader, parts[i]);
	}
	return code;
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static int read_whole(const char *path, struct buf *text, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int failure = fd < 0 ? errno : agent_descriptor_read(fd, LIMIT_VIEW_FILE_BYTES + 1, text);
	if (fd >= 0)
		close(fd);
	if (failure != 0)
		return err_set(err, ERR_IO, "cannot read `" TEXT_PATH_FMT "`: %s", TEXT_PATH(path), strerror(failure));
	if (text->length > LIMIT_VIEW_FILE_BYTES)
		return err_set(err, ERR_LIMIT, "`" TEXT_PATH_FMT "` is longer than %d bytes, the limit of a view file",
		               TEXT_PATH(path), LIMIT_VIEW_FILE_BYTES);
	return 0;
}

int view_file_read(struct arena *arena, const char *path, struct scope_table **table, struct err *err)
{
	struct buf text = {0};
	struct reader reader = {.yaml = {.path = path, .format = &view_format, .err = err}};
	int code = read_whole(path, &text, err);
	if (code == 0) {
		/* Without entropy there are still no duplicates, only a file that could be made to be slow. */
		(void)!getrandom(&reader.yaml.hash_key, sizeof(reader.yaml.hash_key), GRND_NONBLOCK);
		reader.table = scope_table_new(arena);
		code = yaml_read(&reader.yaml, buf_str(&text), read_view, &reader);
	}
	if (code == 0)
		*table = reader.table;
	buf_free(&text);
	return code;
}
