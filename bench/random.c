/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/random.h"

#include <assert.h>

void bench_random_seed(struct bench_random *random, uint64_t seed, uint64_t stream)
{
	uint64_t x = bench_mix64(seed + 0x9e3779b97f4a7c15u) ^ bench_mix64(~stream);

	for (int i = 0; i < 4; i++) {
		x += 0x9e3779b97f4a7c15u;
		random->state[i] = bench_mix64(x);
	}
}

static uint64_t rotate_left(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

uint64_t bench_random_next(struct bench_random *random)
{
	uint64_t *s = random->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t bench_random_below(struct bench_random *random, uint64_t bound)
{
	unsigned __int128 product;
	uint64_t threshold;

	assert(bound > 0);
	product = (unsigned __int128)bench_random_next(random) * bound;
	if ((uint64_t)product < bound) {
		threshold = -bound % bound;
		while ((uint64_t)product < threshold)
			product = (unsigned __int128)bench_random_next(random) * bound;
	}
	return (uint64_t)(product >> 64);
}

double bench_random_real(struct bench_random *random)
{
	return (double)(bench_random_next(random) >> 11) * 0x1p-53;
}

uint64_t bench_mix_bits(uint64_t x, unsigned int bits, uint64_t salt)
{
	static const uint64_t odd[] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u,
				       0x94d049bb133111ebu, 0xd6e8feb86659fd93u};
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	unsigned int shift = (bits + 1) / 2;

	assert(bits >= 1 && bits <= 64);
	x = (x ^ salt) & mask;
	for (int i = 0; i < 4; i++) {
		x = (x * odd[i] + (salt >> (i + 1))) & mask;
		x ^= x >> shift;
	}
	return x;
}

uint64_t bench_mix_below(uint64_t x, uint64_t n, uint64_t salt)
{
	unsigned int bits;

	assert(x < n);
	if (n == 1)
		return 0;
	bits = 64 - (unsigned int)__builtin_clzll(n - 1);
	/* n > 2^bits / 2: two steps on average; the cycle of x comes back to x at the latest. */
	do {
		x = bench_mix_bits(x, bits, salt);
	} while (x >= n);
	return x;
}
