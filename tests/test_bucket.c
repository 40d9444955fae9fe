/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/bucket.h"

#include "layout/place.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>

static uint8_t bucket[BUCKET_BYTES];

static void put(unsigned i, uint64_t word)
{
	store_le64(bucket + bucket_slot_at(i), word);
}

static void guard_all(unsigned depth, uint32_t suffix)
{
	struct guard guard = { .depth = (uint8_t)depth, .suffix = suffix };

	for (unsigned line = 0; line < BUCKET_LINES; line++)
		store_le64(bucket + line * LINE_BYTES, guard_pack(guard));
}

Test(bucket, guards_and_slots_are_32_aligned_words_that_do_not_overlap)
{
	bool taken[BUCKET_BYTES / 8] = { false };

	for (unsigned line = 0; line < BUCKET_LINES; line++)
		taken[line * LINE_BYTES / 8] = true;
	for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
		uint32_t at = bucket_slot_at(i);

		cr_assert(at % 8 == 0 && at < BUCKET_BYTES);
		cr_assert_not(taken[at / 8], "slot %u", i);
		taken[at / 8] = true;
	}
}

Test(bucket, serves_only_when_all_four_guards_do)
{
	uint64_t h = 0x2a5;

	guard_all(6, 0x25);
	cr_assert(bucket_serves(bucket, h));
	for (unsigned line = 0; line < BUCKET_LINES; line++) {
		uint64_t good = bucket_guard(bucket, line);
		uint64_t other = guard_pack((struct guard){ .depth = 7, .suffix = 0x65 });

		store_le64(bucket + line * LINE_BYTES, other);
		cr_assert_not(bucket_serves(bucket, h), "line %u", line);
		store_le64(bucket + line * LINE_BYTES, 0);
		cr_assert_not(bucket_serves(bucket, h), "line %u of zeros", line);
		store_le64(bucket + line * LINE_BYTES, good);
	}
	store_le64(bucket, guard_pack((struct guard){ 9, 4, 6, 0x25 }));
	cr_assert(bucket_serves(bucket, h), "locked");
}

Test(bucket, finds_just_the_slots_of_a_fingerprint)
{
	uint64_t seed = seed_take("find");

	for (unsigned round = 0; round < 5000; round++) {
		uint64_t h = round % 3 ? seed_next(&seed) : 0; /* 0: EMPTY's and MOVED's */
		uint8_t found[BUCKET_SLOTS], expect[BUCKET_SLOTS];
		unsigned count = 0;

		for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
			uint64_t dice = seed_next(&seed);
			struct slot slot = { .fingerprint = (uint16_t)place_fingerprint(h),
					     .frozen = dice >> 8 & 1,
					     .tag = (uint8_t)(dice >> 16),
					     .size_class = (uint8_t)(1 + (dice >> 24) % 53),
					     .offset = (dice >> 32) * 64 };

			if (dice % 4 == 0)
				expect[count++] = (uint8_t)i;
			else
				slot.fingerprint ^= 1u << dice % 13;
			put(i, dice % 4 < 2	? slot_pack(slot) :
			       dice % 4 == 2	? SLOT_EMPTY :
						  SLOT_MOVED);
		}
		cr_assert_eq(bucket_find(bucket, h, found), count);
		cr_assert(count == 0 || memcmp(found, expect, count) == 0);
	}
}

Test(bucket, finds_all_28_slots_of_one_fingerprint)
{
	uint8_t found[BUCKET_SLOTS];

	for (unsigned i = 0; i < BUCKET_SLOTS; i++)
		put(i, slot_pack((struct slot){ .size_class = 1, .offset = 64 * i }));
	cr_assert_eq(bucket_find(bucket, 0, found), BUCKET_SLOTS);
	cr_assert_eq(found[27], 27);
}

Test(bucket, the_first_free_slot_is_empty_or_moved)
{
	for (unsigned i = 0; i < BUCKET_SLOTS; i++)
		put(i, slot_pack((struct slot){ .size_class = 1 }));
	cr_assert_eq(bucket_find_free(bucket), -1);
	for (unsigned i = BUCKET_SLOTS; i-- > 0;) {
		put(i, i % 2 ? SLOT_MOVED : SLOT_EMPTY);
		cr_assert_eq(bucket_find_free(bucket), (int)i);
	}
}

static void check_segment(unsigned depth, uint32_t suffix, uint64_t *seed)
{
	static uint8_t around[3 * SEGMENT_BYTES];
	uint8_t *segment = around + SEGMENT_BYTES;
	uint64_t free_guard =
		guard_pack((struct guard){ .depth = (uint8_t)depth, .suffix = suffix });

	memset(around, 0xa5, sizeof around);
	segment_format(segment, depth, suffix);
	for (unsigned i = 0; i < 16; i++) {
		uint64_t h = seed_next(seed) << depth | suffix;
		const uint8_t *at = segment + place_bucket(h) * BUCKET_BYTES;

		cr_assert(bucket_serves(at, h));
		cr_assert_not(bucket_serves(at, h ^ 1));
		cr_assert_eq(bucket_guard(at, 0), free_guard, "what a client would CAS from");
		cr_assert_eq(bucket_find_free(at), 0);
	}
	for (unsigned i = 0; i < SEGMENT_BYTES; i++)
		cr_assert(around[i] == 0xa5 && around[2 * SEGMENT_BYTES + i] == 0xa5);
}

Test(bucket, a_fresh_segment_serves_its_suffix_in_all_buckets_at_every_depth)
{
	uint64_t seed = seed_take("segment");

	for (unsigned depth = 1; depth <= PLACE_DEPTH_MAX; depth++) {
		check_segment(depth, 0, &seed);
		check_segment(depth, place_suffix(UINT64_MAX, depth), &seed);
		check_segment(depth, place_suffix(seed_next(&seed), depth), &seed);
	}
}

Test(bucket, a_segment_asserts_a_suffix_within_its_depth, .signal = SIGABRT)
{
	static uint8_t segment[SEGMENT_BYTES];

	segment_format(segment, 3, 8);
}

Test(bucket, a_segment_asserts_a_depth, .signal = SIGABRT)
{
	static uint8_t segment[SEGMENT_BYTES];

	segment_format(segment, 0, 0);
}
