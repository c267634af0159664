/* Reads at several sites that no scope names: what is asked for is known here to lie at others as well (DESIGN 8). It is put together as a
 * read with `&` is (gather.c), with two differences.
 *
 *   The user has named no other site. So ids that he uses are those of this site, or meta-ids; to the others meta-ids are said.
 *
 *   What worked while it was all at one site goes on working. A list that cannot be put together, since its query asks for a page or an order, is
 *   this site's own, and says which sites are not in it:
 *
 *       Cheops-Partial: "Site2";reason=pages;details="`limit` asks for a page of one site's list"
 */
#include "proxy/gather.h"

#include "base/check.h"

/* ---- Alone --------------------------------------------------------------------------------------------------------- */

struct alone {
	const char *reason; /* NULL: nothing speaks against it */
	struct buf details;
};

static void look_at_query(const struct proxy_exchange *exchange, struct alone *alone)
{
	const struct proxy_resource *resource = exchange->resource;
	struct glue_list_about about;
	struct str member;
	if (!resource || !resource->match.operation)
		return;
	if (glue_operation_streams(resource->match.operation)) {
		alone->reason = "stream";
		buf_put(&alone->details, STR("the answer is without an end"));
		return;
	}
	if (!glue_operation_list(resource->match.operation, &about))
		return;
	enum glue_list_query asks = glue_list_query(resource->match.operation, resource->asked.query, &member);
	if (asks == GLUE_QUERY_FREE)
		return;
	alone->reason = asks == GLUE_QUERY_PAGES ? "pages" : "order";
	buf_printf(&alone->details, "`%.*s` asks for %s of one site's list", STR_FMT(member),
	           asks == GLUE_QUERY_PAGES ? "a page" : "an order");
}

/* Why it can only be answered by one site. */
static void look_at_request(const struct proxy_exchange *exchange, const struct http_head *head, struct alone *alone)
{
	if (head->upgrade) {
		alone->reason = "upgrade";
		buf_put(&alone->details, STR("a change of the protocol is for one site"));
	} else if (exchange->has_body) {
		alone->reason = "body";
		buf_put(&alone->details, STR("a request with a body is sent to one site"));
	} else {
		look_at_query(exchange, alone);
	}
}

/* ---- Sites --------------------------------------------------------------------------------------------------------- */

static struct str copy(struct proxy_exchange *exchange, struct str text)
{
	return str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
}

/* The table of sites may go before the request does. One that is not in it has no name here. */
static struct str name_of(struct proxy_exchange *exchange, uint32_t place, site_id site)
{
	struct buf name = {0};
	if (place == SCOPE_NO_INDEX)
		buf_printf(&name, "%016llx", (unsigned long long)site);
	else
		buf_put(&name, exchange->proxy->mesh->sites->places[place].name);
	struct str kept = copy(exchange, buf_str(&name));
	buf_free(&name);
	return kept;
}

/* Removed ones are left out, and so is what comes up twice. */
static uint32_t make_candidates(struct proxy_exchange *exchange, const site_id *sites, uint32_t count,
                                struct proxy_candidate *candidates)
{
	const struct site_snapshot *known = exchange->proxy->mesh->sites;
	uint32_t made = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = site_snapshot_find(known, sites[i]);
		bool seen = site_snapshot_is_removed(known, sites[i]);
		for (uint32_t k = 0; k < made && !seen; k++)
			seen = candidates[k].id == sites[i];
		if (seen)
			continue;
		candidates[made++] =
			(struct proxy_candidate){.place = place, .id = sites[i], .name = name_of(exchange, place, sites[i])};
	}
	return made;
}

void proxy_gather_leave_out(struct proxy_exchange *exchange, const struct proxy_candidate *candidates, uint32_t count,
                            const char *reason, struct str details)
{
	struct buf text = {0};
	for (uint32_t i = 0; i < count; i++) {
		if (candidates[i].place == PROXY_HERE)
			continue;
		buf_put(&text, text.length ? STR(", ") : STR(""));
		proxy_put_quoted(&text, candidates[i].name);
		buf_printf(&text, ";reason=%s", reason);
		if (details.length > 0) {
			buf_put(&text, STR(";details="));
			proxy_put_quoted(&text, details);
		}
	}
	exchange->partial = copy(exchange, buf_str(&text));
	buf_free(&text);
}

static bool has_others(const struct proxy_candidate *candidates, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (candidates[i].place != PROXY_HERE)
			return true;
	return false;
}

static bool is_list(const struct proxy_exchange *exchange)
{
	struct glue_list_about about;
	const struct proxy_resource *resource = exchange->resource;
	return resource && resource->match.operation && glue_operation_list(resource->match.operation, &about);
}

void proxy_gather_sites(struct proxy_exchange *exchange, const struct http_head *head, const site_id *sites,
                        uint32_t count)
{
	const struct scope_step nowhere = {.op = SCOPE_ALL_OF};
	struct alone alone = {0};
	struct proxy_candidate *candidates = arena_array(&exchange->arena, struct proxy_candidate, count);
	count = make_candidates(exchange, sites, count, candidates);
	if (!has_others(candidates, count))
		return;
	uint32_t asked = count < LIMIT_GATHER_SITES ? count : LIMIT_GATHER_SITES;
	look_at_request(exchange, head, &alone);
	if (alone.reason) {
		/* A header has an end: the first ones stand for all. */
		proxy_gather_leave_out(exchange, candidates, asked, alone.reason, buf_str(&alone.details));
	} else {
		uint32_t more = count - asked < LIMIT_GATHER_SITES ? count - asked : LIMIT_GATHER_SITES;
		proxy_gather_leave_out(exchange, candidates + asked, more, "too-many-sites", STR(""));
		proxy_trial_new(exchange, &(struct scope_plan){.service = exchange->service->name, .root = &nowhere});
		exchange->trial->schedule.candidates = candidates;
		exchange->trial->schedule.count = asked;
		struct proxy_gather *gather = proxy_gather_of_trial(exchange);
		gather->given = true;
		gather->lists = is_list(exchange);
	}
	buf_free(&alone.details);
}
