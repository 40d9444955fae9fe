/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file system, and so which pages, a region lies on. A fallback always has a stated reason,
 * and the reason is the true one: a refusal that blames the wrong limit costs the operator a day.
 */
#ifndef FARKV_MN_PAGES_H
#define FARKV_MN_PAGES_H

#include "fabric/log.h"
#include "mn/options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { PAGES_REASON_MAX = 400 };

/* Where the kernel tells; tests give others. */
struct pages_host {
	const char *mounts;    /* "/proc/mounts" */
	const char *hugepages; /* "/sys/kernel/mm/hugepages" */
	const char *meminfo;   /* "/proc/meminfo" */
	const char *shm;       /* "/dev/shm" */
};

extern const struct pages_host pages_host;

struct pages_place {
	char dir[PATH_MAX];
	uint64_t page_bytes;
	bool hugetlb;
};

/*
 * A writable hugetlbfs with pages of `page_bytes` and room for `size_bytes`. What `file` (a name in
 * that directory) occupies now counts as free: it is about to be replaced. -ENOTSUP no such pages
 * in this kernel, -ENOSPC not enough of them, -ENOENT no mount, -EACCES not writable: reason[]
 * tells, and how to mend it.
 */
int pages_find_hugetlb(const struct pages_host *host, uint64_t page_bytes, uint64_t size_bytes,
		       const char *file, struct pages_place *place, char reason[PAGES_REASON_MAX]);
/* The host's tmpfs. -ENOSPC it, or the machine's memory, has no room; -EACCES not writable;
 * reason[] tells. */
int pages_find_tmpfs(const struct pages_host *host, uint64_t size_bytes, const char *file,
		     struct pages_place *place, char reason[PAGES_REASON_MAX]);
/* What `dir` is. -EINVAL `wanted` contradicts it; -ENOSPC, -EACCES, -ENOENT and so on: reason[]
 * tells. */
int pages_find_in(const struct pages_host *host, const char *dir, enum pages_wanted wanted,
		  uint64_t size_bytes, const char *file, struct pages_place *place,
		  char reason[PAGES_REASON_MAX]);

#endif
