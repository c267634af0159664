/* What users write in headers, queries and paths that are about replicated resources, and the heads of requests that travel between
 * members, as any bytes. The first byte says which. They are taken apart or refused; what is taken means the same when it is written
 * again. */
#include "replica_fuzz.h"

#include "api/api_int.h"
#include "engine/engine_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Headers ---------------------------------------------------------------------------------------------------------- */

static void check_prefer(struct str text)
{
	struct preference once = {0};
	engine_prefer_read(text, &once);
	CHECK(once.wait_s <= LIMIT_ENGINE_WAIT_S);
	struct preference twice = once; /* the first of a name counts */
	engine_prefer_read(text, &twice);
	CHECK(once.respond_async == twice.respond_async && once.wait_s == twice.wait_s);
}

static void check_session(struct str text)
{
	static struct fuzz_host host = {.random = 1};
	static struct replica *replica;
	struct replica_now now = {.us = 1000000, .wall_ms = 1700000000000};
	struct buf own = {0};
	if (!replica) {
		replica = fuzz_replica(&host, now);
		CHECK(replica != NULL);
		fuzz_create(replica, &host, STR(""), now);
	}
	replica_session_met(replica, text);
	replica_session_put(replica, fuzz_id(1), &own);
	CHECK(replica_session_met(replica, buf_str(&own)));
	/* What is behind our own is read, too. */
	buf_put(&own, text);
	replica_session_met(replica, buf_str(&own));
	buf_free(&own);
}

/* Last-Event-ID, and numbers of queries. */
static void check_number(struct str text)
{
	static const uint64_t mosts[] = {0, 9, 200, UINT64_MAX / 10 - 1};
	for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
		uint64_t number = 0, again = 1;
		struct buf written = {0};
		if (!api_number(text, mosts[i], &number))
			continue;
		CHECK(number <= mosts[i]);
		buf_put_number(&written, number, 1);
		CHECK(api_number(buf_str(&written), mosts[i], &again) && again == number);
		buf_free(&written);
	}
}

static void check_ids(struct str text)
{
	struct replica_id id, id_again;
	struct replica_op_id op, op_again;
	uint8_t blob[ENGINE_BLOB_BYTES];
	struct buf written = {0};
	if (replica_id_parse(text, &id)) {
		replica_id_put(id, &written);
		CHECK(replica_id_parse(buf_str(&written), &id_again) && memcmp(&id, &id_again, sizeof(id)) == 0);
	}
	buf_clear(&written);
	if (replica_op_id_parse(text, &op)) {
		replica_op_id_put(op, &written);
		CHECK(replica_op_id_parse(buf_str(&written), &op_again) && op.site == op_again.site &&
		      op.number == op_again.number && memcmp(&op.replicant, &op_again.replicant, sizeof(id)) == 0);
	}
	if (engine_blob_parse(text, blob)) {
		char name[ENGINE_BLOB_NAME_BYTES];
		engine_blob_name(str_make((const char *)blob, sizeof(blob)), name);
		CHECK(str_equal(str_of(name), text)); /* it is the name of a file: one way to write it */
	}
	buf_free(&written);
}

/* Local ids and natural names are keys of rows: whatever they are, the key is not too long, and another name has another one. */
static void check_names(struct str text)
{
	static const struct str type =
		STR_INIT("a.long-name-of-a-type-so-that-not-all-of-it-fits-into-the-key-of-a-row-and-its-"
	             "digest-has-to-stand-for-what-does-not");
	struct buf keys[2] = {{0}, {0}};
	text.length =
		text.length < 2 * (size_t)LIMIT_REPLICA_NAME_BYTES ? text.length : 2 * (size_t)LIMIT_REPLICA_NAME_BYTES;
	size_t half = text.length / 2;
	for (size_t i = 0; i < 2; i++) {
		struct str name = str_make(text.at + half, text.length - half - (i < text.length - half ? i : 0));
		struct replicant r = {.service = STR("a"), .type = type, .collection = str_make(text.at, half), .name = name};
		struct buf local = {0};
		name_key_put(&keys[i], &r);
		replica_local_key(&(struct replica_local){r.service, r.type, r.collection, name}, &local);
		CHECK(keys[i].length <= LIMIT_STORE_KEY_BYTES && local.length <= LIMIT_STORE_KEY_BYTES);
		buf_free(&local);
	}
	CHECK(text.length - half < 2 || !str_equal(buf_str(&keys[0]), buf_str(&keys[1])));
	buf_free(&keys[0]);
	buf_free(&keys[1]);
}

