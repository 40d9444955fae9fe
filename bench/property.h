/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java property files, as YCSB's workloads are: one `name=value` (also `name: value` and
 * `name value`) a line, # and ! comments, a line that ends in an odd number of backslashes goes
 * on in the next, \t \n \r \f \uXXXX and \x = x escapes (code points below 256 only).
 */
#ifndef FARKV_BENCH_PROPERTY_H
#define FARKV_BENCH_PROPERTY_H

#include <stdbool.h>
#include <stdio.h>

/* Borrowed for the call. False stops the reading. */
typedef bool (*bench_property_fn)(const char *name, const char *value, void *arg);

/* False when `found` said so, or on a read error (errno set then). */
bool bench_property_read(FILE *file, bench_property_fn found, void *arg);

#endif
