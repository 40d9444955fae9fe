/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all operations share: their life, their chains, what they take and give back.
 *
 * An operation is *active* from submit until nothing of it is in flight. It is *delivered* once, to
 * its caller; that may come first, when the deadline passes while a chain is out: then the
 * operation goes on only as far as it must (a lock that turns out to be ours is released, a
 * replaced instance is owed a mend), and its buffers stay pinned meanwhile.
 *
 * ETIMEDOUT promises that nothing has happened or will: so it is given only while no decisive chain
 * (one that publishes or retires an instance) is out. With such a chain out the answer is EUNKNOWN.
 */
#include "cn/session.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define OP_OF(pointer) ((struct op *)((char *)(pointer)-offsetof(struct op, waiter)))

static void wait_push(struct op *op)
{
	struct farkv_session *session = op->session;

	/* A ring in order of arrival, so that the first to wait is the first to get. */
	assert(!op->waiting);
	op->waiting = true;
	if (!session->waiting) {
		op->next = op->prev = op;
		session->waiting = op;
		return;
	}
	op->prev = session->waiting->prev;
	op->next = session->waiting;
	op->prev->next = op;
	session->waiting->prev = op;
}

void op_wait(struct op *op, void (*resume)(struct op *op), uint64_t delay_ns)
{
	op->resume = resume;
	op->wake_ns = op->session->now_ns + delay_ns;
	wait_push(op);
}

static void release_large(struct farkv_session *session, uint8_t *buffer)
{
	if (buffer)
		session->large_free_mask |= 1u << (buffer - session->large) / session->large_bytes;
}

/* For an image. Some are left to gets, which end by themselves: an image may be kept until memory is there. */
static uint8_t *take_large(struct farkv_session *session)
{
	unsigned at;

	if ((uint32_t)__builtin_popcount(session->large_free_mask) <= session->large_count / 4)
		return NULL;
	at = (unsigned)__builtin_ctz(session->large_free_mask);
	session->large_free_mask &= session->large_free_mask - 1;
	return session->large + (size_t)at * session->large_bytes;
}

static int check_request(struct farkv_session *session, const struct farkv_request *request)
{
	bool writes = request->op == FARKV_PUT || request->op == FARKV_INSERT ||
		      request->op == FARKV_UPDATE;
	const char *what = NULL;

	if (request->op < FARKV_GET || request->op > FARKV_DELETE)
		what = "unknown operation";
	else if (!request->key || request->key_len < 1 || request->key_len > FARKV_KEY_MAX)
		what = "a key has 1 to 1024 bytes";
	else if (writes && (request->value_len > FARKV_VALUE_MAX ||
			    (!request->value && request->value_len > 0)))
		what = "a value has 0 to 65536 bytes";
	else if (request->op == FARKV_GET && !request->buffer && request->buffer_bytes > 0)
		what = "get: no buffer";
	if (!what)
		return 0;
	log_line(&session->store->logger, LOG_LEVEL_ERROR, "invalid argument: %s", what);
	return FARKV_EINVAL;
}

/* The block's image is made at once, so that the caller's value is free again; the control word
 * comes later. */
static int make_image(struct op *op, const struct farkv_request *request)
{
	struct block block = {
		.hash = op->hash.low,
		.key_len = (uint16_t)request->key_len,
		.kind = BLOCK_VALUE,
		.value_len = (uint32_t)request->value_len,
		.key = op->key,
		.value = request->value,
	};

	op->image_bytes = (uint32_t)block_bytes(request->key_len, request->value_len);
	block.size_class = (uint8_t)size_class_of(op->image_bytes);
	op->image = op->image_bytes <= OP_SMALL_BYTES ? op->area->write : take_large(op->session);
	if (!op->image)
		return FARKV_EAGAIN;
	op->block.size_class = block.size_class;
	block_encode(&block, op->image);
	return 0;
}

