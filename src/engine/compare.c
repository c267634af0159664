/* Which copies are equal. Pure: what was read is in the arguments. */
#include "engine/verify.h"

#include "base/check.h"

static const char *const read_names[ENGINE_READS] = {[ENGINE_READ_HERE] = "here",
                                                     [ENGINE_READ_MISSING] = "missing",
                                                     [ENGINE_READ_UNSETTLED] = "not-settled",
                                                     [ENGINE_READ_FAILED] = "unknown"};
static const char *const verdict_names[ENGINE_VERDICTS] = {[ENGINE_SAME] = "same",
                                                           [ENGINE_DIFFERS] = "differs",
                                                           [ENGINE_MISSING] = "missing",
                                                           [ENGINE_NOT_SETTLED] = "not-settled",
                                                           [ENGINE_UNKNOWN] = "unknown"};

static const char *const facet_names[ENGINE_FACETS] = {
	[ENGINE_FACET_HERE] = "here", [ENGINE_FACET_NONE] = "none", [ENGINE_FACET_FAILED] = "unknown"};

const char *engine_facet_kind_name(enum engine_facet kind)
{
	return facet_names[kind];
}

const char *engine_read_name(enum engine_read kind)
{
	return read_names[kind];
}

const char *engine_verdict_name(enum engine_verdict verdict)
{
	return verdict_names[verdict];
}

/* ---- Who has seen as much? ------------------------------------------------------------------------------------------- */

static struct str next_part(struct str *session)
{
	const char *end = session->length > 0 ? memchr(session->at, ':', session->length) : NULL;
	struct str part = str_make(session->at, end ? (size_t)(end - session->at) : session->length);
	size_t taken = part.length + (end != NULL);
	*session = str_make(session->at + taken, session->length - taken);
	return part;
}

/* How many operations of a member it has seen. */
static uint64_t seen_of(struct str session, struct str site)
{
	while (session.length > 0) {
		struct str part = next_part(&session);
		uint64_t number = 0;
		if (part.length <= site.length || memcmp(part.at, site.at, site.length) != 0)
			continue;
		for (size_t i = site.length; i < part.length && part.at[i] >= '0' && part.at[i] <= '9'; i++)
			number = number * 10 + (uint64_t)(part.at[i] - '0');
		return number;
	}
	return 0;
}

/* Has `a` seen all that `b` has? */
static bool covers(struct str a, struct str b)
{
	while (b.length > 0) {
		struct str part = next_part(&b);
		const char *dot = part.length > 0 ? memchr(part.at, '.', part.length) : NULL;
		struct str site = str_make(part.at, dot ? (size_t)(dot - part.at) + 1 : 0);
		if (dot && seen_of(a, site) < seen_of(part, site))
			return false;
	}
	return true;
}

/* One that has seen all that any of them has. */
static uint32_t find_latest(const struct engine_reading *readings, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool all = readings[i].kind == ENGINE_READ_HERE || readings[i].kind == ENGINE_READ_MISSING;
		for (uint32_t k = 0; k < count && all; k++)
			all = covers(readings[i].session, readings[k].session);
		if (all)
			return i;
	}
	return count;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------------ */

static enum engine_verdict first_look(const struct engine_reading *reading, struct str latest)
{
	switch (reading->kind) {
	case ENGINE_READ_HERE:
	case ENGINE_READ_MISSING:
		if (!str_equal(reading->session, latest))
			return ENGINE_NOT_SETTLED;
		return reading->kind == ENGINE_READ_HERE ? ENGINE_SAME : ENGINE_MISSING;
	case ENGINE_READ_UNSETTLED: return ENGINE_NOT_SETTLED;
	default: return ENGINE_UNKNOWN;
	}
}

static uint32_t size_of_group(const struct engine_reading *readings, const enum engine_verdict *verdicts,
                              uint32_t count, uint32_t of)
{
	uint32_t size = 0;
	for (uint32_t i = 0; i < count; i++)
		size += verdicts[i] == ENGINE_SAME && str_equal(readings[i].digest, readings[of].digest);
	return size;
}

