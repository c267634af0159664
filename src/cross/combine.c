/* One body of the parts of a resource.
 *
 *   1. each part that is there is searched for the rules' fields; one that is no JSON is left out
 *   2. field by field, the values of all parts become one. A part whose value does not fit its function is left out as a whole, and all is
 *      begun again without it: an answer has a part in it or not, never half of it
 *   3. what came out is written into the text of the base, the prime's or else the first that is left, in place of its own values; a field
 *      that the base does not have, but others do (many leave out zeros), is added to the object in which it would be
 */
#include "cross/cross_int.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/map.h"
#include "base/text.h"

#include <stdlib.h>

struct value {
	struct str text; /* length 0: it is not there, or null */
	enum glue_json_kind kind;
};

struct combination {
	const struct cross_rule *rules;
	uint32_t rules_count;
	struct cross_part *parts;
	uint32_t parts_count;
	struct str *pointers;
	struct cross_place *places; /* a row for each part */
	struct buf *results;        /* for each rule */
	bool *has_result;
};

static const char *const names[] = {
	[CROSS_PRIME] = "prime",   [CROSS_TOGETHER] = "", [CROSS_SUM] = "sum", [CROSS_UNION] = "union",
	[CROSS_CONCAT] = "concat", [CROSS_MIN] = "min",   [CROSS_MAX] = "max",
};

const char *cross_function_name(enum cross_function function)
{
	CHECK(function < CROSS_FUNCTIONS);
	return names[function];
}

