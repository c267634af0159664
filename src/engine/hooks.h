/* Webhooks: what happens to replicated resources, told to those who want to be called rather than to follow.
 *
 * Each hook has a position in the journal of changes (changes.c). As soon as there are changes behind it, one POST takes up to
 * LIMIT_ENGINE_HOOK_EVENTS of those it wants to hear of; a 2xx moves the position behind them. So each hook is told in order, one
 * request at a time, at least once: the position is on disk within a second, and after a crash some are told again.
 *
 * What goes wrong:
 *   no connection, no answer in time, anything but 2xx   the same again after a pause, which doubles up to a minute, for ever
 *   more has happened than is kept meanwhile             an event `missed` says so, and it goes on with the oldest that is kept
 *   a hook is not in the configuration any more          its position is forgotten: if it comes back, it begins with what happens then
 * Nothing waits for a hook: it costs one connection, and the journal is of bounded size whatever they do.
 *
 * The body is signed where the hook has a secret: `Cheops-Signature: t=SECONDS,sha256=HEX`, an HMAC (RFC 2104) with SHA-256 of the
 * seconds, a dot, and the body.
 */
#ifndef ENGINE_HOOKS_H
#define ENGINE_HOOKS_H

#include "http/http.h"

#include "base/str.h"

struct engine_hook {
	struct str name;
	struct str url; /* to be shown */
	struct http_address address;
	struct str target;    /* the path, and the query */
	struct http_tls *tls; /* NULL: in the clear */
	const char *tls_name;
	uint32_t events;   /* a bit for each enum replica_event_kind */
	struct str secret; /* "": nothing is signed */
	uint64_t timeout_ms;
};

enum engine_hook_state {
	ENGINE_HOOK_IDLE, /* all was told */
	ENGINE_HOOK_TELLING,
	ENGINE_HOOK_WAITING, /* after a failure */
};

const char *engine_hook_state_name(enum engine_hook_state state);

/* How one stands. */
struct engine_hook_view {
	struct str name;
	struct str url;
	enum engine_hook_state state;
	uint64_t behind;               /* changes that it was not told of yet, whether it wants to hear of them or not */
	uint64_t told, failed, missed; /* events, deliveries, changes; since the agent started */
	uint64_t last_told_ms;         /* 0: never */
	uint64_t last_failed_ms;
	struct str last_error; /* "": none */
};

#endif
