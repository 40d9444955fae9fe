/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages: a shared receive queue that is always refilled, one completion channel, answers
 * by SEND on the queue pair that asked. Everything received is untrusted. Nothing here blocks;
 * everything is bounded: receives, sends in flight, sends per connection.
 */
#ifndef FARKV_MN_CONTROL_H
#define FARKV_MN_CONTROL_H

#include "fabric/device.h"
#include "fabric/qp.h"
#include "layout/message.h"
#include "mn/clients.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CONTROL_RECEIVES = 256,
	CONTROL_SRQ_LIMIT = CONTROL_RECEIVES / 4,
	CONTROL_SENDS = 256,
	CONTROL_SENDS_EACH = 8, /* in flight per connection; more answers are dropped */
	CONTROL_SQ_DEPTH = 16,
	CONTROL_LEAVE_MS = 50, /* from the answer to a good-bye until the queue pairs go */
};

/* A send in flight: its buffer is taken until its completion comes or its connection is gone. */
struct control_send {
	struct connection *connection; /* NULL = free */
	uint32_t generation;	       /* tells a late completion from a newer send's */
};

struct control {
	struct device *device;	     /* borrowed */
	struct clients *clients;     /* borrowed */
	const struct logger *logger; /* borrowed */
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_srq *srq;
	struct memory memory; /* CONTROL_RECEIVES, then CONTROL_SENDS buffers of MESSAGE_BYTES */
	struct control_send sends[CONTROL_SENDS];
	uint32_t send_at; /* where to look for a free one */
	bool attention;	  /* a client wants to leave or a connection broke: see server.c */
	bool failed;	  /* a queue of ours is unusable */
};

/* Creates the queues and fills the SRQ. -ENOMEM, -EOPNOTSUPP; logged. */
int control_create(struct control *control, struct device *device, struct clients *clients,
		   const struct logger *logger);
void control_destroy(
	struct control *control); /* after all connections; accepts a zeroed or half-built one */
/* What a connection's queue pair is made with. */
void control_qp_options(const struct control *control, struct qp_options *options);
/* The channel is readable. now_ms: clock_ms. */
void control_on_channel(struct control *control, uint64_t now_ms);
/* IBV_EVENT_SRQ_LIMIT_REACHED. */
void control_on_limit(struct control *control, uint64_t now_ms);
/* The connection is about to be freed. */
void control_forget(struct control *control, struct connection *connection);

#endif
