/* The table of names, at the prime of a container.
 *
 * An entry is *reserved* while its maker has not confirmed that the child is there, under the number of this very entry: messages may be
 * old, and speak of an earlier entry of the same claim. Whose entry is reserved is asked, again and again, ever more rarely.
 *
 * A claim that would take a name from another is not believed at once either: it becomes a *rival*, is asked with a number, and if it answers
 * the name is its own. The one that had it becomes a rival too, one that has lost (number 0), and is told until it says that it knows. */
#include "cross/names_int.h"

static void say(struct cross_names *names, const struct container *it, site_id to, enum verdict_kind kind,
                const struct claim_item *item, const struct name_row *row)
{
	struct verdict_item verdict = {.claim = item->claim, .kind = (uint8_t)kind, .stamp = item->stamp};
	if (row) {
		verdict.unchecked = row->unchecked;
		verdict.nonce = row->nonce;
		verdict.holder = row->child;
		verdict.holder_site = row->site;
	}
	names_tell_verdict(names, it, to, &verdict);
}

/* To a claim whose maker has this number for it. */
static void refuse(struct cross_names *names, const struct container *it, site_id to, const struct claim_item *item,
                   const struct name_row *row, uint64_t nonce)
{
	struct name_row told = *row;
	told.nonce = nonce;
	say(names, it, to, VERDICT_REFUSED, item, &told);
}

/* Reserves the name for a claim, and says so. */
static void enter(struct cross_names *names, const struct container *it, site_id from, struct str key,
                  const struct claim_item *item, bool unchecked)
{
	struct name_row row = {.child = item->claim.child,
	                       .site = from,
	                       .stamp = item->stamp,
	                       .nonce = names_nonce(names),
	                       .unchecked = unchecked};
	names_put_name(names, key, &row);
	struct active *active = active_make(names, CROSS_NAMES, key);
	active->wait_us = 0;
	active_again(names, active);
	say(names, it, from, VERDICT_GRANTED, item, &row);
}

static bool is_rival(struct cross_names *names, const struct claim_item *item, struct rival_row *rival)
{
	struct key key = key_of_claim(&item->claim);
	return names_get_rival(names, key_str(&key), rival) && rival->stamp == item->stamp;
}

/* This claim, or an earlier one of the same child on the same name. */
static void end_rival(struct cross_names *names, const struct claim_item *item)
{
	struct rival_row rival;
	struct key key = key_of_claim(&item->claim);
	if (names_get_rival(names, key_str(&key), &rival) && rival.stamp <= item->stamp)
		names_remove(names, CROSS_RIVALS, key_str(&key));
}

/* ---- Claims --------------------------------------------------------------------------------------------------------------- */

static void asked(struct cross_names *names, const struct container *it, site_id from, struct str key,
                  const struct claim_item *item, const struct name_row *row)
{
	if ((it->known >> container_index(it, from) & 1) == 0)
		return; /* not yet: it asks again */
	bool later = row && row->site == from && item->stamp > row->stamp;
	if (!row || (names_same(row->child, item->claim.child) && (row->orphan || later)))
		enter(names, it, from, key, item, false);
	else if (names_same(row->child, item->claim.child) && (item->stamp == row->stamp || row->site != from))
		say(names, it, from, VERDICT_GRANTED, item, row);
	else if (!names_same(row->child, item->claim.child))
		refuse(names, it, from, item, row, NONCE_OF_ASKED);
}

/* Of two that have a name, apart from each other. What was checked stays; of two that were not, the earlier. */
static bool takes_it(const struct claim_item *item, const struct name_row *row)
{
	if (!row->unchecked)
		return false;
	if (!item->unchecked)
		return true;
	if (item->stamp != row->stamp)
		return item->stamp < row->stamp;
	return memcmp(item->claim.child.bytes, row->child.bytes, sizeof(row->child.bytes)) < 0;
}

static void become_rival(struct cross_names *names, const struct cross_claim *claim, const struct rival_row *rival)
{
	struct key key = key_of_claim(claim);
	names_put_rival(names, key_str(&key), rival);
	struct active *active = active_make(names, CROSS_RIVALS, key_str(&key));
	active->due_us = names->now.us;
	active->wait_us = 0;
	prime_rival_due(names, active);
}

