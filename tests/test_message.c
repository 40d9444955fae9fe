/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/message.h"

#include "layout/bytes.h"
#include "tests/seed.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct message make(uint64_t *seed, uint16_t kind)
{
	struct message message = { .kind = kind, .id = seed_next(seed) };

	for (unsigned i = 0; i < MESSAGE_WORDS; i++)
		message.words[i] = seed_next(seed);
	return message;
}

Test(message, requests_and_answers_of_every_kind_come_back_as_they_were_encoded)
{
	uint64_t seed = seed_take("message");
	uint8_t bytes[MESSAGE_BYTES];

	for (uint16_t kind = MESSAGE_SPLIT; kind <= MESSAGE_GOODBYE; kind++)
		for (unsigned answer = 0; answer < 2; answer++) {
			uint16_t whole = answer ? kind | MESSAGE_ANSWER : kind;
			struct message in = make(&seed, whole), out;

			message_encode(&in, bytes);
			cr_assert_eq(message_decode(bytes, sizeof bytes, &out), 0);
			cr_assert_eq(out.kind, in.kind);
			cr_assert_eq(out.id, in.id);
			cr_assert_arr_eq(out.words, in.words, sizeof in.words);
		}
}

Test(message, no_other_kind_is_taken)
{
	uint64_t seed = seed_take("kinds");
	struct message message = make(&seed, MESSAGE_STAT);
	uint8_t bytes[MESSAGE_BYTES];

	message_encode(&message, bytes);
	for (uint32_t kind = 0; kind < 65536; kind++) {
		uint32_t plain = kind & 0x7fff;
		bool known = plain >= MESSAGE_SPLIT && plain <= MESSAGE_GOODBYE;

		store_le16(bytes + 6, (uint16_t)kind);
		cr_assert_eq(message_decode(bytes, sizeof bytes, &message), known ? 0 : -EBADMSG);
	}
}

Test(message, another_length_or_magic_is_no_message)
{
	uint64_t seed = seed_take("length");
	struct message message = make(&seed, MESSAGE_FENCE);
	uint8_t bytes[2 * MESSAGE_BYTES] = { 0 };

	message_encode(&message, bytes);
	for (size_t length = 0; length <= sizeof bytes; length++)
		cr_assert_eq(message_decode(bytes, length, &message),
			     length == MESSAGE_BYTES ? 0 : -EBADMSG);
	for (unsigned bit = 0; bit < 32; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(message_decode(bytes, MESSAGE_BYTES, &message), -EBADMSG);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

Test(message, another_version_is_told_from_a_bad_message)
{
	uint64_t seed = seed_take("version");
	struct message message = make(&seed, MESSAGE_SPLIT);
	uint8_t bytes[MESSAGE_BYTES];

	message_encode(&message, bytes);
	store_le16(bytes + 4, MESSAGE_VERSION + 1);
	cr_assert_eq(message_decode(bytes, sizeof bytes, &message), -EPROTONOSUPPORT);
	store_le16(bytes + 4, 0);
	cr_assert_eq(message_decode(bytes, sizeof bytes, &message), -EPROTONOSUPPORT);
}
