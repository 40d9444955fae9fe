/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs of farkv-bench against a store in memory that can be told to lie. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/report.h"
#include "bench/runner.h"
#include "tests/fake_farkv.c"

static _Atomic int never;

static int run(const char *arguments, struct bench_options *options, struct bench_result *result)
{
	static char copy[512];
	char error[BENCH_ERROR_BYTES], *argv[64] = {"farkv-bench"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", arguments);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	cr_assert(bench_options_parse(options, argc, argv, error), "%s", error);
	return bench_run(options, &never, result);
}

/* Runs, and returns the number of wrong answers; errors fail the test. */
static uint64_t wrong_in(const char *arguments)
{
	struct bench_options options;
	static struct bench_result result;
	uint64_t wrong;

	cr_assert_eq(run(arguments, &options, &result), 0);
	cr_assert(bench_stats_errors(result.stats) == 0 || fake_settings.lie != FAKE_LIE_NONE);
	wrong = bench_stats_wrong(result.stats);
	bench_result_free(&result);
	return wrong;
}

static const char mixed[] = "--mix get=40,insert=20,update=20,delete=10,rmw=10 --records 300 "
			    "--ops 60000 --threads 2 --depth 16 --value-bytes 100 --verify";

Test(bench_run, counts_are_exact_whatever_the_thread_count)
{
	static const char *const lines[] = {
		"--workload load --records 100 --threads 3",
		"--workload a --records 100 --ops 1 --threads 2",
		"--workload f --records 100 --ops 101 --threads 7 --depth 3",
		"--workload c --records 100 --ops 5 --threads 8 --rate 1000"};
	static const uint64_t counts[] = {100, 1, 101, 5};
	struct bench_options options;
	static struct bench_result result;

	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(run(lines[i], &options, &result), 0);
		cr_expect_eq(bench_stats_count(result.stats), counts[i], "%s", lines[i]);
		cr_expect(bench_result_good(&result));
		bench_result_free(&result);
		cr_expect_eq(fake_farkv_items(), 100);
	}
}

Test(bench_run, one_record_is_enough)
{
	cr_expect_eq(wrong_in("--workload load --records 1 --verify"), 0);
	cr_expect_eq(wrong_in("--workload a --records 1 --ops 1000 --threads 2 --verify"), 0);
	cr_expect_eq(wrong_in("--workload d --records 1 --ops 1000 --threads 2 --verify"), 0);
}

Test(bench_run, reads_nothing_whose_insert_is_not_acknowledged)
{
	static const char *const dists[] = {"zipfian", "latest", "uniform"};
	char path[] = "/tmp/farkv-test-XXXXXX", line[256];
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	cr_assert(dprintf(fd, "readproportion=0.5\nupdateproportion=0\ninsertproportion=0.5\n") >
		  0);
	close(fd);
	for (int i = 0; i < 3; i++) {
		fake_farkv_reset();
		cr_expect_eq(wrong_in("--workload load --records 1000 --value-bytes 64 --verify"),
			     0);
		snprintf(line, sizeof(line),
			 "--workload %s --records 1000 --ops 10000 --threads 2 --dist %s "
			 "--value-bytes 64 --verify",
			 path, dists[i]);
		cr_expect_eq(wrong_in(line), 0);
		cr_expect_eq(fake_farkv_misses(), 0, "%s", dists[i]);
		cr_expect_gt(fake_farkv_items(), 5000);
	}
	unlink(path);
}

Test(bench_run, finds_nothing_wrong_in_an_honest_store)
{
	for (int i = 0; i < 3; i++)
		cr_expect_eq(wrong_in(mixed), 0);
	fake_farkv_reset();
	cr_expect_eq(wrong_in("--workload load --records 2000 --verify"), 0);
	cr_expect_eq(wrong_in("--workload a --records 2000 --ops 20000 --threads 3 --verify"), 0);
	cr_expect_eq(wrong_in("--workload f --records 2000 --ops 20000 --threads 3 --verify"), 0);
}

