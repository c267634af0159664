/* Rows, taken apart and put together (docs/protocol/replica.md). Parsers say ERR_CORRUPT, or ERR_VERSION, and why. Those of operations are in
 * replicant.h: the same bytes travel. */
#ifndef REPLICA_ROWS_H
#define REPLICA_ROWS_H

#include "replica/replicant.h"

/* row.c */
void head_put(struct buf *out, const struct replicant *r);
int head_parse(struct str row, struct replicant *r, site_id self, struct err *err);
void lane_put(struct buf *out, const struct replicant *r);
int lane_parse(struct str row, struct replicant *r, struct err *err);
void put_vector(struct buf *out, const uint32_t *vector, uint32_t count);
void read_vector(struct reader *reader, uint32_t *vector, uint32_t count);
void put_text(struct buf *out, struct str text); /* with one byte of length */
struct str read_text(struct reader *reader);
void put_header(struct buf *out, const struct replicant *r); /* what all members know of it from the start */
bool read_header(struct reader *reader, struct replicant *r, site_id self);
void header_take(struct replicant *r, const struct replica_create *create);
uint32_t members_digest(const struct replicant *r);

/* here.c: what a row that is live says of this site. False: head_parse() has to look at it. */
bool here_skim(struct str bytes, site_id self, struct replica_here *here);
uint64_t here_members(const struct replicant *r); /* the digest of who they are */

/* row_small.c */
int row_version_check(uint8_t version, const char *what, struct err *err); /* ERR_VERSION: it is not read */

struct key_row {
	struct replica_op_id op;
	uint8_t kind; /* enum replica_outcome_kind */
	uint16_t status;
};

struct meta_row {
	uint64_t clock;
	uint64_t tasks;
};

void key_row_put(struct buf *out, const struct key_row *row);
int key_row_parse(struct str bytes, struct key_row *row, struct err *err);
void local_row_put(struct buf *out, struct replica_id id);
void moved_row_put(struct buf *out, const struct replica_op_id *op);
int moved_row_parse(struct str bytes, struct replica_op_id *op, struct err *err);
void meta_row_put(struct buf *out, const struct meta_row *row);
int meta_row_parse(struct str bytes, struct meta_row *row, struct err *err);
void blob_row_put(struct buf *out, bool here);
int blob_row_parse(struct str bytes, bool *here, struct err *err);
int blank_row_parse(struct str bytes, struct err *err); /* OUTBOX, and what expires */
void blank_row_put(struct buf *out);
void op_key_put(struct buf *out, const struct replica_op_id *op);
bool op_key_parse(struct str key, struct replica_op_id *op);
void outbox_key_put(struct buf *out, site_id site, struct replica_id id);
void blob_key_put(struct buf *out, struct str blob, const struct replica_op_id *op);
void name_key_put(struct buf *out, const struct replicant *r);

#endif
