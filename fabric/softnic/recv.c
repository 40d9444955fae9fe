/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving. A sender puts its message into the peer's inbox (shared memory, robust lock), no more
 * of them than receives have been posted, and wakes the peer's channel. The owner takes messages
 * when it polls: payload into the posted buffers, a completion into the receive CQ. So a receiver's
 * buffers need not be shared, and no sender waits for the receiver's threads.
 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* RNR timer codes of the InfiniBand specification are 10 us to 655 ms; here every retry waits this
 * long. */
enum { RNR_PAUSE_NS = 500000, RNR_ROUNDS = 7, RNR_INFINITE = 7, RNR_INFINITE_ROUNDS = 2000 };

int recv_queue_init(struct soft_context *context, struct recv_queue *queue, uint32_t rq,
		    uint32_t capacity)
{
	queue->rq = rq;
	queue->capacity = capacity;
	queue->head = queue->tail = 0;
	queue->ring = calloc(capacity ? capacity : 1, sizeof *queue->ring);
	shared_rq_init(context->shared, rq);
	return queue->ring ? 0 : ENOMEM;
}

void recv_queue_free(struct recv_queue *queue)
{
	free(queue->ring);
	queue->ring = NULL;
}

static void rq_lock(struct shared_rq *rq)
{
	/* The dead owner of the lock has left complete messages only: `pushed` is stored last. */
	if (pthread_mutex_lock(&rq->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&rq->lock);
}

void recv_queue_reset(struct soft_context *context, struct recv_queue *queue)
{
	struct shared_rq *rq = &context->shared->rqs[queue->rq];

	rq_lock(rq);
	queue->head = queue->tail = 0;
	atomic_store(&rq->posted, 0);
	atomic_store(&rq->pushed, 0);
	atomic_store(&rq->popped, 0);
	pthread_mutex_unlock(&rq->lock);
}

static int post(struct soft_context *context, struct recv_queue *queue, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad)
{
	int error = 0;

	lock_take(&queue->lock);
	for (; wr && !error; wr = wr->next) {
		struct recv_request *request =
			&queue->ring[queue->head % (queue->capacity ? queue->capacity : 1)];

		if (wr->num_sge > SOFTNIC_SGE_MAX || wr->num_sge < 0)
			error = EINVAL;
		else if (queue->head - queue->tail == queue->capacity)
			error = ENOMEM;
		if (error) {
			*bad = wr;
			break;
		}
		request->wr_id = wr->wr_id;
		request->sge_count = (uint32_t)wr->num_sge;
		memcpy(request->sges, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
		queue->head++;
		atomic_fetch_add(&context->shared->rqs[queue->rq].posted, 1);
	}
	lock_give(&queue->lock);
	return error;
}

int soft_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_qp *qp = (struct soft_qp *)ibv;
	uint32_t state = atomic_load(&qp->shared->state);
	int error;

	if (qp->srq || state == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	error = post(qp->context, &qp->queue, wr, bad);
	if (state == IBV_QPS_ERR)
		recv_flush(qp);
	return error;
}

int soft_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post(context_of(ibv->context), &((struct soft_srq *)ibv)->queue, wr, bad);
}

struct ibv_srq *soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct soft_context *context = context_of(pd->context);
	struct soft_srq *srq;
	uint32_t index = 0;

	if (attr->attr.max_wr < 1 || attr->attr.max_wr > SOFTNIC_WR_MAX ||
	    attr->attr.max_sge > SOFTNIC_SGE_MAX) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof *srq);
	if (!srq)
		return NULL;
	pthread_mutex_lock(&context->mutex);
	while (index < SOFTNIC_RQS - SOFTNIC_QPS && context->srqs[index])
		index++;
	if (index < SOFTNIC_RQS - SOFTNIC_QPS)
		context->srqs[index] = srq;
	pthread_mutex_unlock(&context->mutex);
	if (index == SOFTNIC_RQS - SOFTNIC_QPS ||
	    recv_queue_init(context, &srq->queue, SOFTNIC_QPS + index, attr->attr.max_wr)) {
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	srq->ibv = (struct ibv_srq){.context = pd->context,
				    .srq_context = attr->srq_context,
				    .pd = pd,
				    .handle = index};
	((struct soft_pd *)pd)->users++;
	return &srq->ibv;
}

