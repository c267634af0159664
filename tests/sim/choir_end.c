/* What has to be so once everything is quiet, and is looked at until it is:
 *
 * - users were answered, services have nothing to do, nothing is owed to anybody: outbox, operations and blobs are empty,
 *   but for what a person has still to look at, and what order-sensitive descriptions keep;
 * - every member's item is what the order of DESIGN 7 makes of all that was issued, without what is shown as rejected there;
 * - all members know the same local ids, and these are the services' own;
 * - what was deleted is gone, what was never created left nothing.
 */
#include "sim/choir.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT_MOST = 64, MEMORY_QUIET_BYTES = 256 << 10 };

/* Where something is missing. */
struct lack {
	struct choir *choir;
	struct buf *why;
	uint32_t *of;
};

__attribute__((format(printf, 3, 4))) static bool lacks(const struct lack *lack, uint32_t replicant, const char *format,
                                                        ...)
{
	va_list arguments;
	va_start(arguments, format);
	buf_clear(lack->why);
	if (replicant != CHOIR_NOBODY)
		buf_printf(lack->why, "r%" PRIu32 " (%s): ", replicant,
		           choir_types[lack->choir->replicants[replicant].kind].name);
	buf_vprintf(lack->why, format, arguments);
	*lack->of = replicant;
	va_end(arguments);
	return false;
}

/* ---- One replicant at one member ---------------------------------------------------------------------------------- */

struct standing {
	bool excluded; /* some operation is shown as rejected there */
	bool kept;     /* and it had its effect once: it was refused when it was to be run again. That effect may stay */
	bool doubt;
	bool diverged; /* and shown as such */
};

static struct replica_op_id id_of(const struct choir *choir, const struct choir_replicant *of,
                                  const struct choir_op *op)
{
	return (struct replica_op_id){of->id, choir->sites[of->members[op->member]].id, op->number};
}

/* How a site shows an operation of its own doing. */
static enum replica_member_state shown(const struct choir *choir, struct choir_site *it,
                                       const struct choir_replicant *of, const struct choir_op *op)
{
	struct arena arena;
	struct replica_op_view view;
	enum replica_member_state state = REPLICA_APPLIED;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	if (replica_look_op(it->replica, &arena, id_of(choir, of, op), &view) == 0) {
		for (uint32_t i = 0; i < view.members_count; i++)
			if (view.members[i].site == it->id)
				state = view.members[i].state;
	}
	arena_free(&arena);
	sim_alloc_account(before);
	return state;
}

static bool is_exception(enum replica_member_state state)
{
	return state == REPLICA_REJECTED || state == REPLICA_REJECTED_CREDENTIAL || state == REPLICA_IN_DOUBT;
}

/* The operations that were issued, and which of them have no effect there. */
struct issued {
	struct choir_op *ops;
	bool *without;
	uint32_t *sequence;
	uint32_t count;
};

static struct issued issued_of(struct choir *choir, struct choir_site *it, const struct choir_replicant *of,
                               struct standing *standing)
{
	struct issued issued = {0};
	issued.ops = calloc(of->ops_count + 1, sizeof(*issued.ops));
	issued.without = calloc(of->ops_count + 1, sizeof(*issued.without));
	issued.sequence = calloc(of->ops_count + 1, sizeof(*issued.sequence));
	CHECK(issued.ops != NULL && issued.without != NULL && issued.sequence != NULL);
	bool leaving;
	uint32_t members = of->forced ? choir_members_now(choir, of, &leaving) : 0;
	if (of->forced && members == 0)
		members = ~of->forced; /* it is gone, too */
	*standing = (struct standing){0};
	for (uint32_t i = 0; i < of->ops_count; i++) {
		/* Who was forced out had it alone. */
		if (members != 0 && !(of->ops[i].known & members))
			continue;
		const struct choir_token *token = choir_token(choir, of->ops[i].request.token);
		if (!of->ops[i].issued || of->ops[i].effect == ORDER_ADOPT)
			continue;
		enum replica_member_state how = shown(choir, it, of, &of->ops[i]);
		standing->excluded |= is_exception(how);
		standing->doubt |= how == REPLICA_IN_DOUBT;
		standing->kept |= is_exception(how) && token->ran[it->number];
		bool dismissed = token->dismissed[it->number] && !token->effect[it->number];
		issued.without[issued.count] = is_exception(how) || dismissed;
		issued.ops[issued.count++] = of->ops[i];
	}
	return issued;
}

