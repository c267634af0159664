/* Rewrites bodies as they pass: a scanner reads the text, a walk through the places says which values are of interest, and
 * all bytes but those of replaced values are copied as they came.
 *
 *   fed       {"id": "loc    al-1", "size": 0.10}
 *             └─ copied ─┘
 *   the scanner keeps  "loc    al-1"  until the value has ended; then the replacer is asked:
 *   written   {"id": "meta-1", "size": 0.10}
 *
 * Only a value in a place is held back, and only until it ends or is too long to be an id. When the text turns out to be no
 * JSON, what is held is written, the error is told once, and the rest passes unread: what a service and its user say to each
 * other is not ours to refuse.
 *
 * A body may be any number of texts: those of a watch follow each other, a line each. The pointers begin anew with each. It
 * need not be told beforehand which kind it is: one text is one of them, and an empty body is none.
 *
 * Marks (gather.h): the mark of an element stands at its beginning, and its id may stand at its end. So all but the first byte of an
 * element is held back until it is whole, in `tail`.
 */
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

/* An object or array of interest that is open. */
struct around {
	const struct glue_places_node *node;
	uint32_t next_index; /* of an array: the next element's */
};

struct glue_splicer {
	const struct glue_places *places;
	struct glue_replacer replacer;
	struct around around[LIMIT_GLUE_SEGMENTS]; /* those inside have no place below, and are skipped */
	uint32_t depth;
	const struct glue_places_node *member; /* whose KEY was told last */
	const struct glue_places_node *held;   /* the value that is being held back; NULL: none is */
	bool passing;                          /* all is copied unread */
	uint8_t bom;                           /* bytes of a byte order mark that were seen; 3: no more of it comes */
	/* marks: */
	const struct glue_places_node *list; /* whose elements are marked; NULL: none are */
	struct glue_marker marker;
	uint32_t element; /* depth inside the element that is being held back; 0: none is */
	struct buf tail;
	struct buf mark;
	struct buf id, within; /* of the element, where both are needed for its mark */
	struct buf scratch;
	struct buf value;
	struct glue_json json;
};

struct glue_splicer *glue_splicer_new(const struct glue_places *places, const struct glue_replacer *replacer)
{
	struct glue_splicer *splicer = malloc(sizeof(*splicer));
	CHECK(splicer != NULL);
	memset(splicer, 0, offsetof(struct glue_splicer, json));
	splicer->places = places;
	splicer->replacer = *replacer;
	splicer->passing = places == NULL;
	glue_json_init(&splicer->json, true);
	return splicer;
}

void glue_splicer_free(struct glue_splicer *splicer)
{
	if (!splicer)
		return;
	buf_free(&splicer->scratch);
	buf_free(&splicer->value);
	buf_free(&splicer->tail);
	buf_free(&splicer->mark);
	buf_free(&splicer->id);
	buf_free(&splicer->within);
	free(splicer);
}

bool glue_splicer_mark(struct glue_splicer *splicer, struct str list, const struct glue_marker *marker)
{
	const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1];
	uint32_t count;
	if (!splicer->places || !glue_places_path(splicer->places, list, path, &count))
		return false;
	splicer->list = path[count - 1];
	splicer->marker = *marker;
	return true;
}

/* ---- The walk ---------------------------------------------------------------------------------------------------- */

static void key(struct glue_splicer *splicer)
{
	struct glue_json *json = &splicer->json;
	const struct glue_places_node *node = splicer->around[splicer->depth - 1].node;
	struct str name;
	/* No name in a pointer is as long as that, or is no text. */
	if (!json->overlong && json->token.length <= LIMIT_GLUE_VALUE_BYTES &&
	    glue_json_string(json->token, json->escaped, &splicer->scratch, &name))
		splicer->member = glue_places_member(node, name);
	else
		splicer->member = node->any;
	if (!splicer->member)
		glue_json_skip(json);
}

static const struct glue_places_node *node_of_value(struct glue_splicer *splicer)
{
	if (splicer->json.in_object)
		return splicer->member;
	if (!splicer->json.in_array)
		return glue_places_root(splicer->places);
	struct around *array = &splicer->around[splicer->depth - 1];
	uint32_t index = array->next_index;
	array->next_index += index < UINT32_MAX; /* of a stream without end; no pointer goes that far */
	return glue_places_element(array->node, index);
}

