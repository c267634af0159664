/* Of the room and its tests. */
#ifndef CROSS_CROSS_INT_H
#define CROSS_CROSS_INT_H

#include "cross/cross.h"

#include "glue/json.h"

/* ---- Where a field is in a body (field.c) -------------------------------------------------------------------------- */

struct cross_place {
	bool found;
	enum glue_json_kind kind;
	size_t at;
	size_t length;
	bool is_null;
	/* Where it is not: the innermost object around its place. */
	bool addable;      /* there is one: the root at least, and no array or scalar is in its way */
	uint32_t depth;    /* so many segments of the pointer lead to it */
	size_t inner_end;  /* its closing brace */
	bool inner_filled; /* it has members */
};

/* A pointer that makes no sense, or a body that is no JSON, or in which one of them is twice: ERR_INVALID or ERR_LIMIT. */
int cross_find(struct str body, const struct cross_fields *fields, struct cross_place *places, struct err *err);

/* The segments of a pointer, one after the other: false at the end. `segment` is a slice of the pointer or of `scratch`. */
bool cross_segment_next(struct str *rest, struct buf *scratch, struct str *segment);

/* Writes `value` where the pointer says, which `place` found to be empty. */
void cross_insert(struct str body, struct str pointer, const struct cross_place *place, struct str value,
                  struct buf *out);

/* ---- Lists (list.c) ------------------------------------------------------------------------------------------------ */

struct cross_list {
	struct str *elements; /* slices of the text */
	uint32_t count;
	uint32_t capacity;
};

int cross_list_read(struct str text, struct cross_list *list, struct err *err);
void cross_list_free(struct cross_list *list);

/* Equal elements have equal texts. Appends it. */
int cross_element_canonical(struct str element, struct buf *out, struct err *err);

/* For each element, which share of the division has it. There is room for so many at each, together for all; it is used up. */
int cross_list_place(const struct cross_list *list, const struct cross_division *division, uint64_t *room,
                     uint32_t *owners, struct err *err);

/* ---- Arithmetic (divide.c) ----------------------------------------------------------------------------------------- */

/* As cross_divide(), of what is not negative. */
int cross_apportion(uint64_t whole, const struct cross_division *division, uint64_t parts[LIMIT_REPLICA_MEMBERS],
                    struct err *err);

int cross_apportion_change(uint64_t whole, const struct cross_division *division, uint64_t chance,
                           uint64_t parts[LIMIT_REPLICA_MEMBERS], struct err *err);

void cross_cut(struct buf *buf, size_t length);

#endif
