/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device "soft0", its one port, and the table of verbs.
 */
#include "fabric/softnic/device.h"

#include "fabric/provider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* verbs.h wraps some names in macros of its own. */
static struct ibv_device soft_device = {.node_type = IBV_NODE_CA,
					.transport_type = IBV_TRANSPORT_IB,
					.name = "soft0",
					.dev_name = "soft0"};

static int soft_init(void)
{
	return 0;
}

static struct ibv_device **soft_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof *list);

	if (!list)
		return NULL;
	list[0] = &soft_device;
	if (count)
		*count = 1;
	return list;
}

static void soft_free_device_list(struct ibv_device **list)
{
	free(list);
}

static const char *soft_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static uint32_t inline_limit(void)
{
	const char *text = getenv("SOFTNIC_MAX_INLINE");
	char *end;
	long value;

	if (!text)
		return SOFTNIC_INLINE_MAX;
	value = strtol(text, &end, 10);
	return end != text && !*end && value >= 0 && value <= SOFTNIC_INLINE_MAX
		       ? (uint32_t)value
		       : SOFTNIC_INLINE_MAX;
}

static struct ibv_context *soft_open_device(struct ibv_device *device)
{
	struct soft_context *context = calloc(1, sizeof *context);
	int error;

	if (!context)
		return NULL;
	context->shared = peer_claim(&context->slot, &context->lock_fd);
	if (!context->shared) {
		error = errno;
		free(context);
		errno = error;
		return NULL;
	}
	context->self = peer_find(context->slot);
	context->inline_max = inline_limit();
	pthread_mutex_init(&context->mutex, NULL);
	context->ibv.device = device;
	context->ibv.num_comp_vectors = 4;
	context->ibv.cmd_fd = -1;
	context->ibv.ops.poll_cq = soft_poll_cq;
	context->ibv.ops.req_notify_cq = soft_req_notify_cq;
	context->ibv.ops.post_send = soft_post_send;
	context->ibv.ops.post_recv = soft_post_recv;
	context->ibv.ops.post_srq_recv = soft_post_srq_recv;
	context->ibv.async_fd = peer_open_channel(context->slot, SOFTNIC_CHANNELS);
	if (context->ibv.async_fd >= 0)
		return &context->ibv;
	error = errno;
	peer_release(context->shared, context->slot, context->lock_fd);
	free(context);
	errno = error;
	return NULL;
}

static int soft_close_device(struct ibv_context *ibv)
{
	struct soft_context *context = context_of(ibv);

	if (context->objects)
		return EBUSY;
	peer_close_channel(context->slot, SOFTNIC_CHANNELS, ibv->async_fd);
	peer_release(context->shared, context->slot, context->lock_fd);
	free(context);
	return 0;
}

static int soft_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "softnic",
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.max_qp = SOFTNIC_QPS,
		.max_qp_wr = SOFTNIC_WR_MAX,
		.max_sge = SOFTNIC_SGE_MAX,
		.max_sge_rd = SOFTNIC_SGE_MAX,
		.max_cq = SOFTNIC_CQS,
		.max_cqe = SOFTNIC_CQE_MAX,
		.max_mr = SOFTNIC_MRS - 1,
		.max_pd = 65536,
		.max_qp_rd_atom = SOFTNIC_RD_ATOMIC_MAX,
		.max_qp_init_rd_atom = SOFTNIC_RD_ATOMIC_MAX,
		.max_res_rd_atom = SOFTNIC_RD_ATOMIC_MAX * SOFTNIC_QPS,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_srq = SOFTNIC_RQS - SOFTNIC_QPS,
		.max_srq_wr = SOFTNIC_WR_MAX,
		.max_srq_sge = SOFTNIC_SGE_MAX,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	(void)ibv;
	return 0;
}

static int soft_query_port(struct ibv_context *ibv, uint8_t port, struct ibv_port_attr *attr)
{
	(void)ibv;
	if (port != 1)
		return EINVAL;
	*attr = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
				       .max_mtu = IBV_MTU_4096,
				       .active_mtu = IBV_MTU_4096,
				       .gid_tbl_len = 1,
				       .pkey_tbl_len = 1,
				       .max_msg_sz = UINT32_C(1) << 31,
				       .active_width = 1,
				       .active_speed = 1,
				       .phys_state = 5,
				       .link_layer = IBV_LINK_LAYER_ETHERNET};
	return 0;
}

