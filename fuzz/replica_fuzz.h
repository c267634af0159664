/* What the fuzz targets of replicas share: a host with rows in memory, and what has to hold. */
#ifndef FUZZ_REPLICA_FUZZ_H
#define FUZZ_REPLICA_FUZZ_H

#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { FUZZ_TASKS = 64 };

struct fuzz_row {
	struct buf key;
	struct buf row;
};

struct fuzz_host {
	struct fuzz_row *rows[REPLICA_TABLES]; /* by key */
	uint32_t counts[REPLICA_TABLES], capacities[REPLICA_TABLES];
	uint64_t random;
	uint64_t sent_bytes;
	struct {
		uint64_t number;
		enum replica_task_kind kind;
	} tasks[FUZZ_TASKS];
	uint32_t tasks_count;
};

/* As in the tests, whose messages are seeds: this is the second of three. */
static inline site_id fuzz_site_id(unsigned number)
{
	return 0x1101 + number;
}

static inline struct replica_id fuzz_id(uint32_t number)
{
	return replica_id_make(1700000000000, 7, number);
}

static inline uint32_t fuzz_place(const struct fuzz_host *host, enum replica_table table, struct str key, bool *there)
{
	uint32_t at = 0;
	while (at < host->counts[table] && str_compare(buf_str(&host->rows[table][at].key), key) < 0)
		at++;
	*there = at < host->counts[table] && str_equal(buf_str(&host->rows[table][at].key), key);
	return at;
}

static inline int fuzz_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	struct fuzz_host *host = context;
	bool there;
	uint32_t at = fuzz_place(host, table, key, &there);
	if (there)
		buf_put(row, buf_str(&host->rows[table][at].row));
	return there ? 0 : ERR_NOT_FOUND;
}

static inline void fuzz_put(void *context, enum replica_table table, struct str key, struct str row)
{
	struct fuzz_host *host = context;
	bool there;
	uint32_t at = fuzz_place(host, table, key, &there);
	CHECK(key.length > 0 && key.length <= LIMIT_STORE_KEY_BYTES && row.length <= LIMIT_STORE_ROW_BYTES);
	if (!there) {
		host->rows[table] =
			replica_grow(host->rows[table], &host->capacities[table], host->counts[table] + 1, sizeof(struct fuzz_row));
		memmove(host->rows[table] + at + 1, host->rows[table] + at,
		        (host->counts[table] - at) * sizeof(struct fuzz_row));
		host->rows[table][at] = (struct fuzz_row){0};
		buf_put(&host->rows[table][at].key, key);
		host->counts[table]++;
	}
	buf_clear(&host->rows[table][at].row);
	buf_put(&host->rows[table][at].row, row);
}

static inline void fuzz_remove(void *context, enum replica_table table, struct str key)
{
	struct fuzz_host *host = context;
	bool there;
	uint32_t at = fuzz_place(host, table, key, &there);
	if (!there)
		return;
	buf_free(&host->rows[table][at].key);
	buf_free(&host->rows[table][at].row);
	host->counts[table]--;
	memmove(host->rows[table] + at, host->rows[table] + at + 1, (host->counts[table] - at) * sizeof(struct fuzz_row));
}

static inline int fuzz_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                            bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct fuzz_host *host = context;
	bool there;
	uint32_t at = fuzz_place(host, table, str_compare(from, prefix) > 0 ? from : prefix, &there);
	for (; at < host->counts[table]; at++) {
		struct str key = buf_str(&host->rows[table][at].key);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0 ||
		    !each(each_context, key, buf_str(&host->rows[table][at].row)))
			break;
	}
	return 0;
}

/* What we send makes sense to ourselves. */
static inline void fuzz_send(void *context, site_id to, struct str message)
{
	struct fuzz_host *host = context;
	struct reader sections;
	struct section section;
	uint64_t clock;
	CHECK(to != 0 && message.length <= LIMIT_REPLICA_MESSAGE_BYTES);
	CHECK(sync_message_open(message, &clock, &sections) == 0);
	for (int more; (more = sync_section_read(&sections, &section)) != 0;)
		CHECK(more == 1);
	host->sent_bytes += message.length;
}

static inline void fuzz_execute(void *context, const struct replica_task *task)
{
	struct fuzz_host *host = context;
	CHECK(task->number != 0 && task->class && task->request);
	if (host->tasks_count == FUZZ_TASKS)
		return;
	host->tasks[host->tasks_count].number = task->number;
	host->tasks[host->tasks_count++].kind = task->kind;
}

static inline void fuzz_answer(void *context, const struct replica_answer *answer)
{
	(void)context;
	CHECK(answer->ticket != 0);
}

