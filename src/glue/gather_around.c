/* What stands around the array of a list: the way to it, whether there is another page, and the bytes of the shape. */
#include "glue/gather_int.h"

static void key(struct glue_gather *gather, struct gather_source *source)
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
		gather_fail(source, GLUE_GATHER_TWICE);
	} else if (leads) {
		source->seen |= UINT64_C(1) << source->depth;
	}
}

static const struct glue_places_node *node_of_value(struct glue_gather *gather, struct gather_source *source)
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

static void put_around(struct glue_gather *gather, struct gather_source *source, struct str bytes)
{
	bool is_before = source->stage == GATHER_LEADING;
	struct buf *kept = is_before ? &source->before : &gather->after;
	if (!is_before && !gather_is_shape(gather, source))
		return;
	if (kept->length + bytes.length > LIMIT_GATHER_AROUND_BYTES)
		gather_fail_long(source, is_before ? "what stands before the array" : "what stands behind the array",
		                 LIMIT_GATHER_AROUND_BYTES);
	else if (!source->trial)
		buf_put(kept, bytes);
}

/* What comes before the array, or behind it, as far as it is in this piece; but for the way to another page, where that is hidden. */
void gather_keep_around(struct glue_gather *gather, struct gather_source *source, const char *end)
{
	bool is_next = source->awaited == GATHER_NEXT_SCALAR || source->awaited == GATHER_NEXT_INSIDE ||
	               source->awaited == GATHER_NEXT_CLOSE;
	if (!is_next || !gather->options.one_page)
		put_around(gather, source, str_make(source->from, (size_t)(end - source->from)));
	source->from = end;
}

/* Whatever is open at the list is closed again at the end; `depth`: so much is. */
static void note_closers(struct gather_source *source, uint32_t depth)
{
	uint32_t count = 0;
	for (uint32_t level = depth; level-- > 0;)
		source->closers[count++] = source->json.objects[level / 64] >> level % 64 & 1 ? '}' : ']';
	source->closers[count] = '\0';
}

/* The list begins, or is null. What follows waits. */
static void found(struct gather_source *source, enum gather_stage stage, uint32_t depth)
{
	source->stage = stage;
	note_closers(source, depth);
	struct str rest = glue_json_cut(&source->json);
	buf_put(&source->held, rest);
	source->from = source->json.at;
}

static void list_value(struct glue_gather *gather, struct gather_source *source)
{
	struct glue_json *json = &source->json;
	if (json->kind != GLUE_JSON_ARRAY && json->kind != GLUE_JSON_LITERAL) {
		gather_fail_list(source);
		return;
	}
	gather_keep_around(gather, source, json->token_from);
	if (source->stage == GATHER_FAILED)
		return;
	if (json->kind == GLUE_JSON_LITERAL) {
		source->awaited = GATHER_LIST_LITERAL;
		return;
	}
	source->from = json->at;
	found(source, GATHER_BETWEEN, json->depth - 1);
}

static void value(struct glue_gather *gather, struct gather_source *source)
{
	struct glue_json *json = &source->json;
	bool is_container = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	const struct glue_places_node *node = node_of_value(gather, source);
	if (source->stage == GATHER_LEADING && node == gather->path[gather->path_count - 1]) {
		list_value(gather, source);
	} else if (node && node == gather->next) {
		gather_keep_around(gather, source, is_container ? json->at : json->token_from);
		source->awaited = is_container ? GATHER_NEXT_INSIDE : GATHER_NEXT_SCALAR;
		source->awaited_depth = json->depth;
	} else if (node && is_container && node->leads_on) {
		source->around[source->depth] = node;
		source->index[source->depth++] = 0;
	} else if (node && source->stage == GATHER_LEADING && source->depth < gather->path_count &&
	           node == gather->path[source->depth]) {
		gather_fail_list(source);
	} else {
		glue_json_skip(json);
	}
}

static void scalar(struct glue_gather *gather, struct gather_source *source)
{
	const struct glue_json *json = &source->json;
	struct str token = json->token;
	enum gather_awaited awaited = source->awaited;
	source->awaited = GATHER_NOTHING;
	if (awaited == GATHER_NEXT_SCALAR) {
		bool none = str_equal(token, STR("null")) || str_equal(token, STR("false")) || str_equal(token, STR("0")) ||
		            str_equal(token, STR("\"\""));
		source->more |= json->overlong || !none;
		if (gather->options.one_page) {
			put_around(gather, source, json->overlong || !none ? STR("null") : token);
			source->from = json->at;
		}
	} else if (awaited == GATHER_LIST_LITERAL && str_equal(token, STR("null"))) {
		source->null = true;
		found(source, GATHER_BEHIND, json->depth);
	} else if (awaited == GATHER_LIST_LITERAL) {
		gather_fail_list(source);
	}
}

/* Something inside what says whether there is another page. */
static void in_next(struct glue_gather *gather, struct gather_source *source, enum glue_json_event event)
{
	if (event == GLUE_JSON_CLOSE) {
		source->awaited = GATHER_NOTHING;
		if (gather->options.one_page)
			source->from = source->json.at - 1; /* its bracket */
		return;
	}
	source->more = true;
	source->awaited = GATHER_NEXT_CLOSE;
	glue_json_leave(&source->json, source->awaited_depth);
}

void gather_outside(struct glue_gather *gather, struct gather_source *source, enum glue_json_event event)
{
	if (source->awaited == GATHER_NEXT_INSIDE || source->awaited == GATHER_NEXT_CLOSE)
		in_next(gather, source, event);
	else if (event == GLUE_JSON_KEY)
		key(gather, source);
	else if (event == GLUE_JSON_VALUE)
		value(gather, source);
	else if (event == GLUE_JSON_SCALAR)
		scalar(gather, source);
	else
		source->depth--;
}
