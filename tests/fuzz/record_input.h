/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzzers of records share. An input is tried as it is, and again with length and checksum put
 * right, which no fuzzer guesses. What a decoder takes must come out the same when encoded.
 */
#ifndef FARKV_TESTS_FUZZ_RECORD_INPUT_H
#define FARKV_TESTS_FUZZ_RECORD_INPUT_H

#include "layout/bytes.h"
#include "layout/record.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#define FUZZ_RECORD(name)                                                                          \
	static void try_once(const uint8_t *bytes, size_t length)                                  \
	{                                                                                          \
		static struct name record;                                                         \
		static uint8_t again[RECORD_BYTES_MAX];                                            \
		uint32_t version = 0;                                                              \
		int rc = name##_decode(bytes, length, &record, &version);                          \
                                                                                                   \
		if (rc != 0 && rc != -EBADMSG && rc != -EPROTONOSUPPORT)                           \
			abort();                                                                   \
		if (rc == -EPROTONOSUPPORT && version == RECORD_VERSION)                           \
			abort();                                                                   \
		if (rc == 0 && (name##_encode(&record, again, sizeof again) != (int)length ||      \
				memcmp(again, bytes, length) != 0))                                \
			abort();                                                                   \
	}                                                                                          \
                                                                                                   \
	int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);                           \
	int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)                            \
	{                                                                                          \
		uint8_t *mended;                                                                   \
                                                                                                   \
		try_once(bytes, length);                                                           \
		if (length < 20)                                                                   \
			return 0;                                                                  \
		mended = malloc(length);                                                           \
		memcpy(mended, bytes, length);                                                     \
		store_le32(mended + 8, (uint32_t)(length - 20));                                   \
		store_le64(mended + 12, XXH3_64bits(mended + 20, length - 20));                    \
		try_once(mended, length);                                                          \
		free(mended);                                                                      \
		return 0;                                                                          \
	}

#endif
