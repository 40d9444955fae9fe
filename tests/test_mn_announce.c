/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous thread against a client that is played by the test, through an in-memory
 * rendezvous. */
#include "mn/announce.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <xxhash.h>

enum { WAIT_MS = 5000, MN = 4, INCARNATION = 99 };

static struct rendezvous_twin *twin;
static struct rendezvous *node_side, *client_side;
static struct cluster client;
static struct announce *announce;
static const struct logger quiet = {.level = LOG_LEVEL_ERROR};

static struct mn_record record_of(void)
{
	struct mn_record record = {.mn_id = MN,
				   .layout_version = 1,
				   .incarnation = INCARNATION,
				   .cluster_id = XXH3_64bits("test", 4),
				   .region_base = 4096,
				   .region_bytes = 8 << 20,
				   .rkey = 7,
				   .published_ms = 1};

	record.address = (struct endpoint){.link_layer = 2,
					   .port = 1,
					   .mtu = 3,
					   .max_dest_rd_atomic = 16,
					   .max_rd_atomic = 16,
					   .is_softnic = 1};
	return record;
}

static void set_up(void)
{
	twin = rendezvous_twin_create();
	cr_assert(twin);
	cr_assert_eq(rendezvous_twin_open(twin, &node_side), 0);
	cr_assert_eq(rendezvous_twin_open(twin, &client_side), 0);
	cr_assert_eq(cluster_init(&client, "test", client_side, NULL, &quiet), 0);
	cr_assert_eq(announce_create("test", NULL, MN, node_side, &quiet, &announce), 0);
}

static void tear_down(void)
{
	announce_destroy(announce);
	rendezvous_close(node_side);
	rendezvous_close(client_side);
	rendezvous_twin_destroy(twin);
}

TestSuite(mn_announce, .init = set_up, .fini = tear_down, .timeout = 60);

static void start(void)
{
	struct mn_record record = record_of();
	bool owns_shards = false;

	cr_assert_eq(announce_start(announce, &record, 0, &owns_shards), 0);
	cr_assert(owns_shards);
}

static struct announce_event await_event(void)
{
	struct pollfd wait = {.fd = announce_fd(announce), .events = POLLIN};
	struct announce_event event;

	while (!announce_take(announce, &event))
		cr_assert_eq(poll(&wait, 1, WAIT_MS), 1, "nothing came");
	return event;
}

static struct connect_response await_response(uint64_t ticket)
{
	struct connect_response response;

	for (unsigned i = 0; cluster_read_response(&client, MN, ticket, &response); i++) {
		cr_assert_lt(i, WAIT_MS);
		poll(NULL, 0, 1);
	}
	return response;
}

static struct connect_request request_of(uint64_t nonce)
{
	struct mn_record record = record_of();

	return (struct connect_request){.endpoint = record.address,
					.nonce = nonce,
					.incarnation = INCARNATION,
					.pid = 1,
					.sq_depth = 64};
}

Test(mn_announce, publishes_at_start_and_withdraws_at_the_end)
{
	struct mn_record found;
	struct shard_map map;

	cr_assert_eq(cluster_read_mn(&client, MN, &found), -ENOENT);
	start();
	cr_assert_eq(cluster_read_mn(&client, MN, &found), 0);
	cr_assert(found.incarnation == INCARNATION && found.rkey == 7 && found.published_ms > 1);
	cr_assert_eq(cluster_read_map(&client, false, &map), 0);
	cr_assert(map.member_count == 1 && map.members[0] == MN && map.owner[0] == MN);
	announce_stop(announce);
	cr_assert_eq(cluster_read_mn(&client, MN, &found), -ENOENT);
	cr_assert_eq(cluster_read_map(&client, false, &map), -ENOENT);
}

Test(mn_announce, a_hand_shake_runs_from_ticket_to_ready)
{
	struct connect_request request = request_of(1234);
	struct connect_response response = {.nonce = 1234,
					    .incarnation = INCARNATION,
					    .client_id = 3,
					    .sq_depth = 64},
				got;
	struct announce_event event;
	uint64_t ticket;

	start();
	cr_assert_eq(cluster_take_ticket(&client, MN, &ticket), 0);
	poll(NULL, 0, 50); /* the ticket is seen before its request is there */
	cr_assert_eq(cluster_write_request(&client, MN, ticket, &request), 0);
	event = await_event();
	cr_assert(event.kind == ANNOUNCE_CONNECT && event.ticket == ticket &&
		  event.request.nonce == 1234);
	response.endpoint = request.endpoint;
	response.endpoint.qpn = 77;
	announce_answer(announce, ticket, &response);
	got = await_response(ticket);
	cr_assert(got.nonce == 1234 && got.client_id == 3 && got.endpoint.qpn == 77);
	cr_assert_eq(cluster_write_ready(&client, MN, ticket), 0);
	event = await_event();
	cr_assert(event.kind == ANNOUNCE_READY && event.qpn == 77 && event.ticket == ticket);
}

Test(mn_announce, tickets_from_before_the_start_are_not_served)
{
	struct connect_request request = request_of(1);
	struct announce_event event;
	uint64_t old, new_ticket;

	announce_destroy(announce);
	cr_assert_eq(cluster_take_ticket(&client, MN, &old), 0);
	cr_assert_eq(cluster_write_request(&client, MN, old, &request), 0);
	cr_assert_eq(announce_create("test", NULL, MN, node_side, &quiet, &announce), 0);
	start();
	request.nonce = 2;
	cr_assert_eq(cluster_take_ticket(&client, MN, &new_ticket), 0);
	cr_assert_eq(cluster_write_request(&client, MN, new_ticket, &request), 0);
	event = await_event();
	cr_assert(event.ticket == new_ticket && event.request.nonce == 2);
}

Test(mn_announce, many_at_once_are_all_served)
{
	enum { MANY = 100 };
	bool seen[MANY] = {false};

	start();
	for (unsigned i = 0; i < MANY; i++) {
		struct connect_request request = request_of(i + 1);
		uint64_t ticket;

		cr_assert_eq(cluster_take_ticket(&client, MN, &ticket), 0);
		cr_assert_eq(cluster_write_request(&client, MN, ticket, &request), 0);
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct announce_event event = await_event();
		struct connect_response no = {
			.status = CONNECT_REFUSED, .incarnation = INCARNATION, .reason = "test"};

		cr_assert(event.kind == ANNOUNCE_CONNECT && event.request.nonce <= MANY &&
			  !seen[event.request.nonce - 1]);
		seen[event.request.nonce - 1] = true;
		no.nonce = event.request.nonce;
		no.endpoint = event.request.endpoint;
		announce_answer(announce, event.ticket, &no);
		cr_assert_eq(await_response(event.ticket).status, CONNECT_REFUSED);
	}
}

Test(mn_announce, a_new_address_is_published)
{
	struct mn_record found, record = record_of();

	start();
	record.address.lid = 321;
	announce_readdress(announce, &record.address);
	for (unsigned i = 0; i < WAIT_MS; i++) {
		cr_assert_eq(cluster_read_mn(&client, MN, &found), 0);
		if (found.address.lid == 321)
			return;
		poll(NULL, 0, 1);
	}
	cr_assert_fail("the old address is still published");
}
