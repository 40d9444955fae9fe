/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/key.h"
#include "bench/value.h"

enum { KEYS = 1000000, BUCKETS = 1000 };

static int hash_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

Test(bench_key, a_million_keys_are_distinct_and_fill_evenly)
{
	uint64_t *hashes = malloc(KEYS * sizeof(*hashes));
	uint32_t fill[BUCKETS] = {0}, digits[BUCKETS] = {0};
	struct bench_key_codec codec;
	char key[256] = "";

	bench_key_codec_init(&codec, BENCH_KEY_BYTES_DEFAULT, false);
	for (uint64_t i = 0; i < KEYS; i++) {
		bench_key_encode(&codec, i, key);
		hashes[i] = XXH3_64bits(key, codec.key_bytes);
		fill[hashes[i] % BUCKETS]++;
		/* The last three digits: the keys themselves differ all over, too. */
		digits[strtoul(key + BENCH_KEY_BYTES_DEFAULT - 3, NULL, 10)]++;
	}
	qsort(hashes, KEYS, sizeof(*hashes), hash_compare);
	for (uint64_t i = 1; i < KEYS; i++)
		cr_assert_neq(hashes[i - 1], hashes[i]);
	for (int i = 0; i < BUCKETS; i++) {
		cr_expect(fill[i] > 800 && fill[i] < 1200, "%u", fill[i]);
		cr_expect(digits[i] > 800 && digits[i] < 1200, "%u", digits[i]);
	}
	free(hashes);
}

Test(bench_key, short_keys_use_their_whole_room_without_collision)
{
	struct bench_key_codec codec;
	unsigned char seen[8192] = {0};
	char key[9] = "";

	bench_key_codec_init(&codec, 8, false);
	cr_assert_eq(bench_key_capacity(&codec), 8192);
	for (uint64_t i = 0; i < 8192; i++) {
		bench_key_encode(&codec, i, key);
		cr_assert_eq(strncmp(key, "user", 4), 0);
		cr_assert_eq(seen[strtoul(key + 4, NULL, 10)]++, 0);
	}
	cr_expect_eq(bench_key_bytes_for(8192), 8);
	cr_expect_eq(bench_key_bytes_for(8193), 9);
}

Test(bench_key, every_length_is_filled)
{
	struct bench_key_codec codec;
	char key[BENCH_KEY_BYTES_MAX + 1];

	for (size_t bytes = BENCH_KEY_BYTES_MIN; bytes <= BENCH_KEY_BYTES_MAX; bytes++) {
		memset(key, 0, sizeof(key));
		bench_key_codec_init(&codec, bytes, false);
		bench_key_encode(&codec, 5, key);
		cr_assert_eq(strlen(key), bytes);
	}
}

Test(bench_key, ordered_keys_are_zero_padded_numbers)
{
	struct bench_key_codec codec;
	char key[BENCH_KEY_BYTES_DEFAULT + 1] = "";

	bench_key_codec_init(&codec, BENCH_KEY_BYTES_DEFAULT, true);
	bench_key_encode(&codec, 1234, key);
	cr_expect_str_eq(key, "user0000000000000001234");
}

Test(bench_key, values_prove_themselves_at_every_length)
{
	static unsigned char value[4096];
	struct bench_value written = {12345, 7, 99, 3}, read;

	for (size_t bytes = 0; bytes <= sizeof(value); bytes++) {
		bench_value_encode(&written, value, bytes);
		if (bytes < BENCH_VALUE_HEADER_BYTES) {
			cr_assert_eq(bench_value_decode(value, bytes, &read), BENCH_VALUE_SHORT);
			continue;
		}
		cr_assert_eq(bench_value_decode(value, bytes, &read), BENCH_VALUE_GOOD);
		cr_assert(read.number == 12345 && read.writer == 7 && read.run == 99 &&
			  read.ticket == 3);
		value[(bytes * 31) % bytes ? bytes - 1 : 0] ^= 0x10;
		cr_assert_neq(bench_value_decode(value, bytes, &read), BENCH_VALUE_GOOD);
	}
}

Test(bench_key, every_flipped_bit_of_a_value_is_seen)
{
	unsigned char value[100];
	struct bench_value written = {1, 2, 3, 4}, read;

	bench_value_encode(&written, value, sizeof(value));
	for (size_t bit = 0; bit < sizeof(value) * 8; bit++) {
		value[bit / 8] ^= (unsigned char)(1 << bit % 8);
		cr_assert_neq(bench_value_decode(value, sizeof(value), &read), BENCH_VALUE_GOOD,
			      "bit %zu", bit);
		value[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	cr_assert_eq(bench_value_decode(value, 99, &read), BENCH_VALUE_HEADER);
}
