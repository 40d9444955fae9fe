/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and their clients: hand-shake, good-bye, fencing.
 *
 * What must hold: when a client is told that an old queue pair is gone, when a line becomes FREE or
 * FENCED, nothing of the queue pairs concerned can execute any more (qp_fail has returned 0, or the
 * queue pair is destroyed). A queue pair that cannot be stopped yet (on the software NIC, a client
 * stopped in the middle of a step) delays these; it never blocks the loop.
 */
#include "mn/server.h"

#include "mn/clock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

__attribute__((format(printf, 3, 4))) static void
refuse(const struct server *server, struct connect_response *response, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(response->reason, sizeof response->reason, format, args);
	va_end(args);
	response->status = CONNECT_REFUSED;
	log_line(server->logger, LOG_LEVEL_WARNING, "connection refused: %s", response->reason);
}

enum { STOP_GONE = 1 };

/*
 * 0: in ERR; STOP_GONE: the device would not put it there, so it was destroyed and forgotten;
 * -EAGAIN: it still executes.
 */
static int stop_connection(struct server *server, struct connection *connection)
{
	int rc;

	if (connection->failed)
		return 0;
	rc = qp_fail(connection->qp);
	if (rc == -EAGAIN || rc == -EBUSY || rc == -ETIMEDOUT)
		return -EAGAIN;
	connection->failed = true;
	if (!rc)
		return 0;
	control_forget(&server->control, connection);
	qp_destroy(connection->qp);
	connection_remove(&server->clients, connection);
	return STOP_GONE;
}

int server_close(struct server *server, struct connection *connection)
{
	int rc = stop_connection(server, connection);

	if (rc)
		return rc == STOP_GONE ? 0 : rc;
	control_forget(&server->control, connection);
	qp_destroy(connection->qp);
	connection_remove(&server->clients, connection);
	return 0;
}

/* All of a client's, stopped first, then freed. */
static int close_client(struct server *server, struct client *client)
{
	struct connection *next;
	int rc = 0;

	for (struct connection *at = client->connections; at; at = next) {
		next = at->next_of_client;
		if (stop_connection(server, at) == -EAGAIN)
			rc = -EAGAIN;
	}
	while (!rc && client->connections)
		rc = server_close(server, client->connections);
	return rc;
}

void server_fence(struct server *server, struct client *client, const char *why)
{
	if (!client->fencing)
		log_line(server->logger, LOG_LEVEL_WARNING,
			 "client %u (pid %" PRIu32 ") is cut off: %s", (unsigned)client->id,
			 client->pid, why);
	client->fencing = true;
	client->retry_at_ms = clock_ms() + SERVER_RETRY_MS;
	if (close_client(server, client) == 0)
		clients_remove(&server->clients, client, CLIENT_FENCED);
}

/* The client that a request is for. NULL: the response says why not. *fresh: it was made just now.
 */
static struct client *client_of(struct server *server, const struct connect_request *request,
				struct connect_response *response, bool *fresh)
{
	struct client *client;

	*fresh = request->client_id == 0;
	if (*fresh) {
		client = clients_add(&server->clients, request->pid, server->epoch.epoch);
		if (!client)
			refuse(server, response,
			       "memory node %" PRIu32 " has no client id left: %" PRIu32
			       " clients are connected",
			       server->options->id, server->clients.active_count);
		return client;
	}
	client = clients_find(&server->clients, request->client_id);
	if (!client) {
		response->status = CONNECT_FENCED;
		snprintf(response->reason, sizeof response->reason,
			 "client %" PRIu32 " is not known to memory node %" PRIu32
			 ", or was cut off",
			 request->client_id, server->options->id);
	}
	return client;
}

