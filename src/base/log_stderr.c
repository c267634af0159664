#define _POSIX_C_SOURCE 200809L

#include "base/log_stderr.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PREFIX_BYTES = 32 };

/* One write per line: lines of several threads do not mix. */
static void write_line(const char *prefix, struct str line)
{
	/* An event is logged where something failed: its errno is still wanted. */
	int saved_errno = errno;
	char out[LIMIT_LOG_LINE_BYTES];
	size_t prefix_bytes = strlen(prefix);
	line = utf8_truncate(line, sizeof(out) - prefix_bytes - 1);
	memcpy(out, prefix, prefix_bytes);
	memcpy(out + prefix_bytes, line.at, line.length);
	size_t length = prefix_bytes + line.length;
	out[length++] = '\n';
	for (size_t done = 0; done < length;) {
		ssize_t count = write(STDERR_FILENO, out + done, length - done);
		if (count > 0)
			done += (size_t)count;
		else if (count == 0 || errno != EINTR)
			break; /* there is nowhere left to complain */
	}
	errno = saved_errno;
}

static void write_for_person(void *context, enum log_level level, struct str line)
{
	(void)context;
	(void)level; /* the line says it */
	struct timespec now;
	struct tm utc;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	char prefix[PREFIX_BYTES];
	size_t length = strftime(prefix, sizeof(prefix), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(prefix + length, sizeof(prefix) - length, ".%03ldZ ", now.tv_nsec / 1000000);
	write_line(prefix, line);
}

/* The priorities of syslog, as sd-daemon(3) has them. */
static void write_for_journal(void *context, enum log_level level, struct str line)
{
	(void)context;
	static const char *const prefixes[] = {
		[LOG_ERROR] = "<3>", [LOG_WARN] = "<4>", [LOG_INFO] = "<6>", [LOG_DEBUG] = "<7>"};
	write_line(prefixes[level], line);
}

/* systemd.exec(5): JOURNAL_STREAM is "device:inode" of the stream it connected. Only a comparison tells whether standard
 * error still is that stream: the variable is inherited by children whose output went elsewhere. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	if (stream == NULL || fstat(STDERR_FILENO, &status) != 0)
		return false;
	char own[48];
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
	return strcmp(stream, own) == 0;
}

struct log_sink log_stderr_sink(void)
{
	return (struct log_sink){.write = stderr_is_journal() ? write_for_journal : write_for_person};
}
