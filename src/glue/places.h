/* Places: JSON pointers (RFC 6901) in which a segment `*` stands for any member or element, as a tree to walk along with
 * the text. At most one node of it belongs to a value, whatever the pointers: where both `*` and a name fit a member, its
 * node has what follows either.
 *
 *   id                  (root) ─ id ●
 *   nets, any, uuid         └ nets ─ any ─ uuid ●
 *   nets, 0, port                 └  0  ─ uuid ●, port ●
 *
 * Once they are all added, they may be used by any number of threads.
 */
#ifndef GLUE_PLACES_H
#define GLUE_PLACES_H

#include "glue/glue.h"

struct glue_places *glue_places_new(void);
void glue_places_free(struct glue_places *places);

/* Adds a pointer ("": the whole text). Of two that fit one value, the one with a name where the other has `*` counts, from
 * the left. The same pointer once more, as something else: ERR_CONFLICT. No pointer: ERR_INVALID. Too many, too deep, too long a
 * name: ERR_LIMIT. After a failure they are good for glue_places_free() only. */
int glue_places_add(struct glue_places *places, struct str pointer, enum glue_place_kind kind,
                    const struct glue_type *type, struct err *err);

/* The same of a reference, with how its item relates to what it refers to. */
int glue_places_add_reference(struct glue_places *places, struct str pointer, const struct glue_type *type,
                              enum glue_kind relation, struct err *err);

/* Writes a JSON text in canonical form (compare.c says which), without what is in the places. ERR_INVALID, ERR_LIMIT: nothing
 * is written. */
int glue_places_without(const struct glue_places *places, struct str body, struct buf *out, struct err *err);

/* Where the id begins in a reference: it may be the whole URL of what it refers to, whose last segment is that. */
size_t glue_reference_begin(struct str value);

/* ---- For those who walk ------------------------------------------------------------------------------------------ */

struct glue_places_node {
	bool is_place;
	enum glue_place_kind kind;       /* of a place */
	const struct glue_type *type;    /* of a place */
	enum glue_kind relation;         /* of a reference */
	bool leads_on;                   /* it has nodes below */
	uint32_t names;                  /* of a place: which segments of its pointer are names, the first one uppermost */
	struct str name;                 /* in its parent: a member's, */
	int64_t index;                   /* or an element's; -1: the name is no index */
	uint64_t hints;                  /* a bit per name below: most names that are not there have none */
	struct glue_places_node *below;  /* the first of those with a name */
	struct glue_places_node *beside; /* the next one below the same parent */
	struct glue_places_node *any;    /* `*` */
};

const struct glue_places_node *glue_places_root(const struct glue_places *places);
/* Where a member or element of a node's value belongs; NULL: nothing of interest is in it. */
const struct glue_places_node *glue_places_member(const struct glue_places_node *node, struct str name);
const struct glue_places_node *glue_places_element(const struct glue_places_node *node, uint32_t index);
/* The nodes from the root to where a pointer leads, both included. False: there are none, or it has `*`. */
bool glue_places_path(const struct glue_places *places, struct str pointer,
                      const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1], uint32_t *count);

#endif