/* ---- Paths ------------------------------------------------------------------------------------------------------------ */

static void check_target(struct str text)
{
	static const char *const names[] = {"after", "limit", "state", "wait"};
	struct arena arena;
	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(api_query(&arena, text, names[i]).length <= text.length);
	struct str id = api_segment(text, API_ID_SEGMENT);
	CHECK(id.length <= text.length && !memchr(id.at, '/', id.length));
	if (api_path_matches(STR("/cheops/v1/operations/{id}"), text))
		CHECK(id.length > 0 && api_segment(text, API_ID_SEGMENT + 1).length == 0);
	arena_free(&arena);
}

/* ---- Requests as they travel ------------------------------------------------------------------------------------------- */

static bool is_wanted(void *context, struct str name)
{
	(void)context;
	return name.length > 0;
}

static void check_head(struct str text)
{
	struct engine_head head, again;
	struct err err = {0};
	struct buf written = {0}, fields = {0}, readable = {0};
	int code = engine_head_parse(text, &head, &err);
	if (code) {
		CHECK(code == ERR_CORRUPT && err.code == code && err.text[0] != '\0');
		return;
	}
	engine_head_put(&head, &written);
	CHECK(str_equal(buf_str(&written), text));
	/* All that is in it may travel, and what is made of it does, too. */
	engine_fields_put(&fields, head.fields, is_wanted, NULL);
	CHECK(str_equal(head.fields, fields.at ? buf_str(&fields) : STR("")));
	engine_fields_readable(head.fields, &readable);
	buf_clear(&written);
	engine_head_put(
		&(struct engine_head){head.method, head.target, readable.at ? buf_str(&readable) : STR(""), STR("")}, &written);
	CHECK(engine_head_parse(buf_str(&written), &again, &err) == 0);
	buf_free(&written);
	buf_free(&fields);
	buf_free(&readable);
}

static void check_fields(struct str text)
{
	struct str rest = text, value;
	struct buf out = {0};
	while (engine_field_next(&rest, STR("prefer"), &value))
		CHECK(value.length < text.length && !memchr(value.at, '\n', value.length));
	CHECK(rest.length == 0);
	engine_fields_put(&out, text, is_wanted, NULL);
	CHECK(out.length <= text.length);
	engine_fields_readable(text, &out);
	buf_free(&out);
}

/* ---- Sessions of copies that are compared -------------------------------------------------------------------------------- */

/* Two, as other agents may send them, and one of our own. */
static void check_compare(struct str text)
{
	struct engine_reading readings[3] = {
		{.kind = ENGINE_READ_HERE, .session = STR_INIT("r:a.2:b.3"), .digest = STR_INIT("1")},
		{.kind = ENGINE_READ_HERE, .session = text, .digest = STR_INIT("2")},
		{.kind = ENGINE_READ_MISSING, .session = text, .digest = STR_INIT("")}};
	enum engine_verdict verdicts[3];
	uint32_t reference;
	bool tie;
	engine_compare(readings, 3, verdicts, &reference, &tie);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(verdicts[i] < ENGINE_UNKNOWN);
		CHECK(verdicts[i] != ENGINE_DIFFERS || reference < 3);
	}
	CHECK(verdicts[2] == ENGINE_MISSING || verdicts[2] == ENGINE_NOT_SETTLED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str text) = {check_prefer, check_session, check_number,
	                                                  check_ids,    check_target,  check_head,
	                                                  check_fields, check_compare, check_names};
	enum { CHECKS = sizeof(checks) / sizeof(checks[0]) };
	if (size == 0)
		return 0;
	struct str text = size > 1 ? str_make((const char *)data + 1, size - 1) : STR("");
	checks[data[0] % CHECKS](text);
	return 0;
}
