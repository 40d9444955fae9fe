/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/block.h"

#include "layout/bytes.h"
#include "layout/place.h"
#include "layout/size_class.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <xxhash.h>

enum { MOST = BLOCK_HEADER_BYTES + BLOCK_KEY_MAX + BLOCK_VALUE_MAX };

static uint8_t key_bytes[BLOCK_KEY_MAX], value_bytes[BLOCK_VALUE_MAX];

static struct block make(uint64_t *seed, size_t key_len, size_t value_len)
{
	seed_fill(seed, key_bytes, key_len);
	for (size_t i = 0; i < value_len; i++)
		value_bytes[i] = (uint8_t)(*seed >> i % 57);
	return (struct block){
		.control = seed_next(seed),
		.hash = seed_next(seed),
		.expires_at_ms = seed_next(seed),
		.counter = seed_next(seed),
		.key_len = (uint16_t)key_len,
		.kind = seed_next(seed) & 1 ? BLOCK_VALUE : BLOCK_COUNTER,
		.size_class = (uint8_t)size_class_of(block_bytes(key_len, value_len)),
		.value_len = (uint32_t)value_len,
		.key = key_bytes,
		.value = value_bytes,
	};
}

/* The check as the format describes it, made here independently. */
static void mend(uint8_t *encoded, size_t key_len, size_t value_len)
{
	uint64_t seed = XXH3_64bits(encoded + 16, 24);

	store_le64(encoded + 8, XXH3_64bits_withSeed(encoded + 48, key_len + value_len, seed));
}

static void assert_round_trip(uint64_t *seed, size_t key_len, size_t value_len)
{
	struct block in = make(seed, key_len, value_len), out, head;
	size_t bytes = block_bytes(key_len, value_len);
	uint8_t *encoded = malloc(bytes); /* exactly, for the address sanitizer */

	block_encode(&in, encoded);
	cr_assert(block_decode(encoded, bytes, &out), "%zu + %zu", key_len, value_len);
	cr_assert_eq(out.control, in.control);
	cr_assert_eq(out.hash, in.hash);
	cr_assert_eq(out.expires_at_ms, in.expires_at_ms);
	cr_assert_eq(out.counter, in.counter);
	cr_assert_eq(out.kind, in.kind);
	cr_assert_eq(out.size_class, in.size_class);
	cr_assert(out.key_len == key_len && memcmp(out.key, key_bytes, key_len) == 0);
	cr_assert(out.value_len == value_len && memcmp(out.value, value_bytes, value_len) == 0);
	cr_assert_not(block_decode(encoded, bytes - 1, &out));
	cr_assert(block_decode_key(encoded, block_bytes(key_len, 0), &head));
	cr_assert(head.value == NULL && head.value_len == value_len);
	cr_assert(block_holds(&head, in.hash, key_bytes, key_len));
	cr_assert_not(block_decode_key(encoded, block_bytes(key_len, 0) - 1, &head));
	free(encoded);
}

Test(block, comes_back_as_it_was_encoded)
{
	static const size_t keys[] = { 1, 2, 15, 16, 17, 1023, 1024 };
	static const size_t values[] = { 0, 1, 8, 1000, (1 << 20) - 1, 1 << 20 };
	uint64_t seed = seed_take("block");

	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
		for (size_t v = 0; v < sizeof values / sizeof *values; v++)
			assert_round_trip(&seed, keys[k], values[v]);
	for (unsigned i = 0; i < 2000; i++)
		assert_round_trip(&seed, 1 + seed_next(&seed) % BLOCK_KEY_MAX,
				  seed_next(&seed) % 5000);
}

Test(block, has_its_fields_where_the_format_says)
{
	static const uint8_t expect[] = "\1\2\3\4\5\6\7\x48" "CCCCCCCC"
					"\x11\x12\x13\x14\x15\x16\x17\x18"
					"\x21\x22\x23\x24\x25\x26\x27\x28"
					"\2\0\1\1\3\0\0\0"
					"\x31\x32\x33\x34\x35\x36\x37\x38" "kyval";
	struct block block = { .control = 0x4807060504030201, .hash = 0x1817161514131211,
			       .expires_at_ms = 0x2827262524232221, .counter = 0x3837363534333231,
			       .key_len = 2, .kind = BLOCK_VALUE, .size_class = 1, .value_len = 3,
			       .key = (const uint8_t *)"ky", .value = (const uint8_t *)"val" };
	uint8_t encoded[53], check[8];

	block_encode(&block, encoded);
	memcpy(check, encoded + 8, 8);
	mend(encoded, 2, 3);
	cr_assert_arr_eq(check, encoded + 8, 8);
	memset(encoded + 8, 'C', 8);
	cr_assert_arr_eq(encoded, expect, 53);
}

