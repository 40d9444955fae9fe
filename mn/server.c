/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/server.h"

#include "mn/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { WAKE_CHANNEL, WAKE_ASYNC, WAKE_ANNOUNCE, WAKE_SIGNAL, WAKES };

static int watch(struct server *server, int fd, uint32_t what, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = what};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}

static int create_wakes(struct server *server)
{
	sigset_t signals;
	int rc;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->epoll_fd < 0 || server->signal_fd < 0)
		return -errno;
	rc = set_nonblocking(server->device->context->async_fd);
	if (!rc)
		rc = watch(server, server->control.channel->fd, WAKE_CHANNEL, EPOLLIN);
	if (!rc)
		rc = watch(server, server->device->context->async_fd, WAKE_ASYNC, EPOLLIN);
	return rc ? rc : watch(server, server->signal_fd, WAKE_SIGNAL, EPOLLIN);
}

int server_create(struct server *server, const struct mn_options *options,
		  const struct logger *logger, struct device *device, struct region *region)
{
	const struct geometry *geometry = &region->superblock.geometry;
	int rc;

	*server = (struct server){.options = options,
				  .logger = logger,
				  .device = device,
				  .region = region,
				  .epoll_fd = -1,
				  .signal_fd = -1};
	rc = memory_register(device, region->bytes, region->region_bytes,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
			     &server->memory);
	if (rc)
		return rc; /* logged there */
	server->lines = calloc(geometry->client_count, sizeof *server->lines);
	rc = server->lines ? clients_init(&server->clients, region->bytes, geometry) : -ENOMEM;
	if (rc) {
		log_line(logger, LOG_LEVEL_ERROR, "no memory for the client table");
		return rc;
	}
	rc = control_create(&server->control, device, &server->clients, logger);
	if (rc)
		return rc;
	epoch_read_load(region->bytes, geometry, &server->epoch, &server->time_ms);
	rc = create_wakes(server);
	if (rc)
		log_line(logger, LOG_LEVEL_ERROR, "cannot make the event loop: %s", strerror(-rc));
	return rc;
}

