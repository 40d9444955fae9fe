/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reporter of one memory node: WRITEs what this process pins into its client line, and READs
 * the load line in the same chain, every REPORT_NS, sooner when memory waits for an epoch. See
 * epoch.c for what it may say.
 *
 * It runs in the helper thread, or in farkv_poll where there is none. One report is in flight at a
 * time, so that reports land in the order in which they were computed.
 */
#include "cn/store.h"

#include "cn/session.h"
#include "layout/bytes.h"
#include "layout/message.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	REPORT_NS = 20000000,
	REPORT_HURRY_NS = 2000000,
	IDLE_AFTER_NS = 1000000000,
	REPORTER_SQ_DEPTH = 16,
	REPORTER_READ_MAX = 65536,
	GOODBYE_WAIT_NS = 1000000000,
	ANSWER_WAIT_NS =
		100000000, /* the memory node frees our id sooner when its answer can land */
};

/* wr_id of the one receive; no flow has it (flow.h: id << 48, and ids are small). */
#define ANSWER_ID UINT64_MAX

#define REPORTER_OF(pointer)                                                                       \
	((struct reporter *)((char *)(pointer)-offsetof(struct reporter, waiter)))
#define NODE_OF(pointer) ((struct node *)((char *)(pointer)-offsetof(struct node, reporter)))

/* Layout of the reporter's registered memory: the page of set-up READs, then the load line, then a
 * report word. */
static uint8_t *load_line(struct reporter *reporter)
{
	return reporter->memory.bytes + REPORTER_READ_MAX;
}

static uint8_t *report_word(struct reporter *reporter)
{
	return load_line(reporter) + LINE_BYTES;
}

int reporter_open(struct node *node)
{
	struct farkv *store = node->store;
	struct reporter *reporter = &node->reporter;
	const struct verbs_provider *verbs = store->device->verbs;
	struct qp_options options = {.sq_depth = REPORTER_SQ_DEPTH,
				     .rq_depth = 1,
				     .max_inline = store->options.max_inline};
	int error;

	reporter->cq =
		verbs->create_cq(store->device->context, 4 * REPORTER_SQ_DEPTH, NULL, NULL, 0);
	if (!reporter->cq) {
		log_line(&store->logger, LOG_LEVEL_ERROR, "creating a completion queue failed: %s",
			 strerror(errno));
		return FARKV_ENOMEM;
	}
	if (memory_alloc(store->device, REPORTER_READ_MAX + 4096, &reporter->memory))
		return FARKV_ENOMEM;
	options.send_cq = options.recv_cq = reporter->cq;
	error = connect_node(store, node, &options, &reporter->qp);
	if (error)
		return error;
	if (reporter->qp->sq_depth > REPORTER_SQ_DEPTH)
		reporter->qp->sq_depth = REPORTER_SQ_DEPTH;
	error = flow_init(&reporter->flow, reporter->qp, 0, REPORTER_SQ_DEPTH / 2,
			  reporter->memory.mr->lkey, node->record.region_base, node->record.rkey,
			  reporter->counts, &store->logger);
	return error ? FARKV_ENOMEM : 0;
}

void reporter_close(struct node *node)
{
	struct reporter *reporter = &node->reporter;

	qp_destroy(reporter->qp);
	if (reporter->flow.places) {
		flow_cancel(&reporter->flow);
		flow_free(&reporter->flow);
	}
	memory_free(&reporter->memory);
	if (reporter->cq)
		node->store->device->verbs->destroy_cq(reporter->cq);
	memset(reporter, 0, sizeof *reporter);
}

static void take_completions(struct reporter *reporter)
{
	struct ibv_wc completions[16];
	int count = ibv_poll_cq(reporter->cq, 16, completions);

	for (int i = 0; i < count; i++) {
		if (completions[i].wr_id == ANSWER_ID)
			reporter->answered = true;
		else
			flow_complete(&reporter->flow, &completions[i]);
	}
}

struct blocking {
	struct flow_waiter waiter;
	int status;
	bool done;
};

static void blocking_done(struct flow_waiter *waiter, int status)
{
	struct blocking *blocking = (struct blocking *)waiter;

	blocking->status = status;
	blocking->done = true;
}

static bool wait_done(struct reporter *reporter, struct blocking *blocking, uint64_t limit_ns)
{
	uint64_t until = clock_now_ns() + limit_ns;

	blocking->waiter.done = blocking_done;
	flow_await(&reporter->flow, &blocking->waiter);
	flow_post(&reporter->flow);
	while (!blocking->done && clock_now_ns() < until)
		take_completions(reporter);
	if (!blocking->done) {
		/* The waiter is on our stack: nothing of it may stay in flight. */
		qp_destroy(reporter->qp);
		reporter->qp = NULL;
		flow_cancel(&reporter->flow);
	}
	return blocking->status == 0;
}

int reporter_read(struct node *node, uint64_t offset, void *into, uint32_t bytes)
{
	struct reporter *reporter = &node->reporter;
	struct blocking blocking = {.done = false};

	if (bytes > REPORTER_READ_MAX || !flow_reserve(&reporter->flow, 1))
		return FARKV_EUNAVAILABLE;
	flow_read(&reporter->flow, reporter->memory.bytes, bytes, offset, 0);
	if (!wait_done(reporter, &blocking,
		       (uint64_t)node->store->options.open_timeout_ms * 1000000)) {
		log_line(&node->store->logger, LOG_LEVEL_ERROR,
			 "READing the region of memory node %u failed", node->mn_id);
		return FARKV_EUNAVAILABLE;
	}
	memcpy(into, reporter->memory.bytes, bytes);
	return 0;
}

