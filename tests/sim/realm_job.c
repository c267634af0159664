/* What an agent does for a user that takes more than one step: requests that another site has to carry out, lists and reads of what lies at several sites, containers that are emptied,
 * sites that come and go. A job ends with its agent. Follows src/proxy/gather.c, src/engine/contents.c, redivide.c and parts.c. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ASK_US = 3 * REALM_SECOND_US, /* how long others are waited for */
	WAIT_US = 30 * REALM_SECOND_US,
	AGAIN_US = 200000,
	PASSES_MOST = 8,
	TRIES_MOST = 8,
};

/* Messages, as they are sent. */
struct errand {
	uint32_t job, round, kind, thing, verb, name;
};

struct verdict { /* as in realm_agent.c */
	uint32_t job, round, accepted;
	int code;
};

struct said {
	uint32_t job, round, by;
	struct realm_reply reply;
};

static void step(struct realm *realm, struct realm_job *job);

struct realm_job *realm_job_new(struct realm *realm, enum realm_job_kind kind, uint32_t site, uint32_t thing)
{
	if (realm->jobs_count == realm->jobs_capacity) {
		realm->jobs_capacity = realm->jobs_capacity ? 2 * realm->jobs_capacity : 64;
		realm->jobs = realloc(realm->jobs, realm->jobs_capacity * sizeof(*realm->jobs));
		CHECK(realm->jobs != NULL);
	}
	struct realm_job *job = calloc(1, sizeof(*job));
	CHECK(job != NULL);
	*job = (struct realm_job){.kind = kind,
	                          .number = realm->jobs_count,
	                          .site = site,
	                          .generation = realm->sites[site].generation,
	                          .thing = thing,
	                          .began_us = realm->sim.now_us,
	                          .until_us = realm->sim.now_us + WAIT_US,
	                          .other = REALM_NOBODY,
	                          .parent = REALM_NOBODY,
	                          .request = {.thing = thing}};
	realm->jobs[realm->jobs_count++] = job;
	return job;
}

static struct realm_site *site_of(struct realm *realm, const struct realm_job *job)
{
	return &realm->sites[job->site];
}

static bool is_over(struct realm *realm, struct realm_job *job)
{
	const struct realm_site *it = site_of(realm, job);
	if (!job->over && (!it->replica || it->generation != job->generation)) {
		job->over = true;
		free(job->replies);
		job->replies = NULL;
	}
	return job->over;
}

static void end(struct realm *realm, struct realm_job *job, bool accepted, const char *why)
{
	static const char *const names[] = {"a request",  "an emptying",  "a list",      "a read",
	                                    "a division", "an extension", "a withdrawal"};
	struct realm_site *it = site_of(realm, job);
	if (job->over)
		return;
	realm_tell(realm, "s%" PRIu32 ": %s of thing %" PRIu32 " is over: %s", job->site, names[job->kind], job->thing,
	           why);
	job->over = true;
	job->accepted = accepted;
	realm->figures.accepted += accepted;
	realm->figures.refused += !accepted;
	free(job->replies);
	job->replies = NULL;
	if (it->redividing == job->number) {
		it->redividing = REALM_NOBODY;
		it->stale = true;
	}
	if (accepted && job->kind == REALM_REDIVIDE)
		realm->figures.redivided++;
	if (job->parent != REALM_NOBODY)
		realm_job_told(realm, job->parent, realm->jobs[job->parent]->round, accepted, 0);
	if (job->final && !accepted)
		realm_violation(realm, "all is healed, and %s of thing %" PRIu32 " at s%" PRIu32 " fails: %s", names[job->kind],
		                job->thing, job->site, why);
}

static void wake_at(struct realm *realm, struct realm_job *job, uint64_t at_us)
{
	job->wake_us = at_us;
	realm_at(realm, at_us, REALM_ACT_JOB, job->number);
}

/* It may be so in a moment. */
static void again(struct realm *realm, struct realm_job *job, const char *why)
{
	if (realm->sim.now_us < job->until_us)
		wake_at(realm, job, realm->sim.now_us + AGAIN_US);
	else
		end(realm, job, false, why);
}

/* ---- One request, here or elsewhere ------------------------------------------------------------------------------------------ */

