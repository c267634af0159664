/* What a start finds on the disk that this agent, or somebody else, has left there: a journal, and the changes that were told of. It is
 * taken or refused with a reason; what is taken is the same at the next start.
 *
 * The first byte says what the rest is: 0 a journal; 1 notes of commits, each after two bytes of length, to which heads with the
 * right sums are made here; 2 rows of changes, each after two bytes of length, with the keys that they should have; 3 rows with
 * keys of their own, eight bytes each. */
#include "engine/engine_int.h"

#include "base/bytes.h"
#include "base/check.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MOST = 1 << 16, FIRST_CHANGE = 1000 };

static void say_nothing(void *context, enum log_level level, struct str line)
{
	(void)context;
	(void)level;
	(void)line;
}

static struct engine *begin(void)
{
	static const struct log log = {.sink = {.write = say_nothing}};
	static struct engine engine; /* too large to be cleared each time: all that is used is set here */
	struct err err = {0};
	if (!engine.loop) {
		CHECK(http_loop_new(&engine.loop, &err) == 0);
		engine.journal.fd = memfd_create("journal", MFD_CLOEXEC);
		CHECK(engine.journal.fd >= 0);
	}
	engine.options = (struct engine_options){.folder = "/nowhere", .self = 7, .log = &log};
	engine.last = &engine.first;
	engine.failure = (struct err){0};
	engine.changes.first = engine.changes.before = engine.changes.last = 0;
	engine.journal.on = engine.journal.broken = engine.journal.turning = false;
	engine.journal.generation = engine.journal.number = engine.journal.at = 0;
	engine.journal.seen = true;
	engine.store = store_open_memory(&engine_schema);
	return &engine;
}

static void end(struct engine *engine)
{
	if (engine->session)
		store_abort(engine->session);
	engine->session = NULL;
	http_timer_clear(engine->loop, &engine->journal.timer);
	store_close(engine->store);
}

static void check_told(int code, const struct err *err)
{
	CHECK(code < 0 && err->code == code && err->text[0] != '\0');
}

/* ---- The journal ---------------------------------------------------------------------------------------------------- */

/* As docs/protocol/journal.md has it. */
static void put_commit(struct buf *out, uint64_t number, struct str notes)
{
	put_number(out, 0x63686a31, 4);
	put_number(out, notes.length, 8);
	put_number(out, 0, 8);
	put_number(out, number, 8);
	put_number(out, hash_bytes(&(struct hash_key){0x6a6f75726e616c20, number ^ 0x6f66206368656f70}, notes), 8);
	buf_put(out, notes);
}

static void check_journal(struct engine *engine, struct str file)
{
	struct err err = {0};
	engine->journal.on = true;
	CHECK(ftruncate(engine->journal.fd, 0) == 0);
	CHECK(pwrite(engine->journal.fd, file.at, file.length, 0) == (ssize_t)file.length);
	int code = engine_journal_replay(engine, &err);
	if (code) {
		check_told(code, &err);
		return;
	}
	uint64_t at = engine->journal.at, number = engine->journal.number;
	CHECK(at <= file.length && (number > 0) == (at > 0));
	if (memmem(file.at, file.length, "journal", 7))
		return; /* no note is ever made of which generation it is */
	/* Killed before the store had it: the same again. */
	CHECK(engine_journal_replay(engine, &err) == 0 && engine->journal.at == at && engine->journal.number == number);
	CHECK(engine_commit(engine) == 0);
	/* Now it has, and what is in the file is of the past. */
	CHECK(engine_journal_replay(engine, &err) == 0);
	CHECK(at == 0 || engine->journal.at == 0);
}

static void check_notes(struct engine *engine, struct reader *input)
{
	struct buf file = {0};
	for (uint64_t number = 0; input->left > 2; number++) {
		size_t length = read_16(input);
		put_commit(&file, number, read_bytes(input, length < input->left ? length : input->left));
	}
	check_journal(engine, file.at ? buf_str(&file) : STR(""));
	buf_free(&file);
}

/* ---- Changes --------------------------------------------------------------------------------------------------------- */

static void put_row(struct engine *engine, uint64_t first, struct str row)
{
	struct buf key = {0};
	put_number(&key, first, 8);
	engine_row_put(engine, (enum replica_table)ENGINE_CHANGES, buf_str(&key), row);
	buf_free(&key);
}

/* How many changes the row seems to have. */
static uint64_t count_of(struct str row)
{
	uint64_t count = 0;
	for (size_t at = 1; at + 46 <= row.length; count++)
		at += row.at[at + 8] == REPLICA_EVENT_MERGED ? 62 : 46;
	return count;
}

static void check_changes(struct engine *engine, struct reader *input, bool keyed)
{
	struct err err = {0};
	struct buf told = {0};
	uint64_t first = FIRST_CHANGE;
	while (input->left > 2) {
		if (keyed)
			first = read_64(input);
		size_t length = read_16(input);
		struct str row = read_bytes(input, length < input->left ? length : input->left);
		put_row(engine, first, row);
		first += count_of(row);
	}
	CHECK(engine->failure.code == 0);
	int code = engine_changes_load(engine, &err);
	const struct changes *changes = &engine->changes;
	if (code) {
		check_told(code, &err);
		return;
	}
	uint64_t before = changes->before, last = changes->last;
	CHECK(last - before <= LIMIT_ENGINE_CHANGES && changes->stored >= last - before);
	for (uint64_t number = before + 1; number != last + 1; number++) {
		const struct engine_change *change = &changes->ring[number % LIMIT_ENGINE_CHANGES];
		CHECK(change->number == number);
		engine_change_put(&told, change, NULL);
	}
	CHECK(engine_commit(engine) == 0);
	bool any = changes->rows_count > 0;
	CHECK(engine_changes_load(engine, &err) == 0);
	CHECK(any == (changes->rows_count > 0) && (!any || (changes->before == before && changes->last == last)));
	buf_free(&told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > INPUT_MOST)
		return 0;
	struct engine *engine = begin();
	struct reader input = {data + 1, size - 1, false};
	switch (data[0] % 4) {
	case 0: check_journal(engine, str_make((const char *)data + 1, size - 1)); break;
	case 1: check_notes(engine, &input); break;
	case 2: check_changes(engine, &input, false); break;
	default: check_changes(engine, &input, true); break;
	}
	end(engine);
	return 0;
}
