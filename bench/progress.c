/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const uint64_t interval_ns = 1000000000u;

void bench_progress_init(struct bench_progress *progress, uint64_t now_ns)
{
	*progress = (struct bench_progress){isatty(STDERR_FILENO) == 1, now_ns, now_ns, 0};
}

/* Seconds to go, by the mean rate so far; negative when nobody can tell. */
static double eta_s(double spent_s, uint64_t done, uint64_t total, double seconds)
{
	double eta = -1;

	if (total != UINT64_MAX && done > 0)
		eta = spent_s * ((double)total / (double)done - 1);
	if (seconds > 0 && (eta < 0 || seconds - spent_s < eta))
		eta = seconds - spent_s;
	return eta;
}

void bench_progress_show(struct bench_progress *progress, const char *phase, uint64_t done,
			 uint64_t total, double seconds, uint64_t now_ns)
{
	double rate, eta;

	if (!progress->shown || now_ns - progress->last_ns < interval_ns)
		return;
	if (done < progress->last_done) { /* the next phase began */
		progress->start_ns = progress->last_ns;
		progress->last_done = 0;
	}
	rate = (double)(done - progress->last_done) * 1e9 / (double)(now_ns - progress->last_ns);
	eta = eta_s((double)(now_ns - progress->start_ns) / 1e9, done, total, seconds);
	fprintf(stderr, "\r\033[K%s: %" PRIu64, phase, done);
	if (total != UINT64_MAX)
		fprintf(stderr, " of %" PRIu64 " (%.0f%%)", total,
			total ? 100.0 * (double)done / (double)total : 100.0);
	fprintf(stderr, ", %.0f/s", rate);
	if (eta >= 0)
		fprintf(stderr, ", %.0f s left", eta);
	fflush(stderr);
	progress->last_ns = now_ns;
	progress->last_done = done;
}

void bench_progress_end(struct bench_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
}
