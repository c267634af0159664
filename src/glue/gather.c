#include "glue/gather.h"
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

/* Where a site's text is. */
enum stage {
	LEADING, /* before its array */
	BETWEEN, /* in the array: an element comes, or its end */
	FIRST,   /* in an element that is an object: its first member, or its end */
	MARK,    /* that member is a mark: its value */
	INSIDE,  /* an element: its end */
	BEHIND,  /* the array */
	ENDED,
	FAILED,
};

/* Outside the array: what the scanner tells next belongs to something of interest. */
enum awaited {
	NOTHING,
	LIST_LITERAL, /* in the place of the list: null, or a fault */
	NEXT_SCALAR,  /* what says whether there is another page: it itself, */
	NEXT_INSIDE,  /* or anything in it, */
	NEXT_CLOSE,   /* or its end, whatever comes before */
};

enum { ID_BYTES = 16 };

struct source {
	enum stage stage;
	enum glue_gather_fault fault;
	struct err err;
	bool marked;
	bool over;  /* its end was told */
	bool more;  /* it has another page */
	bool null;  /* its list is null: it is empty */
	bool trial; /* only to see whether it is well: nothing is passed on or kept */
	uint8_t bom;
	/* outside the array: the walk through the places */
	const struct glue_places_node *around[LIMIT_GLUE_SEGMENTS + 1];
	uint32_t index[LIMIT_GLUE_SEGMENTS + 1]; /* of the next element of an array */
	uint32_t depth;
	const struct glue_places_node *member;
	uint64_t seen; /* a bit per level: the key that leads to the list was there */
	enum awaited awaited;
	uint32_t awaited_depth;
	/* in the array */
	uint32_t element_depth;
	bool is_object, is_replica, has_mark;
	size_t element_at, mark_end; /* counted from the first byte */
	unsigned char id[ID_BYTES];
	struct buf before;                     /* the array: kept for the shape */
	struct buf lead;                       /* white space, and a comma perhaps, before an element */
	struct buf part;                       /* what came in earlier pieces of an element, or of what is between two */
	const char *from;                      /* where in the piece begins what is not in `part` yet */
	struct buf held;                       /* not looked at yet */
	char closers[LIMIT_GLUE_SEGMENTS + 1]; /* what ends the text, behind the array */
	struct glue_json json;
};

struct glue_gather {
	struct glue_gather_options options;
	struct glue_places *places;
	const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1]; /* from the root to the list */
	uint32_t path_count;
	const struct glue_places_node *next; /* NULL: none */
	struct source *sources;
	uint32_t shape, turn;
	bool begun, over;
	bool open;        /* the array was begun, */
	bool any;         /* and has an element */
	struct buf after; /* the array, of the shape */
	/* the replicas that were shown: open addressing, zeros are free */
	unsigned char (*ids)[ID_BYTES];
	size_t ids_size, ids_count;
};

const char *glue_gather_fault_name(enum glue_gather_fault fault)
{
	static const char *const names[] = {"ok",    "given-up", "no-json",          "no-list",
	                                    "twice", "too-long", "too-many-replicas"};
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
	CHECK(gather->sources);
	for (uint32_t i = 0; i < options->sites_count; i++)
		glue_json_init(&gather->sources[i].json, false);
	if (make_places(gather, err) == 0)
		return gather;
	glue_gather_free(gather);
	return NULL;
}

static void source_free(struct source *source)
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
	free(gather->ids);
	buf_free(&gather->after);
	glue_places_free(gather->places);
	free(gather);
}

