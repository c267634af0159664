/* Inside the room: methods, and the search. */
#ifndef GLUE_MATCH_H
#define GLUE_MATCH_H

#include "glue/trie.h"

/* Those that a description can speak of; a request with any other is known to none. */
enum glue_method {
	GLUE_GET,
	GLUE_HEAD,
	GLUE_POST,
	GLUE_PUT,
	GLUE_PATCH,
	GLUE_DELETE_METHOD,
	GLUE_OPTIONS,
	GLUE_METHODS
};

/* -1: none of them. */
int glue_method_find(struct str name);
const char *glue_method_name(enum glue_method method);

#endif
