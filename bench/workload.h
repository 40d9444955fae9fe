/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is run: YCSB's core workloads A B C D F with YCSB's mixes and distributions, the load
 * phase, or a YCSB property file. The command line may override single members afterwards.
 */
#ifndef FARKV_BENCH_WORKLOAD_H
#define FARKV_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/generator.h"
#include "bench/op.h"

enum {
	BENCH_ERROR_BYTES = 512,
	BENCH_VALUE_BYTES_DEFAULT = 1000, /* YCSB: 10 fields of 100 bytes */
};

#define BENCH_RECORDS_MAX (UINT64_C(1) << 32)
#define BENCH_OPS_MAX	  (UINT64_C(1) << 48)
#define BENCH_RATE_MAX	  1e9
#define BENCH_SECONDS_MAX 1e8
#define BENCH_THREADS_MAX 1024

/* 0 stands for "not said" in the counts, seconds and rate. */
struct bench_workload {
	bool load;	    /* insert the records instead of running the mix */
	bool among_records; /* inserts and deletes take keys among the records (--mix) */
	bool ordered;	    /* keys are not hashed */
	bool verify;	    /* dataintegrity=true */
	struct bench_mix mix;
	enum bench_dist dist;
	double theta;
	uint64_t records;
	uint64_t ops;
	uint64_t threads;
	uint64_t value_bytes;
	double rate;
	double seconds;
};

void bench_workload_init(struct bench_workload *workload);
/* a b c d f (or A..F), load, or the name of a property file. */
bool bench_workload_choose(struct bench_workload *workload, const char *name,
			   char error[BENCH_ERROR_BYTES]);
/* Notes about properties that are ignored go to `notes` unless it is NULL. */
bool bench_workload_read(struct bench_workload *workload, FILE *file, FILE *notes,
			 char error[BENCH_ERROR_BYTES]);

#endif
