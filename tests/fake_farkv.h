/* SPDX-License-Identifier: Apache-2.0 */
/*
 * farkv.h in the memory of one process and its forks: a table under a mutex, operations that
 * take effect and are answered after random numbers of polls, in any order. It can be told to lie,
 * so that tests can see whether the lies are found.
 */
#ifndef FARKV_TESTS_FAKE_FARKV_H
#define FARKV_TESTS_FAKE_FARKV_H

#include <stdint.h>

enum fake_lie {
	FAKE_LIE_NONE,
	FAKE_LIE_LOST_UPDATE, /* an update is acknowledged, but not made */
	FAKE_LIE_STALE_READ,  /* a get answers the value before the current one */
	FAKE_LIE_WRONG_KEY,   /* a get answers another key's value */
	FAKE_LIE_TORN,	      /* a get answers half of one value and half of the next */
	FAKE_LIE_VANISHED,    /* a get answers "not found" for a key that is there */
	FAKE_LIE_RISEN,	      /* a delete is acknowledged, but not made */
	FAKE_LIE_TWICE,	      /* an insert of a key that is there succeeds */
	FAKE_LIE_VOID,	      /* an update happens and is answered ETIMEDOUT */
	FAKE_LIE_UNKNOWN,     /* no lie: EUNKNOWN, and the operation happens later, or never */
};

struct fake_settings {
	enum fake_lie lie;
	uint64_t lie_every;    /* one in so many operations that the lie fits */
	uint64_t freeze_at_ns; /* after opening: nothing is answered for freeze_ns */
	uint64_t freeze_ns;
};

extern struct fake_settings fake_settings;

/* Before the first farkv_open, and before fork: an empty table, shared with the forks. */
void fake_farkv_reset(void);
uint64_t fake_farkv_items(void);
/* How many gets of keys that were not there it has answered so far. */
uint64_t fake_farkv_misses(void);

#endif
