/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/region.h"

#include "layout/bucket.h"
#include "layout/directory.h"
#include "layout/place.h"
#include "layout/unit.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <xxhash.h>

#define SUPERBLOCK_MAGIC UINT64_C(0x3130474552564b46) /* "FKVREG01" */

enum {
	/*
	 * Keys per bucket aimed at when formatting: with 28 slots and Poisson arrivals of mean 9 a
	 * bucket overflows once in some ten million, so that `expected_keys` fit without growth.
	 */
	KEYS_PER_BUCKET = 9,
	BYTES_PER_KEY_GUESS = 1024,
	VERSION_AT = 8,
	WORDS_AT = 16,
	CHECKSUM_AT = SUPERBLOCK_BYTES - 8,
	SEGMENTS_PER_UNIT = UNIT_BYTES / SEGMENT_BYTES,
};

/* Fields in order from WORDS_AT; the same list serves both ways. */
#define SUPERBLOCK_FIELDS(X)                                                                       \
	X(geometry.region_bytes) X(geometry.counters_offset) X(geometry.client_table_offset)       \
	X(geometry.client_count) X(geometry.max_depth) X(geometry.directory_offset)                \
	X(geometry.split_offset) X(geometry.heap_offset) X(geometry.unit_count)                    \
	X(geometry.initial_depth) X(geometry.segment_units) X(cluster_id) X(incarnation)           \
	X(hash_seed) X(name_key) X(features) X(mn_id) X(canary)

#define COUNT_FIELD(field) +1
enum { SUPERBLOCK_WORDS = 0 SUPERBLOCK_FIELDS(COUNT_FIELD) };
#undef COUNT_FIELD

_Static_assert(SUPERBLOCK_WORDS == 18 && WORDS_AT + SUPERBLOCK_WORDS * 8 <= CHECKSUM_AT,
	       "the fields lie between version and checksum; a new one is a new layout version");
_Static_assert((int)SUPERBLOCK_BYTES == (int)SEGMENT_BYTES &&
		       SPLIT_RECORD_BYTES % SEGMENT_BYTES == 0,
	       "parts begin at multiples of a segment");
_Static_assert(UNIT_BYTES % SEGMENT_BYTES == 0, "segments fill units");
_Static_assert(REGION_CLIENTS_DEFAULT <= 1 << 16, "every client id fits a guard's owner");

static unsigned log2_ceil(uint64_t value)
{
	unsigned bits = 0;

	while (bits < 63 && (UINT64_C(1) << bits) < value)
		bits++;
	return bits;
}

static void place_parts(struct geometry *g)
{
	uint64_t at = SUPERBLOCK_BYTES;

	g->counters_offset = at;
	at += round_up(COUNTER_LINES * LINE_BYTES, SEGMENT_BYTES);
	g->client_table_offset = at;
	at += round_up((uint64_t)g->client_count * LINE_BYTES, SEGMENT_BYTES);
	g->directory_offset = at;
	at += round_up(LINE_BYTES + (UINT64_C(8) << g->max_depth), SEGMENT_BYTES);
	g->split_offset = at;
	at += SPLIT_RECORD_BYTES;
	g->heap_offset = round_up(at, UNIT_BYTES);
}

static uint64_t segment_units(unsigned initial_depth)
{
	return ((UINT64_C(1) << initial_depth) + SEGMENTS_PER_UNIT - 1) / SEGMENTS_PER_UNIT;
}

static unsigned at_most(unsigned value, unsigned limit)
{
	return value < limit ? value : limit;
}

int geometry_compute(uint64_t region_bytes, uint64_t expected_keys, struct geometry *geometry)
{
	struct geometry g = { .region_bytes = region_bytes,
			      .client_count = REGION_CLIENTS_DEFAULT };
	uint64_t keys = expected_keys ? expected_keys : region_bytes / BYTES_PER_KEY_GUESS;

	if (region_bytes < REGION_BYTES_MIN || region_bytes > REGION_BYTES_MAX)
		return -EINVAL;
	if (keys > region_bytes / 64)
		return -EINVAL;
	g.initial_depth = log2_ceil((keys + KEYS_PER_BUCKET * SEGMENT_BUCKETS - 1) /
				    (KEYS_PER_BUCKET * SEGMENT_BUCKETS));
	if (g.initial_depth < PLACE_DEPTH_MIN)
		g.initial_depth = PLACE_DEPTH_MIN;
	/*
	 * A region full of the smallest blocks has a segment per 16 to 17 KiB (those split at 72 %,
	 * and so are 44 % full on average), and the deepest of them lie one below the mean.
	 */
	g.max_depth = at_most(log2_ceil(region_bytes / 8192), PLACE_DEPTH_MAX);
	/* Room to split once, for the rare bucket that overflows at the expected number. */
	if (g.max_depth <= g.initial_depth)
		g.max_depth = at_most(g.initial_depth + 1, PLACE_DEPTH_MAX);
	if (g.initial_depth > g.max_depth)
		return -EINVAL;
	place_parts(&g);
	if (g.heap_offset >= region_bytes)
		return -EINVAL;
	g.unit_count = (region_bytes - g.heap_offset) / UNIT_BYTES;
	g.segment_units = (uint32_t)segment_units(g.initial_depth);
	if (g.segment_units >= g.unit_count)
		return -EINVAL;
	*geometry = g;
	return 0;
}

