/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench/generator.h"

enum { DRAWS = 1000000, SEED = 42 };

static double share_of_top(uint64_t items, double theta)
{
	double zeta = 0;

	for (uint64_t i = items; i > 0; i--)
		zeta += pow((double)i, -theta);
	return 1 / zeta;
}

Test(bench_generator, skew_matches_theta)
{
	static const double thetas[] = {0, 0.5, 0.99, 1.0, 1.2, 1.9};
	static const uint64_t sizes[] = {2, 100, 100000};
	struct bench_random random;
	struct bench_zipf zipf;
	uint64_t hits[3], rank;
	double top, sigma, wanted;

	bench_random_seed(&random, SEED, 0);
	for (size_t i = 0; i < 18; i++) {
		bench_zipf_init(&zipf, sizes[i % 3], thetas[i / 3]);
		hits[0] = hits[1] = 0;
		for (int j = 0; j < DRAWS; j++) {
			rank = bench_zipf_next(&zipf, &random);
			cr_assert_lt(rank, sizes[i % 3]);
			hits[rank < 2 ? rank : 2]++;
		}
		top = share_of_top(sizes[i % 3], thetas[i / 3]);
		for (int k = 0; k < 2; k++) {
			wanted = top * pow(k + 1, -thetas[i / 3]) * DRAWS;
			sigma = sqrt(wanted) + 1;
			cr_expect(fabs((double)hits[k] - wanted) < 5 * sigma,
				  "theta %g, %lu items, rank %d: %lu, not %g", thetas[i / 3],
				  sizes[i % 3], k, hits[k], wanted);
		}
	}
}

Test(bench_generator, starts_promptly_with_two_to_the_31_items)
{
	struct bench_generator generator;
	struct bench_random random;
	clock_t start = clock();

	bench_random_seed(&random, SEED, 0);
	for (int i = 0; i <= 20; i++) {
		bench_generator_init(&generator, BENCH_DIST_ZIPFIAN, UINT64_C(1) << 31, i * 0.0999);
		for (int j = 0; j < 1000; j++)
			cr_assert_lt(bench_generator_next(&generator, UINT64_C(1) << 31, &random),
				     UINT64_C(1) << 31);
	}
	cr_expect_lt((double)(clock() - start) / CLOCKS_PER_SEC, 1.0);
}

Test(bench_generator, one_item_is_enough)
{
	struct bench_generator generator;
	struct bench_random random;

	bench_random_seed(&random, SEED, 0);
	for (int dist = BENCH_DIST_UNIFORM; dist <= BENCH_DIST_LATEST; dist++) {
		bench_generator_init(&generator, (enum bench_dist)dist, 1, 0.99);
		cr_expect_eq(bench_generator_next(&generator, 1, &random), 0);
	}
}

/* The hottest item keeps its share when the ranks are spread, since no two ranks share an item. */
Test(bench_generator, scrambling_keeps_the_skew_and_spreads_the_items)
{
	enum { ITEMS = 1000 };
	uint32_t *hits = calloc(ITEMS, sizeof(*hits)), most = 0, hottest = 0;
	struct bench_generator generator;
	struct bench_random random;
	double wanted = share_of_top(ITEMS, 0.99) * DRAWS;

	bench_random_seed(&random, SEED, 0);
	bench_generator_init(&generator, BENCH_DIST_ZIPFIAN, ITEMS, 0.99);
	for (int i = 0; i < DRAWS; i++)
		hits[bench_generator_next(&generator, ITEMS, &random)]++;
	for (uint32_t i = 0; i < ITEMS; i++) {
		cr_expect_gt(hits[i], 0);
		if (hits[i] > most) {
			most = hits[i];
			hottest = i;
		}
	}
	cr_expect(fabs(most - wanted) < 5 * sqrt(wanted), "%u, not %g", most, wanted);
	cr_expect_neq(hottest, 0);
	free(hits);
}

Test(bench_generator, draws_no_item_that_is_not_there_yet)
{
	struct bench_generator generator;
	struct bench_random random;

	bench_random_seed(&random, SEED, 0);
	for (int dist = BENCH_DIST_UNIFORM; dist <= BENCH_DIST_LATEST; dist++) {
		bench_generator_init(&generator, (enum bench_dist)dist, 11000, 0.99);
		for (uint64_t items = 1; items < 11000; items += 7)
			cr_assert_lt(bench_generator_next(&generator, items, &random), items);
	}
}

Test(bench_generator, latest_prefers_the_newest)
{
	struct bench_generator generator;
	struct bench_random random;
	int newest = 0;

	bench_random_seed(&random, SEED, 0);
	bench_generator_init(&generator, BENCH_DIST_LATEST, 100, 0.99);
	for (int i = 0; i < 100000; i++)
		newest += bench_generator_next(&generator, 1000, &random) == 999;
	cr_expect(abs(newest - (int)(share_of_top(1000, 0.99) * 100000)) < 500, "%d", newest);
}

Test(bench_generator, mixing_is_a_bijection)
{
	for (uint64_t n = 1; n < 300; n++) {
		unsigned char seen[300] = {0};

		for (uint64_t x = 0; x < n; x++)
			cr_assert_eq(seen[bench_mix_below(x, n, 77)]++, 0);
	}
}
