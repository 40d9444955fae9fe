/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/epoch.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct client_line active(uint64_t report)
{
	return (struct client_line){.report = report, .state = CLIENT_ACTIVE};
}

Test(mn_epoch, without_clients_every_step_advances)
{
	struct epoch_state s = {.epoch = 7, .safe = 6};

	cr_assert(epoch_step(&s, NULL, 0));
	cr_assert(s.epoch == 8 && s.safe == 7);
}

Test(mn_epoch, a_client_behind_holds_both_back)
{
	struct epoch_state s = {.epoch = 7, .safe = 5};
	struct client_line lines[] = {active(6), active(7), active(CLIENT_IDLE)};

	cr_assert_not(epoch_step(&s, lines, 3));
	cr_assert(s.epoch == 7 && s.safe == 6);
	cr_assert_not(epoch_step(&s, lines, 3));
	cr_assert(s.epoch == 7 && s.safe == 6);
	lines[0].report = 7;
	cr_assert(epoch_step(&s, lines, 3));
	cr_assert(s.epoch == 8 && s.safe == 7);
}

Test(mn_epoch, idle_free_and_fenced_lines_do_not_count)
{
	struct epoch_state s = {.epoch = 7, .safe = 5};
	struct client_line lines[] = {{.report = 1, .state = CLIENT_FENCED},
				      {.report = 1, .state = CLIENT_FREE},
				      active(CLIENT_IDLE)};

	cr_assert(epoch_step(&s, lines, 3));
	cr_assert(s.epoch == 8 && s.safe == 7);
}

Test(mn_epoch, safe_never_goes_back)
{
	struct epoch_state s = {.epoch = 7, .safe = 6};
	struct client_line late = active(2);

	cr_assert_not(epoch_step(&s, &late, 1));
	cr_assert(s.epoch == 7 && s.safe == 6);
}

Test(mn_epoch, a_report_from_the_future_neither_lifts_safe_nor_stops_the_epoch)
{
	struct epoch_state s = {.epoch = 7, .safe = 6};
	struct client_line wild = active(CLIENT_IDLE - 1);

	cr_assert(epoch_step(&s, &wild, 1));
	cr_assert(s.epoch == 8 && s.safe == 7);
}

Test(mn_epoch, only_a_client_that_is_behind_gets_older)
{
	struct client_line line = active(6);

	cr_assert_eq(epoch_behind(100, &line, 7, 5), 105);
	cr_assert_eq(epoch_behind(100, &line, 6, 5), 0, "caught up, however long the others take");
	line.report = CLIENT_IDLE;
	cr_assert_eq(epoch_behind(100, &line, 7, 5), 0);
	line = (struct client_line){.report = 0, .state = CLIENT_FENCED};
	cr_assert_eq(epoch_behind(100, &line, 7, 5), 0);
}

Test(mn_epoch, a_stall_of_our_own_does_not_fence_anybody)
{
	struct client_line line = active(6);

	cr_assert_eq(epoch_behind(0, &line, 7, 3600 * 1000), EPOCH_STALL_MS);
	cr_assert_eq(epoch_behind(UINT32_MAX - 1, &line, 7, 40), UINT32_MAX);
}

/*
 * A model of the head of epoch.c. One index word names a block. Clients activate (their report, an
 * epoch they know, lands first), read the index, hold the block while pinned, let go, go idle; one
 * of them may replace the block, and only *later* read the epoch. The node's scan reads one line
 * per step, so that everything can happen between two lines. A block is reusable once a safe epoch
 * above its retire epoch is stored: nobody may hold it then.
 */
enum { CLIENTS = 3, BLOCKS = 4096, STEPS = 3000, RUNS = 300 };

struct model_client {
	uint64_t known;
	int held;      /* block, -1 = none */
	int to_retire; /* replaced by this client, epoch not read yet; -1 = none */
	bool reported;
};

struct model {
	struct epoch_state stored, mine; /* in the region; in the scan */
	struct client_line lines[CLIENTS], scan[CLIENTS];
	struct model_client clients[CLIENTS];
	uint64_t retired[BLOCKS]; /* epoch, 0 = not */
	int current, scan_at;
};

static unsigned pick(unsigned short state[3], unsigned count)
{
	return (unsigned)((unsigned long)nrand48(state) % count);
}

