/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/pace.h"

#include <criterion/criterion.h>

Test(mn_pace, is_slow_alone_calm_with_readers_and_fast_while_memory_moves)
{
	struct pace pace = {0};

	cr_assert_eq(pace_interval(&pace, 0, 0, 1000), PACE_ALONE_MS);
	cr_assert_eq(pace_interval(&pace, 0, 3, 1000), PACE_CALM_MS);
	cr_assert_eq(pace_interval(&pace, 32, 3, 1020), PACE_BUSY_MS);
	cr_assert_eq(pace_interval(&pace, 32, 3, 1020 + PACE_LINGER_MS - 1), PACE_BUSY_MS);
	cr_assert_eq(pace_interval(&pace, 32, 3, 1020 + PACE_LINGER_MS), PACE_CALM_MS);
	cr_assert_eq(pace_interval(&pace, 31, 3, 3000), PACE_BUSY_MS, "any change counts");
	cr_assert_eq(pace_interval(&pace, 31, 0, 3001), PACE_ALONE_MS);
}
