/* Inside the http room. */
#ifndef HTTP_HTTP_INT_H
#define HTTP_HTTP_INT_H

#include "http/http.h"

/* Buffers come in sizes of 4, 8, 16, 32 and 64 KiB; a loop keeps some of each. */
enum { HTTP_BUFFER_LEAST = 4096, HTTP_SHELVES = 5, HTTP_SHELF_MOST = 64 };

_Static_assert(HTTP_BUFFER_LEAST << (HTTP_SHELVES - 1) == LIMIT_HTTP_BUFFER_BYTES, "the last shelf is for the largest");

/* HTTP_FIELD_OTHER for a name that is not known. */
enum http_field_id http_field_id_of(struct str name);

#endif
