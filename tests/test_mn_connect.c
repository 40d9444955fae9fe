/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-shakes, messages, good-byes and fencing of the memory node, on a device that is made up. */
#include "mn/server.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WC_MAX = 64, INCARNATION = 4711, REGION = REGION_BYTES_MIN };

/* The device: completions that the test queues, sends that it looks at. */
struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[WC_MAX];
	int count;
};

static struct fake_cq cqs[2]; /* receive, send: in the order in which they are made */
static int cqs_made, queue_pairs, error_of_err, err_count;
static uint8_t sent[MESSAGE_BYTES];
static uint64_t sent_id;
static unsigned sends, receives;
static uint32_t next_qpn;
static struct ibv_context context;
static struct ibv_pd pd;
static struct ibv_srq srq;
static struct ibv_mr mr;
static struct ibv_comp_channel channel;

static int poll_cq(struct ibv_cq *cq, int capacity, struct ibv_wc *wc)
{
	struct fake_cq *fake = (struct fake_cq *)cq;
	int count = fake->count < capacity ? fake->count : capacity;

	memcpy(wc, fake->wc, sizeof *wc * (size_t)count);
	memmove(fake->wc, fake->wc + count, sizeof *wc * (size_t)(fake->count - count));
	fake->count -= count;
	return count;
}

static int notify(struct ibv_cq *cq, int solicited)
{
	(void)cq, (void)solicited;
	return 0;
}

static int post_srq(struct ibv_srq *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)queue, (void)wr, (void)bad;
	receives++;
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)bad;
	cr_assert(wr->send_flags & IBV_SEND_SIGNALED);
	sent_id = wr->wr_id;
	cr_assert_eq(wr->opcode, IBV_WR_SEND);
	memcpy(sent, (void *)(uintptr_t)wr->sg_list->addr, MESSAGE_BYTES);
	sends++;
	return 0;
}

static struct ibv_comp_channel *create_channel(struct ibv_context *of)
{
	channel = (struct ibv_comp_channel){.context = of, .fd = eventfd(0, EFD_CLOEXEC)};
	return &channel;
}

static int destroy_channel(struct ibv_comp_channel *of)
{
	return close(of->fd);
}

static struct ibv_cq *create_cq(struct ibv_context *of, int depth, void *arg,
				struct ibv_comp_channel *events, int vector)
{
	struct fake_cq *fake = &cqs[cqs_made++ % 2];

	(void)depth, (void)vector;
	*fake = (struct fake_cq){.cq = {.context = of, .channel = events, .cq_context = arg}};
	return &fake->cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

static int get_event(struct ibv_comp_channel *of, struct ibv_cq **cq, void **arg)
{
	(void)of, (void)cq, (void)arg;
	errno = EAGAIN;
	return -1;
}

static struct ibv_srq *create_srq(struct ibv_pd *of, struct ibv_srq_init_attr *attr)
{
	(void)attr;
	srq = (struct ibv_srq){.context = of->context};
	return &srq;
}

static int modify_srq(struct ibv_srq *of, struct ibv_srq_attr *attr, int mask)
{
	(void)of, (void)attr, (void)mask;
	return 0;
}

static int destroy_srq(struct ibv_srq *of)
{
	(void)of;
	return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = calloc(1, sizeof *qp);

	(void)attr;
	qp->context = of->context;
	qp->qp_num = next_qpn++;
	queue_pairs++;
	return qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp, (void)mask;
	if (attr->qp_state == IBV_QPS_RTR && attr->path_mtu < IBV_MTU_256)
		return EINVAL;
	if (attr->qp_state != IBV_QPS_ERR)
		return 0;
	err_count += error_of_err == 0;
	return error_of_err;
}

static int destroy_qp(struct ibv_qp *qp)
{
	free(qp);
	queue_pairs--;
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *of, void *at, size_t length, int access)
{
	(void)access;
	mr = (struct ibv_mr){.context = of->context, .pd = of, .addr = at, .length = length};
	return &mr;
}

static int dereg_mr(struct ibv_mr *of)
{
	(void)of;
	return 0;
}

static const struct verbs_provider provider = {
	.name = "made up",
	.create_comp_channel = create_channel,
	.destroy_comp_channel = destroy_channel,
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.get_cq_event = get_event,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.destroy_srq = destroy_srq,
	.create_qp = create_qp,
	.modify_qp = modify_qp,
	.destroy_qp = destroy_qp,
	.reg_mr = reg_mr,
	.dereg_mr = dereg_mr,
};

static const struct logger quiet = {.level = -1};
static struct mn_options options = {.cluster = "test", .id = 1, .fence_after_ms = 2000};
static struct device device;
static struct region region;
static struct server server;

static void set_up(void)
{
	context = (struct ibv_context){.ops = {.poll_cq = poll_cq,
					       .req_notify_cq = notify,
					       .post_srq_recv = post_srq,
					       .post_send = post_send}};
	context.async_fd = eventfd(0, EFD_CLOEXEC);
	pd = (struct ibv_pd){.context = &context};
	device = (struct device){.verbs = &provider,
				 .context = &context,
				 .pd = &pd,
				 .logger = &quiet,
				 .mtu = IBV_MTU_1024,
				 .port = 1,
				 .softnic = true,
				 .name = "fake0"};
	device.attr.max_qp_wr = 1024;
	device.attr.max_qp_rd_atom = device.attr.max_qp_init_rd_atom = 16;
	device.port_attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	device.gid.raw[15] = 1;
	next_qpn = 100;
	region = (struct region){.fd = -1, .region_bytes = REGION, .logger = &quiet};
	region.bytes = aligned_alloc(4096, REGION);
	region.superblock = (struct superblock){
		.incarnation = INCARNATION, .layout_version = LAYOUT_VERSION, .mn_id = 1};
	cr_assert_eq(geometry_compute(REGION, 0, &region.superblock.geometry), 0);
	region_format(region.bytes, &region.superblock, 1, 1000);
	cr_assert_eq(server_create(&server, &options, &quiet, &device, &region), 0);
	cr_assert_eq(receives, CONTROL_RECEIVES);
}

static void tear_down(void)
{
	error_of_err = 0;
	server_destroy(&server);
	cr_expect_eq(queue_pairs, 0, "a queue pair is left");
	free(region.bytes);
	close(context.async_fd);
}

TestSuite(mn_connect, .init = set_up, .fini = tear_down);

static struct connect_request request_of(uint32_t client_id, uint32_t old_qpn)
{
	struct connect_request request = {.nonce = 5,
					  .incarnation = INCARNATION,
					  .client_id = client_id,
					  .old_qpn = old_qpn,
					  .pid = 33,
					  .sq_depth = 64};

