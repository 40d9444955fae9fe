/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: one thread's operations in flight, its links to the memory nodes, and what it owes.
 * Internal.
 */
#ifndef FARKV_CN_SESSION_H
#define FARKV_CN_SESSION_H

#include "cn/store.h"
#include "layout/block.h"
#include "layout/bucket.h"
#include "layout/control.h"
#include "layout/place.h"

#include <sched.h>

enum {
	OP_AREA_BYTES = 4608, /* registered bytes of one operation */
	OP_RESULTS = 4,
	OP_SMALL_BYTES = 2048,
	MEND_AREA_BYTES = 64,
	SKIPPED_MAX = 16, /* instances that one slot CAS skips */
	FOLLOW_MAX = 4,	  /* FORWARDs followed before the slot is looked up again */
	LARGE_BUFFERS_MAX = 16,
	COMPLETIONS_BATCH = 32,
	COUNTER_CHANGES_MAX = 32, /* changes kept before they are FAAed */
	DEFERRED_CHAIN_MAX =
		16, /* deferred work requests that ride in one doorbell ahead of operations */
	LINK_COUNTER_RESULTS = 8,
	ABSENT_NS = 100000000,
	KEY_TURN_BITS = 10,
};

/* Registered, of one operation; zeroed at its start as far as results go. */
struct op_area {
	uint8_t bucket[BUCKET_BYTES];
	uint64_t results[OP_RESULTS]; /* of atomics */
	uint64_t report;	      /* sources of small WRITEs */
	uint64_t guard;
	uint64_t slot;
	uint8_t pad[8];
	uint8_t read[OP_SMALL_BYTES];
	uint8_t write[OP_SMALL_BYTES];
};

_Static_assert(sizeof(struct op_area) <= OP_AREA_BYTES, "an operation's area holds its parts");

/* Where an instance is and how it is named there. */
struct instance {
	uint64_t offset;
	uint64_t control; /* its LIVE word, where known */
	uint8_t size_class;
	uint32_t tag; /* low bits of its name: 8 (from a slot) or 20 (from a FORWARD) of them count
		       */
	uint32_t tag_mask;
};

/* Owed: make a slot name the tail of its chain of instances. See mend.c. */
struct mend {
	struct flow_waiter waiter;
	struct link *link;
	struct mend *next;
	uint64_t slot_offset;
	uint64_t word; /* what the slot is believed to hold */
	uint64_t tail; /* what it is to hold: a slot word, or SLOT_EMPTY */
	uint64_t pinned;
	struct instance at; /* while walking */
	struct heap_block skipped[SKIPPED_MAX];
	uint32_t skipped_count;
	uint32_t rounds;
	bool walking, partial;
	uint64_t *area; /* registered: [0] CAS result, [1] control word READ */
};

/* A free bit to set, posted as FAA. */
struct freed {
	uint64_t word_offset;
	uint64_t mask;
};

struct session;

/* A session's end of one memory node. */
struct link {
	struct farkv_session *session;
	struct node *node;
	struct link *next_link; /* in node->links */
	struct qp *qp;
	struct flow flow;
	struct pins pins;
	struct heap *heap;
	bool down;	    /* operations fail; what was in flight has been called back */
	uint64_t broken_ns; /* when the flow was first seen broken */

	uint32_t session_number; /* 0 = none yet */
	uint64_t sequence;
	struct flow_waiter number_waiter;
	bool number_asked;
	bool numbers_gone; /* the region has none left */

	struct flow_waiter unit_waiter; /* FAA of the units counter */
	uint8_t unit_class;		/* 0 = none asked for */
	uint32_t unit_run;
	bool unit_header_due;
	uint64_t unit_offset;

	struct flow_waiter scan_waiter;
	uint32_t scan_units[HEAP_SCAN_UNITS];
	uint32_t scan_count; /* 0 = no scan in flight */
	uint64_t scanned_ns, scan_pause_ns;
	struct flow_waiter clear_waiter;
	int64_t clear_unit;		   /* HEAP_NO_UNIT = none in flight */
	uint64_t dry_ns[SIZE_CLASS_COUNT]; /* when scans of a class last began to find nothing */

	struct mend *mends_head, *mends_tail; /* owed, not posted */
	uint32_t mends_queued;
	struct freed *freed; /* ring of free bits not posted */
	uint32_t freed_head, freed_count, freed_capacity;
	int64_t items_delta;
	uint64_t commits_delta;
	uint32_t changes;	     /* since the counters were last FAAed */
	uint32_t deferred_in_flight; /* deferred chains with a waiter, not completed */

	/* Registered, of this link. */
	struct link_area {
		uint64_t sink[LINK_COUNTER_RESULTS]; /* results nobody reads */
		uint64_t number, unit;
		uint8_t header[LINE_BYTES];
		uint8_t load[LINE_BYTES];
		uint8_t counters[COUNTER_LINES * LINE_BYTES];
		uint8_t bitmaps[HEAP_SCAN_UNITS][UNIT_BITMAP_WORDS * 8];
	} * area;
};