Test(bench_run, does_not_blame_unknown_outcomes)
{
	fake_settings = (struct fake_settings){.lie = FAKE_LIE_UNKNOWN, .lie_every = 50};
	cr_expect_eq(wrong_in(mixed), 0);
}

Test(bench_run, finds_every_kind_of_lie)
{
	for (enum fake_lie lie = FAKE_LIE_LOST_UPDATE; lie < FAKE_LIE_UNKNOWN; lie++) {
		fake_farkv_reset();
		fake_settings = (struct fake_settings){.lie = lie, .lie_every = 500};
		cr_expect_gt(wrong_in(mixed), 0, "lie %d", (int)lie);
	}
}

Test(bench_run, finds_a_single_lost_update_by_the_final_read)
{
	cr_expect_eq(wrong_in("--workload load --records 500 --verify"), 0);
	fake_settings = (struct fake_settings){.lie = FAKE_LIE_LOST_UPDATE, .lie_every = 10};
	cr_expect_eq(
		wrong_in("--mix update=1 --records 500 --ops 19 --depth 1 --dist uniform --verify"),
		1);
}

Test(bench_run, misses_records_that_were_never_loaded)
{
	cr_expect_eq(wrong_in("--workload load --records 90"), 0);
	cr_expect_eq(wrong_in("--workload c --records 100 --ops 1 --seed 3 --verify"), 10);
}

static void clients_run(const char *lie_free_line, uint64_t *wrong_clients)
{
	char line[400];
	int status;

	*wrong_clients = 0;
	for (int i = 0; i < 4; i++) {
		if (fork() != 0)
			continue;
		snprintf(line, sizeof(line), "%s --clients 4 --client-id %d", lie_free_line, i);
		_exit(wrong_in(line) > 0);
	}
	for (int i = 0; i < 4; i++) {
		cr_assert_gt(wait(&status), 0);
		cr_assert(WIFEXITED(status));
		*wrong_clients += WEXITSTATUS(status) != 0;
	}
}

Test(bench_run, four_processes_share_one_proof)
{
	char path[] = "/tmp/farkv-test-XXXXXX", line[400];
	uint64_t wrong_clients;

	close(mkstemp(path));
	fake_farkv_reset();
	snprintf(line, sizeof(line), "%s --verify-file %s", mixed, path);
	clients_run(line, &wrong_clients);
	cr_expect_eq(wrong_clients, 0);
	fake_settings = (struct fake_settings){.lie = FAKE_LIE_STALE_READ, .lie_every = 1000};
	clients_run(line, &wrong_clients);
	cr_expect_gt(wrong_clients, 0);
	unlink(path);
}

Test(bench_run, four_processes_without_a_common_proof_write_their_own_keys)
{
	uint64_t wrong_clients;

	fake_farkv_reset();
	clients_run("--workload load --records 1003 --verify", &wrong_clients);
	cr_expect_eq(wrong_clients, 0);
	cr_expect_eq(fake_farkv_items(), 1003);
	clients_run("--workload a --records 1003 --ops 5000 --threads 2 --verify", &wrong_clients);
	cr_expect_eq(wrong_clients, 0);
	clients_run("--workload d --records 1003 --ops 5000 --threads 2 --verify", &wrong_clients);
	cr_expect_eq(wrong_clients, 0);
}

Test(bench_run, a_later_run_goes_on_with_the_proof_of_an_earlier_one)
{
	char path[] = "/tmp/farkv-test-XXXXXX", line[400];

	close(mkstemp(path));
	snprintf(line, sizeof(line), "--workload load --records 500 --verify --verify-file %s",
		 path);
	cr_expect_eq(wrong_in(line), 0);
	snprintf(line, sizeof(line), "--workload d --records 500 --ops 2000 --verify-file %s",
		 path);
	cr_expect_eq(wrong_in(line), 0);
	/* The store loses everything in between. */
	fake_farkv_reset();
	snprintf(line, sizeof(line), "--workload c --records 500 --ops 10 --verify-file %s", path);
	cr_expect_geq(wrong_in(line), 500);
	unlink(path);
}