void glue_gather_marked(struct glue_gather *gather, uint32_t site)
{
	gather->sources[site].marked = true;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

static bool is_through(const struct source *source)
{
	return source->stage == ENDED || source->stage == FAILED;
}

static void fail(struct source *source, enum glue_gather_fault fault)
{
	source->stage = FAILED;
	source->fault = fault;
	source_free(source);
}

static void fail_long(struct source *source, const char *what, unsigned most)
{
	err_set(&source->err, ERR_LIMIT, "%s is longer than %u bytes", what, most);
	fail(source, GLUE_GATHER_TOO_LONG);
}

static void fail_list(struct source *source)
{
	err_set(&source->err, ERR_INVALID, "there is no array where the description says that the list is");
	fail(source, GLUE_GATHER_NO_LIST);
}

/* ---- Replicas that were shown ------------------------------------------------------------------------------------ */

static bool id_parse(struct str text, unsigned char id[ID_BYTES])
{
	uint32_t digits = 0;
	unsigned any = 0;
	for (size_t i = 0; i < text.length; i++) {
		int value = str_hex_value(text.at[i]);
		if (text.at[i] == '-')
			continue;
		if (value < 0 || digits == 2 * ID_BYTES)
			return false;
		id[digits / 2] = (unsigned char)(digits % 2 ? id[digits / 2] << 4 | value : value);
		any |= (unsigned)value;
		digits++;
	}
	return digits == 2 * ID_BYTES && any != 0;
}

static bool id_is_free(const unsigned char id[ID_BYTES])
{
	static const unsigned char zeros[ID_BYTES];
	return memcmp(id, zeros, ID_BYTES) == 0;
}

/* Its place, or the free one where it belongs. */
static unsigned char *id_place(const struct glue_gather *gather, const unsigned char id[ID_BYTES])
{
	size_t at = hash_bytes(&gather->options.hash_key, str_make((const char *)id, ID_BYTES));
	for (;; at++) {
		unsigned char *place = gather->ids[at & (gather->ids_size - 1)];
		if (id_is_free(place) || memcmp(place, id, ID_BYTES) == 0)
			return place;
	}
}

static void ids_grow(struct glue_gather *gather)
{
	unsigned char(*before)[ID_BYTES] = gather->ids;
	size_t size = gather->ids_size;
	gather->ids_size = size ? 2 * size : 64;
	gather->ids = calloc(gather->ids_size, ID_BYTES);
	CHECK(gather->ids);
	for (size_t i = 0; i < size; i++)
		if (!id_is_free(before[i]))
			memcpy(id_place(gather, before[i]), before[i], ID_BYTES);
	free(before);
}

enum shown { SHOWN_NOW, SHOWN_BEFORE, SHOWN_TOO_MANY };

static enum shown note_shown(struct glue_gather *gather, const unsigned char id[ID_BYTES])
{
	if (2 * gather->ids_count >= gather->ids_size)
		ids_grow(gather);
	unsigned char *place = id_place(gather, id);
	if (!id_is_free(place))
		return SHOWN_BEFORE;
	if (gather->ids_count == LIMIT_GATHER_REPLICAS)
		return SHOWN_TOO_MANY;
	memcpy(place, id, ID_BYTES);
	gather->ids_count++;
	return SHOWN_NOW;
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

static void put_object(struct glue_gather *gather, const struct source *source, struct str text, struct buf *out)
{
	size_t rest = 1;
	if (source->has_mark) {
		rest = source->mark_end - source->element_at;
		size_t comma = skip_space(text, rest);
		rest = text.at[comma] == ',' ? comma + 1 : rest;
	}
	buf_put_char(out, '{');
	if (gather->options.names) {
		buf_put(out, STR("\"cheops-site\":"));
		buf_put_json(out, gather->options.names[source - gather->sources]);
		if (text.at[skip_space(text, rest)] != '}')
			buf_put_char(out, ',');
	}
	buf_put(out, str_make(text.at + rest, text.length - rest));
}

static void pass(struct glue_gather *gather, struct source *source, struct str text, struct buf *out)
{
	if (source->trial)
		return;
	enum shown shown = source->is_replica ? note_shown(gather, source->id) : SHOWN_NOW;
	if (shown == SHOWN_BEFORE)
		return;
	if (shown == SHOWN_TOO_MANY) {
		err_set(&source->err, ERR_LIMIT, "the list has more than %d replicated resources", LIMIT_GATHER_REPLICAS);
		fail(source, GLUE_GATHER_REPLICAS);
		return;
	}
	put_lead(gather, buf_str(&source->lead), out);
	if (source->is_object && (source->has_mark || gather->options.names))
		put_object(gather, source, text, out);
	else
		buf_put(out, text);
}

/* An element has ended. */
static void whole(struct glue_gather *gather, struct source *source, struct buf *out)
{
	struct str text = str_make(source->from, (size_t)(source->json.at - source->from));
	if (source->part.length > 0) {
		buf_put(&source->part, text);
		text = buf_str(&source->part);
	}
	source->stage = BETWEEN;
	source->from = source->json.at;
	pass(gather, source, text, out);
	buf_clear(&source->part);
}

static void element_begins(struct source *source)
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
	source->is_replica = source->has_mark = false;
	source->stage = source->is_object && source->marked ? FIRST : INSIDE;
	if (source->stage == INSIDE && (source->is_object || json->kind == GLUE_JSON_ARRAY))
		glue_json_leave(json, source->element_depth);
}

static bool is_shape(const struct glue_gather *gather, const struct source *source)
{
	return gather->begun && !source->trial && source == &gather->sources[gather->shape];
}

static void list_ends(struct glue_gather *gather, struct source *source)
{
	if (is_shape(gather, source)) {
		buf_put(&gather->after, buf_str(&source->part));
		buf_put(&gather->after, str_make(source->from, (size_t)(source->json.at - source->from)));
	}
	buf_clear(&source->part);
	source->from = source->json.at;
	source->stage = BEHIND;
}

static size_t here(const struct glue_json *json)
{
	return json->piece_at + (size_t)(json->at - json->piece);
}

static void in_list(struct glue_gather *gather, struct source *source, enum glue_json_event event, struct buf *out)
{
	struct glue_json *json = &source->json;
	switch (source->stage) {
	case BETWEEN:
		if (event == GLUE_JSON_VALUE)
			element_begins(source);
		else
			list_ends(gather, source);
		break;
	case FIRST:
		if (event == GLUE_JSON_CLOSE) {
			whole(gather, source, out);
			break;
		}
		source->stage = !json->escaped && str_equal(json->token, STR("\"cheops-replica\"")) ? MARK : INSIDE;
		if (source->stage == INSIDE)
			glue_json_leave(json, source->element_depth);
		break;
	case MARK:
		if (event == GLUE_JSON_VALUE && json->kind == GLUE_JSON_STRING)
			break;
		if (event == GLUE_JSON_SCALAR) {
			source->has_mark = true;
			source->mark_end = here(json);
			source->is_replica = !json->overlong && json->token.length >= 2 &&
			                     id_parse(str_make(json->token.at + 1, json->token.length - 2), source->id);
		}
		source->stage = INSIDE;
		glue_json_leave(json, source->element_depth);
		break;
	default: whole(gather, source, out);
	}
}

/* ---- Around the array -------------------------------------------------------------------------------------------- */

static void key(struct glue_gather *gather, struct source *source)
{
	struct glue_json *json = &source->json;
	const struct glue_places_node *node = source->around[source->depth - 1];
	struct buf scratch = {0};
	struct str name;
	if (!json->overlong && json->token.length <= LIMIT_GLUE_VALUE_BYTES &&
	    glue_json_string(json->token, json->escaped, &scratch, &name))
		source->member = glue_places_member(node, name);
	else
		source->member = node->any;
	buf_free(&scratch);
	bool leads = source->depth < gather->path_count && source->member == gather->path[source->depth];
	if (!source->member) {
		glue_json_skip(json);
	} else if (leads && source->seen >> source->depth & 1) {
		err_set(&source->err, ERR_INVALID, "a key that leads to the list is there twice");
		fail(source, GLUE_GATHER_TWICE);
	} else if (leads) {
		source->seen |= UINT64_C(1) << source->depth;
	}
}

static const struct glue_places_node *node_of_value(struct glue_gather *gather, struct source *source)
{
	if (source->json.in_object)
		return source->member;
	if (!source->json.in_array)
		return glue_places_root(gather->places);
	uint32_t *index = &source->index[source->depth - 1];
	const struct glue_places_node *node = glue_places_element(source->around[source->depth - 1], *index);
	*index += *index < UINT32_MAX;
	return node;
}

/* What comes before it, as far as it is in this piece. */
static void keep_before(struct source *source, const char *end)
{
	size_t length = (size_t)(end - source->from);
	if (source->before.length + length > LIMIT_GATHER_AROUND_BYTES) {
		fail_long(source, "what stands before the array", LIMIT_GATHER_AROUND_BYTES);
		return;
	}
	if (!source->trial)
		buf_put(&source->before, str_make(source->from, length));
	source->from = end;
}

/* Whatever is open at the list is closed again at the end; `depth`: so much is. */
static void note_closers(struct source *source, uint32_t depth)
{
	uint32_t count = 0;
	for (uint32_t level = depth; level-- > 0;)
		source->closers[count++] = source->json.objects[level / 64] >> level % 64 & 1 ? '}' : ']';
	source->closers[count] = '\0';
}

/* The list begins, or is null. What follows waits. */
static void found(struct source *source, enum stage stage, uint32_t depth)
{
	source->stage = stage;
	note_closers(source, depth);
	struct str rest = glue_json_cut(&source->json);
	buf_put(&source->held, rest);
	source->from = source->json.at;
}

static void list_value(struct source *source)
{
	struct glue_json *json = &source->json;
	if (json->kind != GLUE_JSON_ARRAY && json->kind != GLUE_JSON_LITERAL) {
		fail_list(source);
		return;
	}
	keep_before(source, json->token_from);
	if (source->stage == FAILED)
		return;
	if (json->kind == GLUE_JSON_LITERAL) {
		source->awaited = LIST_LITERAL;
		return;
	}
	source->from = json->at;
	found(source, BETWEEN, json->depth - 1);
}

static void value(struct glue_gather *gather, struct source *source)
{
	struct glue_json *json = &source->json;
	bool is_container = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	const struct glue_places_node *node = node_of_value(gather, source);
	if (source->stage == LEADING && node == gather->path[gather->path_count - 1]) {
		list_value(source);
	} else if (node && node == gather->next) {
		source->awaited = is_container ? NEXT_INSIDE : NEXT_SCALAR;
		source->awaited_depth = json->depth;
	} else if (node && is_container && node->leads_on) {
		source->around[source->depth] = node;
		source->index[source->depth++] = 0;
	} else if (node && source->stage == LEADING && source->depth < gather->path_count &&
	           node == gather->path[source->depth]) {
		fail_list(source);
	} else {
		glue_json_skip(json);
	}
}

static void scalar(struct source *source)
{
	const struct glue_json *json = &source->json;
	struct str token = json->token;
	enum awaited awaited = source->awaited;
	source->awaited = NOTHING;
	if (awaited == NEXT_SCALAR) {
		bool none = str_equal(token, STR("null")) || str_equal(token, STR("false")) || str_equal(token, STR("0")) ||
		            str_equal(token, STR("\"\""));
		source->more |= json->overlong || !none;
	} else if (awaited == LIST_LITERAL && str_equal(token, STR("null"))) {
		source->null = true;
		found(source, BEHIND, json->depth);
	} else if (awaited == LIST_LITERAL) {
		fail_list(source);
	}
}

/* Something inside what says whether there is another page. */
static void in_next(struct source *source, enum glue_json_event event)
{
	if (event == GLUE_JSON_CLOSE) {
		source->awaited = NOTHING;
		return;
	}
	source->more = true;
	source->awaited = NEXT_CLOSE;
	glue_json_leave(&source->json, source->awaited_depth);
}

static void outside(struct glue_gather *gather, struct source *source, enum glue_json_event event)
{
	if (source->awaited == NEXT_INSIDE || source->awaited == NEXT_CLOSE)
		in_next(source, event);
	else if (event == GLUE_JSON_KEY)
		key(gather, source);
	else if (event == GLUE_JSON_VALUE)
		value(gather, source);
	else if (event == GLUE_JSON_SCALAR)
		scalar(source);
	else
		source->depth--;
}

/* ---- Scanning ---------------------------------------------------------------------------------------------------- */

/* The piece is used up, and goes. */
static void keep(struct glue_gather *gather, struct source *source)
{
	size_t length = (size_t)(source->json.end - source->from);
	struct str rest = str_make(source->from, length);
	if (source->stage == LEADING && source->awaited == LIST_LITERAL)
		return;
	if (source->stage == LEADING) {
		keep_before(source, source->json.end);
	} else if (source->stage == BEHIND) {
		if (!is_shape(gather, source))
			return;
		if (gather->after.length + length > LIMIT_GATHER_AROUND_BYTES)
			fail_long(source, "what stands behind the array", LIMIT_GATHER_AROUND_BYTES);
		else
			buf_put(&gather->after, rest);
	} else if (source->part.length + length > LIMIT_GATHER_ELEMENT_BYTES) {
		fail_long(source, "an element of the list", LIMIT_GATHER_ELEMENT_BYTES);
	} else {
		buf_put(&source->part, rest);
	}
}

static void scan(struct glue_gather *gather, struct source *source, struct buf *out)
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
			fail(source, GLUE_GATHER_NO_JSON);
		} else if (event == GLUE_JSON_END) {
			if (source->stage == BEHIND)
				source->stage = ENDED;
			else
				fail_list(source);
		} else if (source->stage == LEADING || source->stage == BEHIND) {
			outside(gather, source, event);
		} else {
			in_list(gather, source, event, out);
		}
	}
}

