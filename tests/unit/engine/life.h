/* One life of an agent, as far as its rows go: an engine with a store and a journal in a folder, and no thread. */
#ifndef TESTS_ENGINE_LIFE_H
#define TESTS_ENGINE_LIFE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_int.h"

enum { LIFE_SELF = 7 };

struct life {
	struct engine engine;
	char folder[64];
};

/* An empty folder, and away with it. */
void life_new(struct life *life);
void life_remove(const struct life *life);

/* What the life before has left is there. */
void life_begin(struct life *life);
/* What was put and not committed is gone. */
void life_crash(struct life *life);

#endif
