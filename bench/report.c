/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <inttypes.h>
#include <string.h>

#include "bench/machine.h"

#define VERB(member)                                                                               \
	{                                                                                          \
#member, offsetof(struct farkv_verbs, member)                                      \
	}

const struct bench_verb bench_verbs[BENCH_VERBS] = {
	VERB(read),	 VERB(write), VERB(cas),	 VERB(faa),	      VERB(send),
	VERB(doorbells), VERB(cqes),  VERB(round_trips), VERB(inline_writes),
};

uint64_t bench_verb_count(const struct farkv_verbs *verbs, const struct bench_verb *verb)
{
	uint64_t count;

	memcpy(&count, (const char *)verbs + verb->offset, sizeof(count));
	return count;
}

double bench_report_throughput(const struct bench_result *result)
{
	if (result->elapsed_ns == 0)
		return 0;
	return (double)bench_stats_count(result->stats) * 1e9 / (double)result->elapsed_ns;
}

static void device_print(FILE *out, const struct bench_options *options,
			 const struct bench_result *result)
{
	const char *seen = result->nodes > 0 ? result->mn[0].device : "unknown";

	fprintf(out, "device:  %s; %zu memory node%s on %s%s\n", options->store.device,
		result->nodes, result->nodes == 1 ? "" : "s", seen,
		result->nodes > 0 && result->mn[0].is_softnic
			? " (the software NIC: not figures of RDMA hardware)"
			: "");
}

static void config_print(FILE *out, const struct bench_options *options,
			 const struct bench_result *result)
{
	struct bench_machine machine;
	const char *name = options->workload_name ? options->workload_name : "mix";

	bench_machine_read(&machine);
	fprintf(out, "farkv-bench %s (%s), workload %s%s\n", farkv_version(), bench_commit(), name,
		options->workload.load && strcmp(name, "load") != 0 ? ", load phase" : "");
	fprintf(out, "machine: %s, %ld x %s, %s\n", machine.host, machine.processors,
		machine.processor, machine.kernel);
	device_print(out, options, result);
	fprintf(out, "config:  %" PRIu64 " records, %zu-byte keys, %" PRIu64 "-byte values, %s",
		options->records, options->keys.key_bytes, options->value_bytes,
		bench_dist_name(options->workload.dist));
	if (options->workload.dist != BENCH_DIST_UNIFORM)
		fprintf(out, " %g", options->theta);
	fprintf(out, ", %" PRIu64 " thread%s x depth %" PRIu64, options->threads,
		options->threads == 1 ? "" : "s", options->depth);
	if (options->rate > 0)
		fprintf(out, ", open loop at %g/s", options->rate);
	if (options->clients > 1)
		fprintf(out, ", client %" PRIu64 " of %" PRIu64, options->client_id,
			options->clients);
	fprintf(out, ", seed %" PRIu64 "\n", options->seed);
}

static void histogram_print(FILE *out, const struct bench_histogram *histogram)
{
	fprintf(out, " %9.1f %9.1f %9.1f %9.1f",
		(double)bench_histogram_quantile(histogram, 0.5) / 1e3,
		(double)bench_histogram_quantile(histogram, 0.99) / 1e3,
		(double)bench_histogram_quantile(histogram, 0.999) / 1e3,
		(double)histogram->max_ns / 1e3);
}

static void ops_print(FILE *out, const struct bench_options *options,
		      const struct bench_stats *stats)
{
	const struct bench_op_stats *of;

	fprintf(out, "%-8s %12s %9s %9s %9s %9s %9s %9s %9s\n", "op", "count", "errors",
		"not found", "exists", "p50 us", "p99 us", "p99.9 us", "max us");
	for (int op = 0; op < BENCH_OPS; op++) {
		of = &stats->ops[op];
		if (of->count == 0)
			continue;
		fprintf(out, "%-8s %12" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64,
			bench_op_name((enum bench_op)op), of->count, of->errors, of->not_found,
			of->exists);
		histogram_print(out, &of->latency);
		fputc('\n', out);
		if (options->rate > 0) {
			fprintf(out, "%-8s %12s %9s %9s %9s", "", "service", "", "", "");
			histogram_print(out, &of->service);
			fputc('\n', out);
		}
	}
}

static void errors_print(FILE *out, const struct bench_stats *stats)
{
	for (unsigned int i = 0; i < BENCH_ERRORS; i++) {
		if (stats->errors[i] > 0)
			fprintf(out, "errors:  %" PRIu64 " x %s (%s)\n", stats->errors[i],
				bench_error_name(i), farkv_strerror(-(int)i));
	}
	if (stats->unanswered > 0)
		fprintf(out, "errors:  %" PRIu64 " operations were never answered\n",
			stats->unanswered);
	if (stats->behind > 0)
		fprintf(out, "behind:  %" PRIu64 " operations were due, but not started in time\n",
			stats->behind);
}

static void verify_print(FILE *out, const struct bench_stats *stats)
{
	const char *separator = " (";

	fprintf(out, "verify:  checked %" PRIu64 ", wrong %" PRIu64, stats->checked,
		bench_stats_wrong(stats));
	for (int i = 0; i < BENCH_FAULTS; i++) {
		if (stats->wrong[i] == 0)
			continue;
		fprintf(out, "%s%" PRIu64 " %s", separator, stats->wrong[i],
			bench_fault_name((enum bench_fault)i));
		separator = ", ";
	}
	fputs(bench_stats_wrong(stats) > 0 ? ")\n" : "\n", out);
	if (stats->wrong[BENCH_FAULT_LOST] > 0)
		fputs("         A run takes it that all --records were loaded: --workload load.\n",
		      out);
	if (stats->wrong[BENCH_FAULT_STALE] > 0)
		fputs("         Several processes that write the same records need one "
		      "--verify-file.\n",
		      out);
}

static void verbs_print(FILE *out, const struct bench_stats *stats)
{
	double operations = (double)bench_stats_count(stats);
	uint64_t own, deferred;

	if (operations == 0)
		return;
	fprintf(out, "%-14s %14s %10s %14s %10s\n", "verbs", "operations'", "per op", "deferred",
		"per op");
	for (int i = 0; i < BENCH_VERBS; i++) {
		own = bench_verb_count(&stats->verbs, &bench_verbs[i]);
		deferred = bench_verb_count(&stats->deferred, &bench_verbs[i]);
		fprintf(out, "%-14s %14" PRIu64 " %10.4f %14" PRIu64 " %10.4f\n",
			bench_verbs[i].name, own, (double)own / operations, deferred,
			(double)deferred / operations);
	}
	fprintf(out, "cache: %" PRIu64 " hits, %" PRIu64 " stale, %" PRIu64 " misses\n",
		stats->cache_hits, stats->cache_stale, stats->cache_misses);
}

void bench_report_print(FILE *out, const struct bench_options *options,
			const struct bench_result *result)
{
	const struct bench_stats *stats = result->stats;

	config_print(out, options, result);
	if (result->interrupted)
		fputs("interrupted: what follows is a part of the run\n", out);
	fprintf(out, "total:   %" PRIu64 " operations in %.3f s, %.0f/s\n",
		bench_stats_count(stats), (double)result->elapsed_ns / 1e9,
		bench_report_throughput(result));
	ops_print(out, options, stats);
	errors_print(out, stats);
	if (options->verify)
		verify_print(out, stats);
	if (options->verbs)
		verbs_print(out, stats);
}
