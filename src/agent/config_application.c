/* application: the description by which the requests of this site's services are read (docs/descriptions.md). */
#include "agent/config_int.h"

#include <limits.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

static bool is_name(struct str text)
{
	static const struct str yaml = STR_INIT(".yaml");
	bool file =
		text.length > yaml.length && str_equal(str_make(text.at + text.length - yaml.length, yaml.length), yaml);
	return !file && !memchr(text.at, '/', text.length) && text.length <= NAME_BYTES;
}

bool agent_application_find(struct str name, struct buf *path)
{
	static const char *const places[] = {"../share/cheops/apps", "../apps"};
	char exe[PATH_MAX];
	ssize_t length = is_name(name) ? readlink("/proc/self/exe", exe, sizeof(exe)) : -1;
	while (length > 0 && exe[length - 1] != '/')
		length--;
	for (size_t i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		buf_clear(path);
		buf_printf(path, "%.*s%s/%.*s.yaml", (int)length, exe, places[i], STR_FMT(name));
		if (access(buf_c(path), R_OK) == 0)
			return true;
	}
	return false;
}

/* What is wrong inside the file is told with its own name and line; that it cannot be read, where it is named. */
static int read_description(struct config_load *load, const struct config_value *value, const char *path)
{
	struct buf text = {0};
	struct err err = {0};
	struct glue *glue = NULL;
	struct glue_options options = {.path = path, .hash_key = load->around->hash_key};
	int code = load->around->read(path, false, LIMIT_GLUE_FILE_BYTES + 1, &text, &err);
	if (code != 0)
		code = config_value_fail(load, value, code, ": %s", err.text);
	else if (text.length > LIMIT_GLUE_FILE_BYTES)
		code = config_value_fail(load, value, ERR_LIMIT, " is longer than %d bytes, the limit of a description",
		                         LIMIT_GLUE_FILE_BYTES);
	else
		code = glue_read(&glue, buf_str(&text), &options, load->yaml.err);
	buf_free(&text);
	load->config->glue = glue;
	return code;
}

int config_application(struct config_load *load)
{
	struct config_value value = {0};
	bool given;
	int code =
		config_option(load, AGENT_APPLICATION,
	                  "the name of a description that is shipped, or the path of one, such as sample", &value, &given);
	if (code != 0)
		return code;
	struct str wanted = given ? value.text : STR("rest");
	struct buf path = {0};
	if (wanted.length == 0)
		return config_value_fail(load, &value, ERR_INVALID, " is empty; it has to be a name or a path");
	bool found = load->around->application && load->around->application(wanted, &path);
	if (found)
		code = read_description(load, &value, buf_c(&path));
	else if (given && is_name(wanted))
		code = config_value_fail(load, &value, ERR_NOT_FOUND,
		                         ": no description " TEXT_NAME_FMT " is shipped; one of your own is given by its path, "
		                         "such as ./app.yaml",
		                         TEXT_NAME(wanted));
	else if (given)
		code = read_description(load, &value, value.from ? config_copy(load, wanted).at : config_path(load, wanted));
	buf_free(&path);
	return code;
}
