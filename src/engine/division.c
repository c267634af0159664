/* What is divisible (DESIGN 8): each member runs its own part of an operation.
 *
 * One write, when all goes well:
 *   1. Where the user asks, the operation gets a division: that of its header `Cheops-Divide`, else the one that the resource has; of one
 *      that is made, by the tag that the description names, else evenly. It is tried on the body: what cannot be divided is refused
 *      here, and nobody has heard of it.
 *   2. The whole body travels, with the division as a field of the head, `cheops-division`. Of a change ("5 more") a number travels with it
 *      that is drawn here: by it all members round alike.
 *   3. Each member cuts its own part out of the body before it puts its local ids into it: elements of a list are placed by what they
 *      are, which has to be the same everywhere.
 *   4. What sets something (create, replace, assign) sets the division of the resource as well: a row, put with the outcome. Members run
 *      such operations such that the last one in the order of all is the last one at each: so all end with the same division, and with
 *      parts of the same whole.
 *   5. The answer of the service is of one part. What was divided is put back as the request had it.
 *
 * A member that has no share in a division, since it came later, has a part of nothing. A change does not set the division: those of
 * two sites commute, and nobody could say whose is the last.
 */
#include "engine/engine_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>
#include <sys/random.h>

static const enum replica_table TABLE = (enum replica_table)ENGINE_DIVISIONS;

static const struct str division_header = STR_INIT("cheops-divide");

/* ---- What is divided ------------------------------------------------------------------------------------------------ */

/* Pointers into the body of an operation; `relative`: they say by how much. */
struct divided {
	struct str pointers[LIMIT_CROSS_FIELDS];
	struct cross_fields fields;
	bool relative;
	bool too_many;
};

static void add_pointers(struct divided *divided, struct arena *arena, struct str object, const struct str *pointers,
                         uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct buf text = {0};
		bool there = false;
		buf_put(&text, object);
		buf_put(&text, pointers[i]);
		struct str pointer = str_make(arena_copy(arena, text.at, text.length), text.length);
		buf_free(&text);
		for (uint32_t k = 0; k < divided->fields.count; k++)
			there |= str_equal(divided->pointers[k], pointer);
		divided->too_many |= !there && divided->fields.count == LIMIT_CROSS_FIELDS;
		if (!there && !divided->too_many)
			divided->pointers[divided->fields.count++] = pointer;
	}
	divided->fields.pointers = divided->pointers;
}

/* Nothing of what concerns a file or another facet is divided, unless the operation says so itself; and nothing of a delete. */
static void find_divided(struct arena *arena, const struct glue_match *match, struct divided *divided)
{
	const struct glue_operation *operation = match->operation;
	const struct glue_cross *cross = glue_type_cross(match->type);
	enum glue_effect effect = glue_operation_effect(operation);
	uint32_t count;
	const struct str *own = glue_operation_divide(operation, &count);
	struct str object = glue_operation_object(operation);
	*divided = (struct divided){.relative = effect == GLUE_RELATIVE};
	bool sets = effect == GLUE_CREATE || effect == GLUE_REPLACE || effect == GLUE_ASSIGN;
	bool facet = glue_facet_number(operation) != 0;
	if (cross->strategy != GLUE_DIVISIBLE || (facet && count == 0) || (!sets && !divided->relative))
		return;
	if (sets && !facet)
		add_pointers(divided, arena, object, cross->divide, cross->divide_count);
	add_pointers(divided, arena, object, own, count);
}

uint32_t engine_division_pointers(struct arena *arena, const struct glue_match *match, struct str *pointers)
{
	struct divided divided;
	find_divided(arena, match, &divided);
	memcpy(pointers, divided.pointers, divided.fields.count * sizeof(*pointers));
	return divided.fields.count;
}

/* ---- As it travels --------------------------------------------------------------------------------------------------- */

static void put_field(struct buf *fields, const struct cross_division *division, bool relative)
{
	struct buf bytes = {0};
	uint64_t chance;
	cross_division_put(division, &bytes);
	buf_put(fields, engine_division_field);
	buf_put(fields, STR(": "));
	base64_encode(fields, BASE64_URL, buf_str(&bytes));
	if (relative) {
		ssize_t got = getrandom(&chance, sizeof(chance), 0);
		CHECK(got == sizeof(chance));
		buf_printf(fields, " %016llx", (unsigned long long)chance);
	}
	buf_put(fields, STR("\r\n"));
	buf_free(&bytes);
}

