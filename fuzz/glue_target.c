/* Any bytes as a target or a link: who replaces nothing gets what he gave, places lie inside the text, and an id that was
 * put in is found again where it was put. And as a natural name: the query that looks for it has that name in it, and nothing else.
 *
 * The first byte says which service it is and how much is replaced; the rest is the text. */
#include "base/check.h"
#include "base/percent.h"
#include "glue/glue_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char description[] =
	"format: 1\n"
	"application: fuzz\n"
	"services: {image: {under: [/image, /a/b]}, compute: , '*': }\n"
	"types:\n"
	"  image.image:\n"
	"    collection: /v2/images\n"
	"    item: '/v2/images/{id}'\n"
	"    name: /name\n"
	"    unique: true\n"
	"    find: 'name={name}&all=1'\n"
	"    references: {query: {member: image.image, 'of server': compute.server}}\n"
	"    operations: {file: {method: PUT, path: '{item}/file', effect: replace, facet: file, body: opaque}}\n"
	"  compute.server:\n"
	"    collection: ['/{version}/servers', '/{version}/hosts/{host}/servers']\n"
	"    item: ['/{version}/servers/{id}', '/{version}/hosts/{host}/servers/{id}']\n"
	"    references: {query: {image: image.image}, path: {host: image.image}}\n"
	"  '*.{things}': {collection: '/{things}', item: '/{things}/{id}'}\n";

struct asker {
	struct str texts[2]; /* the one in which a place is, unless it is in the other */
	struct buf values;   /* of all places, as they are afterwards */
	uint32_t replaces;   /* a bit per place */
};

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct asker *asker = context;
	CHECK(place->kind == GLUE_PLACE_ID || place->kind == GLUE_PLACE_REFERENCE);
	CHECK(place->quoted && *quoted && value->length == 0 && place->value.length <= place->length);
	CHECK(place->at + place->length <= asker->texts[0].length || place->at + place->length <= asker->texts[1].length);
	bool replaced = asker->replaces & 1;
	asker->replaces >>= 1;
	if (replaced)
		buf_put(value, STR("m \xc3\xa9?"));
	buf_put(&asker->values, replaced ? STR("m \xc3\xa9?") : place->value);
	buf_put_char(&asker->values, ';');
	return replaced;
}

/* Splices as `splice` says, with nothing replaced, with something, and what came of that once more. */
static void check(void (*splice)(struct asker *asker, struct str text, struct buf *out), uint32_t replaces,
                  struct str text)
{
	struct asker nothing = {0}, something = {.replaces = replaces}, again = {0};
	struct buf same = {0}, out = {0}, out_again = {0};
	splice(&nothing, text, &same);
	CHECK(str_equal(buf_str(&same), text));
	splice(&something, text, &out);
	CHECK(replaces || str_equal(buf_str(&out), text));
	splice(&again, buf_str(&out), &out_again);
	CHECK(str_equal(buf_str(&out), buf_str(&out_again)));
	CHECK(str_equal(buf_str(&something.values), buf_str(&again.values)));
	buf_free(&nothing.values);
	buf_free(&something.values);
	buf_free(&again.values);
	buf_free(&same);
	buf_free(&out);
	buf_free(&out_again);
}

static const struct glue *glue;
static struct str service;

static void splice_link(struct asker *asker, struct str text, struct buf *out)
{
	struct glue_replacer replacer = {asker, replace};
	asker->texts[0] = asker->texts[1] = text;
	glue_splice_link(glue, service, text, &replacer, out);
}

static void splice_target(struct asker *asker, struct str text, struct buf *out)
{
	struct glue_replacer replacer = {asker, replace};
	struct glue_match match;
	const char *mark = text.length > 0 ? memchr(text.at, '?', text.length) : NULL;
	struct glue_request request = {.service = service, .method = STR("GET"), .path = text, .query = STR("")};
	if (mark) {
		request.path.length = (size_t)(mark - text.at);
		request.query = str_make(mark + 1, text.length - request.path.length - 1);
	}
	asker->texts[0] = request.path;
	asker->texts[1] = request.query;
	if ((mark && request.query.length == 0) || !glue_match(glue, &request, &match))
		buf_put(out, text);
	else
		glue_splice_target(&match, &request, &replacer, out);
}

static void check_find(struct str name)
{
	static const struct str before = STR_INIT("name="), behind = STR_INIT("&all=1");
	struct buf query = {0};
	struct arena arena;
	struct str again;
	arena_init(&arena, 0);
	CHECK(glue_type_find_put(&glue->types[0], name, &query));
	CHECK(query.length >= before.length + behind.length);
	struct str put = str_make(query.at + before.length, query.length - before.length - behind.length);
	CHECK(str_equal(str_make(put.at + put.length, behind.length), behind));
	for (size_t i = 0; i < put.length; i++)
		CHECK(put.at[i] > ' ' && put.at[i] < 0x7f && !strchr("&=+#?/", put.at[i]));
	CHECK(percent_decode(&arena, put, &again) && str_equal(again, name));
	arena_free(&arena);
	buf_free(&query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const services[] = {"image", "compute", "other"};
	struct glue_options options = {.path = "fuzz.yaml", .hash_key = {1, 2}};
	struct glue *read = NULL;
	if (size == 0)
		return 0;
	if (!glue) {
		CHECK(glue_read(&read, str_of(description), &options, NULL) == 0);
		glue = read; /* for ever: it is always the same */
	}
	struct str text = size > 1 ? str_make((const char *)data + 1, size - 1) : STR("");
	service = str_of(services[data[0] % COUNT(services)]);
	check(splice_link, data[0] / COUNT(services), text);
	check(splice_target, data[0] / COUNT(services), text);
	check_find(text);
	return 0;
}
