/* Glue: what Cheops knows of an application (DESIGN 10).
 *
 * An application is a black box behind an API. A description, a YAML file (docs/descriptions.md), says how to read that API:
 * which paths are resources of which type, where their ids, names and references stand, what a request does to a resource.
 * This room reads such a file, tells what a request is, and finds and replaces ids in bodies without touching any other
 * byte.
 *
 * The room is pure. A struct glue never changes once it is made and may be used by any number of threads.
 */
#ifndef GLUE_GLUE_H
#define GLUE_GLUE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- What a request does ----------------------------------------------------------------------------------------- */

/* From the meaning of HTTP's methods, or from the description. */
enum glue_effect {
	GLUE_READ,     /* changes nothing: one item, or a part of one */
	GLUE_LIST,     /* changes nothing: many items */
	GLUE_CREATE,   /* makes an item */
	GLUE_REPLACE,  /* sets the whole item, or the whole facet: PUT */
	GLUE_ASSIGN,   /* sets what it names: merge patch */
	GLUE_RELATIVE, /* depends on what is there: increments, appends, actions */
	GLUE_DELETE,   /* ends an item */
	GLUE_PASS,     /* none of our business: log-in, console, whatever the description says so of */
	GLUE_EFFECTS,
};

const char *glue_effect_name(enum glue_effect effect); /* "read", "list", "create"... */

/* For two concurrent operations x before y (DESIGN 7, "Ordering, exactly"). */
enum glue_resolution {
	GLUE_TAKE_ONE, /* only y counts */
	GLUE_ANY_ORDER,
	GLUE_KEEP_ORDER,    /* x, y */
	GLUE_REVERSE_ORDER, /* y, x */
	GLUE_RESOLUTIONS,
};

const char *glue_resolution_name(enum glue_resolution resolution); /* "take-one"... */

/* Who names an item. */
enum glue_identity {
	GLUE_ASSIGNED,  /* the service makes an id of its own: differs from site to site, users see the meta-id */
	GLUE_CHOSEN,    /* the user, in path or body: the same at every site; nothing is rewritten */
	GLUE_SUGGESTED, /* as assigned, but a create may say the id: the meta-id is put there, and is the id at every site */
};

/* How an operation runs at another site, later (DESIGN 7, Credentials). */
enum glue_credential {
	GLUE_FORWARD,     /* with the user's credential, as long as it is valid */
	GLUE_IMPERSONATE, /* with the agent's own, and the application's way to say on whose behalf */
	GLUE_AGENT,       /* with the agent's own */
};

/* ---- Several sites, relations, ownership (DESIGN 8, 9) ------------------------------------------------------------ */

/* Whose a resource is. */
enum glue_owner {
	GLUE_GLOBAL, /* any site may use it: an image */
	GLUE_SITE,   /* the site's where it is: what runs elsewhere cannot use it, a flat network */
};

/* What becomes of deleting what others rely on. */
enum glue_relied { GLUE_RELIED_WARN, GLUE_RELIED_REFUSE };

/* How one resource spans several sites (`%`). */
enum glue_strategy {
	GLUE_NO_CROSS,    /* it does not */
	GLUE_CONTAINER,   /* exists at every one; what is in it lies where it was made */
	GLUE_DIVISIBLE,   /* each has a part */
	GLUE_INDIVISIBLE, /* lives at its prime */
	GLUE_STRATEGIES,
};

const char *glue_strategy_name(enum glue_strategy strategy); /* "none", "container"... */

/* How what the sites have is put together. */
enum glue_combine {
	GLUE_SUM,
	GLUE_UNION,
	GLUE_CONCAT,
	GLUE_MIN,
	GLUE_MAX,
	GLUE_PRIME, /* what the prime site has */
	GLUE_COMBINES,
};

const char *glue_combine_name(enum glue_combine combine); /* "sum"... */

