#include "base_test.h"

#include "base/limits.h"
#include "base/log_stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

/* Standard error replaced by one end of a datagram socket: what arrives is one write(2), not more and not less. */
struct replaced {
	int own_stderr;
	int reading;
};

static struct replaced replace_stderr(int reading, int writing)
{
	struct replaced replaced = {.own_stderr = dup(STDERR_FILENO), .reading = reading};
	assert_true(replaced.own_stderr >= 0);
	assert_int_equal(dup2(writing, STDERR_FILENO), STDERR_FILENO);
	close(writing);
	return replaced;
}

static struct replaced replace_stderr_by_socket(void)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	return replace_stderr(ends[0], ends[1]);
}

static void restore_stderr(struct replaced *replaced)
{
	dup2(replaced->own_stderr, STDERR_FILENO);
	close(replaced->own_stderr);
	close(replaced->reading);
}

/* Empty if nothing was written. Asserting has to wait until a person can read standard error again. */
static struct str receive(struct replaced *replaced, char *line, size_t bytes)
{
	ssize_t count = recv(replaced->reading, line, bytes, MSG_DONTWAIT);
	return str_make(line, count > 0 ? (size_t)count : 0);
}

static void set_journal_stream(uint64_t device, uint64_t inode)
{
	char stream[64];
	snprintf(stream, sizeof(stream), "%" PRIu64 ":%" PRIu64, device, inode);
	setenv("JOURNAL_STREAM", stream, 1);
}

