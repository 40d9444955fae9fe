/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/histogram.h"

#include <math.h>

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < (1u << BENCH_HISTOGRAM_BITS))
		return (unsigned int)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - BENCH_HISTOGRAM_BITS;
	return ((shift + 1) << BENCH_HISTOGRAM_BITS) +
	       (unsigned int)((ns >> shift) - (1u << BENCH_HISTOGRAM_BITS));
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_top(unsigned int bucket)
{
	unsigned int shift = bucket >> BENCH_HISTOGRAM_BITS;
	uint64_t mantissa = bucket & ((1u << BENCH_HISTOGRAM_BITS) - 1);

	if (shift == 0)
		return mantissa;
	mantissa += 1u << BENCH_HISTOGRAM_BITS;
	return ((mantissa + 1) << (shift - 1)) - 1;
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->sum_ns += ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
	histogram->buckets[bucket_of(ns)]++;
}

void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (unsigned int i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double quantile)
{
	uint64_t rank = (uint64_t)ceil(quantile * (double)histogram->count);
	uint64_t seen = 0, top;

	if (histogram->count == 0)
		return 0;
	if (rank == 0)
		rank = 1;
	if (rank > histogram->count)
		rank = histogram->count;
	for (unsigned int i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= rank) {
			top = bucket_top(i);
			return top < histogram->max_ns ? top : histogram->max_ns;
		}
	}
	return histogram->max_ns;
}
