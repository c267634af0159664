/* The state of this site's copy, with its files, for other members; and whether such a file is here already.
 *
 * Giving (REPLICA_READ_STATE, after find.c has read the item; REPLICA_READ_COPY, after newcomer.c has):
 *   1. the facets of the item are read behind it, bytes into files (facets.h); a state that is too long to travel with its operation
 *      becomes one as well
 *   2. when all are durable they get the names of their content, and src/replica is told, in one go: it issues an operation for each,
 *      and from then on these need their blobs. If it does not (the operation cannot be issued any more), the files go
 * A facet that this site has not is taken away from the others, where the description has a request for that (glue_facet_find());
 * else whatever others have of it stays there, and who asked is told. Not so with a copy: who is new has none.
 *
 * Taking. A repair gives the file to all members, and most of them have it. So a member looks first, by reading its own through the
 * hash: where it is the same there is nothing to do. Neither is the blob fetched then, nor has a service that lets nobody replace a file
 * (Glance) to refuse it. A new member looks, too: it may have set it before it was killed.
 */
#include "engine/facets.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { GIVE_MS = 3600 * 1000, LOOK_MS = 3600 * 1000 };

static struct facets *begin(struct run *run)
{
	struct facets *facets = calloc(1, sizeof(*facets));
	CHECK(facets);
	facets->engine = run->engine;
	facets->setup = &run->setup->about;
	facets->service = run->service;
	facets->own = run->own;
	facets->context = run;
	run->facets = facets;
	return facets;
}

static void end(struct facets *facets)
{
	engine_facets_end(facets);
	free(facets);
}

void engine_run_facets_end(struct run *run)
{
	if (run->facets)
		end(run->facets);
	run->facets = NULL;
}

/* ---- Giving --------------------------------------------------------------------------------------------------------- */

static struct str shown_name(const struct facet_part *part)
{
	return part->facet.number == 0 ? STR("the state") : part->facet.name;
}

/* False: one could not be read, and the run is gone. */
static bool are_all_read(struct run *run, const struct facets *facets)
{
	for (uint32_t i = 0; i < facets->parts_count; i++) {
		const struct facet_part *part = &facets->parts[i];
		if (part->kind != ENGINE_FACET_FAILED)
			continue;
		struct err err = part->err;
		struct buf name = {0};
		buf_put(&name, shown_name(part));
		engine_run_fail(run, part->refused ? REPLICA_REFUSED : REPLICA_FAILED, "%s cannot be read: %s", buf_c(&name),
		                err.text);
		buf_free(&name);
		return false;
	}
	return true;
}

/* There is none, and others are to have none. */
static bool is_taken_away(const struct run *run, const struct facet_part *part)
{
	return part->kind == ENGINE_FACET_NONE && part->facet.remove && run->task.kind == REPLICA_READ_STATE;
}

/* In words that all members understand. */
static void put_item(const struct run *run, struct buf *out)
{
	engine_base_put(run->setup, run->task.service, out);
	buf_put(out, run->task.collection);
	buf_put_char(out, '/');
	replica_id_put(run->task.op.replicant, out);
}

static void put_head(const struct run *run, const struct facet_part *part, struct buf *out)
{
	bool removes = is_taken_away(run, part);
	struct buf item = {0}, target = {0}, fields = {0};
	struct str type = part->facet.content_type;
	if (type.length == 0)
		type = buf_str(&part->content_type);
	if (type.length == 0)
		type = part->facet.opaque ? STR("application/octet-stream") : STR("application/json");
	put_item(run, &item);
	if (part->facet.number == 0)
		buf_put(&target, buf_str(&item));
	else
		glue_facet_put(&part->facet, buf_str(&item), &target);
	if (!removes) {
		buf_put(&fields, STR("Content-Type: "));
		buf_put(&fields, type);
		buf_put(&fields, STR("\r\n"));
	}
	if (part->facet.number == 0)
		engine_division_put_own(run->engine, run->task.op.replicant, &fields);
	struct str method = removes ? STR("DELETE") : STR("PUT");
	engine_head_put(&(struct engine_head){method, buf_str(&target), buf_str(&fields), STR("")}, out);
	buf_free(&item);
	buf_free(&target);
	buf_free(&fields);
}

