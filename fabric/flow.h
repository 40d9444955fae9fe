/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The send side of one queue pair: chains, signals, credits and completions.
 *
 * Work requests are *staged* into one linked list and posted with one doorbell. Only the last of a
 * post is signaled, and every `signal_interval`-th in between, so that a completion stands for all
 * work requests up to it (an RC queue pair completes in order). Each posted work request takes a
 * place in a ring; its wr_id is the flow's id and the place's sequence number, which never comes
 * again: finding the context is an index, and a completion of an earlier life of the place is
 * recognised by its number.
 *
 * Credits are counted here (posted minus retired) and never left to ENOMEM: flow_reserve fails when
 * a chain does not fit, and the caller waits in its own queue.
 *
 * A *waiter* hangs on the last work request of a chain. It is called once: with 0 when a completion
 * retires that work request, with a negative errno when it failed or was flushed. Until then all
 * buffers of the chain are pinned.
 *
 * Order on the wire (InfiniBand, volume 1, table of work request ordering): a WRITE is ordered with
 * all that follows; a READ or an atomic with a later READ or atomic of the kind the table orders;
 * not with a later WRITE or SEND unless that one carries a fence (FLOW_FENCE).
 *
 * Not thread-safe: a flow belongs to its session.
 */
#ifndef FARKV_FABRIC_FLOW_H
#define FARKV_FABRIC_FLOW_H

#include "fabric/qp.h"

#include <stdbool.h>

enum {
	FLOW_CHAIN_MAX = 32, /* work requests in one doorbell */
	FLOW_INTERVAL_MAX = 32,
	FLOW_FENCE = 1,	   /* waits for READs and atomics posted before */
	FLOW_DEFERRED = 2, /* counted as owed work, not as an operation's */
};

struct flow_waiter {
	/* status: 0, or -errno: -EIO the work request failed, -ECANCELED it was flushed. */
	void (*done)(struct flow_waiter *waiter, int status);
};

/* Work requests by kind, as posted; [0] of operations, [1] deferred. */
struct flow_counts {
	uint64_t read, write, cas, faa, send, doorbells, cqes, inline_writes;
};

/* Where local buffers of a session are: one registration. */
struct flow_buffer {
	void *bytes;
	uint32_t lkey;
};

struct flow_place {
	struct flow_waiter *waiter;
	bool deferred;
};

struct flow {
	struct qp *qp;
	const struct logger *logger;
	uint64_t remote_base;
	uint32_t rkey;
	uint32_t lkey; /* of every local buffer used with this flow */
	uint16_t id;   /* high bits of wr_id; unique on the CQ */
	uint32_t depth;
	uint32_t signal_interval;
	uint64_t head;		    /* next sequence number to stage */
	uint64_t posted;	    /* next to post: posted <= head */
	uint64_t tail;		    /* oldest not retired */
	uint32_t unsignaled;	    /* in a row, posted */
	bool broken;		    /* an error has been seen: the QP is in ERR */
	struct flow_place *places;  /* `depth` of them */
	struct flow_counts *counts; /* [2], borrowed from the session */
	struct ibv_send_wr wrs[FLOW_CHAIN_MAX];
	struct ibv_sge sges[FLOW_CHAIN_MAX];
};

/* The flow owns neither qp nor counts. signal_interval 1..32, at most depth / 2. -EINVAL, -ENOMEM.
 */
int flow_init(struct flow *flow, struct qp *qp, uint16_t id, uint32_t signal_interval,
	      uint32_t lkey, uint64_t remote_base, uint32_t rkey, struct flow_counts counts[2],
	      const struct logger *logger);
void flow_free(struct flow *flow);

/* Whether `count` more work requests may be staged now. Posts what is staged where the chain would
 * not fit. */
bool flow_reserve(struct flow *flow, uint32_t count);

/* Each stages one work request into room that flow_reserve has granted. offset: in the remote
 * region. */
void flow_read(struct flow *flow, void *into, uint32_t bytes, uint64_t offset, unsigned flags);
void flow_write(struct flow *flow, const void *from, uint32_t bytes, uint64_t offset,
		unsigned flags);
void flow_cas(struct flow *flow, uint64_t *result, uint64_t offset, uint64_t expected,
	      uint64_t desired, unsigned flags);
void flow_faa(struct flow *flow, uint64_t *result, uint64_t offset, uint64_t add, unsigned flags);
void flow_send(struct flow *flow, const void *from, uint32_t bytes, unsigned flags);
/* Ends a chain: `waiter` hangs on the work request staged last. */
void flow_await(struct flow *flow, struct flow_waiter *waiter);

static inline uint32_t flow_staged(const struct flow *flow)
{
	return (uint32_t)(flow->head - flow->posted);
}

static inline uint64_t flow_in_flight(const struct flow *flow)
{
	return flow->head - flow->tail;
}

/* One doorbell for all that is staged. A post that the device refuses breaks the flow: waiters are
 * called with -EIO. */
void flow_post(struct flow *flow);

/* Takes one completion of this flow (wr_id >> 48 == id): calls the waiters it retires. */
void flow_complete(struct flow *flow, const struct ibv_wc *wc);
/* The QP is gone or in ERR and has been drained: calls every remaining waiter with -ECANCELED. */
void flow_cancel(struct flow *flow);

static inline uint16_t flow_id_of(const struct ibv_wc *wc)
{
	return (uint16_t)(wc->wr_id >> 48);
}

#endif
