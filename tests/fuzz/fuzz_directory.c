/* SPDX-License-Identifier: Apache-2.0 */
/* A directory's header line (64 bytes), its region's maximal depth (1), and entries (8 each). */
#include "tests/fuzz/require.h"

#include "layout/bucket.h"
#include "layout/bytes.h"
#include "layout/directory.h"
#include "layout/place.h"
#include "layout/region.h"

static void check_header(const uint8_t *line, uint32_t max_depth)
{
	struct directory_header header, second;
	uint8_t again[64];

	if (!directory_header_decode(line, max_depth, &header))
		return;
	REQUIRE(header.depth >= PLACE_DEPTH_MIN && header.depth <= max_depth);
	directory_header_encode(header, again);
	REQUIRE(memcmp(again, line, 16) == 0);
	REQUIRE(directory_header_decode(again, max_depth, &second));
	REQUIRE(second.depth == header.depth);
}

static void check_entry(uint64_t word)
{
	struct directory_entry entry;

	if (!directory_entry_unpack(word, &entry))
		return;
	REQUIRE(directory_entry_pack(entry) == word);
	REQUIRE(entry.depth >= PLACE_DEPTH_MIN && entry.depth <= PLACE_DEPTH_MAX);
	REQUIRE(entry.segment > 0 && entry.segment <= UINT64_MAX / SEGMENT_BYTES);
	REQUIRE((entry.segment + 1) * SEGMENT_BYTES <= REGION_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t image[65 + 8];

	fuzz_take(bytes, length, image, sizeof image);
	check_header(image, image[64] % (PLACE_DEPTH_MAX + 1));
	for (size_t at = 65; at + 8 <= length; at += 8) {
		check_entry(load_le64(bytes + at));
		/* Most words are no entry: make it valid, and its segment one of a region. */
		check_entry(load_le64(bytes + at) | UINT64_C(1) << 63);
		check_entry((load_le64(bytes + at) | UINT64_C(1) << 63) &
			    ~(bits_mask(29) << 28));
	}
	return 0;
}
