/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/client.h"

#include "layout/bytes.h"
#include "tests/seed.h"

#include <criterion/criterion.h>

Test(client, a_line_comes_back_as_it_was_encoded)
{
	uint64_t seed = seed_take("client");

	for (unsigned i = 0; i < 10000; i++) {
		struct client_line in = { .report = i ? seed_next(&seed) : CLIENT_IDLE,
					  .born = seed_next(&seed),
					  .state = (enum client_state)(i % 3) };
		struct client_line out;
		uint8_t line[64];

		client_line_encode(&in, line);
		client_line_decode(line, &out);
		cr_assert(out.report == in.report && out.born == in.born && out.state == in.state);
		cr_assert_eq(load_le64(line + CLIENT_REPORT_AT), in.report);
	}
}

Test(client, a_line_of_zeros_is_a_free_id)
{
	static const uint8_t line[64];
	struct client_line client;

	client_line_decode(line, &client);
	cr_assert_eq(client.state, CLIENT_FREE);
}

Test(client, an_unknown_state_is_a_fenced_client)
{
	static const uint64_t states[] = { 3, 255, UINT64_C(1) << 32, UINT64_MAX };
	struct client_line client = { .state = CLIENT_ACTIVE };
	uint8_t line[64];

	client_line_encode(&client, line);
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		store_le64(line + CLIENT_STATE_AT, states[i]);
		client_line_decode(line, &client);
		cr_assert_eq(client.state, CLIENT_FENCED);
	}
}
