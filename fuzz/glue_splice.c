/* Any bytes as a body: pieces make no difference, who replaces nothing gets what he gave, and what is JSON and where the
 * places are is what jansson and a naive walk through its tree say; in canonical form it means the same.
 *
 * The first byte says how large the pieces are and which pointers are looked for; the rest is the body. */
#include "base/check.h"
#include "glue/json.h"
#include "glue/places.h"

#include <jansson.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { POINTERS = 6, PIECES = 16 };

/* Each of another kind than those that may fit the same value. */
static const char *const pointers[][POINTERS] = {
	{"/id", "/name", "/links/*", "/*/0/a"},
	{"", "/*", "/a/*", "/*/b", "/a/b", "/*/*"},
	{"/*/*/a", "/a/*/b", "/a/0/*", "/0/1/2"},
	{"/servers/*/id", "/servers/*/links/*/href", "/a~1b/~0", "/"},
};

static enum glue_place_kind kind_of(size_t pointer)
{
	return (enum glue_place_kind)(pointer % 4);
}

static struct glue_places *places_make(const char *const set[POINTERS])
{
	struct glue_places *places = glue_places_new();
	for (size_t i = 0; i < POINTERS && set[i]; i++)
		CHECK(glue_places_add(places, str_of(set[i]), kind_of(i), NULL, NULL) == 0);
	return places;
}

/* ---- The splicer --------------------------------------------------------------------------------------------------- */

struct asker {
	struct str text;
	struct buf strings; /* kind and value of each place that is a string */
	size_t end;         /* of the last place */
	bool refuses;
};

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct asker *asker = context;
	CHECK(place->at >= asker->end && place->length > 0 && place->length <= asker->text.length - place->at);
	CHECK(place->quoted == (asker->text.at[place->at] == '"') && value->length == 0 && *quoted == place->quoted);
	asker->end = place->at + place->length;
	if (place->quoted)
		buf_printf(&asker->strings, "%d %zu:", place->kind, place->value.length);
	if (place->quoted)
		buf_put(&asker->strings, place->value);
	buf_put(value, place->value);
	buf_put(value, STR("\"0")); /* unquoted it would be no number: a string in any case */
	*quoted = place->quoted;
	return !asker->refuses;
}

static int splice(struct asker *asker, const struct glue_places *places, size_t piece, struct buf *out, struct err *err)
{
	struct glue_replacer replacer = {asker, replace};
	struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
	int code = 0;
	buf_clear(&asker->strings);
	asker->end = 0;
	for (size_t at = 0; at < asker->text.length; at += piece) {
		size_t left = asker->text.length - at;
		int now =
			glue_splice(splicer, str_make(asker->text.at + at, left < piece ? left : piece), out, code ? NULL : err);
		CHECK(code == 0 || now == 0);
		code = code ? code : now;
	}
	int now = glue_splice_end(splicer, out, code ? NULL : err);
	CHECK(code == 0 || now == 0);
	glue_splicer_free(splicer);
	return code ? code : now;
}

static int scan(struct str text, bool many)
{
	struct glue_json json;
	enum glue_json_event event;
	glue_json_init(&json, many);
	glue_json_feed(&json, text);
	do {
		event = glue_json_next(&json);
		if (event == GLUE_JSON_MORE)
			glue_json_finish(&json);
	} while (event != GLUE_JSON_END && event != GLUE_JSON_BAD);
	return event == GLUE_JSON_END ? 0 : glue_json_complain(&json, NULL);
}

static void check_pieces(struct asker *asker, const struct glue_places *places, size_t piece)
{
	struct buf whole = {0}, parts = {0}, same = {0}, strings = {0};
	struct err a = {0}, b = {0};
	int code = splice(asker, places, asker->text.length + 1, &whole, &a);
	buf_put(&strings, buf_str(&asker->strings));
	CHECK(splice(asker, places, piece, &parts, &b) == code);
	CHECK(str_equal(buf_str(&whole), buf_str(&parts)) && strcmp(a.text, b.text) == 0);
	CHECK(str_equal(buf_str(&strings), buf_str(&asker->strings)));
	CHECK((code != 0) == (a.text[0] != '\0'));
	CHECK(scan(buf_str(&whole), true) == code); /* what was JSON still is */
	asker->refuses = true;
	CHECK(splice(asker, places, piece, &same, NULL) == code);
	CHECK(str_equal(buf_str(&same), asker->text));
	buf_free(&whole);
	buf_free(&parts);
	buf_free(&same);
	buf_free(&strings);
}

/* ---- Another opinion ------------------------------------------------------------------------------------------------ */

/* One segment of a pointer against a name: true if it fits. Moves *pointer behind it. */
static bool segment_fits(const char **pointer, struct str name, bool *by_name)
{
	const char *at = *pointer + 1; /* behind the slash */
	size_t length = strcspn(at, "/"), used = 0;
	*pointer = at + length;
	*by_name = !(length == 1 && at[0] == '*');
	if (!*by_name)
		return true;
	for (size_t i = 0; i < length; i++, used++) {
		char c = at[i] == '~' ? (at[++i] == '0' ? '~' : '/') : at[i];
		if (used == name.length || name.at[used] != c)
			return false;
	}
	return used == name.length;
}

struct walk {
	const char *const *set;
	struct str path[LIMIT_GLUE_NESTING + 1];
	size_t depth;
	struct buf *strings;
};

