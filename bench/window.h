/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that a run inserts beyond its records: who inserts which, and up to where all of them
 * are settled, so that no read is about a key whose insert is not acknowledged. Thread-safe.
 */
#ifndef FARKV_BENCH_WINDOW_H
#define FARKV_BENCH_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_window {
	uint64_t max;
	_Atomic uint64_t taken;	    /* indices 0..taken-1 are given out */
	_Atomic uint64_t settled;   /* the inserts of all indices below are answered */
	_Atomic uint64_t *answered; /* bitmaps; owned; sparse */
	_Atomic uint64_t *present;
	size_t bitmap_bytes;
};

/* max 0: no inserts. False when memory is exhausted. */
bool bench_window_init(struct bench_window *window, uint64_t max);
void bench_window_destroy(struct bench_window *window);

/* An index to insert, or UINT64_MAX when all are given out. */
uint64_t bench_window_take(struct bench_window *window);
/* The insert is answered. present: the key is there now; otherwise it is never to be read. */
void bench_window_settle(struct bench_window *window, uint64_t index, bool present);
/* How many indices from 0 on are answered. */
uint64_t bench_window_settled(const struct bench_window *window);
/* index < settled. */
bool bench_window_present(const struct bench_window *window, uint64_t index);

#endif
