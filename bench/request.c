/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "bench/clock.h"
#include "bench/worker.h"

enum { COMPLAINTS_MAX = 10 };

static enum farkv_op op_of(const struct bench_request *request)
{
	switch (request->choice.op) {
	case BENCH_INSERT:
		return FARKV_INSERT;
	case BENCH_UPDATE:
		return FARKV_UPDATE;
	case BENCH_DELETE:
		return FARKV_DELETE;
	case BENCH_RMW:
		return request->second ? FARKV_UPDATE : FARKV_GET;
	default:
		return FARKV_GET;
	}
}

static enum bench_write write_of(enum farkv_op op)
{
	if (op == FARKV_INSERT)
		return BENCH_WRITE_INSERT;
	return op == FARKV_UPDATE ? BENCH_WRITE_UPDATE : BENCH_WRITE_DELETE;
}

static bool reads(const struct bench_request *request)
{
	return request->op == FARKV_GET;
}

/* By the contracts in farkv.h; what they do not promise to be without effect is unknown. */
static enum bench_outcome outcome_of(int status)
{
	switch (status) {
	case FARKV_OK:
		return BENCH_OUTCOME_DONE;
	case FARKV_ENOTFOUND:
	case FARKV_EEXISTS:
		return BENCH_OUTCOME_REFUSED;
	case FARKV_EINVAL:
	case FARKV_ENOSPC:
	case FARKV_ENOMEM:
	case FARKV_ETIMEDOUT:
	case FARKV_EAGAIN:
		return BENCH_OUTCOME_VOID;
	default:
		return BENCH_OUTCOME_UNKNOWN;
	}
}

static void complain(struct bench_request *request, enum bench_fault fault)
{
	struct bench_shared *shared = request->worker->shared;
	uint32_t nth = atomic_fetch_add(&shared->complaints, 1);
	char key[BENCH_KEY_BYTES_MAX];

	if (nth >= COMPLAINTS_MAX)
		return;
	bench_key_encode(&shared->options->keys, request->choice.number, key);
	fprintf(stderr, "farkv-bench: WRONG (%s): %s%s of key %.*s, number %" PRIu64 "%s\n",
		bench_fault_name(fault), request->purpose == BENCH_PURPOSE_FINAL ? "final " : "",
		bench_op_name(request->choice.op), (int)shared->options->keys.key_bytes, key,
		request->choice.number,
		nth == COMPLAINTS_MAX - 1 ? "; further ones are only counted" : "");
}

static enum bench_fault fault_of(struct bench_request *request, const struct farkv_result *result)
{
	struct bench_verify *verify = request->worker->shared->verify;
	uint64_t number = request->choice.number;

	if (!reads(request))
		return bench_verify_write_end(verify, number, write_of(request->op),
					      outcome_of(result->status), &request->token);
	if (result->status == FARKV_ENOTFOUND)
		return bench_verify_read_absent(verify, number, &request->token);
	return bench_verify_read_value(verify, number, &request->token, request->buffer,
				       result->value_len);
}

static void judge(struct bench_request *request, const struct farkv_result *result)
{
	struct bench_stats *stats = request->worker->stats;
	enum bench_fault fault;

	if (!request->worker->shared->verify)
		return;
	if (reads(request) && result->status != FARKV_OK && result->status != FARKV_ENOTFOUND)
		return;
	stats->checked++;
	fault = fault_of(request, result);
	if (fault == BENCH_FAULT_NONE)
		return;
	stats->wrong[fault]++;
	complain(request, fault);
}

/* A load finds nothing there already; anything else may meet what others did. */
static bool expected(const struct bench_request *request, int status)
{
	if (status == FARKV_EEXISTS)
		return !request->worker->shared->options->workload.load;
	return status == FARKV_OK || status == FARKV_ENOTFOUND;
}

