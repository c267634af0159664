/* The file that --view names: what is known of the sites, in YAML (docs/scope-lang.md).
 *
 *     sites:
 *       Site1: {state: present, tags: {region: west}}
 *       Site2: {state: absent, since: 2024-05-01T12:00:00Z}
 *       Site3:                             # present, nothing else known
 *     rtt_ms:
 *       Site1: {Site2: 8, Site3: 0.35}     # counts both ways, unless the way back is given too
 *     services:
 *       compute: {Site1: "2.1", Site2:}    # the version; nothing: not known
 */
#ifndef CLI_VIEW_FILE_H
#define CLI_VIEW_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "scope/scope.h"

/* Reads the file into a table of at least one site, in the order of the file. All of it is checked; the first thing that
 * is wrong is told as "FILE:LINE:COLUMN: ..." and leaves *table alone. */
int view_file_read(struct arena *arena, const char *path, struct scope_table **table, struct err *err);

#endif
