#include "trust_test.h"

struct world {
	struct holder root, other, site, second;
	struct trust_roots *roots;
	struct buf bytes; /* the record of the moment */
};

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	world->root = make_root("first");
	world->other = make_root("second");
	world->site = make_site(&world->root, "Site1");
	world->second = make_site(&world->root, "Site2");
	world->roots = roots_of(&world->root, NULL);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	free_holder(&world->root);
	free_holder(&world->other);
	free_holder(&world->site);
	free_holder(&world->second);
	trust_roots_free(world->roots);
	buf_free(&world->bytes);
	free(world);
	return 0;
}

static bool accepted(struct world *world, int64_t now_ms, struct err *err)
{
	struct site_record record;
	assert_int_equal(site_record_parse(buf_str(&world->bytes), &record, err), 0);
	*err = (struct err){0};
	return trust_check_record(world->roots, &record, now_ms, err);
}

#define assert_record_refused(world, part)                                                                             \
	do {                                                                                                               \
		struct err refused_;                                                                                           \
		assert_refused(accepted(world, NOW_MS, &refused_) ? 0 : refused_.code, refused_, part);                        \
	} while (0)

static void assert_accepted(struct world *world)
{
	struct err err;
	bool good = accepted(world, NOW_MS, &err);
	assert_string_equal(err.text, "");
	assert_true(good);
}

static void sign_body(struct world *world, uint8_t kind, site_id subject, const struct buf *body,
                      const struct trust_key *key)
{
	struct buf signature = {0};
	buf_clear(&world->bytes);
	site_record_begin(&world->bytes, kind, subject, 1, buf_str(body));
	trust_sign(key, buf_str(&world->bytes), &signature);
	site_record_finish(&world->bytes, buf_str(&signature));
	buf_free(&signature);
}

/* A card of `site`, as said by `key`. */
static void make_card(struct world *world, const struct holder *site, site_id subject, const char *name,
                      struct site_address address, const struct trust_key *key)
{
	struct buf body = {0};
	struct err err;
	struct site_card card = {
		.name = str_of(name), .address = address, .version = STR("1.0"), .certificate = buf_str(&site->der)};
	assert_int_equal(site_card_encode(&body, &card, &err), 0);
	sign_body(world, SITE_CARD, subject, &body, key);
	buf_free(&body);
}

static const struct site_address address = {.family = 4, .ip = {192, 0, 2, 7}, .port = 7946};

static void a_site_speaks_for_itself(void **state)
{
	struct world *world = *state;
	struct err err;
	make_card(world, &world->site, id_of(&world->site), "Site1", address, world->site.key);
	assert_accepted(world);
	assert_false(accepted(world, NOW_MS + 31 * DAY_MS, &err));
	assert_non_null(strstr(err.text, "ended"));
	assert_true(trust_roots_remove(world->roots, id_of(&world->root)));
	assert_record_refused(world, "no root");
}

static void nobody_speaks_for_another(void **state)
{
	struct world *world = *state;
	site_id first = id_of(&world->site);
	make_card(world, &world->site, first, "Site1", address, world->second.key);
	assert_record_refused(world, "not signed with the key of Site1");
	make_card(world, &world->site, first, "Site1", address, world->root.key); /* also not the authority */
	assert_record_refused(world, "not signed with the key of Site1");
	make_card(world, &world->second, first, "Site1", address, world->second.key);
	assert_record_refused(world, "another key than its certificate");
	make_card(world, &world->second, id_of(&world->second), "Site1", address, world->second.key);
	assert_record_refused(world, "not that in its certificate, Site2");
	make_card(world, &world->root, id_of(&world->root), "first", address, world->root.key);
	assert_record_refused(world, "not of a site");
}

