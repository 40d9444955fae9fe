/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/cluster.h"

#include "fabric/cluster_map.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static char log_text[16384];

static void keep_line(int level, const char *line, void *arg)
{
	size_t at = strlen(log_text);

	(void)level;
	(void)arg;
	snprintf(log_text + at, sizeof log_text - at, "%s\n", line);
}

static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };

struct place {
	struct rendezvous_twin *twin;
	struct rendezvous *rendezvous;
	struct cluster cluster;
};

static void open_end(struct place *place, struct rendezvous_twin *twin, const char *secret)
{
	place->twin = twin;
	cr_assert_eq(rendezvous_twin_open(twin, &place->rendezvous), 0);
	cr_assert_eq(cluster_init(&place->cluster, "test", place->rendezvous, secret, &logger), 0);
}

static void open_place(struct place *place)
{
	log_text[0] = 0;
	open_end(place, rendezvous_twin_create(), NULL);
}

static void close_place(struct place *place)
{
	cluster_wipe(&place->cluster);
	rendezvous_close(place->rendezvous);
	rendezvous_twin_destroy(place->twin);
}

static struct mn_record mn(uint32_t id)
{
	return (struct mn_record){ .mn_id = id, .incarnation = 100 + id,
				   .cluster_id = XXH3_64bits("test", 4), .region_bytes = 4096 };
}

static uint32_t owned(const struct shard_map *map, uint32_t mn_id)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SHARD_COUNT; i++)
		count += map->owner[i] == mn_id;
	return count;
}

Test(cluster, names_are_checked_before_anything_is_sent)
{
	char name[300];
	struct rendezvous_twin *twin = rendezvous_twin_create();
	struct rendezvous *rendezvous;
	struct cluster cluster;

	memset(name, 'n', sizeof name);
	name[CLUSTER_NAME_MAX] = 0;
	cr_assert_eq(cluster_check_name(name, &logger), 0);
	name[CLUSTER_NAME_MAX] = 'n';
	for (unsigned length = CLUSTER_NAME_MAX + 1; length < 260; length++) {
		char saved = name[length];

		name[length] = 0;
		cr_assert_eq(cluster_check_name(name, &logger), -EINVAL);
		name[length] = saved;
	}
	cr_assert_eq(cluster_check_name("", &logger), -EINVAL);
	cr_assert_eq(cluster_check_name(NULL, &logger), -EINVAL);
	cr_assert_eq(cluster_check_name("a b", &logger), -EINVAL);
	cr_assert_eq(cluster_check_name("a\nb", &logger), -EINVAL);
	cr_assert_eq(cluster_check_name("a:b", &logger), -EINVAL);
	cr_assert_eq(cluster_check_name("\303\274", &logger), -EINVAL);
	cr_assert_eq(rendezvous_twin_open(twin, &rendezvous), 0);
	cr_assert_eq(cluster_init(&cluster, "a b", rendezvous, NULL, &logger), -EINVAL);
	rendezvous_close(rendezvous);
	rendezvous_twin_destroy(twin);
}

Test(cluster, the_longest_name_has_room_for_every_key)
{
	char name[CLUSTER_NAME_MAX + 1];
	struct place p;

	open_place(&p);
	memset(name, 'n', CLUSTER_NAME_MAX);
	name[CLUSTER_NAME_MAX] = 0;
	cr_assert_eq(cluster_init(&p.cluster, name, p.rendezvous, NULL, &logger), 0);
	cr_assert_eq(cluster_write_ready(&p.cluster, UINT32_MAX, UINT64_MAX), 0);
	cr_assert(cluster_is_ready(&p.cluster, UINT32_MAX, UINT64_MAX));
	cr_assert_not(cluster_is_ready(&p.cluster, UINT32_MAX, UINT64_MAX - 1),
		      "keys that differ in their last digit are not cut to one");
	close_place(&p);
}

