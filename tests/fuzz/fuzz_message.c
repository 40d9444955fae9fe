/* SPDX-License-Identifier: Apache-2.0 */
/* A control message, tried as it is and with length, magic and version put right. */
#include "tests/fuzz/require.h"

#include "layout/message.h"

#include <errno.h>

static void try_once(const uint8_t *bytes, size_t length)
{
	struct message message, second;
	uint8_t again[MESSAGE_BYTES];
	int rc = message_decode(bytes, length, &message);

	REQUIRE(rc == 0 || rc == -EBADMSG || rc == -EPROTONOSUPPORT);
	if (rc)
		return;
	REQUIRE(length == MESSAGE_BYTES);
	REQUIRE((message.kind & ~MESSAGE_ANSWER) >= MESSAGE_SPLIT);
	REQUIRE((message.kind & ~MESSAGE_ANSWER) <= MESSAGE_GOODBYE);
	message_encode(&message, again);
	REQUIRE(memcmp(again, bytes, 16 + 8 * MESSAGE_WORDS) == 0);
	REQUIRE(message_decode(again, sizeof again, &second) == 0);
	REQUIRE(second.kind == message.kind && second.id == message.id);
	REQUIRE(memcmp(second.words, message.words, sizeof second.words) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t image[MESSAGE_BYTES], model[MESSAGE_BYTES];

	try_once(bytes, length);
	fuzz_take(bytes, length, image, sizeof image);
	message_encode(&(struct message){ .kind = MESSAGE_STAT }, model);
	memcpy(image, model, 6);
	try_once(image, sizeof image);
	return 0;
}
