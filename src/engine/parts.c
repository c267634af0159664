/* Sites of what is divided come and go (docs/cross.md, "Other sites of what is divided"). At every moment its parts are all that there is of it.
 *
 * To add a site N, asked at a member A:
 *   1. A reads all members, as for a comparison (verify.c): each has to answer, or nothing is done, since it could not be divided anew.
 *   2. A gives N a copy (newcomer.c) which has nothing of what is divided, or summed; and the division of now, in which N has no share. Whatever N runs before 4
 *      has no part for it (division.c), so the sum is what it was.
 *   3. N has made it.
 *   4. The prime finds a member that is not in the division, which its comparing looks for (follow.c): it issues an operation that divides the present whole anew, with N
 *      (redivide.c). One that loses against an update of the same moment, whose division is without N, is followed by another.
 * Nobody remembers that this is under way: the members and the division say so. Whoever crashes, and whenever, it goes on when all of them are there again.
 *
 * To withdraw a site S, asked at a member A:
 *   1. A reads all members. Something that is summed and not divided (what is in use) would be lost with S: refused.
 *   2. S has a part, or a share, or is not in the division: it is divided anew, with a weight of 0 for S, which stays in the division, so that no one takes it for one that has
 *      come. Back to 1.
 *   3. S has nothing, and is in the division as such: it is marked as leaving (members.c), at once. Every operation that gives S something was issued by a member that had not run that of 2; all were
 *      read when they had, and had seen the same. So nothing of that kind is on its way.
 * A crash between 2 and 3 leaves S as a member that has nothing: asking again goes on with 3. A member is away: nothing is done.
 *
 * A site that is forced out, or removed from the mesh, takes its part along. The others are divided among themselves from then on. */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { AGAIN_MS = 200, WITHDRAW_US = 30 * 1000 * 1000, WITHDRAW_TRIES = 8, FOLLOW_US = 1000 * 1000 };

static const enum replica_table TABLE = (enum replica_table)ENGINE_DIVISIONS;

static struct str name_of(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place ? utf8_truncate(place->name, LIMIT_NAME_SHOWN_BYTES) : STR("a site that is not known here");
}

/* ---- What is a part of it ------------------------------------------------------------------------------------------------ */

struct own_fields {
	struct str pointers[LIMIT_CROSS_FIELDS];
	struct cross_fields fields;
	bool too_many;
};

static void add_field(struct own_fields *own, struct arena *arena, struct str object, struct str pointer)
{
	struct buf text = {0};
	if (own->fields.count == LIMIT_CROSS_FIELDS) {
		own->too_many = true;
		return;
	}
	buf_put(&text, object);
	buf_put(&text, pointer);
	struct str whole = str_make(arena_copy(arena, text.at, text.length), text.length);
	buf_free(&text);
	for (uint32_t i = 0; i < own->fields.count; i++)
		if (str_equal(own->pointers[i], whole))
			return;
	own->pointers[own->fields.count++] = whole;
	own->fields.pointers = own->pointers;
}

static bool is_divided(const struct glue_cross *cross, struct str pointer)
{
	for (uint32_t i = 0; i < cross->divide_count; i++)
		if (str_equal(cross->divide[i], pointer))
			return true;
	return false;
}

/* What is divided; and what is put together, if `all`, or that alone. */
static void find_fields(struct arena *arena, const struct glue_type *type, bool divided, bool combined,
                        struct own_fields *own)
{
	const struct glue_cross *cross = glue_type_cross(type);
	const struct glue_operation *read = engine_operation_of(type, GLUE_READ);
	struct str object = read ? glue_operation_object(read) : STR("");
	*own = (struct own_fields){0};
	for (uint32_t i = 0; i < cross->divide_count && divided; i++)
		add_field(own, arena, object, cross->divide[i]);
	for (uint32_t i = 0; i < cross->combine_count && combined; i++) {
		const struct glue_combination *combination = &cross->combine[i];
		bool adds = combination->as == GLUE_SUM || combination->as == GLUE_CONCAT || combination->as == GLUE_UNION;
		if (adds && (divided || !is_divided(cross, combination->pointer)))
			add_field(own, arena, object, combination->pointer);
	}
}

