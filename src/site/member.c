/* What becomes of a member: who says what of it, and which records on it count.
 *
 * States. A site says of itself that it is alive, with an incarnation number that only it raises. Others may say that it is
 * suspect, lost or has left, of an incarnation that they know. Of two sayings the one on the later incarnation counts, on
 * the same one the worse state (alive < suspect < lost < left), so all sites come to the same end in whichever order they
 * hear. A site that hears ill of itself raises its incarnation and says that it is alive.
 *
 * Records. The highest version of a kind and subject counts, once the host has verified it.
 * - A removal shuts its subject out at once. A revoked site stays in the table, without its card. A forgotten one is gone.
 * - Two keys with one name: the site that was made first keeps it, then the lower id. The other one is not in the table;
 *   it is told why (SECTION_OUTCAST).
 * - The name of a revoked site is taken until that is forgotten, for all sites that were made after the revocation: the
 *   authority does not sign it for another key, and if it did, nobody would take that one in. One that was made before it
 *   has the name by right, or the two would have been told of each other. */
#include "site/site_int.h"

#include "base/text.h"

enum {
	CONFIRMERS = 6,               /* of all sites, that probe a suspect out of turn once they hear of it */
	TELL_AGAIN_US = 10 * 1000000, /* a claimant, an event on being outcast */
};

/* ---- States ------------------------------------------------------------------------------------------------------- */

static enum member_list list_of(enum site_state state)
{
	return state == SITE_LOST ? LIST_LOST : state == SITE_LEFT || state == SITE_REVOKED ? LIST_NONE : LIST_LIVE;
}

static enum site_event_kind event_of(enum site_state state)
{
	switch (state) {
	case SITE_SUSPECT: return SITE_EVENT_SUSPECT;
	case SITE_LOST: return SITE_EVENT_LOST;
	case SITE_LEFT: return SITE_EVENT_LEFT;
	case SITE_REVOKED: return SITE_EVENT_REVOKED;
	default: return SITE_EVENT_ALIVE;
	}
}

static void tell_member(struct site *site, enum site_event_kind kind, uint32_t number, struct str text)
{
	const struct member *member = &site->members[number];
	site_tell(site, kind, member->id, member->card ? held_name(member->card) : STR(""), text);
}

static void change_state(struct site *site, uint32_t number, enum site_state state)
{
	struct member *member = &site->members[number];
	if (member->state == SITE_SUSPECT)
		suspicion_end(site, number);
	/* A lost one is unknown since it stopped to answer, which is when it became suspect. */
	if (!(member->state == SITE_SUSPECT && state == SITE_LOST))
		member->since_ms = site->now.wall_ms;
	member->state = (uint8_t)state;
	site->epoch++;
	if (number == 0)
		return;
	table_set_list(site, number, list_of(state));
	tell_member(site, event_of(state), number, STR(""));
}

void member_set_state(struct site *site, uint32_t number, enum site_state state, uint32_t incarnation)
{
	digest_toggle_member(site, number);
	site->members[number].incarnation = incarnation;
	if (site->members[number].state != state)
		change_state(site, number, state);
	digest_toggle_member(site, number);
}

struct status member_status(const struct site *site, uint32_t number)
{
	const struct member *member = &site->members[number];
	site_id accuser = member->hot == SITE_NONE ? 0 : site->hots[member->hot].accuser;
	return (struct status){.id = member->id,
	                       .incarnation = member->incarnation,
	                       .state = member->state,
	                       .card_version = member->card ? member->card->version : 0,
	                       .accuser = accuser};
}

void member_heard(struct site *site, uint32_t number)
{
	site->members[number].heard_ms = site->now.wall_ms;
	site->members[number].flags |= MEMBER_HEARD;
}

static void remove_member(struct site *site, uint32_t number)
{
	digest_toggle_member(site, number);
	table_remove(site, number);
	site->epoch++;
}

/* ---- Names --------------------------------------------------------------------------------------------------------- */

static struct claimant *find_claimant(struct site *site, site_id id)
{
	for (uint32_t i = 0; i < SITE_CLAIMANTS; i++)
		if (site->claimants[i].id == id)
			return &site->claimants[i];
	return NULL;
}

