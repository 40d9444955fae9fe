/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a region's file name for oneself. */
#ifndef FARKV_MN_LOCK_H
#define FARKV_MN_LOCK_H

#include "fabric/log.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A new, empty, locked file under `path`, mode 0600; *fd is the caller's. What was there is
 * unlinked once its lock shows that nobody serves it; then *replaced, and *incarnation is that of
 * the region it held, or 0. Logged: -EBUSY it is served (the log names the process where known);
 * -EPERM it is not our own regular file; or of open, flock, unlink.
 */
int lock_new_file(const char *path, const struct logger *logger, int *fd, bool *replaced,
		  uint64_t *incarnation);

#endif
