/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/device.h"

#include "fabric/gid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAMES_BYTES = 512 };

void device_options_init(struct device_options *options)
{
	*options = (struct device_options){
		.name = "auto",
		.gid_index = -1,
		.qp_timeout = 14,
		.qp_retries = 6, /* Soft-RoCE takes 7 for "for ever" */
		.qp_rnr_retries = 7,
		.max_inline = 220,
	};
}

/* Gb/s of a port, from the codes of the InfiniBand specification; Soft-RoCE and the like tell something as well. */
static double port_rate(const struct ibv_port_attr *attr)
{
	double width, lane;

	switch (attr->active_width) {
	case 1: width = 1; break;
	case 2: width = 4; break;
	case 4: width = 8; break;
	case 8: width = 12; break;
	case 16: width = 2; break;
	default: width = 1;
	}
	switch (attr->active_speed) {
	case 1: lane = 2.5; break;
	case 2: lane = 5; break;
	case 4:
	case 8: lane = 10; break;
	case 16: lane = 14; break;
	case 32: lane = 25; break;
	case 64: lane = 50; break;
	case 128: lane = 100; break;
	default: lane = 1;
	}
	return width * lane;
}

static const char *port_state_name(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN: return "DOWN (is the cable in, is the network interface up?)";
	case IBV_PORT_INIT: return "INIT (no subnet manager has configured it)";
	case IBV_PORT_ARMED: return "ARMED (the subnet manager has not activated it)";
	case IBV_PORT_ACTIVE: return "ACTIVE";
	case IBV_PORT_ACTIVE_DEFER: return "ACTIVE_DEFER";
	default: return "unknown";
	}
}

static void device_clear(struct device *device)
{
	if (device->pd)
		device->verbs->dealloc_pd(device->pd);
	if (device->context)
		device->verbs->close_device(device->context);
	device->pd = NULL;
	device->context = NULL;
}

/* Opens, allocates a protection domain, reads the attributes. 0 or -errno, nothing logged. */
static int open_context(struct device *device, struct ibv_device *ibv)
{
	snprintf(device->name, sizeof device->name, "%s", device->verbs->get_device_name(ibv));
	errno = 0;
	device->context = device->verbs->open_device(ibv);
	if (!device->context)
		return errno ? -errno : -ENODEV;
	device->pd = device->verbs->alloc_pd(device->context);
	if (device->pd && device->verbs->query_device(device->context, &device->attr) == 0)
		return 0;
	device_clear(device);
	return -ENODEV;
}

/* The device says it has atomics and registers memory for them. */
static bool has_atomics(struct device *device)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *bytes;
	struct ibv_mr *mr;

	if (device->attr.atomic_cap == IBV_ATOMIC_NONE)
		return false;
	bytes = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	mr = device->verbs->reg_mr(device->pd, bytes, page,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_ATOMIC);
	/* Short of locked memory is another fault, which the real registration will tell. */
	if (!mr && (errno == ENOMEM || errno == EAGAIN)) {
		munmap(bytes, page);
		return true;
	}
	if (mr)
		device->verbs->dereg_mr(mr);
	munmap(bytes, page);
	return mr != NULL;
}

/* The fastest active port of an opened device, or 0. */
static uint8_t fastest_port(struct device *device, double *rate)
{
	uint8_t chosen = 0;

	*rate = 0;
	for (uint8_t port = 1; port <= device->attr.phys_port_cnt; port++) {
		struct ibv_port_attr attr;

		if (device->verbs->query_port(device->context, port, &attr) || attr.state != IBV_PORT_ACTIVE)
			continue;
		if (chosen == 0 || port_rate(&attr) > *rate) {
			chosen = port;
			*rate = port_rate(&attr);
		}
		if (port == UINT8_MAX)
			break;
	}
	return chosen;
}

