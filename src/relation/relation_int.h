/* Inside the room. */
#ifndef RELATION_RELATION_INT_H
#define RELATION_RELATION_INT_H

#include "relation/relation.h"

/* "server.create" */
void relation_put_operation(struct buf *out, const struct glue_match *match);

/* It is a create with a body in which something may be required. */
bool relation_requires_something(const struct relation_question *question);

/* As much of a message as fits; the buffer is empty then. */
void relation_keep(char out[LIMIT_ERROR_TEXT_BYTES], struct buf *text);

#endif
