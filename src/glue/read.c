/* A description, from its text to a struct glue. All that is wrong with it is found in one go; the parts are in read_*.c. */
#include "glue/load.h"
#include "glue/places.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

static const struct yaml_format description_format = {
	.thing = "a description",
	.file = "a description",
	.deepest = "the query of an operation",
	.least = "a description has at least `format`, `application` and `types`",
	.bytes = LIMIT_GLUE_FILE_BYTES,
};

enum { FORMAT_NUMBER = 1 };

enum { FORMAT, APPLICATION, SERVICES, CREDENTIALS, TYPES, ROOT_KEYS };
static const char *const file_keys[] = {[FORMAT] = "format",     [APPLICATION] = "application",
                                        [SERVICES] = "services", [CREDENTIALS] = "credentials",
                                        [TYPES] = "types",       NULL};

/* Before all else: of one that is written for a later version nothing more can be said. */
static bool read_format(struct glue_load *load, const yaml_node_t *root)
{
	uint32_t number = 0;
	for (size_t i = 0; i < yaml_entries_count(root); i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, root, i);
		if (!str_equal(entry.key, STR("format")))
			continue;
		if (!glue_number(load, &entry, "the version of the format", 1, 1000, &number))
			return true;
		if (number > FORMAT_NUMBER)
			glue_complain(load, ERR_VERSION, entry.value->start_mark,
			              "the format is %u; this version of Cheops reads up to %d", number, FORMAT_NUMBER);
		return number <= FORMAT_NUMBER;
	}
	glue_complain(load, ERR_INVALID, root->start_mark, "there is no `format`; this is `format: %d`", FORMAT_NUMBER);
	return true;
}

static int read_root(void *context, const yaml_node_t *root)
{
	struct glue_load *load = context;
	struct yaml_entry found[ROOT_KEYS] = {0};
	struct yaml_entry whole = {.key = STR("the description"), .key_node = root, .value = root};
	if (root->type != YAML_MAPPING_NODE) {
		glue_complain(
			load, ERR_INVALID, root->start_mark,
			"the file is %s; a description is a mapping with the keys `format`, `application`, `services` and "
			"`types`",
			yaml_kind(root));
		return 0;
	}
	if (!read_format(load, root) || !glue_keys(load, &whole, file_keys, "", found))
		return 0;
	if (found[APPLICATION].value == NULL)
		glue_complain(load, ERR_INVALID, root->start_mark,
		              "there is no `application`; it is a name, such as `application: openstack`");
	else
		glue_name(load, &found[APPLICATION], "the name of the application, such as `openstack`",
		          &load->glue->application);
	glue_read_services(load, &found[SERVICES], &found[CREDENTIALS]);
	if (found[TYPES].value == NULL)
		glue_complain(load, ERR_INVALID, root->start_mark,
		              "there is no `types`; a description has at least one, such as "
		              "`types: {image.image: {collection: /images, item: \"/images/{id}\"}}`");
	else
		glue_read_types(load, &found[TYPES]);
	/* What the parts mean together is asked only once each of them is right. */
	if (load->errors_count == 0)
		glue_assemble(load, &found[CREDENTIALS]);
	return 0;
}

int glue_read(struct glue **out, struct str text, const struct glue_options *options, struct err *err)
{
	static const struct hash_key digest_key = {0x6368656f70732d67, 0x6c75652d76312e30};
	if (text.length > LIMIT_GLUE_FILE_BYTES)
		return err_set(err, ERR_LIMIT, TEXT_PATH_FMT " is longer than %d bytes, the limit of a description",
		               TEXT_PATH(options->path), LIMIT_GLUE_FILE_BYTES);
	struct glue_load *load = calloc(1, sizeof(*load));
	struct glue *glue = calloc(1, sizeof(*glue));
	CHECK(load != NULL && glue != NULL);
	arena_init(&glue->arena, 0);
	arena_init(&load->scratch, 0);
	*load = (struct glue_load){
		.yaml = {.path = options->path,
	             .format = &description_format,
	             .hash_key = options->hash_key,
	             .complained = glue_load_told,
	             .context = load},
		.options = options,
		.glue = glue,
		.arena = &glue->arena,
		.scratch = load->scratch,
	};
	glue->digest = hash_bytes(&digest_key, text);
	yaml_read(&load->yaml, text, read_root, load);
	int code = glue_load_finish(load, err);
	buf_free(&load->where);
	arena_free(&load->scratch);
	free(load);
	if (code == 0)
		*out = glue;
	else
		glue_free(glue);
	return code;
}

void glue_free(struct glue *glue)
{
	if (glue == NULL)
		return;
	for (uint32_t i = 0; i < glue->types_count; i++) {
		for (uint32_t j = 0; j < glue->types[i].places_count; j++)
			glue_places_free(glue->types[i].places[j]);
	}
	arena_free(&glue->arena);
	free(glue);
}
