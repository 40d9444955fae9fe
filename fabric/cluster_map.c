/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shard map says where each key lives. Two different maps in use at once would split a cluster's data, so:
 *
 * - It changes by compare-and-swap only, and every change is a new epoch.
 * - Until a client has opened the cluster, no key exists, and members may come and go: owners are computed anew from the
 *   members (shard_choose), so that the order of arrival does not matter. The first client seals the map
 *   with the same compare-and-swap: either a joining MN is in the map that the client gets, or it finds
 *   the map sealed.
 * - When memcached has lost the map, a member puts back what it remembers. A newly started MN may have
 *   been faster with a map of its own: then a sealed memory beats an unsealed map, and among equals the newer epoch
 *   wins. The loser finds itself no member and joins as if it had just come.
 */
#include "fabric/cluster_map.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

enum {
	SWAP_TRIES = 64,
	BACKOFF_MS_MAX = 16,
	SEALED_BYTES_MAX = RECORD_BYTES_MAX + SEAL_OVERHEAD_BYTES,
};

static const char map_suffix[] = "map";

bool map_has_member(const struct shard_map *map, uint32_t mn_id)
{
	for (uint32_t i = 0; i < map->member_count; i++)
		if (map->members[i] == mn_id)
			return true;
	return false;
}

static void assign_owners(struct shard_map *map)
{
	for (uint32_t shard = 0; shard < SHARD_COUNT; shard++)
		map->owner[shard] = shard_choose(shard, map->members, map->member_count);
	map->epoch++;
}

int map_add_member(struct shard_map *map, uint32_t mn_id)
{
	uint32_t at = map->member_count;

	assert(!map->sealed && !map_has_member(map, mn_id));
	if (map->member_count == SHARD_MEMBERS_MAX)
		return -ENOSPC;
	for (; at > 0 && map->members[at - 1] > mn_id; at--)
		map->members[at] = map->members[at - 1];
	map->members[at] = mn_id;
	map->member_count++;
	assign_owners(map);
	return 0;
}

void map_remove_member(struct shard_map *map, uint32_t mn_id)
{
	uint32_t kept = 0;

	assert(!map->sealed && map->member_count > 1);
	for (uint32_t i = 0; i < map->member_count; i++)
		if (map->members[i] != mn_id)
			map->members[kept++] = map->members[i];
	map->member_count = kept;
	assign_owners(map);
}

bool map_supersedes(const struct shard_map *remembered, const struct shard_map *found)
{
	if (remembered->epoch == 0)
		return false;
	if (remembered->sealed != found->sealed)
		return remembered->sealed != 0;
	return remembered->epoch > found->epoch;
}

/* A short sleep of random length, so that contenders do not meet again. */
static void back_off(unsigned tries)
{
	uint32_t bound_us = 1000u << (tries < 4 ? tries : 4);
	struct timespec wait;

	_Static_assert(1 << 4 == BACKOFF_MS_MAX, "the bound of the sleep");
	wait = (struct timespec){ .tv_nsec = 1000L * (long)(200 + randombytes_uniform(bound_us)) };
	nanosleep(&wait, NULL);
}

static int get_map(struct cluster *cluster, struct shard_map *map, uint64_t *cas)
{
	struct cluster_key key = cluster_key(cluster, map_suffix);
	uint8_t bytes[RECORD_BYTES_MAX];
	uint32_t version = 0;
	size_t length;
	int rc = cluster_get(cluster, key.text, bytes, sizeof bytes, &length, cas);

	if (rc)
		return rc;
	rc = shard_map_decode(bytes, length, map, &version);
	return cluster_judge(cluster, key.text, rc, version);
}

/* The map's TTL starts anew. cas 0: adds it. -EEXIST, -EAGAIN, -ENOENT: somebody else was faster. */
static int put_map(struct cluster *cluster, const struct shard_map *map, uint64_t cas)
{
	struct cluster_key key = cluster_key(cluster, map_suffix);
	uint8_t bytes[RECORD_BYTES_MAX], sealed[SEALED_BYTES_MAX];
	size_t length;
	int rc = cluster_seal(cluster, bytes, shard_map_encode(map, bytes, sizeof bytes), sealed, &length);

	if (rc)
		return rc;
	if (cas == 0)
		return rendezvous_add(cluster->rendezvous, key.text, sealed, length, CLUSTER_RECORD_TTL_S);
	return rendezvous_swap(cluster->rendezvous, key.text, sealed, length, CLUSTER_RECORD_TTL_S, cas);
}

