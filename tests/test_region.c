/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/region.h"

#include "layout/bucket.h"
#include "layout/bytes.h"
#include "layout/directory.h"
#include "layout/place.h"
#include "layout/unit.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <xxhash.h>

static const uint64_t mib = UINT64_C(1) << 20, gib = UINT64_C(1) << 30;

/* Places of fields in a superblock, as the format says: words from 16 on. */
enum {
	REGION_BYTES_AT = 16,
	CLIENT_COUNT_AT = 40,
	MAX_DEPTH_AT = 48,
	HEAP_AT = 72,
	UNIT_COUNT_AT = 80,
	INITIAL_DEPTH_AT = 88,
	SEGMENT_UNITS_AT = 96,
	INCARNATION_AT = 112,
	CANARY_AT = 152,
};

static struct superblock make(uint64_t *seed, uint64_t region_bytes, uint64_t keys)
{
	struct superblock sb = { .cluster_id = seed_next(seed),
				 .incarnation = seed_next(seed),
				 .hash_seed = seed_next(seed),
				 .name_key = seed_next(seed),
				 .features = seed_next(seed),
				 .layout_version = LAYOUT_VERSION,
				 .mn_id = (uint32_t)seed_next(seed) };

	cr_assert_eq(geometry_compute(region_bytes, keys, &sb.geometry), 0);
	sb.canary = region_canary(sb.incarnation);
	return sb;
}

static void mend(uint8_t *bytes)
{
	store_le64(bytes + 4088, XXH3_64bits(bytes, 4088));
}

static void check_geometry(const struct geometry *g)
{
	uint64_t directory_end = geometry_directory_entry(g, 0) + (UINT64_C(8) << g->max_depth);
	uint64_t heap_end = g->heap_offset + g->unit_count * UNIT_BYTES;

	cr_assert_geq(g->counters_offset, SUPERBLOCK_BYTES);
	cr_assert_geq(g->client_table_offset, geometry_counter(g, COUNTER_LINES));
	cr_assert_geq(g->directory_offset, geometry_client(g, g->client_count));
	cr_assert_geq(g->split_offset, directory_end);
	cr_assert_geq(g->heap_offset, g->split_offset + SPLIT_RECORD_BYTES);
	cr_assert(g->counters_offset % 4096 == 0 && g->client_table_offset % 4096 == 0 &&
		  g->directory_offset % 4096 == 0 && g->split_offset % 4096 == 0);
	cr_assert_eq(g->heap_offset % UNIT_BYTES, 0);
	cr_assert(heap_end <= g->region_bytes && g->region_bytes - heap_end < UNIT_BYTES);
	cr_assert(g->initial_depth >= PLACE_DEPTH_MIN && g->initial_depth <= g->max_depth &&
		  g->max_depth <= PLACE_DEPTH_MAX);
	cr_assert_geq((uint64_t)g->segment_units * UNIT_BYTES,
		      (uint64_t)SEGMENT_BYTES << g->initial_depth);
	cr_assert_lt(g->segment_units, g->unit_count);
	cr_assert_eq(geometry_directory_entry(g, 0) % 8, 0);
	cr_assert_eq(geometry_directory_entry(g, (1u << g->max_depth) - 1), directory_end - 8);
}

static void check_size(uint64_t *seed, uint64_t region_bytes)
{
	static const uint64_t keys[] = { 0, 1, 144, 145, 10000, 30000 };
	uint8_t bytes[SUPERBLOCK_BYTES];

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct superblock in = make(seed, region_bytes, keys[i]), out;

		check_geometry(&in.geometry);
		cr_assert_eq(in.geometry.region_bytes, region_bytes);
		superblock_encode(&in, bytes);
		cr_assert_eq(superblock_decode(bytes, &out), 0);
		cr_assert_eq(memcmp(&in, &out, sizeof in), 0, "size %llu",
			     (unsigned long long)region_bytes);
	}
}

