/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/key.h"

#include <assert.h>
#include <string.h>

#include "bench/random.h"

static const uint64_t key_salt = 0x6661726b762d6b65u;

void bench_key_codec_init(struct bench_key_codec *codec, size_t key_bytes, bool ordered)
{
	uint64_t power = 10;

	assert(key_bytes >= BENCH_KEY_BYTES_MIN && key_bytes <= BENCH_KEY_BYTES_MAX);
	codec->key_bytes = key_bytes;
	codec->ordered = ordered;
	codec->digits = key_bytes - BENCH_KEY_PREFIX_BYTES < BENCH_KEY_DIGITS_MAX
				? (unsigned int)(key_bytes - BENCH_KEY_PREFIX_BYTES)
				: BENCH_KEY_DIGITS_MAX;
	for (unsigned int i = 1; i < codec->digits; i++)
		power *= 10;
	/* 10^19 is above 2^63. */
	codec->bits = 63 - (unsigned int)__builtin_clzll(power);
}

uint64_t bench_key_capacity(const struct bench_key_codec *codec)
{
	return UINT64_C(1) << codec->bits;
}

size_t bench_key_bytes_for(uint64_t numbers)
{
	struct bench_key_codec codec;
	size_t bytes = BENCH_KEY_BYTES_MIN;

	for (; bytes < BENCH_KEY_BYTES_DEFAULT; bytes++) {
		bench_key_codec_init(&codec, bytes, false);
		if (bench_key_capacity(&codec) >= numbers)
			break;
	}
	return bytes;
}

void bench_key_encode(const struct bench_key_codec *codec, uint64_t number, char *key)
{
	uint64_t rest = codec->ordered ? number : bench_mix_bits(number, codec->bits, key_salt);
	uint64_t filler = bench_mix64(rest + 1);
	size_t end = BENCH_KEY_PREFIX_BYTES + codec->digits;

	assert(number < bench_key_capacity(codec));
	memcpy(key, "user", BENCH_KEY_PREFIX_BYTES);
	for (size_t i = end; i > BENCH_KEY_PREFIX_BYTES; i--) {
		key[i - 1] = (char)('0' + rest % 10);
		rest /= 10;
	}
	for (size_t i = end; i < codec->key_bytes; i++) {
		filler = filler * 6364136223846793005u + 1442695040888963407u;
		key[i] = (char)('a' + (filler >> 33) % 26);
	}
}
