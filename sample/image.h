/* Between image.c, which knows the records, and image_file.c, which knows their bytes. */
#ifndef SAMPLE_IMAGE_H
#define SAMPLE_IMAGE_H

#include "server.h"
#include "store.h"

struct image_state {
	struct store *records, *secrets;
	int files; /* directory; the bytes of an image are in ID-CHECKSUM */
};

/* Opens the directory of files and removes those that no record speaks of. False, having said why, if that fails. */
bool image_files_open(struct image_state *state, const char *data);

/* Removes the bytes of an image whose record is going, or has got others. The store is locked. */
void image_file_remove(struct image_state *state, const json_t *record);

struct reply image_file_get(struct request *request);

/* The steps of an upload: see struct route. */
void image_file_begin(struct request *request);
void image_file_piece(struct request *request, const char *bytes, size_t length);
struct reply image_file_put(struct request *request);
void image_file_drop(struct request *request);

#endif
