/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stats.h"

#include <stddef.h>

void bench_stats_error(struct bench_stats *stats, int status)
{
	unsigned int index =
		status < 0 && status > -BENCH_ERRORS ? (unsigned int)-status : BENCH_ERRORS - 1;

	stats->errors[index]++;
}

/* farkv_verbs is nothing but counters. */
static void verbs_add(struct farkv_verbs *into, const struct farkv_verbs *add,
		      const struct farkv_verbs *subtract)
{
	uint64_t *sum = (uint64_t *)into;
	const uint64_t *plus = (const uint64_t *)add, *minus = (const uint64_t *)subtract;

	for (size_t i = 0; i < sizeof(*into) / sizeof(*sum); i++)
		sum[i] += plus[i] - (minus ? minus[i] : 0);
}

static void op_merge(struct bench_op_stats *into, const struct bench_op_stats *from)
{
	into->count += from->count;
	into->errors += from->errors;
	into->not_found += from->not_found;
	into->exists += from->exists;
	into->round_trips += from->round_trips;
	into->cached += from->cached;
	bench_histogram_merge(&into->latency, &from->latency);
	bench_histogram_merge(&into->service, &from->service);
}

void bench_stats_merge(struct bench_stats *into, const struct bench_stats *from)
{
	for (int op = 0; op < BENCH_OPS; op++)
		op_merge(&into->ops[op], &from->ops[op]);
	for (int i = 0; i < BENCH_ERRORS; i++)
		into->errors[i] += from->errors[i];
	for (int i = 0; i < BENCH_FAULTS; i++)
		into->wrong[i] += from->wrong[i];
	into->checked += from->checked;
	into->unanswered += from->unanswered;
	into->behind += from->behind;
	verbs_add(&into->verbs, &from->verbs, NULL);
	verbs_add(&into->deferred, &from->deferred, NULL);
	into->cache_hits += from->cache_hits;
	into->cache_stale += from->cache_stale;
	into->cache_misses += from->cache_misses;
}

void bench_stats_session(struct bench_stats *into, const struct farkv_session_stats *before,
			 const struct farkv_session_stats *after)
{
	verbs_add(&into->verbs, &after->verbs, &before->verbs);
	verbs_add(&into->deferred, &after->deferred, &before->deferred);
	into->cache_hits += after->cache_hits - before->cache_hits;
	into->cache_stale += after->cache_stale - before->cache_stale;
	into->cache_misses += after->cache_misses - before->cache_misses;
}

uint64_t bench_stats_count(const struct bench_stats *stats)
{
	uint64_t sum = 0;

	for (int op = 0; op < BENCH_OPS; op++)
		sum += stats->ops[op].count;
	return sum;
}

uint64_t bench_stats_errors(const struct bench_stats *stats)
{
	uint64_t sum = stats->unanswered;

	for (int i = 0; i < BENCH_ERRORS; i++)
		sum += stats->errors[i];
	return sum;
}

uint64_t bench_stats_wrong(const struct bench_stats *stats)
{
	uint64_t sum = 0;

	for (int i = 0; i < BENCH_FAULTS; i++)
		sum += stats->wrong[i];
	return sum;
}

const char *bench_error_name(unsigned int index)
{
	static const char *const names[] = {"OK",	  "ENOTFOUND",	"EEXISTS",   "EINVAL",
					    "ENOSPC",	  "ETIMEDOUT",	"EUNKNOWN",  "EUNAVAILABLE",
					    "EMEMCACHED", "ENOCLUSTER", "EREFUSED",  "ENODEVICE",
					    "ENOMEM",	  "EAGAIN",	"ETOOSMALL", "EVERSION",
					    "ECORRUPT",	  "EFORK",	"EBUSY"};

	return index < sizeof(names) / sizeof(*names) ? names[index] : "other";
}
