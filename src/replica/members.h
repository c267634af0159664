/* Who the members are: how they come and go, and which of them hold it. */
#ifndef REPLICA_MEMBERS_H
#define REPLICA_MEMBERS_H

#include "replica/replicant.h"

struct peer;
struct section;

/* members.c */
enum {
	MEMBER_REMOVED = 1,
	MEMBER_ADDED = 2,
	MEMBER_LEAVING = 4,
	MEMBER_KEEPS = 8,
	MEMBER_BEHIND = 16,
	MEMBER_NEWCOMER = 32,
	MEMBER_WITNESS = 64,
	MEMBER_HOLDS = 128,
	MEMBER_LISTED = MEMBER_REMOVED | MEMBER_ADDED | MEMBER_LEAVING | MEMBER_KEEPS | MEMBER_WITNESS | MEMBER_HOLDS,
	MEMBER_FLAGS = 255
};

/* From the numbers of the members at who sent something to those at this site. */
struct lens {
	uint32_t count;
	uint8_t to[LIMIT_REPLICA_MEMBERS];
	bool same;
};

uint8_t member_flags(const struct replicant *r, uint32_t member); /* as in the row */
void member_take_flags(struct replicant *r, uint32_t member, uint8_t flags);
int members_ask_drop(struct replica *replica, struct replica_id id, const struct replica_drop *drop, struct err *err);
bool members_mark(struct replica *replica, struct replicant *r, uint32_t member,
                  uint8_t flags); /* false: nothing is new */
/* What this site knows of the members has grown: all others are to show that they know it too. */
void members_changed(struct replica *replica, struct replicant *r);
/* The one whose members are to change; or why they cannot. */
int members_find(struct replica *replica, struct replica_id id, struct replicant **r, struct err *err);
bool members_is_removed(const struct replica *replica, site_id site); /* from the mesh */
void members_put(struct buf *out, const struct replicant *r);
uint32_t members_add(struct replicant *r, site_id site);
void members_remove(struct replica *replica, struct replicant *r, uint32_t member);
/* Reads a list of `count` members that `from` sent, and takes over what is new. False: it makes no sense. */
bool members_take(struct replica *replica, struct replicant *r, uint32_t from, struct reader *reader, uint32_t count,
                  struct lens *lens);
void members_same(struct replicant *r, uint32_t from, struct lens *lens); /* its list is ours */
void members_message(struct replica *replica, struct replicant *r, site_id from, struct section *section);
void members_emit(struct replica *replica, struct peer *peer, const struct replicant *r, bool ask);
void members_answer(struct replica *replica, struct replicant *r, uint32_t member, bool ask);
void members_answer_of_alias(struct replica *replica, const struct replicant *alias, site_id to);
bool members_agree(const struct replicant *r); /* as far as is known here */
void lens_vector(const struct lens *lens, struct reader *reader, uint32_t *vector, uint32_t count);
/* Before anything that was delivered is run. True: that has to wait. */
bool members_first(struct replica *replica, struct replicant *r);
bool members_is_leaving(const struct replicant *r); /* this site, and nothing new may begin here */
void members_pump_left(struct replica *replica, struct replicant *r);
void members_deleted(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);
bool members_left_for_good(const struct replicant *r); /* everybody knows: it need not be remembered */

/* extend.c */
int members_ask_extend(struct replica *replica, struct replica_id id, const struct replica_extension *extension,
                       struct err *err);
void members_extend(struct replica *replica, struct replicant *r); /* if one is asked for and all is settled */
bool members_holds(const struct replica *replica, const struct replicant *r); /* what is new waits for the copy */
void members_extend_refuse(struct replica *replica, struct replicant *r, int code, const char *text);
void members_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);

/* witness.c */
void witness_follow(struct replica *replica, struct replicant *r); /* all that is known counts as done */
void witness_ends(struct replica *replica, struct replicant *r);   /* it is to hold it, and begins with a copy */
bool witness_sends_on(const struct replicant *r);                  /* who asks for it here is sent to one that has it */
bool witness_holds_nothing(const struct replicant *r, uint32_t member); /* it was to hold it, and will not */
site_id witness_prime(const struct replicant *r);                       /* 0: nobody holds it any more */
uint32_t witness_holders(const struct replicant *r, site_id *holders, uint32_t most); /* the prime first */
void witness_put(struct buf *out, const struct replicant *r); /* of what is not ALIKE, in its header */
bool witness_read(struct reader *reader, struct replicant *r);
int witness_check(const struct replica *replica, const struct replica_create *create, struct err *err);
void witness_take(struct replicant *r, const struct replica_create *create);

/* adopt.c: of who is new. True: nothing else is to be done here. */
bool members_join(struct replica *replica, struct replicant *r);

#endif