Test(region, B30_geometry_of_every_size_has_its_parts_in_order_and_inside)
{
	uint64_t sizes[] = { 8 * mib + 1, 4 * gib - 2 * mib, 4 * gib - 1, 4 * gib, 4 * gib + 1,
			     5 * gib, 1024 * gib - 1 };
	uint64_t seed = seed_take("geometry");

	for (uint64_t size = REGION_BYTES_MIN; size <= REGION_BYTES_MAX; size *= 2)
		check_size(&seed, size);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		check_size(&seed, sizes[i]);
	for (unsigned i = 0; i < 1000; i++)
		check_size(&seed, REGION_BYTES_MIN +
			   (seed_next(&seed) >> seed_next(&seed) % 40) %
			   (REGION_BYTES_MAX - REGION_BYTES_MIN));
}

Test(region, B30_sizes_around_4_gib_keep_all_their_bytes)
{
	uint64_t sizes[] = { 4 * gib - 2 * mib, 4 * gib, 5 * gib };
	uint64_t units[3];
	struct geometry g;

	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(geometry_compute(sizes[i], 100000, &g), 0);
		units[i] = g.unit_count + g.heap_offset / UNIT_BYTES;
		cr_assert_eq(units[i], sizes[i] / UNIT_BYTES);
	}
	cr_assert_eq(units[1] - units[0], 2 * mib / UNIT_BYTES);
	cr_assert_eq(units[2] - units[1], gib / UNIT_BYTES);
}

Test(region, sizes_out_of_range_and_keys_that_do_not_fit_are_refused)
{
	struct geometry g = { .client_count = 77 };

	cr_assert_eq(geometry_compute(0, 0, &g), -EINVAL);
	cr_assert_eq(geometry_compute(REGION_BYTES_MIN - 1, 0, &g), -EINVAL);
	cr_assert_eq(geometry_compute(REGION_BYTES_MAX + 1, 0, &g), -EINVAL);
	cr_assert_eq(geometry_compute(UINT64_MAX, 0, &g), -EINVAL);
	cr_assert_eq(geometry_compute(64 * mib, mib + 1, &g), -EINVAL);
	cr_assert_eq(geometry_compute(64 * mib, UINT64_MAX, &g), -EINVAL);
	cr_assert_eq(g.client_count, 77, "untouched");
}

Test(region, a_region_sized_for_its_keys_can_still_split)
{
	struct geometry g;

	for (uint64_t keys = 1; keys <= 600000; keys += 997) {
		cr_assert_eq(geometry_compute(64 * mib, keys, &g), 0);
		cr_assert_gt(g.max_depth, g.initial_depth, "%llu", (unsigned long long)keys);
	}
}

struct model_segment {
	unsigned depth;
	uint8_t count[SEGMENT_BUCKETS];
	uint64_t h[SEGMENT_BUCKETS][BUCKET_SLOTS];
};

/* Splits a segment of the model; the directory has all entries of depth `full`. */
static void model_split(struct model_segment **directory, unsigned full, uint64_t h)
{
	struct model_segment *old = directory[place_suffix(h, full)], *half[2];
	uint64_t step = UINT64_C(1) << old->depth;

	for (unsigned i = 0; i < 2; i++) {
		half[i] = calloc(1, sizeof *half[i]);
		half[i]->depth = old->depth + 1;
	}
	for (unsigned b = 0; b < SEGMENT_BUCKETS; b++)
		for (unsigned i = 0; i < old->count[b]; i++) {
			struct model_segment *to = half[old->h[b][i] >> old->depth & 1];

			to->h[b][to->count[b]++] = old->h[b][i];
		}
	for (uint64_t i = place_suffix(h, old->depth); i < UINT64_C(1) << full; i += step)
		directory[i] = half[i >> old->depth & 1];
	free(old);
}

