/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues and channels. Completions of a process's own work requests, and of messages it
 * has taken, stand in a ring of its own; peers only raise `pending` and wake a channel.
 *
 * Arming: req_notify stores `armed`; whoever adds a completion takes the arm (exchange to 0) and
 * wakes. A completion that came before the arm does not wake: poll again after arming.
 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void lock_take(struct lock *lock)
{
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		sched_yield();
}

struct ibv_comp_channel *soft_create_channel(struct ibv_context *ibv)
{
	struct soft_context *context = context_of(ibv);
	struct soft_channel *channel = calloc(1, sizeof *channel);
	uint32_t index = 0;

	if (!channel)
		return NULL;
	pthread_mutex_lock(&context->mutex);
	while (index < SOFTNIC_CHANNELS && context->channels[index])
		index++;
	if (index < SOFTNIC_CHANNELS)
		context->channels[index] = channel;
	pthread_mutex_unlock(&context->mutex);
	channel->ibv.context = ibv;
	channel->index = index;
	channel->ibv.fd = index < SOFTNIC_CHANNELS ? peer_open_channel(context->slot, index) : -1;
	if (channel->ibv.fd >= 0)
		return &channel->ibv;
	if (index < SOFTNIC_CHANNELS)
		context->channels[index] = NULL;
	free(channel);
	errno = errno ? errno : ENOMEM;
	return NULL;
}

int soft_destroy_channel(struct ibv_comp_channel *ibv)
{
	struct soft_channel *channel = (struct soft_channel *)ibv;
	struct soft_context *context = context_of(ibv->context);

	if (channel->users)
		return EBUSY;
	context->channels[channel->index] = NULL;
	peer_close_channel(context->slot, channel->index, ibv->fd);
	free(channel);
	return 0;
}

struct ibv_cq *soft_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int vector)
{
	struct soft_context *context = context_of(ibv);
	struct soft_cq *cq;
	uint32_t index = 0;

	if (cqe < 1 || cqe > SOFTNIC_CQE_MAX || vector < 0 || vector >= ibv->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof *cq);
	if (!cq || !(cq->ring = calloc((size_t)cqe, sizeof *cq->ring))) {
		free(cq);
		return NULL;
	}
	pthread_mutex_lock(&context->mutex);
	while (index < SOFTNIC_CQS && context->cqs[index])
		index++;
	if (index < SOFTNIC_CQS)
		context->cqs[index] = cq;
	pthread_mutex_unlock(&context->mutex);
	if (index == SOFTNIC_CQS) {
		free(cq->ring);
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->ibv = (struct ibv_cq){.context = ibv,
				  .channel = channel,
				  .cq_context = cq_context,
				  .handle = index,
				  .cqe = cqe};
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->index = index;
	cq->capacity = (uint32_t)cqe;
	cq->shared = &context->shared->cqs[index];
	cq->shared->channel = channel ? ((struct soft_channel *)channel)->index + 1 : 0;
	atomic_store(&cq->shared->armed, 0);
	atomic_store(&cq->shared->pending, 0);
	if (channel)
		((struct soft_channel *)channel)->users++;
	return &cq->ibv;
}

int soft_destroy_cq(struct ibv_cq *ibv)
{
	struct soft_cq *cq = (struct soft_cq *)ibv;
	struct soft_context *context = context_of(ibv->context);

	if (cq->users)
		return EBUSY;
	/* As libibverbs has it: events that were fetched must be acknowledged first. */
	pthread_mutex_lock(&ibv->mutex);
	while (cq->events_got != cq->events_acked)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	if (ibv->channel)
		((struct soft_channel *)ibv->channel)->users--;
	pthread_mutex_lock(&context->mutex);
	context->cqs[cq->index] = NULL;
	pthread_mutex_unlock(&context->mutex);
	free(cq->ring);
	free(cq);
	return 0;
}

void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, struct soft_qp *qp, uint64_t sequence,
	     bool solicited)
{
	struct soft_context *context = context_of(cq->ibv.context);
	uint32_t armed;
	bool overrun = false;

	lock_take(&cq->lock);
	if (cq->head - cq->tail == cq->capacity) {
		overrun = !cq->overrun;
		cq->overrun = true;
	} else {
		cq->ring[cq->head % cq->capacity] =
			(struct cq_entry){.wc = *wc, .qp = qp, .sequence = sequence};
		atomic_store_explicit(&cq->tail_head, ++cq->head, memory_order_release);
	}
	lock_give(&cq->lock);
	atomic_fetch_add_explicit(&context->counters.cqes_generated, 1, memory_order_relaxed);
	if (overrun)
		event_raise(context->self, IBV_EVENT_CQ_ERR, cq->index);
	armed = atomic_load(&cq->shared->armed);
	if (armed && (armed == 1 || solicited || wc->status != IBV_WC_SUCCESS) &&
	    atomic_exchange(&cq->shared->armed, 0) && cq->shared->channel)
		peer_wake(context->self, cq->shared->channel - 1, cq->index);
}

