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

#include "base/check.h"

#include <sys/random.h>

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

/* A request for a service of this site, and the scope that is to follow what it calls. */
struct carrying {
	const struct proxy_service *service;
	struct str scope;
	struct str baggage; /* of the request, where it was taken out of its head */
	struct proxy_memory *memory;
	uint64_t now_ms;
	uint64_t (*draw)(void *context); /* a number that nobody outside can foretell */
	void *context;
	struct proxy_exchange *exchange; /* that is told the ids; NULL: nobody is */
	struct buf *mark;                /* the id of what was appended for one service alone; NULL: nobody asks */
};

/* A UUID of version 4. */
static void put_uuid(struct buf *out, const struct carrying *carrying)
{
	uint64_t high = carrying->draw(carrying->context), low = carrying->draw(carrying->context);
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

static void remember(const struct carrying *carrying, struct str id)
{
	struct proxy_exchange *exchange = carrying->exchange;
	proxy_memory_put(carrying->memory, id, carrying->service->name, carrying->scope, carrying->now_ms);
	if (exchange && exchange->ids_count < PROXY_CARRY_MOST && id.length > 0 && id.length <= PROXY_ID_MOST_BYTES)
		exchange->ids[exchange->ids_count++] = str_make(arena_copy(&exchange->arena, id.at, id.length), id.length);
}

/* The trace that the request belongs to; a new one where it has none. */
static void carry_trace(const struct carrying *carrying, struct http_head *head, struct buf *out)
{
	struct http_field *field = http_find(head, HTTP_FIELD_TRACEPARENT);
	struct str id = field ? proxy_trace_id(http_field_value(head, field)) : STR("");
	if (id.length) {
		remember(carrying, id);
		return;
	}
	if (field)
		field->dropped = true;
	struct buf made = {0};
	buf_put(&made, STR("00-"));
	put_hex(&made, carrying->draw(carrying->context), 16);
	put_hex(&made, carrying->draw(carrying->context), 16);
	buf_put_char(&made, '-');
	put_hex(&made, carrying->draw(carrying->context) | 1, 16);
	buf_put(&made, STR("-01"));
	put_field(out, STR("traceparent"), buf_str(&made));
	remember(carrying, proxy_trace_id(buf_str(&made)));
	buf_free(&made);
}

static void carry_request_id(const struct carrying *carrying, const struct proxy_carry *carry, struct http_head *head,
                             struct buf *out)
{
	struct http_field *field = http_find_named(head, carry->header);
	if (field && field->value_length) {
		remember(carrying, http_field_value(head, field));
		return;
	}
	struct buf made = {0};
	buf_put(&made, carry->prefix);
	put_uuid(&made, carrying);
	put_field(out, carry->header, buf_str(&made));
	remember(carrying, buf_str(&made));
	buf_free(&made);
}

static void drop_field(struct http_head *head, struct str name)
{
	for (struct http_field *field; (field = http_find_named(head, name)) != NULL;)
		field->dropped = true;
}

/* The trace of osprofiler that the request belongs to, if the service would take it; a new one where there is none. */
static void carry_profile(const struct carrying *carrying, const struct proxy_carry *carry, struct http_head *head,
                          struct buf *out)
{
	struct arena arena;
	struct buf base = {0}, parent = {0};
	struct str known;
	arena_init(&arena, 0);
	if (proxy_read_profile(head, &carry->keys, &arena, &known)) {
		remember(carrying, known);
	} else {
		drop_field(head, STR("X-Trace-Info"));
		drop_field(head, STR("X-Trace-HMAC"));
		put_uuid(&base, carrying);
		put_uuid(&parent, carrying);
		proxy_profile_put(out, buf_str(&base), buf_str(&parent), carry->keys.at[0]);
		remember(carrying, buf_str(&base));
	}
	buf_free(&base);
	buf_free(&parent);
	arena_free(&arena);
}

/* Who calls is told as well: a call on behalf of a request is not the same as a request (docs/ownership.md). */
static void carry_header(const struct carrying *carrying, struct buf *out)
{
	put_field(out, STR("Scope"), carrying->scope);
	buf_put(out, STR("Cheops-Caller: "));
	percent_encode(out, carrying->service->name);
	buf_put(out, STR("\r\n"));
}

static void carry_baggage(struct carrying *carrying, struct buf *out)
{
	buf_put(out, STR("baggage: "));
	buf_put(out, carrying->baggage);
	buf_put(out, carrying->baggage.length ? STR(",cheops.scope=") : STR("cheops.scope="));
	percent_encode(out, carrying->scope);
	buf_put(out, STR(";caller="));
	percent_encode(out, carrying->service->name);
	buf_put(out, STR("\r\n"));
	carrying->baggage = STR("");
}

static bool is_appended(const struct proxy_carry *carry, struct str scope)
{
	return carry->service.length == 0 || scope_text_names(scope, carry->service);
}

/* The value gets longer than it is in the buffer, so the field is written anew. What is forwarded for one service alone stands for all calls of it
 * with that value and that scope, and so does what becomes of them (shape.c). */
static void carry_appended(const struct carrying *carrying, const struct proxy_carry *carry, struct http_head *head,
                           struct buf *out)
{
	struct http_field *field = http_find_named(head, carry->header);
	if (!field || !is_appended(carry, carrying->scope))
		return;
	struct buf value = {0};
	buf_put(&value, http_field_value(head, field));
	buf_put(&value, proxy_appended_mark);
	buf_put(&value, carrying->scope);
	put_field(out, http_field_name(head, field), buf_str(&value));
	field->dropped = true;
	if (carry->service.length > 0) {
		char text[PROXY_ID_MOST_BYTES];
		struct str id = proxy_memory_digest(carrying->memory, buf_str(&value), text);
		remember(carrying, id);
		if (carrying->mark) {
			buf_clear(carrying->mark);
			buf_put(carrying->mark, id);
		}
	}
	explicit_bzero(value.at, value.length);
	buf_free(&value);
}

static void carry_all(struct carrying *carrying, struct http_head *head, struct buf *out)
{
	const struct proxy_service *service = carrying->service;
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		switch (carry->kind) {
		case PROXY_CARRY_HEADER: carry_header(carrying, out); break;
		case PROXY_CARRY_BAGGAGE: carry_baggage(carrying, out); break;
		case PROXY_CARRY_TRACEPARENT: carry_trace(carrying, head, out); break;
		case PROXY_CARRY_REQUEST_ID: carry_request_id(carrying, carry, head, out); break;
		case PROXY_CARRY_APPEND: carry_appended(carrying, carry, head, out); break;
		case PROXY_CARRY_OSPROFILER: carry_profile(carrying, carry, head, out); break;
		}
	}
}

