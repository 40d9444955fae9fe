/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"

enum {
	BUFFER_STRIDE = FARKV_VALUE_MAX + 4096 +
			192,	 /* not a multiple of a page: spreads over cache sets */
	EMPTY_POLLS = 64,	 /* before each further one gives the processor away */
	SLEEP_MAX_NS = 10000000, /* so that an interrupt is seen */
	SLEEP_SLACK_NS = 60000,	 /* a sleep may end that late */
	UNAVAILABLE_NS = 1000000,
};

/* Operations end at their deadlines; later than this after the last start they never will. */
static const uint64_t drain_max_ns = UINT64_C(60) * 1000000000u;

uint64_t bench_worker_share(uint64_t total, uint64_t thread, uint64_t threads)
{
	if (total == UINT64_MAX)
		return total;
	return total / threads + (thread < total % threads);
}

bool bench_worker_init(struct bench_worker *worker, struct bench_shared *shared,
		       struct farkv_session *session, uint64_t id)
{
	const struct bench_options *options = shared->options;

	memset(worker, 0, sizeof(*worker));
	worker->shared = shared;
	worker->session = session;
	worker->id = id;
	worker->quota = bench_worker_share(bench_options_quota(options), id, options->threads);
	bench_chooser_init(&worker->chooser, options, &shared->window, id);
	worker->requests = calloc(options->depth, sizeof(*worker->requests));
	/* Mostly never touched. */
	worker->buffers = malloc(options->depth * BUFFER_STRIDE);
	worker->value = malloc(options->value_bytes + 1);
	worker->stats = calloc(1, sizeof(*worker->stats));
	if (!worker->requests || !worker->buffers || !worker->value || !worker->stats)
		return false;
	for (uint64_t i = 0; i < options->depth; i++) {
		worker->requests[i].worker = worker;
		worker->requests[i].buffer = worker->buffers + i * BUFFER_STRIDE;
		worker->requests[i].next = worker->free;
		worker->free = &worker->requests[i];
	}
	worker->free_count = options->depth;
	return true;
}

void bench_worker_destroy(struct bench_worker *worker)
{
	free(worker->requests);
	free(worker->buffers);
	free(worker->value);
	free(worker->stats);
	memset(worker, 0, sizeof(*worker));
}

static struct bench_request *request_take(struct bench_worker *worker)
{
	struct bench_request *request = worker->free;

	worker->free = request->next;
	worker->free_count--;
	request->second = false;
	return request;
}

static void request_start(struct bench_worker *worker, struct bench_request *request)
{
	if (bench_request_submit(request))
		return;
	request->next = worker->again;
	worker->again = request;
}

/* The second halves of rmw, and what the session had no room for. */
static void again_submit(struct bench_worker *worker)
{
	struct bench_request *request, *list = worker->again;

	worker->again = NULL;
	while (list) {
		request = list;
		list = list->next;
		request_start(worker, request);
	}
}

static bool run_over(const struct bench_worker *worker, uint64_t now_ns)
{
	return worker->started >= worker->quota || worker->exhausted ||
	       now_ns >= worker->shared->deadline_ns ||
	       atomic_load_explicit(&worker->shared->stop, memory_order_relaxed);
}

static bool run_start(struct bench_worker *worker, uint64_t due_ns, uint64_t now_ns)
{
	struct bench_request *request;
	struct bench_choice choice;

	if (!bench_chooser_next(&worker->chooser, &choice)) {
		worker->exhausted = true;
		return false;
	}
	request = request_take(worker);
	request->choice = choice;
	request->purpose = BENCH_PURPOSE_RUN;
	request->due_ns = due_ns;
	request->start_ns = now_ns;
	worker->started++;
	request_start(worker, request);
	return true;
}

/* Closed loop: in batches, so that they share doorbells; all that is free, once enough is. */
static void run_start_closed(struct bench_worker *worker)
{
	const struct bench_options *options = worker->shared->options;
	uint64_t now_ns = bench_clock_ns();

	if (worker->free_count < options->batch)
		return;
	for (uint64_t room = worker->free_count; room > 0 && !run_over(worker, now_ns); room--) {
		if (!run_start(worker, now_ns, now_ns))
			break;
		now_ns = bench_clock_ns();
	}
}

static void run_start_due(struct bench_worker *worker)
{
	uint64_t now_ns = bench_clock_ns(), due_ns;

	while (worker->free_count > 0 && !run_over(worker, now_ns)) {
		due_ns = bench_pacer_due(&worker->pacer);
		if (due_ns > now_ns || !run_start(worker, due_ns, now_ns))
			break;
		bench_pacer_advance(&worker->pacer);
		now_ns = bench_clock_ns();
	}
}

