/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: a post executes its work requests at once, in order, on the peer's pages. So a work
 * request is complete before the next begins, which is stronger than RC promises; the adversary
 * that takes the promise at its word comes later.
 *
 * Words of 8 bytes, where both sides are aligned, are moved whole. Payload is ordered by fences: a
 * WRITE is visible before whatever follows it, and a READ sees what was visible when it began.
 *
 * The first failing work request completes with its error, signaled or not; the queue pair goes to
 * ERR, and what follows is flushed.
 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <string.h>

static void bump(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* dst and src do not overlap in what farkv does; where they do, memmove's order is as good as any.
 */
static void move(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if ((((uintptr_t)to | (uintptr_t)from) & 7) == 0) {
		for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
			atomic_store_explicit(
				(_Atomic uint64_t *)to,
				atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)from,
						     memory_order_relaxed),
				memory_order_relaxed);
	}
	if (bytes > 0)
		memmove(to, from, bytes);
}

static uint32_t total_bytes(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static enum ibv_wc_status check_local(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	bool write = wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr->opcode);

	if (wr->send_flags & IBV_SEND_INLINE)
		return IBV_WC_SUCCESS;
	if (is_atomic(wr->opcode) && total_bytes(wr) != 8)
		return IBV_WC_LOC_LEN_ERR;
	for (int i = 0; i < wr->num_sge; i++) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;

		if (wr->sg_list[i].length > 0)
			status = memory_check_local(qp->context, qp->shared->pd, &wr->sg_list[i],
						    write);
		if (status)
			return status;
	}
	return IBV_WC_SUCCESS;
}

static uint32_t remote_right(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_ACCESS_REMOTE_READ;
	return is_atomic(opcode) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
}

/* Where the peer's bytes are here; NULL with the status. */
static uint8_t *remote_bytes(struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
			     enum ibv_wc_status *status)
{
	bool atomic = is_atomic(wr->opcode);
	uint64_t address = atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	uint32_t key = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey,
		 right = remote_right(wr->opcode);
	const struct shared_mr *mr = &qp->peer->shared->mrs[key & (SOFTNIC_MRS - 1)];
	uint8_t *mapped;

	*status = IBV_WC_REM_ACCESS_ERR;
	if (!(atomic_load_explicit(&qp->peer_qp->access, memory_order_relaxed) & right))
		return NULL;
	if (key == 0 || atomic_load_explicit(&mr->key, memory_order_acquire) != key ||
	    mr->pd != qp->peer_qp->pd || !(mr->access & right) ||
	    !memory_covers(mr, address, bytes))
		return NULL;
	*status = IBV_WC_REM_INV_REQ_ERR;
	if (atomic && address % 8 != 0)
		return NULL;
	mapped = peer_map_mr(qp->peer, key & (SOFTNIC_MRS - 1), key);
	*status = mapped ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
	return mapped ? mapped + (address - mr->address) : NULL;
}

static void gather(uint8_t *to, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		move(to, (uint8_t *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void scatter(const uint8_t *from, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		move((uint8_t *)(uintptr_t)wr->sg_list[i].addr, from, wr->sg_list[i].length);
		from += wr->sg_list[i].length;
	}
}

static void do_atomic(uint8_t *remote, const struct ibv_send_wr *wr)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)remote;
	uint64_t before = wr->wr.atomic.compare_add;

	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		atomic_compare_exchange_strong(word, &before, wr->wr.atomic.swap);
	else
		before = atomic_fetch_add(word, wr->wr.atomic.compare_add);
	scatter((uint8_t *)&before, wr);
}

/* With the mark set and the peer in service. */
static enum ibv_wc_status perform(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t bytes = total_bytes(wr);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint8_t *remote = NULL;

	if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
		return recv_send(qp, wr, wr->sg_list, bytes);
	if (bytes > 0) {
		remote = remote_bytes(qp, wr, bytes, &status);
		if (!remote)
			return status;
	}
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		scatter(remote, wr);
		atomic_thread_fence(memory_order_acquire);
		return IBV_WC_SUCCESS;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		atomic_thread_fence(memory_order_release);
		gather(remote, wr);
		atomic_thread_fence(memory_order_release);
		return wr->opcode == IBV_WR_RDMA_WRITE ? IBV_WC_SUCCESS
						       : recv_send(qp, wr, wr->sg_list, bytes);
	default:
		do_atomic(remote, wr);
		return IBV_WC_SUCCESS;
	}
}

