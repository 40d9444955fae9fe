/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-shakes under way, by ticket: which requests are still to be read, which are being answered,
 * which clients have not said yet that they are ready. Time comes in as an argument; nothing here
 * blocks.
 *
 *   WANTED    the ticket was handed out, its request is not there yet
 *   ASKED     the request is with the main thread
 *   ANSWERED  the response is to be written
 *   WAITING   the response is written, the client's `ready` is not there yet
 */
#ifndef FARKV_MN_TICKETS_H
#define FARKV_MN_TICKETS_H

#include "layout/record.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TICKETS_MAX = 256,	  /* under way at once; older ones are dropped */
	TICKET_REQUEST_MS = 5000, /* to store the request */
	TICKET_READY_MS = 10000,  /* to become ready */
	TICKET_LINGER_MS = 16,	  /* from the response to the first look for `ready` */
	TICKET_RETRY_MIN_MS = 2,  /* between looks for a record, doubling */
	TICKET_RETRY_MAX_MS = 64,
};

enum ticket_state { TICKET_NONE, TICKET_WANTED, TICKET_ASKED, TICKET_ANSWERED, TICKET_WAITING };

struct ticket {
	uint64_t number;
	uint64_t deadline_ms;
	uint64_t look_at_ms; /* when to look for the record next */
	uint32_t retry_ms;
	enum ticket_state state;
	struct connect_response response; /* from ANSWERED on */
};

struct tickets {
	uint64_t last;		      /* the newest ticket seen */
	uint64_t nonces[TICKETS_MAX]; /* of the latest requests: one read again under a reused
					 number is stale */
	uint32_t nonce_at;
	uint32_t count; /* slots in use */
	struct ticket slots[TICKETS_MAX];
};

void tickets_init(struct tickets *tickets, uint64_t last);
/*
 * The counter was read: opens the new tickets. *restarted: it went back, so memcached has lost what
 * it held. Returns how many tickets had to be passed over because too many are under way.
 */
uint64_t tickets_observe(struct tickets *tickets, uint64_t counter, uint64_t now_ms,
			 bool *restarted);
/* The record of the slot was not there: look again later. */
void ticket_postpone(struct ticket *ticket, uint64_t now_ms);
/* WANTED -> ASKED, true; false: the nonce was seen before, so the request is an old one under a
 * reused number. */
bool ticket_asked(struct tickets *tickets, struct ticket *ticket, uint64_t nonce);
/* ASKED -> ANSWERED. NULL: no such ticket is ASKED. */
struct ticket *tickets_answer(struct tickets *tickets, uint64_t number,
			      const struct connect_response *response, uint64_t now_ms);
/* ANSWERED -> WAITING, or done where there is nothing to wait for. */
void ticket_written(struct tickets *tickets, struct ticket *ticket, uint64_t now_ms);
void ticket_done(struct tickets *tickets, struct ticket *ticket);
/* memcached cannot tell whether a client is ready: nobody's time runs meanwhile. */
void tickets_extend(struct tickets *tickets, uint64_t elapsed_ms);

#endif
