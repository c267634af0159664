/* What the store costs: commits that wait for the disk, by how many rows come together in one; look-ups among a million rows;
 * bytes per row, on disk and in memory; opening.
 *
 * Beside it, in the same run: a page overwritten in place with fdatasync(), which is the least that "durable" can cost here; the
 * same appended, as a plain log does; and LMDB used directly, which shows what check sums, sessions and the catalogue add. See
 * print_method().
 * Usage: bench_store [--quick] [--folder DIR]
 */
#include "store/store.h"
#include "base/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KEY_BYTES = 40, ROW_BYTES = 100, LOAD_BATCH = 1000, ROUNDS = 5 };
enum { PLAIN, INDEXED };

static const unsigned batches[] = {1, 8, 64, 512};

struct scale {
	unsigned commits; /* per batch size and round */
	unsigned rows;    /* in each table */
	unsigned gets;    /* per round */
};

static bool index_key(struct str key, struct str row, struct buf *out)
{
	(void)key;
	buf_put(out, str_make(row.at, 36));
	return true;
}

static const struct store_index indexes[] = {{.name = "by_id", .unique = true, .key_of = index_key}};
static const struct store_table tables[] = {{.name = "plain", .version = 1},
                                            {.name = "indexed", .version = 1, .indexes = indexes, .indexes_count = 1}};
static const struct store_schema schema = {tables, COUNT(tables)};