/* The first formula gave out with a tenth of the memory free. */
Test(region, a_region_full_of_the_smallest_blocks_needs_no_deeper_directory)
{
	uint64_t seed = seed_take("depth"), keys = 0, segments = 2;
	static struct model_segment *directory[1 << 16];
	struct geometry g;

	cr_assert_eq(geometry_compute(64 * mib, 1, &g), 0);
	cr_assert_leq(g.max_depth, 16);
	for (unsigned i = 0; i < 2; i++) {
		struct model_segment *segment = calloc(1, sizeof *segment);

		segment->depth = 1;
		for (uint64_t at = i; at < UINT64_C(1) << g.max_depth; at += 2)
			directory[at] = segment;
	}
	while (keys * 64 + segments * SEGMENT_BYTES < 64 * mib) {
		uint64_t h = seed_next(&seed);
		struct model_segment *to = directory[place_suffix(h, g.max_depth)];
		unsigned b = place_bucket(h);

		if (to->count[b] < BUCKET_SLOTS) {
			to->h[b][to->count[b]++] = h;
			keys++;
			continue;
		}
		cr_assert_lt(to->depth, g.max_depth, "after %llu keys", (unsigned long long)keys);
		model_split(directory, g.max_depth, h);
		segments++;
	}
}

Test(region, a_superblock_says_when_it_is_of_another_version)
{
	static const uint32_t versions[] = { 0, LAYOUT_VERSION + 1, 77, UINT32_MAX };
	uint64_t seed = seed_take("version");
	struct superblock sb = make(&seed, 64 * mib, 0), out;
	uint8_t bytes[SUPERBLOCK_BYTES];

	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		sb.layout_version = versions[i];
		superblock_encode(&sb, bytes);
		cr_assert_eq(superblock_decode(bytes, &out), -EPROTONOSUPPORT);
		cr_assert_eq(out.layout_version, versions[i]);
		bytes[4000] ^= 1; /* another version may sum up otherwise */
		cr_assert_eq(superblock_decode(bytes, &out), -EPROTONOSUPPORT);
	}
}

Test(region, a_superblock_of_zeros_is_told_from_a_bad_one)
{
	uint64_t seed = seed_take("bad");
	struct superblock sb = make(&seed, 64 * mib, 0), out;
	uint8_t bytes[SUPERBLOCK_BYTES] = { 0 };

	cr_assert_eq(superblock_decode(bytes, &out), -ENODATA);
	bytes[4095] = 1;
	cr_assert_eq(superblock_decode(bytes, &out), -EBADMSG);
	superblock_encode(&sb, bytes);
	for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
		int rc;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rc = superblock_decode(bytes, &out);
		if (bit / 8 >= 8 && bit / 8 < 12)
			cr_assert_eq(rc, -EPROTONOSUPPORT);
		else
			cr_assert_eq(rc, -EBADMSG, "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cr_assert_eq(superblock_decode(bytes, &out), 0);
}

Test(region, the_canary_follows_from_the_incarnation)
{
	uint64_t seed = seed_take("canary");
	struct superblock sb = make(&seed, 64 * mib, 0), out;
	uint8_t bytes[SUPERBLOCK_BYTES];

	sb.canary = 1; /* computed, not taken */
	superblock_encode(&sb, bytes);
	cr_assert_eq(load_le64(bytes + CANARY_AT), region_canary(sb.incarnation));
	cr_assert_eq(superblock_decode(bytes, &out), 0);
	store_le64(bytes + INCARNATION_AT, sb.incarnation + 1);
	mend(bytes);
	cr_assert_eq(superblock_decode(bytes, &out), -EBADMSG);
	cr_assert_neq(region_canary(1), region_canary(2));
}

static const struct {
	unsigned at;
	uint64_t value;
} senseless[] = {
	{ REGION_BYTES_AT, 0 },
	{ REGION_BYTES_AT, UINT64_MAX },
	{ REGION_BYTES_AT, (UINT64_C(64) << 20) + UNIT_BYTES },
	{ REGION_BYTES_AT, (UINT64_C(64) << 20) - 1 },
	{ CLIENT_COUNT_AT, 0 },
	{ CLIENT_COUNT_AT, 65537 },
	{ CLIENT_COUNT_AT, (UINT64_C(1) << 32) + REGION_CLIENTS_DEFAULT },
	{ MAX_DEPTH_AT, 31 },
	{ MAX_DEPTH_AT, 64 },
	{ MAX_DEPTH_AT, 0 },
	{ HEAP_AT, 0 },
	{ HEAP_AT, UINT64_MAX - 65535 },
	{ UNIT_COUNT_AT, 0 },
	{ UNIT_COUNT_AT, 1024 },
	{ UNIT_COUNT_AT, UINT64_C(1) << 48 },
	{ INITIAL_DEPTH_AT, 0 },
	{ INITIAL_DEPTH_AT, 31 },
	{ INITIAL_DEPTH_AT, 10 },
	{ SEGMENT_UNITS_AT, 0 },
	{ SEGMENT_UNITS_AT, UINT64_C(1) << 32 | 32 },
};

Test(region, a_superblock_with_a_geometry_nobody_computes_is_refused)
{
	uint64_t seed = seed_take("geometry");
	struct superblock sb = make(&seed, 64 * mib, 0), out;
	uint8_t bytes[SUPERBLOCK_BYTES];

	cr_assert_eq(sb.geometry.segment_units, 32);
	for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
		superblock_encode(&sb, bytes);
		cr_assert_neq(load_le64(bytes + senseless[i].at), senseless[i].value);
		store_le64(bytes + senseless[i].at, senseless[i].value);
		mend(bytes);
		cr_expect_eq(superblock_decode(bytes, &out), -EBADMSG, "row %zu", i);
	}
	for (unsigned at = REGION_BYTES_AT; at < 104; at += 8)
		for (unsigned bit = 0; bit < 64; bit++) {
			superblock_encode(&sb, bytes);
			store_le64(bytes + at, load_le64(bytes + at) ^ UINT64_C(1) << bit);
			mend(bytes);
			if (superblock_decode(bytes, &out) == 0)
				check_geometry(&out.geometry);
		}
}

