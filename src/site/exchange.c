/* Two sites compare their tables: what no rumour brought is found here, and a new site gets everything this way.
 *
 * All that sites should agree on (the card and state of each member, removals, roots) are items, each at a place that its
 * subject's id gives. The first bits of the place name one of 256 buckets, whose digest is the sum of its items' hashes.
 *
 *     A: these are my digests          -> B        one datagram, however many sites there are
 *     B: of the buckets that differ: here are mine, all of them (cells)   -> A, at most four datagrams
 *     A: takes what is newer, asks for the records that it lacks (want.c),
 *        and tells B what B lacks (offers)                                -> B, at most four datagrams
 *     B: asks for them
 *
 * - More differs than fits: B begins at a random bucket. When all that A asked for has come it compares again at once, with
 *   the same site; so a new one goes on until nothing differs, at the speed of the path.
 * - Removals and roots are compared with every message, by one digest: where it differs the tables are compared soon.
 * - A datagram is lost: the next comparison finds what is missing.
 * - A bucket holds more than one datagram can: it is told in several cells, each with more bits of the place. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

enum {
	APART_US = 1000000,     /* between comparisons with sites that came back */
	LAW_WAIT_US = 1000000,  /* so long for removals and roots that spread by themselves, */
	LAW_APART_US = 5000000, /* and then not more often than this */
	PAUSE_US = 50000,       /* between the parts of a comparison, besides a round trip */
	SOONER = 8,             /* comparisons are so many times as frequent where something differed */
};

/* ---- Digests -------------------------------------------------------------------------------------------------------- */

/* The finalizer of splitmix64 (Steele, Lea, Flood, 2014): every bit of the input moves every bit of the output. */
uint64_t site_place(site_id id)
{
	id += 0x9e3779b97f4a7c15;
	id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9;
	id = (id ^ id >> 27) * 0x94d049bb133111eb;
	return id ^ id >> 31;
}

static uint32_t bucket_of(site_id id)
{
	return (uint32_t)(site_place(id) >> (64 - SITE_BUCKET_BITS));
}

static uint64_t item_hash(const struct item *item)
{
	uint64_t hash = site_place(item->subject ^ (uint64_t)item->kind << 56);
	hash = site_place(hash ^ item->version);
	return site_place(hash ^ ((uint64_t)item->incarnation << 8 | item->state));
}

void digest_toggle(struct site *site, const struct item *item)
{
	site->digest[bucket_of(item->subject)] ^= item_hash(item);
	if (item->kind != SITE_CARD)
		site->law ^= item_hash(item);
}

/* False for one that is not compared: without a card, or revoked. */
static bool member_item(const struct site *site, uint32_t number, struct item *item)
{
	const struct member *member = &site->members[number];
	if (!member->card || member->card->kind != SITE_CARD)
		return false;
	*item = (struct item){.kind = SITE_CARD,
	                      .subject = member->id,
	                      .version = member->card->version,
	                      .incarnation = member->incarnation,
	                      .state = member->state == SITE_SUSPECT ? SITE_ALIVE : member->state};
	return true;
}

void digest_toggle_member(struct site *site, uint32_t number)
{
	struct item item;
	if (member_item(site, number, &item))
		digest_toggle(site, &item);
}

/* ---- Items, in the order of their places ----------------------------------------------------------------------------- */

struct items {
	struct item *at;
	uint32_t count;
	uint32_t capacity;
};

static void add_item(struct items *items, const bool wanted[SITE_BUCKETS], const struct item *item)
{
	if (!wanted[bucket_of(item->subject)])
		return;
	items->at = site_grow(items->at, &items->capacity, items->count + 1, sizeof(struct item));
	items->at[items->count++] = *item;
}

static int by_place(const void *a, const void *b)
{
	uint64_t x = site_place(((const struct item *)a)->subject), y = site_place(((const struct item *)b)->subject);
	return x < y ? -1 : x > y;
}

