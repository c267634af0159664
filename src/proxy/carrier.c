/* Reading the scope of a request, and taking it out.
 *
 * In this order of precedence: header Scope, header X-Scope, path prefix /scope/<percent-encoded>/, W3C baggage member
 * cheops.scope, then what applications forward by themselves: an id that is remembered, or a header with the scope appended.
 * The first one found counts. All of them are taken out, so that no service sees a scope that it was not given on purpose
 * (carry.c).
 */
#include "proxy/proxy_int.h"

#include "base/text.h"

static const struct str path_prefix = STR_INIT("/scope/");
static const struct str baggage_key = STR_INIT("cheops.scope");
const struct str proxy_appended_mark = STR_INIT("!SCOPE!");

static void found(struct proxy_exchange *exchange, enum proxy_carrier carrier, struct str text)
{
	if (exchange->carrier != PROXY_CARRIER_NONE)
		return;
	exchange->carrier = carrier;
	exchange->scope_text = str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
}

static int refuse_encoding(struct proxy_exchange *exchange, const char *where)
{
	proxy_count(&exchange->proxy->counters.refused_scopes, 1);
	struct proxy_problem problem = {.status = 400, .type = "bad-scope", .title = "The scope cannot be read"};
	proxy_problem(exchange, &problem, "the scope in the %s is not percent-encoded as it should be", where);
	return -1;
}

/* The call is made by a service, on behalf of another request. */
static void note_caller(struct proxy_exchange *exchange, struct str encoded)
{
	struct str name;
	exchange->inner = true;
	if (exchange->caller.length == 0 && encoded.length <= LIMIT_GLUE_NAME_BYTES &&
	    percent_decode(&exchange->arena, encoded, &name) && text_is_printable(name))
		exchange->caller = str_make(arena_copy(&exchange->arena, name.at, name.length), name.length);
}

/* Said by the agent, beside the header Scope, and forwarded with it. */
static void read_caller(struct proxy_exchange *exchange, struct http_head *head)
{
	struct http_field *field;
	while ((field = http_find_named(head, STR("cheops-caller"))) != NULL) {
		if (exchange->carrier == PROXY_CARRIER_SCOPE)
			note_caller(exchange, http_field_value(head, field));
		field->dropped = true;
	}
}

static void read_headers(struct proxy_exchange *exchange, struct http_head *head)
{
	static const struct {
		enum http_field_id id;
		enum proxy_carrier carrier;
	} carriers[] = {{HTTP_FIELD_SCOPE, PROXY_CARRIER_SCOPE}, {HTTP_FIELD_X_SCOPE, PROXY_CARRIER_X_SCOPE}};
	for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++) {
		struct http_field *field = http_find(head, carriers[i].id);
		if (!field)
			continue;
		found(exchange, carriers[i].carrier, http_field_value(head, field));
		field->dropped = true;
	}
	read_caller(exchange, head);
}

/* /scope/Site1%20%26%20Site2/servers -> /servers. Some clients decode what they can, and send a bare `&`. */
static int read_path(struct proxy_exchange *exchange)
{
	struct str target = exchange->target;
	if (target.length < path_prefix.length || memcmp(target.at, path_prefix.at, path_prefix.length) != 0)
		return 0;
	size_t end = path_prefix.length;
	while (end < target.length && target.at[end] != '/' && target.at[end] != '?')
		end++;
	struct str encoded = str_make(target.at + path_prefix.length, end - path_prefix.length), text;
	if (!percent_decode(&exchange->arena, encoded, &text))
		return refuse_encoding(exchange, "path");
	found(exchange, PROXY_CARRIER_PATH, text);
	struct str rest = str_make(target.at + end, target.length - end);
	if (rest.length > 0 && rest.at[0] == '/') {
		exchange->target = rest;
		return 0;
	}
	char *whole = arena_alloc(&exchange->arena, rest.length + 1, 1);
	whole[0] = '/';
	if (rest.length)
		memcpy(whole + 1, rest.at, rest.length);
	exchange->target = str_make(whole, rest.length + 1);
	return 0;
}

/* ---- Baggage ---------------------------------------------------------------------------------------------------- */