Test(cluster, mn_record_comes_goes_and_expires)
{
	struct place p;
	struct mn_record in = mn(3), out;

	open_place(&p);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -ENOENT);
	cr_assert_eq(cluster_publish_mn(&p.cluster, &in), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), 0);
	cr_assert_eq(out.incarnation, 103);
	cr_assert_eq(cluster_withdraw_mn(&p.cluster, 3, 999), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), 0, "a successor's record is left alone");
	cr_assert_eq(cluster_withdraw_mn(&p.cluster, 3, 103), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -ENOENT);
	cr_assert_eq(cluster_withdraw_mn(&p.cluster, 3, 103), 0);
	cr_assert_eq(cluster_publish_mn(&p.cluster, &in), 0);
	rendezvous_twin_advance(p.twin, CLUSTER_RECORD_TTL_S);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -ENOENT);
	close_place(&p);
}

Test(cluster, the_record_of_another_cluster_or_node_is_refused)
{
	struct place p;
	struct mn_record in = mn(3), out;
	uint8_t bytes[RECORD_BYTES_MAX];
	int length;

	open_place(&p);
	in.cluster_id++;
	cr_assert_eq(cluster_publish_mn(&p.cluster, &in), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -EBADMSG);
	in = mn(4);
	length = mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:mn:3", bytes, (size_t)length, 0), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -EBADMSG);
	close_place(&p);
}

Test(cluster, damage_and_other_versions_are_named)
{
	struct place p;
	struct mn_record in = mn(3), out;
	static char big[RENDEZVOUS_VALUE_MAX];
	uint8_t bytes[RECORD_BYTES_MAX];
	size_t length;

	open_place(&p);
	length = (size_t)mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:mn:3", bytes, length - 1, 0), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -EBADMSG);
	cr_assert(strstr(log_text, "farkv:test:mn:3 is damaged"), "%s", log_text);
	bytes[4] = 42;
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:mn:3", bytes, length, 0), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -EPROTONOSUPPORT);
	cr_assert(strstr(log_text, "record version 42, this program knows version 1"), "%s", log_text);
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:mn:3", big, sizeof big, 0), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 3, &out), -EBADMSG);
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:map", "junk", 4, 0), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, true, &(struct shard_map){ 0 }), -EBADMSG);
	close_place(&p);
}

Test(cluster, a_map_of_another_version_is_not_replaced)
{
	static struct shard_map map = { 0 };
	struct place p;
	uint8_t bytes[RECORD_BYTES_MAX], now[RECORD_BYTES_MAX];
	size_t length;
	bool owns;

	open_place(&p);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &map, &owns), 0);
	cr_assert_eq(rendezvous_get(p.rendezvous, "farkv:test:map", bytes, sizeof bytes, &length, NULL), 0);
	bytes[4] = 2;
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:map", bytes, length, 0), 0);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &map, &owns), -EPROTONOSUPPORT);
	cr_assert_eq(rendezvous_get(p.rendezvous, "farkv:test:map", now, sizeof now, &length, NULL), 0);
	cr_assert_arr_eq(bytes, now, length);
	close_place(&p);
}

Test(cluster, tickets_count_from_one)
{
	struct place p;
	uint64_t ticket = 99;

	open_place(&p);
	cr_assert_eq(cluster_read_tickets(&p.cluster, 1, &ticket), 0);
	cr_assert_eq(ticket, 0);
	for (uint64_t i = 1; i <= 11; i++) {
		cr_assert_eq(cluster_take_ticket(&p.cluster, 1, &ticket), 0);
		cr_assert_eq(ticket, i);
	}
	cr_assert_eq(cluster_read_tickets(&p.cluster, 1, &ticket), 0);
	cr_assert_eq(ticket, 11);
	cr_assert_eq(cluster_read_tickets(&p.cluster, 2, &ticket), 0);
	cr_assert_eq(ticket, 0);
	cr_assert_eq(rendezvous_set(p.rendezvous, "farkv:test:mn:1:tickets", "12 ", 3, 0), 0);
	cr_assert_eq(cluster_read_tickets(&p.cluster, 1, &ticket), 0);
	cr_assert_eq(ticket, 12);
	static const char *const bad[] = { "", "x", "1x", "-1", "18446744073709551616", "1 2",
					   "000000000000000000000000001" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		rendezvous_set(p.rendezvous, "farkv:test:mn:1:tickets", bad[i], strlen(bad[i]), 0);
		cr_assert_eq(cluster_read_tickets(&p.cluster, 1, &ticket), -EBADMSG, "%s", bad[i]);
	}
	close_place(&p);
}

