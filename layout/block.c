/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/block.h"

#include "layout/bytes.h"
#include "layout/size_class.h"

#include <assert.h>
#include <xxhash.h>

enum {
	CHECK_AT = 8,
	HASH_AT = 16,
	EXPIRES_AT = 24,
	KEY_LEN_AT = 32,
	KIND_AT = 34,
	CLASS_AT = 35,
	VALUE_LEN_AT = 36,
};

_Static_assert(BLOCK_CONTROL_AT + 8 == CHECK_AT && CHECK_AT + 8 == HASH_AT &&
		       HASH_AT + 8 == EXPIRES_AT && EXPIRES_AT + 8 == KEY_LEN_AT &&
		       KEY_LEN_AT + 2 == KIND_AT && KIND_AT + 1 == CLASS_AT &&
		       CLASS_AT + 1 == VALUE_LEN_AT && VALUE_LEN_AT + 4 == BLOCK_COUNTER_AT,
	       "the header has no gaps");
_Static_assert(CHECK_AT % 8 == 0 && HASH_AT % 8 == 0 && EXPIRES_AT % 8 == 0 &&
		       KEY_LEN_AT % 2 == 0 && VALUE_LEN_AT % 4 == 0,
	       "fields are aligned: none straddles a word that may be torn");
_Static_assert(BLOCK_COUNTER_AT % 8 == 0 && BLOCK_CONTROL_AT % 8 == 0, "atomic words are aligned");
_Static_assert(BLOCK_COUNTER_AT + 8 == BLOCK_HEADER_BYTES && BLOCK_HEADER_BYTES == 48,
	       "the counter ends the header");
_Static_assert((int)BLOCK_HEADER_BYTES <= (int)LINE_BYTES, "the header lies in the first line");
_Static_assert(BLOCK_KEY_MAX <= UINT16_MAX && BLOCK_VALUE_MAX <= UINT32_MAX, "lengths fit");
_Static_assert(SIZE_CLASS_COUNT <= UINT8_MAX, "a class fits its byte");

/* The checked header part is 24 bytes: it seeds the hash of key and value, which lie together. */
static uint64_t compute_check(const uint8_t *encoded, size_t key_len, size_t value_len)
{
	uint64_t seed = XXH3_64bits(encoded + HASH_AT, BLOCK_COUNTER_AT - HASH_AT);

	return XXH3_64bits_withSeed(encoded + BLOCK_HEADER_BYTES, key_len + value_len, seed);
}

void block_encode(const struct block *block, uint8_t *out)
{
	assert(block->key_len >= 1 && block->key_len <= BLOCK_KEY_MAX);
	assert(block->value_len <= BLOCK_VALUE_MAX);
	assert(block->kind == BLOCK_VALUE || block->kind == BLOCK_COUNTER);
	assert(block_bytes(block->key_len, block->value_len) <=
	       size_class_bytes(block->size_class));
	store_le64(out + BLOCK_CONTROL_AT, block->control);
	store_le64(out + HASH_AT, block->hash);
	store_le64(out + EXPIRES_AT, block->expires_at_ms);
	store_le16(out + KEY_LEN_AT, block->key_len);
	out[KIND_AT] = block->kind;
	out[CLASS_AT] = block->size_class;
	store_le32(out + VALUE_LEN_AT, block->value_len);
	store_le64(out + BLOCK_COUNTER_AT, block->counter);
	memcpy(out + BLOCK_HEADER_BYTES, block->key, block->key_len);
	if (block->value_len > 0)
		memcpy(out + BLOCK_HEADER_BYTES + block->key_len, block->value, block->value_len);
	store_le64(out + CHECK_AT, compute_check(out, block->key_len, block->value_len));
}

void block_set_control(uint8_t *encoded, uint64_t control)
{
	store_le64(encoded + BLOCK_CONTROL_AT, control);
}

bool block_decode_key(const uint8_t *in, size_t length, struct block *block)
{
	if (length < BLOCK_HEADER_BYTES)
		return false;
	*block = (struct block){
		.control = load_le64(in + BLOCK_CONTROL_AT),
		.hash = load_le64(in + HASH_AT),
		.expires_at_ms = load_le64(in + EXPIRES_AT),
		.counter = load_le64(in + BLOCK_COUNTER_AT),
		.key_len = load_le16(in + KEY_LEN_AT),
		.kind = in[KIND_AT],
		.size_class = in[CLASS_AT],
		.value_len = load_le32(in + VALUE_LEN_AT),
		.key = in + BLOCK_HEADER_BYTES,
	};
	if (block->key_len < 1 || block->key_len > BLOCK_KEY_MAX)
		return false;
	if (block->value_len > BLOCK_VALUE_MAX)
		return false;
	if (block->kind != BLOCK_VALUE && block->kind != BLOCK_COUNTER)
		return false;
	if (size_class_bytes(block->size_class) < block_bytes(block->key_len, block->value_len))
		return false;
	return block_bytes(block->key_len, 0) <= length;
}

bool block_decode(const uint8_t *in, size_t length, struct block *block)
{
	if (!block_decode_key(in, length, block))
		return false;
	if (block_bytes(block->key_len, block->value_len) > length)
		return false;
	block->value = block->key + block->key_len;
	return load_le64(in + CHECK_AT) == compute_check(in, block->key_len, block->value_len);
}

bool block_holds(const struct block *block, uint64_t hash, const void *key, size_t key_len)
{
	return block->hash == hash && block->key_len == key_len &&
	       memcmp(block->key, key, key_len) == 0;
}
