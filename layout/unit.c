/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/unit.h"

#include "layout/bytes.h"

#include <assert.h>

#define UNIT_MAGIC UINT32_C(0x54494e55) /* "UNIT" */

enum { OWNER_AT = 4, CLASS_AT = 6, RUN_AT = 8, SESSION_AT = 16 };

_Static_assert(OWNER_AT + 2 == CLASS_AT && CLASS_AT + 2 == RUN_AT && RUN_AT + 8 == SESSION_AT &&
		       SESSION_AT + 8 <= UNIT_BITMAP_AT,
	       "the fields end ahead of the bitmap");
_Static_assert((int)UNIT_BITMAP_AT >= (int)LINE_BYTES && UNIT_BITMAP_AT % 8 == 0,
	       "writing the first line leaves the bitmap alone, and FAA finds its words aligned");
_Static_assert(UNIT_BITMAP_WORDS * 64 >= (UNIT_BYTES - UNIT_BLOCKS_AT) / 64,
	       "a bit for every block");
_Static_assert(UNIT_BITMAP_AT + UNIT_BITMAP_WORDS * 8 <= UNIT_BLOCKS_AT,
	       "the bitmap fits ahead of the blocks");
_Static_assert(UNIT_BLOCKS_AT % LINE_BYTES == 0 && (UNIT_BYTES & (UNIT_BYTES - 1)) == 0,
	       "blocks are aligned to lines, and a block's unit is found by masking");

void unit_header_encode(const struct unit_header *header, uint8_t line[64])
{
	assert(header->run > 0 && header->run == unit_run(header->size_class));
	memset(line, 0, LINE_BYTES);
	store_le32(line, UNIT_MAGIC);
	store_le16(line + OWNER_AT, header->owner);
	line[CLASS_AT] = header->size_class;
	store_le32(line + RUN_AT, header->run);
	store_le64(line + SESSION_AT, header->session);
}

bool unit_header_decode(const uint8_t line[64], struct unit_header *header)
{
	header->owner = load_le16(line + OWNER_AT);
	header->size_class = line[CLASS_AT];
	header->run = load_le32(line + RUN_AT);
	header->session = load_le64(line + SESSION_AT);
	return load_le32(line) == UNIT_MAGIC && header->run > 0 &&
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
