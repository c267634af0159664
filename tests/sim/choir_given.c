/* A state that a member gives to all (src/replica/repair.c) takes the place of all that it had seen: in the end the checks take it for what it
 * says. So it is looked at when it is given. It has to have every addition and every entry, once, and the file, that the order makes of what
 * it had seen; not those, which a person let be at the site that gives it. In what order they are is not looked at: who is stuck may give it.
 *
 * Not looked at: wild descriptions, and what was deleted meanwhile, of which more than one outcome is right; and where something was
 * refused when it was to be run again, as its effect may have stayed, or not. */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

struct given {
	struct choir_op *ops;
	bool *without;
	uint32_t *sequence;
	uint32_t count;
	bool unclear;
};

static struct given collect(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                            const struct choir_op *given)
{
	struct given all = {.ops = calloc(of->ops_count + 1, sizeof(*all.ops)),
	                    .without = calloc(of->ops_count + 1, sizeof(*all.without)),
	                    .sequence = calloc(of->ops_count + 1, sizeof(*all.sequence))};
	CHECK(all.ops != NULL && all.without != NULL && all.sequence != NULL);
	for (uint32_t i = 0; i < of->ops_count; i++) {
		const struct choir_op *op = &of->ops[i];
		const struct choir_token *token = choir_token(choir, op->request.token);
		if (!choir_saw(given, op) || (op->member == given->member && op->number == given->number))
			continue;
		if (op->effect == ORDER_ADOPT)
			continue; /* to the order, a copy for a new member is nothing */
		bool rejected = token->rejected[it->number];
		all.unclear |= op->effect == ORDER_DELETE || (rejected && token->ran[it->number]);
		all.without[all.count] = token->dismissed[it->number] && !token->effect[it->number];
		all.ops[all.count++] = *op;
	}
	return all;
}

static bool is_the_same(const struct choir_op *given, const struct choir_state *state)
{
	const struct choir_state *is = &given->request.value;
	struct choir_state other = *state;
	if (given->facet != 0)
		return is->file == state->file;
	memcpy(other.fields, is->fields, sizeof(other.fields));
	other.refers = is->refers;
	return choir_state_equal(is, &other, true);
}

void choir_check_given(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                       const struct choir_op *given)
{
	static struct choir_state state;
	uint32_t adds = 1u << CHOIR_INCREMENT | 1u << CHOIR_APPEND | 1u << CHOIR_UPLOAD;
	if (choir->options.wild || of->conflict || !(choir_types[of->kind].verbs & adds))
		return;
	struct given all = collect(choir, it, of, given);
	uint32_t length = choir_sequence(all.ops, all.count, &of->rules, all.without, all.sequence);
	state = (struct choir_state){0};
	for (uint32_t i = 0; i < length; i++)
		choir_apply(&state, &all.ops[all.sequence[i]].request);
	if (!all.unclear && !is_the_same(given, &state)) {
		struct buf is = {0}, ought = {0};
		choir_state_print(&is, &given->request.value);
		choir_state_print(&ought, &state);
		choir_violation(choir, of->number, "s%" PRIu32 " gives %s to all, and what it had seen makes %s", it->number,
		                buf_c(&is), buf_c(&ought));
		buf_free(&is);
		buf_free(&ought);
	}
	free(all.ops);
	free(all.without);
	free(all.sequence);
}
