/* SPDX-License-Identifier: Apache-2.0 */
/* One run from opening the store to closing it, and what came of it. */
#ifndef FARKV_BENCH_RUNNER_H
#define FARKV_BENCH_RUNNER_H

#include "bench/options.h"
#include "bench/stats.h"

enum { BENCH_NODES_MAX = 64 };

struct bench_result {
	struct bench_stats *stats; /* owned; NULL before the run */
	uint64_t elapsed_ns;	   /* from the start to the run's last answer */
	bool interrupted;
	size_t nodes; /* of `mn`, at most BENCH_NODES_MAX; 0: could not be asked */
	struct farkv_mn_stats mn[BENCH_NODES_MAX];
};

/*
 * Runs as told; stops early once *stop is nonzero (a signal handler's). Returns 0 or what
 * farkv_open, farkv_session_open or memory answered (said on stderr); answers of operations are in
 * result->stats. bench_result_free in either case.
 */
int bench_run(const struct bench_options *options, const _Atomic int *stop,
	      struct bench_result *result);
void bench_result_free(struct bench_result *result);

/* Nothing wrong and nothing unexpected. */
bool bench_result_good(const struct bench_result *result);

#endif
