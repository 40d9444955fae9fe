/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FARKV_MN_CLOCK_H
#define FARKV_MN_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Since boot: for waits. */
static inline uint64_t clock_ms(void)
{
	return clock_read_ms(CLOCK_MONOTONIC);
}

/* Since 1970: for what others are shown. May go back. */
static inline uint64_t clock_real_ms(void)
{
	return clock_read_ms(CLOCK_REALTIME);
}

#endif
