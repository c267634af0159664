/* Files that cheops app reads. */
#include "cli/cmd_app.h"

#include "agent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

int app_read(const char *path, size_t at_most, struct buf *out)
{
	bool input = strcmp(path, "-") == 0;
	int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int failure = fd < 0 ? errno : agent_descriptor_read(fd, at_most + 1, out);
	if (fd >= 0 && !input)
		close(fd);
	if (failure != 0)
		cli_say("cannot read `" TEXT_PATH_FMT "`: %s", TEXT_PATH(path), strerror(failure));
	else if (out->length > at_most)
		cli_say("`" TEXT_PATH_FMT "` is longer than %zu bytes, the limit", TEXT_PATH(path), at_most);
	else
		return CLI_FINE;
	return CLI_USAGE;
}

static bool is_name(const char *text)
{
	size_t length = strlen(text);
	bool yaml = length > 5 && strcmp(text + length - 5, ".yaml") == 0;
	return strchr(text, '/') == NULL && !yaml && strcmp(text, "-") != 0;
}

/* Where the shipped ones are: beside the executable once it is installed, and in the source tree. */
const char *app_path(struct app_call *call, const char *name)
{
	static const char *const places[] = {"../share/cheops/apps", "../apps"};
	char exe[PATH_MAX];
	ssize_t length = is_name(name) ? readlink("/proc/self/exe", exe, sizeof(exe)) : -1;
	while (length > 0 && exe[length - 1] != '/')
		length--;
	for (size_t i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		struct buf path = {0};
		buf_printf(&path, "%.*s%s/%s.yaml", (int)length, exe, places[i], name);
		const char *found = access(buf_c(&path), R_OK) == 0 ? arena_copy(&call->arena, path.at, path.length) : NULL;
		buf_free(&path);
		if (found != NULL)
			return found;
	}
	return name;
}

struct hash_key app_hash_key(void)
{
	struct hash_key key = {0};
	/* Without entropy there are still no duplicates, only a file that could be made to be slow. */
	(void)!getrandom(&key, sizeof(key), GRND_NONBLOCK);
	return key;
}

int app_open(struct app_call *call, const char *name, struct glue **glue)
{
	struct buf text = {0};
	struct err err = {0};
	const char *path = app_path(call, name);
	struct glue_options options = {.path = path, .hash_key = app_hash_key()};
	if (path == name && is_name(name) && access(name, F_OK) != 0)
		return cli_usage(call->command,
		                 "no description " TEXT_NAME_FMT
		                 " is shipped, and there is no such file; shipped are kubernetes, openstack, rest and sample",
		                 TEXT_NAME(str_of(name)));
	int status = app_read(path, LIMIT_GLUE_FILE_BYTES, &text);
	if (status == CLI_FINE && glue_read(glue, buf_str(&text), &options, &err) != 0) {
		cli_say("%s", err.text);
		status = CLI_REFUSED;
	}
	buf_free(&text);
	return status;
}