void engine_division_put_field(struct buf *fields, const struct cross_division *division)
{
	put_field(fields, division, false);
}

/* Sixteen digits. */
static bool read_chance(struct str text, uint64_t *chance)
{
	char digits[17] = {0}, *end;
	if (text.length != 16)
		return false;
	memcpy(digits, text.at, 16);
	*chance = strtoull(digits, &end, 16);
	return *end == '\0' && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ';
}

static int read_field(struct str value, struct cross_division *division, uint64_t *chance, struct err *err)
{
	const char *space = memchr(value.at, ' ', value.length);
	size_t length = space ? (size_t)(space - value.at) : value.length;
	struct buf bytes = {0};
	*chance = 0;
	if (!base64_decode_to(&bytes, BASE64_URL, str_make(value.at, length)) ||
	    (space && !read_chance(str_make(space + 1, value.length - length - 1), chance))) {
		buf_free(&bytes);
		return err_set(err, ERR_INVALID, "the division that came with the operation cannot be read");
	}
	int code = cross_division_parse(buf_str(&bytes), division, err);
	buf_free(&bytes);
	return code;
}

/* As the head of a part that was read has it: what that is a part of, and not to be divided. */
static const struct str own_prefix = STR_INIT("own ");

static bool is_own(struct str value)
{
	return value.length > own_prefix.length && memcmp(value.at, own_prefix.at, own_prefix.length) == 0;
}

static struct str behind_own(struct str value)
{
	return is_own(value) ? str_make(value.at + own_prefix.length, value.length - own_prefix.length) : value;
}

void engine_division_put_own(struct engine *engine, struct replica_id id, struct buf *fields)
{
	struct cross_division division;
	struct buf bytes = {0};
	if (!engine_division_get(engine, id, &division))
		return;
	cross_division_put(&division, &bytes);
	buf_put(fields, engine_division_field);
	buf_put(fields, STR(": "));
	buf_put(fields, own_prefix);
	base64_encode(fields, BASE64_URL, buf_str(&bytes));
	buf_put(fields, STR("\r\n"));
	buf_free(&bytes);
}

/* ---- The division that a resource has -------------------------------------------------------------------------------- */

static struct str key_of(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}

bool engine_division_get(struct engine *engine, struct replica_id id, struct cross_division *division)
{
	struct buf row = {0};
	bool known = engine_row_get(engine, TABLE, key_of(&id), &row) == 0 &&
	             cross_division_parse(buf_str(&row), division, NULL) == 0;
	buf_free(&row);
	return known;
}

/* Whoever is no member any more has it by no delete: it has left, and its item may have stayed. */
void engine_division_forget(struct engine *engine, struct replica_id id)
{
	struct cross_division division;
	if (engine_division_get(engine, id, &division))
		engine_row_remove(engine, TABLE, key_of(&id));
}

static const struct replica_member_view *find_member(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return &view->members[i];
	return NULL;
}

static void divide_evenly(const struct replica_view *view, struct cross_division *division)
{
	*division = (struct cross_division){0};
	for (int first = 1; first >= 0; first--)
		for (uint32_t i = 0; i < view->members_count; i++)
			if ((view->members[i].site == view->prime) == first && !view->members[i].leaving)
				cross_division_add(division, view->members[i].site, 1, NULL);
}

/* What a site would have that is gone would be nowhere. */
bool engine_division_now(struct engine *engine, const struct replica_view *view, struct cross_division *division)
{
	*division = (struct cross_division){0};
	if (!engine_division_get(engine, view->id, division))
		divide_evenly(view, division);
	for (uint32_t i = division->count; i-- > 0;) {
		const struct replica_member_view *member = find_member(view, division->shares[i].site);
		if ((!member || member->leaving) && cross_division_withdraw(division, division->shares[i].site, NULL) != 0) {
			divide_evenly(view, division); /* those that are left had a weight of nothing */
			break;
		}
	}
	return division->count > 0;
}

