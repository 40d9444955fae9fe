/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous events of the device. Every one is acknowledged before anything is done about it,
 * because destroying the queue it is about would wait for that; so all that is needed of it is
 * copied first.
 */
#include "mn/server.h"

#include "fabric/status.h"

#include <errno.h>
#include <string.h>

enum { EVENT_QP = 1, EVENT_ADDRESS = 2, EVENT_LIMIT = 4, EVENT_GONE = 8, EVENT_READY = 16 };

/* What an event asks of us. */
static unsigned reaction(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_PATH_MIG_ERR:
		return EVENT_QP; /* the client makes a new one */
	case IBV_EVENT_COMM_EST:
		return EVENT_READY;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_CLIENT_REREGISTER:
		return EVENT_ADDRESS;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return EVENT_LIMIT;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		return EVENT_GONE;
	default: /* PATH_MIG, PORT_ERR, PKEY_CHANGE, SM_CHANGE, WQ_FATAL and unknown ones: told,
		    nothing to do */
		return 0;
	}
}

static int is_of_qp(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_LAST_WQE_REACHED ||
	       type == IBV_EVENT_PATH_MIG_ERR || type == IBV_EVENT_PATH_MIG ||
	       type == IBV_EVENT_COMM_EST || type == IBV_EVENT_SQ_DRAINED;
}

static void log_event(const struct server *server, enum ibv_event_type type, uint32_t qpn)
{
	const struct status_row *row = status_of_event(type);
	enum log_level level = row->action == STATUS_NOTHING ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING;

	if (reaction(type) & EVENT_GONE)
		level = LOG_LEVEL_ERROR;
	if (is_of_qp(type))
		log_line(server->logger, level, "device %s: %s, queue pair %u: %s; check: %s",
			 server->device->name, row->name, (unsigned)qpn, row->meaning, row->check);
	else
		log_line(server->logger, level, "device %s: %s: %s; check: %s",
			 server->device->name, row->name, row->meaning, row->check);
}

/* The port's address may have changed: connections made from now on, and the published record, use
 * the new one. */
static void refresh_address(struct server *server)
{
	struct device *device = server->device;
	union ibv_gid gid;
	struct ibv_port_attr port;
	struct mn_record record;

	if (device->verbs->query_port(device->context, device->port, &port))
		return;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET &&
	    device->verbs->query_gid(device->context, device->port, device->gid_index, &gid))
		return;
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		gid = device->gid;
	if (port.lid == device->port_attr.lid && memcmp(&gid, &device->gid, sizeof gid) == 0)
		return;
	device->port_attr = port;
	device->gid = gid;
	log_line(server->logger, LOG_LEVEL_NOTICE, "device %s has a new address: published",
		 device->name);
	server_record(server, &record);
	announce_readdress(server->announce, &record.address);
}

static void react(struct server *server, unsigned what, uint32_t qpn, uint64_t now_ms)
{
	struct connection *connection =
		what & (EVENT_QP | EVENT_READY) ? connection_find(&server->clients, qpn) : NULL;

	if (connection && what & EVENT_READY) {
		connection->ready = true;
		connection->client->was_ready = true;
	}
	if (connection && what & EVENT_QP) {
		connection->broken = true;
		server->control.attention = true;
	}
	if (what & EVENT_ADDRESS)
		refresh_address(server);
	if (what & EVENT_LIMIT)
		control_on_limit(&server->control, now_ms);
	if (what & EVENT_GONE)
		server->failed = true;
}

void server_on_async(struct server *server, uint64_t now_ms)
{
	struct ibv_async_event event;
	enum ibv_event_type type;
	uint32_t qpn = 0;

	if (server->device->verbs->get_async_event(server->device->context, &event) != 0)
		return; /* non-blocking: nothing there */
	type = event.event_type;
	if (is_of_qp(type))
		qpn = event.element.qp->qp_num;
	server->device->verbs->ack_async_event(&event);
	log_event(server, type, qpn);
	react(server, reaction(type), qpn, now_ms);
}
