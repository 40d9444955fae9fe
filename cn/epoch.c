/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs on the client's side.
 *
 * Invariants
 *   E1 While an operation holds pin p, neither idle nor anything above p stands in this process's
 * line at the memory node, or is in flight to it. E2 The memory node's safe epoch never exceeds
 * what stands in a live line; a block retired at epoch r is reused only when safe > r. So nothing
 * retired at r >= p is reused while p is held. E3 What an operation reaches from a slot READ after
 * its pin stood in the line was retired, if at all, after that READ, at an epoch not below p. A
 * cache entry with stamp >= pin was current when the epoch was at least p, so it too is retired at
 * r >= p if at all: the entry is protected.
 *
 * Pinning and reporting race as in a Dekker handshake: the session stores its pin, then (seq_cst)
 * loads `reported`; the reporter stores `reported`, then (seq_cst) loads the pins. At least one
 * sees the other. If the session sees a changed value it pins anew; if the reporter sees the pin,
 * it WRITEs no more than that. A session that already publishes an older pin needs no handshake:
 * that pin covers the newer one.
 *
 * Idle: the reporter stores GOING_IDLE, then looks at the pins. None: it WRITEs idle, and only its
 * completion lets sessions leave IDLE, by a CAS back to the newest epoch known. From then on
 * `activation` differs from `confirmed` and each chain carries a WRITE of the pinned epoch ahead of
 * itself on the same queue pair. That epoch may be long past; it is below whatever is current,
 * which only holds reuse back. If the MN has read our line as idle just before, its safe epoch is
 * at most the epoch at that time, and what we reach afterwards is retired at that epoch or later:
 * E2 still protects it. Stamps from before are another activation's and compare below.
 *
 * An in-flight report of an activation may land after a later report: it lowers the line for one
 * period, which E1 permits.
 *
 * Sequentially consistent operations here are the CPU's; the order of WRITEs at the memory node is
 * RC's.
 */
#include "cn/epoch.h"

#include <assert.h>

void epoch_init(struct epoch *epoch, const struct load *load)
{
	atomic_init(&epoch->reported, EPOCH_IDLE);
	atomic_init(&epoch->newest, load->epoch);
	atomic_init(&epoch->safe, load->safe_epoch);
	atomic_init(&epoch->time_ms, load->time_ms);
	atomic_init(&epoch->load_posted, 0);
	atomic_init(&epoch->load_done, 0);
	atomic_init(&epoch->activation, 1);
	atomic_init(&epoch->confirmed, 0);
	atomic_init(&epoch->last_use_ns, 0);
	atomic_init(&epoch->hurry, false);
}

void pins_init(struct pins *pins)
{
	atomic_init(&pins->oldest, PIN_NONE);
	pins->head = pins->count = 0;
}

static bool publish_first(struct pins *pins, struct epoch *epoch, uint64_t *pinned)
{
	/* Each turn that repeats has seen the reporter move; it moves once in milliseconds. */
	for (unsigned turn = 0; turn < 1000; turn++) {
		uint64_t reported = atomic_load(&epoch->reported);

		if (reported == EPOCH_GOING_IDLE)
			break;
		if (reported == EPOCH_IDLE) {
			uint64_t newest = atomic_load(&epoch->newest);

			atomic_compare_exchange_strong(&epoch->reported, &reported, newest);
			continue;
		}
		atomic_store(&pins->oldest, reported);
		if (atomic_load(&epoch->reported) == reported) {
			*pinned = reported;
			return true;
		}
	}
	atomic_store(&pins->oldest, PIN_NONE);
	return false;
}

bool pins_take(struct pins *pins, struct epoch *epoch, uint64_t *pinned)
{
	uint32_t last;
	uint64_t reported;

	if (pins->count == 0) {
		if (!publish_first(pins, epoch, pinned))
			return false;
		pins->head = 0;
		pins->count = 1;
		pins->ring[0].epoch = *pinned;
		pins->ring[0].operations = 1;
		return true;
	}
	last = (pins->head + pins->count - 1) % PIN_RING;
	reported = atomic_load_explicit(&epoch->reported, memory_order_acquire);
	if (reported != EPOCH_GOING_IDLE && reported != EPOCH_IDLE &&
	    reported > pins->ring[last].epoch && pins->count < PIN_RING) {
		last = (last + 1) % PIN_RING;
		pins->count++;
		pins->ring[last].epoch = reported;
		pins->ring[last].operations = 0;
	}
	pins->ring[last].operations++;
	*pinned = pins->ring[last].epoch;
	return true;
}

void pins_drop(struct pins *pins, uint64_t pinned)
{
	uint32_t at = pins->head;

	while (pins->ring[at].epoch != pinned) {
		at = (at + 1) % PIN_RING;
		assert(at != (pins->head + pins->count) % PIN_RING);
	}
	assert(pins->ring[at].operations > 0);
	pins->ring[at].operations--;
	while (pins->count > 0 && pins->ring[pins->head].operations == 0) {
		pins->head = (pins->head + 1) % PIN_RING;
		pins->count--;
	}
	/* Release: what the operation did comes before the reporter sees its pin gone. */
	atomic_store_explicit(&pins->oldest,
			      pins->count > 0 ? pins->ring[pins->head].epoch : PIN_NONE,
			      memory_order_release);
}

void epoch_confirm(struct epoch *epoch, uint64_t activation)
{
	if (atomic_load_explicit(&epoch->activation, memory_order_acquire) == activation)
		atomic_store_explicit(&epoch->confirmed, activation, memory_order_release);
}

uint64_t epoch_stamp_now(struct epoch *epoch)
{
	uint64_t activation = atomic_load_explicit(&epoch->activation, memory_order_acquire);

	return epoch_stamp(activation, atomic_load_explicit(&epoch->newest, memory_order_acquire));
}

static void raise(_Atomic uint64_t *word, uint64_t value)
{
	if (value > atomic_load_explicit(word, memory_order_relaxed))
		atomic_store_explicit(word, value, memory_order_release);
}

void epoch_load_arrived(struct epoch *epoch, const struct load *load, uint64_t load_number)
{
	raise(&epoch->newest, load->epoch);
	raise(&epoch->safe, load->safe_epoch);
	raise(&epoch->time_ms, load->time_ms);
	/* Release: whoever sees this number sees an epoch READ no earlier than it was posted. */
	atomic_store_explicit(&epoch->load_done, load_number, memory_order_release);
}

uint64_t epoch_begin_report(struct epoch *epoch, uint64_t oldest_pin(void *arg), void *arg)
{
	uint64_t newest = atomic_load(&epoch->newest);
	uint64_t oldest;

	atomic_store(&epoch->reported, newest);
	oldest = oldest_pin(arg);
	return oldest < newest ? oldest : newest;
}

bool epoch_try_idle(struct epoch *epoch, uint64_t oldest_pin(void *arg), void *arg)
{
	uint64_t activation = atomic_load(&epoch->activation);
	uint64_t newest = atomic_load(&epoch->newest);

	if (epoch_needs_report(epoch))
		return false;
	atomic_store(&epoch->reported, EPOCH_GOING_IDLE);
	if (oldest_pin(arg) != PIN_NONE) {
		/* The line still holds a report that is not above that pin. */
		atomic_store(&epoch->reported, newest);
		return false;
	}
	atomic_store(&epoch->activation, activation + 1);
	return true;
}

void epoch_idle_done(struct epoch *epoch)
{
	atomic_store(&epoch->reported, EPOCH_IDLE);
}
