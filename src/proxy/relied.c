/* Deleting what others rely on (DESIGN 9, docs/relations.md).
 *
 * Asked of a DELETE of an item at one site, or of an operation on a replica, of a type that something can rely on by the description: any
 * other request does not come this far. Who relies on it is known of replicants of this site (engine/relations.h). One that is sent on to
 * another site is asked there as well: each knows its own.
 *
 *   somebody does, and the type says `relied: refuse`    409, with a list of them, before anything runs
 *   somebody does                                        it is done; the answer, if it is 2xx, has a Warning that names them
 *
 * What is no replica, and went so, is gone for those who rely on it: they are at risk from then on. Only where its service makes the ids:
 * one that users choose may be there again.
 */
#include "proxy/proxy_int.h"

#include "engine/relations.h"

#include "base/text.h"

struct relying {
	struct proxy_exchange *exchange;
	struct replica_id self; /* it may rely on itself */
	bool has_self;
	struct buf named;
	struct buf list; /* the same as JSON */
	uint32_t count;
	uint32_t counted; /* of those that are not named */
};

static struct str copy(struct proxy_exchange *exchange, struct str text)
{
	return str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
}

/* In a quoted string of a header: what is no plain ASCII there is nobody's business. */
static void put_plain(struct buf *out, struct str text)
{
	text = utf8_truncate(text, LIMIT_NAME_SHOWN_BYTES);
	for (size_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		buf_put_char(out, c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c);
	}
}

static bool note(void *context, const struct engine_referrer *referrer)
{
	struct relying *relying = context;
	struct engine_about about;
	if (relying->has_self && memcmp(&referrer->from, &relying->self, sizeof(relying->self)) == 0)
		return true;
	if (!engine_about(relying->exchange->proxy->shared->engine, referrer->from, &about))
		return true; /* it is on its way out */
	relying->count++;
	if (relying->count > LIMIT_RELATION_NAMED)
		return ++relying->counted < LIMIT_RELATION_COUNTED;
	buf_put(&relying->named, relying->count > 1 ? STR(", ") : STR(""));
	put_plain(&relying->named, about.type);
	buf_put_char(&relying->named, ' ');
	replica_id_put(referrer->from, &relying->named);
	if (about.name.length > 0) {
		buf_put(&relying->named, STR(" ("));
		put_plain(&relying->named, about.name);
		buf_put_char(&relying->named, ')');
	}
	buf_put(&relying->list, relying->count > 1 ? STR(",{\"id\":\"") : STR("{\"id\":\""));
	replica_id_put(referrer->from, &relying->list);
	buf_put(&relying->list, STR("\",\"type\":"));
	buf_put_json(&relying->list, about.type);
	buf_put(&relying->list, STR(",\"name\":"));
	if (about.name.length > 0)
		buf_put_json(&relying->list, about.name);
	else
		buf_put(&relying->list, STR("null"));
	buf_put_char(&relying->list, '}');
	return true;
}

static void put_rest(struct relying *relying)
{
	if (relying->counted > 0)
		buf_printf(&relying->named, " and %s%u more", relying->counted == LIMIT_RELATION_COUNTED ? "at least " : "",
		           relying->counted);
	buf_put(&relying->named, relying->count == 1 ? STR(" relies on it") : STR(" rely on it"));
}

/* Where it runs. */
static site_id site_of(const struct proxy_exchange *exchange)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	return exchange->peer ? exchange->peer->id : sites->places[PROXY_HERE].id;
}

static void look(struct relying *relying)
{
	const struct proxy_resource *resource = relying->exchange->resource;
	struct engine *engine = relying->exchange->proxy->shared->engine;
	relying->has_self = resource->known;
	if (resource->known) {
		relying->self = resource->found.id;
		engine_referrers(engine, resource->found.id, 1U << GLUE_RELIANCE, note, relying);
	} else {
		engine_referrers_local(engine, &(struct engine_local){resource->name, site_of(relying->exchange)},
		                       1U << GLUE_RELIANCE, note, relying);
	}
	if (relying->count > 0)
		put_rest(relying);
}

static int refuse(struct relying *relying)
{
	struct proxy_exchange *exchange = relying->exchange;
	struct buf members = {0};
	buf_printf(&members, ",\"relied_on_by\":[%s],\"others\":%u", buf_c(&relying->list), relying->counted);
	struct proxy_problem problem = {.status = 409,
	                                .type = "relied-upon",
	                                .title = "Others rely on it",
	                                .error = "http_request_denied",
	                                .site = exchange->state->config->site,
	                                .members = buf_str(&members),
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem, "%s; delete them first, or let them refer to something else",
	              buf_c(&relying->named));
	buf_free(&members);
	return -1;
}

/* Where it will run is clear: at one site, or wherever its copies are. */
static bool is_clear(const struct proxy_exchange *exchange)
{
	return proxy_is_operation(exchange) || !exchange->trial;
}

int proxy_check_relied(struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	if (!resource || resource->effect != GLUE_DELETE || resource->name.id.length == 0 ||
	    !glue_type_may_be_relied(resource->match.type) || !resource->match.operation ||
	    glue_facet_number(resource->match.operation) != 0 || !is_clear(exchange))
		return 0;
	struct relying relying = {.exchange = exchange};
	look(&relying);
	int verdict = 0;
	if (relying.count > 0 && glue_type_relied(resource->match.type) == GLUE_RELIED_REFUSE)
		verdict = refuse(&relying);
	else if (relying.count > 0)
		exchange->relied = copy(exchange, buf_str(&relying.named));
	buf_free(&relying.named);
	buf_free(&relying.list);
	return verdict;
}

/* Another site said the same. */
static bool is_said(const struct http_head *head, struct str warning)
{
	for (uint32_t i = 0; head && i < head->fields_count; i++)
		if (str_equal_nocase(http_field_name(head, &head->fields[i]), STR("warning")) &&
		    str_equal(http_field_value(head, &head->fields[i]), warning))
			return true;
	return false;
}

void proxy_put_relied(struct proxy_exchange *exchange, unsigned status, const struct http_head *head, struct buf *out)
{
	const struct proxy_resource *resource = exchange->resource;
	struct buf warning = {0};
	if (exchange->relied.length == 0 || status < 200 || status > 299)
		return;
	buf_put(&warning, STR("299 - \""));
	buf_put(&warning, exchange->relied);
	buf_put_char(&warning, '"');
	if (!is_said(head, buf_str(&warning)))
		buf_printf(out, "Warning: %s\r\n", buf_c(&warning));
	buf_free(&warning);
	if (!resource->known && glue_type_identity(resource->match.type) != GLUE_CHOSEN)
		engine_relied_is_gone(exchange->proxy->shared->engine, &resource->name, site_of(exchange));
}