static void order(struct realm *realm, struct realm_job *job, const struct realm_request *request, uint32_t target)
{
	job->round++;
	job->waits = true;
	wake_at(realm, job, job->until_us > realm->sim.now_us ? job->until_us : realm->sim.now_us + WAIT_US);
	if (target == job->site) {
		struct realm_ticket ticket = {
			.job = job->number, .round = job->round, .request = *request, .holders = job->holders};
		realm_submit(realm, site_of(realm, job), &ticket);
	} else {
		struct errand errand = {job->number, job->round, job->kind, request->thing, request->verb, request->name};
		realm_send(realm, job->site, target, 'F', &errand, sizeof(errand));
	}
}

/* Where what concerns a child is carried out (proxy/span.c): here, if this site holds it, else at its prime, which alone renames it. */
static uint32_t target_of(struct realm *realm, struct realm_site *it, const struct realm_request *request)
{
	struct arena arena;
	struct replica_view view;
	uint32_t target = REALM_NOBODY;
	arena_init(&arena, 0);
	if (request->verb == REALM_MAKE) {
		target = it->number;
	} else if (realm_look(it, &arena, request->thing, &view)) {
		const struct replica_member_view *own = realm_member(&view, it->id);
		bool here = own && !own->witness && !(request->verb == REALM_RENAME && view.prime != it->id);
		target = here ? it->number : realm_site_of(realm, view.prime);
	}
	arena_free(&arena);
	return target;
}

/* engine_contents_ready(): what is not empty is not deleted. */
static bool may_delete(struct realm *realm, struct realm_job *job)
{
	uint32_t children[REALM_THINGS];
	return realm->things[job->thing].kind != REALM_CONTAINER || job->request.verb != REALM_DELETE ||
	       realm_children_of(site_of(realm, job), job->thing, children) == 0;
}

static void step_do(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	const struct realm_thing *thing = &realm->things[job->thing];
	uint32_t target = target_of(realm, it, &job->request);
	bool inside = thing->kind != REALM_CHILD || job->request.verb != REALM_MAKE;
	if (!inside) {
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		const struct replica_member_view *own =
			realm_look(it, &arena, thing->container, &view) ? realm_member(&view, it->id) : NULL;
		inside = own && own->local_id.length > 0 && !replica_is_leaving(it->replica, view.id);
		for (uint32_t i = 0; inside && i < view.members_count; i++) /* find_leaving() */
			inside = !view.members[i].leaving || !(job->holders >> realm_site_of(realm, view.members[i].site) & 1);
		arena_free(&arena);
	}
	if (target == REALM_NOBODY || !inside)
		end(realm, job, false, "it is not known there");
	else if (!may_delete(realm, job))
		end(realm, job, false, "it is not empty");
	else
		order(realm, job, &job->request, target);
}

/* ---- Containers with what is in them ------------------------------------------------------------------------------------------- */

static bool is_anywhere(const struct realm *realm, uint32_t thing)
{
	for (uint32_t i = 0; i < realm->options.sites; i++)
		if (realm->items[i][thing].there)
			return true;
	return false;
}

static void step_empty(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	uint32_t children[REALM_THINGS];
	if (job->stage == 1) { /* one that several hold is waited for */
		if (is_anywhere(realm, job->other)) {
			again(realm, job, "a site has not deleted a child yet");
			return;
		}
		job->stage = 0;
	}
	uint32_t count = realm_children_of(it, job->thing, children);
	struct realm_request request = {.verb = REALM_DELETE, .thing = count > 0 ? children[0] : job->thing};
	if (count > 0 && job->tries++ > PASSES_MOST * 8) {
		end(realm, job, false, "there is ever more in it");
		return;
	}
	uint32_t target = target_of(realm, it, &request);
	if (target == REALM_NOBODY) {
		end(realm, job, false, "it is not known there");
		return;
	}
	job->other = request.thing;
	order(realm, job, &request, target);
}

static void told_empty(struct realm *realm, struct realm_job *job, bool accepted, int code)
{
	bool last = job->other == job->thing;
	if (last || (!accepted && code != ERR_NOT_FOUND)) {
		end(realm, job, last && accepted, accepted ? "deleted" : "something could not be deleted");
		return;
	}
	job->stage = 1;
	again(realm, job, "");
}

