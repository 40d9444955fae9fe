/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's end of one memory node: its queue pair, and the work that no caller waits for.
 *
 * Deferred work rides in front of the next operation's chain in the same doorbell; what is left
 * when the queue pair has nothing in flight is posted by itself. Work an operation is waiting for
 * (session numbers, units, scans) is posted at once. Order: a unit's header is WRITTEN ahead of any
 * block in it, on the same queue pair; a free bit is set only after the slot CAS that skipped the
 * block has been seen to win.
 */
#include "cn/session.h"

#include "layout/bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long a broken queue pair may take to flush before it is destroyed, which flushes it. */
#define DRAIN_NS UINT64_C(200000000)
/* How long the answer "no space" stands before the units are scanned again. */
/* Scans keep this distance, doubled by each that finds nothing: most blocks of most loads are freed
 * by their owner. */
#define SCAN_PAUSE_FIRST_NS UINT64_C(200000)
#define SCAN_PAUSE_CAP_NS   UINT64_C(10000000)
#define DRY_NS		    UINT64_C(100000000)

#define LINK_OF(pointer, member) ((struct link *)((char *)(pointer)-offsetof(struct link, member)))

static struct heap *take_heap(struct node *node)
{
	struct heap *heap;

	pthread_mutex_lock(&node->mutex);
	heap = node->spare_heaps;
	if (heap)
		node->spare_heaps = heap->next;
	pthread_mutex_unlock(&node->mutex);
	if (heap)
		return heap;
	heap = calloc(1, sizeof *heap);
	if (heap)
		heap_init(heap, &node->epoch, &node->super.geometry, node->unit_owner,
			  atomic_fetch_add(&node->next_tag, 1) + 1);
	return heap;
}

int link_open(struct farkv_session *session, struct node *node, struct link *link, uint16_t id)
{
	struct farkv *store = session->store;
	struct qp_options options = {
		.send_cq = session->cq,
		.recv_cq = session->cq,
		.sq_depth = store->options.sq_depth,
		.rq_depth = 1,
		.max_inline = store->options.max_inline,
	};
	int error;

	link->session = session;
	link->node = node;
	link->clear_unit = HEAP_NO_UNIT;
	pins_init(&link->pins);
	link->heap = take_heap(node);
	link->freed_capacity = 64;
	link->freed = calloc(link->freed_capacity, sizeof *link->freed);
	if (!link->heap || !link->freed)
		return FARKV_ENOMEM;
	error = connect_node(store, node, &options, &link->qp);
	if (error)
		return error;
	if (link->qp->sq_depth > store->options.sq_depth)
		link->qp->sq_depth =
			store->options.sq_depth; /* the CQ is sized for what was asked */
	if (flow_init(&link->flow, link->qp, id, store->options.signal_interval,
		      session->memory.mr->lkey, node->record.region_base, node->record.rkey,
		      session->counts, &store->logger))
		return FARKV_EINVAL;
	pthread_mutex_lock(&node->mutex);
	link->next_link = node->links;
	node->links = link;
	pthread_mutex_unlock(&node->mutex);
	return 0;
}

static void leave_node(struct link *link)
{
	struct node *node = link->node;

	pthread_mutex_lock(&node->mutex);
	for (struct link **at = &node->links; *at; at = &(*at)->next_link)
		if (*at == link) {
			*at = link->next_link;
			break;
		}
	if (link->heap) {
		link->heap->next = node->spare_heaps;
		node->spare_heaps = link->heap;
	}
	pthread_mutex_unlock(&node->mutex);
}

void link_close(struct link *link)
{
	if (!link->node)
		return;
	if (link->qp)
		qp_destroy(link->qp);
	if (link->flow.places) {
		flow_cancel(&link->flow);
		flow_free(&link->flow);
	}
	leave_node(link);
	free(link->freed);
	memset(link, 0, sizeof *link);
}

static void deferred_posted(struct link *link, struct flow_waiter *waiter,
			    void (*done)(struct flow_waiter *, int))
{
	waiter->done = done;
	flow_await(&link->flow, waiter);
	link->deferred_in_flight++;
}

/* Session numbers */

