/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: one process's membership in a cluster, and its memory nodes. Internal.
 */
#ifndef FARKV_CN_STORE_H
#define FARKV_CN_STORE_H

#include "cn/cache.h"
#include "cn/epoch.h"
#include "cn/farkv.h"
#include "cn/heap.h"
#include "fabric/cluster.h"
#include "fabric/device.h"
#include "fabric/flow.h"
#include "layout/guard.h"
#include "layout/region.h"

#include <pthread.h>

enum {
	LOCAL_LOCKS = 4096,
	STORE_NODES_MAX = SHARD_MEMBERS_MAX,
	NONCE_MASK = (1 << GUARD_NONCE_BITS) - 1,
};

struct link;

/* Reports epochs to one memory node over a queue pair of its own, and READs for the store's set-up.
 */
struct reporter {
	struct ibv_cq *cq;
	struct qp *qp;
	struct flow flow;
	struct flow_counts counts[2];
	struct memory memory;
	struct flow_waiter waiter;
	uint64_t posted_activation, load_number;
	uint64_t next_ns; /* when the next report is due */
	bool in_flight, idling;
	bool answered; /* the good-bye */
	_Atomic bool down;
};

struct node {
	struct farkv *store;
	uint32_t index; /* in store->nodes */
	uint32_t mn_id;
	struct mn_record record;
	struct superblock super;
	uint32_t client_id;  /* ours at this memory node */
	uint32_t depth;	     /* global depth of the directory */
	uint64_t *directory; /* 2^depth words as READ */
	struct epoch epoch;
	struct reporter reporter;
	_Atomic uint32_t *local_locks; /* LOCAL_LOCKS words: 0 free, else a session's tag */
	_Atomic uint64_t *unit_owner;  /* see heap.h */
	_Atomic uint32_t nonce;
	_Atomic uint32_t next_tag; /* of heaps */
	_Atomic bool full;	   /* no fresh units are left */
	pthread_mutex_t mutex;	   /* of the two lists below */
	struct link *links;
	struct heap *spare_heaps; /* of closed sessions; linked by heap->next */
};

struct farkv {
	struct farkv_options options;
	struct logger logger;
	struct device *device;
	struct rendezvous *rendezvous;
	struct cluster cluster;
	struct shard_map map;
	struct cache *cache;
	struct node **nodes;
	uint32_t node_count;
	uint8_t node_of_shard[SHARD_COUNT]; /* index in nodes; 0xff none */
	pthread_mutex_t mutex;		    /* set-up: rendezvous, sessions */
	uint32_t session_count;
	uint32_t next_session_tag;
	struct farkv_session *sessions;
	pthread_mutex_t sessions_mutex; /* of the list */
	unsigned fork_generation;
	pthread_t helper;
	bool helper_runs;
	_Atomic bool stop;
};

/* True in a child of the process that made the object. */
bool fork_crossed(unsigned generation);
unsigned fork_generation(void);

uint64_t clock_now_ns(void);

/* Connects one queue pair to a memory node: hand-shake, readiness, bounded by the store's open
 * time-out. FARKV_E*. */
int connect_node(struct farkv *store, struct node *node, const struct qp_options *options,
		 struct qp **qp);
/* A negative errno of fabric as a farkv_error. */
int error_of_errno(int error);

/* Opens what the map names; FARKV_E*. */
int node_open(struct farkv *store, uint32_t mn_id, uint32_t index, struct node **node);
void node_close(struct node *node);

int reporter_open(struct node *node);
void reporter_close(struct node *node);
/* READs `bytes` (at most 64 KiB) at `offset` for set-up. Blocks, bounded. FARKV_E*. */
int reporter_read(struct node *node, uint64_t offset, void *into, uint32_t bytes);
/* One step: takes completions, posts what is due. Never blocks. */
void reporter_step(struct node *node, uint64_t now_ns);
/* Says goodbye to the memory node, waiting at most a second for it to be sent. */
void reporter_goodbye(struct node *node);

/* Offset of the bucket of h, and the depth under which its lines stand. False: no such segment. */
bool node_locate(const struct node *node, uint64_t h, uint64_t *bucket_offset, unsigned *depth);

#endif
