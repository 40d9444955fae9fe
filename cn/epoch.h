/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs on the client's side: what a process has reported to one memory node, what its
 * operations pin, and what follows for cached addresses. The argument is in epoch.c.
 */
#ifndef FARKV_CN_EPOCH_H
#define FARKV_CN_EPOCH_H

#include "layout/client.h"
#include "layout/counter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PIN_RING = 8, STAMP_EPOCH_BITS = 36 };

#define EPOCH_IDLE	 CLIENT_IDLE	   /* the line says idle, or will before anything else */
#define EPOCH_GOING_IDLE (CLIENT_IDLE - 1) /* the idle WRITE is in flight: operations wait */
#define PIN_NONE	 UINT64_MAX

/* Of one process at one memory node; shared by its sessions and its reporter. */
struct epoch {
	_Atomic uint64_t reported; /* what new operations pin */
	_Atomic uint64_t newest;   /* newest epoch of the MN that this process has READ */
	_Atomic uint64_t safe;
	_Atomic uint64_t time_ms;
	_Atomic uint64_t load_posted; /* READs of the load line posted by the reporter, */
	_Atomic uint64_t load_done;   /* and completed */
	_Atomic uint64_t activation;  /* grows whenever the process may have been idle */
	_Atomic uint64_t confirmed;   /* the activation for which a report has completed */
	_Atomic uint64_t last_use_ns;
	_Atomic bool hurry; /* memory is waiting for an epoch */
};

/* Of one session at one memory node. `oldest` is read by the reporter, the rest is the session's.
 */
struct pins {
	_Atomic uint64_t oldest;
	uint32_t head, count; /* ring entries in use */
	struct {
		uint64_t epoch;
		uint32_t operations;
	} ring[PIN_RING];
};

void epoch_init(struct epoch *epoch, const struct load *load);
void pins_init(struct pins *pins);

/* Pins the reported epoch. False: the process is going idle at this moment; try at the next poll.
 */
bool pins_take(struct pins *pins, struct epoch *epoch, uint64_t *pinned);
void pins_drop(struct pins *pins, uint64_t pinned);

/* Whether chains must carry a report of their own. */
static inline bool epoch_needs_report(struct epoch *epoch)
{
	return atomic_load_explicit(&epoch->confirmed, memory_order_acquire) !=
	       atomic_load_explicit(&epoch->activation, memory_order_acquire);
}

/* A report posted while `activation` was in force has completed. */
void epoch_confirm(struct epoch *epoch, uint64_t activation);

/*
 * A stamp says when an instance was last seen current or named by a slot: activation and epoch in
 * one word, ordered. stamp >= pin stamp: protected.
 */
static inline uint64_t epoch_stamp(uint64_t activation, uint64_t epoch)
{
	return activation << STAMP_EPOCH_BITS | (epoch & ((UINT64_C(1) << STAMP_EPOCH_BITS) - 1));
}

/* To be taken before the chain is posted that makes the look. */
uint64_t epoch_stamp_now(struct epoch *epoch);

/* The reporter's half. */
void epoch_load_arrived(struct epoch *epoch, const struct load *load, uint64_t load_number);
/* What to WRITE into the line, pins considered. */
uint64_t epoch_begin_report(struct epoch *epoch, uint64_t oldest_pin(void *arg), void *arg);
/* True: idle may be posted now; epoch_idle_done must follow its completion. */
bool epoch_try_idle(struct epoch *epoch, uint64_t oldest_pin(void *arg), void *arg);
void epoch_idle_done(struct epoch *epoch);

#endif
