/* A datagram came. The host has opened it: who sent it is known, and that it is not a repetition.
 *
 * 1. One of a site that was removed is ignored. One that makes no sense is counted.
 * 2. Records come first, since the rest may speak of sites that they introduce; the sender may introduce itself.
 * 3. The head says that the sender is alive, in which incarnation and with which card: that is as good as a rumour.
 * 4. Then rumours and coordinates, then the purpose of the message, which may be answered.
 *
 * What a member says of others may be wrong: at worst, sites are suspected that deny it, and records are asked for that do
 * not exist. It cannot speak for another, since records are signed and the sender of a datagram is known. */
#include "base/bytes.h"
#include "site/site_int.h"

/* What the same datagram says of a site that one of its records is about. */
static bool find_status(const struct message *message, site_id id, struct status *status)
{
	for (uint32_t i = 0; i < message->sections_count; i++) {
		if (message->sections[i].tag != SECTION_RUMOURS)
			continue;
		struct reader reader = reader_of(message->sections[i].bytes);
		while (reader.left > 0) {
			*status = read_status(&reader);
			if (status->id == id)
				return true;
		}
	}
	return false;
}

/* It shows a card that is older than the one we know, and moved meanwhile: it has lost what it said last, and our answers go
 * to where it was. It gets its later card at the address that it names now, and signs a still later one. That it is the
 * sender is known, so nobody can lead another one's messages astray. */
static void show_later_card(struct site *site, const struct site_record *record)
{
	struct site_card card;
	uint32_t number = table_find(site, record->subject);
	if (number == SITE_NONE || number == 0 || site->members[number].card->version <= record->version ||
	    site_card_glance(record->body, &card, NULL) != 0 || card.address.family == 0)
		return;
	const struct held *later = site->members[number].card;
	if (site_address_equal(&card.address, &later->address) || want_may_answer(site, 1) == 0)
		return;
	letter_begin(site, TYPE_NEWS, 0, 0);
	letter_record(site, later);
	letter_send_to(site, record->subject, &card.address);
}

static void take_record(struct site *site, site_id from, const struct message *message, struct str bytes)
{
	struct site_record record;
	struct status status = {.id = from, .incarnation = message->incarnation, .state = SITE_ALIVE};
	bool told = false;
	if (site_record_parse(bytes, &record, NULL) == 0)
		told = record.subject == from || find_status(message, record.subject, &status);
	member_accept(site, bytes, told ? &status : NULL, NULL);
	if (told && record.kind == SITE_CARD && record.subject == from)
		show_later_card(site, &record);
}

static void take_records(struct site *site, site_id from, const struct message *message)
{
	for (uint32_t i = 0; i < message->sections_count; i++)
		if (message->sections[i].tag == SECTION_RECORD)
			take_record(site, from, message, message->sections[i].bytes);
}

static void take_head(struct site *site, site_id from, const struct message *message)
{
	uint32_t number = table_find(site, from);
	member_heard(site, number);
	member_hear(site,
	            &(struct status){.id = from,
	                             .incarnation = message->incarnation,
	                             .state = SITE_ALIVE,
	                             .card_version = message->card_version},
	            from);
	if (message->law != (uint32_t)site->law)
		exchange_law(site, from);
	/* It was somebody else's word against its own; or it started again and does not know what it said before. */
	if (site->members[number].incarnation != message->incarnation)
		site->members[number].flags |= MEMBER_TELL;
}

static void take_rumours(struct site *site, site_id from, struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		struct status status = read_status(&reader);
		member_hear(site, &status, from);
	}
}

static void take_places(struct site *site, struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		struct place place = read_place(&reader);
		coordinate_hear(site, &place, false);
	}
}

static void take_coordinate(struct site *site, site_id from, struct str bytes)
{
	struct reader reader = reader_of(bytes);
	struct place place = {.id = from, .stamp = read_32(&reader)};
	place.coordinate = read_coordinate(&reader);
	coordinate_hear(site, &place, true);
}

static void take_offer(struct site *site, site_id from, struct str bytes)
{
	struct reader reader = reader_of(bytes);
	while (reader.left > 0) {
		struct item item = read_item(&reader);
		exchange_item(site, from, &item);
	}
}

static void take_outcast(struct site *site, struct str text)
{
	const uint64_t quiet_us = 10000000;
	if (site->outcast_us != 0 && site->now.us - site->outcast_us < quiet_us)
		return;
	site->outcast_us = site->now.us + 1;
	site_tell(site, SITE_EVENT_OUTCAST, site->options.self, held_name(site->members[0].card), text);
}

/* What is only taken in. */
static void take_section(struct site *site, site_id from, const struct section *section)
{
	switch (section->tag) {
	case SECTION_COORDINATE: take_coordinate(site, from, section->bytes); break;
	case SECTION_COORDINATES: take_places(site, section->bytes); break;
	case SECTION_RUMOURS: take_rumours(site, from, section->bytes); break;
	case SECTION_OFFER: take_offer(site, from, section->bytes); break;
	case SECTION_OUTCAST: take_outcast(site, section->bytes); break;
	default: break;
	}
}

/* What is answered. One of each is: a datagram causes a bounded number of others. */
static void answer_sections(struct site *site, site_id from, const struct message *message)
{
	bool answered[SECTION_TAGS] = {false};
	for (uint32_t i = 0; i < message->sections_count; i++) {
		const struct section *section = &message->sections[i];
		if (answered[section->tag])
			continue;
		answered[section->tag] = true;
		if (section->tag == SECTION_WANT)
			want_answer(site, table_find(site, from), section->bytes);
		else if (section->tag == SECTION_DIGEST)
			exchange_answer(site, from, section->bytes);
		else if (section->tag == SECTION_CELL)
			exchange_cells(site, from, message);
	}
}

static void take_purpose(struct site *site, uint32_t from, const struct message *message)
{
	switch (message->type) {
	case TYPE_PING: probe_ping(site, from, message); break;
	case TYPE_ACK: probe_ack(site, from, message); break;
	case TYPE_ASK: probe_ask(site, from, message); break;
	case TYPE_PASSED: probe_passed(site, message); break;
	case TYPE_NACK: probe_nack(site, message); break;
	default: break;
	}
}

static void take_message(struct site *site, site_id from, const struct message *message)
{
	site->corrections_count = 0;
	take_records(site, from, message);
	if (site->silent || removal_find(site, from))
		return; /* a record of the authority came with it */
	if (table_find(site, from) == SITE_NONE) {
		member_tell_claimant(site, from);
		return;
	}
	take_head(site, from, message);
	for (uint32_t i = 0; i < message->sections_count; i++)
		take_section(site, from, &message->sections[i]);
	take_purpose(site, table_find(site, from), message);
	answer_sections(site, from, message);
	gossip_correct(site, table_find(site, from));
	want_flush(site);
}

void site_receive(struct site *site, site_id from, struct str bytes, struct site_now now)
{
	struct message message;
	site->now = now;
	site->counters.received++;
	if (!site->started || site->silent || from == site->options.self || from == 0 || removal_find(site, from))
		return;
	if (message_parse(bytes, &message))
		site->counters.malformed++;
	else
		take_message(site, from, &message);
}