/* ---- Asking all sites ------------------------------------------------------------------------------------------------------------ */

static void reply_pool(struct realm *realm, struct realm_site *it, uint32_t thing, struct realm_reply *reply)
{
	struct arena arena;
	struct replica_view view;
	struct buf session = {0};
	arena_init(&arena, 0);
	const struct replica_member_view *own = realm_look(it, &arena, thing, &view) ? realm_member(&view, it->id) : NULL;
	if (own) {
		memcpy(&reply->item, &realm->items[it->number][thing], sizeof(reply->item));
		reply->here = reply->item.there && own->local_id.length > 0;
		reply->settled = own->settled && own->pending == 0 && !view.busy && !own->joining;
		reply->trouble = own->rejected > 0 || own->in_doubt > 0;
		replica_session_put(it->replica, view.id, &session);
		CHECK(session.length <= sizeof(reply->session));
		memcpy(reply->session, session.at, session.length);
		reply->session_bytes = session.length;
		buf_clear(&session);
		realm_put_standing(it, thing, &session);
		snprintf(reply->standing, sizeof(reply->standing), "%s", buf_c(&session));
	}
	buf_free(&session);
	arena_free(&arena);
}

/* Does the agent know which replicant an item of its service is? */
static bool knows_item(const struct realm_site *it, uint32_t thing)
{
	const struct realm_item *item = &it->realm->items[it->number][thing];
	struct replica_local local = {
		.service = STR("sample"), .type = STR("sample.server"), .collection = STR(""), .id = str_of(item->local_id)};
	struct replica_id id;
	struct buf key = {0};
	replica_local_key(&local, &key);
	const struct choir_row *row = choir_rows_get(&it->rows, REPLICA_LOCALS, buf_str(&key));
	buf_free(&key);
	return row && replica_local_parse(choir_row_value(row), &id) == 0 && realm_thing_of(it->realm, id) == thing;
}

/* Is its service about to make it, or to delete it, at this moment? */
static bool is_moving(struct realm_site *it, uint32_t thing)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool known = replica_look(it->replica, &arena, it->realm->things[thing].id, &view) == 0;
	const struct replica_member_view *own = known && !view.left ? realm_member(&view, it->id) : NULL;
	bool making = own && own->local_id.length == 0 && (view.busy || own->pending > 0 || own->in_doubt > 0);
	making |= known && view.left && view.busy;
	arena_free(&arena);
	return making;
}

static void reply_list(struct realm *realm, struct realm_site *it, uint32_t container, struct realm_reply *reply)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	const struct replica_member_view *own =
		realm_look(it, &arena, container, &view) ? realm_member(&view, it->id) : NULL;
	reply->here = own && own->local_id.length > 0 && realm->items[it->number][container].there;
	arena_free(&arena);
	for (uint32_t i = 0; i < realm->things_count && reply->here; i++) {
		if (realm->things[i].kind != REALM_CHILD || realm->things[i].container != container ||
		    !realm->items[it->number][i].there)
			continue;
		reply->children[reply->count].thing = (uint16_t)i;
		reply->children[reply->count].moving = is_moving(it, i);
		reply->children[reply->count++].known = knows_item(it, i);
	}
}

static void make_reply(struct realm *realm, struct realm_site *it, enum realm_job_kind kind, uint32_t thing,
                       struct realm_reply *reply)
{
	memset(reply, 0, sizeof(*reply)); /* all of it is sent */
	reply->came = true;
	if (kind == REALM_LIST)
		reply_list(realm, it, thing, reply);
	else
		reply_pool(realm, it, thing, reply);
}

static void gathered(struct realm *realm, struct realm_job *job);

static bool has_all(const struct realm_job *job)
{
	for (uint32_t i = 0; i < job->asked_count; i++)
		if (!job->replies[i].came)
			return false;
	return true;
}

/* engine_members() */
static uint32_t members_of(const struct realm_site *it, uint32_t thing, site_id members[LIMIT_REPLICA_MEMBERS])
{
	const struct replica_id *id = &it->realm->things[thing].id;
	const struct choir_row *row =
		choir_rows_get(&it->rows, REPLICA_REPLICANTS, str_make((const char *)id->bytes, sizeof(id->bytes)));
	return row ? replica_members_parse(choir_row_value(row), it->id, members) : 0;
}