static struct replica_part make_part(const struct run *run, const struct facet_part *part, struct buf *head)
{
	struct replica_part made = {.class = {.name = STR("copy")}};
	if (part->facet.replace)
		made.class = engine_class(is_taken_away(run, part) ? part->facet.remove : part->facet.replace);
	if (part->head.length > 0)
		buf_put(head, buf_str(&part->head));
	else
		put_head(run, part, head);
	made.request = (struct replica_request){.head = buf_str(head), .body = buf_str(&part->body), .secret = STR("S")};
	if (part->facet.number == 0) {
		made.request.references = run->request.references;
		made.request.references_count = run->request.references_count;
	}
	if (part->spool && part->bytes > 0) {
		made.request.blob = str_make((const char *)part->hash, sizeof(part->hash));
		made.request.blob_bytes = part->bytes;
	}
	return made;
}

/* The requests that make it, one by one. */
struct issuing {
	const struct run *run;
	const struct facet_part *part;
	struct replica_part *parts;
	struct buf *texts; /* a head and a body of each */
	uint32_t count, capacity;
	struct err err;
};

static struct replica_part *one_more(struct issuing *issuing, struct buf **texts)
{
	if (issuing->count == issuing->capacity) {
		issuing->capacity = 2 * issuing->capacity + LIMIT_GLUE_FACETS;
		issuing->parts = realloc(issuing->parts, issuing->capacity * sizeof(*issuing->parts));
		issuing->texts = realloc(issuing->texts, 2 * issuing->capacity * sizeof(*issuing->texts));
		CHECK(issuing->parts && issuing->texts);
	}
	*texts = &issuing->texts[2 * (size_t)issuing->count];
	(*texts)[0] = (*texts)[1] = (struct buf){0};
	return &issuing->parts[issuing->count++];
}

static void add_part(struct issuing *issuing)
{
	struct buf *texts;
	struct replica_part *part = one_more(issuing, &texts);
	*part = make_part(issuing->run, issuing->part, &texts[0]);
}

/* Of a facet that a new member gets so. */
static void add_request(void *context, struct str body)
{
	struct issuing *issuing = context;
	const struct glue_operation *by = issuing->part->copying->by;
	struct buf *texts, item = {0}, target = {0};
	struct replica_part *part = one_more(issuing, &texts);
	put_item(issuing->run, &item);
	glue_plain_put(by, buf_str(&item), &target);
	struct str fields = body.length > 0 ? STR("Content-Type: application/json\r\n") : STR("");
	engine_head_put(&(struct engine_head){glue_plain_method(by), buf_str(&target), fields, STR("")}, &texts[0]);
	buf_put(&texts[1], body);
	*part =
		(struct replica_part){.class = engine_class(by),
	                          .request = {.head = buf_str(&texts[0]), .body = buf_str(&texts[1]), .secret = STR("S")}};
	buf_free(&item);
	buf_free(&target);
}

static void add_requests(struct issuing *issuing)
{
	const struct facet_part *part = issuing->part;
	if (part->copying->how == GLUE_COPY_WHEN)
		add_request(issuing, STR(""));
	else if (issuing->err.code == 0)
		engine_elements(part->copying, buf_str(&part->body), add_request, issuing, &issuing->err);
}

/* All of it is on the disk. */
static void issue(struct run *run, struct facets *facets)
{
	struct issuing issuing = {.run = run};
	struct buf left = {0}; /* names of those that stay where others have them, and this site has not */
	for (uint32_t i = 0; i < facets->parts_count; i++) {
		const struct facet_part *part = issuing.part = &facets->parts[i];
		if (part->copying && part->kind == ENGINE_FACET_HERE) {
			add_requests(&issuing);
		} else if (part->kind == ENGINE_FACET_HERE || is_taken_away(run, part)) {
			add_part(&issuing);
		} else {
			buf_put(&left, left.length > 0 ? STR(" ") : STR(""));
			buf_put(&left, part->facet.name);
		}
	}
	const struct replica_part *parts = issuing.parts;
	if (issuing.err.code)
		engine_run_fail(run, REPLICA_REFUSED, "%s", issuing.err.text);
	else
		engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_ACCEPTED,
		                                               .status = 200,
		                                               .answer = buf_str(&left),
		                                               .state = parts[0].request,
		                                               .state_class = parts[0].class,
		                                               .parts = parts + 1,
		                                               .parts_count = issuing.count - 1});
	buf_free(&left);
	for (uint32_t i = 0; i < 2 * issuing.count; i++)
		buf_free(&issuing.texts[i]);
	free(issuing.parts);
	free(issuing.texts);
}

