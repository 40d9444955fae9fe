/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/region.h"

#include "layout/bytes.h"
#include "mn/clock.h"
#include "mn/lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <numaif.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

enum { NAME_KEPT_MAX = 180, NODE_MAX = 1023, FIRST_EPOCH = 1 };

void region_file_name(const char *cluster, uint32_t mn_id, char name[NAME_MAX + 1])
{
	char kept[NAME_KEPT_MAX + 1];
	size_t at = 0;

	for (const char *c = cluster; *c && at <= NAME_KEPT_MAX; c++) {
		if (*c == '/' || *c == '%') {
			if (at + 3 <= NAME_KEPT_MAX)
				snprintf(kept + at, 4, "%%%02x", (unsigned)*c);
			at += 3;
		} else {
			if (at < NAME_KEPT_MAX)
				kept[at] = *c;
			at++;
		}
	}
	if (at > NAME_KEPT_MAX) {
		at = (size_t)snprintf(kept, sizeof kept, "%%%016" PRIx64,
				      XXH3_64bits(cluster, strlen(cluster)));
		assert(at < sizeof kept);
	}
	kept[at] = '\0';
	snprintf(name, NAME_MAX + 1, "farkv-%s-%" PRIu32 ".region", kept, mn_id);
}

uint64_t cluster_hash_seed(const char *cluster, const struct seal *seal)
{
	static const char domain[] = "farkv hash seed 1:";
	crypto_generichash_state state;
	uint8_t out[crypto_generichash_BYTES];
	const uint8_t *key = seal->has_secret ? seal->secret : NULL;

	crypto_generichash_init(&state, key, key ? SEAL_SECRET_BYTES : 0, sizeof out);
	crypto_generichash_update(&state, (const uint8_t *)domain, sizeof domain - 1);
	crypto_generichash_update(&state, (const uint8_t *)cluster, strlen(cluster));
	crypto_generichash_final(&state, out, sizeof out);
	return load_le64(out);
}

const char *region_page_name(const struct region *region)
{
	static char name[SIZE_TEXT_MAX];

	return size_text(region->page_bytes, name);
}

/* 0 or -errno of a system call that failed on the region. */
static int fault(const struct region *region, const char *call, int rc, bool quiet)
{
	log_line(region->logger, quiet ? LOG_LEVEL_NOTICE : LOG_LEVEL_ERROR,
		 "region file %s: %s of %zu bytes on %s pages: %s%s", region->path, call,
		 region->mapped_bytes, region_page_name(region), strerror(-rc),
		 region->hugetlb ? " (not enough pages, or the hugetlb limit of this cgroup)" : "");
	return rc;
}

