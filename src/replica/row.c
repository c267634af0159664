/* The rows of a replicant and of its lane (docs/protocol/replica.md, "Rows").
 *
 * REPLICANTS has what is known of it and of its members, LANES what this site has done and is doing. A replicant with nothing
 * pending has the first only: then all vectors are `base`, which takes one byte each. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

void put_vector(struct buf *out, const uint32_t *vector, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		put_number(out, vector[i], 4);
}

void read_vector(struct reader *reader, uint32_t *vector, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vector[i] = read_32(reader);
}

/* A vector that most often is `base`. */
static void put_above(struct buf *out, const struct replicant *r, const uint32_t *vector)
{
	bool same = vector_equal(vector, r->base, r->members_count);
	put_number(out, same ? 0 : 1, 1);
	if (!same)
		put_vector(out, vector, r->members_count);
}

static bool read_above(struct reader *reader, const struct replicant *r, uint32_t *vector)
{
	uint8_t which = read_8(reader);
	if (which == 0)
		vector_copy(vector, r->base, r->members_count);
	else
		read_vector(reader, vector, r->members_count);
	return which <= 1;
}

void put_text(struct buf *out, struct str text)
{
	CHECK(text.length <= UINT8_MAX);
	put_number(out, text.length, 1);
	buf_put(out, text);
}

struct str read_text(struct reader *reader)
{
	return read_bytes(reader, read_8(reader));
}

static const struct hash_key MEMBERS_KEY = {0x6368656f70732072, 0x65706c696361206d};

/* Who has the same members, in the same order and with the same marks, has the same digest: then no list need be sent. */
uint32_t members_digest(const struct replicant *r)
{
	char bytes[LIMIT_REPLICA_MEMBERS * 9 + 1]; /* it is asked for with each message */
	struct buf ids = {bytes, 0, sizeof(bytes)};
	CHECK(r->members_count <= LIMIT_REPLICA_MEMBERS);
	for (uint32_t i = 0; i < r->members_count; i++)
		put_number(&ids, r->members[i].site, 8);
	for (uint32_t i = 0; i < r->members_count; i++)
		put_number(&ids, member_flags(r, i) & MEMBER_LISTED, 1);
	return (uint32_t)hash_bytes(&MEMBERS_KEY, buf_str(&ids));
}

/* ---- What all members know from the start -------------------------------------------------------------------------- */

enum {
	RULES_DELETE_LOSES = 1,
	RULES_CREATE_REPLAYS = 2,
	RULES_TABLE = 4,
	IDS_IN_COLLECTION = 8,
	IDS_CHOSEN = 16,
	HEADER_FLAGS = 31
};
enum { HEADER_SPAN = 4 }; /* the bit from which on the first byte says how it lies over its members */

/* Names and resolutions are slices of one text of its own. */
void header_take(struct replicant *r, const struct replica_create *create)
{
	const struct str parts[] = {create->service, create->type, create->collection, create->name};
	struct str *const places[] = {&r->service, &r->type, &r->collection, &r->name};
	size_t table = create->rules.resolutions ? (size_t)create->rules.classes * create->rules.classes : 0;
	buf_clear(&r->text);
	for (size_t i = 0; i < 4; i++)
		buf_put(&r->text, parts[i]);
	if (table > 0)
		buf_put(&r->text, str_make((const char *)create->rules.resolutions, table));
	size_t at = 0;
	for (size_t i = 0; i < 4; i++) {
		*places[i] = str_make(buf_c(&r->text) + at, parts[i].length);
		at += parts[i].length;
	}
	r->consistency = create->consistency;
	r->span = create->span;
	r->prime = create->prime;
	r->ids_in_collection = create->ids_in_collection;
	r->ids_chosen = create->ids_chosen;
	r->rules = create->rules;
	r->rules.resolutions = table > 0 ? (const uint8_t *)r->text.at + at : NULL;
}

void put_header(struct buf *out, const struct replicant *r)
{
	const struct order_rules *rules = &r->rules;
	put_number(out, (uint64_t)r->consistency | (uint64_t)r->span << HEADER_SPAN, 1);
	put_text(out, r->service);
	put_text(out, r->type);
	put_text(out, r->collection);
	put_text(out, r->name);
	put_number(out,
	           (rules->delete_loses ? RULES_DELETE_LOSES : 0) | (rules->create_replays ? RULES_CREATE_REPLAYS : 0) |
	               (rules->resolutions ? RULES_TABLE : 0) | (r->ids_in_collection ? IDS_IN_COLLECTION : 0) |
	               (r->ids_chosen ? IDS_CHOSEN : 0),
	           1);
	put_number(out, rules->classes, 1);
	if (rules->resolutions)
		buf_put(out, str_make((const char *)rules->resolutions, (size_t)rules->classes * rules->classes));
	put_number(out, r->members_count, 1);
	for (uint32_t i = 0; i < r->members_count; i++)
		put_number(out, r->members[i].site, 8);
	if (r->span != REPLICA_ALIKE)
		witness_put(out, r);
}

