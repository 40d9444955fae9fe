/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the verification model: one record per key number, in memory of this process
 * or in a file that several processes map. All of it zero is "nothing happened yet", so the
 * mapping stays sparse: only keys that were touched cost memory.
 *
 * A record is read and written under its lock, a word that holds its holder's process id. The
 * release of that word pairs with the acquire of the next holder, in whatever process. A holder
 * that died is found out, its lock taken over, and its key left unchecked from then on.
 */
#ifndef FARKV_BENCH_VERIFY_TABLE_H
#define FARKV_BENCH_VERIFY_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/workload.h"

enum bench_event_state {
	BENCH_EVENT_EMPTY = 0,
	BENCH_EVENT_OPEN = 1,	 /* a write of a value, not yet answered */
	BENCH_EVENT_UNKNOWN = 2, /* answered "outcome unknown", and not seen by a read yet */
	BENCH_EVENT_DONE = 3,	 /* has happened */
	BENCH_EVENT_VOID = 4,	 /* answered "no effect" */
	BENCH_EVENT_ABSENT = 5,	 /* the key was absent at some moment in [last_start, first_end] */
};

/* A value and all operations that had to do with it; times count the key's own events. */
struct bench_event {
	uint32_t start;	     /* of the write */
	uint32_t first_end;  /* the earliest end of the write and of the reads of it; 0: none yet */
	uint32_t last_start; /* the latest start of the write and of the finished reads of it */
	uint32_t ticket : 28;
	uint32_t insert : 1; /* of the writes of values, an insert */
	uint32_t state : 3;
};

struct bench_key_model {
	_Atomic uint32_t lock;
	uint32_t clock;	    /* events of this key so far */
	uint32_t tickets;   /* handed out so far, from 1 */
	uint32_t open_puts; /* writes of values without a known outcome */
	uint32_t open_deletes;
	uint32_t evicted_open; /* of open_puts, those that the ring has forgotten */
	uint32_t evicted_end;  /* the latest first_end of the DONE events forgotten */
	uint32_t put_end_max;  /* the latest end of a write of a value that happened */
	uint32_t delete_end_max;
	uint32_t first_end;	/* the earliest moment by which anything had happened; 0: none */
	uint32_t foreign_stamp; /* of the value found from before this table; 0: none seen */
	int32_t balance;	/* inserts less deletes that happened */
	uint32_t open_inserts;	/* of open_puts */
	uint32_t initially; /* what is ruled out: bit 0 that the key was absent, bit 1 present */
	uint32_t unused;
	uint32_t unchecked; /* 1: counters are exhausted or a holder died: no more verdicts */
	struct bench_event ring[]; /* table->ring of them, in no order */
};

_Static_assert(sizeof(struct bench_event) == 16, "shared between processes");
_Static_assert(sizeof(struct bench_key_model) == 64, "shared between processes");

struct bench_verify_table {
	unsigned char *memory; /* owned; the header, then the records */
	size_t memory_bytes;
	uint64_t numbers; /* keys 0..numbers-1 have records */
	uint32_t ring;
	uint32_t record_bytes;
	uint32_t run; /* what values written by this table's tickets carry */
	uint32_t holder;
};

/*
 * path NULL: private memory. Otherwise the file is made, or joined if it is there already.
 * `run` names a table that is made; never 0. False with a reason in `error`.
 */
bool bench_verify_table_open(struct bench_verify_table *table, const char *path, uint64_t records,
			     uint64_t numbers, uint32_t run, char error[BENCH_ERROR_BYTES]);
void bench_verify_table_close(struct bench_verify_table *table);

/* number < table->numbers. The record is the caller's until it is unlocked. */
struct bench_key_model *bench_verify_table_lock(const struct bench_verify_table *table,
						uint64_t number);
void bench_verify_table_unlock(struct bench_key_model *key);

#endif