static void drop_claimant(struct site *site, site_id id)
{
	struct claimant *claimant = find_claimant(site, id);
	if (!claimant)
		return;
	held_drop(claimant->card);
	*claimant = (struct claimant){0};
}

static void keep_claimant(struct site *site, struct held *card)
{
	struct claimant *claimant = find_claimant(site, card->subject);
	if (!claimant)
		claimant = &site->claimants[site->claimants_next++ % SITE_CLAIMANTS];
	held_drop(claimant->card);
	*claimant = (struct claimant){.id = card->subject, .card = held_keep(card)};
}

/* The same answer everywhere, whoever came first here. A removal is as old as it says: that is what counts of a revoked one. */
static bool is_elder(const struct held *a, const struct held *b)
{
	return a->when_ms != b->when_ms ? a->when_ms < b->when_ms : a->subject < b->subject;
}

/* The one in the table that a card has its name in common with; SITE_NONE: the name is free. */
static uint32_t find_holder(const struct site *site, const struct held *card)
{
	uint32_t holder = table_find_name(site, held_name(card));
	if (holder == SITE_NONE || site->members[holder].id == card->subject)
		return SITE_NONE;
	bool before = site->members[holder].state == SITE_REVOKED && is_elder(card, site->members[holder].card);
	return before ? SITE_NONE : holder;
}

static void name_taken(struct buf *text, const struct held *holder)
{
	bool revoked = holder->kind == SITE_REMOVAL;
	buf_printf(text, "the name " TEXT_NAME_FMT " is that of another site, %016llx, which %s: take another name, or ",
	           TEXT_NAME(held_name(holder)), (unsigned long long)holder->subject,
	           revoked ? "was revoked, and keeps it until it is removed" : "is older");
	buf_put(text, STR("remove that site first"));
}

void member_tell_claimant(struct site *site, site_id id)
{
	struct claimant *claimant = find_claimant(site, id);
	uint32_t holder = claimant ? find_holder(site, claimant->card) : SITE_NONE;
	if (holder == SITE_NONE || (claimant->told_us != 0 && site->now.us - claimant->told_us < TELL_AGAIN_US))
		return;
	claimant->told_us = site->now.us + 1;
	struct buf text = {0};
	name_taken(&text, site->members[holder].card);
	letter_begin(site, TYPE_NEWS, 0, 0);
	size_t at = section_begin(&site->out, SECTION_OUTCAST);
	buf_put(&site->out, utf8_truncate(buf_str(&text), OUTCAST_BYTES));
	section_end(&site->out, at);
	letter_send_to(site, id, &claimant->card->address);
	buf_free(&text);
}

static void refuse_claimant(struct site *site, struct held *card)
{
	site->counters.conflicts++;
	keep_claimant(site, card);
	site_tell(site, SITE_EVENT_CONFLICT, card->subject, held_name(card), STR(""));
	member_tell_claimant(site, card->subject);
}

/* An elder one came: the name is no longer this one's. */
static void evict(struct site *site, uint32_t holder)
{
	struct held *card = held_keep(site->members[holder].card);
	remove_member(site, holder);
	refuse_claimant(site, card);
	held_drop(card);
}

/* Has our own name an elder one, or one that was revoked? Then it is we who have to go. */
static void tell_outcast(struct site *site, const struct held *card)
{
	if (site->outcast_us != 0 && site->now.us - site->outcast_us < TELL_AGAIN_US)
		return;
	site->outcast_us = site->now.us + 1;
	struct buf text = {0};
	name_taken(&text, card);
	site_tell(site, SITE_EVENT_OUTCAST, site->options.self, held_name(card), buf_str(&text));
	buf_free(&text);
}

