/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks for one session at one memory node: fresh units carved into blocks of one class, blocks of
 * one's own that came back, and blocks that others have marked free in the unit's bitmap. See
 * heap.c for the rules.
 */
#ifndef FARKV_CN_HEAP_H
#define FARKV_CN_HEAP_H

#include "cn/epoch.h"
#include "layout/region.h"
#include "layout/unit.h"

#include <stdbool.h>
#include <stdint.h>

enum { HEAP_SCAN_UNITS = 8, HEAP_NO_UNIT = -1 };

struct heap_unit {
	uint64_t offset;
	uint64_t free[UNIT_BITMAP_WORDS];   /* blocks that may be handed out */
	uint64_t marked[UNIT_BITMAP_WORDS]; /* seen set in the bitmap, waiting for their epoch */
	uint64_t marked_epoch;		    /* of all bits in `marked` */
	uint32_t free_count;
	uint32_t blocks;
	uint8_t size_class;
	bool clearing; /* the FAAs that clear `marked` are in flight */
};

struct heap_block {
	uint64_t offset;
	uint8_t size_class;
};

/* A block of our own on its way back. */
struct heap_limbo {
	uint32_t unit, index;
	uint64_t load_number; /* a READ of the load line with this number or a later one tells its
				 retire epoch */
	uint64_t epoch;	      /* of the entries counted by limbo_stamped */
};

struct heap_class {
	uint32_t *units; /* indices of units of this class */
	uint32_t unit_count, capacity;
	uint32_t cursor;      /* where handing out looks next */
	uint32_t scan_cursor; /* where scanning goes on */
	uint32_t free_count;  /* blocks that may be handed out */
	uint32_t limbo_count; /* own blocks in limbo or marked, known to come back */
	uint32_t dry_scans;   /* units scanned in a row that had nothing */
};

struct heap {
	struct heap *next; /* among the spare heaps of a node */
	struct epoch *epoch;
	_Atomic uint64_t *unit_owner; /* of the process: owner tag of each unit, 0 = not ours */
	const struct geometry *geometry;
	uint32_t link_tag; /* this heap's tag in unit_owner, high half; low half is the unit's index
			      + 1 */
	struct heap_unit *units;
	uint32_t unit_count, unit_capacity;
	struct heap_class classes[SIZE_CLASS_COUNT];
	struct heap_limbo *limbo;			  /* ring */
	uint32_t limbo_head, limbo_count, limbo_capacity; /* capacity >= blocks owned: never full */
	uint32_t limbo_stamped; /* of them, from the head on, with a known epoch */
	uint64_t reaped_done;	/* load_done at the last reaping */
	uint64_t blocks_owned;
};

void heap_init(struct heap *heap, struct epoch *epoch, const struct geometry *geometry,
	       _Atomic uint64_t *unit_owner, uint32_t link_tag);
void heap_free(struct heap *heap);

/* A block, or false: none at hand. */
bool heap_take(struct heap *heap, unsigned size_class, struct heap_block *block);
/* A block that was never reachable. */
void heap_give_back(struct heap *heap, struct heap_block block);
/* An instance that a slot CAS of ours has skipped. False: not of this heap: mark it at the memory
 * node. */
bool heap_retire(struct heap *heap, struct heap_block block);
/* A new unit (or run) whose header has been posted. -ENOMEM. */
int heap_add_unit(struct heap *heap, uint64_t offset, unsigned size_class);
/* Moves blocks whose epoch has passed to the free ones. False: nothing can have changed since the
 * last time. */
bool heap_reap(struct heap *heap);

/* Units of this class to scan next, at most HEAP_SCAN_UNITS; returns how many. */
uint32_t heap_scan_next(struct heap *heap, unsigned size_class, uint32_t units[HEAP_SCAN_UNITS]);
/* What a scan of one unit READ, and the epoch READ after it. Returns the bits that are new. */
uint32_t heap_scan_arrived(struct heap *heap, uint32_t unit, const uint8_t bitmap[128],
			   uint64_t epoch);
/* A unit with marked blocks whose epoch has passed: its bits may be cleared now. HEAP_NO_UNIT: none
 * of this class. */
int64_t heap_next_to_clear(struct heap *heap, unsigned size_class);
/* The FAAs have completed. */
void heap_cleared(struct heap *heap, uint32_t unit);
/* Whether memory of this class is on its way: waiting is better than a fresh unit, or the only
 * hope. */
bool heap_expects(const struct heap *heap, unsigned size_class);
/* Whether half of what this class owns is on its way back: no fresh unit then. */
bool heap_prefers_waiting(const struct heap *heap, unsigned size_class);

#endif