/* The queue pair that the new one replaces: nothing of it may execute after the answer. */
static int close_old(struct server *server, const struct client *client,
		     const struct connect_request *request, struct connect_response *response)
{
	struct connection *old =
		request->old_qpn ? connection_find(&server->clients, request->old_qpn) : NULL;

	if (!old)
		return 0; /* none, or gone before */
	if (old->client != client) {
		refuse(server, response, "queue pair %" PRIu32 " is not of client %u",
		       request->old_qpn, (unsigned)client->id);
		return -EPERM;
	}
	if (server_close(server, old)) {
		refuse(server, response, "queue pair %" PRIu32 " still executes; try again",
		       request->old_qpn);
		return -EAGAIN;
	}
	return 0;
}

static int make_connection(struct server *server, struct client *client, uint64_t ticket,
			   const struct connect_request *request, struct connect_response *response)
{
	struct connection *connection;
	struct qp_options options;
	struct qp *qp = NULL;
	uint32_t psn;
	int rc;

	if (getrandom(&psn, sizeof psn, 0) != (ssize_t)sizeof psn)
		psn = (uint32_t)clock_real_ms();
	control_qp_options(&server->control, &options);
	rc = qp_create(server->device, &options, psn & 0xffffff, &qp);
	if (rc) {
		refuse(server, response,
		       "memory node %" PRIu32 " cannot make a queue pair (%" PRIu32 " in use): %s",
		       server->options->id, server->clients.connection_count, strerror(-rc));
		return rc;
	}
	qp_endpoint(qp, &response->endpoint);
	rc = qp_connect(qp, &request->endpoint);
	if (rc)
		refuse(server, response,
		       "memory node %" PRIu32 " cannot connect to the address given: %s",
		       server->options->id, strerror(-rc));
	else
		rc = connection_add(&server->clients, client, qp, response->endpoint.qpn, ticket,
				    &connection);
	if (rc && response->status == CONNECT_OK)
		refuse(server, response,
		       "memory node %" PRIu32 " serves %" PRIu32 " queue pairs and no more",
		       server->options->id, server->clients.connection_count);
	if (rc)
		qp_destroy(qp);
	return rc;
}

static const char *device_kind(bool softnic)
{
	return softnic ? "the software NIC" : "an RDMA device";
}

void server_connect(struct server *server, uint64_t ticket, const struct connect_request *request,
		    struct connect_response *response)
{
	struct client *client;
	bool fresh;

	*response = (struct connect_response){.nonce = request->nonce,
					      .incarnation = server->region->superblock.incarnation,
					      .status = CONNECT_OK,
					      .sq_depth = request->sq_depth};
	if (request->incarnation != response->incarnation) {
		response->status = CONNECT_INCARNATION;
		snprintf(response->reason, sizeof response->reason,
			 "memory node %" PRIu32 " is incarnation %016" PRIx64 " now",
			 server->options->id, response->incarnation);
		return;
	}
	if (request->endpoint.is_softnic != server->device->softnic) {
		refuse(server, response, "memory node %" PRIu32 " is on %s (%s), the client on %s",
		       server->options->id, device_kind(server->device->softnic),
		       server->device->name, device_kind(request->endpoint.is_softnic));
		return;
	}
	client = client_of(server, request, response, &fresh);
	if (!client)
		return;
	response->client_id = client->id;
	if (close_old(server, client, request, response) ||
	    make_connection(server, client, ticket, request, response)) {
		memset(&response->endpoint, 0, sizeof response->endpoint);
		if (fresh)
			clients_remove(&server->clients, client, CLIENT_FREE);
		return;
	}
	log_line(server->logger, LOG_LEVEL_DEBUG,
		 "client %u (pid %" PRIu32 ") connects by queue pair %" PRIu32,
		 (unsigned)client->id, client->pid, response->endpoint.qpn);
}

static struct connection *find_by_ticket(struct server *server, uint32_t qpn, uint64_t ticket)
{
	struct connection *connection = connection_find(&server->clients, qpn);

	return connection && connection->ticket == ticket ? connection : NULL;
}

void server_ready(struct server *server, uint32_t qpn, uint64_t ticket)
{
	struct connection *connection = find_by_ticket(server, qpn, ticket);

	if (!connection)
		return;
	connection->ready = true;
	connection->client->was_ready = true;
}