Test(region, parts_are_aligned_behind_a_client_table_of_any_size)
{
	uint64_t seed = seed_take("clients");
	struct superblock sb = make(&seed, 64 * mib, 0), out;
	uint8_t bytes[SUPERBLOCK_BYTES];

	for (uint32_t i = 0; i < LINE_BYTES; i++) {
		uint32_t count = REGION_CLIENTS_DEFAULT - i; /* the same whole pages */

		superblock_encode(&sb, bytes);
		store_le64(bytes + CLIENT_COUNT_AT, count);
		mend(bytes);
		cr_assert_eq(superblock_decode(bytes, &out), 0, "%u", count);
		check_geometry(&out.geometry);
	}
}

/* Every entry leads to a segment whose guards serve it; segments are distinct and in the heap. */
static void check_index(const uint8_t *bytes, const struct geometry *g)
{
	struct directory_header header;

	cr_assert(directory_header_decode(bytes + g->directory_offset, g->max_depth, &header));
	cr_assert_eq(header.depth, g->initial_depth);
	for (uint32_t i = 0; i < 1u << header.depth; i++) {
		struct directory_entry entry;
		uint64_t at = geometry_directory_entry(g, i);

		cr_assert(directory_entry_unpack(load_le64(bytes + at), &entry));
		at = entry.segment * SEGMENT_BYTES;
		cr_assert(at >= g->heap_offset &&
			  at < g->heap_offset + (uint64_t)g->segment_units * UNIT_BYTES);
		cr_assert_eq(entry.depth, header.depth);
		for (unsigned b = 0; b < SEGMENT_BUCKETS; b++) {
			const uint8_t *bucket = bytes + at + b * BUCKET_BYTES;

			cr_assert(bucket_serves(bucket, i), "entry %u, bucket %u", i, b);
			cr_assert_not(bucket_serves(bucket, i ^ 1));
			for (unsigned s = 0; s < BUCKET_SLOTS; s++)
				cr_assert_eq(bucket_slot(bucket, s), SLOT_EMPTY);
		}
	}
	for (uint32_t i = 1u << header.depth; i < 1u << g->max_depth; i++)
		cr_assert_eq(load_le64(bytes + geometry_directory_entry(g, i)), 0);
}

