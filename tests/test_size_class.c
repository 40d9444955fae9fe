/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/size_class.h"

#include "layout/block.h"

#include <criterion/criterion.h>

static const unsigned last = SIZE_CLASS_COUNT - 1;

Test(size_class, edges_and_their_neighbours_fall_into_the_right_class)
{
	for (unsigned c = 1; c <= last; c++) {
		uint32_t bytes = size_class_bytes(c);

		cr_assert_eq(size_class_of(bytes - 1), c, "class %u - 1", c);
		cr_assert_eq(size_class_of(bytes), c, "class %u", c);
		cr_assert_eq(size_class_of(bytes + 1), c == last ? 0 : c + 1, "class %u + 1", c);
	}
}

Test(size_class, every_size_gets_the_smallest_class_that_holds_it)
{
	for (uint32_t bytes = 1; bytes <= size_class_bytes(last); bytes++) {
		unsigned c = size_class_of(bytes);

		cr_assert(c >= 1 && size_class_bytes(c) >= bytes, "%u", bytes);
		cr_assert(c == 1 || size_class_bytes(c - 1) < bytes, "%u", bytes);
	}
}

Test(size_class, classes_are_lines_by_64_to_512_then_four_per_doubling)
{
	for (unsigned c = 1; c <= last; c++)
		cr_assert_eq(size_class_bytes(c) % 64, 0);
	for (unsigned c = 1; c <= 8; c++)
		cr_assert_eq(size_class_bytes(c), 64 * c);
	for (unsigned c = 9; c <= last; c++) {
		uint32_t step = size_class_bytes(c) - size_class_bytes(c - 1);

		cr_assert_eq(step, 128u << (c - 9) / 4, "class %u", c);
	}
	for (unsigned c = 12; c <= last; c += 4)
		cr_assert_eq(size_class_bytes(c), 2 * size_class_bytes(c - 4), "class %u", c);
	cr_assert_eq(size_class_bytes(last - 1), 1u << 20);
}

Test(size_class, the_largest_value_with_the_longest_key_has_a_class)
{
	size_t most = block_bytes(BLOCK_KEY_MAX, BLOCK_VALUE_MAX);

	cr_assert_eq(size_class_of(most), last);
	cr_assert_eq(size_class_of(block_bytes(1, 0)), 1);
}

Test(size_class, what_is_no_class_has_no_bytes)
{
	cr_assert_eq(size_class_bytes(0), 0);
	for (unsigned c = SIZE_CLASS_COUNT; c <= 256; c++)
		cr_assert_eq(size_class_bytes(c), 0);
	cr_assert_eq(size_class_bytes(UINT32_MAX), 0);
	cr_assert_eq(size_class_of(0), 1);
	cr_assert_eq(size_class_of(SIZE_MAX), 0);
	cr_assert_eq(size_class_of((size_t)1 << 32), 0);
}
