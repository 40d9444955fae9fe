/* SPDX-License-Identifier: Apache-2.0 */
/* Histories made by hand, legal and illegal, and random legal ones. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/random.h"
#include "bench/verify.h"

enum { KEY = 7, BYTES = 64 };

static struct bench_verify verify;
static char error[BENCH_ERROR_BYTES];

static void setup_many(uint64_t records)
{
	memset(&verify, 0, sizeof(verify));
	cr_assert(bench_verify_table_open(&verify.table, NULL, records, 16, 99, error), "%s",
		  error);
}

static void setup(void)
{
	setup_many(16);
}

static void teardown(void)
{
	bench_verify_table_close(&verify.table);
}

TestSuite(bench_verify, .init = setup, .fini = teardown);

static struct bench_verify_token begin(enum bench_write write)
{
	struct bench_verify_token made;

	bench_verify_write_start(&verify, KEY, write, &made);
	return made;
}

static struct bench_verify_token read_begin(void)
{
	struct bench_verify_token made;

	bench_verify_read_start(&verify, KEY, &made);
	return made;
}

static enum bench_fault end(enum bench_write write, enum bench_outcome outcome,
			    struct bench_verify_token of)
{
	return bench_verify_write_end(&verify, KEY, write, outcome, &of);
}

/* Ends the read with the value that `of` wrote. */
static enum bench_fault saw(struct bench_verify_token reading, struct bench_verify_token of)
{
	char value[BYTES];

	bench_value_encode(&(struct bench_value){KEY, 0, 99, of.ticket}, value, sizeof(value));
	return bench_verify_read_value(&verify, KEY, &reading, value, sizeof(value));
}

static enum bench_fault saw_nothing(struct bench_verify_token reading)
{
	return bench_verify_read_absent(&verify, KEY, &reading);
}

static struct bench_verify_token wrote(enum bench_write write)
{
	struct bench_verify_token made = begin(write);

	cr_assert_eq(end(write, BENCH_OUTCOME_DONE, made), BENCH_FAULT_NONE);
	return made;
}

#define INSERT BENCH_WRITE_INSERT
#define UPDATE BENCH_WRITE_UPDATE
#define DELETE BENCH_WRITE_DELETE
#define DONE   BENCH_OUTCOME_DONE
#define GOOD   BENCH_FAULT_NONE

Test(bench_verify, a_read_sees_the_last_write)
{
	struct bench_verify_token a = wrote(INSERT), b = wrote(UPDATE);

	cr_expect_eq(saw(read_begin(), b), GOOD);
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_STALE);
	cr_expect_eq(saw(read_begin(), b), GOOD);
}

Test(bench_verify, a_read_that_began_before_an_overwrite_may_see_either)
{
	struct bench_verify_token a = wrote(INSERT), reading = read_begin(), other = read_begin(),
				  b = wrote(UPDATE);

	cr_expect_eq(saw(reading, b), GOOD);
	cr_expect_eq(saw(other, a), GOOD);
}

Test(bench_verify, a_write_may_be_seen_before_it_is_answered_but_not_unseen_again)
{
	struct bench_verify_token a = wrote(INSERT), b = begin(UPDATE);

	cr_expect_eq(saw(read_begin(), a), GOOD);
	cr_expect_eq(saw(read_begin(), b), GOOD);
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_STALE);
	cr_expect_eq(end(UPDATE, DONE, b), GOOD);
}

Test(bench_verify, two_reads_agree_on_the_order_of_concurrent_writes)
{
	struct bench_verify_token a = wrote(INSERT), b = begin(UPDATE), c = begin(UPDATE);

	(void)a;
	cr_expect_eq(end(UPDATE, DONE, b), GOOD);
	cr_expect_eq(end(UPDATE, DONE, c), GOOD);
	cr_expect_eq(saw(read_begin(), c), GOOD);
	cr_expect_eq(saw(read_begin(), b), BENCH_FAULT_STALE);
	cr_expect_eq(saw(read_begin(), c), GOOD);
}

Test(bench_verify, concurrent_writes_may_end_in_either_order)
{
	struct bench_verify_token a = wrote(INSERT), b = begin(UPDATE), c = begin(UPDATE);

	(void)a;
	cr_expect_eq(end(UPDATE, DONE, c), GOOD);
	cr_expect_eq(end(UPDATE, DONE, b), GOOD);
	cr_expect_eq(saw(read_begin(), c), GOOD);
}