/* A value begins. Returns true if it is to be held back; of an element, all but the first byte. */
static bool value(struct glue_splicer *splicer)
{
	struct glue_json *json = &splicer->json;
	const struct glue_places_node *node = node_of_value(splicer);
	bool is_container = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	if (node && is_container && node->leads_on) {
		bool marked = splicer->list && json->kind == GLUE_JSON_OBJECT && json->in_array &&
		              splicer->around[splicer->depth - 1].node == splicer->list;
		splicer->around[splicer->depth++] = (struct around){.node = node};
		splicer->element = marked ? splicer->depth : splicer->element;
		return marked;
	}
	if (node && node->is_place && (json->kind == GLUE_JSON_STRING || json->kind == GLUE_JSON_NUMBER)) {
		splicer->held = node;
		return true;
	}
	glue_json_skip(json);
	return false;
}

/* ---- Marks ------------------------------------------------------------------------------------------------------- */

static const struct str mark_name = STR_INIT("\"cheops-replica\"");

/* Its id and what it is in stand anywhere in it: both are known now. */
static void mark_within(struct glue_splicer *splicer)
{
	struct glue_place place = {.kind = GLUE_PLACE_ID, .value = buf_str(&splicer->id), .quoted = true};
	if (splicer->id.length > 0)
		splicer->marker.mark(splicer->marker.context, &place, buf_str(&splicer->within), &splicer->mark);
	buf_clear(&splicer->id);
	buf_clear(&splicer->within);
}

/* The element is whole, or is not going to be: what was held goes out, behind its mark. One that the service itself put there is no
 * mark, and gets one before it that says so. */
static void element_ends(struct glue_splicer *splicer, bool is_whole, struct buf *out)
{
	struct str tail = buf_str(&splicer->tail);
	size_t first = 0;
	if (splicer->marker.within)
		mark_within(splicer);
	while (first < tail.length && memchr(" \t\n\r", tail.at[first], 4))
		first++;
	bool empty = first < tail.length && tail.at[first] == '}';
	bool forged =
		tail.length - first >= mark_name.length && memcmp(tail.at + first, mark_name.at, mark_name.length) == 0;
	if (forged || (is_whole && splicer->mark.length > 0)) {
		buf_put(out, mark_name);
		buf_put_char(out, ':');
		glue_json_put_string(out, is_whole ? buf_str(&splicer->mark) : STR(""));
		if (!empty)
			buf_put_char(out, ',');
	}
	buf_put(out, tail);
	buf_clear(&splicer->tail);
	buf_clear(&splicer->mark);
	splicer->element = 0;
}

/* Where bytes go. */
static struct buf *target(struct glue_splicer *splicer, struct buf *out)
{
	return splicer->element > 0 ? &splicer->tail : out;
}

/* ---- Replacing --------------------------------------------------------------------------------------------------- */

/* The first id of an element, and its reference to what it is in. */
static void note_within(struct glue_splicer *splicer, const struct glue_place *place)
{
	struct buf *kept = place->kind == GLUE_PLACE_ID ? &splicer->id : &splicer->within;
	if (place->kind == GLUE_PLACE_ID || (place->kind == GLUE_PLACE_REFERENCE && place->type == splicer->marker.within))
		if (kept->length == 0)
			buf_put(kept, place->value);
}

static void put_behind(struct str front, struct str id, struct buf *out)
{
	struct buf url = {0};
	buf_put(&url, front);
	buf_put(&url, id);
	glue_json_put_string(out, buf_str(&url));
	buf_free(&url);
}

/* What was held has ended, and is the scanner's token. */
static void replace(struct glue_splicer *splicer, struct buf *out)
{
	const struct glue_json *json = &splicer->json;
	struct glue_place place = {
		.kind = splicer->held->kind,
		.type = splicer->held->type,
		.relation = splicer->held->relation,
		.value = json->token,
		.quoted = json->kind == GLUE_JSON_STRING,
		.at = json->token_at,
		.length = json->token.length,
	};
	bool quoted = place.quoted;
	/* A name is told whatever its length, where it is in one piece: who keeps names unique has to refuse it. */
	bool is_told = json->token.length <= LIMIT_GLUE_VALUE_BYTES || place.kind == GLUE_PLACE_NAME;
	bool is_text =
		is_told && (!place.quoted || glue_json_string(json->token, json->escaped, &splicer->scratch, &place.value));
	struct str whole = place.value;
	size_t before = is_text && place.quoted && place.kind == GLUE_PLACE_REFERENCE ? glue_reference_begin(whole) : 0;
	place.value = str_make(whole.at + before, whole.length - before);
	splicer->held = NULL;
	buf_clear(&splicer->value);
	bool later = splicer->marker.within != NULL;
	bool marks = is_text && splicer->element > 0 && place.kind == GLUE_PLACE_ID && splicer->mark.length == 0 && !later;
	if (later && is_text && splicer->element > 0)
		note_within(splicer, &place);
	if (marks && splicer->marker.mark)
		splicer->marker.mark(splicer->marker.context, &place, STR(""), &splicer->mark);
	if (!is_text || !splicer->replacer.replace(splicer->replacer.context, &place, &splicer->value, &quoted)) {
		buf_put(out, json->token);
		return;
	}
	if (marks && splicer->mark.length == 0)
		buf_put(&splicer->mark, buf_str(&splicer->value));
	/* Whatever the replacer says, the text stays JSON. */
	struct str text = buf_str(&splicer->value);
	if (before > 0)
		put_behind(str_make(whole.at, before), text, out);
	else if (quoted || !glue_json_is_number(text))
		glue_json_put_string(out, text);
	else
		buf_put(out, text);
}

