/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node's side of the rendezvous, in a thread of its own because memcached calls block:
 * renews the node's record and the shard map, watches the ticket counter, passes requests to the
 * main thread and writes its answers, withdraws the record at the end. While memcached is away it
 * keeps trying; running sessions notice nothing.
 *
 * Threads: the calls below are the main thread's. What goes between the threads goes through two
 * bounded rings under one mutex; an eventfd wakes each side.
 */
#ifndef FARKV_MN_ANNOUNCE_H
#define FARKV_MN_ANNOUNCE_H

#include "fabric/cluster.h"
#include "layout/record.h"

#include <stdbool.h>
#include <stdint.h>

enum announce_kind {
	ANNOUNCE_CONNECT, /* a request: give it to announce_answer */
	ANNOUNCE_READY,	  /* the client of this queue pair is ready */
	ANNOUNCE_EXPIRED, /* it has not become ready in time */
};

struct announce_event {
	enum announce_kind kind;
	uint64_t ticket;
	uint32_t qpn;			/* READY, EXPIRED */
	struct connect_request request; /* CONNECT */
};

struct announce;

/*
 * Asks memcached for the ticket counter, so a memcached that cannot be reached is known before any
 * memory is taken. The rendezvous is borrowed until announce_destroy, and belongs to the thread
 * from announce_start on. -EINVAL the cluster's name or secret; -ENOMEM; and as rendezvous.h.
 * Logged.
 */
int announce_create(const char *cluster, const char *secret_file, uint32_t mn_id,
		    struct rendezvous *rendezvous, const struct logger *logger,
		    struct announce **announce);
const struct seal *announce_seal(const struct announce *announce);
/*
 * Publishes and starts the thread. predecessor: an incarnation known to be dead, whose record may
 * still be there; 0 = none. *owns_shards as cluster_join_map. As rendezvous.h, -EAGAIN; logged.
 */
int announce_start(struct announce *announce, const struct mn_record *record, uint64_t predecessor,
		   bool *owns_shards);
/* Readable when announce_take has something. */
int announce_fd(const struct announce *announce);
/* False: nothing. */
bool announce_take(struct announce *announce, struct announce_event *event);
/* Answers a CONNECT, exactly once. */
void announce_answer(struct announce *announce, uint64_t ticket,
		     const struct connect_response *response);
/* The node's address has changed: publish that. */
void announce_readdress(struct announce *announce, const struct endpoint *address);
/* Withdraws the record, bounded also when memcached does not answer; ends the thread. */
void announce_stop(struct announce *announce);
void announce_destroy(struct announce *announce); /* stops first; accepts NULL */

#endif
