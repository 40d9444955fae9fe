/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/directory.h"

#include "layout/bucket.h"
#include "layout/bytes.h"
#include "layout/place.h"
#include "layout/region.h"

#include <assert.h>

#define HEADER_MAGIC UINT64_C(0x3130524944564b46) /* "FKVDIR01" */

enum { DEPTH_BITS = 6, DEPTH_SHIFT = 57, VALID_SHIFT = 63, HEADER_DEPTH_AT = 8 };

_Static_assert(DEPTH_SHIFT + DEPTH_BITS == VALID_SHIFT, "an entry fills 64 bits");
_Static_assert(PLACE_DEPTH_MAX < 1 << DEPTH_BITS, "every depth fits");
_Static_assert((uint64_t)DIRECTORY_SEGMENTS_MAX * SEGMENT_BYTES == REGION_BYTES_MAX,
	       "a segment number that unpacks does not overflow as an offset");
_Static_assert(HEADER_DEPTH_AT % 8 == 0 && HEADER_DEPTH_AT + 8 <= LINE_BYTES,
	       "the global depth has a word of its own");

static bool entry_is_sound(struct directory_entry entry)
{
	return entry.segment > 0 && entry.segment < DIRECTORY_SEGMENTS_MAX &&
	       entry.depth >= PLACE_DEPTH_MIN && entry.depth <= PLACE_DEPTH_MAX;
}

uint64_t directory_entry_pack(struct directory_entry entry)
{
	assert(entry_is_sound(entry));
	return UINT64_C(1) << VALID_SHIFT | (uint64_t)entry.depth << DEPTH_SHIFT | entry.segment;
}

bool directory_entry_unpack(uint64_t word, struct directory_entry *entry)
{
	entry->segment = word & bits_mask(DEPTH_SHIFT);
	entry->depth = (uint8_t)(word >> DEPTH_SHIFT & bits_mask(DEPTH_BITS));
	return word >> VALID_SHIFT == 1 && entry_is_sound(*entry);
}

void directory_header_encode(struct directory_header header, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le64(line, HEADER_MAGIC);
	store_le64(line + HEADER_DEPTH_AT, header.depth);
}

bool directory_header_decode(const uint8_t line[64], uint32_t max_depth,
			     struct directory_header *header)
{
	uint64_t depth = load_le64(line + HEADER_DEPTH_AT);

	header->depth = (uint32_t)depth;
	return load_le64(line) == HEADER_MAGIC && depth >= PLACE_DEPTH_MIN && depth <= max_depth;
}
