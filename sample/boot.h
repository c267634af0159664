/* What a server needs of the other services: see boot.c. */
#ifndef SAMPLE_BOOT_H
#define SAMPLE_BOOT_H

#include "server.h"
#include "sha256.h"

/* A server in the making. What is borrowed is the body's. */
struct boot {
	const char *name;   /* borrowed */
	const char *image;  /* borrowed */
	const char *secret; /* borrowed; NULL: none */
	json_t *network;    /* borrowed: a network's id, true for any, NULL for none */
	json_t *image_record;
	char checksum[SHA256_TEXT_BYTES];
	json_int_t bytes;
	char secret_checksum[SHA256_TEXT_BYTES];
	json_t *port;
};

/* What the client asks for: `name`, `image`, `network`, `secret`. False: 400 in `*refusal`. */
bool boot_read(const json_t *body, struct boot *boot, struct reply *refusal);

/* Gets the image and the secret. False: `*failure` is the answer to the client. */
bool boot_fetch(struct request *request, struct boot *boot, struct reply *failure);

/* Gets a port if a network is wanted. It may be done again once `port` was taken out. */
bool boot_take_port(struct request *request, struct boot *boot, struct reply *failure);
bool boot_give_port_back(struct request *request, const json_t *port, struct reply *failure);

/* Reads a secret, of which the checksum is kept; `gone` is the status of the answer where there is none. */
bool boot_read_secret(struct request *request, const char *secret, unsigned gone, char *checksum,
                      struct reply *failure);

void boot_drop(struct boot *boot);

#endif