Test(bench_verify, a_value_that_nobody_wrote_is_wrong)
{
	struct bench_verify_token a = wrote(INSERT);

	a.ticket++;
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_UNWRITTEN);
}

Test(bench_verify, another_keys_or_a_broken_value_is_wrong)
{
	struct bench_verify_token reading = read_begin();
	char value[BYTES];

	bench_value_encode(&(struct bench_value){KEY + 1, 0, 99, 1}, value, sizeof(value));
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, BYTES),
		     BENCH_FAULT_KEY);
	value[BYTES - 1] ^= 1;
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, BYTES),
		     BENCH_FAULT_TORN);
	value[8] ^= 1;
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, BYTES),
		     BENCH_FAULT_VALUE);
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, 39), BENCH_FAULT_VALUE);
}

Test(bench_verify, a_deleted_key_is_absent)
{
	struct bench_verify_token a = wrote(INSERT);

	wrote(DELETE);
	cr_expect_eq(saw_nothing(read_begin()), GOOD);
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_STALE);
}

Test(bench_verify, a_present_key_is_not_absent)
{
	struct bench_verify_token reading;

	wrote(INSERT);
	reading = read_begin();
	cr_expect_eq(saw_nothing(read_begin()), BENCH_FAULT_LOST);
	wrote(DELETE);
	cr_expect_eq(saw_nothing(reading), GOOD, "the read overlapped the delete");
	wrote(INSERT);
	cr_expect_eq(saw_nothing(read_begin()), BENCH_FAULT_LOST);
	cr_expect_eq(end(UPDATE, BENCH_OUTCOME_REFUSED, begin(UPDATE)), BENCH_FAULT_LOST);
	cr_expect_eq(end(DELETE, BENCH_OUTCOME_REFUSED, begin(DELETE)), BENCH_FAULT_LOST);
	cr_expect_eq(end(INSERT, BENCH_OUTCOME_DONE, begin(INSERT)), BENCH_FAULT_LOST);
}

Test(bench_verify, an_absence_during_a_delete_without_answer_is_legal)
{
	struct bench_verify_token deleting, a = wrote(INSERT);

	deleting = begin(DELETE);
	cr_expect_eq(saw(read_begin(), a), GOOD);
	cr_expect_eq(saw_nothing(read_begin()), GOOD);
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_STALE, "it was absent before");
	cr_expect_eq(end(DELETE, DONE, deleting), GOOD);
}

Test(bench_verify, an_absent_key_is_not_present)
{
	wrote(INSERT);
	wrote(DELETE);
	cr_expect_eq(end(INSERT, BENCH_OUTCOME_REFUSED, begin(INSERT)), BENCH_FAULT_GHOST);
	cr_expect_eq(end(UPDATE, DONE, begin(UPDATE)), BENCH_FAULT_GHOST);
}

Test(bench_verify, a_key_deleted_twice_was_not_there_the_second_time)
{
	wrote(INSERT);
	wrote(DELETE);
	cr_expect_eq(end(DELETE, DONE, begin(DELETE)), BENCH_FAULT_GHOST);
}

Test(bench_verify, two_inserts_at_once_do_not_both_happen)
{
	struct bench_verify_token a, b;

	wrote(INSERT);
	wrote(DELETE);
	a = begin(INSERT);
	b = begin(INSERT);
	cr_expect_eq(end(INSERT, DONE, a), GOOD);
	cr_expect_eq(end(INSERT, DONE, b), BENCH_FAULT_UNPAIRED);
	a = begin(DELETE);
	b = begin(DELETE);
	cr_expect_eq(end(DELETE, DONE, a), GOOD);
	cr_expect_eq(end(DELETE, BENCH_OUTCOME_REFUSED, b), GOOD);
}

Test(bench_verify, two_deletes_at_once_do_not_both_happen)
{
	struct bench_verify_token a, b;

	wrote(INSERT);
	a = begin(DELETE);
	b = begin(DELETE);
	cr_expect_eq(end(DELETE, DONE, a), GOOD);
	cr_expect_eq(end(DELETE, DONE, b), BENCH_FAULT_UNPAIRED);
}

