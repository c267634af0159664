/* Letters: what a datagram carries besides its purpose, and the rounds in which news are sent on.
 *
 * - Pings and their answers carry rumours and coordinates along, at no extra datagram.
 * - While there is news, a round goes to a few random live sites every gossip_us. News that come after a quiet time go out
 *   at once, so that a thousand sites hear of it within a second.
 * - What concerns the addressee comes first (Lifeguard's buddy system, IV.C): a suspect learns of it from whoever talks
 *   to it. */
#include "base/bytes.h"
#include "site/site_int.h"

#include "base/check.h"

enum { LEAVING_LEAST = 8, LEAVING_MOST = 20 }; /* datagrams that tell that this site stops */

/* ---- Letters ------------------------------------------------------------------------------------------------------- */

void letter_begin(struct site *site, uint8_t type, uint32_t sequence, site_id target)
{
	const struct member *self = &site->members[0];
	struct message message = {.type = type, .incarnation = self->incarnation, .sequence = sequence, .target = target};
	message.card_version = self->card ? self->card->version : 0;
	message.law = (uint32_t)site->law;
	buf_clear(&site->out);
	message_begin(&site->out, &message);
}

size_t letter_room(const struct site *site)
{
	return SITE_MESSAGE_BYTES - site->out.length;
}

void letter_coordinate(struct site *site)
{
	size_t at = section_begin(&site->out, SECTION_COORDINATE);
	put_number(&site->out, site->members[0].stamp, 4);
	put_coordinate(&site->out, &site->members[0].coordinate);
	section_end(&site->out, at);
}

/* How many of a size fit into another section. */
static uint32_t fitting(const struct site *site, size_t bytes, uint32_t most)
{
	size_t room = letter_room(site);
	size_t count = room < SECTION_HEAD_BYTES ? 0 : (room - SECTION_HEAD_BYTES) / bytes;
	return count < most ? (uint32_t)count : most;
}

static bool concerns(const struct site *site, uint32_t to)
{
	const struct member *member = &site->members[to];
	return (member->state != SITE_ALIVE && member->state != SITE_REVOKED) || member->flags & MEMBER_TELL;
}

void letter_rumours(struct site *site, uint32_t to, uint32_t most)
{
	struct status statuses[SITE_RUMOURS_SENT];
	most = fitting(site, STATUS_BYTES, most);
	size_t at = section_begin(&site->out, SECTION_RUMOURS);
	if (most > 0 && to != SITE_NONE && !site->options.timing.plain && concerns(site, to)) {
		struct status status = member_status(site, to);
		put_status(&site->out, &status);
		site->members[to].flags &= (uint8_t)~MEMBER_TELL;
		most--;
	}
	uint32_t count = news_take(site, statuses, most);
	for (uint32_t i = 0; i < count; i++)
		put_status(&site->out, &statuses[i]);
	section_end(&site->out, at);
}

static void put_member_place(struct site *site, uint32_t number)
{
	const struct member *member = &site->members[number];
	put_place(&site->out, &(struct place){.id = member->id, .stamp = member->stamp, .coordinate = member->coordinate});
}

void letter_places(struct site *site, uint32_t most)
{
	uint32_t numbers[SITE_PLACED];
	CHECK(most <= SITE_PLACED);
	uint32_t count = news_take_places(site, numbers, fitting(site, PLACED_BYTES, most));
	size_t at = section_begin(&site->out, SECTION_COORDINATES);
	for (uint32_t i = 0; i < count; i++)
		if (coordinate_is_sound(&site->members[numbers[i]].coordinate))
			put_member_place(site, numbers[i]);
	section_end(&site->out, at);
}

bool letter_record(struct site *site, const struct held *held)
{
	if (letter_room(site) < held->length + (size_t)SECTION_HEAD_BYTES)
		return false;
	size_t at = section_begin(&site->out, SECTION_RECORD);
	buf_put(&site->out, held_bytes(held));
	section_end(&site->out, at);
	return true;
}

