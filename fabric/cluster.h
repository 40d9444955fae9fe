/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster keeps in the rendezvous: who the memory nodes are, which shard lives where,
 * and the hand-shake that connects a client's queue pair to a memory node's.
 *
 * Keys (P = farkv:<cluster>:):
 *   P map                     the shard map (struct shard_map)
 *   P mn:<id>                 struct mn_record, renewed by the MN every third of its TTL
 *   P mn:<id>:tickets         counter
 *   P mn:<id>:req:<ticket>    struct connect_request, by the client
 *   P mn:<id>:rsp:<ticket>    struct connect_response, by the MN
 *   P mn:<id>:ready:<ticket>  the client's QP is in RTS (the second, readiness step)
 *
 * The map: a starting MN adds itself as a member and takes its shards by rendezvous hashing, unless a
 * client has already opened the cluster (the map is then `sealed`: data would be out of reach); then it
 * owns no shard and says so. A known member comes back to its own shards. MNs remember the
 * map and put it back when memcached has lost it.
 *
 * All records pass through seal.h. Errors as in rendezvous.h, and: -ENOENT not there; -EBADMSG, -EPERM, -ENOKEY
 * as in seal.h; -EPROTONOSUPPORT another record version (both are logged); -EBADMSG
 * malformed; -EBUSY the map could not be changed for contention; -ENOSPC a member more than there can be.
 */
#ifndef FARKV_FABRIC_CLUSTER_H
#define FARKV_FABRIC_CLUSTER_H

#include "fabric/rendezvous.h"
#include "fabric/seal.h"
#include "layout/record.h"

#include <stdbool.h>

enum {
	CLUSTER_NAME_MAX = 180,
	CLUSTER_RECORD_TTL_S = 15,   /* of mn records and the map */
	CLUSTER_TICKET_TTL_S = 60,
};

struct cluster {
	struct rendezvous *rendezvous; /* borrowed */
	struct seal seal;
	uint64_t id;                   /* XXH3_64 of the name, as in struct mn_record */
	const struct logger *logger;   /* borrowed */
	char name[CLUSTER_NAME_MAX + 1];
};

/* 0 or -EINVAL with the reason logged: 1..180 bytes of 33..126 without ':'. Checked before anything is sent. */
int cluster_check_name(const char *name, const struct logger *logger);
int cluster_init(struct cluster *cluster, const char *name, struct rendezvous *rendezvous,
		 const char *secret_file, const struct logger *logger);
/* Zeroes the secret; accepts NULL. The rendezvous stays the caller's. */
void cluster_wipe(struct cluster *cluster);

/* Memory node's side. */
int cluster_publish_mn(struct cluster *cluster, const struct mn_record *record);
int cluster_withdraw_mn(struct cluster *cluster, uint32_t mn_id, uint64_t incarnation);
/*
 * Joins the map, or renews it. *map: in, the last map known (epoch 0 = none), put back where memcached has none; out,
 * the map in force. *owns_shards: whether this MN is its shards' owner. Bounded retries on contention.
 */
int cluster_join_map(struct cluster *cluster, uint32_t mn_id, struct shard_map *map, bool *owns_shards);
/*
 * Leaves, after withdrawing its record: a map not sealed forgets this MN, a sealed one keeps its place for it; when no
 * other member has a live record any more, the map goes too.
 */
int cluster_leave_map(struct cluster *cluster, uint32_t mn_id);
/* The newest ticket handed out; 0 = none yet. */
int cluster_read_tickets(struct cluster *cluster, uint32_t mn_id, uint64_t *ticket);
int cluster_read_request(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			 struct connect_request *request);
int cluster_write_response(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			   const struct connect_response *response);
bool cluster_is_ready(struct cluster *cluster, uint32_t mn_id, uint64_t ticket);

/* Client's side. cluster_read_map seals the map where `seal` is set. */
int cluster_read_map(struct cluster *cluster, bool seal, struct shard_map *map);
int cluster_read_mn(struct cluster *cluster, uint32_t mn_id, struct mn_record *record);
int cluster_take_ticket(struct cluster *cluster, uint32_t mn_id, uint64_t *ticket);
int cluster_write_request(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			  const struct connect_request *request);
int cluster_read_response(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			  struct connect_response *response);
int cluster_write_ready(struct cluster *cluster, uint32_t mn_id, uint64_t ticket);

#endif
