/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment = 4 KiB = 16 buckets; bucket = 256 bytes = 4 lines; line = guard + 7 slots. So a bucket
 * is one READ, holds 28 slots, and every line describes itself.
 */
#ifndef FARKV_LAYOUT_BUCKET_H
#define FARKV_LAYOUT_BUCKET_H

#include "layout/bytes.h"
#include "layout/guard.h"
#include "layout/slot.h"

#include <stdbool.h>

enum {
	BUCKET_LINES = 4,
	LINE_SLOTS = 7,
	BUCKET_SLOTS = BUCKET_LINES * LINE_SLOTS,
	BUCKET_BYTES = BUCKET_LINES * LINE_BYTES,
	SEGMENT_BUCKETS = 16,
	SEGMENT_BYTES = SEGMENT_BUCKETS * BUCKET_BYTES,
};

/* Offset in the bucket of slot i, 0..27. Line 0's guard is at offset 0. */
static inline uint32_t bucket_slot_at(unsigned i)
{
	return (i / LINE_SLOTS) * LINE_BYTES + 8 + (i % LINE_SLOTS) * 8;
}

static inline uint64_t bucket_slot(const uint8_t *bucket, unsigned i)
{
	return load_le64(bucket + bucket_slot_at(i));
}

static inline uint64_t bucket_guard(const uint8_t *bucket, unsigned line)
{
	return load_le64(bucket + line * LINE_BYTES);
}

/* Whether all four lines serve hash h. */
bool bucket_serves(const uint8_t *bucket, uint64_t h);
/* Slots with h's fingerprint: their indices go to found[28]; returns how many. */
unsigned bucket_find(const uint8_t *bucket, uint64_t h, uint8_t found[BUCKET_SLOTS]);
/* The first free slot's index, or -1. */
int bucket_find_free(const uint8_t *bucket);
/* Writes an empty, unlocked segment; depth 1..30, suffix below 2^depth. */
void segment_format(uint8_t *segment, unsigned depth, uint32_t suffix);

#endif
