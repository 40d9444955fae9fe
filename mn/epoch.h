/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs and the load line: see the head of epoch.c for why they are right. */
#ifndef FARKV_MN_EPOCH_H
#define FARKV_MN_EPOCH_H

#include "layout/client.h"
#include "layout/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct epoch_state {
	uint64_t epoch;
	uint64_t safe;
};

/*
 * One step over the decoded lines of the clients in use. Pure. Lines that are not ACTIVE do not
 * count. Returns whether the epoch has advanced.
 */
bool epoch_step(struct epoch_state *state, const struct client_line *lines, size_t count);

/*
 * How long a client has held the epoch back: `behind_ms` so far, `elapsed_ms` since the last look,
 * of which a stall of our own counts for EPOCH_STALL_MS at most. Pure.
 */
enum { EPOCH_STALL_MS = 50 };
uint32_t epoch_behind(uint32_t behind_ms, const struct client_line *line, uint64_t epoch,
		      uint64_t elapsed_ms);

/* The region's words. Lines are written by remote devices while we look: each word by one atomic
 * access. */
void epoch_read_line(const uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		     struct client_line *line);
/* report first, state last. */
void epoch_write_line(uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		      const struct client_line *line);
/* Only the state word: the report is the client's. */
void epoch_write_state(uint8_t *region, const struct geometry *geometry, uint32_t client_id,
		       enum client_state state);
void epoch_read_load(const uint8_t *region, const struct geometry *geometry,
		     struct epoch_state *state, uint64_t *time_ms);
/* Safe epoch and time, then the epoch. */
void epoch_write_load(uint8_t *region, const struct geometry *geometry,
		      const struct epoch_state *state, uint64_t time_ms);

#endif
