/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/guard.h"

#include "layout/bytes.h"
#include "layout/place.h"

#include <assert.h>

enum { DEPTH_SHIFT = GUARD_SUFFIX_BITS, NONCE_SHIFT = 36, OWNER_SHIFT = 48 };

_Static_assert(GUARD_SUFFIX_BITS + GUARD_DEPTH_BITS == NONCE_SHIFT &&
		       NONCE_SHIFT + GUARD_NONCE_BITS == OWNER_SHIFT && OWNER_SHIFT + 16 == 64,
	       "a guard fills 64 bits");
_Static_assert((int)PLACE_DEPTH_MAX == (int)GUARD_SUFFIX_BITS &&
		       PLACE_DEPTH_MAX < 1 << GUARD_DEPTH_BITS,
	       "every depth and suffix of a directory fits into a guard");

uint64_t guard_pack(struct guard guard)
{
	assert(guard.nonce <= bits_mask(GUARD_NONCE_BITS));
	assert(guard.depth <= bits_mask(GUARD_DEPTH_BITS));
	assert(guard.suffix <= bits_mask(GUARD_SUFFIX_BITS));
	return (uint64_t)guard.owner << OWNER_SHIFT | (uint64_t)guard.nonce << NONCE_SHIFT |
	       (uint64_t)guard.depth << DEPTH_SHIFT | guard.suffix;
}

struct guard guard_unpack(uint64_t word)
{
	return (struct guard){
		.owner = (uint16_t)(word >> OWNER_SHIFT),
		.nonce = (uint16_t)(word >> NONCE_SHIFT & bits_mask(GUARD_NONCE_BITS)),
		.depth = (uint8_t)(word >> DEPTH_SHIFT & bits_mask(GUARD_DEPTH_BITS)),
		.suffix = (uint32_t)(word & bits_mask(GUARD_SUFFIX_BITS)),
	};
}
