#include "sim/choir_app.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

#define BIT(verb) (1u << CHOIR_##verb)
#define BASICS (BIT(CREATE) | BIT(DELETE))

const struct choir_type choir_types[CHOIR_KINDS] = {
	[CHOIR_PAGE] = {"page", BASICS | BIT(PUT), 255, false, false, false},
	[CHOIR_RECORD] = {"record", BASICS | BIT(PUT) | BIT(PATCH), 255, false, false, false},
	[CHOIR_COUNTER] = {"counter", BASICS | BIT(PUT) | BIT(INCREMENT), 255, false, false, false},
	[CHOIR_BAG] = {"bag", BASICS | BIT(PUT) | BIT(APPEND), 255, false, false, false},
	[CHOIR_LOG] = {"log", BASICS | BIT(PUT) | BIT(APPEND), ORDER_KEEP, false, false, false},
	[CHOIR_STACK] = {"stack", BASICS | BIT(PUT) | BIT(APPEND), ORDER_REVERSE, false, false, false},
	[CHOIR_FILE] = {"file", BASICS | BIT(PUT) | BIT(PATCH) | BIT(UPLOAD), 255, false, false, false},
	[CHOIR_VOLUME] = {"volume", BASICS | BIT(PUT) | BIT(PATCH), 255, true, false, false},
	[CHOIR_ZONE] = {"zone", BASICS | BIT(PUT) | BIT(PATCH), 255, true, true, false},
	[CHOIR_SERVER] = {"server", BASICS | BIT(PUT) | BIT(PATCH), 255, false, false, true},
	[CHOIR_MEDLEY] = {"medley", BASICS | BIT(PUT) | BIT(PATCH) | BIT(INCREMENT) | BIT(APPEND) | BIT(UPLOAD), ORDER_KEEP,
                      false, false, false},
};

static const struct {
	const char *name;
	enum order_effect effect;
	bool repeatable;
} verbs[CHOIR_VERBS] = {
	{"create", ORDER_CREATE, false},      {"put", ORDER_REPLACE, true},      {"patch", ORDER_ASSIGN, true},
	{"increment", ORDER_RELATIVE, false}, {"append", ORDER_RELATIVE, false}, {"upload", ORDER_REPLACE, true},
	{"delete", ORDER_DELETE, true},
};

const char *choir_verb_name(enum choir_verb verb)
{
	return verbs[verb].name;
}

enum order_effect choir_verb_effect(enum choir_verb verb)
{
	return verbs[verb].effect;
}

bool choir_verb_repeatable(enum choir_verb verb)
{
	return verbs[verb].repeatable;
}

/* ---- Requests ----------------------------------------------------------------------------------------------------- */

/* The mark, the struct up to the entries that are there, in this machine's own order of bytes: it is read by nobody else. */
static size_t length_of(const struct choir_request *request)
{
	return offsetof(struct choir_request, value.entries) + request->value.entries_count * sizeof(uint32_t);
}

void choir_request_put(struct buf *out, const struct choir_request *request)
{
	buf_put(out, STR(CHOIR_MARK));
	buf_put(out, str_make((const char *)request, length_of(request)));
}

bool choir_request_parse(struct str body, struct choir_request *request)
{
	size_t mark = sizeof(CHOIR_MARK) - 1, least = offsetof(struct choir_request, value.entries);
	*request = (struct choir_request){0};
	if (body.length < mark + least || memcmp(body.at, CHOIR_MARK, mark) != 0)
		return false;
	memcpy(request, body.at + mark, least);
	if (request->value.entries_count > CHOIR_ENTRIES || body.length != mark + length_of(request))
		return false;
	memcpy(request, body.at + mark, length_of(request));
	return true;
}

static void set_whole(struct choir_state *state, const struct choir_request *request)
{
	uint32_t file = state->file;
	*state = request->value;
	state->file = request->verb == CHOIR_CREATE ? request->value.file : file;
}

uint32_t choir_file_of(const struct choir_request *request)
{
	return request->value.file ? request->value.file : request->token;
}