static struct str trim(struct str text)
{
	while (text.length && (text.at[0] == ' ' || text.at[0] == '\t'))
		text = str_make(text.at + 1, text.length - 1);
	while (text.length && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* Of `…;caller=compute;…`. */
static bool find_caller(struct str properties, struct str *caller)
{
	static const struct str key = STR_INIT("caller=");
	while (properties.length > 0) {
		const char *end = memchr(properties.at, ';', properties.length);
		size_t length = end ? (size_t)(end - properties.at) : properties.length;
		struct str one = trim(str_make(properties.at, length));
		properties = end ? str_make(end + 1, properties.length - length - 1) : STR("");
		if (one.length < key.length || memcmp(one.at, key.at, key.length) != 0)
			continue;
		*caller = str_make(one.at + key.length, one.length - key.length);
		return true;
	}
	return false;
}

/* Is the member `cheops.scope=…`? Then its value, and its properties. */
static bool is_scope_member(struct str member, struct str *value, struct str *properties)
{
	const char *equals = member.length ? memchr(member.at, '=', member.length) : NULL;
	if (!equals || !str_equal(trim(str_make(member.at, (size_t)(equals - member.at))), baggage_key))
		return false;
	struct str rest = str_make(equals + 1, member.length - (size_t)(equals + 1 - member.at));
	const char *behind = rest.length ? memchr(rest.at, ';', rest.length) : NULL;
	size_t length = behind ? (size_t)(behind - rest.at) : rest.length;
	*value = trim(str_make(rest.at, length));
	*properties = behind ? str_make(behind + 1, rest.length - length - 1) : STR("");
	return true;
}

/* Takes the scope out of one field; what is left of it goes to `kept`. */
static int read_baggage_field(struct proxy_exchange *exchange, struct str value, struct buf *kept)
{
	while (value.length > 0) {
		const char *comma = memchr(value.at, ',', value.length);
		size_t length = comma ? (size_t)(comma - value.at) : value.length;
		struct str member = trim(str_make(value.at, length)), encoded, properties, caller, text;
		value = comma ? str_make(comma + 1, value.length - length - 1) : STR("");
		if (is_scope_member(member, &encoded, &properties)) {
			if (!percent_decode(&exchange->arena, encoded, &text))
				return refuse_encoding(exchange, "baggage");
			found(exchange, PROXY_CARRIER_BAGGAGE, text);
			if (exchange->carrier == PROXY_CARRIER_BAGGAGE && find_caller(properties, &caller))
				note_caller(exchange, caller);
		} else if (member.length) {
			if (kept->length)
				buf_put_char(kept, ',');
			buf_put(kept, member);
		}
	}
	return 0;
}

static int read_baggage(struct proxy_exchange *exchange, struct http_head *head)
{
	struct buf kept = {0};
	int code = 0;
	struct http_field *field;
	while (code == 0 && (field = http_find(head, HTTP_FIELD_BAGGAGE)) != NULL) {
		code = read_baggage_field(exchange, http_field_value(head, field), &kept);
		field->dropped = true;
	}
	exchange->baggage = str_make(arena_copy(&exchange->arena, kept.at ? kept.at : "", kept.length), kept.length);
	buf_free(&kept);
	return code;
}

/* ---- What applications forward ---------------------------------------------------------------------------------- */

/* The trace id of a traceparent: 00-<32 hex>-<16 hex>-<2 hex>, in lower case, not all zero. */
struct str proxy_trace_id(struct str traceparent)
{
	if (traceparent.length < 55 || traceparent.at[2] != '-' || traceparent.at[35] != '-')
		return STR("");
	struct str id = str_make(traceparent.at + 3, 32);
	bool zero = true;
	for (size_t i = 0; i < id.length; i++) {
		if (!((id.at[i] >= '0' && id.at[i] <= '9') || (id.at[i] >= 'a' && id.at[i] <= 'f')))
			return STR("");
		zero &= id.at[i] == '0';
	}
	return zero ? STR("") : id;
}

bool proxy_read_profile(const struct http_head *head, const struct proxy_keys *keys, struct arena *arena,
                        struct str *base_id)
{
	const struct http_field *info = http_find_named(head, STR("X-Trace-Info"));
	const struct http_field *hmac = http_find_named(head, STR("X-Trace-HMAC"));
	return info && hmac &&
	       proxy_profile_read(arena, http_field_value(head, info), http_field_value(head, hmac), keys, base_id);
}

static void note_ambiguous(struct proxy_exchange *exchange, struct str id)
{
	struct proxy *proxy = exchange->proxy;
	if (exchange->ambiguous)
		return;
	exchange->ambiguous = true;
	proxy_count(&proxy->counters.ambiguous, 1);
	proxy_count(&proxy->counters.unattributed, 1);
	log_event(proxy->shared->log, LOG_INFO, "an id stands for several scopes; the call ran locally",
	          LOG_STR("service", exchange->service->name), LOG_STR("id", id));
}

static void look_up(struct proxy_exchange *exchange, struct str id)
{
	struct proxy *proxy = exchange->proxy;
	struct str scope, service = exchange->service->name;
	if (exchange->carrier != PROXY_CARRIER_NONE)
		return;
	uint64_t now_ms = http_loop_now_ms(proxy->loop);
	switch (proxy_memory_get(proxy->shared->memory, id, service, &exchange->arena, &scope, now_ms)) {
	case PROXY_MEMORY_FOUND:
		found(exchange, PROXY_CARRIER_REMEMBERED, scope);
		exchange->called_by = str_make(arena_copy(&exchange->arena, id.at, id.length), id.length);
		break;
	case PROXY_MEMORY_AMBIGUOUS: note_ambiguous(exchange, id); break;
	case PROXY_MEMORY_NONE: break;
	}
}

/* A call of the service for which alone the scope was appended: the one who makes it may fail because of it. */
static void note_appended(struct proxy_exchange *exchange, const struct proxy_carry *carry, struct str value)
{
	char id[PROXY_ID_MOST_BYTES];
	if (carry->service.length == 0 || !str_equal(carry->service, exchange->service->name))
		return;
	struct str noted = proxy_memory_digest(exchange->proxy->shared->memory, value, id);
	exchange->called_by = str_make(arena_copy(&exchange->arena, noted.at, noted.length), noted.length);
}

/* token!SCOPE!text -> token */
static void read_appended(struct proxy_exchange *exchange, struct http_head *head, const struct proxy_carry *carry)
{
	struct http_field *field = http_find_named(head, carry->header);
	if (!field)
		return;
	struct str value = http_field_value(head, field), mark = proxy_appended_mark;
	for (size_t at = 0; at + mark.length <= value.length; at++) {
		if (memcmp(value.at + at, mark.at, mark.length) != 0)
			continue;
		size_t end = at + mark.length;
		if (exchange->carrier == PROXY_CARRIER_NONE)
			note_appended(exchange, carry, value);
		found(exchange, PROXY_CARRIER_APPENDED, str_make(value.at + end, value.length - end));
		field->value_length = (uint32_t)at;
		return;
	}
}

static void look_up_profile(struct proxy_exchange *exchange, const struct http_head *head,
                            const struct proxy_keys *keys)
{
	struct str base_id;
	if (exchange->carrier == PROXY_CARRIER_NONE && proxy_read_profile(head, keys, &exchange->arena, &base_id))
		look_up(exchange, base_id);
}

/* Any service may have made the call, so the ways of all of them are looked at. */
static void read_forwarded(struct proxy_exchange *exchange, struct http_head *head)
{
	const struct proxy_config *config = exchange->state->config;
	for (uint32_t i = 0; i < config->services_count; i++) {
		for (uint32_t n = 0; n < config->services[i].carry_count; n++) {
			const struct proxy_carry *carry = &config->services[i].carry[n];
			struct http_field *field;
			if (carry->kind == PROXY_CARRY_TRACEPARENT && (field = http_find(head, HTTP_FIELD_TRACEPARENT)))
				look_up(exchange, proxy_trace_id(http_field_value(head, field)));
			else if (carry->kind == PROXY_CARRY_REQUEST_ID && (field = http_find_named(head, carry->header)))
				look_up(exchange, http_field_value(head, field));
			else if (carry->kind == PROXY_CARRY_APPEND)
				read_appended(exchange, head, carry);
			else if (carry->kind == PROXY_CARRY_OSPROFILER)
				look_up_profile(exchange, head, &carry->keys);
		}
	}
}

int proxy_read_scope(struct proxy_exchange *exchange, struct http_head *head)
{
	if (http_has(head, HTTP_FIELD_SCOPE) || http_has(head, HTTP_FIELD_X_SCOPE))
		read_headers(exchange, head);
	if (exchange->client->kind == PROXY_FRONT_PEER) {
		/* The other agent has taken everything else out. */
		if (exchange->carrier != PROXY_CARRIER_NONE)
			exchange->carrier = PROXY_CARRIER_PEER;
		return 0;
	}
	int code = read_path(exchange);
	if (code == 0 && http_has(head, HTTP_FIELD_BAGGAGE))
		code = read_baggage(exchange, head);
	if (code == 0 && exchange->state->forwarding)
		read_forwarded(exchange, head);
	/* What an application forwards by itself comes from one of its services. */
	exchange->inner |= exchange->carrier == PROXY_CARRIER_REMEMBERED || exchange->carrier == PROXY_CARRIER_APPENDED;
	if (exchange->carrier != PROXY_CARRIER_NONE)
		proxy_count(&exchange->proxy->counters.scoped, 1);
	return code;
}
