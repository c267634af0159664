/* Cross: one resource over several sites (DESIGN 8). Pure: what is here is arithmetic on texts, and, in names.h, a state machine.
 *
 *   divide    a write of a divisible resource carries the whole body and a division, a weight for each site. Each site runs its own
 *             part: cross_divide_body() replaces the described numbers and lists, and keeps every other byte
 *   combine   a read asks all sites, and cross_combine() makes one body of what they answer
 *   names     names.h: the name of a child is unique over all sites of its container
 *
 * Division has no history. The parts are a function of the whole and the weights alone, so sites need not agree on what was before,
 * and a change that is run twice, or late, gives the same parts:
 *
 *   numbers   Webster's (Sainte-Laguë's) method on the last decimal place that is written: parts always add up; who has a weight of
 *             nothing gets nothing; if the total changes by d, exactly |d| units move; if a site comes or goes, only what it gets or had
 *             moves; and where the exact shares are whole, they are the parts. So parts that a user has given are good weights ever after
 *   lists     as many elements to each site as a number of that size would give, each element by what it is and not by where it stands
 *             (list.c): it stays where it is while the others change, but for those that make room
 *
 * docs/cross.md says it for users, docs/decisions/0017 why.
 */
#ifndef CROSS_CROSS_H
#define CROSS_CROSS_H

#include "site/site.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- Numbers (number.c) ------------------------------------------------------------------------------------------- */

/* A number as JSON writes it, exactly: units / 10^scale. */
struct cross_number {
	int64_t units;
	uint8_t scale; /* decimal places, at most LIMIT_CROSS_DECIMALS */
};

/* ERR_INVALID: it is no number. ERR_LIMIT: it does not fit into 64 bits, or has too many decimal places. An exponent is multiplied out. */
int cross_number_parse(struct str text, struct cross_number *number, struct err *err);
/* All decimal places are written, also where they are zeros. */
void cross_number_put(struct cross_number number, struct buf *out);
/* False: it does not fit into 64 bits. */
bool cross_number_add(struct cross_number *sum, struct cross_number other);
int cross_number_compare(struct cross_number a, struct cross_number b);

/* ---- Divisions ----------------------------------------------------------------------------------------------------- */

/* How a resource is divided: weights of its sites. Travels with each operation, so it is the same everywhere: the order counts where
 * two sites have equal claims to a rest (the earlier one gets it), and the prime site is the first. */
struct cross_division {
	uint32_t count;
	struct {
		site_id site;
		uint64_t weight; /* below 1 << 63 */
	} shares[LIMIT_REPLICA_MEMBERS];
};

/* A site with the name that people know. */
struct cross_site {
	site_id id;
	struct str name;
};

/* Weights of 1. */
void cross_division_evenly(const struct cross_site *sites, uint32_t count, struct cross_division *division);

/* By a tag of each site: a number, not negative ("4", "1.5"). ERR_INVALID names the site whose tag is none, or is missing (""), and
 * says so if all are 0. */
int cross_division_by_tags(const struct cross_site *sites, const struct str *tags, uint32_t count, struct str tag_name,
                           struct cross_division *division, struct err *err);

/* As it travels: docs/protocol/cross.md. */
void cross_division_put(const struct cross_division *division, struct buf *out);
int cross_division_parse(struct str bytes, struct cross_division *division, struct err *err);

/* A site more, or one less: the weights of the others stay. ERR_CONFLICT: it is there; ERR_LIMIT; ERR_NOT_FOUND: it is not;
 * ERR_INVALID: those that are left have no weight. */
int cross_division_add(struct cross_division *division, site_id site, uint64_t weight, struct err *err);
int cross_division_withdraw(struct cross_division *division, site_id site, struct err *err);

/* What a site gets that comes to these, if nothing else says it: the mean of their weights, at least 1. */
uint64_t cross_division_mean(const struct cross_division *division);

/* The parts of a whole; they add up to it. ERR_INVALID: no site, or all weights are 0. */
int cross_divide(int64_t whole, const struct cross_division *division, int64_t parts[LIMIT_REPLICA_MEMBERS],
                 struct err *err);

/* The parts of a change (`effect: relative`, "5 more"): each within one unit of its share, and, over many changes with different
 * `chance`, its share. It has to be the same at all sites, so it travels with the operation. By cross_divide() ten times "1 more" would
 * all go to the same site. */
int cross_divide_change(int64_t change, const struct cross_division *division, uint64_t chance,
                        int64_t parts[LIMIT_REPLICA_MEMBERS], struct err *err);

/* ---- Bodies -------------------------------------------------------------------------------------------------------- */

/* JSON pointers (RFC 6901) without `*`. */
struct cross_fields {
	const struct str *pointers;
	uint32_t count;
};

/* The part of one site: the body with each field that is there replaced by this site's part of it. A field that is absent or null is
 * not divided. ERR_NOT_FOUND: the site is not in the division. ERR_INVALID, ERR_LIMIT: the body is no JSON, has a field twice, or a
 * field that is neither a number nor a list; the text names it. On failure `out` is as it was. */
int cross_divide_body(struct str body, const struct cross_fields *fields, const struct cross_division *division,
                      site_id site, struct buf *out, struct err *err);

/* The same, of an operation that changes by what its fields say. */
int cross_divide_change_body(struct str body, const struct cross_fields *fields, const struct cross_division *division,
                             site_id site, uint64_t chance, struct buf *out, struct err *err);

/* whole.c: does the body have any of the fields, be it null? ERR_INVALID, ERR_LIMIT: as above. */
int cross_has_field(struct str body, const struct cross_fields *fields, bool *has, struct err *err);

