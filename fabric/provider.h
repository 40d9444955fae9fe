/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control path of verbs as a table, so that one source runs on hardware, on Soft-RoCE
 * and on the software NIC.
 *
 * Only the calls that set things up go through here. The data path (`ibv_post_send`,
 * `ibv_post_recv`, `ibv_post_srq_recv`, `ibv_poll_cq`, `ibv_req_notify_cq`) already goes
 * through `context->ops` in libibverbs and is called directly, whatever the device.
 *
 * Every entry has the signature, the return convention and the thread safety of the
 * libibverbs call it is named after (ibv_<entry>), pointers of libibverbs types included.
 * Errors: NULL with errno, or a positive errno value, exactly as libibverbs returns them.
 */
#ifndef FARKV_FABRIC_PROVIDER_H
#define FARKV_FABRIC_PROVIDER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct verbs_provider {
	const char *name; /* "rdma-core" or "softnic" */

	/* Called once per process before anything else; 0 or a positive errno. */
	int (*init)(void);

	struct ibv_device **(*get_device_list)(int *num_devices);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
	/* ibv_query_gid_ex without flags. */
	int (*query_gid_entry)(struct ibv_context *context, uint32_t port, uint32_t index,
			       struct ibv_gid_entry *entry);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);

	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);

	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);

	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
	int (*destroy_qp)(struct ibv_qp *qp);

	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);
};

/* libibverbs: hardware and Soft-RoCE. */
extern const struct verbs_provider provider_rdma_core;
/* The software NIC, device "soft0". */
extern const struct verbs_provider provider_softnic;

#endif
