/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/generator.h"

#include <assert.h>
#include <math.h>

enum { REDRAWS_MAX = 1000 };

static const uint64_t scramble_salt = 0x7a69706669616e21u;

/* log1p(x) / x, continuous at 0. */
static double log1p_ratio(double x)
{
	if (fabs(x) > 1e-8)
		return log1p(x) / x;
	return 1 - x * (0.5 - x * (1.0 / 3));
}

/* expm1(x) / x, continuous at 0. */
static double expm1_ratio(double x)
{
	if (fabs(x) > 1e-8)
		return expm1(x) / x;
	return 1 + x * 0.5 * (1 + x * (1.0 / 3));
}

/* An integral of x^-theta: (x^(1 - theta) - 1) / (1 - theta), log x at theta = 1. */
static double h_integral(const struct bench_zipf *zipf, double x)
{
	double log_x = log(x);

	return expm1_ratio((1 - zipf->theta) * log_x) * log_x;
}

static double h_integral_inverse(const struct bench_zipf *zipf, double y)
{
	double t = y * (1 - zipf->theta);

	if (t < -1)
		t = -1; /* rounding, for theta near 2 */
	return exp(log1p_ratio(t) * y);
}

static double h(const struct bench_zipf *zipf, double x)
{
	return exp(-zipf->theta * log(x));
}

void bench_zipf_init(struct bench_zipf *zipf, uint64_t items, double theta)
{
	assert(theta >= 0 && theta < 2);
	zipf->theta = theta;
	zipf->items = 0;
	zipf->h_first = h_integral(zipf, 1.5) - 1;
	zipf->squeeze = 2 - h_integral_inverse(zipf, h_integral(zipf, 2.5) - h(zipf, 2));
	bench_zipf_resize(zipf, items);
}

void bench_zipf_resize(struct bench_zipf *zipf, uint64_t items)
{
	assert(items >= 1);
	if (items == zipf->items)
		return;
	zipf->items = items;
	zipf->h_items = h_integral(zipf, (double)items + 0.5);
}

uint64_t bench_zipf_next(struct bench_zipf *zipf, struct bench_random *random)
{
	double u, x, k;

	if (zipf->items == 1)
		return 0;
	if (zipf->theta == 0)
		return bench_random_below(random, zipf->items);
	/* Accepts more than half of the draws for every theta and number of items. */
	for (;;) {
		u = zipf->h_items + bench_random_real(random) * (zipf->h_first - zipf->h_items);
		x = h_integral_inverse(zipf, u);
		k = floor(x + 0.5);
		if (k < 1)
			k = 1;
		if (k > (double)zipf->items)
			k = (double)zipf->items;
		if (k - x <= zipf->squeeze || u >= h_integral(zipf, k + 0.5) - h(zipf, k))
			return (uint64_t)k - 1;
	}
}

void bench_generator_init(struct bench_generator *generator, enum bench_dist dist, uint64_t domain,
			  double theta)
{
	generator->dist = dist;
	generator->domain = domain;
	bench_zipf_init(&generator->zipf, domain, theta);
}

static uint64_t zipfian_next(struct bench_generator *generator, uint64_t items,
			     struct bench_random *random)
{
	uint64_t rank, item;

	for (int i = 0; i < REDRAWS_MAX; i++) {
		rank = bench_zipf_next(&generator->zipf, random);
		item = bench_mix_below(rank, generator->domain, scramble_salt);
		if (item < items)
			return item;
	}
	return bench_random_below(random, items);
}

uint64_t bench_generator_next(struct bench_generator *generator, uint64_t items,
			      struct bench_random *random)
{
	assert(items >= 1);
	switch (generator->dist) {
	case BENCH_DIST_ZIPFIAN:
		return zipfian_next(generator, items, random);
	case BENCH_DIST_LATEST:
		bench_zipf_resize(&generator->zipf, items);
		return items - 1 - bench_zipf_next(&generator->zipf, random);
	case BENCH_DIST_UNIFORM:
		break;
	}
	return bench_random_below(random, items);
}

const char *bench_dist_name(enum bench_dist dist)
{
	static const char *const names[] = {"uniform", "zipfian", "latest"};

	return names[dist];
}
