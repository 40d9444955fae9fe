/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the contexts of one host share: one file each, in one directory, mapped by its owner and by
 * every peer.
 *
 * Life and death. The owner holds a POSIX lock on its file, which the kernel drops when the process
 * ends, however it ends. Whoever can take that lock knows that the owner is dead, sets `dead`,
 * waits until nobody executes on the owner's memory, and unlinks the file. Mappings that peers
 * still hold stay valid.
 *
 * Executing marks. An initiator sets `executing` of its own queue pair (seq_cst), then looks at its
 * peer's state, touches the peer's memory, and clears the mark. Whoever takes a queue pair out of
 * service (ERR, RESET, destruction, deregistration, death) first stores that (seq_cst), then waits
 * until the marks of the initiators are clear. One of the two sees the other, so nothing touches
 * memory after the wait. A stopped initiator delays it, a dead one does not.
 *
 * Receive queues take messages under a robust lock; the message is complete before `pushed` grows,
 * so that an owner who dies while holding the lock leaves nothing half-done.
 */
#ifndef FARKV_SOFTNIC_SHARED_H
#define FARKV_SOFTNIC_SHARED_H

#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SOFTNIC_SLOTS = 1024, /* contexts on one host */
	SOFTNIC_QPS = 4096,   /* per context */
	SOFTNIC_MRS = 1024,
	SOFTNIC_CQS = 1024,
	SOFTNIC_RQS = 4096 + 64, /* one per queue pair, and SRQs */
	SOFTNIC_CHANNELS = 64,
	SOFTNIC_INBOX = 64,	    /* messages that have not been taken from a receive queue */
	SOFTNIC_MESSAGE_MAX = 4096, /* bytes of a SEND */
	SOFTNIC_QP_BITS = 12,
	SOFTNIC_INLINE_MAX = 512,
	SOFTNIC_SGE_MAX = 16,
	SOFTNIC_WR_MAX = 16384,
	SOFTNIC_CQE_MAX = 1 << 20,
	SOFTNIC_RD_ATOMIC_MAX = 16,
};

struct shared_qp {
	_Atomic uint32_t state;	    /* enum ibv_qp_state */
	_Atomic uint32_t executing; /* see above */
	_Atomic uint32_t dest;	    /* queue pair number of the peer */
	_Atomic uint32_t access;
	uint32_t pd, rq, recv_cq;
	uint32_t pad[9];
};

struct shared_mr {
	_Atomic uint32_t key; /* 0 = not registered */
	uint32_t access, pd;
	uint32_t pad;
	uint64_t address, length;
	uint64_t file_offset, device, inode;
	int32_t fd; /* in the owner, or -1 */
	char path[200];
};

struct shared_cq {
	_Atomic uint32_t pending; /* messages have come for it */
	_Atomic uint32_t armed;	  /* 0 no, 1 any, 2 solicited only */
	uint32_t channel;	  /* + 1; 0 = none */
	uint32_t pad[13];
};

struct shared_message {
	uint32_t bytes, opcode, imm, qp, source, solicited;
	uint8_t data[SOFTNIC_MESSAGE_MAX];
};

struct shared_rq {
	pthread_mutex_t lock;
	_Atomic uint64_t posted; /* receives ever posted */
	_Atomic uint64_t pushed; /* messages ever put in */
	_Atomic uint64_t popped;
	struct shared_message inbox[SOFTNIC_INBOX];
};

struct shared_context {
	/* The first page outlives a closed context in its own process: `dead` must lie in it. */
	uint64_t magic;
	uint32_t version, slot;
	int32_t pid;
	_Atomic uint32_t dead;
	struct shared_qp qps[SOFTNIC_QPS];
	struct shared_mr mrs[SOFTNIC_MRS];
	struct shared_cq cqs[SOFTNIC_CQS];
	struct shared_rq rqs[SOFTNIC_RQS]; /* the file is sparse */
};

static inline uint32_t qpn_slot(uint32_t qpn)
{
	return qpn >> SOFTNIC_QP_BITS;
}

static inline uint32_t qpn_index(uint32_t qpn)
{
	return qpn & ((1u << SOFTNIC_QP_BITS) - 1);
}

/* peer.c: the directory, and other contexts as this process sees them. */

struct mapped_mr {
	uint32_t key;
	uint8_t *bytes; /* where `address` is mapped here */
	void *map;
	size_t map_bytes;
};

struct peer {
	struct peer *next_retired;
	struct shared_context *shared;
	uint32_t slot;
	bool own; /* a context of this process */
	int pidfd;
	int channels[SOFTNIC_CHANNELS + 1]; /* FIFOs, -1 = not open; the last is for async events */
	pthread_mutex_t mutex;		    /* of mrs' mapping and channels' opening */
	struct mapped_mr *_Atomic mrs[SOFTNIC_MRS];
};

/* Claims a slot: its file is created, locked and mapped. NULL with errno. */
struct shared_context *peer_claim(uint32_t *slot, int *lock_fd);
/* Marks the own context dead, waits for marks, and removes its files. */
void peer_release(struct shared_context *shared, uint32_t slot, int lock_fd);
/* The context in that slot, mapped; NULL: none. Thread-safe; the same pointer every time until it
 * is dead. */
struct peer *peer_find(uint32_t slot);
/* Bytes of the peer's region mapped here, or NULL. */
uint8_t *peer_map_mr(struct peer *peer, uint32_t index, uint32_t key);
/* Wakes a channel of the peer (index SOFTNIC_CHANNELS: async events) with one 8-byte record. */
void peer_wake(struct peer *peer, uint32_t channel, uint64_t record);
/* Opens the reading end of a channel of the own context. */
int peer_open_channel(uint32_t slot, uint32_t channel);
void peer_close_channel(uint32_t slot, uint32_t channel, int fd);
/* Waits until no initiator executes towards this queue pair of `shared`. */
void peer_wait_executing(struct shared_context *shared, uint32_t qp_index);
void peer_wait_all(struct shared_context *shared);

static inline bool peer_alive(const struct peer *peer)
{
	return !atomic_load_explicit(&peer->shared->dead, memory_order_acquire);
}

#endif
