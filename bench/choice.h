/* SPDX-License-Identifier: Apache-2.0 */
/* What the next operation is, and about which key number. */
#ifndef FARKV_BENCH_CHOICE_H
#define FARKV_BENCH_CHOICE_H

#include "bench/generator.h"
#include "bench/options.h"
#include "bench/window.h"

struct bench_choice {
	enum bench_op op;
	uint64_t number;
	uint64_t index; /* in the window, of an insert beyond the records; otherwise UINT64_MAX */
};

/* One thread's. */
struct bench_chooser {
	const struct bench_options *options; /* borrowed */
	struct bench_window *window;	     /* borrowed, shared by the threads */
	struct bench_random random;
	struct bench_generator generator;
	uint64_t thread;
	uint64_t loads; /* load: how many this thread has chosen */
};

void bench_chooser_init(struct bench_chooser *chooser, const struct bench_options *options,
			struct bench_window *window, uint64_t thread);
/* False when there is nothing more to insert, which ends the run. */
bool bench_chooser_next(struct bench_chooser *chooser, struct bench_choice *choice);

/* The number of the insert with that index in the window. */
uint64_t bench_insert_number(const struct bench_options *options, uint64_t index);

#endif
