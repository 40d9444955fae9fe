/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker counts, and the sum over workers. All zero is empty. */
#ifndef FARKV_BENCH_STATS_H
#define FARKV_BENCH_STATS_H

#include <stdint.h>

#include "bench/histogram.h"
#include "bench/op.h"
#include "bench/verify.h"
#include "cn/farkv.h"

enum { BENCH_ERRORS = 32 };

struct bench_op_stats {
	uint64_t count; /* answered; the sum of done, not_found, exists and errors */
	uint64_t errors;
	uint64_t not_found;
	uint64_t exists;
	uint64_t round_trips;
	uint64_t cached;
	struct bench_histogram latency; /* from the intended start */
	struct bench_histogram service; /* from the submission */
};

struct bench_stats {
	struct bench_op_stats ops[BENCH_OPS];
	uint64_t errors[BENCH_ERRORS]; /* by -status; unexpected answers only, verification's too */
	uint64_t checked;
	uint64_t wrong[BENCH_FAULTS];
	uint64_t unanswered; /* operations given up, still in flight at the end */
	uint64_t behind;     /* operations due, but not started at the end */
	struct farkv_verbs verbs;
	struct farkv_verbs deferred;
	uint64_t cache_hits, cache_stale, cache_misses;
};

void bench_stats_error(struct bench_stats *stats, int status);
void bench_stats_merge(struct bench_stats *into, const struct bench_stats *from);
/* into += after - before */
void bench_stats_session(struct bench_stats *into, const struct farkv_session_stats *before,
			 const struct farkv_session_stats *after);

uint64_t bench_stats_count(const struct bench_stats *stats);
uint64_t bench_stats_errors(const struct bench_stats *stats);
uint64_t bench_stats_wrong(const struct bench_stats *stats);

/* "ETIMEDOUT" for FARKV_ETIMEDOUT; index is -status. */
const char *bench_error_name(unsigned int index);

#endif