/* Room for the answer, behind the message in the page of set-up READs. */
static bool post_answer_receive(struct reporter *reporter)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)reporter->memory.bytes + MESSAGE_BYTES,
		.length = MESSAGE_BYTES,
		.lkey = reporter->memory.mr->lkey,
	};
	struct ibv_recv_wr recv = {.wr_id = ANSWER_ID, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(reporter->qp->ibv, &recv, &bad) == 0;
}

void reporter_goodbye(struct node *node)
{
	struct reporter *reporter = &node->reporter;
	struct message message = {.kind = MESSAGE_GOODBYE, .words = {node->client_id}};
	struct blocking blocking = {.done = false};
	uint64_t until;

	if (!reporter->qp || !flow_reserve(&reporter->flow, 1))
		return;
	if (!post_answer_receive(reporter))
		return;
	message_encode(&message, reporter->memory.bytes);
	flow_send(&reporter->flow, reporter->memory.bytes, MESSAGE_BYTES, 0);
	if (!wait_done(reporter, &blocking, GOODBYE_WAIT_NS))
		return;
	until = clock_now_ns() + ANSWER_WAIT_NS;
	while (!reporter->answered && !reporter->flow.broken && clock_now_ns() < until)
		take_completions(reporter);
}

/* The oldest pin of all sessions at this node. The list is locked; the pins are read seq_cst
 * (epoch.c). */
static uint64_t oldest_pin(void *arg)
{
	struct node *node = arg;
	uint64_t oldest = PIN_NONE;

	pthread_mutex_lock(&node->mutex);
	for (struct link *link = node->links; link; link = link->next_link) {
		uint64_t pin = atomic_load(&link->pins.oldest);

		oldest = pin < oldest ? pin : oldest;
	}
	pthread_mutex_unlock(&node->mutex);
	return oldest;
}

static void report_done(struct flow_waiter *waiter, int status)
{
	struct reporter *reporter = REPORTER_OF(waiter);
	struct node *node = NODE_OF(reporter);
	struct load load;

	reporter->in_flight = false;
	if (status) {
		atomic_store(&reporter->down, true);
		log_line(&node->store->logger, LOG_LEVEL_ERROR,
			 "memory node %u cannot be reached any more", node->mn_id);
		return;
	}
	if (reporter->idling) {
		reporter->idling = false;
		epoch_idle_done(&node->epoch);
		return;
	}
	epoch_confirm(&node->epoch, reporter->posted_activation);
	load_decode(load_line(reporter), &load);
	if (load.epoch > atomic_load(&node->epoch.newest))
		reporter->next_ns = 0; /* say at once that we have seen it */
	epoch_load_arrived(&node->epoch, &load, reporter->load_number);
}

static void post_report(struct node *node, uint64_t value)
{
	struct reporter *reporter = &node->reporter;
	const struct geometry *g = &node->super.geometry;

	store_le64(report_word(reporter), value);
	flow_write(&reporter->flow, report_word(reporter), 8,
		   geometry_client(g, node->client_id) + CLIENT_REPORT_AT, FLOW_DEFERRED);
	if (!reporter->idling) {
		reporter->posted_activation = atomic_load(&node->epoch.activation);
		/* seq_cst, ahead of the post: heap.c numbers what it frees by this word. */
		reporter->load_number = atomic_fetch_add(&node->epoch.load_posted, 1) + 1;
		flow_read(&reporter->flow, load_line(reporter), LINE_BYTES,
			  geometry_counter(g, COUNTER_LOAD), FLOW_DEFERRED);
	}
	reporter->waiter.done = report_done;
	flow_await(&reporter->flow, &reporter->waiter);
	reporter->in_flight = true;
	flow_post(&reporter->flow);
}

void reporter_step(struct node *node, uint64_t now_ns)
{
	struct reporter *reporter = &node->reporter;
	uint64_t reported;

	if (!reporter->qp || atomic_load_explicit(&reporter->down, memory_order_relaxed))
		return;
	take_completions(reporter);
	reported = atomic_load(&node->epoch.reported);
	if (reporter->in_flight || reported == EPOCH_IDLE)
		return;
	if (atomic_load_explicit(&node->epoch.hurry, memory_order_relaxed) &&
	    reporter->next_ns > now_ns + REPORT_HURRY_NS) {
		atomic_store_explicit(&node->epoch.hurry, false, memory_order_relaxed);
		reporter->next_ns = now_ns + REPORT_HURRY_NS;
	}
	if (now_ns < reporter->next_ns || !flow_reserve(&reporter->flow, 2))
		return;
	reporter->next_ns = now_ns + REPORT_NS;
	if (now_ns - atomic_load_explicit(&node->epoch.last_use_ns, memory_order_relaxed) >
		    IDLE_AFTER_NS &&
	    epoch_try_idle(&node->epoch, oldest_pin, node)) {
		reporter->idling = true;
		post_report(node, EPOCH_IDLE);
		return;
	}
	post_report(node, epoch_begin_report(&node->epoch, oldest_pin, node));
}