struct glue_combination {
	struct str pointer; /* within the object; never with `*` */
	enum glue_combine as;
};

struct glue_cross {
	enum glue_strategy strategy;
	bool optimistic;   /* container: a name that cannot be checked everywhere is accepted, and settled at healing */
	struct str weight; /* divisible: the tag of a site that says how much it gets; "": evenly */
	const struct str
		*divide; /* divisible, at least one: pointers within the object to numbers or lists; never with `*` */
	uint32_t divide_count;
	const struct glue_combination *combine; /* divisible; a divided one may be among them: sum, union or concat */
	uint32_t combine_count;
};

/* How a resource relates to another that it refers to. */
enum glue_kind {
	GLUE_UNRELATED,   /* the description does not say */
	GLUE_REQUIREMENT, /* needs it while the operation runs: a server's image */
	GLUE_RELIANCE,    /* needs it for life: a pod's secret */
	GLUE_COMPOSITION, /* it is a part, which the application makes and destroys: a deployment's pods */
	GLUE_CONTAINED,   /* lives in it: `container` */
	GLUE_KINDS,
};

const char *glue_kind_name(enum glue_kind kind); /* "none", "requirement", "reliance", "composition", "container" */

/* ---- A description ----------------------------------------------------------------------------------------------- */

struct glue;           /* one application */
struct glue_service;   /* one of its services */
struct glue_type;      /* one type of resource */
struct glue_operation; /* one thing that can be asked of a type */
struct glue_places;    /* where ids and references stand in one kind of body */
struct glue_template;  /* one path of an operation */

/* All that is wrong with a file, in the order of the file; and what is suspicious. */
enum glue_severity { GLUE_ERROR, GLUE_WARNING };

struct glue_finding {
	enum glue_severity severity;
	uint32_t line; /* 1 is the first; 0: of the whole file */
	uint32_t column;
	struct str where;   /* "types.image.image.item" */
	struct str message; /* what is wrong and what would be right */
};

struct glue_options {
	const char *path; /* of the file, for complaints */
	struct hash_key hash_key;
	/* Called for each finding; may be NULL. Slices live until it returns. At most LIMIT_GLUE_FINDINGS. */
	void (*finding)(void *context, const struct glue_finding *finding);
	void *context;
};

/* Reads and checks a description. ERR_INVALID, ERR_LIMIT, ERR_VERSION (`format` is later than ours) where it has an error;
 * err then has the first one, as "FILE:LINE:COLUMN: ...". */
int glue_read(struct glue **out, struct str text, const struct glue_options *options, struct err *err);
void glue_free(struct glue *glue);

struct str glue_application(const struct glue *glue);
/* SHA-256 is the shell's affair; this is the text's own number, to tell whether two sites have the same one. */
uint64_t glue_digest(const struct glue *glue);

/* A header that is added to a request: its value may have `{user}` in it. */
struct glue_header {
	struct str name;
	struct str value;
};

/* What the description says of a service as such; "" or 0 where it says nothing. */
struct glue_service_about {
	struct str name;            /* "*": of every service that has no entry of its own */
	struct str address;         /* where it usually is: "http://127.0.0.1:9292" */
	struct str base;            /* what agents put before a path in requests of their own: "/v2"; "": nothing */
	struct str version_path;    /* what to read to know its version, */
	struct str version_pointer; /* and where in the answer it stands */
	const struct str *carry;    /* how it carries a scope along, as in the agent's configuration */
	uint32_t carry_count;
	struct str
		accompany; /* the header in which the agent's own credential goes along with the user's; "": it does not */
	struct str judge_service; /* a refusal of a credential counts while this service gives an agent, */
	struct str judge_path;    /* asked for this, an answer; "": it always counts */
	struct str user_header;   /* on whose behalf an operation runs: this header of the request, */
	struct str user_claim;    /* or this claim of its bearer token (a JWT) */
	const struct glue_header *impersonate;
	uint32_t impersonate_count;
};