/* A byte order mark is passed over. */
static void feed(struct glue_gather *gather, struct source *source, struct str bytes, struct buf *out)
{
	static const char mark[] = "\xef\xbb\xbf";
	while (source->bom < 3 && bytes.length > 0) {
		if (bytes.at[0] != mark[source->bom]) {
			if (source->bom > 0) {
				err_set(&source->err, ERR_INVALID, "no JSON at byte 0: there is a part of a byte order mark");
				fail(source, GLUE_GATHER_NO_JSON);
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

static void finish(struct glue_gather *gather, struct source *source, struct buf *out)
{
	glue_json_finish(&source->json);
	scan(gather, source, out);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

static void close_text(struct glue_gather *gather, struct buf *out)
{
	const struct source *shape = &gather->sources[gather->shape];
	gather->over = true;
	if (shape->null && !gather->open)
		buf_put(out, STR("null"));
	else if (shape->null || shape->stage == FAILED)
		buf_put_char(out, ']');
	if (shape->stage == FAILED)
		buf_put(out, str_of(shape->closers));
	else
		buf_put(out, buf_str(&gather->after));
	buf_free(&gather->after);
}

/* What the site whose turn it is has left; and when it is through, the next one. */
static void go_on(struct glue_gather *gather, struct buf *out)
{
	for (; gather->turn < gather->options.sites_count; gather->turn++) {
		struct source *source = &gather->sources[gather->turn];
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
	if (!gather->over)
		close_text(gather, out);
}

bool glue_gather_wants(const struct glue_gather *gather, uint32_t site)
{
	const struct source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return false;
	if (gather->begun)
		return gather->turn == site;
	return source->stage == LEADING || source->held.length < LIMIT_GATHER_WINDOW_BYTES;
}

void glue_gather_feed(struct glue_gather *gather, uint32_t site, struct str bytes, struct buf *out)
{
	struct source *source = &gather->sources[site];
	if (is_through(source) || source->over || bytes.length == 0)
		return;
	bool turn = gather->begun && gather->turn == site;
	if (turn || (!gather->begun && source->stage == LEADING))
		feed(gather, source, bytes, out);
	else
		buf_put(&source->held, bytes);
	if (turn)
		go_on(gather, out);
}

void glue_gather_end(struct glue_gather *gather, uint32_t site, struct buf *out)
{
	struct source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return;
	source->over = true;
	if (!gather->begun && source->stage == LEADING)
		finish(gather, source, out);
	else if (gather->begun && gather->turn == site)
		go_on(gather, out);
}

void glue_gather_fail(struct glue_gather *gather, uint32_t site, struct buf *out)
{
	struct source *source = &gather->sources[site];
	if (is_through(source) || source->over)
		return;
	fail(source, GLUE_GATHER_GIVEN_UP);
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
static void try_out(struct glue_gather *gather, struct source *source)
{
	struct source *copy = malloc(sizeof(*copy));
	CHECK(copy);
	*copy = *source;
	copy->before = copy->lead = copy->part = copy->held = (struct buf){0};
	copy->trial = true;
	feed(gather, copy, buf_str(&source->held), NULL);
	if (!is_through(copy))
		finish(gather, copy, NULL);
	source->more |= copy->more;
	if (copy->stage == FAILED) {
		source->err = copy->err;
		fail(source, copy->fault);
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
	while (gather->shape < count && gather->sources[gather->shape].stage == FAILED)
		gather->shape++;
	gather->begun = true;
	gather->turn = gather->shape;
	if (gather->shape == count) {
		gather->over = true;
		return false;
	}
	struct source *shape = &gather->sources[gather->shape];
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
	const struct source *source = &gather->sources[site];
	*text = str_of(source->err.text);
	return source->stage == FAILED ? source->fault : GLUE_GATHER_OK;
}

bool glue_gather_has_more(const struct glue_gather *gather, uint32_t site)
{
	return gather->sources[site].more;
}