uint64_t region_canary(uint64_t incarnation)
{
	uint8_t bytes[8];

	store_le64(bytes, incarnation);
	return XXH3_64bits_withSeed(bytes, sizeof bytes, SUPERBLOCK_MAGIC);
}

void superblock_encode(const struct superblock *superblock, uint8_t out[SUPERBLOCK_BYTES])
{
	struct superblock copy = *superblock;
	uint8_t *at = out + WORDS_AT;

	copy.canary = region_canary(copy.incarnation);
	memset(out, 0, SUPERBLOCK_BYTES);
	store_le64(out, SUPERBLOCK_MAGIC);
	store_le32(out + VERSION_AT, copy.layout_version);
#define STORE(field) store_le64(at, copy.field); at += 8;
	SUPERBLOCK_FIELDS(STORE)
#undef STORE
	store_le64(out + CHECKSUM_AT, XXH3_64bits(out, CHECKSUM_AT));
}

/* Everything below trusts the geometry, so it must be one that geometry_compute can give. */
static bool geometry_is_sound(const struct geometry *g)
{
	struct geometry again = *g;

	if (g->region_bytes < REGION_BYTES_MIN || g->region_bytes > REGION_BYTES_MAX ||
	    g->client_count < 2 || g->client_count > 65536 || g->max_depth > PLACE_DEPTH_MAX ||
	    g->initial_depth < PLACE_DEPTH_MIN || g->initial_depth > g->max_depth)
		return false;
	place_parts(&again);
	return again.counters_offset == g->counters_offset &&
	       again.client_table_offset == g->client_table_offset &&
	       again.directory_offset == g->directory_offset &&
	       again.split_offset == g->split_offset && again.heap_offset == g->heap_offset &&
	       g->heap_offset < g->region_bytes &&
	       g->unit_count == (g->region_bytes - g->heap_offset) / UNIT_BYTES &&
	       g->segment_units == segment_units(g->initial_depth) &&
	       g->unit_count > g->segment_units;
}

int superblock_decode(const uint8_t in[SUPERBLOCK_BYTES], struct superblock *superblock)
{
	static const uint8_t zeros[SUPERBLOCK_BYTES];
	const uint8_t *at = in + WORDS_AT;
	bool fits = true;

	memset(superblock, 0, sizeof *superblock);
	if (memcmp(in, zeros, SUPERBLOCK_BYTES) == 0)
		return -ENODATA;
	if (load_le64(in) != SUPERBLOCK_MAGIC)
		return -EBADMSG;
	superblock->layout_version = load_le32(in + VERSION_AT);
	if (superblock->layout_version != LAYOUT_VERSION)
		return -EPROTONOSUPPORT;
	if (load_le64(in + CHECKSUM_AT) != XXH3_64bits(in, CHECKSUM_AT))
		return -EBADMSG;
#define LOAD(field)                                                                                \
	superblock->field = (__typeof__(superblock->field))load_le64(at);                          \
	fits = fits && superblock->field == load_le64(at);                                         \
	at += 8;
	SUPERBLOCK_FIELDS(LOAD)
#undef LOAD
	if (!fits || superblock->canary != region_canary(superblock->incarnation) ||
	    !geometry_is_sound(&superblock->geometry))
		return -EBADMSG;
	return 0;
}

static void format_index(uint8_t *bytes, const struct geometry *g)
{
	uint32_t segments = 1u << g->initial_depth;

	directory_header_encode((struct directory_header){ .depth = g->initial_depth },
				bytes + g->directory_offset);
	memset(bytes + geometry_directory_entry(g, 0), 0, (size_t)8 << g->max_depth);
	for (uint32_t i = 0; i < segments; i++) {
		uint64_t offset = g->heap_offset + (uint64_t)i * SEGMENT_BYTES;
		struct directory_entry entry = { .segment = offset / SEGMENT_BYTES,
						 .depth = (uint8_t)g->initial_depth };

		segment_format(bytes + offset, g->initial_depth, i);
		store_le64(bytes + geometry_directory_entry(g, i), directory_entry_pack(entry));
	}
}

void region_format(uint8_t *bytes, const struct superblock *superblock, uint64_t epoch,
		   uint64_t time_ms)
{
	const struct geometry *g = &superblock->geometry;
	struct load load = { .epoch = epoch, .safe_epoch = epoch - 1, .time_ms = time_ms,
			     .read_rate = LOAD_RATE_UNKNOWN, .write_rate = LOAD_RATE_UNKNOWN,
			     .atomic_rate = LOAD_RATE_UNKNOWN };

	assert(epoch >= 1);
	/* Killed in here, the file has no superblock. The fences bind the compiler alone. */
	memset(bytes, 0, SUPERBLOCK_BYTES);
	atomic_signal_fence(memory_order_seq_cst);
	memset(bytes + g->counters_offset, 0, g->directory_offset - g->counters_offset);
	memset(bytes + g->split_offset, 0, SPLIT_RECORD_BYTES);
	format_index(bytes, g);
	/* Unit headers of an older region would pass for ours: their first lines and bitmaps go. */
	for (uint64_t unit = g->segment_units; unit < g->unit_count; unit++)
		memset(bytes + g->heap_offset + unit * UNIT_BYTES, 0, UNIT_BLOCKS_AT);
	store_le64(bytes + geometry_counter(g, COUNTER_UNITS), g->segment_units);
	load_encode(&load, bytes + geometry_counter(g, COUNTER_LOAD));
	atomic_signal_fence(memory_order_seq_cst);
	superblock_encode(superblock, bytes);
}
