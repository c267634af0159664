/* The files of an identity.
 *
 * STATE/site.crt is written last, and is what makes an identity: where a first start was cut short, what lies there without
 * it counts as nothing and is written anew. What is loaded was checked as a whole: keys belong to their certificates, the
 * site's certificate was signed by a root of the list. Whether it has expired is not looked at: an agent has to start then,
 * too, serve local requests, and say so.
 */
#include "agent/identity.h"

#include "agent/file.h"
#include "base/check.h"
#include "base/text.h"
#include "base/timestamp.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t DAY_MS = INT64_C(86400) * 1000;

static void path_of(struct buf *path, const char *folder, const char *name)
{
	buf_clear(path);
	buf_printf(path, "%s/%s", folder, name);
}

/* Keys leave nothing behind in memory. */
static void forget(struct buf *secret)
{
	if (secret->at)
		OPENSSL_cleanse(secret->at, secret->capacity);
	buf_free(secret);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static int cannot_write(struct err *err, const char *path, int failure)
{
	return err_set(err, ERR_IO, "cannot write `" TEXT_PATH_FMT "`: %s", TEXT_PATH(path), strerror(failure));
}

static int open_folder(const char *folder, int *out, struct err *err)
{
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_set(err, ERR_IO, "cannot make the folder `" TEXT_PATH_FMT "`: %s", TEXT_PATH(folder),
		               strerror(errno));
	*out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out < 0)
		return err_set(err, ERR_IO, "cannot use the folder `" TEXT_PATH_FMT "`: %s", TEXT_PATH(folder),
		               strerror(errno));
	return 0;
}

