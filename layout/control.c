/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/control.h"

#include "layout/bytes.h"
#include "layout/slot.h"

#include <assert.h>

enum { HALF_BITS = 31, ROUNDS = 4, CLASS_SHIFT = CONTROL_TAG_BITS, OFFSET_SHIFT = 28 };

_Static_assert(NAME_SESSION_BITS + NAME_SEQUENCE_BITS == 62 && 2 * HALF_BITS == 62,
	       "a name fills what the kind leaves");
_Static_assert(CLASS_SHIFT + 8 == OFFSET_SHIFT && OFFSET_SHIFT + SLOT_OFFSET_BITS == 62,
	       "a FORWARD fills what the kind leaves");
_Static_assert((int)CONTROL_TAG_BITS <= (int)NAME_SEQUENCE_BITS &&
		       (int)SLOT_TAG_BITS <= (int)NAME_SEQUENCE_BITS,
	       "tags are low bits of a sequence");

static uint32_t round_function(uint32_t half, uint64_t key, unsigned round)
{
	uint64_t x = (half + (uint64_t)round * UINT64_C(0x9e3779b97f4a7c15)) ^ key;

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 33);
}

uint64_t control_pack_live(uint64_t name, uint64_t name_key)
{
	uint32_t left = (uint32_t)(name >> HALF_BITS), right = name & bits_mask(HALF_BITS);

	assert(name >> 62 == 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t next = left ^ round_function(right, name_key, round);

		left = right;
		right = next;
	}
	return (uint64_t)CONTROL_LIVE << 62 | (uint64_t)left << HALF_BITS | right;
}

uint64_t control_live_name(uint64_t word, uint64_t name_key)
{
	uint32_t left = (uint32_t)(word >> HALF_BITS & bits_mask(HALF_BITS));
	uint32_t right = word & bits_mask(HALF_BITS);

	for (unsigned round = ROUNDS; round-- > 0;) {
		uint32_t before = right ^ round_function(left, name_key, round);

		right = left;
		left = before;
	}
	return (uint64_t)left << HALF_BITS | right;
}

uint64_t control_pack_forward(struct forward forward)
{
	assert(forward.offset % LINE_BYTES == 0);
	assert(forward.offset / LINE_BYTES <= bits_mask(SLOT_OFFSET_BITS));
	assert(forward.tag <= bits_mask(CONTROL_TAG_BITS));
	return (uint64_t)CONTROL_FORWARD << 62 | forward.offset / LINE_BYTES << OFFSET_SHIFT |
	       (uint64_t)forward.size_class << CLASS_SHIFT | forward.tag;
}

struct forward control_forward(uint64_t word)
{
	return (struct forward){
		.offset = (word >> OFFSET_SHIFT & bits_mask(SLOT_OFFSET_BITS)) * LINE_BYTES,
		.size_class = (uint8_t)(word >> CLASS_SHIFT),
		.tag = (uint32_t)(word & bits_mask(CONTROL_TAG_BITS)),
	};
}
