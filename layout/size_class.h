/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes of blocks: 64 to 512 bytes by 64, then four per doubling up to 1.25 MiB, which holds
 * a value of 1 MiB with header and key. Class 0 is no class.
 */
#ifndef FARKV_LAYOUT_SIZE_CLASS_H
#define FARKV_LAYOUT_SIZE_CLASS_H

#include <stddef.h>
#include <stdint.h>

enum { SIZE_CLASS_COUNT = 54 }; /* 1..53 are classes; 53 is 1.25 MiB */

/* Bytes of a class, a multiple of 64; 0 for what is no class. */
static inline uint32_t size_class_bytes(unsigned size_class)
{
	if (size_class == 0 || size_class >= SIZE_CLASS_COUNT)
		return 0;
	if (size_class <= 8)
		return 64 * size_class;
	unsigned step = size_class - 9;
	return (512u << (step / 4)) + (128u << (step / 4)) * (step % 4 + 1);
}

/* The smallest class that holds `bytes`; 0 where none does. */
static inline unsigned size_class_of(size_t bytes)
{
	if (bytes <= 512)
		return bytes == 0 ? 1 : (unsigned)((bytes + 63) / 64);
	for (unsigned c = 9; c < SIZE_CLASS_COUNT; c++)
		if (size_class_bytes(c) >= bytes)
			return c;
	return 0;
}

#endif
