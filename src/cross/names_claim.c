/* A claim at its maker.
 *
 *   asked ──granted──▶ granted ──kept──▶ kept ──released──▶ gone ──freed──▶ (no row)
 *     │ refused: no row    │ released ─────────────────────▲
 *     │ no answer in time: gone; or, `optimistic`, granted and unchecked
 *     └ found at a start: gone
 *   granted or kept, and refused after all ──▶ lost ──released──▶ gone
 */
#include "cross/names_int.h"

#include "base/check.h"

/* ---- Said to the prime ------------------------------------------------------------------------------------------------- */

static void tell(struct cross_names *names, const struct container *it, const struct cross_claim *claim,
                 const struct claim_row *row)
{
	struct claim_item item = {*claim, row->state, row->unchecked, row->stamp, row->nonce};
	names_tell_prime(names, it, &item);
}

/* Has something to be said of it? */
static bool is_quiet(const struct claim_row *row)
{
	switch ((enum cross_claim_state)row->state) {
	case CROSS_ASKED:
	case CROSS_GONE: return false;
	case CROSS_GRANTED: return row->nonce != 0;
	case CROSS_KEPT: return row->noted;
	case CROSS_LOST: return true;
	}
	return true;
}

/* Puts it, and says what there is to say: at once, and until it is answered. */
static void set(struct cross_names *names, struct str key, const struct claim_row *row)
{
	names_put_claim(names, key, row);
	struct active *active = active_find(names, CROSS_CLAIMS, key);
	if (is_quiet(row)) {
		if (!active || !active->doubt)
			active_end(names, CROSS_CLAIMS, key);
		return;
	}
	active = active_make(names, CROSS_CLAIMS, key);
	active->due_us = names->now.us;
	active->wait_us = 0;
	claim_due(names, active);
}

/* The host has said what became of it. */
static void end_doubt(struct cross_names *names, struct str key)
{
	struct active *active = active_find(names, CROSS_CLAIMS, key);
	if (active)
		active->doubt = false;
}

/* ---- Begun by the host --------------------------------------------------------------------------------------------------- */

/* Does another child of this site have the name, or is about to? */
static bool held_here(struct cross_names *names, const struct cross_claim *claim, struct replica_id *holder)
{
	struct key prefix = key_of_name(claim);
	struct buf keys = {0};
	struct str key;
	bool held = false;
	names_keys(names, CROSS_CLAIMS, key_str(&prefix), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); !held && names_keys_next(&reader, &key);) {
		struct claim_row row;
		struct cross_claim other;
		held = key_parse(key, true, &other) && !names_same(other.child, claim->child) &&
		       names_get_claim(names, key, &row) && (row.state == CROSS_GRANTED || row.state == CROSS_KEPT);
		*holder = other.child;
	}
	buf_free(&keys);
	return held;
}

static void answer_taken_here(struct cross_names *names, uint64_t ticket, struct replica_id holder)
{
	struct cross_answer answer = {
		.ticket = ticket, .code = ERR_CONFLICT, .holder = holder, .holder_site = names->options.self};
	names->counters.refused++;
	names->host.answer(names->host.context, &answer);
}

int claim_begin(struct cross_names *names, const struct cross_claim *claim, struct str instead_of, uint64_t ticket,
                struct err *err)
{
	struct key key = key_of_claim(claim);
	struct claim_row row;
	struct replica_id holder;
	if (names_get_claim(names, key_str(&key), &row) && row.state != CROSS_GONE)
		return err_set(err, ERR_CONFLICT, "the child has this name already, or is about to");
	names->counters.claimed++;
	if (held_here(names, claim, &holder)) {
		answer_taken_here(names, ticket, holder);
		return 0;
	}
	row = (struct claim_row){.state = CROSS_ASKED, .stamp = names_stamp(names)};
	row.old_length = (uint8_t)instead_of.length;
	memcpy(row.old, instead_of.at, instead_of.length);
	struct active *active = active_make(names, CROSS_CLAIMS, key_str(&key));
	active->ticket = ticket;
	active->deadline_us = names->now.us + names->options.wait_us;
	names->waiting++;
	set(names, key_str(&key), &row);
	return 0;
}

