/* Moved: what reads and writes bytes is for all rooms. */
#ifndef SITE_BYTES_H
#define SITE_BYTES_H

#include "base/bytes.h"

#endif