Test(bench_verify, an_unknown_delete_may_stand_between_two_inserts)
{
	struct bench_verify_token a;

	wrote(INSERT);
	a = begin(DELETE);
	cr_expect_eq(end(DELETE, BENCH_OUTCOME_UNKNOWN, a), GOOD);
	cr_expect_eq(end(INSERT, DONE, begin(INSERT)), GOOD);
	cr_expect_eq(end(INSERT, DONE, begin(INSERT)), BENCH_FAULT_UNPAIRED);
}

Test(bench_verify, a_write_without_effect_is_never_seen)
{
	struct bench_verify_token a = wrote(INSERT), b = begin(UPDATE), c = begin(UPDATE);

	cr_expect_eq(saw(read_begin(), b), GOOD);
	cr_expect_eq(end(UPDATE, BENCH_OUTCOME_VOID, b), BENCH_FAULT_VOID);
	cr_expect_eq(end(UPDATE, BENCH_OUTCOME_VOID, c), GOOD);
	cr_expect_eq(saw(read_begin(), c), BENCH_FAULT_VOID);
	cr_expect_eq(saw(read_begin(), a), GOOD);
}

Test(bench_verify, an_unknown_write_may_happen_late_or_never)
{
	struct bench_verify_token a = wrote(INSERT), b = begin(UPDATE), c;

	cr_expect_eq(end(UPDATE, BENCH_OUTCOME_UNKNOWN, b), GOOD);
	cr_expect_eq(saw(read_begin(), a), GOOD);
	c = wrote(UPDATE);
	cr_expect_eq(saw(read_begin(), c), GOOD);
	cr_expect_eq(saw(read_begin(), b), GOOD);
	cr_expect_eq(saw(read_begin(), c), BENCH_FAULT_STALE);
	wrote(DELETE);
	cr_expect_eq(saw(read_begin(), b), BENCH_FAULT_STALE, "once seen, it has happened");
}

Test(bench_verify, an_unknown_delete_allows_absence_for_ever)
{
	struct bench_verify_token a = wrote(INSERT);

	cr_expect_eq(end(DELETE, BENCH_OUTCOME_UNKNOWN, begin(DELETE)), GOOD);
	cr_expect_eq(saw(read_begin(), a), GOOD);
	cr_expect_eq(saw_nothing(read_begin()), GOOD);
}

Test(bench_verify, loaded_keys_are_there_until_they_are_deleted)
{
	verify.loaded = 16;
	cr_expect_eq(saw_nothing(read_begin()), BENCH_FAULT_LOST);
	wrote(DELETE);
	cr_expect_eq(saw_nothing(read_begin()), GOOD);
}

Test(bench_verify, an_earlier_runs_value_lasts_until_the_first_write)
{
	char value[BYTES], other[BYTES];
	struct bench_verify_token reading;

	bench_value_encode(&(struct bench_value){KEY, 0, 5, 12}, value, BYTES);
	bench_value_encode(&(struct bench_value){KEY, 0, 5, 13}, other, BYTES);
	reading = read_begin();
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, BYTES), GOOD);
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, other, BYTES),
		     BENCH_FAULT_STALE);
	cr_expect_eq(saw_nothing(read_begin()), BENCH_FAULT_LOST);
	wrote(UPDATE);
	reading = read_begin();
	cr_expect_eq(bench_verify_read_value(&verify, KEY, &reading, value, BYTES),
		     BENCH_FAULT_STALE);
}

Test(bench_verify, a_forgotten_value_is_still_stale)
{
	struct bench_verify_token a = wrote(INSERT), last = a;

	for (int i = 0; i < 1000; i++)
		last = wrote(UPDATE);
	cr_expect_eq(saw(read_begin(), a), BENCH_FAULT_STALE);
	cr_expect_eq(saw(read_begin(), last), GOOD);
}

Test(bench_verify, numbers_beyond_the_table_and_others_keys_are_not_judged)
{
	char value[BYTES];
	struct bench_verify_token reading;

	bench_verify_read_start(&verify, 1000, &reading);
	bench_value_encode(&(struct bench_value){1000, 0, 99, 12}, value, BYTES);
	cr_expect_eq(bench_verify_read_value(&verify, 1000, &reading, value, BYTES), GOOD);
	verify.clients = 4;
	verify.client_id = 1;
	cr_expect_eq(read_begin().start, 0);
}

