/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control word: the first word of a block, written once in an instance's life.
 *
 *   kind:2 (high bits) | 62 bits:
 *   LIVE(name)     the name under a keyed permutation of its 62 bits
 *   FORWARD        offset:34 | class:8 | tag:20, of the instance that replaced this one
 *   DEAD           session:28 | sequence:34 of the deleting operation
 *
 * The permutation's key is a secret of the region, so that no value bytes can pass for a LIVE word
 * after memory has been recarved. It is a four-round Feistel network over 31-bit halves: a
 * bijection, no cipher; what it must resist is chance and values chosen without the key.
 */
#ifndef FARKV_LAYOUT_CONTROL_H
#define FARKV_LAYOUT_CONTROL_H

#include <assert.h>
#include <stdint.h>

enum { NAME_SESSION_BITS = 28, NAME_SEQUENCE_BITS = 34, CONTROL_TAG_BITS = 20 };
enum control_kind { CONTROL_NONE = 0, CONTROL_LIVE = 1, CONTROL_FORWARD = 2, CONTROL_DEAD = 3 };

/* A plain name: session:28 | sequence:34. What does not fit would name an instance twice. */
static inline uint64_t name_pack(uint32_t session, uint64_t sequence)
{
	assert(session >> NAME_SESSION_BITS == 0 && sequence >> NAME_SEQUENCE_BITS == 0);
	return (uint64_t)session << NAME_SEQUENCE_BITS | sequence;
}

static inline uint8_t name_slot_tag(uint64_t name)
{
	return (uint8_t)name;
}

static inline uint32_t name_forward_tag(uint64_t name)
{
	return (uint32_t)(name & ((1u << CONTROL_TAG_BITS) - 1));
}

static inline enum control_kind control_kind(uint64_t word)
{
	return (enum control_kind)(word >> 62);
}

uint64_t control_pack_live(uint64_t name, uint64_t name_key);
/* The plain name in a LIVE word. */
uint64_t control_live_name(uint64_t word, uint64_t name_key);

struct forward {
	uint64_t offset; /* bytes, a multiple of 64 */
	uint8_t size_class;
	uint32_t tag; /* low 20 bits of the next instance's name */
};

uint64_t control_pack_forward(struct forward forward);
struct forward control_forward(uint64_t word);

/* by: the plain name of the deleting operation. */
static inline uint64_t control_pack_dead(uint64_t by)
{
	assert(by >> 62 == 0);
	return (uint64_t)CONTROL_DEAD << 62 | by;
}

#endif
