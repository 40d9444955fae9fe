/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DELETE.
 *
 *   cached   CAS control: LIVE(name) -> DEAD(mine).
 *   cold     READ bucket, READ header and key, the same CAS.
 *
 * Linearization: the CAS. It deletes exactly the instance it names, so a deletion decided on an old
 * value cannot remove a newer one. Then the slot is emptied (owed); until that is done readers see
 * the DEAD tail.
 *
 * "Not found" is said on a DEAD tail or on a bucket READ with right guards and no candidate, never
 * on the word of the cache.
 */
#include "cn/session.h"

static void delete_cold(struct op *op);
static void delete_instance(struct op *op);
static void delete_read(struct op *op);

static void delete_stale(struct op *op)
{
	if (op->used_cache) {
		op->session->stats.cache_stale++;
		cache_drop(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			   op->entry.control);
	}
	op_retry_cold(op, delete_cold);
}

static void delete_done(struct op *op)
{
	uint64_t found = op->area->results[0];

	if (!op_chain_ok(op))
		return;
	op->decisive = false;
	if (found == op->at.control) {
		lookup_skip(op);
		cache_drop(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			   op->at.control);
		op->result.version =
			control_live_name(op->at.control, op->link->node->super.name_key);
		op->result.cached = op->used_cache;
		op->session->stats.cache_hits += op->used_cache;
		op_count(op, -1);
		op_owe(op, SLOT_EMPTY);
		op_finish(op, 0);
		return;
	}
	if (control_kind(found) == CONTROL_FORWARD && op_is_protected(op) &&
	    op->follows < FOLLOW_MAX && lookup_follow(op, found) == LOOKUP_FORWARD &&
	    !op_expired(op))
		delete_read(op);
	else if (op->active)
		delete_stale(op);
}

static void delete_instance(struct op *op)
{
	if (op_expired(op) || !op_take_name(op, delete_instance))
		return;
	if (!op_begin_chain(op, 1, delete_instance))
		return;
	flow_cas(&op->link->flow, &op->area->results[0], op->at.offset + BLOCK_CONTROL_AT,
		 op->at.control, control_pack_dead(op->name), 0);
	op->decisive = true;
	op_end_chain(op, delete_done);
}

static void delete_absent(struct op *op, bool dead)
{
	if (dead)
		op_owe(op, SLOT_EMPTY);
	op_finish(op, FARKV_ENOTFOUND);
}

static void delete_head(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	switch (lookup_judge(op, false, &block)) {
	case LOOKUP_LIVE:
		delete_instance(op);
		return;
	case LOOKUP_FORWARD:
		if (op->follows > FOLLOW_MAX)
			delete_stale(op);
		else if (!op_expired(op))
			delete_read(op);
		return;
	case LOOKUP_DEAD:
		if (op->used_cache)
			delete_stale(op);
		else
			delete_absent(op, true);
		return;
	case LOOKUP_OTHER:
		if (op->used_cache)
			delete_stale(op);
		else if (lookup_next_candidate(op))
			delete_read(op);
		else
			delete_absent(op, false);
		return;
	case LOOKUP_AGAIN:
		delete_stale(op);
		return;
	}
}

static void delete_read(struct op *op)
{
	lookup_read(op, false, delete_read, delete_head);
}

static void delete_bucket(struct op *op)
{
	if (!op_chain_ok(op))
		return;
	if (!lookup_bucket_ok(op))
		op_retry_cold(op, delete_cold);
	else if (lookup_next_candidate(op))
		delete_read(op);
	else
		delete_absent(op, false);
}

static void delete_cold(struct op *op)
{
	op->resume = delete_cold;
	if (!op_expired(op))
		lookup_cold(op, delete_bucket);
}

void delete_start(struct op *op)
{
	if (!cache_find(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			&op->entry) ||
	    op->entry.node != op->link->node->index) {
		op->session->stats.cache_misses++;
		delete_cold(op);
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
	delete_instance(op);
}
