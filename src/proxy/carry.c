/* Letting the scope follow the calls that a service makes on behalf of a request (DESIGN 6).
 *
 * Nothing of the application is touched: the scope is put into something that the service passes on by itself. Which one is
 * said in the configuration of the service; several may be given, and all are used.
 *
 * For a service that forwards nothing, its calls cannot be told from other requests. While a scoped request to such a
 * service is under way, requests without a scope to the services that the scope names are counted: they run locally, and
 * may be meant for elsewhere.
 */
#include "proxy/proxy_int.h"

static void put_field(struct buf *out, struct str name, struct str value)
{
	buf_put(out, name);
	buf_put(out, STR(": "));
	buf_put(out, value);
	buf_put(out, STR("\r\n"));
}

static void put_hex(struct buf *out, uint64_t number, int digits)
{
	for (int i = digits - 1; i >= 0; i--)
		buf_put_char(out, "0123456789abcdef"[number >> (4 * i) & 15]);
}

/* A UUID of version 4. */
static void put_uuid(struct buf *out, struct proxy *proxy)
{
	uint64_t high = proxy_random(proxy), low = proxy_random(proxy);
	put_hex(out, high >> 32, 8);
	buf_put_char(out, '-');
	put_hex(out, high >> 16 & 0xffff, 4);
	buf_put(out, STR("-4"));
	put_hex(out, high & 0xfff, 3);
	buf_put_char(out, '-');
	put_hex(out, 0x8000 | (low >> 48 & 0x3fff), 4);
	buf_put_char(out, '-');
	put_hex(out, low & 0xffffffffffff, 12);
}

static void remember(struct proxy_exchange *exchange, struct str id)
{
	struct proxy *proxy = exchange->proxy;
	proxy_memory_put(proxy->shared->memory, id, exchange->service->name, exchange->scope,
	                 http_loop_now_ms(proxy->loop));
}

/* The trace that the request belongs to; a new one where it has none. */
static void carry_trace(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	struct http_field *field = http_find(head, HTTP_FIELD_TRACEPARENT);
	struct str id = field ? proxy_trace_id(http_field_value(head, field)) : STR("");
	if (id.length) {
		remember(exchange, id);
		return;
	}
	if (field)
		field->dropped = true;
	struct buf made = {0};
	buf_put(&made, STR("00-"));
	put_hex(&made, proxy_random(exchange->proxy), 16);
	put_hex(&made, proxy_random(exchange->proxy), 16);
	buf_put_char(&made, '-');
	put_hex(&made, proxy_random(exchange->proxy) | 1, 16);
	buf_put(&made, STR("-01"));
	put_field(out, STR("traceparent"), buf_str(&made));
	remember(exchange, proxy_trace_id(buf_str(&made)));
	buf_free(&made);
}

static void carry_request_id(struct proxy_exchange *exchange, const struct proxy_carry *carry, struct http_head *head,
                             struct buf *out)
{
	struct http_field *field = http_find_named(head, carry->header);
	if (field && field->value_length) {
		remember(exchange, http_field_value(head, field));
		return;
	}
	struct buf made = {0};
	buf_put(&made, carry->prefix);
	put_uuid(&made, exchange->proxy);
	put_field(out, carry->header, buf_str(&made));
	remember(exchange, buf_str(&made));
	buf_free(&made);
}

/* Who calls is told as well: a call on behalf of a request is not the same as a request (docs/ownership.md). */
static void carry_header(struct proxy_exchange *exchange, struct buf *out)
{
	put_field(out, STR("Scope"), exchange->scope);
	buf_put(out, STR("Cheops-Caller: "));
	percent_encode(out, exchange->service->name);
	buf_put(out, STR("\r\n"));
}

static void carry_baggage(struct proxy_exchange *exchange, struct buf *out)
{
	buf_put(out, STR("baggage: "));
	buf_put(out, exchange->baggage);
	buf_put(out, exchange->baggage.length ? STR(",cheops.scope=") : STR("cheops.scope="));
	percent_encode(out, exchange->scope);
	buf_put(out, STR(";caller="));
	percent_encode(out, exchange->service->name);
	buf_put(out, STR("\r\n"));
	exchange->baggage = STR("");
}

/* The value gets longer than it is in the buffer, so the field is written anew. */
static void carry_appended(struct proxy_exchange *exchange, const struct proxy_carry *carry, struct http_head *head,
                           struct buf *out)
{
	struct http_field *field = http_find_named(head, carry->header);
	if (!field)
		return;
	buf_put(out, http_field_name(head, field));
	buf_put(out, STR(": "));
	buf_put(out, http_field_value(head, field));
	buf_put(out, STR("!SCOPE!"));
	buf_put(out, exchange->scope);
	buf_put(out, STR("\r\n"));
	field->dropped = true;
}

void proxy_carry_scope(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	const struct proxy_service *service = exchange->service;
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		switch (carry->kind) {
		case PROXY_CARRY_HEADER: carry_header(exchange, out); break;
		case PROXY_CARRY_BAGGAGE: carry_baggage(exchange, out); break;
		case PROXY_CARRY_TRACEPARENT: carry_trace(exchange, head, out); break;
		case PROXY_CARRY_REQUEST_ID: carry_request_id(exchange, carry, head, out); break;
		case PROXY_CARRY_APPEND: carry_appended(exchange, carry, head, out); break;
		}
	}
}

/* ---- What cannot be followed ------------------------------------------------------------------------------------ */

/* Is there anything in the request that will tell the calls of the service from others? The header that the scope is
 * appended to may be missing, and an id may be too long to be remembered. */
static bool is_carried(const struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_service *service = exchange->service;
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		bool append = carry->kind == PROXY_CARRY_APPEND, id = carry->kind == PROXY_CARRY_REQUEST_ID;
		const struct http_field *field = append || id ? http_find_named(head, carry->header) : NULL;
		if (append ? field != NULL : !id || !field || field->value_length <= PROXY_ID_MOST_BYTES)
			return true;
	}
	return false;
}

void proxy_uncarried_begin(struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_config *config = exchange->state->config;
	const struct scope *scope = scope_lease_scope(exchange->lease);
	if (is_carried(exchange, head))
		return;
	for (uint32_t i = 0; i < scope_entries_count(scope); i++) {
		struct str name = scope_entry_service(scope, i);
		for (uint32_t n = 0; n < config->services_count; n++) {
			if (&config->services[n] == exchange->service || !str_equal(config->services[n].name, name))
				continue;
			exchange->uncarried |= UINT64_C(1) << n;
			atomic_fetch_add(&exchange->proxy->shared->uncarried.services[n], 1);
		}
	}
}

void proxy_uncarried_end(struct proxy_exchange *exchange)
{
	for (uint32_t n = 0; exchange->uncarried; n++, exchange->uncarried >>= 1)
		if (exchange->uncarried & 1)
			atomic_fetch_sub(&exchange->proxy->shared->uncarried.services[n], 1);
}

void proxy_uncarried_check(struct proxy_exchange *exchange)
{
	struct proxy *proxy = exchange->proxy;
	uint32_t index = exchange->service->index;
	if (atomic_load_explicit(&proxy->shared->uncarried.services[index], memory_order_relaxed) == 0)
		return;
	proxy_count(&proxy->counters.unattributed, 1);
	log_event(proxy->shared->log, LOG_INFO, "a call that may belong to a scoped request ran locally",
	          LOG_STR("service", exchange->service->name), LOG_STR("target", exchange->target));
}
