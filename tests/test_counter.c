/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/counter.h"

#include "layout/region.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <string.h>

static void assert_round_trip(struct load in)
{
	struct load out;
	uint8_t line[64];

	memset(line, 0xff, sizeof line);
	load_encode(&in, line);
	load_decode(line, &out);
	cr_assert_eq(out.epoch, in.epoch);
	cr_assert_eq(out.safe_epoch, in.safe_epoch);
	cr_assert_eq(out.time_ms, in.time_ms);
	cr_assert_eq(out.read_rate, in.read_rate);
	cr_assert_eq(out.write_rate, in.write_rate);
	cr_assert_eq(out.atomic_rate, in.atomic_rate);
}

Test(counter, a_load_line_comes_back_as_it_was_encoded)
{
	uint64_t seed = seed_take("load");

	assert_round_trip((struct load){ 0 });
	assert_round_trip((struct load){ UINT64_MAX, UINT64_MAX, UINT64_MAX, INT64_MAX, INT64_MIN,
					 LOAD_RATE_UNKNOWN });
	for (unsigned i = 0; i < 10000; i++)
		assert_round_trip((struct load){ seed_next(&seed), seed_next(&seed),
						 seed_next(&seed), (int64_t)seed_next(&seed),
						 (int64_t)seed_next(&seed),
						 (int64_t)seed_next(&seed) });
}

Test(counter, a_load_line_has_its_words_where_the_format_says)
{
	static const uint8_t expect[64] = { [0] = 1,  [8] = 2,	[16] = 3,
					    [24] = 4, [32] = 5, [40] = 6 };
	uint8_t line[64];

	load_encode(&(struct load){ 1, 2, 3, 4, 5, 6 }, line);
	cr_assert_arr_eq(line, expect, sizeof line);
}

Test(counter, every_counter_has_a_line_of_its_own_ahead_of_the_client_table)
{
	struct geometry g;

	cr_assert_eq(geometry_compute(REGION_BYTES_MIN, 0, &g), 0);
	for (unsigned i = 0; i < COUNTER_LINES; i++) {
		uint64_t at = geometry_counter(&g, i);

		cr_assert_eq(at % 64, 0);
		cr_assert_eq(at, g.counters_offset + 64 * i);
		cr_assert_leq(at + 64, g.client_table_offset);
	}
	cr_assert_leq(COUNTER_ITEMS + COUNTER_STRIPES, COUNTER_COMMITS);
	cr_assert_leq(COUNTER_COMMITS + COUNTER_STRIPES, COUNTER_LOAD);
}
