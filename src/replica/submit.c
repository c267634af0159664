/* What a user asks.
 *
 * 1. It is checked: it names a replicant that is here (or makes one), and nothing of it is past a limit.
 * 2. Was its Idempotency-Key met before, the answer is that operation.
 * 3. It joins the queue of its lane (lane.c), and is answered when it was executed (outcome.c), or at once if it is refused.
 *
 * What waits in the queue is in memory only: it was not begun, and nobody was told otherwise. */
#include "replica/checkpoint.h"

#include "base/check.h"

#include <stdlib.h>

void submission_free(struct submission *submission)
{
	buf_free(&submission->key);
	buf_free(&submission->content);
	free(submission);
}

void submit_refuse(struct replica *replica, uint64_t ticket, int code, const char *text)
{
	struct replica_answer answer = {.ticket = ticket, .code = code, .text = str_of(text)};
	replica->counters.refused++;
	if (ticket != 0)
		replica->host.answer(replica->host.context, &answer);
}

void queue_push(struct replicant *r, struct submission *submission)
{
	*r->queue_end = submission;
	r->queue_end = &submission->next;
	r->queue_count++;
}

void queue_refuse(struct replica *replica, struct replicant *r, int code, const char *text)
{
	struct submission *next;
	for (struct submission *each = r->queue; each; each = next) {
		next = each->next;
		if (!each->relayed)
			submit_refuse(replica, each->ticket, code, text);
		submission_free(each);
	}
	r->queue = NULL;
	r->queue_end = &r->queue;
	r->queue_count = 0;
}

/* But for what was begun before, and is to be run again. */
void queue_refuse_new(struct replica *replica, struct replicant *r, int code, const char *text)
{
	struct submission **at = &r->queue;
	while (*at) {
		struct submission *each = *at;
		if (each->withheld != 0) {
			at = &each->next;
			continue;
		}
		*at = each->next;
		r->queue_count--;
		submit_refuse(replica, each->ticket, code, text);
		submission_free(each);
	}
	r->queue_end = at;
}

/* ---- Idempotency-Key ---------------------------------------------------------------------------------------------------- */

void key_store(struct replica *replica, struct str key, struct replica_op_id op, const struct replica_outcome *outcome)
{
	struct buf row = {0};
	bool first = outcome == NULL;
	struct key_row fields = {.op = op,
	                         .kind = first ? REPLICA_UNKNOWN : (uint8_t)outcome->kind,
	                         .status = first ? 0 : (uint16_t)outcome->status};
	key_row_put(&row, &fields);
	replica->host.put(replica->host.context, REPLICA_KEYS, key, buf_str(&row));
	buf_free(&row);
	if (first)
		expire_add(replica, replica->now.wall_ms + REPLICA_KEY_MS, REPLICA_KEYS, key);
}

void key_forget(struct replica *replica, struct str key)
{
	replica->host.remove(replica->host.context, REPLICA_KEYS, key);
}

bool replica_knows_key(struct replica *replica, struct str key)
{
	struct key_row row;
	return key.length > 0 && row_get(replica, REPLICA_KEYS, key, &replica->row) == 0 &&
	       key_row_parse(buf_str(&replica->row), &row, NULL) == 0;
}

/* True: it was answered. */
static bool is_repeated(struct replica *replica, const struct replica_submission *submission)
{
	struct key_row row;
	if (submission->key.length == 0)
		return false;
	int code = row_get(replica, REPLICA_KEYS, submission->key, &replica->row);
	if (code != 0 || key_row_parse(buf_str(&replica->row), &row, NULL) != 0)
		return false;
	struct replica_answer answer = {.ticket = submission->ticket,
	                                .op = row.op,
	                                .outcome = {.kind = row.kind, .status = row.status},
	                                .repeated = true,
	                                .text = STR("")};
	replica->host.answer(replica->host.context, &answer);
	return true;
}

static bool is_queued(const struct replicant *r, struct str key)
{
	for (const struct submission *each = r->queue; each && key.length > 0; each = each->next)
		if (str_equal(buf_str(&each->key), key))
			return true;
	return false;
}

/* ---- Checks -------------------------------------------------------------------------------------------------------------- */

static int check_create(const struct replica *replica, const struct replica_submission *submission, struct err *err)
{
	const struct replica_create *create = submission->create;
	const struct str names[] = {create->service, create->type, create->collection, create->name};
	bool here = false;
	for (size_t i = 0; i < 4; i++)
		if (names[i].length > LIMIT_REPLICA_NAME_BYTES)
			return err_set(err, ERR_LIMIT, "a name of %zu bytes; at most %d can be replicated", names[i].length,
			               LIMIT_REPLICA_NAME_BYTES);
	/* All others may have left the container that it is made in; the next one that comes is told of it. */
	bool alone = create->span == REPLICA_PLACED && create->members_count == 1;
	if ((create->members_count < 2 && !alone) || create->members_count > LIMIT_REPLICA_MEMBERS)
		return err_set(err, ERR_LIMIT, "%u members; 2 to %d can share a resource", create->members_count,
		               LIMIT_REPLICA_MEMBERS);
	for (uint32_t i = 0; i < create->members_count; i++) {
		here |= create->members[i] == replica->options.self;
		for (uint32_t k = 0; k < i; k++)
			if (create->members[i] == create->members[k] || create->members[i] == 0)
				return err_set(err, ERR_INVALID, "a site is named twice among the members");
	}
	if (!here)
		return err_set(err, ERR_INVALID, "this site is not among the members");
	if (create->rules.classes > LIMIT_REPLICA_CLASSES)
		return err_set(err, ERR_LIMIT, "%u classes of operations; at most %d", create->rules.classes,
		               LIMIT_REPLICA_CLASSES);
	if (submission->class.effect != ORDER_CREATE)
		return err_set(err, ERR_INVALID, "what makes a replicant has to be a create");
	return create->span == REPLICA_ALIKE ? 0 : witness_check(replica, create, err);
}