/* The value is too long to be an id, or there is no more to come: what was kept of it is written after all. */
static void let_go(struct glue_splicer *splicer, struct buf *out)
{
	if (!splicer->held)
		return;
	buf_put(out, str_make(splicer->json.kept, splicer->json.kept_length));
	splicer->held = NULL;
}

/* ---- Feeding ----------------------------------------------------------------------------------------------------- */

static void bad(struct glue_splicer *splicer, const char *copied, struct buf *out)
{
	let_go(splicer, target(splicer, out));
	buf_put(target(splicer, out), str_make(copied, (size_t)(splicer->json.end - copied)));
	if (splicer->element > 0)
		element_ends(splicer, false, out);
	splicer->passing = true;
}

/* Goes through what the scanner was fed. `copied`: up to where the piece is written, or held back. */
static int run(struct glue_splicer *splicer, const char *copied, struct buf *out, struct err *err)
{
	struct glue_json *json = &splicer->json;
	for (;;) {
		struct buf *to = target(splicer, out);
		switch (glue_json_next(json)) {
		case GLUE_JSON_KEY: key(splicer); break;
		case GLUE_JSON_VALUE:
			if (value(splicer)) {
				const char *from = splicer->held ? json->token_from : json->at;
				buf_put(to, str_make(copied, (size_t)(from - copied)));
				copied = from;
			}
			break;
		case GLUE_JSON_SCALAR:
			if (json->overlong) {
				let_go(splicer, to);
				break;
			}
			replace(splicer, to);
			copied = json->at;
			break;
		case GLUE_JSON_CLOSE:
			if (splicer->element > 0 && splicer->depth == splicer->element) {
				buf_put(to, str_make(copied, (size_t)(json->at - copied)));
				copied = json->at;
				element_ends(splicer, true, out);
			}
			splicer->depth--;
			break;
		case GLUE_JSON_MORE:
			if (splicer->held && !json->overlong)
				return 0;
			if (splicer->held)
				glue_json_skip(json);
			let_go(splicer, to);
			buf_put(to, str_make(copied, (size_t)(json->end - copied)));
			if (splicer->tail.length > LIMIT_GATHER_ELEMENT_BYTES)
				element_ends(splicer, false, out); /* nobody will take it */
			return 0;
		case GLUE_JSON_END: return 0;
		case GLUE_JSON_BAD: bad(splicer, copied, out); return glue_json_complain(json, err);
		}
	}
}

/* A byte order mark is no JSON, but who puts lists together passes it over: what follows it must have no marks but ours. Returns what is
 * behind it. */
static struct str skip_mark(struct glue_splicer *splicer, struct str bytes, struct buf *out)
{
	static const char mark[] = "\xef\xbb\xbf";
	while (splicer->bom < 3 && bytes.length > 0) {
		if (bytes.at[0] != mark[splicer->bom]) {
			splicer->bom = 3;
			break;
		}
		buf_put_char(out, mark[splicer->bom++]);
		bytes = str_make(bytes.at + 1, bytes.length - 1);
	}
	return bytes;
}

int glue_splice(struct glue_splicer *splicer, struct str bytes, struct buf *out, struct err *err)
{
	if (splicer->list && splicer->bom < 3)
		bytes = skip_mark(splicer, bytes, out);
	if (splicer->passing) {
		buf_put(out, bytes);
		return 0;
	}
	glue_json_feed(&splicer->json, bytes);
	return run(splicer, splicer->json.piece, out, err);
}

int glue_splice_end(struct glue_splicer *splicer, struct buf *out, struct err *err)
{
	if (splicer->passing)
		return 0;
	glue_json_finish(&splicer->json);
	return run(splicer, splicer->json.piece, out, err);
}
