/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device, port, GID and MTU are chosen, on made-up devices: this file stands in for libibverbs
 * beneath provider_rdma_core. The software NIC behind it is the real one.
 */
#include "fabric/device.h"

#include "fabric/gid.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#undef ibv_query_port
#undef ibv_reg_mr

enum { PORTS = 2, GIDS = 4, DEVICES = 4 };

struct fake_gid {
	const char *address; /* NULL = empty */
	uint32_t type;
};

struct fake_port {
	enum ibv_port_state state;
	uint8_t width, speed, link_layer;
	enum ibv_mtu active_mtu;
	uint16_t lid;
	struct fake_gid gids[GIDS];
};

struct fake_device {
	struct ibv_device ibv; /* first: a device is found by its address */
	int open_error, atomic_error, register_error, pd_error;
	enum ibv_atomic_cap atomic_cap;
	uint8_t port_count;
	struct fake_port ports[PORTS];
	struct ibv_context context;
	struct ibv_pd pd;
	struct ibv_mr mr;
	int opened, closed, pds, mrs;
};

static struct fake_device devices[DEVICES];
static int device_count;
static bool list_is_null;

static struct fake_device *of_device(struct ibv_device *device)
{
	return (struct fake_device *)device;
}

static struct fake_device *of_context(struct ibv_context *context)
{
	return of_device(context->device);
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(DEVICES + 1, sizeof *list);

	if (list_is_null) {
		free(list);
		errno = ENOSYS;
		return NULL;
	}
	for (int i = 0; i < device_count; i++)
		list[i] = &devices[i].ibv;
	*count = device_count;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_device *fake = of_device(device);

	if (fake->open_error) {
		errno = fake->open_error;
		return NULL;
	}
	fake->opened++;
	fake->context.device = device;
	return &fake->context;
}

int ibv_close_device(struct ibv_context *context)
{
	of_context(context)->closed++;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof *attr);
	attr->atomic_cap = of_context(context)->atomic_cap;
	attr->phys_port_cnt = of_context(context)->port_count;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
	attr->max_qp_wr = 1024;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;
	const struct fake_port *fake = &of_context(context)->ports[port - 1];

	memset(attr, 0, sizeof *attr);
	attr->state = fake->state;
	attr->active_width = fake->width;
	attr->active_speed = fake->speed;
	attr->active_mtu = fake->active_mtu;
	attr->max_mtu = IBV_MTU_4096;
	attr->link_layer = fake->link_layer;
	attr->lid = fake->lid;
	attr->gid_tbl_len = GIDS;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t count,
			     uint32_t flags, size_t size)
{
	(void)context, (void)entries, (void)count, (void)flags, (void)size;
	return -EOPNOTSUPP;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	const struct fake_gid *fake = &of_context(context)->ports[port - 1].gids[index];

	(void)flags, (void)size;
	if (index >= GIDS)
		return EINVAL;
	if (!fake->address)
		return ENODATA;
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = fake->type;
	return inet_pton(AF_INET6, fake->address, entry->gid.raw) == 1 ? 0 : EINVAL;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct fake_device *fake = of_context(context);

	errno = fake->pd_error;
	if (fake->pd_error)
		return NULL;
	fake->pds++;
	fake->pd.context = context;
	return &fake->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	of_context(pd->context)->pds--;
	return 0;
}

static struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, int access)
{
	struct fake_device *fake = of_context(pd->context);

	errno = access & IBV_ACCESS_REMOTE_ATOMIC && fake->atomic_error ? fake->atomic_error :
									    fake->register_error;
	if (errno)
		return NULL;
	fake->mrs++;
	fake->mr.pd = pd;
	fake->mr.context = pd->context;
	return &fake->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)addr, (void)length;
	return fake_reg_mr(pd, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)addr, (void)length, (void)iova;
	return fake_reg_mr(pd, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	of_context(mr->context)->mrs--;
	return 0;
}

static char log_text[8192];
static unsigned notices, errors;

static void keep_line(int level, const char *line, void *arg)
{
	size_t at = strlen(log_text);

	(void)arg;
	notices += level == LOG_LEVEL_NOTICE;
	errors += level == LOG_LEVEL_ERROR;
	snprintf(log_text + at, sizeof log_text - at, "%s\n", line);
}

static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };
static struct device_options options;
static struct device *device;

/* A device with one active 100 Gbit/s RoCE port. */
static struct fake_device *add_device(const char *name)
{
	struct fake_device *fake = &devices[device_count++];

