/* What is divided: the division that a site has of it, its own part of a request, and who comes and goes. Follows src/engine/division.c, redivide.c and parts.c. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct str pointer = STR_INIT("/size");
static const struct cross_fields fields = {&pointer, 1};

/* ---- Divisions -------------------------------------------------------------------------------------------------------------- */

static struct str key_of(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}

/* engine_division_get() */
bool realm_division_get(struct realm_site *it, uint32_t thing, struct cross_division *division)
{
	const struct choir_row *row =
		choir_rows_get(&it->divisions, (enum replica_table)0, key_of(&it->realm->things[thing].id));
	return row && cross_division_parse(choir_row_value(row), division, NULL) == 0;
}

static void divide_evenly(const struct replica_view *view, struct cross_division *division)
{
	*division = (struct cross_division){0};
	for (int first = 1; first >= 0; first--)
		for (uint32_t i = 0; i < view->members_count; i++)
			if ((view->members[i].site == view->prime) == first && !view->members[i].leaving)
				cross_division_add(division, view->members[i].site, 1, NULL);
}

/* engine_division_now() */
bool realm_division_now(struct realm_site *it, const struct replica_view *view, struct cross_division *division)
{
	*division = (struct cross_division){0};
	if (!realm_division_get(it, realm_thing_of(it->realm, view->id), division))
		divide_evenly(view, division);
	for (uint32_t i = division->count; i-- > 0;) {
		const struct replica_member_view *member = realm_member(view, division->shares[i].site);
		if ((!member || member->leaving) && cross_division_withdraw(division, division->shares[i].site, NULL) != 0) {
			divide_evenly(view, division);
			break;
		}
	}
	return division->count > 0;
}

/* engine_division_ran() */
void realm_division_ran(struct realm_site *it, const struct realm_call *call)
{
	const struct realm_thing *thing = &it->realm->things[call->thing];
	enum realm_verb verb = call->request.verb;
	struct buf row = {0};
	if (thing->kind != REALM_POOL)
		return;
	if (call->has_request && verb == REALM_DELETE)
		choir_rows_remove(&it->divisions, (enum replica_table)0, key_of(&thing->id));
	if (!call->has_request || (verb != REALM_MAKE && verb != REALM_SET))
		return;
	cross_division_put(&call->request.division, &row);
	choir_rows_put(&it->divisions, (enum replica_table)0, key_of(&thing->id), buf_str(&row));
	buf_free(&row);
}

/* engine_parts_forget() */
void realm_forget_division(struct realm_site *it, uint32_t thing)
{
	struct cross_division division;
	if (realm_division_get(it, thing, &division))
		choir_rows_remove(&it->divisions, (enum replica_table)0, key_of(&it->realm->things[thing].id));
}

/* ---- Bodies ------------------------------------------------------------------------------------------------------------------ */

void realm_put_body(int64_t size, struct buf *out)
{
	buf_printf(out, "{\"id\": 7, \"size\" : %" PRId64 "}", size);
}

static bool read_body(struct str body, int64_t *size)
{
	char text[128] = "";
	long long number;
	snprintf(text, sizeof(text), "%.*s", STR_FMT(body));
	if (sscanf(text, "{\"id\": 7, \"size\" : %lld}", &number) != 1)
		return false;
	*size = number;
	return true;
}

/* engine_division_part() */
int realm_part(const struct realm_site *it, const struct realm_request *request, int64_t *part)
{
	struct cross_division division = request->division;
	struct buf body = {0}, out = {0};
	bool has_share = false;
	for (uint32_t i = 0; i < division.count; i++)
		has_share |= division.shares[i].site == it->id;
	int code = has_share ? 0 : cross_division_add(&division, it->id, 0, NULL);
	if (it->realm->options.mutation == REALM_UNFAIR && it->number == 1)
		division.shares[0].weight += 7;
	realm_put_body(request->size, &body);
	if (code == 0 && request->verb == REALM_ADD)
		code = cross_divide_change_body(buf_str(&body), &fields, &division, it->id, request->chance, &out, NULL);
	else if (code == 0)
		code = cross_divide_body(buf_str(&body), &fields, &division, it->id, &out, NULL);
	if (code == 0 && !read_body(buf_str(&out), part))
		code = ERR_INVALID;
	buf_free(&body);
	buf_free(&out);
	return code;
}

