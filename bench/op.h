/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of operation that a workload mixes, and the proportions of a mix. */
#ifndef FARKV_BENCH_OP_H
#define FARKV_BENCH_OP_H

#include <stdbool.h>

#include "bench/number.h"
#include "bench/random.h"

enum bench_op {
	BENCH_GET,
	BENCH_INSERT,
	BENCH_UPDATE,
	BENCH_RMW, /* a get, then an update of the same key */
	BENCH_DELETE,
	BENCH_SCAN, /* never issued; named in reports */
	BENCH_OPS,
};

const char *bench_op_name(enum bench_op op);

/* Weights; they need not sum to 1. */
struct bench_mix {
	double share[BENCH_OPS];
};

double bench_mix_sum(const struct bench_mix *mix);
/* The sum must be above 0. */
enum bench_op bench_mix_choose(const struct bench_mix *mix, struct bench_random *random);
/* "get=50,update=50". */
bool bench_mix_parse(const char *text, struct bench_mix *mix, char reason[BENCH_REASON_BYTES]);

#endif
