/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reliable connected queue pair and its way through RESET, INIT, RTR, RTS and ERR.
 * Both ends exchange a struct endpoint (layout/record.h) out of band; every attribute is
 * the minimum, or the agreement, of both.
 */
#ifndef FARKV_FABRIC_QP_H
#define FARKV_FABRIC_QP_H

#include "fabric/device.h"
#include "layout/record.h"

struct qp_options {
	struct ibv_cq *send_cq; /* borrowed, outlives the QP */
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;    /* borrowed or NULL */
	uint32_t sq_depth;      /* work requests wanted, 16..; at least this is granted */
	uint32_t rq_depth;      /* 0 where an SRQ serves */
	uint32_t max_inline;    /* bytes wanted; halved until the device grants it, down to 0 */
	int access;             /* IBV_ACCESS_REMOTE_*: what the peer may do here */
	void *context;          /* ibv_qp.qp_context */
};

struct qp {
	struct ibv_qp *ibv;
	struct device *device;
	uint32_t psn;        /* 24 bits, random */
	uint32_t sq_depth;   /* granted */
	uint32_t max_inline; /* bytes granted */
	uint32_t max_rd_atomic; /* after qp_connect: READs and atomics in flight, negotiated */
	int access;
};

/* Creates the QP and brings it to INIT. psn: 24 random bits from the caller. -EINVAL, -ENOMEM. */
int qp_create(struct device *device, const struct qp_options *options, uint32_t psn, struct qp **qp);
/* What the peer needs to know of us. */
void qp_endpoint(const struct qp *qp, struct endpoint *endpoint);
/* INIT -> RTR -> RTS towards the peer. -EINVAL with the attribute at fault in the log. */
int qp_connect(struct qp *qp, const struct endpoint *peer);
/* -> ERR: when it returns, nothing of this QP can execute on local memory any more. 0 or -errno. */
int qp_fail(struct qp *qp);
void qp_destroy(struct qp *qp); /* accepts NULL */

#endif
