/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UPDATE, and PUT of a key whose address is cached.
 *
 *   cached   WRITE block, CAS control: LIVE(name) -> FORWARD(new block). At any age of the entry: a
 * reused block has another name. cold     READ bucket, READ header and key, then the same chain.
 *
 * Linearization: the CAS. It succeeds on the present instance only, since a control word leaves
 * LIVE once. The block is complete before anything names it: same queue pair, WRITE ahead of CAS. A
 * CAS that failed has published nothing: the block stays ours, and the next try needs the CAS
 * alone. FORWARD found by a failed CAS on a protected instance: READ the next (its name is needed),
 * CAS that.
 *
 * Crash after the CAS: the new instance is reachable through the old one; whoever follows owes the
 * slot CAS.
 */
#include "cn/session.h"

#include <assert.h>

static void update_cold(struct op *op);
static void update_read(struct op *op);
static void update_try_next(struct op *op);

/* Not found where the cache or the slot said: the long way. PUT takes the lock, which settles
 * whether the key is there. */
static void update_again(struct op *op)
{
	if (op->request.op == FARKV_PUT)
		op_retry_cold(op, insert_start);
	else
		op_retry_cold(op, update_cold);
}

static void update_stale(struct op *op)
{
	if (op->used_cache) {
		op->session->stats.cache_stale++;
		cache_drop(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			   op->entry.control);
	}
	update_again(op);
}

static void update_succeeded(struct op *op)
{
	struct heap_block block = op->block;

	lookup_skip(op);
	op->block.offset = 0;
	op->result.version = op->name;
	op->result.cached = op->used_cache;
	op->session->stats.cache_hits += op->used_cache;
	op_count(op, 0);
	op_cache_put(op, op->control_mine, block.offset, block.size_class, op->slot_offset);
	op_owe(op, op_slot_word(op, block.offset, block.size_class, op->name));
	op_finish(op, 0);
}

static void update_done(struct op *op)
{
	uint64_t found = op->area->results[0];

	if (!op_chain_ok(op))
		return;
	op->written = true;
	op->decisive = false;
	if (found == op->at.control) {
		update_succeeded(op);
		return;
	}
	if (control_kind(found) == CONTROL_FORWARD && op_is_protected(op) &&
	    op->follows < FOLLOW_MAX && lookup_follow(op, found) == LOOKUP_FORWARD)
		update_try_next(op);
	else
		update_stale(op);
}

void update_instance(struct op *op)
{
	struct flow *flow = &op->link->flow;
	uint64_t forward;

	if (op_expired(op) || !op_take_block(op, update_instance))
		return;
	if (!op_begin_chain(op, op->written ? 1 : 2, update_instance))
		return;
	forward = control_pack_forward((struct forward){
		.offset = op->block.offset,
		.size_class = op->block.size_class,
		.tag = name_forward_tag(op->name),
	});
	if (!op->written)
		flow_write(flow, op->image, op->image_bytes, op->block.offset, 0);
	flow_cas(flow, &op->area->results[0], op->at.offset + BLOCK_CONTROL_AT, op->at.control,
		 forward, 0);
	op->decisive = true;
	op_end_chain(op, update_done);
}

static void update_absent(struct op *op, bool dead)
{
	if (dead)
		op_owe(op, SLOT_EMPTY);
	op_finish(op, FARKV_ENOTFOUND);
}

static void update_head(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	switch (lookup_judge(op, false, &block)) {
	case LOOKUP_LIVE:
		update_instance(op);
		return;
	case LOOKUP_FORWARD:
		if (op->follows > FOLLOW_MAX)
			update_stale(op);
		else
			update_try_next(op);
		return;
	case LOOKUP_DEAD:
		if (op->used_cache || op->request.op == FARKV_PUT)
			update_stale(op);
		else
			update_absent(op, true);
		return;
	case LOOKUP_OTHER:
		if (op->used_cache || op->request.op == FARKV_PUT)
			update_stale(op);
		else if (lookup_next_candidate(op))
			update_read(op);
		else
			update_absent(op, false);
		return;
	case LOOKUP_AGAIN:
		update_stale(op);
		return;
	}
}

static void update_read(struct op *op)
{
	lookup_read(op, false, update_read, update_head);
}

/* The instance in hand came from a FORWARD. */
static void update_try_next(struct op *op)
{
	if (!op_expired(op))
		update_read(op);
}

static void update_bucket(struct op *op)
{
	if (!op_chain_ok(op))
		return;
	if (!lookup_bucket_ok(op))
		update_again(op);
	else if (lookup_next_candidate(op))
		update_read(op);
	else
		update_absent(op, false);
}

static void update_cold(struct op *op)
{
	op->resume = update_cold;
	if (!op_expired(op))
		lookup_cold(op, update_bucket);
}

void update_start(struct op *op)
{
	if (!cache_find(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			&op->entry) ||
	    op->entry.node != op->link->node->index) {
		op->session->stats.cache_misses++;
		if (op->request.op == FARKV_PUT)
			insert_start(op);
		else
			update_cold(op);
		return;
	}
	op->used_cache = true;
	op->slot_offset = op->entry.slot_offset;
	op->at = (struct instance){.offset = op->entry.offset,
				   .size_class = op->entry.size_class,
				   .control = op->entry.control};
	op->slot_word =
		op_slot_word(op, op->entry.offset, op->entry.size_class,
			     control_live_name(op->entry.control, op->link->node->super.name_key));
	update_instance(op);
}