static int check(const struct replica *replica, const struct replica_submission *submission, struct err *err)
{
	int code = op_check(&submission->class, &submission->request, err);
	if (code == 0 && submission->key.length > LIMIT_REPLICA_KEY_BYTES)
		code = err_set(err, ERR_LIMIT, "the Idempotency-Key has %zu bytes; at most %d", submission->key.length,
		               LIMIT_REPLICA_KEY_BYTES);
	if (code == 0 && submission->create)
		code = check_create(replica, submission, err);
	return code;
}

static int compare_sites(const void *a, const void *b)
{
	site_id x = *(const site_id *)a, y = *(const site_id *)b;
	return x < y ? -1 : x > y;
}

static struct replicant *create(struct replica *replica, const struct replica_submission *submission)
{
	site_id members[LIMIT_REPLICA_MEMBERS];
	uint32_t count = submission->create->members_count;
	struct replicant *r = replicant_new(replica, submission->replicant);
	memcpy(members, submission->create->members, count * sizeof(*members));
	qsort(members, count, sizeof(*members), compare_sites);
	header_take(r, submission->create);
	replicant_shape(r, members, count, replica->options.self);
	witness_take(r, submission->create);
	r->head_dirty = true;
	return r;
}

/* The replicant that it is on; or why not. */
static int find(struct replica *replica, const struct replica_submission *submission, struct replicant **r,
                struct err *err)
{
	int code = replicant_resolve(replica, submission->replicant, r);
	if (code != 0 && code != ERR_NOT_FOUND)
		return err_set(err, code, "what is stored of it cannot be read: %s", err_phrase(code));
	if (submission->create) {
		bool there = code == 0;
		*r = NULL; /* it stays as it is */
		if (there)
			return err_set(err, ERR_CONFLICT, "there is a replicant of that id already");
		*r = create(replica, submission);
		return 0;
	}
	if (code != 0)
		return err_set(err, ERR_NOT_FOUND, "no replicant of that id is known here");
	if ((*r)->kind == REPLICANT_LEFT)
		return err_set(err, ERR_NOT_FOUND, "this site is no member of it any more");
	if ((*r)->kind != REPLICANT_LIVE || lane_is_closed(*r))
		return err_set(err, ERR_NOT_FOUND, "it was deleted");
	if (is_witness(*r))
		return err_set(err, ERR_UNAVAILABLE, "it lies at other sites: ask one of them");
	if (submission->class.effect == ORDER_CREATE)
		return err_set(err, ERR_CONFLICT, "it was created already");
	if (!own_report(*r)->created && !(*r)->queue && (*r)->task.what != TASK_FIRST && (*r)->task.what != TASK_WEAK)
		return err_set(err, ERR_UNAVAILABLE, "it has not been made at this site yet");
	if (members_is_leaving(*r))
		return err_set(err, ERR_CONFLICT, "this site is leaving: ask another member");
	if ((*r)->ops_count >= LIMIT_REPLICA_OPERATIONS)
		return err_set(err, ERR_LIMIT, "%u operations on it have not been executed everywhere; there can be %d",
		               (*r)->ops_count, LIMIT_REPLICA_OPERATIONS);
	bool changes = submission->class.effect == ORDER_ASSIGN || submission->class.effect == ORDER_RELATIVE;
	if (changes && checkpoint_applies(*r) && (*r)->ops_count >= LIMIT_REPLICA_REPLAYED)
		return err_set(
			err, ERR_LIMIT,
			"%u changes of its parts may have to be run again, which is the most: a site is away, or they come "
			"without a pause at all sites; try again in a moment, or set the whole (PUT)",
			(*r)->ops_count);
	if ((*r)->queue_count >= LIMIT_REPLICA_QUEUE)
		return err_set(err, ERR_LIMIT, "%u requests wait for their turn on it; at most %d can", (*r)->queue_count,
		               LIMIT_REPLICA_QUEUE);
	if (is_queued(*r, submission->key))
		return err_set(err, ERR_CONFLICT, "a request with this Idempotency-Key is being executed");
	return 0;
}

void submit_take(struct replica *replica, const struct replica_submission *submission)
{
	struct err err = {0};
	struct replicant *r = NULL;
	CHECK(submission->ticket != 0);
	replica->counters.submitted++;
	if (is_repeated(replica, submission))
		return;
	int code = check(replica, submission, &err);
	if (code == 0)
		code = find(replica, submission, &r, &err);
	if (code == 0 && submission->class.class >= r->rules.classes && r->rules.resolutions)
		code = err_set(&err, ERR_INVALID, "class %u; the rules of this replicant know %u", submission->class.class,
		               r->rules.classes);
	if (code != 0) {
		if (r && submission->create)
			r->kind = REPLICANT_NONE;
		if (r)
			work_add(replica, r);
		submit_refuse(replica, submission->ticket, code, err.text);
		return;
	}
	struct submission *queued = calloc(1, sizeof(*queued));
	CHECK(queued != NULL);
	queued->ticket = submission->ticket;
	queued->creates = submission->create != NULL;
	buf_put(&queued->key, submission->key);
	op_content_put(&queued->content, &submission->class, &submission->request,
	               submission->conditional ? OP_CONDITIONAL : 0);
	queued->has_blob = submission->request.blob.length > 0;
	if (queued->has_blob)
		memcpy(queued->blob, submission->request.blob.at, sizeof(queued->blob));
	queue_push(r, queued);
	work_add(replica, r);
}
