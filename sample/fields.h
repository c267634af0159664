/* Reading the members of a JSON body. */
#ifndef SAMPLE_FIELDS_H
#define SAMPLE_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

#include "reply.h"

/* The string `name` of an object, of 1 to `bytes_max` bytes; NULL with a 400 in `*refusal` if it is anything else. */
const char *field_text(const json_t *object, const char *name, size_t bytes_max, struct reply *refusal);

/* Applies a merge patch (RFC 7396, section 2) to an object. Both stay the caller's. */
void merge_patch(json_t *target, json_t *patch);

#endif
