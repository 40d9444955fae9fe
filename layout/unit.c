/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/unit.h"

#include "layout/bytes.h"

#define UNIT_MAGIC UINT32_C(0x54494e55) /* "UNIT" */

_Static_assert(UNIT_BITMAP_WORDS * 64 >= (UNIT_BYTES - UNIT_BLOCKS_AT) / 64, "a bit for every block");
_Static_assert(UNIT_BITMAP_AT + UNIT_BITMAP_WORDS * 8 <= UNIT_BLOCKS_AT, "the bitmap fits ahead of the blocks");

void unit_header_encode(const struct unit_header *header, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le32(line, UNIT_MAGIC);
	store_le16(line + 4, header->owner);
	line[6] = header->size_class;
	store_le32(line + 8, header->run);
	store_le64(line + 16, header->session);
}

bool unit_header_decode(const uint8_t line[64], struct unit_header *header)
{
	header->owner = load_le16(line + 4);
	header->size_class = line[6];
	header->run = load_le32(line + 8);
	header->session = load_le64(line + 16);
	return load_le32(line) == UNIT_MAGIC && size_class_bytes(header->size_class) > 0 &&
	       header->run == unit_run(header->size_class);
}

bool unit_bit_of_block(uint64_t block_offset, unsigned size_class, struct unit_bit *bit)
{
	uint32_t bytes = size_class_bytes(size_class);
	uint64_t unit = block_offset & ~(uint64_t)(UNIT_BYTES - 1);
	uint64_t in_unit = block_offset - unit;

	if (bytes == 0 || in_unit < UNIT_BLOCKS_AT || (in_unit - UNIT_BLOCKS_AT) % bytes != 0)
		return false;
	bit->index = (uint32_t)((in_unit - UNIT_BLOCKS_AT) / bytes);
	if (bit->index >= unit_blocks(size_class))
		return false;
	bit->unit_offset = unit;
	bit->word_offset = unit + UNIT_BITMAP_AT + bit->index / 64 * 8;
	bit->mask = UINT64_C(1) << bit->index % 64;
	return true;
}
