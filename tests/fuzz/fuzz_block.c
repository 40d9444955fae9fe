/* SPDX-License-Identifier: Apache-2.0 */
/* A block as READ, tried as it is and with its check put right. */
#include "tests/fuzz/require.h"

#include "layout/block.h"
#include "layout/bytes.h"
#include "layout/size_class.h"

#include <xxhash.h>

enum { CHECK_AT = 8, CHECKED_AT = 16, KEY_LEN_AT = 32, VALUE_LEN_AT = 36 };

static void check_key(const struct block *block, const uint8_t *bytes, size_t length)
{
	REQUIRE(block->key_len >= 1 && block->key_len <= BLOCK_KEY_MAX);
	REQUIRE(block->value_len <= BLOCK_VALUE_MAX);
	REQUIRE(block->key == bytes + BLOCK_HEADER_BYTES);
	REQUIRE(block->key + block->key_len <= bytes + length);
	REQUIRE(block_bytes(block->key_len, block->value_len) <=
		size_class_bytes(block->size_class));
	REQUIRE(block->kind == BLOCK_VALUE || block->kind == BLOCK_COUNTER);
	REQUIRE(block_holds(block, block->hash, block->key, block->key_len));
	REQUIRE(!block_holds(block, block->hash, block->key, block->key_len - 1u));
	REQUIRE(!block_holds(block, ~block->hash, block->key, block->key_len));
}

static void try_once(const uint8_t *bytes, size_t length)
{
	struct block block, head;
	uint8_t *again;
	size_t used;

	if (block_decode_key(bytes, length, &head)) {
		REQUIRE(!head.value);
		check_key(&head, bytes, length);
	} else {
		REQUIRE(!block_decode(bytes, length, &block));
	}
	if (!block_decode(bytes, length, &block))
		return;
	check_key(&block, bytes, length);
	used = block_bytes(block.key_len, block.value_len);
	REQUIRE(used <= length && block.value + block.value_len == bytes + used);
	REQUIRE(!block_decode(bytes, used - 1, &head));
	again = malloc(used);
	block_encode(&block, again);
	REQUIRE(memcmp(again, bytes, used) == 0);
	again[KEY_LEN_AT + 2] ^= 3; /* the other kind */
	REQUIRE(!block_decode(again, used, &head));
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t *mended;
	size_t body;

	try_once(bytes, length);
	if (length < BLOCK_HEADER_BYTES)
		return 0;
	body = (size_t)load_le16(bytes + KEY_LEN_AT) + load_le32(bytes + VALUE_LEN_AT);
	if (body > length - BLOCK_HEADER_BYTES)
		return 0;
	mended = malloc(length);
	memcpy(mended, bytes, length);
	store_le64(mended + CHECK_AT,
		   XXH3_64bits_withSeed(mended + BLOCK_HEADER_BYTES, body,
					XXH3_64bits(mended + CHECKED_AT, 24)));
	try_once(mended, length);
	free(mended);
	return 0;
}