/* NULL: the description knows no such service, and says nothing of any other. */
const struct glue_service *glue_service_find(const struct glue *glue, struct str name);
const struct glue_service_about *glue_service_about(const struct glue_service *service);
uint32_t glue_services_count(const struct glue *glue);
const struct glue_service *glue_service_at(const struct glue *glue, uint32_t index);

/* What an agent itself has to say of a request to a service. */
struct glue_failure {
	unsigned status;
	struct str reason; /* the status in words */
	struct str type;   /* of the problem */
	struct str title, detail;
};

/* In the form in which the service tells its errors. False: the description says none. */
bool glue_failure_put(const struct glue *glue, struct str service, const struct glue_failure *failure, struct buf *out,
                      struct str *content_type);
bool glue_failure_is_shaped(const struct glue *glue, struct str service);

uint32_t glue_types_count(const struct glue *glue);
const struct glue_type *glue_type_at(const struct glue *glue, uint32_t index);

/* ---- What is this request? --------------------------------------------------------------------------------------- */

struct glue_request {
	struct str service;
	struct str method;
	struct str path;  /* as sent, still percent-encoded, without the query */
	struct str query; /* without `?`; "" if there is none */
	struct str content_type;
};

/* A variable of a path template and what stood there, still percent-encoded: a slice of the request's path. */
struct glue_value {
	struct str name;
	struct str text;
};

struct glue_match {
	const struct glue_service *service;
	const struct glue_type *type;
	const struct glue_operation *operation; /* NULL only if the body has to say (needs_body) */
	struct glue_value values[LIMIT_GLUE_VARIABLES];
	uint32_t values_count;
	struct str service_name; /* the request's */
	struct str id;           /* the item's, a slice of the path; "" where the request is to a collection */
	struct str collection; /* the path of the collection that the item is in, a slice of the path, without a `/` at the
	                          * end. To compare two, use glue_collection_put() */
	bool needs_body;       /* which operation it is, the body says: glue_match_body() */
	struct str key;        /* the body's first member, once glue_match_body() was told; a slice of the body, or
	                          * the description's. `*`: one with escapes, of which the description says nothing */

	/* for this room only */
	struct str path;
	const struct glue_template *template;
	const void *endpoint;
	uint64_t candidates;
};

/* False: the description knows no such path; the request passes as it is. Allocates nothing; well under a microsecond
 * with a hundred templates. A path that could be read in two ways by percent-encoding, empty or dot segments matches
 * nothing. */
bool glue_match(const struct glue *glue, const struct glue_request *request, struct glue_match *match);

/* For requests whose body says what they do (POST /servers/1/action {"reboot": {}}): takes the operation from it. The body
 * may be cut anywhere behind the name of its first member. False: it names none that is described, and none is described
 * for the rest; err says what was found and what is known. */
bool glue_match_body(const struct glue *glue, struct str body, struct glue_match *match, struct err *err);

/* "image.image"; with variables in the type's name, filled in: "kubernetes.deployments.apps". */
void glue_type_put(const struct glue_match *match, struct buf *out);

/* The collection in one form, whatever path the request took: without the service's prefixes, and without variables that do
 * not tell items apart. A name, or an id that the user chose, is unique within (type, collection). */
void glue_collection_put(const struct glue_match *match, struct buf *out);
/* With the ids of other items in it replaced, as in a target. */
struct glue_replacer;
void glue_collection_splice(const struct glue_match *match, const struct glue_replacer *replacer, struct buf *out);

/* ---- What is known of a match ------------------------------------------------------------------------------------ */

