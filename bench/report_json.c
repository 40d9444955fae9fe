/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "bench/machine.h"
#include "bench/report.h"

enum { REPORT_MEMBERS = 14 };

/* Members that cannot be set (memory) are missing from the document; the set is checked at the end.
 */
static void set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value);
}

static void set_count(json_t *object, const char *name, uint64_t count)
{
	set(object, name, json_integer((json_int_t)count));
}

static json_t *histogram_json(const struct bench_histogram *histogram)
{
	json_t *object = json_object();
	double mean_ns =
		histogram->count ? (double)histogram->sum_ns / (double)histogram->count : 0;

	set(object, "mean", json_real(mean_ns / 1e3));
	set(object, "p50", json_real((double)bench_histogram_quantile(histogram, 0.5) / 1e3));
	set(object, "p99", json_real((double)bench_histogram_quantile(histogram, 0.99) / 1e3));
	set(object, "p999", json_real((double)bench_histogram_quantile(histogram, 0.999) / 1e3));
	set(object, "max", json_real((double)histogram->max_ns / 1e3));
	return object;
}

static json_t *op_json(const struct bench_op_stats *of)
{
	json_t *object = json_object(), *per_op = json_object();
	double count = of->count ? (double)of->count : 1;

	set_count(object, "count", of->count);
	set_count(object, "errors", of->errors);
	set_count(object, "not_found", of->not_found);
	set_count(object, "exists", of->exists);
	set(object, "latency_us", histogram_json(&of->latency));
	set(object, "service_us", histogram_json(&of->service));
	set_count(object, "cached", of->cached);
	set(per_op, "round_trips", json_real((double)of->round_trips / count));
	set(object, "verbs_per_op", per_op);
	return object;
}

static json_t *verbs_json(const struct farkv_verbs *verbs)
{
	json_t *object = json_object();

	for (int i = 0; i < BENCH_VERBS; i++)
		set_count(object, bench_verbs[i].name, bench_verb_count(verbs, &bench_verbs[i]));
	return object;
}

static json_t *verbs_per_op_json(const struct farkv_verbs *verbs, uint64_t operations)
{
	json_t *object = json_object();
	double divisor = operations ? (double)operations : 1;

	for (int i = 0; i < BENCH_VERBS; i++)
		set(object, bench_verbs[i].name,
		    json_real((double)bench_verb_count(verbs, &bench_verbs[i]) / divisor));
	return object;
}

static json_t *verify_json(const struct bench_stats *stats)
{
	json_t *object = json_object(), *kinds = json_object();

	set_count(object, "checked", stats->checked);
	set_count(object, "wrong", bench_stats_wrong(stats));
	for (int i = 0; i < BENCH_FAULTS; i++) {
		if (stats->wrong[i] > 0)
			set_count(kinds, bench_fault_name((enum bench_fault)i), stats->wrong[i]);
	}
	set(object, "wrong_by_kind", kinds);
	return object;
}

static json_t *errors_json(const struct bench_stats *stats)
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < BENCH_ERRORS; i++) {
		if (stats->errors[i] > 0)
			set_count(object, bench_error_name(i), stats->errors[i]);
	}
	if (stats->unanswered > 0)
		set_count(object, "unanswered", stats->unanswered);
	return object;
}

static json_t *machine_json(void)
{
	struct bench_machine machine;
	json_t *object = json_object();

	bench_machine_read(&machine);
	set(object, "host", json_string(machine.host));
	set(object, "kernel", json_string(machine.kernel));
	set(object, "processor", json_string(machine.processor));
	set_count(object, "processors", (uint64_t)machine.processors);
	return object;
}

static json_t *nodes_json(const struct bench_result *result)
{
	json_t *array = json_array(), *node;

	for (size_t i = 0; i < result->nodes; i++) {
		node = json_object();
		set_count(node, "id", result->mn[i].mn_id);
		set(node, "device", json_string(result->mn[i].device));
		set(node, "softnic", json_boolean(result->mn[i].is_softnic));
		set_count(node, "max_inline", result->mn[i].max_inline);
		json_array_append_new(array, node);
	}
	return array;
}