void claim_adopt(struct cross_names *names, const struct cross_claim *claim)
{
	struct key key = key_of_claim(claim);
	struct claim_row row;
	if (names_get_claim(names, key_str(&key), &row) && row.state != CROSS_GONE)
		return;
	row = (struct claim_row){.state = CROSS_KEPT, .unchecked = true, .stamp = names_stamp(names)};
	set(names, key_str(&key), &row);
}

static void release(struct cross_names *names, struct str key, struct claim_row *row)
{
	row->state = CROSS_GONE;
	end_doubt(names, key);
	active_answer(names, key, &(struct cross_answer){.code = ERR_UNAVAILABLE});
	set(names, key, row);
}

void claim_release(struct cross_names *names, const struct cross_claim *claim)
{
	struct key key = key_of_claim(claim);
	struct claim_row row;
	if (names_get_claim(names, key_str(&key), &row) && row.state != CROSS_GONE)
		release(names, key_str(&key), &row);
}

/* The child has its new name: the old one is free, in the same commit. */
static void release_old(struct cross_names *names, const struct cross_claim *claim, struct claim_row *row)
{
	struct cross_claim old = *claim;
	char name[LIMIT_REPLICA_NAME_BYTES];
	if (row->old_length == 0)
		return;
	memcpy(name, row->old, row->old_length);
	old.name = str_make(name, row->old_length);
	row->old_length = 0;
	if (!str_equal(old.name, claim->name))
		claim_release(names, &old);
}

void claim_kept(struct cross_names *names, const struct cross_claim *claim)
{
	struct key key = key_of_claim(claim);
	struct claim_row row;
	if (!names_get_claim(names, key_str(&key), &row) || row.state == CROSS_ASKED || row.state == CROSS_GONE)
		return;
	end_doubt(names, key_str(&key));
	release_old(names, claim, &row);
	if (row.state == CROSS_GRANTED) {
		row.state = CROSS_KEPT;
		row.noted = false;
	} else if (row.state == CROSS_LOST) { /* it was lost while it was being made */
		names->host.lost(names->host.context, &(struct cross_lost){*claim, row.holder, row.holder_site});
	}
	set(names, key_str(&key), &row);
}

/* ---- Due ------------------------------------------------------------------------------------------------------------------ */

static void expire(struct cross_names *names, const struct container *it, const struct cross_claim *claim,
                   struct str key, struct claim_row *row)
{
	struct cross_answer answer = {.unchecked = true};
	if (!it->list.optimistic) {
		names->counters.unavailable++;
		release(names, key, row);
		return;
	}
	if (held_here(names, claim, &answer.holder)) {
		answer.code = ERR_CONFLICT;
		answer.unchecked = false;
		answer.holder_site = names->options.self;
		row->state = CROSS_GONE;
		names->counters.refused++;
	} else {
		row->state = CROSS_GRANTED;
		row->unchecked = true;
		names->counters.unchecked++;
	}
	active_answer(names, key, &answer);
	set(names, key, row);
}

/* Of a claim that was granted, or kept, before this site crashed. True: there is nothing more to do here. */
static bool find_out(struct cross_names *names, struct active *active, const struct cross_claim *claim, struct str key,
                     struct claim_row *row)
{
	if (!active->doubt)
		return false;
	switch (names->host.fate(names->host.context, claim)) {
	case CROSS_EXISTS: claim_kept(names, claim); return true;
	case CROSS_ABSENT: release(names, key, row); return true;
	case CROSS_UNKNOWN: break;
	}
	return false;
}

