/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds in a region at rest:
 *   - every directory entry leads to a segment whose guards have the entry's depth and suffix;
 *   - no guard is locked;
 *   - every slot leads, over FORWARDs if need be, to a sound block whose key hashes to that very
 * bucket and fingerprint;
 *   - no key is LIVE twice;
 *   - the striped items counter adds up to the LIVE keys.
 * A slot that leads to a DEAD tail, or over a FORWARD, is owed work left undone: legal, and
 * counted.
 */
#include "tools/fsck.h"

#include "layout/block.h"
#include "layout/bucket.h"
#include "layout/bytes.h"
#include "layout/control.h"
#include "layout/directory.h"
#include "layout/place.h"
#include "layout/region.h"
#include "layout/size_class.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROBLEMS_PRINTED = 20, CHAIN_MAX = 1000 };

struct fsck {
	const uint8_t *bytes;
	uint64_t length;
	struct superblock super;
	struct fsck_report *report;
	struct key_hash *live; /* of every LIVE key */
	uint64_t live_count, live_capacity;
};

static void problem(struct fsck *fsck, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void problem(struct fsck *fsck, const char *format, ...)
{
	va_list arguments;

	if (fsck->report->problems++ >= PROBLEMS_PRINTED)
		return;
	va_start(arguments, format);
	fputs("fsck: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static bool remember(struct fsck *fsck, struct key_hash hash)
{
	if (fsck->live_count == fsck->live_capacity) {
		uint64_t capacity = fsck->live_capacity ? 2 * fsck->live_capacity : 65536;
		struct key_hash *grown = realloc(fsck->live, capacity * sizeof *grown);

		if (!grown)
			return false;
		fsck->live = grown;
		fsck->live_capacity = capacity;
	}
	fsck->live[fsck->live_count++] = hash;
	return true;
}

static const uint8_t *block_at(struct fsck *fsck, uint64_t offset, unsigned size_class)
{
	uint32_t bytes = size_class_bytes(size_class);

	if (bytes == 0 || offset < fsck->super.geometry.heap_offset ||
	    offset + bytes > fsck->length)
		return NULL;
	return fsck->bytes + offset;
}

static void check_live(struct fsck *fsck, const struct block *block, uint64_t slot_at,
		       uint64_t segment_h)
{
	struct key_hash hash = key_hash(block->key, block->key_len, fsck->super.hash_seed);
	uint64_t bucket = slot_at / BUCKET_BYTES % SEGMENT_BUCKETS;
	uint64_t word = load_le64(fsck->bytes + slot_at);

	if (hash.low != block->hash)
		problem(fsck, "slot %#llx: the block's hash is not its key's",
			(unsigned long long)slot_at);
	if (place_bucket(hash.low) != bucket ||
	    slot_fingerprint(word) != place_fingerprint(hash.low) ||
	    !guard_serves(segment_h, hash.low))
		problem(fsck, "slot %#llx: its key belongs into another bucket",
			(unsigned long long)slot_at);
	fsck->report->keys++;
	fsck->report->bytes += block_bytes(block->key_len, block->value_len);
	if (!remember(fsck, hash))
		problem(fsck, "out of memory");
}

static void check_slot(struct fsck *fsck, uint64_t slot_at, uint64_t guard)
{
	struct slot slot = slot_unpack(load_le64(fsck->bytes + slot_at));
	uint64_t offset = slot.offset, tag = slot.tag, mask = 0xff;
	unsigned size_class = slot.size_class;

	fsck->report->slots++;
	for (unsigned step = 0; step < CHAIN_MAX; step++) {
		const uint8_t *at = block_at(fsck, offset, size_class);
		struct block block;
		struct forward next;

		if (!at || !block_decode(at, size_class_bytes(size_class), &block)) {
			problem(fsck, "slot %#llx leads to %#llx, which is no sound block",
				(unsigned long long)slot_at, (unsigned long long)offset);
			return;
		}
		switch (control_kind(block.control)) {
		case CONTROL_LIVE:
			if ((control_live_name(block.control, fsck->super.name_key) & mask) !=
			    (tag & mask))
				problem(fsck, "slot %#llx: another instance stands where it leads",
					(unsigned long long)slot_at);
			check_live(fsck, &block, slot_at, guard);
			return;
		case CONTROL_DEAD:
			fsck->report->dead_tails++;
			return;
		case CONTROL_FORWARD:
			next = control_forward(block.control);
			offset = next.offset;
			size_class = next.size_class;
			tag = next.tag;
			mask = bits_mask(CONTROL_TAG_BITS);
			fsck->report->followed++;
			break;
		default:
			problem(fsck, "slot %#llx leads to a block without a control word",
				(unsigned long long)slot_at);
			return;
		}
	}
	problem(fsck, "slot %#llx: an endless chain", (unsigned long long)slot_at);
}

static void check_line(struct fsck *fsck, uint64_t line_at, struct directory_entry entry,
		       uint32_t suffix)
{
	uint64_t word = load_le64(fsck->bytes + line_at);
	struct guard guard = guard_unpack(word);

	if (guard.depth != entry.depth || guard.suffix != suffix)
		problem(fsck,
			"line %#llx has depth %u and suffix %#x: the directory says %u and %#x",
			(unsigned long long)line_at, guard.depth, guard.suffix, entry.depth,
			suffix);
	if (guard.owner != 0) {
		fsck->report->locked++;
		problem(fsck, "line %#llx is locked by client %u", (unsigned long long)line_at,
			guard.owner);
	}
	for (unsigned i = 0; i < LINE_SLOTS; i++) {
		uint64_t slot_at = line_at + 8 + 8 * i;

		if (!slot_is_free(load_le64(fsck->bytes + slot_at)))
			check_slot(fsck, slot_at, word);
	}
}

static void check_index(struct fsck *fsck)
{
	const struct geometry *g = &fsck->super.geometry;
	struct directory_header header;

	if (!directory_header_decode(fsck->bytes + g->directory_offset, g->max_depth, &header)) {
		problem(fsck, "the directory's header is unreadable");
		return;
	}
	for (uint32_t i = 0; i < UINT32_C(1) << header.depth; i++) {
		struct directory_entry entry;
		uint64_t segment;

		if (!directory_entry_unpack(load_le64(fsck->bytes + geometry_directory_entry(g, i)),
					    &entry) ||
		    entry.segment * SEGMENT_BYTES < g->heap_offset ||
		    entry.segment * SEGMENT_BYTES + SEGMENT_BYTES > fsck->length ||
		    entry.depth > header.depth) {
			problem(fsck, "directory entry %u is senseless", i);
			continue;
		}
		if (i >> entry.depth)
			continue; /* an alias of a segment of lower depth, seen before */
		segment = entry.segment * SEGMENT_BYTES;
		fsck->report->segments++;
		for (uint64_t at = segment; at < segment + SEGMENT_BYTES; at += LINE_BYTES)
			check_line(fsck, at, entry, i);
	}
}

static int compare_hashes(const void *a, const void *b)
{
	const struct key_hash *left = a, *right = b;

	if (left->high != right->high)
		return left->high < right->high ? -1 : 1;
	return left->low < right->low ? -1 : left->low > right->low;
}

static void check_unique(struct fsck *fsck)
{
	if (fsck->live_count == 0)
		return;
	qsort(fsck->live, fsck->live_count, sizeof *fsck->live, compare_hashes);
	for (uint64_t i = 1; i < fsck->live_count; i++)
		if (compare_hashes(&fsck->live[i - 1], &fsck->live[i]) == 0)
			problem(fsck, "a key is there twice (hash %016llx)",
				(unsigned long long)fsck->live[i].low);
}

static void check_counters(struct fsck *fsck)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < COUNTER_STRIPES; i++)
		sum += load_le64(fsck->bytes +
				 geometry_counter(&fsck->super.geometry, COUNTER_ITEMS + i));
	fsck->report->items_counter = (int64_t)sum;
	if ((uint64_t)fsck->report->items_counter != fsck->report->keys)
		problem(fsck, "the items counter says %lld, %llu keys are there",
			(long long)fsck->report->items_counter,
			(unsigned long long)fsck->report->keys);
}

static int check_superblock(struct fsck *fsck, const char *path)
{
	int error = fsck->length < SUPERBLOCK_BYTES ? -EBADMSG
						    : superblock_decode(fsck->bytes, &fsck->super);

	if (error == -EPROTONOSUPPORT)
		fprintf(stderr, "fsck: %s has layout version %u, this program has %d\n", path,
			fsck->super.layout_version, LAYOUT_VERSION);
	else if (error || fsck->super.geometry.region_bytes > fsck->length)
		fprintf(stderr, "fsck: %s is no farkv region\n", path);
	return error ? error : fsck->super.geometry.region_bytes > fsck->length ? -EBADMSG : 0;
}

int fsck_region(const char *path, struct fsck_report *report)
{
	struct fsck fsck = {.report = report};
	struct stat stat;
	void *map;
	int error, fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(report, 0, sizeof *report);
	if (fd < 0 || fstat(fd, &stat) != 0 || stat.st_size == 0) {
		error = fd < 0 || errno ? -errno : -ENODATA;
		fprintf(stderr, "fsck: %s: %s\n", path, strerror(-error));
		if (fd >= 0)
			close(fd);
		return error;
	}
	fsck.length = (uint64_t)stat.st_size;
	map = mmap(NULL, fsck.length, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		fprintf(stderr, "fsck: mapping %s: %s\n", path, strerror(errno));
		return -errno;
	}
	fsck.bytes = map;
	error = check_superblock(&fsck, path);
	if (!error) {
		check_index(&fsck);
		check_unique(&fsck);
		check_counters(&fsck);
	}
	free(fsck.live);
	munmap(map, fsck.length);
	return error;
}