struct op {
	struct flow_waiter waiter;
	struct farkv_session *session;
	struct link *link;
	struct op *next, *prev;	     /* in the session's waiting list */
	void (*step)(struct op *op); /* when its chain completes */
	void (*on_locked)(struct op *op), (*on_locked_again)(struct op *op),
		(*after_release)(struct op *op);
	void (*resume)(struct op *op); /* when it waits: called at polls from wake_ns on */
	uint64_t wake_ns, deadline_ns;
	struct op_area *area;
	struct farkv_request request; /* key points to `key`, value is gone */
	struct farkv_result result;
	struct key_hash hash;
	uint64_t pinned, pin_stamp, stamp;
	uint64_t posted_activation;
	int status; /* of the chain that completed */
	bool active, delivered, waiting, has_pin, reported;
	bool decisive; /* a chain that may change the store has been posted and not been read back
			*/
	bool locked, local_lock, lock_wanted;
	bool starved;  /* waits for memory in a region that has no fresh units */
	bool has_turn; /* at its key, among the session's mutations */
	bool written;  /* the block's WRITE has been completed */
	bool used_cache, hold_candidates;
	uint32_t backoff;
	uint32_t follows, retries;

	struct cache_entry entry; /* from the cache */
	uint64_t bucket_offset, guard_free, guard_mine;
	uint32_t bucket_depth;
	uint8_t found[BUCKET_SLOTS]; /* candidate slots */
	uint32_t found_count, candidate;
	uint64_t slot_offset, slot_word; /* of the candidate in hand, or the slot to fill */
	struct instance at;		 /* the instance in hand */
	struct heap_block
		skipped[SKIPPED_MAX]; /* from slot_word's instance up to `at`, exclusive */
	uint32_t skipped_count;

	struct heap_block block; /* ours, to be published; offset 0 = none */
	uint64_t name;		 /* of the block's instance, or of a deletion */
	uint64_t control_mine;	 /* LIVE(name) */
	uint8_t *image;		 /* encoded block: area->write or a large buffer */
	uint32_t image_bytes;
	uint8_t *large_read; /* NULL or a large buffer */
	struct mend *mend;   /* reserved */
	uint8_t key[FARKV_KEY_MAX];
};

struct farkv_session {
	struct farkv *store;
	struct ibv_cq *cq;
	struct link *links; /* one per node, by index */
	struct memory memory;
	struct flow_counts counts[2];
	struct farkv_session_stats stats;
	struct op *ops;
	struct op *free_ops; /* linked by next */
	struct op *waiting;  /* list */
	struct mend *mends;
	struct mend *free_mends;
	uint8_t *large; /* LARGE_BUFFERS of large_bytes */
	uint32_t large_bytes, large_count;
	uint32_t large_free_mask;
	uint32_t depth, in_flight, zombies;
	uint32_t tag;
	bool key_turns[1 << KEY_TURN_BITS]; /* hashed keys with a mutation of this session under way
					     */
	uint64_t now_ns, scanned_ns;
	uint64_t random;
	uint32_t delivered; /* in this poll */
	unsigned fork_generation;
	bool polling;		    /* inside a public call: done functions may submit */
	_Atomic bool busy;	    /* see session.c */
	struct farkv_session *next; /* in store->sessions */
};

/* session.c */
void session_enter(struct farkv_session *session);
void session_leave(struct farkv_session *session);
/* By the helper: one turn of a session whose thread has been away for ABSENT_NS and that owes work.
 */
void session_turn_for_absent(struct farkv_session *session, uint64_t now_ns);
void session_poll(struct farkv_session *session, bool idle_work);
uint64_t session_random(struct farkv_session *session);

/* op.c: what all operations share. */
int op_submit(struct farkv_session *session, const struct farkv_request *request);
/* Ends the operation for its caller, once, and gives back what it holds; op is free afterwards. */
void op_finish(struct op *op, int status);
/* Ends it for its caller only: its chains are still in flight. */
void op_deliver(struct op *op, int status);
/* At the next poll (delay_ns 0) or later, `resume` is called. */
void op_wait(struct op *op, void (*resume)(struct op *op), uint64_t delay_ns);
/*
 * Room for a chain of `count` work requests, with the report ahead where one is due. False: `again`
 * will be called when there may be room, or the operation has been finished because its link is
 * down or its time is up.
 */
bool op_begin_chain(struct op *op, uint32_t count, void (*again)(struct op *op));
/* Ends the chain: step is called when it completes. */
void op_end_chain(struct op *op, void (*step)(struct op *op));
/* False: the chain failed; the operation has been finished. */
bool op_chain_ok(struct op *op);
/* Past the deadline, or delivered already: finishes it with ETIMEDOUT and says true. Not while
 * locked. */
