/* Identities in a folder: made, loaded, and refused with a complaint that names the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/identity.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t NOW_MS = INT64_C(1790000000000), DAY_MS = INT64_C(86400000);

static char place[64];
static struct buf folder, other;

static int make_place(void **state)
{
	(void)state;
	snprintf(place, sizeof(place), "/tmp/cheops-identity-XXXXXX");
	if (mkdtemp(place) == NULL)
		return -1;
	buf_printf(&folder, "%s/state", place);
	buf_printf(&other, "%s/other", place);
	return 0;
}

static void empty(const char *path)
{
	DIR *dir = opendir(path);
	for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int drop_place(void **state)
{
	(void)state;
	empty(buf_c(&folder));
	empty(buf_c(&other));
	empty(place);
	buf_free(&folder);
	buf_free(&other);
	return 0;
}

static int init_at(const char *where, const char *site, struct err *err)
{
	struct agent_init init = {
		.folder = where, .site = str_of(site), .now_ms = NOW_MS, .lifetime_ms = AGENT_LIFETIME_DAYS * DAY_MS};
	return agent_identity_init(&init, err);
}

static void make_first(void)
{
	struct err err = {0};
	if (init_at(buf_c(&folder), "Site1", &err) != 0)
		fail_msg("%s", err.text);
}

static struct agent_identity *load(void)
{
	struct agent_identity *identity;
	struct err err = {0};
	if (agent_identity_load(buf_c(&folder), &identity, &err) != 0)
		fail_msg("%s", err.text);
	return identity;
}

static void path_in(char path[200], const char *where, const char *name)
{
	snprintf(path, 200, "%s/%s", where, name);
}

static unsigned mode_of(const char *name)
{
	char path[200];
	struct stat about;
	path_in(path, buf_c(&folder), name);
	assert_int_equal(stat(path, &about), 0);
	return about.st_mode & 0777;
}

static void copy(const char *from_folder, const char *from, const char *to)
{
	char path[200];
	struct buf bytes = {0};
	struct err err = {0};
	path_in(path, from_folder, from);
	assert_int_equal(agent_file_read(path, 1 << 16, &bytes, &err), 0);
	bool secret = strstr(to, ".key") != NULL;
	assert_int_equal(agent_file_write(buf_c(&folder), to, buf_str(&bytes), secret, &err), 0);
	buf_free(&bytes);
}

static void overwrite(const char *name, struct str bytes)
{
	struct err err = {0};
	assert_int_equal(agent_file_write(buf_c(&folder), name, bytes, strstr(name, ".key") != NULL, &err), 0);
}

static void drop_file(const char *name)
{
	char path[200];
	path_in(path, buf_c(&folder), name);
	assert_int_equal(unlink(path), 0);
}

/* ---- Made and loaded --------------------------------------------------------------------------------------------- */

static void the_first_site_has_everything(void **state)
{
	(void)state;
	make_first();
	struct agent_identity *identity = load();
	assert_string_equal(identity->about.name, "Site1");
	assert_false(identity->about.root);
	assert_true(identity->about.id == trust_key_id(identity->key) && identity->about.id != 0);
	assert_int_equal(trust_roots_count(identity->roots), 1);
	assert_non_null(identity->root_key);
	assert_int_equal(identity->born_ms, NOW_MS);
	assert_int_equal(identity->lifetime_ms, AGENT_LIFETIME_DAYS * DAY_MS);
	assert_int_equal(identity->about.to_ms, NOW_MS + AGENT_LIFETIME_DAYS * DAY_MS);
	struct trust_certificate about;
	struct err err = {0};
	assert_int_equal(trust_check(identity->roots, buf_str(&identity->certificate), NOW_MS, &about, &err), 0);
	agent_identity_free(identity);
}

static void keys_are_for_their_owner(void **state)
{
	(void)state;
	mode_t before = umask(0);
	make_first();
	umask(before);
	struct stat about;
	assert_int_equal(stat(buf_c(&folder), &about), 0);
	assert_int_equal(about.st_mode & 0777, 0700);
	assert_int_equal(mode_of("site.key"), 0600);
	assert_int_equal(mode_of("root.key"), 0600);
	assert_int_equal(mode_of("site.crt"), 0644);
	assert_int_equal(mode_of("roots.pem"), 0644);
}

static void an_identity_is_never_overwritten(void **state)
{
	(void)state;
	make_first();
	struct agent_identity *before = load();
	struct err err = {0};
	assert_int_equal(init_at(buf_c(&folder), "Site9", &err), ERR_CONFLICT);
	assert_non_null(strstr(err.text, "Site1"));
	assert_int_equal(
		agent_identity_store(buf_c(&folder), before->key, buf_str(&before->certificate), STR("x"), 1, &err),
		ERR_CONFLICT);
	struct agent_identity *after = load();
	assert_true(before->about.id == after->about.id);
	agent_identity_free(before);
	agent_identity_free(after);
}

