/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict numbers of the command line and of property files: the whole text is the number, and
 * it is in range, or it is refused with a sentence that says why. Nothing is truncated.
 */
#ifndef FARKV_BENCH_NUMBER_H
#define FARKV_BENCH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_REASON_BYTES = 160 };

/* Decimal digits only. `reason` is filled when the result is false. */
bool bench_number_count(const char *text, uint64_t min, uint64_t max, uint64_t *number,
			char reason[BENCH_REASON_BYTES]);
/* As count, with an optional binary suffix k, K, M or G. */
bool bench_number_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes,
		       char reason[BENCH_REASON_BYTES]);
/* As count, with an optional sign. */
bool bench_number_signed(const char *text, int64_t min, int64_t max, int64_t *number,
			 char reason[BENCH_REASON_BYTES]);
/* Decimal digits with an optional point: min <= number < max, never NaN or infinite. */
bool bench_number_real(const char *text, double min, double max, double *number,
		       char reason[BENCH_REASON_BYTES]);

#endif
