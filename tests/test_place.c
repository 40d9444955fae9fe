/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/place.h"

#include "layout/bucket.h"
#include "layout/record.h"
#include "layout/region.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <string.h>
#include <xxhash.h>

enum { KEYS = 1000000, DEPTH = 12, BUCKETS = SEGMENT_BUCKETS << DEPTH };

Test(place, hashes_with_both_halves_of_xxh3_128)
{
	XXH128_hash_t h = XXH3_128bits_withSeed("abc", 3, 42);
	struct key_hash hash = key_hash("abc", 3, 42);

	cr_assert_eq(hash.low, h.low64);
	cr_assert_eq(hash.high, h.high64);
	cr_assert_neq(key_hash("abc", 3, 43).low, hash.low, "the seed counts");
}

Test(place, each_hash_bit_moves_at_most_one_of_index_bucket_and_fingerprint)
{
	uint64_t seed = seed_take("bits");

	for (unsigned round = 0; round < 1000; round++) {
		uint64_t h = seed_next(&seed);

		for (unsigned bit = 0; bit < 64; bit++) {
			uint64_t other = h ^ UINT64_C(1) << bit;
			bool index = place_suffix(h, 30) != place_suffix(other, 30);
			bool bucket = place_bucket(h) != place_bucket(other);
			bool fingerprint = place_fingerprint(h) != place_fingerprint(other);

			cr_assert_eq(index, bit < 30, "bit %u", bit);
			cr_assert_eq(bucket, bit >= 30 && bit < 34, "bit %u", bit);
			cr_assert_eq(fingerprint, bit >= 34 && bit < 47, "bit %u", bit);
		}
	}
}

Test(place, suffix_is_the_low_bits_at_every_depth)
{
	for (unsigned depth = 0; depth <= PLACE_DEPTH_MAX; depth++) {
		cr_assert_eq(place_suffix(UINT64_MAX, depth), (UINT64_C(1) << depth) - 1);
		cr_assert_eq(place_suffix(UINT64_C(1) << depth, depth), 0);
	}
	cr_assert_eq(place_bucket(UINT64_MAX), SEGMENT_BUCKETS - 1);
	cr_assert_eq(place_fingerprint(UINT64_MAX), (1 << 13) - 1);
}

/* Keys of three kinds that look alike among themselves; each kind has KEYS of them. */
static size_t make_key(unsigned kind, uint32_t i, char key[32])
{
	uint64_t fnv = UINT64_C(0xcbf29ce484222325);

	switch (kind) {
	case 0:
		return (size_t)sprintf(key, "user%010u", i);
	case 1:
		memcpy(key, &(uint64_t){ htole64(i) }, 8);
		return 8;
	default: /* as YCSB does: FNV-64 of the number's bytes */
		for (unsigned b = 0; b < 8; b++)
			fnv = (fnv ^ ((uint64_t)i >> 8 * b & 0xff)) * UINT64_C(0x100000001b3);
		return (size_t)sprintf(key, "user%llu", (unsigned long long)fnv);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Chi-square against an even spread, as distance from its mean in standard deviations. */
static double unevenness(const uint32_t *counts, size_t cells)
{
	double mean = (double)KEYS / (double)cells, sum = 0, off;

	for (size_t i = 0; i < cells; i++)
		sum += (counts[i] - mean) * (counts[i] - mean) / mean;
	off = sum - (double)(cells - 1);
	return off * off / (2.0 * (double)(cells - 1)); /* squared */
}

static void check_spread(unsigned kind, uint64_t seed)
{
	static uint32_t buckets[BUCKETS], prints[1 << PLACE_FINGERPRINT_BITS], shards[SHARD_COUNT];
	static uint64_t lows[KEYS];
	char key[32];

	memset(buckets, 0, sizeof buckets);
	memset(prints, 0, sizeof prints);
	memset(shards, 0, sizeof shards);
	for (uint32_t i = 0; i < KEYS; i++) {
		struct key_hash h = key_hash(key, make_key(kind, i, key), seed);

		lows[i] = h.low;
		buckets[place_suffix(h.low, DEPTH) * SEGMENT_BUCKETS + place_bucket(h.low)]++;
		prints[place_fingerprint(h.low)]++;
		shards[shard_of_hash(h.high)]++;
	}
	cr_expect_lt(unevenness(buckets, BUCKETS), 36, "kind %u: buckets", kind);
	cr_expect_lt(unevenness(prints, 1 << PLACE_FINGERPRINT_BITS), 36, "kind %u: prints", kind);
	cr_expect_lt(unevenness(shards, SHARD_COUNT), 36, "kind %u: shards", kind);
	qsort(lows, KEYS, sizeof *lows, compare);
	for (uint32_t i = 1; i < KEYS; i++)
		cr_assert_neq(lows[i], lows[i - 1], "kind %u: two keys of one hash", kind);
}

Test(place, B50_a_million_similar_keys_fill_buckets_evenly)
{
	uint64_t seed = seed_take("B50");

	for (unsigned kind = 0; kind < 3; kind++)
		check_spread(kind, seed);
}

Test(place, B50_the_expected_keys_fit_without_growth)
{
	static uint8_t fill[SEGMENT_BUCKETS << 16];
	uint64_t seed = seed_take("fit");
	struct geometry g;
	char key[32];

	cr_assert_eq(geometry_compute(UINT64_C(1) << 30, KEYS, &g), 0);
	cr_assert_leq(g.initial_depth, 16);
	for (uint32_t i = 0; i < KEYS; i++) {
		uint64_t h = key_hash(key, make_key(0, i, key), seed).low;
		uint32_t suffix = place_suffix(h, g.initial_depth);

		cr_assert_lt(fill[suffix * SEGMENT_BUCKETS + place_bucket(h)]++, BUCKET_SLOTS);
	}
}
