/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of nanoseconds in log buckets: below 128 exact, above 128 buckets per power of
 * two, so that a percentile is at most 1/128 too high. Plain memory, one writer; merging adds.
 */
#ifndef FARKV_BENCH_HISTOGRAM_H
#define FARKV_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	BENCH_HISTOGRAM_BITS = 7,
	BENCH_HISTOGRAM_BUCKETS = (64 - BENCH_HISTOGRAM_BITS + 1) << BENCH_HISTOGRAM_BITS,
};

/* All zero is empty. */
struct bench_histogram {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint64_t buckets[BENCH_HISTOGRAM_BUCKETS];
};

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns);
void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from);
/* The smallest recorded value (rounded up within its bucket) that `quantile` of all do not exceed;
 * 0 when empty. */
uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double quantile);

#endif
