/* Records that this site lacks: asked for from whoever told of them, a few at a time.
 *
 * - A rumour, or a comparison of tables, tells of a version that we do not have: it is queued with who told.
 * - As many as SITE_WANTS_ASKED are under way. Each one that comes makes room for the next: the speed is that of the path.
 * - One that does not come in time is asked for once more, elsewhere, then dropped: the next comparison finds it again.
 * - Those who ask us get SITE_ANSWERS_RATE records and parts of comparisons per second, all together. */
#include "base/bytes.h"
#include "site/site_int.h"

enum { TRIES = 2 };

static struct want *find(struct site *site, uint8_t kind, site_id subject)
{
	for (uint32_t i = 0; i < site->wants_count; i++)
		if (site->wants[i].subject == subject && site->wants[i].kind == kind)
			return &site->wants[i];
	return NULL;
}

static void drop(struct site *site, struct want *want)
{
	if (want->asked)
		site->wants_asked--;
	*want = site->wants[--site->wants_count];
}

void want_add(struct site *site, const struct want *want)
{
	struct want *known = find(site, want->kind, want->subject);
	if (known) {
		if (want->version > known->version) {
			known->version = want->version;
			known->from = want->from;
		}
		return;
	}
	if (site->wants_count < SITE_WANTS)
		site->wants[site->wants_count++] = *want;
}

void want_came(struct site *site, uint8_t kind, site_id subject, uint64_t version)
{
	struct want *want = find(site, kind, subject);
	if (want && version >= want->version)
		drop(site, want);
}

/* Asks one site for all that it told of, as far as it goes. */
static void ask(struct site *site, site_id from, uint32_t to)
{
	uint64_t until_us = site->now.us + probe_timeout_us(site, to);
	uint32_t count = 0;
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t at = section_begin(&site->out, SECTION_WANT);
	for (uint32_t i = 0; i < site->wants_count && count < SITE_WANTS_SENT; i++) {
		struct want *want = &site->wants[i];
		if (want->asked || want->from != from || site->wants_asked >= SITE_WANTS_ASKED)
			continue;
		want->asked = true;
		want->tries++;
		want->until_us = until_us;
		site->wants_asked++;
		count++;
		put_number(&site->out, want->kind, 1);
		put_number(&site->out, want->subject, 8);
	}
	section_end(&site->out, at);
	letter_send(site, to);
}

void want_flush(struct site *site)
{
	for (uint32_t i = 0; i < site->wants_count && site->wants_asked < SITE_WANTS_ASKED;) {
		struct want *want = &site->wants[i];
		uint32_t to = want->asked ? SITE_NONE : table_find(site, want->from);
		if (!want->asked && (to == SITE_NONE || site->members[to].state == SITE_REVOKED)) {
			drop(site, want); /* who told of it is gone */
			continue;
		}
		if (!want->asked)
			ask(site, want->from, to);
		i++;
	}
	if (site->wants_count == 0)
		exchange_continue(site);
}

/* Whom we asked is gone, or busy. What spreads is known to most: anybody may have it. */
static void ask_another(struct site *site, struct want *want)
{
	uint32_t other = table_draw(site, LIST_LIVE);
	want->asked = false;
	site->wants_asked--;
	if (other != SITE_NONE)
		want->from = site->members[other].id;
}

void want_tick(struct site *site)
{
	for (uint32_t i = 0; i < site->wants_count;) {
		struct want *want = &site->wants[i];
		if (!want->asked || want->until_us > site->now.us) {
			i++;
		} else if (want->tries >= TRIES) {
			drop(site, want);
		} else {
			ask_another(site, want);
			i++;
		}
	}
	want_flush(site);
}

uint64_t want_due(const struct site *site)
{
	uint64_t due = UINT64_MAX;
	for (uint32_t i = 0; i < site->wants_count; i++) {
		uint64_t until = site->wants[i].asked ? site->wants[i].until_us : UINT64_MAX;
		due = until < due ? until : due;
	}
	return due;
}

/* ---- Answers -------------------------------------------------------------------------------------------------------- */

/* A bucket that leaks: `answers_us` is when it will be empty. What is refused is asked for elsewhere. */
uint32_t want_may_answer(struct site *site, uint32_t most)
{
	const uint64_t each_us = 1000000 / SITE_ANSWERS_RATE;
	uint64_t from = site->answers_us > site->now.us ? site->answers_us : site->now.us;
	uint64_t free = SITE_ANSWERS_BURST - (from - site->now.us) / each_us;
	/* When many ask, each gets a little: then they can ask one another. */
	uint64_t share = free / 16 + 1;
	uint32_t count = free == 0 ? 0 : share < most ? (uint32_t)share : most;
	site->answers_us = from + count * each_us;
	return count;
}

static struct held *find_held(const struct site *site, uint8_t kind, site_id subject)
{
	if (kind == SITE_REMOVAL)
		return removal_find(site, subject);
	if (kind == SITE_CARD) {
		uint32_t number = table_find(site, subject);
		return number == SITE_NONE || site->members[number].state == SITE_REVOKED ? NULL : site->members[number].card;
	}
	for (uint32_t i = 0; i < site->roots_count; i++)
		if (site->roots[i]->subject == subject)
			return site->roots[i];
	return NULL;
}

static size_t answer_bytes(const struct held *held)
{
	return held->length + 3 * (size_t)SECTION_HEAD_BYTES + STATUS_BYTES + PLACED_BYTES;
}

void want_answer(struct site *site, uint32_t to, struct str wants)
{
	struct reader reader = reader_of(wants);
	uint32_t left = want_may_answer(site, SITE_WANTS_SENT); /* datagrams */
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t empty = site->out.length;
	while (reader.left > 0 && left > 0) {
		uint8_t kind = read_8(&reader);
		site_id subject = read_64(&reader);
		const struct held *held = find_held(site, kind, subject);
		if (!held)
			continue;
		if (site->out.length > empty && letter_room(site) < answer_bytes(held)) {
			letter_send(site, to);
			letter_begin(site, TYPE_NEWS, 0, 0);
			if (--left == 0)
				break;
		}
		letter_record(site, held);
		if (kind == SITE_CARD)
			letter_status(site, table_find(site, subject));
	}
	if (site->out.length > empty)
		letter_send(site, to);
}
