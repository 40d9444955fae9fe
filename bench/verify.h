/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what the store answers can be true. Every operation on a key is announced before it
 * is submitted and judged when it is answered; the argument is at the head of verify.c.
 * Thread-safe, and across processes that share the table's file.
 */
#ifndef FARKV_BENCH_VERIFY_H
#define FARKV_BENCH_VERIFY_H

#include "bench/value.h"
#include "bench/verify_table.h"

enum bench_fault {
	BENCH_FAULT_NONE,
	BENCH_FAULT_VALUE,     /* not a value that farkv-bench wrote */
	BENCH_FAULT_TORN,      /* parts of different values */
	BENCH_FAULT_KEY,       /* another key's value */
	BENCH_FAULT_UNWRITTEN, /* a value that nobody has begun to write */
	BENCH_FAULT_VOID,      /* a value whose write was answered "no effect" */
	BENCH_FAULT_STALE,     /* a value that was overwritten or deleted before */
	BENCH_FAULT_LOST,      /* answered "absent" where the key was certainly present */
	BENCH_FAULT_GHOST,     /* answered "present" where the key was certainly absent */
	BENCH_FAULT_UNPAIRED,  /* two inserts without a delete between them, or the reverse */
	BENCH_FAULTS,
};

const char *bench_fault_name(enum bench_fault fault);

enum bench_write {
	BENCH_WRITE_INSERT, /* happens only where the key is absent */
	BENCH_WRITE_UPDATE, /* happens only where it is present */
	BENCH_WRITE_DELETE, /* likewise */
};

enum bench_outcome {
	BENCH_OUTCOME_DONE,
	BENCH_OUTCOME_REFUSED, /* insert: exists; update, delete: not found */
	BENCH_OUTCOME_VOID,    /* certainly without effect, for another reason */
	BENCH_OUTCOME_UNKNOWN, /* may have happened, or may still */
};

struct bench_verify {
	struct bench_verify_table table;
	uint64_t loaded;  /* numbers below are taken to have been there from the start */
	uint64_t clients; /* > 1: only numbers % clients == client_id are this table's to judge */
	uint64_t client_id;
};

/* One operation in flight. start 0: the key is not this table's to judge. */
struct bench_verify_token {
	uint32_t start;
	uint32_t ticket;
};

void bench_verify_write_start(struct bench_verify *verify, uint64_t number, enum bench_write write,
			      struct bench_verify_token *token);
enum bench_fault bench_verify_write_end(struct bench_verify *verify, uint64_t number,
					enum bench_write write, enum bench_outcome outcome,
					const struct bench_verify_token *token);

void bench_verify_read_start(struct bench_verify *verify, uint64_t number,
			     struct bench_verify_token *token);
/* Proves the value itself too. An error other than "not found" needs no call. */
enum bench_fault bench_verify_read_value(struct bench_verify *verify, uint64_t number,
					 const struct bench_verify_token *token, const void *value,
					 size_t value_bytes);
enum bench_fault bench_verify_read_absent(struct bench_verify *verify, uint64_t number,
					  const struct bench_verify_token *token);

#endif
