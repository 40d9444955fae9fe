/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/slot.h"

#include "layout/bytes.h"
#include "layout/place.h"
#include "layout/region.h"
#include "layout/size_class.h"

#include <assert.h>

enum { CLASS_SHIFT = SLOT_OFFSET_BITS, TAG_SHIFT = 42, FROZEN_SHIFT = 50 };

_Static_assert(CLASS_SHIFT + 8 == TAG_SHIFT && TAG_SHIFT + SLOT_TAG_BITS == FROZEN_SHIFT &&
		       FROZEN_SHIFT + 1 == SLOT_FINGERPRINT_SHIFT &&
		       SLOT_FINGERPRINT_SHIFT + PLACE_FINGERPRINT_BITS == 64,
	       "a slot fills 64 bits");
_Static_assert((UINT64_C(1) << SLOT_OFFSET_BITS) * LINE_BYTES == REGION_BYTES_MAX,
	       "a slot reaches the whole of the largest region");
_Static_assert(SIZE_CLASS_COUNT <= 255, "MOVED is no block's slot");

uint64_t slot_pack(struct slot slot)
{
	assert(slot.fingerprint <= bits_mask(PLACE_FINGERPRINT_BITS));
	assert(slot.offset % LINE_BYTES == 0);
	assert(slot.offset / LINE_BYTES <= bits_mask(SLOT_OFFSET_BITS));
	return (uint64_t)slot.fingerprint << SLOT_FINGERPRINT_SHIFT |
	       (uint64_t)slot.frozen << FROZEN_SHIFT |
	       (uint64_t)slot.tag << TAG_SHIFT | (uint64_t)slot.size_class << CLASS_SHIFT |
	       slot.offset / LINE_BYTES;
}

struct slot slot_unpack(uint64_t word)
{
	return (struct slot){
		.fingerprint = (uint16_t)(word >> SLOT_FINGERPRINT_SHIFT),
		.frozen = word >> FROZEN_SHIFT & 1,
		.tag = (uint8_t)(word >> TAG_SHIFT),
		.size_class = (uint8_t)(word >> CLASS_SHIFT),
		.offset = (word & bits_mask(SLOT_OFFSET_BITS)) * LINE_BYTES,
	};
}