	*fake = (struct fake_device){
		.atomic_cap = IBV_ATOMIC_HCA,
		.port_count = 1,
		.ports = { { .state = IBV_PORT_ACTIVE, .width = 2, .speed = 32,
			     .link_layer = IBV_LINK_LAYER_ETHERNET, .active_mtu = IBV_MTU_1024,
			     .gids = { { "fe80::1", IBV_GID_TYPE_ROCE_V1 },
				       { "fe80::1", IBV_GID_TYPE_ROCE_V2 },
				       { "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V1 },
				       { "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2 } } } },
	};
	fake->ports[1] = fake->ports[0];
	snprintf(fake->ibv.name, sizeof fake->ibv.name, "%s", name);
	return fake;
}

static int open_named(const char *name)
{
	options.name = name;
	return device_open(&options, &logger, &device);
}

/* Whatever was opened has been closed. */
static void assert_nothing_left(void)
{
	for (int i = 0; i < device_count; i++) {
		cr_assert_eq(devices[i].opened, devices[i].closed, "%s", devices[i].ibv.name);
		cr_assert_eq(devices[i].pds, 0);
		cr_assert_eq(devices[i].mrs, 0);
	}
}

static void setup(void)
{
	device_options_init(&options);
	device = NULL;
}

static void teardown(void)
{
	device_close(device);
	assert_nothing_left();
}

TestSuite(device, .init = setup, .fini = teardown);

Test(device, auto_takes_the_fastest_active_port)
{
	struct fake_device *slow = add_device("slow"), *fast = add_device("fast"), *down = add_device("down");

	slow->ports[0].speed = 1;
	fast->port_count = 2;
	fast->ports[1].speed = 64;
	down->ports[0].speed = 128;
	down->ports[0].state = IBV_PORT_DOWN;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_str_eq(device->name, "fast");
	cr_assert_eq(device->port, 2);
	cr_assert_str_eq(device->options.name, "fast");
	cr_assert_not(device->softnic);
	cr_assert_eq(notices + errors, 0, "%s", log_text);
}

Test(device, a_wide_slow_link_can_beat_a_narrow_fast_one)
{
	struct fake_device *narrow = add_device("narrow"), *wide = add_device("wide");

	narrow->ports[0].width = 1;
	narrow->ports[0].speed = 64; /* 50 */
	wide->ports[0].width = 8;    /* 12 lanes of 10 */
	wide->ports[0].speed = 4;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_str_eq(device->name, "wide");
}

/* B18 */
Test(device, devices_that_do_not_open_are_passed_over)
{
	add_device("missing")->open_error = ENOENT;
	add_device("forbidden")->open_error = EACCES;
	add_device("silent")->open_error = 0;
	devices[2].pd_error = ENOSYS;
	add_device("good")->ports[0].speed = 1;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_str_eq(device->name, "good");
	cr_assert_eq(notices + errors, 0, "%s", log_text);
}

static void assert_softnic_with_one_notice(void)
{
	cr_assert_eq(open_named("auto"), 0, "%s", log_text);
	cr_assert(device->softnic);
	cr_assert_str_eq(device->name, "soft0");
	cr_assert_eq(notices, 1, "%s", log_text);
	cr_assert_eq(errors, 0, "%s", log_text);
	cr_assert(strstr(log_text, "using the software NIC"), "%s", log_text);
}

Test(device, no_list_means_the_software_nic)
{
	list_is_null = true;
	assert_softnic_with_one_notice();
}

Test(device, an_empty_list_means_the_software_nic)
{
	assert_softnic_with_one_notice();
}

/* B18 */
Test(device, only_unusable_devices_mean_the_software_nic_and_debug_lines_say_why)
{
	add_device("ghost")->open_error = ENOENT;
	add_device("dark")->ports[0].state = IBV_PORT_DOWN;
	add_device("plain")->atomic_cap = IBV_ATOMIC_NONE;
	assert_softnic_with_one_notice();
	cr_assert(strstr(log_text, "ghost is listed but does not open"), "%s", log_text);
	cr_assert(strstr(log_text, "dark has no active port"), "%s", log_text);
	cr_assert(strstr(log_text, "plain has no atomics"), "%s", log_text);
}

Test(device, a_name_that_is_not_there_lists_what_is)
{
	add_device("mlx5_0");
	add_device("mlx5_1");
	cr_assert_eq(open_named("mlx5_7"), -ENODEV);
	cr_assert(strstr(log_text, "mlx5_7"), "%s", log_text);
	cr_assert(strstr(log_text, "there are: mlx5_0, mlx5_1"), "%s", log_text);
	cr_assert_eq(errors, 1);
	cr_assert_null(device);
}

Test(device, a_name_is_never_replaced_by_the_software_nic)
{
	list_is_null = true;
	cr_assert_eq(open_named("rxe0"), -ENODEV);
	cr_assert_eq(notices, 0);
	cr_assert_eq(errors, 1, "%s", log_text);
}

Test(device, a_named_device_that_does_not_open_is_an_error)
{
	add_device("mlx5_0")->open_error = ENOENT;
	cr_assert_eq(open_named("mlx5_0"), -ENODEV);
	cr_assert(strstr(log_text, "/dev/infiniband"), "%s", log_text);
	cr_assert_eq(errors, 1);
}

Test(device, a_port_not_active_is_an_error_with_its_state)
{
	struct fake_device *fake = add_device("mlx5_0");

	fake->port_count = 2;
	fake->ports[1].state = IBV_PORT_INIT;
	cr_assert_eq(open_named("mlx5_0:2"), -EINVAL);
	cr_assert(strstr(log_text, "port 2 is INIT"), "%s", log_text);
	cr_assert_eq(open_named("mlx5_0:1"), 0);
	cr_assert_eq(device->port, 1);
}

Test(device, bad_ports_and_names_are_refused)
{
	static const char *const bad[] = { "mlx5_0:0", "mlx5_0:256", "mlx5_0:", "mlx5_0:x", "mlx5_0:1x",
					   "mlx5_0:2" };

	add_device("mlx5_0");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		cr_assert_eq(open_named(bad[i]), -EINVAL, "%s", bad[i]);
	cr_assert(strstr(log_text, "\"mlx5_0:2\": mlx5_0 has ports 1 to 1"), "%s", log_text);
	cr_assert_eq(open_named(":1"), -ENODEV);
	cr_assert_eq(open_named(""), -ENODEV);
}

/* B20 */
Test(device, a_named_device_without_atomics_is_refused_clearly)
{
	struct fake_device *fake = add_device("mlx5_0");

	fake->atomic_cap = IBV_ATOMIC_NONE;
	cr_assert_eq(open_named("mlx5_0"), -EOPNOTSUPP);
	cr_assert(strstr(log_text, "no atomics"), "%s", log_text);
	fake->atomic_cap = IBV_ATOMIC_HCA;
	fake->atomic_error = EOPNOTSUPP;
	cr_assert_eq(open_named("mlx5_0"), -EOPNOTSUPP);
	cr_assert(strstr(log_text, "no atomics"), "%s", log_text);
	cr_assert_eq(errors, 2);
}

/* B16 */
Test(device, a_memory_limit_does_not_hide_a_device)
{
	struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };
	struct fake_device *fake = add_device("mlx5_0");

	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	fake->register_error = ENOMEM;
	cr_assert_eq(open_named("auto"), 0, "the first real registration tells");
	cr_assert_not(device->softnic);
	cr_assert_eq(notices, 0, "%s", log_text);
}

/* B16 */
Test(device, memory_that_cannot_be_locked_names_limit_need_and_mend)
{
	static const int refusals[] = { ENOMEM, EAGAIN };
	struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };
	struct fake_device *fake = add_device("mlx5_0");
	struct memory memory;

	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	cr_assert_eq(open_named("auto"), 0);
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		log_text[0] = 0;
		fake->register_error = refusals[i];
		cr_assert_eq(memory_alloc(device, 1 << 20, &memory), -ENOMEM);
		cr_assert(strstr(log_text, "1048576") && strstr(log_text, "65536") &&
			  strstr(log_text, "ulimit -l") && strstr(log_text, "LimitMEMLOCK=") &&
			  strstr(log_text, "CAP_IPC_LOCK"), "%s", log_text);
		memory_free(&memory);
	}
}

Test(device, memory_is_zeroed_aligned_and_freed_from_any_state)
{
	struct memory memory, zeroed = { 0 };
	uint64_t word = 0;

	add_device("mlx5_0");
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(memory_alloc(device, 0, &memory), -EINVAL);
	memory_free(&memory);
	cr_assert_eq(memory_alloc(device, 5000, &memory), 0);
	cr_assert_geq(memory.size_bytes, 5000);
	cr_assert_eq((uintptr_t)memory.bytes % 4096, 0);
	for (size_t i = 0; i < 5000; i++)
		cr_assert_eq(memory.bytes[i], 0);
	memory_free(&memory);
	memory_free(&memory);
	memory_free(&zeroed);
	memory_free(NULL);
	cr_assert_eq(memory_register(device, &word, sizeof word, IBV_ACCESS_LOCAL_WRITE, &memory), 0);
	cr_assert_eq((uint64_t *)memory.bytes, &word);
	memory_free(&memory);
	cr_assert_eq(memory_register(device, NULL, 8, 0, &memory), -EINVAL);
	cr_assert_eq(memory_register(device, &word, 0, 0, &memory), -EINVAL);
	cr_assert_eq(memory_alloc(device, SIZE_MAX, &memory), -ENOMEM);
	devices[0].register_error = EFAULT;
	cr_assert_eq(memory_register(device, &word, 8, 0, &memory), -EFAULT);
	devices[0].register_error = 0;
	devices[0].atomic_error = EOPNOTSUPP;
	cr_assert_eq(memory_register(device, &word, 8, IBV_ACCESS_REMOTE_ATOMIC, &memory), -EOPNOTSUPP);
}

/* B10 */
Test(device, a_routable_roce_v2_gid_is_chosen)
{
	struct fake_port *port = &add_device("mlx5_0")->ports[0];

	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid_index, 3);
	cr_assert_eq(device->gid.raw[12], 10);
	device_close(device);
	port->gids[3].address = "2001:db8::1";
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid_index, 3);
	device_close(device);
	port->gids[3].address = "::ffff:169.254.1.1";
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid_index, 1, "link-local both: the first");
	device_close(device);
	port->gids[1].address = port->gids[3].address = NULL;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid_index, 0, "RoCE v1 last");
	device_close(device);
	memset(port->gids, 0, sizeof port->gids);
	cr_assert_eq(open_named("auto"), -EINVAL);
	device = NULL;
	cr_assert(strstr(log_text, "has no GID"), "%s", log_text);
}