void engine_compare(const struct engine_reading *readings, uint32_t count, enum engine_verdict *verdicts,
                    uint32_t *reference, bool *tie)
{
	uint32_t latest = find_latest(readings, count), largest = 0;
	*reference = count;
	*tie = false;
	for (uint32_t i = 0; i < count; i++)
		verdicts[i] = first_look(&readings[i], latest < count ? readings[latest].session : STR(""));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = verdicts[i] == ENGINE_SAME ? size_of_group(readings, verdicts, count, i) : 0;
		bool other = *reference < count && !str_equal(readings[i].digest, readings[*reference].digest);
		if (size > largest) {
			*reference = i;
			largest = size;
			*tie = false;
		} else if (size > 0 && size == largest && other) {
			*tie = true;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (verdicts[i] == ENGINE_SAME && (*tie || !str_equal(readings[i].digest, readings[*reference].digest)))
			verdicts[i] = ENGINE_DIFFERS;
}

/* ---- Facets -------------------------------------------------------------------------------------------------------------- */

static bool is_read(const struct engine_facet_reading *reading)
{
	return reading && reading->kind != ENGINE_FACET_FAILED;
}

/* To have none is to be equal to who has none either. */
static bool facets_equal(const struct engine_facet_reading *a, const struct engine_facet_reading *b)
{
	return a->kind == b->kind && (a->kind != ENGINE_FACET_HERE || str_equal(a->digest, b->digest));
}

void engine_facets_compare(const struct engine_facet_reading *const *readings, uint32_t count,
                           enum engine_verdict *verdicts, uint32_t *reference, bool *tie)
{
	uint32_t largest = 0;
	*reference = count;
	*tie = false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = 0;
		for (uint32_t k = 0; k < count && is_read(readings[i]); k++)
			size += is_read(readings[k]) && facets_equal(readings[i], readings[k]);
		if (size > largest) {
			*reference = i;
			largest = size;
			*tie = false;
		} else if (size > 0 && size == largest && !facets_equal(readings[i], readings[*reference])) {
			*tie = true;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct engine_facet_reading *reading = readings[i];
		bool same = is_read(reading) && !*tie && facets_equal(reading, readings[*reference]);
		if (!reading || same)
			verdicts[i] = ENGINE_SAME;
		else if (reading->kind == ENGINE_FACET_FAILED)
			verdicts[i] = ENGINE_UNKNOWN;
		else
			verdicts[i] = reading->kind == ENGINE_FACET_NONE ? ENGINE_MISSING : ENGINE_DIFFERS;
	}
}

/* ---- What is shown ------------------------------------------------------------------------------------------------------ */

static bool has_word(struct str text, const char *word)
{
	size_t length = strlen(word);
	for (size_t i = 0; i + length <= text.length; i++)
		if (str_equal_nocase(str_make(text.at + i, length), str_make(word, length)))
			return true;
	return false;
}

/* By its name, or by that of what it is in. */
static bool is_secret(struct str pointer)
{
	static const char *const words[] = {"password",   "passwd",  "passphrase", "secret",  "token",
	                                    "credential", "private", "apikey",     "api_key", "api-key"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_word(pointer, words[i]))
			return true;
	return false;
}

void engine_value_show(struct str pointer, struct str value, struct buf *out)
{
	if (value.length == 0)
		return;
	if (is_secret(pointer)) {
		buf_put(out, STR("(not shown)"));
		return;
	}
	if (value.at[0] == '{' || value.at[0] == '[') {
		bool empty = value.length == 2;
		buf_put(out, value.at[0] == '{' ? (empty ? STR("{}") : STR("{...}")) : (empty ? STR("[]") : STR("[...]")));
		return;
	}
	struct str shown = utf8_truncate(value, LIMIT_ENGINE_SHOWN_BYTES);
	buf_put(out, shown);
	if (shown.length < value.length)
		buf_put(out, STR("..."));
}
