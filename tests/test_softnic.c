/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that farkv leans on, shown on two connected queue pairs of the software NIC.
 */
#include "fabric/provider.h"
#include "fabric/softnic/softnic.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4096, DEPTH = 32 };

static const struct verbs_provider *const nic = &provider_softnic;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq, *recv_cq;
static struct ibv_qp *a, *b;
static uint8_t *local, *remote;
static struct ibv_mr *local_mr, *remote_mr;
static char directory[] = "/dev/shm/test-softnic.XXXXXX";

enum { ALL = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = recv_cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = 8,
						.max_send_sge = 4,
						.max_recv_sge = 4,
						.max_inline_data = 220}};

	return nic->create_qp(pd, &init);
}

static void to_init(struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};

	cr_assert_eq(nic->modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS),
		     0);
}

static void to_rts(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = dest,
				   .max_dest_rd_atomic = 16,
				   .min_rnr_timer = 12,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	cr_assert_eq(nic->query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	cr_assert_eq(nic->modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER),
		     0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 6,
				    .rnr_retry = 1,
				    .max_rd_atomic = 16};
	cr_assert_eq(nic->modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					    IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

static void setup(void)
{
	struct ibv_device **list;

	cr_assert(mkdtemp(directory));
	setenv("SOFTNIC_DIR", directory, 1);
	list = nic->get_device_list(NULL);
	context = nic->open_device(list[0]);
	nic->free_device_list(list);
	cr_assert(context);
	pd = nic->alloc_pd(context);
	channel = nic->create_comp_channel(context);
	cq = nic->create_cq(context, 64, NULL, channel, 0);
	recv_cq = nic->create_cq(context, 64, NULL, channel, 0);
	a = make_qp();
	b = make_qp();
	to_init(a, 0);
	to_init(b, ALL);
	to_rts(a, b->qp_num);
	to_rts(b, a->qp_num);
	local = aligned_alloc(4096, BYTES);
	remote = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(local, 0, BYTES);
	local_mr = nic->reg_mr(pd, local, BYTES, IBV_ACCESS_LOCAL_WRITE);
	remote_mr = nic->reg_mr(pd, remote, BYTES, IBV_ACCESS_LOCAL_WRITE | ALL);
	cr_assert(local_mr && remote_mr);
}

static void teardown(void)
{
	nic->destroy_qp(a);
	nic->destroy_qp(b);
	cr_expect_eq(nic->destroy_cq(cq), 0);
	cr_expect_eq(nic->destroy_cq(recv_cq), 0);
	cr_expect_eq(nic->destroy_comp_channel(channel), 0);
	cr_expect_eq(nic->dereg_mr(local_mr), 0);
	cr_expect_eq(nic->dereg_mr(remote_mr), 0);
	cr_expect_eq(nic->dealloc_pd(pd), 0);
	cr_expect_eq(nic->close_device(context), 0);
	cr_expect_eq(rmdir(directory), 0, "nothing is left in the directory");
	munmap(remote, BYTES);
	free(local);
}

TestSuite(softnic, .init = setup, .fini = teardown, .timeout = 30);

static struct ibv_sge piece(uint32_t bytes)
{
	return (struct ibv_sge){.addr = (uintptr_t)local, .length = bytes, .lkey = local_mr->lkey};
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct ibv_sge *sge, uint64_t offset)
{
	struct ibv_send_wr wr = {.wr_id = 77,
				 .opcode = opcode,
				 .sg_list = sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote + offset;
		wr.wr.atomic.rkey = remote_mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote + offset;
		wr.wr.rdma.rkey = remote_mr->rkey;
	}
	return wr;
}

static enum ibv_wc_status post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_wc wc;

	cr_assert_eq(ibv_post_send(a, wr, &bad), 0);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	cr_assert_eq(wc.wr_id, 77);
	cr_assert_eq(wc.qp_num, a->qp_num);
	return wc.status;
}

Test(softnic, read_and_write_move_bytes)
{
	struct ibv_sge sge = piece(100);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 16);

	memset(local, 'w', 100);
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(remote[15], 0);
	cr_assert_eq(remote[16], 'w');
	cr_assert_eq(remote[115], 'w');
	cr_assert_eq(remote[116], 0);
	memset(local, 0, 100);
	wr = request(IBV_WR_RDMA_READ, &sge, 16);
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(local[99], 'w');
}