int soft_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct soft_srq *srq = (struct soft_srq *)ibv;

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > srq->queue.capacity)
			return EINVAL;
		srq->limit = attr->srq_limit;
	}
	return 0;
}

int soft_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct soft_srq *srq = (struct soft_srq *)ibv;

	*attr = (struct ibv_srq_attr){
		.max_wr = srq->queue.capacity, .max_sge = SOFTNIC_SGE_MAX, .srq_limit = srq->limit};
	return 0;
}

int soft_destroy_srq(struct ibv_srq *ibv)
{
	struct soft_srq *srq = (struct soft_srq *)ibv;
	struct soft_context *context = context_of(ibv->context);

	if (srq->users)
		return EBUSY;
	pthread_mutex_lock(&context->mutex);
	context->srqs[srq->queue.rq - SOFTNIC_QPS] = NULL;
	pthread_mutex_unlock(&context->mutex);
	((struct soft_pd *)ibv->pd)->users--;
	recv_queue_free(&srq->queue);
	free(srq);
	return 0;
}

/* Payload into the pieces of a receive. */
static enum ibv_wc_status scatter(struct soft_qp *qp, const struct recv_request *request,
				  const struct shared_message *message)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < request->sge_count && done < message->bytes; i++) {
		const struct ibv_sge *sge = &request->sges[i];
		uint32_t bytes =
			message->bytes - done < sge->length ? message->bytes - done : sge->length;
		enum ibv_wc_status status =
			memory_check_local(qp->context, qp->shared->pd, sge, true);

		if (status)
			return status;
		memcpy((void *)(uintptr_t)sge->addr, message->data + done, bytes);
		done += bytes;
	}
	return done == message->bytes ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
}