/* Makes the name free for the card, or refuses it. */
static int settle_name(struct site *site, struct held *card, struct err *err)
{
	uint32_t holder = find_holder(site, card);
	if (holder == SITE_NONE)
		return 0;
	struct held *other = site->members[holder].card;
	if (holder == 0 && is_elder(card, other)) {
		tell_outcast(site, card);
		return err_set(err, ERR_CONFLICT, "site %016llx has this site's name " TEXT_NAME_FMT " and is older",
		               (unsigned long long)card->subject, TEXT_NAME(held_name(card)));
	}
	if (is_elder(card, other)) {
		evict(site, holder);
		return 0;
	}
	refuse_claimant(site, card);
	return err_set(err, ERR_CONFLICT, "the name " TEXT_NAME_FMT " is that of site %016llx, which %s",
	               TEXT_NAME(held_name(card)), (unsigned long long)other->subject,
	               other->kind == SITE_REMOVAL ? "was revoked" : "is older");
}

/* Refused before, and nothing has changed: the signature need not be checked again. */
static bool is_refused_still(struct site *site, site_id id, uint64_t version)
{
	const struct claimant *claimant = find_claimant(site, id);
	if (!claimant || version > claimant->card->version)
		return false;
	uint32_t holder = find_holder(site, claimant->card);
	return holder != SITE_NONE && !is_elder(claimant->card, site->members[holder].card);
}

/* ---- What is said -------------------------------------------------------------------------------------------------- */

static void want_card(struct site *site, const struct status *status, site_id via)
{
	want_add(site,
	         &(struct want){.kind = SITE_CARD, .subject = status->id, .version = status->card_version, .from = via});
}

/* Of this site itself: what is not true is denied, with an incarnation that counts more. */
static void hear_of_self(struct site *site, const struct status *status, site_id via)
{
	struct member *self = &site->members[0];
	if (site->silent || !self->card)
		return;
	if (status->card_version > self->card->version)
		want_card(site, status, via);
	int compared = compare_numbers(status->incarnation, self->incarnation, false);
	if (compared < 0 || (compared == 0 && status->state == SITE_ALIVE))
		return;
	if (status->state != SITE_ALIVE) {
		site->counters.refutations++;
		if (status->state == SITE_SUSPECT)
			probe_health(site, 1);
	}
	member_set_state(site, 0, SITE_ALIVE, status->incarnation + 1);
	news_add(site, 0, 0);
}

static void hear_of_stranger(struct site *site, const struct status *status, site_id via)
{
	/* Where old entries are dropped, others that still have one would bring it back. */
	if (site->options.timing.forget_us != 0 && status->state >= SITE_LOST)
		return;
	if (is_refused_still(site, status->id, status->card_version))
		return;
	want_card(site, status, via);
}

static void suspect(struct site *site, uint32_t number, const struct status *status)
{
	member_set_state(site, number, SITE_SUSPECT, status->incarnation);
	suspicion_start(site, number, status->accuser);
	if (status->accuser != site->options.self && !site->options.timing.plain &&
	    site_draw_below(site, site_live_count(site)) < CONFIRMERS)
		probe_hasten(site, status->id);
}

/* Who is called lost was suspected first, for a while, and could have denied it. If we heard from it since that began, it was
 * somebody whom it could not reach: the other side of a partition that is over, say. It is suspected, which it hears of and
 * denies; so nobody takes it for lost in between. */
static bool is_late_verdict(const struct site *site, uint32_t number, const struct status *status)
{
	const struct member *member = &site->members[number];
	if (status->state != SITE_LOST || member->state != SITE_ALIVE || !(member->flags & MEMBER_HEARD) ||
	    site->options.timing.plain)
		return false;
	int64_t ago_ms = site->now.wall_ms - member->heard_ms;
	return ago_ms >= 0 && (uint64_t)ago_ms * 1000 < suspicion_least_us(site);
}

static void hear_same(struct site *site, uint32_t number, const struct status *status, site_id via)
{
	if (status->state == SITE_SUSPECT && suspicion_confirm(site, number, status->accuser))
		news_add(site, number, status->accuser);
	else if (via != status->id && status->card_version == site->members[number].card->version)
		news_known(site, number);
}

/* Who still thinks ill of a site that has denied it missed the denial: it is told, or it would spread a mistake. */
static void correct(struct site *site, const struct status *status, site_id via)
{
	if (status->state != SITE_ALIVE && via != status->id && site->corrections_count < SITE_CORRECTIONS)
		site->corrections[site->corrections_count++] = status->id;
}

