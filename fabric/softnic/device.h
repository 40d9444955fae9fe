/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of one context, as the owner's process has them. The libibverbs struct is the first
 * member of each.
 */
#ifndef FARKV_SOFTNIC_DEVICE_H
#define FARKV_SOFTNIC_DEVICE_H

#include "fabric/softnic/shared.h"
#include "fabric/softnic/softnic.h"

#include <infiniband/verbs.h>

struct lock {
	_Atomic uint32_t held;
};

void lock_take(struct lock *lock);

static inline void lock_give(struct lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

struct soft_context {
	struct ibv_context ibv;
	struct shared_context *shared;
	struct peer *self;
	uint32_t slot;
	int lock_fd;
	uint32_t inline_max;
	pthread_mutex_t mutex; /* of tables and creation */
	uint32_t next_pd, next_key;
	_Atomic uint32_t objects;
	struct soft_qp *_Atomic qps[SOFTNIC_QPS];
	struct soft_cq *cqs[SOFTNIC_CQS];
	struct soft_channel *channels[SOFTNIC_CHANNELS];
	struct soft_srq *srqs[SOFTNIC_RQS - SOFTNIC_QPS];
	struct {
		_Atomic uint64_t read, write, cas, faa, send, write_with_imm, doorbells,
			cqes_generated, cqes_polled, inline_writes;
	} counters;
};

struct soft_pd {
	struct ibv_pd ibv;
	uint32_t number;
	_Atomic uint32_t users;
};

struct soft_mr {
	struct ibv_mr ibv;
	uint32_t index;
	int fd; /* the memfd its pages were moved to, or -1 */
};

struct soft_channel {
	struct ibv_comp_channel ibv;
	uint32_t index;
	_Atomic uint32_t users;
};

struct cq_entry {
	struct ibv_wc wc;
	struct soft_qp *qp; /* whose send queue place it frees; NULL: a receive */
	uint64_t sequence;
};

struct soft_cq {
	struct ibv_cq ibv;
	struct shared_cq *shared;
	uint32_t index;
	struct lock lock;
	struct cq_entry *ring;
	uint32_t capacity;
	uint64_t head;
	_Atomic uint64_t tail_head; /* head as seen without the lock */
	uint64_t tail;
	bool overrun;
	_Atomic uint32_t users;
	_Atomic uint32_t events_got, events_acked;
};

struct recv_request {
	uint64_t wr_id;
	uint32_t sge_count;
	struct ibv_sge sges[SOFTNIC_SGE_MAX];
};

struct recv_queue {
	struct lock lock;
	uint32_t rq; /* index in shared->rqs */
	struct recv_request *ring;
	uint32_t capacity;
	uint64_t head, tail;
};

struct soft_srq {
	struct ibv_srq ibv;
	struct recv_queue queue;
	uint32_t limit;
	_Atomic uint32_t users;
};

struct soft_qp {
	struct ibv_qp ibv;
	struct soft_context *context;
	struct shared_qp *shared;
	uint32_t index;
	struct lock lock;
	struct soft_cq *send_cq, *recv_cq;
	struct soft_srq *srq;
	struct recv_queue queue; /* without an SRQ */
	struct peer *peer;
	struct shared_qp *peer_qp;
	uint32_t sq_depth, inline_max, sge_max, rd_atomic;
	bool signal_all;
	uint64_t posted;
	_Atomic uint64_t freed; /* send queue places given back by polled completions */
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
};

/* cq.c */
struct ibv_comp_channel *soft_create_channel(struct ibv_context *context);
int soft_destroy_channel(struct ibv_comp_channel *channel);
struct ibv_cq *soft_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int vector);
int soft_destroy_cq(struct ibv_cq *cq);
int soft_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int events);
void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, struct soft_qp *qp, uint64_t sequence,
	     bool solicited);
void cq_forget(struct soft_cq *cq, const struct soft_qp *qp);

/* recv.c */
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int soft_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int soft_destroy_srq(struct ibv_srq *srq);
int recv_queue_init(struct soft_context *context, struct recv_queue *queue, uint32_t rq,
		    uint32_t capacity);
void recv_queue_free(struct recv_queue *queue);
void recv_queue_reset(struct soft_context *context, struct recv_queue *queue);
/* Takes messages that have come for receive queues of this CQ. */
void recv_drain(struct soft_cq *cq);
void recv_flush(struct soft_qp *qp);
/* Puts a message into the peer's receive queue. 0, or IBV_WC_RNR_RETRY_EXC_ERR,
 * IBV_WC_REM_INV_REQ_ERR. */
enum ibv_wc_status recv_send(struct soft_qp *qp, const struct ibv_send_wr *wr,
			     const struct ibv_sge *sges, uint32_t bytes);
void shared_rq_init(struct shared_context *shared, uint32_t rq);

/* memory.c */
struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
int soft_dereg_mr(struct ibv_mr *mr);
bool memory_covers(const struct shared_mr *mr, uint64_t address, uint64_t bytes);
/* Whether a local piece may be used. */
enum ibv_wc_status memory_check_local(struct soft_context *context, uint32_t pd,
				      const struct ibv_sge *sge, bool write);

/* qp.c */
struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init);
int soft_destroy_qp(struct ibv_qp *qp);

/* execute.c */
int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* event.c */
void event_raise(struct peer *peer, enum ibv_event_type type, uint32_t object);
int soft_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void soft_ack_async_event(struct ibv_async_event *event);

static inline struct soft_context *context_of(struct ibv_context *context)
{
	return (struct soft_context *)context;
}

#endif