/* Among all devices that open, have atomics and an active port: the fastest. -ENODEV: none. */
static int choose_auto(struct device *device, struct ibv_device **list, int count)
{
	double best_rate = 0;
	int best = -1;
	uint8_t best_port = 0;

	for (int i = 0; i < count; i++) {
		double rate;
		uint8_t port;
		int error = open_context(device, list[i]);

		if (error) {
			log_line(device->logger, LOG_LEVEL_DEBUG, "%s is listed but does not open: %s", device->name,
				 strerror(-error));
			continue;
		}
		port = fastest_port(device, &rate);
		if (port == 0) {
			log_line(device->logger, LOG_LEVEL_DEBUG, "%s has no active port", device->name);
		} else if (!has_atomics(device)) {
			log_line(device->logger, LOG_LEVEL_DEBUG, "%s has no atomics", device->name);
		} else if (rate > best_rate) {
			best = i;
			best_rate = rate;
			best_port = port;
		}
		device_clear(device);
	}
	if (best < 0)
		return -ENODEV;
	device->port = best_port;
	return open_context(device, list[best]);
}

static void list_names(const struct verbs_provider *verbs, struct ibv_device **list, int count, char names[NAMES_BYTES])
{
	size_t used = 0;

	snprintf(names, NAMES_BYTES, "none");
	for (int i = 0; i < count && used < NAMES_BYTES; i++)
		used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s", i ? ", " : "", verbs->get_device_name(list[i]));
}

/* NAME or NAME:PORT. */
static int choose_named(struct device *device, struct ibv_device **list, int count, const char *wanted)
{
	const char *colon = strrchr(wanted, ':');
	size_t length = colon ? (size_t)(colon - wanted) : strlen(wanted);
	char names[NAMES_BYTES];
	int error;

	for (int i = 0; i < count; i++) {
		const char *name = device->verbs->get_device_name(list[i]);

		if (strlen(name) != length || memcmp(name, wanted, length) != 0)
			continue;
		error = open_context(device, list[i]);
		if (error)
			log_line(device->logger, LOG_LEVEL_ERROR,
				 "device %s is there but does not open: %s (is its node in /dev/infiniband, and may we use it?)", name,
				 strerror(-error));
		return error ? -ENODEV : 0;
	}
	list_names(device->verbs, list, count, names);
	log_line(device->logger, LOG_LEVEL_ERROR,
		 "no RDMA device \"%.*s\"; there are: %s (and softnic, the software NIC)", (int)length, wanted, names);
	return -ENODEV;
}

static int parse_port(struct device *device, const char *wanted)
{
	const char *colon = strrchr(wanted, ':');
	char *end;
	long port;

	if (!colon)
		return 0;
	port = strtol(colon + 1, &end, 10);
	if (colon[1] && !*end && port >= 1 && port <= device->attr.phys_port_cnt) {
		device->port = (uint8_t)port;
		return 0;
	}
	log_line(device->logger, LOG_LEVEL_ERROR, "\"%s\": %s has ports 1 to %d", wanted, device->name,
		 device->attr.phys_port_cnt);
	return -EINVAL;
}

static int settle_port(struct device *device)
{
	double rate;

	if (device->port == 0)
		device->port = fastest_port(device, &rate);
	if (device->port == 0)
		device->port = 1;
	if (device->verbs->query_port(device->context, device->port, &device->port_attr)) {
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: port %u cannot be queried", device->name, device->port);
		return -EINVAL;
	}
	if (device->port_attr.state == IBV_PORT_ACTIVE)
		return 0;
	log_line(device->logger, LOG_LEVEL_ERROR, "%s: port %u is %s", device->name, device->port,
		 port_state_name(device->port_attr.state));
	return -EINVAL;
}

static int settle_mtu(struct device *device)
{
	uint32_t bytes = device->options.mtu_bytes, active = 128u << device->port_attr.active_mtu;

	device->mtu = device->port_attr.active_mtu;
	if (bytes == 0)
		return 0;
	if (bytes < 256 || bytes > 4096 || (bytes & (bytes - 1)) || bytes > active) {
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "MTU %u: 256, 512, 1024, 2048 or 4096 is wanted, and at most the active MTU of %s port %u, which is %u", bytes,
			 device->name, device->port, active);
		return -EINVAL;
	}
	device->mtu = (enum ibv_mtu)(__builtin_ctz(bytes) - 7);
	return 0;
}

