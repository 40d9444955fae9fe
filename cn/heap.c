/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one session at one memory node.
 *
 * A block is free, taken, or coming back. Exactly one slot CAS skips an instance, so exactly one
 * client retires its block, once:
 *
 *   skipped by this session     limbo: the retire epoch is that of a READ of the load line posted
 * after the slot CAS was seen (never the epoch one happens to know); free when safe is above it.
 *   skipped by anybody else     a bit in the unit's bitmap, set with FAA. We READ bitmap and, after
 * it in the same chain, the load line: that epoch is the bits' retire epoch. When safe is above it,
 * the bits are cleared with FAA, and the blocks are free once that FAA has completed.
 *
 * While a unit has marked bits not yet cleared, further scans of it are ignored: a bit stands for
 * one retirement, and a second look at the same bit must not count it again.
 *
 * Blocks given back were never reachable and are free at once.
 */
#include "cn/heap.h"

#include "layout/bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void heap_init(struct heap *heap, struct epoch *epoch, const struct geometry *geometry,
	       _Atomic uint64_t *unit_owner, uint32_t link_tag)
{
	memset(heap, 0, sizeof *heap);
	heap->epoch = epoch;
	heap->geometry = geometry;
	heap->unit_owner = unit_owner;
	heap->link_tag = link_tag;
}

static uint64_t unit_number(const struct heap *heap, uint64_t unit_offset)
{
	return (unit_offset - heap->geometry->heap_offset) / UNIT_BYTES;
}

void heap_free(struct heap *heap)
{
	for (uint32_t i = 0; i < heap->unit_count; i++)
		atomic_store(&heap->unit_owner[unit_number(heap, heap->units[i].offset)], 0);
	for (unsigned c = 0; c < SIZE_CLASS_COUNT; c++)
		free(heap->classes[c].units);
	free(heap->units);
	free(heap->limbo);
	memset(heap, 0, sizeof *heap);
}

static struct heap_unit *own_unit(struct heap *heap, struct heap_block block, struct unit_bit *bit)
{
	uint64_t tag;

	if (block.offset < heap->geometry->heap_offset ||
	    block.offset >= heap->geometry->heap_offset + heap->geometry->unit_count * UNIT_BYTES ||
	    !unit_bit_of_block(block.offset, block.size_class, bit))
		return NULL;
	tag = atomic_load_explicit(&heap->unit_owner[unit_number(heap, bit->unit_offset)],
				   memory_order_acquire);
	if (tag >> 32 != heap->link_tag)
		return NULL;
	return &heap->units[(uint32_t)tag - 1];
}

static void set_free(struct heap *heap, struct heap_unit *unit, uint32_t index)
{
	uint64_t mask = UINT64_C(1) << index % 64;

	assert(!(unit->free[index / 64] & mask));
	unit->free[index / 64] |= mask;
	unit->free_count++;
	heap->classes[unit->size_class].free_count++;
}

static bool take_from(struct heap *heap, struct heap_unit *unit, struct heap_block *block)
{
	for (unsigned w = 0; w < UNIT_BITMAP_WORDS; w++) {
		unsigned bit;

		if (unit->free[w] == 0)
			continue;
		bit = (unsigned)__builtin_ctzll(unit->free[w]);
		unit->free[w] &= unit->free[w] - 1;
		unit->free_count--;
		heap->classes[unit->size_class].free_count--;
		block->size_class = unit->size_class;
		block->offset = unit_block_at(unit->offset, unit->size_class, w * 64 + bit);
		return true;
	}
	return false;
}

bool heap_take(struct heap *heap, unsigned size_class, struct heap_block *block)
{
	struct heap_class *class = &heap->classes[size_class];

	if (class->free_count == 0)
		return false;
	for (uint32_t i = 0; i < class->unit_count; i++) {
		struct heap_unit *unit = &heap->units[class->units[class->cursor]];

		if (unit->free_count > 0 && take_from(heap, unit, block))
			return true;
		class->cursor = (class->cursor + 1) % class->unit_count;
	}
	assert(!"free_count says there is a block");
	return false;
}