static void op_reset(struct op *op, const struct farkv_request *request)
{
	struct farkv_session *session = op->session;
	uint64_t timeout_ms =
		request->timeout_ms ? request->timeout_ms : session->store->options.op_timeout_ms;

	/* All but the first fields, which are the slot's own, and the key, which is overwritten. */
	memset(&op->step, 0, offsetof(struct op, key) - offsetof(struct op, step));
	op->area = (struct op_area *)((uint8_t *)session->memory.bytes +
				      (size_t)(op - session->ops) * OP_AREA_BYTES);
	op->active = true;
	op->deadline_ns = session->now_ns + timeout_ms * 1000000;
	op->request = *request;
	op->request.key = op->key;
	op->request.value = NULL;
	op->result.op = request->op;
	memcpy(op->key, request->key, request->key_len);
}

static void op_first(struct op *op);

static void op_start(struct op *op)
{
	switch (op->request.op) {
	case FARKV_GET:
		get_start(op);
		return;
	case FARKV_PUT:
	case FARKV_UPDATE:
		update_start(op);
		return;
	case FARKV_INSERT:
		insert_start(op);
		return;
	case FARKV_DELETE:
		delete_start(op);
		return;
	}
}

static bool *turn_of(struct op *op)
{
	return &op->session->key_turns[op->hash.low >> (64 - KEY_TURN_BITS)];
}

/*
 * Mutations of one key in one session go one after the other: side by side each but one would fail
 * its CAS and follow the others' instances, a round trip for every one of them. Keys are told apart
 * by hash, so now and then two different ones wait for each other.
 */
static bool take_turn(struct op *op)
{
	if (op->has_turn || op->request.op == FARKV_GET)
		return true;
	if (*turn_of(op)) {
		op_wait(op, op_first, 0);
		return false;
	}
	*turn_of(op) = op->has_turn = true;
	return true;
}

static void op_first(struct op *op)
{
	if (op_expired(op))
		return;
	if (op->link->down || op->link->flow.broken) {
		op_finish(op, FARKV_EUNAVAILABLE);
		return;
	}
	if (!take_turn(op))
		return;
	/* The pin last: whoever waits for one of the others holds no epoch back. */
	if (op->request.op != FARKV_GET && !op_take_mend(op, op_first))
		return;
	if (!op_take_pin(op, op_first))
		return;
	op_start(op);
}

int op_submit(struct farkv_session *session, const struct farkv_request *request)
{
	struct op *op = session->free_ops;
	struct key_hash hash;
	uint8_t node;
	int error = check_request(session, request);

	if (error)
		return error;
	if (!op)
		return FARKV_EAGAIN;
	hash = key_hash(request->key, request->key_len, session->store->nodes[0]->super.hash_seed);
	node = session->store->node_of_shard[shard_of_hash(hash.high)];
	if (node == 0xff)
		return FARKV_EUNAVAILABLE;
	session->free_ops = op->next;
	op_reset(op, request);
	op->hash = hash;
	op->link = &session->links[node];
	if (request->op == FARKV_PUT || request->op == FARKV_INSERT ||
	    request->op == FARKV_UPDATE) {
		error = make_image(op, request);
		if (error) {
			op->active = false;
			op->next = session->free_ops;
			session->free_ops = op;
			return error;
		}
	}
	session->in_flight++;
	session->stats.operations++;
	/* Relaxed: only the reporter's idea of a second of quiet. */
	atomic_store_explicit(&op->link->node->epoch.last_use_ns, session->now_ns,
			      memory_order_relaxed);
	op_wait(op, op_first, 0); /* done functions are not called from submit */
	return 0;
}

void op_deliver(struct op *op, int status)
{
	struct farkv_session *session = op->session;

	if (op->delivered)
		return;
	op->delivered = true;
	op->result.status = status;
	session->in_flight--;
	session->zombies++;
	session->delivered++;
	if (op->request.done)
		op->request.done(&op->result, op->request.arg);
}

void op_drop_pin(struct op *op)
{
	if (op->has_pin)
		pins_drop(&op->link->pins, op->pinned);
	op->has_pin = false;
}

