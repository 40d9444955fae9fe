/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the memory node wakes. A timer wake-up costs some 30 us of a core in a virtual machine,
 * whatever is done in it: at 5 ms that is 0.6 %, more than all the rest, and two nodes must stay
 * below 1 % together while clients read. So the load line has three paces:
 *
 * - 5 ms while blocks are being retired (the commit or unit counters move) and memory waits for
 *   the epoch;
 * - 50 ms while clients are connected: the line is their clock;
 * - 100 ms while nobody is, so that nobody can read it; the first connection brings a beat at once.
 *
 * Correctness does not depend on the pace: see epoch.c.
 */
#ifndef FARKV_MN_PACE_H
#define FARKV_MN_PACE_H

#include <stdint.h>

enum {
	PACE_BUSY_MS = 5,
	PACE_CALM_MS = 50,
	PACE_ALONE_MS = 100,
	PACE_LINGER_MS = 200, /* busy for so long after the last change */
};

struct pace {
	uint64_t changes; /* the counters' sum at the last beat */
	uint64_t busy_until_ms;
};

/* The time until the next beat. changes: a sum that moves whenever something was retired or handed
 * out. */
uint32_t pace_interval(struct pace *pace, uint64_t changes, uint32_t client_count, uint64_t now_ms);

#endif
