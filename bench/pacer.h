/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open loop's timetable: operation k of thread t of T is due k * T + t intervals after the
 * start, whatever became of those before it. Latency counts from there, so a stall shows in all
 * the operations that it kept waiting.
 */
#ifndef FARKV_BENCH_PACER_H
#define FARKV_BENCH_PACER_H

#include <stdint.h>

struct bench_pacer {
	uint64_t start_ns;
	double interval_ns; /* between operations of the whole process */
	uint64_t thread;
	uint64_t threads;
	uint64_t next; /* index of this thread's next operation */
};

/* rate > 0, operations per second of all threads together. */
void bench_pacer_init(struct bench_pacer *pacer, uint64_t start_ns, double rate, uint64_t thread,
		      uint64_t threads);
/* When the next operation is due. */
uint64_t bench_pacer_due(const struct bench_pacer *pacer);
void bench_pacer_advance(struct bench_pacer *pacer);
/* How many operations from the next on are due before then. */
uint64_t bench_pacer_behind(const struct bench_pacer *pacer, uint64_t then_ns);

#endif