void engine_division_ran(const struct run *run, const struct replica_outcome *outcome)
{
	struct engine *engine = run->engine;
	struct replica_id id = run->task.op.replicant;
	struct cross_division division;
	struct buf row = {0};
	uint64_t chance;
	struct str value = behind_own(engine_field(run->head.fields, engine_division_field));
	if (outcome->kind != REPLICA_ACCEPTED || !engine->replica)
		return;
	if (run->class.effect == ORDER_DELETE && run->match.type &&
	    glue_type_cross(run->match.type)->strategy == GLUE_DIVISIBLE)
		engine_row_remove(engine, TABLE, key_of(&id));
	if (value.length == 0 || run->class.effect == ORDER_RELATIVE || read_field(value, &division, &chance, NULL) != 0)
		return;
	cross_division_put(&division, &row);
	engine_row_put(engine, TABLE, key_of(&id), buf_str(&row));
	buf_free(&row);
}

/* ---- A user's operation ---------------------------------------------------------------------------------------------- */

static struct str tag_of(const struct site_place *place, struct str name)
{
	for (uint32_t i = 0; i < place->tags_count; i++)
		if (str_equal(place->tags[i].key, name))
			return place->tags[i].value;
	return STR("");
}

/* Those that it is made over, the prime first; or those that have a share of it now. */
static uint32_t find_sites(struct ticket *ticket, const struct cross_division *present, struct cross_site *sites,
                           struct str *tags)
{
	struct engine *engine = ticket->engine;
	struct str weight = glue_type_cross(ticket->match.type)->weight;
	uint32_t count = present ? present->count : ticket->request.members_count;
	for (uint32_t i = 0; i < count; i++) {
		site_id id = present ? present->shares[i].site : ticket->request.members[i];
		const struct site_place *place = engine_find_place(engine, id);
		char *hex = arena_array(&ticket->arena, char, 17);
		for (int k = 0; k < 16; k++)
			hex[k] = "0123456789abcdef"[id >> (60 - 4 * k) & 15];
		sites[i] = (struct cross_site){id, place ? place->name : str_make(hex, 16)};
		tags[i] = place ? tag_of(place, weight) : STR("");
	}
	return count;
}

/* Of one that exists: its row, or, if that is not here yet, what it would have been made with. False: it is not known here. */
static bool find_present(struct ticket *ticket, struct cross_division *present)
{
	struct replica_view view;
	*present = (struct cross_division){0};
	if (replica_look(ticket->engine->replica, &ticket->arena, ticket->request.replicant, &view) != 0)
		return engine_division_get(ticket->engine, ticket->request.replicant, present);
	return engine_division_now(ticket->engine, &view, present);
}

/* Who has come, and has no share yet, can be given one by hand. */
static void name_all(struct ticket *ticket, struct cross_division *division)
{
	struct replica_view view;
	if (replica_look(ticket->engine->replica, &ticket->arena, ticket->request.replicant, &view) != 0)
		return;
	for (uint32_t i = 0; i < view.members_count; i++)
		if (!view.members[i].leaving && !view.members[i].joining)
			cross_division_add(division, view.members[i].site, 0, NULL); /* it may be there */
}

static bool refuse(struct ticket *ticket, unsigned status, const struct err *err)
{
	engine_ticket_refuse(ticket, status, "bad-division", "%s", err->text);
	return false;
}

static bool refuse_header(struct ticket *ticket, const char *why)
{
	engine_ticket_refuse(ticket, 400, "bad-division",
	                     "Cheops-Divide says how a divisible resource lies over its sites: %s", why);
	return false;
}

/* Of a value or several lines of it. */
static bool find_header(struct ticket *ticket, struct str *header, bool *refused)
{
	struct str fields = ticket->request.fields, again;
	*refused = false;
	if (!engine_field_next(&fields, division_header, header))
		return false;
	*refused = engine_field_next(&fields, division_header, &again);
	if (*refused)
		refuse_header(ticket, "it can be there only once");
	return true;
}

/* Is it a JSON text of which a field is found by its pointer? A JSON patch is a list of what to do. */
static bool is_divisible_text(struct str content_type)
{
	if (content_type.length == 0)
		return true;
	return memmem(content_type.at, content_type.length, "json", 4) &&
	       !memmem(content_type.at, content_type.length, "json-patch", 10);
}