int engine_parts_none(struct run *run, struct buf *fields, struct buf *body, struct err *err)
{
	struct replica_view view;
	struct own_fields own;
	struct cross_division division;
	struct buf none = {0};
	if (replica_look(run->engine->replica, &run->arena, run->task.op.replicant, &view) != 0)
		return err_set(err, ERR_NOT_FOUND, "it is not known here any more");
	if (view.span != REPLICA_DIVIDED)
		return 0;
	find_fields(&run->arena, run->match.type, true, true, &own);
	if (own.too_many || !engine_division_now(run->engine, &view, &division))
		return err_set(err, ERR_INVALID, "it is not known here how it is divided");
	int code = cross_empty_body(buf_str(body), &own.fields, &none, err);
	if (code == 0) {
		buf_clear(body);
		buf_put(body, buf_str(&none));
		engine_division_put_field(fields, &division);
	}
	buf_free(&none);
	return code;
}

/* ---- Who comes ------------------------------------------------------------------------------------------------------------ */

static uint32_t share_of(const struct cross_division *division, site_id site)
{
	uint32_t i = 0;
	while (i < division->count && division->shares[i].site != site)
		i++;
	return i;
}

static struct str tag_of(const struct site_place *place, struct str name)
{
	for (uint32_t i = 0; place && i < place->tags_count; i++)
		if (str_equal(place->tags[i].key, name))
			return place->tags[i].value;
	return STR("");
}

static int divide_by_tags(const struct engine *engine, const struct cross_division *of, struct str tag,
                          struct cross_division *division)
{
	struct cross_site sites[LIMIT_REPLICA_MEMBERS];
	struct str tags[LIMIT_REPLICA_MEMBERS];
	for (uint32_t i = 0; i < of->count; i++) {
		const struct site_place *place = engine_find_place(engine, of->shares[i].site);
		sites[i] = (struct cross_site){of->shares[i].site, place ? place->name : STR("")};
		tags[i] = tag_of(place, tag);
	}
	return cross_division_by_tags(sites, tags, of->count, tag, division, NULL);
}

/* By its tag, if it was divided by those; else it gets as much as the others do on average. Those have what they had, in proportion. */
static bool add_share(struct engine *engine, const struct replica_view *view, site_id site,
                      struct cross_division *division)
{
	struct cross_division tagged = {0}, wider = *division;
	struct buf target = {0};
	struct engine_item item = {.service = view->service, .collection = view->collection, .target = &target};
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == engine->options.self)
			item.local_id = view->members[i].local_id;
	bool known = engine->setup && item.local_id.length > 0 && engine_item_find(engine, engine->setup, &item);
	struct str tag = known ? glue_type_cross(item.match.type)->weight : STR("");
	buf_free(&target);
	if (cross_division_add(&wider, site, cross_division_mean(division), NULL) != 0)
		return false;
	bool same = tag.length > 0 && divide_by_tags(engine, division, tag, &tagged) == 0;
	for (uint32_t i = 0; i < division->count && same; i++)
		same = tagged.shares[i].weight == division->shares[i].weight;
	if (same && divide_by_tags(engine, &wider, tag, &tagged) == 0)
		wider = tagged;
	*division = wider;
	return true;
}

static void divided_anew(void *context, const struct engine_answer *answer)
{
	struct engine *engine = context;
	engine->parts_dividing = false;
	if (answer->code || answer->status >= 300)
		engine->parts_after_us = engine_now().us + FOLLOW_US;
}

bool engine_parts_follow(struct engine *engine, const struct replica_view *view)
{
	struct cross_division present, division;
	bool grows = false;
	if (view->prime != engine->options.self || !engine_division_get(engine, view->id, &present) ||
	    !engine_division_now(engine, view, &division))
		return false;
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct replica_member_view *member = &view->members[i];
		if (!member->leaving && !member->joining && share_of(&present, member->site) == present.count)
			grows |= add_share(engine, view, member->site, &division);
	}
	if (!grows || engine->parts_dividing || engine_now().us < engine->parts_after_us)
		return grows;
	engine->parts_dividing = true;
	engine_redivide(engine, &(struct engine_redivision){.replicant = view->id,
	                                                    .division = &division,
	                                                    .loop = engine->loop,
	                                                    .done = divided_anew,
	                                                    .context = engine});
	return true;
}

static bool note_row(void *context, struct str key, struct str row)
{
	(void)row;
	if (key.length == sizeof(struct replica_id))
		buf_put(context, key);
	return true;
}