static void contend(struct cross_names *names, const struct container *it, site_id from, struct str key,
                    const struct claim_item *item, const struct name_row *row)
{
	struct rival_row rival;
	bool known = is_rival(names, item, &rival);
	if (!takes_it(item, row) || (known && rival.nonce == 0)) {
		if (known && rival.nonce != 0)
			end_rival(names, item);
		refuse(names, it, from, item, row, item->nonce);
		return;
	}
	if (!known || item->nonce != rival.nonce) {
		if (!known)
			rival = (struct rival_row){from, item->stamp, names_nonce(names), 0, item->unchecked};
		become_rival(names, &item->claim, &rival);
		return;
	}
	struct cross_claim loser = item->claim;
	loser.child = row->child;
	struct rival_row lost = {row->site, row->stamp, 0, row->nonce, row->unchecked};
	end_rival(names, item);
	enter(names, it, from, key, item, item->unchecked);
	if (!row->orphan) /* nobody is there to be told; who inherits it asks */
		become_rival(names, &loser, &lost);
}

/* Several sites hold the child, its maker is gone, and each of them claims its name. The entry is the first one's; if that goes as well, all say so
 * again, and it is the next one's. */
static void share(struct cross_names *names, const struct container *it, site_id from, const struct claim_item *item,
                  const struct name_row *row)
{
	bool noted = item->state == CROSS_KEPT && item->nonce == row->nonce;
	say(names, it, from, noted ? VERDICT_NOTED : VERDICT_GRANTED, item, row);
}

static void held(struct cross_names *names, const struct container *it, site_id from, struct str key,
                 const struct claim_item *item, struct name_row *row)
{
	struct rival_row rival;
	if (!row && is_rival(names, item, &rival) && rival.nonce == 0) {
		struct name_row nobody = {0};
		refuse(names, it, from, item, &nobody, item->nonce);
	} else if (!row) {
		end_rival(names, item);
		enter(names, it, from, key, item, item->unchecked);
	} else if (!names_same(row->child, item->claim.child)) {
		contend(names, it, from, key, item, row);
	} else if (row->orphan) {
		enter(names, it, from, key, item, row->unchecked);
	} else if (row->site != from) {
		share(names, it, from, item, row);
	} else if (item->stamp > row->stamp) {
		enter(names, it, from, key, item, item->unchecked);
	} else if (item->stamp == row->stamp && item->state == CROSS_KEPT && item->nonce == row->nonce) {
		if (!row->kept) {
			row->kept = true;
			names_put_name(names, key, row);
			active_end(names, CROSS_NAMES, key);
		}
		say(names, it, from, VERDICT_NOTED, item, row);
	} else if (item->stamp == row->stamp) {
		say(names, it, from, VERDICT_GRANTED, item, row);
	}
}

/* It is not, or no longer, the name of this claim, nor of an earlier one of the same child: a claim that was begun again before its
 * end was told has the later stamp, and is all that its maker remembers. */
static void given_up(struct cross_names *names, site_id from, struct str key, const struct claim_item *item,
                     const struct name_row *row)
{
	if (row && row->site == from && names_same(row->child, item->claim.child) && row->stamp <= item->stamp)
		names_remove(names, CROSS_NAMES, key);
	end_rival(names, item);
}

void prime_claim(struct cross_names *names, struct container *it, site_id from, const struct claim_item *item)
{
	struct key key = key_of_name(&item->claim);
	struct name_row row;
	bool there = names_get_name(names, key_str(&key), &row);
	switch ((enum cross_claim_state)item->state) {
	case CROSS_ASKED: asked(names, it, from, key_str(&key), item, there ? &row : NULL); break;
	case CROSS_GRANTED:
	case CROSS_KEPT: held(names, it, from, key_str(&key), item, there ? &row : NULL); break;
	case CROSS_GONE:
		given_up(names, from, key_str(&key), item, there ? &row : NULL);
		say(names, it, from, VERDICT_FREED, item, NULL);
		break;
	case CROSS_LOST: given_up(names, from, key_str(&key), item, there ? &row : NULL); break;
	}
}

/* ---- Due ------------------------------------------------------------------------------------------------------------------ */

void prime_name_due(struct cross_names *names, struct active *active)
{
	struct key copy = active->key;
	struct str key = str_make(copy.bytes + 1, copy.length - 1);
	struct claim_item item = {0};
	struct name_row row;
	struct container *it = key_parse(key, false, &item.claim) ? container_of(names, item.claim.container) : NULL;
	if (!it || !container_is_prime(names, it) || !names_get_name(names, key, &row) || row.kept || row.orphan) {
		active_end(names, CROSS_NAMES, key);
		return;
	}
	item.claim.child = row.child;
	item.stamp = row.stamp;
	say(names, it, row.site, VERDICT_GRANTED, &item, &row);
	active_again(names, active);
}

