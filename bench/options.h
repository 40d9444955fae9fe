/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What farkv-bench is told: farkv's own options (defaults < FARKV_* < command line), the
 * workload, and how to run and report it.
 */
#ifndef FARKV_BENCH_OPTIONS_H
#define FARKV_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/key.h"
#include "bench/workload.h"
#include "cn/farkv.h"

enum {
	BENCH_RECORDS_DEFAULT = 100000,
	BENCH_OPS_DEFAULT = 100000,
};

struct bench_options {
	struct farkv_options store;
	struct bench_workload workload;
	const char *workload_name; /* NULL: none chosen; --mix alone */
	struct bench_key_codec keys;
	/* As given or by default; none is 0 once bench_options_parse succeeded, but: */
	uint64_t records;
	uint64_t ops;	/* 0: as many as --seconds allow; of this process */
	double seconds; /* 0: until the operations are done */
	double rate;	/* operations per second of this process; 0: closed loop */
	uint64_t threads;
	uint64_t depth;
	uint64_t batch;
	uint64_t key_bytes;
	uint64_t value_bytes;
	uint64_t seed;	    /* may be 0 */
	uint64_t client_id; /* may be 0 */
	uint64_t clients;
	uint64_t rounds; /* of --probe */
	double theta; /* may be 0 */
	bool verify;
	bool verbs;
	bool probe;
	bool load;
	bool help;
	bool version;
	const char *verify_file; /* NULL: the model is this process's own */
	const char *json;	 /* NULL: none; "-": stdout */
	const char *dist_name;
	const char *mix_text;
};

/*
 * Strings are borrowed from argv. False with a sentence in `error` on a usage error. With
 * --help or --version nothing else is checked.
 */
bool bench_options_parse(struct bench_options *options, int argc, char **argv,
			 char error[BENCH_ERROR_BYTES]);

/* How many operations this process is to make; UINT64_MAX where only time ends it. */
uint64_t bench_options_quota(const struct bench_options *options);
/* How many numbers beyond the records this process may insert at most; 0 without such inserts. */
uint64_t bench_options_inserts_max(const struct bench_options *options);

#endif
