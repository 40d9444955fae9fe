/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which item an operation is about. Zipfian ranks come from rejection inversion (Hormann and
 * Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
 * ACM TOMACS 6(3), 1996): the same law as the generator of Gray et al. that YCSB uses,
 * P(rank k) ~ 1 / k^theta, but exact for every theta in [0, 2), 1.0 included, and without a
 * zeta sum: 2^31 items start at once, and the number of items may change between draws.
 */
#ifndef FARKV_BENCH_GENERATOR_H
#define FARKV_BENCH_GENERATOR_H

#include <stdint.h>

#include "bench/random.h"

struct bench_zipf {
	double theta;
	uint64_t items;
	double h_first; /* H(1.5) - 1 */
	double h_items; /* H(items + 0.5) */
	double squeeze;
};

/* items >= 1, 0 <= theta < 2. */
void bench_zipf_init(struct bench_zipf *zipf, uint64_t items, double theta);
/* As init with the same theta; cheap. */
void bench_zipf_resize(struct bench_zipf *zipf, uint64_t items);
/* A rank in [0, items), 0 the most frequent. */
uint64_t bench_zipf_next(struct bench_zipf *zipf, struct bench_random *random);

enum bench_dist {
	BENCH_DIST_UNIFORM,
	BENCH_DIST_ZIPFIAN, /* scrambled: ranks spread over the items by a bijection */
	BENCH_DIST_LATEST,  /* the newest item is the most frequent */
};

struct bench_generator {
	enum bench_dist dist;
	uint64_t domain; /* items that zipfian spreads ranks over; may exceed those there are */
	struct bench_zipf zipf;
};

void bench_generator_init(struct bench_generator *generator, enum bench_dist dist, uint64_t domain,
			  double theta);
/*
 * An item in [0, items), items >= 1. Zipfian draws again while an item of the domain is not
 * there yet, as YCSB does, so that an item's popularity does not change as others arrive.
 */
uint64_t bench_generator_next(struct bench_generator *generator, uint64_t items,
			      struct bench_random *random);

const char *bench_dist_name(enum bench_dist dist);

#endif