static bool check_form(struct ticket *ticket, struct str body)
{
	struct str type = ticket->asked.content_type;
	if (!ticket->spool && is_divisible_text(type) && body.length <= LIMIT_REPLICA_READ_BYTES)
		return true;
	engine_ticket_refuse(ticket, 415, "body-not-read",
	                     "each site is to have its part of what the body says, and `%.*s` is not divided: send it as "
	                     "JSON, a change as a "
	                     "merge patch (`application/merge-patch+json`)",
	                     STR_FMT(text_shown(type)));
	return false;
}

static int choose(struct ticket *ticket, const struct divided *divided, struct str body, const struct str *header,
                  struct cross_division *division, struct err *err)
{
	struct cross_site sites[LIMIT_REPLICA_MEMBERS];
	struct str tags[LIMIT_REPLICA_MEMBERS], weight = glue_type_cross(ticket->match.type)->weight;
	bool makes = ticket->request.members_count > 0;
	if (ticket->request.division) {
		*division = *ticket->request.division;
		return 0;
	}
	if (!makes && !find_present(ticket, division))
		return err_set(err, ERR_NOT_FOUND, "it is not known here over which sites it lies");
	if (!makes && header)
		name_all(ticket, division);
	uint32_t count = find_sites(ticket, makes ? NULL : division, sites, tags);
	if (header)
		return cross_division_of_header(*header, sites, count, body, &divided->fields, division, err);
	if (makes && weight.length > 0)
		return cross_division_by_tags(sites, tags, count, weight, division, err);
	if (makes)
		cross_division_evenly(sites, count, division);
	return 0;
}

/* So that what cannot be divided is refused before anything runs. */
static int try_body(const struct divided *divided, struct str body, const struct cross_division *division,
                    struct err *err)
{
	struct buf part = {0};
	site_id site = division->shares[0].site;
	int code = divided->relative ? cross_divide_change_body(body, &divided->fields, division, site, 0, &part, err)
	                             : cross_divide_body(body, &divided->fields, division, site, &part, err);
	buf_free(&part);
	return code;
}

static bool refuse_conditions(struct ticket *ticket)
{
	engine_ticket_refuse(ticket, 400, "condition-on-parts",
	                     "each site has a part of it, and what has to be so for a change (If-Match and its like, or a "
	                     "version in the body) would be "
	                     "judged by one part alone: send it without");
	return false;
}

bool engine_division_choose(struct ticket *ticket, struct str body, bool conditional, struct buf *fields)
{
	const struct engine_request *request = &ticket->request;
	struct cross_division division = {0};
	struct divided *divided = arena_new(&ticket->arena, struct divided);
	struct err err = {0};
	struct str header;
	bool refused, has = false, makes = request->members_count > 0;
	bool asked = find_header(ticket, &header, &refused);
	if (refused)
		return false;
	if (request->span != REPLICA_DIVIDED)
		return !asked || refuse_header(ticket, "this one is none; it is made with `%`");
	if (glue_type_cross(ticket->match.type)->strategy != GLUE_DIVISIBLE) {
		engine_ticket_refuse(ticket, 409, "not-described",
		                     "it was made as one that is divided, and the description does not say any more how");
		return false;
	}
	if (conditional && !makes)
		return refuse_conditions(ticket);
	find_divided(&ticket->arena, &ticket->match, divided);
	if (divided->fields.count == 0)
		return !asked || refuse_header(ticket, "this request has nothing that is divided");
	if (divided->too_many) {
		err_set(&err, ERR_LIMIT, "the description divides more than %d fields", LIMIT_CROSS_FIELDS);
		return refuse(ticket, 400, &err);
	}
	if (!check_form(ticket, body))
		return false;
	if (cross_has_field(body, &divided->fields, &has, &err) != 0)
		return refuse(ticket, 400, &err);
	enum glue_effect effect = glue_operation_effect(ticket->match.operation);
	if (!has && effect == GLUE_ASSIGN && (asked || request->division) && !ticket->whole) {
		engine_division_read(ticket);
		return false;
	}
	if (!has && effect != GLUE_CREATE && effect != GLUE_REPLACE)
		return !asked || refuse_header(ticket, "nothing of what is divided is in the body, or in its parts");
	if (choose(ticket, divided, body, asked ? &header : NULL, &division, &err) != 0 ||
	    try_body(divided, body, &division, &err) != 0)
		return refuse(ticket, err.code == ERR_NOT_FOUND ? 404 : 400, &err);
	put_field(fields, &division, divided->relative);
	return true;
}

