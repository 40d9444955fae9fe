/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/counter.h"

#include "layout/bytes.h"

enum {
	EPOCH_AT = 0,
	SAFE_EPOCH_AT = 8,
	TIME_AT = 16,
	READ_RATE_AT = 24,
	WRITE_RATE_AT = 32,
	ATOMIC_RATE_AT = 40,
};

_Static_assert(COUNTER_SESSIONS == 0 && COUNTER_UNITS == 1 && COUNTER_ITEMS == 2 &&
		       COUNTER_COMMITS == 10 && COUNTER_LOAD == 18 && COUNTER_LINES == 19,
	       "the lines both sides count by");
_Static_assert(EPOCH_AT % 8 == 0 && SAFE_EPOCH_AT == EPOCH_AT + 8 && TIME_AT == SAFE_EPOCH_AT + 8 &&
		       READ_RATE_AT == TIME_AT + 8 && WRITE_RATE_AT == READ_RATE_AT + 8 &&
		       ATOMIC_RATE_AT == WRITE_RATE_AT + 8 && ATOMIC_RATE_AT + 8 <= LINE_BYTES,
	       "the load line is whole words");

void load_encode(const struct load *load, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le64(line + EPOCH_AT, load->epoch);
	store_le64(line + SAFE_EPOCH_AT, load->safe_epoch);
	store_le64(line + TIME_AT, load->time_ms);
	store_le64(line + READ_RATE_AT, (uint64_t)load->read_rate);
	store_le64(line + WRITE_RATE_AT, (uint64_t)load->write_rate);
	store_le64(line + ATOMIC_RATE_AT, (uint64_t)load->atomic_rate);
}

void load_decode(const uint8_t line[64], struct load *load)
{
	load->epoch = load_le64(line + EPOCH_AT);
	load->safe_epoch = load_le64(line + SAFE_EPOCH_AT);
	load->time_ms = load_le64(line + TIME_AT);
	load->read_rate = (int64_t)load_le64(line + READ_RATE_AT);
	load->write_rate = (int64_t)load_le64(line + WRITE_RATE_AT);
	load->atomic_rate = (int64_t)load_le64(line + ATOMIC_RATE_AT);
}
