/* The header that one agent sends to another: which service the request is for, and how many agents it has passed.
 *
 *     Cheops-Hop: v2 service=<percent-encoded> hops=<number> [gather=1]
 *
 * `gather=1` says that the answer will be put together with those of other sites (gather.c): replicas are to be told as such.
 * It counts only on a connection whose other end has proved to be an agent of this mesh (mutual TLS), and so holds for this
 * hop alone. A front ignores the header, and the port for peers takes no request of a user without it.
 */
#include "proxy/proxy_int.h"

void proxy_hop_put(struct proxy_exchange *exchange, struct buf *out)
{
	buf_put(out, STR("Cheops-Hop: v2 service="));
	percent_encode(out, exchange->service->name);
	buf_put(out, STR(" hops="));
	buf_put_number(out, exchange->hops + 1, 1);
	if (exchange->trial && exchange->trial->gather)
		buf_put(out, STR(" gather=1"));
	buf_put(out, STR("\r\n"));
}

/* The value of `name=` in the header; "" if it is not there. */
static struct str part_of(struct str value, const char *name)
{
	size_t length = strlen(name);
	for (size_t at = 0; at + length < value.length; at++) {
		if ((at > 0 && value.at[at - 1] != ' ') || memcmp(value.at + at, name, length) != 0)
			continue;
		size_t start = at + length, end = start;
		while (end < value.length && value.at[end] != ' ')
			end++;
		return str_make(value.at + start, end - start);
	}
	return STR("");
}

/* Parts of a later version that this one does not know are passed over. */
bool proxy_hop_read(struct arena *arena, struct str value, struct proxy_hop *hop)
{
	struct str hops = part_of(value, "hops=");
	*hop = (struct proxy_hop){0};
	if (value.length < 3 || memcmp(value.at, "v2 ", 3) != 0 || hops.length == 0 || hops.length > 3)
		return false;
	for (size_t i = 0; i < hops.length; i++) {
		if (hops.at[i] < '0' || hops.at[i] > '9')
			return false;
		hop->hops = hop->hops * 10 + (uint32_t)(hops.at[i] - '0');
	}
	hop->gather = str_equal(part_of(value, "gather="), STR("1"));
	return percent_decode(arena, part_of(value, "service="), &hop->service) && hop->service.length > 0;
}

static int refuse_header(struct proxy_exchange *exchange, bool given)
{
	struct proxy_problem problem = {.status = 400,
	                                .type = "bad-hop",
	                                .title = "The request does not say which service it is for",
	                                .error = "http_request_error",
	                                .close = true};
	proxy_problem(exchange, &problem,
	              "a request of another agent has a header `Cheops-Hop: v2 service=... hops=...`; %s",
	              given ? "this one cannot be read (is the other agent of a later version?)" : "this one has none");
	return -1;
}

static int find_service(struct proxy_exchange *exchange, struct str name)
{
	const struct proxy_config *config = exchange->state->config;
	for (uint32_t i = 0; i < config->services_count; i++) {
		if (str_equal(config->services[i].name, name)) {
			exchange->service = &config->services[i];
			return 0;
		}
	}
	struct proxy_problem problem = {.status = 503,
	                                .type = "no-instance",
	                                .title = "The service is not there",
	                                .error = "destination_not_found",
	                                .site = config->site};
	proxy_problem(exchange, &problem, "%.*s has no service %.*s", STR_FMT(config->site), STR_FMT(name));
	return -1;
}

int proxy_hop_check(struct proxy_exchange *exchange, struct http_head *head)
{
	struct http_field *field = http_find(head, HTTP_FIELD_CHEOPS_HOP);
	struct proxy_hop hop;
	if (!field || !proxy_hop_read(&exchange->arena, http_field_value(head, field), &hop))
		return refuse_header(exchange, field != NULL);
	exchange->hops = hop.hops;
	exchange->gathered = hop.gather;
	if (hop.gather && exchange->proxy->shared->engine)
		exchange->asked_at = engine_standing_now(exchange->proxy->shared->engine);
	field->dropped = true;
	proxy_count(&exchange->proxy->counters.from_peers, 1);
	if (exchange->hops > PROXY_HOPS_MOST) {
		proxy_count(&exchange->proxy->counters.loops, 1);
		struct proxy_problem problem = {.status = 508,
		                                .type = "loop",
		                                .title = "The request goes round in a loop",
		                                .error = "proxy_loop_detected",
		                                .site = exchange->state->config->site};
		proxy_problem(exchange, &problem, "the request has been passed on between sites %u times", exchange->hops);
		return -1;
	}
	return find_service(exchange, hop.service);
}
