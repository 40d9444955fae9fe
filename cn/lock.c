/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bucket locks.
 *
 * The lock is the guard of line 0: free (owner 0) -> (owner, nonce) by CAS. A free guard's value
 * follows from the directory alone, so the CAS needs no READ before it, and fails by itself on a
 * stale directory. The bucket is READ in the same chain, after the CAS (an atomic is ordered ahead
 * of a later READ): what it shows is what the holder may rely on, since nobody else can fill an
 * empty slot meanwhile.
 *
 * Release: WRITE of the free guard, on the same queue pair as, and behind, the WRITE that the lock
 * protected. Behind an atomic the release carries a fence: an atomic is not ordered ahead of a
 * later WRITE without one.
 *
 * Sessions of one process meet locally first: a word per bucket (hashed) is taken before the remote
 * CAS is posted, so that a process has one CAS at most out for a bucket. Whoever finds a lock
 * taken, here or there, comes back after a jittered, doubling, capped delay, until its deadline.
 *
 * Crash while holding: the guard keeps (owner, nonce) until the memory node has fenced the owner.
 */
#include "cn/session.h"

#include <assert.h>

enum { BACKOFF_FIRST_NS = 2000, BACKOFF_CAP_NS = 1000000 };

static _Atomic uint32_t *local_word(struct op *op)
{
	uint64_t hash = (op->bucket_offset / BUCKET_BYTES) * UINT64_C(0x9e3779b97f4a7c15);

	return &op->link->node->local_locks[hash >> 52];
}

_Static_assert(LOCAL_LOCKS == 1 << (64 - 52), "local_word names every lock");

static bool take_local(struct op *op)
{
	uint32_t none = 0;

	/* Acquire pairs with the release in lock_released: the holder before us has let go of the
	 * remote lock. */
	op->local_lock =
		atomic_compare_exchange_strong_explicit(local_word(op), &none, op->session->tag,
							memory_order_acquire, memory_order_relaxed);
	return op->local_lock;
}

void lock_released(struct op *op)
{
	op->locked = false;
	if (op->local_lock)
		atomic_store_explicit(local_word(op), 0, memory_order_release);
	op->local_lock = false;
}

static void lock_try(struct op *op);

static void finish_timed_out(struct op *op)
{
	op_finish(op, FARKV_ETIMEDOUT);
}

void lock_give_up(struct op *op)
{
	lock_release_then(op, finish_timed_out);
}

static void lock_later(struct op *op)
{
	uint64_t delay = BACKOFF_FIRST_NS << (op->backoff < 9 ? op->backoff : 9);

	op->session->stats.lock_waits++;
	if (op->local_lock)
		lock_released(op);
	if (op_expired(op))
		return;
	op->backoff++;
	op_drop_pin(op); /* nothing has been reached yet, and the wait may be long */
	if (delay > BACKOFF_CAP_NS)
		delay = BACKOFF_CAP_NS;
	op_wait(op, lock_try, delay / 2 + session_random(op->session) % delay);
}

static void lock_done(struct op *op)
{
	uint64_t found = op->area->results[0];

	if (!op_chain_ok(op))
		return;
	op->lock_wanted = false;
	if (found == op->guard_free) {
		op->locked = true;
		op->backoff = 0;
		if (op->delivered)
			lock_give_up(op); /* a lock that a late completion shows to be ours */
		else if (!lookup_bucket_ok(op))
			lock_release_then(op, op->on_locked_again);
		else
			op->on_locked(op);
		return;
	}
	lock_later(op);
}

static void lock_try(struct op *op)
{
	struct node *node = op->link->node;
	struct guard guard = {0};

	if (op_expired(op))
		return;
	op->used_cache = false;
	if (!node_locate(node, op->hash.low, &op->bucket_offset, &op->bucket_depth)) {
		op_finish(op, FARKV_ECORRUPT);
		return;
	}
	if (!op_take_pin(op, lock_try))
		return;
	if (!op->local_lock && !take_local(op)) {
		lock_later(op);
		return;
	}
	if (!op_begin_chain(op, 2, lock_try))
		return;
	guard.depth = (uint8_t)op->bucket_depth;
	guard.suffix = place_suffix(op->hash.low, op->bucket_depth);
	op->guard_free = guard_pack(guard);
	guard.owner = (uint16_t)node->client_id;
	guard.nonce = (uint16_t)(atomic_fetch_add(&node->nonce, 1) & NONCE_MASK);
	flow_cas(&op->link->flow, &op->area->results[0], op->bucket_offset, op->guard_free,
		 guard_pack(guard), 0);
	flow_read(&op->link->flow, op->area->bucket, BUCKET_BYTES, op->bucket_offset, 0);
	op->lock_wanted = true;
	op_end_chain(op, lock_done);
}

void lock_bucket(struct op *op, void (*on_locked)(struct op *op), void (*again)(struct op *op))
{
	op->on_locked = on_locked;
	op->on_locked_again = again;
	op->backoff = 0;
	lock_try(op);
}

void lock_stage_release(struct op *op, unsigned flags)
{
	assert(op->locked);
	op->area->guard = htole64(op->guard_free);
	flow_write(&op->link->flow, &op->area->guard, 8, op->bucket_offset, flags);
}

static void release_done(struct op *op)
{
	if (!op_chain_ok(op))
		return;
	lock_released(op);
	op->after_release(op);
}

static void release(struct op *op)
{
	if (!op_begin_chain(op, 1, release))
		return;
	lock_stage_release(op, 0);
	op_end_chain(op, release_done);
}

void lock_release_then(struct op *op, void (*then)(struct op *op))
{
	op->after_release = then;
	release(op);
}
