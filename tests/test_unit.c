/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/unit.h"

#include "layout/bytes.h"
#include "layout/region.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

Test(unit, a_header_comes_back_as_it_was_encoded)
{
	uint64_t seed = seed_take("header");

	for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++) {
		struct unit_header in = { .owner = (uint16_t)seed_next(&seed),
					  .size_class = (uint8_t)c,
					  .run = unit_run(c),
					  .session = seed_next(&seed) };
		struct unit_header out;
		uint8_t line[64];

		unit_header_encode(&in, line);
		cr_assert(unit_header_decode(line, &out));
		cr_assert(out.owner == in.owner && out.size_class == c && out.run == in.run &&
			  out.session == in.session);
	}
}

Test(unit, malformed_headers_are_refused)
{
	struct unit_header header = { .owner = 1, .size_class = 53, .run = unit_run(53) };
	uint8_t line[64] = { 0 };

	cr_assert_not(unit_header_decode(line, &header), "zeros");
	unit_header_encode(&(struct unit_header){ 1, 53, unit_run(53), 1 }, line);
	for (unsigned bit = 0; bit < 32; bit++) {
		line[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_not(unit_header_decode(line, &header), "magic");
		line[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (uint32_t run = 0; run < 64; run++) {
		store_le32(line + 8, run);
		cr_assert_eq(unit_header_decode(line, &header), run == unit_run(53));
	}
	for (unsigned c = 0; c < 256; c++) {
		line[6] = (uint8_t)c;
		for (uint32_t run = 0; run < 3; run++) {
			store_le32(line + 8, run);
			cr_assert_eq(unit_header_decode(line, &header), run && run == unit_run(c));
		}
	}
}

Test(unit, blocks_fill_a_unit_and_do_not_leave_it)
{
	for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++) {
		uint64_t room = (uint64_t)unit_run(c) * UNIT_BYTES;
		uint64_t end = unit_block_at(0, c, unit_blocks(c) - 1) + size_class_bytes(c);

		cr_assert_geq(unit_blocks(c), 1, "class %u", c);
		cr_assert_leq(end, room, "class %u", c);
		cr_assert_leq(unit_blocks(c), UNIT_BITMAP_WORDS * 64);
		if (unit_run(c) > 1)
			cr_assert_gt(end, room - UNIT_BYTES, "class %u: a unit too many", c);
		else
			cr_assert_gt(end + size_class_bytes(c), room, "class %u: a block more", c);
	}
}

Test(unit, what_is_no_class_has_no_blocks)
{
	static const unsigned none[] = { 0, SIZE_CLASS_COUNT, 255, UINT32_MAX };
	struct unit_bit bit;

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		cr_assert_eq(unit_run(none[i]), 0);
		cr_assert_eq(unit_blocks(none[i]), 0, "it divided by zero");
		cr_assert_not(unit_bit_of_block(UNIT_BYTES + UNIT_BLOCKS_AT, none[i], &bit));
	}
}

static void check_bits(uint64_t unit, unsigned c)
{
	uint64_t bitmap[UNIT_BITMAP_WORDS] = { 0 };

	for (uint32_t i = 0; i < unit_blocks(c); i++) {
		uint64_t at = unit_block_at(unit, c, i), word;
		struct unit_bit bit;

		cr_assert_eq(at % LINE_BYTES, 0);
		cr_assert(unit_bit_of_block(at, c, &bit), "class %u, block %u", c, i);
		cr_assert(bit.unit_offset == unit && bit.index == i);
		word = bit.word_offset - unit;
		cr_assert(word % 8 == 0 && word >= UNIT_BITMAP_AT &&
			  word < UNIT_BITMAP_AT + UNIT_BITMAP_WORDS * 8);
		cr_assert_eq(__builtin_popcountll(bit.mask), 1);
		cr_assert_eq(bitmap[(word - UNIT_BITMAP_AT) / 8] & bit.mask, 0, "twice");
		bitmap[(word - UNIT_BITMAP_AT) / 8] |= bit.mask;
		for (uint64_t off = 1; off < size_class_bytes(c) && off < UNIT_BYTES; off *= 2)
			cr_assert_not(unit_bit_of_block(at + off, c, &bit), "within");
		cr_assert(i == 0 || unit_bit_of_block(at - size_class_bytes(c), c, &bit));
	}
	/* In a run of units only its header tells where the one block begins. */
	cr_assert(unit_run(c) > 1 || !unit_bit_of_block(unit_block_at(unit, c, unit_blocks(c)), c,
							&(struct unit_bit){ 0 }));
}

Test(unit, B30_every_block_has_a_free_bit_of_its_own_wherever_the_unit_lies)
{
	uint64_t units[] = { UNIT_BYTES, (UINT64_C(4) << 30) - UNIT_BYTES, UINT64_C(4) << 30,
			     REGION_BYTES_MAX - 32 * UNIT_BYTES };

	for (size_t u = 0; u < sizeof units / sizeof *units; u++)
		for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++)
			check_bits(units[u], c);
}

Test(unit, no_block_begins_in_a_header)
{
	struct unit_bit bit;

	for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++)
		for (uint64_t at = 0; at < UNIT_BLOCKS_AT; at++)
			cr_assert_not(unit_bit_of_block(UNIT_BYTES + at, c, &bit));
}

Test(unit, asserts_the_run_of_its_class, .signal = SIGABRT)
{
	uint8_t line[64];

	unit_header_encode(&(struct unit_header){ .size_class = 53, .run = 1 }, line);
}
