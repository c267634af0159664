#include "generator.h"

#include "base/check.h"

/* ---- Dice ------------------------------------------------------------------------------------------------------- */

uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t dice_below(struct dice *dice, uint32_t bound)
{
	CHECK(bound > 0);
	return (uint32_t)(dice_roll(dice) >> 32) % bound;
}

bool dice_chance(struct dice *dice, uint32_t one_in)
{
	return dice_below(dice, one_in) == 0;
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static const char *const odd_names[] = {
	"Site1",       "a",
	"a.b-c_d",     "-",
	".",           "DC 1",
	"Service A",   "DC 01",
	"10 20",       "Zürich",
	"東京",        "😀",
	"e\xcc\x81",   "all",
	"around",      "strong",
	"tagged",      "10ms",
	"1.5s",        "3",
	"007",         "999999999999999",
	"10parsec",    "1.5",
	"86401s",      "quote\"inside",
	"back\\slash", "\\",
	"\"",          "a/b",
	"{x}",         "{\"a\": \"b\"}",
	"a, b: c",     "a & b",
	"(a)",         "!a",
	"'",           " lead",
	"trail ",      "  ",
	"=",           "user@host",
	"\\u0041",     "100%",
	"%s%n",        "[a]",
};

/* A code point that a quoted name may hold. */
static uint32_t any_code_point(struct dice *dice)
{
	static const uint32_t past[] = {0x7f, 0x180, 0x3000, 0x10000, 0x110000};
	for (;;) {
		uint32_t c = 0x20 + dice_below(dice, past[dice_below(dice, sizeof(past) / sizeof(past[0]))] - 0x20);
		if (!text_is_control(c) && !(c >= 0xd800 && c < 0xe000))
			return c;
	}
}

static struct str any_name(struct generator *generator)
{
	struct dice *dice = &generator->dice;
	if (!dice_chance(dice, 3))
		return str_of(odd_names[dice_below(dice, sizeof(odd_names) / sizeof(odd_names[0]))]);
	char text[4 * 12];
	size_t length = 0;
	for (uint32_t left = 1 + dice_below(dice, 12); left > 0; left--)
		length += utf8_encode(any_code_point(dice), text + length);
	return str_make(arena_copy(generator->arena, text, length), length);
}

static struct str site_name(struct generator *generator)
{
	if (!generator->sites)
		return any_name(generator);
	if (!generator->meaningful)
		return generator->sites[dice_below(&generator->dice, generator->sites_count)];
	if (generator->deck_left == 0)
		for (; generator->deck_left < generator->sites_count; generator->deck_left++)
			generator->deck[generator->deck_left] = generator->deck_left;
	uint32_t drawn = dice_below(&generator->dice, generator->deck_left);
	uint32_t site = generator->deck[drawn];
	generator->deck[drawn] = generator->deck[--generator->deck_left];
	return generator->sites[site];
}

/* ---- Trees ------------------------------------------------------------------------------------------------------ */

/* What may stand at a place, in a scope that has a meaning (see checker.c). */
enum place {
	PLACE_ANY,
	PLACE_COPY,    /* operand of `&`: no consistency of its own */
	PLACE_PART,    /* operand of `%`: a site */
	PLACE_COPIES,  /* copies, wherever they are */
	PLACE_MEMBERS, /* copies at given sites */
};

static struct scope_node *make_location(struct generator *generator, enum place place, uint32_t depth);

static struct scope_node *make_node(struct generator *generator, enum scope_node_kind kind)
{
	struct scope_node *node = arena_new(generator->arena, struct scope_node);
	node->kind = kind;
	return node;
}

static void append(struct scope_node *node, struct scope_node *child)
{
	struct scope_node **link = &node->first;
	while (*link)
		link = &(*link)->next;
	*link = child;
	node->children++;
}

static struct scope_node *make_site(struct generator *generator)
{
	struct scope_node *node = make_node(generator, SCOPE_NODE_SITE);
	node->name = site_name(generator);
	if (generator->sites_left > 0)
		generator->sites_left--;
	return node;
}

static struct scope_node *make_number(struct generator *generator, enum scope_node_kind kind)
{
	struct scope_node *node = make_node(generator, kind);
	static const uint32_t units[] = {1, 10, 1000, 1000000};
	struct dice *dice = &generator->dice;
	if (kind == SCOPE_NODE_INTEGER)
		node->number = 1 + dice_below(dice, dice_chance(dice, 3) ? LIMIT_SCOPE_SITES : 5);
	else
		node->number = (int64_t)(1 + dice_below(dice, dice_chance(dice, 3) ? LIMIT_SCOPE_DURATION_S : 50)) *
		               units[dice_below(dice, sizeof(units) / sizeof(units[0]))];
	return node;
}

static struct scope_node *make_tag(struct generator *generator)
{
	struct scope_node *node = make_node(generator, SCOPE_NODE_TAG);
	if (generator->sites) {
		node->name = STR("region");
		node->value = dice_chance(&generator->dice, 2) ? STR("west") : STR("east");
	} else {
		node->name = any_name(generator);
		node->value = any_name(generator);
	}
	return node;
}

static struct scope_node *make_call(struct generator *generator, enum scope_function function, uint32_t depth)
{
	struct scope_node *call = make_node(generator, SCOPE_NODE_CALL);
	call->function = function;
	generator->calls_left--;
	switch (function) {
	case SCOPE_FN_AROUND:
		append(call, make_site(generator));
		append(call, make_number(generator, SCOPE_NODE_DURATION));
		break;
	case SCOPE_FN_NEAREST: append(call, make_number(generator, SCOPE_NODE_INTEGER)); break;
	case SCOPE_FN_TAGGED:
		do
			append(call, make_tag(generator));
		while (call->children < LIMIT_SCOPE_TAGS && dice_chance(&generator->dice, 3));
		break;
	case SCOPE_FN_STRONG: append(call, make_location(generator, PLACE_MEMBERS, depth)); break;
	case SCOPE_FN_FALLBACK:
	case SCOPE_FN_EITHER:
	case SCOPE_FN_EVENTUAL:
	case SCOPE_FN_WEAK: append(call, make_location(generator, PLACE_COPIES, depth)); break;
	default: break;
	}
	return call;
}

/* An operator never has one of its own kind below it: the parser joins them. */
static struct scope_node *make_operator(struct generator *generator, enum scope_node_kind kind, enum place place,
                                        uint32_t depth)
{
	struct scope_node *node = make_node(generator, kind);
	uint32_t wanted = 2 + dice_below(&generator->dice, 3);
	while (node->children < wanted) {
		struct scope_node *child = make_location(generator, place, depth);
		append(node, child->kind == kind ? make_site(generator) : child);
	}
	return node;
}

static struct scope_node *make_not(struct generator *generator, uint32_t depth)
{
	struct scope_node *node = make_node(generator, SCOPE_NODE_NOT);
	generator->calls_left--;
	append(node, make_location(generator, PLACE_ANY, depth));
	return node;
}

static bool may_call(struct generator *generator)
{
	return generator->functions && generator->calls_left > 0 && dice_chance(&generator->dice, 3);
}

static struct scope_node *make_copies(struct generator *generator, enum place place, uint32_t depth)
{
	static const enum scope_function many[] = {SCOPE_FN_ALL, SCOPE_FN_NEAREST, SCOPE_FN_TAGGED};
	if (may_call(generator))
		return make_call(generator, many[dice_below(&generator->dice, 3)], depth);
	return make_operator(generator, SCOPE_NODE_ALL, place == PLACE_MEMBERS ? PLACE_PART : PLACE_COPY, depth);
}

/* A function that may stand at the place; PLACE_ANY or PLACE_COPY. */
static struct scope_node *make_function(struct generator *generator, enum place place, uint32_t depth)
{
	static const enum scope_function choosing[] = {SCOPE_FN_AROUND,   SCOPE_FN_ALL,      SCOPE_FN_NEAREST,
	                                               SCOPE_FN_TAGGED,   SCOPE_FN_FALLBACK, SCOPE_FN_EITHER,
	                                               SCOPE_FN_EVENTUAL, SCOPE_FN_STRONG,   SCOPE_FN_WEAK};
	uint32_t count = sizeof(choosing) / sizeof(choosing[0]) - (place == PLACE_COPY ? 3 : 0);
	if (dice_chance(&generator->dice, 5))
		return make_not(generator, depth);
	return make_call(generator, choosing[dice_below(&generator->dice, count)], depth);
}

static struct scope_node *make_location(struct generator *generator, enum place place, uint32_t depth)
{
	struct dice *dice = &generator->dice;
	if (!generator->meaningful && place != PLACE_ANY)
		place = PLACE_ANY;
	if (place == PLACE_COPIES || place == PLACE_MEMBERS)
		return make_copies(generator, place, depth + 1);
	if (place == PLACE_PART || depth >= 4 || generator->sites_left == 0 || dice_chance(dice, 3))
		return make_site(generator);
	if (may_call(generator))
		return make_function(generator, place, depth + 1);
	switch (dice_below(dice, 4)) {
	case 0: return make_operator(generator, SCOPE_NODE_OTHERWISE, PLACE_ANY, depth + 1);
	case 1: return make_operator(generator, SCOPE_NODE_ANY, PLACE_ANY, depth + 1);
	case 2: return make_operator(generator, SCOPE_NODE_ALL, PLACE_COPY, depth + 1);
	default: return make_operator(generator, SCOPE_NODE_SPAN, PLACE_PART, depth + 1);
	}
}

static bool has_service(const struct scope *scope, struct str service)
{
	for (uint32_t i = 0; i < scope->entries_count; i++)
		if (str_equal(scope->entries[i].service, service))
			return true;
	return false;
}

struct scope *generator_scope(struct generator *generator)
{
	struct dice *dice = &generator->dice;
	struct scope *scope = arena_new(generator->arena, struct scope);
	scope->entries = arena_array(generator->arena, struct scope_entry, LIMIT_SCOPE_ENTRIES);
	generator->calls_left = 8;
	generator->sites_left = 24;
	uint32_t wanted = dice_chance(dice, 2) ? 1 : 1 + dice_below(dice, 4);
	while (wanted-- > 0) {
		struct str service = STR("");
		if (!dice_chance(dice, 3))
			service = generator->services ? generator->services[dice_below(dice, generator->services_count)]
			                              : any_name(generator);
		if (has_service(scope, service))
			continue;
		generator->deck_left = 0;
		struct scope_node *location = make_location(generator, PLACE_ANY, 0);
		if (generator->functions && generator->calls_left > 0 && dice_chance(dice, 6)) {
			struct scope_node *wrapped = make_call(generator, SCOPE_FN_WITH_REQUIREMENTS, 0);
			append(wrapped, location);
			location = wrapped;
		}
		scope->entries[scope->entries_count++] = (struct scope_entry){.service = service, .location = location};
	}
	return scope;
}

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

struct writer {
	struct generator *generator;
	struct buf *out;
	bool one_line; /* inside a JSON string: no line feeds or tabs */
};

static void write_location(struct writer *writer, const struct scope_node *node, enum scope_node_kind parent);

static void write_space(struct writer *writer)
{
	static const char *const spaces[] = {"", "", "", " ", " ", "  ", "\t", "\n", "\r\n", " \\\n ", "\\\r\n"};
	uint32_t count = writer->one_line ? 6 : sizeof(spaces) / sizeof(spaces[0]);
	buf_put(writer->out, str_of(spaces[dice_below(&writer->generator->dice, count)]));
}

static void write_token(struct writer *writer, const char *token)
{
	write_space(writer);
	buf_put(writer->out, str_of(token));
	write_space(writer);
}

static void write_u_escape(struct buf *out, uint32_t code_point)
{
	if (code_point < 0x10000) {
		buf_printf(out, "\\u%04x", code_point);
		return;
	}
	uint32_t rest = code_point - 0x10000;
	buf_printf(out, "\\u%04X\\u%04x", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
}

/* A JSON string; now and then with escapes where none is needed. */
static void write_string(struct dice *dice, struct buf *out, struct str text)
{
	bool escaping = dice_chance(dice, 3);
	buf_put_char(out, '"');
	while (text.length > 0) {
		uint32_t code_point;
		size_t length = utf8_decode(text, &code_point);
		CHECK(length > 0);
		if (escaping && dice_chance(dice, 4)) {
			write_u_escape(out, code_point);
		} else {
			if (code_point == '"' || code_point == '\\' || (code_point == '/' && escaping))
				buf_put_char(out, '\\');
			buf_put(out, str_make(text.at, length));
		}
		text = str_make(text.at + length, text.length - length);
	}
	buf_put_char(out, '"');
}

static bool is_digits(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
	return text.length > 0 && text.length <= 12;
}

/* May the word be the name of a site without quotes? Not if it is a function, or reads as a number. */
static bool is_site_word(struct str name)
{
	int64_t ignored;
	enum scope_number number = scope_number_read(name, &ignored);
	return scope_is_word(name) && scope_function_find(name) == SCOPE_FN_COUNT &&
	       (number == SCOPE_NUMBER_NONE || number == SCOPE_NUMBER_OTHER_UNIT);
}

/* `DC 1`, and for services also `Service A`: two words that are read as one name. */
static bool is_two_words(struct str name, bool service)
{
	const char *space = memchr(name.at, ' ', name.length);
	if (!space)
		return false;
	struct str first = str_make(name.at, (size_t)(space - name.at));
	struct str second = str_make(space + 1, name.length - first.length - 1);
	if (service)
		return scope_is_word(first) && (is_digits(second) || (second.length == 1 && scope_is_word(second)));
	return is_site_word(first) && is_digits(second);
}

enum name_kind { NAME_SITE, NAME_SERVICE, NAME_TAG };

static void write_name(struct writer *writer, struct str name, enum name_kind kind)
{
	bool bare = kind == NAME_SITE ? is_site_word(name) : scope_is_word(name);
	if (kind != NAME_TAG && is_two_words(name, kind == NAME_SERVICE))
		bare = true;
	if (bare && !dice_chance(&writer->generator->dice, 5))
		buf_put(writer->out, name);
	else
		write_string(&writer->generator->dice, writer->out, name);
}

/* The number with `digits` decimals, of which the zeros at the end may be left out. */
static void write_decimal(struct writer *writer, int64_t value, unsigned digits)
{
	int64_t whole = value, scale = 1;
	for (unsigned i = 0; i < digits; i++)
		scale *= 10;
	whole /= scale;
	buf_printf(writer->out, "%s%lld", dice_chance(&writer->generator->dice, 8) ? "0" : "", (long long)whole);
	if (digits == 0 || (whole * scale == value && !dice_chance(&writer->generator->dice, 4)))
		return;
	char decimals[16];
	int64_t rest = value % scale;
	for (unsigned i = digits; i-- > 0; rest /= 10)
		decimals[i] = (char)('0' + rest % 10);
	while (digits > 1 && decimals[digits - 1] == '0' && !dice_chance(&writer->generator->dice, 3))
		digits--;
	buf_printf(writer->out, ".%.*s", (int)digits, decimals);
}

static void write_duration(struct writer *writer, int64_t duration_us)
{
	static const char *const units[] = {"us", "ms", "s"};
	uint32_t unit = dice_below(&writer->generator->dice, 3);
	write_decimal(writer, duration_us, 3 * unit);
	buf_put(writer->out, str_of(units[unit]));
}

static void write_call(struct writer *writer, const struct scope_node *call)
{
	buf_put(writer->out, scope_functions[call->function].name);
	write_token(writer, "(");
	for (const struct scope_node *argument = call->first; argument; argument = argument->next) {
		if (argument != call->first)
			write_token(writer, ",");
		switch (argument->kind) {
		case SCOPE_NODE_DURATION: write_duration(writer, argument->number); break;
		case SCOPE_NODE_INTEGER: write_decimal(writer, argument->number, 0); break;
		case SCOPE_NODE_TAG:
			write_name(writer, argument->name, NAME_TAG);
			write_token(writer, "=");
			write_name(writer, argument->value, NAME_TAG);
			break;
		default:
			if (call->function == SCOPE_FN_AROUND)
				write_name(writer, argument->name, NAME_SITE); /* a site by its name alone */
			else
				write_location(writer, argument, SCOPE_NODE_OTHERWISE);
			break;
		}
	}
	write_space(writer);
	buf_put_char(writer->out, ')');
}

/* The operands; some neighbours may be put in parentheses, which changes nothing. */
static void write_operands(struct writer *writer, const struct scope_node *node)
{
	static const char *const signs[] = {
		[SCOPE_NODE_OTHERWISE] = ";", [SCOPE_NODE_ANY] = "|", [SCOPE_NODE_ALL] = "&", [SCOPE_NODE_SPAN] = "%"};
	bool open = false;
	for (const struct scope_node *child = node->first; child; child = child->next) {
		if (child != node->first)
			write_token(writer, signs[node->kind]);
		if (!open && child->next && dice_chance(&writer->generator->dice, 6)) {
			write_token(writer, "(");
			open = true;
		}
		write_location(writer, child, node->kind + 1);
		if (open && (!child->next || dice_chance(&writer->generator->dice, 2))) {
			write_token(writer, ")");
			open = false;
		}
	}
}

/* A node where only what binds as tightly as `tightest` may stand without parentheses. */
static void write_location(struct writer *writer, const struct scope_node *node, enum scope_node_kind tightest)
{
	bool parentheses = node->kind < tightest || dice_chance(&writer->generator->dice, 8);
	if (parentheses)
		write_token(writer, "(");
	switch (node->kind) {
	case SCOPE_NODE_SITE: write_name(writer, node->name, NAME_SITE); break;
	case SCOPE_NODE_CALL: write_call(writer, node); break;
	case SCOPE_NODE_NOT:
		write_token(writer, "!");
		write_location(writer, node->first, SCOPE_NODE_NOT);
		break;
	default: write_operands(writer, node); break;
	}
	if (parentheses)
		write_token(writer, ")");
}

static void write_json(struct writer *writer, const struct scope *scope)
{
	struct buf location = {0};
	struct writer inner = {.generator = writer->generator, .out = &location, .one_line = true};
	write_token(writer, "{");
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		if (i > 0)
			write_token(writer, ",");
		write_string(&writer->generator->dice, writer->out, scope->entries[i].service);
		write_token(writer, ":");
		write_location(&inner, scope->entries[i].location, SCOPE_NODE_OTHERWISE);
		write_string(&writer->generator->dice, writer->out, buf_str(&location));
		buf_clear(&location);
	}
	write_token(writer, "}");
	buf_free(&location);
}

static void write_entry(struct writer *writer, const struct scope_entry *entry)
{
	if (entry->service.length == 0) {
		write_location(writer, entry->location, SCOPE_NODE_OTHERWISE);
		return;
	}
	write_name(writer, entry->service, NAME_SERVICE);
	if (entry->location->kind == SCOPE_NODE_SITE && dice_chance(&writer->generator->dice, 3)) {
		write_token(writer, "/");
		write_name(writer, entry->location->name, NAME_SITE);
		return;
	}
	write_token(writer, ":");
	write_location(writer, entry->location, SCOPE_NODE_OTHERWISE);
}

void generator_write(struct generator *generator, struct buf *out, const struct scope *scope)
{
	struct writer writer = {.generator = generator, .out = out};
	bool braces = dice_chance(&generator->dice, 3);
	if (dice_chance(&generator->dice, 3) && !has_service(scope, STR(""))) {
		write_json(&writer, scope);
		return;
	}
	write_space(&writer);
	if (braces)
		write_token(&writer, "{");
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		if (i > 0)
			write_token(&writer, ",");
		/* Pairs of strings in braces would be JSON, whose values are locations and not names. */
		bool pair = braces && scope->entries[i].service.length && scope->entries[i].location->kind == SCOPE_NODE_SITE;
		if (!pair) {
			write_entry(&writer, &scope->entries[i]);
			continue;
		}
		write_name(&writer, scope->entries[i].service, NAME_SERVICE);
		buf_put(out, STR(": ("));
		write_name(&writer, scope->entries[i].location->name, NAME_SITE);
		buf_put(out, STR(")"));
	}
	if (braces)
		write_token(&writer, "}");
	write_space(&writer);
}

/* ---- Likeness --------------------------------------------------------------------------------------------------- */

static bool node_same(const struct scope_node *a, const struct scope_node *b)
{
	if (a->kind != b->kind || a->children != b->children || a->number != b->number || !str_equal(a->name, b->name) ||
	    !str_equal(a->value, b->value) || (a->kind == SCOPE_NODE_CALL && a->function != b->function))
		return false;
	const struct scope_node *x = a->first, *y = b->first;
	for (; x && y; x = x->next, y = y->next)
		if (!node_same(x, y))
			return false;
	return !x && !y;
}

bool scope_same(const struct scope *a, const struct scope *b)
{
	if (a->entries_count != b->entries_count)
		return false;
	for (uint32_t i = 0; i < a->entries_count; i++)
		if (!str_equal(a->entries[i].service, b->entries[i].service) ||
		    !node_same(a->entries[i].location, b->entries[i].location))
			return false;
	return true;
}