static uint8_t clamp_u8(int value)
{
	return value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

void server_record(const struct server *server, struct mn_record *record)
{
	const struct device *device = server->device;
	const struct superblock *superblock = &server->region->superblock;
	struct endpoint *address = &record->address;

	*record = (struct mn_record){
		.mn_id = server->options->id,
		.layout_version = LAYOUT_VERSION,
		.incarnation = superblock->incarnation,
		.cluster_id = superblock->cluster_id,
		.region_base = (uintptr_t)server->region->bytes,
		.region_bytes = server->region->region_bytes,
		.rkey = server->memory.mr->rkey,
		.published_ms = clock_real_ms(),
	};
	memcpy(address->gid, &device->gid, sizeof address->gid);
	address->lid = device->port_attr.lid;
	address->link_layer = device->port_attr.link_layer;
	address->port = device->port;
	address->mtu = (uint8_t)device->mtu;
	address->max_dest_rd_atomic = clamp_u8(device->attr.max_qp_rd_atom);
	address->max_rd_atomic = clamp_u8(device->attr.max_qp_init_rd_atom);
	address->is_softnic = device->softnic;
}

static void fence_if_behind(struct server *server, struct client *client,
			    const struct client_line *line)
{
	char why[160];

	if (client->behind_ms < server->options->fence_after_ms || client->fencing)
		return;
	snprintf(why, sizeof why,
		 "for %" PRIu32 " ms it has held the epoch back (it reports %" PRIu64
		 ", the epoch is %" PRIu64 ")",
		 client->behind_ms, line->report, server->epoch.epoch);
	server_fence(server, client, why);
}

/* Moves whenever a client has retired blocks or taken memory. */
static uint64_t count_changes(const struct server *server)
{
	const struct clients *clients = &server->clients;
	uint64_t sum = clients_counter(clients, COUNTER_UNITS);

	for (unsigned i = 0; i < COUNTER_STRIPES; i++)
		sum += clients_counter(clients, COUNTER_COMMITS + i);
	return sum;
}

/* The beat: epochs and the load line. Its cost is what an idle memory node costs. */
static void tick(struct server *server, uint64_t now_ms)
{
	const struct geometry *geometry = &server->region->superblock.geometry;
	struct clients *clients = &server->clients;
	uint64_t elapsed_ms = now_ms - server->ticked_at_ms, real_ms = clock_real_ms();
	struct epoch_state before = server->epoch;

	server->ticked_at_ms = now_ms;
	for (uint32_t i = 0; i < clients->active_count; i++)
		epoch_read_line(server->region->bytes, geometry, clients->active[i],
				&server->lines[i]);
	epoch_step(&server->epoch, server->lines, clients->active_count);
	if (real_ms > server->time_ms)
		server->time_ms = real_ms;
	epoch_write_load(server->region->bytes, geometry, &server->epoch, server->time_ms);
	/* Downwards, since a fenced client leaves the list; lines[] goes with the list as it was.
	 */
	for (uint32_t i = clients->active_count; i-- > 0;) {
		struct client *client = clients_active(clients, i);

		client->behind_ms = epoch_behind(client->behind_ms, &server->lines[i], before.epoch,
						 elapsed_ms);
		fence_if_behind(server, client, &server->lines[i]);
	}
	if (now_ms >= server->sweep_at_ms) {
		server->sweep_at_ms = now_ms + SERVER_SWEEP_MS;
		server_sweep(server, now_ms);
	}
	server->tick_at_ms = now_ms + pace_interval(&server->pace, count_changes(server),
						    clients->active_count, now_ms);
}

static void on_announce(struct server *server)
{
	struct connect_response response;
	struct announce_event event;

	while (announce_take(server->announce, &event)) {
		switch (event.kind) {
		case ANNOUNCE_CONNECT:
			server_connect(server, event.ticket, &event.request, &response);
			server->tick_at_ms = 0; /* a fresh line for the newcomer */
			announce_answer(server->announce, event.ticket, &response);
			break;
		case ANNOUNCE_READY:
			server_ready(server, event.qpn, event.ticket);
			break;
		case ANNOUNCE_EXPIRED:
			server_expired(server, event.qpn, event.ticket);
			break;
		}
	}
}

static void on_signal(struct server *server)
{
	struct signalfd_siginfo info;

	if (read(server->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		server->signal = (int)info.ssi_signo;
}

static void dispatch(struct server *server, uint32_t what, uint64_t now_ms)
{
	switch (what) {
	case WAKE_CHANNEL:
		control_on_channel(&server->control, now_ms);
		break;
	case WAKE_ASYNC:
		server_on_async(server, now_ms);
		break;
	case WAKE_ANNOUNCE:
		on_announce(server);
		break;
	default:
		on_signal(server);
	}
}

int server_run(struct server *server, struct announce *announce)
{
	struct epoll_event events[WAKES];
	int rc = watch(server, announce_fd(announce), WAKE_ANNOUNCE, EPOLLIN);

	server->announce = announce;
	server->ticked_at_ms = clock_ms();
	while (!rc && !server->signal && !server->failed) {
		uint64_t now_ms = clock_ms();
		int wait_ms = now_ms < server->tick_at_ms ? (int)(server->tick_at_ms - now_ms) : 0;
		int count = epoll_wait(server->epoll_fd, events, WAKES, wait_ms);

		if (count < 0 && errno != EINTR)
			rc = -errno;
		now_ms = clock_ms();
		for (int i = 0; i < count; i++)
			dispatch(server, events[i].data.u32, now_ms);
		if (now_ms >= server->tick_at_ms)
			tick(server, now_ms);
		if (server->control.attention)
			server_attend(server, now_ms);
		if (server->control.failed)
			server->failed = true;
	}
	if (rc)
		log_line(server->logger, LOG_LEVEL_ERROR, "event loop: %s", strerror(-rc));
	if (server->failed)
		log_line(server->logger, LOG_LEVEL_ERROR,
			 "device %s has failed: this memory node stops", server->device->name);
	return server->failed ? -EIO : rc;
}

void server_destroy(struct server *server)
{
	if (server->clients.table) {
		server_close_all(server);
		clients_destroy(&server->clients);
	}
	control_destroy(&server->control);
	memory_free(&server->memory);
	free(server->lines);
	if (server->signal_fd >= 0)
		close(server->signal_fd);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
}
