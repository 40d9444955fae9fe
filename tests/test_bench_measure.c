/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms, pacers, windows of inserts, shares of work. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench/histogram.h"
#include "bench/pacer.h"
#include "bench/random.h"
#include "bench/window.h"
#include "bench/worker.h"

Test(bench_measure, quantiles_are_within_one_percent)
{
	struct bench_histogram *histogram = calloc(1, sizeof(*histogram));
	double wanted, got;

	for (uint64_t i = 1; i <= 1000000; i++)
		bench_histogram_add(histogram, i * 37);
	for (double q = 0.001; q < 1; q += 0.0173) {
		wanted = q * 1000000 * 37;
		got = (double)bench_histogram_quantile(histogram, q);
		cr_expect(got >= wanted - 37 && got <= wanted * 1.01 + 37, "%g: %g, not %g", q, got,
			  wanted);
	}
	cr_expect_eq(bench_histogram_quantile(histogram, 1), 37000000);
	cr_expect_eq(histogram->max_ns, 37000000);
	free(histogram);
}

Test(bench_measure, every_value_has_a_bucket)
{
	struct bench_histogram *histogram = calloc(1, sizeof(*histogram));
	uint64_t ns;

	cr_expect_eq(bench_histogram_quantile(histogram, 0.5), 0);
	for (int bit = 0; bit < 64; bit++) {
		for (int d = -1; d <= 1; d++) {
			ns = (UINT64_C(1) << bit) + (uint64_t)d;
			histogram->max_ns = 0;
			histogram->count = 0;
			for (int i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
				histogram->buckets[i] = 0;
			bench_histogram_add(histogram, ns);
			cr_expect_eq(bench_histogram_quantile(histogram, 0.5), ns);
		}
	}
	free(histogram);
}

Test(bench_measure, merging_is_adding)
{
	struct bench_histogram *parts = calloc(3, sizeof(*parts));
	struct bench_random random;
	uint64_t ns;

	bench_random_seed(&random, 5, 0);
	for (int i = 0; i < 10000; i++) {
		ns = bench_random_next(&random) >> bench_random_below(&random, 60);
		bench_histogram_add(&parts[0], ns);
		bench_histogram_add(&parts[1 + i % 2], ns);
	}
	bench_histogram_merge(&parts[1], &parts[2]);
	cr_expect_arr_eq(&parts[0], &parts[1], sizeof(parts[0]));
	free(parts);
}

Test(bench_measure, a_pacer_keeps_to_its_timetable)
{
	struct bench_pacer pacers[3];
	uint64_t due = 0;

	for (uint64_t t = 0; t < 3; t++)
		bench_pacer_init(&pacers[t], 1000, 1e6, t, 3);
	for (int i = 0; i < 300; i++) {
		due = bench_pacer_due(&pacers[i % 3]);
		cr_assert_eq(due, 1000 + (uint64_t)i * 1000);
		bench_pacer_advance(&pacers[i % 3]);
	}
	cr_expect_eq(bench_pacer_due(&pacers[0]), 301000);
	cr_expect_eq(bench_pacer_behind(&pacers[0], 301000), 0);
	cr_expect_eq(bench_pacer_behind(&pacers[0], 301001), 1);
	cr_expect_eq(bench_pacer_behind(&pacers[0], 310001), 4);
}

Test(bench_measure, shares_sum_up_exactly)
{
	for (uint64_t threads = 1; threads < 20; threads++) {
		for (uint64_t total = 0; total < 100; total++) {
			uint64_t sum = 0;

			for (uint64_t t = 0; t < threads; t++)
				sum += bench_worker_share(total, t, threads);
			cr_assert_eq(sum, total);
		}
	}
}

Test(bench_measure, a_window_stops_at_the_first_open_insert)
{
	struct bench_window window;

	cr_assert(bench_window_init(&window, 4));
	for (uint64_t i = 0; i < 4; i++)
		cr_expect_eq(bench_window_take(&window), i);
	cr_expect_eq(bench_window_take(&window), UINT64_MAX);
	bench_window_settle(&window, 1, true);
	cr_expect_eq(bench_window_settled(&window), 0);
	bench_window_settle(&window, 0, false);
	cr_expect_eq(bench_window_settled(&window), 2);
	cr_expect_not(bench_window_present(&window, 0));
	cr_expect(bench_window_present(&window, 1));
	bench_window_settle(&window, 3, true);
	bench_window_settle(&window, 2, true);
	cr_expect_eq(bench_window_settled(&window), 4);
	bench_window_destroy(&window);
}

enum { THREADS = 4, INSERTS = 200000 };

static struct bench_window shared;

static void *settle_all(void *arg)
{
	uint64_t index, settled;

	(void)arg;
	while ((index = bench_window_take(&shared)) != UINT64_MAX) {
		bench_window_settle(&shared, index, true);
		settled = bench_window_settled(&shared);
		cr_assert(settled == 0 || bench_window_present(&shared, settled - 1));
	}
	return NULL;
}

Test(bench_measure, a_window_is_settled_by_many_threads)
{
	pthread_t threads[THREADS];

	cr_assert(bench_window_init(&shared, INSERTS));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, settle_all, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(bench_window_settled(&shared), INSERTS);
	bench_window_destroy(&shared);
}
