/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs: creation, the state machine, destruction.
 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct soft_context *context = context_of(pd->context);
	struct ibv_qp_cap *cap = &attr->cap;
	struct soft_qp *qp;
	uint32_t index = 0;

	if (attr->qp_type != IBV_QPT_RC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > SOFTNIC_WR_MAX ||
	    cap->max_recv_wr > SOFTNIC_WR_MAX || cap->max_send_sge > SOFTNIC_SGE_MAX ||
	    cap->max_recv_sge > SOFTNIC_SGE_MAX || cap->max_inline_data > context->inline_max) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof *qp);
	if (!qp)
		return NULL;
	pthread_mutex_lock(&context->mutex);
	while (index < SOFTNIC_QPS && atomic_load(&context->qps[index]))
		index++;
	if (index < SOFTNIC_QPS)
		atomic_store(&context->qps[index], qp);
	pthread_mutex_unlock(&context->mutex);
	if (index == SOFTNIC_QPS ||
	    recv_queue_init(context, &qp->queue, index, attr->srq ? 0 : cap->max_recv_wr)) {
		if (index < SOFTNIC_QPS)
			atomic_store(&context->qps[index], NULL);
		free(qp);
		errno = ENOMEM;
		return NULL;
	}
	qp->ibv = (struct ibv_qp){.context = pd->context,
				  .qp_context = attr->qp_context,
				  .pd = pd,
				  .send_cq = attr->send_cq,
				  .recv_cq = attr->recv_cq,
				  .srq = attr->srq,
				  .handle = index,
				  .state = IBV_QPS_RESET,
				  .qp_type = IBV_QPT_RC,
				  .qp_num = context->slot << SOFTNIC_QP_BITS | index};
	qp->context = context;
	qp->index = index;
	qp->send_cq = (struct soft_cq *)attr->send_cq;
	qp->recv_cq = (struct soft_cq *)attr->recv_cq;
	qp->srq = (struct soft_srq *)attr->srq;
	qp->sq_depth = cap->max_send_wr;
	qp->inline_max = cap->max_inline_data;
	qp->sge_max = cap->max_send_sge;
	qp->signal_all = attr->sq_sig_all;
	qp->cap = *cap;
	qp->shared = &context->shared->qps[index];
	atomic_store(&qp->shared->state, IBV_QPS_RESET);
	atomic_store(&qp->shared->dest, 0);
	atomic_store(&qp->shared->executing, 0);
	qp->shared->pd = ((struct soft_pd *)pd)->number;
	qp->shared->rq = qp->srq ? qp->srq->queue.rq : index;
	qp->shared->recv_cq = qp->recv_cq->index;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	((struct soft_pd *)pd)->users++;
	if (qp->srq)
		qp->srq->users++;
	return &qp->ibv;
}

static bool attributes_ok(const struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_PORT) && attr->port_num != 1)
		return false;
	if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return false;
	if ((mask & IBV_QP_AV) && (!attr->ah_attr.is_global || attr->ah_attr.grh.sgid_index != 0 ||
				   attr->ah_attr.port_num != 1))
		return false;
	if ((mask & IBV_QP_PATH_MTU) &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return false;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > SOFTNIC_RD_ATOMIC_MAX)
		return false;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > SOFTNIC_RD_ATOMIC_MAX)
		return false;
	if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31)
		return false;
	if (((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7))
		return false;
	return !(mask & IBV_QP_CUR_STATE) ||
	       (uint32_t)attr->cur_qp_state == atomic_load(&qp->shared->state);
}

/* The attributes that a transition of an RC queue pair must carry; 0 = not a legal transition. */
static int required(uint32_t from, uint32_t to)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return IBV_QP_STATE;
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (from == IBV_QPS_INIT && to == IBV_QPS_INIT)
		return IBV_QP_STATE;
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (from == IBV_QPS_RTS && to == IBV_QPS_RTS)
		return IBV_QP_STATE;
	return 0;
}

static void remember(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_ACCESS_FLAGS) {
		own->qp_access_flags = attr->qp_access_flags;
		atomic_store(&qp->shared->access, attr->qp_access_flags);
	}
	if (mask & IBV_QP_DEST_QPN) {
		own->dest_qp_num = attr->dest_qp_num;
		atomic_store(&qp->shared->dest, attr->dest_qp_num);
		qp->peer = NULL;
	}
}

static void leave_service(struct soft_qp *qp, uint32_t to)
{
	bool was_error = atomic_exchange(&qp->shared->state, to) == IBV_QPS_ERR;

	/* Towards us: nothing executes after this. From us: post_send holds the lock while it
	 * executes. */
	peer_wait_executing(qp->context->shared, qp->index);
	if (to == IBV_QPS_ERR) {
		recv_flush(qp);
		if (qp->srq && !was_error)
			event_raise(qp->context->self, IBV_EVENT_QP_LAST_WQE_REACHED, qp->index);
		return;
	}
	cq_forget(qp->send_cq, qp);
	cq_forget(qp->recv_cq, qp);
	if (!qp->srq)
		recv_queue_reset(qp->context, &qp->queue);
	atomic_store(&qp->shared->dest, 0);
	qp->peer = NULL;
	qp->posted = 0;
	atomic_store(&qp->freed, 0);
}

int soft_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct soft_qp *qp = (struct soft_qp *)ibv;
	uint32_t from = atomic_load(&qp->shared->state);
	uint32_t to = mask & IBV_QP_STATE ? (uint32_t)attr->qp_state : from;
	int needed = mask & IBV_QP_STATE ? required(from, to) : 0;

	if ((mask & IBV_QP_STATE) && (needed == 0 || (mask & needed) != needed))
		return EINVAL;
	if (!attributes_ok(qp, attr, mask))
		return EINVAL;
	lock_take(&qp->lock);
	remember(qp, attr, mask);
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
		leave_service(qp, to);
	else
		atomic_store(&qp->shared->state, to);
	ibv->state = (enum ibv_qp_state)to;
	lock_give(&qp->lock);
	return 0;
}

int soft_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp = (struct soft_qp *)ibv;

	(void)mask;
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)atomic_load(&qp->shared->state);
	attr->cap = qp->cap;
	*init = (struct ibv_qp_init_attr){.qp_context = ibv->qp_context,
					  .send_cq = ibv->send_cq,
					  .recv_cq = ibv->recv_cq,
					  .srq = ibv->srq,
					  .cap = qp->cap,
					  .qp_type = IBV_QPT_RC,
					  .sq_sig_all = qp->signal_all};
	return 0;
}

int soft_destroy_qp(struct ibv_qp *ibv)
{
	struct soft_qp *qp = (struct soft_qp *)ibv;
	struct soft_context *context = qp->context;

	lock_take(&qp->lock);
	leave_service(qp, IBV_QPS_RESET);
	lock_give(&qp->lock);
	pthread_mutex_lock(&context->mutex);
	atomic_store(&context->qps[qp->index], NULL);
	pthread_mutex_unlock(&context->mutex);
	cq_forget(qp->recv_cq, qp);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	((struct soft_pd *)ibv->pd)->users--;
	if (qp->srq)
		qp->srq->users--;
	recv_queue_free(&qp->queue);
	free(qp);
	return 0;
}
