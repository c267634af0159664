/* YAML files that people write, by libyaml: its own documents rather than libcyaml's schemas, because many keys are free
 * names (sites, services, tags) and because each complaint is to name line and column.
 *
 *     struct yaml_reader reader = {.path = "view.yaml", .format = &format, .hash_key = key, .err = err};
 *     yaml_read(&reader, text, read_root, context);
 *
 * First a survey of the events, then the document, which is handed to the caller from its root. The survey is there
 * because libyaml itself takes quadratic time on deep nesting and on many anchors: those are refused as soon as they are
 * seen. Aliases are fine. They may make the document a graph, with loops even; but the caller's walk over it goes no
 * deeper than its format does, and yaml_check_mapping() ends it when it has met more entries than a file of this size can
 * have without aliases.
 *
 * Every check returns 0, or has told what is wrong as "FILE:LINE:COLUMN: ..." and returns a code of base/err.h.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#include <yaml.h>

/* A kind of file, for complaints. */
struct yaml_format {
	const char *thing;   /* "a view" */
	const char *file;    /* "a view file" */
	const char *deepest; /* "a site's tags" */
	const char *least;   /* "a view has at least one site, such as `sites: {Site1: {}}`" */
	size_t bytes;        /* the longest */
};

struct yaml_reader {
	const char *path;
	const struct yaml_format *format;
	struct hash_key hash_key;
	struct err *err;
	/* Also told of each complaint, without the place before the text; may be NULL. For those who go on after the first. */
	void (*complained)(void *context, int code, yaml_mark_t mark, struct str text);
	void *context;
	yaml_document_t *document; /* set by yaml_read() */
	size_t entries;            /* of all mappings met so far */
};

/* A key and its value. */
struct yaml_entry {
	struct str key; /* "" if the key is no name */
	const yaml_node_t *key_node;
	const yaml_node_t *value;
};

/* Reads the text: `read` gets the root of its one document. Nodes are gone when it returns. */
int yaml_read(struct yaml_reader *reader, struct str text, int (*read)(void *context, const yaml_node_t *root),
              void *context);

/* Tells what is wrong at a place, and returns the code. */
__attribute__((format(printf, 4, 5))) int yaml_fail(const struct yaml_reader *reader, int code, yaml_mark_t mark,
                                                    const char *format, ...);
__attribute__((format(printf, 4, 0))) int yaml_vfail(const struct yaml_reader *reader, int code, yaml_mark_t mark,
                                                     const char *format, va_list arguments);

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* Of a scalar. */
struct str yaml_text(const yaml_node_t *node);

/* Nothing, `~` or `null`, without quotes; and the same or "". */
bool yaml_is_null(const yaml_node_t *node);
bool yaml_is_empty(const yaml_node_t *node);

/* "a mapping", "a list", "empty", "a single value". */
const char *yaml_kind(const yaml_node_t *node);

/* The entries of a mapping; 0 for anything else. */
size_t yaml_entries_count(const yaml_node_t *node);
struct yaml_entry yaml_entry_at(const struct yaml_reader *reader, const yaml_node_t *node, size_t index);

/* The items of a list; 0 for anything else. */
size_t yaml_items_count(const yaml_node_t *node);
const yaml_node_t *yaml_item_at(const struct yaml_reader *reader, const yaml_node_t *node, size_t index);

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

/* What `owner` has is a mapping, or nothing; each of its keys is a printable name, and there once. */
int yaml_check_mapping(struct yaml_reader *reader, const yaml_node_t *node, struct str owner, const char *example);

/* The value is a single one, printable and not empty; `what` says what it should be. */
int yaml_check_value(const struct yaml_reader *reader, const struct yaml_entry *entry, const char *what);

/* A scalar without control characters. */
int yaml_check_printable(const struct yaml_reader *reader, const yaml_node_t *node);

/* The index of a scalar among words, which end with NULL; or a complaint, "unknown `what` ...", and its code. */
int yaml_choose(const struct yaml_reader *reader, const yaml_node_t *node, const char *const *words, const char *what);

#endif
