/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first word of each line of a bucket: owner:16 | nonce:12 | depth:6 | suffix:30, high to low.
 * owner 0 = free. depth and suffix say which part of the hash space the line serves, so that a
 * client with a stale directory sees at once that a line is not the one it wanted. Only line 0's
 * guard is ever locked. No guard has depth 0: memory that is zero serves no key, so that a READ
 * which brought nothing cannot say "absent".
 */
#ifndef FARKV_LAYOUT_GUARD_H
#define FARKV_LAYOUT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum { GUARD_NONCE_BITS = 12, GUARD_DEPTH_BITS = 6, GUARD_SUFFIX_BITS = 30 };

struct guard {
	uint16_t owner; /* client id, 0 = free */
	uint16_t nonce; /* 12 bits; 0 where free */
	uint8_t depth;  /* 6 bits, 1..30 */
	uint32_t suffix; /* 30 bits, 0 above the lowest `depth` */
};

uint64_t guard_pack(struct guard guard);
struct guard guard_unpack(uint64_t word);

/* Whether the line with this guard serves hash h, locked or not. */
static inline bool guard_serves(uint64_t word, uint64_t h)
{
	unsigned depth = (word >> GUARD_SUFFIX_BITS) & ((1u << GUARD_DEPTH_BITS) - 1);

	if (depth == 0 || depth > GUARD_SUFFIX_BITS)
		return false;
	return (word & ((UINT64_C(1) << GUARD_SUFFIX_BITS) - 1)) ==
	       (h & ((UINT64_C(1) << depth) - 1));
}

#endif
