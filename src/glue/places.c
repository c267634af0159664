#include "glue/places.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

struct glue_places {
	struct arena arena;
	struct glue_places_node root;
	uint32_t nodes_count;
};

/* One pointer, taken apart. */
struct pointer {
	struct str text;
	struct str segments[LIMIT_GLUE_SEGMENTS];
	bool any[LIMIT_GLUE_SEGMENTS];
	uint32_t segments_count;
	struct glue_places_node place; /* what is to be at its end */
};

struct glue_places *glue_places_new(void)
{
	struct glue_places *places = calloc(1, sizeof(*places));
	CHECK(places != NULL);
	arena_init(&places->arena, 1024);
	places->root.index = -1;
	return places;
}

void glue_places_free(struct glue_places *places)
{
	if (!places)
		return;
	arena_free(&places->arena);
	free(places);
}

/* ---- Walking ----------------------------------------------------------------------------------------------------- */

const struct glue_places_node *glue_places_root(const struct glue_places *places)
{
	return &places->root;
}

static uint64_t hint(struct str name)
{
	if (name.length == 0)
		return 1;
	size_t ends = (unsigned char)name.at[0] + (size_t)5 * (unsigned char)name.at[name.length - 1];
	return UINT64_C(1) << (ends + name.length) % 64;
}

static struct glue_places_node *find(const struct glue_places_node *node, struct str name)
{
	struct glue_places_node *found = NULL;
	if (node->hints & hint(name))
		for (found = node->below; found && !str_equal(found->name, name);)
			found = found->beside;
	return found;
}

const struct glue_places_node *glue_places_member(const struct glue_places_node *node, struct str name)
{
	const struct glue_places_node *found = find(node, name);
	return found ? found : node->any;
}

const struct glue_places_node *glue_places_element(const struct glue_places_node *node, uint32_t index)
{
	for (const struct glue_places_node *below = node->below; below; below = below->beside)
		if (below->index == (int64_t)index)
			return below;
	return node->any;
}

bool glue_places_path(const struct glue_places *places, struct str pointer,
                      const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1], uint32_t *count)
{
	const struct glue_places_node *node = &places->root;
	struct buf name = {0};
	*count = 0;
	path[(*count)++] = node;
	for (size_t at = 0; node && at < pointer.length;) {
		buf_clear(&name);
		for (at++; at < pointer.length && pointer.at[at] != '/'; at++) {
			bool escape = pointer.at[at] == '~' && at + 1 < pointer.length;
			at += escape;
			buf_put_char(&name, !escape ? pointer.at[at] : pointer.at[at] == '1' ? '/' : '~');
		}
		node = str_equal(buf_str(&name), STR("*")) ? NULL : glue_places_member(node, buf_str(&name));
		path[(*count)++] = node;
	}
	buf_free(&name);
	return node != NULL;
}

/* ---- Adding ------------------------------------------------------------------------------------------------------ */

/* An array's index: digits, no zero before them. */
static int64_t index_of(struct str name)
{
	int64_t index = 0;
	if (name.length == 0 || name.length > 9 || (name.at[0] == '0' && name.length > 1))
		return -1;
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] < '0' || name.at[i] > '9')
			return -1;
		index = 10 * index + (name.at[i] - '0');
	}
	return index;
}

/* Without ~0 and ~1. */
static int segment_decode(struct arena *arena, struct pointer *pointer, struct str segment, struct err *err)
{
	char *name = arena_copy(arena, segment.at, segment.length);
	size_t length = 0;
	for (size_t i = 0; i < segment.length; i++) {
		char c = segment.at[i];
		if (c == '~') {
			i++;
			if (i == segment.length || (segment.at[i] != '0' && segment.at[i] != '1'))
				return err_set(err, ERR_INVALID,
				               TEXT_NAME_FMT " is no JSON pointer: after `~` comes `0` (for `~`) or `1` (for `/`)",
				               TEXT_NAME(pointer->text));
			if (segment.at[i] == '1')
				c = '/';
		}
		name[length++] = c;
	}
	if (length > LIMIT_GLUE_MEMBER_BYTES)
		return err_set(err, ERR_LIMIT, TEXT_NAME_FMT " has a name of more than %d bytes", TEXT_NAME(pointer->text),
		               LIMIT_GLUE_MEMBER_BYTES);
	uint32_t level = pointer->segments_count++;
	pointer->any[level] = str_equal(segment, STR("*"));
	pointer->segments[level] = str_make(name, length);
	if (!pointer->any[level])
		pointer->place.names |= UINT32_C(0x80000000) >> level;
	return 0;
}

static int pointer_read(struct arena *arena, struct pointer *pointer, struct err *err)
{
	struct str text = pointer->text;
	if (text.length > 0 && text.at[0] != '/')
		return err_set(err, ERR_INVALID, TEXT_NAME_FMT " is no JSON pointer: it has to be empty, or begin with `/`",
		               TEXT_NAME(text));
	for (size_t at = 0; at < text.length;) {
		const char *from = text.at + at + 1;
		const char *slash = memchr(from, '/', text.length - at - 1);
		size_t length = slash ? (size_t)(slash - from) : text.length - at - 1;
		if (pointer->segments_count == LIMIT_GLUE_SEGMENTS)
			return err_set(err, ERR_LIMIT, TEXT_NAME_FMT " goes deeper than %d", TEXT_NAME(text), LIMIT_GLUE_SEGMENTS);
		int code = segment_decode(arena, pointer, str_make(from, length), err);
		if (code)
			return code;
		at += 1 + length;
	}
	return 0;
}

