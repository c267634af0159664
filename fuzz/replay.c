/*
 * Feeds a fuzz target what earlier fuzzing found worth keeping, without libFuzzer.
 *
 * Arguments are files and directories. Each file is one TAP test: the target gets it whole, then cut short, since a parser
 * sees the end of its text at any place. Each input lies in a buffer of exactly its size, so that the address sanitizer
 * sees a read past its end. A target reports a defect by crashing; the line "# running NAME" then says which file did it.
 */
#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Every prefix of a file up to this size; of a longer file, about as many, evenly spread. */
#define CUTS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition, const char *what, const char *path)
{
	if (!condition) {
		printf("Bail out! cannot %s %s\n", what, path);
		exit(1);
	}
}

static uint8_t *file_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	must(file != NULL, "open", path);
	must(fseek(file, 0, SEEK_END) == 0, "seek in", path);
	long end = ftell(file);
	must(end >= 0, "tell the size of", path);
	rewind(file);
	*size = (size_t)end;
	uint8_t *data = malloc(*size + 1);
	must(data != NULL, "allocate memory for", path);
	must(fread(data, 1, *size, file) == *size, "read", path);
	fclose(file);
	return data;
}

static void feed(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size > 0 ? size : 1);
	assert(exact != NULL);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void replay_file(const char *path, unsigned *count)
{
	size_t size;
	uint8_t *data = file_read(path, &size);
	size_t step = size <= CUTS_MAX ? 1 : size / CUTS_MAX;

	printf("# running %s\n", path);
	fflush(stdout);
	feed(data, size);
	for (size_t cut = 0; cut < size; cut += step) {
		feed(data, cut);
	}
	const char *slash = strrchr(path, '/');
	printf("ok %u - %s\n", ++*count, slash != NULL ? slash + 1 : path);
	fflush(stdout);
	free(data);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay(const char *path, unsigned *count)
{
	struct stat status;
	must(stat(path, &status) == 0, "find", path);
	if (!S_ISDIR(status.st_mode)) {
		replay_file(path, count);
		return;
	}
	struct dirent **entries;
	int entries_count = scandir(path, &entries, not_hidden, alphasort);
	must(entries_count >= 0, "list", path);
	for (int i = 0; i < entries_count; i++) {
		char *inner = malloc(strlen(path) + 1 + strlen(entries[i]->d_name) + 1);
		assert(inner != NULL);
		sprintf(inner, "%s/%s", path, entries[i]->d_name);
		replay(inner, count);
		free(inner);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE_OR_DIRECTORY...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		replay(argv[i], &count);
	}
	must(count > 0, "find any file in", argv[1]);
	printf("1..%u\n", count);
	return 0;
}