	request.endpoint = (struct endpoint){.qpn = 9,
					     .link_layer = IBV_LINK_LAYER_ETHERNET,
					     .port = 1,
					     .mtu = IBV_MTU_1024,
					     .max_dest_rd_atomic = 16,
					     .max_rd_atomic = 16,
					     .is_softnic = 1};
	request.endpoint.gid[15] = 2;
	return request;
}

static struct connect_response connect_as(uint32_t client_id, uint32_t old_qpn, uint64_t ticket)
{
	struct connect_request request = request_of(client_id, old_qpn);
	struct connect_response response;

	server_connect(&server, ticket, &request, &response);
	cr_assert(response.nonce == 5 && response.incarnation == INCARNATION);
	return response;
}

static struct client_line line_of(uint32_t id)
{
	struct client_line line;

	epoch_read_line(region.bytes, &region.superblock.geometry, id, &line);
	return line;
}

static void report(uint32_t id, uint64_t epoch)
{
	uint64_t *word = (uint64_t *)(void *)(region.bytes +
					      geometry_client(&region.superblock.geometry, id));

	*word = htole64(epoch);
}

/* Bytes arrive by SEND on our queue pair `qpn`. */
static void deliver(uint32_t qpn, const uint8_t *bytes, uint32_t length)
{
	struct fake_cq *cq = &cqs[0];

	memcpy(server.control.memory.bytes, bytes, length);
	cq->wc[cq->count++] = (struct ibv_wc){
		.wr_id = 0, .qp_num = qpn, .byte_len = length, .status = IBV_WC_SUCCESS};
	control_on_channel(&server.control, 1000);
}

static struct message ask(uint32_t qpn, uint16_t kind, uint64_t word)
{
	struct message message = {.kind = kind, .id = 42, .words = {word}}, answer;
	uint8_t bytes[MESSAGE_BYTES];
	unsigned before = sends;

