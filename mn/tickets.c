/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/tickets.h"

#include <assert.h>
#include <string.h>

void tickets_init(struct tickets *tickets, uint64_t last)
{
	memset(tickets, 0, sizeof *tickets);
	tickets->last = last;
}

static struct ticket *free_slot(struct tickets *tickets)
{
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		if (tickets->slots[i].state == TICKET_NONE)
			return &tickets->slots[i];
	return NULL;
}

uint64_t tickets_observe(struct tickets *tickets, uint64_t counter, uint64_t now_ms,
			 bool *restarted)
{
	uint64_t passed_over = 0;

	*restarted = counter < tickets->last;
	if (*restarted)
		tickets->last = 0;
	if (counter - tickets->last > TICKETS_MAX) {
		passed_over = counter - tickets->last - TICKETS_MAX;
		tickets->last += passed_over;
	}
	while (tickets->last < counter) {
		struct ticket *slot = free_slot(tickets);

		tickets->last++;
		if (!slot) {
			passed_over++;
			continue;
		}
		memset(slot, 0, sizeof *slot);
		slot->number = tickets->last;
		slot->state = TICKET_WANTED;
		slot->deadline_ms = now_ms + TICKET_REQUEST_MS;
		slot->look_at_ms = now_ms;
		slot->retry_ms = TICKET_RETRY_MIN_MS;
		tickets->count++;
	}
	return passed_over;
}

void ticket_postpone(struct ticket *ticket, uint64_t now_ms)
{
	ticket->look_at_ms = now_ms + ticket->retry_ms;
	ticket->retry_ms *= 2;
	if (ticket->retry_ms > TICKET_RETRY_MAX_MS)
		ticket->retry_ms = TICKET_RETRY_MAX_MS;
}

bool ticket_asked(struct tickets *tickets, struct ticket *ticket, uint64_t nonce)
{
	assert(ticket->state == TICKET_WANTED);
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		if (tickets->nonces[i] == nonce)
			return false;
	tickets->nonces[tickets->nonce_at] = nonce;
	tickets->nonce_at = (tickets->nonce_at + 1) % TICKETS_MAX;
	ticket->state = TICKET_ASKED;
	return true;
}

struct ticket *tickets_answer(struct tickets *tickets, uint64_t number,
			      const struct connect_response *response, uint64_t now_ms)
{
	for (unsigned i = 0; i < TICKETS_MAX; i++) {
		struct ticket *ticket = &tickets->slots[i];

		if (ticket->state != TICKET_ASKED || ticket->number != number)
			continue;
		ticket->state = TICKET_ANSWERED;
		ticket->response = *response;
		ticket->deadline_ms = now_ms + TICKET_READY_MS;
		ticket->look_at_ms = now_ms;
		ticket->retry_ms = TICKET_RETRY_MIN_MS;
		return ticket;
	}
	return NULL;
}

void ticket_written(struct tickets *tickets, struct ticket *ticket, uint64_t now_ms)
{
	assert(ticket->state == TICKET_ANSWERED);
	if (ticket->response.status != CONNECT_OK) {
		ticket_done(tickets, ticket);
		return;
	}
	ticket->state = TICKET_WAITING;
	ticket->retry_ms = TICKET_LINGER_MS;
	ticket_postpone(ticket, now_ms);
}

void ticket_done(struct tickets *tickets, struct ticket *ticket)
{
	assert(ticket->state != TICKET_NONE && tickets->count > 0);
	ticket->state = TICKET_NONE;
	tickets->count--;
}

void tickets_extend(struct tickets *tickets, uint64_t elapsed_ms)
{
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		if (tickets->slots[i].state != TICKET_NONE)
			tickets->slots[i].deadline_ms += elapsed_ms;
}