bool cross_function_parse(struct str text, enum cross_function *function)
{
	for (unsigned i = 0; i < CROSS_FUNCTIONS; i++) {
		if (text.length > 0 && str_equal(text, str_of(names[i]))) {
			*function = (enum cross_function)i;
			return true;
		}
	}
	return false;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------------- */

static bool is_in(const struct cross_part *part)
{
	return !part->missing && !part->left_out;
}

/* Returns ERR_CONFLICT: it has to be begun again. */
static int leave_out(struct cross_part *part, struct str pointer, const char *what)
{
	part->left_out = true;
	err_set(&part->why, ERR_INVALID, "the answer of " TEXT_NAME_FMT " has %s at " TEXT_NAME_FMT, TEXT_NAME(part->site),
	        what, TEXT_NAME(pointer));
	return ERR_CONFLICT;
}

static struct value value_of(const struct combination *all, uint32_t part, uint32_t rule)
{
	const struct cross_place *place = &all->places[part * all->rules_count + rule];
	if (!is_in(&all->parts[part]) || !place->found || place->is_null)
		return (struct value){0};
	return (struct value){str_make(all->parts[part].body.at + place->at, place->length), place->kind};
}

static void search_parts(struct combination *all)
{
	struct cross_fields fields = {all->pointers, all->rules_count};
	for (uint32_t i = 0; i < all->parts_count; i++) {
		struct cross_part *part = &all->parts[i];
		part->left_out = false;
		part->why = (struct err){0};
		if (part->missing)
			continue;
		int code = cross_find(part->body, &fields, &all->places[i * all->rules_count], &part->why);
		if (code) {
			part->left_out = true;
			err_context(&part->why, code, "the answer of " TEXT_NAME_FMT, TEXT_NAME(part->site));
		}
	}
}

static uint32_t base_of(const struct combination *all)
{
	uint32_t base = 0;
	while (base < all->parts_count && !is_in(&all->parts[base]))
		base++;
	return base;
}

/* ---- Functions --------------------------------------------------------------------------------------------------------- */

static int sum(struct combination *all, uint32_t rule, struct err *err)
{
	struct cross_number total = {0};
	for (uint32_t i = 0; i < all->parts_count; i++) {
		struct value value = value_of(all, i, rule);
		struct cross_number number;
		if (value.text.length == 0)
			continue;
		if (value.kind != GLUE_JSON_NUMBER)
			return leave_out(&all->parts[i], all->pointers[rule], "no number to add up");
		if (cross_number_parse(value.text, &number, NULL))
			return leave_out(&all->parts[i], all->pointers[rule], "a number of more than 64 bits");
		if (!cross_number_add(&total, number))
			return err_set(err, ERR_LIMIT, "the sum of " TEXT_NAME_FMT " over all sites does not fit into 64 bits",
			               TEXT_NAME(all->pointers[rule]));
	}
	cross_number_put(total, &all->results[rule]);
	return 0;
}

/* Texts of strings are compared as what they mean. */
static int compare_strings(struct str a, struct str b)
{
	struct buf x = {0}, y = {0};
	struct str left = a, right = b;
	glue_json_string(a, memchr(a.at, '\\', a.length) != NULL, &x, &left);
	glue_json_string(b, memchr(b.at, '\\', b.length) != NULL, &y, &right);
	int order = str_compare(left, right);
	buf_free(&x);
	buf_free(&y);
	return order;
}

static int extreme(struct combination *all, uint32_t rule, bool least)
{
	struct value best = {0};
	struct cross_number best_number = {0}, number = {0};
	for (uint32_t i = 0; i < all->parts_count; i++) {
		struct value value = value_of(all, i, rule);
		if (value.text.length == 0)
			continue;
		bool is_number = value.kind == GLUE_JSON_NUMBER;
		if (!is_number && value.kind != GLUE_JSON_STRING)
			return leave_out(&all->parts[i], all->pointers[rule], "neither a number nor a string to compare");
		if (is_number && cross_number_parse(value.text, &number, NULL))
			return leave_out(&all->parts[i], all->pointers[rule], "a number of more than 64 bits");
		if (best.text.length > 0 && value.kind != best.kind)
			return leave_out(&all->parts[i], all->pointers[rule], "another kind of value than the sites before");
		int order = best.text.length == 0 ? (least ? -1 : 1)
		            : is_number           ? cross_number_compare(number, best_number)
		                                  : compare_strings(value.text, best.text);
		if (least ? order < 0 : order > 0) {
			best = value;
			best_number = number;
		}
	}
	buf_put(&all->results[rule], best.text);
	return 0;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------------- */

struct gathering {
	struct arena arena;
	struct map seen; /* canonical texts */
	struct buf canonical;
	struct buf *out;
	uint32_t count;
	bool once;
};

static int gather_element(struct gathering *gathering, struct str element, struct err *err)
{
	if (gathering->once) {
		buf_clear(&gathering->canonical);
		int code = cross_element_canonical(element, &gathering->canonical, err);
		if (code)
			return code;
		struct str text = buf_str(&gathering->canonical);
		if (map_get(&gathering->seen, text))
			return 0;
		char *kept = arena_copy(&gathering->arena, text.at, text.length);
		map_set(&gathering->seen, str_make(kept, text.length), kept);
	}
	if (++gathering->count > LIMIT_CROSS_ELEMENTS)
		return err_set(err, ERR_LIMIT, "a list of more than %d elements over all sites", LIMIT_CROSS_ELEMENTS);
	if (gathering->out->length + element.length > LIMIT_CROSS_COMBINED_BYTES)
		return err_set(err, ERR_LIMIT, "a list of more than %d bytes over all sites", LIMIT_CROSS_COMBINED_BYTES);
	buf_put(gathering->out, str_of(gathering->count > 1 ? "," : ""));
	buf_put(gathering->out, element);
	return 0;
}

static int gather(struct combination *all, struct gathering *gathering, uint32_t rule, struct err *err)
{
	int code = 0;
	for (uint32_t i = 0; code == 0 && i < all->parts_count; i++) {
		struct value value = value_of(all, i, rule);
		struct cross_list list;
		if (value.text.length == 0)
			continue;
		if (value.kind != GLUE_JSON_ARRAY)
			return leave_out(&all->parts[i], all->pointers[rule], "no list");
		code = cross_list_read(value.text, &list, err);
		for (uint32_t k = 0; code == 0 && k < list.count; k++)
			code = gather_element(gathering, list.elements[k], err);
		cross_list_free(&list);
	}
	return code;
}

static int put_together(struct combination *all, uint32_t rule, bool once, struct err *err)
{
	/* Hash keys are for tables whose keys strangers choose to make them slow. Here that is one answer's work, and bounded. */
	struct gathering gathering = {.out = &all->results[rule], .once = once};
	arena_init(&gathering.arena, 0);
	map_init(&gathering.seen, (struct hash_key){0x6368656f70732063, 0x6f6d62696e652075});
	buf_put_char(gathering.out, '[');
	int code = gather(all, &gathering, rule, err);
	buf_put_char(gathering.out, ']');
	map_free(&gathering.seen);
	buf_free(&gathering.canonical);
	arena_free(&gathering.arena);
	return code;
}

/* ---- All of it --------------------------------------------------------------------------------------------------------- */

static int apply(struct combination *all, uint32_t rule, struct err *err)
{
	struct value first = {0};
	uint32_t there = 0;
	for (uint32_t i = 0; i < all->parts_count; i++) {
		struct value value = value_of(all, i, rule);
		first = first.text.length > 0 ? first : value;
		there += value.text.length > 0;
	}
	buf_clear(&all->results[rule]);
	all->has_result[rule] = there > 0 && all->rules[rule].function != CROSS_PRIME;
	if (!all->has_result[rule])
		return 0;
	switch (all->rules[rule].function) {
	case CROSS_SUM: return sum(all, rule, err);
	case CROSS_TOGETHER:
		return first.kind == GLUE_JSON_ARRAY ? put_together(all, rule, false, err) : sum(all, rule, err);
	case CROSS_UNION: return put_together(all, rule, true, err);
	case CROSS_CONCAT: return put_together(all, rule, false, err);
	case CROSS_MIN: return extreme(all, rule, true);
	case CROSS_MAX: return extreme(all, rule, false);
	case CROSS_PRIME:
	case CROSS_FUNCTIONS: break;
	}
	UNREACHABLE("no such function");
}

static int apply_all(struct combination *all, struct err *err)
{
	for (uint32_t again = 0; again <= all->parts_count; again++) {
		int code = 0;
		for (uint32_t i = 0; code == 0 && i < all->rules_count; i++)
			code = apply(all, i, err);
		if (code != ERR_CONFLICT)
			return code;
	}
	UNREACHABLE("each time one part less");
}

/* Places of the base that are replaced, in the order of the text. */
static uint32_t replaced(const struct combination *all, uint32_t base, uint32_t *order)
{
	const struct cross_place *places = &all->places[base * all->rules_count];
	uint32_t count = 0;
	for (uint32_t i = 0; i < all->rules_count; i++) {
		if (!places[i].found)
			continue;
		uint32_t at = count++;
		for (; at > 0 && places[order[at - 1]].at > places[i].at; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	return count;
}

static int write_replaced(const struct combination *all, uint32_t base, struct buf *out, struct err *err)
{
	uint32_t order[LIMIT_CROSS_FIELDS];
	uint32_t count = replaced(all, base, order);
	struct str body = all->parts[base].body;
	size_t copied = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct cross_place *place = &all->places[base * all->rules_count + order[i]];
		if (i > 0 && place->at < copied)
			return err_set(err, ERR_INVALID,
			               TEXT_NAME_FMT " is inside of, or the same as, another field that is combined",
			               TEXT_NAME(all->pointers[order[i]]));
		struct str result =
			all->has_result[order[i]] ? buf_str(&all->results[order[i]]) : str_make(body.at + place->at, place->length);
		buf_put(out, str_make(body.at + copied, place->at - copied));
		buf_put(out, result);
		copied = place->at + place->length;
	}
	buf_put(out, str_make(body.at + copied, body.length - copied));
	return 0;
}

/* One after the other: two may be in an object that neither has yet. */
static int write_added(const struct combination *all, uint32_t base, struct buf *text, struct err *err)
{
	for (uint32_t i = 0; i < all->rules_count; i++) {
		struct cross_fields field = {&all->pointers[i], 1};
		struct cross_place place;
		struct buf longer = {0};
		if (all->places[base * all->rules_count + i].found || !all->has_result[i])
			continue;
		int code = cross_find(buf_str(text), &field, &place, err);
		if (code == 0 && !place.addable)
			code = err_set(err, ERR_INVALID,
			               "the answer of " TEXT_NAME_FMT " has no place for " TEXT_NAME_FMT ", which other sites have",
			               TEXT_NAME(all->parts[base].site), TEXT_NAME(all->pointers[i]));
		if (code)
			return code;
		cross_insert(buf_str(text), all->pointers[i], &place, buf_str(&all->results[i]), &longer);
		buf_free(text);
		*text = longer;
	}
	return 0;
}

static int write_all(const struct combination *all, struct buf *out, struct cross_combined *combined, struct err *err)
{
	struct buf text = {0};
	uint32_t base = base_of(all);
	*combined = (struct cross_combined){.base = base};
	if (base == all->parts_count) {
		for (uint32_t i = 0; i < all->parts_count; i++) {
			if (all->parts[i].left_out)
				return err_set(err, ERR_UNAVAILABLE, "no site's part can be used: %s", all->parts[i].why.text);
		}
		return err_set(err, ERR_UNAVAILABLE, "no site has answered");
	}
	for (uint32_t i = 0; i < all->parts_count; i++)
		combined->whole += is_in(&all->parts[i]);
	int code = write_replaced(all, base, &text, err);
	if (code == 0)
		code = write_added(all, base, &text, err);
	if (code == 0 && text.length > LIMIT_CROSS_COMBINED_BYTES)
		code = err_set(err, ERR_LIMIT, "the parts of all sites are more than %d bytes", LIMIT_CROSS_COMBINED_BYTES);
	if (code == 0)
		buf_put(out, buf_str(&text));
	buf_free(&text);
	return code;
}

int cross_combine(const struct cross_rule *rules, uint32_t rules_count, struct cross_part *parts, uint32_t parts_count,
                  struct buf *out, struct cross_combined *combined, struct err *err)
{
	if (rules_count > LIMIT_CROSS_FIELDS)
		return err_set(err, ERR_LIMIT, "%u fields are more than the limit of %d", rules_count, LIMIT_CROSS_FIELDS);
	struct str pointers[LIMIT_CROSS_FIELDS];
	struct buf results[LIMIT_CROSS_FIELDS] = {{0}};
	bool has_result[LIMIT_CROSS_FIELDS] = {false};
	struct combination all = {rules, rules_count, parts, parts_count, pointers, NULL, results, has_result};
	all.places = calloc((size_t)parts_count * rules_count + 1, sizeof(*all.places));
	CHECK(all.places != NULL);
	for (uint32_t i = 0; i < rules_count; i++)
		pointers[i] = rules[i].pointer;
	search_parts(&all);
	int code = apply_all(&all, err);
	if (code == 0)
		code = write_all(&all, out, combined, err);
	for (uint32_t i = 0; i < rules_count; i++)
		buf_free(&results[i]);
	free(all.places);
	return code;
}