static int settle(struct device *device)
{
	int error = settle_port(device);

	if (!error && !has_atomics(device)) {
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "%s has no atomics (CAS, FAA), which farkv cannot do without: choose another device, or softnic",
			 device->name);
		error = -EOPNOTSUPP;
	}
	if (!error)
		error = gid_choose(device);
	if (!error)
		error = settle_mtu(device);
	return error;
}

/* A registration before this call, by the program we are part of, makes it fail; only a fork is unsafe then. */
static void init_provider(struct device *device)
{
	int error = device->verbs->init();

	if (error)
		log_line(device->logger, LOG_LEVEL_WARNING,
			 "%s: fork() is not safe in this process while memory is registered: %s", device->verbs->name,
			 strerror(error));
}

static int open_softnic(struct device *device)
{
	struct ibv_device **list;
	int count = 0, error = -ENODEV;

	device->verbs = &provider_softnic;
	device->softnic = true;
	init_provider(device);
	list = device->verbs->get_device_list(&count);
	if (list && count > 0)
		error = open_context(device, list[0]);
	if (error)
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "the software NIC does not open: %s (its directory is SOFTNIC_DIR, by default below /dev/shm)",
			 strerror(-error));
	if (list)
		device->verbs->free_device_list(list);
	return error;
}

static int open_kernel(struct device *device, const char *wanted)
{
	struct ibv_device **list;
	int count = 0, error;

	device->verbs = &provider_rdma_core;
	init_provider(device);
	list = device->verbs->get_device_list(&count);
	if (!list)
		count = 0;
	if (wanted)
		error = choose_named(device, list, count, wanted);
	else
		error = choose_auto(device, list, count);
	if (!error && wanted)
		error = parse_port(device, wanted);
	if (list)
		device->verbs->free_device_list(list);
	return error;
}

static bool is_softnic_name(const char *name)
{
	return strcmp(name, "softnic") == 0 || strcmp(name, "soft0") == 0 || strcmp(name, "soft0:1") == 0 ||
	       strcmp(name, "softnic:1") == 0;
}

static int open_wanted(struct device *device, const char *name)
{
	int error;

	if (is_softnic_name(name))
		return open_softnic(device);
	if (strcmp(name, "auto") != 0)
		return open_kernel(device, name);
	error = open_kernel(device, NULL);
	if (error != -ENODEV)
		return error;
	log_line(device->logger, LOG_LEVEL_NOTICE, "no usable RDMA device here: using the software NIC, soft0");
	return open_softnic(device);
}

static int check_options(const struct device_options *options, const struct logger *logger)
{
	const char *fault = options->service_level > 15 ? "service level (0..15)" :
			    options->qp_timeout > 31 ? "queue pair time-out (0..31)" :
			    options->qp_retries > 7 ? "retry count (0..7)" :
			    options->qp_rnr_retries > 7 ? "RNR retry count (0..7)" : NULL;

	if (!fault)
		return 0;
	log_line(logger, LOG_LEVEL_ERROR, "out of range: %s", fault);
	return -EINVAL;
}

int device_open(const struct device_options *options, const struct logger *logger, struct device **out)
{
	struct device *device;
	int error = check_options(options, logger);

	*out = NULL;
	if (error)
		return error;
	device = calloc(1, sizeof *device);
	if (!device)
		return -ENOMEM;
	device->options = *options;
	device->logger = logger;
	error = open_wanted(device, options->name ? options->name : "auto");
	if (!error)
		error = settle(device);
	if (error) {
		device_close(device);
		return error;
	}
	device->options.name = device->name;
	*out = device;
	return 0;
}

void device_close(struct device *device)
{
	if (!device)
		return;
	device_clear(device);
	free(device);
}
