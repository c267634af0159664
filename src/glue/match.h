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

/* Is the path that of an item, whatever the method? Fills what does not depend on an operation. */
bool glue_match_item(const struct glue_service *service, struct str service_name, struct str path,
                     struct glue_match *match);

/* splice_target.c: writes what replaces the variable of the match's path. False: nothing does, and nothing was written. */
bool glue_reference_splice(const struct glue_match *match, uint32_t variable, const struct glue_replacer *replacer,
                           struct buf *out);

#endif