/* This site, and all members that it knows of. */
static void gather(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	site_id members[LIMIT_REPLICA_MEMBERS];
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool known = realm_look(it, &arena, job->thing, &view) && realm_member(&view, it->id);
	bool here = known && realm_member(&view, it->id)->local_id.length > 0;
	job->asked_count = 0;
	job->asked[job->asked_count++] = job->site;
	uint32_t count = known ? members_of(it, job->thing, members) : 0;
	for (uint32_t i = 0; i < count; i++)
		if (members[i] != it->id)
			job->asked[job->asked_count++] = realm_site_of(realm, members[i]);
	arena_free(&arena);
	if (!here) {
		end(realm, job, false, "it is not here");
		return;
	}
	if (!job->replies)
		job->replies = calloc(REALM_SITES, sizeof(*job->replies));
	CHECK(job->replies != NULL);
	memset(job->replies, 0, REALM_SITES * sizeof(*job->replies));
	job->asking = true;
	job->round++;
	make_reply(realm, it, job->kind, job->thing, &job->replies[0]);
	for (uint32_t i = 1; i < job->asked_count; i++) {
		struct errand errand = {job->number, job->round, job->kind, job->thing, 0, 0};
		realm_send(realm, job->site, job->asked[i], 'G', &errand, sizeof(errand));
	}
	wake_at(realm, job, realm->sim.now_us + ASK_US);
	if (has_all(job))
		gathered(realm, job);
}

/* ---- What is divided --------------------------------------------------------------------------------------------------------------- */

/* engine_is_as_read() */
static bool is_as_read(struct realm *realm, const struct realm_job *job)
{
	struct realm_reply now;
	make_reply(realm, site_of(realm, job), job->kind, job->thing, &now);
	return now.here && now.settled && now.session_bytes == job->replies[0].session_bytes &&
	       memcmp(now.session, job->replies[0].session, now.session_bytes) == 0;
}

static bool is_joining(struct realm *realm, const struct realm_job *job)
{
	struct arena arena;
	struct replica_view view;
	bool joining = false;
	arena_init(&arena, 0);
	if (realm_look(site_of(realm, job), &arena, job->thing, &view))
		for (uint32_t i = 0; i < view.members_count; i++)
			joining |= view.members[i].joining;
	arena_free(&arena);
	return joining;
}

/* engine_division_read(), and what it fills in */
static void redivide(struct realm *realm, struct realm_job *job)
{
	uint32_t who;
	int64_t whole;
	if (!realm_parts_agree(job, &who) || is_joining(realm, job)) {
		end(realm, job, false, "not all parts can be read");
		return;
	}
	if (!is_as_read(realm, job) || !realm_combine(job, &whole)) {
		end(realm, job, false, "it is being changed");
		return;
	}
	job->request.verb = REALM_SET;
	job->request.size = job->request.total = whole;
	job->request.division = job->division;
	order(realm, job, &job->request, job->site);
}

/* engine_parts_ask(), take_share() */
static void take_share(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	site_id site = realm->sites[job->other].id;
	struct cross_division division = {0};
	struct arena arena;
	struct replica_view view;
	uint32_t weights = 0, share = UINT32_MAX;
	arena_init(&arena, 0);
	bool known = realm_look(it, &arena, job->thing, &view) && realm_division_now(it, &view, &division);
	arena_free(&arena);
	if (known)
		cross_division_add(&division, site, 0, NULL); /* it may be there */
	for (uint32_t i = 0; i < division.count; i++) {
		if (division.shares[i].site == site)
			division.shares[share = i].weight = 0;
		weights += division.shares[i].weight > 0;
	}
	if (share == UINT32_MAX || weights == 0 || ++job->tries > TRIES_MOST) {
		end(realm, job, false, "no other site has a share, or it gets something again and again");
		return;
	}
	struct realm_job *part = realm_job_new(realm, REALM_REDIVIDE, job->site, job->thing);
	part->parent = job->number;
	part->division = division;
	job->waits = true;
	job->wake_us = UINT64_MAX;
	realm_job_begin(realm, part);
}

