/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: one line each, a FAA target in the line's first word; then the load line, which the MN
 * rewrites every 5 ms. Words of the load line are each whole, but may be of different ages.
 */
#ifndef FARKV_LAYOUT_COUNTER_H
#define FARKV_LAYOUT_COUNTER_H

#include <stdint.h>

enum { COUNTER_STRIPES = 8 };

enum counter {
	COUNTER_SESSIONS, /* session numbers handed out: FAA(1), and the word found + 1 is yours */
	COUNTER_UNITS,    /* heap units handed out; may run past the heap's size when it is full */
	COUNTER_ITEMS,    /* COUNTER_STRIPES lines, two's complement */
	COUNTER_COMMITS = COUNTER_ITEMS + COUNTER_STRIPES,
	COUNTER_LOAD = COUNTER_COMMITS + COUNTER_STRIPES, /* the load line */
	COUNTER_LINES,
};

enum { LOAD_RATE_UNKNOWN = -1 };

struct load {
	uint64_t epoch;
	uint64_t safe_epoch;
	uint64_t time_ms; /* the MN's clock: CLOCK_REALTIME, never going back */
	/* per second at the device, or LOAD_RATE_UNKNOWN */
	int64_t read_rate, write_rate, atomic_rate;
};

void load_encode(const struct load *load, uint8_t line[64]);
void load_decode(const uint8_t line[64], struct load *load);

#endif
