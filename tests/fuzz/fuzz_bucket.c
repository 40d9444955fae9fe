/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket as READ (256 bytes), and the hash of a key that is looked for (8 bytes). */
#include "tests/fuzz/require.h"

#include "layout/bucket.h"
#include "layout/place.h"

static bool is_free(uint64_t word)
{
	return word == 0 || word == UINT64_C(0xff) << 34;
}

static void check_guards(const uint8_t *bucket, uint64_t h)
{
	bool all = true;

	for (unsigned line = 0; line < BUCKET_LINES; line++) {
		struct guard guard = guard_unpack(bucket_guard(bucket, line));

		all = all && guard.depth >= PLACE_DEPTH_MIN && guard.depth <= PLACE_DEPTH_MAX &&
		      guard.suffix == place_suffix(h, guard.depth);
	}
	REQUIRE(bucket_serves(bucket, h) == all);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t image[BUCKET_BYTES + 8], found[BUCKET_SLOTS];
	unsigned count, expected = 0;
	int free_at = -1;
	uint64_t h;

	fuzz_take(bytes, length, image, sizeof image);
	h = load_le64(image + BUCKET_BYTES);
	check_guards(image, h);
	count = bucket_find(image, h, found);
	for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
		uint64_t word;

		REQUIRE(bucket_slot_at(i) % 8 == 0 && bucket_slot_at(i) < BUCKET_BYTES);
		word = load_le64(image + bucket_slot_at(i));
		if (is_free(word)) {
			free_at = free_at < 0 ? (int)i : free_at;
		} else if (word >> 51 == (h >> 34 & 8191)) {
			REQUIRE(expected < count && found[expected] == i);
			expected++;
		}
	}
	REQUIRE(count == expected && bucket_find_free(image) == free_at);
	return 0;
}
