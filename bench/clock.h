/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FARKV_BENCH_CLOCK_H
#define FARKV_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bench_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void bench_clock_sleep(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	nanosleep(&left, NULL);
}

#endif