static struct glue_places_node *node_new(struct glue_places *places)
{
	places->nodes_count++;
	return arena_new(&places->arena, struct glue_places_node);
}

static struct glue_places_node *node_copy(struct glue_places *places, const struct glue_places_node *node)
{
	struct glue_places_node *copy = node_new(places);
	*copy = *node;
	struct glue_places_node **link = &copy->below;
	for (const struct glue_places_node *below = node->below; below; below = below->beside) {
		*link = node_copy(places, below);
		link = &(*link)->beside;
	}
	*link = NULL;
	copy->any = node->any ? node_copy(places, node->any) : NULL;
	return copy;
}

/* The node of a name, which has what `*` has. */
static struct glue_places_node *name_add(struct glue_places *places, struct glue_places_node *node, struct str name)
{
	struct glue_places_node *below = find(node, name);
	if (below)
		return below;
	below = node->any ? node_copy(places, node->any) : node_new(places);
	below->name = name;
	below->index = index_of(name);
	below->beside = node->below;
	node->below = below;
	node->hints |= hint(name);
	return below;
}

static void place_set(struct glue_places_node *node, const struct glue_places_node *place)
{
	if (node->is_place && node->names >= place->names)
		return;
	node->is_place = true;
	node->kind = place->kind;
	node->type = place->type;
	node->relation = place->relation;
	node->names = place->names;
}

static void add(struct glue_places *places, struct glue_places_node *node, const struct pointer *pointer, uint32_t at)
{
	/* Copies of what is below `*` may multiply. The caller looks at the count and refuses. */
	if (places->nodes_count > LIMIT_GLUE_PLACES_NODES)
		return;
	if (at == pointer->segments_count) {
		place_set(node, &pointer->place);
		return;
	}
	node->leads_on = true;
	if (!pointer->any[at]) {
		add(places, name_add(places, node, pointer->segments[at]), pointer, at + 1);
		return;
	}
	for (struct glue_places_node *below = node->below; below; below = below->beside)
		add(places, below, pointer, at + 1);
	if (!node->any) {
		node->any = node_new(places);
		node->any->index = -1;
	}
	add(places, node->any, pointer, at + 1);
}

/* What the same pointer was added as before; NULL: it was not. */
static const struct glue_places_node *same(const struct glue_places *places, const struct pointer *pointer)
{
	const struct glue_places_node *node = &places->root;
	for (uint32_t i = 0; node && i < pointer->segments_count; i++)
		node = pointer->any[i] ? node->any : find(node, pointer->segments[i]);
	return node && node->is_place && node->names == pointer->place.names ? node : NULL;
}

static int place_add(struct glue_places *places, struct str text, struct glue_places_node place, struct err *err)
{
	struct pointer pointer = {.text = text, .place = place};
	int code = pointer_read(&places->arena, &pointer, err);
	if (code)
		return code;
	const struct glue_places_node *before = same(places, &pointer);
	if (before && (before->kind != place.kind || before->type != place.type || before->relation != place.relation))
		return err_set(err, ERR_CONFLICT, TEXT_NAME_FMT " is already the place of something else", TEXT_NAME(text));
	add(places, &places->root, &pointer, 0);
	if (places->nodes_count > LIMIT_GLUE_PLACES_NODES)
		return err_set(err, ERR_LIMIT,
		               "with " TEXT_NAME_FMT " the pointers have more than %d parts; fewer `*` beside names would do",
		               TEXT_NAME(text), LIMIT_GLUE_PLACES_NODES);
	return 0;
}

int glue_places_add(struct glue_places *places, struct str pointer, enum glue_place_kind kind,
                    const struct glue_type *type, struct err *err)
{
	return place_add(places, pointer, (struct glue_places_node){.kind = kind, .type = type}, err);
}

int glue_places_add_reference(struct glue_places *places, struct str pointer, const struct glue_type *type,
                              enum glue_kind relation, struct err *err)
{
	struct glue_places_node place = {.kind = GLUE_PLACE_REFERENCE, .type = type, .relation = relation};
	return place_add(places, pointer, place, err);
}

/* ---- References -------------------------------------------------------------------------------------------------- */

static bool begins(struct str value, struct str with)
{
	return value.length >= with.length && memcmp(value.at, with.at, with.length) == 0;
}

size_t glue_reference_begin(struct str value)
{
	size_t host = begins(value, STR("http://")) ? 7 : begins(value, STR("https://")) ? 8 : 0;
	size_t at = value.length;
	while (host > 0 && at > host && value.at[at - 1] != '/')
		at--;
	return host > 0 && at > host && at < value.length ? at : 0;
}