void engine_parts_note_all(struct engine *engine, struct buf *ids)
{
	engine_row_scan(engine, TABLE, STR(""), STR(""), note_row, ids);
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------------- */

/* From engine_parts_ask() until it is told. */
struct withdrawal {
	struct http_timer timer; /* first */
	struct engine *engine;
	uint64_t number;
	struct engine_parting about;
	uint64_t until_us;
	uint32_t tries; /* operations that were to take its part from it */
	struct withdrawal *next;
};

/* The withdrawal may be gone when the answer comes. */
struct step {
	struct engine *engine;
	uint64_t number;
};

static struct step *step_new(const struct withdrawal *it)
{
	struct step *step = calloc(1, sizeof(*step));
	CHECK(step);
	*step = (struct step){it->engine, it->number};
	return step;
}

static struct withdrawal *step_end(void *context)
{
	struct step step = *(struct step *)context;
	struct withdrawal *it = step.engine->withdrawals;
	free(context);
	while (it && it->number != step.number)
		it = it->next;
	return it;
}

static void take_out(struct withdrawal *it)
{
	struct withdrawal **at = &it->engine->withdrawals;
	while (*at != it)
		at = &(*at)->next;
	*at = it->next;
	http_timer_clear(it->engine->loop, &it->timer);
}

static void end(struct withdrawal *it, const struct err *refusal)
{
	take_out(it);
	it->about.done(it->about.context, refusal);
	free(it);
}

static void refuse(struct withdrawal *it, int code, struct str site, struct str why)
{
	struct err err = {0};
	err_set(&err, code, "all parts of it are needed, and nothing was done: %.*s%s%.*s", STR_FMT(site),
	        site.length > 0 ? ": " : "", STR_FMT(why));
	end(it, &err);
}

/* It may be so in a moment. */
static void again(struct withdrawal *it, struct str site, struct str why)
{
	if (engine_now().us < it->until_us)
		http_timer_set(it->engine->loop, &it->timer, AGAIN_MS);
	else
		refuse(it, ERR_UNAVAILABLE, site, why);
}

static void redivided(void *context, const struct engine_answer *answer)
{
	struct withdrawal *it = step_end(context);
	if (!it)
		return;
	if (answer->status == 503 || (answer->code == 0 && answer->status < 300))
		again(it, STR(""), answer->code ? answer->detail : STR("it is being changed; try again"));
	else
		refuse(it, ERR_CONFLICT, name_of(it->engine, it->about.site),
		       answer->code ? answer->detail : STR("a part of nothing is not taken there; `cheops ops` says why"));
}

static void take_share(struct withdrawal *it, const struct replica_view *view)
{
	struct cross_division division;
	uint32_t share = UINT32_MAX, weights = 0;
	if (engine_division_now(it->engine, view, &division))
		share = share_of(&division, it->about.site);
	if (share == division.count && cross_division_add(&division, it->about.site, 0, NULL) != 0)
		share = UINT32_MAX;
	if (share != UINT32_MAX)
		division.shares[share].weight = 0;
	for (uint32_t i = 0; i < division.count; i++)
		weights += division.shares[i].weight > 0;
	if (share == UINT32_MAX || weights == 0) {
		refuse(it, ERR_CONFLICT, name_of(it->engine, it->about.site),
		       STR("no other site has a share, and what it has could go nowhere: give others one (Cheops-Divide)"));
		return;
	}
	if (++it->tries > WITHDRAW_TRIES) {
		refuse(it, ERR_UNAVAILABLE, name_of(it->engine, it->about.site),
		       STR("it gets something again and again: try again when there are fewer changes"));
		return;
	}
	engine_redivide(it->engine, &(struct engine_redivision){.replicant = view->id,
	                                                        .division = &division,
	                                                        .loop = it->engine->loop,
	                                                        .done = redivided,
	                                                        .context = step_new(it)});
}

/* Is there anything of it at the site? What is in use there, nobody can give to others. 1: yes; 0: no; -1: that was told. */
static int look_at_part(struct withdrawal *it, struct arena *arena, const struct replica_view *view, struct str part)
{
	struct engine *engine = it->engine;
	struct buf target = {0};
	struct engine_item item = {.service = view->service, .collection = view->collection, .target = &target};
	struct own_fields divided, used;
	struct str field = STR("");
	struct err err = {0};
	bool empty = false, unused = false;
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == engine->options.self)
			item.local_id = view->members[i].local_id;
	bool known = engine_item_find(engine, engine->setup, &item);
	buf_free(&target);
	if (!known) {
		refuse(it, ERR_CONFLICT, STR(""), STR("the description does not say any more how it is divided"));
		return -1;
	}
	find_fields(arena, item.match.type, true, false, &divided);
	find_fields(arena, item.match.type, false, true, &used);
	if (cross_is_empty(part, &divided.fields, &empty, &field, &err) != 0 ||
	    cross_is_empty(part, &used.fields, &unused, &field, &err) != 0) {
		refuse(it, ERR_CONFLICT, name_of(engine, it->about.site), str_of(err.text));
		return -1;
	}
	if (!unused) {
		err_set(&err, ERR_CONFLICT,
		        "%.*s has a `%.*s` of its own, which is not divided and would be lost with it: see to that first, or "
		        "force it out",
		        STR_FMT(name_of(engine, it->about.site)), STR_FMT(field));
		end(it, &err);
		return -1;
	}
	return empty ? 0 : 1;
}

