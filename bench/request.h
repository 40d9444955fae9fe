/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation in flight: submitted once (rmw: twice), answered, judged and counted. Its
 * worker's loop submits; the answer only files it under `free` or `again`.
 */
#ifndef FARKV_BENCH_REQUEST_H
#define FARKV_BENCH_REQUEST_H

#include "bench/choice.h"
#include "bench/stats.h"
#include "bench/verify.h"

struct bench_worker;

enum bench_purpose {
	BENCH_PURPOSE_RUN,   /* counted under its kind */
	BENCH_PURPOSE_FINAL, /* of the final read; only errors and verdicts count */
};

struct bench_request {
	struct bench_worker *worker; /* borrowed */
	struct bench_request *next;  /* in `free` or `again` */
	struct bench_choice choice;
	enum bench_purpose purpose;
	bool second;	  /* rmw: the get is done, the update is next or in flight */
	enum farkv_op op; /* in flight */
	uint64_t due_ns;  /* the intended start */
	uint64_t start_ns;
	struct bench_verify_token token;
	void *buffer; /* of gets; borrowed from the worker's; FARKV_VALUE_MAX bytes */
};

/* The request's next submission; false when the session is full: try again later. */
bool bench_request_submit(struct bench_request *request);

#endif
