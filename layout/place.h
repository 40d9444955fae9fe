/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From key to place. XXH3_128(key, seed): the high half picks the memory node (record.h), the low
 * half `h` everything else, from disjoint bit ranges:
 *
 *   bits  0..29  directory index, the lowest `depth` of them
 *   bits 30..33  bucket in the segment
 *   bits 34..46  fingerprint
 */
#ifndef FARKV_LAYOUT_PLACE_H
#define FARKV_LAYOUT_PLACE_H

#include <stddef.h>
#include <stdint.h>

enum {
	PLACE_DEPTH_MIN = 1, /* see guard.h */
	PLACE_DEPTH_MAX = 30,
	PLACE_BUCKET_BITS = 4,
	PLACE_FINGERPRINT_BITS = 13,
};

struct key_hash {
	uint64_t high;
	uint64_t low;
};

struct key_hash key_hash(const void *key, size_t key_len, uint64_t seed);

static inline uint32_t place_suffix(uint64_t h, unsigned depth)
{
	return (uint32_t)(h & ((UINT64_C(1) << depth) - 1));
}

static inline uint32_t place_bucket(uint64_t h)
{
	return (uint32_t)(h >> PLACE_DEPTH_MAX) & ((1u << PLACE_BUCKET_BITS) - 1);
}

static inline uint32_t place_fingerprint(uint64_t h)
{
	return (uint32_t)(h >> (PLACE_DEPTH_MAX + PLACE_BUCKET_BITS)) &
	       ((1u << PLACE_FINGERPRINT_BITS) - 1);
}

#endif