bool engine_division_replays(const struct ticket *ticket)
{
	return ticket->request.span == REPLICA_DIVIDED && engine_operation_of(ticket->match.type, GLUE_REPLACE) != NULL;
}

/* ---- The part of this site -------------------------------------------------------------------------------------------- */

int engine_division_part(struct run *run, struct str *body, struct err *err)
{
	struct cross_division division;
	struct divided divided;
	struct buf part = {0};
	uint64_t chance;
	site_id self = run->engine->options.self;
	struct str value = engine_field(run->head.fields, engine_division_field);
	if (value.length == 0 || is_own(value))
		return 0;
	int code = read_field(value, &division, &chance, err);
	if (code)
		return code;
	find_divided(&run->arena, &run->match, &divided);
	if (divided.fields.count == 0)
		return err_set(err, ERR_INVALID, "the description of the application here does not say what of it is divided");
	bool has_share = false;
	for (uint32_t i = 0; i < division.count; i++)
		has_share |= division.shares[i].site == self;
	if (!has_share && (code = cross_division_add(&division, self, 0, err)) != 0)
		return code;
	code = divided.relative ? cross_divide_change_body(*body, &divided.fields, &division, self, chance, &part, err)
	                        : cross_divide_body(*body, &divided.fields, &division, self, &part, err);
	*body = str_make(arena_copy(&run->arena, part.at, part.length), part.length);
	buf_free(&part);
	return code;
}

/* ---- The answer -------------------------------------------------------------------------------------------------------- */

void engine_division_restore(struct ticket *ticket, struct str whole)
{
	struct divided divided;
	struct buf restored = {0};
	struct arena arena;
	if (ticket->request.span != REPLICA_DIVIDED || ticket->status >= 300)
		return;
	arena_init(&arena, 0);
	find_divided(&arena, &ticket->match, &divided);
	if (!divided.relative && divided.fields.count > 0 &&
	    cross_restore_body(whole, buf_str(&ticket->answer_body), &divided.fields, &restored, NULL) == 0) {
		buf_free(&ticket->answer_body);
		ticket->answer_body = restored;
	} else {
		buf_free(&restored);
	}
	if (ticket->request.members_count == 0 && ticket->answer_body.length > 0) {
		const struct site_place *here = engine_find_place(ticket->engine, ticket->engine->options.self);
		buf_put(&ticket->answer_fields, STR("Cheops-Part: "));
		buf_put(&ticket->answer_fields, here ? here->name : STR(""));
		buf_put(&ticket->answer_fields, STR("\r\n"));
	}
	arena_free(&arena);
}

/* ---- Comparing ---------------------------------------------------------------------------------------------------------- */

uint32_t engine_division_level(struct arena *arena, const struct glue_match *match, struct engine_reading *readings,
                               uint32_t count, const struct str **pointers)
{
	const struct glue_cross *cross = glue_type_cross(match->type);
	const struct glue_operation *read = engine_operation_of(match->type, GLUE_READ);
	struct divided *divided = arena_new(arena, struct divided);
	struct str object = read ? glue_operation_object(read) : STR("");
	const struct engine_reading *first = NULL;
	add_pointers(divided, arena, object, cross->divide, cross->divide_count);
	for (uint32_t i = 0; i < cross->combine_count; i++)
		add_pointers(divided, arena, object, &cross->combine[i].pointer, 1);
	for (uint32_t i = 0; i < count && !divided->too_many; i++) {
		struct engine_reading *reading = &readings[i];
		struct buf text = {0};
		char *digest = arena_array(arena, char, (size_t)2 * ENGINE_BLOB_BYTES);
		if (reading->kind != ENGINE_READ_HERE || reading->text.length == 0)
			continue;
		if (first && cross_restore_body(first->text, reading->text, &divided->fields, &text, NULL) == 0) {
			engine_copy_digest(buf_str(&text), digest);
			reading->text = str_make(arena_copy(arena, text.at, text.length), text.length);
			reading->digest = str_make(digest, (size_t)2 * ENGINE_BLOB_BYTES);
		}
		first = first ? first : reading;
		buf_free(&text);
	}
	*pointers = divided->pointers;
	return divided->fields.count;
}