static void check_formatted(const uint8_t *bytes, const struct superblock *sb, uint64_t epoch)
{
	const struct geometry *g = &sb->geometry;
	struct superblock out;
	struct unit_header header;
	struct load load;

	cr_assert_eq(superblock_decode(bytes, &out), 0);
	cr_assert_eq(memcmp(&out, sb, sizeof out), 0);
	check_index(bytes, g);
	load_decode(bytes + geometry_counter(g, COUNTER_LOAD), &load);
	cr_assert(load.epoch == epoch && load.safe_epoch == epoch - 1 && load.time_ms == 1234);
	cr_assert_eq(load.atomic_rate, LOAD_RATE_UNKNOWN);
	for (unsigned i = 0; i < COUNTER_LOAD; i++)
		cr_assert_eq(load_le64(bytes + geometry_counter(g, i)),
			     i == COUNTER_UNITS ? g->segment_units : 0);
	for (unsigned i = 0; i < g->client_count; i++) {
		struct client_line client;

		client_line_decode(bytes + geometry_client(g, i), &client);
		cr_assert_eq(client.state, CLIENT_FREE);
	}
	for (uint64_t unit = g->segment_units; unit < g->unit_count; unit++) {
		const uint8_t *at = bytes + g->heap_offset + unit * UNIT_BYTES;

		cr_assert_not(unit_header_decode(at, &header));
		for (unsigned i = 0; i < UNIT_BITMAP_WORDS; i++)
			cr_assert_eq(load_le64(at + UNIT_BITMAP_AT + 8 * i), 0);
	}
}

Test(region, format_gives_an_index_that_serves_every_key_and_forgets_an_older_region)
{
	static const uint64_t keys[] = { 1, 0, 10000, 30000 };
	uint64_t seed = seed_take("format"), size = 9 * mib + 4097;
	uint8_t *bytes = malloc(size);

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct superblock sb = make(&seed, size, keys[i]);
		const struct geometry *g = &sb.geometry;

		memset(bytes, i % 2 ? 0xff : 0x55, size);
		for (uint64_t unit = 0; unit < g->unit_count; unit++)
			unit_header_encode(&(struct unit_header){ 1, 1, 1, 1 },
					   bytes + g->heap_offset + unit * UNIT_BYTES);
		region_format(bytes, &sb, 1 + i, 1234);
		check_formatted(bytes, &sb, 1 + i);
		cr_assert_eq(bytes[size - 1], i % 2 ? 0xff : 0x55, "the end is nobody's");
	}
	free(bytes);
}

Test(region, B30_format_reaches_the_last_unit_beyond_4_gib)
{
	uint64_t seed = seed_take("5 GiB"), size = 5 * gib, last;
	struct superblock sb = make(&seed, size, 1000);
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		cr_skip_test("no 5 GiB of address space: %s", strerror(errno));
	madvise(bytes, size, MADV_NOHUGEPAGE); /* a page per unit is touched, not all */
	last = sb.geometry.heap_offset + (sb.geometry.unit_count - 1) * UNIT_BYTES;
	cr_assert_gt(last, 4 * gib);
	unit_header_encode(&(struct unit_header){ 1, 1, 1, 1 }, bytes + last);
	memset(bytes + last + UNIT_BLOCKS_AT, 0xa5, 64);
	region_format(bytes, &sb, 1, 1234);
	check_formatted(bytes, &sb, 1);
	cr_assert_eq(bytes[last + UNIT_BLOCKS_AT], 0xa5);
	munmap(bytes, size);
}

Test(region, format_asserts_a_first_epoch, .signal = SIGABRT)
{
	struct superblock sb = { .layout_version = LAYOUT_VERSION };

	region_format((uint8_t[1]){ 0 }, &sb, 0, 0);
}