static bool has_share(struct realm *realm, const struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	struct cross_division division = {0};
	struct arena arena;
	struct replica_view view;
	bool has = true; /* whoever is not in the division may be about to get one */
	arena_init(&arena, 0);
	if (realm_look(it, &arena, job->thing, &view) && realm_division_now(it, &view, &division))
		for (uint32_t i = 0; i < division.count; i++)
			has &= division.shares[i].site != realm->sites[job->other].id || division.shares[i].weight > 0;
	arena_free(&arena);
	return has;
}

static void drop(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	struct replica_drop drop = {.site = realm->sites[job->other].id};
	int code = replica_drop(it->replica, realm->things[job->thing].id, &drop, realm_now(realm, it), NULL);
	realm->figures.withdrawn += code == 0;
	end(realm, job, code == 0, code ? "it cannot be dropped" : "it is leaving");
	realm_leave(it);
}

static void withdraw(struct realm *realm, struct realm_job *job)
{
	uint32_t who;
	int64_t part = 0;
	for (uint32_t i = 0; i < job->asked_count; i++) {
		if (job->replies[i].trouble || !job->replies[i].came) {
			end(realm, job, false, "a site does not answer, or has trouble");
			return;
		}
		if (job->asked[i] == job->other)
			part = job->replies[i].item.part;
	}
	if (!realm_parts_agree(job, &who) || is_joining(realm, job) || !is_as_read(realm, job))
		again(realm, job, "it is being changed");
	else if (part != 0 || has_share(realm, job))
		take_share(realm, job);
	else
		drop(realm, job);
}

static void extend(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	struct realm_ticket ticket = {
		.job = job->number, .round = ++job->round, .request = {.verb = REALM_STATE, .thing = job->thing}};
	struct replica_extension extension = {.site = realm->sites[job->other].id,
	                                      .ticket = realm_ticket_add(realm, it, &ticket)};
	int code = replica_extend(it->replica, realm->things[job->thing].id, &extension, realm_now(realm, it), NULL);
	if (code == 0) {
		job->waits = true;
		wake_at(realm, job, realm->sim.now_us + WAIT_US);
		realm_leave(it);
	} else {
		end(realm, job, false, "it cannot be extended");
	}
}

static void gathered(struct realm *realm, struct realm_job *job)
{
	bool all = has_all(job), whole;
	job->asking = false;
	switch (job->kind) {
	case REALM_LIST:
		realm_check_list(realm, job);
		end(realm, job, true, all ? "whole" : "partial");
		break;
	case REALM_READ:
		whole = realm_is_whole(realm, job) || (realm->options.mutation == REALM_CREDULOUS && all);
		realm->figures.reads++;
		realm->figures.marked += !whole;
		if (whole)
			realm_check_read(realm, job);
		end(realm, job, whole || !job->final, whole ? "whole" : "marked");
		break;
	case REALM_REDIVIDE: redivide(realm, job); break;
	case REALM_WITHDRAW: withdraw(realm, job); break;
	case REALM_EXTEND:
		for (uint32_t i = 0; i < job->asked_count; i++)
			all &= !job->replies[i].trouble;
		if (all)
			extend(realm, job);
		else
			end(realm, job, false, "not all parts can be read");
		break;
	case REALM_DO:
	case REALM_EMPTY:
	case REALM_JOB_KINDS: break;
	}
}

/* ---- Sites of containers ------------------------------------------------------------------------------------------------------------- */

