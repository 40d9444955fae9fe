/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pacer.h"

#include <assert.h>
#include <math.h>

void bench_pacer_init(struct bench_pacer *pacer, uint64_t start_ns, double rate, uint64_t thread,
		      uint64_t threads)
{
	assert(rate > 0 && thread < threads);
	*pacer = (struct bench_pacer){start_ns, 1e9 / rate, thread, threads, 0};
}

uint64_t bench_pacer_due(const struct bench_pacer *pacer)
{
	double turn = (double)pacer->next * (double)pacer->threads + (double)pacer->thread;

	return pacer->start_ns + (uint64_t)(turn * pacer->interval_ns);
}

void bench_pacer_advance(struct bench_pacer *pacer)
{
	pacer->next++;
}

uint64_t bench_pacer_behind(const struct bench_pacer *pacer, uint64_t then_ns)
{
	uint64_t due_ns = bench_pacer_due(pacer);
	double period_ns = pacer->interval_ns * (double)pacer->threads;

	if (due_ns >= then_ns)
		return 0;
	return (uint64_t)ceil((double)(then_ns - due_ns) / period_ns);
}
