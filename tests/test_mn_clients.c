/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/clients.h"
#include "mn/epoch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

static uint8_t *region;
static struct geometry geometry;
static struct clients clients;

static void set_up(void)
{
	cr_assert_eq(geometry_compute(REGION_BYTES_MIN, 0, &geometry), 0);
	region = aligned_alloc(4096, REGION_BYTES_MIN);
	geometry.client_count = 8; /* ids 1..7 */
	cr_assert_eq(clients_init(&clients, region, &geometry), 0);
}

static void tear_down(void)
{
	clients_destroy(&clients);
	free(region);
}

TestSuite(mn_clients, .init = set_up, .fini = tear_down);

static struct client_line line_of(const struct client *client)
{
	struct client_line line;

	epoch_read_line(region, &geometry, client->id, &line);
	return line;
}

Test(mn_clients, a_new_client_has_an_idle_active_line_before_it_knows_its_id)
{
	struct client *client = clients_add(&clients, 77, 42);
	struct client_line line = line_of(client);

	cr_assert_eq(client->id, 1);
	cr_assert(line.report == CLIENT_IDLE && line.born == 42 && line.state == CLIENT_ACTIVE);
	cr_assert_eq(clients_find(&clients, 1), client);
	clients_remove(&clients, client, CLIENT_FREE);
	cr_assert_eq(line_of(client).state, CLIENT_FREE);
}

Test(mn_clients, ids_that_are_not_connected_are_not_found)
{
	struct client *client = clients_add(&clients, 1, 1);

	cr_assert_null(clients_find(&clients, 0));
	cr_assert_null(clients_find(&clients, 2));
	cr_assert_null(clients_find(&clients, 8));
	cr_assert_null(clients_find(&clients, UINT32_MAX));
	client->leave_at_ms = 1;
	cr_assert_null(clients_find(&clients, 1), "on its way out");
	client->leave_at_ms = 0;
	clients_remove(&clients, client, CLIENT_FENCED);
	cr_assert_null(clients_find(&clients, 1));
}

Test(mn_clients, freed_ids_come_back_last_and_fenced_ones_never)
{
	struct client *made[7];

	for (unsigned i = 0; i < 7; i++) {
		made[i] = clients_add(&clients, i, 1);
		cr_assert_eq(made[i]->id, i + 1);
	}
	cr_assert_null(clients_add(&clients, 0, 1), "all ids are in use");
	clients_remove(&clients, made[4], CLIENT_FREE);
	clients_remove(&clients, made[1], CLIENT_FENCED);
	clients_remove(&clients, made[2], CLIENT_FREE);
	cr_assert_eq(clients_add(&clients, 0, 1)->id, 5);
	cr_assert_eq(clients_add(&clients, 0, 1)->id, 3);
	cr_assert_null(clients_add(&clients, 0, 1));
	cr_assert_eq(clients.active_count, 6);
	for (unsigned i = 0; i < clients.active_count; i++)
		cr_assert_eq(clients_active(&clients, i)->active_at, i);
	while (clients.active_count)
		clients_remove(&clients, clients_active(&clients, 0), CLIENT_FREE);
}

Test(mn_clients, connections_are_found_by_queue_pair_and_by_client)
{
	struct client *a = clients_add(&clients, 1, 1), *b = clients_add(&clients, 2, 1);
	struct connection *made[4];

	/* 5 and 5 + CLIENTS_BUCKETS share a bucket. */
	cr_assert_eq(connection_add(&clients, a, NULL, 5, 100, &made[0]), 0);
	cr_assert_eq(connection_add(&clients, b, NULL, 5 + CLIENTS_BUCKETS, 101, &made[1]), 0);
	cr_assert_eq(connection_add(&clients, a, NULL, 5 + 2 * CLIENTS_BUCKETS, 102, &made[2]), 0);
	cr_assert_eq(connection_add(&clients, a, NULL, 6, 103, &made[3]), 0);
	cr_assert_eq(connection_find(&clients, 5), made[0]);
	cr_assert_eq(connection_find(&clients, 5 + CLIENTS_BUCKETS), made[1]);
	cr_assert_null(connection_find(&clients, 7));
	cr_assert_null(connection_find(&clients, 5 + 3 * CLIENTS_BUCKETS));
	cr_assert(a->connection_count == 3 && b->connection_count == 1 &&
		  clients.connection_count == 4);
	connection_remove(&clients, made[1]);
	cr_assert_null(connection_find(&clients, 5 + CLIENTS_BUCKETS));
	cr_assert_eq(connection_find(&clients, 5), made[0]);
	while (a->connections)
		connection_remove(&clients, a->connections);
	cr_assert_eq(clients.connection_count, 0);
	clients_remove(&clients, a, CLIENT_FREE);
	clients_remove(&clients, b, CLIENT_FREE);
}
