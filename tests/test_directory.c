/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/directory.h"

#include "layout/bucket.h"
#include "layout/bytes.h"
#include "layout/place.h"
#include "layout/region.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

static uint64_t word_of(uint64_t valid, uint64_t depth, uint64_t segment)
{
	return valid << 63 | depth << 57 | segment;
}

Test(directory, an_entry_comes_back_as_it_was_packed)
{
	uint64_t seed = seed_take("entry");

	for (unsigned i = 0; i < 100000; i++) {
		struct directory_entry in = {
			.segment = 1 + seed_next(&seed) % (DIRECTORY_SEGMENTS_MAX - 1),
			.depth = (uint8_t)(1 + seed_next(&seed) % PLACE_DEPTH_MAX),
		};
		struct directory_entry out;

		if (i == 0)
			in = (struct directory_entry){ 1, 1 };
		if (i == 1)
			in = (struct directory_entry){ DIRECTORY_SEGMENTS_MAX - 1,
						       PLACE_DEPTH_MAX };
		cr_assert_eq(directory_entry_pack(in), word_of(1, in.depth, in.segment));
		cr_assert(directory_entry_unpack(directory_entry_pack(in), &out));
		cr_assert(out.segment == in.segment && out.depth == in.depth);
	}
}

Test(directory, senseless_entries_are_refused)
{
	struct directory_entry entry;

	cr_assert_not(directory_entry_unpack(0, &entry));
	cr_assert_not(directory_entry_unpack(UINT64_MAX, &entry));
	cr_assert_not(directory_entry_unpack(word_of(0, 5, 100), &entry), "not valid");
	cr_assert_not(directory_entry_unpack(word_of(1, 5, 0), &entry), "the superblock");
	cr_assert_not(directory_entry_unpack(word_of(1, 0, 100), &entry), "depth 0");
	for (uint64_t depth = PLACE_DEPTH_MAX + 1; depth < 64; depth++)
		cr_assert_not(directory_entry_unpack(word_of(1, depth, 100), &entry));
	cr_assert_not(directory_entry_unpack(word_of(1, 5, DIRECTORY_SEGMENTS_MAX), &entry));
}

/* It did: number 2^52 + n times 4096 is the offset of segment n modulo 2^64. */
Test(directory, a_segment_number_whose_offset_would_wrap_is_refused)
{
	struct directory_entry entry;

	for (unsigned bit = 28; bit < 57; bit++) {
		uint64_t word = word_of(1, 5, UINT64_C(1) << bit | 100);

		cr_assert_not(directory_entry_unpack(word, &entry), "bit %u", bit);
	}
	cr_assert(directory_entry_unpack(word_of(1, 5, DIRECTORY_SEGMENTS_MAX - 1), &entry));
	cr_assert_eq(entry.segment * SEGMENT_BYTES, REGION_BYTES_MAX - SEGMENT_BYTES);
}

Test(directory, a_header_comes_back_and_is_bounded_by_the_depth_of_its_region)
{
	struct directory_header header;
	uint8_t line[64];

	for (uint32_t max = 1; max <= PLACE_DEPTH_MAX; max++)
		for (uint32_t depth = 0; depth <= PLACE_DEPTH_MAX + 1; depth++) {
			bool sound = depth >= 1 && depth <= max;

			directory_header_encode((struct directory_header){ depth }, line);
			cr_assert_eq(directory_header_decode(line, max, &header), sound);
			cr_assert(!sound || header.depth == depth);
		}
}

Test(directory, lines_that_are_no_header_are_refused)
{
	struct directory_header header;
	uint8_t line[64] = { 0 };

	cr_assert_not(directory_header_decode(line, 30, &header));
	directory_header_encode((struct directory_header){ 5 }, line);
	for (unsigned bit = 0; bit < 64; bit++) {
		line[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_not(directory_header_decode(line, 30, &header));
		line[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	store_le32(line + 12, 1);
	cr_assert_not(directory_header_decode(line, 30, &header), "a depth of 2^32 + 5");
}

Test(directory, asserts_a_segment, .signal = SIGABRT)
{
	directory_entry_pack((struct directory_entry){ .depth = 1 });
}
