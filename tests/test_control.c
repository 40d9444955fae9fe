/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/control.h"

#include "layout/region.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

enum { NAMES = 1 << 20 };

static const uint64_t name_mask = (UINT64_C(1) << 62) - 1;

Test(control, a_name_is_session_and_sequence)
{
	uint64_t last = (UINT64_C(1) << 34) - 1;

	cr_assert_eq(name_pack(0, 0), 0);
	cr_assert_eq(name_pack(1, 0), UINT64_C(1) << 34);
	cr_assert_eq(name_pack((1u << 28) - 1, last), name_mask);
	cr_assert_eq(name_slot_tag(name_pack(9, 0x3ffffff77)), 0x77);
	cr_assert_eq(name_forward_tag(name_pack(9, 0x3fffabcde)), 0xabcde);
}

Test(control, a_sequence_that_ran_out_is_never_wrapped, .signal = SIGABRT)
{
	name_pack(1, UINT64_C(1) << 34);
}

Test(control, a_session_that_does_not_fit_is_never_cut, .signal = SIGABRT)
{
	name_pack(1u << 28, 1);
}

static void assert_permuted(uint64_t name, uint64_t key)
{
	uint64_t word = control_pack_live(name, key);

	cr_assert_eq(control_kind(word), CONTROL_LIVE);
	cr_assert_eq(control_live_name(word, key), name, "name %#llx", (unsigned long long)name);
}

Test(control, the_permutation_of_names_is_a_bijection)
{
	uint64_t seed = seed_take("permutation");
	uint64_t keys[] = { 0, 1, UINT64_MAX, seed_next(&seed), seed_next(&seed) };

	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
		assert_permuted(0, keys[k]);
		assert_permuted(name_mask, keys[k]);
		for (unsigned bit = 0; bit < 62; bit++)
			assert_permuted(UINT64_C(1) << bit, keys[k]);
		for (unsigned i = 0; i < 100000; i++) {
			uint64_t x = seed_next(&seed) & name_mask;
			uint64_t word = (uint64_t)CONTROL_LIVE << 62 | x;

			assert_permuted(x, keys[k]);
			cr_assert_eq(control_pack_live(control_live_name(word, keys[k]), keys[k]),
				     word, "every LIVE word has a name");
		}
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

Test(control, a_million_names_in_a_row_have_a_million_words)
{
	uint64_t seed = seed_take("words"), key = seed_next(&seed);
	uint64_t *words = malloc(NAMES * sizeof *words);

	for (uint32_t i = 0; i < NAMES; i++)
		words[i] = control_pack_live(name_pack(7, i), key);
	qsort(words, NAMES, sizeof *words, compare);
	for (uint32_t i = 1; i < NAMES; i++)
		cr_assert_neq(words[i], words[i - 1]);
	free(words);
}

/* Mean distance, in bits of 62, between words whose name or key differs in one bit. */
static double distance(uint64_t *seed, unsigned bit, bool of_key)
{
	uint64_t flip = UINT64_C(1) << bit, sum = 0;
	unsigned rounds = 2000;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t name = seed_next(seed) & name_mask, key = seed_next(seed);
		uint64_t a = control_pack_live(name, key);
		uint64_t b = of_key ? control_pack_live(name, key ^ flip) :
				      control_pack_live(name ^ flip, key);

		sum += (uint64_t)__builtin_popcountll(a ^ b);
	}
	return (double)sum / rounds;
}

Test(control, every_bit_of_name_and_key_stirs_half_the_word)
{
	uint64_t seed = seed_take("stir");

	for (unsigned bit = 0; bit < 64; bit++) {
		double by_name = distance(&seed, bit % 62, false);
		double by_key = distance(&seed, bit, true);

		cr_expect(by_name > 28 && by_name < 34, "name bit %u: %.1f", bit % 62, by_name);
		cr_expect(by_key > 28 && by_key < 34, "key bit %u: %.1f", bit, by_key);
	}
}

Test(control, forward_comes_back_as_it_was_packed)
{
	uint64_t seed = seed_take("forward");

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t x = i == 0 ? 0 : i == 1 ? name_mask : seed_next(&seed) & name_mask;
		uint64_t word = (uint64_t)CONTROL_FORWARD << 62 | x;
		struct forward forward = control_forward(word);

		cr_assert_eq(control_pack_forward(forward), word);
		cr_assert_eq(control_kind(word), CONTROL_FORWARD);
		cr_assert(forward.offset % 64 == 0 && forward.offset < REGION_BYTES_MAX);
		cr_assert_lt(forward.tag, 1u << 20);
	}
}

Test(control, B30_forward_reaches_the_last_line_of_the_largest_region)
{
	struct forward in = { .offset = REGION_BYTES_MAX - 64, .size_class = 53, .tag = 0xfffff };
	struct forward out = control_forward(control_pack_forward(in));

	cr_assert_eq(out.offset, in.offset);
	cr_assert_eq(out.size_class, in.size_class);
	cr_assert_eq(out.tag, in.tag);
}

Test(control, dead_tells_by_whom)
{
	uint64_t by = name_pack((1u << 28) - 1, (UINT64_C(1) << 34) - 2);

	cr_assert_eq(control_kind(control_pack_dead(by)), CONTROL_DEAD);
	cr_assert_eq(control_pack_dead(by) & name_mask, by);
	cr_assert_neq(control_pack_dead(by), control_pack_dead(by - 1));
}

Test(control, zeros_are_no_control_word)
{
	cr_assert_eq(control_kind(0), CONTROL_NONE);
	cr_assert_neq(control_kind(control_pack_live(0, 0)), CONTROL_NONE);
}

Test(control, asserts_a_forward_of_whole_lines, .signal = SIGABRT)
{
	control_pack_forward((struct forward){ .offset = 1 });
}

Test(control, asserts_a_forward_tag_of_twenty_bits, .signal = SIGABRT)
{
	control_pack_forward((struct forward){ .tag = 1u << 20 });
}
