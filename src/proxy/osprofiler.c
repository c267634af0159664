#include "proxy/osprofiler.h"

#include "base/base64.h"
#include "base/check.h"
#include "glue/json.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { MAC_BYTES = 20, MAC_DIGITS = 2 * MAC_BYTES };

static void sign(struct str text, struct str key, char digits[MAC_DIGITS])
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	CHECK(HMAC(EVP_sha1(), key.at, (int)key.length, (const unsigned char *)text.at, text.length, mac, &length));
	CHECK(length == MAC_BYTES);
	for (int i = 0; i < MAC_BYTES; i++) {
		digits[2 * i] = "0123456789abcdef"[mac[i] >> 4];
		digits[2 * i + 1] = "0123456789abcdef"[mac[i] & 15];
	}
}

static bool is_signed(struct str info, struct str hmac, const struct proxy_keys *keys)
{
	bool good = false;
	for (uint32_t i = 0; i < keys->count && hmac.length == MAC_DIGITS; i++) {
		char digits[MAC_DIGITS];
		sign(info, keys->at[i], digits);
		good |= CRYPTO_memcmp(digits, hmac.at, MAC_DIGITS) == 0;
	}
	return good;
}

/* What is known of the object while it is read. */
struct reading {
	struct arena *arena;
	struct str *base_id;
	bool wanted; /* the value of base_id follows */
	bool found;
};

/* Of the members, parent_id may be missing. A member that is there twice means its last value to some, its first to others. */
static bool read_member(struct reading *reading, const struct glue_json *json, struct buf *scratch)
{
	struct str name;
	if (json->depth != 1 || !glue_json_string(json->token, json->escaped, scratch, &name))
		return false;
	reading->wanted = str_equal(name, STR("base_id"));
	return reading->wanted ? !reading->found : str_equal(name, STR("parent_id"));
}

static bool read_scalar(struct reading *reading, const struct glue_json *json, struct buf *scratch)
{
	struct str value;
	if (!reading->wanted)
		return true;
	if (json->kind != GLUE_JSON_STRING || !glue_json_string(json->token, json->escaped, scratch, &value))
		return false;
	*reading->base_id = str_make(arena_copy(reading->arena, value.at, value.length), value.length);
	reading->found = value.length > 0;
	return reading->found;
}

static bool read_object(struct reading *reading, struct str text)
{
	struct glue_json *json = arena_new(reading->arena, struct glue_json); /* too large for a stack of ours */
	struct buf scratch = {0};
	bool good = true, ended = false;
	glue_json_init(json, false);
	glue_json_feed(json, text);
	while (good && !ended) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_MORE: glue_json_finish(json); break;
		case GLUE_JSON_KEY: good = read_member(reading, json, &scratch); break;
		case GLUE_JSON_VALUE:
			good = json->in_object == (json->kind != GLUE_JSON_OBJECT) && json->kind != GLUE_JSON_ARRAY;
			break;
		case GLUE_JSON_SCALAR: good = read_scalar(reading, json, &scratch); break;
		case GLUE_JSON_CLOSE: break;
		case GLUE_JSON_END: ended = true; break;
		case GLUE_JSON_BAD: good = false; break;
		}
	}
	buf_free(&scratch);
	return good && reading->found;
}

bool proxy_profile_read(struct arena *arena, struct str info, struct str hmac, const struct proxy_keys *keys,
                        struct str *base_id)
{
	struct buf text = {0};
	struct reading reading = {.arena = arena, .base_id = base_id};
	bool good = info.length <= LIMIT_PROXY_PROFILE_BYTES && is_signed(info, hmac, keys) &&
	            base64_decode_to(&text, BASE64_URL_PADDED, info) && read_object(&reading, buf_str(&text));
	buf_free(&text);
	return good;
}

void proxy_profile_put(struct buf *out, struct str base_id, struct str parent_id, struct str key)
{
	struct buf text = {0}, info = {0};
	char digits[MAC_DIGITS];
	buf_printf(&text, "{\"base_id\": \"%.*s\", \"parent_id\": \"%.*s\"}", STR_FMT(base_id), STR_FMT(parent_id));
	base64_encode(&info, BASE64_URL_PADDED, buf_str(&text));
	sign(buf_str(&info), key, digits);
	buf_printf(out, "X-Trace-Info: %.*s\r\nX-Trace-HMAC: %.*s\r\n", (int)info.length, info.at, MAC_DIGITS, digits);
	buf_free(&text);
	buf_free(&info);
}
