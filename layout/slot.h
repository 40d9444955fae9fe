/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index entry: fingerprint:13 | frozen:1 | tag:8 | class:8 | offset:34, high to low.
 * 0 = empty. tag = low 8 bits of the named instance's sequence; class = size class of the block, so
 * that a reader knows how much to READ; offset in units of 64 bytes from the region's start. MOVED
 * stands in a slot that a split has emptied: a reader refreshes its directory, an insert treats it
 * as empty.
 */
#ifndef FARKV_LAYOUT_SLOT_H
#define FARKV_LAYOUT_SLOT_H

#include <stdbool.h>
#include <stdint.h>

enum { SLOT_OFFSET_BITS = 34, SLOT_TAG_BITS = 8, SLOT_FINGERPRINT_SHIFT = 51 };

#define SLOT_EMPTY UINT64_C(0)
#define SLOT_MOVED (UINT64_C(0xff) << SLOT_OFFSET_BITS) /* class 255, offset 0 */

struct slot {
	uint16_t fingerprint; /* 13 bits */
	bool frozen;
	uint8_t tag;
	uint8_t size_class;
	uint64_t offset; /* bytes, a multiple of 64, below 1 TiB */
};

uint64_t slot_pack(struct slot slot);
struct slot slot_unpack(uint64_t word);

static inline bool slot_is_free(uint64_t word)
{
	return word == SLOT_EMPTY || word == SLOT_MOVED;
}

static inline uint32_t slot_fingerprint(uint64_t word)
{
	return (uint32_t)(word >> SLOT_FINGERPRINT_SHIFT);
}

#endif