	message_encode(&message, bytes);
	deliver(qpn, bytes, sizeof bytes);
	cr_assert_eq(sends, before + 1, "no answer");
	cr_assert_eq(message_decode(sent, sizeof sent, &answer), 0);
	cr_assert(answer.kind == (kind | MESSAGE_ANSWER) && answer.id == 42);
	return answer;
}

static void complete_send(enum ibv_wc_status status)
{
	struct fake_cq *cq = &cqs[1];

	cq->wc[cq->count++] = (struct ibv_wc){.wr_id = sent_id, .status = status};
	control_on_channel(&server.control, 1000);
}

Test(mn_connect, a_new_client_gets_an_id_and_an_idle_line)
{
	struct connect_response response = connect_as(0, 0, 1);

	cr_assert(response.status == CONNECT_OK && response.client_id == 1);
	cr_assert(response.endpoint.qpn == 100 && response.endpoint.is_softnic);
	cr_assert(line_of(1).state == CLIENT_ACTIVE && line_of(1).report == CLIENT_IDLE);
	response = connect_as(1, 0, 2);
	cr_assert(response.status == CONNECT_OK && response.client_id == 1);
	cr_assert_eq(server.clients.table[1].connection_count, 2);
	cr_assert_eq(connect_as(0, 0, 3).client_id, 2);
}

Test(mn_connect, another_incarnation_an_unknown_client_and_another_kind_of_device_are_refused)
{
	struct connect_request request = request_of(0, 0);
	struct connect_response response;

	request.incarnation++;
	server_connect(&server, 1, &request, &response);
	cr_assert(response.status == CONNECT_INCARNATION && response.reason[0]);
	cr_assert_eq(connect_as(7, 0, 1).status, CONNECT_FENCED);
	cr_assert_eq(connect_as(65535, 0, 1).status, CONNECT_FENCED);
	request = request_of(0, 0);
	request.endpoint.is_softnic = 0;
	server_connect(&server, 1, &request, &response);
	cr_assert(response.status == CONNECT_REFUSED && strstr(response.reason, "software NIC"));
	request = request_of(0, 0);
	request.endpoint.mtu = 0;
	server_connect(&server, 1, &request, &response);
	cr_assert(response.status == CONNECT_REFUSED && response.endpoint.qpn == 0);
	cr_assert(queue_pairs == 0 && server.clients.active_count == 0);
}

Test(mn_connect, an_old_queue_pair_is_dead_before_the_answer)
{
	uint32_t old = connect_as(0, 0, 1).endpoint.qpn;
	struct connect_response response = connect_as(1, old, 2);

	cr_assert_eq(response.status, CONNECT_OK);
	cr_assert(err_count == 1 && queue_pairs == 1 && !connection_find(&server.clients, old));
	response = connect_as(1, old, 3);
	cr_assert_eq(response.status, CONNECT_OK, "it is gone already: fine");
}

Test(mn_connect, an_old_queue_pair_that_still_executes_or_is_not_ones_own_is_refused)
{
	uint32_t old = connect_as(0, 0, 1).endpoint.qpn;

	error_of_err = EAGAIN;
	cr_assert_eq(connect_as(1, old, 2).status, CONNECT_REFUSED);
	cr_assert(connection_find(&server.clients, old));
	error_of_err = 0;
	cr_assert_eq(connect_as(0, old, 3).status, CONNECT_REFUSED);
	cr_assert(connection_find(&server.clients, old) && server.clients.active_count == 1);
}

Test(mn_connect, good_bye_frees_the_client_once_it_has_its_answer)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;

	connect_as(1, 0, 2);
	cr_assert_eq(ask(qpn, MESSAGE_GOODBYE, 2).words[0], EPERM, "not its id");
	complete_send(IBV_WC_SUCCESS);
	cr_assert_eq(ask(qpn, MESSAGE_GOODBYE, 1).words[0], 0);
	server_attend(&server, 1001);
	cr_assert_eq(line_of(1).state, CLIENT_ACTIVE, "the answer is still on its way");
	cr_assert_eq(connect_as(1, 0, 3).status, CONNECT_FENCED, "on its way out");
	complete_send(IBV_WC_SUCCESS);
	cr_assert(server.control.attention);
	server_attend(&server, 1002);
	cr_assert(line_of(1).state == CLIENT_FREE && queue_pairs == 0 && err_count == 2);
}

Test(mn_connect, a_client_that_does_not_take_the_answer_to_its_good_bye_is_freed_in_time)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;

	ask(qpn, MESSAGE_GOODBYE, 1);
	server_sweep(&server, 1000 + CONTROL_LEAVE_MS - 1);
	cr_assert_eq(line_of(1).state, CLIENT_ACTIVE);
	server_sweep(&server, 1000 + CONTROL_LEAVE_MS);
	cr_assert(line_of(1).state == CLIENT_FREE && queue_pairs == 0);
	complete_send(IBV_WC_RETRY_EXC_ERR); /* late: of nobody */
}

Test(mn_connect, messages_are_answered_and_what_is_none_is_not)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;
	const uint16_t later[] = {MESSAGE_SPLIT, MESSAGE_UNIT_GET, MESSAGE_UNIT_RETURN,
				  MESSAGE_FENCE};
	uint8_t junk[MESSAGE_BYTES];
	struct message answer = ask(qpn, MESSAGE_STAT, 0);
	unsigned before;

	cr_assert(answer.words[0] == 0 && answer.words[3] == 1 && answer.words[4] == 1);
	cr_assert_eq(answer.words[2], region.superblock.geometry.segment_units);
	complete_send(IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(ask(qpn, later[i], 0).words[0], EOPNOTSUPP);
		complete_send(IBV_WC_SUCCESS);
	}
	before = sends;
	memset(junk, 0xa5, sizeof junk);
	deliver(qpn, junk, sizeof junk);
	deliver(qpn, sent, sizeof sent); /* an answer is no request */
	deliver(qpn, sent, 0);
	deliver(4040, junk, sizeof junk); /* nobody's queue pair */
	cr_assert_eq(sends, before);
	cr_assert_eq(receives, CONTROL_RECEIVES + 9, "every receive goes back");
}