/* What one site answered to its part, as the answer to the whole: each field that both have is as in `whole`. ERR_INVALID, ERR_LIMIT:
 * either is no JSON, or has a field twice; `out` is as it was. */
int cross_restore_body(struct str whole, struct str part, const struct cross_fields *fields, struct buf *out,
                       struct err *err);

/* The body, with each field that it has not and `whole` has as that has it. Errors as above; ERR_INVALID as well where something else
 * than an object is in the way. */
int cross_fill_body(struct str body, struct str whole, const struct cross_fields *fields, struct buf *out,
                    struct err *err);

/* The body, with 0 for each number among the fields, and an empty list for each list: the part of a site that has nothing yet. Errors as
 * of cross_has_field(). */
int cross_empty_body(struct str body, const struct cross_fields *fields, struct buf *out, struct err *err);

/* Has a part nothing of any of these fields? `field`: of which it has something. What is neither a number nor a list is nothing. */
int cross_is_empty(struct str body, const struct cross_fields *fields, bool *empty, struct str *field, struct err *err);

/* What a header `Cheops-Divide` says (header.c), for the body of its request. Three forms:
 *
 *   Site1=4 Site2=2              parts of the first divided field that the body has, which they have to add up to. Where there are
 *                                more such fields, these are their weights
 *   weights; Site1=2 Site2=1     weights
 *   evenly
 *
 * Names with other characters than letters, digits and - . _ are in double quotes, in which \ stands before \ and ". All sites of the
 * resource have to be named. ERR_INVALID, ERR_LIMIT: the text says in which column what was wrong, and what would be right. */
int cross_division_of_header(struct str header, const struct cross_site *sites, uint32_t count, struct str body,
                             const struct cross_fields *fields, struct cross_division *division, struct err *err);

/* ---- Combination (combine.c) --------------------------------------------------------------------------------------- */

enum cross_function {
	CROSS_PRIME,    /* as the prime site has it */
	CROSS_TOGETHER, /* of what was divided: the sum of numbers, one list after the other */
	CROSS_SUM,
	CROSS_UNION,  /* elements of lists, equal ones once */
	CROSS_CONCAT, /* elements of lists, all */
	CROSS_MIN,    /* of numbers, or of strings by their bytes */
	CROSS_MAX,
	CROSS_FUNCTIONS,
};

/* "prime", "sum"...; CROSS_TOGETHER has no name. */
const char *cross_function_name(enum cross_function function);
bool cross_function_parse(struct str text, enum cross_function *function);

struct cross_rule {
	struct str pointer;
	enum cross_function function;
};

/* What one site answered. The first one of an array is the prime. */
struct cross_part {
	struct str site; /* its name, for messages */
	struct str body;
	bool missing; /* the caller has no answer of it */
	/* Set by cross_combine(): what it said was of no use, and is left out as if it were missing. */
	bool left_out;
	struct err why; /* names site and pointer */
};

struct cross_combined {
	uint32_t base;  /* the part whose text it is, but for the rules' fields */
	uint32_t whole; /* parts that are in it; less than there are: the answer is partial, and the caller says so */
};

/* One body of many. A part that is no JSON, or has something in a field that its function makes nothing of, is left out, and
 * says why; so one site cannot spoil the answers of the others, and no number is made up. A field that only others than the base have
 * is added to it. ERR_UNAVAILABLE: no part is left; ERR_LIMIT: a sum that does not fit into 64 bits, too long a list or result;
 * ERR_INVALID: the rules contradict each other. On failure `out` is as it was. */
int cross_combine(const struct cross_rule *rules, uint32_t rules_count, struct cross_part *parts, uint32_t parts_count,
                  struct buf *out, struct cross_combined *combined, struct err *err);

/* ---- Standings (standing.c) ----------------------------------------------------------------------------------------- */

/* How far one site has come with its part. */
struct cross_standing {
	bool settled;        /* it is not being changed, and what follows is so; else nothing is known */
	uint64_t operations; /* that it has carried out, */
	uint64_t digest;     /* and which: the same at two sites that have carried out the same */
	uint64_t sites;      /* that have parts, as it knows them: cross_sites_digest() */
	bool lacks;          /* of these operations, one was refused there, or is in doubt */
	site_id lost;        /* a site that went away with its part; 0: none */
};

uint64_t cross_sites_digest(const site_id *sites, uint32_t count);
/* A site that has a share, and is none of these; 0: there is none. */
site_id cross_division_lost(const struct cross_division *division, const site_id *sites, uint32_t count);

/* As it travels: docs/protocol/hop.md. What makes no sense says nothing. */
void cross_standing_put(const struct cross_standing *standing, struct buf *out);
struct cross_standing cross_standing_parse(struct str text);

enum cross_verdict {
	CROSS_FITS,
	CROSS_CHANGING,
	CROSS_BEHIND,
	CROSS_OTHER_SITES,
	CROSS_LACKS,
	CROSS_VERDICTS,
};

/* Are these parts of one whole? Where one is not CROSS_FITS, what is made of them is no whole. `sites`: a digest of those that were asked; NULL:
 * the user has named them. */
void cross_standings_compare(const struct cross_standing *standings, uint32_t count, const uint64_t *sites,
                             enum cross_verdict *verdicts);
const char *cross_verdict_reason(enum cross_verdict verdict); /* as `Cheops-Partial` has it; NULL: it fits */
const char *cross_verdict_phrase(enum cross_verdict verdict);

#endif