static void step_sites(struct realm *realm, struct realm_job *job)
{
	struct realm_site *it = site_of(realm, job);
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool known = realm_look(it, &arena, job->thing, &view);
	const struct replica_member_view *member = known ? realm_member(&view, realm->sites[job->other].id) : NULL;
	bool adds = job->kind == REALM_EXTEND;
	bool fits = known && (member != NULL) != adds && !(member && member->leaving);
	bool refused = fits && !adds && view.span == REPLICA_CONTAINER && realm_holds(it, job->thing, job->other);
	arena_free(&arena);
	if (!fits || refused)
		end(realm, job, false, "that cannot be");
	else if (realm->things[job->thing].kind == REALM_POOL)
		gather(realm, job);
	else if (adds)
		extend(realm, job);
	else
		drop(realm, job);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------------------------ */

static void step(struct realm *realm, struct realm_job *job)
{
	switch (job->kind) {
	case REALM_DO: step_do(realm, job); break;
	case REALM_EMPTY: step_empty(realm, job); break;
	case REALM_LIST:
	case REALM_READ:
	case REALM_REDIVIDE: gather(realm, job); break;
	case REALM_EXTEND:
	case REALM_WITHDRAW: step_sites(realm, job); break;
	case REALM_JOB_KINDS: break;
	}
}

void realm_job_begin(struct realm *realm, struct realm_job *job)
{
	if (!is_over(realm, job))
		step(realm, job);
}

void realm_act_job(struct realm *realm, uint32_t number)
{
	struct realm_job *job = realm->jobs[number];
	if (is_over(realm, job) || realm->sim.now_us < job->wake_us)
		return;
	if (job->asking)
		gathered(realm, job);
	else if (job->waits)
		end(realm, job, false, "no answer");
	else
		step(realm, job);
}

void realm_job_told(struct realm *realm, uint32_t number, uint32_t round, bool accepted, int code)
{
	struct realm_job *job = realm->jobs[number];
	if (is_over(realm, job) || !job->waits || job->round != round)
		return;
	job->waits = false;
	if (job->kind == REALM_EMPTY) {
		told_empty(realm, job, accepted, code);
	} else if (job->kind == REALM_WITHDRAW) {
		again(realm, job, "it is being changed");
	} else {
		realm->figures.extended += job->kind == REALM_EXTEND && accepted;
		end(realm, job, accepted, accepted ? "accepted" : "refused");
	}
}

void realm_job_message(struct realm *realm, struct realm_site *it, uint32_t from, char kind, struct str bytes)
{
	struct errand errand;
	struct verdict verdict;
	struct said *said;
	switch (kind) {
	case 'F':
		memcpy(&errand, bytes.at, sizeof(errand));
		if (realm->jobs[errand.job]->round != errand.round || realm->jobs[errand.job]->arrived == errand.round)
			break; /* nobody waits, or it came twice, which a connection prevents */
		realm->jobs[errand.job]->arrived = errand.round;
		realm_submit(
			realm, it,
			&(struct realm_ticket){
				.job = errand.job,
				.round = errand.round,
				.forwarded = true,
				.request = {.verb = (enum realm_verb)errand.verb, .thing = errand.thing, .name = errand.name}});
		break;
	case 'f':
		memcpy(&verdict, bytes.at, sizeof(verdict));
		realm_job_told(realm, verdict.job, verdict.round, verdict.accepted != 0, verdict.code);
		break;
	case 'G':
		memcpy(&errand, bytes.at, sizeof(errand));
		said = calloc(1, sizeof(*said));
		CHECK(said != NULL);
		said->job = errand.job;
		said->round = errand.round;
		said->by = it->number;
		make_reply(realm, it, (enum realm_job_kind)errand.kind, errand.thing, &said->reply);
		realm_send(realm, it->number, from, 'g', said, sizeof(*said));
		free(said);
		break;
	case 'g':
		said = malloc(sizeof(*said));
		CHECK(said != NULL);
		memcpy(said, bytes.at, sizeof(*said));
		struct realm_job *job = realm->jobs[said->job];
		if (!is_over(realm, job) && job->asking && job->round == said->round) {
			for (uint32_t i = 1; i < job->asked_count; i++)
				if (job->asked[i] == said->by)
					job->replies[i] = said->reply;
			if (has_all(job))
				gathered(realm, job);
		}
		free(said);
		break;
	default: break;
	}
	realm_leave(it);
}

bool realm_jobs_idle(const struct realm *realm)
{
	for (uint32_t i = 0; i < realm->jobs_count; i++) {
		const struct realm_job *job = realm->jobs[i];
		const struct realm_site *it = &realm->sites[job->site];
		if (!job->over && it->replica && it->generation == job->generation)
			return false;
	}
	return true;
}

void realm_jobs_free(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->jobs_count; i++) {
		free(realm->jobs[i]->replies);
		free(realm->jobs[i]);
	}
	free(realm->jobs);
}
