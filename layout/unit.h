/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap is handed out in units of 64 KiB. A client carves a unit into blocks of one class; a
 * class above what one unit holds takes a run of units and has one block. The header:
 *
 *    0 magic u32   4 owner u16 (client id)   6 class u8   7 reserved   8 run u32   12 reserved u32
 *   16 session u64   24 reserved             64 free bitmap, 16 words of 64 bits
 *
 * Blocks start at 256. Bit i of the bitmap says that block i's instance has been skipped by a slot
 * CAS.
 * Index segments lie in units of their own, which have no header (layout/region.h).
 */
#ifndef FARKV_LAYOUT_UNIT_H
#define FARKV_LAYOUT_UNIT_H

#include "layout/size_class.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	UNIT_BYTES = 65536,
	UNIT_BITMAP_AT = 64,
	UNIT_BITMAP_WORDS = 16,
	UNIT_BLOCKS_AT = 256,
};

struct unit_header {
	uint16_t owner;
	uint8_t size_class;
	uint32_t run; /* units in the run, >= 1 */
	uint64_t session;
};

/* Encodes the first line; the bitmap is left alone. */
void unit_header_encode(const struct unit_header *header, uint8_t line[64]);
bool unit_header_decode(const uint8_t line[64], struct unit_header *header);

/* Units that a block of this class needs in a row; 0 for what is no class. */
static inline uint32_t unit_run(unsigned size_class)
{
	uint32_t bytes = size_class_bytes(size_class);

	return bytes == 0 ? 0 : (bytes + UNIT_BLOCKS_AT + UNIT_BYTES - 1) / UNIT_BYTES;
}

/* Blocks of this class in a unit (or run); 0 for what is no class. */
static inline uint32_t unit_blocks(unsigned size_class)
{
	uint32_t run = unit_run(size_class);

	if (run != 1)
		return run > 1 ? 1 : 0;
	return (UNIT_BYTES - UNIT_BLOCKS_AT) / size_class_bytes(size_class);
}

static inline uint64_t unit_block_at(uint64_t unit_offset, unsigned size_class, uint32_t index)
{
	return unit_offset + UNIT_BLOCKS_AT + (uint64_t)index * size_class_bytes(size_class);
}

/* Where the free bit of a block is. */
struct unit_bit {
	uint64_t unit_offset;
	uint64_t word_offset; /* in the region: the FAA target */
	uint64_t mask;
	uint32_t index; /* of the block in its unit */
};

/*
 * False: no block of this class begins there. Whether the unit lies in the heap is for the caller
 * to say (the heap begins at a multiple of UNIT_BYTES).
 */
bool unit_bit_of_block(uint64_t block_offset, unsigned size_class, struct unit_bit *bit);

#endif