void server_expired(struct server *server, uint32_t qpn, uint64_t ticket)
{
	struct connection *connection = find_by_ticket(server, qpn, ticket);
	struct client_line line;
	struct client *client;

	if (!connection || connection->ready)
		return;
	client = connection->client;
	epoch_read_line(server->region->bytes, &server->region->superblock.geometry, client->id,
			&line);
	if (line.report != CLIENT_IDLE)
		return; /* it works: only its word of it was lost */
	log_line(server->logger, LOG_LEVEL_NOTICE,
		 "client %u (pid %" PRIu32 ") did not become ready: queue pair %" PRIu32
		 " is closed",
		 (unsigned)client->id, client->pid, qpn);
	connection->broken = true;
	server->control.attention = true;
}

/* A client that has left, or whose hand-shake came to nothing, has done all it ever will. */
static bool may_free(const struct server *server, const struct client *client, uint64_t now_ms)
{
	struct client_line line;

	if (client->leave_at_ms) {
		bool answered = true;

		for (const struct connection *at = client->connections; at; at = at->next_of_client)
			answered = answered && at->sends == 0;
		return answered || now_ms >= client->leave_at_ms;
	}
	if (client->connections || client->was_ready)
		return false;
	epoch_read_line(server->region->bytes, &server->region->superblock.geometry, client->id,
			&line);
	return line.report == CLIENT_IDLE; /* else it has worked, and may come back */
}

static void attend_client(struct server *server, struct client *client, uint64_t now_ms)
{
	struct connection *next;

	for (struct connection *at = client->connections; at; at = next) {
		next = at->next_of_client;
		if (at->broken && server_close(server, at))
			server->control.attention = true; /* still executing: again later */
	}
	if (!client->fencing && may_free(server, client, now_ms) &&
	    close_client(server, client) == 0)
		clients_remove(&server->clients, client, CLIENT_FREE);
}

void server_attend(struct server *server, uint64_t now_ms)
{
	server->control.attention = false;
	for (uint32_t i = server->clients.active_count; i-- > 0;)
		attend_client(server, clients_active(&server->clients, i), now_ms);
}

/*
 * A client whose queue pairs have all broken may come back by a new one, for a while. One that was
 * killed while idle is not found out: it holds nothing back, but keeps its id and queue pairs. (A
 * 0-byte WRITE to it would tell; a client's queue pairs allow no WRITE, so a living one would
 * break.)
 */
static void look_for_lost(struct server *server, struct client *client, uint64_t now_ms)
{
	if (client->connections)
		client->alone_at_ms = 0;
	else if (!client->alone_at_ms)
		client->alone_at_ms = now_ms + SERVER_ALONE_MS;
	else if (now_ms >= client->alone_at_ms)
		server_fence(server, client, "no queue pair is left, and it has not come back");
}

void server_sweep(struct server *server, uint64_t now_ms)
{
	/* Downwards: a client that is removed is replaced by one that was looked at. */
	for (uint32_t i = server->clients.active_count; i-- > 0;) {
		struct client *client = clients_active(&server->clients, i);

		if (client->fencing) {
			if (now_ms >= client->retry_at_ms)
				server_fence(server, client, "");
		} else if (client->leave_at_ms) {
			attend_client(server, client, now_ms);
		} else {
			look_for_lost(server, client, now_ms);
		}
	}
}

void server_close_all(struct server *server)
{
	struct clients *clients = &server->clients;

	while (clients->active_count) {
		struct client *client = clients_active(clients, 0);

		/* What cannot be stopped is destroyed: the region's mapping goes with us. */
		while (client->connections) {
			struct connection *at = client->connections;

			if (stop_connection(server, at) == STOP_GONE)
				continue;
			control_forget(&server->control, at);
			qp_destroy(at->qp);
			connection_remove(clients, at);
		}
		clients_remove(clients, client, CLIENT_FREE);
	}
}
