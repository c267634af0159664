#include "glue/gather_int.h"

#include "base/check.h"

#include <stdlib.h>

const char *glue_gather_fault_name(enum glue_gather_fault fault)
{
	static const char *const names[] = {"ok",    "given-up", "no-json",           "no-list",
	                                    "twice", "too-long", "too-many-replicas", "too-many-parts"};
	return names[fault];
}

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static int make_places(struct glue_gather *gather, struct err *err)
{
	const struct glue_gather_options *options = &gather->options;
	const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1];
	uint32_t count;
	int code = glue_places_add(gather->places, options->list, GLUE_PLACE_ID, NULL, err);
	if (code == 0 && options->next.length > 0)
		code = glue_places_add(gather->places, options->next, GLUE_PLACE_LINK, NULL, err);
	if (code)
		return code;
	if (!glue_places_path(gather->places, options->list, gather->path, &gather->path_count))
		return err_set(err, ERR_INVALID, "a list has one place: its pointer may have no `*`");
	if (options->next.length > 0 && glue_places_path(gather->places, options->next, path, &count))
		gather->next = path[count - 1];
	return 0;
}

struct glue_gather *glue_gather_new(const struct glue_gather_options *options, struct err *err)
{
	struct glue_gather *gather = calloc(1, sizeof(*gather));
	CHECK(gather && options->sites_count > 0);
	gather->options = *options;
	gather->places = glue_places_new();
	gather->sources = calloc(options->sites_count, sizeof(*gather->sources));
	gather->lacks = calloc(options->sites_count, sizeof(*gather->lacks));
	gather->unfit = calloc(options->sites_count, sizeof(*gather->unfit));
	CHECK(gather->sources && gather->lacks && gather->unfit);
	gather->shown.hash_key = gather->texts.hash_key = gather->parts.hash_key = options->hash_key;
	for (uint32_t i = 0; i < options->sites_count; i++)
		glue_json_init(&gather->sources[i].json, false);
	if (make_places(gather, err) == 0)
		return gather;
	glue_gather_free(gather);
	return NULL;
}

static void source_free(struct gather_source *source)
{
	buf_free(&source->before);
	buf_free(&source->lead);
	buf_free(&source->part);
	buf_free(&source->held);
}

void glue_gather_free(struct glue_gather *gather)
{
	if (!gather)
		return;
	for (uint32_t i = 0; i < gather->options.sites_count; i++)
		source_free(&gather->sources[i]);
	free(gather->sources);
	free(gather->lacks);
	free(gather->unfit);
	gather_shown_free(&gather->shown);
	gather_shown_free(&gather->texts);
	gather_parts_free(&gather->parts);
	buf_free(&gather->after);
	glue_places_free(gather->places);
	free(gather);
}

void glue_gather_marked(struct glue_gather *gather, uint32_t site)
{
	gather->sources[site].marked = true;
}

