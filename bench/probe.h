/* SPDX-License-Identifier: Apache-2.0 */
/*
 * farkv-bench --probe: each operation of the budget table, one at a time, counted by the client and,
 * independently, at the device.
 */
#ifndef FARKV_BENCH_PROBE_H
#define FARKV_BENCH_PROBE_H

#include "bench/options.h"

enum { PROBE_ROUNDS_DEFAULT = 100, PROBE_ROUNDS_MAX = 100000 };

/* Exit status: 0 all budgets met and all counts agree; 1 a difference; 3 the store is unavailable. */
int bench_probe(const struct bench_options *options);

#endif