void op_finish(struct op *op, int status)
{
	struct farkv_session *session = op->session;

	assert(!op->waiting && !op->locked);
	if (op->local_lock)
		lock_released(op);
	if (op->block.offset != 0 && !op->decisive)
		heap_give_back(op->link->heap, op->block);
	if (op->mend) {
		op->mend->next = session->free_mends;
		session->free_mends = op->mend;
		op->mend = NULL;
	}
	op_drop_pin(op);
	if (op->has_turn)
		*turn_of(op) = op->has_turn = false;
	if (op->image && op->image != op->area->write)
		release_large(session, op->image);
	release_large(session, op->large_read);
	op->image = op->large_read = NULL;
	op_deliver(op, status);
	session->zombies--;
	op->active = false;
	op->next = session->free_ops;
	session->free_ops = op;
}

bool op_expired(struct op *op)
{
	if (op->delivered || op->session->now_ns >= op->deadline_ns) {
		op_finish(op, op->starved ? FARKV_ENOSPC : FARKV_ETIMEDOUT);
		return true;
	}
	return false;
}

bool op_begin_chain(struct op *op, uint32_t count, void (*again)(struct op *op))
{
	struct link *link = op->link;
	bool report = epoch_needs_report(&link->node->epoch);

	if (link->flow.broken) {
		op->locked = false; /* the memory node clears it: nothing of this queue pair can be
				       posted */
		op_finish(op, FARKV_EUNAVAILABLE);
		return false;
	}
	if (flow_staged(&link->flow) == 0)
		link_stage_deferred(link, DEFERRED_CHAIN_MAX, false);
	if (!flow_reserve(&link->flow, count + report)) {
		op_wait(op, again, 0);
		return false;
	}
	op->stamp = epoch_stamp_now(&link->node->epoch);
	op->reported = report;
	if (report) {
		/* Same queue pair, ahead of the chain: it stands in the line before the chain looks
		 * at anything. */
		op->posted_activation = atomic_load(&link->node->epoch.activation);
		op->area->report = htole64(op->pinned);
		flow_write(&link->flow, &op->area->report, 8,
			   geometry_client(&link->node->super.geometry, link->node->client_id) +
				   CLIENT_REPORT_AT,
			   FLOW_DEFERRED);
	}
	return true;
}

static void chain_done(struct flow_waiter *waiter, int status)
{
	struct op *op = OP_OF(waiter);

	op->status = status;
	if (status == 0 && op->reported)
		epoch_confirm(&op->link->node->epoch, op->posted_activation);
	op->step(op);
}

void op_end_chain(struct op *op, void (*step)(struct op *op))
{
	op->step = step;
	op->waiter.done = chain_done;
	op->result.round_trips++;
	op->session->stats.verbs.round_trips++;
	flow_await(&op->link->flow, &op->waiter);
}

bool op_chain_ok(struct op *op)
{
	if (op->status == 0) {
		if (!op->delivered || op->locked || op->lock_wanted || op->decisive)
			return true;
		op_finish(op, FARKV_ETIMEDOUT); /* nobody waits for it, and it holds nothing */
		return false;
	}
	op->locked = op->lock_wanted =
		false; /* a guard of a dead queue pair is no longer ours to write */
	op_finish(op, op->decisive ? FARKV_EUNKNOWN : FARKV_EUNAVAILABLE);
	return false;
}

void op_retry_cold(struct op *op, void (*again)(struct op *op))
{
	op->follows = 0;
	op->skipped_count = 0;
	if (op_expired(op))
		return;
	if (++op->retries % 8 == 0) {
		uint64_t limit = op->retries < 64 ? 20000 : 1000000;

		op_wait(op, again, session_random(op->session) % limit);
		return;
	}
	again(op);
}