Test(softnic, atomics_return_the_old_value_in_host_order)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 64);
	uint64_t *word = (uint64_t *)(remote + 64), *old = (uint64_t *)local;

	*word = 0x0102030405060708;
	wr.wr.atomic.compare_add = 0x0102030405060708;
	wr.wr.atomic.swap = 42;
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(*old, 0x0102030405060708);
	cr_assert_eq(*word, 42);
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(*old, 42, "a CAS that fails tells what is there");
	cr_assert_eq(*word, 42);
	wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 64);
	wr.wr.atomic.compare_add = UINT64_MAX;
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(*old, 42);
	cr_assert_eq(*word, 41);
}

static void refused(struct ibv_send_wr *wr, enum ibv_wc_status wanted)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	cr_assert_eq(post(wr), wanted);
	/* The queue pair is in ERR: what comes is flushed, signaled or not. */
	wr->send_flags = 0;
	cr_assert_eq(ibv_post_send(a, wr, &bad), 0);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
}

Test(softnic, refuses_a_wrong_rkey)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0);

	wr.wr.rdma.rkey ^= 1u << 20;
	refused(&wr, IBV_WC_REM_ACCESS_ERR);
}

Test(softnic, refuses_what_lies_beyond_the_end)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, BYTES - 7);

	refused(&wr, IBV_WC_REM_ACCESS_ERR);
}

Test(softnic, refuses_what_lies_before_the_beginning)
{
	struct ibv_sge sge = piece(96);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0);

	wr.wr.rdma.remote_addr -= 80;
	refused(&wr, IBV_WC_REM_ACCESS_ERR);
}

Test(softnic, refuses_sums_that_wrap)
{
	struct ibv_sge sge = piece(96);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0);

	wr.wr.rdma.remote_addr = UINT64_MAX - 7;
	refused(&wr, IBV_WC_REM_ACCESS_ERR);
}

Test(softnic, refuses_an_unaligned_atomic)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 4);

	refused(&wr, IBV_WC_REM_INV_REQ_ERR);
}

Test(softnic, refuses_a_wrong_lkey)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 0);

	sge.lkey ^= 1u << 20;
	refused(&wr, IBV_WC_LOC_PROT_ERR);
}

Test(softnic, refuses_rights_that_the_peer_has_not_given)
{
	struct ibv_sge sge = {.addr = (uintptr_t)remote, .length = 8, .lkey = remote_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)remote, remote_mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	/* a's queue pair grants nothing. */
	cr_assert_eq(ibv_post_send(b, &wr, &bad), 0);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	cr_assert_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
}

Test(softnic, deregistered_memory_is_out_of_reach)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0);

	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(nic->dereg_mr(remote_mr), 0);
	cr_assert_eq(post(&wr), IBV_WC_REM_ACCESS_ERR);
	remote_mr = nic->reg_mr(pd, remote, BYTES, IBV_ACCESS_LOCAL_WRITE | ALL);
	cr_assert(remote_mr);
}

Test(softnic, nothing_reaches_a_queue_pair_in_error)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 0);

	cr_assert_eq(nic->modify_qp(b, &attr, IBV_QP_STATE), 0);
	local[0] = 9;
	cr_assert_eq(post(&wr), IBV_WC_RETRY_EXC_ERR);
	cr_assert_eq(remote[0], 0);
}

Test(softnic, unsignaled_requests_complete_silently_and_hold_their_places)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0), *bad = NULL;
	struct ibv_wc wc;

	wr.send_flags = 0;
	for (unsigned i = 0; i < DEPTH - 1; i++)
		cr_assert_eq(ibv_post_send(a, &wr, &bad), 0);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	cr_assert_eq(ibv_post_send(a, &wr, &bad), 0);
	cr_assert_eq(ibv_post_send(a, &wr, &bad), ENOMEM, "the send queue is full");
	cr_assert_eq(bad, &wr);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
	cr_assert_eq(ibv_post_send(a, &wr, &bad), 0,
		     "one signaled completion gives all places back");
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 1);
}

Test(softnic, inline_data_is_taken_at_the_post_and_bounded)
{
	struct ibv_sge sge = {.addr = (uintptr_t) "inline", .length = 6};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge, 0), *bad;

	wr.send_flags |= IBV_SEND_INLINE;
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_arr_eq(remote, "inline", 6);
	sge = piece(221);
	cr_assert_eq(ibv_post_send(a, &wr, &bad), EINVAL);
}