Test(cluster, a_hand_shake_passes_its_records)
{
	struct place p;
	struct connect_request request = { .nonce = 1, .incarnation = 2, .pid = 3 }, request_back;
	struct connect_response response = { .nonce = 1, .status = CONNECT_REFUSED, .reason = "why" },
				response_back;

	open_place(&p);
	cr_assert_eq(cluster_read_request(&p.cluster, 1, 5, &request_back), -ENOENT);
	cr_assert_eq(cluster_write_request(&p.cluster, 1, 5, &request), 0);
	cr_assert_eq(cluster_read_request(&p.cluster, 1, 5, &request_back), 0);
	cr_assert_eq(request_back.pid, 3);
	cr_assert_eq(cluster_read_response(&p.cluster, 1, 5, &response_back), -ENOENT);
	cr_assert_eq(cluster_write_response(&p.cluster, 1, 5, &response), 0);
	cr_assert_eq(cluster_read_response(&p.cluster, 1, 5, &response_back), 0);
	cr_assert_str_eq(response_back.reason, "why");
	cr_assert_not(cluster_is_ready(&p.cluster, 1, 5));
	cr_assert_eq(cluster_write_ready(&p.cluster, 1, 5), 0);
	cr_assert(cluster_is_ready(&p.cluster, 1, 5));
	rendezvous_twin_advance(p.twin, CLUSTER_TICKET_TTL_S);
	cr_assert_not(cluster_is_ready(&p.cluster, 1, 5));
	cr_assert_eq(cluster_read_request(&p.cluster, 1, 5, &request_back), -ENOENT);
	rendezvous_twin_fail(p.twin, -ETIMEDOUT);
	cr_assert_eq(cluster_read_request(&p.cluster, 1, 5, &request_back), -ETIMEDOUT);
	cr_assert_eq(cluster_read_mn(&p.cluster, 1, &(struct mn_record){ 0 }), -ETIMEDOUT);
	cr_assert_eq(cluster_read_tickets(&p.cluster, 1, &(uint64_t){ 0 }), -ETIMEDOUT);
	close_place(&p);
}

Test(cluster, members_share_the_shards_whatever_the_order)
{
	static struct shard_map a = { 0 }, b = { 0 }, c = { 0 }, read;
	struct place p, q;
	bool owns;

	open_place(&p);
	cr_assert_eq(cluster_read_map(&p.cluster, true, &read), -ENOENT);
	cr_assert_eq(cluster_join_map(&p.cluster, 7, &a, &owns), 0);
	cr_assert(owns);
	cr_assert_eq(owned(&a, 7), SHARD_COUNT);
	cr_assert_eq(a.epoch, 1);
	cr_assert_eq(cluster_join_map(&p.cluster, 2, &b, &owns), 0);
	cr_assert(owns);
	cr_assert_eq(b.epoch, 2);
	cr_assert_gt(owned(&b, 2), SHARD_COUNT / 2 - 300);
	cr_assert_gt(owned(&b, 7), SHARD_COUNT / 2 - 300);
	cr_assert_eq(b.members[0], 2);
	cr_assert_eq(cluster_join_map(&p.cluster, 7, &a, &owns), 0);
	cr_assert_eq(a.epoch, 2, "renewing changes nothing");
	cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), 0);
	cr_assert_eq(read.sealed, 0);

	open_place(&q);
	cr_assert_eq(cluster_join_map(&q.cluster, 2, &c, &owns), 0);
	cr_assert_eq(cluster_join_map(&q.cluster, 7, &c, &owns), 0);
	cr_assert_eq(memcmp(&c, &b, sizeof c), 0);
	close_place(&q);
	close_place(&p);
}