static int soft_query_gid(struct ibv_context *ibv, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ibv;
	if (port != 1 || index != 0)
		return errno = EINVAL, -1;
	/* The host itself, as RoCE v2 writes an IPv4 address. */
	memset(gid, 0, sizeof *gid);
	gid->raw[10] = gid->raw[11] = 0xff;
	gid->raw[12] = 127;
	gid->raw[15] = 1;
	return 0;
}

static int soft_query_gid_entry(struct ibv_context *ibv, uint32_t port, uint32_t index,
				struct ibv_gid_entry *entry)
{
	memset(entry, 0, sizeof *entry);
	if (port != 1 || index != 0)
		return ENODATA;
	soft_query_gid(ibv, 1, 0, &entry->gid);
	entry->port_num = port;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}

static int soft_query_pkey(struct ibv_context *ibv, uint8_t port, int index, __be16 *pkey)
{
	(void)ibv;
	if (port != 1 || index != 0)
		return errno = EINVAL, -1;
	*pkey = htons(0xffff);
	return 0;
}

static struct ibv_pd *soft_alloc_pd(struct ibv_context *ibv)
{
	struct soft_context *context = context_of(ibv);
	struct soft_pd *pd = calloc(1, sizeof *pd);

	if (!pd)
		return NULL;
	pd->ibv.context = ibv;
	pthread_mutex_lock(&context->mutex);
	pd->number = ++context->next_pd;
	pthread_mutex_unlock(&context->mutex);
	context->objects++;
	return &pd->ibv;
}

static int soft_dealloc_pd(struct ibv_pd *ibv)
{
	struct soft_pd *pd = (struct soft_pd *)ibv;

	if (pd->users)
		return EBUSY;
	context_of(ibv->context)->objects--;
	free(pd);
	return 0;
}

void softnic_counters(const struct ibv_context *ibv, struct softnic_counters *counters)
{
	struct soft_context *context = (struct soft_context *)(uintptr_t)ibv;

	*counters = (struct softnic_counters){
		.read = context->counters.read,
		.write = context->counters.write,
		.cas = context->counters.cas,
		.faa = context->counters.faa,
		.send = context->counters.send,
		.write_with_imm = context->counters.write_with_imm,
		.doorbells = context->counters.doorbells,
		.cqes_generated = context->counters.cqes_generated,
		.cqes_polled = context->counters.cqes_polled,
		.inline_writes = context->counters.inline_writes,
	};
}

const struct verbs_provider provider_softnic = {
	.name = "softnic",
	.init = soft_init,
	.get_device_list = soft_get_device_list,
	.free_device_list = soft_free_device_list,
	.get_device_name = soft_get_device_name,
	.open_device = soft_open_device,
	.close_device = soft_close_device,
	.query_device = soft_query_device,
	.query_port = soft_query_port,
	.query_gid = soft_query_gid,
	.query_gid_entry = soft_query_gid_entry,
	.query_pkey = soft_query_pkey,
	.alloc_pd = soft_alloc_pd,
	.dealloc_pd = soft_dealloc_pd,
	.reg_mr = soft_reg_mr,
	.dereg_mr = soft_dereg_mr,
	.create_comp_channel = soft_create_channel,
	.destroy_comp_channel = soft_destroy_channel,
	.create_cq = soft_create_cq,
	.destroy_cq = soft_destroy_cq,
	.get_cq_event = soft_get_cq_event,
	.ack_cq_events = soft_ack_cq_events,
	.create_srq = soft_create_srq,
	.modify_srq = soft_modify_srq,
	.query_srq = soft_query_srq,
	.destroy_srq = soft_destroy_srq,
	.create_qp = soft_create_qp,
	.modify_qp = soft_modify_qp,
	.query_qp = soft_query_qp,
	.destroy_qp = soft_destroy_qp,
	.get_async_event = soft_get_async_event,
	.ack_async_event = soft_ack_async_event,
};
