/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A superblock, which says where everything is. An input is tried as it is; with magic, version,
 * canary and checksum put right; and with a geometry that fits its size.
 */
#include "tests/fuzz/require.h"

#include "layout/bytes.h"
#include "layout/region.h"
#include "layout/unit.h"

#include <errno.h>
#include <xxhash.h>

enum { MAGIC_AT = 0, VERSION_AT = 8, INCARNATION_AT = 112, CANARY_AT = 152, CHECKSUM_AT = 4088 };

static void check_geometry(const struct geometry *g)
{
	uint64_t directory_end = geometry_directory_entry(g, 0) + (UINT64_C(8) << g->max_depth);

	REQUIRE(g->region_bytes >= REGION_BYTES_MIN && g->region_bytes <= REGION_BYTES_MAX);
	REQUIRE(g->client_count <= 65536 && g->max_depth <= 30);
	REQUIRE(g->initial_depth >= 1 && g->initial_depth <= g->max_depth);
	REQUIRE(g->counters_offset >= SUPERBLOCK_BYTES);
	REQUIRE(g->client_table_offset >= geometry_counter(g, COUNTER_LINES));
	REQUIRE(g->directory_offset >= geometry_client(g, g->client_count));
	REQUIRE(g->split_offset >= directory_end);
	REQUIRE(g->heap_offset >= g->split_offset + SPLIT_RECORD_BYTES);
	REQUIRE(g->counters_offset % 4096 == 0 && g->client_table_offset % 4096 == 0);
	REQUIRE(g->directory_offset % 4096 == 0 && g->split_offset % 4096 == 0);
	REQUIRE(g->heap_offset % UNIT_BYTES == 0 && g->heap_offset < g->region_bytes);
	REQUIRE(g->unit_count <= (g->region_bytes - g->heap_offset) / UNIT_BYTES);
	REQUIRE(g->segment_units < g->unit_count);
	REQUIRE((UINT64_C(4096) << g->initial_depth) <= (uint64_t)g->segment_units * UNIT_BYTES);
}

static int try_once(const uint8_t *bytes)
{
	static uint8_t again[SUPERBLOCK_BYTES];
	struct superblock sb, second;
	int rc = superblock_decode(bytes, &sb);

	REQUIRE(rc == 0 || rc == -ENODATA || rc == -EBADMSG || rc == -EPROTONOSUPPORT);
	if (rc == -EPROTONOSUPPORT)
		REQUIRE(sb.layout_version != LAYOUT_VERSION &&
			sb.layout_version == load_le32(bytes + VERSION_AT));
	if (rc)
		return rc;
	check_geometry(&sb.geometry);
	superblock_encode(&sb, again);
	REQUIRE(superblock_decode(again, &second) == 0);
	REQUIRE(memcmp(&sb, &second, sizeof sb) == 0);
	REQUIRE(memcmp(again + 16, bytes + 16, CANARY_AT + 8 - 16) == 0);
	return 0;
}

static void mend(uint8_t *bytes)
{
	struct superblock any = { .layout_version = LAYOUT_VERSION };
	static uint8_t model[SUPERBLOCK_BYTES];

	superblock_encode(&any, model);
	memcpy(bytes, model, 12);
	store_le64(bytes + CANARY_AT, region_canary(load_le64(bytes + INCARNATION_AT)));
	store_le64(bytes + CHECKSUM_AT, XXH3_64bits(bytes, CHECKSUM_AT));
}

/* A geometry that is computed is one that is accepted, whatever the other fields hold. */
static void try_computed(const uint8_t *bytes)
{
	static uint8_t encoded[SUPERBLOCK_BYTES];
	struct superblock sb = { .layout_version = LAYOUT_VERSION };

	if (geometry_compute(load_le64(bytes + 16), load_le64(bytes + 24), &sb.geometry))
		return;
	sb.cluster_id = load_le64(bytes + 104);
	sb.incarnation = load_le64(bytes + INCARNATION_AT);
	sb.mn_id = load_le32(bytes + 144);
	superblock_encode(&sb, encoded);
	REQUIRE(try_once(encoded) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static uint8_t image[SUPERBLOCK_BYTES];

	fuzz_take(bytes, length, image, sizeof image);
	try_once(image);
	try_computed(image);
	mend(image);
	try_once(image);
	return 0;
}
