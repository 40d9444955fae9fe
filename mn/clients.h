/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is connected: client ids, their lines in the region, and the queue pairs of each. A table
 * without verbs: the caller makes and fails the queue pairs.
 *
 * An id is FREE, ACTIVE or FENCED. ACTIVE -> FREE only after a clean good-bye (or when the client
 * never became ready), ACTIVE -> FENCED when it was cut off; both only when no queue pair of it can
 * execute any more. A fenced id is not given out again by this incarnation. Freed ids queue up
 * behind those never used.
 */
#ifndef FARKV_MN_CLIENTS_H
#define FARKV_MN_CLIENTS_H

#include "layout/client.h"
#include "layout/region.h"

#include <stdbool.h>
#include <stdint.h>

enum { CLIENTS_BUCKETS = 1024, CLIENTS_CONNECTIONS_MAX = 16384 };

struct qp;
struct client;

struct connection {
	struct qp *qp;	       /* owned by the caller; NULL in tests */
	struct client *client; /* borrowed */
	struct connection *next_of_client;
	struct connection *next_in_bucket;
	uint64_t ticket; /* the hand-shake that made it */
	uint32_t qpn;
	uint32_t sends;	 /* answers in flight */
	bool ready;	 /* the client has said so, by record or by message */
	bool failed;	 /* in ERR: executes nothing */
	bool broken;	 /* the device says so: to be closed */
	bool complained; /* a malformed message has been logged */
};

struct client {
	struct connection *connections;
	uint64_t leave_at_ms; /* != 0: has said good-bye, and is let go by then */
	uint64_t retry_at_ms; /* while being fenced: when to try again */
	uint64_t alone_at_ms; /* != 0: without a queue pair, and given up by then */
	uint32_t connection_count;
	uint32_t pid;
	uint32_t behind_ms;
	uint32_t active_at; /* index in clients->active */
	uint16_t id;
	enum client_state state;
	bool was_ready;
	bool fencing; /* decided, not yet done: its report still counts */
};

struct clients {
	uint8_t *region; /* borrowed */
	const struct geometry *geometry;
	struct client *table;			     /* owned; by id */
	struct connection *buckets[CLIENTS_BUCKETS]; /* by queue pair number */
	uint16_t *active;			     /* owned; ids of ACTIVE clients, dense */
	uint16_t *free;				     /* owned; a ring of freed ids */
	uint32_t active_count;
	uint32_t free_head, free_count;
	uint32_t never_used; /* the lowest id never given out */
	uint32_t connection_count;
};

/* region and geometry are borrowed until clients_destroy. -ENOMEM. */
int clients_init(struct clients *clients, uint8_t *region, const struct geometry *geometry);
void clients_destroy(struct clients *clients); /* no connections left; accepts a zeroed one */

/* A new ACTIVE client with an idle line, born at `epoch`. NULL: every id is in use or fenced. */
struct client *clients_add(struct clients *clients, uint32_t pid, uint64_t epoch);
/* The ACTIVE client with this id, not on its way out; NULL. Any id may be asked for. */
struct client *clients_find(struct clients *clients, uint32_t id);
/* To FREE or FENCED; it has no connections left. */
void clients_remove(struct clients *clients, struct client *client, enum client_state state);
static inline struct client *clients_active(struct clients *clients, uint32_t index)
{
	return &clients->table[clients->active[index]];
}

/* A counter of the region, to which clients' devices add. */
uint64_t clients_counter(const struct clients *clients, unsigned counter);

/* -ENOSPC: CLIENTS_CONNECTIONS_MAX; -ENOMEM. *connection belongs to the table. */
int connection_add(struct clients *clients, struct client *client, struct qp *qp, uint32_t qpn,
		   uint64_t ticket, struct connection **connection);
struct connection *connection_find(struct clients *clients, uint32_t qpn);
/* Forgets and frees it; the queue pair is gone already. */
void connection_remove(struct clients *clients, struct connection *connection);

#endif
