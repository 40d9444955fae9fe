/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software NIC between processes: four of them add to one word and the sum is exact; a killed
 * target is noticed; a killed initiator wedges nobody; and no file is left.
 */
#include "fabric/provider.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, ADDS = 50000, WORD_AT = 4096, REGION = 65536, WAIT_MS = 10000 };

static const struct verbs_provider *const nic = &provider_softnic;

/* What parent and children tell each other, outside of the NIC. */
struct board {
	_Atomic uint32_t client_qpn[CLIENTS], server_qpn[CLIENTS];
	_Atomic uint32_t rkey;
	_Atomic uint64_t address;
	_Atomic uint32_t done, saw_death;
};

static struct board *board;

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[CLIENTS];
	uint64_t *buffer;
	struct ibv_mr *mr;
};

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
		  NULL);
}

static void open_end(struct end *end)
{
	struct ibv_device **list = nic->get_device_list(NULL);

	end->context = nic->open_device(list[0]);
	nic->free_device_list(list);
	assert(end->context);
	end->pd = nic->alloc_pd(end->context);
	end->cq = nic->create_cq(end->context, 256, NULL, NULL, 0);
}

static struct ibv_qp *new_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {.send_cq = end->cq,
					.recv_cq = end->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 16, .max_send_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *qp = nic->create_qp(end->pd, &init);
	int error = nic->modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	assert(qp && !error);
	return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = dest,
				   .max_dest_rd_atomic = 16,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	int error = nic->modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 6,
				    .rnr_retry = 6,
				    .max_rd_atomic = 16};
	if (!error)
		error = nic->modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC);
	assert(!error);
}

static enum ibv_wc_status add_one(struct end *end)
{
	struct ibv_sge sge = {.addr = (uintptr_t)end->buffer, .length = 8, .lkey = end->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.atomic = {.remote_addr = board->address + WORD_AT,
					       .compare_add = 1,
					       .rkey = board->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int error = ibv_post_send(end->qp[0], &wr, &bad);

	assert(!error);
	while (ibv_poll_cq(end->cq, 1, &wc) == 0)
		;
	return wc.status;
}

static void client(unsigned id)
{
	struct end end = {0};

	open_end(&end);
	end.buffer = calloc(1, 64);
	end.mr = nic->reg_mr(end.pd, end.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	end.qp[0] = new_qp(&end);
	board->client_qpn[id] = end.qp[0]->qp_num;
	while (board->server_qpn[id] == 0)
		pause_ms(1);
	connect_qp(end.qp[0], board->server_qpn[id]);
	for (unsigned i = 0; i < ADDS; i++)
		if (add_one(&end) != IBV_WC_SUCCESS)
			_exit(2);
	board->done++;
	if (id == 1)
		for (;;) /* until it is killed, in the middle of something */
			add_one(&end);
	/* Then until the target has died. */
	for (unsigned ms = 0; ms < WAIT_MS; ms++) {
		enum ibv_wc_status status = add_one(&end);

		if (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR) {
			board->saw_death++;
			nic->destroy_qp(end.qp[0]);
			nic->destroy_cq(end.cq);
			nic->dereg_mr(end.mr);
			nic->dealloc_pd(end.pd);
			_exit(nic->close_device(end.context));
		}
		pause_ms(1);
	}
	_exit(3);
}

/* In a process of its own, so that it can be killed. */
static void server(void)
{
	struct end end = {0};
	uint8_t *region =
		mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	open_end(&end);
	mr = nic->reg_mr(end.pd, region, REGION,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_ATOMIC);
	assert(mr);
	board->rkey = mr->rkey;
	board->address = (uintptr_t)region;
	for (unsigned id = 0; id < CLIENTS; id++) {
		while (board->client_qpn[id] == 0)
			pause_ms(1);
		end.qp[id] = new_qp(&end);
		connect_qp(end.qp[id], board->client_qpn[id]);
		board->server_qpn[id] = end.qp[id]->qp_num;
	}
	while (board->done < CLIENTS)
		pause_ms(1);
	/* Client 1 goes on adding; the others' adds, and its first ones, are all there. */
	if (*(_Atomic uint64_t *)(region + WORD_AT) < (uint64_t)CLIENTS * ADDS)
		_exit(4);
	board->done = CLIENTS + 1;
	for (;;)
		pause();
}

static pid_t start(void (*run)(unsigned), unsigned id)
{
	pid_t pid = fork();

	if (pid == 0) {
		run(id);
		_exit(0);
	}
	return pid;
}

static void run_server(unsigned id)
{
	(void)id;
	server();
}

static bool wait_for(_Atomic uint32_t *word, uint32_t value)
{
	for (unsigned ms = 0; ms < 6 * WAIT_MS; ms++) {
		if (*word >= value)
			return true;
		pause_ms(1);
	}
	return false;
}

int main(void)
{
	char directory[] = "/dev/shm/softnic-processes.XXXXXX";
	pid_t clients[CLIENTS], target;
	int failures = 0, status;

	if (!mkdtemp(directory))
		return 77;
	setenv("SOFTNIC_DIR", directory, 1);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	target = start(run_server, 0);
	for (unsigned id = 0; id < CLIENTS; id++)
		clients[id] = start(client, id);
	if (!wait_for(&board->done, CLIENTS + 1)) {
		puts("not ok: the sum of all adds");
		failures++;
	} else {
		printf("ok: %u processes add %u times each to one word\n", CLIENTS, ADDS);
	}
	kill(clients[1], SIGKILL);
	waitpid(clients[1], NULL, 0);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	for (unsigned id = 0; id < CLIENTS; id++) {
		if (id == 1)
			continue;
		waitpid(clients[id], &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			printf("not ok: client %u ends with %#x\n", id, status);
			failures++;
		}
	}
	printf("%s: %u clients have noticed the death of the target\n",
	       board->saw_death == CLIENTS - 1 ? "ok" : "not ok", board->saw_death);
	failures += board->saw_death != CLIENTS - 1;
	/* A new context sweeps what the killed ones have left. */
	struct end sweeper = {0};
	open_end(&sweeper);
	nic->destroy_cq(sweeper.cq);
	nic->dealloc_pd(sweeper.pd);
	nic->close_device(sweeper.context);
	if (rmdir(directory) != 0) {
		printf("not ok: files are left in %s: %s\n", directory, strerror(errno));
		failures++;
	} else {
		puts("ok: no file is left");
	}
	return failures > 0;
}
