/* Any bytes as what a stranger, a file or a person hands over: a certificate, a request, a token, PEM, a name. The
 * first byte says as what. Nothing is taken in part: a refusal has a text, and what is read can be written again. */
#include "trust_fuzz.h"

#include "base/text.h"

#include <openssl/err.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_result(int code, const struct err *err)
{
	CHECK((code == 0 && err->code == 0) || (code < 0 && err->code == code && err->text[0] != '\0'));
	CHECK(text_is_printable(str_of(err->text)));
	CHECK(ERR_peek_error() == 0);
}

static void check_name(const char *name)
{
	CHECK(*name != '\0' && strlen(name) <= LIMIT_AGENT_NAME_BYTES && text_is_printable(str_of(name)));
}

static void try_certificate(struct str bytes)
{
	const struct fuzz_holder *holders = fuzz_holders();
	struct trust_certificate certificate;
	struct trust_roots *roots = trust_roots_new();
	struct err err = {0};
	int code = trust_certificate_read(bytes, &certificate, &err);
	check_result(code, &err);
	if (code == 0)
		check_name(certificate.name);
	CHECK(trust_roots_add(roots, buf_str(&holders[FUZZ_ROOT].der), NULL) == 0);
	err = (struct err){0};
	check_result(trust_check(roots, bytes, FUZZ_NOW_MS, &certificate, &err), &err);
	err = (struct err){0};
	check_result(trust_roots_add(roots, bytes, &err), &err);
	trust_verify(bytes, STR("text"), STR("signature"));
	trust_roots_free(roots);
}

static void try_request(struct str bytes)
{
	const struct fuzz_holder *root = &fuzz_holders()[FUZZ_ROOT];
	char name[LIMIT_AGENT_NAME_BYTES + 1];
	site_id id;
	struct buf der = {0};
	struct trust_certificate certificate;
	struct err err = {0};
	int code = trust_request_read(bytes, name, &id, &err);
	check_result(code, &err);
	int other = trust_request_sign(bytes, root->key, buf_str(&root->der), FUZZ_NOW_MS, FUZZ_DAY_MS, &der, NULL);
	CHECK(code == other && (code == 0) == (der.length > 0));
	if (code == 0) {
		check_name(name);
		CHECK(trust_certificate_read(buf_str(&der), &certificate, NULL) == 0);
		CHECK(certificate.id == id && strcmp(certificate.name, name) == 0 && !certificate.root);
	}
	buf_free(&der);
}

/* There is one text of each token. */
static void try_token(struct str text)
{
	struct trust_token token;
	struct buf again = {0};
	struct err err = {0};
	int code = trust_token_read(text, &token, &err);
	check_result(code, &err);
	if (code == 0) {
		CHECK(text_is_printable(str_of(token.name)) && token.ends_ms >= 0);
		trust_token_write(&token, &again);
		CHECK(str_equal(buf_str(&again), text));
	}
	buf_free(&again);
}

/* The bytes of a token, with a right sum. */
static void try_token_body(struct str body)
{
	struct buf text = {0};
	if (body.length > 240)
		return;
	trust_token_write_body((const unsigned char *)body.at, body.length, &text);
	try_token(buf_str(&text));
	buf_free(&text);
}

static void see(void *context, struct str der)
{
	(void)context;
	CHECK(der.length <= LIMIT_TRUST_FILE_BYTES);
}

static void try_pem(struct str text)
{
	struct trust_key *key = NULL;
	struct err err = {0};
	check_result(trust_pem_each(text, see, NULL, &err), &err);
	err = (struct err){0};
	int code = trust_key_read(&key, text, &err);
	check_result(code, &err);
	if (code == 0)
		trust_key_free(key);
}

static void try_uri(struct str uri)
{
	char name[LIMIT_AGENT_NAME_BYTES + 1];
	struct buf again = {0};
	struct err err = {0};
	int code = trust_uri_read(uri, name, &err);
	check_result(code, &err);
	if (code == 0) {
		check_name(name);
		trust_uri_write(&again, str_of(name));
		CHECK(str_equal(buf_str(&again), uri));
	}
	buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct str bytes) = {try_certificate, try_request, try_token,
	                                                  try_token_body,  try_pem,     try_uri};
	if (size > 0)
		tries[data[0] % (sizeof(tries) / sizeof(tries[0]))](str_make((const char *)data + 1, size - 1));
	return 0;
}
