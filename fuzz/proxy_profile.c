/* Any bytes as a trace of osprofiler that is well signed: what is read of it is text, and a trace that is made of that says the same.
 *
 * The first byte says whether the rest is the header, or what is in it. */
#include "base/base64.h"
#include "base/check.h"
#include "base/limits.h"
#include "proxy/osprofiler.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sign(struct str text, struct buf *out)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned length;
	CHECK(HMAC(EVP_sha1(), "k", 1, (const unsigned char *)text.at, text.length, mac, &length));
	for (unsigned i = 0; i < length; i++)
		buf_printf(out, "%02x", mac[i]);
}

static bool is_plain(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if ((unsigned char)text.at[i] < ' ' || text.at[i] == '"' || text.at[i] == '\\')
			return false;
	return true;
}

static void check_made(struct arena *arena, struct str base_id, const struct proxy_keys *keys)
{
	struct buf made = {0};
	struct str again = STR("");
	proxy_profile_put(&made, base_id, STR("p"), keys->at[0]);
	const char *info = made.at + strlen("X-Trace-Info: "),
			   *end = memchr(info, '\r', made.length - (size_t)(info - made.at));
	struct str hmac = str_make(end + strlen("\r\nX-Trace-HMAC: "), 40);
	CHECK(proxy_profile_read(arena, str_make(info, (size_t)(end - info)), hmac, keys, &again) &&
	      str_equal(again, base_id));
	buf_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct str key = STR_INIT("k");
	const struct proxy_keys keys = {&key, 1};
	struct buf info = {0}, hmac = {0};
	struct str base_id = STR("");
	struct arena arena;
	if (size == 0)
		return 0;
	arena_init(&arena, 0);
	struct str rest = str_make((const char *)data + 1, size - 1);
	if (data[0] & 1)
		base64_encode(&info, BASE64_URL_PADDED, rest);
	else
		buf_put(&info, rest);
	sign(buf_str(&info), &hmac);
	if (proxy_profile_read(&arena, buf_str(&info), buf_str(&hmac), &keys, &base_id)) {
		CHECK(base_id.length > 0 && base_id.length <= LIMIT_PROXY_PROFILE_BYTES);
		if (base_id.length <= 512 && is_plain(base_id))
			check_made(&arena, base_id, &keys);
	}
	buf_free(&info);
	buf_free(&hmac);
	arena_free(&arena);
	return 0;
}