Test(block, B34_every_class_edge_and_its_neighbours_hold_exactly_their_bytes)
{
	uint64_t seed = seed_take("edges");

	for (unsigned c = 1; c < SIZE_CLASS_COUNT; c++)
		for (int off = -1; off <= 1; off++) {
			size_t bytes = (size_t)((int64_t)size_class_bytes(c) + off);

			if (bytes - 57 <= BLOCK_VALUE_MAX) /* a key of 9 */
				assert_round_trip(&seed, 9, bytes - 57);
		}
}

Test(block, B34_a_shorter_value_leaves_no_tail_of_the_longer_one)
{
	static const size_t lengths[] = { 1000, 3, 1001, 0, 1 };
	static uint8_t place[2048];
	uint64_t seed = seed_take("tail");

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct block in = make(&seed, 5, lengths[i]), out;

		block_encode(&in, place);
		cr_assert(block_decode(place, sizeof place, &out));
		cr_assert_eq(out.value_len, lengths[i]);
		cr_assert_eq(memcmp(out.value, value_bytes, lengths[i]), 0);
	}
}

Test(block, any_changed_bit_that_the_check_covers_is_found)
{
	uint64_t seed = seed_take("bits");
	struct block in = make(&seed, 11, 70), out;
	size_t bytes = block_bytes(11, 70);
	uint8_t encoded[256];

	block_encode(&in, encoded);
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		bool free = bit / 8 < 8 || (bit / 8 >= 40 && bit / 8 < 48);

		encoded[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(block_decode(encoded, bytes, &out), free, "bit %zu", bit);
		encoded[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	block_set_control(encoded, 99);
	store_le64(encoded + BLOCK_COUNTER_AT, 1234);
	cr_assert(block_decode(encoded, bytes, &out));
	cr_assert(out.control == 99 && out.counter == 1234);
}

Test(block, lengths_class_and_kind_out_of_range_are_refused_whatever_the_check_says)
{
	static uint8_t image[2 * MOST];
	static const struct {
		uint16_t key_len;
		uint8_t kind, size_class;
		uint32_t value_len;
	} bad[] = {
		{ 0, 1, 1, 4 },		   { 1025, 1, 30, 4 },	   { 65535, 1, 53, 4 },
		{ 4, 1, 53, (1 << 20) + 1 }, { 4, 1, 53, UINT32_MAX }, { 4, 0, 1, 4 },
		{ 4, 3, 1, 4 },		   { 4, 255, 1, 4 },	   { 4, 1, 0, 4 },
		{ 4, 1, 54, 4 },	   { 4, 1, 255, 4 },	   { 4, 1, 1, 13 },
	};
	struct block block;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		store_le16(image + 32, bad[i].key_len);
		image[34] = bad[i].kind;
		image[35] = bad[i].size_class;
		store_le32(image + 36, bad[i].value_len);
		if (bad[i].value_len < MOST)
			mend(image, bad[i].key_len, bad[i].value_len);
		cr_expect_not(block_decode(image, sizeof image, &block), "row %zu", i);
		cr_expect_not(block_decode_key(image, sizeof image, &block), "row %zu", i);
	}
}

Test(block, short_reads_and_memory_of_zeros_are_no_block)
{
	static const uint8_t zeros[4096];
	struct block block;

	for (size_t length = 0; length < BLOCK_HEADER_BYTES; length++)
		cr_assert_not(block_decode_key(zeros, length, &block));
	cr_assert_not(block_decode_key(zeros, sizeof zeros, &block));
	cr_assert_not(block_decode(zeros, sizeof zeros, &block));
}

static bool holds(const char *stored, size_t stored_len, const char *asked, size_t asked_len)
{
	struct block block = { .hash = 7, .key_len = (uint16_t)stored_len,
			       .key = (const uint8_t *)stored };

	return block_holds(&block, 7, asked, asked_len);
}

Test(block, B32_keys_that_begin_alike_are_different_keys)
{
	cr_assert(holds("1234567", 7, "1234567", 7));
	cr_assert_not(holds("1234567", 7, "12345678", 8));
	cr_assert_not(holds("1234567", 7, "123456", 6));
	cr_assert_not(holds("1234567", 7, "1234567\0", 8));
	cr_assert_not(holds("a\0b", 3, "a\0c", 3));
	cr_assert(holds("a\0b", 3, "a\0b", 3));
}

Test(block, B32_the_same_key_under_another_hash_is_not_held)
{
	struct block block = { .hash = 7, .key_len = 1, .key = (const uint8_t *)"k" };

	cr_assert_not(block_holds(&block, 8, "k", 1));
}

Test(block, asserts_that_it_fits_its_class, .signal = SIGABRT)
{
	uint8_t out[256];
	struct block block = { .key_len = 17, .kind = BLOCK_VALUE, .size_class = 1, .key = out };

	block_encode(&block, out);
}

Test(block, asserts_a_key, .signal = SIGABRT)
{
	uint8_t out[256];
	struct block block = { .kind = BLOCK_VALUE, .size_class = 1, .key = out };

	block_encode(&block, out);
}