enum glue_identity glue_type_identity(const struct glue_type *type);
struct str glue_type_name(const struct glue_type *type); /* as it is written in the file: "*.{plural}" */
/* An id tells items of one collection apart, and no more: a namespace and a name. Otherwise it is unique among all of the type. */
bool glue_type_ids_in_collection(const struct glue_type *type);
/* Items that are the same at two sites, byte by byte, are one thing that was set up alike. */
bool glue_type_alike(const struct glue_type *type);
/* The collection that all of them are in, as glue_collection_put() has it; "": it depends on the path. */
struct str glue_type_only_collection(const struct glue_type *type);
bool glue_type_names_unique(const struct glue_type *type); /* a natural name, unique within its collection */
/* The query that finds an item of that name in its collection: "name=debian%2012". False: there is none. */
bool glue_type_find_put(const struct glue_type *type, struct str name, struct buf *out);
/* The service that the type is of; "*": of any. */
struct str glue_type_service(const struct glue_type *type);

enum glue_owner glue_type_owner(const struct glue_type *type);
enum glue_relied glue_type_relied(const struct glue_type *type);
/* Can something rely on it, by the description? */
bool glue_type_may_be_relied(const struct glue_type *type);
const struct glue_cross *glue_type_cross(const struct glue_type *type); /* never NULL; GLUE_NO_CROSS: nothing is said */

/* Its operations are numbered from 0, default ones included; at most LIMIT_GLUE_OPERATIONS. So are facets; 0 is the item. */
uint32_t glue_operations_count(const struct glue_type *type);
const struct glue_operation *glue_operation_at(const struct glue_type *type, uint32_t number);
uint32_t glue_operation_number(const struct glue_operation *operation);
uint32_t glue_facet_number(const struct glue_operation *operation);

struct str glue_operation_name(const struct glue_operation *operation);
enum glue_effect glue_operation_effect(const struct glue_operation *operation);
/* What part of the item it concerns: "" the item itself, "file" its file. Operations on different facets commute. */
struct str glue_operation_facet(const struct glue_operation *operation);
bool glue_operation_creates(const struct glue_operation *operation);    /* also makes what is not there (PUT by name) */
bool glue_operation_repeatable(const struct glue_operation *operation); /* running it twice is running it once */
bool glue_operation_replays(const struct glue_operation *operation); /* a create that can be run again as a replace */
bool glue_operation_opaque(const struct glue_operation *operation);  /* its body is not read: a file */
/* Its body has to be read before it goes to other sites: there may be preconditions in it, or the name of what is made. */
bool glue_operation_needs_json(const struct glue_operation *operation);
bool glue_operation_streams(const struct glue_operation *operation); /* its answer never ends: a watch, a log */
/* Its answer is read by services, who know what there is by the ids of their own site. */
bool glue_operation_for_service(const struct glue_operation *operation);

/* What an operation may use of other items, in the order path, query, body, `uses`. What it really uses, only its request says: a
 * member may be missing from its body. */
enum glue_where {
	GLUE_IN_PATH,  /* `place` is a variable */
	GLUE_IN_QUERY, /* a member of the query */
	GLUE_IN_BODY,  /* a pointer within the object */
	GLUE_NOWHERE,  /* `uses`: without naming an id; `place` is "" */
};

struct glue_relation {
	enum glue_where where;
	struct str place;
	enum glue_kind kind;
	const struct glue_type *type; /* NULL: of any */
};

uint32_t glue_relations_count(const struct glue_operation *operation);
const struct glue_relation *glue_relation_at(const struct glue_operation *operation, uint32_t index);

/* Pointers within the object of its body, of a divisible type: numbers that are split over the sites as well. */
const struct str *glue_operation_divide(const struct glue_operation *operation, uint32_t *count);
/* Where the object is in its bodies; "": the body is it. */
struct str glue_operation_object(const struct glue_operation *operation);

/* A list as one can be put together with others (gather.h). */
struct glue_list_about {
	struct str list; /* pointer to the array */
	struct str next; /* to what says that there is another page; "": nothing does */
	struct str most; /* asks for the longest page, in a query: "limit=1000"; "": pages have no bound of their own */
};