static bool rules_are_sound(const struct order_rules *rules)
{
	size_t table = rules->resolutions ? (size_t)rules->classes * rules->classes : 0;
	for (size_t i = 0; i < table; i++)
		if (rules->resolutions[i] >= ORDER_RESOLUTIONS && rules->resolutions[i] != UINT8_MAX)
			return false;
	return rules->classes <= LIMIT_REPLICA_CLASSES;
}

static bool read_members(struct reader *reader, struct replicant *r, site_id self)
{
	site_id members[LIMIT_REPLICA_MEMBERS];
	uint32_t count = read_8(reader);
	bool here = false;
	if (reader->failed || count == 0 || count > LIMIT_REPLICA_MEMBERS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		members[i] = read_64(reader);
		here |= members[i] == self;
		for (uint32_t k = 0; k < i; k++)
			if (members[k] == members[i])
				return false;
		if (members[i] == 0)
			return false;
	}
	if (reader->failed || !here)
		return false;
	replicant_shape(r, members, count, self);
	return true;
}

bool read_header(struct reader *reader, struct replicant *r, site_id self)
{
	struct replica_create create = {0};
	uint8_t kind = read_8(reader), consistency = kind & ((1 << HEADER_SPAN) - 1), span = kind >> HEADER_SPAN;
	create.consistency = consistency;
	create.span = span;
	create.service = read_text(reader);
	create.type = read_text(reader);
	create.collection = read_text(reader);
	create.name = read_text(reader);
	uint8_t flags = read_8(reader);
	create.rules.delete_loses = flags & RULES_DELETE_LOSES;
	create.rules.create_replays = flags & RULES_CREATE_REPLAYS;
	create.ids_in_collection = flags & IDS_IN_COLLECTION;
	create.ids_chosen = flags & IDS_CHOSEN;
	create.rules.classes = read_8(reader);
	if (flags & RULES_TABLE) {
		struct str table = read_bytes(reader, (size_t)create.rules.classes * create.rules.classes);
		create.rules.resolutions = reader->failed ? NULL : (const uint8_t *)table.at;
	}
	if (reader->failed || consistency > REPLICA_WEAK || span >= REPLICA_SPANS || (flags & ~HEADER_FLAGS) != 0 ||
	    !rules_are_sound(&create.rules))
		return false;
	header_take(r, &create);
	return read_members(reader, r, self) && (r->span == REPLICA_ALIKE || witness_read(reader, r));
}

/* ---- REPLICANTS ---------------------------------------------------------------------------------------------------- */

static void put_member(struct buf *out, const struct replicant *r, uint32_t index)
{
	const struct member *member = &r->members[index];
	put_number(out, member_flags(r, index), 1);
	put_number(out, member->told, 4);
	put_above(out, r, member->has);
	report_put(out, &member->report, r->members_count);
}

static bool read_member(struct reader *reader, struct replicant *r, uint32_t index)
{
	struct member *member = &r->members[index];
	uint8_t flags = read_8(reader);
	member_take_flags(r, index, flags);
	member->told = read_32(reader);
	return read_above(reader, r, member->has) && (flags & ~MEMBER_FLAGS) == 0 &&
	       report_read(reader, &member->report, r->members_count);
}

static bool read_marks(struct reader *reader, struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		uint8_t flags = read_8(reader);
		member_take_flags(r, i, flags);
		if (flags & ~MEMBER_FLAGS)
			return false;
	}
	return true;
}

/* Of one that this site has left: who has to be told, and what is still to be deleted. */
static void put_left(struct buf *out, const struct replicant *r)
{
	const struct report *own = &r->members[r->self].report;
	for (uint32_t i = 0; i < r->members_count; i++)
		put_number(out, member_flags(r, i), 1);
	put_number(out, r->deletes, 1);
	put_number(out, own->local_id_quoted, 1);
	put_text(out, str_make(own->local_id, own->local_id_bytes));
}

