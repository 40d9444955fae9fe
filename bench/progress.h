/* SPDX-License-Identifier: Apache-2.0 */
/* A line on stderr that is rewritten once a second; nothing where stderr is no terminal. */
#ifndef FARKV_BENCH_PROGRESS_H
#define FARKV_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_progress {
	bool shown;
	uint64_t start_ns;
	uint64_t last_ns;
	uint64_t last_done;
};

void bench_progress_init(struct bench_progress *progress, uint64_t now_ns);
/* total UINT64_MAX: only `seconds` end it; seconds 0: no limit. */
void bench_progress_show(struct bench_progress *progress, const char *phase, uint64_t done,
			 uint64_t total, double seconds, uint64_t now_ns);
/* Takes the line away. */
void bench_progress_end(struct bench_progress *progress);

#endif