static void count(struct bench_request *request, int status)
{
	struct bench_worker *worker = request->worker;
	struct bench_op_stats *stats = &worker->stats->ops[request->choice.op];
	uint64_t now_ns = bench_clock_ns();

	stats->count++;
	stats->not_found += status == FARKV_ENOTFOUND;
	stats->exists += status == FARKV_EEXISTS;
	stats->errors += !expected(request, status);
	bench_histogram_add(&stats->latency, now_ns - request->due_ns);
	bench_histogram_add(&stats->service, now_ns - request->start_ns);
	worker->end_ns = now_ns;
	atomic_fetch_add_explicit(&worker->answered, 1, memory_order_relaxed);
}

/* The last answer of the request. */
static void finish(struct bench_request *request, int status)
{
	struct bench_worker *worker = request->worker;

	if (!expected(request, status))
		bench_stats_error(worker->stats, status);
	if (request->purpose == BENCH_PURPOSE_RUN)
		count(request, status);
	else
		atomic_fetch_add_explicit(&worker->final_answered, 1, memory_order_relaxed);
	if (request->choice.index != UINT64_MAX)
		bench_window_settle(&worker->shared->window, request->choice.index,
				    status == FARKV_OK || status == FARKV_EEXISTS);
	request->next = worker->free;
	worker->free = request;
	worker->free_count++;
}

static void answer(struct bench_request *request, const struct farkv_result *result)
{
	struct bench_worker *worker = request->worker;
	struct bench_op_stats *stats = &worker->stats->ops[request->choice.op];

	worker->in_flight--;
	worker->unavailable = result->status == FARKV_EUNAVAILABLE;
	if (request->purpose == BENCH_PURPOSE_RUN) {
		stats->round_trips += result->round_trips;
		stats->cached += result->cached;
	}
	judge(request, result);
	if (request->choice.op == BENCH_RMW && !request->second && result->status == FARKV_OK) {
		request->second = true;
		request->next = worker->again;
		worker->again = request;
		return;
	}
	finish(request, result->status);
}

static void request_done(const struct farkv_result *result, void *arg)
{
	answer(arg, result);
}

static void announce(struct bench_request *request)
{
	struct bench_verify *verify = request->worker->shared->verify;

	request->token = (struct bench_verify_token){0, 0};
	if (!verify)
		return;
	if (reads(request))
		bench_verify_read_start(verify, request->choice.number, &request->token);
	else
		bench_verify_write_start(verify, request->choice.number, write_of(request->op),
					 &request->token);
}

bool bench_request_submit(struct bench_request *request)
{
	struct bench_worker *worker = request->worker;
	const struct bench_options *options = worker->shared->options;
	struct farkv_result refused = {0};
	struct farkv_request farkv = {0};
	char key[BENCH_KEY_BYTES_MAX];
	int status;

	request->op = op_of(request);
	announce(request);
	bench_key_encode(&options->keys, request->choice.number, key);
	farkv.op = request->op;
	farkv.key = key;
	farkv.key_len = options->keys.key_bytes;
	farkv.done = request_done;
	farkv.arg = request;
	if (reads(request)) {
		farkv.buffer = request->buffer;
		farkv.buffer_bytes = FARKV_VALUE_MAX;
	} else if (request->op != FARKV_DELETE) {
		bench_value_encode(
			&(struct bench_value){
				.number = request->choice.number,
				.writer = (uint32_t)(options->client_id << 16 | worker->id),
				.run = worker->shared->run,
				.ticket = request->token.ticket},
			worker->value, options->value_bytes);
		farkv.value = worker->value;
		farkv.value_len = options->value_bytes;
	}
	worker->in_flight++;
	status = farkv_submit(worker->session, &farkv);
	if (status == FARKV_EAGAIN) {
		worker->in_flight--;
		if (worker->shared->verify && !reads(request))
			bench_verify_write_end(worker->shared->verify, request->choice.number,
					       write_of(request->op), BENCH_OUTCOME_VOID,
					       &request->token);
		return false;
	}
	if (status != 0) {
		refused.status = status;
		answer(request, &refused);
	}
	return true;
}
