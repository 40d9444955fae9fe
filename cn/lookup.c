/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a key to the instance that is its present one.
 *
 * A bucket is one READ; its four guards must serve the key's hash, else the directory was stale.
 * Candidates are the slots with the key's fingerprint. What a slot READ in this operation leads to
 * cannot be reused while the operation is pinned, so an offset names one instance, and its body
 * (all but the control word) never changes: header and key decide whose it is, whatever the control
 * word says. A LIVE word must carry the tag that led here.
 *
 * Mutations READ header and key only: the value would not be looked at, and what they need of a
 * block (its key and control word) is compared in full, the control word again by the CAS. A get
 * READs the whole block and checks it.
 */
#include "cn/session.h"

#include <assert.h>

void lookup_cold(struct op *op, void (*on_bucket)(struct op *op))
{
	op->used_cache = false;
	op->follows = 0;
	op->skipped_count = 0;
	if (!node_locate(op->link->node, op->hash.low, &op->bucket_offset, &op->bucket_depth)) {
		op_finish(op, FARKV_ECORRUPT);
		return;
	}
	if (!op_begin_chain(op, 1, op->resume))
		return;
	flow_read(&op->link->flow, op->area->bucket, BUCKET_BYTES, op->bucket_offset, 0);
	op_end_chain(op, on_bucket);
}

bool lookup_bucket_ok(struct op *op)
{
	if (!bucket_serves(op->area->bucket, op->hash.low))
		return false;
	op->found_count = bucket_find(op->area->bucket, op->hash.low, op->found);
	op->candidate = 0;
	return true;
}

bool lookup_next_candidate(struct op *op)
{
	const struct geometry *g = &op->link->node->super.geometry;

	while (op->candidate < op->found_count) {
		uint32_t i = op->found[op->candidate++];
		struct slot slot;

		op->slot_word = bucket_slot(op->area->bucket, i);
		op->slot_offset = op->bucket_offset + bucket_slot_at(i);
		slot = slot_unpack(op->slot_word);
		if (slot.offset < g->heap_offset || size_class_bytes(slot.size_class) == 0 ||
		    slot.offset + size_class_bytes(slot.size_class) > g->region_bytes)
			continue; /* nothing that farkv writes: fsck tells */
		op->at = (struct instance){.offset = slot.offset,
					   .size_class = slot.size_class,
					   .tag = slot.tag,
					   .tag_mask = 0xff};
		op->skipped_count = 0;
		op->follows = 0;
		return true;
	}
	return false;
}

static uint8_t *read_buffer(struct op *op, uint32_t bytes)
{
	struct farkv_session *session = op->session;
	unsigned at;

	if (bytes <= OP_SMALL_BYTES)
		return op->area->read;
	if (op->large_read)
		return op->large_read;
	if (session->large_free_mask == 0)
		return NULL;
	at = (unsigned)__builtin_ctz(session->large_free_mask);
	session->large_free_mask &= session->large_free_mask - 1;
	op->large_read = session->large + (size_t)at * session->large_bytes;
	return op->large_read;
}

uint32_t lookup_head_bytes(const struct op *op)
{
	uint32_t bytes = size_class_bytes(op->at.size_class);
	uint32_t head = BLOCK_HEADER_BYTES + (uint32_t)op->request.key_len;

	return head > bytes ? bytes : head;
}

static uint32_t read_bytes(const struct op *op, bool whole)
{
	return whole ? size_class_bytes(op->at.size_class) : lookup_head_bytes(op);
}

bool lookup_read(struct op *op, bool whole, void (*again)(struct op *op),
		 void (*step)(struct op *op))
{
	uint32_t bytes = read_bytes(op, whole);
	uint8_t *into;

	if (bytes > OP_SMALL_BYTES && bytes > op->session->large_bytes) {
		op_finish(op, FARKV_ECORRUPT);
		return false;
	}
	into = read_buffer(op, bytes);
	if (!into) {
		/* Only a get reads whole blocks: it holds nothing but its pin. */
		if (!op_expired(op))
			op_wait_unpinned(op);
		return false;
	}
	if (!op_begin_chain(op, 1, again))
		return false;
	flow_read(&op->link->flow, into, bytes, op->at.offset, 0);
	op_end_chain(op, step);
	return true;
}

void lookup_skip(struct op *op)
{
	op->skipped[op->skipped_count++] =
		(struct heap_block){.offset = op->at.offset, .size_class = op->at.size_class};
}

enum lookup_verdict lookup_follow(struct op *op, uint64_t control)
{
	const struct geometry *g = &op->link->node->super.geometry;
	struct forward next = control_forward(control);

	if (next.offset < g->heap_offset || size_class_bytes(next.size_class) == 0 ||
	    next.offset + size_class_bytes(next.size_class) > g->region_bytes)
		return LOOKUP_AGAIN;
	if (op->skipped_count >= SKIPPED_MAX - 1)
		return LOOKUP_AGAIN;
	lookup_skip(op);
	op->at = (struct instance){.offset = next.offset,
				   .size_class = next.size_class,
				   .tag = next.tag,
				   .tag_mask = (1u << CONTROL_TAG_BITS) - 1};
	op->follows++;
	return LOOKUP_FORWARD;
}

enum lookup_verdict lookup_judge(struct op *op, bool whole, struct block *block)
{
	uint32_t bytes = read_bytes(op, whole);
	const uint8_t *in = bytes <= OP_SMALL_BYTES ? op->area->read : op->large_read;
	bool sound = whole ? block_decode(in, bytes, block) : block_decode_key(in, bytes, block);

	if (!sound) {
		/* A key longer than ours does not fit into what a mutation READs: another key's. */
		return !whole && block->key_len != op->request.key_len &&
				       block->key_len <= BLOCK_KEY_MAX
			       ? LOOKUP_OTHER
			       : LOOKUP_AGAIN;
	}
	if (!block_holds(block, op->hash.low, op->key, op->request.key_len))
		return LOOKUP_OTHER;
	switch (control_kind(block->control)) {
	case CONTROL_LIVE:
		op->at.control = block->control;
		if ((control_live_name(block->control, op->link->node->super.name_key) &
		     op->at.tag_mask) != (op->at.tag & op->at.tag_mask))
			return LOOKUP_AGAIN;
		return LOOKUP_LIVE;
	case CONTROL_FORWARD:
		return lookup_follow(op, block->control);
	case CONTROL_DEAD:
		lookup_skip(op);
		return LOOKUP_DEAD;
	default:
		return LOOKUP_AGAIN;
	}
}
