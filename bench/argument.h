/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a table: one row per option parses it, checks its range and describes it. */
#ifndef FARKV_BENCH_ARGUMENT_H
#define FARKV_BENCH_ARGUMENT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/options.h"

/* Fills members of `options` in; they keep what they hold where no argument speaks of them. */
bool bench_arguments_read(struct bench_options *options, int argc, char **argv,
			  char error[BENCH_ERROR_BYTES]);
void bench_arguments_help(FILE *out);

#endif
