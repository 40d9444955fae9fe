/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rdma-core provider. Several libibverbs calls are macros or inline functions, whose
 * addresses cannot be taken; each has a thin function here.
 *
 * Fork: before Linux 5.12 a fork() may leave the parent with copies of its registered pages, while
 * the device goes on with the old ones. ibv_fork_init keeps registered ranges out of children
 * instead. On hugepages it needs to know each range's page size, which it only looks up when
 * RDMAV_HUGEPAGES_SAFE is set; otherwise registering a hugepage region fails with EINVAL. Newer kernels
 * copy pinned pages into the child, and nothing has to be done.
 */
#include "fabric/provider.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_result;

static void init_once(void)
{
	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
		return;
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 0);
	init_result = ibv_fork_init();
}

static int core_init(void)
{
	pthread_once(&once, init_once);
	return init_result;
}

static const char *core_get_device_name(struct ibv_device *device)
{
	return ibv_get_device_name(device);
}

static int core_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return ibv_query_port(context, port, attr);
}

/* Returns -1 without an errno of its own for an index that is not there. */
static int core_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	return ibv_query_gid(context, port, index, gid);
}

static int core_query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
				struct ibv_gid_entry *entry)
{
	return ibv_query_gid_ex(context, port, index, entry, 0);
}

static struct ibv_mr *core_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr(pd, addr, length, access);
}

static struct ibv_cq *core_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	return ibv_create_cq(context, cqe, cq_context, channel, comp_vector);
}

const struct verbs_provider provider_rdma_core = {
	.name = "rdma-core",
	.init = core_init,
	.get_device_list = ibv_get_device_list,
	.free_device_list = ibv_free_device_list,
	.get_device_name = core_get_device_name,
	.open_device = ibv_open_device,
	.close_device = ibv_close_device,
	.query_device = ibv_query_device,
	.query_port = core_query_port,
	.query_gid = core_query_gid,
	.query_gid_entry = core_query_gid_entry,
	.query_pkey = ibv_query_pkey,
	.alloc_pd = ibv_alloc_pd,
	.dealloc_pd = ibv_dealloc_pd,
	.reg_mr = core_reg_mr,
	.dereg_mr = ibv_dereg_mr,
	.create_comp_channel = ibv_create_comp_channel,
	.destroy_comp_channel = ibv_destroy_comp_channel,
	.create_cq = core_create_cq,
	.destroy_cq = ibv_destroy_cq,
	.get_cq_event = ibv_get_cq_event,
	.ack_cq_events = ibv_ack_cq_events,
	.create_srq = ibv_create_srq,
	.modify_srq = ibv_modify_srq,
	.query_srq = ibv_query_srq,
	.destroy_srq = ibv_destroy_srq,
	.create_qp = ibv_create_qp,
	.modify_qp = ibv_modify_qp,
	.query_qp = ibv_query_qp,
	.destroy_qp = ibv_destroy_qp,
	.get_async_event = ibv_get_async_event,
	.ack_async_event = ibv_ack_async_event,
};
