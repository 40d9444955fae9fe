/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/client.h"

#include "layout/bytes.h"

_Static_assert(CLIENT_REPORT_AT % 8 == 0 && CLIENT_STATE_AT == CLIENT_REPORT_AT + 8 &&
		       CLIENT_BORN_AT == CLIENT_STATE_AT + 8 && CLIENT_BORN_AT + 8 <= LINE_BYTES,
	       "each writer has words of its own, all in one line");

void client_line_encode(const struct client_line *client, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le64(line + CLIENT_REPORT_AT, client->report);
	store_le64(line + CLIENT_STATE_AT, client->state);
	store_le64(line + CLIENT_BORN_AT, client->born);
}

void client_line_decode(const uint8_t line[64], struct client_line *client)
{
	uint64_t state = load_le64(line + CLIENT_STATE_AT);

	client->report = load_le64(line + CLIENT_REPORT_AT);
	client->born = load_le64(line + CLIENT_BORN_AT);
	client->state = state <= CLIENT_FENCED ? (enum client_state)state : CLIENT_FENCED;
}
