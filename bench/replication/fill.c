/* Fills the store of a site with replicants, each of three members, all settled: as an agent would have it that has lived for
 * long, in a minute instead of hours.
 *
 * usage: bench_fill COUNT FOLDER KEY-FILE SITE-ID DESCRIPTION     (SITE-ID in hexadecimal, as `cheops site` has it)
 *
 * Nothing is made by hand: three struct replica create, send, execute and report to each other in this process, in a time of
 * their own; the rows of the first go through the engine's rows.c into FOLDER, those of the others into memory that is thrown away
 * (one part after the other, since they would need more than the store that is being filled). The services are functions that give
 * the next number as local id. The members that it names exist nowhere: nothing is pending for them. */
#include "engine/engine_int.h"

#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MEMBERS = 3, BATCH = 500, PART = 50000, ROUNDS_MOST = 1000 };
enum { STEP_US = 30000 }; /* more than reports wait for company */

struct letter {
	struct letter *next;
	uint32_t from, to;
	struct buf bytes;
};

struct job {
	struct job *next;
	uint64_t task;
};

struct place {
	struct engine engine; /* for its rows: store, box, session */
	struct replica *replica;
	uint32_t number;
	uint64_t made; /* local ids */
	struct job *jobs;
};

static struct place places[MEMBERS];
static site_id sites[MEMBERS];
static struct letter *letters, **letters_end = &letters;
static uint64_t now_us = 1;

_Noreturn static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_fill: %s: %s\n", what, err->text);
	exit(1);
}

static struct replica_now now(void)
{
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct replica_now){now_us, (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000};
}

/* ---- What a struct replica asks for ---------------------------------------------------------------------------------- */

static struct place *place_of(void *context)
{
	return (struct place *)((char *)context - offsetof(struct place, engine));
}

static void take_letter(void *context, site_id to, struct str message)
{
	struct letter *letter = calloc(1, sizeof(*letter));
	CHECK(letter);
	letter->from = place_of(context)->number;
	while (letter->to < MEMBERS && sites[letter->to] != to)
		letter->to++;
	CHECK(letter->to < MEMBERS);
	buf_put(&letter->bytes, message);
	*letters_end = letter;
	letters_end = &letter->next;
}

static void take_job(void *context, const struct replica_task *task)
{
	struct job *job = calloc(1, sizeof(*job));
	CHECK(job);
	CHECK(task->kind == REPLICA_RUN);
	*job = (struct job){place_of(context)->jobs, task->number};
	place_of(context)->jobs = job;
}

static void take_answer(void *context, const struct replica_answer *answer)
{
	(void)context;
	CHECK(answer->code == 0 && answer->outcome.kind == REPLICA_ACCEPTED);
}

static void no_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	(void)context, (void)blob, (void)bytes, (void)from;
	CHECK(!"there are no blobs");
}

static void no_drop(void *context, struct str blob)
{
	(void)context, (void)blob;
}

static bool is_reachable(void *context, site_id site)
{
	(void)context, (void)site;
	return true;
}

static uint64_t draw(void *context)
{
	static uint64_t state = 0x9e3779b97f4a7c15U; /* xorshift64 */
	(void)context;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void start(struct place *place)
{
	struct err err = {0};
	struct replica_options options = replica_options_default();
	options.self = sites[place->number];
	options.running_most = BATCH * 2;
	struct replica_host host = {.context = &place->engine,
	                            .get = engine_row_get,
	                            .put = engine_row_put,
	                            .remove = engine_row_remove,
	                            .scan = engine_row_scan,
	                            .send = take_letter,
	                            .execute = take_job,
	                            .answer = take_answer,
	                            .fetch = no_fetch,
	                            .drop = no_drop,
	                            .reachable = is_reachable,
	                            .random = draw};
	if (replica_new(&place->replica, &options, &host, now(), &err) != 0)
		fail("starting", &err);
}

static void commit(struct place *place)
{
	struct engine *engine = &place->engine;
	if (engine->failure.code == 0 && engine->session)
		store_commit(engine->session, &engine->failure);
	engine->session = NULL;
	if (engine->failure.code)
		fail("the store", &engine->failure);
}

/* ---- Running --------------------------------------------------------------------------------------------------------- */

static void run_jobs(struct place *place)
{
	while (place->jobs) {
		struct job *job = place->jobs;
		char id[32];
		int length = snprintf(id, sizeof(id), "%" PRIu64, ++place->made);
		place->jobs = job->next;
		replica_executed(place->replica, job->task,
		                 &(struct replica_outcome){.kind = REPLICA_ACCEPTED,
		                                           .status = 201,
		                                           .local_id = str_make(id, (size_t)length),
		                                           .local_id_quoted = true},
		                 now());
		free(job);
	}
}

static bool deliver(void)
{
	struct letter *letter = letters;
	letters = NULL;
	letters_end = &letters;
	bool any = letter != NULL;
	for (struct letter *next; letter; letter = next) {
		next = letter->next;
		replica_receive(places[letter->to].replica, sites[letter->from], buf_str(&letter->bytes), now());
		buf_free(&letter->bytes);
		free(letter);
	}
	return any;
}

/* Until all of them have settled and forgotten all of it. */
static void settle(void)
{
	for (int round = 0; round < ROUNDS_MOST; round++) {
		uint64_t pending = 0;
		for (uint32_t i = 0; i < MEMBERS; i++) {
			run_jobs(&places[i]);
			replica_tick(places[i].replica, now());
			commit(&places[i]);
			pending += replica_counters(places[i].replica).pending_operations;
		}
		if (!deliver() && pending == 0)
			return;
		now_us += STEP_US;
	}
	fprintf(stderr, "bench_fill: the members do not come to an end\n");
	exit(1);
}

struct model {
	struct replica_create create;
	struct replica_class class;
	struct buf type, head;
	uint8_t resolutions[LIMIT_REPLICA_CLASSES * LIMIT_REPLICA_CLASSES];
};

static void submit(const struct model *model, uint64_t number)
{
	char body[128];
	int length = snprintf(body, sizeof(body), "{\"n\":\"%-90" PRIu64 "\"}", number);
	replica_submit(places[0].replica,
	               &(struct replica_submission){
					   .ticket = number + 1,
					   .create = &model->create,
					   .replicant = replica_id_make(now().wall_ms, draw(NULL), draw(NULL)),
					   .class = model->class,
					   .request = {.head = buf_str(&model->head), .body = str_make(body, (size_t)length)}},
	               now());
}

/* ---- Preparing ------------------------------------------------------------------------------------------------------- */

static void read_file(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "r");
	char chunk[4096];
	size_t got;
	if (!file) {
		fprintf(stderr, "bench_fill: %s cannot be read\n", path);
		exit(1);
	}
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_put(out, str_make(chunk, got));
	fclose(file);
}