static void collect(const struct site *site, const bool wanted[SITE_BUCKETS], struct items *items)
{
	struct item item;
	*items = (struct items){0};
	for (uint32_t i = 0; i < site->members_count; i++)
		if (member_item(site, i, &item))
			add_item(items, wanted, &item);
	for (uint32_t i = 0; i < site->removals_count + site->roots_count; i++) {
		const struct held *held = i < site->removals_count ? site->removals[i] : site->roots[i - site->removals_count];
		item = (struct item){.kind = held->kind, .subject = held->subject, .version = held->version};
		add_item(items, wanted, &item);
	}
	if (items->count > 1)
		qsort(items->at, items->count, sizeof(struct item), by_place);
}

/* Those whose places begin with these bits. */
static struct items part_of(const struct items *items, unsigned bits, unsigned prefix)
{
	uint64_t low = (uint64_t)prefix << (64 - bits), high = low | (UINT64_MAX >> bits);
	uint32_t first = 0, last = items->count;
	if (!items->at)
		return (struct items){0};
	while (first < last) {
		uint32_t middle = first + (last - first) / 2;
		if (site_place(items->at[middle].subject) < low)
			first = middle + 1;
		else
			last = middle;
	}
	while (last < items->count && site_place(items->at[last].subject) <= high)
		last++;
	return (struct items){.at = items->at + first, .count = last - first};
}

/* ---- Answers in several datagrams ------------------------------------------------------------------------------------- */

struct answer {
	uint32_t to;
	uint32_t left; /* datagrams */
	size_t empty;  /* length of one with nothing in it */
};

static struct answer answer_begin(struct site *site, uint32_t to)
{
	letter_begin(site, TYPE_NEWS, 0, 0);
	return (struct answer){.to = to, .left = want_may_answer(site, SITE_EXCHANGE_MESSAGES), .empty = site->out.length};
}

static void answer_end(struct site *site, struct answer *answer)
{
	if (answer->left > 0 && site->out.length > answer->empty)
		letter_send(site, answer->to);
}

/* False: no datagram is left. */
static bool answer_room(struct site *site, struct answer *answer, size_t bytes)
{
	if (answer->left > 0 && letter_room(site) < bytes) {
		letter_send(site, answer->to);
		letter_begin(site, TYPE_NEWS, 0, 0);
		answer->left--;
	}
	return answer->left > 0;
}

static void put_items(struct site *site, const struct items *items)
{
	for (uint32_t i = 0; i < items->count; i++)
		put_item(&site->out, &items->at[i]);
}

/* So many in one place that they cannot be told from the others: some of them, without saying that these are all. */
static void put_offer(struct site *site, struct answer *answer, struct items items)
{
	items.count = items.count < SITE_CELL_ITEMS ? items.count : SITE_CELL_ITEMS;
	if (!answer_room(site, answer, SECTION_HEAD_BYTES + items.count * (size_t)ITEM_BYTES))
		return;
	size_t at = section_begin(&site->out, SECTION_OFFER);
	put_items(site, &items);
	section_end(&site->out, at);
}

static void put_cell(struct site *site, struct answer *answer, const struct items *all, unsigned bits, unsigned prefix)
{
	struct items items = part_of(all, bits, prefix);
	if (items.count > SITE_CELL_ITEMS && bits < SITE_CELL_BITS) {
		put_cell(site, answer, &items, bits + 1, 2 * prefix);
		put_cell(site, answer, &items, bits + 1, 2 * prefix + 1);
		return;
	}
	if (items.count > SITE_CELL_ITEMS) {
		put_offer(site, answer, items);
		return;
	}
	if (!answer_room(site, answer, SECTION_HEAD_BYTES + CELL_HEAD_BYTES + items.count * (size_t)ITEM_BYTES))
		return;
	size_t at = section_begin(&site->out, SECTION_CELL);
	put_number(&site->out, bits, 1);
	put_number(&site->out, prefix, 2);
	put_items(site, &items);
	section_end(&site->out, at);
}

