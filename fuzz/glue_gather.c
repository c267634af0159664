/* Any bytes as the list of one site among three: what comes out is JSON, and has all elements of the two good ones, whatever the bytes and
 * the pieces in which they come.
 *
 * And as the answer of a service whose agent marks replicas: with the marks taken out again it is what it was, and what the service itself
 * calls so is no mark.
 *
 * The first byte says which list pointer, which site is the bad one and whether sites are shown; the second one how long the pieces are; the
 * third one where in the text the connection breaks off (0: nowhere). The rest is the text. */
#include "base/check.h"
#include "glue/gather.h"
#include "glue/json.h"
#include "glue/places.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SITES = 3 };

static const char *const lists[] = {"/l", "", "/a/l", "/0/l"};
static const char *const good[][2] = {
	{"{\"l\":[\"good-1\",{\"good\":\"good-2\"}],\"m\":{}}", "{\"m\":[],\"l\":[{\"good\":\"good-3\"},[\"good-4\"]]}"},
	{"[\"good-1\",{\"good\":\"good-2\"}]", "[{\"good\":\"good-3\"},[\"good-4\"]]"},
	{"{\"a\":{\"l\":[\"good-1\",{\"good\":\"good-2\"}]}}",
     "{\"a\":{\"l\":[{\"good\":\"good-3\"},[\"good-4\"]]},\"b\":1}"},
	{"[{\"l\":[\"good-1\",{\"good\":\"good-2\"}]},2]", "[{\"l\":[{\"good\":\"good-3\"},[\"good-4\"]]}]"},
};

static void check_json(struct str text)
{
	struct glue_json *json = malloc(sizeof(*json));
	CHECK(json);
	glue_json_init(json, false);
	glue_json_feed(json, text);
	enum glue_json_event event;
	while ((event = glue_json_next(json)) != GLUE_JSON_MORE)
		CHECK(event != GLUE_JSON_BAD);
	glue_json_finish(json);
	while ((event = glue_json_next(json)) != GLUE_JSON_END)
		CHECK(event != GLUE_JSON_BAD);
	free(json);
}

/* The elements of the list where a reader looks for it: the last one of equal keys. Each good one has to be among them. */
static void check_elements(struct str text, struct str list)
{
	for (int i = 1; i <= 4; i++) {
		char wanted[24];
		snprintf(wanted, sizeof(wanted), "\"good-%d\"", i);
		CHECK(memmem(text.at, text.length, wanted, strlen(wanted)));
	}
	/* As the first of two sites again: its list is found, and nothing is there twice. */
	struct glue_gather_options options = {.sites_count = 1, .list = list};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	struct buf out = {0};
	struct str why;
	glue_gather_feed(gather, 0, text, &out);
	glue_gather_end(gather, 0, &out);
	CHECK(glue_gather_begin(gather, &out));
	CHECK(glue_gather_fault(gather, 0, &why) == GLUE_GATHER_OK);
	CHECK(str_equal(buf_str(&out), text));
	glue_gather_free(gather);
	buf_free(&out);
}

struct feeding {
	struct str texts[SITES];
	size_t at[SITES];
	size_t piece;
	uint32_t bad;
	bool cut;
};

static void feed(struct glue_gather *gather, struct feeding *feeding, uint32_t site, struct buf *out)
{
	struct str text = feeding->texts[site];
	size_t left = text.length - feeding->at[site];
	size_t length = left < feeding->piece ? left : feeding->piece;
	char *copy = malloc(length + 1);
	CHECK(copy);
	if (length > 0)
		memcpy(copy, text.at + feeding->at[site], length);
	feeding->at[site] += length;
	glue_gather_feed(gather, site, str_make(copy, length), out);
	free(copy);
	if (feeding->at[site] < text.length)
		return;
	if (site == feeding->bad && feeding->cut)
		glue_gather_fail(gather, site, out);
	else
		glue_gather_end(gather, site, out);
}

/* ---- Marks --------------------------------------------------------------------------------------------------------- */

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)context;
	bool found = place->kind == GLUE_PLACE_ID && str_equal(place->value, STR("7"));
	if (found)
		buf_put(value, STR("01890000-0000-7000-8000-00000000000a"));
	*quoted = true;
	return found;
}

