/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that prove themselves. A value says which key it belongs to, who wrote it, in which
 * run, as that key's how-many-eth write, and how long it is; a check over these makes the
 * header unforgeable by accident, and the rest is filler drawn from the check, every byte of it
 * compared. The --seed has no part in it: any run can prove the values of any other.
 */
#ifndef FARKV_BENCH_VALUE_H
#define FARKV_BENCH_VALUE_H

#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_VALUE_HEADER_BYTES = 40, /* a shorter value holds a part of it, and proves less */
};

struct bench_value {
	uint64_t number; /* the key's */
	uint32_t writer;
	uint32_t run;	 /* names the verify table, or the process, whose tickets these are */
	uint32_t ticket; /* 0: written without a table */
};

enum bench_value_verdict {
	BENCH_VALUE_GOOD,
	BENCH_VALUE_SHORT,  /* too short to hold a header */
	BENCH_VALUE_HEADER, /* not a header that farkv-bench wrote, or with another length */
	BENCH_VALUE_FILLER, /* torn: the rest does not belong to the header */
};

void bench_value_encode(const struct bench_value *value, void *buffer, size_t value_bytes);
/* *value is filled in unless the verdict is SHORT or HEADER. */
enum bench_value_verdict bench_value_decode(const void *buffer, size_t value_bytes,
					    struct bench_value *value);

#endif
