/* Inside lists of several sites: what the merger remembers beyond the element at hand. */
#ifndef GLUE_GATHER_INT_H
#define GLUE_GATHER_INT_H

#include "glue/gather.h"
#include "glue/json.h"
#include "glue/places.h"

/* ---- Marks (gather_shown.c) ---- */

enum gather_mark_kind { GATHER_UNMARKED, GATHER_REPLICA, GATHER_PART, GATHER_PRIME_PART };

enum { GATHER_SAYS_BYTES = 96 }; /* of a part; more is not read */

struct gather_mark {
	enum gather_mark_kind kind;
	char says[GATHER_SAYS_BYTES]; /* of a part: what stands behind that */
	uint8_t says_bytes;
	unsigned char id[GLUE_GATHER_ID_BYTES];
};

/* What makes no sense is no mark. */
void gather_mark_parse(struct str text, struct gather_mark *mark);

/* ---- Replicas that were shown (gather_shown.c) ---- */

/* Open addressing, zeros are free. */
struct gather_shown {
	struct hash_key hash_key;
	unsigned char (*ids)[GLUE_GATHER_ID_BYTES];
	size_t size, count;
};

enum gather_shown_result { GATHER_SHOWN_NOW, GATHER_SHOWN_BEFORE, GATHER_SHOWN_TOO_MANY };

enum gather_shown_result gather_shown_note(struct gather_shown *shown, const unsigned char id[GLUE_GATHER_ID_BYTES]);
void gather_shown_free(struct gather_shown *shown);

/* ---- Parts of what is divided (gather_parts.c) ---- */

struct gather_part {
	uint32_t site;
	bool prime;
	struct str lead; /* what stands before it */
	struct str text; /* behind its brace and mark */
	struct str says;
};

struct gather_kept; /* one part, */
struct gather_one;  /* and all of one resource */

struct gather_parts {
	struct hash_key hash_key;
	struct gather_kept *kept;
	uint32_t kept_count, kept_capacity;
	struct gather_one *ones; /* in the order in which they were seen */
	uint32_t ones_count, ones_capacity;
	uint32_t *places; /* open addressing: of ones, and one more; 0 is free */
	size_t places_size;
	struct buf text;
	uint32_t taken;
};

struct gather_whole {
	unsigned char id[GLUE_GATHER_ID_BYTES];
	struct str lead;
	struct glue_gather_part parts[LIMIT_GATHER_SITES]; /* the prime's first, the others in the order of the sites */
	uint32_t count;
};

/* Copies. False: it would be too much. A site has one part of a resource: what it says a second time is not heard. */
bool gather_parts_keep(struct gather_parts *parts, const unsigned char id[GLUE_GATHER_ID_BYTES],
                       const struct gather_part *part);
/* The next resource; its texts live until the parts are freed. False: that was all. */
bool gather_parts_take(struct gather_parts *parts, struct gather_whole *whole);
void gather_parts_free(struct gather_parts *parts);

/* ---- The merger (gather.c) ---- */

/* Where a site's text is. */
enum gather_stage {
	GATHER_LEADING, /* before its array */
	GATHER_BETWEEN, /* in the array: an element comes, or its end */
	GATHER_FIRST,   /* in an element that is an object: its first member, or its end */
	GATHER_MARK,    /* that member is a mark: its value */
	GATHER_INSIDE,  /* an element: its end */
	GATHER_BEHIND,  /* the array */
	GATHER_ENDED,
	GATHER_FAILED,
};

/* Outside the array: what the scanner tells next belongs to something of interest. */
enum gather_awaited {
	GATHER_NOTHING,
	GATHER_LIST_LITERAL, /* in the place of the list: null, or a fault */
	GATHER_NEXT_SCALAR,  /* what says whether there is another page: it itself, */
	GATHER_NEXT_INSIDE,  /* or anything in it, */
	GATHER_NEXT_CLOSE,   /* or its end, whatever comes before */
};

struct gather_source {
	enum gather_stage stage;
	enum glue_gather_fault fault;
	struct err err;
	bool marked;
	bool only;  /* of its elements, only those are shown that the policy knows */
	bool over;  /* its end was told */
	bool more;  /* it has another page */
	bool null;  /* its list is null: it is empty */
	bool trial; /* only to see whether it is well: nothing is passed on or kept */
	uint8_t bom;
	/* outside the array: the walk through the places */
	const struct glue_places_node *around[LIMIT_GLUE_SEGMENTS + 1];
	uint32_t index[LIMIT_GLUE_SEGMENTS + 1]; /* of the next element of an array */
	uint32_t depth;
	const struct glue_places_node *member;
	uint64_t seen; /* a bit per level: the key that leads to the list was there */
	enum gather_awaited awaited;
	uint32_t awaited_depth;
	/* in the array */
	uint32_t element_depth;
	bool is_object, has_mark;
	struct gather_mark mark;
	size_t element_at, mark_end;           /* counted from the first byte */
	struct buf before;                     /* the array: kept for the shape */
	struct buf lead;                       /* white space, and a comma perhaps, before an element */
	struct buf part;                       /* what came in earlier pieces of an element, or of what is between two */
	const char *from;                      /* where in the piece begins what is not in `part` yet */
	struct buf held;                       /* not looked at yet */
	char closers[LIMIT_GLUE_SEGMENTS + 1]; /* what ends the text, behind the array */
	struct glue_json json;
};

struct glue_gather {
	struct glue_gather_options options;
	struct glue_places *places;
	const struct glue_places_node *path[LIMIT_GLUE_SEGMENTS + 1]; /* from the root to the list */
	uint32_t path_count;
	const struct glue_places_node *next; /* NULL: none */
	struct gather_source *sources;
	uint32_t shape, turn;
	bool begun, over;
	bool open;        /* the array was begun, */
	bool any;         /* and has an element */
	struct buf after; /* the array, of the shape */
	struct gather_shown shown, texts;
	struct gather_parts parts; /* of what is divided, until all sites are through */
	struct err *lacks;         /* by site: why a part of it is missing; code 0: none is */
	const char **unfit;        /* of each: why, where that is a lack of another kind */
};

void gather_fail(struct gather_source *source, enum glue_gather_fault fault);
void gather_fail_long(struct gather_source *source, const char *what, unsigned most);
void gather_fail_list(struct gather_source *source);

/* ---- Around the array (gather_around.c) ---- */

void gather_outside(struct glue_gather *gather, struct gather_source *source, enum glue_json_event event);
/* What comes before it, as far as it is in this piece. */
void gather_keep_around(struct glue_gather *gather, struct gather_source *source, const char *end);
/* Is it its text that the elements of all are put into? */
bool gather_is_shape(const struct glue_gather *gather, const struct gather_source *source);

#endif
