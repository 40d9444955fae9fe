/* SPDX-License-Identifier: Apache-2.0 */
/* A load line (64 bytes) and a line of the client table (64). */
#include "tests/fuzz/require.h"

#include "layout/bytes.h"
#include "layout/client.h"
#include "layout/counter.h"

static void check_load(const uint8_t *line)
{
	uint8_t again[64];
	struct load load;

	load_decode(line, &load);
	load_encode(&load, again);
	REQUIRE(memcmp(again, line, 48) == 0); /* the rest is reserved */
	REQUIRE(load.epoch == load_le64(line) && load.safe_epoch == load_le64(line + 8));
}

static void check_client(const uint8_t *line)
{
	uint64_t state = load_le64(line + CLIENT_STATE_AT);
	struct client_line client, second;
	uint8_t again[64];

	client_line_decode(line, &client);
	REQUIRE(client.state == CLIENT_FREE || client.state == CLIENT_ACTIVE ||
		client.state == CLIENT_FENCED);
	REQUIRE(state > CLIENT_FENCED ? client.state == CLIENT_FENCED : client.state == state);
	client_line_encode(&client, again);
	client_line_decode(again, &second);
	REQUIRE(second.state == client.state);
	REQUIRE(second.report == client.report && second.report == load_le64(line));
	REQUIRE(second.born == client.born && second.born == load_le64(line + 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t lines[128];

	fuzz_take(bytes, length, lines, sizeof lines);
	check_load(lines);
	check_client(lines + 64);
	return 0;
}
