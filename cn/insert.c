/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INSERT, and PUT of a key whose address is not cached.
 *
 *   chain 1  CAS guard, READ bucket
 *   chain 2  WRITE block, WRITE slot, WRITE guard            (no candidate)
 *
 * The bucket's lock makes keys unique: a slot goes from empty to occupied only by the holder's
 * WRITE. Candidates of the same fingerprint are READ, chains and all, holding the lock. Same key
 * LIVE: exists. Same key with a DEAD tail: that very slot is taken over by CAS (its owner may be
 * emptying it without the lock), never another one, else the key could stand twice; if the CAS
 * fails, all over again from the lock.
 *
 * PUT lets go of the lock in the same chain that READs the first candidate, since it will most
 * likely be an update of it, which needs no lock. If it meets only other keys, or DEAD, it locks
 * again and then holds on.
 *
 * Linearization: the WRITE of the slot, or the CAS that takes it over. The block is complete before
 * the slot names it, and the slot stands before the guard is free: one queue pair, WRITE after
 * WRITE.
 *
 * Crash after chain 1: a lock without an effect. Within chain 2: nothing, or an unreachable block,
 * or the key inserted and the lock held.
 */
#include "cn/session.h"

#include <assert.h>

static void insert_check(struct op *op);
static void insert_locked(struct op *op);

static void insert_succeeded(struct op *op)
{
	struct heap_block block = op->block;

	lock_released(op);
	op->decisive = false;
	op->block.offset = 0;
	op->result.version = op->name;
	op_count(op, 1);
	op_cache_put(op, op->control_mine, block.offset, block.size_class, op->slot_offset);
	op_finish(op, 0);
}

static void insert_done(struct op *op)
{
	if (op_chain_ok(op))
		insert_succeeded(op);
}

static void insert_full(struct op *op)
{
	log_line(&op->session->store->logger, LOG_LEVEL_NOTICE,
		 "a bucket of memory node %u is full: start it with a larger --expected-keys",
		 op->link->node->mn_id);
	op_finish(op, FARKV_ENOSPC);
}

static void insert_publish(struct op *op)
{
	struct flow *flow = &op->link->flow;
	int slot = bucket_find_free(op->area->bucket);

	if (slot < 0) {
		lock_release_then(op, insert_full);
		return;
	}
	if (!op_begin_chain(op, 3, insert_publish))
		return;
	op->slot_offset = op->bucket_offset + bucket_slot_at((unsigned)slot);
	op->area->slot =
		htole64(op_slot_word(op, op->block.offset, op->block.size_class, op->name));
	flow_write(flow, op->image, op->image_bytes, op->block.offset, 0);
	flow_write(flow, &op->area->slot, 8, op->slot_offset, 0);
	lock_stage_release(op, 0);
	op->decisive = true;
	op_end_chain(op, insert_done);
}

static void take_over_done(struct op *op)
{
	if (!op_chain_ok(op))
		return;
	lock_released(op);
	op->decisive = false;
	if (op->area->results[0] != op->slot_word) {
		op_retry_cold(op, insert_start);
		return;
	}
	for (uint32_t i = 0; i < op->skipped_count; i++)
		link_free_block(op->link, op->skipped[i]);
	insert_succeeded(op);
}

static void take_over(struct op *op)
{
	struct flow *flow = &op->link->flow;

	if (!op_begin_chain(op, 3, take_over))
		return;
	flow_write(flow, op->image, op->image_bytes, op->block.offset, 0);
	flow_cas(flow, &op->area->results[0], op->slot_offset, op->slot_word,
		 op_slot_word(op, op->block.offset, op->block.size_class, op->name), 0);
	lock_stage_release(op, FLOW_FENCE);
	op->decisive = true;
	op_end_chain(op, take_over_done);
}

static void insert_exists(struct op *op)
{
	op->result.version = control_live_name(op->at.control, op->link->node->super.name_key);
	op_finish(op, FARKV_EEXISTS);
}

static void insert_again(struct op *op)
{
	op_retry_cold(op, insert_start);
}

/* A candidate's header and key, READ while holding the lock. */
static void insert_checked(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	if (op->delivered) {
		lock_give_up(op);
		return;
	}
	switch (lookup_judge(op, false, &block)) {
	case LOOKUP_LIVE:
		lock_release_then(op,
				  op->request.op == FARKV_PUT ? update_instance : insert_exists);
		return;
	case LOOKUP_FORWARD:
		insert_check(op);
		return;
	case LOOKUP_DEAD:
		take_over(op);
		return;
	case LOOKUP_OTHER:
		if (lookup_next_candidate(op))
			insert_check(op);
		else
			insert_publish(op);
		return;
	case LOOKUP_AGAIN:
		lock_release_then(op, insert_again);
		return;
	}
}

static void insert_check(struct op *op)
{
	lookup_read(op, false, insert_check, insert_checked);
}

static void put_look(struct op *op);

/* Not what an update can settle: lock again, and hold on. */
static void put_hold(struct op *op)
{
	op->hold_candidates = true;
	op_retry_cold(op, insert_start);
}

static void put_looked(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	if (op->locked)
		lock_released(op);
	switch (lookup_judge(op, false, &block)) {
	case LOOKUP_LIVE:
		update_instance(op);
		return;
	case LOOKUP_FORWARD:
		if (op->follows > FOLLOW_MAX)
			op_retry_cold(op, insert_start);
		else if (!op_expired(op))
			put_look(op);
		return;
	case LOOKUP_OTHER:
		if (lookup_next_candidate(op) && !op_expired(op))
			put_look(op);
		else if (op->active)
			put_hold(op);
		return;
	case LOOKUP_DEAD:
		put_hold(op);
		return;
	case LOOKUP_AGAIN:
		op_retry_cold(op, insert_start);
		return;
	}
}

static void put_look(struct op *op)
{
	lookup_read(op, false, put_look, put_looked);
}

/* Lets go of the lock and looks at the first candidate, in one chain. */
static void put_release_and_look(struct op *op)
{
	if (!op_begin_chain(op, 2, put_release_and_look))
		return;
	lock_stage_release(op, 0);
	flow_read(&op->link->flow, op->area->read, lookup_head_bytes(op), op->at.offset, 0);
	op_end_chain(op, put_looked);
}

static void insert_locked(struct op *op)
{
	if (!lookup_next_candidate(op))
		insert_publish(op);
	else if (op->request.op == FARKV_PUT && !op->hold_candidates)
		put_release_and_look(op);
	else
		insert_check(op);
}

void insert_start(struct op *op)
{
	/* The block first: nobody waits for memory with a lock in hand. */
	if (op_expired(op) || !op_take_block(op, insert_start))
		return;
	lock_bucket(op, insert_locked, insert_again);
}