static void complete(struct soft_context *context, const struct recv_request *request,
		     const struct shared_message *message)
{
	struct soft_qp *qp = atomic_load(&context->qps[message->qp % SOFTNIC_QPS]);
	struct ibv_wc wc = {.wr_id = request->wr_id,
			    .opcode = IBV_WC_RECV,
			    .byte_len = message->bytes,
			    .src_qp = message->source};

	if (!qp || atomic_load(&qp->shared->state) == IBV_QPS_ERR)
		return; /* its queue pair has gone meanwhile: so has the message */
	wc.qp_num = qp->ibv.qp_num;
	if (message->opcode == IBV_WR_SEND_WITH_IMM ||
	    message->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = message->imm;
	}
	if (message->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	else
		wc.status = scatter(qp, request, message);
	cq_push(qp->recv_cq, &wc, NULL, 0, message->solicited);
}

static void drain_queue(struct soft_context *context, struct recv_queue *queue,
			struct soft_srq *srq)
{
	struct shared_rq *rq = &context->shared->rqs[queue->rq];
	uint32_t left = 0;

	lock_take(&queue->lock);
	while (atomic_load(&rq->popped) < atomic_load(&rq->pushed) && queue->tail < queue->head) {
		uint64_t at = atomic_load(&rq->popped);

		complete(context, &queue->ring[queue->tail % queue->capacity],
			 &rq->inbox[at % SOFTNIC_INBOX]);
		queue->tail++;
		atomic_store(&rq->popped, at + 1);
	}
	left = (uint32_t)(queue->head - queue->tail);
	lock_give(&queue->lock);
	if (srq && srq->limit > 0 && left < srq->limit) {
		srq->limit = 0; /* the event comes once an arming */
		event_raise(context->self, IBV_EVENT_SRQ_LIMIT_REACHED, srq->ibv.handle);
	}
}

void recv_drain(struct soft_cq *cq)
{
	struct soft_context *context = context_of(cq->ibv.context);

	/* First the flag, then the queues: a message that comes later raises it again. */
	atomic_store(&cq->shared->pending, 0);
	pthread_mutex_lock(&context->mutex);
	for (uint32_t i = 0; i < SOFTNIC_RQS - SOFTNIC_QPS; i++)
		if (context->srqs[i])
			drain_queue(context, &context->srqs[i]->queue, context->srqs[i]);
	for (uint32_t i = 0; i < SOFTNIC_QPS; i++) {
		struct soft_qp *qp = atomic_load_explicit(&context->qps[i], memory_order_relaxed);

		if (qp && !qp->srq && qp->recv_cq == cq)
			drain_queue(context, &qp->queue, NULL);
	}
	pthread_mutex_unlock(&context->mutex);
}

void recv_flush(struct soft_qp *qp)
{
	if (qp->srq)
		return;
	lock_take(&qp->queue.lock);
	while (qp->queue.tail < qp->queue.head) {
		struct ibv_wc wc = {
			.wr_id = qp->queue.ring[qp->queue.tail++ % qp->queue.capacity].wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.opcode = IBV_WC_RECV,
			.qp_num = qp->ibv.qp_num};

		cq_push(qp->recv_cq, &wc, NULL, 0, true);
	}
	lock_give(&qp->queue.lock);
}

static bool put(struct shared_rq *rq, struct soft_qp *qp, const struct ibv_send_wr *wr,
		const struct ibv_sge *sges, uint32_t bytes)
{
	uint64_t at;
	struct shared_message *message;
	uint32_t done = 0;
	bool room;

	rq_lock(rq);
	at = atomic_load(&rq->pushed);
	room = at < atomic_load(&rq->posted) && at - atomic_load(&rq->popped) < SOFTNIC_INBOX;
	if (room) {
		message = &rq->inbox[at % SOFTNIC_INBOX];
		message->bytes = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : bytes;
		message->opcode = wr->opcode;
		message->imm = wr->imm_data;
		message->qp = qpn_index(atomic_load(&qp->shared->dest));
		message->source = qp->ibv.qp_num;
		message->solicited = (wr->send_flags & IBV_SEND_SOLICITED) != 0;
		for (int i = 0; message->bytes && i < wr->num_sge; i++) {
			memcpy(message->data + done, (void *)(uintptr_t)sges[i].addr,
			       sges[i].length);
			done += sges[i].length;
		}
		atomic_store(&rq->pushed, at + 1);
	}
	pthread_mutex_unlock(&rq->lock);
	return room;
}

enum ibv_wc_status recv_send(struct soft_qp *qp, const struct ibv_send_wr *wr,
			     const struct ibv_sge *sges, uint32_t bytes)
{
	struct shared_context *shared = qp->peer->shared;
	struct shared_rq *rq = &shared->rqs[qp->peer_qp->rq];
	struct shared_cq *cq = &shared->cqs[qp->peer_qp->recv_cq];
	uint32_t rounds =
		qp->attr.rnr_retry == RNR_INFINITE ? RNR_INFINITE_ROUNDS : qp->attr.rnr_retry;
	uint32_t armed;

	if (bytes > SOFTNIC_MESSAGE_MAX && wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		return IBV_WC_REM_INV_REQ_ERR;
	for (uint32_t round = 0; !put(rq, qp, wr, sges, bytes); round++) {
		if (round >= rounds || !peer_alive(qp->peer))
			return IBV_WC_RNR_RETRY_EXC_ERR;
		nanosleep(&(struct timespec){.tv_nsec = RNR_PAUSE_NS}, NULL);
	}
	atomic_store(&cq->pending, 1);
	armed = atomic_load(&cq->armed);
	if (armed && (armed == 1 || (wr->send_flags & IBV_SEND_SOLICITED)) &&
	    atomic_exchange(&cq->armed, 0) && cq->channel)
		peer_wake(qp->peer, cq->channel - 1, qp->peer_qp->recv_cq);
	return IBV_WC_SUCCESS;
}
