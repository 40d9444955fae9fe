/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/control.h"

#include "fabric/status.h"
#include "mn/epoch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	POLL_BATCH = 16,
	POLL_ROUNDS = 2 * (CONTROL_RECEIVES + CONTROL_SENDS) /
		      POLL_BATCH, /* per wake-up; the rest at the next */
	EVENTS_MAX = 64,
	RECV_CQ_DEPTH = CONTROL_RECEIVES + 1,
	SEND_CQ_DEPTH =
		2 *
		CONTROL_SENDS, /* completions of connections that are gone may still lie there */
};

static uint8_t *buffer_of(const struct control *control, uint32_t index)
{
	return control->memory.bytes + (size_t)index * MESSAGE_BYTES;
}

static int post_receive(struct control *control, uint32_t index)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buffer_of(control, index),
			      .length = MESSAGE_BYTES,
			      .lkey = control->memory.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(control->srq, &wr, &bad);
}

static int arm_limit(struct control *control)
{
	struct ibv_srq_attr attr = {.srq_limit = CONTROL_SRQ_LIMIT};

	return control->device->verbs->modify_srq(control->srq, &attr, IBV_SRQ_LIMIT);
}

static int create_queues(struct control *control)
{
	const struct verbs_provider *verbs = control->device->verbs;
	struct ibv_context *context = control->device->context;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = CONTROL_RECEIVES, .max_sge = 1}};

	control->channel = verbs->create_comp_channel(context);
	if (!control->channel)
		return -errno;
	if (fcntl(control->channel->fd, F_SETFL,
		  fcntl(control->channel->fd, F_GETFL) | O_NONBLOCK) != 0)
		return -errno;
	control->recv_cq = verbs->create_cq(context, RECV_CQ_DEPTH, control, control->channel, 0);
	if (!control->recv_cq)
		return -errno;
	control->send_cq = verbs->create_cq(context, SEND_CQ_DEPTH, control, control->channel, 0);
	if (!control->send_cq)
		return -errno;
	control->srq = verbs->create_srq(control->device->pd, &srq);
	return control->srq ? 0 : -errno;
}

static int fill_queues(struct control *control)
{
	int rc = ibv_req_notify_cq(control->recv_cq, 0);

	if (!rc)
		rc = ibv_req_notify_cq(control->send_cq, 0);
	for (uint32_t i = 0; !rc && i < CONTROL_RECEIVES; i++)
		rc = post_receive(control, i);
	/* A device without the limit event is served all the same: receives go back after every
	 * batch. */
	if (!rc && arm_limit(control))
		log_line(control->logger, LOG_LEVEL_WARNING, "device %s has no SRQ limit event",
			 control->device->name);
	return -rc;
}

int control_create(struct control *control, struct device *device, struct clients *clients,
		   const struct logger *logger)
{
	int rc;

	memset(control, 0, sizeof *control);
	control->device = device;
	control->clients = clients;
	control->logger = logger;
	rc = memory_alloc(device, (size_t)(CONTROL_RECEIVES + CONTROL_SENDS) * MESSAGE_BYTES,
			  &control->memory);
	if (rc)
		return rc; /* logged there */
	rc = create_queues(control);
	if (!rc)
		rc = fill_queues(control);
	if (rc) {
		log_line(logger, LOG_LEVEL_ERROR, "device %s: cannot make the control queues: %s",
			 device->name, strerror(-rc));
		control_destroy(control);
	}
	return rc;
}

void control_destroy(struct control *control)
{
	const struct verbs_provider *verbs = control->device ? control->device->verbs : NULL;

	if (control->srq)
		verbs->destroy_srq(control->srq);
	if (control->send_cq)
		verbs->destroy_cq(control->send_cq);
	if (control->recv_cq)
		verbs->destroy_cq(control->recv_cq);
	if (control->channel)
		verbs->destroy_comp_channel(control->channel);
	memory_free(&control->memory);
	memset(control, 0, sizeof *control);
}

