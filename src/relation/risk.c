#include "relation/risk.h"

#include "base/bytes.h"
#include "base/check.h"

const char *relation_risk_name(enum relation_risk risk)
{
	static const char *const names[RELATION_RISKS] = {[RELATION_SAFE] = "safe",
	                                                  [RELATION_UNDECIDED] = "undecided",
	                                                  [RELATION_UNREACHABLE] = "unreachable",
	                                                  [RELATION_GONE] = "gone"};
	CHECK(risk < RELATION_RISKS);
	return names[risk];
}

/* One of them will do. */
static enum relation_risk reach_any(const struct relation_world *world, const site_id *sites, uint32_t count)
{
	bool unheard = false;
	for (uint32_t i = 0; i < count; i++) {
		enum relation_reach reach = world->reach(world->context, sites[i]);
		if (reach == RELATION_REACHED)
			return RELATION_SAFE;
		unheard |= reach == RELATION_UNHEARD;
	}
	return unheard ? RELATION_UNDECIDED : RELATION_UNREACHABLE;
}

/* Where the scope says from which sites it is taken, copies elsewhere do not help. */
enum relation_risk relation_fact_risk(const struct relation_fact *fact, const struct relation_world *world)
{
	struct relation_place place = {0};
	if (fact->kind != GLUE_RELIANCE)
		return RELATION_SAFE;
	world->find(world->context, fact, &place);
	if (place.gone)
		return RELATION_GONE;
	if (fact->sites_count > 0)
		return reach_any(world, fact->sites, fact->sites_count);
	if (place.here || place.sites_count == 0)
		return RELATION_SAFE;
	return reach_any(world, place.sites, place.sites_count);
}

static enum relation_risk risk_before(const struct relation_risks *before, const struct relation_fact *fact)
{
	for (uint32_t i = 0; before && i < before->record.count; i++) {
		const struct relation_fact *old = &before->record.facts[i];
		if (old->where == fact->where && str_equal(old->place, fact->place) &&
		    relation_target_equal(&old->to, &fact->to))
			return before->why[i];
	}
	return RELATION_SAFE;
}

void relation_risks_find(const struct relation_record *record, const struct relation_world *world,
                         const struct relation_risks *before, struct relation_risks *risks)
{
	risks->record.count = 0;
	risks->record.more = false;
	for (uint32_t i = 0; i < record->count; i++) {
		enum relation_risk risk = relation_fact_risk(&record->facts[i], world);
		if (risk == RELATION_UNDECIDED)
			risk = risk_before(before, &record->facts[i]);
		if (risk == RELATION_SAFE)
			continue;
		risks->why[risks->record.count] = (uint8_t)risk;
		risks->record.facts[risks->record.count++] = record->facts[i];
	}
}

/* The reasons, 1 byte each behind their number, then a record. */
void relation_risks_put(const struct relation_risks *risks, struct buf *out)
{
	put_number(out, risks->record.count, 1);
	buf_put(out, str_make((const char *)risks->why, risks->record.count));
	relation_record_put(&risks->record, out);
}

int relation_risks_parse(struct str row, struct relation_risks *risks, struct err *err)
{
	struct reader reader = reader_of(row);
	struct str why = read_bytes(&reader, read_8(&reader));
	int code = relation_record_parse(read_rest(&reader), &risks->record, err);
	bool sound = code == 0 && why.length == risks->record.count;
	for (size_t i = 0; sound && i < why.length; i++) {
		risks->why[i] = (uint8_t)why.at[i];
		sound = risks->why[i] == RELATION_UNREACHABLE || risks->why[i] == RELATION_GONE;
	}
	if (code != 0 || sound)
		return code;
	risks->record.count = 0;
	return err_set(err, ERR_CORRUPT, "a row of what a resource is at risk of makes no sense");
}
