/* Join tokens: text that a person copies from one terminal to another.
 *
 *     "cheops1_" base64url( secret 16 | root's fingerprint 32 | ends 8 | family 1 | ip 4 or 16 | port 2 | length 1 |
 *                           name | sum 4 )
 *
 * Numbers are big-endian. The sum is the start of a SHA-256 over all before it: it does not protect anything (who
 * changes a token can mend the sum), it tells a slip of the hand from a token that is refused. docs/protocol/join.md.
 */
#include "trust/trust_int.h"

#include "base/base64.h"
#include "base/text.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#define TOKEN_PREFIX "cheops1_"

enum {
	FIXED_BYTES = TRUST_SECRET_BYTES + 32 + 8 + 1, /* up to the family */
	SUM_BYTES = 4,
	BODY_MOST = FIXED_BYTES + 16 + 2 + 1 + LIMIT_AGENT_NAME_BYTES + SUM_BYTES,
};
_Static_assert(sizeof(TOKEN_PREFIX) + (BODY_MOST * 4 + 2) / 3 <= LIMIT_TRUST_TOKEN_BYTES,
               "the longest token is allowed");

static void make_sum(const unsigned char *body, size_t length, unsigned char sum[SUM_BYTES])
{
	static const char label[] = "cheops join token 1";
	unsigned char hash[SHA256_DIGEST_LENGTH];
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	CHECK(context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
	CHECK(EVP_DigestUpdate(context, label, sizeof(label) - 1) == 1 && EVP_DigestUpdate(context, body, length) == 1);
	CHECK(EVP_DigestFinal_ex(context, hash, NULL) == 1);
	EVP_MD_CTX_free(context);
	memcpy(sum, hash, SUM_BYTES);
}

void trust_token_make(struct trust_token *token)
{
	CHECK(RAND_priv_bytes(token->secret, sizeof(token->secret)) == 1);
}

void trust_token_digest(const struct trust_token *token, unsigned char digest[32])
{
	static const char label[] = "cheops join secret 1";
	unsigned char text[sizeof(label) - 1 + TRUST_SECRET_BYTES];
	memcpy(text, label, sizeof(label) - 1);
	memcpy(text + sizeof(label) - 1, token->secret, TRUST_SECRET_BYTES);
	CHECK(EVP_Digest(text, sizeof(text), digest, NULL, EVP_sha256(), NULL) == 1);
	OPENSSL_cleanse(text, sizeof(text));
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static size_t encode(const struct trust_token *token, unsigned char body[BODY_MOST])
{
	const struct site_address *address = &token->address;
	size_t ip = address->family == 4 ? 4 : 16, name = strlen(token->name);
	CHECK((address->family == 4 || address->family == 6) && name <= LIMIT_AGENT_NAME_BYTES);
	unsigned char *at = body;
	memcpy(at, token->secret, TRUST_SECRET_BYTES), at += TRUST_SECRET_BYTES;
	memcpy(at, token->root, sizeof(token->root)), at += sizeof(token->root);
	trust_put_u64(at, (uint64_t)token->ends_ms), at += 8;
	*at++ = address->family;
	memcpy(at, address->ip, ip), at += ip;
	*at++ = (unsigned char)(address->port >> 8);
	*at++ = (unsigned char)address->port;
	*at++ = (unsigned char)name;
	memcpy(at, token->name, name), at += name;
	return (size_t)(at - body);
}

void trust_token_write_body(const unsigned char *body, size_t length, struct buf *text)
{
	unsigned char all[LIMIT_TRUST_TOKEN_BYTES] = {0};
	CHECK(length + SUM_BYTES <= sizeof(all));
	memcpy(all, body, length);
	make_sum(all, length, all + length);
	buf_put(text, STR(TOKEN_PREFIX));
	base64_encode(text, BASE64_URL, str_make((const char *)all, length + SUM_BYTES));
	OPENSSL_cleanse(all, sizeof(all));
}

void trust_token_write(const struct trust_token *token, struct buf *text)
{
	unsigned char body[BODY_MOST] = {0};
	size_t length = encode(token, body);
	trust_token_write_body(body, length, text);
	OPENSSL_cleanse(body, sizeof(body));
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static int cut_or_mistyped(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the token is cut or mistyped; copy all of it, in one line");
}

/* `length` is without the sum, which is right. */
static int decode(const unsigned char *body, size_t length, struct trust_token *token, struct err *err)
{
	static const char wrong[] = "the token makes no sense, though its check sum is right: ";
	const unsigned char *at = body;
	if (length < FIXED_BYTES + 4 + 3)
		return err_set(err, ERR_INVALID, "%sit is too short", wrong);
	memcpy(token->secret, at, TRUST_SECRET_BYTES), at += TRUST_SECRET_BYTES;
	memcpy(token->root, at, sizeof(token->root)), at += sizeof(token->root);
	token->ends_ms = (int64_t)trust_get_u64(at), at += 8;
	token->address.family = *at++;
	size_t ip = token->address.family == 4 ? 4 : 16;
	if (token->address.family != 4 && token->address.family != 6)
		return err_set(err, ERR_INVALID, "%sfamily %u of the address is neither 4 nor 6", wrong, token->address.family);
	if (length < FIXED_BYTES + ip + 3)
		return err_set(err, ERR_INVALID, "%sit is too short", wrong);
	memcpy(token->address.ip, at, ip), at += ip;
	token->address.port = (uint16_t)(at[0] << 8 | at[1]), at += 2;
	size_t name = *at++;
	if (name > LIMIT_AGENT_NAME_BYTES || name != length - (size_t)(at - body))
		return err_set(err, ERR_INVALID, "%sits name has %zu bytes", wrong, name);
	memcpy(token->name, at, name);
	if (token->address.port == 0 || token->ends_ms < 0 || !text_is_printable(str_make(token->name, name)))
		return err_set(err, ERR_INVALID, "%sport, time or name", wrong);
	return 0;
}

static int check_prefix(struct str text, struct err *err)
{
	const struct str prefix = STR(TOKEN_PREFIX);
	if (text.length >= prefix.length && memcmp(text.at, prefix.at, prefix.length) == 0)
		return 0;
	if (text.length > 7 && memcmp(text.at, "cheops", 6) == 0 && text.at[6] >= '0' && text.at[6] <= '9')
		return err_set(err, ERR_VERSION,
		               "the token is of another version; this one reads those that begin with " TOKEN_PREFIX);
	return err_set(err, ERR_INVALID, "this is not a join token: one begins with " TOKEN_PREFIX);
}

int trust_token_read(struct str text, struct trust_token *token, struct err *err)
{
	unsigned char body[BASE64_BYTES(LIMIT_TRUST_TOKEN_BYTES)], sum[SUM_BYTES];
	struct trust_token read = {0};
	size_t length;
	int code = check_prefix(text, err);
	if (code < 0)
		return code;
	struct str digits = str_make(text.at + sizeof(TOKEN_PREFIX) - 1, text.length - (sizeof(TOKEN_PREFIX) - 1));
	if (digits.length > LIMIT_TRUST_TOKEN_BYTES || !base64_decode(BASE64_URL, digits, body, &length) ||
	    length < SUM_BYTES)
		return cut_or_mistyped(err);
	make_sum(body, length - SUM_BYTES, sum);
	code = memcmp(sum, body + length - SUM_BYTES, SUM_BYTES) == 0 ? decode(body, length - SUM_BYTES, &read, err)
	                                                              : cut_or_mistyped(err);
	OPENSSL_cleanse(body, sizeof(body));
	if (code == 0)
		*token = read;
	OPENSSL_cleanse(&read, sizeof(read));
	return code;
}