static void issued_free(struct issued *issued)
{
	free(issued->ops);
	free(issued->without);
	free(issued->sequence);
}

/* What its item has to be. False: it has to be none. */
static bool expect(struct choir *choir, struct choir_site *it, const struct choir_replicant *of,
                   struct choir_state *state, struct standing *standing)
{
	struct issued issued = issued_of(choir, it, of, standing);
	uint32_t length = choir_sequence(issued.ops, issued.count, &of->rules, issued.without, issued.sequence);
	bool exists = false;
	for (uint32_t i = 0; i < length; i++) {
		const struct choir_op *op = &issued.ops[issued.sequence[i]];
		/* A state that was given makes it, also where its create is let be. */
		bool given = op->repair && op->facet == 0;
		bool makes =
			op->effect == ORDER_CREATE || (op->effect == ORDER_REPLACE && (choir_types[of->kind].chosen || given));
		if (makes && !exists)
			*state = (struct choir_state){0};
		exists = makes || (exists && op->effect != ORDER_DELETE);
		if (exists)
			choir_apply(state, &op->request);
	}
	issued_free(&issued);
	return exists;
}

static struct choir_item *item_of(struct choir_site *it, uint32_t replicant, uint32_t *count)
{
	struct choir_item *found = NULL;
	*count = 0;
	for (uint32_t i = 0; i < it->items_count; i++) {
		if (it->items[i].number != 0 && it->items[i].replicant == replicant) {
			found = &it->items[i];
			(*count)++;
		}
	}
	return found;
}

static bool is_shown_diverged(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	bool diverged = false;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	if (replica_look(it->replica, &arena, of->id, &view) == 0) {
		for (uint32_t i = 0; i < view.members_count; i++)
			diverged |= view.members[i].diverged;
	}
	arena_free(&arena);
	sim_alloc_account(before);
	return diverged;
}

/* A person said that it need not be deleted here: it is the service's own from then on. */
static bool is_left_alone(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of)
{
	for (uint32_t i = 0; i < of->ops_count; i++)
		if (of->ops[i].effect == ORDER_DELETE && choir_token(choir, of->ops[i].request.token)->dismissed[it->number])
			return true;
	return false;
}

static bool is_gone(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	bool gone = replica_look(it->replica, &arena, of->id, &view) != 0 || view.deleted;
	arena_free(&arena);
	sim_alloc_account(before);
	return gone;
}

static bool check_state(const struct lack *lack, struct choir_site *it, const struct choir_replicant *of,
                        struct standing *standing)
{
	struct choir *choir = lack->choir;
	static struct choir_state state;
	uint32_t count;
	struct choir_item *item = item_of(it, of->number, &count);
	bool exists = expect(choir, it, of, &state, standing);
	standing->diverged = is_shown_diverged(it, of);
	if (standing->diverged)
		return true;
	if (standing->doubt)
		return lacks(lack, of->number, "s%" PRIu32 " has something in doubt", it->number);
	if (count != exists)
		return lacks(lack, of->number, "s%" PRIu32 " has %" PRIu32 " items, and ought to have %d", it->number, count,
		             exists);
	uint8_t appends = of->rules.resolutions[CHOIR_APPEND * CHOIR_VERBS + CHOIR_APPEND];
	/* Who let it be, when it was deleted everywhere else, got no state of anybody that would have had all in order. */
	bool alone = is_left_alone(choir, it, of);
	bool any_order = appends == 255 || appends == ORDER_ANY || alone;
	/* And once it is gone there, nobody finds out any more what became of an operation in doubt. */
	if (!exists || standing->kept || (alone && is_gone(it, of)) || choir_state_equal(&item->state, &state, any_order))
		return true;
	struct buf is = {0}, ought = {0};
	choir_state_print(&is, &item->state);
	choir_state_print(&ought, &state);
	lacks(lack, of->number, "s%" PRIu32 " has %s, and ought to have %s", it->number, buf_c(&is), buf_c(&ought));
	buf_free(&is);
	buf_free(&ought);
	return false;
}

/* ---- Who knows what ----------------------------------------------------------------------------------------------- */

