/* Connections that are kept, and what may be sent on them.
 *
 * A server closes a connection that it need not keep, and the request that is on its way there just then is lost, or not: nobody
 * can tell. What may be sent twice is sent once more, on a new connection. What must not be gets a kept connection only if the
 * server is sure to read on:
 *
 *  - It was used a moment ago. Servers have a bound for idle ones, of seconds mostly.
 *  - It has answered a second request, or others of this server have, or it stayed open for long enough after the first. Some servers close
 *    after each answer and do not say so (uWSGI's http-socket): the answer is there, and the end of the connection still to come.
 *
 * Where only such requests are made, a connection that grows old enough is the proof; until then each request has a new one, and few are
 * kept beside it: to some servers an idle connection is a worker less. A server may be another one tomorrow: when it is seen to close after
 * an answer, it has to prove itself again.
 */
#include "http/http.h"

enum { RECENT_MS = 1000, PROOF_MS = 500, UNPROVEN_MOST = 8 };

void http_kept_idle(struct http_kept *kept, struct http_habit *habit, bool answered, uint64_t now_ms)
{
	kept->proven |= kept->answered && answered;
	kept->answered |= answered;
	kept->since_ms = now_ms;
	if (habit)
		habit->keeps |= kept->proven;
}

void http_kept_closed(const struct http_kept *kept, struct http_habit *habit, uint64_t now_ms)
{
	if (habit && kept->answered && !kept->proven && now_ms - kept->since_ms <= RECENT_MS)
		habit->keeps = false;
}

bool http_kept_is_sure(const struct http_kept *kept, const struct http_habit *habit, uint64_t now_ms)
{
	uint64_t idle_ms = now_ms - kept->since_ms;
	return idle_ms <= RECENT_MS && (kept->proven || habit->keeps || idle_ms >= PROOF_MS);
}

bool http_kept_are_enough(uint32_t idle)
{
	return idle >= UNPROVEN_MOST;
}
