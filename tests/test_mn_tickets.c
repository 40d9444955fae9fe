/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/tickets.h"

#include <criterion/criterion.h>

static struct tickets t;
static bool restarted;

static struct ticket *find(uint64_t number)
{
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		if (t.slots[i].state != TICKET_NONE && t.slots[i].number == number)
			return &t.slots[i];
	return NULL;
}

Test(mn_tickets, those_from_before_the_start_are_skipped)
{
	tickets_init(&t, 40);
	cr_assert_eq(tickets_observe(&t, 40, 0, &restarted), 0);
	cr_assert(!restarted && t.count == 0);
	tickets_observe(&t, 42, 0, &restarted);
	cr_assert(t.count == 2 && !find(40) && find(41) && find(42));
}

Test(mn_tickets, a_hand_shake_goes_through_its_states)
{
	struct connect_response ok = {.status = CONNECT_OK, .nonce = 9};
	struct ticket *ticket;

	tickets_init(&t, 0);
	tickets_observe(&t, 1, 1000, &restarted);
	ticket = find(1);
	cr_assert_eq(ticket->state, TICKET_WANTED);
	cr_assert_null(tickets_answer(&t, 1, &ok, 1000), "nobody has asked yet");
	ticket_postpone(ticket, 1000);
	cr_assert(ticket->look_at_ms == 1000 + TICKET_RETRY_MIN_MS &&
		  ticket->retry_ms == 2 * TICKET_RETRY_MIN_MS);
	cr_assert(ticket_asked(&t, ticket, 9));
	cr_assert_eq(tickets_answer(&t, 1, &ok, 2000), ticket);
	cr_assert(ticket->state == TICKET_ANSWERED && ticket->response.nonce == 9);
	cr_assert_null(tickets_answer(&t, 1, &ok, 2000), "once");
	ticket_written(&t, ticket, 2001);
	cr_assert(ticket->state == TICKET_WAITING && ticket->deadline_ms == 2000 + TICKET_READY_MS);
	ticket_done(&t, ticket);
	cr_assert_eq(t.count, 0);
}

Test(mn_tickets, a_refusal_is_not_waited_on)
{
	struct connect_response no = {.status = CONNECT_REFUSED};
	struct ticket *ticket;

	tickets_init(&t, 0);
	tickets_observe(&t, 1, 0, &restarted);
	ticket = find(1);
	ticket_asked(&t, ticket, 1);
	tickets_answer(&t, 1, &no, 0);
	ticket_written(&t, ticket, 0);
	cr_assert_eq(t.count, 0);
}

Test(mn_tickets, a_counter_that_went_back_starts_over)
{
	tickets_init(&t, 1000);
	tickets_observe(&t, 2, 0, &restarted);
	cr_assert(restarted && t.count == 2 && find(1) && find(2));
}

Test(mn_tickets, an_old_request_under_a_reused_number_is_not_answered_again)
{
	tickets_init(&t, 0);
	tickets_observe(&t, 1, 0, &restarted);
	cr_assert(ticket_asked(&t, find(1), 77));
	ticket_done(&t, find(1));
	tickets_observe(&t, 0, 0, &restarted);
	tickets_observe(&t, 1, 0, &restarted);
	cr_assert_not(ticket_asked(&t, find(1), 77));
	cr_assert_eq(find(1)->state, TICKET_WANTED);
	cr_assert(ticket_asked(&t, find(1), 78));
}

Test(mn_tickets, a_flood_is_bounded_and_told)
{
	tickets_init(&t, 0);
	cr_assert_eq(tickets_observe(&t, UINT64_C(1) << 60, 0, &restarted),
		     (UINT64_C(1) << 60) - TICKETS_MAX);
	cr_assert(t.count == TICKETS_MAX && t.last == UINT64_C(1) << 60);
	cr_assert_eq(tickets_observe(&t, (UINT64_C(1) << 60) + 3, 0, &restarted), 3);
}

Test(mn_tickets, retries_are_bounded_and_time_stands_still_while_memcached_is_away)
{
	struct ticket *ticket;

	tickets_init(&t, 0);
	tickets_observe(&t, 1, 0, &restarted);
	ticket = find(1);
	for (unsigned i = 0; i < 20; i++)
		ticket_postpone(ticket, 0);
	cr_assert_eq(ticket->retry_ms, TICKET_RETRY_MAX_MS);
	tickets_extend(&t, 300);
	cr_assert_eq(ticket->deadline_ms, TICKET_REQUEST_MS + 300);
}