/* Also of what is deleted, and not yet forgotten. */
static bool check_settled(const struct lack *lack, struct choir_site *it, const struct choir_replicant *of,
                          const struct replica_view *view)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (!view->members[i].settled && !view->members[i].diverged)
			return lacks(lack, of->number,
			             "s%" PRIu32 " knows of %" PRIu32 " operations that s%" PRIu32 " has not settled", it->number,
			             view->members[i].pending, choir_site_of(lack->choir, view->members[i].site));
	return true;
}

static bool check_mapping(const struct lack *lack, struct choir_site *it, const struct choir_replicant *of,
                          const struct replica_view *view)
{
	struct choir *choir = lack->choir;
	bool leaving;
	uint32_t members = choir_members_now(choir, of, &leaving);
	if (!choir->options.members && !choir->options.removal && view->members_count != of->members_count)
		return lacks(lack, of->number, "s%" PRIu32 " knows %" PRIu32 " members", it->number, view->members_count);
	if (view->members_count != (uint32_t)__builtin_popcount(members))
		return lacks(lack, of->number, "s%" PRIu32 " knows %" PRIu32 " members, and others do not", it->number,
		             view->members_count);
	if (leaving)
		return lacks(lack, of->number, "a member is leaving, and has not left");
	for (uint32_t i = 0; i < view->members_count; i++) {
		uint32_t site = choir_site_of(choir, view->members[i].site), count;
		if (!(members >> site & 1))
			return lacks(lack, of->number, "s%" PRIu32 " takes s%" PRIu32 " for a member", it->number, site);
		if (view->members[i].witness != (choir_witnesses_now(choir, of) >> site & 1))
			return lacks(lack, of->number, "s%" PRIu32 " does not know what others know of s%" PRIu32, it->number,
			             site);
		struct choir_item *item = item_of(&choir->sites[site], of->number, &count);
		char local_id[CHOIR_ID_BYTES] = "";
		if (choir->options.mutation == CHOIR_SWAPPED && item)
			snprintf(local_id, sizeof(local_id), "mine");
		else if (item)
			choir_item_id(&choir->sites[site], item, local_id);
		if (!str_equal(view->members[i].local_id, str_of(local_id)))
			return lacks(lack, of->number, "s%" PRIu32 " takes the id at s%" PRIu32 " for '%.*s', and it is '%s'",
			             it->number, site, STR_FMT(view->members[i].local_id), local_id);
	}
	return true;
}

static bool check_local(const struct lack *lack, struct choir_site *it, const struct choir_replicant *of, bool exists)
{
	uint32_t count;
	struct choir_item *item = item_of(it, of->number, &count);
	if (!item || !exists)
		return true;
	char local_id[CHOIR_ID_BYTES];
	struct buf key = {0};
	struct replica_id id = {0};
	choir_item_id(it, item, local_id);
	replica_local_key(&(struct replica_local){.service = STR("choir"),
	                                          .type = str_of(choir_types[of->kind].name),
	                                          .id = str_of(local_id)},
	                  &key);
	const struct choir_row *row = choir_rows_get(&it->rows, REPLICA_LOCALS, buf_str(&key));
	buf_free(&key);
	if (row && replica_local_parse(choir_row_value(row), &id) == 0 &&
	    memcmp(id.bytes, of->id.bytes, sizeof(id.bytes)) == 0)
		return true;
	return lacks(lack, of->number, "s%" PRIu32 " does not find it by its local id", it->number);
}

static bool was_created(const struct choir_replicant *of)
{
	for (uint32_t i = 0; i < of->ops_count; i++)
		if (of->ops[i].issued && of->ops[i].effect == ORDER_CREATE)
			return true;
	return false;
}

static bool has_left(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	bool left = replica_look(it->replica, &arena, of->id, &view) != 0 || view.left;
	arena_free(&arena);
	sim_alloc_account(before);
	return left;
}

