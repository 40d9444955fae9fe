/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim checked is that each key is a linearizable register of values and "absent". An
 * operation's interval runs from before its submission to after its completion function was
 * called, in the key's own event counter, which a lock orders over all threads and processes:
 * so "A ended before B started" here means that it did in reality, and an interval here is never
 * shorter than the real one. What follows is sound: it blames no linearizable history.
 *
 * Values. Every write of a value draws a ticket, so values are unique, and which write a read
 * saw is known. Take a value, its write and the reads of it as a cluster; let f be the earliest
 * end and s the latest start in it. By Gibbons and Korach, "Testing shared memories" (SIAM J.
 * Computing 26(4), 1997), theorem on the read-mapping case: when f < s the value is in force all
 * the way from f to s (a forward zone); otherwise all its operations may happen at any one
 * moment of [s, f] (a backward zone). A history is linearizable just when no two forward zones
 * overlap, no backward zone lies within a forward one, and no read ends before its write
 * starts. All three are checked as each operation ends: a lost update, an older value after a newer
 * one, two readers that disagree about an order, are each a conflict of zones. A write that is
 * still open, or whose outcome is unknown, counts from the first read of it on; an unknown
 * one may take effect at any later time, and is never held against anybody.
 *
 * Absence is not unique: deletes leave the same absence. But every moment of absence that is known
 * of (a delete done, an answer "not found", an insert done, which found the key absent) is a small
 * cluster of its own, an event "absent at some moment of [start, end]", that must not lie within a
 * forward zone. Beyond that: LOST   "absent" in [a, b] is wrong when a value was in force with f <
 * a and every delete that may have happened ended before that value's s. For then no delete happens
 * after s; the value or a later one stands since f, or since the moment of the operation that
 *          started at s; were that moment after the answer's, the zone from f to it holds the
 * answer. GHOST  "present" in [a, b] (an update or delete done, an insert refused) is wrong when
 * the key was absent at some moment of [c, d], d < a, and every write of a value that may have
 * happened ended before c. VOID   a read saw a write that was answered "no effect".
 *
 * Bounds. A key remembers its last `ring` events, forgetting those first that ended first.
 * A value that is read after it was forgotten has f <= evicted_end, unless an open write was
 * forgotten: then nothing is said. Forgetting makes the check weaker, not unsound.
 *
 * Values from before the table (another run's) are one cluster with f = 0. Whether a key was
 * there at the start is taken from `loaded`, or from such a value.
 */
#include "bench/verify.h"

#include <assert.h>

static const uint32_t tickets_max = (1u << 28) - 1;
static const uint32_t clock_max = UINT32_MAX - 1024;

const char *bench_fault_name(enum bench_fault fault)
{
	static const char *const names[BENCH_FAULTS] = {"none",	     "value",	"torn",	 "key",
							"unwritten", "void",	"stale", "lost",
							"ghost",     "unpaired"};

	return names[fault];
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Both have a first_end. */
static bool zones_conflict(const struct bench_event *a, const struct bench_event *b)
{
	bool a_forward = a->first_end < a->last_start;
	bool b_forward = b->first_end < b->last_start;

	if (!a_forward && !b_forward)
		return false;
	/* Overlap of two forward zones, and backward within forward, are the same comparison. */
	return a->first_end < b->last_start && b->first_end < a->last_start;
}

static bool event_counts(const struct bench_event *event)
{
	return event->state != BENCH_EVENT_EMPTY && event->state != BENCH_EVENT_VOID &&
	       event->first_end != 0;
}

static bool event_conflicts(const struct bench_verify_table *table,
			    const struct bench_key_model *key, const struct bench_event *event)
{
	for (uint32_t i = 0; i < table->ring; i++) {
		if (&key->ring[i] != event && event_counts(&key->ring[i]) &&
		    zones_conflict(&key->ring[i], event))
			return true;
	}
	return false;
}

static struct bench_event *event_find(const struct bench_verify_table *table,
				      struct bench_key_model *key, uint32_t ticket)
{
	for (uint32_t i = 0; i < table->ring; i++) {
		if (key->ring[i].ticket == ticket && key->ring[i].state != BENCH_EVENT_EMPTY &&
		    key->ring[i].state != BENCH_EVENT_ABSENT)
			return &key->ring[i];
	}
	return NULL;
}

/* What is forgotten first: nothing, void, the closed that ended first, the open that began first.
 */
static uint64_t event_worth(const struct bench_event *event)
{
	switch (event->state) {
	case BENCH_EVENT_EMPTY:
		return 0;
	case BENCH_EVENT_VOID:
		return event->start;
	case BENCH_EVENT_OPEN:
	case BENCH_EVENT_UNKNOWN:
		return UINT64_C(2) << 32 | event->start;
	default:
		return UINT64_C(1) << 32 | event->first_end;
	}
}

/* The event to forget next. */
static struct bench_event *event_victim(const struct bench_verify_table *table,
					struct bench_key_model *key)
{
	struct bench_event *victim = &key->ring[0];

	for (uint32_t i = 1; i < table->ring; i++) {
		if (event_worth(&key->ring[i]) < event_worth(victim))
			victim = &key->ring[i];
	}
	return victim;
}

static bool event_open(const struct bench_event *event)
{
	return event->state == BENCH_EVENT_OPEN || event->state == BENCH_EVENT_UNKNOWN;
}

/* Forgets an event and puts a new one in its place. */
static void event_replace(struct bench_key_model *key, struct bench_event *victim,
			  struct bench_event event)
{
	if (event_open(victim))
		key->evicted_open++;
	if (victim->state == BENCH_EVENT_DONE)
		key->evicted_end = later(key->evicted_end, victim->first_end);
	*victim = event;
}

static void happened(struct bench_key_model *key, uint32_t end)
{
	if (key->first_end == 0 || end < key->first_end)
		key->first_end = end;
}

/* Absences take at most a quarter of the ring, the oldest makes room; no open write does. */
static void absence_add(const struct bench_verify_table *table, struct bench_key_model *key,
			uint32_t start, uint32_t end)
{
	struct bench_event *oldest = NULL;
	uint32_t absences = 0;

	happened(key, end);
	for (uint32_t i = 0; i < table->ring; i++) {
		if (key->ring[i].state != BENCH_EVENT_ABSENT)
			continue;
		absences++;
		if (!oldest || key->ring[i].first_end < oldest->first_end)
			oldest = &key->ring[i];
	}
	if (absences < (table->ring + 3) / 4)
		oldest = event_victim(table, key);
	if (!event_open(oldest))
		event_replace(key, oldest,
			      (struct bench_event){start, end, start, 0, 0, BENCH_EVENT_ABSENT});
}

/* Was the key certainly present from before `start` until now? */
static bool present_for_certain(const struct bench_verify *verify,
				const struct bench_key_model *key, uint64_t number, uint32_t start)
{
	const struct bench_event *event;

	if (key->open_deletes > 0)
		return false;
	if (key->delete_end_max == 0 && (number < verify->loaded || key->foreign_stamp != 0 ||
					 (key->evicted_end != 0 && key->evicted_end < start)))
		return true;
	for (uint32_t i = 0; i < verify->table.ring; i++) {
		event = &key->ring[i];
		if (event_counts(event) && event->state != BENCH_EVENT_ABSENT &&
		    event->first_end < start && event->last_start > key->delete_end_max)
			return true;
	}
	return false;
}

static bool absent_for_certain(const struct bench_verify *verify, const struct bench_key_model *key,
			       uint32_t start)
{
	const struct bench_event *event;

	if (key->open_puts > 0)
		return false;
	for (uint32_t i = 0; i < verify->table.ring; i++) {
		event = &key->ring[i];
		if (event->state == BENCH_EVENT_ABSENT && event->first_end < start &&
		    event->last_start > key->put_end_max)
			return true;
	}
	return false;
}

/* The store implied that the key was absent at some moment of [start, end]. */
static enum bench_fault absence_judge(struct bench_verify *verify, struct bench_key_model *key,
				      uint64_t number, uint32_t start, uint32_t end)
{
	if (present_for_certain(verify, key, number, start))
		return BENCH_FAULT_LOST;
	absence_add(&verify->table, key, start, end);
	return BENCH_FAULT_NONE;
}

static enum bench_fault presence_judge(const struct bench_verify *verify,
				       const struct bench_key_model *key, uint32_t start)
{
	return absent_for_certain(verify, key, start) ? BENCH_FAULT_GHOST : BENCH_FAULT_NONE;
}

/* After an insert or a delete has ended. */
static enum bench_fault alternation_judge(struct bench_key_model *key)
{
	int64_t low = (int64_t)key->balance - key->open_deletes;
	int64_t high = (int64_t)key->balance + key->open_inserts;

	if (key->foreign_stamp != 0 || low > 1 || high < 0)
		key->initially |= 1;
	if (low > 0 || high < -1)
		key->initially |= 2;
	if (key->initially != 3)
		return BENCH_FAULT_NONE;
	/* Counts afresh: one wrong answer is counted once. */
	key->balance = 0;
	key->initially = 0;
	key->foreign_stamp = 0;
	return BENCH_FAULT_UNPAIRED;
}

static bool judged(const struct bench_verify *verify, uint64_t number)
{
	return number < verify->table.numbers &&
	       (verify->clients <= 1 || number % verify->clients == verify->client_id);
}

/* The next event's time; 0 once the key is not checked any more. */
static uint32_t tick(struct bench_key_model *key)
{
	if (key->clock >= clock_max || key->tickets >= tickets_max)
		key->unchecked = 1;
	return key->unchecked ? 0 : ++key->clock;
}

void bench_verify_write_start(struct bench_verify *verify, uint64_t number, enum bench_write write,
			      struct bench_verify_token *token)
{
	struct bench_key_model *key;

	*token = (struct bench_verify_token){0, 0};
	if (!judged(verify, number))
		return;
	key = bench_verify_table_lock(&verify->table, number);
	token->start = tick(key);
	if (token->start != 0 && write == BENCH_WRITE_DELETE)
		key->open_deletes++;
	if (token->start != 0 && write != BENCH_WRITE_DELETE) {
		token->ticket = ++key->tickets;
		event_replace(key, event_victim(&verify->table, key),
			      (struct bench_event){token->start, 0, token->start, token->ticket,
						   write == BENCH_WRITE_INSERT, BENCH_EVENT_OPEN});
		key->open_puts++;
		key->open_inserts += write == BENCH_WRITE_INSERT;
	}
	bench_verify_table_unlock(key);
}

static enum bench_fault delete_end(struct bench_verify *verify, struct bench_key_model *key,
				   uint64_t number, enum bench_outcome outcome, uint32_t start,
				   uint32_t now)
{
	enum bench_fault fault;

	if (outcome == BENCH_OUTCOME_UNKNOWN)
		return BENCH_FAULT_NONE; /* stays open for ever */
	key->open_deletes--;
	if (outcome == BENCH_OUTCOME_VOID)
		return BENCH_FAULT_NONE;
	if (outcome == BENCH_OUTCOME_REFUSED)
		return absence_judge(verify, key, number, start, now);
	fault = presence_judge(verify, key, start);
	key->balance--;
	key->delete_end_max = now;
	absence_add(&verify->table, key, start, now);
	return fault;
}

/* The write of a value is known to have happened by `now`. event NULL: forgotten. */
static enum bench_fault put_done(struct bench_verify *verify, struct bench_key_model *key,
				 struct bench_event *event, bool insert, uint32_t now)
{
	key->open_puts--;
	key->open_inserts -= insert;
	key->balance += insert;
	key->put_end_max = now;
	happened(key, now);
	if (!event) {
		key->evicted_open--;
		key->evicted_end = later(key->evicted_end, now);
		return BENCH_FAULT_NONE;
	}
	event->state = BENCH_EVENT_DONE;
	if (event->first_end == 0)
		event->first_end = now;
	return event_conflicts(&verify->table, key, event) ? BENCH_FAULT_STALE : BENCH_FAULT_NONE;
}

/* The write of a value had no effect. */
static enum bench_fault put_void(struct bench_key_model *key, struct bench_event *event,
				 bool insert)
{
	key->open_puts--;
	key->open_inserts -= insert;
	if (!event) {
		key->evicted_open--;
		return BENCH_FAULT_NONE;
	}
	event->state = BENCH_EVENT_VOID;
	return event->first_end != 0 ? BENCH_FAULT_VOID : BENCH_FAULT_NONE;
}

static enum bench_fault put_end(struct bench_verify *verify, struct bench_key_model *key,
				uint64_t number, enum bench_write write, enum bench_outcome outcome,
				const struct bench_verify_token *token, uint32_t now)
{
	struct bench_event *event = event_find(&verify->table, key, token->ticket);
	bool insert = write == BENCH_WRITE_INSERT;
	enum bench_fault fault, condition;

	if (outcome == BENCH_OUTCOME_UNKNOWN) {
		if (event && event->first_end != 0) /* a read has shown that it happened */
			return put_done(verify, key, event, insert, now);
		if (event)
			event->state = BENCH_EVENT_UNKNOWN;
		return BENCH_FAULT_NONE;
	}
	if (outcome == BENCH_OUTCOME_VOID)
		return put_void(key, event, insert);
	if (outcome == BENCH_OUTCOME_REFUSED) {
		fault = put_void(key, event, insert);
		condition = insert ? presence_judge(verify, key, token->start)
				   : absence_judge(verify, key, number, token->start, now);
		return fault != BENCH_FAULT_NONE ? fault : condition;
	}
	if (insert) {
		condition = absence_judge(verify, key, number, token->start, now);
	} else {
		/* Its own write is no reason for the key's being there. */
		key->open_puts--;
		condition = presence_judge(verify, key, token->start);
		key->open_puts++;
	}
	fault = put_done(verify, key, event, insert, now);
	return fault != BENCH_FAULT_NONE ? fault : condition;
}

enum bench_fault bench_verify_write_end(struct bench_verify *verify, uint64_t number,
					enum bench_write write, enum bench_outcome outcome,
					const struct bench_verify_token *token)
{
	enum bench_fault fault = BENCH_FAULT_NONE, alternation;
	struct bench_key_model *key;
	uint32_t now;

	if (token->start == 0)
		return fault;
	key = bench_verify_table_lock(&verify->table, number);
	now = tick(key);
	if (now != 0 && write == BENCH_WRITE_DELETE)
		fault = delete_end(verify, key, number, outcome, token->start, now);
	else if (now != 0)
		fault = put_end(verify, key, number, write, outcome, token, now);
	if (now != 0 && write != BENCH_WRITE_UPDATE) {
		alternation = alternation_judge(key);
		fault = fault != BENCH_FAULT_NONE ? fault : alternation;
	}
	bench_verify_table_unlock(key);
	return fault;
}

void bench_verify_read_start(struct bench_verify *verify, uint64_t number,
			     struct bench_verify_token *token)
{
	struct bench_key_model *key;

	*token = (struct bench_verify_token){0, 0};
	if (!judged(verify, number))
		return;
	key = bench_verify_table_lock(&verify->table, number);
	token->start = tick(key);
	bench_verify_table_unlock(key);
}

enum bench_fault bench_verify_read_absent(struct bench_verify *verify, uint64_t number,
					  const struct bench_verify_token *token)
{
	enum bench_fault fault = BENCH_FAULT_NONE;
	struct bench_key_model *key;
	uint32_t now;

	if (token->start == 0)
		return number < verify->loaded ? BENCH_FAULT_LOST : BENCH_FAULT_NONE;
	key = bench_verify_table_lock(&verify->table, number);
	now = tick(key);
	if (now != 0)
		fault = absence_judge(verify, key, number, token->start, now);
	bench_verify_table_unlock(key);
	return fault;
}

/* A value that this table's tickets did not write: there from the start, if at all. */
static enum bench_fault foreign_judge(struct bench_key_model *key, const struct bench_value *value,
				      uint32_t start)
{
	uint64_t mixed = bench_mix64((uint64_t)value->run << 32 | value->ticket) ^ value->writer;
	uint32_t stamp = (uint32_t)bench_mix64(mixed) | 1;

	if (key->first_end != 0 && key->first_end < start)
		return BENCH_FAULT_STALE;
	if (key->foreign_stamp != 0 && key->foreign_stamp != stamp)
		return BENCH_FAULT_STALE;
	key->foreign_stamp = stamp;
	return BENCH_FAULT_NONE;
}

/* A value that the ring has forgotten: something later must not have ended before the read. */
static enum bench_fault forgotten_judge(const struct bench_verify_table *table,
					const struct bench_key_model *key, uint32_t start)
{
	const struct bench_event *event;

	if (key->evicted_open > 0)
		return BENCH_FAULT_NONE;
	for (uint32_t i = 0; i < table->ring; i++) {
		event = &key->ring[i];
		if (event_counts(event) && event->last_start > key->evicted_end &&
		    event->first_end < start)
			return BENCH_FAULT_STALE;
	}
	return BENCH_FAULT_NONE;
}

static enum bench_fault own_judge(struct bench_verify *verify, struct bench_key_model *key,
				  uint32_t ticket, uint32_t start, uint32_t now)
{
	struct bench_event *event = event_find(&verify->table, key, ticket), before;

	if (ticket > key->tickets)
		return BENCH_FAULT_UNWRITTEN;
	if (!event)
		return forgotten_judge(&verify->table, key, start);
	if (event->state == BENCH_EVENT_VOID)
		return BENCH_FAULT_VOID;
	before = *event;
	if (event->first_end == 0)
		event->first_end = now;
	event->last_start = later(event->last_start, start);
	if (event_conflicts(&verify->table, key, event)) {
		*event = before; /* one wrong answer is counted once */
		return BENCH_FAULT_STALE;
	}
	happened(key, event->first_end);
	if (event->state == BENCH_EVENT_UNKNOWN)
		return put_done(verify, key, event, event->insert, now);
	return BENCH_FAULT_NONE;
}

enum bench_fault bench_verify_read_value(struct bench_verify *verify, uint64_t number,
					 const struct bench_verify_token *token, const void *value,
					 size_t value_bytes)
{
	enum bench_fault fault = BENCH_FAULT_NONE;
	struct bench_key_model *key;
	struct bench_value read;
	uint32_t now;

	switch (bench_value_decode(value, value_bytes, &read)) {
	case BENCH_VALUE_GOOD:
		break;
	case BENCH_VALUE_FILLER:
		return BENCH_FAULT_TORN;
	default:
		return BENCH_FAULT_VALUE;
	}
	if (read.number != number)
		return BENCH_FAULT_KEY;
	if (token->start == 0)
		return BENCH_FAULT_NONE;
	key = bench_verify_table_lock(&verify->table, number);
	now = tick(key);
	/* Ticket 0 was written while the key was not judged. */
	if (now != 0 && read.run == verify->table.run && read.ticket != 0)
		fault = own_judge(verify, key, read.ticket, token->start, now);
	else if (now != 0)
		fault = foreign_judge(key, &read, token->start);
	bench_verify_table_unlock(key);
	return fault;
}