/* What is known of a member, beside its card: for one who asked for that. */
void letter_status(struct site *site, uint32_t number)
{
	const struct member *member = &site->members[number];
	struct status status = member_status(site, number);
	if (fitting(site, STATUS_BYTES, 1) == 0)
		return;
	size_t at = section_begin(&site->out, SECTION_RUMOURS);
	put_status(&site->out, &status);
	section_end(&site->out, at);
	if (fitting(site, PLACED_BYTES, 1) == 0 || !coordinate_is_sound(&member->coordinate))
		return;
	at = section_begin(&site->out, SECTION_COORDINATES);
	put_member_place(site, number);
	section_end(&site->out, at);
}

void letter_send_to(struct site *site, site_id id, const struct site_address *address)
{
	CHECK(site->out.length <= SITE_MESSAGE_BYTES);
	if (site->silent)
		return;
	site->counters.sent++;
	site->counters.sent_bytes += site->out.length;
	site->host.send(site->host.context, id, address, buf_str(&site->out));
}

void letter_send(struct site *site, uint32_t to)
{
	const struct member *member = &site->members[to];
	CHECK(to > 0 && member->state != SITE_REVOKED);
	letter_send_to(site, member->id, &member->card->address);
}

void gossip_correct(struct site *site, uint32_t to)
{
	if (site->corrections_count == 0)
		return;
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t at = section_begin(&site->out, SECTION_RUMOURS);
	for (uint32_t i = 0; i < site->corrections_count; i++) {
		uint32_t number = table_find(site, site->corrections[i]);
		if (number == SITE_NONE)
			continue;
		struct status status = member_status(site, number);
		put_status(&site->out, &status);
	}
	section_end(&site->out, at);
	site->corrections_count = 0;
	letter_send(site, to);
}

/* ---- Rounds -------------------------------------------------------------------------------------------------------- */

static void send_news(struct site *site, uint32_t to)
{
	letter_begin(site, TYPE_NEWS, 0, 0);
	uint32_t cursor = 0;
	for (int i = 0; i < SITE_PUSHED_SENT; i++) {
		/* Half of a datagram is for rumours. */
		size_t room = letter_room(site), kept = SITE_MESSAGE_BYTES / 2;
		const struct held *held = news_take_record(site, i == 0 ? room : room < kept ? 0 : room - kept, &cursor);
		if (!held || !letter_record(site, held))
			break;
	}
	letter_rumours(site, to, SITE_RUMOURS_SENT);
	letter_send(site, to);
}

void gossip_tick(struct site *site)
{
	if (gossip_due(site) > site->now.us)
		return;
	site->gossip_us = site->now.us;
	for (int i = 0; i < SITE_FANOUT && news_any(site); i++) {
		uint32_t to = table_draw(site, LIST_LIVE);
		if (to != SITE_NONE)
			send_news(site, to);
	}
}

uint64_t gossip_due(const struct site *site)
{
	if (!news_any(site) || site->lists[LIST_LIVE].count == 0)
		return UINT64_MAX;
	return site->gossip_us + site->options.timing.gossip_us;
}

void gossip_broadcast(struct site *site, const struct held *held)
{
	letter_begin(site, TYPE_NEWS, 0, 0);
	letter_record(site, held);
	const struct list *live = &site->lists[LIST_LIVE];
	for (uint32_t i = 0; i < live->count; i++)
		letter_send(site, live->items[i]);
}

/* Said often enough that somebody hears it; they pass it on. */
void gossip_leave(struct site *site)
{
	struct status status = member_status(site, 0);
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t at = section_begin(&site->out, SECTION_RUMOURS);
	put_status(&site->out, &status);
	section_end(&site->out, at);
	uint32_t live = site->lists[LIST_LIVE].count;
	uint32_t count = live < LEAVING_LEAST ? LEAVING_LEAST : live < LEAVING_MOST ? live : LEAVING_MOST;
	for (uint32_t i = 0; i < count && live > 0; i++)
		letter_send(site, table_next(site, LIST_LIVE));
}