static int write_bytes(int fd, struct str bytes)
{
	while (bytes.length > 0) {
		ssize_t written = write(fd, bytes.at, bytes.length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		bytes = str_make(bytes.at + written, bytes.length - (size_t)written);
	}
	return 0;
}

/* The command that root runs makes files for the user whose folder it is. */
static int give_to_owner(int folder, int fd)
{
	struct stat about;
	if (geteuid() != 0)
		return 0;
	return fstat(folder, &about) == 0 && fchown(fd, about.st_uid, about.st_gid) == 0 ? 0 : errno;
}

/* Returns 0, or errno. */
static int write_temporary(int folder, const char *name, struct str bytes, bool secret)
{
	unlinkat(folder, name, 0); /* of a write that was cut short */
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno;
	int failure = give_to_owner(folder, fd);
	if (failure == 0 && fchmod(fd, secret ? 0600 : 0644) != 0)
		failure = errno;
	if (failure == 0)
		failure = write_bytes(fd, bytes);
	if (failure == 0 && fsync(fd) != 0)
		failure = errno;
	if (close(fd) != 0 && failure == 0)
		failure = errno;
	return failure;
}

int agent_file_write(const char *folder, const char *name, struct str bytes, bool secret, struct err *err)
{
	int fd = -1;
	int code = open_folder(folder, &fd, err);
	if (code)
		return code;
	struct buf temporary = {0}, path = {0};
	buf_printf(&temporary, ".%s.new", name);
	path_of(&path, folder, name);
	int failure = write_temporary(fd, buf_c(&temporary), bytes, secret);
	if (failure == 0 && renameat(fd, buf_c(&temporary), fd, name) != 0)
		failure = errno;
	if (failure == 0 && fsync(fd) != 0)
		failure = errno;
	if (failure)
		code = cannot_write(err, buf_c(&path), failure);
	if (failure)
		unlinkat(fd, buf_c(&temporary), 0);
	close(fd);
	buf_free(&temporary);
	buf_free(&path);
	return code;
}

/* Writes one after the other, until one cannot be written. */
struct writer {
	const char *folder;
	struct err *err;
	int code;
};

static void put_file(struct writer *writer, const char *name, struct str bytes)
{
	if (writer->code == 0)
		writer->code = agent_file_write(writer->folder, name, bytes, false, writer->err);
}

static void put_key(struct writer *writer, const char *name, const struct trust_key *key)
{
	struct buf pem = {0};
	trust_key_write(key, &pem);
	if (writer->code == 0)
		writer->code = agent_file_write(writer->folder, name, buf_str(&pem), true, writer->err);
	forget(&pem);
}

static void put_certificate(struct writer *writer, const char *name, struct str der)
{
	struct buf pem = {0};
	trust_pem_write(&pem, der);
	put_file(writer, name, buf_str(&pem));
	buf_free(&pem);
}

static void put_number(struct writer *writer, const char *name, int64_t number)
{
	struct buf text = {0};
	buf_printf(&text, "%lld\n", (long long)number);
	put_file(writer, name, buf_str(&text));
	buf_free(&text);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool file_exists(const char *folder, const char *name)
{
	struct buf path = {0};
	struct stat about;
	path_of(&path, folder, name);
	bool exists = lstat(buf_c(&path), &about) == 0;
	buf_free(&path);
	return exists;
}

bool agent_identity_exists(const char *folder)
{
	return file_exists(folder, "site.crt");
}

static int read_file(const char *path, bool secret, struct buf *out, struct err *err)
{
	int code = secret ? agent_secret_read(path, LIMIT_TRUST_FILE_BYTES + 1, out, err)
	                  : agent_file_read(path, LIMIT_TRUST_FILE_BYTES + 1, out, err);
	if (code == 0 && out->length > LIMIT_TRUST_FILE_BYTES)
		code = err_set(err, ERR_LIMIT, "`" TEXT_PATH_FMT "` is longer than %d bytes", TEXT_PATH(path),
		               LIMIT_TRUST_FILE_BYTES);
	return code;
}

/* A part that is not there is not an identity that is not there. */
static int missing_part(struct err *err, int code)
{
	if (code != ERR_NOT_FOUND || !err)
		return code == ERR_NOT_FOUND ? ERR_CORRUPT : code;
	err->code = ERR_CORRUPT;
	struct str more = STR("; restore it from a backup, or move the folder away and join anew");
	size_t length = strlen(err->text);
	if (length + more.length < sizeof(err->text))
		memcpy(err->text + length, more.at, more.length + 1);
	return ERR_CORRUPT;
}

static int load_key(const char *folder, const char *name, struct trust_key **key, struct err *err)
{
	struct buf path = {0}, pem = {0};
	path_of(&path, folder, name);
	int code = missing_part(err, read_file(buf_c(&path), true, &pem, err));
	if (code == 0) {
		code = trust_key_read(key, buf_str(&pem), err);
		if (code)
			err_context(err, code, "`" TEXT_PATH_FMT "`", TEXT_PATH(buf_c(&path)));
	}
	forget(&pem);
	buf_free(&path);
	return code;
}

/* The first certificate of a file. */
static int load_certificate(const char *folder, const char *name, struct buf *der, struct trust_certificate *about,
                            struct err *err)
{
	struct buf path = {0}, pem = {0};
	path_of(&path, folder, name);
	int code = missing_part(err, read_file(buf_c(&path), false, &pem, err));
	if (code == 0) {
		code = trust_pem_first(buf_str(&pem), der, err);
		if (code == 0)
			code = trust_certificate_read(buf_str(der), about, err);
		if (code)
			err_context(err, code, "`" TEXT_PATH_FMT "`", TEXT_PATH(buf_c(&path)));
	}
	buf_free(&pem);
	buf_free(&path);
	return code;
}

struct root_reader {
	struct trust_roots *roots;
	struct err *err;
	int code;
};

static void take_root(void *context, struct str der)
{
	struct root_reader *reader = context;
	if (reader->code == 0)
		reader->code = trust_roots_add(reader->roots, der, reader->err);
}

static int read_roots(struct trust_roots *roots, struct str pem, struct err *err)
{
	struct root_reader reader = {.roots = roots, .err = err};
	int code = trust_pem_each(pem, take_root, &reader, err);
	return code ? code : reader.code;
}

static int load_roots(const char *folder, struct trust_roots *roots, struct err *err)
{
	struct buf path = {0}, pem = {0};
	path_of(&path, folder, "roots.pem");
	int code = missing_part(err, read_file(buf_c(&path), false, &pem, err));
	if (code == 0) {
		code = read_roots(roots, buf_str(&pem), err);
		if (code)
			err_context(err, code, "`" TEXT_PATH_FMT "`", TEXT_PATH(buf_c(&path)));
	}
	buf_free(&pem);
	buf_free(&path);
	return code;
}

static int load_number(const char *folder, const char *name, const char *what, int64_t *number, struct err *err)
{
	struct buf path = {0}, text = {0};
	path_of(&path, folder, name);
	int code = missing_part(err, read_file(buf_c(&path), false, &text, err));
	if (code == 0) {
		char *end;
		errno = 0;
		long long read = strtoll(buf_c(&text), &end, 10);
		if (errno != 0 || end == buf_c(&text) || (*end != '\0' && strcmp(end, "\n") != 0) || read < 0)
			code = err_set(err, ERR_CORRUPT, "`" TEXT_PATH_FMT "` is no number; it has to be %s",
			               TEXT_PATH(buf_c(&path)), what);
		*number = read;
	}
	buf_free(&text);
	buf_free(&path);
	return code;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* Whom it is signed by, whatever the time is: at its very end, because a certificate ends no later than its root. */
static int check_signature(const struct agent_identity *identity, const char *folder, struct err *err)
{
	struct trust_certificate scratch;
	int code =
		trust_check(identity->roots, buf_str(&identity->certificate), identity->about.to_ms - 1000, &scratch, err);
	if (code)
		err_context(err, code, "`" TEXT_PATH_FMT "/site.crt`, under the roots in roots.pem beside it",
		            TEXT_PATH(folder));
	return code;
}

static int load_site(const char *folder, struct agent_identity *identity, struct err *err)
{
	int code = load_key(folder, "site.key", &identity->key, err);
	if (code == 0)
		code = load_certificate(folder, "site.crt", &identity->certificate, &identity->about, err);
	if (code == 0 && identity->about.id != trust_key_id(identity->key))
		code = err_set(err, ERR_CORRUPT,
		               "`" TEXT_PATH_FMT
		               "/site.crt` is not the certificate of the key in site.key beside it; restore both "
		               "from one backup, or move the folder away and join anew",
		               TEXT_PATH(folder));
	if (code == 0)
		code = load_roots(folder, identity->roots, err);
	if (code == 0)
		code = check_signature(identity, folder, err);
	if (code == 0)
		code = load_number(folder, "born", "when the site was made, in ms since 1970", &identity->born_ms, err);
	return code;
}

/* The authority, where it is here. */
static int load_authority(const char *folder, struct agent_identity *identity, struct err *err)
{
	struct trust_certificate about;
	int64_t lifetime_s = AGENT_LIFETIME_DAYS * INT64_C(86400);
	bool key = file_exists(folder, "root.key"), root = file_exists(folder, "root.crt");
	identity->lifetime_ms = lifetime_s * 1000;
	if (!key && !root)
		return 0;
	int code = load_key(folder, "root.key", &identity->root_key, err);
	if (code == 0)
		code = load_certificate(folder, "root.crt", &identity->root, &about, err);
	if (code == 0 && about.id != trust_key_id(identity->root_key))
		code =
			err_set(err, ERR_CORRUPT,
		            "`" TEXT_PATH_FMT
		            "/root.crt` is not the certificate of the key in root.key beside it; restore both from one backup",
		            TEXT_PATH(folder));
	if (code == 0 && trust_roots_find(identity->roots, about.id).length == 0)
		code = err_set(err, ERR_CORRUPT,
		               "`" TEXT_PATH_FMT
		               "/root.crt` is not among the trusted roots in roots.pem beside it; append it there",
		               TEXT_PATH(folder));
	if (code == 0 && file_exists(folder, "lifetime"))
		code = load_number(folder, "lifetime", "how long certificates are valid, in seconds", &lifetime_s, err);
	if (code == 0 && (lifetime_s < AGENT_LIFETIME_LEAST_S || lifetime_s > AGENT_ROOT_LIFETIME_DAYS * INT64_C(86400)))
		code = err_set(err, ERR_CORRUPT, "`" TEXT_PATH_FMT "/lifetime`: %lld s is not between a second and %d days",
		               TEXT_PATH(folder), (long long)lifetime_s, AGENT_ROOT_LIFETIME_DAYS);
	identity->lifetime_ms = lifetime_s * 1000;
	return code;
}

int agent_identity_load(const char *folder, struct agent_identity **out, struct err *err)
{
	if (!agent_identity_exists(folder))
		return err_set(err, ERR_NOT_FOUND,
		               "`" TEXT_PATH_FMT "` has no identity of a site; `cheops site init` makes the first site of a "
		               "mesh, `cheops site join` one more",
		               TEXT_PATH(folder));
	struct agent_identity *identity = calloc(1, sizeof(*identity));
	CHECK(identity);
	identity->roots = trust_roots_new();
	int code = load_site(folder, identity, err);
	if (code == 0)
		code = load_authority(folder, identity, err);
	if (code)
		agent_identity_free(identity);
	else
		*out = identity;
	return code;
}

void agent_identity_free(struct agent_identity *identity)
{
	if (!identity)
		return;
	trust_key_free(identity->key);
	trust_key_free(identity->root_key);
	trust_roots_free(identity->roots);
	buf_free(&identity->certificate);
	buf_free(&identity->root);
	free(identity);
}

/* ---- The first site ---------------------------------------------------------------------------------------------- */

static int already_there(const char *folder, struct err *err)
{
	struct agent_identity *identity = NULL;
	char name[LIMIT_AGENT_NAME_BYTES + 1] = "";
	if (!agent_identity_exists(folder))
		return 0;
	if (agent_identity_load(folder, &identity, NULL) == 0 && identity) {
		memcpy(name, identity->about.name, sizeof(name));
		agent_identity_free(identity);
	}
	return err_set(err, ERR_CONFLICT,
	               "`" TEXT_PATH_FMT
	               "` has the identity of a site already%s%.*s; it is not overwritten. To give it up for "
	               "good, have the site removed (`cheops site remove`) and move the folder away",
	               TEXT_PATH(folder), *name ? ": " : "", STR_FMT(text_shown(str_of(name))));
}

/* What is made before anything is written. */
struct making {
	struct trust_key *key;
	struct trust_key *root_key;
	struct buf root;
	struct buf certificate;
};

static int own_root(const struct agent_init *init, struct making *making, struct err *err)
{
	struct trust_certificate about;
	struct trust_roots *roots = trust_roots_new();
	int code = trust_pem_first(init->root_pem, &making->root, err);
	if (code == 0)
		code = trust_certificate_read(buf_str(&making->root), &about, err);
	if (code == 0)
		code = trust_roots_add(roots, buf_str(&making->root), err);
	trust_roots_free(roots);
	if (code)
		return err_context(err, code, "the root certificate");
	if (init->now_ms >= about.to_ms)
		return err_set(err, ERR_INVALID, "the root certificate has expired");
	code = trust_key_read(&making->root_key, init->root_key_pem, err);
	if (code)
		return err_context(err, code, "the root's key");
	if (trust_key_id(making->root_key) != about.id)
		return err_set(err, ERR_INVALID, "the key does not belong to the root certificate");
	return 0;
}

/* Its name is short: it is a part of every site's certificate, and those travel with gossip. */
int agent_root_make(struct str site, int64_t now_ms, struct trust_key **key, struct buf *der, struct err *err)
{
	enum { SITE_SHOWN_BYTES = 24, DATE_BYTES = 10 };
	char date[TIMESTAMP_BYTES];
	struct buf name = {0};
	timestamp_format(now_ms, date);
	buf_printf(&name, "Cheops %.*s %.*s", STR_FMT(utf8_truncate(site, SITE_SHOWN_BYTES)), DATE_BYTES, date);
	int code = trust_key_make(key, err);
	if (code == 0)
		code = trust_root_make(*key, buf_str(&name), now_ms, AGENT_ROOT_LIFETIME_DAYS * DAY_MS, der, err);
	buf_free(&name);
	return code;
}

static int new_root(const struct agent_init *init, struct making *making, struct err *err)
{
	return agent_root_make(init->site, init->now_ms, &making->root_key, &making->root, err);
}

static int make(const struct agent_init *init, struct making *making, struct err *err)
{
	struct buf request = {0};
	int code = init->root_pem.length > 0 ? own_root(init, making, err) : new_root(init, making, err);
	if (code == 0)
		code = trust_key_make(&making->key, err);
	if (code == 0)
		code = trust_request_make(making->key, init->site, &request, err);
	if (code == 0)
		code = trust_request_sign(buf_str(&request), making->root_key, buf_str(&making->root), init->now_ms,
		                          init->lifetime_ms, &making->certificate, err);
	buf_free(&request);
	return code;
}

static int write_first(const struct agent_init *init, const struct making *making, struct err *err)
{
	struct writer writer = {.folder = init->folder, .err = err};
	put_key(&writer, "site.key", making->key);
	put_key(&writer, "root.key", making->root_key);
	put_certificate(&writer, "root.crt", buf_str(&making->root));
	put_certificate(&writer, "roots.pem", buf_str(&making->root));
	put_number(&writer, "born", init->now_ms);
	put_number(&writer, "lifetime", init->lifetime_ms / 1000);
	put_certificate(&writer, "site.crt", buf_str(&making->certificate));
	return writer.code;
}

int agent_identity_init(const struct agent_init *init, struct err *err)
{
	int code = already_there(init->folder, err);
	if (code)
		return code;
	struct making making = {0};
	code = make(init, &making, err);
	if (code == 0)
		code = write_first(init, &making, err);
	trust_key_free(making.key);
	trust_key_free(making.root_key);
	buf_free(&making.root);
	buf_free(&making.certificate);
	return code;
}

/* ---- One more site ----------------------------------------------------------------------------------------------- */

int agent_identity_store(const char *folder, const struct trust_key *key, struct str certificate_der,
                         struct str roots_pem, int64_t born_ms, struct err *err)
{
	int code = already_there(folder, err);
	if (code)
		return code;
	struct writer writer = {.folder = folder, .err = err};
	put_key(&writer, "site.key", key);
	put_file(&writer, "roots.pem", roots_pem);
	put_number(&writer, "born", born_ms);
	put_certificate(&writer, "site.crt", certificate_der);
	return writer.code;
}
