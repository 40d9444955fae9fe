/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests: the seed is printed, and FARKV_TEST_SEED repeats a run. */
#ifndef FARKV_TESTS_SEED_H
#define FARKV_TESTS_SEED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* The state to hand to seed_next(). */
static inline uint64_t seed_take(const char *test)
{
	const char *given = getenv("FARKV_TEST_SEED");
	uint64_t seed = 1;

	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
		seed = 1;
	fprintf(stderr, "%s: FARKV_TEST_SEED=%#llx\n", test, (unsigned long long)seed);
	return seed;
}

/* splitmix64 */
static inline uint64_t seed_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline void seed_fill(uint64_t *state, uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)seed_next(state);
}

#endif
