/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/clients.h"

#include "layout/bytes.h"
#include "mn/epoch.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int clients_init(struct clients *clients, uint8_t *region, const struct geometry *geometry)
{
	uint32_t count = geometry->client_count;

	assert(count >= 2 && count <= 65536);
	memset(clients, 0, sizeof *clients);
	clients->region = region;
	clients->geometry = geometry;
	clients->never_used = 1;
	clients->table = calloc(count, sizeof *clients->table);
	clients->active = calloc(count, sizeof *clients->active);
	clients->free = calloc(count, sizeof *clients->free);
	if (!clients->table || !clients->active || !clients->free) {
		clients_destroy(clients);
		return -ENOMEM;
	}
	for (uint32_t id = 0; id < count; id++)
		clients->table[id].id = (uint16_t)id;
	return 0;
}

void clients_destroy(struct clients *clients)
{
	assert(clients->connection_count == 0);
	free(clients->table);
	free(clients->active);
	free(clients->free);
	memset(clients, 0, sizeof *clients);
}

static struct client *take_id(struct clients *clients)
{
	uint32_t id;

	if (clients->never_used < clients->geometry->client_count) {
		id = clients->never_used++;
	} else if (clients->free_count) {
		id = clients->free[clients->free_head];
		clients->free_head = (clients->free_head + 1) % clients->geometry->client_count;
		clients->free_count--;
	} else {
		return NULL;
	}
	return &clients->table[id];
}

struct client *clients_add(struct clients *clients, uint32_t pid, uint64_t epoch)
{
	struct client_line line = {.report = CLIENT_IDLE, .born = epoch, .state = CLIENT_ACTIVE};
	struct client *client = take_id(clients);
	uint16_t id;

	if (!client)
		return NULL;
	assert(client->state == CLIENT_FREE && !client->connections);
	id = client->id;
	*client = (struct client){
		.id = id, .pid = pid, .state = CLIENT_ACTIVE, .active_at = clients->active_count};
	clients->active[clients->active_count++] = id;
	epoch_write_line(clients->region, clients->geometry, id, &line);
	return client;
}

struct client *clients_find(struct clients *clients, uint32_t id)
{
	struct client *client;

	if (id == 0 || id >= clients->geometry->client_count)
		return NULL;
	client = &clients->table[id];
	return client->state == CLIENT_ACTIVE && !client->fencing && !client->leave_at_ms ? client
											  : NULL;
}

void clients_remove(struct clients *clients, struct client *client, enum client_state state)
{
	uint32_t count = clients->geometry->client_count;
	uint16_t moved;

	assert(client->state == CLIENT_ACTIVE && !client->connections && state != CLIENT_ACTIVE);
	moved = clients->active[--clients->active_count];
	clients->active[client->active_at] = moved;
	clients->table[moved].active_at = client->active_at;
	client->state = state;
	if (state == CLIENT_FREE) {
		clients->free[(clients->free_head + clients->free_count) % count] = client->id;
		clients->free_count++;
	}
	epoch_write_state(clients->region, clients->geometry, client->id, state);
}

uint64_t clients_counter(const struct clients *clients, unsigned counter)
{
	const uint8_t *at = clients->region + geometry_counter(clients->geometry, counter);

	return le64toh(atomic_load_explicit((const _Atomic uint64_t *)(uintptr_t)at,
					    memory_order_relaxed));
}

static struct connection **bucket_of(struct clients *clients, uint32_t qpn)
{
	return &clients->buckets[qpn % CLIENTS_BUCKETS];
}

int connection_add(struct clients *clients, struct client *client, struct qp *qp, uint32_t qpn,
		   uint64_t ticket, struct connection **connection)
{
	struct connection **bucket = bucket_of(clients, qpn);
	struct connection *made;

	assert(!connection_find(clients, qpn));
	if (clients->connection_count >= CLIENTS_CONNECTIONS_MAX)
		return -ENOSPC;
	made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	*made = (struct connection){.qp = qp,
				    .client = client,
				    .qpn = qpn,
				    .ticket = ticket,
				    .next_of_client = client->connections,
				    .next_in_bucket = *bucket};
	*bucket = made;
	client->connections = made;
	client->connection_count++;
	clients->connection_count++;
	*connection = made;
	return 0;
}

struct connection *connection_find(struct clients *clients, uint32_t qpn)
{
	struct connection *at = *bucket_of(clients, qpn);

	while (at && at->qpn != qpn)
		at = at->next_in_bucket;
	return at;
}

void connection_remove(struct clients *clients, struct connection *connection)
{
	struct connection **at = bucket_of(clients, connection->qpn);

	while (*at != connection)
		at = &(*at)->next_in_bucket;
	*at = connection->next_in_bucket;
	at = &connection->client->connections;
	while (*at != connection)
		at = &(*at)->next_of_client;
	*at = connection->next_of_client;
	connection->client->connection_count--;
	clients->connection_count--;
	free(connection);
}