/* ---- The steps --------------------------------------------------------------------------------------------------------- */

static void send_digest(struct site *site, uint32_t to)
{
	site->counters.exchanges++;
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t at = section_begin(&site->out, SECTION_DIGEST);
	for (uint32_t i = 0; i < SITE_BUCKETS; i++)
		put_number(&site->out, site->digest[i] & UINT32_MAX, 4);
	section_end(&site->out, at);
	letter_send(site, to);
}

static void hurry(struct site *site, uint64_t us)
{
	if (site->exchange_us > site->now.us + us)
		site->exchange_us = site->now.us + us;
}

/* All that was asked for came. If it taught us something there may be more: the next part is compared, once the
 * datagrams that may still be on their way have come. What is learnt never goes back, so this ends. */
void exchange_continue(struct site *site)
{
	uint32_t peer = site->exchange_peer ? table_find(site, site->exchange_peer) : SITE_NONE;
	if (peer != SITE_NONE && site->learnt)
		hurry(site, site->members[peer].rtt_us + (uint64_t)PAUSE_US);
}

void exchange_soon(struct site *site, site_id with)
{
	uint64_t earliest_us = site->exchanged_us + APART_US;
	site->exchange_peer = with;
	hurry(site, earliest_us > site->now.us ? earliest_us - site->now.us : 0);
}

/* It may be on its way to us, or to the other one. If it is not, nobody may go on for long believing one who is shut out. */
void exchange_law(struct site *site, site_id with)
{
	uint64_t earliest_us = site->exchanged_us + LAW_APART_US;
	uint64_t wait_us = earliest_us > site->now.us ? earliest_us - site->now.us : 0;
	wait_us = wait_us < LAW_WAIT_US ? LAW_WAIT_US : wait_us;
	if (site->exchange_us <= site->now.us + wait_us)
		return;
	site->exchange_peer = with;
	hurry(site, wait_us);
}

void exchange_tick(struct site *site)
{
	if (site->exchange_us > site->now.us)
		return;
	site->exchanged_us = site->now.us;
	/* Something differed lately, or this site is new: others may not know of it either. */
	bool soon = site->learnt || site->now.us < site->started_us + site->options.timing.exchange_us;
	site->exchange_us = site->now.us + site_jitter(site, site->options.timing.exchange_us / (soon ? SOONER : 1));
	site->learnt = false;
	uint32_t to = site->exchange_peer ? table_find(site, site->exchange_peer) : SITE_NONE;
	site->exchange_peer = 0;
	if (to == SITE_NONE || site->members[to].list != LIST_LIVE)
		to = table_draw(site, LIST_LIVE);
	if (to != SITE_NONE)
		send_digest(site, to);
}

void exchange_answer(struct site *site, site_id from, struct str digest)
{
	bool differs[SITE_BUCKETS];
	uint32_t count = 0, to = table_find(site, from);
	struct reader reader = reader_of(digest);
	for (uint32_t i = 0; i < SITE_BUCKETS; i++) {
		differs[i] = read_32(&reader) != (uint32_t)site->digest[i];
		count += differs[i];
	}
	if (count == 0 || to == SITE_NONE)
		return;
	struct items items;
	collect(site, differs, &items);
	struct answer answer = answer_begin(site, to);
	uint32_t first = site_draw_below(site, SITE_BUCKETS);
	for (uint32_t i = 0; i < SITE_BUCKETS && answer.left > 0; i++)
		if (differs[(first + i) % SITE_BUCKETS])
			put_cell(site, &answer, &items, SITE_BUCKET_BITS, (first + i) % SITE_BUCKETS);
	answer_end(site, &answer);
	free(items.at);
}

static uint64_t version_of(const struct site *site, const struct item *item)
{
	if (item->kind == SITE_REMOVAL) {
		const struct held *removal = removal_find(site, item->subject);
		return removal ? removal->version : 0;
	}
	for (uint32_t i = 0; i < site->roots_count; i++)
		if (site->roots[i]->subject == item->subject)
			return site->roots[i]->version;
	return 0;
}

