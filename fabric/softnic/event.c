/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <unistd.h>

/* A record of the async FIFO: type << 32 | object's index. */
void event_raise(struct peer *peer, enum ibv_event_type type, uint32_t object)
{
	peer_wake(peer, SOFTNIC_CHANNELS, (uint64_t)type << 32 | object);
}

static bool fill(struct soft_context *context, uint64_t record, struct ibv_async_event *event)
{
	uint32_t object = (uint32_t)record;
	struct soft_qp *qp;

	event->event_type = (enum ibv_event_type)(record >> 32);
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->element.cq = object < SOFTNIC_CQS && context->cqs[object]
					    ? &context->cqs[object]->ibv
					    : NULL;
		return event->element.cq != NULL;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		object %= SOFTNIC_RQS - SOFTNIC_QPS;
		event->element.srq = context->srqs[object] ? &context->srqs[object]->ibv : NULL;
		return event->element.srq != NULL;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_COMM_EST:
		qp = atomic_load(&context->qps[object % SOFTNIC_QPS]);
		event->element.qp = qp ? &qp->ibv : NULL;
		return qp != NULL;
	default:
		event->element.port_num = 1;
		return true;
	}
}

int soft_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	struct soft_context *context = context_of(ibv);
	uint64_t record;

	do
		if (read(ibv->async_fd, &record, sizeof record) != sizeof record)
			return -1;
	while (!fill(context, record, event));
	return 0;
}

void soft_ack_async_event(struct ibv_async_event *event)
{
	(void)event; /* destruction does not wait for events: they name objects by index, and gone
			ones are skipped */
}