static bool read_left(struct reader *reader, struct replicant *r)
{
	struct report *own = own_report(r);
	if (!read_marks(reader, r))
		return false;
	r->deletes = read_8(reader);
	own->local_id_quoted = read_8(reader);
	struct str local_id = read_text(reader);
	if (reader->failed || local_id.length > sizeof(own->local_id))
		return false;
	memcpy(own->local_id, local_id.at, local_id.length);
	own->local_id_bytes = (uint8_t)local_id.length;
	return true;
}

void head_put(struct buf *out, const struct replicant *r)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	put_number(out, r->kind, 1);
	if (r->kind == REPLICANT_ALIAS) {
		buf_put(out, id_str(&r->alias));
		put_number(out, r->winner, 8);
		op_key_put(out, &r->merge);
		return;
	}
	put_number(out, r->gone_ms, 8);
	put_header(out, r);
	put_vector(out, r->base, r->members_count);
	for (uint32_t i = 0; i < r->members_count && r->kind == REPLICANT_LIVE; i++)
		put_member(out, r, i);
	for (uint32_t i = 0; i < r->members_count && r->kind == REPLICANT_GONE; i++)
		put_number(out, member_flags(r, i), 1);
	if (r->kind == REPLICANT_LEFT)
		put_left(out, r);
}

static bool read_head(struct reader *reader, struct replicant *r, site_id self, uint8_t version)
{
	r->gone_ms = read_64(reader);
	if (!read_header(reader, r, self))
		return false;
	read_vector(reader, r->base, r->members_count);
	for (uint32_t i = 0; i < r->members_count && r->kind == REPLICANT_LIVE; i++)
		if (!read_member(reader, r, i))
			return false;
	/* Format 2 has none of what is gone. */
	if (r->kind == REPLICANT_GONE && version > 2 && !read_marks(reader, r))
		return false;
	if (r->kind == REPLICANT_LEFT && !read_left(reader, r))
		return false;
	vector_copy(r->handled, r->base, r->members_count);
	vector_copy(r->known, r->base, r->members_count);
	return true;
}

int head_parse(struct str row, struct replicant *r, site_id self, struct err *err)
{
	struct reader reader = reader_of(row);
	uint8_t version = read_8(&reader);
	if (!reader.failed && row_version_check(version, "a replicant", err) != 0)
		return ERR_VERSION;
	uint8_t kind = read_8(&reader);
	bool sound = kind <= REPLICANT_LEFT;
	r->kind = kind;
	if (sound && kind == REPLICANT_ALIAS) {
		struct str id = read_bytes(&reader, sizeof(r->alias.bytes));
		if (id.length == sizeof(r->alias.bytes))
			memcpy(r->alias.bytes, id.at, id.length);
		r->winner = read_64(&reader);
		struct str merge = read_bytes(&reader, sizeof(r->merge.replicant.bytes) + 8 + 4);
		sound = op_key_parse(merge, &r->merge);
	} else if (sound) {
		sound = read_head(&reader, r, self, version);
	}
	if (!sound || reader.failed || reader.left > 0)
		return err_set(err, ERR_CORRUPT, "the row of a replicant, of %zu bytes, makes no sense", row.length);
	return 0;
}

/* ---- LANES --------------------------------------------------------------------------------------------------------- */

/* X in runs: operations of one member, one after another, with one outcome. */
static uint32_t run_length(const struct replicant *r, uint32_t from)
{
	const struct step *first = &r->steps[from];
	uint32_t length = 1;
	while (from + length < r->steps_count && r->steps[from + length].member == first->member &&
	       r->steps[from + length].number == first->number + length && r->steps[from + length].how == first->how)
		length++;
	return length;
}

static void put_steps(struct buf *out, const struct replicant *r)
{
	uint32_t runs = 0;
	for (uint32_t i = 0; i < r->steps_count; i += run_length(r, i))
		runs++;
	put_number(out, runs, 4);
	for (uint32_t i = 0; i < r->steps_count;) {
		uint32_t length = run_length(r, i);
		put_number(out, r->steps[i].member, 1);
		put_number(out, r->steps[i].number, 4);
		put_number(out, length, 4);
		put_number(out, r->steps[i].how, 1);
		i += length;
	}
}

