/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region: superblock, counters, client table, directory, split record, heap; and where each
 * begins. All parts begin at a multiple of 4 KiB, the heap at a multiple of 64 KiB.
 */
#ifndef FARKV_LAYOUT_REGION_H
#define FARKV_LAYOUT_REGION_H

#include "layout/client.h"
#include "layout/counter.h"

#include <stddef.h>
#include <stdint.h>

enum {
	LAYOUT_VERSION = 1,
	SUPERBLOCK_BYTES = 4096,
	REGION_CLIENTS_DEFAULT = 4096,
	SPLIT_RECORD_BYTES = 4096,
	REGION_BYTES_MIN = 8 << 20,
};

#define REGION_BYTES_MAX (UINT64_C(1) << 40) /* 34 bits of 64-byte units */

struct geometry {
	uint64_t region_bytes;
	uint64_t counters_offset;
	uint64_t client_table_offset;
	uint32_t client_count; /* ids 0..client_count-1 */
	uint32_t max_depth;    /* of the directory */
	uint64_t directory_offset; /* the header line; entries follow at + 64 */
	uint64_t split_offset;
	uint64_t heap_offset;
	uint64_t unit_count;
	uint32_t initial_depth; /* of the directory as formatted */
	uint32_t segment_units; /* units at the heap's start that hold the first segments */
};

struct superblock {
	struct geometry geometry;
	uint64_t cluster_id;
	uint64_t incarnation;
	uint64_t hash_seed; /* secret */
	uint64_t name_key;  /* secret: permutation of names in LIVE words */
	uint64_t features;
	uint32_t layout_version;
	uint32_t mn_id;
	uint64_t canary;    /* region_canary(incarnation) */
};

/*
 * Lays out a region of `region_bytes` for about `expected_keys` keys (0 = from the size).
 * 0, or -EINVAL: the region is too small for that, or out of range.
 */
int geometry_compute(uint64_t region_bytes, uint64_t expected_keys, struct geometry *geometry);

static inline uint64_t geometry_counter(const struct geometry *geometry, unsigned counter)
{
	return geometry->counters_offset + (uint64_t)counter * 64;
}

static inline uint64_t geometry_client(const struct geometry *geometry, unsigned client_id)
{
	return geometry->client_table_offset + (uint64_t)client_id * 64;
}

static inline uint64_t geometry_directory_entry(const struct geometry *geometry, uint32_t index)
{
	return geometry->directory_offset + 64 + (uint64_t)index * 8;
}

uint64_t region_canary(uint64_t incarnation);

/* Encodes with checksum; superblock->canary is computed. */
void superblock_encode(const struct superblock *superblock, uint8_t out[SUPERBLOCK_BYTES]);
/*
 * 0; -ENODATA all zeros (a device that READs nothing: IOMMU); -EBADMSG no superblock, checksum,
 * canary, or a geometry that geometry_compute does not give; -EPROTONOSUPPORT another layout
 * version, given in superblock->layout_version.
 */
int superblock_decode(const uint8_t in[SUPERBLOCK_BYTES], struct superblock *superblock);

/*
 * Formats a region in memory: superblock last. bytes: region_bytes of zeros or of an older region;
 * all parts but the heap's blocks are overwritten. epoch: the first epoch, >= 1.
 */
void region_format(uint8_t *bytes, const struct superblock *superblock, uint64_t epoch,
		   uint64_t time_ms);

#endif
