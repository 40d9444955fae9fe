/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/value.h"

#include <assert.h>
#include <string.h>

#include "bench/random.h"

static const uint32_t value_magic = 0x766b7246u;

struct header {
	uint32_t magic;
	uint32_t writer;
	uint64_t number;
	uint32_t run;
	uint32_t ticket;
	uint64_t value_bytes;
	uint64_t check;
};

_Static_assert(sizeof(struct header) == BENCH_VALUE_HEADER_BYTES, "no padding");

static uint64_t header_check(const struct header *header)
{
	uint64_t check = bench_mix64((uint64_t)header->magic << 32 | header->writer);

	check = bench_mix64(check ^ header->number);
	check = bench_mix64(check ^ ((uint64_t)header->run << 32 | header->ticket));
	return bench_mix64(check ^ header->value_bytes);
}

static uint64_t filler_word(uint64_t check, uint64_t index)
{
	return bench_mix64(check + index * 0x9e3779b97f4a7c15u);
}

void bench_value_encode(const struct bench_value *value, void *buffer, size_t value_bytes)
{
	struct header header = {
		.magic = value_magic,
		.writer = value->writer,
		.number = value->number,
		.run = value->run,
		.ticket = value->ticket,
		.value_bytes = value_bytes,
	};
	size_t at = sizeof(header), room;
	uint64_t word;

	header.check = header_check(&header);
	memcpy(buffer, &header, value_bytes < sizeof(header) ? value_bytes : sizeof(header));
	for (; at < value_bytes; at += room) {
		word = filler_word(header.check, at);
		room = value_bytes - at < sizeof(word) ? value_bytes - at : sizeof(word);
		memcpy((char *)buffer + at, &word, room);
	}
}

enum bench_value_verdict bench_value_decode(const void *buffer, size_t value_bytes,
					    struct bench_value *value)
{
	struct header header;
	size_t at = sizeof(header), room;
	uint64_t word;

	if (value_bytes < sizeof(header))
		return BENCH_VALUE_SHORT;
	memcpy(&header, buffer, sizeof(header));
	if (header.magic != value_magic || header.value_bytes != value_bytes ||
	    header.check != header_check(&header))
		return BENCH_VALUE_HEADER;
	value->number = header.number;
	value->writer = header.writer;
	value->run = header.run;
	value->ticket = header.ticket;
	for (; at < value_bytes; at += room) {
		word = filler_word(header.check, at);
		room = value_bytes - at < sizeof(word) ? value_bytes - at : sizeof(word);
		if (memcmp((const char *)buffer + at, &word, room) != 0)
			return BENCH_VALUE_FILLER;
	}
	return BENCH_VALUE_GOOD;
}
