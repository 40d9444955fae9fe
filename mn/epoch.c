/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs: when may a retired block be reused?
 *
 * Words. E the epoch and S the safe epoch, in the load line, written here only. R[c] client c's
 * report, written by c's device: the oldest epoch that one of its operations pins, or IDLE. A
 * client that retires a block READs E *after* it saw its slot CAS succeed: e. It reuses the block
 * after it has READ an S > e.
 *
 * A scan reads E (into `epoch`), fences, then reads all R, and sets S = max(S, min(epoch, R[c] of
 * all clients that are not idle)). Then, if every such R has caught up with `epoch`, E = epoch + 1;
 * S is stored before E.
 *
 * Claim (invariant I4): when an S > e can be READ, every operation that was pinned when the block
 * was retired is over. Let o be such an operation, of client c. Its reporting WRITE had completed
 * before it read the index (activation rule), so before the slot CAS took the block out of the
 * index, with a value r <= the E of that time.
 *   1. S > e is the work of a scan that read E > e. E was then stored, and (the fence below)
 * visible to every device, before that scan read any R. The READ that gave e preceded that store,
 * since it did not see it; so the slot CAS, and the report of o before it, precede the scan's
 * reading of R[c].
 *   2. As long as o is pinned, R[c] <= r and not IDLE: a client reports neither idle nor anything
 * above its pins. r <= e, because E only grows and r was an E read before e was. So the scan of 1
 * would have found R[c] <= e and could not have made S > e. Hence o had ended. Without the fence 1
 * fails: the CPU may read R[c] = IDLE while its own store of E is still on its way; a report and a
 * retirement at the old E then fit in between.
 * A report that lands late (c read an old E before it went to sleep) may be below S. S stands: it
 * is a maximum. What c can reach after that report is retired later, at an E that c's report then
 * holds back; cache entries from before do not count as protected (stamps are valid since the last
 * activation only).
 *
 * A client that never reports again stops S and E: hence fencing. One that is behind (R < E, not
 * idle) for fence_after is cut off: its queue pairs go to ERR, and only when nothing of them can
 * execute any more is its line FENCED, which takes its report out of the scan. So the claim holds
 * for it too: o is over because it can do nothing. The clock of a client runs while it is behind
 * and stops when it has caught up; a client whose report is the current epoch waits for others and
 * is not at fault, however long. Time in which this process did not run (stopped, or the machine
 * paused) does not count.
 *
 * A report above E is nonsense, for no client can have read such an E. It harms only its writer: S
 * is bounded by `epoch`, and it counts as caught up.
 *
 * A new client's line is IDLE and ACTIVE before the client learns its id, so no report is ever
 * missed. A freed id's queue pairs were put in ERR before the line became FREE, so no late WRITE of
 * the last owner can land in the next one's line.
 */
#include "mn/epoch.h"

#include "layout/bytes.h"

#include <assert.h>
#include <stdatomic.h>

bool epoch_step(struct epoch_state *state, const struct client_line *lines, size_t count)
{
	uint64_t oldest = state->epoch;
	bool caught_up = true;

	for (size_t i = 0; i < count; i++) {
		if (lines[i].state != CLIENT_ACTIVE || lines[i].report == CLIENT_IDLE)
			continue;
		if (lines[i].report < oldest)
			oldest = lines[i].report;
		if (lines[i].report < state->epoch)
			caught_up = false;
	}
	if (oldest > state->safe)
		state->safe = oldest;
	if (caught_up)
		state->epoch++;
	assert(state->safe <= state->epoch);
	return caught_up;
}

uint32_t epoch_behind(uint32_t behind_ms, const struct client_line *line, uint64_t epoch,
		      uint64_t elapsed_ms)
{
	uint32_t counted = elapsed_ms > EPOCH_STALL_MS ? EPOCH_STALL_MS : (uint32_t)elapsed_ms;

	if (line->state != CLIENT_ACTIVE || line->report == CLIENT_IDLE || line->report >= epoch)
		return 0;
	return behind_ms > UINT32_MAX - counted ? UINT32_MAX : behind_ms + counted;
}

/* A word that remote devices read or write. */
static _Atomic uint64_t *word_at(const uint8_t *region, uint64_t offset)
{
	assert(offset % sizeof(uint64_t) == 0);
	return (_Atomic uint64_t *)(uintptr_t)(region + offset);
}

static uint64_t word_load(const uint8_t *region, uint64_t offset)
{
	return le64toh(atomic_load_explicit(word_at(region, offset), memory_order_acquire));
}

/* Release: pairs with the device's read, which is coherent with the CPU's stores in their order. */
static void word_store(uint8_t *region, uint64_t offset, uint64_t value)
{
	atomic_store_explicit(word_at(region, offset), htole64(value), memory_order_release);
}

void epoch_read_line(const uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		     struct client_line *line)
{
	uint64_t at = geometry_client(geometry, client_id);
	uint64_t words[LINE_BYTES / sizeof(uint64_t)] = {0};

	words[CLIENT_STATE_AT / 8] = htole64(word_load(region, at + CLIENT_STATE_AT));
	words[CLIENT_REPORT_AT / 8] = htole64(word_load(region, at + CLIENT_REPORT_AT));
	words[CLIENT_BORN_AT / 8] = htole64(word_load(region, at + CLIENT_BORN_AT));
	client_line_decode((const uint8_t *)words, line);
}

void epoch_write_line(uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		      const struct client_line *line)
{
	uint64_t at = geometry_client(geometry, client_id);

	word_store(region, at + CLIENT_REPORT_AT, line->report);
	word_store(region, at + CLIENT_BORN_AT, line->born);
	word_store(region, at + CLIENT_STATE_AT, line->state);
}

void epoch_write_state(uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		       enum client_state state)
{
	word_store(region, geometry_client(geometry, client_id) + CLIENT_STATE_AT, state);
}

void epoch_read_load(const uint8_t *region, const struct geometry *geometry,
		     struct epoch_state *state, uint64_t *time_ms)
{
	uint64_t at = geometry_counter(geometry, COUNTER_LOAD);
	uint64_t words[LINE_BYTES / sizeof(uint64_t)];
	struct load load;

	for (unsigned i = 0; i < LINE_BYTES / sizeof(uint64_t); i++)
		words[i] = htole64(word_load(region, at + 8 * i));
	load_decode((const uint8_t *)words, &load);
	*state = (struct epoch_state){.epoch = load.epoch, .safe = load.safe_epoch};
	*time_ms = load.time_ms;
}

void epoch_write_load(uint8_t *region, const struct geometry *geometry,
		      const struct epoch_state *state, uint64_t time_ms)
{
	uint64_t at = geometry_counter(geometry, COUNTER_LOAD);
	struct load load = {.epoch = state->epoch,
			    .safe_epoch = state->safe,
			    .time_ms = time_ms,
			    .read_rate = LOAD_RATE_UNKNOWN,
			    .write_rate = LOAD_RATE_UNKNOWN,
			    .atomic_rate = LOAD_RATE_UNKNOWN};
	uint64_t words[LINE_BYTES / sizeof(uint64_t)];

	load_encode(&load, (uint8_t *)words);
	/* Word 0 is the epoch: the last, after the safe epoch, and visible before the next scan's
	 * loads. */
	for (unsigned i = LINE_BYTES / sizeof(uint64_t); i-- > 0;)
		word_store(region, at + 8 * i, le64toh(words[i]));
	atomic_thread_fence(memory_order_seq_cst);
}
