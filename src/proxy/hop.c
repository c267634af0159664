/* The header that one agent sends to another: which service the request is for, and a proof that an agent wrote it.
 *
 *     Cheops-Hop: v1 service=<percent-encoded> from=<percent-encoded> hops=<number> mac=<32 hex digits>
 *
 * The code is the first half of HMAC-SHA-256, keyed with the secret that the agents share, over service, sender, receiver,
 * method, target and number of hops, each followed by a newline. It holds for this hop alone: another receiver, another
 * request, and it does not fit. A front ignores the header, and the port for peers takes nothing without it.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum { MAC_BYTES = 16, MAC_DIGITS = 2 * MAC_BYTES };

struct hop {
	struct str service;
	struct str from;
	struct str to;
	uint32_t hops;
	struct str method;
	struct str target;
};

/* HMAC (RFC 2104) with the key's part of the two hashes done once: what is left per request is to copy and finish them. */
struct proxy_signer {
	EVP_MD_CTX *inner;
	EVP_MD_CTX *outer;
	EVP_MD_CTX *scratch;
	struct buf text;
};

enum { BLOCK_BYTES = 64, HASH_BYTES = 32 };

static EVP_MD_CTX *start_hash(const char *key, size_t length, unsigned char pad)
{
	unsigned char block[BLOCK_BYTES];
	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < length; i++)
		block[i] ^= (unsigned char)key[i];
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	CHECK(hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1);
	CHECK(EVP_DigestUpdate(hash, block, sizeof(block)) == 1);
	OPENSSL_cleanse(block, sizeof(block));
	return hash;
}

struct proxy_signer *proxy_signer_new(const struct proxy_config *config)
{
	_Static_assert(sizeof(config->hop_key) <= BLOCK_BYTES, "a longer key would have to be hashed first");
	struct proxy_signer *signer = calloc(1, sizeof(*signer));
	CHECK(signer);
	signer->inner = start_hash(config->hop_key, sizeof(config->hop_key), 0x36);
	signer->outer = start_hash(config->hop_key, sizeof(config->hop_key), 0x5c);
	signer->scratch = EVP_MD_CTX_new();
	CHECK(signer->scratch);
	return signer;
}

void proxy_signer_free(struct proxy_signer *signer)
{
	EVP_MD_CTX_free(signer->inner);
	EVP_MD_CTX_free(signer->outer);
	EVP_MD_CTX_free(signer->scratch);
	buf_free(&signer->text);
	free(signer);
}

static void finish_hash(struct proxy_signer *signer, const EVP_MD_CTX *start, const void *bytes, size_t length,
                        unsigned char out[HASH_BYTES])
{
	CHECK(EVP_MD_CTX_copy_ex(signer->scratch, start) == 1);
	CHECK(EVP_DigestUpdate(signer->scratch, bytes, length) == 1);
	CHECK(EVP_DigestFinal_ex(signer->scratch, out, NULL) == 1);
}

