/* The states of a site, and what they are called. */
#include "site/site.h"

#include "base/check.h"

const char *site_state_name(enum site_state state)
{
	static const char *const names[SITE_STATES] = {[SITE_ALIVE] = "alive",
	                                               [SITE_SUSPECT] = "suspect",
	                                               [SITE_LOST] = "lost",
	                                               [SITE_LEFT] = "left",
	                                               [SITE_REVOKED] = "revoked"};
	CHECK(state < SITE_STATES);
	return names[state];
}

enum scope_state site_scope_state(enum site_state state)
{
	switch (state) {
	case SITE_ALIVE:
	case SITE_SUSPECT: return SCOPE_PRESENT;
	case SITE_LOST: return SCOPE_UNKNOWN;
	case SITE_LEFT:
	case SITE_REVOKED:
	case SITE_STATES: break;
	}
	return SCOPE_ABSENT;
}
