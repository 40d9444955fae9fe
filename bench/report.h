/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a table for people, and as JSON for programs. */
#ifndef FARKV_BENCH_REPORT_H
#define FARKV_BENCH_REPORT_H

#include <stdio.h>

#include "bench/runner.h"

void bench_report_print(FILE *out, const struct bench_options *options,
			const struct bench_result *result);
/* False when it could not be written (errno). */
bool bench_report_json(FILE *out, const struct bench_options *options,
		       const struct bench_result *result);

/* Answered operations of the run per second; 0 when it took no time. */
double bench_report_throughput(const struct bench_result *result);

/* The members of struct farkv_verbs by their JSON names. */
struct bench_verb {
	const char *name;
	size_t offset;
};
enum { BENCH_VERBS = 9 };
extern const struct bench_verb bench_verbs[BENCH_VERBS];
uint64_t bench_verb_count(const struct farkv_verbs *verbs, const struct bench_verb *verb);

#endif
