/* Bytes of the file flip, pages are lost or swapped, the end is cut off: opening it is refused, or all is as it was. Never
 * something else, and never a crash. */
#include "store_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, ROWS = 150, META_BYTES = 160 };

/* A store with branches, a long row, an index, and free pages. */
struct sample {
	char folder[64];
	char path[96];
	struct buf bytes;
	struct buf content; /* what scans of it say */
	unsigned refused;
	unsigned unharmed;
};

static void content_of(struct store *store, struct buf *out)
{
	struct store_session *session = begin_read(store);
	struct store_usage usage;
	for (uint32_t table = THINGS; table <= PLAIN; table++)
		scan_text(session, &(struct store_range){.table = table, .index = -1}, out);
	scan_text(session, &(struct store_range){.table = THINGS, .index = 0}, out);
	store_abort(session);
	assert_int_equal(store_usage(store, &usage, NULL), 0);
	buf_printf(out, "rows %llu commits %llu", (unsigned long long)usage.rows, (unsigned long long)usage.commits);
}

static void fill(struct store *store)
{
	struct buf row = {0};
	struct err err = {0};
	for (int round = 0; round < 3; round++) {
		struct store_session *session = begin_write(store);
		for (int i = 0; i < ROWS; i++) {
			char key[32];
			snprintf(key, sizeof(key), "a key of a row %04d", i);
			buf_clear(&row);
			buf_printf(&row, "colour%d/%d/", i % 5, round);
			buf_put_repeat(&row, 'x', i % 3 == 0 ? 200 : 20);
			if (store_put(session, THINGS, str_of(key), buf_str(&row), &err))
				fail_msg("writing: %s", err.text);
		}
		buf_put_repeat(&row, 'y', 9000);
		assert_int_equal(store_put(session, PLAIN, STR("long"), buf_str(&row), NULL), 0);
		commit(session);
		session = begin_write(store);
		for (int i = 0; i < ROWS; i += 4) {
			char key[32];
			snprintf(key, sizeof(key), "a key of a row %04d", i);
			assert_int_equal(store_delete(session, THINGS, str_of(key), NULL), 0);
		}
		commit(session);
	}
	buf_free(&row);
}

static void sample_open(struct sample *sample)
{
	struct store *store;
	struct stat status;
	struct err err = {0};
	*sample = (struct sample){0};
	folder_make(sample->folder);
	snprintf(sample->path, sizeof(sample->path), "%s/data.mdb", sample->folder);
	assert_int_equal(open_folder(&store, sample->folder, &plain_schema, &err), 0);
	fill(store);
	content_of(store, &sample->content);
	store_close(store);
	int fd = open(sample->path, O_RDONLY);
	assert_int_equal(fstat(fd, &status), 0);
	buf_put_repeat(&sample->bytes, 0, (size_t)status.st_size);
	assert_int_equal(read(fd, sample->bytes.at, sample->bytes.length), status.st_size);
	close(fd);
	assert_true(sample->bytes.length > 12 * PAGE);
}

static void sample_close(struct sample *sample)
{
	buf_free(&sample->bytes);
	buf_free(&sample->content);
	folder_remove(sample->folder);
}

static void write_bytes(const struct sample *sample, size_t length)
{
	int fd = open(sample->path, O_WRONLY | O_CREAT, 0600); /* truncated before, file systems would sync it */
	assert_int_equal(pwrite(fd, sample->bytes.at, length, 0), length);
	assert_int_equal(ftruncate(fd, (off_t)length), 0);
	close(fd);
}

/* What the bytes are now: an error with a text, or what it was; and then it can be written and opened again. */
static bool try_bytes(struct sample *sample, size_t length, const char *what, size_t where)
{
	struct store *store;
	struct err err = {0};
	write_bytes(sample, length);
	int code = open_folder(&store, sample->folder, &plain_schema, &err);
	if (code) {
		if ((code != ERR_CORRUPT && code != ERR_VERSION) || err.code != code || !strstr(err.text, "data.mdb: "))
			fail_msg("%s at %zu: code %d, %s", what, where, code, err.text);
		sample->refused++;
		return false;
	}
	struct buf content = {0};
	content_of(store, &content);
	if (!str_equal(buf_str(&content), buf_str(&sample->content)))
		fail_msg("%s at %zu: opened, and is not what it was", what, where);
	if (sample->unharmed % 16 == 0)
		fill(store);
	put_one(store, THINGS, "one more", "red/x");
	store_close(store);
	if (open_folder(&store, sample->folder, &plain_schema, &err))
		fail_msg("%s at %zu: written, and now refused: %s", what, where, err.text);
	store_close(store);
	buf_free(&content);
	sample->unharmed++;
	return true;
}