void prime_rival_due(struct cross_names *names, struct active *active)
{
	struct key copy = active->key;
	struct str key = str_make(copy.bytes + 1, copy.length - 1);
	struct claim_item item = {0};
	struct rival_row rival;
	struct name_row row = {0};
	struct container *it = key_parse(key, true, &item.claim) ? container_of(names, item.claim.container) : NULL;
	if (!it || !container_is_prime(names, it) || !names_get_rival(names, key, &rival)) {
		active_end(names, CROSS_RIVALS, key);
		return;
	}
	struct key name = key_of_name(&item.claim);
	item.stamp = rival.stamp;
	names_get_name(names, key_str(&name), &row);
	row.nonce = rival.nonce ? rival.nonce : rival.had;
	say(names, it, rival.site, rival.nonce ? VERDICT_ASKED : VERDICT_REFUSED, &item, &row);
	active_again(names, active);
}

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

/* It was a site of the container before, and is, without having left it meanwhile. */
static bool stays(const struct cross_container *before, const struct container *it, site_id site)
{
	uint32_t index = container_index(it, site);
	for (uint32_t i = 0; i < before->count; i++) {
		if (before->sites[i].site == site)
			return index < it->list.count && it->list.sites[index].joined == before->sites[i].joined;
	}
	return false;
}

void prime_drop(struct cross_names *names, struct replica_id container)
{
	for (enum cross_table table = CROSS_NAMES; table <= CROSS_RIVALS; table++) {
		struct buf keys = {0};
		struct str key;
		names_keys(names, table, names_id_str(&container), &keys);
		for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);)
			names_remove(names, table, key);
		buf_free(&keys);
	}
}

static void drop_rivals(struct cross_names *names, const struct container *it, const struct cross_container *before)
{
	struct buf keys = {0};
	struct str key;
	names_keys(names, CROSS_RIVALS, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct rival_row rival;
		if (!names_get_rival(names, key, &rival) || !stays(before, it, rival.site))
			names_remove(names, CROSS_RIVALS, key);
	}
	buf_free(&keys);
}

/* Also what it has not confirmed: it may have made the child, and told others of it, before it went. */
void prime_leave_behind(struct cross_names *names, struct container *it, const struct cross_container *before)
{
	struct buf keys = {0};
	struct str key;
	drop_rivals(names, it, before);
	names_keys(names, CROSS_NAMES, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct name_row row;
		if (!names_get_name(names, key, &row)) {
			names_remove(names, CROSS_NAMES, key);
			continue;
		}
		if (!row.orphan && !stays(before, it, row.site)) {
			row.orphan = true;
			names_put_name(names, key, &row);
			active_end(names, CROSS_NAMES, key);
		}
		it->orphans |= row.orphan;
	}
	buf_free(&keys);
}

void prime_drop_orphans(struct cross_names *names, struct container *it)
{
	struct buf keys = {0};
	struct str key;
	if (it->orphans)
		names_keys(names, CROSS_NAMES, names_id_str(&it->id), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct name_row row;
		if (names_get_name(names, key, &row) && row.orphan)
			names_remove(names, CROSS_NAMES, key);
	}
	it->orphans = false;
	buf_free(&keys);
}

void prime_site_removed(struct cross_names *names, site_id site)
{
	struct buf keys = {0};
	struct str key;
	names_keys(names, CROSS_RIVALS, STR(""), &keys);
	for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
		struct rival_row rival;
		if (names_get_rival(names, key, &rival) && rival.site == site)
			names_remove(names, CROSS_RIVALS, key);
	}
	buf_free(&keys);
}

static void start_name(struct cross_names *names, struct str key)
{
	struct name_row row;
	struct cross_claim claim;
	if (!names_get_name(names, key, &row) || !key_parse(key, false, &claim))
		return;
	struct container *it = container_of(names, claim.container);
	if (row.orphan && it && container_is_prime(names, it)) {
		it->orphans = true;
		active_make(names, CROSS_CONTAINERS, names_id_str(&it->id));
	} else if (!row.kept && !row.orphan) {
		active_make(names, CROSS_NAMES, key);
	}
}

void prime_start(struct cross_names *names)
{
	for (enum cross_table table = CROSS_NAMES; table <= CROSS_RIVALS; table++) {
		struct buf keys = {0};
		struct str key;
		struct rival_row rival;
		names_keys(names, table, STR(""), &keys);
		for (struct reader reader = reader_of(buf_str(&keys)); names_keys_next(&reader, &key);) {
			if (table == CROSS_NAMES)
				start_name(names, key);
			else if (names_get_rival(names, key, &rival))
				active_make(names, table, key);
		}
		buf_free(&keys);
	}
}