Test(bench_run, an_open_loop_shows_a_stall_in_all_that_waited)
{
	struct bench_options options;
	static struct bench_result result;
	const struct bench_op_stats *get;
	double p99_ms, service_p50_ms;

	cr_expect_eq(wrong_in("--workload load --records 100"), 0);
	fake_settings = (struct fake_settings){.freeze_at_ns = 300000000, .freeze_ns = 500000000};
	cr_assert_eq(run("--workload c --records 100 --rate 5000 --ops 10000 --depth 8", &options,
			 &result),
		     0);
	get = &result.stats->ops[BENCH_GET];
	cr_expect_eq(get->count, 10000);
	p99_ms = (double)bench_histogram_quantile(&get->latency, 0.99) / 1e6;
	service_p50_ms = (double)bench_histogram_quantile(&get->service, 0.99) / 1e6;
	cr_expect(p99_ms > 400 && p99_ms < 520, "p99 %g ms", p99_ms);
	cr_expect(service_p50_ms < 100, "service p99 %g ms", service_p50_ms);
	cr_expect(result.elapsed_ns > 1900000000 && result.elapsed_ns < 2500000000);
	bench_result_free(&result);
}

Test(bench_run, time_ends_a_run)
{
	struct bench_options options;
	static struct bench_result result;

	cr_assert_eq(run("--workload load --records 100", &options, &result), 0);
	bench_result_free(&result);
	cr_assert_eq(run("--workload d --records 100 --seconds 0.2 --threads 2", &options, &result),
		     0);
	cr_expect_gt(bench_stats_count(result.stats), 100);
	cr_expect_geq(result.elapsed_ns, 190000000);
	cr_expect_lt(result.elapsed_ns, 600000000);
	bench_result_free(&result);
}

Test(bench_run, json_has_the_agreed_names)
{
	static const char *const verbs[] = {"read", "write",	   "cas",
					    "faa",  "send",	   "doorbells",
					    "cqes", "round_trips", "inline_writes"};
	static const char *const ops[] = {"get", "insert", "update", "rmw", "delete", "scan"};
	static const char *const groups[] = {"verbs", "verbs_per_op", "deferred"};
	struct bench_options options;
	static struct bench_result result;
	json_t *root, *op, *latency;
	FILE *file = tmpfile();

	cr_assert_eq(run("--workload load --records 10 --verify", &options, &result), 0);
	cr_assert(bench_report_json(file, &options, &result));
	rewind(file);
	root = json_loadf(file, 0, NULL);
	cr_assert_not_null(root);
	cr_expect(json_is_number(json_object_get(root, "throughput_ops")));
	for (size_t i = 0; i < 6; i++) {
		op = json_object_get(json_object_get(root, "ops"), ops[i]);
		latency = json_object_get(op, "latency_us");
		cr_expect_eq(json_integer_value(json_object_get(op, "count")), i == 1 ? 10 : 0);
		cr_expect(json_is_integer(json_object_get(op, "errors")));
		cr_expect(json_is_integer(json_object_get(op, "not_found")));
		cr_expect(json_is_number(json_object_get(latency, "p50")));
		cr_expect(json_is_number(json_object_get(latency, "p99")));
		cr_expect(json_is_number(json_object_get(latency, "p999")));
		cr_expect(json_is_number(json_object_get(latency, "max")));
	}
	for (size_t i = 0; i < 9; i++) {
		for (size_t j = 0; j < 3; j++)
			cr_expect(json_is_number(
				json_object_get(json_object_get(root, groups[j]), verbs[i])));
	}
	cr_expect_eq(
		json_integer_value(json_object_get(json_object_get(root, "verify"), "checked")),
		20);
	cr_expect_eq(json_integer_value(json_object_get(json_object_get(root, "verify"), "wrong")),
		     0);
	cr_expect(json_is_object(json_object_get(root, "service_us")));
	cr_expect(json_is_object(json_object_get(root, "errors_by_kind")));
	cr_expect(json_is_object(json_object_get(root, "config")));
	json_decref(root);
	fclose(file);
	bench_result_free(&result);
}
