/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key numbers to keys: "user", then the number in as many decimal digits as fit (19 at most),
 * then filler up to the key's length. Unless ordered, the number is first permuted within the
 * largest power of two that the digits can write, so keys look random and are distinct by
 * construction: no hash that could collide. The seed has no part in it: load and run, today
 * and tomorrow, mean the same keys.
 */
#ifndef FARKV_BENCH_KEY_H
#define FARKV_BENCH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_KEY_PREFIX_BYTES = 4,
	BENCH_KEY_DIGITS_MAX = 19,
	BENCH_KEY_BYTES_MIN = BENCH_KEY_PREFIX_BYTES + 1,
	BENCH_KEY_BYTES_DEFAULT = BENCH_KEY_PREFIX_BYTES + BENCH_KEY_DIGITS_MAX,
	BENCH_KEY_BYTES_MAX = 1024,
};

struct bench_key_codec {
	size_t key_bytes;
	unsigned int digits;
	unsigned int bits;
	bool ordered;
};

void bench_key_codec_init(struct bench_key_codec *codec, size_t key_bytes, bool ordered);
/* How many numbers have keys of their own: numbers are 0..capacity-1. */
uint64_t bench_key_capacity(const struct bench_key_codec *codec);
/* The shortest key length for that many numbers. */
size_t bench_key_bytes_for(uint64_t numbers);
/* key: room for codec->key_bytes. */
void bench_key_encode(const struct bench_key_codec *codec, uint64_t number, char *key);

#endif
