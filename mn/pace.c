/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/pace.h"

uint32_t pace_interval(struct pace *pace, uint64_t changes, uint32_t client_count, uint64_t now_ms)
{
	if (changes != pace->changes)
		pace->busy_until_ms = now_ms + PACE_LINGER_MS;
	pace->changes = changes;
	if (client_count == 0)
		return PACE_ALONE_MS;
	return now_ms < pace->busy_until_ms ? PACE_BUSY_MS : PACE_CALM_MS;
}