static void number_done(struct flow_waiter *waiter, int status)
{
	struct link *link = LINK_OF(waiter, number_waiter);

	link->deferred_in_flight--;
	link->number_asked = false;
	if (status)
		return;
	/* A number that came round would repeat names: there are 2^28 of them in a region's life.
	 */
	if (link->area->number >= bits_mask(NAME_SESSION_BITS)) {
		link->numbers_gone = true;
		log_line(&link->session->store->logger, LOG_LEVEL_ERROR,
			 "memory node %u has given out all its session numbers: format its region "
			 "anew",
			 link->node->mn_id);
		return;
	}
	link->session_number = (uint32_t)link->area->number + 1;
	link->sequence = 0;
}

uint32_t link_number(struct link *link)
{
	if (link->session_number != 0 && link->sequence < bits_mask(NAME_SEQUENCE_BITS))
		return link->session_number;
	link->session_number = 0;
	if (link->number_asked || !flow_reserve(&link->flow, 1))
		return 0;
	flow_faa(&link->flow, &link->area->number,
		 geometry_counter(&link->node->super.geometry, COUNTER_SESSIONS), 1, FLOW_DEFERRED);
	deferred_posted(link, &link->number_waiter, number_done);
	link->number_asked = true;
	return 0;
}

/* Units */

static void unit_done(struct flow_waiter *waiter, int status)
{
	struct link *link = LINK_OF(waiter, unit_waiter);
	const struct geometry *g = &link->node->super.geometry;
	uint64_t unit = link->area->unit;

	link->deferred_in_flight--;
	if (status || unit + link->unit_run > g->unit_count) {
		if (!status)
			atomic_store(&link->node->full, true);
		link->unit_class = 0;
		return;
	}
	link->unit_offset = g->heap_offset + unit * UNIT_BYTES;
	link->unit_header_due = true;
}

static void ask_unit(struct link *link, unsigned size_class)
{
	if (link->unit_class != 0 || !flow_reserve(&link->flow, 1))
		return;
	link->unit_class = (uint8_t)size_class;
	link->unit_run = unit_run(size_class);
	flow_faa(&link->flow, &link->area->unit,
		 geometry_counter(&link->node->super.geometry, COUNTER_UNITS), link->unit_run,
		 FLOW_DEFERRED);
	deferred_posted(link, &link->unit_waiter, unit_done);
}

/* WRITEs the header of a unit that has been handed to us and adds it to the heap. False: no room in
 * the queue. */
static bool head_unit(struct link *link)
{
	struct unit_header header = {
		.owner = (uint16_t)link->node->client_id,
		.size_class = link->unit_class,
		.run = link->unit_run,
		.session = link->session_number,
	};

	if (!flow_reserve(&link->flow, 1))
		return false;
	unit_header_encode(&header, link->area->header);
	flow_write(&link->flow, link->area->header, LINE_BYTES, link->unit_offset, FLOW_DEFERRED);
	if (heap_add_unit(link->heap, link->unit_offset, link->unit_class))
		log_line(&link->session->store->logger, LOG_LEVEL_ERROR,
			 "out of memory: a unit of the region is lost");
	link->unit_header_due = false;
	link->unit_class = 0;
	return true;
}

/* Scans and clears */

static void scan_done(struct flow_waiter *waiter, int status)
{
	struct link *link = LINK_OF(waiter, scan_waiter);
	uint32_t found = 0;
	struct load load;

	link->deferred_in_flight--;
	if (!status) {
		load_decode(link->area->load, &load);
		for (uint32_t i = 0; i < link->scan_count; i++)
			found += heap_scan_arrived(link->heap, link->scan_units[i],
						   link->area->bitmaps[i], load.epoch);
	}
	link->scan_count = 0;
	link->scan_pause_ns = found > 0 || link->scan_pause_ns == 0 ? SCAN_PAUSE_FIRST_NS
								    : 2 * link->scan_pause_ns;
	if (link->scan_pause_ns > SCAN_PAUSE_CAP_NS)
		link->scan_pause_ns = SCAN_PAUSE_CAP_NS;
}