/* One that left, or was to be added and never was. */
static bool check_stranger(const struct lack *lack, struct choir_site *it, const struct choir_replicant *of)
{
	uint32_t members, count;
	bool leaving;
	if (choir_look(it, of, &members, &leaving))
		return lacks(lack, of->number, "s%" PRIu32 " takes itself for a member", it->number);
	item_of(it, of->number, &count);
	/* Forced out while nobody knew whether it had been made there: nobody knows what to delete. */
	bool lost = of->forced >> it->number & 1 && choir_token(lack->choir, of->creator + 1)->unsure[it->number];
	/* Nor is it deleted where, as far as was known there, nobody was to stay who has it. */
	bool last = of->forced >> it->number & 1 && of->placed;
	for (uint32_t i = 0; i < of->members_count; i++)
		last = last &&
		       ((of->dropped | of->witnesses) >> of->members[i] & 1 || lack->choir->sites[of->members[i]].removed ||
		        choir_holds_nothing(lack->choir, of, of->members[i]));
	if (count > 0 && !lost && !last && !(of->kept >> it->number & 1))
		return lacks(lack, of->number, "s%" PRIu32 " is no member any more, and still has it", it->number);
	return true;
}

static bool is_deleted(const struct choir *choir, const struct choir_replicant *of)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < of->members_count; i++) {
		uint32_t here;
		item_of(&choir->sites[of->members[i]], of->number, &here);
		count += here;
	}
	return count == 0;
}

/* It knows that it is there just if somebody has it; or if it ought to be, and whoever ought to have it shows that nobody can give it: each had
 * deleted it, for example, and each delete has lost. */
static bool check_witness(const struct lack *lack, const struct choir_site *it, const struct choir_replicant *of,
                          bool live)
{
	uint32_t held = 0, count, witnesses = choir_witnesses_now(lack->choir, of);
	bool open = false, leaving; /* open: what is to be judged by a person may be anything */
	static struct choir_state state;
	for (uint32_t i = 0; i < of->members_count; i++) {
		struct standing standing;
		uint32_t members;
		struct choir_site *other = &lack->choir->sites[of->members[i]];
		if (witnesses >> other->number & 1 || other->removed)
			continue;
		item_of(other, of->number, &count);
		/* Who left may have kept what it had, and so may who let a delete be: but where users went on to change it behind that delete, it
		 * is still there for them. */
		held += count > 0 && choir_look(other, of, &members, &leaving);
		bool exists = expect(lack->choir, other, of, &state, &standing);
		held += count == 0 && exists && is_shown_diverged(other, of);
		open |= standing.excluded || standing.doubt;
	}
	if (!open && live != (held > 0))
		return lacks(lack, of->number, "s%" PRIu32 " is a witness, and takes it for %s", it->number,
		             live ? "something that is there" : "gone");
	return true;
}

/* Nor does it send anybody on: it says that it is gone. */
static bool check_lost(const struct lack *lack, const struct choir_site *it, const struct choir_replicant *of,
                       const struct replica_view *view)
{
	struct replica_here here;
	struct str key = str_make((const char *)of->id.bytes, sizeof(of->id.bytes));
	const struct choir_row *row = choir_rows_get(&it->rows, REPLICA_REPLICANTS, key);
	if (view->prime != 0)
		return lacks(lack, of->number, "s%" PRIu32 " does not know that nobody holds it", it->number);
	if (!row || replica_here_parse(choir_row_value(row), it->id, &here, NULL) != 0)
		return lacks(lack, of->number, "s%" PRIu32 " has no row of it that can be read", it->number);
	if (!here.witness || here.prime != 0 || here.holders_count > 0)
		return lacks(lack, of->number, "s%" PRIu32 " would send on to somebody what nobody holds", it->number);
	return true;
}