void choir_apply(struct choir_state *state, const struct choir_request *request)
{
	switch ((enum choir_verb)request->verb) {
	case CHOIR_CREATE:
	case CHOIR_PUT: set_whole(state, request); break;
	case CHOIR_PATCH:
		for (uint32_t i = 0; i < CHOIR_FIELDS; i++) {
			if (request->mask >> i & 1)
				state->fields[i] = request->value.fields[i];
		}
		break;
	case CHOIR_INCREMENT: state->number += request->value.number; break;
	case CHOIR_APPEND:
		CHECK(state->entries_count < CHOIR_ENTRIES);
		state->entries[state->entries_count++] = request->token;
		break;
	case CHOIR_UPLOAD: state->file = choir_file_of(request); break;
	case CHOIR_DELETE:
	case CHOIR_VERBS: break;
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

bool choir_state_equal(const struct choir_state *a, const struct choir_state *b, bool any_order)
{
	uint32_t x[CHOIR_ENTRIES], y[CHOIR_ENTRIES];
	size_t bytes = a->entries_count * sizeof(uint32_t);
	if (a->number != b->number || a->file != b->file || a->refers != b->refers ||
	    a->entries_count != b->entries_count || memcmp(a->fields, b->fields, sizeof(a->fields)) != 0)
		return false;
	memcpy(x, a->entries, bytes);
	memcpy(y, b->entries, bytes);
	if (any_order) {
		qsort(x, a->entries_count, sizeof(uint32_t), by_number);
		qsort(y, b->entries_count, sizeof(uint32_t), by_number);
	}
	return memcmp(x, y, bytes) == 0;
}

void choir_state_print(struct buf *out, const struct choir_state *state)
{
	buf_printf(out, "{");
	for (uint32_t i = 0; i < CHOIR_FIELDS; i++)
		buf_printf(out, "%s%" PRIu32, i ? " " : "", state->fields[i]);
	buf_printf(out, ", number %" PRId64 ", file %" PRIu32 ", [", state->number, state->file);
	for (uint32_t i = 0; i < state->entries_count; i++)
		buf_printf(out, "%s%" PRIu32, i ? " " : "", state->entries[i]);
	buf_printf(out, "]%s}", state->refers ? ", refers" : "");
}

/* ---- DESIGN 7, "Ordering, exactly" -------------------------------------------------------------------------------- */

bool choir_saw(const struct choir_op *y, const struct choir_op *x)
{
	return y->seen[x->member] >= x->number;
}

static bool concurrent(const struct choir_op *x, const struct choir_op *y)
{
	return x != y && !choir_saw(x, y) && !choir_saw(y, x);
}

static bool concerns_all(const struct choir_op *op)
{
	return op->effect == ORDER_CREATE || op->effect == ORDER_DELETE;
}

/* The table of point 3, for x before y. */
static enum order_resolution resolve(const struct choir_rules *rules, const struct choir_op *x,
                                     const struct choir_op *y)
{
	if (x->facet != y->facet && !concerns_all(x) && !concerns_all(y))
		return ORDER_ANY;
	uint8_t said = rules->resolutions[x->class * CHOIR_VERBS + y->class];
	if (said != 255)
		return (enum order_resolution)said;
	bool x_small = x->effect == ORDER_ASSIGN || x->effect == ORDER_RELATIVE;
	bool y_small = y->effect == ORDER_ASSIGN || y->effect == ORDER_RELATIVE;
	if (x->effect == ORDER_REPLACE && y->effect == ORDER_REPLACE)
		return ORDER_TAKE_ONE;
	if (x->effect == ORDER_ASSIGN && y->effect == ORDER_ASSIGN)
		return ORDER_KEEP;
	if (x_small && y_small)
		return ORDER_ANY;
	if (x->effect == ORDER_REPLACE && y_small)
		return ORDER_KEEP;
	return x_small && y->effect == ORDER_REPLACE ? ORDER_REVERSE : ORDER_KEEP;
}

static bool before(const struct choir_op *x, const struct choir_op *y)
{
	if (x->stamp != y->stamp)
		return x->stamp < y->stamp;
	return x->site != y->site ? x->site < y->site : x->member < y->member;
}

struct building {
	const struct choir_op *ops;
	const struct choir_rules *rules;
	const bool *without; /* may be NULL */
	bool *lost;
	uint32_t *all; /* with those that lost: they keep their places, as others may have seen them */
	uint32_t count;
};

static bool counts(const struct building *building, uint32_t it)
{
	return !building->without || !building->without[it];
}

/* "DELETE wins over what is concurrent (or loses, by description)": whatever its place in T. */
static bool loses_to_delete(const struct building *building, uint32_t count, uint32_t it)
{
	const struct choir_op *ops = building->ops;
	bool is_delete = ops[it].effect == ORDER_DELETE;
	for (uint32_t i = 0; i < count; i++) {
		bool other_deletes = ops[i].effect == ORDER_DELETE;
		if (counts(building, i) && concurrent(&ops[i], &ops[it]) && is_delete != other_deletes &&
		    is_delete == building->rules->delete_loses)
			return true;
	}
	return false;
}

/* Point 4, for one. */
static void insert(struct building *building, uint32_t it)
{
	const struct choir_op *op = &building->ops[it];
	uint32_t place = building->count, *all = building->all;
	bool passes = true;
	for (uint32_t i = building->count; i-- > 0;) {
		const struct choir_op *x = &building->ops[all[i]];
		passes = passes && !choir_saw(op, x);
		if (!concurrent(x, op))
			continue;
		enum order_resolution resolution = resolve(building->rules, x, op);
		if (resolution == ORDER_TAKE_ONE && counts(building, it))
			building->lost[all[i]] = true;
		if (passes && resolution == ORDER_REVERSE)
			place = i;
	}
	memmove(&all[place + 1], &all[place], (building->count - place) * sizeof(*all));
	all[place] = it;
	building->count++;
}

static uint32_t first_left(const struct choir_op *ops, uint32_t count, const bool *taken)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		if (!taken[i] && (first == UINT32_MAX || before(&ops[i], &ops[first])))
			first = i;
	}
	return first;
}

uint32_t choir_sequence(const struct choir_op *ops, uint32_t count, const struct choir_rules *rules,
                        const bool *without, uint32_t *sequence)
{
	bool *taken = calloc(2 * (size_t)count + 1, sizeof(*taken));
	CHECK(taken != NULL);
	struct building building = {ops, rules, without, taken + count, sequence, 0};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t it = first_left(ops, count, taken);
		taken[it] = true;
		building.lost[it] |= loses_to_delete(&building, count, it);
		insert(&building, it);
	}
	uint32_t length = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!building.lost[sequence[i]] && counts(&building, sequence[i]))
			sequence[length++] = sequence[i];
	}
	free(taken);
	return length;
}
