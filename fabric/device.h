/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An opened RDMA device, its port, its GID and one protection domain.
 *
 * Choice: "auto" takes the active port of the highest link rate of any rdma-core device that
 * opens and has atomics; with no such device the software NIC, which one notice says. "softnic" or
 * "soft0" names the software NIC. Any other NAME or NAME:PORT names an rdma-core device.
 */
#ifndef FARKV_FABRIC_DEVICE_H
#define FARKV_FABRIC_DEVICE_H

#include "fabric/log.h"
#include "fabric/provider.h"

#include <stdbool.h>

struct device_options {
	const char *name;         /* "auto", "softnic", "soft0", NAME, NAME:PORT; borrowed for device_open */
	int gid_index;            /* -1 = choose: routable RoCE v2 first */
	uint32_t mtu_bytes;       /* 256..4096, 0 = the port's active MTU; never above it */
	uint8_t service_level;    /* 0..15 */
	uint8_t traffic_class;    /* 0..255 */
	uint8_t qp_timeout;       /* IB exponent, 0..31 */
	uint8_t qp_retries;       /* 0..7 */
	uint8_t qp_rnr_retries;   /* 0..7 */
	uint32_t max_inline;      /* bytes wanted; the device may grant less */
};

void device_options_init(struct device_options *options); /* auto, -1, 0, 0, 0, 14, 6, 7, 220 */

struct device {
	const struct verbs_provider *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	struct device_options options; /* options.name points to `name` */
	const struct logger *logger;   /* borrowed: outlives the device */
	int gid_index;                 /* the one in use; meaningless on an InfiniBand link */
	enum ibv_mtu mtu;              /* the one in use */
	uint8_t port;
	bool softnic;
	char name[64];
};

/*
 * *device is owned by the caller. Every fault is logged with what to do. Errors: -ENODEV no such
 * device or none usable; -EINVAL bad port, GID index or MTU; -EOPNOTSUPP no atomics; -ENOMEM.
 */
int device_open(const struct device_options *options, const struct logger *logger,
		struct device **device);
void device_close(struct device *device); /* accepts NULL */

/* Local registered buffers: private, page-aligned, zeroed, registered once. */
struct memory {
	struct device *device; /* borrowed, outlives the memory */
	struct ibv_mr *mr;
	uint8_t *bytes;
	size_t size_bytes;
	bool owned; /* by memory_alloc */
};

/* -EINVAL size_bytes is 0; -ENOMEM, with the memlock limit and the bytes needed in the log where that is the cause. */
int memory_alloc(struct device *device, size_t size_bytes, struct memory *memory);
/* Registers `bytes` (borrowed, stays the caller's) with IBV_ACCESS_* flags. Errors as above, -EFAULT, -EOPNOTSUPP. */
int memory_register(struct device *device, void *bytes, size_t size_bytes, int access,
		    struct memory *memory);
void memory_free(struct memory *memory); /* accepts a zeroed or half-built object */

#endif
