/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers of layout share: a broken promise is a crash, which the fuzzer keeps. */
#ifndef FARKV_TESTS_FUZZ_REQUIRE_H
#define FARKV_TESTS_FUZZ_REQUIRE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(x)                                                                                 \
	do                                                                                         \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);            \
			abort();                                                                   \
		}                                                                                  \
	while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The input's first `size` bytes, zeros where it is shorter. */
static inline void fuzz_take(const uint8_t *bytes, size_t length, void *out, size_t size)
{
	memset(out, 0, size);
	if (length > 0)
		memcpy(out, bytes, length < size ? length : size);
}

#endif
