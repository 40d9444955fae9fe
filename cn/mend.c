/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owed slot CASes.
 *
 * A mend makes a slot name the tail of the chain of instances it leads to: the slot word of a LIVE
 * tail, or empty for a DEAD one. Whoever wins the CAS has skipped every instance from the old
 * word's up to the tail (the DEAD tail included), and retires exactly those, once: a slot word
 * names one instance, and it is replaced once.
 *
 * A mend that loses got another word. Empty or MOVED, or another fingerprint: somebody has skipped
 * all that we knew of, and has retired it. Else it walks from that word, READing control words (8
 * bytes: inside a pin an offset names an instance), to its tail, and CASes again, until the slot
 * names a LIVE tail itself. Each loss is another client's progress; after ROUNDS_MAX of them the
 * mend gives up: the slot still leads to everything, and the next reader who has to follow it owes
 * the same.
 *
 * A chain longer than SKIPPED_MAX is skipped in parts: the slot then names an instance in the
 * middle, which is right at every moment.
 *
 * The pin of the operation that owed it is the mend's until it is done: nothing on the walk is
 * reused, and the expected word cannot come back under another meaning.
 */
#include "cn/session.h"

#include <assert.h>

enum { ROUNDS_MAX = 64 };

#define MEND_OF(pointer) ((struct mend *)((char *)(pointer)-offsetof(struct mend, waiter)))

static void mend_step(struct flow_waiter *waiter, int status);

void mend_free(struct mend *mend)
{
	struct farkv_session *session = mend->link->session;

	pins_drop(&mend->link->pins, mend->pinned);
	mend->next = session->free_mends;
	session->free_mends = mend;
	session->stats.owed_pending--;
}

static void enqueue(struct link *link, struct mend *mend)
{
	mend->next = NULL;
	if (link->mends_head)
		link->mends_tail->next = mend;
	else
		link->mends_head = mend;
	link->mends_tail = mend;
	link->mends_queued++;
}

/* An owed CAS of the same slot that has not been posted takes the new one's step too. */
static bool coalesce(struct link *link, struct mend *mend)
{
	for (struct mend *other = link->mends_head; other; other = other->next) {
		if (other->slot_offset != mend->slot_offset || other->walking ||
		    other->tail != mend->word ||
		    other->skipped_count + mend->skipped_count > SKIPPED_MAX)
			continue;
		for (uint32_t i = 0; i < mend->skipped_count; i++)
			other->skipped[other->skipped_count++] = mend->skipped[i];
		other->tail = mend->tail; /* the other's pin is the older one and stays */
		return true;
	}
	return false;
}

void mend_queue(struct link *link, struct mend *mend)
{
	mend->link = link;
	mend->rounds = 0;
	mend->walking = false;
	link->session->stats.owed_pending++;
	if (link->flow.broken || coalesce(link, mend))
		mend_free(mend);
	else
		enqueue(link, mend);
}

bool mend_stage(struct link *link)
{
	struct mend *mend = link->mends_head;

	if (!mend || !flow_reserve(&link->flow, 1))
		return false;
	link->mends_head = mend->next;
	link->mends_queued--;
	if (mend->walking)
		flow_read(&link->flow, &mend->area[1], 8, mend->at.offset + BLOCK_CONTROL_AT,
			  FLOW_DEFERRED);
	else
		flow_cas(&link->flow, &mend->area[0], mend->slot_offset, mend->word, mend->tail,
			 FLOW_DEFERRED);
	mend->waiter.done = mend_step;
	flow_await(&link->flow, &mend->waiter);
	link->deferred_in_flight++;
	return true;
}

static void set_walk(struct mend *mend, uint64_t word)
{
	struct slot slot = slot_unpack(word);

	mend->word = word;
	mend->walking = true;
	mend->skipped_count = 0;
	mend->at = (struct instance){
		.offset = slot.offset, .size_class = slot.size_class, .tag = slot.tag};
}

static uint64_t word_of_tail(const struct mend *mend)
{
	struct slot slot = slot_unpack(mend->word);

	slot.tag = (uint8_t)mend->at.tag;
	slot.size_class = mend->at.size_class;
	slot.offset = mend->at.offset;
	return slot_pack(slot);
}

static void cas_next(struct mend *mend, uint64_t tail)
{
	mend->tail = tail;
	mend->walking = false;
	enqueue(mend->link, mend);
}

static void skip_current(struct mend *mend)
{
	mend->skipped[mend->skipped_count++] =
		(struct heap_block){.offset = mend->at.offset, .size_class = mend->at.size_class};
}

static void after_cas(struct mend *mend)
{
	uint64_t found = mend->area[0];

	if (found == mend->word) {
		for (uint32_t i = 0; i < mend->skipped_count; i++)
			link_free_block(mend->link, mend->skipped[i]);
		if (mend->partial && mend->tail != SLOT_EMPTY) {
			mend->partial = false;
			set_walk(mend, mend->tail);
			enqueue(mend->link, mend);
			return;
		}
		mend_free(mend);
		return;
	}
	if (slot_is_free(found) || slot_fingerprint(found) != slot_fingerprint(mend->word) ||
	    ++mend->rounds > ROUNDS_MAX) {
		mend_free(mend);
		return;
	}
	mend->partial = false;
	set_walk(mend, found);
	enqueue(mend->link, mend);
}

static void after_read(struct mend *mend)
{
	const struct geometry *g = &mend->link->node->super.geometry;
	uint64_t control = mend->area[1];
	struct forward next;

	switch (control_kind(control)) {
	case CONTROL_LIVE:
		if (mend->skipped_count > 0)
			cas_next(mend, word_of_tail(mend));
		else
			mend_free(mend); /* the slot names a LIVE tail: nothing is owed */
		return;
	case CONTROL_DEAD:
		skip_current(mend);
		cas_next(mend, SLOT_EMPTY);
		return;
	case CONTROL_FORWARD:
		next = control_forward(control);
		if (next.offset < g->heap_offset || next.offset >= g->region_bytes ||
		    size_class_bytes(next.size_class) == 0)
			break;
		skip_current(mend);
		mend->at = (struct instance){.offset = next.offset,
					     .size_class = next.size_class,
					     .tag = next.tag & 0xff};
		if (mend->skipped_count == SKIPPED_MAX - 1) {
			mend->partial = true;
			cas_next(mend, word_of_tail(mend));
			return;
		}
		enqueue(mend->link, mend);
		return;
	default:
		break;
	}
	mend_free(mend); /* not what farkv writes: fsck tells */
}

static void mend_step(struct flow_waiter *waiter, int status)
{
	struct mend *mend = MEND_OF(waiter);

	mend->link->deferred_in_flight--;
	if (status)
		mend_free(mend); /* a slot CAS of unknown fate frees nothing */
	else if (mend->walking)
		after_read(mend);
	else
		after_cas(mend);
}