static uint64_t draw_of_proxy(void *context)
{
	return proxy_random(context);
}

void proxy_carry_scope(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	struct carrying carrying = {.service = exchange->service,
	                            .scope = exchange->scope,
	                            .baggage = exchange->baggage,
	                            .memory = exchange->proxy->shared->memory,
	                            .now_ms = http_loop_now_ms(exchange->proxy->loop),
	                            .draw = draw_of_proxy,
	                            .context = exchange->proxy,
	                            .exchange = exchange};
	exchange->ids_count = 0;
	carry_all(&carrying, head, out);
	exchange->baggage = carrying.baggage;
}

/* ---- What the engine runs --------------------------------------------------------------------------------------- */

static uint64_t draw_of_system(void *context)
{
	uint64_t number;
	(void)context;
	ssize_t got = getrandom(&number, sizeof(number), 0);
	CHECK(got == sizeof(number));
	return number;
}

static const struct proxy_service *service_of(const struct proxy_config *config, struct str name)
{
	for (uint32_t i = 0; i < config->services_count; i++)
		if (str_equal(config->services[i].name, name))
			return &config->services[i];
	return NULL;
}

static void carry_run(void *context, const struct engine_carried *carried, struct buf *out, struct buf *mark)
{
	const struct proxy_carriage *carriage = context;
	const struct proxy_service *service = service_of(carriage->config, carried->service);
	struct arena arena;
	struct http_head head;
	arena_init(&arena, 0);
	http_read_fields(&arena, carried->fields, &head);
	struct carrying carrying = {.service = service,
	                            .scope = carried->scope,
	                            .memory = carriage->memory,
	                            .now_ms = carried->now_ms,
	                            .draw = draw_of_system,
	                            .mark = mark};
	struct http_field *baggage = http_find(&head, HTTP_FIELD_BAGGAGE);
	if (service) {
		carrying.baggage = baggage ? http_field_value(&head, baggage) : STR("");
		carry_all(&carrying, &head, out);
	}
	if (service && baggage && carrying.baggage.length == 0)
		baggage->dropped = true; /* it was written anew */
	http_put_fields(out, &head);
	arena_free(&arena);
}

static bool find_fault(void *context, struct str mark, struct str service, struct buf *why)
{
	const struct proxy_carriage *carriage = context;
	struct proxy_blame blame;
	struct arena arena;
	arena_init(&arena, 0);
	bool known = proxy_memory_blamed(carriage->memory, mark, &arena, &blame) && str_equal(blame.service, service);
	if (known)
		buf_put(why, blame.detail);
	arena_free(&arena);
	return known;
}

struct engine_carrier proxy_carriage_engine(struct proxy_carriage *carriage)
{
	return (struct engine_carrier){carriage, carry_run, find_fault};
}

/* ---- What cannot be followed ------------------------------------------------------------------------------------ */

/* Is there anything in the request that will tell the calls of the service from others? The header that the scope is
 * appended to may be missing, and an id may be too long to be remembered. */
static bool is_carried(struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_service *service = exchange->service;
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		bool append = carry->kind == PROXY_CARRY_APPEND, id = carry->kind == PROXY_CARRY_REQUEST_ID;
		if (append && !is_appended(carry, exchange->scope))
			continue;
		const struct http_field *field = append || id ? http_find_named(head, carry->header) : NULL;
		struct str trace = STR("");
		if (carry->kind == PROXY_CARRY_OSPROFILER)
			proxy_read_profile(head, &carry->keys, &exchange->arena, &trace);
		if (append
		        ? field != NULL
		        : (!id || !field || field->value_length <= PROXY_ID_MOST_BYTES) && trace.length <= PROXY_ID_MOST_BYTES)
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
