/* What the tests of this room share: cmocka in its order of inclusion. */
#ifndef HTTP_TEST_H
#define HTTP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
