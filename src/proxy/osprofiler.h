/* The trace of osprofiler, OpenStack's own profiler: two headers that a service in which it is configured passes on with every call.
 *
 *     X-Trace-Info: base64url of {"base_id": "...", "parent_id": "..."}, padded
 *     X-Trace-HMAC: HMAC-SHA1 of that text, in hex, with a key that services and their clients share
 *
 * Of a request, `base_id` stays the same in all that is called for it; `parent_id` is that of the caller. A service takes a trace that
 * is signed with any of its keys (`hmac_keys`), has these members and no other, and signs what it passes on with the same key. It
 * ignores any other: what we ignore must be at least that.
 */
#ifndef PROXY_OSPROFILER_H
#define PROXY_OSPROFILER_H

#include "base/arena.h"
#include "base/buf.h"

struct proxy_keys {
	const struct str *at; /* the first one signs */
	uint32_t count;
};

/* The base_id of a trace that is whole and signed, in the arena. False: a service would ignore it, or it says nothing. */
bool proxy_profile_read(struct arena *arena, struct str info, struct str hmac, const struct proxy_keys *keys,
                        struct str *base_id);

/* Both headers, as lines. Ids are UUIDs, or anything else that needs no escape in JSON. */
void proxy_profile_put(struct buf *out, struct str base_id, struct str parent_id, struct str key);

#endif
