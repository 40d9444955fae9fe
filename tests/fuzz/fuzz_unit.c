/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a unit's header, tried as it is and with magic and run put right. */
#include "tests/fuzz/require.h"

#include "layout/bytes.h"
#include "layout/unit.h"

static void try_once(const uint8_t *line)
{
	struct unit_header header, second;
	uint64_t room, end;
	uint8_t again[64];

	if (!unit_header_decode(line, &header))
		return;
	REQUIRE(header.run >= 1 && header.run == unit_run(header.size_class));
	REQUIRE(unit_blocks(header.size_class) >= 1);
	REQUIRE(unit_blocks(header.size_class) <= UNIT_BITMAP_WORDS * 64);
	room = (uint64_t)header.run * UNIT_BYTES;
	end = unit_block_at(0, header.size_class, unit_blocks(header.size_class));
	REQUIRE(end <= room);
	unit_header_encode(&header, again);
	REQUIRE(memcmp(again, line, 7) == 0);
	REQUIRE(unit_header_decode(again, &second));
	REQUIRE(second.owner == header.owner && second.size_class == header.size_class);
	REQUIRE(second.run == header.run && second.session == header.session);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t line[64], model[64];

	fuzz_take(bytes, length, line, sizeof line);
	try_once(line);
	unit_header_encode(&(struct unit_header){ .size_class = 1, .run = 1 }, model);
	memcpy(line, model, 4);
	try_once(line);
	store_le32(line + 8, unit_run(line[6]));
	try_once(line);
	return 0;
}