void glue_gather_only(struct glue_gather *gather, uint32_t site)
{
	gather->sources[site].only = true;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

static bool is_through(const struct gather_source *source)
{
	return source->stage == GATHER_ENDED || source->stage == GATHER_FAILED;
}

void gather_fail(struct gather_source *source, enum glue_gather_fault fault)
{
	source->stage = GATHER_FAILED;
	source->fault = fault;
	source_free(source);
}

void gather_fail_long(struct gather_source *source, const char *what, unsigned most)
{
	err_set(&source->err, ERR_LIMIT, "%s is longer than %u bytes", what, most);
	gather_fail(source, GLUE_GATHER_TOO_LONG);
}

void gather_fail_list(struct gather_source *source)
{
	err_set(&source->err, ERR_INVALID, "there is no array where the description says that the list is");
	gather_fail(source, GLUE_GATHER_NO_LIST);
}

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

static size_t skip_space(struct str text, size_t at)
{
	while (at < text.length && memchr(" \t\n\r", text.at[at], 4))
		at++;
	return at;
}

/* What separates it from the one before, as the site has it; the first one needs no comma. */
static void put_lead(struct glue_gather *gather, struct str lead, struct buf *out)
{
	const char *comma = lead.length > 0 ? memchr(lead.at, ',', lead.length) : NULL;
	size_t before = comma ? (size_t)(comma - lead.at) : 0;
	size_t behind = comma ? before + 1 : 0;
	if (!gather->open)
		buf_put_char(out, '[');
	gather->open = true;
	if (gather->any) {
		buf_put(out, str_make(lead.at, before));
		buf_put_char(out, ',');
	}
	buf_put(out, str_make(lead.at + behind, lead.length - behind));
	gather->any = true;
}

/* An object, without the mark that it may have, and with its site where that is to be shown. */
static void put_object(struct glue_gather *gather, uint32_t site, struct str text, size_t rest, struct buf *out)
{
	buf_put_char(out, '{');
	if (gather->options.names) {
		buf_put(out, STR("\"cheops-site\":"));
		buf_put_json(out, gather->options.names[site]);
		if (text.at[skip_space(text, rest)] != '}')
			buf_put_char(out, ',');
	}
	buf_put(out, str_make(text.at + rest, text.length - rest));
}

/* Where an object goes on behind its brace and its mark. */
static size_t behind_mark(const struct gather_source *source, struct str text)
{
	if (!source->has_mark)
		return 1;
	size_t rest = source->mark_end - source->element_at;
	size_t comma = skip_space(text, rest);
	return text.at[comma] == ',' ? comma + 1 : rest;
}

/* Is it to be shown at all? What has no mark is known to its own site alone. */
static bool is_known(const struct glue_gather *gather, const struct gather_source *source)
{
	const struct glue_gather_policy *policy = &gather->options.policy;
	return !source->only ||
	       (source->mark.kind != GATHER_UNMARKED && policy->knows && policy->knows(policy->context, source->mark.id));
}

/* A part of something waits for the others. */
static void keep_part(struct glue_gather *gather, struct gather_source *source, struct str text)
{
	size_t rest = behind_mark(source, text);
	struct gather_part part = {.site = (uint32_t)(source - gather->sources),
	                           .prime = source->mark.kind == GATHER_PRIME_PART,
	                           .lead = buf_str(&source->lead),
	                           .text = str_make(text.at + rest, text.length - rest),
	                           .says = str_make(source->mark.says, source->mark.says_bytes)};
	if (gather_parts_keep(&gather->parts, source->mark.id, &part))
		return;
	err_set(&source->err, ERR_LIMIT, "the list has more than %d parts of divided resources, or %d bytes of them",
	        LIMIT_GATHER_PARTS, LIMIT_GATHER_PARTS_BYTES);
	gather_fail(source, GLUE_GATHER_PARTS);
}

/* It was shown, word by word, of a site before: what was set up alike at both. More than can be remembered are all shown. */
static bool is_alike(struct glue_gather *gather, const struct gather_source *source, struct str text)
{
	unsigned char id[GLUE_GATHER_ID_BYTES];
	struct hash_key other = {gather->options.hash_key.k1, ~gather->options.hash_key.k0};
	if (!gather->options.alike || gather->options.names || source->mark.kind != GATHER_UNMARKED || !source->is_object)
		return false;
	uint64_t halves[] = {hash_bytes(&gather->options.hash_key, text), hash_bytes(&other, text) | 1};
	memcpy(id, halves, sizeof(id));
	return gather_shown_note(&gather->texts, id) == GATHER_SHOWN_BEFORE;
}

static void pass(struct glue_gather *gather, struct gather_source *source, struct str text, struct buf *out)
{
	if (source->trial || !is_known(gather, source))
		return;
	if (source->mark.kind >= GATHER_PART && gather->options.policy.combine) {
		keep_part(gather, source, text);
		return;
	}
	enum gather_shown_result shown =
		source->mark.kind != GATHER_UNMARKED ? gather_shown_note(&gather->shown, source->mark.id) : GATHER_SHOWN_NOW;
	if (shown == GATHER_SHOWN_BEFORE || is_alike(gather, source, text))
		return;
	if (shown == GATHER_SHOWN_TOO_MANY) {
		err_set(&source->err, ERR_LIMIT, "the list has more than %d replicated resources", LIMIT_GATHER_REPLICAS);
		gather_fail(source, GLUE_GATHER_REPLICAS);
		return;
	}
	put_lead(gather, buf_str(&source->lead), out);
	if (source->is_object && (source->has_mark || gather->options.names))
		put_object(gather, (uint32_t)(source - gather->sources), text, behind_mark(source, text), out);
	else
		buf_put(out, text);
}

/* ---- What is divided --------------------------------------------------------------------------------------------- */

static void note_lack(struct glue_gather *gather, uint32_t site, const struct err *why, const char *unfit)
{
	if (gather->lacks[site].code != 0)
		return;
	gather->lacks[site] = *why;
	gather->unfit[site] = unfit;
}

/* Sites that should have had a part, and say nothing of it. Of one that has failed that is told already. */
static void look_for_missing(struct glue_gather *gather, const struct gather_whole *whole)
{
	const struct glue_gather_policy *policy = &gather->options.policy;
	bool expected[LIMIT_GATHER_SITES] = {false};
	if (!policy->expects || gather->options.sites_count > LIMIT_GATHER_SITES)
		return;
	policy->expects(policy->context, whole->id, expected);
	for (uint32_t i = 0; i < whole->count; i++)
		expected[whole->parts[i].site] = false;
	for (uint32_t i = 0; i < gather->options.sites_count; i++) {
		struct err why = {0};
		if (!expected[i] || gather->sources[i].stage == GATHER_FAILED)
			continue;
		err_set(&why, ERR_NOT_FOUND, "its list has no part of a resource that is divided over it");
		note_lack(gather, i, &why, NULL);
	}
}

static void show_whole(struct glue_gather *gather, struct gather_whole *whole, struct buf *out)
{
	const struct glue_gather_policy *policy = &gather->options.policy;
	struct buf combined = {0};
	struct err err = {0};
	bool made = policy->combine(policy->context, whole->parts, whole->count, &combined, &err);
	for (uint32_t i = 0; i < whole->count; i++)
		if (!made || whole->parts[i].left_out || whole->parts[i].unfit)
			note_lack(gather, whole->parts[i].site, made ? &whole->parts[i].why : &err,
			          made && !whole->parts[i].left_out ? whole->parts[i].unfit : NULL);
	/* What it is made of is an object, and so is this. */
	if (made && combined.length > 1) {
		put_lead(gather, whole->lead, out);
		put_object(gather, whole->parts[0].site, buf_str(&combined), 1, out);
	}
	buf_free(&combined);
}

static void show_divided(struct glue_gather *gather, struct buf *out)
{
	struct gather_whole whole;
	while (gather_parts_take(&gather->parts, &whole)) {
		look_for_missing(gather, &whole);
		show_whole(gather, &whole, out);
	}
	gather_parts_free(&gather->parts);
}

/* An element has ended. */
static void whole(struct glue_gather *gather, struct gather_source *source, struct buf *out)
{
	struct str text = str_make(source->from, (size_t)(source->json.at - source->from));
	if (source->part.length > 0) {
		buf_put(&source->part, text);
		text = buf_str(&source->part);
	}
	source->stage = GATHER_BETWEEN;
	source->from = source->json.at;
	pass(gather, source, text, out);
	buf_clear(&source->part);
}

static void element_begins(struct gather_source *source)
{
	struct glue_json *json = &source->json;
	struct str lead = str_make(source->from, (size_t)(json->token_from - source->from));
	buf_clear(&source->lead);
	buf_put(&source->lead, buf_str(&source->part));
	buf_put(&source->lead, lead);
	buf_clear(&source->part);
	source->from = json->token_from;
	source->element_at = json->token_at;
	source->element_depth = json->depth;
	source->is_object = json->kind == GLUE_JSON_OBJECT;
	source->mark.kind = GATHER_UNMARKED;
	source->has_mark = false;
	source->stage = source->is_object && source->marked ? GATHER_FIRST : GATHER_INSIDE;
	if (source->stage == GATHER_INSIDE && (source->is_object || json->kind == GLUE_JSON_ARRAY))
		glue_json_leave(json, source->element_depth);
}

bool gather_is_shape(const struct glue_gather *gather, const struct gather_source *source)
{
	return gather->begun && !source->trial && source == &gather->sources[gather->shape];
}

static void list_ends(struct glue_gather *gather, struct gather_source *source)
{
	if (gather_is_shape(gather, source)) {
		buf_put(&gather->after, buf_str(&source->part));
		buf_put(&gather->after, str_make(source->from, (size_t)(source->json.at - source->from)));
	}
	buf_clear(&source->part);
	source->from = source->json.at;
	source->stage = GATHER_BEHIND;
}

static size_t here(const struct glue_json *json)
{
	return json->piece_at + (size_t)(json->at - json->piece);
}

static void in_list(struct glue_gather *gather, struct gather_source *source, enum glue_json_event event,
                    struct buf *out)
{
	struct glue_json *json = &source->json;
	switch (source->stage) {
	case GATHER_BETWEEN:
		if (event == GLUE_JSON_VALUE)
			element_begins(source);
		else
			list_ends(gather, source);
		break;
	case GATHER_FIRST:
		if (event == GLUE_JSON_CLOSE) {
			whole(gather, source, out);
			break;
		}
		source->stage =
			!json->escaped && str_equal(json->token, STR("\"cheops-replica\"")) ? GATHER_MARK : GATHER_INSIDE;
		if (source->stage == GATHER_INSIDE)
			glue_json_leave(json, source->element_depth);
		break;
	case GATHER_MARK:
		if (event == GLUE_JSON_VALUE && json->kind == GLUE_JSON_STRING)
			break;
		if (event == GLUE_JSON_SCALAR) {
			source->has_mark = true;
			source->mark_end = here(json);
			if (!json->overlong && json->token.length >= 2)
				gather_mark_parse(str_make(json->token.at + 1, json->token.length - 2), &source->mark);
		}
		source->stage = GATHER_INSIDE;
		glue_json_leave(json, source->element_depth);
		break;
	default: whole(gather, source, out);
	}
}

/* ---- Scanning ---------------------------------------------------------------------------------------------------- */

/* The piece is used up, and goes. */
static void keep(struct glue_gather *gather, struct gather_source *source)
{
	size_t length = (size_t)(source->json.end - source->from);
	struct str rest = str_make(source->from, length);
	if (source->stage == GATHER_LEADING && source->awaited == GATHER_LIST_LITERAL)
		return;
	if (source->stage == GATHER_LEADING || source->stage == GATHER_BEHIND)
		gather_keep_around(gather, source, source->json.end);
	else if (source->part.length + length > LIMIT_GATHER_ELEMENT_BYTES)
		gather_fail_long(source, "an element of the list", LIMIT_GATHER_ELEMENT_BYTES);
	else
		buf_put(&source->part, rest);
}

static void scan(struct glue_gather *gather, struct gather_source *source, struct buf *out)
{
	struct glue_json *json = &source->json;
	source->from = json->piece;
	while (!is_through(source)) {
		enum glue_json_event event = glue_json_next(json);
		if (event == GLUE_JSON_MORE) {
			keep(gather, source);
			return;
		}
		if (event == GLUE_JSON_BAD) {
			glue_json_complain(json, &source->err);
			gather_fail(source, GLUE_GATHER_NO_JSON);
		} else if (event == GLUE_JSON_END) {
			if (source->stage == GATHER_BEHIND)
				source->stage = GATHER_ENDED;
			else
				gather_fail_list(source);
		} else if (source->stage == GATHER_LEADING || source->stage == GATHER_BEHIND) {
			gather_outside(gather, source, event);
		} else {
			in_list(gather, source, event, out);
		}
	}
}

/* A byte order mark is passed over. */
static void feed(struct glue_gather *gather, struct gather_source *source, struct str bytes, struct buf *out)
{
	static const char mark[] = "\xef\xbb\xbf";
	while (source->bom < 3 && bytes.length > 0) {
		if (bytes.at[0] != mark[source->bom]) {
			if (source->bom > 0) {
				err_set(&source->err, ERR_INVALID, "no JSON at byte 0: there is a part of a byte order mark");
				gather_fail(source, GLUE_GATHER_NO_JSON);
				return;
			}
			source->bom = 3;
			break;
		}
		source->bom++;
		bytes = str_make(bytes.at + 1, bytes.length - 1);
	}
	if (bytes.length == 0)
		return;
	glue_json_feed(&source->json, bytes);
	scan(gather, source, out);
}

static void finish(struct glue_gather *gather, struct gather_source *source, struct buf *out)
{
	glue_json_finish(&source->json);
	scan(gather, source, out);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

static void close_text(struct glue_gather *gather, struct buf *out)
{
	const struct gather_source *shape = &gather->sources[gather->shape];
	gather->over = true;
	if (shape->null && !gather->open)
		buf_put(out, STR("null"));
	else if (shape->null || shape->stage == GATHER_FAILED)
		buf_put_char(out, ']');
	if (shape->stage == GATHER_FAILED)
		buf_put(out, str_of(shape->closers));
	else
		buf_put(out, buf_str(&gather->after));
	buf_free(&gather->after);
}

/* What the site whose turn it is has left; and when it is through, the next one. */
static void go_on(struct glue_gather *gather, struct buf *out)
{
	for (; gather->turn < gather->options.sites_count; gather->turn++) {
		struct gather_source *source = &gather->sources[gather->turn];
		if (!is_through(source) && source->held.length > 0) {
			struct buf held = source->held;
			source->held = (struct buf){0};
			feed(gather, source, buf_str(&held), out);
			buf_free(&held);
		}
		if (!is_through(source) && source->over)
			finish(gather, source, out);
		if (!is_through(source))
			return;
		source_free(source);
	}
	if (gather->over)
		return;
	show_divided(gather, out);
	close_text(gather, out);
}

bool glue_gather_wants(const struct glue_gather *gather, uint32_t site)
{
	const struct gather_source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return false;
	if (gather->begun)
		return gather->turn == site;
	return source->stage == GATHER_LEADING || source->held.length < LIMIT_GATHER_WINDOW_BYTES;
}

void glue_gather_feed(struct glue_gather *gather, uint32_t site, struct str bytes, struct buf *out)
{
	struct gather_source *source = &gather->sources[site];
	if (is_through(source) || source->over || bytes.length == 0)
		return;
	bool turn = gather->begun && gather->turn == site;
	if (turn || (!gather->begun && source->stage == GATHER_LEADING))
		feed(gather, source, bytes, out);
	else
		buf_put(&source->held, bytes);
	if (turn)
		go_on(gather, out);
}

void glue_gather_end(struct glue_gather *gather, uint32_t site, struct buf *out)
{
	struct gather_source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return;
	source->over = true;
	if (!gather->begun && source->stage == GATHER_LEADING)
		finish(gather, source, out);
	else if (gather->begun && gather->turn == site)
		go_on(gather, out);
}

void glue_gather_fail(struct glue_gather *gather, uint32_t site, struct buf *out)
{
	struct gather_source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return;
	gather_fail(source, GLUE_GATHER_GIVEN_UP);
	if (gather->begun && gather->turn == site)
		go_on(gather, out);
}

bool glue_gather_ready(const struct glue_gather *gather)
{
	bool ready = true;
	for (uint32_t i = 0; i < gather->options.sites_count; i++)
		ready &= !glue_gather_wants(gather, i);
	return ready;
}

/* All of it is there: a copy goes through it, and tells what is wrong while that can still be said. */
static void try_out(struct glue_gather *gather, struct gather_source *source)
{
	struct gather_source *copy = malloc(sizeof(*copy));
	CHECK(copy);
	*copy = *source;
	copy->before = copy->lead = copy->part = copy->held = (struct buf){0};
	copy->trial = true;
	feed(gather, copy, buf_str(&source->held), NULL);
	if (!is_through(copy))
		finish(gather, copy, NULL);
	source->more |= copy->more;
	if (copy->stage == GATHER_FAILED) {
		source->err = copy->err;
		gather_fail(source, copy->fault);
	}
	source_free(copy);
	free(copy);
}

bool glue_gather_begin(struct glue_gather *gather, struct buf *out)
{
	uint32_t count = gather->options.sites_count;
	CHECK(!gather->begun);
	for (uint32_t i = 0; i < count; i++)
		if (gather->sources[i].over && !is_through(&gather->sources[i]))
			try_out(gather, &gather->sources[i]);
	while (gather->shape < count && gather->sources[gather->shape].stage == GATHER_FAILED)
		gather->shape++;
	gather->begun = true;
	gather->turn = gather->shape;
	if (gather->shape == count) {
		gather->over = true;
		return false;
	}
	struct gather_source *shape = &gather->sources[gather->shape];
	buf_put(out, buf_str(&shape->before));
	gather->open = !shape->null;
	if (gather->open)
		buf_put_char(out, '[');
	for (uint32_t i = 0; i < count; i++)
		buf_free(&gather->sources[i].before);
	go_on(gather, out);
	return true;
}

uint32_t glue_gather_shape(const struct glue_gather *gather)
{
	return gather->shape;
}

uint32_t glue_gather_turn(const struct glue_gather *gather)
{
	return gather->over ? gather->options.sites_count : gather->turn;
}

enum glue_gather_fault glue_gather_fault(const struct glue_gather *gather, uint32_t site, struct str *text)
{
	const struct gather_source *source = &gather->sources[site];
	*text = str_of(source->err.text);
	return source->stage == GATHER_FAILED ? source->fault : GLUE_GATHER_OK;
}

bool glue_gather_has_more(const struct glue_gather *gather, uint32_t site)
{
	return gather->sources[site].more;
}

int glue_gather_lacks(const struct glue_gather *gather, uint32_t site, struct str *text, const char **unfit)
{
	*unfit = gather->unfit[site];
	*text = str_of(gather->lacks[site].text);
	return gather->lacks[site].code;
}