void member_hear(struct site *site, const struct status *status, site_id via)
{
	if (status->id == site->options.self) {
		hear_of_self(site, status, via);
		return;
	}
	if (status->id == 0 || removal_find(site, status->id))
		return;
	uint32_t number = table_find(site, status->id);
	if (number == SITE_NONE) {
		hear_of_stranger(site, status, via);
		return;
	}
	const struct member *member = &site->members[number];
	if (status->card_version > member->card->version)
		want_card(site, status, via);
	int compared = compare_numbers(status->incarnation, member->incarnation, via == status->id);
	if (compared < 0) {
		correct(site, status, via);
		return;
	}
	if (compared == 0 && status->state <= member->state) {
		if (status->state == member->state)
			hear_same(site, number, status, via);
		return;
	}
	if (member->state == SITE_LOST && status->state == SITE_ALIVE && via == status->id)
		exchange_soon(site, via);
	if (status->state == SITE_SUSPECT || is_late_verdict(site, number, status))
		suspect(site, number, status);
	else
		member_set_state(site, number, (enum site_state)status->state, status->incarnation);
	news_add(site, number, status->accuser);
}

/* ---- Records ------------------------------------------------------------------------------------------------------- */

/* The record, if its body makes sense and the host takes it; counted if not. */
static struct held *verify(struct site *site, const struct site_record *record, struct err *err)
{
	struct held *held = held_new(site->options.pool, record, err);
	if (held && !site->host.verify(site->host.context, record)) {
		held_drop(held);
		held = NULL;
		err_set(err, ERR_INVALID, "the signature of a record on site %016llx is not that of one who may say so",
		        (unsigned long long)record->subject);
	}
	if (!held)
		site->counters.refused_records++;
	return held;
}

static void note_accepted(struct site *site)
{
	site->accepted++;
	if (site->exchange_peer != 0)
		site->learnt = true;
}

/* A card of ours that is later than the one we have: our clock went back, or the version was lost. */
static int accept_own_card(struct site *site, const struct site_record *record, struct err *err)
{
	const struct held *card = site->members[0].card;
	if (!card || record->version <= card->version)
		return 0;
	struct held *held = verify(site, record, err);
	if (!held)
		return ERR_INVALID;
	struct buf text = {0};
	buf_put_number(&text, record->version, 0);
	site_tell(site, SITE_EVENT_CARD, site->options.self, held_name(held), buf_str(&text));
	buf_free(&text);
	held_drop(held);
	return 0;
}

int member_set_own(struct site *site, const struct site_record *record, struct err *err)
{
	const struct held *card = site->members[0].card;
	if (card && str_equal(held_bytes(card), record->bytes))
		return 0;
	if (card && record->version <= card->version)
		return err_set(err, ERR_CONFLICT, "the card of this site has version %llu; a new one has to have a higher one",
		               (unsigned long long)card->version);
	struct held *held = verify(site, record, err);
	if (!held)
		return ERR_INVALID;
	uint32_t holder = find_holder(site, held);
	bool elder = holder != SITE_NONE && is_elder(site->members[holder].card, held);
	if (elder && card) {
		err_set(err, ERR_CONFLICT, "the name " TEXT_NAME_FMT " is that of site %016llx, which is older",
		        TEXT_NAME(held_name(held)), (unsigned long long)site->members[holder].id);
		held_drop(held);
		return ERR_CONFLICT;
	}
	/* At the start it is the same as when the elder one turns up later: this site goes on alone, and says why. */
	if (elder)
		tell_outcast(site, site->members[holder].card);
	if (elder && site->members[holder].state != SITE_REVOKED)
		remove_member(site, holder);
	else if (!elder && holder != SITE_NONE)
		evict(site, holder);
	digest_toggle_member(site, 0);
	table_set_card(site, 0, held);
	digest_toggle_member(site, 0);
	site->epoch++;
	return 0;
}