void control_qp_options(const struct control *control, struct qp_options *options)
{
	*options = (struct qp_options){
		.send_cq = control->send_cq,
		.recv_cq = control->recv_cq,
		.srq = control->srq,
		.sq_depth = CONTROL_SQ_DEPTH,
		.max_inline = MESSAGE_BYTES,
		.access =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
}

/* A free send for this connection, or NULL: it does not take its answers, or nobody does. */
static struct control_send *take_send(struct control *control, struct connection *connection)
{
	if (connection->sends >= CONTROL_SENDS_EACH)
		return NULL;
	for (uint32_t i = 0; i < CONTROL_SENDS; i++) {
		struct control_send *send = &control->sends[control->send_at];

		control->send_at = (control->send_at + 1) % CONTROL_SENDS;
		if (send->connection)
			continue;
		send->connection = connection;
		send->generation++;
		connection->sends++;
		return send;
	}
	return NULL;
}

static void give_send(struct control_send *send)
{
	send->connection->sends--;
	send->connection = NULL;
}

static int post(struct control *control, struct control_send *send, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	uint32_t index = (uint32_t)(send - control->sends);
	int rc;

	wr->wr_id = (uint64_t)send->generation << 32 | index;
	wr->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(send->connection->qp->ibv, wr, &bad);
	if (rc)
		give_send(send);
	return -rc;
}

static void answer(struct control *control, struct connection *connection,
		   const struct message *message)
{
	struct control_send *send = take_send(control, connection);
	struct ibv_sge sge = {.length = MESSAGE_BYTES, .lkey = control->memory.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	uint8_t *buffer;
	int rc;

	if (!send) {
		log_line(control->logger, LOG_LEVEL_DEBUG,
			 "client %u does not take its answers: one dropped",
			 (unsigned)connection->client->id);
		return;
	}
	buffer = buffer_of(control, CONTROL_RECEIVES + (uint32_t)(send - control->sends));
	message_encode(message, buffer);
	sge.addr = (uintptr_t)buffer;
	if (connection->qp->max_inline >= MESSAGE_BYTES)
		wr.send_flags = IBV_SEND_INLINE;
	rc = post(control, send, &wr);
	if (rc)
		log_line(control->logger, LOG_LEVEL_DEBUG, "answer to client %u: %s",
			 (unsigned)connection->client->id, strerror(-rc));
}

void control_forget(struct control *control, struct connection *connection)
{
	for (uint32_t i = 0; connection->sends && i < CONTROL_SENDS; i++)
		if (control->sends[i].connection == connection)
			give_send(&control->sends[i]);
	assert(connection->sends == 0);
}

static void fill_stat(const struct control *control, struct message *message)
{
	struct epoch_state epoch;
	uint64_t time_ms;

	epoch_read_load(control->clients->region, control->clients->geometry, &epoch, &time_ms);
	message->words[1] = clients_counter(control->clients, COUNTER_SESSIONS);
	message->words[2] = clients_counter(control->clients, COUNTER_UNITS);
	message->words[3] = epoch.epoch;
	message->words[4] = control->clients->active_count;
}

/* Does what a request asks for; the positive errno of the answer. */
static uint64_t serve(struct control *control, struct connection *connection,
		      const struct message *request, struct message *reply, uint64_t now_ms)
{
	struct client *client = connection->client;

	switch (request->kind) {
	case MESSAGE_STAT:
		fill_stat(control, reply);
		return 0;
	case MESSAGE_GOODBYE:
		if (request->words[0] != client->id)
			return EPERM;
		if (!client->leave_at_ms)
			client->leave_at_ms = now_ms + CONTROL_LEAVE_MS;
		control->attention = true;
		return 0;
	default: /* SPLIT, UNIT_GET, UNIT_RETURN, FENCE: not built yet */
		return EOPNOTSUPP;
	}
}

static void on_message(struct control *control, const struct ibv_wc *wc, uint64_t now_ms)
{
	struct connection *connection = connection_find(control->clients, wc->qp_num);
	struct message request, reply = {0};
	int rc;

	if (!connection || connection->failed)
		return; /* it went while its message lay here */
	connection->ready = true;
	connection->client->was_ready = true;
	rc = message_decode(buffer_of(control, (uint32_t)wc->wr_id), wc->byte_len, &request);
	if (!rc && (request.kind & MESSAGE_ANSWER))
		rc = -EBADMSG;
	if (rc) {
		if (!connection->complained)
			log_line(control->logger, LOG_LEVEL_WARNING,
				 "client %u (pid %u) sent %u bytes that are %s; said once",
				 (unsigned)connection->client->id, connection->client->pid,
				 wc->byte_len,
				 rc == -EPROTONOSUPPORT ? "a message of another version"
							: "no message");
		connection->complained = true;
		return;
	}
	reply.kind = request.kind | MESSAGE_ANSWER;
	reply.id = request.id;
	reply.words[0] = serve(control, connection, &request, &reply, now_ms);
	answer(control, connection, &reply);
}

static void mark_broken(struct control *control, struct connection *connection,
			const struct ibv_wc *wc)
{
	if (connection->broken || connection->failed)
		return;
	/* A client that has said good-bye may well be gone before its answer arrives. */
	if (wc->status != IBV_WC_WR_FLUSH_ERR && !connection->client->leave_at_ms)
		status_log_wc(control->logger, wc);
	connection->broken = true;
	control->attention = true;
}

static void on_receive(struct control *control, const struct ibv_wc *wc, uint64_t now_ms)
{
	if (wc->wr_id >= CONTROL_RECEIVES)
		return; /* not a buffer of ours: a device at fault */
	if (wc->status == IBV_WC_SUCCESS) {
		on_message(control, wc, now_ms);
	} else {
		struct connection *connection = connection_find(control->clients, wc->qp_num);

		if (connection)
			mark_broken(control, connection, wc);
	}
	if (post_receive(control, (uint32_t)wc->wr_id) && !control->failed) {
		log_line(control->logger, LOG_LEVEL_ERROR,
			 "device %s: the shared receive queue takes no receives",
			 control->device->name);
		control->failed = true;
	}
}

static void on_sent(struct control *control, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct control_send *send;

	if (index >= CONTROL_SENDS)
		return;
	send = &control->sends[index];
	if (!send->connection || send->generation != wc->wr_id >> 32)
		return; /* its connection is gone */
	if (wc->status != IBV_WC_SUCCESS)
		mark_broken(control, send->connection, wc);
	if (send->connection->client->leave_at_ms)
		control->attention = true; /* it has its answer */
	give_send(send);
}

static void drain(struct control *control, uint64_t now_ms)
{
	struct ibv_wc wc[POLL_BATCH];

	for (unsigned i = 0; i < POLL_ROUNDS; i++) {
		int received = ibv_poll_cq(control->recv_cq, POLL_BATCH, wc), sent;

		for (int j = 0; j < received; j++)
			on_receive(control, &wc[j], now_ms);
		sent = ibv_poll_cq(control->send_cq, POLL_BATCH, wc);
		for (int j = 0; j < sent; j++)
			on_sent(control, &wc[j]);
		if (received < 0 || sent < 0)
			control->failed = true;
		if (received <= 0 && sent <= 0)
			return;
	}
}

/* Takes the events, arms the queues, then drains: what completes after the drain makes a new event.
 */
void control_on_channel(struct control *control, uint64_t now_ms)
{
	const struct verbs_provider *verbs = control->device->verbs;
	struct ibv_cq *cq;
	void *context;

	for (unsigned i = 0;
	     i < EVENTS_MAX && verbs->get_cq_event(control->channel, &cq, &context) == 0; i++) {
		verbs->ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			control->failed = true;
	}
	drain(control, now_ms);
}

void control_on_limit(struct control *control, uint64_t now_ms)
{
	drain(control, now_ms);
	if (arm_limit(control))
		log_line(control->logger, LOG_LEVEL_WARNING,
			 "device %s: cannot arm the SRQ limit again", control->device->name);
}
