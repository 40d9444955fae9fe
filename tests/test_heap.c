/* SPDX-License-Identifier: Apache-2.0 */
#include "cn/heap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "layout/bytes.h"

static struct geometry geometry;
static struct epoch epoch;
static _Atomic uint64_t *owners;

static void open_heap(struct heap *heap)
{
	cr_assert_eq(geometry_compute(64 << 20, 1000, &geometry), 0);
	epoch_init(&epoch, &(struct load){.epoch = 5, .safe_epoch = 4});
	owners = calloc(geometry.unit_count, sizeof *owners);
	heap_init(heap, &epoch, &geometry, owners, 1);
}

static void close_heap(struct heap *heap)
{
	heap_free(heap);
	free(owners);
}

static uint64_t unit_at(unsigned i)
{
	return geometry.heap_offset + (uint64_t)(geometry.segment_units + i) * UNIT_BYTES;
}

static void load_arrives(uint64_t number, uint64_t newest, uint64_t safe)
{
	epoch_load_arrived(&epoch, &(struct load){.epoch = newest, .safe_epoch = safe}, number);
}

Test(heap, hands_out_every_block_of_a_unit_once)
{
	struct heap heap;
	struct heap_block block;
	uint64_t seen[1024];
	unsigned count = 0;

	open_heap(&heap);
	cr_assert_not(heap_take(&heap, 2, &block));
	cr_assert_eq(heap_add_unit(&heap, unit_at(0), 2), 0);
	while (heap_take(&heap, 2, &block)) {
		cr_assert_eq(block.offset % 64, 0);
		cr_assert_geq(block.offset, unit_at(0) + UNIT_BLOCKS_AT);
		cr_assert_leq(block.offset + 128, unit_at(1));
		for (unsigned i = 0; i < count; i++)
			cr_assert_neq(seen[i], block.offset);
		seen[count++] = block.offset;
	}
	cr_assert_eq(count, unit_blocks(2));
	heap_give_back(&heap, (struct heap_block){seen[7], 2});
	cr_assert(heap_take(&heap, 2, &block));
	cr_assert_eq(block.offset, seen[7]);
	close_heap(&heap);
}

Test(heap, own_block_waits_for_an_epoch_read_after_it_was_skipped)
{
	struct heap heap;
	struct heap_block block, again;

	open_heap(&heap);
	heap_add_unit(&heap, unit_at(0), 50); /* one block to the unit run */
	cr_assert(heap_take(&heap, 50, &block));
	atomic_store(&epoch.load_posted, 3); /* READ 3 is out when the block is skipped */
	cr_assert(heap_retire(&heap, block));
	load_arrives(3, 9, 9);
	heap_reap(&heap);
	cr_assert_not(heap_take(&heap, 50, &again), "READ 3 was posted too early to tell");
	load_arrives(4, 10, 10);
	heap_reap(&heap);
	cr_assert_not(heap_take(&heap, 50, &again), "retired at 10: safe 10 is not above it");
	load_arrives(5, 12, 11);
	heap_reap(&heap);
	cr_assert(heap_take(&heap, 50, &again));
	cr_assert_eq(again.offset, block.offset);
	close_heap(&heap);
}

Test(heap, foreign_block_is_not_retired_here)
{
	struct heap heap;

	open_heap(&heap);
	heap_add_unit(&heap, unit_at(0), 2);
	cr_assert_not(heap_retire(&heap, (struct heap_block){unit_at(1) + UNIT_BLOCKS_AT, 2}));
	cr_assert_not(heap_retire(&heap, (struct heap_block){unit_at(0) + UNIT_BLOCKS_AT, 3}),
		      "another class");
	cr_assert_not(heap_retire(&heap, (struct heap_block){64, 2}), "below the heap");
	close_heap(&heap);
}

Test(heap, marked_blocks_are_cleared_after_their_epoch_and_counted_once)
{
	struct heap heap;
	struct heap_block block;
	uint8_t bitmap[128] = {0};
	uint32_t units[HEAP_SCAN_UNITS];

	open_heap(&heap);
	heap_add_unit(&heap, unit_at(0), 2);
	while (heap_take(&heap, 2, &block))
		;
	store_le64(bitmap, 0x15);
	cr_assert_eq(heap_scan_next(&heap, 2, units), 1);
	cr_assert_eq(heap_scan_arrived(&heap, units[0], bitmap, 20), 3);
	cr_assert_eq(heap_scan_next(&heap, 2, units), 0, "not scanned again before it is cleared");
	cr_assert_eq(heap_scan_arrived(&heap, 0, bitmap, 20), 0);
	load_arrives(1, 20, 20);
	cr_assert_eq(heap_next_to_clear(&heap, 2), HEAP_NO_UNIT);
	load_arrives(2, 22, 21);
	cr_assert_eq(heap_next_to_clear(&heap, 2), 0);
	cr_assert_eq(heap_next_to_clear(&heap, 2), HEAP_NO_UNIT, "its FAAs are in flight");
	cr_assert_not(heap_take(&heap, 2, &block), "not before they have completed");
	heap_cleared(&heap, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(heap_take(&heap, 2, &block));
	cr_assert_not(heap_take(&heap, 2, &block));
	close_heap(&heap);
}