static void assert_stamped(struct str line, const char *rest)
{
	static const char stamp[] = "^[0-9]{4}-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9][.][0-9]{3}Z ";
	enum { STAMP_BYTES = sizeof("2026-01-02T03:04:05.678Z ") - 1 };
	char text[256];
	assert_in_range(line.length, STAMP_BYTES, sizeof(text) - 1);
	memcpy(text, line.at, line.length);
	text[line.length] = '\0';
	regex_t pattern;
	assert_int_equal(regcomp(&pattern, stamp, REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regexec(&pattern, text, 0, NULL, 0), 0);
	regfree(&pattern);
	assert_string_equal(text + STAMP_BYTES, rest);
}

static void a_person_gets_the_time(void **state)
{
	(void)state;
	unsetenv("JOURNAL_STREAM");
	setenv("TZ", "EAST-9", 1); /* local time must not show */
	tzset();
	struct replaced replaced = replace_stderr_by_socket();
	struct log log = {.level = LOG_INFO, .sink = log_stderr_sink()};
	time_t before = time(NULL);
	log_event(&log, LOG_INFO, "hello there");
	time_t after = time(NULL);
	char line[256];
	struct str got = receive(&replaced, line, sizeof(line));
	restore_stderr(&replaced);
	assert_stamped(got, "level=info msg=\"hello there\"\n");
	struct tm utc = {0};
	assert_non_null(strptime(line, "%Y-%m-%dT%H:%M:%S", &utc));
	assert_in_range(timegm(&utc), before - 1, after);
}

static void the_journal_gets_priorities(void **state)
{
	(void)state;
	struct replaced replaced = replace_stderr_by_socket();
	struct stat status;
	assert_int_equal(fstat(STDERR_FILENO, &status), 0);
	set_journal_stream(status.st_dev, status.st_ino);
	struct log log = {.level = LOG_DEBUG, .sink = log_stderr_sink()};
	static const char *const wanted[] = {"<3>level=error msg=m\n", "<4>level=warn msg=m\n", "<6>level=info msg=m\n",
	                                     "<7>level=debug msg=m\n"};
	char lines[COUNT(wanted)][256];
	struct str got[COUNT(wanted)];
	for (size_t i = 0; i < COUNT(wanted); i++) {
		log_event(&log, (enum log_level)i, "m");
		got[i] = receive(&replaced, lines[i], sizeof(lines[i]));
	}
	restore_stderr(&replaced);
	unsetenv("JOURNAL_STREAM");
	for (size_t i = 0; i < COUNT(wanted); i++)
		assert_str_equal(got[i], str_of(wanted[i]));
}

/* The variable is inherited by programs whose standard error went elsewhere: it must name this very stream. */
static void another_stream_is_not_the_journal(void **state)
{
	(void)state;
	struct replaced replaced = replace_stderr_by_socket();
	struct stat status;
	assert_int_equal(fstat(STDERR_FILENO, &status), 0);
	enum { CASES = 6 };
	char lines[CASES][256];
	struct str got[CASES];
	for (int i = 0; i < CASES; i++) {
		switch (i) {
		case 0: set_journal_stream(status.st_dev, status.st_ino + 1); break;
		case 1: set_journal_stream(status.st_dev + 1, status.st_ino); break;
		case 2: set_journal_stream(status.st_ino, status.st_dev); break;
		case 3: setenv("JOURNAL_STREAM", "", 1); break;
		case 4: setenv("JOURNAL_STREAM", ":", 1); break;
		default: setenv("JOURNAL_STREAM", "no numbers", 1);
		}
		struct log log = {.level = LOG_INFO, .sink = log_stderr_sink()};
		log_event(&log, LOG_INFO, "m");
		got[i] = receive(&replaced, lines[i], sizeof(lines[i]));
	}
	restore_stderr(&replaced);
	unsetenv("JOURNAL_STREAM");
	for (int i = 0; i < CASES; i++)
		assert_stamped(got[i], "level=info msg=m\n");
}

static void the_longest_line_is_one_atomic_write(void **state)
{
	(void)state;
	struct replaced replaced = replace_stderr_by_socket();
	static char value[LIMIT_LOG_LINE_BYTES];
	memset(value, ' ', sizeof(value));
	struct log log = {.level = LOG_INFO, .sink = log_stderr_sink()};
	static char lines[2][2 * LIMIT_LOG_LINE_BYTES];
	log_event(&log, LOG_INFO, "m", LOG_STR("k", str_make(value, sizeof(value))), LOG_INT("n", 1));
	struct str longest = receive(&replaced, lines[0], sizeof(lines[0]));
	/* Longer than log_write() ever makes one. */
	log.sink.write(log.sink.context, LOG_INFO, str_make(value, sizeof(value)));
	struct str cut = receive(&replaced, lines[1], sizeof(lines[1]));
	restore_stderr(&replaced);
	assert_in_range(longest.length, LIMIT_LOG_LINE_BYTES - 64, PIPE_BUF);
	assert_str_equal(str_make(longest.at + longest.length - 3, 3), STR(" \"\n"));
	assert_int_equal(cut.length, PIPE_BUF);
	assert_str_equal(str_make(cut.at + cut.length - 2, 2), STR(" \n"));
}

static void no_standard_error_is_survived(void **state)
{
	(void)state;
	setenv("JOURNAL_STREAM", "1:2", 1);
	int own_stderr = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	struct log log = {.level = LOG_INFO, .sink = log_stderr_sink()};
	errno = ENOENT;
	log_event(&log, LOG_INFO, "m");
	int errno_after = errno;
	dup2(own_stderr, STDERR_FILENO);
	close(own_stderr);
	unsetenv("JOURNAL_STREAM");
	assert_int_equal(errno_after, ENOENT);
}

/* A signal arrives while the line waits for a full pipe. The second one empties the pipe, from its handler. */
static int full_pipe;
static volatile sig_atomic_t signals_count;

static void on_alarm(int signal_number)
{
	(void)signal_number;
	char drained[4096];
	if (++signals_count == 2)
		while (read(full_pipe, drained, sizeof(drained)) > 0)
			;
}

static void an_interrupted_write_is_taken_up_again(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	full_pipe = ends[0];
	while (write(ends[1], "x", 1) == 1)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	struct replaced replaced = replace_stderr(ends[0], ends[1]);

	struct sigaction waking = {.sa_handler = on_alarm}; /* without SA_RESTART */
	struct sigaction before;
	assert_int_equal(sigaction(SIGALRM, &waking, &before), 0);
	struct itimerval every_20_ms = {{0, 20000}, {0, 20000}};
	assert_int_equal(setitimer(ITIMER_REAL, &every_20_ms, NULL), 0);
	struct log log = {.level = LOG_INFO, .sink = log_stderr_sink()};
	log_event(&log, LOG_INFO, "m");
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	sigaction(SIGALRM, &before, NULL);

	char line[256];
	ssize_t count = read(replaced.reading, line, sizeof(line));
	restore_stderr(&replaced);
	assert_true(signals_count >= 2);
	assert_true(count > 0);
	assert_stamped(str_make(line, (size_t)count), "level=info msg=m\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_person_gets_the_time),
		cmocka_unit_test(the_journal_gets_priorities),
		cmocka_unit_test(another_stream_is_not_the_journal),
		cmocka_unit_test(the_longest_line_is_one_atomic_write),
		cmocka_unit_test(no_standard_error_is_survived),
		cmocka_unit_test(an_interrupted_write_is_taken_up_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