static void start_scan(struct link *link, unsigned size_class)
{
	if (link->scan_count > 0 ||
	    link->session->now_ns - link->scanned_ns < link->scan_pause_ns ||
	    !flow_reserve(&link->flow, HEAP_SCAN_UNITS + 1))
		return;
	link->scanned_ns = link->session->now_ns;
	link->scan_count = heap_scan_next(link->heap, size_class, link->scan_units);
	if (link->scan_count == 0)
		return;
	for (uint32_t i = 0; i < link->scan_count; i++)
		flow_read(&link->flow, link->area->bitmaps[i], UNIT_BITMAP_WORDS * 8,
			  link->heap->units[link->scan_units[i]].offset + UNIT_BITMAP_AT,
			  FLOW_DEFERRED);
	flow_read(&link->flow, link->area->load, LINE_BYTES,
		  geometry_counter(&link->node->super.geometry, COUNTER_LOAD), FLOW_DEFERRED);
	deferred_posted(link, &link->scan_waiter, scan_done);
}

static void clear_done(struct flow_waiter *waiter, int status)
{
	struct link *link = LINK_OF(waiter, clear_waiter);

	link->deferred_in_flight--;
	if (!status)
		heap_cleared(link->heap, (uint32_t)link->clear_unit);
	link->clear_unit = HEAP_NO_UNIT;
}

static void start_clear(struct link *link, int64_t unit)
{
	struct heap_unit *of = &link->heap->units[unit];

	for (unsigned w = 0; w < UNIT_BITMAP_WORDS; w++)
		if (of->marked[w])
			flow_faa(&link->flow, &link->area->sink[0],
				 of->offset + UNIT_BITMAP_AT + 8 * w, UINT64_C(0) - of->marked[w],
				 FLOW_DEFERRED);
	link->clear_unit = unit;
	deferred_posted(link, &link->clear_waiter, clear_done);
}

static void clear_what_is_ripe(struct link *link)
{
	for (unsigned c = 1; c < SIZE_CLASS_COUNT && link->clear_unit == HEAP_NO_UNIT; c++) {
		int64_t unit;

		if (link->heap->classes[c].limbo_count == 0)
			continue;
		if (!flow_reserve(&link->flow, UNIT_BITMAP_WORDS))
			return;
		unit = heap_next_to_clear(link->heap, c);
		if (unit != HEAP_NO_UNIT)
			start_clear(link, unit);
	}
}

int link_take_block(struct link *link, unsigned size_class, struct heap_block *block)
{
	struct heap *heap = link->heap;
	struct heap_class *class = &heap->classes[size_class];
	bool full = atomic_load_explicit(&link->node->full, memory_order_relaxed);

	if (link->unit_header_due)
		head_unit(link);
	heap_reap(heap);
	if (heap_take(heap, size_class, block)) {
		/* Look for marks while there is still something to hand out. */
		if (class->free_count == unit_blocks(size_class) / 4 && class->unit_count > 1)
			start_scan(link, size_class);
		return 0;
	}
	clear_what_is_ripe(link);
	if (class->limbo_count > 0)
		atomic_store_explicit(&link->node->epoch.hurry, true, memory_order_relaxed);
	if (!full && !heap_prefers_waiting(heap, size_class)) {
		ask_unit(link, size_class);
		return -EAGAIN;
	}
	if (full && !heap_expects(heap, size_class) && link->unit_class == 0) {
		/* Others may have freed since: after a while all units are looked at once more
		 * before we say no again. */
		if (link->session->now_ns - link->dry_ns[size_class] < DRY_NS ||
		    class->unit_count == 0)
			return -ENOSPC;
		link->dry_ns[size_class] = link->session->now_ns;
		class->dry_scans = 0;
	}
	/* Nothing else is left: look at all units without pause. */
	link->scan_pause_ns = SCAN_PAUSE_FIRST_NS;
	start_scan(link, size_class);
	return -EAGAIN;
}

/* Free bits and counters */

void link_free_block(struct link *link, struct heap_block block)
{
	struct unit_bit bit;

	if (heap_retire(link->heap, block))
		return;
	if (!unit_bit_of_block(block.offset, block.size_class, &bit))
		return; /* not a block: nothing that farkv wrote; fsck tells */
	if (link->freed_count == link->freed_capacity) {
		struct freed *grown = malloc(2 * link->freed_capacity * sizeof *grown);

		if (!grown)
			return; /* leaks one block; the owner's audit finds it */
		for (uint32_t i = 0; i < link->freed_count; i++)
			grown[i] = link->freed[(link->freed_head + i) % link->freed_capacity];
		free(link->freed);
		link->freed = grown;
		link->freed_head = 0;
		link->freed_capacity *= 2;
	}
	link->freed[(link->freed_head + link->freed_count++) % link->freed_capacity] =
		(struct freed){.word_offset = bit.word_offset, .mask = bit.mask};
}