/* The certificate comes last: without it, a start that was cut short is begun anew. */
static void what_was_cut_short_is_begun_anew(void **state)
{
	(void)state;
	make_first();
	drop_file("site.crt");
	struct agent_identity *identity;
	struct err err = {0};
	assert_int_equal(agent_identity_load(buf_c(&folder), &identity, &err), ERR_NOT_FOUND);
	make_first();
	agent_identity_free(load());
}

static void a_folder_without_identity_says_what_to_do(void **state)
{
	(void)state;
	struct agent_identity *identity;
	struct err err = {0};
	assert_false(agent_identity_exists(buf_c(&folder)));
	assert_int_equal(agent_identity_load(buf_c(&folder), &identity, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "cheops site init"));
	assert_non_null(strstr(err.text, "cheops site join"));
}

static void a_site_that_joined_has_no_authority(void **state)
{
	(void)state;
	struct err err = {0};
	struct agent_identity *authority;
	assert_int_equal(init_at(buf_c(&other), "Site1", &err), 0);
	assert_int_equal(agent_identity_load(buf_c(&other), &authority, &err), 0);
	struct trust_key *key;
	struct buf request = {0}, certificate = {0}, roots = {0};
	assert_int_equal(trust_key_make(&key, &err), 0);
	assert_int_equal(trust_request_make(key, STR("Site2"), &request, &err), 0);
	assert_int_equal(trust_request_sign(buf_str(&request), authority->root_key, buf_str(&authority->root), NOW_MS,
	                                    DAY_MS, &certificate, &err),
	                 0);
	trust_pem_write(&roots, buf_str(&authority->root));
	assert_int_equal(
		agent_identity_store(buf_c(&folder), key, buf_str(&certificate), buf_str(&roots), NOW_MS + 7, &err), 0);
	struct agent_identity *identity = load();
	assert_string_equal(identity->about.name, "Site2");
	assert_true(identity->about.id == trust_key_id(key));
	assert_null(identity->root_key);
	assert_int_equal(identity->root.length, 0);
	assert_int_equal(identity->born_ms, NOW_MS + 7);
	agent_identity_free(identity);
	agent_identity_free(authority);
	trust_key_free(key);
	buf_free(&request);
	buf_free(&certificate);
	buf_free(&roots);
}

/* The certificate of these tests ended long before or ends long after now: loading does not care. */
static void an_expired_certificate_loads(void **state)
{
	(void)state;
	struct agent_init init = {
		.folder = buf_c(&folder), .site = STR("Site1"), .now_ms = INT64_C(1000000000000), .lifetime_ms = DAY_MS};
	struct err err = {0};
	assert_int_equal(agent_identity_init(&init, &err), 0);
	struct agent_identity *identity = load();
	assert_true(identity->about.to_ms < NOW_MS);
	agent_identity_free(identity);
}

/* ---- The operator's own root ------------------------------------------------------------------------------------- */

static void make_root(struct buf *root_pem, struct buf *key_pem, int64_t now_ms)
{
	struct err err = {0};
	struct trust_key *key;
	struct buf der = {0};
	assert_int_equal(trust_key_make(&key, &err), 0);
	assert_int_equal(trust_root_make(key, STR("Our own"), now_ms, 20 * DAY_MS, &der, &err), 0);
	trust_pem_write(root_pem, buf_str(&der));
	trust_key_write(key, key_pem);
	trust_key_free(key);
	buf_free(&der);
}

static void the_operators_own_root_signs(void **state)
{
	(void)state;
	struct buf root = {0}, key = {0}, wrong_root = {0}, wrong_key = {0};
	struct err err = {0};
	make_root(&root, &key, NOW_MS);
	make_root(&wrong_root, &wrong_key, NOW_MS - 30 * DAY_MS);
	struct agent_init init = {.folder = buf_c(&folder),
	                          .site = STR("Site1"),
	                          .now_ms = NOW_MS,
	                          .lifetime_ms = AGENT_LIFETIME_DAYS * DAY_MS,
	                          .root_pem = buf_str(&root),
	                          .root_key_pem = buf_str(&wrong_key)};
	assert_int_equal(agent_identity_init(&init, &err), ERR_INVALID);
	assert_string_equal(err.text, "the key does not belong to the root certificate");
	init.root_pem = buf_str(&wrong_root);
	assert_int_equal(agent_identity_init(&init, &err), ERR_INVALID);
	assert_string_equal(err.text, "the root certificate has expired");
	init.root_pem = STR("hello");
	assert_true(agent_identity_init(&init, &err) < 0);
	assert_false(agent_identity_exists(buf_c(&folder)));
	init.root_pem = buf_str(&root);
	init.root_key_pem = buf_str(&key);
	assert_int_equal(agent_identity_init(&init, &err), 0);
	struct agent_identity *identity = load();
	/* No certificate outlives its root. */
	assert_true(identity->about.to_ms <= NOW_MS + 20 * DAY_MS);
	assert_int_equal(identity->lifetime_ms, AGENT_LIFETIME_DAYS * DAY_MS);
	agent_identity_free(identity);
	buf_free(&root);
	buf_free(&key);
	buf_free(&wrong_root);
	buf_free(&wrong_key);
}

