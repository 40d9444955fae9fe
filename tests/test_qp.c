/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs on the device there is ("auto", or FARKV_DEVICE): connected to each other on one
 * host, doing what the store does. The same file runs on the software NIC and on Soft-RoCE.
 */
#include "fabric/qp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 64, BYTES = 4096, WAIT_MS = 10000, INLINE = 220 };

static char log_text[8192];

static void keep_line(int level, const char *line, void *arg)
{
	size_t at = strlen(log_text);

	(void)level;
	(void)arg;
	snprintf(log_text + at, sizeof log_text - at, "%s\n", line);
}

static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };
static struct device *device;
static struct ibv_cq *cq;
static struct memory local, remote;
static const int remote_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

static void setup(void)
{
	struct device_options options;
	void *bytes = NULL;

	device_options_init(&options);
	if (getenv("FARKV_DEVICE"))
		options.name = getenv("FARKV_DEVICE");
	cr_assert_eq(device_open(&options, &logger, &device), 0, "%s", log_text);
	cq = device->verbs->create_cq(device->context, 4 * DEPTH, NULL, NULL, 0);
	cr_assert_not_null(cq);
	cr_assert_eq(memory_alloc(device, BYTES, &local), 0, "%s", log_text);
	cr_assert_eq(posix_memalign(&bytes, 4096, BYTES), 0);
	memset(bytes, 0, BYTES);
	cr_assert_eq(memory_register(device, bytes, BYTES, remote_access, &remote), 0, "%s", log_text);
}

static void teardown(void)
{
	void *bytes = remote.bytes;

	memory_free(&local);
	memory_free(&remote);
	free(bytes);
	device->verbs->destroy_cq(cq);
	device_close(device);
}

TestSuite(qp, .init = setup, .fini = teardown);

static struct qp_options options_of(uint32_t max_inline)
{
	return (struct qp_options){ .send_cq = cq, .recv_cq = cq, .sq_depth = DEPTH, .rq_depth = 4,
				    .max_inline = max_inline, .access = remote_access };
}

static struct qp *create(uint32_t psn)
{
	struct qp_options options = options_of(INLINE);
	struct qp *qp = NULL;

	cr_assert_eq(qp_create(device, &options, psn, &qp), 0, "%s", log_text);
	return qp;
}

static void connect_pair(struct qp *a, struct qp *b)
{
	struct endpoint of_a, of_b;

	qp_endpoint(a, &of_a);
	qp_endpoint(b, &of_b);
	cr_assert_eq(qp_connect(a, &of_b), 0, "%s", log_text);
	cr_assert_eq(qp_connect(b, &of_a), 0, "%s", log_text);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct ibv_wc wait_completion(void)
{
	uint64_t deadline = now_ms() + WAIT_MS;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		cr_assert_lt(now_ms(), deadline, "no completion");
	return wc;
}

/* One signaled work request over one entry of local memory. */
static struct ibv_wc post(struct qp *qp, enum ibv_wr_opcode opcode, uint32_t bytes, unsigned flags, uint64_t add)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local.bytes, .length = bytes, .lkey = local.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
					.send_flags = IBV_SEND_SIGNALED | flags };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote.bytes;
		wr.wr.atomic.rkey = remote.mr->rkey;
		wr.wr.atomic.compare_add = add;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote.bytes;
		wr.wr.rdma.rkey = remote.mr->rkey;
	}
	cr_assert_eq(ibv_post_send(qp->ibv, &wr, &bad), 0);
	return wait_completion();
}

Test(qp, read_write_and_atomics_between_two_of_one_host)
{
	struct qp *a = create(0x123456), *b = create(0xffffff);
	uint64_t word;

	cr_assert_geq(a->sq_depth, DEPTH);
	connect_pair(a, b);
	cr_assert_geq(a->max_rd_atomic, 1);
	memcpy(remote.bytes, "from far", 8);
	cr_assert_eq(post(a, IBV_WR_RDMA_READ, 8, 0, 0).status, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(local.bytes, "from far", 8), 0);
	memcpy(local.bytes, "to there", 8);
	cr_assert_eq(post(a, IBV_WR_RDMA_WRITE, 8, 0, 0).status, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(remote.bytes, "to there", 8), 0);
	word = 40;
	memcpy(remote.bytes, &word, 8);
	cr_assert_eq(post(b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 2).status, IBV_WC_SUCCESS);
	memcpy(&word, local.bytes, 8);
	cr_assert_eq(word, 40);
	memcpy(&word, remote.bytes, 8);
	cr_assert_eq(word, 42);
	qp_destroy(a);
	qp_destroy(b);
}

/* B7 */
Test(qp, inline_is_granted_as_far_as_the_device_can_and_gives_the_same_bytes)
{
	static const uint32_t wanted[] = { 0, 96, 220, 400, 1 << 20 };

	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		struct qp_options options = options_of(wanted[i]);
		struct qp *a, *b = create(1);
		static const uint32_t sizes[] = { 64, 96, 97, 220 };

		cr_assert_eq(qp_create(device, &options, 2, &a), 0, "%u: %s", wanted[i], log_text);
		connect_pair(a, b);
		for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
			unsigned flags = sizes[s] <= a->max_inline ? IBV_SEND_INLINE : 0;

			memset(remote.bytes, 0, BYTES);
			for (uint32_t at = 0; at < sizes[s]; at++)
				local.bytes[at] = (uint8_t)(at + i + 1);
			cr_assert_eq(post(a, IBV_WR_RDMA_WRITE, sizes[s], flags, 0).status, IBV_WC_SUCCESS);
			cr_assert_arr_eq(local.bytes, remote.bytes, sizes[s]);
			cr_assert_eq(remote.bytes[sizes[s]], 0);
		}
		qp_destroy(a);
		qp_destroy(b);
	}
}

