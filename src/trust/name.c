/* Names of sites inside certificates.
 *
 * The name stands in the only subject alternative name, as the URI cheops://site/<percent-encoded name>. The common
 * name repeats it for people, cut to 64 bytes, and is not read. Each name has one URI: a second spelling of it
 * (another case of the digits, a letter that is encoded though it need not be) is refused, so that nobody has to
 * compare spellings.
 */
#include "trust/trust_int.h"

#include "base/percent.h"
#include "base/text.h"

#define URI_PREFIX "cheops://site/"

int trust_name_check(struct str name, const char *what, struct err *err)
{
	if (name.length == 0)
		return err_set(err, ERR_INVALID, "%s is empty", what);
	if (name.length > LIMIT_AGENT_NAME_BYTES)
		return err_set(err, ERR_LIMIT, "%s has %zu bytes; at most %d are allowed", what, name.length,
		               (int)LIMIT_AGENT_NAME_BYTES);
	if (!text_is_printable(name))
		return err_set(err, ERR_INVALID, "%s is not UTF-8 without control characters", what);
	return 0;
}

void trust_uri_write(struct buf *uri, struct str name)
{
	buf_put(uri, STR(URI_PREFIX));
	percent_encode(uri, name);
}

/* Decodes, and sees whether writing gives the same again: only then is it the one spelling. */
static bool decode(struct arena *arena, struct str uri, struct str *name)
{
	const size_t prefix = sizeof(URI_PREFIX) - 1;
	struct buf again = {0};
	if (!percent_decode(arena, str_make(uri.at + prefix, uri.length - prefix), name))
		return false;
	trust_uri_write(&again, *name);
	bool same = str_equal(buf_str(&again), uri);
	buf_free(&again);
	return same;
}

int trust_uri_read(struct str uri, char name[LIMIT_AGENT_NAME_BYTES + 1], struct err *err)
{
	const struct str prefix = STR(URI_PREFIX);
	struct arena arena;
	struct str decoded;
	if (uri.length < prefix.length || memcmp(uri.at, prefix.at, prefix.length) != 0)
		return err_set(err, ERR_INVALID, "its alternative name is not " URI_PREFIX "<name>, as that of a site is");
	arena_init(&arena, 0);
	int code = decode(&arena, uri, &decoded)
	               ? trust_name_check(decoded, "its name", err)
	               : err_set(err, ERR_INVALID, "its URI is not percent-encoded as that of a site is");
	if (code == 0) {
		memcpy(name, decoded.at, decoded.length);
		name[decoded.length] = '\0';
	}
	arena_free(&arena);
	return code;
}

int trust_names_read(const GENERAL_NAMES *names, const char *where, char name[LIMIT_AGENT_NAME_BYTES + 1],
                     struct err *err)
{
	int count = names ? sk_GENERAL_NAME_num(names) : 0;
	if (count == 0)
		return err_set(err, ERR_INVALID, "%s names no site: it has no alternative name " URI_PREFIX "<name>", where);
	if (count > 1)
		return err_set(err, ERR_INVALID, "%s has %d alternative names; that of a site has one, " URI_PREFIX "<name>",
		               where, count);
	const GENERAL_NAME *only = sk_GENERAL_NAME_value(names, 0);
	if (only->type != GEN_URI)
		return err_set(err, ERR_INVALID, "%s has an alternative name that is not " URI_PREFIX "<name>", where);
	const ASN1_STRING *uri = only->d.uniformResourceIdentifier;
	struct str text = str_make((const char *)ASN1_STRING_get0_data(uri), (size_t)ASN1_STRING_length(uri));
	int code = trust_uri_read(text, name, err);
	return code < 0 ? err_context(err, code, "%s", where) : 0;
}