void claim_due(struct cross_names *names, struct active *active)
{
	struct key copy = active->key;
	struct str key = str_make(copy.bytes + 1, copy.length - 1);
	struct cross_claim claim;
	struct claim_row row;
	struct container *it = NULL;
	if (key_parse(key, true, &claim))
		it = container_of(names, claim.container);
	if (!it || container_index(it, names->options.self) == it->list.count || !names_get_claim(names, key, &row)) {
		active_end(names, CROSS_CLAIMS, key);
		return;
	}
	if (row.state == CROSS_ASKED && active->deadline_us <= names->now.us) {
		expire(names, it, &claim, key, &row);
		return;
	}
	if (find_out(names, active, &claim, key, &row))
		return;
	if (!is_quiet(&row))
		tell(names, it, &claim, &row);
	else if (!active->doubt) {
		active_end(names, CROSS_CLAIMS, key);
		return;
	}
	active_again(names, active);
}

/* ---- What the prime says --------------------------------------------------------------------------------------------------- */

static void say_gone(struct cross_names *names, const struct container *it, const struct verdict_item *verdict)
{
	struct claim_item item = {.claim = verdict->claim, .state = CROSS_GONE, .stamp = verdict->stamp};
	names_tell_prime(names, it, &item);
}

static void granted(struct cross_names *names, const struct container *it, struct str key, struct claim_row *row,
                    const struct verdict_item *verdict)
{
	bool same = row->nonce == verdict->nonce;
	row->nonce = verdict->nonce;
	switch ((enum cross_claim_state)row->state) {
	case CROSS_ASKED:
		row->state = CROSS_GRANTED;
		row->unchecked = verdict->unchecked;
		names->counters.granted++;
		active_answer(names, key, &(struct cross_answer){.code = 0});
		set(names, key, row);
		break;
	case CROSS_GRANTED:
		if (!same || row->unchecked != verdict->unchecked) {
			row->unchecked = verdict->unchecked;
			set(names, key, row);
		}
		break;
	case CROSS_KEPT:
		row->unchecked = verdict->unchecked;
		row->noted = false;
		set(names, key, row);
		break;
	case CROSS_GONE:
	case CROSS_LOST: tell(names, it, &verdict->claim, row); break;
	}
}

static void refused(struct cross_names *names, const struct container *it, struct str key, struct claim_row *row,
                    const struct verdict_item *verdict)
{
	struct cross_lost lost = {verdict->claim, verdict->holder, verdict->holder_site};
	switch ((enum cross_claim_state)row->state) {
	case CROSS_ASKED:
		names->counters.refused++;
		active_answer(names, key,
		              &(struct cross_answer){
						  .code = ERR_CONFLICT, .holder = verdict->holder, .holder_site = verdict->holder_site});
		names_remove(names, CROSS_CLAIMS, key);
		break;
	case CROSS_GRANTED:
	case CROSS_KEPT:
		if (row->nonce != verdict->nonce) { /* about an earlier entry, or another claim's time: say how it is */
			if (verdict->nonce != NONCE_OF_ASKED)
				tell(names, it, &verdict->claim, row);
			break;
		}
		row->state = CROSS_LOST;
		row->holder = verdict->holder;
		row->holder_site = verdict->holder_site;
		names->counters.lost++;
		set(names, key, row);
		names->host.lost(names->host.context, &lost);
		tell(names, it, &verdict->claim, row);
		break;
	case CROSS_GONE:
	case CROSS_LOST: tell(names, it, &verdict->claim, row); break;
	}
}

void claim_verdict(struct cross_names *names, const struct container *it, const struct verdict_item *verdict)
{
	struct key key = key_of_claim(&verdict->claim);
	struct claim_row row;
	bool there = names_get_claim(names, key_str(&key), &row) && row.stamp == verdict->stamp;
	switch ((enum verdict_kind)verdict->kind) {
	case VERDICT_GRANTED:
		if (there)
			granted(names, it, key_str(&key), &row, verdict);
		else
			say_gone(names, it, verdict);
		break;
	case VERDICT_NOTED:
		if (there && row.state == CROSS_KEPT && row.nonce == verdict->nonce && !row.noted) {
			row.noted = true;
			set(names, key_str(&key), &row);
		}
		break;
	case VERDICT_REFUSED:
		if (there)
			refused(names, it, key_str(&key), &row, verdict);
		else
			say_gone(names, it, verdict);
		break;
	case VERDICT_FREED:
		if (there && row.state == CROSS_GONE) {
			names_remove(names, CROSS_CLAIMS, key_str(&key));
			names->counters.freed++;
		}
		break;
	case VERDICT_ASKED:
		if (there) {
			row.nonce = verdict->nonce; /* said, not kept: it is not an entry's */
			tell(names, it, &verdict->claim, &row);
		} else {
			say_gone(names, it, verdict);
		}
		break;
	case VERDICT_KINDS: break;
	}
}

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