static bool lost_race(int rc)
{
	return rc == -EEXIST || rc == -EAGAIN || rc == -ENOENT;
}

static int give_up(const struct cluster *cluster)
{
	log_line(cluster->logger, LOG_LEVEL_ERROR, "the shard map of %s changes too fast: %d attempts to change it failed",
		 cluster->name, SWAP_TRIES);
	return -EBUSY;
}

/*
 * One attempt of an MN to make the map what it should be. *next: the map after it. -EEXIST, -EAGAIN or -ENOENT: try
 * again. A sealed map of which the MN is no member is left as it is, TTL included.
 */
static int join_once(struct cluster *cluster, uint32_t mn_id, const struct shard_map *remembered,
		     struct shard_map *next, bool *owns_shards)
{
	uint64_t cas = 0;
	int rc = get_map(cluster, next, &cas);

	if (rc == -ENOENT) {
		if (remembered->epoch == 0)
			memset(next, 0, sizeof *next);
		else
			*next = *remembered;
		cas = 0;
	} else if (rc) {
		return rc;
	} else if (map_supersedes(remembered, next)) {
		uint64_t found_epoch = next->epoch;

		*next = *remembered;
		if (next->epoch <= found_epoch)
			next->epoch = found_epoch + 1;
		log_line(cluster->logger, LOG_LEVEL_WARNING,
			 "memcached had lost the shard map of %s; epoch %" PRIu64 " is put back", cluster->name,
			 next->epoch);
	}
	*owns_shards = map_has_member(next, mn_id);
	if (!*owns_shards && next->sealed)
		/* Not ours to keep alive; but one that we remember and memcached lost goes back. */
		return cas ? 0 : put_map(cluster, next, 0);
	if (!*owns_shards) {
		rc = map_add_member(next, mn_id);
		if (rc) {
			log_line(cluster->logger, LOG_LEVEL_ERROR, "the cluster %s has %d memory nodes, the most there can be",
				 cluster->name, SHARD_MEMBERS_MAX);
			return rc;
		}
		*owns_shards = true;
	}
	return put_map(cluster, next, cas);
}

int cluster_join_map(struct cluster *cluster, uint32_t mn_id, struct shard_map *map, bool *owns_shards)
{
	struct shard_map next;

	for (unsigned tries = 0; tries < SWAP_TRIES; tries++) {
		int rc = join_once(cluster, mn_id, map, &next, owns_shards);

		if (rc == 0)
			*map = next;
		if (!lost_race(rc))
			return rc;
		back_off(tries);
	}
	return give_up(cluster);
}

/* 1: another member has a live record; 0: none has; or -errno. An unreadable record is somebody's. */
static int another_lives(struct cluster *cluster, const struct shard_map *map, uint32_t mn_id)
{
	for (uint32_t i = 0; i < map->member_count; i++) {
		struct mn_record record;
		int rc;

		if (map->members[i] == mn_id)
			continue;
		rc = cluster_read_mn(cluster, map->members[i], &record);
		if (rc == 0 || rc == -EBADMSG || rc == -EPERM || rc == -ENOKEY || rc == -EPROTONOSUPPORT)
			return 1;
		if (rc != -ENOENT)
			return rc;
	}
	return 0;
}

int cluster_leave_map(struct cluster *cluster, uint32_t mn_id)
{
	for (unsigned tries = 0; tries < SWAP_TRIES; tries++) {
		struct shard_map map;
		uint64_t cas;
		int rc = get_map(cluster, &map, &cas), lives;

		if (rc == -ENOENT || (rc == 0 && !map_has_member(&map, mn_id)))
			return 0;
		if (rc)
			return rc;
		lives = another_lives(cluster, &map, mn_id);
		if (lives < 0)
			return lives;
		if (lives == 0)
			return rendezvous_delete(cluster->rendezvous, cluster_key(cluster, map_suffix).text);
		if (map.sealed)
			return 0;
		map_remove_member(&map, mn_id);
		rc = put_map(cluster, &map, cas);
		if (!lost_race(rc))
			return rc;
		back_off(tries);
	}
	return give_up(cluster);
}

int cluster_read_map(struct cluster *cluster, bool seal, struct shard_map *map)
{
	for (unsigned tries = 0; tries < SWAP_TRIES; tries++) {
		uint64_t cas;
		int rc = get_map(cluster, map, &cas);

		if (rc || !seal || map->sealed)
			return rc;
		map->sealed = 1;
		map->epoch++;
		rc = put_map(cluster, map, cas);
		if (!lost_race(rc))
			return rc;
		back_off(tries);
	}
	return give_up(cluster);
}
