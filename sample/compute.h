/*
 * What the parts of the compute service share.
 *
 *     compute.c   the service: its collections and routes
 *     vm.c        servers
 *     boot.c      what a server needs of the other services: an image, a secret, a port
 *     volume.c    volumes, which can be attached to servers
 *     stack.c     stacks, which are made of servers
 *     project.c   projects, in which all of these can be
 *
 * Who needs several locks takes them in this order: `building`, then those of projects, stacks, volumes, servers.
 */
#ifndef SAMPLE_COMPUTE_H
#define SAMPLE_COMPUTE_H

#include <pthread.h>

#include "store.h"

struct compute {
	struct store *projects, *stacks, *volumes, *servers;
	pthread_mutex_t building; /* parts of a stack are made or deleted, one stack at a time */
};

#endif