static void a_changed_byte_is_noticed(void **state)
{
	struct world *world = *state;
	struct site_record record;
	make_card(world, &world->site, id_of(&world->site), "Site1", address, world->site.key);
	for (size_t i = 0; i < world->bytes.length; i++) {
		struct err err;
		world->bytes.at[i] = (char)(world->bytes.at[i] ^ 1);
		assert_true(site_record_parse(buf_str(&world->bytes), &record, &err) < 0 ||
		            !trust_check_record(world->roots, &record, NOW_MS, &err));
		world->bytes.at[i] = (char)(world->bytes.at[i] ^ 1);
	}
	assert_accepted(world);
}

static void an_address_is_of_one_host(void **state)
{
	struct world *world = *state;
	static const struct site_address bad[] = {
		{.family = 4, .ip = {192, 0, 2, 7}},
		{.family = 4, .port = 1},
		{.family = 4, .ip = {255, 255, 255, 255}, .port = 1},
		{.family = 4, .ip = {224, 0, 0, 1}, .port = 1},
		{.family = 6, .port = 1},
		{.family = 6, .ip = {0xff, 2}, .port = 1},
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct site_record record;
		struct err err;
		make_card(world, &world->site, id_of(&world->site), "Site1", bad[i], world->site.key);
		assert_true(site_record_parse(buf_str(&world->bytes), &record, &err) < 0 ||
		            !trust_check_record(world->roots, &record, NOW_MS, &err));
	}
}

static void make_removal(struct world *world, const struct holder *signer, const struct trust_key *key)
{
	struct buf body = {0};
	site_removal_encode(
		&body,
		&(struct site_removal){.kind = SITE_REVOKE, .name = STR("Site1"), .signer = id_of(signer), .wall_ms = NOW_MS});
	sign_body(world, SITE_REMOVAL, id_of(&world->site), &body, key);
	buf_free(&body);
}

static void only_the_authority_removes(void **state)
{
	struct world *world = *state;
	make_removal(world, &world->root, world->root.key);
	assert_accepted(world);
	make_removal(world, &world->root, world->second.key);
	assert_record_refused(world, "not signed with the key of the root");
	make_removal(world, &world->other, world->other.key);
	assert_record_refused(world, "which is not trusted");
	make_removal(world, &world->second, world->second.key);
	assert_record_refused(world, "which is not trusted");
}

static void make_root_record(struct world *world, const struct holder *root, site_id subject,
                             const struct holder *signer)
{
	struct buf body = {0};
	site_root_encode(&body,
	                 &(struct site_root){.trusted = true, .certificate = buf_str(&root->der), .signer = id_of(signer)});
	sign_body(world, SITE_ROOT, subject, &body, signer->key);
	buf_free(&body);
}

static void a_root_is_brought_in_by_one_that_is_trusted(void **state)
{
	struct world *world = *state;
	make_root_record(world, &world->other, id_of(&world->other), &world->root);
	assert_accepted(world);
	make_root_record(world, &world->other, id_of(&world->other), &world->other);
	assert_record_refused(world, "which is not trusted");
	make_root_record(world, &world->other, id_of(&world->second), &world->root);
	assert_record_refused(world, "another root");
	make_root_record(world, &world->site, id_of(&world->site), &world->root);
	assert_record_refused(world, "not that of an authority");
}

static void unknown_kinds_are_refused(void **state)
{
	struct world *world = *state;
	struct site_record record = {.kind = SITE_RECORD_KINDS, .subject = 1};
	struct err err;
	assert_false(trust_check_record(world->roots, &record, NOW_MS, &err));
	assert_int_equal(err.code, ERR_VERSION);
	record = (struct site_record){.kind = SITE_CARD};
	assert_false(trust_check_record(world->roots, &record, NOW_MS, &err));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_site_speaks_for_itself),   TEST(nobody_speaks_for_another),
		TEST(a_changed_byte_is_noticed),  TEST(an_address_is_of_one_host),
		TEST(only_the_authority_removes), TEST(a_root_is_brought_in_by_one_that_is_trusted),
		TEST(unknown_kinds_are_refused),
	};
	return cmocka_run_group_tests_name("trust record", tests, NULL, NULL);
}
