/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/guard.h"

#include "layout/place.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

static void assert_same(struct guard a, struct guard b)
{
	cr_assert_eq(a.owner, b.owner);
	cr_assert_eq(a.nonce, b.nonce);
	cr_assert_eq(a.depth, b.depth);
	cr_assert_eq(a.suffix, b.suffix);
}

Test(guard, comes_back_as_it_was_packed)
{
	uint64_t seed = seed_take("guard");
	struct guard edges[] = { { 0 },
				 { 65535, 4095, 63, (1u << 30) - 1 },
				 { .owner = 65535 },
				 { .nonce = 4095 },
				 { .depth = 63 },
				 { .suffix = (1u << 30) - 1 } };

	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
		assert_same(guard_unpack(guard_pack(edges[i])), edges[i]);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t word = seed_next(&seed);

		cr_assert_eq(guard_pack(guard_unpack(word)), word);
	}
}

Test(guard, has_its_fields_where_the_format_says)
{
	cr_assert_eq(guard_pack((struct guard){ .owner = 0x8001 }), UINT64_C(0x8001) << 48);
	cr_assert_eq(guard_pack((struct guard){ .nonce = 0x801 }), UINT64_C(0x801) << 36);
	cr_assert_eq(guard_pack((struct guard){ .depth = 0x21 }), UINT64_C(0x21) << 30);
	cr_assert_eq(guard_pack((struct guard){ .suffix = 0x20000001 }), 0x20000001);
}

Test(guard, serves_its_suffix_and_no_other_at_every_depth)
{
	uint64_t seed = seed_take("serves");

	for (unsigned depth = 1; depth <= PLACE_DEPTH_MAX; depth++) {
		uint64_t h = seed_next(&seed);
		struct guard guard = { .depth = (uint8_t)depth, .suffix = place_suffix(h, depth) };

		for (unsigned bit = 0; bit < 64; bit++)
			cr_assert_eq(guard_serves(guard_pack(guard), h ^ UINT64_C(1) << bit),
				     bit >= depth, "depth %u, bit %u", depth, bit);
		cr_assert(guard_serves(guard_pack(guard), h));
		guard.owner = 77;
		guard.nonce = 5;
		cr_assert(guard_serves(guard_pack(guard), h), "locked or not");
	}
}

Test(guard, serves_nothing_at_a_depth_no_directory_has)
{
	for (unsigned depth = PLACE_DEPTH_MAX + 1; depth < 64; depth++) {
		uint64_t word = guard_pack((struct guard){ .depth = (uint8_t)depth });

		cr_assert_not(guard_serves(word, 0), "depth %u", depth);
	}
}

Test(guard, memory_of_zeros_serves_no_key)
{
	uint64_t seed = seed_take("zeros");

	cr_assert_not(guard_serves(0, 0));
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_not(guard_serves(0, seed_next(&seed)));
}

Test(guard, serves_nothing_with_suffix_bits_above_its_depth)
{
	for (unsigned depth = 1; depth < PLACE_DEPTH_MAX; depth++) {
		struct guard guard = { .depth = (uint8_t)depth, .suffix = 1u << depth };

		cr_assert_not(guard_serves(guard_pack(guard), 0));
		cr_assert_not(guard_serves(guard_pack(guard), guard.suffix));
	}
}

Test(guard, asserts_a_nonce_of_twelve_bits, .signal = SIGABRT)
{
	guard_pack((struct guard){ .nonce = 4096 });
}

Test(guard, asserts_a_suffix_of_thirty_bits, .signal = SIGABRT)
{
	guard_pack((struct guard){ .suffix = 1u << 30 });
}
