/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESET -> INIT (qp_create) -> RTR -> RTS (qp_connect) -> ERR (qp_fail).
 *
 * READs and atomics in flight towards a peer are at most what it can serve, and what we can serve is at most what our
 * device has: each side takes the minimum of its own limit and the other's. Link layers must agree, and so must the kind
 * of device: a software NIC and a kernel device do not meet, whatever their GIDs say.
 */
#include "fabric/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_RNR_TIMER = 12 /* 0.64 ms */, HOP_LIMIT = 64, PKEY_INDEX = 0, PSN_MASK = 0xffffff };

static struct ibv_qp *create_with_inline(struct device *device, const struct qp_options *options,
					 struct ibv_qp_init_attr *granted)
{
	/* Devices refuse what they cannot inline, and some tell no limit: halve until one accepts. */
	for (uint32_t bytes = options->max_inline;; bytes /= 2) {
		struct ibv_qp *qp;

		*granted = (struct ibv_qp_init_attr){
			.qp_context = options->context,
			.send_cq = options->send_cq,
			.recv_cq = options->recv_cq,
			.srq = options->srq,
			.qp_type = IBV_QPT_RC,
			.cap = {
				.max_send_wr = options->sq_depth,
				.max_recv_wr = options->srq ? 0 : options->rq_depth,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = bytes,
			},
		};
		qp = device->verbs->create_qp(device->pd, granted);
		if (qp || bytes == 0)
			return qp;
	}
}

static int to_init(struct qp *qp)
{
	struct device *device = qp->device;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = PKEY_INDEX,
		.port_num = device->port,
		.qp_access_flags = (unsigned int)qp->access,
	};
	int error = device->verbs->modify_qp(qp->ibv, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (error)
		log_line(device->logger, LOG_LEVEL_ERROR, "%s port %u: bringing a queue pair to INIT failed: %s", device->name,
			 device->port, strerror(error));
	return error ? -EINVAL : 0;
}

int qp_create(struct device *device, const struct qp_options *options, uint32_t psn, struct qp **out)
{
	struct ibv_qp_init_attr granted;
	struct qp *qp;
	int error;

	*out = NULL;
	if (options->sq_depth > (uint32_t)device->attr.max_qp_wr) {
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: a send queue of %u is asked for, the device has at most %d",
			 device->name, options->sq_depth, device->attr.max_qp_wr);
		return -EINVAL;
	}
	qp = calloc(1, sizeof *qp);
	if (!qp)
		return -ENOMEM;
	qp->device = device;
	qp->psn = psn & PSN_MASK;
	qp->access = options->access;
	qp->ibv = create_with_inline(device, options, &granted);
	if (!qp->ibv) {
		error = errno == EINVAL ? -EINVAL : -ENOMEM;
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: creating a queue pair of depth %u failed: %s", device->name,
			 options->sq_depth, strerror(errno));
		free(qp);
		return error;
	}
	qp->sq_depth = granted.cap.max_send_wr;
	/* What is granted above the wish is not used: the wish is the caller's policy. */
	qp->max_inline = granted.cap.max_inline_data < options->max_inline ? granted.cap.max_inline_data
									    : options->max_inline;
	error = to_init(qp);
	if (error) {
		qp_destroy(qp);
		return error;
	}
	*out = qp;
	return 0;
}