/* B10 */
Test(device, a_bad_gid_index_is_named_with_the_valid_ones)
{
	add_device("mlx5_0")->ports[0].gids[0].address = NULL;
	options.gid_index = 250;
	cr_assert_eq(open_named("auto"), -EINVAL);
	cr_assert(strstr(log_text, "no GID at index 250; valid: 1 (RoCE v2 fe80::1), 2 (RoCE v1 ::ffff:10.0.0.1), 3 "),
		  "%s", log_text);
	cr_assert_eq(notices, 0, "what the user asked for is not passed over");
	options.gid_index = 0;
	cr_assert_eq(open_named("auto"), -EINVAL, "an empty entry");
	options.gid_index = -2;
	cr_assert_eq(open_named("auto"), -EINVAL);
	options.gid_index = 2;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid_index, 2);
}

Test(device, an_infiniband_port_is_addressed_by_lid)
{
	static const uint8_t zero[16];
	struct fake_port *port = &add_device("mlx5_0")->ports[0];

	port->link_layer = IBV_LINK_LAYER_INFINIBAND;
	port->lid = 7;
	port->gids[0] = (struct fake_gid){ "fe80::2", IBV_GID_TYPE_IB };
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_arr_eq(device->gid.raw, zero, 16);
	cr_assert_eq(device->port_attr.lid, 7);
	device_close(device);
	options.gid_index = 0;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->gid.raw[0], 0xfe, "with an index given, a GRH is used");
}