bool op_take_pin(struct op *op, void (*again)(struct op *op))
{
	struct epoch *epoch = &op->link->node->epoch;

	if (op->has_pin)
		return true;
	if (!pins_take(&op->link->pins, epoch, &op->pinned)) {
		op_wait(op, again, 0);
		return false;
	}
	op->has_pin = true;
	op->pin_stamp = epoch_stamp(atomic_load(&epoch->activation), op->pinned);
	return true;
}

bool op_take_mend(struct op *op, void (*again)(struct op *op))
{
	struct farkv_session *session = op->session;

	if (op->mend)
		return true;
	op->mend = session->free_mends;
	if (!op->mend) {
		op_wait(op, again, 0);
		return false;
	}
	session->free_mends = op->mend->next;
	return true;
}

bool op_take_name(struct op *op, void (*again)(struct op *op))
{
	uint32_t number;

	if (op->name != 0)
		return true;
	if (op->link->flow.broken) {
		op_finish(op, FARKV_EUNAVAILABLE);
		return false;
	}
	if (op->link->numbers_gone) {
		op_finish(op, FARKV_ENOSPC);
		return false;
	}
	number = link_number(op->link);
	if (number == 0) {
		if (!op_expired(op))
			op_wait(op, again, 0);
		return false;
	}
	op->name = name_pack(number, ++op->link->sequence);
	op->control_mine = control_pack_live(op->name, op->link->node->super.name_key);
	return true;
}

/*
 * Memory waits for epochs, and epochs wait for pins: whoever waits for memory drops its pin and all
 * that it has reached, and starts again.
 */
void op_wait_unpinned(struct op *op)
{
	op_drop_pin(op);
	op->follows = 0;
	op->skipped_count = 0;
	op_wait(op, op_first, 0);
}

bool op_take_block(struct op *op, void (*again)(struct op *op))
{
	int error;

	if (!op_take_name(op, again))
		return false;
	if (op->block.offset != 0)
		return true;
	error = link_take_block(op->link, op->block.size_class, &op->block);
	if (error == -ENOSPC) {
		op_finish(op, FARKV_ENOSPC);
		return false;
	}
	if (error) {
		if (op->link->heap->classes[op->block.size_class].limbo_count > 0)
			op->session->stats.epoch_waits++;
		op->starved = atomic_load_explicit(&op->link->node->full, memory_order_relaxed);
		if (!op_expired(op))
			op_wait_unpinned(op);
		return false;
	}
	op->starved = false;
	block_set_control(op->image, op->control_mine);
	return true;
}

bool op_is_protected(const struct op *op)
{
	return !op->used_cache || op->entry.stamp >= op->pin_stamp;
}

uint64_t op_slot_word(const struct op *op, uint64_t offset, uint8_t size_class, uint64_t name)
{
	return slot_pack((struct slot){
		.fingerprint = (uint16_t)place_fingerprint(op->hash.low),
		.tag = name_slot_tag(name),
		.size_class = size_class,
		.offset = offset,
	});
}

void op_cache_put(struct op *op, uint64_t control, uint64_t offset, uint8_t size_class,
		  uint64_t slot_offset)
{
	struct cache_entry entry = {
		.control = control,
		.offset = offset,
		.slot_offset = slot_offset,
		.stamp = op->stamp,
		.node = op->link->node->index,
		.size_class = size_class,
	};

	cache_put(op->session->store->cache, op->hash.low, op->key, op->request.key_len, &entry);
}

void op_owe(struct op *op, uint64_t tail_word)
{
	struct mend *mend = op->mend;

	assert(mend && op->has_pin && op->skipped_count > 0);
	mend->slot_offset = op->slot_offset;
	mend->word = op->slot_word;
	mend->tail = tail_word;
	mend->partial = false;
	mend->skipped_count = op->skipped_count;
	memcpy(mend->skipped, op->skipped, op->skipped_count * sizeof op->skipped[0]);
	mend->pinned = op->pinned;
	op->mend = NULL;
	op->has_pin = false;
	mend_queue(op->link, mend);
}

void op_count(struct op *op, int items)
{
	op->link->items_delta += items;
	op->link->commits_delta++;
	op->link->changes++;
}
