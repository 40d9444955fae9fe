/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/flow.h"

#include "fabric/status.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_MASK ((UINT64_C(1) << 48) - 1)

int flow_init(struct flow *flow, struct qp *qp, uint16_t id, uint32_t signal_interval,
	      uint32_t lkey, uint64_t remote_base, uint32_t rkey, struct flow_counts counts[2],
	      const struct logger *logger)
{
	if (signal_interval < 1 || signal_interval > FLOW_INTERVAL_MAX ||
	    signal_interval > qp->sq_depth / 2) {
		log_line(logger, LOG_LEVEL_ERROR,
			 "signal interval %u is out of range: at most %d and half the send queue "
			 "depth %u",
			 signal_interval, FLOW_INTERVAL_MAX, qp->sq_depth);
		return -EINVAL;
	}
	memset(flow, 0, sizeof *flow);
	flow->places = calloc(qp->sq_depth, sizeof *flow->places);
	if (!flow->places)
		return -ENOMEM;
	flow->qp = qp;
	flow->id = id;
	flow->depth = qp->sq_depth;
	flow->signal_interval = signal_interval;
	flow->lkey = lkey;
	flow->remote_base = remote_base;
	flow->rkey = rkey;
	flow->counts = counts;
	flow->logger = logger;
	return 0;
}

void flow_free(struct flow *flow)
{
	assert(!flow->places || flow_in_flight(flow) == 0);
	free(flow->places);
	flow->places = NULL;
}

static struct flow_place *place_of(struct flow *flow, uint64_t sequence)
{
	return &flow->places[sequence % flow->depth];
}

bool flow_reserve(struct flow *flow, uint32_t count)
{
	assert(count <= FLOW_CHAIN_MAX);
	if (flow->broken || flow_in_flight(flow) + count > flow->depth)
		return false;
	if (flow_staged(flow) + count > FLOW_CHAIN_MAX)
		flow_post(flow);
	return !flow->broken;
}

/* Takes the next place; the work request's sequence number decides whether it is signaled. */
static struct ibv_send_wr *stage(struct flow *flow, enum ibv_wr_opcode opcode, const void *local,
				 uint32_t bytes, unsigned flags)
{
	uint32_t at = flow_staged(flow);
	struct ibv_send_wr *wr = &flow->wrs[at];
	struct flow_place *place = place_of(flow, flow->head);

	assert(at < FLOW_CHAIN_MAX && flow_in_flight(flow) < flow->depth);
	flow->sges[at] =
		(struct ibv_sge){.addr = (uintptr_t)local, .length = bytes, .lkey = flow->lkey};
	wr->wr_id = (uint64_t)flow->id << 48 | (flow->head & SEQUENCE_MASK);
	wr->next = NULL;
	wr->sg_list = &flow->sges[at];
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = flags & FLOW_FENCE ? IBV_SEND_FENCE : 0;
	if (at > 0)
		flow->wrs[at - 1].next = wr;
	if (++flow->unsignaled >= flow->signal_interval) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		flow->unsignaled = 0;
	}
	place->waiter = NULL;
	place->deferred = (flags & FLOW_DEFERRED) != 0;
	flow->head++;
	return wr;
}

static struct flow_counts *counts_of(struct flow *flow, unsigned flags)
{
	return &flow->counts[(flags & FLOW_DEFERRED) != 0];
}

void flow_read(struct flow *flow, void *into, uint32_t bytes, uint64_t offset, unsigned flags)
{
	struct ibv_send_wr *wr = stage(flow, IBV_WR_RDMA_READ, into, bytes, flags);

	wr->wr.rdma.remote_addr = flow->remote_base + offset;
	wr->wr.rdma.rkey = flow->rkey;
	counts_of(flow, flags)->read++;
}

static void go_inline(struct flow *flow, struct ibv_send_wr *wr, uint32_t bytes)
{
	if (bytes <= flow->qp->max_inline)
		wr->send_flags |= IBV_SEND_INLINE;
}

void flow_write(struct flow *flow, const void *from, uint32_t bytes, uint64_t offset,
		unsigned flags)
{
	struct ibv_send_wr *wr = stage(flow, IBV_WR_RDMA_WRITE, from, bytes, flags);

	wr->wr.rdma.remote_addr = flow->remote_base + offset;
	wr->wr.rdma.rkey = flow->rkey;
	go_inline(flow, wr, bytes);
	counts_of(flow, flags)->write++;
	counts_of(flow, flags)->inline_writes += (wr->send_flags & IBV_SEND_INLINE) != 0;
}

