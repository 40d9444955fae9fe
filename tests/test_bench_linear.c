/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verification model against the definition: random short histories with arbitrary answers
 * are judged by the model and by trying every order. What the model blames must have no legal
 * order; of what has none, the model must find most.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "bench/random.h"
#include "bench/verify.h"

enum { KEY = 3, OPS = 8, CLIENTS = 3, HISTORIES = 400000, BYTES = 48, FOREIGN = 1000 };

/* A get is kind 0, writes are 1 + enum bench_write. */
struct operation {
	int kind;
	uint32_t start, end; /* order of events; end 0: still running */
	uint32_t ticket;     /* of a write of a value; what a get answered, 0: absent */
	bool done;	     /* a write: has happened, rather than been refused */
	struct bench_verify_token token;
};

struct history {
	struct operation ops[OPS];
	int count;
};

/* Whether the operation can happen in that state, and the state after it. */
static bool applies(const struct operation *op, uint32_t *state)
{
	bool wants_present = op->kind != 1 + BENCH_WRITE_INSERT;

	if (op->kind == 0)
		return op->ticket == *state;
	if (!op->done)
		return (*state == 0) == wants_present;
	if ((*state != 0) != wants_present)
		return false;
	*state = op->kind == 1 + BENCH_WRITE_DELETE ? 0 : op->ticket;
	return true;
}

/* `left`: the operations that are still to be put in order. */
static bool orders(const struct history *history, unsigned int left, uint32_t state)
{
	uint32_t first_end = UINT32_MAX, after;

	if (left == 0)
		return true;
	for (int i = 0; i < history->count; i++) {
		if (left >> i & 1 && history->ops[i].end < first_end)
			first_end = history->ops[i].end;
	}
	for (int i = 0; i < history->count; i++) {
		after = state;
		if (left >> i & 1 && history->ops[i].start < first_end &&
		    applies(&history->ops[i], &after) && orders(history, left & ~(1u << i), after))
			return true;
	}
	return false;
}

static bool linearizable(const struct history *history)
{
	unsigned int all = (1u << history->count) - 1;

	/* Nobody told the model whether the key was there. */
	return orders(history, all, 0) || orders(history, all, FOREIGN);
}

static void operation_start(struct bench_verify *verify, struct operation *op, int kind,
			    uint32_t now)
{
	*op = (struct operation){.kind = kind, .start = now};
	if (kind == 0)
		bench_verify_read_start(verify, KEY, &op->token);
	else
		bench_verify_write_start(verify, KEY, (enum bench_write)(kind - 1), &op->token);
	op->ticket = op->token.ticket;
}

static enum bench_fault operation_end(struct bench_verify *verify, struct operation *op,
				      uint32_t tickets, struct bench_random *random, uint32_t now)
{
	char value[BYTES];

	op->end = now;
	op->done = bench_random_below(random, 4) != 0;
	if (op->kind > 0)
		return bench_verify_write_end(verify, KEY, (enum bench_write)(op->kind - 1),
					      op->done ? BENCH_OUTCOME_DONE : BENCH_OUTCOME_REFUSED,
					      &op->token);
	op->ticket = (uint32_t)bench_random_below(random, tickets + 1);
	if (op->ticket == 0)
		return bench_verify_read_absent(verify, KEY, &op->token);
	bench_value_encode(&(struct bench_value){KEY, 0, 9, op->ticket}, value, BYTES);
	return bench_verify_read_value(verify, KEY, &op->token, value, BYTES);
}

/* Makes a history, and returns whether the model blames it. */
static bool history_make(struct history *history, struct bench_random *random)
{
	int running[CLIENTS] = {-1, -1, -1}, wanted = 2 + (int)bench_random_below(random, OPS - 1);
	uint32_t now = 0, tickets = 0;
	struct bench_verify verify = {0};
	char error[BENCH_ERROR_BYTES];
	bool blamed = false;
	int client, finished = 0;

	cr_assert(bench_verify_table_open(&verify.table, NULL, 8, 8, 9, error), "%s", error);
	history->count = 0;
	while (finished < wanted) {
		client = (int)bench_random_below(random, CLIENTS);
		if (running[client] < 0 && history->count < wanted) {
			running[client] = history->count++;
			operation_start(&verify, &history->ops[running[client]],
					(int)bench_random_below(random, 4), ++now);
			tickets += history->ops[running[client]].ticket != 0;
		} else if (running[client] >= 0) {
			blamed |= operation_end(&verify, &history->ops[running[client]], tickets,
						random, ++now) != BENCH_FAULT_NONE;
			running[client] = -1;
			finished++;
		}
	}
	bench_verify_table_close(&verify.table);
	return blamed;
}

Test(bench_linear, the_model_is_sound_and_finds_most)
{
	uint64_t illegal = 0, found = 0;
	struct history history;
	struct bench_random random;
	bool blamed, legal;

	bench_random_seed(&random, 2024, 0);
	for (int i = 0; i < HISTORIES; i++) {
		blamed = history_make(&history, &random);
		legal = linearizable(&history);
		cr_assert(!blamed || !legal, "history %d is legal, but was blamed", i);
		illegal += !legal;
		found += blamed;
	}
	cr_log_info("%lu of %d histories are illegal, %lu of them found", illegal, HISTORIES,
		    found);
	cr_expect_gt(illegal, HISTORIES / 10);
	cr_expect_gt((double)found, 0.85 * (double)illegal);
}