bool realm_combine(const struct realm_job *job, int64_t *whole)
{
	static const struct cross_rule rule = {STR_INIT("/size"), CROSS_TOGETHER};
	struct cross_part parts[REALM_SITES];
	struct buf bodies[REALM_SITES] = {0}, out = {0};
	struct cross_combined combined;
	for (uint32_t i = 0; i < job->asked_count; i++) {
		realm_put_body(job->replies[i].item.part, &bodies[i]);
		parts[i] = (struct cross_part){.site = STR_INIT("a site"), .body = buf_str(&bodies[i])};
	}
	int code = cross_combine(&rule, 1, parts, job->asked_count, &out, &combined, NULL);
	bool all = code == 0 && combined.whole == job->asked_count && read_body(buf_str(&out), whole);
	for (uint32_t i = 0; i < job->asked_count; i++)
		buf_free(&bodies[i]);
	buf_free(&out);
	return all;
}

/* ---- Are these parts of one whole? ------------------------------------------------------------------------------------------------ */

static site_id find_lost(struct realm_site *it, uint32_t thing, const struct replica_standing *standing)
{
	struct cross_division division;
	return realm_division_get(it, thing, &division)
	           ? cross_division_lost(&division, standing->members, standing->members_count)
	           : 0;
}

/* engine_standing_put(), src/engine/standing.c */
void realm_put_standing(struct realm_site *it, uint32_t thing, struct buf *out)
{
	struct replica_standing standing;
	struct cross_standing now = {0};
	if (replica_standing(it->replica, it->realm->things[thing].id, &standing) == 0) {
		now = (struct cross_standing){.settled = standing.quiet && standing.settled,
		                              .operations = standing.operations,
		                              .digest = standing.digest,
		                              .sites = cross_sites_digest(standing.members, standing.members_count),
		                              .lacks = standing.lacks,
		                              .lost = find_lost(it, thing, &standing)};
	}
	cross_standing_put(&now, out);
}

/* proxy/divide.c: what all sites say of their parts is compared; one that is missing, or went away with its part, is named. */
bool realm_is_whole(const struct realm *realm, const struct realm_job *job)
{
	struct cross_standing standings[REALM_SITES];
	enum cross_verdict verdicts[REALM_SITES];
	site_id asked[REALM_SITES];
	bool whole = true;
	for (uint32_t i = 0; i < job->asked_count; i++) {
		asked[i] = realm->sites[job->asked[i]].id;
		standings[i] = cross_standing_parse(str_of(job->replies[i].standing));
		whole &= job->replies[i].came && job->replies[i].here && standings[i].lost == 0;
	}
	uint64_t sites = cross_sites_digest(asked, job->asked_count);
	cross_standings_compare(standings, job->asked_count, &sites, verdicts);
	for (uint32_t i = 0; i < job->asked_count; i++)
		whole &= verdicts[i] == CROSS_FITS;
	return whole;
}

/* All sites have said what they have, and that is of the same settled operations. `who`: of whom it is not so. */
bool realm_parts_agree(const struct realm_job *job, uint32_t *who)
{
	const struct realm_reply *own = &job->replies[0];
	for (uint32_t i = 0; i < job->asked_count; i++) {
		const struct realm_reply *reply = &job->replies[i];
		*who = job->asked[i];
		if (!reply->came || !reply->here || !reply->settled || reply->trouble ||
		    reply->session_bytes != own->session_bytes || memcmp(reply->session, own->session, own->session_bytes) != 0)
			return false;
	}
	return true;
}

/* ---- Who comes ---------------------------------------------------------------------------------------------------------------- */

static bool has_share(const struct cross_division *division, site_id site)
{
	for (uint32_t i = 0; i < division->count; i++)
		if (division->shares[i].site == site)
			return true;
	return false;
}

/* engine_parts_follow(). True: it has to be looked at again. */
bool realm_follow_pool(struct realm *realm, struct realm_site *it, const struct replica_view *view, uint32_t thing)
{
	struct cross_division present, division;
	bool grows = false;
	if (view->prime != it->id || !realm_division_get(it, thing, &present) || !realm_division_now(it, view, &division))
		return false;
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct replica_member_view *member = &view->members[i];
		if (!member->leaving && !member->joining && !has_share(&present, member->site))
			grows |= cross_division_add(&division, member->site, cross_division_mean(&division), NULL) == 0;
	}
	if (!grows || it->redividing != REALM_NOBODY)
		return grows;
	struct realm_job *job = realm_job_new(realm, REALM_REDIVIDE, it->number, thing);
	it->redividing = job->number;
	job->division = division;
	realm_job_begin(realm, job);
	return true;
}