/* A destroyed queue pair's completions go with it. */
void cq_forget(struct soft_cq *cq, const struct soft_qp *qp)
{
	uint64_t keep;

	lock_take(&cq->lock);
	keep = cq->tail;
	for (uint64_t at = cq->tail; at < cq->head; at++) {
		struct cq_entry *entry = &cq->ring[at % cq->capacity];

		if (entry->wc.qp_num != qp->ibv.qp_num)
			cq->ring[keep++ % cq->capacity] = *entry;
	}
	cq->head = keep;
	atomic_store_explicit(&cq->tail_head, keep, memory_order_release);
	lock_give(&cq->lock);
}

int soft_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct soft_cq *cq = (struct soft_cq *)ibv;
	int taken = 0;

	if (atomic_load_explicit(&cq->shared->pending, memory_order_acquire))
		recv_drain(cq);
	if (atomic_load_explicit(&cq->tail_head, memory_order_acquire) == cq->tail)
		return 0;
	lock_take(&cq->lock);
	while (taken < count && cq->tail < cq->head) {
		struct cq_entry *entry = &cq->ring[cq->tail++ % cq->capacity];

		wc[taken++] = entry->wc;
		if (entry->qp)
			atomic_store_explicit(&entry->qp->freed, entry->sequence + 1,
					      memory_order_release);
	}
	lock_give(&cq->lock);
	if (taken > 0)
		atomic_fetch_add_explicit(&context_of(ibv->context)->counters.cqes_polled,
					  (uint64_t)taken, memory_order_relaxed);
	return taken;
}

int soft_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct soft_cq *cq = (struct soft_cq *)ibv;
	uint32_t armed = atomic_load(&cq->shared->armed);

	/* "Any" is not taken back by "solicited". */
	if (armed != 1)
		atomic_store(&cq->shared->armed, solicited_only ? 2 : 1);
	return 0;
}

int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ibv, void **cq_context)
{
	struct soft_context *context = context_of(channel->context);
	uint64_t record;

	for (;;) {
		ssize_t got = read(channel->fd, &record, sizeof record);
		struct soft_cq *cq;

		if (got != sizeof record)
			return -1;
		pthread_mutex_lock(&context->mutex);
		cq = record < SOFTNIC_CQS ? context->cqs[record] : NULL;
		if (cq && cq->ibv.channel == channel)
			cq->events_got++;
		else
			cq = NULL; /* of a queue that is gone */
		pthread_mutex_unlock(&context->mutex);
		if (!cq)
			continue;
		*ibv = &cq->ibv;
		*cq_context = cq->ibv.cq_context;
		return 0;
	}
}

void soft_ack_cq_events(struct ibv_cq *ibv, unsigned int events)
{
	struct soft_cq *cq = (struct soft_cq *)ibv;

	pthread_mutex_lock(&ibv->mutex);
	cq->events_acked += events;
	pthread_cond_signal(&ibv->cond);
	pthread_mutex_unlock(&ibv->mutex);
}
