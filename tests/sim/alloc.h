/* Who holds how much memory: the linker puts these counters around malloc() and its kin (-Wl,--wrap). */
#ifndef SIM_ALLOC_H
#define SIM_ALLOC_H

#include <stdint.h>

/* What is allocated and freed from now on is added to and taken from *account; NULL: not counted. Returns the account
 * that counted before. */
int64_t *sim_alloc_account(int64_t *account);

#endif