/* ---- Complaints -------------------------------------------------------------------------------------------------- */

static void expect_complaint(const char *file, const char *said)
{
	struct agent_identity *identity;
	struct err err = {0};
	int code = agent_identity_load(buf_c(&folder), &identity, &err);
	assert_true(code < 0 && code != ERR_NOT_FOUND);
	if (strstr(err.text, file) == NULL || strstr(err.text, said) == NULL)
		fail_msg("`%s` should name %s and say: %s", err.text, file, said);
	/* Nobody has to want the text. */
	assert_int_equal(agent_identity_load(buf_c(&folder), &identity, NULL), code);
}

static void parts_that_are_missing(void **state)
{
	(void)state;
	static const char *const parts[] = {"site.key", "roots.pem", "born", "root.key", "root.crt"};
	for (size_t i = 0; i < COUNT(parts); i++) {
		make_first();
		drop_file(parts[i]);
		expect_complaint(parts[i], "restore it from a backup");
		empty(buf_c(&folder));
	}
}

static void parts_that_are_garbage(void **state)
{
	(void)state;
	static const char *const parts[] = {"site.key", "site.crt", "roots.pem", "born",
	                                    "root.key", "root.crt", "lifetime"};
	struct buf huge = {0};
	buf_put_repeat(&huge, '7', LIMIT_TRUST_FILE_BYTES + 1);
	for (size_t i = 0; i < COUNT(parts); i++) {
		make_first();
		overwrite(parts[i], STR("-----BEGIN NONSENSE-----\n\x01\x02"));
		expect_complaint(parts[i], "");
		overwrite(parts[i], STR(""));
		expect_complaint(parts[i], "");
		overwrite(parts[i], buf_str(&huge));
		expect_complaint(parts[i], "longer than 65536 bytes");
		empty(buf_c(&folder));
	}
	buf_free(&huge);
}

static void parts_of_another_identity(void **state)
{
	(void)state;
	struct err err = {0};
	assert_int_equal(init_at(buf_c(&other), "Site7", &err), 0);
	static const struct {
		const char *part, *file, *said;
	} cases[] = {
		{"site.key", "site.crt", "is not the certificate of the key"},
		{"site.crt", "site.crt", "is not the certificate of the key"},
		{"roots.pem", "site.crt", "signed by no root that is trusted"},
		{"root.key", "root.crt", "is not the certificate of the key"},
		{"root.crt", "root.crt", "is not the certificate of the key"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		make_first();
		copy(buf_c(&other), cases[i].part, cases[i].part);
		expect_complaint(cases[i].file, cases[i].said);
		empty(buf_c(&folder));
	}
	make_first();
	copy(buf_c(&other), "root.key", "root.key");
	copy(buf_c(&other), "root.crt", "root.crt");
	expect_complaint("root.crt", "not among the trusted roots");
}

static void a_key_that_everybody_may_read(void **state)
{
	(void)state;
	char path[200];
	make_first();
	path_in(path, buf_c(&folder), "site.key");
	assert_int_equal(chmod(path, 0644), 0);
	expect_complaint("site.key", "chmod o-rwx");
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void a_file_is_replaced_whole(void **state)
{
	(void)state;
	char path[200];
	struct buf read = {0};
	struct err err = {0};
	overwrite("x", STR("a long first version"));
	overwrite(".x.new", STR("left over from a crash"));
	overwrite("x", STR("short"));
	path_in(path, buf_c(&folder), "x");
	assert_int_equal(agent_file_read(path, 100, &read, &err), 0);
	assert_string_equal(buf_c(&read), "short");
	path_in(path, buf_c(&folder), ".x.new");
	assert_int_not_equal(access(path, F_OK), 0);
	buf_free(&read);
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
	(void)state;
	struct err err = {0};
	assert_int_equal(agent_file_write("/proc/nowhere/at-all", "x", STR("y"), false, &err), ERR_IO);
	assert_non_null(strstr(err.text, "/proc/nowhere/at-all"));
	overwrite("x", STR("y"));
	struct buf below = {0};
	buf_printf(&below, "%s/x", buf_c(&folder));
	assert_int_equal(agent_file_write(buf_c(&below), "x", STR("y"), false, &err), ERR_IO);
	assert_non_null(strstr(err.text, buf_c(&below)));
	buf_free(&below);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_first_site_has_everything),
		test(keys_are_for_their_owner),
		test(an_identity_is_never_overwritten),
		test(what_was_cut_short_is_begun_anew),
		test(a_folder_without_identity_says_what_to_do),
		test(a_site_that_joined_has_no_authority),
		test(an_expired_certificate_loads),
		test(the_operators_own_root_signs),
		test(parts_that_are_missing),
		test(parts_that_are_garbage),
		test(parts_of_another_identity),
		test(a_key_that_everybody_may_read),
		test(a_file_is_replaced_whole),
		test(a_file_that_cannot_be_written_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
