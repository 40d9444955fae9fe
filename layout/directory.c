/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/directory.h"

#include "layout/bytes.h"
#include "layout/place.h"

#include <assert.h>

#define HEADER_MAGIC UINT64_C(0x3152494456554b46) /* "FKUVDIR1" */

uint64_t directory_entry_pack(struct directory_entry entry)
{
	assert(entry.segment > 0 && entry.segment <= bits_mask(57) && entry.depth <= PLACE_DEPTH_MAX);
	return UINT64_C(1) << 63 | (uint64_t)entry.depth << 57 | entry.segment;
}

bool directory_entry_unpack(uint64_t word, struct directory_entry *entry)
{
	entry->segment = word & bits_mask(57);
	entry->depth = (uint8_t)(word >> 57 & 63);
	return word >> 63 == 1 && entry->segment > 0 && entry->depth <= PLACE_DEPTH_MAX;
}

void directory_header_encode(struct directory_header header, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le64(line, HEADER_MAGIC);
	store_le32(line + 8, header.depth);
}

bool directory_header_decode(const uint8_t line[64], uint32_t max_depth, struct directory_header *header)
{
	header->depth = load_le32(line + 8);
	return load_le64(line) == HEADER_MAGIC && header->depth <= max_depth;
}