/* After a poll that found nothing: two processors may serve more threads than that. */
static void idle(const struct bench_worker *worker, bool open_loop, uint64_t *empty)
{
	uint64_t now_ns, due_ns;

	if (worker->unavailable && worker->in_flight == 0)
		bench_clock_sleep(UNAVAILABLE_NS);
	if (open_loop && worker->in_flight == 0 && !worker->again) {
		now_ns = bench_clock_ns();
		due_ns = bench_pacer_due(&worker->pacer);
		if (due_ns > worker->shared->deadline_ns)
			due_ns = worker->shared->deadline_ns;
		if (due_ns > now_ns + SLEEP_SLACK_NS) {
			due_ns -= now_ns + SLEEP_SLACK_NS;
			bench_clock_sleep(due_ns < SLEEP_MAX_NS ? due_ns : SLEEP_MAX_NS);
			return;
		}
	}
	if (++*empty > EMPTY_POLLS)
		sched_yield();
}

static bool busy(const struct bench_worker *worker)
{
	return worker->in_flight > 0 || worker->again;
}

static void run_phase(struct bench_worker *worker)
{
	bool open_loop = worker->shared->options->rate > 0;
	uint64_t empty = 0, over_ns = 0;

	for (;;) {
		if (worker->again)
			again_submit(worker);
		if (open_loop)
			run_start_due(worker);
		else
			run_start_closed(worker);
		if (farkv_poll(worker->session) > 0) {
			empty = 0;
			continue;
		}
		if (run_over(worker, bench_clock_ns())) {
			if (!busy(worker))
				break;
			over_ns = over_ns ? over_ns : bench_clock_ns();
			if (bench_clock_ns() - over_ns > drain_max_ns)
				break;
		}
		idle(worker, open_loop, &empty);
	}
	if (open_loop && worker->shared->deadline_ns != UINT64_MAX && !worker->exhausted &&
	    worker->started < worker->quota)
		worker->stats->behind =
			bench_pacer_behind(&worker->pacer, worker->shared->deadline_ns);
}

/* How many keys the final read covers: the records (a load: its own) and the own inserts. */
static uint64_t final_total(const struct bench_worker *worker)
{
	const struct bench_options *options = worker->shared->options;

	if (options->workload.load)
		return bench_options_quota(options);
	return options->records + atomic_load(&worker->shared->window.taken);
}

static uint64_t final_number(const struct bench_options *options, uint64_t turn)
{
	if (options->workload.load)
		return turn * options->clients + options->client_id;
	return turn < options->records ? turn
				       : bench_insert_number(options, turn - options->records);
}

static bool final_start(struct bench_worker *worker, uint64_t total)
{
	const struct bench_options *options = worker->shared->options;
	uint64_t turn = worker->final_next * options->threads + worker->id;
	struct bench_request *request;

	if (turn >= total || atomic_load_explicit(&worker->shared->stop, memory_order_relaxed))
		return false;
	worker->final_next++;
	request = request_take(worker);
	request->choice = (struct bench_choice){BENCH_GET, final_number(options, turn), UINT64_MAX};
	request->purpose = BENCH_PURPOSE_FINAL;
	request_start(worker, request);
	return true;
}

static void final_phase(struct bench_worker *worker)
{
	uint64_t total = final_total(worker), empty = 0, last_ns = bench_clock_ns();
	bool more = true;

	while (more || busy(worker)) {
		if (worker->again)
			again_submit(worker);
		while (more && worker->free_count > 0)
			more = final_start(worker, total);
		if (farkv_poll(worker->session) > 0) {
			empty = 0;
			last_ns = bench_clock_ns();
			continue;
		}
		if (bench_clock_ns() - last_ns > drain_max_ns)
			break;
		idle(worker, false, &empty);
	}
}

void *bench_worker_run(void *arg)
{
	struct bench_worker *worker = arg;
	struct bench_shared *shared = worker->shared;
	struct farkv_session_stats before, after;

	if (!bench_gate_pass(&shared->gate))
		return NULL;
	worker->end_ns = shared->start_ns;
	if (shared->options->rate > 0)
		bench_pacer_init(&worker->pacer, shared->start_ns, shared->options->rate,
				 worker->id, shared->options->threads);
	farkv_session_stats(worker->session, &before);
	run_phase(worker);
	if (!busy(worker))
		farkv_flush(worker->session);
	farkv_session_stats(worker->session, &after);
	bench_stats_session(worker->stats, &before, &after);
	pthread_barrier_wait(&shared->meeting);
	if (shared->verify && !busy(worker))
		final_phase(worker);
	worker->stats->unanswered = worker->in_flight;
	return NULL;
}