static bool read_steps(struct reader *reader, struct replicant *r)
{
	enum { STEPS_MOST = LIMIT_REPLICA_MEMBERS * 2 * LIMIT_REPLICA_OPERATIONS };
	uint32_t runs = read_32(reader);
	r->steps_count = 0;
	for (uint32_t i = 0; i < runs && !reader->failed; i++) {
		struct step step = {.member = read_8(reader)};
		step.number = read_32(reader);
		uint32_t length = read_32(reader);
		step.how = read_8(reader);
		if (reader->failed || step.member >= r->members_count || step.how > ORDER_KEPT || length == 0 ||
		    length > STEPS_MOST - r->steps_count || step.number == 0 || step.number > UINT32_MAX / 2)
			return false;
		r->steps = replica_grow(r->steps, &r->steps_capacity, r->steps_count + length, sizeof(*r->steps));
		for (uint32_t k = 0; k < length; k++, step.number++)
			r->steps[r->steps_count++] = step;
	}
	return !reader->failed;
}

enum {
	LANE_UNSURE = 1,
	LANE_ANSWERED = 2,
	LANE_REDO = 4,
	LANE_STANDING = 8,
	LANE_GONE = 16,
	LANE_UNABLE = 32,
	LANE_FLAGS = 63
};

static void put_task(struct buf *out, const struct replicant *r)
{
	const struct task *task = &r->task;
	put_number(out,
	           (r->unsure ? LANE_UNSURE : 0) | (task->answered ? LANE_ANSWERED : 0) | (r->redo ? LANE_REDO : 0) |
	               (task->standing ? LANE_STANDING : 0) | (r->gone ? LANE_GONE : 0) | (r->unable ? LANE_UNABLE : 0),
	           1);
	put_number(out, task->what, 1);
	put_number(out, task->kind, 1);
	put_number(out, task->member, 1);
	put_number(out, task->number, 4);
}

static bool read_task(struct reader *reader, struct replicant *r)
{
	uint8_t flags = read_8(reader), what = read_8(reader), kind = read_8(reader);
	r->unsure = flags & LANE_UNSURE;
	r->redo = flags & LANE_REDO;
	r->gone = flags & LANE_GONE;
	r->unable = flags & LANE_UNABLE;
	r->task = (struct task){.what = what,
	                        .kind = kind,
	                        .member = read_8(reader),
	                        .answered = flags & LANE_ANSWERED,
	                        .standing = flags & LANE_STANDING};
	r->task.number = read_32(reader);
	return (flags & ~LANE_FLAGS) == 0 && what <= TASK_RESTORE && kind <= REPLICA_INQUIRE_ANEW &&
	       r->task.member < r->members_count;
}

static void put_withheld(struct buf *out, const struct replicant *r)
{
	put_number(out, r->withheld_count, 2);
	for (uint32_t i = 0; i < r->withheld_count; i++) {
		put_number(out, r->withheld[i].number, 4);
		put_number(out, r->withheld[i].place, 4);
		put_number(out, r->withheld[i].asking, 1);
	}
}

static bool read_withheld(struct reader *reader, struct replicant *r)
{
	uint32_t count = read_16(reader);
	if (count == 0 || reader->left / 9 < count)
		return count == 0;
	r->withheld = calloc(count, sizeof(*r->withheld));
	CHECK(r->withheld != NULL);
	r->withheld_count = count;
	for (uint32_t i = 0; i < count; i++) {
		r->withheld[i].number = read_32(reader);
		r->withheld[i].place = read_32(reader);
		r->withheld[i].asking = read_8(reader);
		if ((r->withheld[i].number & REPLICA_WITHHELD) == 0)
			return false;
	}
	return true;
}

void lane_put(struct buf *out, const struct replicant *r)
{
	put_number(out, REPLICA_ROW_VERSION, 1);
	put_above(out, r, r->handled);
	put_task(out, r);
	put_withheld(out, r);
	put_steps(out, r);
	report_put(out, &r->members[r->self].report, r->members_count);
}

int lane_parse(struct str row, struct replicant *r, struct err *err)
{
	struct reader reader = reader_of(row);
	uint8_t version = read_8(&reader);
	if (!reader.failed && row_version_check(version, "a lane", err) != 0)
		return ERR_VERSION;
	bool sound = read_above(&reader, r, r->handled) && read_task(&reader, r) && read_withheld(&reader, r) &&
	             read_steps(&reader, r) && report_read(&reader, own_report(r), r->members_count);
	if (!sound || reader.failed || reader.left > 0)
		return err_set(err, ERR_CORRUPT, "the row of a lane, of %zu bytes, makes no sense", row.length);
	return 0;
}
