/* Percent-encoding (RFC 3986, 2.1): for scopes in paths and in baggage, names in certificates, queries. */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* False where a `%` is not followed by two hexadecimal digits. */
bool percent_decode(struct arena *arena, struct str text, struct str *decoded);

/* Everything but letters, digits and - _ . ~ is encoded. */
void percent_encode(struct buf *out, struct str text);

#endif