/* A list over several collections, of a type whose ids are unique in each: /pods, where items are /namespaces/{namespace}/pods/{name}. Can its
 * elements be told apart, because each has a reference to what it is in? `within` is the type of that. */
bool glue_list_within(const struct glue_match *match, const struct glue_type **within);
/* The collection of such an element, as glue_collection_put() would write it. */
void glue_list_collection_put(const struct glue_match *match, struct str within, struct buf *out);

/* False: its answer is no list. */
bool glue_operation_list(const struct glue_operation *operation, struct glue_list_about *about);

/* Does the query ask for a part of the list, or an order of it? Then `member` is which. Anything else is a filter. */
enum glue_list_query { GLUE_QUERY_FREE, GLUE_QUERY_PAGES, GLUE_QUERY_SORTS };
enum glue_list_query glue_list_query(const struct glue_operation *operation, struct str query, struct str *member);

/* A facet that can be read and set as a whole, by the same path: a GET, and a PUT that replaces it. */
struct glue_facet {
	struct str name;
	uint32_t number;
	const struct glue_operation *read;
	const struct glue_operation *replace;
	const struct glue_operation
		*remove;             /* takes it away: a DELETE of that path, with the effect `replace`; NULL: nothing does */
	bool opaque;             /* bytes, that nobody looks into: a file. Otherwise it is JSON, and ids may be in it */
	struct str content_type; /* that the description wants it to be set with; "": it does not say */
};

uint32_t glue_facets_count(const struct glue_type *type);
struct str glue_facet_name(const struct glue_type *type, uint32_t number);
/* False: it cannot be; the item itself neither. */
bool glue_facet_find(const struct glue_type *type, uint32_t number, struct glue_facet *facet);
/* Is it nothing but what is changed by so much (what is in use), or does the description say so? Then the item shows it, and it is copied
 * and compared with that. */
bool glue_facet_is_shown(const struct glue_type *type, uint32_t number);
/* Its path, given that of the item. */
void glue_facet_put(const struct glue_facet *facet, struct str item, struct buf *out);

/* How one that no request sets as a whole gets to a new site. */
enum glue_copy {
	GLUE_COPY_UNTOLD, /* nobody says */
	GLUE_COPY_ITEM,   /* with the item, which shows it, and whose create says it */
	GLUE_COPY_NONE,   /* not at all: it is of the moment */
	GLUE_COPY_EACH,   /* it is a list: by a request for each element */
	GLUE_COPY_WHEN,   /* by a request, if the item shows a value */
};

struct glue_copying {
	enum glue_copy how;
	const struct glue_operation *by;   /* EACH, WHEN: the request */
	const struct glue_operation *read; /* EACH: shows the list, */
	struct str each;                   /* which stands there */
	const struct str *body;            /* pointers: where something stands in the body of a request, */
	const struct str *from;            /* and where that stands in the element */
	uint32_t body_count;
	struct str place; /* WHEN, and perhaps EACH: where in the object, */
	struct str value; /* and what, a string; "" and "": whatever it shows */
};

const struct glue_copying *glue_facet_copying(const struct glue_type *type, uint32_t number); /* never NULL */
/* Of what is said there: the method and, given that of the item, the path. */
struct str glue_plain_method(const struct glue_operation *operation);
void glue_plain_put(const struct glue_operation *operation, struct str item, struct buf *out);
/* Where the object is in the body of an item. */
struct str glue_type_object(const struct glue_type *type);

/* How two concurrent operations of a type are resolved, x before y in T: the description's word or DESIGN 7's default. */
enum glue_resolution glue_resolve(const struct glue_type *type, const struct glue_operation *x,
                                  const struct glue_operation *y);
/* By the description itself. */
bool glue_resolution_is_said(const struct glue_type *type, const struct glue_operation *x,
                             const struct glue_operation *y);
bool glue_delete_wins(const struct glue_type *type);

