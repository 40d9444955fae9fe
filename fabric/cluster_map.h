/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about the shard map, apart from where it is kept; and what cluster.c and cluster_map.c share. */
#ifndef FARKV_FABRIC_CLUSTER_MAP_H
#define FARKV_FABRIC_CLUSTER_MAP_H

#include "fabric/cluster.h"

/* Whether `mn_id` is a member. */
bool map_has_member(const struct shard_map *map, uint32_t mn_id);
/* A member more (epoch 0: the first), or one less (not the last); owners anew, the next epoch. -ENOSPC full. */
int map_add_member(struct shard_map *map, uint32_t mn_id);
void map_remove_member(struct shard_map *map, uint32_t mn_id);
/* Whether the map remembered is to replace the one found: clients have used it and not the other, or it is newer. */
bool map_supersedes(const struct shard_map *remembered, const struct shard_map *found);

/* One of P's keys; `suffix` as printf. */
struct cluster_key {
	char text[RENDEZVOUS_KEY_MAX + 1];
};

struct cluster_key cluster_key(const struct cluster *cluster, const char *suffix, ...)
	__attribute__((format(printf, 2, 3)));
/* Gets and unseals; logs what is wrong with the record. */
int cluster_get(struct cluster *cluster, const char *key, uint8_t *record, size_t capacity, size_t *length,
		uint64_t *cas);
/* Seals; out has room for RECORD_BYTES_MAX + SEAL_OVERHEAD_BYTES. encoded: what an encoder returned. */
int cluster_seal(const struct cluster *cluster, const uint8_t *record, int encoded, uint8_t *out,
		 size_t *length);
/* Logs a decoder's verdict and passes it on. */
int cluster_judge(const struct cluster *cluster, const char *key, int rc, uint32_t version);

#endif
