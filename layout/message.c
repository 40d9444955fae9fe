/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/message.h"

#include "layout/bytes.h"

#include <errno.h>

#define MESSAGE_MAGIC UINT32_C(0x4d564b46) /* "FKVM" */

enum { VERSION_AT = 4, KIND_AT = 6, ID_AT = 8, WORDS_AT = 16 };

_Static_assert(VERSION_AT + 2 == KIND_AT && KIND_AT + 2 == ID_AT && ID_AT + 8 == WORDS_AT &&
		       WORDS_AT + MESSAGE_WORDS * 8 + 8 == MESSAGE_BYTES,
	       "a message has no gaps but the reserved bytes at its end");
_Static_assert((int)MESSAGE_BYTES == (int)LINE_BYTES, "a message is one line");

void message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES])
{
	memset(out, 0, MESSAGE_BYTES);
	store_le32(out, MESSAGE_MAGIC);
	store_le16(out + VERSION_AT, MESSAGE_VERSION);
	store_le16(out + KIND_AT, message->kind);
	store_le64(out + ID_AT, message->id);
	for (unsigned i = 0; i < MESSAGE_WORDS; i++)
		store_le64(out + WORDS_AT + 8 * i, message->words[i]);
}

int message_decode(const uint8_t *in, size_t length, struct message *message)
{
	uint16_t kind;

	if (length != MESSAGE_BYTES || load_le32(in) != MESSAGE_MAGIC)
		return -EBADMSG;
	if (load_le16(in + VERSION_AT) != MESSAGE_VERSION)
		return -EPROTONOSUPPORT;
	message->kind = load_le16(in + KIND_AT);
	kind = message->kind & (uint16_t)~MESSAGE_ANSWER;
	if (kind < MESSAGE_SPLIT || kind > MESSAGE_GOODBYE)
		return -EBADMSG;
	message->id = load_le64(in + ID_AT);
	for (unsigned i = 0; i < MESSAGE_WORDS; i++)
		message->words[i] = load_le64(in + WORDS_AT + 8 * i);
	return 0;
}
