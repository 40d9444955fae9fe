/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory: a header line (global depth), then 2^max_depth entries of 8 bytes:
 * valid:1 | depth:6 | segment number:57, high to low. A segment's number is its offset in the
 * region / 4096; no region has more than DIRECTORY_SEGMENTS_MAX.
 */
#ifndef FARKV_LAYOUT_DIRECTORY_H
#define FARKV_LAYOUT_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { DIRECTORY_SEGMENTS_MAX = 1 << 28 }; /* of 4 KiB in 1 TiB */

struct directory_entry {
	uint64_t segment; /* offset in the region / SEGMENT_BYTES; 0 = no entry */
	uint8_t depth;    /* local depth */
};

uint64_t directory_entry_pack(struct directory_entry entry);
/* False: no entry, or depth or segment are out of any region's range. */
bool directory_entry_unpack(uint64_t word, struct directory_entry *entry);

struct directory_header {
	uint32_t depth; /* global depth */
};

void directory_header_encode(struct directory_header header, uint8_t line[64]);
/* False: not a directory header, or the depth is 0 or above max_depth. */
bool directory_header_decode(const uint8_t line[64], uint32_t max_depth,
			     struct directory_header *header);

#endif