/* Credentials, as the service's or the application's entry says. */
enum glue_credential glue_credential_use(const struct glue_service *service);
bool glue_is_credential(const struct glue_service *service, struct str header);
bool glue_is_credential_fault(const struct glue_service *service, int status);

/* ---- Ids in texts ------------------------------------------------------------------------------------------------ */

enum glue_place_kind {
	GLUE_PLACE_ID,        /* of the item itself */
	GLUE_PLACE_NAME,      /* its natural name: told, hardly ever replaced */
	GLUE_PLACE_REFERENCE, /* the id of another item, of `type` */
	GLUE_PLACE_LINK,      /* a URL in which an id may be a segment of the path */
	GLUE_PLACE_SET,       /* an array whose order says nothing: where states are compared */
};

struct glue_place {
	enum glue_place_kind kind;
	const struct glue_type *type; /* of what the id is; NULL: of any (a link) */
	struct str value;             /* without quotes and escapes; a number as it is written */
	bool quoted;                  /* a JSON string; false: a number */
	size_t at;                    /* where its token begins in the text fed so far */
	size_t length;                /* of the token */
	enum glue_kind relation;      /* of a reference: how the item relates to what it refers to */
	/* A reference in a path, and an id in a link: what the path up to it is, if that is an item of this description, with its type and collection
	 * as they are there; otherwise NULL. */
	const struct glue_match *item;
};

/* Where ids stand: in the body of the request; in its answer, by status; NULL: nowhere, the body need not be looked at. */
const struct glue_places *glue_request_places(const struct glue_operation *operation);
const struct glue_places *glue_answer_places(const struct glue_operation *operation);

/* A reference that a body has, and that asks for something: an id, or `true` for any item; not null, false or "". */
struct glue_mention {
	const struct glue_type *type; /* NULL: of any */
	enum glue_kind relation;
	struct str value; /* the id; "": any. Lives until `each` returns */
};

/* Tells of each in the body of a request. What it has told of stands, also where the text turns out to be no JSON: ERR_INVALID, or
 * nested too deep: ERR_LIMIT. */
int glue_mentions(const struct glue_operation *operation, struct str body,
                  void (*each)(void *context, const struct glue_mention *mention), void *context, struct err *err);

/* What a body says of the references of its item, for whoever keeps them: what stands in a place from now on, or that whatever stood
 * there, and below it, does not any more. The latter is told before the former. */
struct glue_saying {
	struct str place; /* a pointer within the object, without `*`. Lives until `each` returns, as `value` does */
	const struct glue_type *type; /* NULL: of any */
	enum glue_kind relation;
	struct str value; /* the id; "": nothing is there any more */
};

/* Of the body of a request, as it is where it has only what is to be changed (PATCH); of any other, what it does not say is not there
 * any more. A body that is no object, such as a JSON patch (RFC 6902), says nothing. Errors as glue_mentions(). */
int glue_sayings(const struct glue_operation *operation, struct str body,
                 void (*each)(void *context, const struct glue_saying *saying), void *context, struct err *err);

/* What is to stand in a place instead: writes the new value (unquoted, unescaped) and says whether it is a string.
 * Returns false to leave the place as it is. */
struct glue_replacer {
	void *context;
	bool (*replace)(void *context, const struct glue_place *place, struct buf *value, bool *quoted);
};

/* Reads JSON as it comes, in pieces of any size, and copies it to `out` byte by byte except for what is replaced. Memory is
 * bounded: by LIMIT_GLUE_NESTING and LIMIT_GLUE_VALUE_BYTES (a longer value is no id and passes; a name only where it comes in
 * pieces). Any number of texts may follow each other, none too. A link is given to the replacer whole; glue_splice_link() takes it apart. */
struct glue_splicer;

