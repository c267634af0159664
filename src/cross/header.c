/* The header `Cheops-Divide`: cross.h has its forms. */
#include "cross/cross_int.h"

#include "base/check.h"
#include "base/text.h"

struct parser {
	struct str text;
	size_t at;
	const struct cross_site *sites;
	uint32_t sites_count;
	struct cross_number given[LIMIT_REPLICA_MEMBERS];
	bool named[LIMIT_REPLICA_MEMBERS];
	struct buf name;
	struct err *err;
};

static unsigned column(const struct parser *parser, size_t at)
{
	return (unsigned)utf8_length(str_make(parser->text.at, at)) + 1;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == ',';
}

static void skip_space(struct parser *parser)
{
	while (parser->at < parser->text.length && is_space(parser->text.at[parser->at]))
		parser->at++;
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* ---- Entries ---------------------------------------------------------------------------------------------------------- */

static int take_quoted(struct parser *parser)
{
	size_t begin = parser->at++;
	for (; parser->at < parser->text.length && parser->text.at[parser->at] != '"'; parser->at++) {
		if (parser->text.at[parser->at] == '\\' && ++parser->at == parser->text.length)
			break;
		buf_put_char(&parser->name, parser->text.at[parser->at]);
	}
	if (parser->at >= parser->text.length)
		return err_set(parser->err, ERR_INVALID, "column %u: the name that begins here has no closing \"",
		               column(parser, begin));
	parser->at++;
	return 0;
}

static int take_name(struct parser *parser)
{
	size_t begin = parser->at;
	buf_clear(&parser->name);
	if (parser->text.at[begin] == '"')
		return take_quoted(parser);
	while (parser->at < parser->text.length && is_plain(parser->text.at[parser->at]))
		parser->at++;
	buf_put(&parser->name, str_make(parser->text.at + begin, parser->at - begin));
	if (parser->at == begin)
		return err_set(parser->err, ERR_INVALID,
		               "column %u: the name of a site is expected here, as in `Site1=4 Site2=2`",
		               column(parser, begin));
	return 0;
}

static int find_site(struct parser *parser, size_t begin, uint32_t *number)
{
	struct suggest suggest;
	char hint[TEXT_SUGGESTION_BYTES];
	struct str name = buf_str(&parser->name);
	suggest_start(&suggest, name);
	for (*number = 0; *number < parser->sites_count; ++*number) {
		if (str_equal(parser->sites[*number].name, name))
			return 0;
		suggest_offer(&suggest, parser->sites[*number].name);
	}
	return err_set(parser->err, ERR_INVALID, "column %u: " TEXT_NAME_FMT " is no site of this resource%s",
	               column(parser, begin), TEXT_NAME(name), text_did_you_mean(&suggest, hint));
}

static int take_number(struct parser *parser, struct cross_number *number)
{
	size_t begin = parser->at;
	while (parser->at < parser->text.length && !is_space(parser->text.at[parser->at]) &&
	       parser->text.at[parser->at] != ';')
		parser->at++;
	struct str text = str_make(parser->text.at + begin, parser->at - begin);
	if (text.length == 0)
		return err_set(parser->err, ERR_INVALID, "column %u: a number is expected here, as in `Site1=4 Site2=2`",
		               column(parser, begin));
	int code = cross_number_parse(text, number, parser->err);
	return code ? err_context(parser->err, code, "column %u", column(parser, begin)) : 0;
}

static int take_entry(struct parser *parser)
{
	size_t begin = parser->at;
	uint32_t number = 0;
	int code = take_name(parser);
	if (code)
		return code;
	if (parser->at == parser->text.length || parser->text.at[parser->at] != '=')
		return err_set(parser->err, ERR_INVALID,
		               "column %u: `=` and a number are expected behind " TEXT_NAME_FMT ", without spaces",
		               column(parser, parser->at), TEXT_NAME(buf_str(&parser->name)));
	code = find_site(parser, begin, &number);
	if (code)
		return code;
	if (parser->named[number])
		return err_set(parser->err, ERR_INVALID, "column %u: " TEXT_NAME_FMT " is named twice", column(parser, begin),
		               TEXT_NAME(parser->sites[number].name));
	parser->at++;
	parser->named[number] = true;
	return take_number(parser, &parser->given[number]);
}

static int take_entries(struct parser *parser)
{
	for (skip_space(parser); parser->at < parser->text.length; skip_space(parser)) {
		int code = take_entry(parser);
		if (code)
			return code;
	}
	for (uint32_t i = 0; i < parser->sites_count; i++) {
		if (!parser->named[i])
			return err_set(parser->err, ERR_INVALID,
			               "column %u: nothing is said of " TEXT_NAME_FMT "; if it is to have no part, say so with =0",
			               column(parser, parser->text.length), TEXT_NAME(parser->sites[i].name));
	}
	return 0;
}

/* ---- Parts and weights -------------------------------------------------------------------------------------------------- */

static const struct cross_place *first_there(const struct cross_place *places, uint32_t count, uint32_t *number)
{
	for (*number = 0; *number < count; ++*number) {
		if (places[*number].found && !places[*number].is_null)
			return &places[*number];
	}
	return NULL;
}

static int total_of(struct parser *parser, struct str body, const struct cross_fields *fields,
                    struct cross_number *total, struct str *pointer)
{
	struct cross_place places[LIMIT_CROSS_FIELDS];
	struct cross_list list = {0};
	uint32_t number;
	int code = cross_find(body, fields, places, parser->err);
	if (code)
		return code;
	const struct cross_place *place = first_there(places, fields->count, &number);
	if (!place)
		return err_set(parser->err, ERR_INVALID, "the request has nothing that is divided%s%.*s",
		               fields->count ? ", such as " : "", fields->count ? (int)fields->pointers[0].length : 0,
		               fields->count ? fields->pointers[0].at : "");
	*pointer = fields->pointers[number];
	struct str value = str_make(body.at + place->at, place->length);
	if (place->kind == GLUE_JSON_NUMBER)
		return cross_number_parse(value, total, parser->err);
	if (place->kind != GLUE_JSON_ARRAY)
		return err_set(parser->err, ERR_INVALID, TEXT_NAME_FMT " is neither a number nor a list: it cannot be divided",
		               TEXT_NAME(*pointer));
	code = cross_list_read(value, &list, parser->err);
	*total = (struct cross_number){list.count, 0};
	cross_list_free(&list);
	return code;
}

static struct cross_number shortest(struct cross_number number)
{
	for (; number.scale > 0 && number.units % 10 == 0; number.scale--)
		number.units /= 10;
	return number;
}

/* Parts of a total: of its sign, not finer than it is written, and together all of it. */
static int check_parts(struct parser *parser, struct cross_number total, struct str pointer)
{
	struct cross_number sum = {0};
	struct buf a = {0}, b = {0};
	int code = 0;
	for (uint32_t i = 0; code == 0 && i < parser->sites_count; i++) {
		struct cross_number part = shortest(parser->given[i]);
		if (part.units != 0 && (part.units < 0) != (total.units < 0) && total.units != 0)
			code =
				err_set(parser->err, ERR_INVALID, "the part of " TEXT_NAME_FMT " has another sign than " TEXT_NAME_FMT,
			            TEXT_NAME(parser->sites[i].name), TEXT_NAME(pointer));
		else if (part.scale > total.scale)
			code = err_set(parser->err, ERR_INVALID,
			               "the part of " TEXT_NAME_FMT " has more decimal places than " TEXT_NAME_FMT,
			               TEXT_NAME(parser->sites[i].name), TEXT_NAME(pointer));
		else if (!cross_number_add(&sum, part))
			code = err_set(parser->err, ERR_LIMIT, "the parts together do not fit into 64 bits");
	}
	if (code == 0 && cross_number_compare(sum, total) != 0) {
		cross_number_put(sum, &a);
		cross_number_put(total, &b);
		code = err_set(parser->err, ERR_INVALID,
		               "the parts add up to %s, but " TEXT_NAME_FMT " is %s; for shares of any size say `weights; …`",
		               buf_c(&a), TEXT_NAME(pointer), buf_c(&b));
	}
	buf_free(&a);
	buf_free(&b);
	return code;
}

/* What was given becomes weights, of one number of decimal places. */
static int weigh(struct parser *parser, bool negative, struct cross_division *division)
{
	struct cross_number zero = {0};
	bool any = false;
	for (uint32_t i = 0; i < parser->sites_count; i++) {
		parser->given[i] = shortest(parser->given[i]);
		zero.scale = parser->given[i].scale > zero.scale ? parser->given[i].scale : zero.scale;
		any = any || parser->given[i].units != 0;
	}
	if (!any)
		return err_set(parser->err, ERR_INVALID, "all are 0: at least one site has to get something");
	division->count = parser->sites_count;
	for (uint32_t i = 0; i < parser->sites_count; i++) {
		struct cross_number *given = &parser->given[i];
		if (!negative && given->units < 0)
			return err_set(parser->err, ERR_INVALID, "the weight of " TEXT_NAME_FMT " is negative",
			               TEXT_NAME(parser->sites[i].name));
		if (!cross_number_add(given, zero) || given->units == INT64_MIN)
			return err_set(parser->err, ERR_LIMIT, "what is given for " TEXT_NAME_FMT " does not fit into 63 bits",
			               TEXT_NAME(parser->sites[i].name));
		division->shares[i].site = parser->sites[i].id;
		division->shares[i].weight = (uint64_t)(given->units < 0 ? -given->units : given->units);
	}
	return 0;
}

/* Nothing of nothing: whatever the weights, all parts are 0; later totals are divided evenly. */
static bool all_nothing(const struct parser *parser, struct cross_number total)
{
	for (uint32_t i = 0; i < parser->sites_count; i++) {
		if (parser->given[i].units != 0)
			return false;
	}
	return total.units == 0;
}

static int parse_parts(struct parser *parser, struct str body, const struct cross_fields *fields,
                       struct cross_division *division)
{
	struct cross_number total;
	struct str pointer;
	int code = take_entries(parser);
	if (code == 0)
		code = total_of(parser, body, fields, &total, &pointer);
	if (code == 0)
		code = check_parts(parser, total, pointer);
	if (code)
		return code;
	if (all_nothing(parser, total)) {
		cross_division_evenly(parser->sites, parser->sites_count, division);
		return 0;
	}
	return weigh(parser, total.units < 0, division);
}

/* A word alone, before `;` or the end. */
static bool take_word(struct parser *parser, struct str word, bool ends)
{
	size_t at = parser->at;
	struct str rest = str_make(parser->text.at + at, parser->text.length - at);
	if (rest.length < word.length || !str_equal(str_make(rest.at, word.length), word))
		return false;
	at += word.length;
	while (at < parser->text.length && is_space(parser->text.at[at]))
		at++;
	if (ends ? at < parser->text.length : at == parser->text.length || parser->text.at[at] != ';')
		return false;
	parser->at = at + !ends;
	return true;
}

int cross_division_of_header(struct str header, const struct cross_site *sites, uint32_t count, struct str body,
                             const struct cross_fields *fields, struct cross_division *division, struct err *err)
{
	CHECK(count > 0 && count <= LIMIT_REPLICA_MEMBERS);
	struct parser parser = {.text = header, .sites = sites, .sites_count = count, .err = err};
	if (header.length > LIMIT_CROSS_HEADER_BYTES)
		return err_set(err, ERR_LIMIT, "Cheops-Divide: %zu bytes are more than the limit of %d", header.length,
		               LIMIT_CROSS_HEADER_BYTES);
	skip_space(&parser);
	int code = 0;
	if (parser.at == header.length) {
		code = err_set(err, ERR_INVALID,
		               "it is empty; it looks like `Site1=4 Site2=2`, `weights; Site1=2 Site2=1` or `evenly`");
	} else if (take_word(&parser, STR("evenly"), true)) {
		cross_division_evenly(sites, count, division);
	} else if (take_word(&parser, STR("weights"), false)) {
		code = take_entries(&parser);
		if (code == 0)
			code = weigh(&parser, false, division);
	} else {
		code = parse_parts(&parser, body, fields, division);
	}
	buf_free(&parser.name);
	return code ? err_context(err, code, "Cheops-Divide") : 0;
}
