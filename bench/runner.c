/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bench/clock.h"
#include "bench/progress.h"
#include "bench/worker.h"

enum { WATCH_NS = 20000000 };

/* Beyond it keys that are inserted during the run only prove themselves. */
static const uint64_t judged_inserts_max = UINT64_C(1) << 26;

struct run {
	const struct bench_options *options;
	struct bench_shared shared;
	struct bench_verify verify;
	struct farkv *store;
	struct bench_worker *workers; /* options->threads of them */
	uint64_t ready;		      /* workers initialised */
	uint64_t started;	      /* threads */
};

static int complain(int status, const char *what)
{
	fprintf(stderr, "farkv-bench: %s: %s\n", what, farkv_strerror(status));
	return status;
}

/* Names this process's, or a new table's, values; not from the seed, which runs may share. */
static uint32_t run_name(void)
{
	uint64_t name = bench_clock_ns();

	if (getrandom(&name, sizeof(name), GRND_NONBLOCK) != sizeof(name))
		name = bench_mix64(bench_clock_ns());
	return (uint32_t)bench_mix64(name) | 1;
}

/* Run phases take it that the records were loaded, unless the mix itself takes them away. */
static uint64_t loaded_for(const struct bench_options *options)
{
	return options->workload.load || options->workload.among_records ? 0 : options->records;
}

static int verify_open(struct run *run)
{
	const struct bench_options *options = run->options;
	uint64_t inserts = bench_options_inserts_max(options);
	char error[BENCH_ERROR_BYTES];

	run->shared.run = run_name();
	if (!options->verify)
		return 0;
	if (inserts > judged_inserts_max / options->clients)
		inserts = judged_inserts_max / options->clients;
	run->verify.loaded = loaded_for(options);
	run->verify.clients = options->verify_file ? 1 : options->clients;
	run->verify.client_id = options->client_id;
	if (!bench_verify_table_open(&run->verify.table, options->verify_file, options->records,
				     options->records + inserts * options->clients, run->shared.run,
				     error)) {
		fprintf(stderr, "farkv-bench: %s\n", error);
		return FARKV_ENOMEM;
	}
	run->shared.run = run->verify.table.run;
	run->shared.verify = &run->verify;
	return 0;
}

static int workers_open(struct run *run)
{
	struct farkv_session *session;
	struct bench_worker *worker;
	int status;

	run->workers = calloc(run->options->threads, sizeof(*run->workers));
	if (!run->workers)
		return complain(FARKV_ENOMEM, "workers");
	for (; run->ready < run->options->threads; run->ready++) {
		worker = &run->workers[run->ready];
		status = farkv_session_open(run->store, &session);
		if (status != 0)
			return complain(status, "opening a session");
		if (!bench_worker_init(worker, &run->shared, session, run->ready)) {
			run->ready++; /* half-built */
			return complain(FARKV_ENOMEM, "workers");
		}
	}
	return 0;
}

static void nodes_ask(struct run *run, struct bench_result *result)
{
	size_t count = BENCH_NODES_MAX;
	int status = farkv_stat(run->workers[0].session, result->mn, &count);

	if (status != 0)
		complain(status, "asking the memory nodes");
	else
		result->nodes = count < BENCH_NODES_MAX ? count : BENCH_NODES_MAX;
}

static int run_open(struct run *run, struct bench_result *result)
{
	int status;

	bench_gate_init(&run->shared.gate);
	pthread_barrier_init(&run->shared.meeting, NULL, (unsigned int)run->options->threads);
	if (!bench_window_init(&run->shared.window, bench_options_inserts_max(run->options)))
		return complain(FARKV_ENOMEM, "the window of inserts");
	status = verify_open(run);
	if (status != 0)
		return status;
	status = farkv_open(&run->options->store, &run->store);
	if (status != 0)
		return complain(status, "opening the store");
	status = workers_open(run);
	if (status == 0)
		nodes_ask(run, result);
	return status;
}