void heap_give_back(struct heap *heap, struct heap_block block)
{
	struct unit_bit bit;
	struct heap_unit *unit = own_unit(heap, block, &bit);

	assert(unit);
	set_free(heap, unit, bit.index);
}

bool heap_retire(struct heap *heap, struct heap_block block)
{
	struct unit_bit bit;
	struct heap_unit *unit = own_unit(heap, block, &bit);
	struct heap_limbo *limbo;

	if (!unit || unit->size_class != block.size_class)
		return false;
	assert(heap->limbo_count < heap->limbo_capacity);
	limbo = &heap->limbo[(heap->limbo_head + heap->limbo_count++) % heap->limbo_capacity];
	limbo->unit = (uint32_t)(unit - heap->units);
	limbo->index = bit.index;
	limbo->epoch = 0;
	/* seq_cst: our slot CAS has been seen before this load; a READ numbered above it is posted
	 * after it. */
	limbo->load_number = atomic_load(&heap->epoch->load_posted) + 1;
	heap->classes[block.size_class].limbo_count++;
	return true;
}

static int grow(void **array, uint32_t *capacity, uint32_t needed, size_t element)
{
	uint32_t next = *capacity ? *capacity : 16;
	void *grown;

	while (next < needed)
		next *= 2;
	if (next == *capacity)
		return 0;
	grown = realloc(*array, next * element);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = next;
	return 0;
}

/* The ring is straightened while it grows. */
static int grow_limbo(struct heap *heap, uint64_t needed)
{
	uint32_t capacity = heap->limbo_capacity ? heap->limbo_capacity : 1024;
	struct heap_limbo *ring;

	while (capacity < needed)
		capacity *= 2;
	if (capacity == heap->limbo_capacity)
		return 0;
	ring = malloc(capacity * sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < heap->limbo_count; i++)
		ring[i] = heap->limbo[(heap->limbo_head + i) % heap->limbo_capacity];
	free(heap->limbo);
	heap->limbo = ring;
	heap->limbo_head = 0;
	heap->limbo_capacity = capacity;
	return 0;
}

int heap_add_unit(struct heap *heap, uint64_t offset, unsigned size_class)
{
	struct heap_class *class = &heap->classes[size_class];
	struct heap_unit *unit;

	if (grow((void **)&heap->units, &heap->unit_capacity, heap->unit_count + 1,
		 sizeof *heap->units) ||
	    grow((void **)&class->units, &class->capacity, class->unit_count + 1,
		 sizeof *class->units) ||
	    grow_limbo(heap, heap->blocks_owned + unit_blocks(size_class)))
		return -ENOMEM;
	unit = &heap->units[heap->unit_count];
	memset(unit, 0, sizeof *unit);
	unit->offset = offset;
	unit->size_class = (uint8_t)size_class;
	unit->blocks = unit_blocks(size_class);
	heap->blocks_owned += unit->blocks;
	class->cursor = class->unit_count;
	class->units[class->unit_count++] = heap->unit_count++;
	for (uint32_t i = 0; i < unit->blocks; i++)
		set_free(heap, unit, i);
	atomic_store_explicit(&heap->unit_owner[unit_number(heap, offset)],
			      (uint64_t)heap->link_tag << 32 | heap->unit_count,
			      memory_order_release);
	return 0;
}

static struct heap_limbo *limbo_at(struct heap *heap, uint32_t i)
{
	return &heap->limbo[(heap->limbo_head + i) % heap->limbo_capacity];
}