static double clock_s(clockid_t clock)
{
	struct timespec t;
	CHECK(clock_gettime(clock, &t) == 0);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

/* What others do on the machine does not count. */
static double cpu_s(void)
{
	return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double samples[ROUNDS])
{
	qsort(samples, ROUNDS, sizeof(double), compare);
	return samples[ROUNDS / 2];
}

static uint64_t mix(uint64_t x) /* splitmix64: numbers in an order that looks random */
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* As `image.image 0123…`: service and type, then an id. */
static struct str key_of(uint64_t number, char out[KEY_BYTES + 1])
{
	snprintf(out, KEY_BYTES + 1, "image.ima%015" PRIx64 "%016" PRIx64, mix(number) >> 4, number);
	return str_make(out, KEY_BYTES);
}

/* As the ids of replicated resources, which begin with the time. */
static struct str ordered_key_of(uint64_t number, char out[KEY_BYTES + 1])
{
	snprintf(out, KEY_BYTES + 1, "%020" PRIx64 "%020" PRIx64, number, mix(number));
	return str_make(out, KEY_BYTES);
}

static struct str row_of(uint64_t number, char out[ROW_BYTES + 1])
{
	snprintf(out, ROW_BYTES + 1, "%018" PRIx64 "%018" PRIx64, mix(~number), number);
	memset(out + 36, 'x', ROW_BYTES - 36);
	return str_make(out, ROW_BYTES);
}

/* ---- The store ------------------------------------------------------------------------------------------------------ */

static struct store *open_store(const char *folder, bool unsynced)
{
	struct store_options options = {.schema = &schema, .folder = folder, .unsynced = unsynced};
	struct store *store;
	struct err err;
	if (store_open(&store, &options, &err)) {
		fprintf(stderr, "bench_store: %s\n", err.text);
		exit(1);
	}
	return store;
}

typedef struct str key_maker(uint64_t number, char out[KEY_BYTES + 1]);

static void put_batch(struct store *store, uint32_t table, key_maker *make, uint64_t first, unsigned count)
{
	char key[KEY_BYTES + 1], row[ROW_BYTES + 1];
	struct store_session *session;
	CHECK(store_begin_write(store, &session, NULL) == 0);
	for (unsigned i = 0; i < count; i++)
		CHECK(store_put(session, table, make(first + i, key), row_of(first + i, row), NULL) == 0);
	CHECK(store_commit(session, NULL) == 0);
}

static double time_commits(struct store *store, key_maker *make, uint64_t *number, unsigned commits, unsigned batch)
{
	double start = now_s();
	for (unsigned i = 0; i < commits; i++, *number += batch)
		put_batch(store, PLAIN, make, *number, batch);
	return (now_s() - start) / commits;
}

struct getter {
	struct store *store;
	uint64_t seed;
	unsigned rows;
	unsigned gets;
	unsigned per_session;
	double cpu_s; /* that it took */
};

static void *run_gets(void *context)
{
	struct getter *getter = context;
	double start = cpu_s();
	char key[KEY_BYTES + 1];
	struct store_session *session = NULL;
	struct str row;
	for (unsigned i = 0; i < getter->gets; i++) {
		if (i % getter->per_session == 0)
			CHECK(store_begin_read(getter->store, &session, NULL) == 0);
		CHECK(store_get(session, PLAIN, key_of(mix(getter->seed + i) % getter->rows, key), &row, NULL) == 0);
		CHECK(row.length == ROW_BYTES);
		if ((i + 1) % getter->per_session == 0)
			store_abort(session);
	}
	getter->cpu_s = cpu_s() - start;
	return NULL;
}

/* CPU seconds per get. */
static double time_gets(struct store *store, const struct scale *scale, unsigned per_session, unsigned threads_count)
{
	static uint64_t seed;
	struct getter getters[8];
	pthread_t threads[8];
	double sum = 0;
	for (unsigned i = 0; i < threads_count; i++) {
		getters[i] = (struct getter){store, seed += 1000000007, scale->rows, scale->gets, per_session, 0};
		CHECK(pthread_create(&threads[i], NULL, run_gets, &getters[i]) == 0);
	}
	for (unsigned i = 0; i < threads_count; i++) {
		pthread_join(threads[i], NULL);
		sum += getters[i].cpu_s;
	}
	return sum / scale->gets / threads_count;
}

/* ---- Its peers ------------------------------------------------------------------------------------------------------ */

/* offset < 0: at the end. */
static double time_syncs(int fd, off_t offset, unsigned count)
{
	static char page[4096];
	double start = now_s();
	for (unsigned i = 0; i < count; i++) {
		off_t at = offset < 0 ? lseek(fd, 0, SEEK_END) : offset;
		CHECK(pwrite(fd, page, sizeof(page), at) == sizeof(page));
		CHECK(fdatasync(fd) == 0);
	}
	return (now_s() - start) / count;
}

struct bare {
	MDB_env *env;
	MDB_dbi tree;
};

static struct bare bare_open(const char *folder)
{
	struct bare bare;
	MDB_txn *txn;
	CHECK(mkdir(folder, 0700) == 0);
	CHECK(mdb_env_create(&bare.env) == 0 && mdb_env_set_mapsize(bare.env, (size_t)64 << 30) == 0);
	CHECK(mdb_env_open(bare.env, folder, MDB_NOTLS | MDB_NORDAHEAD, 0600) == 0);
	CHECK(mdb_txn_begin(bare.env, NULL, 0, &txn) == 0 && mdb_dbi_open(txn, NULL, 0, &bare.tree) == 0);
	CHECK(mdb_txn_commit(txn) == 0);
	return bare;
}

static void bare_put(struct bare *bare, uint64_t first, unsigned count)
{
	char key[KEY_BYTES + 1], row[ROW_BYTES + 1];
	MDB_txn *txn;
	CHECK(mdb_txn_begin(bare->env, NULL, 0, &txn) == 0);
	for (unsigned i = 0; i < count; i++) {
		key_of(first + i, key);
		row_of(first + i, row);
		MDB_val at = {KEY_BYTES, key}, value = {ROW_BYTES, row};
		CHECK(mdb_put(txn, bare->tree, &at, &value, 0) == 0);
	}
	CHECK(mdb_txn_commit(txn) == 0);
}

static double time_bare_commits(struct bare *bare, uint64_t *number, unsigned commits, unsigned batch)
{
	double start = now_s();
	for (unsigned i = 0; i < commits; i++, *number += batch)
		bare_put(bare, *number, batch);
	return (now_s() - start) / commits;
}

/* One transaction for all: the least that a look-up can cost. */
static double time_bare_gets(struct bare *bare, const struct scale *scale, uint64_t seed)
{
	char key[KEY_BYTES + 1];
	MDB_txn *txn;
	double start = cpu_s();
	CHECK(mdb_txn_begin(bare->env, NULL, MDB_RDONLY, &txn) == 0);
	for (unsigned i = 0; i < scale->gets; i++) {
		key_of(mix(seed + i) % scale->rows, key);
		MDB_val at = {KEY_BYTES, key}, value;
		CHECK(mdb_get(txn, bare->tree, &at, &value) == 0 && value.mv_size == ROW_BYTES);
	}
	mdb_txn_abort(txn);
	return (cpu_s() - start) / scale->gets;
}

/* ---- Runs ----------------------------------------------------------------------------------------------------------- */

/* kB, as /proc tells. */
static unsigned long memory_kb(const char *what)
{
	char line[256];
	unsigned long found = 0;
	FILE *file = fopen("/proc/self/status", "r");
	CHECK(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, what, strlen(what)) == 0)
			found = strtoul(line + strlen(what) + 1, NULL, 10);
	fclose(file);
	return found;
}

