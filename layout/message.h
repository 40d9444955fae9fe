/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages: SEND by a client, received into the MN's shared receive queue; answers come
 * back the same way. 64 bytes each: magic u32, version u16, kind u16, id u64 (the answer repeats
 * it), five words, eight reserved bytes.
 */
#ifndef FARKV_LAYOUT_MESSAGE_H
#define FARKV_LAYOUT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum { MESSAGE_VERSION = 1, MESSAGE_BYTES = 64, MESSAGE_WORDS = 5 };

enum message_kind {
	MESSAGE_SPLIT = 1,       /* words: suffix, depth seen */
	MESSAGE_UNIT_GET = 2,    /* words: run */
	MESSAGE_UNIT_RETURN = 3, /* words: unit, run */
	MESSAGE_FENCE = 4,       /* words: owner, nonce, bucket offset */
	MESSAGE_STAT = 5,        /* answer: sessions, units, epoch, clients */
	MESSAGE_GOODBYE = 6,     /* words: client id */
	MESSAGE_ANSWER = 0x8000, /* or-ed to the kind; words[0] = 0 or a positive errno */
};

struct message {
	uint16_t kind;
	uint64_t id;
	uint64_t words[MESSAGE_WORDS];
};

void message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES]);
/* 0; -EBADMSG not a message, unknown kind, wrong length; -EPROTONOSUPPORT another version. */
int message_decode(const uint8_t *in, size_t length, struct message *message);

#endif
