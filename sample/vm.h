/* Servers of the compute service: see vm.c. */
#ifndef SAMPLE_VM_H
#define SAMPLE_VM_H

#include "boot.h"

struct compute;

struct reply vm_list(struct request *request);
struct reply vm_create(struct request *request);
struct reply vm_get(struct request *request);
struct reply vm_delete(struct request *request);
struct reply vm_action(struct request *request);

/* Makes and stores a server for which all is there, perhaps as a part of a stack (or NULL): its record, the caller's own.
 * NULL: `*failure` says why, and the port is given back. */
json_t *vm_make(struct request *request, const struct boot *boot, const json_t *stack, struct reply *failure);

/* Gives its port back, takes its volumes off, and deletes it. That it is gone already is as good. */
bool vm_remove(struct request *request, const json_t *record, struct reply *failure);

#endif
