#include "login.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "fields.h"
#include "limits.h"
#include "memory.h"

#define SCHEME "Bearer "
#define ON_BEHALF "X-On-Behalf-Of"
#define AGENT "agent"                                 /* may ask on behalf of others */
#define HEADER "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" /* {"alg":"HS256","typ":"JWT"}: no other is taken */

enum { KEY_BYTES_MIN = 16, KEY_BYTES_MAX = 4096 };

struct login {
	unsigned char key[KEY_BYTES_MAX];
	size_t key_bytes;
};

/* ---- the key ------------------------------------------------------------------------------------------------------ */

struct login *login_open(const char *path)
{
	struct login *login = NEW(struct login);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, login->key, sizeof(login->key));
	if (count < 0)
		fprintf(stderr, "cheops-sample: cannot read the key %s: %s\n", path, strerror(errno));
	else if (count < KEY_BYTES_MIN)
		fprintf(stderr, "cheops-sample: the key %s has %zd bytes; it must have %d\n", path, count, KEY_BYTES_MIN);
	if (fd >= 0)
		close(fd);
	if (count >= KEY_BYTES_MIN) {
		login->key_bytes = (size_t)count;
		return login;
	}
	login_close(login);
	return NULL;
}

void login_close(struct login *login)
{
	if (login == NULL)
		return;
	OPENSSL_cleanse(login->key, sizeof(login->key));
	free(login);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------- */

/* base64url without padding (RFC 4648, 5). The caller frees. */
static char *encode(const unsigned char *bytes, size_t length)
{
	char *text = need(malloc(4 * ((length + 2) / 3) + 1));
	EVP_EncodeBlock((unsigned char *)text, bytes, (int)length);
	text[strcspn(text, "=")] = '\0';
	for (char *at = text; *at != '\0'; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
	return text;
}

/* And back: NULL if it is none. The caller frees; there is a NUL behind it. */
static char *decode(const char *text, size_t length)
{
	size_t padded = (length + 3) / 4 * 4;
	unsigned char *copy = need(calloc(1, padded + 1)), *bytes = need(calloc(1, padded + 1));
	memset(copy, '=', padded);
	for (size_t i = 0; i < length; i++)
		copy[i] = (unsigned char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
	bool good = EVP_DecodeBlock(bytes, copy, (int)padded) >= 0;
	free(copy);
	if (!good)
		free(bytes);
	return good ? (char *)bytes : NULL;
}

static char *mac_of(const struct login *login, const char *text, size_t length)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned count = 0;
	need(HMAC(EVP_sha256(), login->key, (int)login->key_bytes, (const unsigned char *)text, length, bytes, &count));
	return encode(bytes, count);
}

/* Names that can stand in a token and in a header. */
static bool is_user(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-@";
	size_t length = strspn(name, letters);
	return length > 0 && length <= LIMIT_NAME_BYTES && name[length] == '\0';
}

struct reply login_post(struct request *request)
{
	const struct login *login = request->options->login;
	if (login == NULL)
		return reply_error(404, "tokens are not asked for here; see --token-key");
	struct reply refusal;
	const char *user = field_text(request->json, "user", LIMIT_NAME_BYTES, &refusal);
	if (user == NULL)
		return refusal;
	json_t *seconds = json_object_get(request->json, "seconds");
	if (!is_user(user))
		return reply_error(400, "\"user\" must be made of letters, digits, '_', '-' and '@'");
	if (!json_is_integer(seconds) || json_integer_value(seconds) < 0 || json_integer_value(seconds) > LIMIT_TOKEN_S)
		return reply_error(400, "\"seconds\" must be a number from 0 to %d", LIMIT_TOKEN_S);
	long long until = (long long)time(NULL) + json_integer_value(seconds);
	char *claims = text_of("{\"sub\":\"%s\",\"exp\":%lld}", user, until);
	char *body = encode((const unsigned char *)claims, strlen(claims));
	char *said = text_of("%s.%s", HEADER, body);
	char *mac = mac_of(login, said, strlen(said));
	struct reply reply = reply_json(
		201, json_pack("{s:o, s:I}", "token", need(json_sprintf("%s.%s", said, mac)), "expires", (json_int_t)until));
	free(mac);
	free(said);
	free(body);
	free(claims);
	return reply;
}

/* What a token that is ours says. */
static const char *fault_of_claims(const char *text, char **user)
{
	json_t *claims = text == NULL ? NULL : json_loads(text, 0, NULL);
	const char *sub = json_string_value(json_object_get(claims, "sub"));
	json_t *until = json_object_get(claims, "exp");
	const char *fault = NULL;
	if (sub == NULL || !json_is_integer(until))
		fault = "the token says nothing";
	else if (json_integer_value(until) <= (json_int_t)time(NULL))
		fault = "the token has expired";
	else
		*user = text_of("%s", sub);
	json_decref(claims);
	return fault;
}

/* What is wrong with a token; NULL if nothing is, and then `*user` is whose it is, for the caller to free. */
static const char *fault_of(const struct login *login, const char *token, char **user)
{
	static const char ours[] = "the token is not one of ours";
	const char *last = strrchr(token, '.');
	size_t before = strlen(HEADER);
	if (last == NULL || strncmp(token, HEADER, before) != 0 || token + before >= last || token[before] != '.')
		return ours;
	char *mac = mac_of(login, token, (size_t)(last - token));
	bool same = strlen(last + 1) == strlen(mac) && CRYPTO_memcmp(mac, last + 1, strlen(mac)) == 0;
	free(mac);
	if (!same)
		return ours;
	char *claims = decode(token + before + 1, (size_t)(last - (token + before + 1)));
	const char *fault = fault_of_claims(claims, user);
	free(claims);
	return fault;
}

static void refuse(struct request *request, const char *fault)
{
	struct reply refusal = reply_error(401, "%s; POST /tokens gives one", fault);
	refusal.header_name = "WWW-Authenticate";
	refusal.header_value = text_of("Bearer error=\"invalid_token\"");
	request_refuse(request, refusal);
}

static void take_user(struct request *request, char *user)
{
	const char *other = request_header(request, ON_BEHALF);
	if (other != NULL && (strcmp(user, AGENT) != 0 || !is_user(other)))
		request_refuse(request, reply_error(403, "%s may not ask on behalf of others, or not of this one", user));
	request->user = other == NULL ? user : text_of("%s", other);
	if (other != NULL)
		free(user);
}

void login_check(struct request *request)
{
	const struct login *login = request->options->login;
	if (login == NULL || request->route == NULL || request->route->open)
		return;
	const char *header = request_header(request, "Authorization");
	char *user = NULL;
	const char *fault = "there is no token";
	if (header != NULL && strncasecmp(header, SCHEME, strlen(SCHEME)) == 0)
		fault = fault_of(login, header + strlen(SCHEME), &user);
	if (fault != NULL)
		refuse(request, fault);
	else
		take_user(request, user);
}
