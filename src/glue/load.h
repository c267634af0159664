/* Inside the reading of a description: what its parts share. Reading goes on after an error, so that one run tells all. */
#ifndef GLUE_LOAD_H
#define GLUE_LOAD_H

#include "glue/match.h"

#include "base/yaml.h"

struct glue_load {
	struct yaml_reader yaml;
	const struct glue_options *options;
	struct glue *glue;
	struct arena *arena;  /* of the glue */
	struct arena scratch; /* gone when the reading ends */
	struct buf where;     /* "types.image.image.item" */
	struct glue_finding findings[LIMIT_GLUE_FINDINGS];
	int codes[LIMIT_GLUE_FINDINGS];
	uint32_t findings_count;
	uint32_t errors_count;    /* also of those that no longer fit */
	uint32_t templates_count; /* in all tries */
	uint32_t pointers_count;  /* of the type being read */
};

/* ---- Where ------------------------------------------------------------------------------------------------------- */

/* Goes into a part, and back to where it was. */
size_t glue_enter(struct glue_load *load, struct str part);
void glue_leave(struct glue_load *load, size_t where);

/* ---- Findings ---------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) void glue_complain(struct glue_load *load, int code, yaml_mark_t mark,
                                                         const char *format, ...);
__attribute__((format(printf, 3, 4))) void glue_warn(struct glue_load *load, yaml_mark_t mark, const char *format, ...);

/* For yaml_reader.complained; the context is the load. */
void glue_load_told(void *context, int code, yaml_mark_t mark, struct str text);

/* Hands the findings over in the order of the file; the first error goes into err. Returns its code, or 0. */
int glue_load_finish(struct glue_load *load, struct err *err);

/* ---- Values: each complains by itself where it returns false ----------------------------------------------------- */

struct str glue_copy(struct glue_load *load, struct str text);

/* The entries of a mapping with fixed keys; found[] has a place for each, value NULL where it is not there. False: it is no
 * mapping. Unknown keys are told and passed over. */
bool glue_keys(struct glue_load *load, const struct yaml_entry *owner, const char *const *keys, const char *example,
               struct yaml_entry *found);

/* A mapping with free keys, of at most so many. */
bool glue_mapping(struct glue_load *load, const struct yaml_entry *entry, const char *example, uint32_t most);

/* A single value; `what` says what it should be. The copy lives with the glue. */
bool glue_text(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *text);
/* The same of at most LIMIT_GLUE_NAME_BYTES. */
bool glue_name(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *name);
/* A key, as a name. */
bool glue_key_name(struct glue_load *load, const struct yaml_entry *entry, const char *what, struct str *name);

bool glue_flag(struct glue_load *load, const struct yaml_entry *entry, bool *flag);

/* One of words, which end with NULL. */
bool glue_word(struct glue_load *load, const struct yaml_entry *entry, const char *const *words, const char *what,
               int *word);

/* A whole number in a range. */
bool glue_number(struct glue_load *load, const struct yaml_entry *entry, const char *what, uint32_t least,
                 uint32_t most, uint32_t *number);

/* "" or `/a/b`, with `*` for any element or member. */
bool glue_is_pointer(struct str text);
bool glue_pointer(struct glue_load *load, const struct yaml_entry *entry, struct str *pointer);
bool glue_check_pointer(struct glue_load *load, yaml_mark_t mark, struct str pointer);

/* The name of a header. */
bool glue_is_token(struct str text);

/* A list, or a single value that stands for a list of one. `read` takes each into its place. */
size_t glue_list_count(const yaml_node_t *node);
struct yaml_entry glue_list_item(struct glue_load *load, const struct yaml_entry *list, size_t index);
struct glue_texts glue_list(struct glue_load *load, const struct yaml_entry *entry, uint32_t most,
                            bool (*read)(struct glue_load *, const struct yaml_entry *, struct str *));

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

/* read_service.c */
bool glue_read_credentials(struct glue_load *load, const struct yaml_entry *entry, struct glue_service *service);
void glue_read_services(struct glue_load *load, const struct yaml_entry *entry, const struct yaml_entry *credentials);

/* failure.c */
void glue_read_shape(struct glue_load *load, const struct yaml_entry *entry, struct glue_shape *shape);

/* read_type.c */
void glue_read_types(struct glue_load *load, const struct yaml_entry *entry);
bool glue_read_template(struct glue_load *load, const struct yaml_entry *entry, struct glue_template *template);

/* read_relation.c: what it refers to, uses, and whose it is. */
void glue_read_relations(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
/* By pointer: those of a body. */
bool glue_read_references(struct glue_load *load, const struct yaml_entry *entry, struct glue_references *references);
void glue_read_uses(struct glue_load *load, const struct yaml_entry *entry, struct glue_uses *uses);
void glue_read_owner(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
void glue_read_relied(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
/* Once all types are read. */
void glue_check_relations(struct glue_load *load);
/* All that an operation may use. */
void glue_make_relations(struct glue_load *load, struct glue_operation *operation);

/* read_cross.c: how it spans sites; and the numbers of an operation that are split. */
void glue_read_cross(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
void glue_read_divide(struct glue_load *load, const struct yaml_entry *entry, struct glue_operation *operation);

/* lists.c */
void glue_read_paging(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
void glue_read_sort(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);

/* read_operation.c: all operations of a type, those without being told included; and the resolutions. */
void glue_read_operations(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);
void glue_read_resolutions(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);

/* read_facet.c: once its operations are read. */
void glue_read_facets(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type);

/* assemble.c: once all is read, the tries, and the places of each operation. */
void glue_assemble(struct glue_load *load, const struct yaml_entry *credentials);
/* Of one operation. */
void glue_make_places(struct glue_load *load, struct glue_type *type, struct glue_operation *operation);

#endif
