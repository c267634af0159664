/* Who may say what a record says: the check behind struct site_host's verify().
 *
 * 1. A card speaks for the site whose key signed it: its certificate holds under a trusted root, is for the record's
 *    subject and for the name on the card.
 * 2. Removals and roots speak for the authority: the root that they name is trusted, and its key signed them.
 *
 * A record that fails is not kept and not passed on. That a card says "authority" proves nothing and gives no right: it
 * tells others whom to ask, and what that site signs is checked like everything else.
 */
#include "trust/trust_int.h"

#include "base/arena.h"

/* Others will send datagrams there: not to everybody at once, and not to nowhere. */
static bool is_one_host(const struct site_address *address)
{
	static const uint8_t none[16], all[4] = {255, 255, 255, 255};
	size_t bytes = address->family == 4 ? 4 : 16;
	bool many =
		address->family == 4 ? address->ip[0] >> 4 == 14 || memcmp(address->ip, all, 4) == 0 : address->ip[0] == 0xff;
	return (address->family == 4 || address->family == 6) && address->port != 0 && !many &&
	       memcmp(address->ip, none, bytes) != 0;
}

/* Does the card say what its certificate says? */
static int compare_card(const struct site_record *record, const struct site_card *card,
                        const struct trust_certificate *certificate, struct err *err)
{
	if (certificate->id != record->subject)
		return err_set(err, ERR_INVALID, "the card is of another key than its certificate");
	if (!str_equal(card->name, str_of(certificate->name)))
		return err_set(err, ERR_INVALID, "the name on the card is not that in its certificate, %s", certificate->name);
	if (card->address.family != 0 && !is_one_host(&card->address))
		return err_set(err, ERR_INVALID, "the card of %s has an address that is not of one host", certificate->name);
	return 0;
}

static int check_card(const struct trust_roots *roots, const struct site_record *record, struct arena *arena,
                      int64_t now_ms, struct err *err)
{
	struct site_card card;
	struct trust_certificate certificate;
	struct err own;
	int code = site_card_parse(arena, record->body, &card, err);
	if (code < 0)
		return code;
	X509 *x509 = trust_check_x509(roots, card.certificate, now_ms, &certificate, &own);
	if (!x509)
		return err_set(err, own.code, "%s", own.text);
	code = compare_card(record, &card, &certificate, err);
	if (code == 0 && !trust_verify_with(X509_get0_pubkey(x509), record->signed_bytes, record->signature))
		code = err_set(err, ERR_INVALID, "the card is not signed with the key of %s", certificate.name);
	X509_free(x509);
	return code;
}

static int check_signer(const struct trust_roots *roots, const struct site_record *record, site_id signer,
                        struct err *err)
{
	struct str root = trust_roots_find(roots, signer);
	if (root.length == 0)
		return err_set(err, ERR_INVALID, "the record is signed by root %016llx, which is not trusted here",
		               (unsigned long long)signer);
	if (!trust_verify(root, record->signed_bytes, record->signature))
		return err_set(err, ERR_INVALID, "the record is not signed with the key of the root that it names");
	return 0;
}

static int check_removal(const struct trust_roots *roots, const struct site_record *record, struct err *err)
{
	struct site_removal removal;
	int code = site_removal_parse(record->body, &removal, err);
	return code < 0 ? code : check_signer(roots, record, removal.signer, err);
}

static int check_root(const struct trust_roots *roots, const struct site_record *record, struct err *err)
{
	struct site_root root;
	struct trust_certificate certificate;
	int code = site_root_parse(record->body, &root, err);
	if (code == 0)
		code = trust_root_read(root.certificate, &certificate, err);
	if (code)
		return code;
	if (certificate.id != record->subject)
		return err_set(err, ERR_INVALID, "the record is of another root than its certificate");
	return check_signer(roots, record, root.signer, err);
}

bool trust_check_record(const struct trust_roots *roots, const struct site_record *record, int64_t now_ms,
                        struct err *err)
{
	struct arena arena;
	int code = ERR_VERSION;
	arena_init(&arena, 0);
	if (record->subject == 0)
		code = err_set(err, ERR_INVALID, "the record is of nobody");
	else if (record->kind == SITE_CARD)
		code = check_card(roots, record, &arena, now_ms, err);
	else if (record->kind == SITE_REMOVAL)
		code = check_removal(roots, record, err);
	else if (record->kind == SITE_ROOT)
		code = check_root(roots, record, err);
	else
		err_set(err, ERR_VERSION, "a record of kind %u is not known here", record->kind);
	arena_free(&arena);
	return code == 0;
}