static void all_read(struct facets *facets)
{
	struct run *run = facets->context;
	struct err err = {0};
	run->facets = NULL; /* it outlives the run */
	if (are_all_read(run, facets)) {
		if (engine_facets_keep(facets, &err) != 0)
			engine_run_fail(run, REPLICA_FAILED, "%s", err.text);
		else
			issue(run, facets);
		engine_facets_release(facets);
	}
	end(facets);
}

/* `item`: of a copy, what it shows. */
static void give(struct run *run, const struct glue_operation *replace, const struct str *item, struct buf *head,
                 struct buf *body)
{
	struct facets *facets = begin(run);
	facets->type = run->match.type;
	facets->keep = true;
	facets->limit_ms = GIVE_MS;
	facets->done = all_read;
	buf_put(&facets->item, buf_str(&run->target));
	facets->parts[0].facet = (struct glue_facet){.replace = replace};
	facets->parts[0].head = *head;
	facets->parts[0].body = *body;
	*head = *body = (struct buf){0};
	facets->parts_count = 1;
	engine_facets_add(facets);
	if (item)
		engine_facets_add_copied(facets, *item);
	engine_facets_start(facets);
}

void engine_state_give(struct run *run, const struct glue_operation *replace, struct buf *body)
{
	struct buf head = {0};
	give(run, replace, NULL, &head, body);
}

void engine_state_copy(struct run *run, struct str item, struct buf *head, struct buf *body)
{
	give(run, NULL, &item, head, body);
}

/* ---- Taking --------------------------------------------------------------------------------------------------------- */

static bool is_the_same(const struct run *run, const struct facet_part *part)
{
	uint8_t wanted[ENGINE_BLOB_BYTES];
	struct engine_head head;
	if (engine_head_parse(run->request.head, &head, NULL) == 0 && str_equal(head.method, STR("DELETE")))
		return part->kind == ENGINE_FACET_NONE;
	if (part->kind != ENGINE_FACET_HERE)
		return false;
	if (run->request.blob.length == sizeof(wanted)) {
		memcpy(wanted, run->request.blob.at, sizeof(wanted));
	} else {
		int fine = EVP_Digest(run->request.body.at, run->request.body.length, wanted, NULL, EVP_sha256(), NULL);
		CHECK(fine == 1);
	}
	return memcmp(wanted, part->hash, sizeof(wanted)) == 0;
}

/* Where it cannot be read, setting it tells more. */
static void looked(struct facets *facets)
{
	struct run *run = facets->context;
	bool same = is_the_same(run, &facets->parts[0]);
	run->facets = NULL;
	end(facets);
	if (same)
		engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_ACCEPTED, .status = 200});
	else
		engine_run_go(run);
}

bool engine_state_look(struct run *run)
{
	struct str secret = run->request.secret;
	bool sets = run->class.effect == ORDER_REPLACE || run->class.effect == ORDER_ADOPT;
	bool given = run->task.kind == REPLICA_RUN && sets && run->class.facet != 0 && secret.length > 0 &&
	             secret.at[0] == 'S' && run->task.local_id.length > 0;
	struct glue_facet facet;
	struct buf target = {0};
	struct engine_item item = {.service = run->task.service,
	                           .collection = run->task.collection,
	                           .local_id = run->task.local_id,
	                           .target = &target};
	bool can = given && engine_item_find(run->engine, run->setup, &item) &&
	           run->class.facet < glue_facets_count(item.match.type) &&
	           glue_facet_find(item.match.type, run->class.facet, &facet) && facet.opaque;
	if (can) {
		struct facets *facets = begin(run);
		facets->type = item.match.type;
		facets->limit_ms = LOOK_MS;
		facets->done = looked;
		facets->item = target;
		facets->parts[0].facet = facet;
		facets->parts_count = 1;
		engine_facets_start(facets);
	} else {
		buf_free(&target);
	}
	return can;
}
