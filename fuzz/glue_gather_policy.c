/* Any bytes as the list of one site among three, where parts of divided resources are put together and, of some sites, only what is known
 * is shown: what comes out is JSON and has all elements of the good ones; and as long as the bytes claim nothing of the divided resource of
 * the good ones, it is whole.
 *
 * The first byte says which site is the bad one, whether of its list only what is known is shown, whether sites are shown, and how much
 * of it is read before the answer begins; the second one how long the pieces are; the third one where in the text the connection breaks off
 * (0: nowhere). The rest is the text. */
#include "base/check.h"
#include "cross/cross.h"
#include "glue/gather.h"
#include "glue/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SITES = 3 };

#define A "01890000-0000-7000-8000-00000000000a"

static const struct str names[] = {STR_INIT("Site1"), STR_INIT("Site2"), STR_INIT("Site3")};
static const char *const good[] = {
	"{\"l\":[\"good-1\",{\"cheops-replica\":\"" A ";prime\",\"good\":\"good-2\",\"n\":1}]}",
	"{\"m\":[],\"l\":[{\"cheops-replica\":\"" A ";part\",\"n\":2},{\"good\":\"good-3\"}]}",
};

static void check_json(struct str text)
{
	struct glue_json *json = malloc(sizeof(*json));
	enum glue_json_event event;
	CHECK(json);
	glue_json_init(json, false);
	glue_json_feed(json, text);
	while ((event = glue_json_next(json)) != GLUE_JSON_MORE)
		CHECK(event != GLUE_JSON_BAD);
	glue_json_finish(json);
	while ((event = glue_json_next(json)) != GLUE_JSON_END)
		CHECK(event != GLUE_JSON_BAD);
	free(json);
}

static bool has(struct str text, const char *wanted)
{
	return text.length > 0 && memmem(text.at, text.length, wanted, strlen(wanted));
}

static bool knows(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES])
{
	(void)context;
	return id[GLUE_GATHER_ID_BYTES - 1] % 2 == 0;
}

static bool combine(void *context, struct glue_gather_part *parts, uint32_t count, struct buf *out, struct err *err)
{
	static const struct cross_rule rules[] = {{STR_INIT("/n"), CROSS_TOGETHER}, {STR_INIT("/u"), CROSS_UNION}};
	struct cross_part sides[SITES] = {0};
	struct cross_combined combined;
	(void)context;
	CHECK(count >= 1 && count <= SITES);
	for (uint32_t i = 0; i < count; i++) {
		check_json(parts[i].text);
		sides[i] = (struct cross_part){.site = names[parts[i].site], .body = parts[i].text};
	}
	if (cross_combine(rules, 2, sides, count, out, &combined, err) != 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		parts[i].left_out = sides[i].left_out;
		parts[i].why = sides[i].why;
	}
	return true;
}

static void expects(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES], bool sites[LIMIT_GATHER_SITES])
{
	(void)context;
	for (uint32_t i = 0; i < SITES; i++)
		sites[i] = id[0] % 2 == 1;
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

static void check(const struct glue_gather *gather, const struct feeding *feeding, struct str out)
{
	struct str why;
	check_json(out);
	CHECK(has(out, "\"good-1\"") && has(out, "\"good-3\""));
	for (uint32_t i = 0; i < SITES; i++)
		CHECK(i == feeding->bad || glue_gather_fault(gather, i, &why) == GLUE_GATHER_OK);
	if (!has(feeding->texts[feeding->bad], "cheops-replica"))
		CHECK(has(out, "\"good\":\"good-2\",\"n\":3}"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	struct feeding feeding = {.piece = data[1] ? data[1] : SIZE_MAX, .bad = data[0] % SITES, .cut = data[2] > 0};
	struct str text = str_make((const char *)data + 3, size - 3);
	if (feeding.cut && text.length > 0)
		text.length = data[2] * text.length / 256;
	for (uint32_t i = 0, next = 0; i < SITES; i++)
		feeding.texts[i] = i == feeding.bad ? text : str_of(good[next++]);
	struct glue_gather_options options = {.sites_count = SITES,
	                                      .list = STR("/l"),
	                                      .names = data[0] & 0x80 ? names : NULL,
	                                      .policy = {.knows = knows, .combine = combine, .expects = expects}};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	struct buf out = {0};
	for (uint32_t i = 0; i < SITES; i++)
		glue_gather_marked(gather, i);
	if (data[0] & 0x40)
		glue_gather_only(gather, feeding.bad);
	for (uint32_t i = 0; i < SITES; i++)
		while (glue_gather_wants(gather, i) && (i != feeding.bad || feeding.at[i] <= (data[0] & 0x20 ? SIZE_MAX : 64)))
			feed(gather, &feeding, i, &out);
	CHECK(out.length == 0);
	if (glue_gather_ready(gather) || feeding.bad > 0) {
		CHECK(glue_gather_begin(gather, &out));
		while (glue_gather_turn(gather) < SITES)
			feed(gather, &feeding, glue_gather_turn(gather), &out);
		check(gather, &feeding, buf_str(&out));
	}
	glue_gather_free(gather);
	buf_free(&out);
	return 0;
}