void flow_cas(struct flow *flow, uint64_t *result, uint64_t offset, uint64_t expected,
	      uint64_t desired, unsigned flags)
{
	struct ibv_send_wr *wr = stage(flow, IBV_WR_ATOMIC_CMP_AND_SWP, result, 8, flags);

	assert(offset % 8 == 0);
	wr->wr.atomic.remote_addr = flow->remote_base + offset;
	wr->wr.atomic.rkey = flow->rkey;
	wr->wr.atomic.compare_add = expected;
	wr->wr.atomic.swap = desired;
	counts_of(flow, flags)->cas++;
}

void flow_faa(struct flow *flow, uint64_t *result, uint64_t offset, uint64_t add, unsigned flags)
{
	struct ibv_send_wr *wr = stage(flow, IBV_WR_ATOMIC_FETCH_AND_ADD, result, 8, flags);

	assert(offset % 8 == 0);
	wr->wr.atomic.remote_addr = flow->remote_base + offset;
	wr->wr.atomic.rkey = flow->rkey;
	wr->wr.atomic.compare_add = add;
	counts_of(flow, flags)->faa++;
}

void flow_send(struct flow *flow, const void *from, uint32_t bytes, unsigned flags)
{
	struct ibv_send_wr *wr = stage(flow, IBV_WR_SEND, from, bytes, flags);

	go_inline(flow, wr, bytes);
	counts_of(flow, flags)->send++;
}

void flow_await(struct flow *flow, struct flow_waiter *waiter)
{
	assert(flow->head > flow->posted);
	place_of(flow, flow->head - 1)->waiter = waiter;
}

/* Retires places up to `end`, all with one status. A waiter may stage; it sees a consistent flow.
 */
static void retire(struct flow *flow, uint64_t end, int status)
{
	while (flow->tail < end) {
		struct flow_waiter *waiter = place_of(flow, flow->tail)->waiter;

		place_of(flow, flow->tail)->waiter = NULL;
		flow->tail++;
		if (waiter)
			waiter->done(waiter, status);
	}
}

void flow_post(struct flow *flow)
{
	uint32_t count = flow_staged(flow);
	struct ibv_send_wr *bad = NULL;
	bool deferred = true;
	int error;

	if (count == 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		deferred = deferred && place_of(flow, flow->posted + i)->deferred;
	flow->wrs[count - 1].send_flags |= IBV_SEND_SIGNALED;
	flow->unsignaled = 0;
	flow->counts[deferred].doorbells++;
	error = ibv_post_send(flow->qp->ibv, flow->wrs, &bad);
	if (error) {
		uint64_t refused = flow->posted + (bad ? (uint64_t)(bad - flow->wrs) : 0);

		log_line(flow->logger, LOG_LEVEL_ERROR,
			 "posting %u work requests on queue pair %u failed: %s; the queue pair is "
			 "given up",
			 count, flow->qp->ibv->qp_num, strerror(error));
		flow->broken = true;
		qp_fail(flow->qp);
		/*
		 * What stands ahead of the refused one is in the device's hands and will be
		 * flushed. The rest never was: its waiters hang on the end of the ring and are
		 * called by the drain in flow_complete.
		 */
		flow->posted = flow->head;
		if (refused == flow->tail)
			retire(flow, flow->head, -ECANCELED);
		return;
	}
	flow->posted = flow->head;
}

/* Completed work requests from tail to sequence (exclusive) count for one CQE. */
static void count_cqe(struct flow *flow, uint64_t end)
{
	bool deferred = true;

	for (uint64_t s = flow->tail; s < end; s++)
		deferred = deferred && place_of(flow, s)->deferred;
	flow->counts[deferred].cqes++;
}

void flow_complete(struct flow *flow, const struct ibv_wc *wc)
{
	/* The 48 bits of the wr_id say how far behind `head` the work request is. */
	uint64_t behind = (flow->head - wc->wr_id) & SEQUENCE_MASK;
	uint64_t sequence = flow->head - behind;

	if (behind == 0 || sequence < flow->tail || sequence >= flow->posted)
		return; /* of an earlier life of the place: already retired */
	if (wc->status == IBV_WC_SUCCESS) {
		count_cqe(flow, sequence + 1);
		retire(flow, sequence + 1, 0);
		return;
	}
	if (!flow->broken)
		status_log_wc(flow->logger, wc);
	flow->broken = true;
	retire(flow, sequence, 0); /* an RC queue pair completes in order: these were done */
	retire(flow, sequence + 1, wc->status == IBV_WC_WR_FLUSH_ERR ? -ECANCELED : -EIO);
}

void flow_cancel(struct flow *flow)
{
	flow->broken = true;
	flow->posted = flow->head;
	retire(flow, flow->head, -ECANCELED);
}
