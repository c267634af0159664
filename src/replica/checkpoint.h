/* Inside the room: checkpoints of what is divided. See checkpoint.c. */
#ifndef REPLICA_CHECKPOINT_H
#define REPLICA_CHECKPOINT_H

#include "replica/replica_int.h"

bool checkpoint_applies(const struct replicant *r);
bool checkpoint_load(struct replicant *r, const struct op_row *row); /* false: it makes no sense */
void checkpoint_drop(struct replica *replica, struct replicant *r);
void candidate_drop(struct replicant *r);
void checkpoint_later(struct replica *replica, struct replicant *r); /* the candidate is of no use: another one */
const uint32_t *candidate_at(const struct replicant *r);             /* NULL: there is none */
void checkpoint_take(struct replica *replica, struct replicant *r);  /* the candidate, at the base */
bool checkpoint_start(struct replica *replica, struct replicant *r); /* true: it is being read */
void checkpoint_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);
void checkpoint_restore(struct replica *replica, struct replicant *r);
bool checkpoint_execute(struct replica *replica, struct replicant *r); /* the task that sets it again */
void checkpoint_restored(struct replicant *r);
void checkpoint_was_refused(struct replicant *r);

#endif