Test(softnic, send_lands_in_a_posted_receive_and_wakes_an_armed_channel)
{
	struct ibv_sge into = {.addr = (uintptr_t)local + 1024,
			       .length = 64,
			       .lkey = local_mr->lkey},
		       from = piece(5);
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &into, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = request(IBV_WR_SEND, &from, 0);
	struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *which;
	void *cq_context;
	struct ibv_wc wc;

	cr_assert_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_req_notify_cq(recv_cq, 0), 0);
	cr_assert_eq(poll(&ready, 1, 0), 0);
	memcpy(local, "hello", 5);
	cr_assert_eq(post(&wr), IBV_WC_SUCCESS);
	cr_assert_eq(poll(&ready, 1, 1000), 1);
	cr_assert_eq(nic->get_cq_event(channel, &which, &cq_context), 0);
	cr_assert_eq(which, recv_cq);
	nic->ack_cq_events(which, 1);
	cr_assert_eq(ibv_poll_cq(recv_cq, 1, &wc), 1);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.wr_id, 5);
	cr_assert_eq(wc.byte_len, 5);
	cr_assert_arr_eq(local + 1024, "hello", 5);
}

Test(softnic, send_without_a_receive_ends_in_rnr)
{
	struct ibv_sge sge = piece(5);
	struct ibv_send_wr wr = request(IBV_WR_SEND, &sge, 0);

	cr_assert_eq(post(&wr), IBV_WC_RNR_RETRY_EXC_ERR);
}

Test(softnic, illegal_transitions_are_refused)
{
	struct ibv_qp *qp = make_qp();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, &sge, 0), *bad;

	cr_assert_eq(nic->modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	cr_assert_eq(nic->modify_qp(qp, &attr, IBV_QP_STATE), EINVAL,
		     "INIT needs port, key and rights");
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), EINVAL, "no posting in RESET");
	nic->destroy_qp(qp);
}

Test(softnic, objects_in_use_stay)
{
	cr_assert_eq(nic->dealloc_pd(pd), EBUSY);
	cr_assert_eq(nic->destroy_cq(cq), EBUSY);
	cr_assert_eq(nic->destroy_comp_channel(channel), EBUSY);
	cr_assert_eq(nic->close_device(context), EBUSY);
}

Test(softnic, srq_limit_raises_one_event)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = nic->create_srq(pd, &init);
	struct ibv_qp_init_attr qp_init = {.send_cq = cq,
					   .recv_cq = recv_cq,
					   .srq = srq,
					   .qp_type = IBV_QPT_RC,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1}};
	struct ibv_qp *c = nic->create_qp(pd, &qp_init), *d = make_qp();
	struct ibv_sge into = {.addr = (uintptr_t)local + 1024,
			       .length = 64,
			       .lkey = local_mr->lkey},
		       from = piece(5);
	struct ibv_recv_wr recv = {.sg_list = &into, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = request(IBV_WR_SEND, &from, 0), *bad;
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_async_event event;
	struct ibv_wc wc;

	to_init(c, 0);
	to_init(d, 0);
	to_rts(c, d->qp_num);
	to_rts(d, c->qp_num);
	fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	cr_assert_eq(nic->modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ibv_post_send(d, &wr, &bad), 0);
		cr_assert_eq(ibv_poll_cq(recv_cq, 1, &wc), 1);
	}
	cr_assert_eq(nic->get_async_event(context, &event), 0);
	cr_assert_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_assert_eq(event.element.srq, srq);
	nic->ack_async_event(&event);
	cr_assert_eq(nic->get_async_event(context, &event), -1, "one event per arming");
	nic->destroy_qp(c);
	nic->destroy_qp(d);
	cr_assert_eq(nic->destroy_srq(srq), 0);
}

Test(softnic, the_engine_counts_what_it_has_taken)
{
	struct ibv_sge sge = piece(8);
	struct ibv_send_wr second = request(IBV_WR_RDMA_WRITE, &sge, 0),
			   first = request(IBV_WR_RDMA_READ, &sge, 0);
	struct softnic_counters before, after;

	first.next = &second;
	first.send_flags = 0;
	softnic_counters(context, &before);
	cr_assert_eq(post(&first), IBV_WC_SUCCESS);
	softnic_counters(context, &after);
	cr_assert_eq(after.read - before.read, 1);
	cr_assert_eq(after.write - before.write, 1);
	cr_assert_eq(after.doorbells - before.doorbells, 1);
	cr_assert_eq(after.cqes_polled - before.cqes_polled, 1);
}
