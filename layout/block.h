/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block: one instance of one key's value.
 *
 *    0 control u64      8 check u64      16 hash u64      24 expires_at_ms u64
 *   32 key_len u16     34 kind u8  35 class u8  36 value_len u32      40 counter u64
 *   48 key, then value
 *
 * check covers everything but the control word, itself and the counter, which change after the
 * block was written: XXH3_64 of key and value, seeded with XXH3_64 of bytes 16..39.
 */
#ifndef FARKV_LAYOUT_BLOCK_H
#define FARKV_LAYOUT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BLOCK_CONTROL_AT = 0,
	BLOCK_COUNTER_AT = 40,
	BLOCK_HEADER_BYTES = 48,
	BLOCK_KEY_MAX = 1024,
	BLOCK_VALUE_MAX = 1 << 20,
};

enum block_kind { BLOCK_VALUE = 1, BLOCK_COUNTER = 2 };

struct block {
	uint64_t control;
	uint64_t hash; /* low half of the key's hash */
	uint64_t expires_at_ms; /* 0 = never */
	uint64_t counter;
	uint16_t key_len;
	uint8_t kind; /* enum block_kind */
	uint8_t size_class;
	uint32_t value_len;
	const uint8_t *key;   /* into the bytes decoded or to encode; borrowed */
	const uint8_t *value; /* NULL where only the key part was read */
};

static inline size_t block_bytes(size_t key_len, size_t value_len)
{
	return BLOCK_HEADER_BYTES + key_len + value_len;
}

/* Writes block_bytes() bytes to out, check included. */
void block_encode(const struct block *block, uint8_t *out);
/* Overwrites the control word of an encoded block. */
void block_set_control(uint8_t *encoded, uint64_t control);

/*
 * Decodes what was READ, `length` bytes of untrusted memory. False: a length or class is out of
 * range, the block does not fit into `length`, or check fails.
 */
bool block_decode(const uint8_t *in, size_t length, struct block *block);
/* Header and key alone: lengths are bounded, check is not looked at, block->value is NULL. */
bool block_decode_key(const uint8_t *in, size_t length, struct block *block);
/* Whether this block holds the key. */
bool block_holds(const struct block *block, uint64_t hash, const void *key, size_t key_len);

#endif