Test(cluster, a_sealed_map_takes_no_new_member_and_knows_its_old_ones)
{
	static struct shard_map a = { 0 }, late = { 0 }, back = { 0 }, read;
	struct place p;
	bool owns;

	open_place(&p);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &a, &owns), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, true, &read), 0);
	cr_assert_eq(read.sealed, 1);
	cr_assert_eq(read.epoch, 2);
	cr_assert_eq(cluster_read_map(&p.cluster, true, &read), 0);
	cr_assert_eq(read.epoch, 2, "sealed once");
	cr_assert_eq(cluster_join_map(&p.cluster, 2, &late, &owns), 0);
	cr_assert_not(owns);
	cr_assert_eq(owned(&late, 1), SHARD_COUNT);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &back, &owns), 0);
	cr_assert(owns);
	cr_assert_eq(back.sealed, 1);
	close_place(&p);
}

Test(cluster, only_members_keep_the_map_alive)
{
	static struct shard_map a = { 0 }, late = { 0 }, read;
	struct place p;
	bool owns;

	open_place(&p);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &a, &owns), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, true, &read), 0);
	rendezvous_twin_advance(p.twin, CLUSTER_RECORD_TTL_S - 1);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &a, &owns), 0);
	rendezvous_twin_advance(p.twin, CLUSTER_RECORD_TTL_S - 1);
	cr_assert_eq(cluster_join_map(&p.cluster, 2, &late, &owns), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), 0);
	rendezvous_twin_advance(p.twin, 1);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), -ENOENT);
	close_place(&p);
}

Test(cluster, a_member_puts_back_what_memcached_lost)
{
	static struct shard_map a = { 0 }, b = { 0 }, fresh = { 0 }, read;
	struct place p;
	bool owns;

	open_place(&p);
	cluster_join_map(&p.cluster, 1, &a, &owns);
	cluster_join_map(&p.cluster, 2, &b, &owns);
	cluster_read_map(&p.cluster, true, &read);
	cluster_join_map(&p.cluster, 1, &a, &owns);
	cr_assert_eq(a.epoch, 3);
	rendezvous_delete(p.rendezvous, "farkv:test:map");
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &a, &owns), 0);
	cr_assert(owns);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), 0);
	cr_assert_eq(memcmp(&read, &a, sizeof a), 0);

	rendezvous_delete(p.rendezvous, "farkv:test:map");
	for (uint32_t id = 10; id < 16; id++) {
		memset(&fresh, 0, sizeof fresh);
		cr_assert_eq(cluster_join_map(&p.cluster, id, &fresh, &owns), 0);
		cr_assert(owns);
	}
	cr_assert_gt(fresh.epoch, a.epoch);
	cr_assert_eq(cluster_join_map(&p.cluster, 1, &a, &owns), 0);
	cr_assert(owns, "what clients have used beats what came first");
	cr_assert_eq(a.member_count, 2);
	cr_assert_gt(a.epoch, fresh.epoch);
	cr_assert_eq(cluster_join_map(&p.cluster, 15, &fresh, &owns), 0);
	cr_assert_not(owns);
	cr_assert_eq(fresh.epoch, a.epoch);
	close_place(&p);
}

Test(cluster, leaving_an_unsealed_map_gives_the_shards_to_others_and_the_last_takes_it_away)
{
	static struct shard_map a = { 0 }, b = { 0 }, read;
	struct place p;
	struct mn_record one = mn(1), two = mn(2);
	bool owns;

	open_place(&p);
	cluster_publish_mn(&p.cluster, &one);
	cluster_join_map(&p.cluster, 1, &a, &owns);
	cluster_publish_mn(&p.cluster, &two);
	cluster_join_map(&p.cluster, 2, &b, &owns);
	cr_assert_eq(cluster_withdraw_mn(&p.cluster, 1, 101), 0);
	cr_assert_eq(cluster_leave_map(&p.cluster, 1), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), 0);
	cr_assert_eq(read.member_count, 1);
	cr_assert_eq(owned(&read, 2), SHARD_COUNT);
	cr_assert_eq(cluster_withdraw_mn(&p.cluster, 2, 102), 0);
	cr_assert_eq(cluster_leave_map(&p.cluster, 2), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), -ENOENT);
	cr_assert_eq(cluster_leave_map(&p.cluster, 2), 0);
	close_place(&p);
}