/* Faults every page in, so that the first touch, ours or the device's, cannot fail. */
static int populate(struct region *region)
{
	long page = sysconf(_SC_PAGESIZE);
	volatile uint8_t *touch = region->bytes;

	if (madvise(region->bytes, region->mapped_bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* Before Linux 5.14. The file has its pages already (fallocate): touching them cannot raise
	 * SIGBUS. */
	for (size_t at = 0; at < region->mapped_bytes; at += (size_t)page)
		touch[at] = 0;
	return 0;
}

/* A hint: what fails here costs speed, not correctness. */
static void bind_to_node(struct region *region, int node)
{
	unsigned long mask[(NODE_MAX + 1) / (8 * sizeof(unsigned long))] = {0};
	unsigned bits = 8 * sizeof *mask;

	if (node < 0 || node >= NODE_MAX)
		return;
	mask[(unsigned)node / bits] = 1ul << ((unsigned)node % bits);
	if (mbind(region->bytes, region->mapped_bytes, MPOL_BIND, mask, NODE_MAX + 1, 0) != 0)
		log_line(region->logger, LOG_LEVEL_WARNING,
			 "cannot bind the region to NUMA node %d of the device: %s", node,
			 strerror(errno));
}

/*
 * mmap first, untouched, because the NUMA policy of a shared file is set through a mapping and
 * fallocate obeys it. fallocate then takes every page: a limit of the cgroup or a full file system
 * is an error here, not a SIGBUS later.
 */
static int map(struct region *region, int node, bool quiet)
{
	void *bytes;
	int rc;

	if (ftruncate(region->fd, (off_t)region->mapped_bytes) != 0)
		return fault(region, "ftruncate", -errno, quiet);
	bytes = mmap(NULL, region->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (bytes == MAP_FAILED)
		return fault(region, "mmap", -errno, quiet);
	region->bytes = bytes;
	bind_to_node(region, node);
	do
		rc = fallocate(region->fd, 0, 0, (off_t)region->mapped_bytes) == 0 ? 0 : -errno;
	while (rc == -EINTR);
	if (rc)
		return fault(region, "fallocate", rc, quiet);
	if (!region->hugetlb)
		(void)madvise(region->bytes, region->mapped_bytes, MADV_HUGEPAGE);
	(void)madvise(region->bytes, region->mapped_bytes, MADV_DONTDUMP);
	rc = populate(region);
	return rc ? fault(region, "populate", rc, quiet) : 0;
}

static int random_u64(uint64_t *value)
{
	return getrandom(value, sizeof *value, 0) == (ssize_t)sizeof *value ? 0 : -EIO;
}

static int make_superblock(const struct mn_options *options, const struct seal *seal,
			   struct region *region)
{
	struct superblock *sb = &region->superblock;

	*sb = (struct superblock){
		.cluster_id = XXH3_64bits(options->cluster, strlen(options->cluster)),
		.hash_seed = cluster_hash_seed(options->cluster, seal),
		.layout_version = LAYOUT_VERSION,
		.mn_id = options->id,
	};
	if (geometry_compute(options->size_bytes, options->expected_keys, &sb->geometry)) {
		log_line(region->logger, LOG_LEVEL_ERROR,
			 "--size %" PRIu64 " has no room for --expected-keys %" PRIu64,
			 options->size_bytes, options->expected_keys);
		return -EINVAL;
	}
	do
		if (random_u64(&sb->incarnation) || random_u64(&sb->name_key)) {
			log_line(region->logger, LOG_LEVEL_ERROR, "getrandom: no random numbers");
			return -EIO;
		}
	while (sb->incarnation == 0);
	return 0;
}

/* Takes the file in `place`, and maps it. quiet: a failure is not the end yet. */
static int open_in(const struct mn_options *options, const struct pages_place *place,
		   const char *name, int node, bool quiet, struct region *region)
{
	bool replaced;
	uint64_t old;
	int rc;

	if (snprintf(region->path, sizeof region->path, "%s/%s", place->dir, name) >=
	    (int)sizeof region->path) {
		log_line(region->logger, LOG_LEVEL_ERROR, "region file: the path in %s is too long",
			 place->dir);
		return -ENAMETOOLONG;
	}
	region->page_bytes = place->page_bytes;
	region->hugetlb = place->hugetlb;
	region->mapped_bytes = round_up(options->size_bytes, place->page_bytes);
	rc = lock_new_file(region->path, region->logger, &region->fd, &replaced, &old);
	if (rc) {
		region->fd = -1;
		return rc;
	}
	region->replaced = old ? old : region->replaced;
	if (replaced)
		log_line(region->logger, LOG_LEVEL_NOTICE,
			 "region file %s was there (incarnation %016" PRIx64
			 "): formatted anew as incarnation %016" PRIx64 ", what it held is gone",
			 region->path, old, region->superblock.incarnation);
	if (options->ephemeral)
		region->unlinked = unlink(region->path) == 0;
	rc = map(region, node, quiet);
	if (rc)
		region_close(region, true);
	return rc;
}

/* --hugepages auto without --region-path: 2M pages if they can really be had, else tmpfs. */
static int open_auto(const struct mn_options *options, const struct pages_host *host,
		     const char *name, int node, struct region *region)
{
	char reason[PAGES_REASON_MAX];
	struct pages_place place;

	if (pages_find_hugetlb(host, UINT64_C(1) << 21, options->size_bytes, name, &place,
			       reason) == 0) {
		int rc = open_in(options, &place, name, node, true, region);

		if (rc != -ENOSPC && rc != -ENOMEM)
			return rc;
		snprintf(reason, sizeof reason, "the kernel refused the pages: %s", strerror(-rc));
	}
	log_line(region->logger, LOG_LEVEL_NOTICE, "region on tmpfs, ordinary pages: %s", reason);
	if (pages_find_tmpfs(host, options->size_bytes, name, &place, reason) == 0)
		return open_in(options, &place, name, node, false, region);
	log_line(region->logger, LOG_LEVEL_ERROR, "no room for the region: %s", reason);
	return -ENOSPC;
}

static int open_file(const struct mn_options *options, const struct pages_host *host,
		     const char *name, int node, struct region *region)
{
	static const uint64_t bytes[] = {
		[PAGES_2M] = UINT64_C(1) << 21, [PAGES_1G] = UINT64_C(1) << 30};
	char reason[PAGES_REASON_MAX];
	struct pages_place place;
	int rc;

	if (options->region_path)
		rc = pages_find_in(host, options->region_path, options->pages, options->size_bytes,
				   name, &place, reason);
	else if (options->pages == PAGES_AUTO)
		return open_auto(options, host, name, node, region);
	else if (options->pages == PAGES_NONE)
		rc = pages_find_tmpfs(host, options->size_bytes, name, &place, reason);
	else
		rc = pages_find_hugetlb(host, bytes[options->pages], options->size_bytes, name,
					&place, reason);
	if (rc) {
		log_line(region->logger, LOG_LEVEL_ERROR, "no place for the region: %s", reason);
		return rc;
	}
	return open_in(options, &place, name, node, false, region);
}

int region_open(const struct mn_options *options, const struct pages_host *host,
		const struct seal *seal, int node, const struct logger *logger,
		struct region *region)
{
	char name[NAME_MAX + 1];
	int rc;

	*region = (struct region){.fd = -1, .logger = logger, .region_bytes = options->size_bytes};
	region_file_name(options->cluster, options->id, name);
	rc = make_superblock(options, seal, region);
	if (rc)
		return rc;
	rc = open_file(options, host, name, node, region);
	if (rc)
		return rc;
	region_format(region->bytes, &region->superblock, FIRST_EPOCH, clock_real_ms());
	return 0;
}

void region_close(struct region *region, bool remove)
{
	if (region->bytes)
		munmap(region->bytes, region->mapped_bytes);
	region->bytes = NULL;
	if (region->fd >= 0 && region->path[0]) {
		if (remove && !region->unlinked)
			unlink(region->path); /* still locked: nobody else's yet */
		close(region->fd);
	}
	region->fd = -1;
	region->unlinked = false;
	region->path[0] = '\0';
}