static bool peer_in_service(struct soft_qp *qp)
{
	uint32_t dest = atomic_load_explicit(&qp->shared->dest, memory_order_relaxed), state;

	if (!qp->peer) {
		qp->peer = peer_find(qpn_slot(dest));
		qp->peer_qp = qp->peer ? &qp->peer->shared->qps[qpn_index(dest)] : NULL;
	}
	if (!qp->peer || !peer_alive(qp->peer))
		return false;
	state = atomic_load(&qp->peer_qp->state);
	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
	       atomic_load(&qp->peer_qp->dest) == qp->ibv.qp_num;
}

/* A responder that refuses goes to ERR as well, and its owner hears of it. */
static void fail_peer(struct soft_qp *qp, enum ibv_wc_status status)
{
	enum ibv_event_type type =
		status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR;

	if (status != IBV_WC_REM_ACCESS_ERR && status != IBV_WC_REM_INV_REQ_ERR &&
	    status != IBV_WC_REM_OP_ERR)
		return;
	if (atomic_exchange(&qp->peer_qp->state, IBV_QPS_ERR) != IBV_QPS_ERR)
		event_raise(qp->peer, type, qpn_index(atomic_load(&qp->shared->dest)));
}

static enum ibv_wc_status execute(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	enum ibv_wc_status status = check_local(qp, wr);

	if (status)
		return status;
	/* The mark first, then the look at the peer: shared.h. */
	atomic_store(&qp->shared->executing, 1);
	if (peer_in_service(qp)) {
		status = perform(qp, wr);
		if (status)
			fail_peer(qp, status);
	} else {
		status = IBV_WC_RETRY_EXC_ERR;
	}
	atomic_store_explicit(&qp->shared->executing, 0, memory_order_release);
	return status;
}

static enum ibv_wc_opcode completion_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

static void complete(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status,
		     uint64_t sequence)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id,
			    .status = status,
			    .opcode = completion_opcode(wr->opcode),
			    .qp_num = qp->ibv.qp_num,
			    .byte_len = total_bytes(wr)};

	if (status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED) && !qp->signal_all)
		return;
	cq_push(qp->send_cq, &wc, qp, sequence, true);
}

static void count(struct soft_context *context, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		bump(&context->counters.read);
		break;
	case IBV_WR_RDMA_WRITE:
		bump(&context->counters.write);
		if (wr->send_flags & IBV_SEND_INLINE)
			bump(&context->counters.inline_writes);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		bump(&context->counters.write_with_imm);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		bump(&context->counters.cas);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		bump(&context->counters.faa);
		break;
	default:
		bump(&context->counters.send);
		break;
	}
}

static int check_request(const struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sge_max)
		return EINVAL;
	if (wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) &&
	    (total_bytes(wr) > qp->inline_max || wr->opcode == IBV_WR_RDMA_READ ||
	     is_atomic(wr->opcode)))
		return EINVAL;
	return qp->posted - atomic_load_explicit(&qp->freed, memory_order_acquire) >= qp->sq_depth
		       ? ENOMEM
		       : 0;
}

int soft_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = (struct soft_qp *)ibv;
	uint32_t state;
	int error = 0;

	lock_take(&qp->lock);
	state = atomic_load_explicit(&qp->shared->state, memory_order_relaxed);
	if (state != IBV_QPS_RTS && state != IBV_QPS_ERR)
		error = EINVAL;
	if (!error && wr)
		bump(&qp->context->counters.doorbells);
	for (; wr; wr = wr->next) {
		enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;

		error = error ? error : check_request(qp, wr);
		if (error) {
			*bad = wr;
			break;
		}
		count(qp->context, wr);
		/* The peer may have put us in ERR by a refusal of its own. */
		if (atomic_load_explicit(&qp->shared->state, memory_order_relaxed) == IBV_QPS_RTS) {
			status = execute(qp, wr);
			if (status) {
				atomic_store(&qp->shared->state, IBV_QPS_ERR);
				ibv->state = IBV_QPS_ERR;
			}
		}
		complete(qp, wr, status, qp->posted++);
	}
	lock_give(&qp->lock);
	return error;
}