static json_t *config_json(const struct bench_options *options, const struct bench_result *result)
{
	const struct bench_workload *workload = &options->workload;
	json_t *object = json_object(), *mix = json_object();

	set(object, "machine", machine_json());
	set(object, "device", json_string(options->store.device));
	set(object, "nodes", nodes_json(result));
	set(object, "version", json_string(farkv_version()));
	set(object, "commit", json_string(bench_commit()));
	set(object, "workload",
	    json_string(options->workload_name ? options->workload_name : "mix"));
	set(object, "load", json_boolean(workload->load));
	for (int op = 0; op < BENCH_OPS; op++)
		set(mix, bench_op_name((enum bench_op)op), json_real(workload->mix.share[op]));
	set(object, "mix", mix);
	set(object, "dist", json_string(bench_dist_name(workload->dist)));
	set(object, "theta", json_real(options->theta));
	set_count(object, "seed", options->seed);
	set_count(object, "threads", options->threads);
	set_count(object, "depth", options->depth);
	set_count(object, "batch", options->batch);
	set_count(object, "records", options->records);
	set_count(object, "ops", options->ops);
	set(object, "seconds", json_real(options->seconds));
	set(object, "rate", json_real(options->rate));
	set_count(object, "key_bytes", options->keys.key_bytes);
	set_count(object, "value_bytes", options->value_bytes);
	set_count(object, "clients", options->clients);
	set_count(object, "client_id", options->client_id);
	set(object, "verify", json_boolean(options->verify));
	return object;
}

static json_t *service_json(const struct bench_stats *stats)
{
	json_t *object = json_object();

	for (int op = 0; op < BENCH_OPS; op++)
		set(object, bench_op_name((enum bench_op)op),
		    histogram_json(&stats->ops[op].service));
	return object;
}

static json_t *cache_json(const struct bench_stats *stats)
{
	json_t *object = json_object();

	set_count(object, "hits", stats->cache_hits);
	set_count(object, "stale", stats->cache_stale);
	set_count(object, "misses", stats->cache_misses);
	return object;
}

static json_t *report_json(const struct bench_options *options, const struct bench_result *result)
{
	const struct bench_stats *stats = result->stats;
	uint64_t operations = bench_stats_count(stats);
	json_t *root = json_object(), *ops = json_object();

	set(root, "throughput_ops", json_real(bench_report_throughput(result)));
	set(root, "elapsed_s", json_real((double)result->elapsed_ns / 1e9));
	set(root, "interrupted", json_boolean(result->interrupted));
	for (int op = 0; op < BENCH_OPS; op++)
		set(ops, bench_op_name((enum bench_op)op), op_json(&stats->ops[op]));
	set(root, "ops", ops);
	set(root, "service_us", service_json(stats));
	set(root, "verify", verify_json(stats));
	set(root, "errors_by_kind", errors_json(stats));
	set_count(root, "behind", stats->behind);
	set(root, "verbs", verbs_json(&stats->verbs));
	set(root, "verbs_per_op", verbs_per_op_json(&stats->verbs, operations));
	set(root, "deferred", verbs_json(&stats->deferred));
	set(root, "deferred_per_op", verbs_per_op_json(&stats->deferred, operations));
	set(root, "cache", cache_json(stats));
	set(root, "config", config_json(options, result));
	return root;
}

bool bench_report_json(FILE *out, const struct bench_options *options,
		       const struct bench_result *result)
{
	json_t *root = report_json(options, result);
	bool good = root && json_object_size(root) == REPORT_MEMBERS &&
		    json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
		    fputc('\n', out) != EOF && fflush(out) == 0;

	json_decref(root);
	return good;
}
