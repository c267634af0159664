/* What answers, failures and silence say of the path to another site: health.c. Pure: whoever looks after the path (probe.c) tells what
 * happens, and when. */
#ifndef PROXY_HEALTH_H
#define PROXY_HEALTH_H

#include "proxy/proxy.h"

/* Zeroed, nothing is known. */
struct proxy_health {
	enum proxy_path_state state;
	uint32_t failures;  /* errors in a row */
	uint32_t silent;    /* probes in a row that were not heard of */
	uint32_t answers;   /* in a row, since it was down */
	uint64_t down_us;   /* when it went down */
	uint64_t answer_us; /* the last one; 0: never */
	uint64_t life_us;   /* the last time that anything was heard, an answer or an acknowledgement; 0: never */
	uint64_t asked_us;  /* the first probe since the last answer; 0: none */
	bool hung;          /* it is down because nobody answered behind a kernel that did */
	uint64_t rtt_us;    /* of probes, smoothed; 0: not measured */
	uint64_t variation_us;
	uint64_t way_us;        /* of a connection that was taken, as long as nothing else was measured; 0: not known */
	bool slow;              /* the last one was: something had to be repeated */
	uint32_t loss;          /* of probes, of PROXY_LOSS_ALL */
	uint32_t samples;       /* that it is from; no more are counted after some */
	uint64_t first_byte_us; /* smoothed, from a request to the head of its answer; 0: not known */
	uint64_t quickest_us;   /* the least of these: a round trip took no longer */
};

enum { PROXY_LOSS_ALL = 65536 };

/* True where the state has changed. `estimate_us` counts while nothing was measured. */
bool proxy_health_answered(struct proxy_health *health, uint64_t now_us);
enum proxy_failure {
	PROXY_FAILURE,         /* an error, or silence */
	PROXY_FAILURE_OF_LOST, /* nor has gossip heard of the site */
	PROXY_FAILURE_REFUSED, /* the other machine said so */
};
bool proxy_health_failed(struct proxy_health *health, uint64_t now_us, enum proxy_failure failure);
/* The time of a probe is over, and not even the other machine's kernel was heard of. */
struct proxy_silence {
	uint64_t begun_us; /* it was sent */
	uint64_t now_us;
	int64_t estimate_us;
	enum proxy_failure failure;
};
bool proxy_health_silent(struct proxy_health *health, const struct proxy_silence *silence);
/* Something came from the other machine on the connection of a probe, at that time. */
bool proxy_health_heard(struct proxy_health *health, uint64_t at_us);
/* A probe is sent. */
void proxy_health_asked(struct proxy_health *health, uint64_t now_us);
/* Whatever is heard of it: is it too long since an answer was asked for? */
bool proxy_health_hangs(struct proxy_health *health, uint64_t now_us, int64_t estimate_us);
/* A probe should have been heard of, and was not before another one was answered. */
void proxy_health_lost(struct proxy_health *health);
/* Nothing was ever heard on this path. */
bool proxy_health_is_new(const struct proxy_health *health);
/* A connection was taken on a path where nothing was measured; 0: how long that took is not known. */
void proxy_health_taken(struct proxy_health *health, uint64_t way_us);
/* Nobody looks any more: the state is unknown. */
void proxy_health_forget(struct proxy_health *health);
/* A probe was answered; `late`: after its time. */
void proxy_health_measured(struct proxy_health *health, uint64_t rtt_us, bool late);
/* A request was answered, so long after it was sent. */
void proxy_health_first_byte(struct proxy_health *health, uint64_t first_byte_us);
/* For a probe to be heard of. */
uint64_t proxy_health_due_us(const struct proxy_health *health, int64_t estimate_us);
/* For an answer, where something is heard. */
uint64_t proxy_health_hang_us(const struct proxy_health *health, int64_t estimate_us);
enum proxy_waiting {
	PROXY_WAITING_FIRST, /* for one probe */
	PROXY_WAITING_MORE,  /* for several, one after the other */
	PROXY_WAITING_HEARD, /* the last one was heard of, and has not been answered */
};
/* So long after the last probe another one is sent at its side. */
uint64_t proxy_health_beside_us(const struct proxy_health *health, int64_t estimate_us, enum proxy_waiting waiting);
/* What the distance adds to the time that a connection may take. */
uint64_t proxy_health_connect_us(const struct proxy_health *health, int64_t estimate_us);
/* For the answer of one site, before the next one is asked too. */
uint64_t proxy_race_delay_us(uint64_t first_byte_us, int64_t estimate_us);
uint64_t proxy_smooth_us(uint64_t smoothed_us, uint64_t sample_us);

#endif