static void hear_item(struct site *site, site_id from, const struct item *item)
{
	if (item->kind == SITE_CARD) {
		struct status status = {
			.id = item->subject, .incarnation = item->incarnation, .state = item->state, .card_version = item->version};
		member_hear(site, &status, from);
	} else if (item->version > version_of(site, item)) {
		want_add(site,
		         &(struct want){.kind = item->kind, .subject = item->subject, .version = item->version, .from = from});
	}
}

void exchange_item(struct site *site, site_id from, const struct item *item)
{
	uint32_t wants = site->wants_count;
	uint64_t digest = site->digest[bucket_of(item->subject)];
	hear_item(site, from, item);
	if (site->digest[bucket_of(item->subject)] != digest)
		site->learnt = true;
	if (site->learnt || site->wants_count > wants)
		site->exchange_peer = from;
}

/* Does the other one lack this of ours? */
static bool is_missing(const struct item *own, struct reader theirs)
{
	while (theirs.left > 0) {
		struct item item = read_item(&theirs);
		if (item.kind != own->kind || item.subject != own->subject)
			continue;
		bool worse = item.incarnation == own->incarnation && own->state > item.state;
		return own->version > item.version || compare_numbers(own->incarnation, item.incarnation, false) > 0 || worse;
	}
	return true;
}

static struct reader read_cell(struct str bytes, unsigned *bits, unsigned *prefix)
{
	struct reader reader = reader_of(bytes);
	*bits = read_8(&reader);
	*prefix = read_16(&reader);
	CHECK(*bits >= SITE_BUCKET_BITS && *bits <= SITE_CELL_BITS); /* wire.c has looked */
	return reader;
}

/* What it lacks, in one list: it asks for the records itself. */
static void offer_missing(struct site *site, uint32_t to, const struct message *message, const struct items *own)
{
	struct answer answer = answer_begin(site, to);
	size_t at = SIZE_MAX;
	for (uint32_t i = 0; i < message->sections_count; i++) {
		unsigned bits, prefix;
		if (message->sections[i].tag != SECTION_CELL)
			continue;
		struct reader theirs = read_cell(message->sections[i].bytes, &bits, &prefix);
		struct items items = part_of(own, bits, prefix);
		for (uint32_t j = 0; j < items.count && answer.left > 0; j++) {
			if (!is_missing(&items.at[j], theirs))
				continue;
			if (at != SIZE_MAX && letter_room(site) < SECTION_HEAD_BYTES + ITEM_BYTES) {
				section_end(&site->out, at);
				at = SIZE_MAX;
			}
			if (!answer_room(site, &answer, SECTION_HEAD_BYTES + ITEM_BYTES))
				break;
			if (at == SIZE_MAX)
				at = section_begin(&site->out, SECTION_OFFER);
			put_item(&site->out, &items.at[j]);
		}
	}
	if (at != SIZE_MAX)
		section_end(&site->out, at);
	answer_end(site, &answer);
}

void exchange_cells(struct site *site, site_id from, const struct message *message)
{
	bool wanted[SITE_BUCKETS] = {false};
	unsigned bits, prefix;
	bool any = false;
	for (uint32_t i = 0; i < message->sections_count; i++) {
		if (message->sections[i].tag != SECTION_CELL)
			continue;
		struct reader theirs = read_cell(message->sections[i].bytes, &bits, &prefix);
		wanted[prefix >> (bits - SITE_BUCKET_BITS)] = any = true;
		while (theirs.left > 0) {
			struct item item = read_item(&theirs);
			exchange_item(site, from, &item);
		}
	}
	uint32_t to = table_find(site, from);
	if (!any || to == SITE_NONE)
		return;
	struct items own;
	collect(site, wanted, &own);
	offer_missing(site, to, message, &own);
	free(own.at);
}