static void splice(const struct glue_places *places, struct str list, struct str text, size_t piece, bool marks,
                   struct buf *out)
{
	struct glue_replacer replacer = {.replace = replace};
	struct glue_marker marker = {0};
	struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
	CHECK(!marks || glue_splicer_mark(splicer, list, &marker));
	for (size_t at = 0; at < text.length; at += piece < text.length - at ? piece : text.length - at)
		glue_splice(splicer, str_make(text.at + at, piece < text.length - at ? piece : text.length - at), out, NULL);
	glue_splice_end(splicer, out, NULL);
	glue_splicer_free(splicer);
}

/* One site alone: the text as it comes out, if it is a list. Each replica has another id, so that none is shown once for two. */
static bool alone(struct str list, struct str text, bool marked, struct buf *out)
{
	struct glue_gather *gather = glue_gather_new(&(struct glue_gather_options){.sites_count = 1, .list = list}, NULL);
	struct str why;
	if (marked)
		glue_gather_marked(gather, 0);
	glue_gather_feed(gather, 0, text, out);
	glue_gather_end(gather, 0, out);
	bool is_list = glue_gather_begin(gather, out) && glue_gather_fault(gather, 0, &why) == GLUE_GATHER_OK;
	glue_gather_free(gather);
	return is_list;
}

static void check_marks(struct str list, struct str text, size_t piece)
{
	struct glue_places *places = glue_places_new();
	struct buf id = {0}, plain = {0}, marked = {0}, expected = {0}, got = {0};
	buf_put(&id, list);
	buf_put(&id, STR("/*/id"));
	CHECK(glue_places_add(places, buf_str(&id), GLUE_PLACE_ID, NULL, NULL) == 0);
	splice(places, list, text, piece, false, &plain);
	splice(places, list, text, piece, true, &marked);
	bool is_list = alone(list, buf_str(&plain), false, &expected);
	CHECK(alone(list, buf_str(&marked), true, &got) == is_list);
	/* All replicas have one id here: where there are two, one is shown. */
	const char *first = plain.length > 0 ? memmem(plain.at, plain.length, "00000000000a", 12) : NULL;
	bool several = first && memmem(first + 1, plain.length - (size_t)(first + 1 - plain.at), "00000000000a", 12);
	bool bom = text.length > 0 && text.at[0] == '\xef'; /* only where marks are made are ids looked for behind one */
	CHECK(!is_list || several || bom || str_equal(buf_str(&expected), buf_str(&got)));
	buf_free(&id);
	buf_free(&plain);
	buf_free(&marked);
	buf_free(&expected);
	buf_free(&got);
	glue_places_free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct str names[] = {STR_INIT("Site1"), STR_INIT("Site2"), STR_INIT("Site3")};
	if (size < 3)
		return 0;
	uint32_t which = data[0] % 4;
	struct feeding feeding = {.piece = data[1] ? data[1] : SIZE_MAX, .bad = data[0] / 4 % SITES, .cut = data[2] > 0};
	struct str text = str_make((const char *)data + 3, size - 3);
	if (feeding.cut && text.length > 0)
		text.length = data[2] * text.length / 256;
	for (uint32_t i = 0, next = 0; i < SITES; i++)
		feeding.texts[i] = i == feeding.bad ? text : str_of(good[which][next++]);
	struct glue_gather_options options = {.sites_count = SITES,
	                                      .list = str_of(lists[which]),
	                                      .next = STR("/n/x"),
	                                      .one_page = data[0] & 0x20,
	                                      .names = data[0] & 0x80 ? names : NULL};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	struct buf out = {0};
	glue_gather_marked(gather, feeding.bad);
	/* A part of it beforehand, so that faults show before and after the answer began. */
	for (uint32_t i = 0; i < SITES; i++)
		while (glue_gather_wants(gather, i) && (i != feeding.bad || feeding.at[i] <= (data[0] & 0x40 ? SIZE_MAX : 64)))
			feed(gather, &feeding, i, &out);
	CHECK(out.length == 0);
	if (glue_gather_ready(gather) || feeding.bad > 0) {
		CHECK(glue_gather_begin(gather, &out));
		while (glue_gather_turn(gather) < SITES)
			feed(gather, &feeding, glue_gather_turn(gather), &out);
		check_json(buf_str(&out));
		check_elements(buf_str(&out), options.list);
	}
	glue_gather_free(gather);
	buf_free(&out);
	check_marks(options.list, text, feeding.piece);
	return 0;
}