static bool check_replicant(const struct lack *lack, const struct choir_replicant *of, bool *exceptions)
{
	struct choir *choir = lack->choir;
	bool created = was_created(of), leaving;
	if (choir_found_waits(choir, of))
		return lacks(lack, of->number, "a user waits for it to be adopted");
	uint32_t members = choir_members_now(choir, of, &leaving), witnesses = choir_witnesses_now(choir, of);
	if (of->witnesses & members & ~witnesses)
		return lacks(lack, of->number, "a witness is none any more, and nobody asked for that");
	for (uint32_t i = 0; i < of->members_count; i++) {
		struct choir_site *it = &choir->sites[of->members[i]];
		if (it->removed)
			continue;
		if (members != 0 && !(members >> it->number & 1)) {
			if (!check_stranger(lack, it, of))
				return false;
			continue;
		}
		if (members == 0 && of->forced >> it->number & 1) {
			if (!check_stranger(lack, it, of))
				return false;
			continue;
		}
		if (members == 0 && of->kept >> it->number & 1)
			continue; /* it left with what it had */
		/* To the one that was removed; or it was added later, if it ever was. */
		if (members == 0 && (choir->options.removal || i >= of->founders) && has_left(it, of)) {
			if (!is_left_alone(choir, it, of) && !check_stranger(lack, it, of))
				return false;
			continue;
		}
		struct standing standing = {0};
		struct arena arena;
		struct replica_view view;
		bool witness = witnesses >> it->number & 1;
		if (!witness && !check_state(lack, it, of, &standing))
			return false;
		*exceptions |= standing.excluded || standing.diverged;
		arena_init(&arena, 0);
		int64_t *before = sim_alloc_account(&it->bytes);
		int status = replica_look(it->replica, &arena, of->id, &view);
		sim_alloc_account(before);
		bool live = status == 0 && !view.deleted, right = true;
		uint32_t count;
		struct choir_item *item = item_of(it, of->number, &count);
		if (witness && item)
			right = lacks(lack, of->number, "s%" PRIu32 " has it, and is a witness", it->number);
		else if (live && choir_is_lost_with_its_site(choir, of) && !check_lost(lack, it, of, &view))
			right = false;
		else if (live && choir_is_lost_with_its_site(choir, of) && !choir->options.removal && is_deleted(choir, of))
			right = lacks(lack, of->number, "nobody has it any more, and nobody has deleted it");
		else if (witness && !choir_is_lost_with_its_site(choir, of) && !check_witness(lack, it, of, live))
			right = false;
		else if (!created && status == 0)
			right = lacks(lack, of->number, "s%" PRIu32 " knows it, and it was never created", it->number);
		else if (item && !live && !is_left_alone(choir, it, of))
			right = lacks(lack, of->number, "s%" PRIu32 " has it, and does not know it", it->number);
		else if (status == 0 && !check_settled(lack, it, of, &view))
			right = false;
		else if (live)
			right = check_mapping(lack, it, of, &view) && check_local(lack, it, of, true);
		sim_alloc_account(&it->bytes);
		arena_free(&arena);
		sim_alloc_account(before);
		if (!right)
			return false;
	}
	return true;
}

/* ---- What is left over -------------------------------------------------------------------------------------------- */

static bool keeps_order(const struct choir *choir, const struct choir_replicant *of)
{
	uint8_t appends = of->rules.resolutions[CHOIR_APPEND * CHOIR_VERBS + CHOIR_APPEND];
	return choir->options.wild || appends == ORDER_KEEP || appends == ORDER_REVERSE;
}

static bool check_operations(const struct lack *lack, struct choir_site *it, const bool *exceptions)
{
	struct choir *choir = lack->choir;
	const struct choir_table *table = &it->rows.tables[REPLICA_OPERATIONS];
	uint32_t *kept = calloc(choir->replicants_count, sizeof(*kept));
	CHECK(kept != NULL);
	bool right = true;
	for (uint32_t i = 0; i < table->count && right; i++) {
		struct choir_op op;
		uint32_t replicant;
		if (!choir_peek(choir, it, table->rows[i], &op, &replicant))
			continue;
		const struct choir_replicant *of = &choir->replicants[replicant];
		kept[replicant]++;
		if (choir_peek_withheld(op.number))
			right = lacks(lack, replicant, "s%" PRIu32 " still withholds #%" PRIu32, it->number, op.request.token);
		else if (!exceptions[replicant] && !(keeps_order(choir, of) && kept[replicant] <= KEPT_MOST))
			right = lacks(lack, replicant, "s%" PRIu32 " still keeps #%" PRIu32 " (%s)", it->number, op.request.token,
			              choir_verb_name((enum choir_verb)op.request.verb));
	}
	free(kept);
	return right;
}

static bool check_blobs(const struct lack *lack, struct choir_site *it, const bool *exceptions)
{
	for (uint32_t i = 0; i < it->blobs_count; i++) {
		uint32_t replicant = choir_token(lack->choir, it->blobs[i].token)->replicant;
		if (it->blobs[i].here && !exceptions[replicant] && !lack->choir->options.wild &&
		    !keeps_order(lack->choir, &lack->choir->replicants[replicant]))
			return lacks(lack, replicant, "s%" PRIu32 " still keeps the blob of #%" PRIu32, it->number,
			             it->blobs[i].token);
	}
	return true;
}

