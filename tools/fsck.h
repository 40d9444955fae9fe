/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking a region's file: what must hold whenever no operation is under way.
 */
#ifndef FARKV_TOOLS_FSCK_H
#define FARKV_TOOLS_FSCK_H

#include <stdbool.h>
#include <stdint.h>

struct fsck_report {
	uint64_t segments, slots, keys, dead_tails, followed, locked, bytes;
	int64_t items_counter;
	uint64_t problems; /* each has been printed to stderr, up to 20 of them */
};

/* 0, or -errno: the file cannot be read, or is no region (said on stderr). The file is only read.
 */
int fsck_region(const char *path, struct fsck_report *report);

#endif