static uint8_t clamp(int value)
{
	return value < 1 ? 1 : value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

void qp_endpoint(const struct qp *qp, struct endpoint *endpoint)
{
	const struct device *device = qp->device;

	*endpoint = (struct endpoint){
		.qpn = qp->ibv->qp_num,
		.psn = qp->psn,
		.lid = device->port_attr.lid,
		.link_layer = device->port_attr.link_layer,
		.port = device->port,
		.mtu = (uint8_t)device->mtu,
		.max_dest_rd_atomic = clamp(device->attr.max_qp_rd_atom),
		.max_rd_atomic = clamp(device->attr.max_qp_init_rd_atom),
		.is_softnic = device->softnic,
	};
	memcpy(endpoint->gid, device->gid.raw, sizeof endpoint->gid);
}

static bool has_gid(const struct endpoint *endpoint)
{
	static const uint8_t no_gid[16];

	return memcmp(endpoint->gid, no_gid, sizeof no_gid) != 0;
}

static int check_peer(const struct device *device, const struct endpoint *peer)
{
	if (peer->is_softnic != device->softnic) {
		log_line(device->logger, LOG_LEVEL_ERROR, "the peer is on %s, we are on %s (%s): choose the same with --device",
			 peer->is_softnic ? "the software NIC" : "a kernel RDMA device",
			 device->softnic ? "the software NIC" : "a kernel RDMA device", device->name);
		return -EINVAL;
	}
	if (peer->link_layer != device->port_attr.link_layer) {
		log_line(device->logger, LOG_LEVEL_ERROR, "the peer's link is %s, that of %s is %s",
			 peer->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", device->name,
			 device->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
		return -EINVAL;
	}
	if (peer->qpn != 0 && peer->qpn <= PSN_MASK && peer->mtu >= IBV_MTU_256 && peer->mtu <= IBV_MTU_4096 &&
	    (peer->link_layer != IBV_LINK_LAYER_ETHERNET || has_gid(peer)) && (peer->lid != 0 || has_gid(peer)))
		return 0;
	log_line(device->logger, LOG_LEVEL_ERROR,
		 "the peer's endpoint makes no sense: queue pair %u, MTU code %u, LID %u, %s GID", peer->qpn, peer->mtu,
		 peer->lid, has_gid(peer) ? "with" : "without");
	return -EINVAL;
}

static void fill_address(const struct device *device, const struct endpoint *peer, struct ibv_ah_attr *address)
{
	address->dlid = peer->lid;
	address->sl = device->options.service_level;
	address->port_num = device->port;
	/* Ethernet has no other address; on InfiniBand a GID is given only where a GRH is wanted (gid.h). */
	if (!has_gid(peer))
		return;
	address->is_global = 1;
	address->grh.sgid_index = (uint8_t)device->gid_index;
	address->grh.hop_limit = HOP_LIMIT;
	address->grh.traffic_class = device->options.traffic_class;
	memcpy(address->grh.dgid.raw, peer->gid, sizeof peer->gid);
}

static uint8_t smaller(int own, uint8_t peers)
{
	uint8_t mine = clamp(own);

	return peers == 0 ? 1 : peers < mine ? peers : mine;
}

static int to_rtr(struct qp *qp, const struct endpoint *peer)
{
	struct device *device = qp->device;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < device->mtu ? (enum ibv_mtu)peer->mtu : device->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn & PSN_MASK,
		.max_dest_rd_atomic = smaller(device->attr.max_qp_rd_atom, peer->max_rd_atomic),
		.min_rnr_timer = MIN_RNR_TIMER,
	};
	int error;

	fill_address(device, peer, &attr.ah_attr);
	error = device->verbs->modify_qp(qp->ibv, &attr,
					 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error)
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "%s port %u: RTR refused (%s): GID index %d, MTU %d, peer's queue pair %u, READs and atomics to serve %u",
			 device->name, device->port, strerror(error), device->gid_index, 128 << attr.path_mtu, peer->qpn,
			 attr.max_dest_rd_atomic);
	return error ? -EINVAL : 0;
}

static int to_rts(struct qp *qp, const struct endpoint *peer)
{
	struct device *device = qp->device;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = device->options.qp_timeout,
		.retry_cnt = device->options.qp_retries,
		.rnr_retry = device->options.qp_rnr_retries,
		.sq_psn = qp->psn,
		.max_rd_atomic = smaller(device->attr.max_qp_init_rd_atom, peer->max_dest_rd_atomic),
	};
	int error = device->verbs->modify_qp(qp->ibv, &attr,
					     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);

	if (error) {
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "%s port %u: RTS refused (%s): time-out %u, retries %u, RNR retries %u, READs and atomics in flight %u",
			 device->name, device->port, strerror(error), attr.timeout, attr.retry_cnt, attr.rnr_retry,
			 attr.max_rd_atomic);
		return -EINVAL;
	}
	qp->max_rd_atomic = attr.max_rd_atomic;
	return 0;
}

int qp_connect(struct qp *qp, const struct endpoint *peer)
{
	int error = check_peer(qp->device, peer);

	if (!error)
		error = to_rtr(qp, peer);
	if (!error)
		error = to_rts(qp, peer);
	return error;
}

int qp_fail(struct qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return -qp->device->verbs->modify_qp(qp->ibv, &attr, IBV_QP_STATE);
}

void qp_destroy(struct qp *qp)
{
	int error;

	if (!qp)
		return;
	error = qp->ibv ? qp->device->verbs->destroy_qp(qp->ibv) : 0;
	if (error)
		log_line(qp->device->logger, LOG_LEVEL_ERROR, "destroying queue pair %u failed: %s", qp->ibv->qp_num,
			 strerror(error));
	free(qp);
}
