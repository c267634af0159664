/* Facets of this site's copy, as its service has them now: files, and other parts of an item with a path of their own. Read to be
 * compared (verify.h), to be given to other members (find.c), or to see whether there is anything to set (run.c).
 *
 * 1. Each facet that the description can read and set as a whole (glue_facet_find()) is read, one after the other, by GET, with the
 *    agent's own credential.
 * 2. One that is bytes goes through a spool as it comes, no faster than the disk's thread takes it: to a file where it is to be kept
 *    (`keep`), else only through the hash. So memory does not depend on its size, and this thread hashes nothing.
 * 3. One that is JSON is read whole, since ids are in it: they become meta-ids. Kept, and too long to travel with an operation, it is
 *    spooled as well; to be compared, it is put into the form in which items are (glue_comparable()).
 * 4. done(), once.
 *
 * What goes wrong:
 *   204, 404, 410                              there is none; that is no failure
 *   no answer, it breaks off, any other one    the facet FAILED, with why. What is to be kept ends there, else the next one is read
 *   no room for it on the disk                 the same
 *   it takes longer than limit_ms in all       the same, for all that are left; so it does for one that does not move for a while
 * All of it belongs to the engine's thread. */
#ifndef ENGINE_FACETS_H
#define ENGINE_FACETS_H

#include "engine/engine_int.h"

struct facet_part {
	struct glue_facet facet;            /* `read` NULL: it is in `body` already, and only to be kept */
	const struct glue_copying *copying; /* a new member gets it by requests of their own; NULL: by one that sets it */
	enum engine_facet kind;
	bool refused;            /* FAILED: the service would say so again */
	struct buf head;         /* of the request that sets it; "": a PUT of it */
	struct buf body;         /* of what is JSON */
	struct buf content_type; /* as the service called it */
	struct engine_spool *spool;
	uint8_t hash[ENGINE_BLOB_BYTES]; /* HERE, unless it is kept in `body` alone */
	uint64_t bytes;
	struct err err;
};

struct facets {
	/* of the owner, before it starts */
	struct engine *engine;
	const struct engine_setup *setup; /* with its service; both stay as long as this */
	const struct engine_service *service;
	const struct glue_type *type;
	struct engine_name own; /* of the item, but for its id */
	struct buf item;        /* its path here */
	bool keep;
	uint64_t limit_ms;
	void (*done)(struct facets *facets); /* perhaps before engine_facets_start() returns; may end it */
	void *context;
	struct facet_part parts[LIMIT_GLUE_FACETS + 1]; /* one for the item itself */
	uint32_t parts_count;
	/* */
	uint32_t at;
	struct http_call *call;
	struct http_timer timer;
	bool timed;
};

/* All that the type has, behind what is there. */
void engine_facets_add(struct facets *facets);
/* And those that a new member gets by requests of their own; `item` is what it shows. */
void engine_facets_add_copied(struct facets *facets, struct str item);
void engine_facets_start(struct facets *facets);
/* What was kept gets its names; from here on an operation has to need it. */
int engine_facets_keep(struct facets *facets, struct err *err);
/* What was kept and that no operation needs goes. */
void engine_facets_release(struct facets *facets);
/* Whatever it is at; frees what it has, and not itself. */
void engine_facets_end(struct facets *facets);

/* elements.c: the body of a request for each element of a list, in what a facet shows. */
typedef void engine_element_each(void *context, struct str body);
int engine_elements(const struct glue_copying *copying, struct str shown, engine_element_each *each, void *context,
                    struct err *err);
/* Does the item show the value? */
bool engine_item_shows(const struct glue_type *type, const struct glue_copying *copying, struct str item);

#endif