static void make_code(struct proxy_signer *signer, const struct hop *hop, char out[MAC_DIGITS])
{
	unsigned char code[HASH_BYTES];
	const struct str parts[] = {hop->service, hop->from, hop->to, hop->method, hop->target};
	buf_clear(&signer->text);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		buf_put(&signer->text, parts[i]);
		buf_put_char(&signer->text, '\n');
	}
	buf_put_number(&signer->text, hop->hops, 1);
	buf_put_char(&signer->text, '\n');
	finish_hash(signer, signer->inner, signer->text.at, signer->text.length, code);
	finish_hash(signer, signer->outer, code, sizeof(code), code);
	for (size_t i = 0; i < MAC_BYTES; i++) {
		out[2 * i] = "0123456789abcdef"[code[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[code[i] & 15];
	}
}

void proxy_hop_sign(struct proxy_exchange *exchange, struct buf *out)
{
	const struct proxy_config *config = exchange->state->config;
	struct hop hop = {.service = exchange->service->name,
	                  .from = config->site,
	                  .to = exchange->peer->name,
	                  .hops = exchange->hops + 1,
	                  .method = http_method_name(exchange->method),
	                  .target = exchange->target};
	char code[MAC_DIGITS];
	make_code(exchange->state->signer, &hop, code);
	buf_put(out, STR("Cheops-Hop: v1 service="));
	proxy_percent_encode(out, hop.service);
	buf_put(out, STR(" from="));
	proxy_percent_encode(out, hop.from);
	buf_put(out, STR(" hops="));
	buf_put_number(out, hop.hops, 1);
	buf_put(out, STR(" mac="));
	buf_put(out, str_make(code, MAC_DIGITS));
	buf_put(out, STR("\r\n"));
}

/* The value of `name=` in the header; "" if it is not there. */
static struct str part_of(struct str value, const char *name)
{
	size_t length = strlen(name);
	for (size_t at = 0; at + length < value.length; at++) {
		if ((at > 0 && value.at[at - 1] != ' ') || memcmp(value.at + at, name, length) != 0)
			continue;
		size_t start = at + length, end = start;
		while (end < value.length && value.at[end] != ' ')
			end++;
		return str_make(value.at + start, end - start);
	}
	return STR("");
}

static bool read_hop(struct proxy_exchange *exchange, struct str value, struct hop *hop)
{
	struct str hops = part_of(value, "hops=");
	if (value.length < 3 || memcmp(value.at, "v1 ", 3) != 0 || hops.length == 0 || hops.length > 3)
		return false;
	for (size_t i = 0; i < hops.length; i++) {
		if (hops.at[i] < '0' || hops.at[i] > '9')
			return false;
		hop->hops = hop->hops * 10 + (uint32_t)(hops.at[i] - '0');
	}
	return proxy_percent_decode(&exchange->arena, part_of(value, "service="), &hop->service) &&
	       proxy_percent_decode(&exchange->arena, part_of(value, "from="), &hop->from);
}

static int refuse_stranger(struct proxy_exchange *exchange)
{
	proxy_count(&exchange->proxy->counters.forged_hops, 1);
	struct proxy_problem problem = {.status = 403,
	                                .type = "not-a-peer",
	                                .title = "Only agents may connect here",
	                                .error = "http_request_denied",
	                                .close = true};
	proxy_problem(exchange, &problem,
	              "this port is for other agents; the request does not carry a hop header that one of them "
	              "made for %.*s (is the hop key the same everywhere?)",
	              STR_FMT(exchange->state->config->site));
	return -1;
}

static int find_service(struct proxy_exchange *exchange, const struct hop *hop)
{
	const struct proxy_config *config = exchange->state->config;
	for (uint32_t i = 0; i < config->services_count; i++) {
		if (str_equal(config->services[i].name, hop->service)) {
			exchange->service = &config->services[i];
			return 0;
		}
	}
	struct proxy_problem problem = {.status = 503,
	                                .type = "no-instance",
	                                .title = "The service is not there",
	                                .error = "destination_not_found",
	                                .site = config->site};
	proxy_problem(exchange, &problem, "%.*s has no service %.*s", STR_FMT(config->site), STR_FMT(hop->service));
	return -1;
}

int proxy_hop_check(struct proxy_exchange *exchange, struct http_head *head)
{
	const struct proxy_config *config = exchange->state->config;
	struct http_field *field = http_find(head, HTTP_FIELD_CHEOPS_HOP);
	struct hop hop = {.to = config->site, .method = http_method_name(head->method), .target = http_target(head)};
	char code[MAC_DIGITS];
	if (!field || !read_hop(exchange, http_field_value(head, field), &hop))
		return refuse_stranger(exchange);
	struct str given = part_of(http_field_value(head, field), "mac=");
	make_code(exchange->state->signer, &hop, code);
	if (given.length != MAC_DIGITS || CRYPTO_memcmp(given.at, code, MAC_DIGITS) != 0)
		return refuse_stranger(exchange);
	field->dropped = true;
	exchange->hops = hop.hops;
	proxy_count(&exchange->proxy->counters.from_peers, 1);
	if (hop.hops > PROXY_HOPS_MOST) {
		proxy_count(&exchange->proxy->counters.loops, 1);
		struct proxy_problem problem = {.status = 508,
		                                .type = "loop",
		                                .title = "The request goes round in a loop",
		                                .error = "proxy_loop_detected",
		                                .site = config->site};
		proxy_problem(exchange, &problem, "the request has been passed on between sites %u times", hop.hops);
		return -1;
	}
	return find_service(exchange, &hop);
}