Test(cluster, a_sealed_map_keeps_the_place_of_who_left_while_others_live)
{
	static struct shard_map a = { 0 }, b = { 0 }, read;
	struct place p;
	struct mn_record two = mn(2);
	bool owns;

	open_place(&p);
	cluster_join_map(&p.cluster, 1, &a, &owns);
	cluster_publish_mn(&p.cluster, &two);
	cluster_join_map(&p.cluster, 2, &b, &owns);
	cluster_read_map(&p.cluster, true, &read);
	cr_assert_eq(cluster_leave_map(&p.cluster, 1), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), 0);
	cr_assert_eq(read.member_count, 2);
	cluster_withdraw_mn(&p.cluster, 2, 102);
	cr_assert_eq(cluster_leave_map(&p.cluster, 2), 0);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &read), -ENOENT);
	close_place(&p);
}

enum { JOINERS = 12 };

struct joiner {
	pthread_t thread;
	struct place place;
	uint32_t id;
	struct shard_map map;
	int rc;
	bool owns;
};

static void *join_thread(void *arg)
{
	struct joiner *joiner = arg;

	joiner->rc = cluster_join_map(&joiner->place.cluster, joiner->id, &joiner->map, &joiner->owns);
	return NULL;
}

Test(cluster, many_join_at_once_and_a_client_seals_meanwhile)
{
	static struct joiner joiners[JOINERS];
	static struct shard_map sealed, last;
	struct place p;
	bool owns;

	open_place(&p);
	cluster_join_map(&p.cluster, 1000, &last, &owns);
	for (unsigned i = 0; i < JOINERS; i++) {
		joiners[i].id = i;
		open_end(&joiners[i].place, p.twin, NULL);
		pthread_create(&joiners[i].thread, NULL, join_thread, &joiners[i]);
	}
	cr_assert_eq(cluster_read_map(&p.cluster, true, &sealed), 0);
	for (unsigned i = 0; i < JOINERS; i++)
		pthread_join(joiners[i].thread, NULL);
	cr_assert_eq(cluster_read_map(&p.cluster, false, &last), 0);
	cr_assert_eq(memcmp(&sealed, &last, sizeof last), 0, "nothing has changed after the seal");
	for (unsigned i = 0; i < JOINERS; i++) {
		cr_assert_eq(joiners[i].rc, 0);
		cr_assert_eq(joiners[i].owns, map_has_member(&last, i));
		rendezvous_close(joiners[i].place.rendezvous);
	}
	close_place(&p);
}

Test(cluster, a_secret_shuts_out_who_has_none_or_another)
{
	char path[] = "/tmp/farkv-secret-XXXXXX", other[] = "/tmp/farkv-secret-XXXXXX", hex[65];
	struct place p, plain, stranger;
	struct mn_record in = mn(1), out;
	int fd = mkstemp(path), fd2 = mkstemp(other);

	memset(hex, 'a', 64);
	cr_assert_eq(write(fd, hex, 64), 64);
	memset(hex, 'b', 64);
	cr_assert_eq(write(fd2, hex, 64), 64);
	log_text[0] = 0;
	open_end(&p, rendezvous_twin_create(), path);
	open_end(&plain, p.twin, NULL);
	open_end(&stranger, p.twin, other);
	cr_assert_eq(cluster_publish_mn(&p.cluster, &in), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 1, &out), 0);
	cr_assert_eq(out.incarnation, in.incarnation);
	cr_assert_eq(cluster_read_mn(&plain.cluster, 1, &out), -ENOKEY);
	cr_assert_eq(cluster_read_mn(&stranger.cluster, 1, &out), -EBADMSG);
	cr_assert_eq(cluster_publish_mn(&plain.cluster, &in), 0);
	cr_assert_eq(cluster_read_mn(&p.cluster, 1, &out), -EPERM);
	cr_assert_eq(cluster_write_ready(&plain.cluster, 1, 1), 0);
	cr_assert_not(cluster_is_ready(&p.cluster, 1, 1));
	fchmod(fd, 0640);
	cr_assert_eq(cluster_init(&stranger.cluster, "test", stranger.rendezvous, path, &logger), -EACCES);
	cr_assert(strstr(log_text, "chmod 600"), "%s", log_text);
	rendezvous_close(plain.rendezvous);
	rendezvous_close(stranger.rendezvous);
	close_place(&p);
	unlink(path);
	unlink(other);
	close(fd);
	close(fd2);
}