/* Whoever is not in the division may be about to get a share, from a prime that takes it for one that has come. */
static bool has_share(struct engine *engine, const struct replica_view *view, site_id site)
{
	struct cross_division division;
	uint32_t share;
	if (!engine_division_now(engine, view, &division))
		return true;
	share = share_of(&division, site);
	return share == division.count || division.shares[share].weight > 0;
}

/* True: all parts were read. Who comes needs no more than that: the prime looks again before it divides. */
static bool has_all(struct withdrawal *it, const struct engine_verified *verified)
{
	for (uint32_t i = 0; i < verified->members_count; i++) {
		const struct engine_member_verdict *member = &verified->members[i];
		const struct engine_reading *reading = &verified->readings[i];
		struct str name = name_of(it->engine, member->site);
		struct str why = member->reason.length > 0 ? member->reason : STR("it cannot be read");
		const struct replica_member_view *about = &verified->view->members[i];
		bool joining = about->joining;
		if (about->rejected > 0 || about->in_doubt > 0) {
			refuse(it, ERR_CONFLICT, name, STR("an operation is rejected or in doubt there: see to that first"));
			return false;
		}
		bool here = reading->kind == ENGINE_READ_HERE && reading->text.length > 0;
		/* While the copy here is changed, what others say of theirs is not understood. */
		bool unsettled = reading->kind == ENGINE_READ_UNSETTLED || member->verdict == ENGINE_NOT_SETTLED || joining ||
		                 (reading->kind == ENGINE_READ_HERE && !here);
		if (it->about.site == 0 && (here || unsettled))
			continue;
		if (here && !unsettled && member->verdict != ENGINE_UNKNOWN)
			continue;
		if (unsettled)
			again(it, name, joining ? STR("it is being added") : why);
		else
			refuse(it, ERR_UNAVAILABLE, name, why);
		return false;
	}
	return true;
}

static void go_on(struct withdrawal *it, struct arena *arena, const struct engine_verified *verified)
{
	struct engine *engine = it->engine;
	const struct replica_view *view = verified->view;
	struct str part = STR("");
	if (!has_all(it, verified))
		return;
	if (!engine_redivide_can(engine, view)) {
		refuse(it, ERR_CONFLICT, STR(""), STR("the description knows no PATCH of it, which would divide it anew"));
		return;
	}
	for (uint32_t i = 0; i < verified->members_count; i++)
		if (verified->members[i].site == it->about.site)
			part = verified->readings[i].text;
	if (it->about.site == 0) {
		end(it, NULL);
		return;
	}
	int has = look_at_part(it, arena, view, part);
	if (has < 0)
		return;
	if (!engine_is_as_read(engine, arena, verified))
		again(it, STR(""), STR("it is being changed; try again"));
	else if (has || has_share(engine, view, it->about.site))
		take_share(it, view);
	else
		end(it, NULL); /* at this moment */
}

static void read(void *context, const struct engine_verified *verified)
{
	struct withdrawal *it = step_end(context);
	struct arena arena;
	if (!it)
		return;
	arena_init(&arena, 0);
	if (verified->code)
		refuse(it, verified->code == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_UNAVAILABLE, STR(""), verified->text);
	else
		go_on(it, &arena, verified);
	arena_free(&arena);
}

static void dropped(void *context)
{
	free(context);
}

static void look(struct http_timer *timer)
{
	struct withdrawal *it = (struct withdrawal *)timer;
	engine_verify(it->engine, &(struct engine_verification){.replicant = it->about.replicant,
	                                                        .parts = true,
	                                                        .loop = it->engine->loop,
	                                                        .done = read,
	                                                        .dropped = dropped,
	                                                        .context = step_new(it)});
}

void engine_parts_ask(struct engine *engine, const struct engine_parting *parting)
{
	struct withdrawal *it = calloc(1, sizeof(*it));
	CHECK(it);
	it->timer.fire = look;
	it->engine = engine;
	it->number = ++engine->withdrawals_made;
	it->about = *parting;
	it->until_us = engine_now().us + WITHDRAW_US;
	it->next = engine->withdrawals;
	engine->withdrawals = it;
	look(&it->timer);
}

void engine_parts_drop(struct engine *engine)
{
	while (engine->withdrawals) {
		struct withdrawal *it = engine->withdrawals;
		take_out(it);
		it->about.dropped(it->about.context);
		free(it);
	}
}
