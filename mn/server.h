/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: one thread around epoll, asleep while clients work. What wakes it: the beat
 * of the load line (pace.h), control messages, events of the device, requests from the rendezvous
 * thread, signals.
 */
#ifndef FARKV_MN_SERVER_H
#define FARKV_MN_SERVER_H

#include "fabric/device.h"
#include "mn/announce.h"
#include "mn/clients.h"
#include "mn/control.h"
#include "mn/epoch.h"
#include "mn/options.h"
#include "mn/pace.h"
#include "mn/region.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SERVER_SWEEP_MS = 100,	 /* between looks at what is slow: retries, the lost */
	SERVER_ALONE_MS = 30000, /* a client without a queue pair may come back so long */
	SERVER_RETRY_MS = 100,	 /* a queue pair that could not be put in ERR */
};

struct server {
	const struct mn_options *options; /* borrowed, as all pointers here */
	const struct logger *logger;
	struct device *device;
	struct region *region;
	struct announce *announce;
	struct memory memory; /* the region's registration */
	struct clients clients;
	struct control control;
	struct epoch_state epoch;
	struct client_line *lines; /* owned; scratch of the scan */
	uint64_t time_ms;	   /* last published: never goes back */
	uint64_t ticked_at_ms, tick_at_ms, sweep_at_ms;
	struct pace pace;
	int epoll_fd, signal_fd;
	int signal;  /* the one that stops us, 0 = none yet */
	bool failed; /* the device is gone */
};

/* Registers the region, makes queues and tables. Faults are logged. server_destroy also after an
 * error. */
int server_create(struct server *server, const struct mn_options *options,
		  const struct logger *logger, struct device *device, struct region *region);
/* The record to publish. */
void server_record(const struct server *server, struct mn_record *record);
/* Runs until SIGTERM or SIGINT (blocked in all threads): 0; or until the device fails: -EIO. */
int server_run(struct server *server, struct announce *announce);
void server_destroy(struct server *server);

/* connect.c: connections and their clients. */

/* Answers one hand-shake: checks it, makes the queue pair, fills the response. */
void server_connect(struct server *server, uint64_t ticket, const struct connect_request *request,
		    struct connect_response *response);
void server_ready(struct server *server, uint32_t qpn, uint64_t ticket);
/* The hand-shake was never finished: the connection goes, and its client if that was all there was
 * of it. */
void server_expired(struct server *server, uint32_t qpn, uint64_t ticket);
/* 0: the queue pair executes nothing more, and is gone. -EAGAIN: not yet, it still executes. */
int server_close(struct server *server, struct connection *connection);
/* Cuts the client off; at once, or in retries of the sweep where a queue pair still executes. */
void server_fence(struct server *server, struct client *client, const char *why);
/* Broken connections and clients that leave. */
void server_attend(struct server *server, uint64_t now_ms);
/* The slow look at all clients. */
void server_sweep(struct server *server, uint64_t now_ms);
/* All connections, at the end. */
void server_close_all(struct server *server);

/* events.c */

/* The device's async descriptor is readable: takes, logs and acks one event, then reacts. */
void server_on_async(struct server *server, uint64_t now_ms);

#endif