static inline void fuzz_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	(void)context;
	(void)bytes;
	CHECK(blob.length == REPLICA_BLOB_BYTES && from != 0);
}

static inline void fuzz_drop(void *context, struct str blob)
{
	(void)context;
	CHECK(blob.length == REPLICA_BLOB_BYTES);
}

static inline void fuzz_event(void *context, const struct replica_event *event)
{
	(void)context;
	(void)event;
}

static inline bool fuzz_reachable(void *context, site_id site)
{
	(void)context;
	return site != fuzz_site_id(2);
}

static inline uint64_t fuzz_random(void *context)
{
	struct fuzz_host *host = context;
	host->random = host->random * 6364136223846793005u + 1442695040888963407u;
	return host->random >> 33;
}

static inline struct replica *fuzz_replica(struct fuzz_host *host, struct replica_now now)
{
	struct replica *replica = NULL;
	struct replica_options options = replica_options_default();
	struct replica_host functions = {host,       fuzz_get,       fuzz_put,    fuzz_remove, fuzz_scan,
	                                 fuzz_send,  fuzz_execute,   fuzz_answer, fuzz_fetch,  fuzz_drop,
	                                 fuzz_event, fuzz_reachable, fuzz_random};
	options.self = fuzz_site_id(1);
	options.hash_key = (struct hash_key){1, 2};
	host->tasks_count = 0;
	if (replica_new(&replica, &options, &functions, now, NULL) != 0)
		return NULL;
	return replica;
}

static inline void fuzz_free(struct fuzz_host *host)
{
	for (uint32_t t = 0; t < REPLICA_TABLES; t++) {
		for (uint32_t i = 0; i < host->counts[t]; i++) {
			buf_free(&host->rows[t][i].key);
			buf_free(&host->rows[t][i].row);
		}
		free(host->rows[t]);
	}
}

/* Gives the first task its outcome. */
static inline void fuzz_finish(struct replica *replica, struct fuzz_host *host, unsigned choice, struct replica_now now)
{
	static const enum replica_outcome_kind kinds[] = {REPLICA_ACCEPTED, REPLICA_ACCEPTED,   REPLICA_ACCEPTED,
	                                                  REPLICA_REFUSED,  REPLICA_CREDENTIAL, REPLICA_FAILED,
	                                                  REPLICA_UNKNOWN};
	if (host->tasks_count == 0)
		return;
	uint64_t number = host->tasks[0].number;
	struct replica_outcome outcome = {.kind = kinds[choice % 7],
	                                  .status = choice % 7 == 3 ? 404 : 200,
	                                  .local_id = STR_INIT("17"),
	                                  .answer = STR_INIT("so it is"),
	                                  .state = {.head = STR_INIT("set 1"), .blob = STR_INIT("")},
	                                  .state_class = {.name = STR_INIT("set"), .effect = ORDER_REPLACE, .class = 1}};
	host->tasks_count--;
	memmove(host->tasks, host->tasks + 1, host->tasks_count * sizeof(host->tasks[0]));
	replica_executed(replica, number, &outcome, now);
}

/* Replicant 1 at all three sites, by a request with this Idempotency-Key; carried out, and the others do not have it yet. */
static inline void fuzz_create(struct replica *replica, struct fuzz_host *host, struct str key, struct replica_now now)
{
	site_id members[3] = {fuzz_site_id(0), fuzz_site_id(1), fuzz_site_id(2)};
	struct replica_create create = {
		.service = STR_INIT("sample"), .type = STR_INIT("sample.counter"), .members = members, .members_count = 3};
	struct replica_submission submission = {.ticket = 1,
	                                        .create = &create,
	                                        .replicant = fuzz_id(1),
	                                        .class = {.name = STR_INIT("create"), .effect = ORDER_CREATE},
	                                        .request = {.head = STR_INIT("create 7")},
	                                        .key = key};
	replica_submit(replica, &submission, now);
	fuzz_finish(replica, host, 0, now);
}

/* What is stored can be read again, and all of it. */
static inline void fuzz_check(struct fuzz_host *host, struct replica_now now)
{
	struct replica *again = fuzz_replica(host, now);
	CHECK(again != NULL);
	for (uint32_t i = 0; i < host->counts[REPLICA_REPLICANTS]; i++) {
		struct replicant *r;
		struct replica_id id;
		struct str key = buf_str(&host->rows[REPLICA_REPLICANTS][i].key);
		CHECK(key.length == sizeof(id.bytes));
		memcpy(id.bytes, key.at, sizeof(id.bytes));
		CHECK(replicant_load(again, id, &r) == 0);
	}
	replica_free(again);
}

#endif