bool heap_reap(struct heap *heap)
{
	uint64_t done = atomic_load_explicit(&heap->epoch->load_done, memory_order_acquire);
	uint64_t safe = atomic_load_explicit(&heap->epoch->safe, memory_order_acquire);
	uint64_t newest = atomic_load_explicit(&heap->epoch->newest, memory_order_acquire);

	if (done == heap->reaped_done)
		return false;
	heap->reaped_done = done;
	/* First come, first ripe: numbers and epochs only grow along the ring. */
	while (heap->limbo_stamped < heap->limbo_count) {
		struct heap_limbo *limbo = limbo_at(heap, heap->limbo_stamped);

		if (done < limbo->load_number)
			break;
		limbo->epoch = newest;
		heap->limbo_stamped++;
	}
	while (heap->limbo_stamped > 0) {
		struct heap_limbo *limbo = limbo_at(heap, 0);
		struct heap_unit *unit = &heap->units[limbo->unit];

		if (safe <= limbo->epoch)
			break;
		heap->classes[unit->size_class].limbo_count--;
		set_free(heap, unit, limbo->index);
		heap->limbo_head = (heap->limbo_head + 1) % heap->limbo_capacity;
		heap->limbo_count--;
		heap->limbo_stamped--;
	}
	return true;
}

static bool is_marked(const struct heap_unit *unit)
{
	for (unsigned w = 0; w < UNIT_BITMAP_WORDS; w++)
		if (unit->marked[w])
			return true;
	return false;
}

uint32_t heap_scan_next(struct heap *heap, unsigned size_class, uint32_t units[HEAP_SCAN_UNITS])
{
	struct heap_class *class = &heap->classes[size_class];
	uint32_t count = 0;

	for (uint32_t i = 0; i < class->unit_count && count < HEAP_SCAN_UNITS; i++) {
		uint32_t unit = class->units[class->scan_cursor];

		class->scan_cursor = (class->scan_cursor + 1) % class->unit_count;
		if (!is_marked(&heap->units[unit]))
			units[count++] = unit;
	}
	return count;
}

uint32_t heap_scan_arrived(struct heap *heap, uint32_t index, const uint8_t bitmap[128],
			   uint64_t epoch)
{
	struct heap_unit *unit = &heap->units[index];
	struct heap_class *class = &heap->classes[unit->size_class];
	uint32_t found = 0;

	if (is_marked(unit))
		return 0;
	for (unsigned w = 0; w < UNIT_BITMAP_WORDS; w++) {
		unit->marked[w] = load_le64(bitmap + 8 * w);
		found += (uint32_t)__builtin_popcountll(unit->marked[w]);
	}
	unit->marked_epoch = epoch;
	class->limbo_count += found;
	class->dry_scans = found ? 0 : class->dry_scans + 1;
	return found;
}

int64_t heap_next_to_clear(struct heap *heap, unsigned size_class)
{
	uint64_t safe = atomic_load_explicit(&heap->epoch->safe, memory_order_acquire);
	struct heap_class *class = &heap->classes[size_class];

	for (uint32_t i = 0; i < class->unit_count; i++) {
		struct heap_unit *unit = &heap->units[class->units[i]];

		if (!unit->clearing && safe > unit->marked_epoch && is_marked(unit)) {
			unit->clearing = true;
			return class->units[i];
		}
	}
	return HEAP_NO_UNIT;
}

void heap_cleared(struct heap *heap, uint32_t index)
{
	struct heap_unit *unit = &heap->units[index];

	for (unsigned w = 0; w < UNIT_BITMAP_WORDS; w++) {
		uint64_t bits = unit->marked[w];

		unit->marked[w] = 0;
		for (; bits; bits &= bits - 1) {
			uint32_t block = w * 64 + (uint32_t)__builtin_ctzll(bits);

			if (block < unit->blocks)
				set_free(heap, unit, block);
			heap->classes[unit->size_class].limbo_count--;
		}
	}
	unit->clearing = false;
}

bool heap_expects(const struct heap *heap, unsigned size_class)
{
	const struct heap_class *class = &heap->classes[size_class];

	/* Marks appear at any time: a full round of scans must have found nothing before we say no.
	 */
	return class->limbo_count > 0 || class->dry_scans < 2 * class->unit_count;
}

bool heap_prefers_waiting(const struct heap *heap, unsigned size_class)
{
	const struct heap_class *class = &heap->classes[size_class];

	return class->unit_count >= 16 &&
	       class->limbo_count >= class->unit_count * unit_blocks(size_class) / 2;
}