/* The pointer that fits the path best; -1: none does. */
static int best_pointer(const struct walk *walk)
{
	int best = -1;
	uint32_t best_names = 0;
	for (size_t i = 0; i < POINTERS && walk->set[i]; i++) {
		const char *at = walk->set[i];
		uint32_t names = 0;
		bool fits = true, by_name;
		for (size_t level = 0; fits && level < walk->depth; level++) {
			fits = *at == '/' && segment_fits(&at, walk->path[level], &by_name);
			names = fits ? names << 1 | by_name : names;
		}
		if (fits && *at == '\0' && (best < 0 || names > best_names)) {
			best = (int)i;
			best_names = names;
		}
	}
	return best;
}

/* Of a reference that is a URL: its last segment, where it has one. */
static struct str id_of(struct str text)
{
	size_t host = text.length >= 7 && memcmp(text.at, "http://", 7) == 0    ? 7
	              : text.length >= 8 && memcmp(text.at, "https://", 8) == 0 ? 8
	                                                                        : 0;
	size_t slash = 0;
	for (size_t i = host; host > 0 && i < text.length; i++)
		slash = text.at[i] == '/' ? i : slash;
	bool has_id = slash > 0 && slash + 1 < text.length;
	return has_id ? str_make(text.at + slash + 1, text.length - slash - 1) : text;
}

static void visit(struct walk *walk, json_t *value)
{
	const char *key;
	size_t index, length;
	json_t *inner;
	if (json_is_string(value) && best_pointer(walk) >= 0) {
		struct str text = {json_string_value(value), json_string_length(value)};
		enum glue_place_kind kind = kind_of((size_t)best_pointer(walk));
		text = kind == GLUE_PLACE_REFERENCE ? id_of(text) : text;
		buf_printf(walk->strings, "%d %zu:", kind, text.length);
		buf_put(walk->strings, text);
	}
	json_object_keylen_foreach(value, key, length, inner)
	{
		walk->path[walk->depth++] = str_make(key, length);
		visit(walk, inner);
		walk->depth--;
	}
	json_array_foreach(value, index, inner)
	{
		char name[24];
		int written = snprintf(name, sizeof(name), "%zu", index);
		walk->path[walk->depth++] = str_make(name, (size_t)written);
		visit(walk, inner);
		walk->depth--;
	}
}

static bool has_half_pair(struct str text)
{
	for (size_t i = 0; i + 3 < text.length; i++)
		if (memcmp(text.at + i, "\\u", 2) == 0 && (text.at[i + 2] | 0x20) == 'd' && text.at[i + 3] > '7')
			return true;
	return false;
}

/* Jansson wants numbers that fit into a double, and no half of a surrogate pair, and no NUL in a key. */
static void check_jansson(struct asker *asker, const char *const set[POINTERS])
{
	json_error_t error;
	if (memchr(asker->text.at, '\0', asker->text.length)) { /* for jansson the end */
		CHECK(scan(asker->text, false) != 0);
		return;
	}
	json_t *tree = json_loadb(asker->text.at, asker->text.length,
	                          JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
	int code = scan(asker->text, false);
	if (tree) {
		CHECK(code == 0 || code == ERR_LIMIT);
	} else {
		enum json_error_code why = json_error_code(&error);
		CHECK(code != 0 || why == json_error_numeric_overflow || why == json_error_null_byte_in_key ||
		      has_half_pair(asker->text));
	}
	json_decref(tree);
	if (code != 0 || asker->text.length > LIMIT_GLUE_VALUE_BYTES)
		return;
	tree = json_loadb(asker->text.at, asker->text.length,
	                  JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &error);
	if (!tree)
		return;
	struct buf strings = {0};
	struct walk walk = {.set = set, .strings = &strings};
	visit(&walk, tree);
	CHECK(str_equal(buf_str(&strings), buf_str(&asker->strings)));
	buf_free(&strings);
	json_decref(tree);
}

/* The canonical form means the same, is its own canonical form, and is there for all that is JSON. */
static void check_canonical(struct str text, const struct glue_places *places)
{
	enum { FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES };
	struct glue_places *none = glue_places_new();
	struct buf once = {0}, twice = {0}, less = {0};
	int code = glue_places_without(none, text, &once, NULL);
	CHECK(code == scan(text, false));
	CHECK(code == glue_places_without(places, text, &less, NULL) && less.length <= once.length);
	if (code == 0) {
		CHECK(once.length <= text.length);
		CHECK(less.length == 0 || scan(buf_str(&less), false) == 0); /* nothing: the whole text is in a place */
		CHECK(glue_places_without(none, buf_str(&once), &twice, NULL) == 0);
		CHECK(str_equal(buf_str(&once), buf_str(&twice)));
		json_t *before = json_loadb(text.at, text.length, FLAGS, NULL);
		json_t *after = json_loadb(once.at, once.length, FLAGS, NULL);
		CHECK((before && after) ? json_equal(before, after) : before == after);
		json_decref(before);
		json_decref(after);
	} else {
		CHECK(once.length == 0 && less.length == 0);
	}
	buf_free(&once);
	buf_free(&twice);
	buf_free(&less);
	glue_places_free(none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *const *set = pointers[data[0] / PIECES % COUNT(pointers)];
	struct glue_places *places = places_make(set);
	struct asker asker = {.text = size > 1 ? str_make((const char *)data + 1, size - 1) : STR("")};
	check_pieces(&asker, places, data[0] % PIECES + 1);
	check_jansson(&asker, set);
	check_canonical(asker.text, places);
	buf_free(&asker.strings);
	glue_places_free(places);
	return 0;
}