static void print_method(const struct scale *scale, const char *folder)
{
	printf("Keys of %d bytes, rows of %d, in %s. A commit waits for the disk: %u commits of each size in each of %d "
	       "rounds,\n"
	       "all sides taking turns; medians. overwrite: 4096 bytes in place and fdatasync(), the least that a durable "
	       "write\n"
	       "costs here; append: the same at the end of a file. bare: LMDB alone. Look-ups: %u a round, in a random "
	       "order, of %u rows; CPU time.\n\n",
	       KEY_BYTES, ROW_BYTES, folder, scale->commits, ROUNDS, scale->gets, scale->rows);
}

static void run_commits(const struct scale *scale, const char *folder)
{
	char path[256];
	double overwrite[ROUNDS], append[ROUNDS], ours[COUNT(batches)][ROUNDS], in_order[COUNT(batches)][ROUNDS],
		bare_times[COUNT(batches)][ROUNDS];
	uint64_t number = 0, ordered_number = 0, bare_number = 0;
	snprintf(path, sizeof(path), "%s/file", folder);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	snprintf(path, sizeof(path), "%s/commits", folder);
	struct store *store = open_store(path, false);
	snprintf(path, sizeof(path), "%s/ordered", folder);
	struct store *ordered = open_store(path, false);
	snprintf(path, sizeof(path), "%s/bare-commits", folder);
	struct bare bare = bare_open(path);
	for (int round = 0; round < ROUNDS; round++) {
		append[round] = time_syncs(fd, -1, scale->commits);
		overwrite[round] = time_syncs(fd, 0, scale->commits);
		for (size_t i = 0; i < COUNT(batches); i++) {
			ours[i][round] = time_commits(store, key_of, &number, scale->commits, batches[i]);
			in_order[i][round] = time_commits(ordered, ordered_key_of, &ordered_number, scale->commits, batches[i]);
			bare_times[i][round] = time_bare_commits(&bare, &bare_number, scale->commits, batches[i]);
		}
	}
	double least = median(overwrite), longer = median(append);
	printf("%-22s %12s %12s %12s\n", "durable writes", "commits/s", "rows/s", "us/commit");
	printf("%-22s %12.0f %12.0f %12.1f\n", "overwrite", 1 / least, 1 / least, 1e6 * least);
	printf("%-22s %12.0f %12.0f %12.1f\n", "append", 1 / longer, 1 / longer, 1e6 * longer);
	for (size_t i = 0; i < COUNT(batches); i++) {
		double own = median(ours[i]), other = median(bare_times[i]);
		char name[32];
		snprintf(name, sizeof(name), "store, %u in one", batches[i]);
		printf("%-22s %12.0f %12.0f %12.1f\n", name, 1 / own, batches[i] / own, 1e6 * own);
		double sorted = median(in_order[i]);
		snprintf(name, sizeof(name), "  keys in order, %u", batches[i]);
		printf("%-22s %12.0f %12.0f %12.1f\n", name, 1 / sorted, batches[i] / sorted, 1e6 * sorted);
		snprintf(name, sizeof(name), "bare, %u in one", batches[i]);
		printf("%-22s %12.0f %12.0f %12.1f\n", name, 1 / other, batches[i] / other, 1e6 * other);
	}
	printf("\n");
	for (size_t i = 0; i < COUNT(batches); i++) {
		printf("ratio store-commit-%u-to-overwrite %.3f\n", batches[i], ours[i][ROUNDS / 2] / least);
		printf("ratio store-commit-%u-to-bare %.3f\n", batches[i], ours[i][ROUNDS / 2] / bare_times[i][ROUNDS / 2]);
	}
	printf("\n");
	store_close(store);
	store_close(ordered);
	mdb_env_close(bare.env);
	close(fd);
}