/* B5 */
Test(qp, the_smaller_depth_is_taken_in_both_directions)
{
	static const uint8_t depths[] = { 0, 1, 4, 255 };

	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		struct qp *a = create(1), *b = create(2);
		struct endpoint of_a, of_b;
		int own = device->attr.max_qp_init_rd_atom;

		qp_endpoint(a, &of_a);
		qp_endpoint(b, &of_b);
		of_b.max_dest_rd_atomic = depths[i];
		of_b.max_rd_atomic = depths[i];
		cr_assert_eq(qp_connect(a, &of_b), 0, "%u: %s", depths[i], log_text);
		cr_assert_leq(a->max_rd_atomic, (uint32_t)(own < 1 ? 1 : own));
		cr_assert_leq(a->max_rd_atomic, depths[i] ? depths[i] : 1u);
		cr_assert_geq(a->max_rd_atomic, 1);
		cr_assert_eq(qp_connect(b, &of_a), 0, "%s", log_text);
		cr_assert_eq(post(a, IBV_WR_RDMA_READ, 8, 0, 0).status, IBV_WC_SUCCESS);
		qp_destroy(a);
		qp_destroy(b);
	}
}

Test(qp, what_is_granted_is_what_the_device_says)
{
	struct qp *a = create(0x00abcd), *b = create(7);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct endpoint of_b;

	qp_endpoint(b, &of_b);
	of_b.mtu = IBV_MTU_256;
	cr_assert_eq(qp_connect(a, &of_b), 0, "%s", log_text);
	cr_assert_eq(device->verbs->query_qp(a->ibv, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN |
					     IBV_QP_SQ_PSN | IBV_QP_DEST_QPN | IBV_QP_MAX_QP_RD_ATOMIC |
					     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_RTS);
	cr_assert_eq(attr.path_mtu, IBV_MTU_256);
	cr_assert_eq(attr.rq_psn, 7);
	cr_assert_eq(attr.sq_psn, 0x00abcd);
	cr_assert_eq(attr.dest_qp_num, b->ibv->qp_num);
	cr_assert_eq(attr.max_rd_atomic, a->max_rd_atomic);
	cr_assert_eq(attr.timeout, device->options.qp_timeout);
	cr_assert_eq(attr.retry_cnt, device->options.qp_retries);
	cr_assert_eq(attr.rnr_retry, device->options.qp_rnr_retries);
	qp_destroy(a);
	qp_destroy(b);
}

Test(qp, peers_that_cannot_be_are_refused_with_the_reason)
{
	struct qp *a = create(1), *b = create(2);
	struct endpoint good, peer;

	qp_endpoint(b, &good);
	peer = good;
	peer.is_softnic = !peer.is_softnic;
	cr_assert_eq(qp_connect(a, &peer), -EINVAL);
	cr_assert(strstr(log_text, "the software NIC"), "%s", log_text);
	peer = good;
	peer.link_layer = peer.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_LINK_LAYER_INFINIBAND :
								       IBV_LINK_LAYER_ETHERNET;
	cr_assert_eq(qp_connect(a, &peer), -EINVAL);
	cr_assert(strstr(log_text, "InfiniBand"), "%s", log_text);
	peer = good;
	peer.qpn = 0;
	cr_assert_eq(qp_connect(a, &peer), -EINVAL);
	peer = good;
	peer.mtu = 0;
	cr_assert_eq(qp_connect(a, &peer), -EINVAL);
	peer = good;
	memset(peer.gid, 0, sizeof peer.gid);
	peer.lid = 0;
	cr_assert_eq(qp_connect(a, &peer), -EINVAL);
	cr_assert(strstr(log_text, "makes no sense"), "%s", log_text);
	cr_assert_eq(qp_connect(a, &good), 0, "a refused peer leaves the queue pair usable");
	qp_destroy(a);
	qp_destroy(b);
	qp_destroy(NULL);
}

Test(qp, a_depth_above_the_devices_is_refused)
{
	struct qp_options options = options_of(0);
	struct qp *qp;

	options.sq_depth = (uint32_t)device->attr.max_qp_wr + 1;
	cr_assert_eq(qp_create(device, &options, 1, &qp), -EINVAL);
	cr_assert_neq(log_text[0], 0);
}

Test(qp, a_wrong_rkey_fails_and_the_rest_is_flushed)
{
	struct qp *a = create(1), *b = create(2);
	struct ibv_wc wc;
	uint32_t rkey = remote.mr->rkey;

	connect_pair(a, b);
	remote.mr->rkey ^= 0x55aa5500;
	wc = post(a, IBV_WR_RDMA_READ, 8, 0, 0);
	remote.mr->rkey = rkey;
	cr_assert_eq(wc.status, IBV_WC_REM_ACCESS_ERR, "%d", wc.status);
	cr_assert_eq(wc.wr_id, 77);
	cr_assert_eq(post(a, IBV_WR_RDMA_READ, 8, 0, 0).status, IBV_WC_WR_FLUSH_ERR);
	qp_destroy(a);
	qp_destroy(b);
}

Test(qp, after_qp_fail_nothing_of_it_executes_here)
{
	struct qp *a = create(1), *b = create(2);
	struct ibv_wc wc;

	connect_pair(a, b);
	memset(local.bytes, 1, 8);
	cr_assert_eq(qp_fail(b), 0);
	wc = post(a, IBV_WR_RDMA_WRITE, 8, 0, 0);
	cr_assert_neq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(remote.bytes[0], 0);
	cr_assert_eq(post(b, IBV_WR_RDMA_WRITE, 8, 0, 0).status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(qp_fail(b), 0, "twice does no harm");
	qp_destroy(a);
	qp_destroy(b);
}
