/* Lists of several sites as one (DESIGN 8): each site's answer comes in pieces of any size, and one JSON text goes out.
 *
 *   Site1  {"images": [a, b], "count": 2}
 *   Site2  {"images": [c, b'], "count": 2}     b' is the same replicated resource as b
 *   out    {"images": [a, b, c], "count": 2}
 *
 * What stands around the array is that of the first site whose list was found: its *shape*. The elements are those of all, in the
 * order of the sites; a replicated resource is shown once, and so is, where asked for, what is the same at two sites byte by byte.
 *
 *   1. Leading: every site is fed until its array begins, and a little further. What stands before it is kept.
 *   2. glue_gather_begin(): a site without a list has failed by now, which can still be told in the head of an answer. A text that
 *      is there to its end was checked whole.
 *   3. The sites pass their elements on, one site after the other. Only the one whose turn it is wants bytes; the others wait.
 *      The shape's end is held back until all are through.
 *
 * Whatever a site sends, the output is one JSON text with all elements of the good sites: an element is passed on only once it is
 * whole, and where the shape itself breaks off, what was opened is closed. A key on the way to the list that is there twice is
 * such a fault: readers would take the last one, and lose what the others have.
 *
 * Marks: an agent that is asked to inserts `"cheops-replica":"<meta-id>"` as the first member of each element that is a replica
 * (glue_splicer_mark()); here it is taken out again. Of what is divided, each site has a part, and the mark says so: `<meta-id>;prime` at the
 * prime, `<meta-id>;part` at the others, then perhaps `;` and what else that site says of it. The parts of one resource are kept until all sites are through, and then become one element, at the
 * end of the array. How, is the caller's business (struct glue_gather_policy).
 *
 * Memory: a window per site, one element, what stands around the array, 16 bytes for each replica that was shown, and the parts of what is
 * divided. */
#ifndef GLUE_GATHER_H
#define GLUE_GATHER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/str.h"

struct glue_gather;

enum glue_gather_fault {
	GLUE_GATHER_OK,
	GLUE_GATHER_GIVEN_UP, /* by the caller: glue_gather_fail() */
	GLUE_GATHER_NO_JSON,  /* or cut in the middle */
	GLUE_GATHER_NO_LIST,  /* JSON without an array where the description says */
	GLUE_GATHER_TWICE,    /* a key that leads to the list is there twice */
	GLUE_GATHER_TOO_LONG, /* an element, or what stands around the array: LIMIT_GATHER_... */
	GLUE_GATHER_REPLICAS, /* more than LIMIT_GATHER_REPLICAS were shown */
	GLUE_GATHER_PARTS,    /* more than LIMIT_GATHER_PARTS... of divided resources */
	GLUE_GATHER_FAULTS,
};

const char *glue_gather_fault_name(enum glue_gather_fault fault); /* "no-json"... */

#define GLUE_GATHER_MARK_PART ";part"
#define GLUE_GATHER_MARK_PRIME ";prime"

enum { GLUE_GATHER_ID_BYTES = 16 }; /* of a meta-id */

/* What one site has of a resource: an object. */
struct glue_gather_part {
	uint32_t site;
	struct str text;
	struct str says; /* behind the mark: "" where there is nothing */
	bool left_out;   /* set by the caller: nothing could be made of it, */
	struct err why;
	const char
		*unfit; /* or it is in it, and is not what it should be: for that reason, a word; `why` has more. NULL: it is */
};

/* What the caller knows of replicated resources. Functions may be NULL. */
struct glue_gather_policy {
	void *context;
	/* Is it to be shown here? Asked of sites that are glue_gather_only(). */
	bool (*knows)(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES]);
	/* One object of the parts of a resource, the prime's first, appended; false: there is none. NULL: the first part stands for all. */
	bool (*combine)(void *context, struct glue_gather_part *parts, uint32_t count, struct buf *out, struct err *err);
	/* Sets those of the sites that should have a part of it. */
	void (*expects)(void *context, const unsigned char id[GLUE_GATHER_ID_BYTES], bool sites[LIMIT_GATHER_SITES]);
};

struct glue_gather_options {
	uint32_t sites_count;
	struct str list; /* JSON pointer to the array; "": the text is it */
	struct str next; /* to what says that there is another page; "": nothing does */
	bool one_page;   /* the shape's own next page is none of what is put together: the text leads to none */
	const struct str
		*names; /* of the sites, to be put into each element as "cheops-site"; NULL: they are not. Not copied */
	bool alike; /* objects that are the same at two sites, byte by byte, are shown once; not with names */
	struct glue_gather_policy policy;
	struct hash_key hash_key;
};

/* NULL: a pointer cannot be followed. */
struct glue_gather *glue_gather_new(const struct glue_gather_options *options, struct err *err);
void glue_gather_free(struct glue_gather *gather);

/* Elements of this site may have marks. Before it is fed. */
void glue_gather_marked(struct glue_gather *gather, uint32_t site);

/* Of this site's elements, those are shown that have a mark which the policy knows; all others are left out. Before it is fed. */
void glue_gather_only(struct glue_gather *gather, uint32_t site);

/* Is there any use in feeding this site now? Otherwise what is fed is kept until it is its turn. */
bool glue_gather_wants(const struct glue_gather *gather, uint32_t site);

/* Bytes of a site, its end, or that there will be no end. What can be passed on is appended to `out`: nothing before
 * glue_gather_begin(). A site that has failed takes anything, and ignores it. */
void glue_gather_feed(struct glue_gather *gather, uint32_t site, struct str bytes, struct buf *out);
void glue_gather_end(struct glue_gather *gather, uint32_t site, struct buf *out);
void glue_gather_fail(struct glue_gather *gather, uint32_t site, struct buf *out);

/* Every site has been fed to its array and a little further, or to its end, or has failed. */
bool glue_gather_ready(const struct glue_gather *gather);
/* Begins to pass on. False: all sites have failed, and there is nothing to pass on, ever. */
bool glue_gather_begin(struct glue_gather *gather, struct buf *out);
/* Whose answer is the shape; after a begin that was true. */
uint32_t glue_gather_shape(const struct glue_gather *gather);
/* Whose turn it is; sites_count: all of it was passed on. */
uint32_t glue_gather_turn(const struct glue_gather *gather);

/* What became of a site; the text says what was found, where that is more than its name. */
enum glue_gather_fault glue_gather_fault(const struct glue_gather *gather, uint32_t site, struct str *text);
/* Its list is whole, but a part of something divided was not in it (ERR_NOT_FOUND), or nothing could be made of it, or it is unfit; 0: neither.
 * Known when all was passed on. `unfit`: why; NULL: it is none. */
int glue_gather_lacks(const struct glue_gather *gather, uint32_t site, struct str *text, const char **unfit);
/* It said that there is another page. */
bool glue_gather_has_more(const struct glue_gather *gather, uint32_t site);

#endif