static bool check_left_over(const struct lack *lack, const bool *exceptions)
{
	struct choir *choir = lack->choir;
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		struct choir_site *it = &choir->sites[i];
		if (it->removed)
			continue;
		if (it->rows.tables[REPLICA_OUTBOX].count > 0)
			return lacks(lack, CHOIR_NOBODY, "s%" PRIu32 " has %" PRIu32 " rows in its outbox", i,
			             it->rows.tables[REPLICA_OUTBOX].count);
		if (!check_operations(lack, it, exceptions) || !check_blobs(lack, it, exceptions))
			return false;
		if (it->bytes > MEMORY_QUIET_BYTES)
			return lacks(lack, CHOIR_NOBODY, "s%" PRIu32 " holds %" PRId64 " bytes of memory", i, it->bytes);
	}
	return true;
}

static bool check_busy(const struct lack *lack)
{
	struct choir *choir = lack->choir;
	for (uint32_t i = 0; i < choir->calls_count; i++)
		if (choir->calls[i].used)
			return lacks(lack, choir_replicant_of(choir, choir->calls[i].op.replicant),
			             "a service has something to do");
	for (uint64_t i = 0; i < choir->tickets; i++)
		if (choir->ticket_actions[i] != CHOIR_NOBODY)
			return lacks(lack, choir->actions[choir->ticket_actions[i]].replicant, "a user waits for an answer");
	for (uint32_t i = 0; i < choir->options.sites; i++)
		if (choir->sites[i].deeds_count > 0 || choir->sites[i].rows.changes_count > 0)
			return lacks(lack, CHOIR_NOBODY, "s%" PRIu32 " has something to commit", i);
	return true;
}

bool choir_converged(struct choir *choir, struct buf *why, uint32_t *of)
{
	struct lack lack = {choir, why, of};
	bool *exceptions = calloc(choir->replicants_count, sizeof(*exceptions));
	CHECK(exceptions != NULL);
	bool right = check_busy(&lack);
	for (uint32_t i = 0; i < choir->replicants_count && right; i++)
		right = choir->replicants[i].weak || choir->replicants[i].conflict ||
		        check_replicant(&lack, &choir->replicants[i], &exceptions[i]);
	right = right && choir_names_converged(choir, why, of) && choir_weak_converged(choir, why, of);
	right = right && check_left_over(&lack, exceptions);
	free(exceptions);
	return right;
}

/* ---- Long after ---------------------------------------------------------------------------------------------------- */

static void check_gone(struct choir *choir, struct choir_site *it, enum replica_table table)
{
	for (uint32_t i = 0; i < it->rows.tables[table].count; i++) {
		struct str key = choir_row_key(it->rows.tables[table].rows[i]);
		struct replica_id id;
		if (key.length < sizeof(id.bytes))
			continue;
		memcpy(id.bytes, key.at, sizeof(id.bytes));
		uint32_t number = choir_replicant_of(choir, id);
		uint32_t at = choir_rows_find(&it->rows, REPLICA_OPERATIONS, str_make(key.at, sizeof(id.bytes)));
		const struct choir_table *operations = &it->rows.tables[REPLICA_OPERATIONS];
		if (at < operations->count && memcmp(operations->rows[at]->bytes, id.bytes, sizeof(id.bytes)) == 0)
			continue;
		if (number != CHOIR_NOBODY && !choir->replicants[number].weak && !choir->replicants[number].conflict &&
		    !choir_is_lost_with_its_site(choir, &choir->replicants[number]) &&
		    is_deleted(choir, &choir->replicants[number]))
			choir_violation(choir, number, "s%" PRIu32 " still remembers what is gone, in table %d", it->number,
			                (int)table);
	}
}

/* Tombstones are over. What a person could still look at is not forgotten, though. */
void choir_check_end(struct choir *choir)
{
	choir_check_sessions_end(choir);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		if (choir->sites[i].removed)
			continue;
		check_gone(choir, &choir->sites[i], REPLICA_REPLICANTS);
		check_gone(choir, &choir->sites[i], REPLICA_LANES);
	}
}
