/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/bucket.h"

#include "layout/place.h"

#include <assert.h>

_Static_assert(SEGMENT_BYTES == 4096 && BUCKET_BYTES == 256 && BUCKET_SLOTS == 28,
	       "geometry of a segment");
_Static_assert((1 + LINE_SLOTS) * 8 == LINE_BYTES, "guard and slots fill a line with CAS words");
_Static_assert(SEGMENT_BUCKETS == 1 << PLACE_BUCKET_BITS, "every bucket number names a bucket");

bool bucket_serves(const uint8_t *bucket, uint64_t h)
{
	for (unsigned line = 0; line < BUCKET_LINES; line++)
		if (!guard_serves(bucket_guard(bucket, line), h))
			return false;
	return true;
}

unsigned bucket_find(const uint8_t *bucket, uint64_t h, uint8_t found[BUCKET_SLOTS])
{
	uint32_t fingerprint = place_fingerprint(h);
	unsigned count = 0;

	for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
		uint64_t word = bucket_slot(bucket, i);

		if (slot_fingerprint(word) == fingerprint && !slot_is_free(word))
			found[count++] = (uint8_t)i;
	}
	return count;
}

int bucket_find_free(const uint8_t *bucket)
{
	for (unsigned i = 0; i < BUCKET_SLOTS; i++)
		if (slot_is_free(bucket_slot(bucket, i)))
			return (int)i;
	return -1;
}

void segment_format(uint8_t *segment, unsigned depth, uint32_t suffix)
{
	uint64_t guard = guard_pack((struct guard){ .depth = (uint8_t)depth, .suffix = suffix });

	assert(depth >= PLACE_DEPTH_MIN && depth <= PLACE_DEPTH_MAX);
	assert(suffix == place_suffix(suffix, depth));
	memset(segment, 0, SEGMENT_BYTES);
	for (unsigned at = 0; at < SEGMENT_BYTES; at += LINE_BYTES)
		store_le64(segment + at, guard);
}