static void run_close(struct run *run)
{
	int status;

	for (uint64_t i = 0; i < run->ready; i++) {
		farkv_session_close(run->workers[i].session);
		bench_worker_destroy(&run->workers[i]);
	}
	free(run->workers);
	status = farkv_close(run->store);
	if (status != 0)
		complain(status, "closing the store");
	bench_verify_table_close(&run->verify.table);
	bench_window_destroy(&run->shared.window);
	bench_gate_destroy(&run->shared.gate);
	pthread_barrier_destroy(&run->shared.meeting);
}

static void progress_update(struct run *run, struct bench_progress *progress)
{
	const struct bench_options *options = run->options;
	uint64_t answered = 0, finally = 0, total;

	for (uint64_t i = 0; i < options->threads; i++) {
		answered += atomic_load_explicit(&run->workers[i].answered, memory_order_relaxed);
		finally +=
			atomic_load_explicit(&run->workers[i].final_answered, memory_order_relaxed);
	}
	if (finally == 0) {
		bench_progress_show(progress, options->workload.load ? "load" : "run", answered,
				    bench_options_quota(options), options->seconds,
				    bench_clock_ns());
		return;
	}
	total = options->workload.load ? bench_options_quota(options)
				       : options->records + atomic_load(&run->shared.window.taken);
	bench_progress_show(progress, "final read", finally, total, 0, bench_clock_ns());
}

/* Lets the workers go, watches until all have returned. */
static void run_watch(struct run *run, const _Atomic int *stop)
{
	struct timespec until;
	struct bench_progress progress;
	uint64_t joined = 0;

	run->shared.start_ns = bench_clock_ns();
	run->shared.deadline_ns =
		run->options->seconds > 0
			? run->shared.start_ns + (uint64_t)(run->options->seconds * 1e9)
			: UINT64_MAX;
	bench_progress_init(&progress, run->shared.start_ns);
	bench_gate_decide(&run->shared.gate, true);
	while (joined < run->started) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(run->workers[joined].thread, NULL, &until) == 0)
			joined++;
		if (atomic_load(stop) != 0)
			atomic_store(&run->shared.stop, true);
		progress_update(run, &progress);
	}
	bench_progress_end(&progress);
}

/* All threads or none: they meet between run and final read. */
static int threads_start(struct run *run)
{
	int error;

	for (; run->started < run->options->threads; run->started++) {
		error = pthread_create(&run->workers[run->started].thread, NULL, bench_worker_run,
				       &run->workers[run->started]);
		if (error == 0)
			continue;
		fprintf(stderr, "farkv-bench: starting a thread: %s\n", strerror(error));
		bench_gate_decide(&run->shared.gate, false);
		for (uint64_t i = 0; i < run->started; i++)
			pthread_join(run->workers[i].thread, NULL);
		return FARKV_ENOMEM;
	}
	return 0;
}

static void result_collect(struct run *run, struct bench_result *result)
{
	uint64_t end_ns = run->shared.start_ns;

	for (uint64_t i = 0; i < run->options->threads; i++) {
		bench_stats_merge(result->stats, run->workers[i].stats);
		if (run->workers[i].end_ns > end_ns)
			end_ns = run->workers[i].end_ns;
	}
	result->elapsed_ns = end_ns - run->shared.start_ns;
	result->interrupted = atomic_load(&run->shared.stop);
}

int bench_run(const struct bench_options *options, const _Atomic int *stop,
	      struct bench_result *result)
{
	struct run run = {.options = options, .shared = {.options = options}};
	int status;

	memset(result, 0, sizeof(*result));
	result->stats = calloc(1, sizeof(*result->stats));
	if (!result->stats)
		return complain(FARKV_ENOMEM, "statistics");
	status = run_open(&run, result);
	if (status == 0)
		status = threads_start(&run);
	if (status == 0) {
		run_watch(&run, stop);
		result_collect(&run, result);
	}
	run_close(&run);
	return status;
}

void bench_result_free(struct bench_result *result)
{
	free(result->stats);
	result->stats = NULL;
}

bool bench_result_good(const struct bench_result *result)
{
	return bench_stats_errors(result->stats) == 0 && bench_stats_wrong(result->stats) == 0;
}