void claims_anew(struct cross_names *names, const struct container *it, bool unchecked)
{
	struct buf keys = {0};
	struct str key;
	names_keys(names, CROSS_CLAIMS, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct claim_row row;
		if (!names_get_claim(names, key, &row) || (row.state != CROSS_GRANTED && row.state != CROSS_KEPT))
			continue;
		row.nonce = 0;
		row.noted = false;
		row.unchecked = row.unchecked || unchecked;
		names_put_claim(names, key, &row);
		active_make(names, CROSS_CLAIMS, key);
	}
	buf_free(&keys);
}

bool claims_told(struct cross_names *names, const struct container *it)
{
	struct buf keys = {0};
	struct str key;
	bool told = true;
	names_keys(names, CROSS_CLAIMS, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); told && names_keys_next(&reader, &key);) {
		struct claim_row row;
		if (names_get_claim(names, key, &row))
			told = row.nonce != 0 || (row.state != CROSS_GRANTED && row.state != CROSS_KEPT);
	}
	buf_free(&keys);
	return told;
}

bool claims_any(struct cross_names *names, const struct container *it)
{
	struct buf keys = {0};
	struct str key;
	bool any = false;
	names_keys(names, CROSS_CLAIMS, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); !any && names_keys_next(&reader, &key);) {
		struct claim_row row;
		any = names_get_claim(names, key, &row) && row.state != CROSS_GONE;
	}
	buf_free(&keys);
	return any;
}

void claims_drop(struct cross_names *names, struct replica_id container)
{
	struct buf keys = {0};
	struct str key;
	names_keys(names, CROSS_CLAIMS, names_id_str(&container), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);)
		names_remove(names, CROSS_CLAIMS, key);
	buf_free(&keys);
}

/* When this site starts: nobody waits any more, and what was granted may have been made or not. */
static void start(struct cross_names *names, struct str key, const struct cross_claim *claim, struct claim_row *row)
{
	struct cross_lost lost = {*claim, row->holder, row->holder_site};
	enum cross_fate fate = CROSS_UNKNOWN;
	if (row->state == CROSS_GRANTED || row->state == CROSS_KEPT || row->state == CROSS_LOST)
		fate = names->host.fate(names->host.context, claim);
	if (row->state == CROSS_ASKED || (row->state != CROSS_GONE && fate == CROSS_ABSENT)) {
		row->state = CROSS_GONE;
		names_put_claim(names, key, row);
	} else if (row->state == CROSS_GRANTED && fate == CROSS_EXISTS) {
		release_old(names, claim, row);
		row->state = CROSS_KEPT;
		row->noted = false;
		names_put_claim(names, key, row);
	}
	if (row->state == CROSS_LOST)
		names->host.lost(names->host.context, &lost);
	bool doubt = fate == CROSS_UNKNOWN && row->state != CROSS_GONE;
	if (!is_quiet(row) || doubt)
		active_make(names, CROSS_CLAIMS, key)->doubt = doubt;
}

void claims_start(struct cross_names *names)
{
	struct buf keys = {0};
	struct str key;
	names_keys(names, CROSS_CLAIMS, STR(""), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct cross_claim claim;
		struct claim_row row;
		if (key_parse(key, true, &claim) && names_get_claim(names, key, &row))
			start(names, key, &claim, &row);
		else
			names->counters.damaged++;
	}
	buf_free(&keys);
}
