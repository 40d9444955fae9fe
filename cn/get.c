/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET.
 *
 *   cached   READ block. LIVE with the very name the cache holds, key and check right: current, at
 * whatever age of the entry, since a control word leaves LIVE once and a reused block has another
 * name. FORWARD from a protected entry: READ the next. Anything else: cold. cold     READ bucket,
 * READ block.
 *
 * Linearization: the moment the device read the control word (found), or the bucket (absent: guards
 * right, no candidate holds the key), or the DEAD control word. A torn READ of a block being reused
 * fails name or check.
 *
 * A get writes nothing but owed mends: when it had to follow a FORWARD from a slot, or met a DEAD
 * tail.
 */
#include "cn/session.h"

#include <string.h>

static void get_cold(struct op *op);
static void get_read(struct op *op);

static void copy_out(struct op *op, const struct block *block)
{
	op->result.value_len = block->value_len;
	op->result.version = control_live_name(block->control, op->link->node->super.name_key);
	if (op->delivered || block->value_len > op->request.buffer_bytes)
		return;
	if (block->value_len > 0)
		memcpy(op->request.buffer, block->value, block->value_len);
}

static void get_found(struct op *op, const struct block *block)
{
	uint64_t name = control_live_name(block->control, op->link->node->super.name_key);
	int status = block->value_len > op->request.buffer_bytes ? FARKV_ETOOSMALL : 0;

	copy_out(op, block);
	op_cache_put(op, block->control, op->at.offset, op->at.size_class, op->slot_offset);
	if (op->skipped_count > 0 && !op->used_cache && op->session->free_mends && !op->delivered) {
		op->mend = op->session->free_mends;
		op->session->free_mends = op->mend->next;
		op_owe(op, op_slot_word(op, op->at.offset, op->at.size_class, name));
	}
	op_finish(op, status);
}

static void get_absent_dead(struct op *op)
{
	if (op->session->free_mends && !op->delivered) {
		op->mend = op->session->free_mends;
		op->session->free_mends = op->mend->next;
		op_owe(op, SLOT_EMPTY);
	}
	op_finish(op, FARKV_ENOTFOUND);
}

static void get_candidate(struct op *op)
{
	if (lookup_next_candidate(op))
		get_read(op);
	else
		op_finish(op, FARKV_ENOTFOUND);
}

static void get_block(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	switch (lookup_judge(op, true, &block)) {
	case LOOKUP_LIVE:
		get_found(op, &block);
		return;
	case LOOKUP_FORWARD:
		if (op->follows > FOLLOW_MAX)
			op_retry_cold(op, get_cold);
		else
			get_read(op);
		return;
	case LOOKUP_DEAD:
		get_absent_dead(op);
		return;
	case LOOKUP_OTHER:
		get_candidate(op);
		return;
	case LOOKUP_AGAIN:
		op_retry_cold(op, get_cold);
		return;
	}
}

static void get_read(struct op *op)
{
	lookup_read(op, true, get_read, get_block);
}

static void get_bucket(struct op *op)
{
	if (!op_chain_ok(op))
		return;
	if (lookup_bucket_ok(op))
		get_candidate(op);
	else
		op_retry_cold(op, get_cold);
}

static void get_cold(struct op *op)
{
	op->resume = get_cold;
	if (!op_expired(op))
		lookup_cold(op, get_bucket);
}

static void get_miss(struct op *op)
{
	op->session->stats.cache_stale++;
	cache_drop(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
		   op->entry.control);
	get_cold(op);
}

/* The next instance after a FORWARD from a protected entry. */
static void get_cached_next(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	switch (lookup_judge(op, true, &block)) {
	case LOOKUP_LIVE:
		get_found(op, &block);
		return;
	case LOOKUP_FORWARD:
		if (op->follows <= FOLLOW_MAX) {
			lookup_read(op, true, get_cold, get_cached_next);
			return;
		}
		/* fall through */
	default:
		get_miss(op);
	}
}

static void get_cached(struct op *op)
{
	struct block block;

	if (!op_chain_ok(op))
		return;
	switch (lookup_judge(op, true, &block)) {
	case LOOKUP_LIVE:
		if (block.control != op->entry.control)
			break;
		op->result.cached = 1;
		op->session->stats.cache_hits++;
		get_found(op, &block);
		return;
	case LOOKUP_FORWARD:
		if (!op_is_protected(op))
			break;
		op->session->stats.cache_stale++;
		lookup_read(op, true, get_cold, get_cached_next);
		return;
	default:
		break;
	}
	get_miss(op);
}

static void get_cached_read(struct op *op)
{
	lookup_read(op, true, get_cached_read, get_cached);
}

void get_start(struct op *op)
{
	if (!cache_find(op->session->store->cache, op->hash.low, op->key, op->request.key_len,
			&op->entry) ||
	    op->entry.node != op->link->node->index) {
		op->session->stats.cache_misses++;
		get_cold(op);
		return;
	}
	op->used_cache = true;
	op->slot_offset = op->entry.slot_offset;
	op->at = (struct instance){.offset = op->entry.offset, .size_class = op->entry.size_class};
	get_cached_read(op);
}
