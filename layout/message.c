/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/message.h"

#include "layout/bytes.h"

#include <errno.h>

#define MESSAGE_MAGIC UINT32_C(0x4d564b46) /* "FKVM" */

_Static_assert(16 + 8 + 5 * 8 <= MESSAGE_BYTES, "a message is one line");

void message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES])
{
	memset(out, 0, MESSAGE_BYTES);
	store_le32(out, MESSAGE_MAGIC);
	store_le16(out + 4, MESSAGE_VERSION);
	store_le16(out + 6, message->kind);
	store_le64(out + 8, message->id);
	for (unsigned i = 0; i < 5; i++)
		store_le64(out + 16 + 8 * i, message->words[i]);
}

int message_decode(const uint8_t *in, size_t length, struct message *message)
{
	uint16_t kind;

	if (length != MESSAGE_BYTES || load_le32(in) != MESSAGE_MAGIC)
		return -EBADMSG;
	if (load_le16(in + 4) != MESSAGE_VERSION)
		return -EPROTONOSUPPORT;
	message->kind = load_le16(in + 6);
	kind = message->kind & (uint16_t)~MESSAGE_ANSWER;
	if (kind < MESSAGE_SPLIT || kind > MESSAGE_GOODBYE)
		return -EBADMSG;
	message->id = load_le64(in + 8);
	for (unsigned i = 0; i < 5; i++)
		message->words[i] = load_le64(in + 16 + 8 * i);
	return 0;
}