/* What POST /things at the service `app` is, by the description. */
static void model_make(struct model *model, const char *description)
{
	struct buf text = {0};
	struct glue *glue;
	struct err err = {0};
	struct glue_match match;
	read_file(description, &text);
	if (glue_read(&glue, buf_str(&text), &(struct glue_options){.path = description}, &err) != 0)
		fail("the description", &err);
	struct glue_request asked = {
		.service = STR("app"), .method = STR("POST"), .path = STR("/things"), .content_type = STR("application/json")};
	CHECK(glue_match(glue, &asked, &match) && match.operation);
	glue_type_put(&match, &model->type);
	model->class = engine_class(match.operation);
	engine_head_put(
		&(struct engine_head){STR("POST"), STR("/things"), STR("Content-Type: application/json\r\n"), STR("")},
		&model->head);
	model->create = (struct replica_create){.service = STR("app"),
	                                        .type = buf_str(&model->type),
	                                        .collection = STR("/things"),
	                                        .members = sites,
	                                        .members_count = MEMBERS,
	                                        .consistency = REPLICA_EVENTUAL};
	engine_rules(match.type, model->resolutions, &model->create.rules);
	model->create.rules.create_replays = glue_operation_replays(match.operation);
}

static void open_store(struct place *place, const char *folder, struct str key)
{
	struct err err = {0};
	struct store_options options = {.schema = &engine_schema, .folder = folder, .unsynced = true};
	if (!folder)
		place->engine.store = store_open_memory(&engine_schema);
	else if (store_open(&place->engine.store, &options, &err) != 0)
		fail("opening the store", &err);
	if (trust_box_new(&place->engine.box, key, &err) != 0)
		fail("the key", &err);
}

static void close_store(struct place *place)
{
	replica_free(place->replica);
	store_close(place->engine.store);
	trust_box_free(place->engine.box);
	buf_free(&place->engine.place);
	buf_free(&place->engine.sealed);
	place->engine = (struct engine){0};
}

int main(int argc, char **argv)
{
	struct model model = {0};
	struct buf key = {0};
	uint64_t count = argc == 6 ? strtoull(argv[1], NULL, 10) : 0, done = 0;
	if (count == 0) {
		fprintf(stderr, "usage: bench_fill COUNT FOLDER KEY-FILE SITE-ID DESCRIPTION\n");
		return 2;
	}
	for (uint32_t i = 0; i < MEMBERS; i++) {
		places[i].number = i;
		sites[i] = strtoull(argv[4], NULL, 16) + i * 0x0101010101010101U;
	}
	read_file(argv[3], &key);
	model_make(&model, argv[5]);
	while (done < count) {
		uint64_t part = count - done < PART ? count : done + PART;
		for (uint32_t i = 0; i < MEMBERS; i++) {
			open_store(&places[i], i == 0 ? argv[2] : NULL, buf_str(&key));
			start(&places[i]);
		}
		while (done < part) {
			for (uint32_t i = 0; i < BATCH && done < part; i++)
				submit(&model, done++);
			settle();
		}
		for (uint32_t i = 0; i < MEMBERS; i++)
			close_store(&places[i]);
	}
	printf("replicants %" PRIu64 "\n", done);
	buf_free(&key);
	return 0;
}
