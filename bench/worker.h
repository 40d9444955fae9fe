/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread with a session of its own: keeps `depth` operations in flight (closed loop) or
 * starts them when they are due (open loop), then, with --verify, takes its part of the
 * final read of every record.
 */
#ifndef FARKV_BENCH_WORKER_H
#define FARKV_BENCH_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/gate.h"
#include "bench/pacer.h"
#include "bench/request.h"

/* What the workers of a process share. */
struct bench_shared {
	const struct bench_options *options; /* borrowed */
	struct bench_verify *verify;	     /* borrowed; NULL: nothing is judged */
	struct bench_window window;
	uint32_t run;		/* what values carry; the verify table's, if there is one */
	struct bench_gate gate; /* the workers wait at it for start_ns and deadline_ns */
	uint64_t start_ns;
	uint64_t deadline_ns;	   /* UINT64_MAX: none */
	pthread_barrier_t meeting; /* of all workers, between run and final read */
	_Atomic uint32_t complaints;
	_Atomic bool stop; /* interrupted: start nothing more */
};

struct bench_worker {
	struct bench_shared *shared;   /* borrowed */
	struct farkv_session *session; /* borrowed */
	uint64_t id;
	uint64_t quota; /* operations to start */
	uint64_t started;
	uint64_t in_flight;
	uint64_t final_next; /* turn of the final read */
	uint64_t free_count;
	uint64_t end_ns;		/* when the last operation of the run was answered */
	bool exhausted;			/* nothing more to insert */
	bool unavailable;		/* the last answer was EUNAVAILABLE: do not rush on */
	struct bench_request *free;	/* stack */
	struct bench_request *again;	/* owed a submission */
	struct bench_request *requests; /* owned, depth of them */
	unsigned char *buffers;		/* owned */
	void *value;			/* owned; what is being written */
	struct bench_chooser chooser;
	struct bench_pacer pacer;
	struct bench_stats *stats; /* owned */
	_Atomic uint64_t answered; /* read by the progress line */
	_Atomic uint64_t final_answered;
	pthread_t thread;
};

/* False when memory is exhausted; destroy then too. */
bool bench_worker_init(struct bench_worker *worker, struct bench_shared *shared,
		       struct farkv_session *session, uint64_t id);
/* Accepts half-built workers. The session must be closed, or NULL. */
void bench_worker_destroy(struct bench_worker *worker);
/* The body of the thread. Returns NULL. */
void *bench_worker_run(void *worker);

/* Exactly `total` over all threads; UINT64_MAX stays that. */
uint64_t bench_worker_share(uint64_t total, uint64_t thread, uint64_t threads);

#endif
