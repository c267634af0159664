/* Fields of a head: which ones are known here, how they are found, and how they are sent on. */
#include "http/http_int.h"

static const struct {
	struct str name;
	enum http_field_id id;
} known_fields[] = {
	{STR_INIT("te"), HTTP_FIELD_TE},
	{STR_INIT("via"), HTTP_FIELD_VIA},
	{STR_INIT("host"), HTTP_FIELD_HOST},
	{STR_INIT("scope"), HTTP_FIELD_SCOPE},
	{STR_INIT("expect"), HTTP_FIELD_EXPECT},
	{STR_INIT("upgrade"), HTTP_FIELD_UPGRADE},
	{STR_INIT("x-scope"), HTTP_FIELD_X_SCOPE},
	{STR_INIT("baggage"), HTTP_FIELD_BAGGAGE},
	{STR_INIT("forwarded"), HTTP_FIELD_FORWARDED},
	{STR_INIT("connection"), HTTP_FIELD_CONNECTION},
	{STR_INIT("keep-alive"), HTTP_FIELD_KEEP_ALIVE},
	{STR_INIT("cheops-hop"), HTTP_FIELD_CHEOPS_HOP},
	{STR_INIT("traceparent"), HTTP_FIELD_TRACEPARENT},
	{STR_INIT("max-forwards"), HTTP_FIELD_MAX_FORWARDS},
	{STR_INIT("content-length"), HTTP_FIELD_CONTENT_LENGTH},
	{STR_INIT("cheops-explain"), HTTP_FIELD_CHEOPS_EXPLAIN},
	{STR_INIT("cheops-outcome"), HTTP_FIELD_CHEOPS_OUTCOME},
	{STR_INIT("x-forwarded-for"), HTTP_FIELD_X_FORWARDED_FOR},
	{STR_INIT("x-forwarded-host"), HTTP_FIELD_X_FORWARDED_HOST},
	{STR_INIT("proxy-connection"), HTTP_FIELD_PROXY_CONNECTION},
	{STR_INIT("transfer-encoding"), HTTP_FIELD_TRANSFER_ENCODING},
	{STR_INIT("x-forwarded-proto"), HTTP_FIELD_X_FORWARDED_PROTO},
};

enum { KNOWN = sizeof(known_fields) / sizeof(known_fields[0]), NAME_MOST = 17 };

/* First of known_fields with a name of that length. */
static const uint8_t by_length[NAME_MOST + 2] = {0, 0, 0, 1, 2, 3, 4, 5, 8, 8, 9, 12, 13, 14, 14, 17, 18, 20, 22};

enum http_field_id http_field_id_of(struct str name)
{
	if (name.length > NAME_MOST)
		return HTTP_FIELD_OTHER;
	for (uint32_t i = by_length[name.length]; i < by_length[name.length + 1]; i++)
		if (str_equal_nocase(known_fields[i].name, name))
			return known_fields[i].id;
	return HTTP_FIELD_OTHER;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

void http_read_fields(struct arena *arena, struct str lines, struct http_head *head)
{
	uint32_t count = 0;
	for (size_t i = 0; i < lines.length; i++)
		count += lines.at[i] == '\n';
	*head = (struct http_head){.base = lines.at, .fields = arena_array(arena, struct http_field, count)};
	for (size_t at = 0; at < lines.length;) {
		const char *line = lines.at + at, *end = memchr(line, '\n', lines.length - at);
		const char *colon = end ? memchr(line, ':', (size_t)(end - line)) : NULL;
		if (!colon || colon - line > UINT16_MAX)
			return;
		const char *value = colon + 1, *last = end;
		while (value < last && is_blank(*value))
			value++;
		while (last > value && is_blank(last[-1]))
			last--;
		struct http_field *field = &head->fields[head->fields_count++];
		*field = (struct http_field){.name = (uint32_t)at,
		                             .name_length = (uint16_t)(colon - line),
		                             .value = (uint32_t)(value - lines.at),
		                             .value_length = (uint32_t)(last - value),
		                             .id = (uint8_t)http_field_id_of(str_make(line, (size_t)(colon - line)))};
		head->present |= 1u << field->id;
		at = (size_t)(end + 1 - lines.at);
	}
}

struct http_field *http_find(const struct http_head *head, enum http_field_id id)
{
	if (!http_has(head, id))
		return NULL;
	for (uint32_t i = 0; i < head->fields_count; i++)
		if (head->fields[i].id == id && !head->fields[i].dropped)
			return &head->fields[i];
	return NULL;
}

struct http_field *http_find_named(const struct http_head *head, struct str name)
{
	for (uint32_t i = 0; i < head->fields_count; i++)
		if (head->fields[i].name_length == name.length && !head->fields[i].dropped &&
		    str_equal_nocase(http_field_name(head, &head->fields[i]), name))
			return &head->fields[i];
	return NULL;
}

void http_put_fields(struct buf *out, const struct http_head *head)
{
	for (uint32_t i = 0; i < head->fields_count; i++) {
		const struct http_field *field = &head->fields[i];
		if (field->dropped)
			continue;
		buf_put(out, http_field_name(head, field));
		buf_put(out, STR(": "));
		buf_put(out, http_field_value(head, field));
		buf_put(out, STR("\r\n"));
	}
}