static int add_member(struct site *site, struct held *card, const struct status *initial, struct err *err)
{
	uint32_t number = table_add(site, card->subject, card);
	if (number == SITE_NONE) {
		held_drop(card);
		return err_set(err, ERR_LIMIT, "the table has %d sites: no more fit", LIMIT_SITES);
	}
	struct member *member = &site->members[number];
	member->state = initial ? initial->state : SITE_ALIVE;
	member->incarnation = initial ? initial->incarnation : 0;
	member->since_ms = site->now.wall_ms;
	table_set_list(site, number, list_of((enum site_state)member->state));
	digest_toggle_member(site, number);
	site->epoch++;
	note_accepted(site);
	drop_claimant(site, member->id);
	tell_member(site, SITE_EVENT_JOINED, number, STR(""));
	if (member->state != SITE_ALIVE)
		tell_member(site, event_of((enum site_state)member->state), number, STR(""));
	if (member->state == SITE_SUSPECT)
		suspicion_start(site, number, initial->accuser);
	news_add(site, number, initial ? initial->accuser : 0);
	return 0;
}

static int accept_card(struct site *site, const struct site_record *record, const struct status *initial,
                       struct err *err)
{
	if (record->subject == site->options.self)
		return accept_own_card(site, record, err);
	if (removal_find(site, record->subject))
		return err_set(err, ERR_CONFLICT, "site %016llx was removed", (unsigned long long)record->subject);
	uint32_t number = table_find(site, record->subject);
	if (number != SITE_NONE && record->version <= site->members[number].card->version)
		return 0;
	if (is_refused_still(site, record->subject, record->version))
		return err_set(err, ERR_CONFLICT, "the name of site %016llx is taken", (unsigned long long)record->subject);
	struct held *held = verify(site, record, err);
	if (!held)
		return ERR_INVALID;
	int code = settle_name(site, held, err);
	if (code) {
		held_drop(held);
		return code;
	}
	number = table_find(site, record->subject); /* settling may have moved it */
	if (number == SITE_NONE)
		return add_member(site, held, initial, err);
	digest_toggle_member(site, number);
	table_set_card(site, number, held);
	digest_toggle_member(site, number);
	site->epoch++;
	note_accepted(site);
	tell_member(site, SITE_EVENT_CARD, number, STR(""));
	news_add(site, number, 0);
	return 0;
}

static void digest_toggle_held(struct site *site, const struct held *held)
{
	digest_toggle(site, &(struct item){.kind = held->kind, .subject = held->subject, .version = held->version});
}

static int keep_removal(struct site *site, struct held *held, struct held *old, struct err *err)
{
	if (!old && site->removals_count >= LIMIT_SITE_REMOVALS)
		return err_set(err, ERR_LIMIT, "%d removals are remembered: no more fit", LIMIT_SITE_REMOVALS);
	uint32_t number = 0;
	if (old) {
		while (site->removals[number] != old)
			number++;
		digest_toggle_held(site, old);
		site->removals[number] = held;
		held_drop(old);
	} else {
		number = site->removals_count++;
		site->removals = site_grow(site->removals, &site->removals_capacity, number + 1, sizeof(struct held *));
		site->removals[number] = held;
		index_add(&site->removals_by_id, number);
	}
	digest_toggle_held(site, held);
	return 0;
}

void member_shut_self_out(struct site *site, const struct held *removal)
{
	site->silent = true;
	site_tell(site, SITE_EVENT_OUTCAST, removal->subject, held_name(removal),
	          removal->removal == SITE_REVOKE ? STR("this site was revoked: the others no longer talk to it")
	                                          : STR("this site was removed: the others no longer talk to it"));
}

/* The name is that of a revoked site now: who was made later and has it is refused, as if it came now. */
static void keep_name_of_revoked(struct site *site, const struct held *removal)
{
	uint32_t other = table_find_name(site, held_name(removal));
	if (other == SITE_NONE || site->members[other].state == SITE_REVOKED || !site->members[other].card ||
	    is_elder(site->members[other].card, removal))
		return;
	if (other == 0)
		tell_outcast(site, removal);
	else
		evict(site, other);
}