static void load(struct store *store, uint32_t table, unsigned rows)
{
	struct store_usage before, after;
	CHECK(store_usage(store, &before, NULL) == 0);
	double start = now_s();
	for (unsigned i = 0; i < rows; i += LOAD_BATCH)
		put_batch(store, table, key_of, i, LOAD_BATCH);
	double seconds = now_s() - start;
	CHECK(store_usage(store, &after, NULL) == 0);
	printf("%-22s %u rows: %.1f bytes per row on disk (key and row alone: %d); %.0f rows/s into an unsynced store\n",
	       tables[table].name, rows, (double)(after.bytes_used - before.bytes_used) / rows, KEY_BYTES + ROW_BYTES,
	       rows / seconds);
}

static void run_gets_all(const struct scale *scale, const char *folder)
{
	char path[256];
	double one[ROUNDS], many[ROUNDS], two[ROUNDS], other[ROUNDS];
	snprintf(path, sizeof(path), "%s/rows", folder);
	struct store *store = open_store(path, true);
	load(store, PLAIN, scale->rows);
	load(store, INDEXED, scale->rows / 5);
	store_close(store);
	unsigned long anon = memory_kb("RssAnon:"), mapped = memory_kb("RssFile:");
	double start = cpu_s();
	store = open_store(path, false);
	double opening = cpu_s() - start;
	struct store_usage usage;
	CHECK(store_usage(store, &usage, NULL) == 0);
	printf("%-22s %.2f s of CPU for %" PRIu64 " rows and %.0f MB, all of it read and checked (from the page cache)\n",
	       "opening", opening, usage.rows, 1e-6 * (double)usage.bytes_file);
	printf("%-22s +%lu kB of its own, +%lu kB of the file mapped, after opening\n", "resident",
	       memory_kb("RssAnon:") - anon, memory_kb("RssFile:") - mapped);
	snprintf(path, sizeof(path), "%s/bare-rows", folder);
	struct bare bare = bare_open(path);
	CHECK(mdb_env_set_flags(bare.env, MDB_NOSYNC, 1) == 0);
	for (unsigned i = 0; i < scale->rows; i += LOAD_BATCH)
		bare_put(&bare, i, LOAD_BATCH);
	anon = memory_kb("RssAnon:"), mapped = memory_kb("RssFile:");
	for (int round = 0; round < ROUNDS; round++) {
		one[round] = time_gets(store, scale, 1, 1);
		if (round == 0)
			printf("%-22s +%lu kB of its own, +%lu kB of the file mapped, after %u random look-ups\n\n", "resident",
			       memory_kb("RssAnon:") - anon, memory_kb("RssFile:") - mapped, scale->gets);
		many[round] = time_gets(store, scale, 100, 1);
		two[round] = time_gets(store, scale, 1, 2);
		other[round] = time_bare_gets(&bare, scale, (uint64_t)round * 7919);
	}
	double alone = median(one), hundred = median(many), both = median(two), least = median(other);
	printf("%-22s %12s %12s\n", "look-ups", "gets/s", "ns/get");
	printf("%-22s %12.0f %12.0f\n", "a session each", 1 / alone, 1e9 * alone);
	printf("%-22s %12.0f %12.0f\n", "a session for 100", 1 / hundred, 1e9 * hundred);
	printf("%-22s %12.0f %12.0f\n", "each, two threads", 1 / both, 1e9 * both);
	printf("%-22s %12.0f %12.0f\n", "bare, one transaction", 1 / least, 1e9 * least);
	printf("\nratio store-get-to-bare %.3f\n", alone / least);
	printf("ratio store-get-in-session-to-bare %.3f\n", hundred / least);
	store_close(store);
	mdb_env_close(bare.env);
}

static void clean(const char *folder)
{
	char command[512];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	CHECK(system(command) == 0);
}

int main(int argc, char **argv)
{
	struct scale scale = {.commits = 200, .rows = 1000000, .gets = 1000000};
	const char *above = getenv("TMPDIR");
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			scale = (struct scale){.commits = 20, .rows = 100000, .gets = 100000};
		} else if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc) {
			above = argv[++i];
		} else {
			fprintf(stderr, "usage: bench_store [--quick] [--folder DIR]\n");
			return 2;
		}
	}
	char folder[200];
	snprintf(folder, sizeof(folder), "%.150s/cheops-bench-store-XXXXXX", above ? above : "/tmp");
	if (!mkdtemp(folder)) {
		perror("bench_store: cannot make a folder");
		return 1;
	}
	print_method(&scale, folder);
	run_commits(&scale, folder);
	run_gets_all(&scale, folder);
	clean(folder);
	return 0;
}
