/* SPDX-License-Identifier: Apache-2.0 */
/* A word of remote memory as slot, guard, control word and offset (8 bytes), a key (8), a class. */
#include "tests/fuzz/require.h"

#include "layout/bytes.h"
#include "layout/control.h"
#include "layout/guard.h"
#include "layout/place.h"
#include "layout/region.h"
#include "layout/slot.h"
#include "layout/unit.h"

static void check_bit(uint64_t offset, unsigned size_class)
{
	struct unit_bit bit;

	if (!unit_bit_of_block(offset, size_class, &bit))
		return;
	REQUIRE(size_class_bytes(size_class) > 0 && bit.index < unit_blocks(size_class));
	REQUIRE(bit.unit_offset % UNIT_BYTES == 0);
	REQUIRE(unit_block_at(bit.unit_offset, size_class, bit.index) == offset);
	REQUIRE(bit.word_offset % 8 == 0 && bit.word_offset - bit.unit_offset >= UNIT_BITMAP_AT);
	REQUIRE(bit.word_offset - bit.unit_offset < UNIT_BLOCKS_AT);
	REQUIRE(bit.mask == UINT64_C(1) << bit.index % 64);
}

static void check_slot(uint64_t word)
{
	struct slot slot = slot_unpack(word);

	REQUIRE(slot_pack(slot) == word);
	REQUIRE(slot.fingerprint < 1 << PLACE_FINGERPRINT_BITS);
	REQUIRE(slot.fingerprint == slot_fingerprint(word));
	REQUIRE(slot.offset % 64 == 0 && slot.offset < REGION_BYTES_MAX);
	REQUIRE(!slot_is_free(word) || size_class_bytes(slot.size_class) == 0);
	check_bit(slot.offset, slot.size_class);
}

static void check_guard(uint64_t word, uint64_t h)
{
	struct guard guard = guard_unpack(word);
	bool sound = guard.depth >= PLACE_DEPTH_MIN && guard.depth <= PLACE_DEPTH_MAX;

	REQUIRE(guard_pack(guard) == word);
	REQUIRE(guard.nonce < 4096 && guard.depth < 64 && guard.suffix < 1u << 30);
	REQUIRE(guard_serves(word, h) ==
		(sound && guard.suffix == place_suffix(h, guard.depth)));
}

static void check_control(uint64_t word, uint64_t key)
{
	struct forward forward = control_forward(word);
	uint64_t low = word & bits_mask(62), name = control_live_name(word, key);

	REQUIRE(forward.offset % 64 == 0 && forward.offset < REGION_BYTES_MAX);
	REQUIRE(forward.tag < 1u << CONTROL_TAG_BITS);
	REQUIRE(name >> 62 == 0);
	REQUIRE(control_pack_live(name, key) == (UINT64_C(1) << 62 | low));
	REQUIRE(control_live_name(control_pack_live(low, key), key) == low);
	REQUIRE(control_pack_forward(forward) == (UINT64_C(2) << 62 | low));
	REQUIRE(control_pack_dead(low) == (UINT64_C(3) << 62 | low));
	REQUIRE((unsigned)control_kind(word) == word >> 62);
	check_bit(forward.offset, forward.size_class);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t image[17];
	uint64_t word, key;

	fuzz_take(bytes, length, image, sizeof image);
	word = load_le64(image);
	key = load_le64(image + 8);
	check_slot(word);
	check_guard(word, key);
	check_control(word, key);
	check_bit(word, image[16]);
	return 0;
}
