/* The trusted roots, and whether a certificate holds under them.
 *
 * A chain is a site's certificate and one root, nothing in between: a root may itself be signed by somebody (an
 * operator's intermediate authority), but that is not looked at. It is trusted because it is in the list.
 */
#include "trust/trust_int.h"

#include "base/timestamp.h"

#include <openssl/err.h>
#include <stdlib.h>

struct root {
	X509 *x509;
	struct buf der;
	struct trust_certificate certificate;
};

struct trust_roots {
	struct root list[LIMIT_TRUST_ROOTS];
	uint32_t count;
};

struct trust_roots *trust_roots_new(void)
{
	struct trust_roots *roots = calloc(1, sizeof(*roots));
	CHECK(roots);
	return roots;
}

static void free_root(struct root *root)
{
	X509_free(root->x509);
	buf_free(&root->der);
}

void trust_roots_free(struct trust_roots *roots)
{
	if (!roots)
		return;
	for (uint32_t i = 0; i < roots->count; i++)
		free_root(&roots->list[i]);
	free(roots);
}

static struct root *find_root(const struct trust_roots *roots, site_id id)
{
	for (uint32_t i = 0; i < roots->count; i++)
		if (roots->list[i].certificate.id == id)
			return (struct root *)&roots->list[i];
	return NULL;
}

static int read_root(struct root *root, struct str der, struct err *err)
{
	struct err own;
	root->x509 = trust_x509_parse(der, &own);
	if (!root->x509)
		return err_set(err, own.code, "%s", own.text);
	int code = trust_x509_check_root(root->x509, err);
	if (code == 0)
		code = trust_x509_read(root->x509, der, &root->certificate, err);
	ERR_clear_error();
	if (code < 0) {
		X509_free(root->x509);
		return code;
	}
	buf_put(&root->der, der);
	return 0;
}

int trust_root_read(struct str der, struct trust_certificate *certificate, struct err *err)
{
	struct root root = {0};
	int code = read_root(&root, der, err);
	if (code < 0)
		return code;
	*certificate = root.certificate;
	free_root(&root);
	return 0;
}

int trust_roots_add(struct trust_roots *roots, struct str der, struct err *err)
{
	struct root root = {0};
	int code = read_root(&root, der, err);
	if (code < 0)
		return code;
	struct root *same = find_root(roots, root.certificate.id);
	if (same) {
		free_root(same);
		*same = root;
		return 0;
	}
	if (roots->count == LIMIT_TRUST_ROOTS) {
		free_root(&root);
		return err_set(err, ERR_LIMIT, "%d roots are trusted already; no longer trust one of them first",
		               (int)LIMIT_TRUST_ROOTS);
	}
	roots->list[roots->count++] = root;
	return 0;
}

bool trust_roots_remove(struct trust_roots *roots, site_id id)
{
	struct root *root = find_root(roots, id);
	if (!root)
		return false;
	free_root(root);
	struct root *end = &roots->list[--roots->count];
	memmove(root, root + 1, (size_t)((char *)end - (char *)root));
	*end = (struct root){0};
	return true;
}

uint32_t trust_roots_count(const struct trust_roots *roots)
{
	return roots->count;
}

struct str trust_roots_at(const struct trust_roots *roots, uint32_t n)
{
	CHECK(n < roots->count);
	return buf_str(&roots->list[n].der);
}

struct str trust_roots_find(const struct trust_roots *roots, site_id id)
{
	const struct root *root = find_root(roots, id);
	return root ? buf_str(&root->der) : STR("");
}

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

static int check_time(const struct trust_certificate *certificate, const char *what, int64_t now_ms, struct err *err)
{
	bool early = now_ms<certificate->from_ms, late = now_ms> certificate->to_ms;
	if (!early && !late)
		return 0;
	char edge[TIMESTAMP_BYTES], now[TIMESTAMP_BYTES];
	timestamp_format(early ? certificate->from_ms : certificate->to_ms, edge);
	timestamp_format(now_ms, now);
	return err_set(err, ERR_INVALID, "%s of %s %s %s, and now it is %s%s", what, certificate->name,
	               early ? "is not valid before" : "ended", edge, now, early ? " (is this clock right?)" : "");
}

static int check_use(X509 *x509, const struct trust_certificate *certificate, struct err *err)
{
	if (certificate->root)
		return err_set(err, ERR_INVALID, "the certificate of %s is that of an authority, not of a site",
		               certificate->name);
	uint32_t use = X509_get_extended_key_usage(x509); /* all bits are set where there is no such extension */
	bool both = use != UINT32_MAX && (use & XKU_SSL_SERVER) && (use & XKU_SSL_CLIENT);
	if (!both || !(X509_get_key_usage(x509) & KU_DIGITAL_SIGNATURE))
		return err_set(err, ERR_INVALID,
		               "the certificate of %s is not for both ends of a connection (serverAuth, clientAuth)",
		               certificate->name);
	return 0;
}

/* The root that signed it. Two roots may have one name while one replaces the other: so all are tried. */
static const struct root *find_signer(const struct trust_roots *roots, X509 *x509)
{
	int strength = 0;
	if (X509_get_signature_info(x509, NULL, NULL, &strength, NULL) != 1 || strength < 112)
		return NULL;
	for (uint32_t i = 0; i < roots->count; i++) {
		const struct root *root = &roots->list[i];
		if (X509_NAME_cmp(X509_get_issuer_name(x509), X509_get_subject_name(root->x509)) == 0 &&
		    X509_verify(x509, X509_get0_pubkey(root->x509)) == 1)
			return root;
	}
	return NULL;
}

static int check_x509(const struct trust_roots *roots, X509 *x509, struct str der, int64_t now_ms,
                      struct trust_certificate *certificate, struct err *err)
{
	int code = trust_x509_read(x509, der, certificate, err);
	if (code == 0)
		code = check_use(x509, certificate, err);
	if (code < 0)
		return code;
	const struct root *root = find_signer(roots, x509);
	if (!root)
		return err_set(err, ERR_INVALID, "the certificate of %s is signed by no root that is trusted here",
		               certificate->name);
	code = check_time(certificate, "the certificate", now_ms, err);
	return code < 0 ? code : check_time(&root->certificate, "the root", now_ms, err);
}

X509 *trust_check_x509(const struct trust_roots *roots, struct str der, int64_t now_ms,
                       struct trust_certificate *certificate, struct err *err)
{
	X509 *x509 = trust_x509_parse(der, err);
	if (x509 && check_x509(roots, x509, der, now_ms, certificate, err) < 0) {
		X509_free(x509);
		x509 = NULL;
	}
	ERR_clear_error();
	return x509;
}

int trust_check(const struct trust_roots *roots, struct str der, int64_t now_ms, struct trust_certificate *certificate,
                struct err *err)
{
	struct err own;
	struct trust_certificate scratch;
	X509 *x509 = trust_check_x509(roots, der, now_ms, certificate ? certificate : &scratch, &own);
	X509_free(x509);
	return x509 ? 0 : err_set(err, own.code, "%s", own.text);
}