Test(mn_connect, answers_that_are_not_taken_are_bounded)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;
	struct message stat = {.kind = MESSAGE_STAT};
	uint8_t bytes[MESSAGE_BYTES];

	message_encode(&stat, bytes);
	for (unsigned i = 0; i < 1000; i++)
		deliver(qpn, bytes, sizeof bytes);
	cr_assert_eq(sends, CONTROL_SENDS_EACH);
}

Test(mn_connect, a_broken_queue_pair_goes_and_its_client_stays)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;

	ask(qpn, MESSAGE_STAT, 0);
	complete_send(IBV_WC_RETRY_EXC_ERR);
	cr_assert(server.control.attention);
	server_attend(&server, 1001);
	cr_assert(queue_pairs == 0 && line_of(1).state == CLIENT_ACTIVE);
	cr_assert_eq(connect_as(1, qpn, 2).status, CONNECT_OK, "it comes back");
}

Test(mn_connect, a_hand_shake_that_is_never_finished_gives_its_id_back)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;

	server_expired(&server, qpn, 2);
	server_attend(&server, 1);
	cr_assert_eq(queue_pairs, 1, "another ticket's");
	server_expired(&server, qpn, 1);
	server_attend(&server, 1);
	cr_assert(queue_pairs == 0 && line_of(1).state == CLIENT_FREE);
	qpn = connect_as(0, 0, 3).endpoint.qpn;
	server_ready(&server, qpn, 3);
	server_expired(&server, qpn, 3);
	server_attend(&server, 1);
	cr_assert_eq(queue_pairs, 1, "it was ready");
	qpn = connect_as(0, 0, 4).endpoint.qpn;
	report(server.clients.active[1], 1);
	server_expired(&server, qpn, 4);
	server_attend(&server, 1);
	cr_assert_eq(queue_pairs, 2, "it reports, so it works");
}

Test(mn_connect, a_fenced_client_counts_until_nothing_of_it_can_execute)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;
	struct client *client = &server.clients.table[1];

	connect_as(1, 0, 2);
	server_ready(&server, qpn, 1);
	report(1, 1);
	error_of_err = EBUSY;
	server_fence(&server, client, "test");
	cr_assert(line_of(1).state == CLIENT_ACTIVE && queue_pairs == 2, "its report still counts");
	cr_assert_eq(connect_as(1, 0, 3).status, CONNECT_FENCED, "but it gets nothing new");
	server_sweep(&server, client->retry_at_ms);
	cr_assert_eq(line_of(1).state, CLIENT_ACTIVE);
	error_of_err = 0;
	server_sweep(&server, client->retry_at_ms);
	cr_assert(line_of(1).state == CLIENT_FENCED && queue_pairs == 0);
	cr_assert_eq(connect_as(0, 0, 4).client_id, 2, "a fenced id is not given out again");
}

Test(mn_connect, a_client_without_queue_pairs_may_come_back_for_a_while)
{
	uint32_t qpn = connect_as(0, 0, 1).endpoint.qpn;

	ask(qpn, MESSAGE_STAT, 0);
	complete_send(IBV_WC_RETRY_EXC_ERR);
	server_attend(&server, 1000);
	server_sweep(&server, 2000);
	qpn = connect_as(1, qpn, 2).endpoint.qpn;
	server_sweep(&server, 2000 + SERVER_ALONE_MS);
	cr_assert_eq(line_of(1).state, CLIENT_ACTIVE, "it came back");
	ask(qpn, MESSAGE_STAT, 0);
	complete_send(IBV_WC_RETRY_EXC_ERR);
	server_attend(&server, 90000);
	server_sweep(&server, 90001);
	server_sweep(&server, 90000 + SERVER_ALONE_MS);
	cr_assert_eq(line_of(1).state, CLIENT_ACTIVE);
	server_sweep(&server, 90001 + SERVER_ALONE_MS);
	cr_assert_eq(line_of(1).state, CLIENT_FENCED);
}

Test(mn_connect, ids_run_out_with_a_reason)
{
	struct connect_response response;
	uint32_t count = region.superblock.geometry.client_count;

	for (uint32_t id = 1; id < count; id++)
		cr_assert_eq(connect_as(0, 0, id).client_id, id);
	response = connect_as(0, 0, count);
	cr_assert(response.status == CONNECT_REFUSED && strstr(response.reason, "no client id"));
}
