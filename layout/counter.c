/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/counter.h"

#include "layout/bytes.h"

void load_encode(const struct load *load, uint8_t line[64])
{
	memset(line, 0, LINE_BYTES);
	store_le64(line, load->epoch);
	store_le64(line + 8, load->safe_epoch);
	store_le64(line + 16, load->time_ms);
	store_le64(line + 24, (uint64_t)load->read_rate);
	store_le64(line + 32, (uint64_t)load->write_rate);
	store_le64(line + 40, (uint64_t)load->atomic_rate);
}

void load_decode(const uint8_t line[64], struct load *load)
{
	load->epoch = load_le64(line);
	load->safe_epoch = load_le64(line + 8);
	load->time_ms = load_le64(line + 16);
	load->read_rate = (int64_t)load_le64(line + 24);
	load->write_rate = (int64_t)load_le64(line + 32);
	load->atomic_rate = (int64_t)load_le64(line + 40);
}
