/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/place.h"

#include <xxhash.h>

_Static_assert(PLACE_DEPTH_MAX + PLACE_BUCKET_BITS + PLACE_FINGERPRINT_BITS <= 64,
	       "the bit ranges of a key's hash are disjoint");
_Static_assert(PLACE_DEPTH_MAX < 32 && PLACE_BUCKET_BITS < 32 && PLACE_FINGERPRINT_BITS <= 16,
	       "each fits the type it is handed on in");

struct key_hash key_hash(const void *key, size_t key_len, uint64_t seed)
{
	XXH128_hash_t h = XXH3_128bits_withSeed(key, key_len, seed);

	return (struct key_hash){ .high = h.high64, .low = h.low64 };
}