Test(bench_verify, the_file_is_joined_and_grows)
{
	char path[] = "/tmp/farkv-test-XXXXXX";
	struct bench_verify_table first, second;

	close(mkstemp(path));
	cr_assert(bench_verify_table_open(&first, path, 100, 100, 5, error));
	cr_assert(bench_verify_table_open(&second, path, 1 << 20, 500, 6, error));
	cr_expect_eq(second.run, 5);
	cr_expect_eq(second.ring, first.ring);
	bench_verify_table_lock(&first, 99)->clock = 17;
	bench_verify_table_unlock(bench_verify_table_lock(&second, 499));
	bench_verify_table_close(&first);
	bench_verify_table_close(&second);
	cr_assert_eq(truncate(path, 8), 0);
	cr_expect_not(bench_verify_table_open(&first, path, 100, 100, 5, error));
	unlink(path);
}

Test(bench_verify, a_dead_holders_lock_is_taken_over_and_its_key_left_alone)
{
	struct bench_key_model *key = bench_verify_table_lock(&verify.table, KEY);
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	atomic_store(&key->lock, (uint32_t)child);
	wrote(INSERT);
	cr_expect_eq(saw_nothing(read_begin()), GOOD);
	cr_expect_eq(key->unchecked, 1);
}

/*
 * A register whose operations start, take effect and end at random: whatever it does is
 * legal, so that any verdict is a false alarm.
 */
enum { OPEN_MAX = 12 };

struct running {
	int kind;  /* 0 get, then the writes plus 1 */
	int state; /* 0 free, 1 started, 2 has taken effect */
	struct bench_verify_token token;
	uint32_t seen; /* the ticket read, or 0 */
	enum bench_outcome outcome;
};

static void effect(struct running *op, uint32_t *current)
{
	bool wants_absent = op->kind == INSERT + 1;

	op->state = 2;
	op->seen = *current;
	if (op->kind == 0)
		return;
	op->outcome = wants_absent == (*current == 0) ? DONE : BENCH_OUTCOME_REFUSED;
	if (op->outcome == DONE)
		*current = op->kind == DELETE + 1 ? 0 : op->token.ticket;
}

static enum bench_fault finish(struct running *op, struct bench_random *random)
{
	op->state = 0;
	if (op->kind > 0) {
		if (bench_random_below(random, 50) == 0)
			op->outcome = BENCH_OUTCOME_UNKNOWN;
		return end((enum bench_write)(op->kind - 1), op->outcome, op->token);
	}
	if (op->seen == 0)
		return saw_nothing(op->token);
	return saw(op->token, (struct bench_verify_token){0, op->seen});
}

static void random_history(uint64_t seed, uint64_t steps, unsigned int open_max)
{
	struct running ops[OPEN_MAX] = {{0}};
	struct bench_random random;
	enum bench_fault fault;
	struct running *op;
	uint32_t current = 0;

	bench_random_seed(&random, seed, 0);
	for (uint64_t i = 0; i < steps; i++) {
		op = &ops[bench_random_below(&random, open_max)];
		if (op->state == 0) {
			op->kind = (int)bench_random_below(&random, 4);
			op->token =
				op->kind ? begin((enum bench_write)(op->kind - 1)) : read_begin();
			op->state = 1;
		} else if (op->state == 1 && op->kind > 0 && bench_random_below(&random, 30) == 0) {
			/* Never happens, whether that is said or not. */
			op->state = 0;
			fault = end((enum bench_write)(op->kind - 1),
				    i % 2 ? BENCH_OUTCOME_VOID : BENCH_OUTCOME_UNKNOWN, op->token);
			cr_assert_eq(fault, GOOD, "seed %lu step %lu", seed, i);
		} else if (op->state == 1) {
			effect(op, &current);
		} else {
			fault = finish(op, &random);
			cr_assert_eq(fault, GOOD, "seed %lu step %lu: %s", seed, i,
				     bench_fault_name(fault));
		}
	}
}

Test(bench_verify, blames_no_legal_history)
{
	static const uint64_t sizes[] = {16, 1 << 18, 1 << 22};

	teardown();
	for (uint64_t seed = 0; seed < 1500; seed++) {
		setup_many(sizes[seed % 3]);
		random_history(seed, 600, 1 + (unsigned int)(seed % OPEN_MAX));
		teardown();
	}
	setup();
}
