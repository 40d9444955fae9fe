/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers (xoshiro256**, seeded through splitmix64), and the mixers of numbers. */
#ifndef FARKV_BENCH_RANDOM_H
#define FARKV_BENCH_RANDOM_H

#include <stdint.h>

struct bench_random {
	uint64_t state[4];
};

void bench_random_seed(struct bench_random *random, uint64_t seed, uint64_t stream);
uint64_t bench_random_next(struct bench_random *random);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t bench_random_below(struct bench_random *random, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double bench_random_real(struct bench_random *random);

/* A bijection of 64-bit numbers with good avalanche (splitmix64's finalizer). */
static inline uint64_t bench_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/*
 * A bijection of [0, 2^bits), 1 <= bits <= 64: xor-shifts and products with odd numbers are
 * bijections of `bits`-bit numbers each. `salt` picks one of many.
 */
uint64_t bench_mix_bits(uint64_t x, unsigned int bits, uint64_t salt);
/* A bijection of [0, n), n > 0: walks the cycle of bench_mix_bits until it is back inside. */
uint64_t bench_mix_below(uint64_t x, uint64_t n, uint64_t salt);

#endif
