/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client table: one line per client id (1..client_count-1; 0 is unused).
 *
 *   0 report u64   written by the client: the oldest epoch it pins, or CLIENT_IDLE
 *   8 state u64    written by the MN: enum client_state
 *  16 born u64     written by the MN: epoch when the id was given out
 */
#ifndef FARKV_LAYOUT_CLIENT_H
#define FARKV_LAYOUT_CLIENT_H

#include <stdint.h>

enum { CLIENT_REPORT_AT = 0, CLIENT_STATE_AT = 8, CLIENT_BORN_AT = 16 };
enum client_state { CLIENT_FREE = 0, CLIENT_ACTIVE = 1, CLIENT_FENCED = 2 };

#define CLIENT_IDLE UINT64_MAX

struct client_line {
	uint64_t report;
	uint64_t born;
	enum client_state state;
};

void client_line_encode(const struct client_line *client, uint8_t line[64]);
/* An unknown state decodes as CLIENT_FENCED: it holds nothing back and gets nothing. */
void client_line_decode(const uint8_t line[64], struct client_line *client);

#endif
