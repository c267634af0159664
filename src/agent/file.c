#include "agent/file.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int agent_descriptor_read(int fd, size_t at_most, struct buf *out)
{
	char piece[1 << 14];
	for (size_t left = at_most; left > 0;) {
		ssize_t got = read(fd, piece, left < sizeof(piece) ? left : sizeof(piece));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
			break;
		buf_put(out, str_make(piece, (size_t)got));
		left -= (size_t)got;
	}
	return 0;
}

static int cannot_read(struct err *err, const char *path, int failure)
{
	return err_set(err, failure == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read `" TEXT_PATH_FMT "`: %s",
	               TEXT_PATH(path), strerror(failure));
}

int agent_file_read(const char *path, size_t at_most, struct buf *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cannot_read(err, path, errno);
	int failure = agent_descriptor_read(fd, at_most, out);
	close(fd);
	return failure == 0 ? 0 : cannot_read(err, path, failure);
}

static int check_secret(const struct stat *about, const char *path, struct err *err)
{
	if (!S_ISREG(about->st_mode))
		return err_set(err, ERR_INVALID, "`" TEXT_PATH_FMT "` is no regular file", TEXT_PATH(path));
	if (about->st_mode & (S_IROTH | S_IWOTH))
		return err_set(err, ERR_INVALID,
		               "everybody may read or write `" TEXT_PATH_FMT
		               "` (mode %03o); a secret is for its owner and group: chmod o-rwx",
		               TEXT_PATH(path), (unsigned)about->st_mode & 0777);
	return 0;
}

int agent_secret_read(const char *path, size_t at_most, struct buf *out, struct err *err)
{
	/* Not to wait for the other end of a pipe, which is refused in a moment. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return cannot_read(err, path, errno);
	struct stat about;
	int failure = fstat(fd, &about) == 0 ? 0 : errno;
	int code = failure == 0 ? check_secret(&about, path, err) : 0;
	if (failure == 0 && code == 0)
		failure = agent_descriptor_read(fd, at_most, out);
	close(fd);
	return failure == 0 ? code : cannot_read(err, path, failure);
}
