/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/slot.h"

#include "layout/bytes.h"

#include <assert.h>

enum { CLASS_SHIFT = SLOT_OFFSET_BITS, TAG_SHIFT = 42, FROZEN_SHIFT = 50, FINGERPRINT_SHIFT = 51 };

_Static_assert(FINGERPRINT_SHIFT + 13 == 64, "a slot fills 64 bits");

uint64_t slot_pack(struct slot slot)
{
	assert(slot.fingerprint <= bits_mask(13));
	assert(slot.offset % LINE_BYTES == 0 && slot.offset / LINE_BYTES <= bits_mask(SLOT_OFFSET_BITS));
	return (uint64_t)slot.fingerprint << FINGERPRINT_SHIFT | (uint64_t)slot.frozen << FROZEN_SHIFT |
	       (uint64_t)slot.tag << TAG_SHIFT | (uint64_t)slot.size_class << CLASS_SHIFT |
	       slot.offset / LINE_BYTES;
}

struct slot slot_unpack(uint64_t word)
{
	return (struct slot){
		.fingerprint = (uint16_t)(word >> FINGERPRINT_SHIFT),
		.frozen = word >> FROZEN_SHIFT & 1,
		.tag = (uint8_t)(word >> TAG_SHIFT),
		.size_class = (uint8_t)(word >> CLASS_SHIFT),
		.offset = (word & bits_mask(SLOT_OFFSET_BITS)) * LINE_BYTES,
	};
}