static void client_step(struct model *m, unsigned id, unsigned short state[3])
{
	struct model_client *c = &m->clients[id];

	switch (pick(state, 6)) {
	case 0: /* learn */
		c->known = m->stored.epoch;
		break;
	case 1: /* report: nothing above the pin */
		if (c->held < 0 && c->to_retire < 0)
			m->lines[id].report = c->known;
		c->reported = m->lines[id].report != CLIENT_IDLE;
		break;
	case 2: /* read the index */
		if (c->reported && c->held < 0)
			c->held = m->current;
		break;
	case 3: /* replace what it holds */
		if (c->held == m->current && c->to_retire < 0 && m->current + 1 < BLOCKS) {
			c->to_retire = m->current++;
		}
		break;
	case 4: /* read the epoch for what was replaced; the operation is over */
		if (c->to_retire >= 0) {
			m->retired[c->to_retire] = m->stored.epoch;
			c->to_retire = -1;
		}
		if (c->to_retire < 0)
			c->held = -1;
		break;
	default: /* idle */
		if (c->held < 0 && c->to_retire < 0) {
			m->lines[id].report = CLIENT_IDLE;
			c->reported = false;
		}
	}
}

static void node_step(struct model *m)
{
	if (m->scan_at < CLIENTS) {
		m->scan[m->scan_at] = m->lines[m->scan_at];
		m->scan_at++;
	} else if (m->scan_at == CLIENTS) {
		m->mine = m->stored;
		epoch_step(&m->mine, m->scan, CLIENTS);
		m->stored.safe = m->mine.safe;
		m->scan_at++;
	} else {
		m->stored.epoch = m->mine.epoch;
		m->scan_at = 0;
	}
}

Test(mn_epoch, a_block_that_somebody_holds_is_never_reusable, .timeout = 60)
{
	unsigned long seed = (unsigned long)time(NULL), reusable = 0;

	fprintf(stderr, "seed %lu\n", seed);
	for (unsigned run = 0; run < RUNS; run++) {
		unsigned short state[3] = {(unsigned short)seed, (unsigned short)(seed >> 16),
					   (unsigned short)run};
		static struct model m;

		m = (struct model){.stored = {.epoch = 1}};
		for (unsigned i = 0; i < CLIENTS; i++) {
			m.lines[i] = active(CLIENT_IDLE);
			m.clients[i] =
				(struct model_client){.known = 1, .held = -1, .to_retire = -1};
		}
		for (unsigned step = 0; step < STEPS; step++) {
			/* Every third run has a slow node: much happens between two lines. */
			unsigned who = pick(state, run % 3 ? CLIENTS + 2 : 12 * CLIENTS);

			if (who == CLIENTS || (run % 3 && who > CLIENTS))
				node_step(&m);
			else
				client_step(&m, who % CLIENTS, state);
			for (unsigned i = 0; i < CLIENTS; i++) {
				int held = m.clients[i].held;

				cr_assert(held < 0 || !m.retired[held] ||
						  m.retired[held] >= m.stored.safe,
					  "run %u step %u: client %u holds block %d, retired at "
					  "%" PRIu64 ", safe %" PRIu64,
					  run, step, i, held, m.retired[held], m.stored.safe);
			}
		}
		for (int b = 0; b < m.current; b++)
			reusable += m.retired[b] && m.retired[b] < m.stored.safe;
	}
	cr_assert_gt(reusable, RUNS, "the model must reuse something");
}

Test(mn_epoch, lines_and_load_survive_the_region)
{
	static _Alignas(64) uint8_t region[8 << 20];
	struct geometry geometry;
	struct client_line line = {.report = 5, .born = 9, .state = CLIENT_ACTIVE}, back;
	struct epoch_state state = {.epoch = 11, .safe = 10};
	struct load load;
	uint64_t time_ms;

	cr_assert_eq(geometry_compute(sizeof region, 0, &geometry), 0);
	epoch_write_line(region, &geometry, 3, &line);
	epoch_read_line(region, &geometry, 3, &back);
	cr_assert(back.report == 5 && back.born == 9 && back.state == CLIENT_ACTIVE);
	epoch_write_state(region, &geometry, 3, CLIENT_FENCED);
	epoch_read_line(region, &geometry, 3, &back);
	cr_assert(back.report == 5 && back.state == CLIENT_FENCED);
	epoch_write_load(region, &geometry, &state, 12345);
	load_decode(region + geometry_counter(&geometry, COUNTER_LOAD), &load);
	cr_assert(load.epoch == 11 && load.safe_epoch == 10 && load.time_ms == 12345);
	cr_assert(load.read_rate == LOAD_RATE_UNKNOWN && load.atomic_rate == LOAD_RATE_UNKNOWN);
	state = (struct epoch_state){0};
	epoch_read_load(region, &geometry, &state, &time_ms);
	cr_assert(state.epoch == 11 && state.safe == 10 && time_ms == 12345);
}
