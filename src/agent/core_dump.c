/* An agent holds the site's key, the keys of sessions, and the credentials of all who use the site. A core would have them in
 * the clear, in a file or at a collector, long after they were forgotten here.
 *
 * A limit of zero keeps the kernel from writing a file; a core that is handed to a program (`|` in core_pattern) does not
 * know that limit, but is not made of a process that may not be dumped. Such a process cannot be traced either, by which the
 * leak sanitizer works: where that is built in, the limit has to do. */
#include "agent/core_dump.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
static const bool has_to_be_traced = true;
#else
static const bool has_to_be_traced = false;
#endif

int agent_forbid_core(struct err *err)
{
	bool limited = setrlimit(RLIMIT_CORE, &(struct rlimit){0}) == 0;
	if (has_to_be_traced ? limited : prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		return 0; /* a unit may forbid to set limits, and has one of its own then */
	return err_set(err, ERR_IO, "cannot keep core dumps from being made: %s", strerror(errno));
}
