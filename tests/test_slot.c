/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/slot.h"

#include "layout/region.h"
#include "layout/size_class.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

static void assert_round_trip(struct slot in)
{
	uint64_t word = slot_pack(in);
	struct slot out = slot_unpack(word);

	cr_assert_eq(out.fingerprint, in.fingerprint);
	cr_assert_eq(out.frozen, in.frozen);
	cr_assert_eq(out.tag, in.tag);
	cr_assert_eq(out.size_class, in.size_class);
	cr_assert_eq(out.offset, in.offset);
	cr_assert_eq(slot_fingerprint(word), in.fingerprint);
}

Test(slot, comes_back_as_it_was_packed)
{
	uint64_t seed = seed_take("slot");

	assert_round_trip((struct slot){ 0 });
	assert_round_trip((struct slot){ .fingerprint = 8191 });
	assert_round_trip((struct slot){ .frozen = true });
	assert_round_trip((struct slot){ .tag = 255 });
	assert_round_trip((struct slot){ .size_class = 255 });
	assert_round_trip((struct slot){ 8191, true, 255, 255, REGION_BYTES_MAX - 64 });
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t word = seed_next(&seed);

		assert_round_trip(slot_unpack(word));
		cr_assert_eq(slot_pack(slot_unpack(word)), word);
	}
}

Test(slot, B30_offsets_around_and_above_4_gib_are_whole)
{
	uint64_t four = UINT64_C(4) << 30;
	uint64_t offsets[] = { four - 64, four, four + 64, 5 * (four / 4), REGION_BYTES_MAX - 64 };

	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
		assert_round_trip((struct slot){ .size_class = 1, .offset = offsets[i] });
}

Test(slot, freezing_changes_one_bit)
{
	struct slot slot = { .fingerprint = 4711, .tag = 3, .size_class = 9, .offset = 64 << 20 };
	uint64_t thawed = slot_pack(slot);

	slot.frozen = true;
	cr_assert_eq(slot_pack(slot) ^ thawed, UINT64_C(1) << 50);
}

Test(slot, empty_and_moved_are_free_and_no_block_is)
{
	cr_assert(slot_is_free(SLOT_EMPTY));
	cr_assert(slot_is_free(SLOT_MOVED));
	cr_assert_neq(SLOT_EMPTY, SLOT_MOVED);
	cr_assert_eq(size_class_bytes(slot_unpack(SLOT_MOVED).size_class), 0);
	cr_assert_eq(size_class_bytes(slot_unpack(SLOT_EMPTY).size_class), 0);
	for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++)
		cr_assert_not(slot_is_free(slot_pack((struct slot){ .size_class = (uint8_t)c })));
}

Test(slot, asserts_an_offset_of_whole_lines, .signal = SIGABRT)
{
	slot_pack((struct slot){ .offset = 32 });
}

Test(slot, asserts_an_offset_within_the_largest_region, .signal = SIGABRT)
{
	slot_pack((struct slot){ .offset = REGION_BYTES_MAX });
}
