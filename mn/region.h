/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region's file: DIR/farkv-<cluster>-<id>.region, mode 0600, locked (flock) for as long as a
 * process serves it, mapped shared and populated. It is always a new file: one left by an earlier
 * process is unlinked, never truncated, so that whoever still maps the old one keeps harmless old
 * pages.
 */
#ifndef FARKV_MN_REGION_H
#define FARKV_MN_REGION_H

#include "fabric/log.h"
#include "fabric/seal.h"
#include "layout/region.h"
#include "mn/options.h"
#include "mn/pages.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region {
	uint8_t *bytes;	       /* owned mapping */
	uint64_t region_bytes; /* what is published; <= mapped_bytes */
	size_t mapped_bytes;   /* whole pages: what munmap is given */
	uint64_t page_bytes;
	uint64_t replaced; /* incarnation of the region that lay here before, 0 = none */
	struct superblock superblock;
	const struct logger *logger; /* borrowed */
	int fd;
	bool hugetlb;
	bool unlinked; /* the name is gone already: the process's end leaves nothing */
	char path[PATH_MAX];
};

enum { REGION_NODE_UNKNOWN = -1 };

/* farkv-<cluster>-<id>.region; bytes that a file name may not have are escaped, a long name is cut
 * and hashed. */
void region_file_name(const char *cluster, uint32_t mn_id, char name[NAME_MAX + 1]);

/*
 * The seed of XXH3_128(key, seed), whose high half picks the MN: it must be the same on every MN of
 * the cluster. Keyed with the cluster's secret where there is one.
 */
uint64_t cluster_hash_seed(const char *cluster, const struct seal *seal);

/*
 * Opens, locks, sizes, binds to NUMA node `node` (or REGION_NODE_UNKNOWN), populates and formats.
 * Every fault is logged with what to do: -EBUSY another process serves it; -ENOSPC, -ENOMEM no
 * room; -EACCES; -EINVAL: the size does not hold `expected_keys`, or pages and path contradict each
 * other.
 */
int region_open(const struct mn_options *options, const struct pages_host *host,
		const struct seal *seal, int node, const struct logger *logger,
		struct region *region);
/* Unmaps, and unlinks if `remove`. Accepts a zeroed region. */
void region_close(struct region *region, bool remove);

/* "4K", "2M", "1G". */
const char *region_page_name(const struct region *region);

#endif
