/* The file of a transfer, when the transfer is given up: while the disk has not even begun, and later. The disk is a loop that runs when
 * we say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "transfer" ENGINE_PART_SUFFIX

struct place {
	char folder[64];
	struct engine engine;
	struct http_loop *loop;
	int moves;
};

struct ending {
	struct http_task task;
	struct http_loop *loop;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	snprintf(place->folder, sizeof(place->folder), "/tmp/cheops-spool-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	place->engine.blobs = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->engine.blobs >= 0);
	pthread_mutex_init(&place->engine.spools_lock, NULL);
	assert_int_equal(http_loop_new(&place->engine.disk, NULL), 0);
	assert_int_equal(http_loop_new(&place->loop, NULL), 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	http_loop_free(place->engine.disk);
	http_loop_free(place->loop);
	pthread_mutex_destroy(&place->engine.spools_lock);
	unlinkat(place->engine.blobs, NAME, 0);
	close(place->engine.blobs);
	rmdir(place->folder);
	free(place);
	return 0;
}

static void end(struct http_task *task)
{
	http_loop_stop(((struct ending *)task)->loop);
}

/* All that was posted before. */
static void run(struct http_loop *loop)
{
	struct ending ending = {.task.run = end, .loop = loop};
	http_loop_post(loop, &ending.task);
	http_loop_run(loop);
}

static void moved(void *context)
{
	((struct place *)context)->moves++;
}

static struct engine_spool *resume(struct place *place)
{
	return engine_spool_resume(&place->engine, NAME, &(struct engine_spool_options){place->loop, moved, place});
}

/* -1: there is none. */
static long length(const struct place *place)
{
	struct stat about;
	return fstatat(place->engine.blobs, NAME, &about, 0) == 0 ? (long)about.st_size : -1;
}

static void given_up_before_the_disk_begins(void **state)
{
	struct place *place = *state;
	engine_spool_drop(resume(place));
	run(place->engine.disk);
	assert_int_equal(length(place), -1);
	assert_int_equal(place->moves, 0);
}

static void given_up_while_the_report_is_on_its_way(void **state)
{
	struct place *place = *state;
	struct engine_spool *spool = resume(place);
	run(place->engine.disk);
	engine_spool_drop(spool);
	run(place->loop);
	run(place->engine.disk);
	assert_int_equal(length(place), -1);
	assert_int_equal(place->moves, 0);
}

static void given_up_before_anything_came(void **state)
{
	struct place *place = *state;
	struct engine_spool *spool = resume(place);
	run(place->engine.disk);
	run(place->loop);
	assert_int_equal(length(place), 0);
	assert_int_equal(place->moves, 1);
	engine_spool_drop(spool);
	run(place->engine.disk);
	assert_int_equal(length(place), -1);
}

static void what_came_stays(void **state)
{
	struct place *place = *state;
	char bytes[100 << 10] = {0};
	struct engine_spool *spool = resume(place);
	run(place->engine.disk);
	run(place->loop);
	engine_spool_put(spool, str_make(bytes, sizeof(bytes)));
	run(place->engine.disk);
	run(place->loop);
	engine_spool_drop(spool);
	run(place->engine.disk);
	assert_int_equal(length(place), sizeof(bytes));
	spool = resume(place);
	run(place->engine.disk);
	run(place->loop);
	assert_int_equal(engine_spool_bytes(spool), sizeof(bytes));
	engine_spool_drop(spool);
	run(place->engine.disk);
	assert_int_equal(length(place), sizeof(bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(given_up_before_the_disk_begins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up_while_the_report_is_on_its_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up_before_anything_came, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_came_stays, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