/* `before` is how it was shut out already; 0: it was not. */
static void shut_out(struct site *site, struct held *removal, uint8_t before)
{
	drop_claimant(site, removal->subject);
	uint32_t number = table_find(site, removal->subject);
	if (site->announcing && number != SITE_NONE && site->members[number].list == LIST_LIVE) {
		letter_begin(site, TYPE_NEWS, 0, 0);
		letter_record(site, removal);
		letter_send(site, number);
	}
	if (removal->removal == SITE_FORGET) {
		if (number != SITE_NONE)
			remove_member(site, number);
		if (before != SITE_FORGET)
			site_tell(site, SITE_EVENT_REMOVED, removal->subject, held_name(removal), STR(""));
		return;
	}
	if (number == SITE_NONE) {
		number = table_add(site, removal->subject, held_keep(removal));
		if (number == SITE_NONE) {
			held_drop(removal);
			return; /* no room to show it; it is shut out all the same */
		}
	} else {
		news_remove(site, number);
		digest_toggle_member(site, number);
		table_set_card(site, number, held_keep(removal));
		digest_toggle_member(site, number);
	}
	member_set_state(site, number, SITE_REVOKED, site->members[number].incarnation);
	site->members[number].since_ms = removal->when_ms;
	keep_name_of_revoked(site, removal);
}

static int accept_removal(struct site *site, const struct site_record *record, struct err *err)
{
	struct held *old = removal_find(site, record->subject);
	if (old && record->version <= old->version)
		return 0;
	struct held *held = verify(site, record, err);
	if (!held)
		return ERR_INVALID;
	uint8_t before = old ? old->removal : 0;
	int code = keep_removal(site, held, old, err);
	if (code) {
		held_drop(held);
		return code;
	}
	site->epoch++;
	site->urgent = before != held->removal; /* else it was only signed anew: that can wait for its turn */
	note_accepted(site);
	news_push_record(site, held);
	if (held->subject == site->options.self && before == 0)
		member_shut_self_out(site, held);
	else if (held->subject == site->options.self)
		return 0;
	else
		shut_out(site, held, before);
	return 0;
}

static int accept_root(struct site *site, const struct site_record *record, struct err *err)
{
	uint32_t number = 0;
	while (number < site->roots_count && site->roots[number]->subject != record->subject)
		number++;
	if (number < site->roots_count && record->version <= site->roots[number]->version)
		return 0;
	if (number >= LIMIT_SITE_ROOTS)
		return err_set(err, ERR_LIMIT, "records on %d roots are remembered: no more fit", LIMIT_SITE_ROOTS);
	struct held *held = verify(site, record, err);
	if (!held)
		return ERR_INVALID;
	if (number < site->roots_count) {
		digest_toggle_held(site, site->roots[number]);
		held_drop(site->roots[number]);
	} else {
		site->roots_count++;
	}
	site->roots[number] = held;
	digest_toggle_held(site, held);
	site->epoch++;
	site->urgent = true;
	note_accepted(site);
	news_push_record(site, held);
	site_tell(site, SITE_EVENT_ROOT, held->subject, STR(""), STR(""));
	return 0;
}

int member_accept(struct site *site, struct str bytes, const struct status *initial, struct err *err)
{
	struct site_record record;
	int code = site_record_parse(bytes, &record, err);
	if (code) {
		site->counters.refused_records++;
		return code;
	}
	want_came(site, record.kind, record.subject, record.version);
	switch (record.kind) {
	case SITE_CARD: return accept_card(site, &record, initial, err);
	case SITE_REMOVAL: return accept_removal(site, &record, err);
	default: return accept_root(site, &record, err);
	}
}

/* ---- Old entries ---------------------------------------------------------------------------------------------------- */

void member_forget_old(struct site *site)
{
	int64_t before_ms = site->now.wall_ms - (int64_t)(site->options.timing.forget_us / 1000);
	for (uint32_t i = site->members_count; i-- > 1;) {
		const struct member *member = &site->members[i];
		if ((member->state != SITE_LOST && member->state != SITE_LEFT) || member->since_ms > before_ms)
			continue;
		tell_member(site, SITE_EVENT_REMOVED, i, STR(""));
		remove_member(site, i);
	}
}