bool op_expired(struct op *op);
void op_retry_cold(struct op *op, void (*again)(struct op *op));
/* A name for what the operation is about to write; takes session numbers. False: `again` will be
 * called. */
bool op_take_name(struct op *op, void (*again)(struct op *op));
/* Block, name and mend of a mutation. False as above, or finished with ENOSPC. */
bool op_take_block(struct op *op, void (*again)(struct op *op));
bool op_take_mend(struct op *op, void (*again)(struct op *op));
bool op_take_pin(struct op *op, void (*again)(struct op *op));
void op_drop_pin(struct op *op);
/* Waits for memory or a buffer: drops the pin and all that was reached, and starts again at a later turn. */
void op_wait_unpinned(struct op *op);
bool op_is_protected(const struct op *op);
uint64_t op_slot_word(const struct op *op, uint64_t offset, uint8_t size_class, uint64_t name);
void op_cache_put(struct op *op, uint64_t control, uint64_t offset, uint8_t size_class,
		  uint64_t slot_offset);
/* The slot is to name `tail` instead of op->slot_word; the skipped instances of op are the mend's.
 * Hands over the pin. */
void op_owe(struct op *op, uint64_t tail_word);
void op_count(struct op *op, int items);

/* lookup.c: from key to the instance in hand. */
void lookup_cold(struct op *op, void (*on_bucket)(struct op *op));
bool lookup_bucket_ok(struct op *op);
/* Puts candidate i into hand (op->slot_*, op->at). False: no more. */
bool lookup_next_candidate(struct op *op);
/* Stages a READ of the instance in hand: all of it, or header and key only. */
bool lookup_read(struct op *op, bool whole, void (*again)(struct op *op),
		 void (*step)(struct op *op));

/* Bytes of header and key at the instance in hand. */
uint32_t lookup_head_bytes(const struct op *op);

enum lookup_verdict {
	LOOKUP_LIVE,	/* at.control is its LIVE word */
	LOOKUP_FORWARD, /* `at` is now the next instance, the one before is skipped */
	LOOKUP_DEAD,	/* DEAD, and skipped */
	LOOKUP_OTHER,	/* another key */
	LOOKUP_AGAIN,	/* not what the slot said: look up afresh */
};
/* What the READ of the instance in hand found. */
enum lookup_verdict lookup_judge(struct op *op, bool whole, struct block *block);

/* The instance in hand has been replaced: takes the next one into hand. LOOKUP_FORWARD or
 * LOOKUP_AGAIN. */
enum lookup_verdict lookup_follow(struct op *op, uint64_t control);
/* The instance in hand is to be skipped by the slot. */
void lookup_skip(struct op *op);

void get_start(struct op *op);
void update_start(struct op *op);    /* update, and put with a cached address */
void update_instance(struct op *op); /* CAS of the LIVE instance in hand */
void delete_start(struct op *op);
void insert_start(struct op *op); /* insert, and put without a cached address */

/* lock.c */
/* Takes the lock and READs the bucket; `again` where its lines turned out not to serve the key. */
void lock_bucket(struct op *op, void (*on_locked)(struct op *op), void (*again)(struct op *op));
/* Stages the WRITE that frees the guard, in a chain already begun. */
void lock_stage_release(struct op *op, unsigned flags);
void lock_released(struct op *op);
/* The caller has been told ETIMEDOUT: releases and finishes. */
void lock_give_up(struct op *op);
/* Releases in a chain of its own and then calls `then`. */
void lock_release_then(struct op *op, void (*then)(struct op *op));

/* mend.c */
void mend_queue(struct link *link, struct mend *mend);
void mend_free(struct mend *mend);
bool mend_stage(struct link *link);

/* link.c */
int link_open(struct farkv_session *session, struct node *node, struct link *link, uint16_t id);
void link_close(struct link *link);
/* Stages deferred work, as much as `room` work requests allow. Returns whether anything was staged.
 */
bool link_stage_deferred(struct link *link, uint32_t room, bool all);
void link_free_block(struct link *link, struct heap_block block);
bool link_owes(const struct link *link, bool counters);
/*
 * Posts what is staged. quiet: nothing has completed in this turn; owed work is then posted by
 * itself where nothing is in flight. idle_work: owed work is posted in any case. Takes the link
 * down when its flow has broken and been drained.
 */
void link_turn(struct link *link, bool quiet, bool idle_work);
/*
 * Ahead of new operations: posts owed work while more of it waits than rides along. Left to what
 * new chains carry, it would pile up under load, and its pins would hold the epoch back.
 */
void link_pay(struct link *link);
/* The session's number at the node, or 0: asked for. */
uint32_t link_number(struct link *link);
/* A block of the class. 0; -EAGAIN it is on its way; -ENOSPC. */
int link_take_block(struct link *link, unsigned size_class, struct heap_block *block);

#endif
