/* Random sessions on a store and on a model of it, which is an array; both say the same. LMDB's file is closed and opened
 * again now and then, and so looked at page by page. */
#include "store_test.h"

enum { KEYS = 400, STEPS = 400, SESSION_STEPS = 40, ROW_MOST = 9000 };

struct model_row {
	bool there;
	size_t length;
	uint64_t seed; /* the row is made from it */
};

struct model {
	struct model_row rows[KEYS];
};

/* Keys of many lengths, some with zeros in them, some that are the beginning of others. In the order of their numbers. */
static struct str key_at(size_t number, char out[LIMIT_STORE_KEY_BYTES])
{
	size_t length = (size_t)snprintf(out, 32, "%05zu", number / 4 * 4);
	static const size_t more[] = {0, 1, 3, 400};
	memset(out + length, 0, more[number % 4]);
	if (number % 4 == 3)
		memset(out + length, 'z', more[3]);
	return str_make(out, length + more[number % 4]);
}

/* "COLOUR/bytes", or bytes without a colour. */
static void row_at(const struct model_row *row, struct buf *out)
{
	uint64_t seed = row->seed;
	buf_clear(out);
	if (row->seed % 8 != 0)
		buf_printf(out, "colour%zu/", (size_t)(row->seed % 5));
	while (out->length < row->length)
		buf_put_char(out, (char)('a' + random_below(&seed, 26)));
}

static void check_row(struct store_session *session, const struct model *model, size_t number)
{
	char bytes[LIMIT_STORE_KEY_BYTES];
	struct buf expected = {0};
	struct str found;
	int code = store_get(session, THINGS, key_at(number, bytes), &found, NULL);
	if (model->rows[number].there) {
		assert_int_equal(code, 0);
		row_at(&model->rows[number], &expected);
		assert_true(str_equal(found, buf_str(&expected)));
	} else {
		assert_int_equal(code, ERR_NOT_FOUND);
	}
	buf_free(&expected);
}

static void check_scan(struct store_session *session, const struct model *model)
{
	struct store_cursor *cursor;
	struct store_row row;
	struct err err = {0};
	size_t number = 0, met = 0, coloured = 0;
	char bytes[LIMIT_STORE_KEY_BYTES];
	assert_int_equal(store_scan(session, &(struct store_range){.table = THINGS, .index = -1}, &cursor, &err), 0);
	while (store_next(cursor, &row, &err) == 1) {
		while (number < KEYS && !model->rows[number].there)
			number++;
		assert_true(number < KEYS && str_equal(row.key, key_at(number, bytes)));
		struct buf colour = {0};
		coloured += colour_of(row.key, row.row, &colour);
		buf_free(&colour);
		number++;
		met++;
	}
	store_cursor_free(cursor);
	assert_int_equal(err.code, 0);
	size_t there = 0;
	for (size_t i = 0; i < KEYS; i++)
		there += model->rows[i].there;
	assert_int_equal(met, there);
	/* The index has those with a colour, once, in order; that it says the right thing of each is checked by the store. */
	struct buf last = {0};
	assert_int_equal(store_scan(session, &(struct store_range){.table = THINGS, .index = 0}, &cursor, &err), 0);
	met = 0;
	while (store_next(cursor, &row, &err) == 1) {
		struct buf this = {0};
		buf_put(&this, row.index);
		buf_put_char(&this, '\0');
		buf_put(&this, row.key);
		assert_true(last.length == 0 || str_compare(buf_str(&last), buf_str(&this)) < 0);
		buf_free(&last);
		last = this;
		met++;
	}
	store_cursor_free(cursor);
	buf_free(&last);
	assert_int_equal(err.code, 0);
	assert_int_equal(met, coloured);
}

static void change(struct store_session *session, struct model *model, uint64_t *random)
{
	char bytes[LIMIT_STORE_KEY_BYTES];
	size_t number = random_below(random, KEYS);
	struct model_row *row = &model->rows[number];
	struct str key = key_at(number, bytes);
	struct err err = {0};
	if (random_below(random, 3) == 0) {
		assert_int_equal(store_delete(session, THINGS, key, &err), row->there ? 0 : ERR_NOT_FOUND);
		row->there = false;
		return;
	}
	struct buf bytes_of_row = {0};
	*row = (struct model_row){.there = true, .seed = random_next(random) | 1};
	row->length = random_below(random, 10) == 0 ? random_below(random, ROW_MOST) : random_below(random, 200);
	row->seed &= ~(uint64_t)(random_below(random, 6) == 0 ? 7 : 0); /* some without a colour */
	row->seed = row->seed ? row->seed : 8;
	row_at(row, &bytes_of_row);
	row->length = bytes_of_row.length;
	if (store_put(session, THINGS, key, buf_str(&bytes_of_row), &err))
		fail_msg("%s", err.text);
	buf_free(&bytes_of_row);
}

static void run_seed(void **state, uint64_t seed)
{
	struct world world = world_open(state, &plain_schema);
	struct model *model = calloc(1, sizeof(*model)), *before = calloc(1, sizeof(*before));
	uint64_t random = seed * 0x9e3779b97f4a7c15 + 1;
	for (int step = 0; step < STEPS; step++) {
		struct store_session *session = begin_write(world.store), *reader = begin_read(world.store);
		*before = *model;
		for (size_t i = random_below(&random, SESSION_STEPS); i > 0; i--) {
			change(session, model, &random);
			check_row(session, model, random_below(&random, KEYS));
		}
		if (step % 16 == 0)
			check_scan(session, model);
		if (random_below(&random, 4) == 0) {
			store_abort(session);
			*model = *before;
		} else {
			commit(session);
		}
		check_row(reader, before, random_below(&random, KEYS)); /* it began before all that */
		if (step % 16 == 0)
			check_scan(reader, before);
		store_abort(reader);
		if (step % 50 == 49) {
			struct err err = {0};
			if (world_reopen(&world, &plain_schema, &err))
				fail_msg("seed %llu, step %d: %s", (unsigned long long)seed, step, err.text);
		}
	}
	struct store_session *reader = begin_read(world.store);
	check_scan(reader, model);
	for (size_t i = 0; i < KEYS; i++)
		check_row(reader, model, i);
	store_abort(reader);
	free(model);
	free(before);
	world_close(&world);
}

static void a_store_does_what_an_array_does(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		run_seed(state, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {ON_BOTH(a_store_does_what_an_array_does)};
	return cmocka_run_group_tests_name("store model", tests, NULL, NULL);
}
