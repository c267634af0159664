/* A row: version (1), flags (1: there were more), number of facts (2); each: where (1), kind (1), place (2 and bytes), managed (1), the
 * meta-id (16) or service, type, collection and id (2 and bytes each), number of sites (1), sites (8 each). */
#include "relation/record.h"

#include "base/bytes.h"

enum { RECORD_VERSION = 1, FLAG_MORE = 1 };

/* ---- What is in force -------------------------------------------------------------------------------------------- */

/* "/a" is below "/a" and "", not below "/ab"; "file:/a" is below "file:" and not below "". */
static bool is_below(struct str place, struct str above)
{
	bool of_facet = place.length > 0 && place.at[0] != '/', facet_meant = above.length > 0 && above.at[0] != '/';
	if (of_facet != facet_meant || place.length < above.length || memcmp(place.at, above.at, above.length) != 0)
		return false;
	return above.length == 0 || place.length == above.length || above.at[above.length - 1] == ':' ||
	       place.at[above.length] == '/';
}

void relation_record_clear(struct relation_record *record, enum relation_where where, struct str place)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < record->count; i++)
		if (record->facts[i].where != where || !is_below(record->facts[i].place, place))
			record->facts[kept++] = record->facts[i];
	record->count = kept;
	if (kept < LIMIT_RELATION_FACTS && place.length == 0)
		record->more = false;
}

void relation_record_set(struct relation_record *record, const struct relation_fact *fact)
{
	for (uint32_t i = 0; i < record->count; i++) {
		struct relation_fact *old = &record->facts[i];
		if (old->where == fact->where && str_equal(old->place, fact->place)) {
			*old = *fact;
			return;
		}
	}
	if (record->count < LIMIT_RELATION_FACTS)
		record->facts[record->count++] = *fact;
	else
		record->more = true;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static void text_put(struct buf *out, struct str text)
{
	put_number(out, text.length, 2);
	buf_put(out, text);
}

static struct str text_read(struct reader *reader)
{
	return read_bytes(reader, read_16(reader));
}

static void fact_put(struct buf *out, const struct relation_fact *fact)
{
	put_number(out, fact->where, 1);
	put_number(out, fact->kind, 1);
	text_put(out, fact->place);
	put_number(out, fact->to.managed, 1);
	if (fact->to.managed) {
		buf_put(out, str_make((const char *)fact->to.id.bytes, sizeof(fact->to.id.bytes)));
	} else {
		text_put(out, fact->to.service);
		text_put(out, fact->to.type);
		text_put(out, fact->to.collection);
		text_put(out, fact->to.name);
	}
	put_number(out, fact->sites_count, 1);
	for (uint32_t i = 0; i < fact->sites_count; i++)
		put_number(out, fact->sites[i], 8);
}

void relation_record_put(const struct relation_record *record, struct buf *out)
{
	put_number(out, RECORD_VERSION, 1);
	put_number(out, record->more ? FLAG_MORE : 0, 1);
	put_number(out, record->count, 2);
	for (uint32_t i = 0; i < record->count; i++)
		fact_put(out, &record->facts[i]);
}

static void target_read(struct reader *reader, struct relation_target *to)
{
	to->managed = read_8(reader) != 0;
	if (!to->managed) {
		to->service = text_read(reader);
		to->type = text_read(reader);
		to->collection = text_read(reader);
		to->name = text_read(reader);
		return;
	}
	struct str id = read_bytes(reader, sizeof(to->id.bytes));
	if (id.length == sizeof(to->id.bytes))
		memcpy(to->id.bytes, id.at, id.length);
}

static bool fact_read(struct reader *reader, struct relation_fact *fact)
{
	*fact = (struct relation_fact){0};
	uint8_t where = read_8(reader), kind = read_8(reader);
	fact->place = text_read(reader);
	target_read(reader, &fact->to);
	fact->sites_count = read_8(reader);
	if (reader->failed || where >= RELATION_WHERES || kind >= GLUE_KINDS || fact->sites_count > LIMIT_RELATION_SITES)
		return false;
	fact->where = (enum relation_where)where;
	fact->kind = (enum glue_kind)kind;
	for (uint32_t i = 0; i < fact->sites_count; i++)
		fact->sites[i] = read_64(reader);
	return !reader->failed;
}

int relation_record_parse(struct str row, struct relation_record *record, struct err *err)
{
	struct reader reader = reader_of(row);
	uint8_t version = read_8(&reader), flags = read_8(&reader);
	uint32_t count = read_16(&reader);
	bool good = !reader.failed && version == RECORD_VERSION && count <= LIMIT_RELATION_FACTS;
	record->count = 0;
	record->more = flags & FLAG_MORE;
	while (good && record->count < count) {
		good = fact_read(&reader, &record->facts[record->count]);
		record->count += good;
	}
	if (good && reader.left == 0)
		return 0;
	record->count = 0;
	return err_set(err, ERR_CORRUPT, "a row of what a resource refers to makes no sense");
}

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

bool relation_target_equal(const struct relation_target *a, const struct relation_target *b)
{
	if (a->managed || b->managed)
		return a->managed == b->managed && memcmp(a->id.bytes, b->id.bytes, sizeof(a->id.bytes)) == 0;
	return str_equal(a->service, b->service) && str_equal(a->type, b->type) &&
	       str_equal(a->collection, b->collection) && str_equal(a->name, b->name);
}

void relation_target_key(const struct relation_target *target, site_id site, struct buf *key)
{
	static const struct hash_key high = {0x72656c6174696f6e, 0x2074617267657473},
								 low = {0x6f66207768617420, 0x6973206e6f742061};
	if (target->managed) {
		buf_put_char(key, 'm');
		buf_put(key, str_make((const char *)target->id.bytes, sizeof(target->id.bytes)));
		return;
	}
	struct buf text = {0};
	put_number(&text, site, 8);
	text_put(&text, target->service);
	text_put(&text, target->type);
	text_put(&text, target->collection);
	text_put(&text, target->name);
	buf_put_char(key, 'l');
	put_number(key, hash_bytes(&high, buf_str(&text)), 8);
	put_number(key, hash_bytes(&low, buf_str(&text)), 8);
	buf_free(&text);
}

void relation_fact_key(const struct relation_fact *fact, site_id self, struct buf *key)
{
	relation_target_key(&fact->to, fact->sites_count > 0 ? fact->sites[0] : self, key);
}

/* The same thing at the same place. */
static bool is_same(const struct relation_fact *a, const struct relation_fact *b, site_id self)
{
	site_id at = a->sites_count > 0 ? a->sites[0] : self, other = b->sites_count > 0 ? b->sites[0] : self;
	return relation_target_equal(&a->to, &b->to) && (a->to.managed || at == other);
}

uint32_t relation_kinds_to(const struct relation_record *record, const struct relation_fact *fact, site_id self)
{
	uint32_t kinds = 0;
	for (uint32_t i = 0; i < record->count; i++)
		if (is_same(&record->facts[i], fact, self))
			kinds |= UINT32_C(1) << record->facts[i].kind;
	return kinds;
}

bool relation_relies(const struct relation_record *record)
{
	for (uint32_t i = 0; i < record->count; i++)
		if (record->facts[i].kind == GLUE_RELIANCE)
			return true;
	return false;
}