static bool stage_freed(struct link *link)
{
	struct freed *freed = &link->freed[link->freed_head];

	if (link->freed_count == 0 || !flow_reserve(&link->flow, 1))
		return false;
	flow_faa(&link->flow, &link->area->sink[1], freed->word_offset, freed->mask, FLOW_DEFERRED);
	link->freed_head = (link->freed_head + 1) % link->freed_capacity;
	link->freed_count--;
	return true;
}

static bool stage_counters(struct link *link)
{
	const struct geometry *g = &link->node->super.geometry;
	unsigned stripe = link->session->tag % COUNTER_STRIPES;

	if (!flow_reserve(&link->flow, 2))
		return false;
	if (link->items_delta != 0)
		flow_faa(&link->flow, &link->area->sink[2],
			 geometry_counter(g, COUNTER_ITEMS + stripe), (uint64_t)link->items_delta,
			 FLOW_DEFERRED);
	flow_faa(&link->flow, &link->area->sink[3], geometry_counter(g, COUNTER_COMMITS + stripe),
		 link->commits_delta, FLOW_DEFERRED);
	link->items_delta = 0;
	link->commits_delta = 0;
	link->changes = 0;
	return true;
}

bool link_stage_deferred(struct link *link, uint32_t room, bool all)
{
	uint32_t before = flow_staged(&link->flow);

	if (link->unit_header_due)
		head_unit(link);
	if (link->clear_unit == HEAP_NO_UNIT && heap_reap(link->heap))
		clear_what_is_ripe(link);
	/* In turn: mends hold pins, and free bits give memory back; neither may starve the other.
	 */
	for (bool more = true; more && flow_staged(&link->flow) < room;) {
		more = mend_stage(link);
		if (flow_staged(&link->flow) < room && stage_freed(link))
			more = true;
	}
	if (link->changes >= COUNTER_CHANGES_MAX || (all && link->changes > 0))
		stage_counters(link);
	return flow_staged(&link->flow) > before;
}

bool link_owes(const struct link *link, bool counters)
{
	return link->mends_head || link->freed_count > 0 || link->deferred_in_flight > 0 ||
	       link->unit_header_due || (counters && link->changes > 0);
}

/* The queue pair has failed: wait for its flushes, then nothing of it is in flight. */
static void drain(struct link *link)
{
	uint64_t now = link->session->now_ns;

	if (link->down)
		return;
	if (link->broken_ns == 0) {
		link->broken_ns = now;
		log_line(&link->session->store->logger, LOG_LEVEL_ERROR,
			 "the queue pair to memory node %u is broken: its operations fail until "
			 "the store is opened again",
			 link->node->mn_id);
	}
	if (flow_in_flight(&link->flow) > 0 && now - link->broken_ns < DRAIN_NS)
		return;
	qp_destroy(link->qp);
	link->qp = NULL;
	link->down = true;
	flow_cancel(&link->flow);
	link->freed_count = 0;
	link->mends_queued = 0;
	link->changes = 0;
	link->unit_header_due = false;
	while (link->mends_head) {
		struct mend *mend = link->mends_head;

		link->mends_head = mend->next;
		mend_free(mend);
	}
}

void link_pay(struct link *link)
{
	while (link->mends_queued + link->freed_count > DEFERRED_CHAIN_MAX &&
	       link_stage_deferred(link, FLOW_CHAIN_MAX, false))
		flow_post(&link->flow);
}

void link_turn(struct link *link, bool quiet, bool idle_work)
{
	if (link->flow.broken) {
		drain(link);
		return;
	}
	if ((quiet && flow_in_flight(&link->flow) == 0) || idle_work || link->unit_header_due)
		link_stage_deferred(link, DEFERRED_CHAIN_MAX, idle_work);
	flow_post(&link->flow);
}
