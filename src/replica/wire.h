/* Messages between members, taken apart and put together (docs/protocol/replica.md). */
#ifndef REPLICA_WIRE_H
#define REPLICA_WIRE_H

#include "replica/replicant.h"

enum sync_kind { SYNC_STATE = 1, SYNC_GONE = 2, SYNC_WEAK = 3, SYNC_MEMBERS = 4 };
enum sync_flag { SYNC_ASK = 1, SYNC_HEADER = 2, SYNC_REPORT = 4, SYNC_NOTHING = 8, SYNC_LIST = 16, SYNC_FLAGS = 31 };

struct sync_op {
	uint8_t member;
	uint32_t number;
	struct str row;
};

struct section {
	uint8_t kind;
	uint8_t flags;
	struct replica_id id;
	uint8_t members_count; /* 0 in GONE, and where nothing is known */
	uint32_t digest;       /* of the members */
	struct reader rest;    /* what depends on the kind */
};

void sync_message_begin(struct buf *out, uint64_t clock);
int sync_message_open(struct str bytes, uint64_t *clock, struct reader *sections);
/* 1: a section, of any kind; 0: no more; negative: makes no sense. */
int sync_section_read(struct reader *sections, struct section *section);
size_t sync_section_begin(struct buf *out, const struct section *section);
void sync_section_ask(struct buf *out, size_t at);
void sync_section_end(struct buf *out, size_t at);
void sync_op_put(struct buf *out, const struct sync_op *op);
bool sync_op_read(struct reader *reader, struct sync_op *op, uint32_t members_count);

#endif