static bool try_flip(struct sample *sample, size_t at, unsigned char mask)
{
	sample->bytes.at[at] ^= (char)mask;
	bool opened = try_bytes(sample, sample->bytes.length, "flipped", at);
	sample->bytes.at[at] ^= (char)mask;
	return opened;
}

static void nothing_flipped_nothing_refused(void **state)
{
	(void)state;
	struct sample sample;
	sample_open(&sample);
	assert_true(try_bytes(&sample, sample.bytes.length, "as it is", 0));
	sample_close(&sample);
}

/* Every bit of what stands in the two first pages: there is no check sum, and LMDB believes all of it. */
static void bits_of_the_first_pages(void **state)
{
	(void)state;
	struct sample sample;
	sample_open(&sample);
	for (size_t page = 0; page < 2; page++)
		for (size_t i = 0; i < META_BYTES; i++)
			for (unsigned bit = 0; bit < 8; bit++)
				try_flip(&sample, page * PAGE + i, (unsigned char)(1 << bit));
	assert_true(sample.refused > 500);
	sample_close(&sample);
}

/* A page that says it is another one is noticed where it is used; a page that is free may say anything. */
static void bytes_of_all_pages(void **state)
{
	(void)state;
	struct sample sample;
	uint64_t random = 2026;
	sample_open(&sample);
	unsigned used = 0;
	for (size_t page = 2 * PAGE; page < sample.bytes.length; page += PAGE) {
		bool is_free = try_flip(&sample, page, 1);
		used += !is_free;
		for (size_t i = 1; i < (is_free ? 3 : 40); i++) /* its head, and where the nodes are */
			try_flip(&sample, page + i, (unsigned char)(1 << random_below(&random, 8)));
		for (size_t i = 40; i < PAGE; i += 1 + random_below(&random, is_free ? 3000 : 50))
			try_flip(&sample, page + i, (unsigned char)(1 + random_below(&random, 255)));
	}
	print_message("# %u pages in use: %u refused, %u unharmed\n", used, sample.refused, sample.unharmed);
	assert_true(used > 10 && sample.refused > used * 50);
	sample_close(&sample);
}

static void whole_pages(void **state)
{
	(void)state;
	struct sample sample;
	char kept[PAGE];
	sample_open(&sample);
	for (size_t page = 0; page + PAGE <= sample.bytes.length; page += PAGE) {
		memcpy(kept, sample.bytes.at + page, PAGE);
		for (int how = 0; how < 3; how++) {
			size_t other = how == 2 ? (page + 3 * PAGE) % (sample.bytes.length / PAGE * PAGE) : 0;
			if (how == 2)
				memcpy(sample.bytes.at + page, sample.bytes.at + other, PAGE);
			else
				memset(sample.bytes.at + page, how == 0 ? 0 : 0xff, PAGE);
			try_bytes(&sample, sample.bytes.length, "page lost", page);
		}
		memcpy(sample.bytes.at + page, kept, PAGE);
	}
	assert_true(sample.refused > 20);
	sample_close(&sample);
}

static void the_end_is_cut_off(void **state)
{
	(void)state;
	struct sample sample;
	sample_open(&sample);
	for (size_t length = 1; length < sample.bytes.length; length += 1000)
		try_bytes(&sample, length, "cut", length);
	assert_true(sample.refused > 20);
	sample_close(&sample);
}

/* What is damaged is named. */
static void the_place_is_told(void **state)
{
	(void)state;
	struct sample sample;
	struct store *store;
	struct err err = {0};
	sample_open(&sample);
	struct str wanted = STR("a key of a row 0007colour"); /* between them is the envelope: look for the key */
	size_t at = 0;
	for (size_t i = 2 * PAGE; i + 60 < sample.bytes.length; i++)
		if (memcmp(sample.bytes.at + i, wanted.at, 19) == 0 &&
		    memcmp(sample.bytes.at + i + 19 + 7, "colour2/2/", 10) == 0) {
			/* It may lie in a page that is free by now; the last one wins. */
			sample.bytes.at[i + 19 + 7 + 12] ^= 1;
			at = i;
		}
	assert_true(at > 0);
	write_bytes(&sample, sample.bytes.length);
	assert_refused(open_folder(&store, sample.folder, &plain_schema, &err), err, ERR_CORRUPT,
	               "data.mdb: table `things`, key `a key of a row 0007`: its check sum does not match");
	sample_close(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_flipped_nothing_refused),
		cmocka_unit_test(bits_of_the_first_pages),
		cmocka_unit_test(bytes_of_all_pages),
		cmocka_unit_test(whole_pages),
		cmocka_unit_test(the_end_is_cut_off),
		cmocka_unit_test(the_place_is_told),
	};
	return cmocka_run_group_tests_name("store damage", tests, NULL, NULL);
}