struct glue_splicer *glue_splicer_new(const struct glue_places *places, const struct glue_replacer *replacer);
void glue_splicer_free(struct glue_splicer *splicer);
/* Of a list that is gathered with those of other sites (gather.h): each element, an object, that is a replica by its id gets
 * `"cheops-replica":"<meta-id>"` as its first member. It is what `mark` writes for it or, where that writes nothing, what the replacer has
 * put in place of its id; nothing: it is no replica. */
struct glue_marker {
	void *context;
	void (*mark)(void *context, const struct glue_place *place, struct str within, struct buf *mark);
	const struct glue_type
		*within; /* of glue_list_within(): then `mark` is told what the element says that it is in, or "" */
};

/* Before anything is spliced; `list` is the pointer to the array. False: nothing can be marked there. */
bool glue_splicer_mark(struct glue_splicer *splicer, struct str list, const struct glue_marker *marker);

/* ERR_INVALID at the byte where the text is no JSON any more, ERR_LIMIT where it is nested too deep; it says where. Told once:
 * everything from there on is copied as it is. */
int glue_splice(struct glue_splicer *splicer, struct str bytes, struct buf *out, struct err *err);
/* The text has ended: what was held back is written. ERR_INVALID if it was cut short. */
int glue_splice_end(struct glue_splicer *splicer, struct buf *out, struct err *err);

/* The same for what is no body: path segments and query parameters that the description calls ids or references. The whole
 * target (path and query) is written to `out`. */
void glue_splice_target(const struct glue_match *match, const struct glue_request *request,
                        const struct glue_replacer *replacer, struct buf *out);
/* And for headers of an answer that hold links (Location, Content-Location). */
void glue_splice_link(const struct glue *glue, struct str service, struct str link,
                      const struct glue_replacer *replacer, struct buf *out);

/* The body without its preconditions: the members that the description calls so, and of a JSON patch each `test`. Every other byte
 * stays. False: there are none, or it is no JSON, and nothing was written. */
bool glue_strip_preconditions(const struct glue_operation *operation, struct str content_type, struct str body,
                              struct buf *out);

/* The body of a create with the id that the service gave what was made, where it had none. False: it has one, or there is no place for
 * it, and nothing was written. */
bool glue_insert_id(const struct glue_operation *operation, struct str body, struct str id, struct buf *out);

/* Has an item of it parts, which its application makes and destroys (references of the kind `composition`)? */
bool glue_type_has_parts(const struct glue_type *type);
/* An item's JSON text without the places where these stand: they are of one site alone. Errors as glue_comparable(), and in that form. */
int glue_without_parts(const struct glue_type *type, struct str body, struct buf *out, struct err *err);

/* What may differ between replicas, parts among it: takes it out of an item's JSON text, and writes the rest in one canonical form, so that
 * equal states give equal texts. The text is the one that users see: ids that differ between sites were replaced before. Links are written without
 * the host.
 * ERR_INVALID: no JSON. ERR_LIMIT: nested too deep, or longer than LIMIT_GLUE_COMPARE_BYTES. Then nothing is written. */
int glue_comparable(const struct glue_type *type, struct str body, struct buf *out, struct err *err);

/* Where two such texts differ: a JSON pointer (RFC 6901), and what stands there in either, as it is written; "": nothing. */
struct glue_difference {
	struct str pointer;
	struct str a;
	struct str b;
};

/* Tells of at most so many, in the order of the text; slices live until `each` returns. Returns how many it told of; *more: there
 * are others. Both texts have to be what glue_comparable() has written. */
uint32_t glue_differences(struct str a, struct str b, uint32_t most, bool *more,
                          void (*each)(void *context, const struct glue_difference *difference), void *context);

/* An item's JSON text, to make another one like it: without what its service gives to each by itself, the id and links that have it, what it
 * finds out by itself, and without what may differ between replicas. Ids that the user chooses stay; `with_id`: so do those that
 * a create may say. Errors as glue_comparable(). */
int glue_anew(const struct glue_type *type, struct str body, bool with_id, struct buf *out, struct err *err);

#endif
