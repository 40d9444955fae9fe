/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian words, whatever the host. */
#ifndef FARKV_LAYOUT_BYTES_H
#define FARKV_LAYOUT_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { LINE_BYTES = 64 };

static inline uint16_t load_le16(const void *at)
{
	uint16_t v;
	memcpy(&v, at, sizeof v);
	return le16toh(v);
}

static inline uint32_t load_le32(const void *at)
{
	uint32_t v;
	memcpy(&v, at, sizeof v);
	return le32toh(v);
}

static inline uint64_t load_le64(const void *at)
{
	uint64_t v;
	memcpy(&v, at, sizeof v);
	return le64toh(v);
}

static inline void store_le16(void *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof v);
}

static inline void store_le32(void *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof v);
}

static inline void store_le64(void *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof v);
}

/* `count` low bits set, count 1..63. */
static inline uint64_t bits_mask(unsigned count)
{
	return (UINT64_C(1) << count) - 1;
}

static inline uint64_t round_up(uint64_t value, uint64_t power_of_two)
{
	return (value + power_of_two - 1) & ~(power_of_two - 1);
}

#endif