Test(device, mtu_is_the_ports_or_a_smaller_one)
{
	static const uint32_t bad[] = { 1, 255, 257, 1500, 2048, 4096, 8192, UINT32_MAX };

	add_device("mlx5_0");
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->mtu, IBV_MTU_1024);
	device_close(device);
	options.mtu_bytes = 256;
	cr_assert_eq(open_named("auto"), 0);
	cr_assert_eq(device->mtu, IBV_MTU_256);
	device_close(device);
	device = NULL;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		options.mtu_bytes = bad[i];
		cr_assert_eq(open_named("auto"), -EINVAL, "%u", bad[i]);
	}
	cr_assert(strstr(log_text, "at most the active MTU of mlx5_0 port 1, which is 1024"), "%s", log_text);
}

Test(device, options_out_of_range_are_refused)
{
	add_device("mlx5_0");
	options.service_level = 16;
	cr_assert_eq(open_named("auto"), -EINVAL);
	device_options_init(&options);
	options.qp_timeout = 32;
	cr_assert_eq(open_named("auto"), -EINVAL);
	device_options_init(&options);
	options.qp_retries = 8;
	cr_assert_eq(open_named("auto"), -EINVAL);
	device_options_init(&options);
	options.qp_rnr_retries = 8;
	cr_assert_eq(open_named("auto"), -EINVAL);
	device_options_init(&options);
	cr_assert_eq(open_named(NULL), 0, "no name is auto");
}

Test(device, the_software_nic_by_both_names_without_a_notice)
{
	add_device("mlx5_0");
	cr_assert_eq(open_named("softnic"), 0, "%s", log_text);
	cr_assert(device->softnic);
	cr_assert_str_eq(device->name, "soft0");
	device_close(device);
	cr_assert_eq(open_named("soft0"), 0, "%s", log_text);
	cr_assert_eq(device->port_attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	cr_assert_eq(notices + errors, 0, "%s", log_text);
}
