/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/record.h"

#include "layout/bytes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

static struct endpoint endpoint(void)
{
	struct endpoint e = { .qpn = 0xabcdef, .psn = 0x123456, .lid = 7, .link_layer = 2, .port = 1,
			      .mtu = 5, .max_dest_rd_atomic = 16, .max_rd_atomic = 8, .is_softnic = 1 };

	for (unsigned i = 0; i < 16; i++)
		e.gid[i] = (uint8_t)(i + 1);
	return e;
}

static void assert_endpoint(const struct endpoint *a, const struct endpoint *b)
{
	cr_assert_eq(a->qpn, b->qpn);
	cr_assert_eq(a->psn, b->psn);
	cr_assert_arr_eq(a->gid, b->gid, 16);
	cr_assert_eq(a->lid, b->lid);
	cr_assert_eq(a->link_layer, b->link_layer);
	cr_assert_eq(a->port, b->port);
	cr_assert_eq(a->mtu, b->mtu);
	cr_assert_eq(a->max_dest_rd_atomic, b->max_dest_rd_atomic);
	cr_assert_eq(a->max_rd_atomic, b->max_rd_atomic);
	cr_assert_eq(a->is_softnic, b->is_softnic);
}

static struct mn_record mn(void)
{
	return (struct mn_record){ .mn_id = 3, .layout_version = 1, .incarnation = 0x1122334455667788,
				   .cluster_id = 9, .region_base = 0x7f0000000000,
				   .region_bytes = 1 << 30, .rkey = 0xdeadbeef, .features = 1,
				   .address = endpoint(), .published_ms = 1700000000000 };
}

static struct shard_map map(uint32_t members)
{
	struct shard_map m = { .epoch = 5, .sealed = 1, .member_count = members };

	for (uint32_t i = 0; i < members; i++)
		m.members[i] = 10 + 3 * i;
	for (uint32_t i = 0; i < SHARD_COUNT; i++)
		m.owner[i] = shard_choose(i, m.members, members);
	return m;
}

/* Makes header and checksum right again after the payload or the length was tampered with. */
static void mend(uint8_t *bytes, size_t length)
{
	store_le32(bytes + 8, (uint32_t)(length - 20));
	store_le64(bytes + 12, XXH3_64bits(bytes + 20, length - 20));
}

Test(record, mn_record_round_trip)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn(), out;
	int length = mn_record_encode(&in, bytes, sizeof bytes);
	uint32_t version = 0;

	cr_assert_eq(length, 20 + 48 + 32 + 8);
	cr_assert_eq(mn_record_decode(bytes, (size_t)length, &out, &version), 0);
	cr_assert_eq(version, RECORD_VERSION);
	cr_assert_eq(in.mn_id, out.mn_id);
	cr_assert_eq(in.layout_version, out.layout_version);
	cr_assert_eq(in.incarnation, out.incarnation);
	cr_assert_eq(in.cluster_id, out.cluster_id);
	cr_assert_eq(in.region_base, out.region_base);
	cr_assert_eq(in.region_bytes, out.region_bytes);
	cr_assert_eq(in.rkey, out.rkey);
	cr_assert_eq(in.features, out.features);
	cr_assert_eq(in.published_ms, out.published_ms);
	assert_endpoint(&in.address, &out.address);
}

Test(record, is_little_endian_in_the_order_of_the_header)
{
	static const uint8_t head[12] = { 'F', 'K', 'V', 'R', 1, 0, 1, 0, 88, 0, 0, 0 };
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn();

	mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_arr_eq(bytes, head, sizeof head);
	cr_assert_eq(load_le64(bytes + 12), XXH3_64bits(bytes + 20, 88));
	cr_assert_eq(bytes[20], 3);
	cr_assert_eq(load_le64(bytes + 28), UINT64_C(0x1122334455667788));
	cr_assert_eq(load_le32(bytes + 68), 0xabcdef, "the endpoint follows the features");
}

Test(record, shard_map_round_trip)
{
	static struct shard_map in, out;
	uint8_t bytes[RECORD_BYTES_MAX];

	for (uint32_t members = 1; members <= SHARD_MEMBERS_MAX; members += 51) {
		int length;

		in = map(members);
		length = shard_map_encode(&in, bytes, sizeof bytes);
		cr_assert_gt(length, 0);
		cr_assert_eq(shard_map_decode(bytes, (size_t)length, &out, NULL), 0);
		cr_assert_eq(memcmp(&in, &out, sizeof in), 0);
	}
	in = map(SHARD_MEMBERS_MAX);
	cr_assert_eq(shard_map_encode(&in, bytes, sizeof bytes), RECORD_BYTES_MAX);
}

Test(record, connect_request_round_trip)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct connect_request in = { .endpoint = endpoint(), .nonce = 1, .incarnation = 2,
				      .client_id = 3, .old_qpn = 4, .pid = 5, .sq_depth = 6 }, out;
	int length = connect_request_encode(&in, bytes, sizeof bytes);

	cr_assert_eq(connect_request_decode(bytes, (size_t)length, &out, NULL), 0);
	assert_endpoint(&in.endpoint, &out.endpoint);
	cr_assert_eq(out.nonce, 1);
	cr_assert_eq(out.incarnation, 2);
	cr_assert_eq(out.client_id, 3);
	cr_assert_eq(out.old_qpn, 4);
	cr_assert_eq(out.pid, 5);
	cr_assert_eq(out.sq_depth, 6);
}

Test(record, connect_response_round_trip)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct connect_response in = { .nonce = 1, .incarnation = 2, .client_id = 3,
				       .status = CONNECT_REFUSED, .sq_depth = 6,
				       .reason = "too many clients" }, out;
	int length = connect_response_encode(&in, bytes, sizeof bytes);

	cr_assert_eq(connect_response_decode(bytes, (size_t)length, &out, NULL), 0);
	assert_endpoint(&in.endpoint, &out.endpoint);
	cr_assert_eq(out.nonce, 1);
	cr_assert_eq(out.incarnation, 2);
	cr_assert_eq(out.client_id, 3);
	cr_assert_eq(out.status, CONNECT_REFUSED);
	cr_assert_eq(out.sq_depth, 6);
	cr_assert_str_eq(out.reason, "too many clients");
}

Test(record, a_reason_too_long_is_cut_and_what_follows_its_end_is_not_sent)
{
	uint8_t bytes[RECORD_BYTES_MAX], again[RECORD_BYTES_MAX];
	struct connect_response in = { .reason = "short" }, out;
	int length;

	memset(in.reason + 6, 'x', RECORD_REASON_MAX - 6);
	length = connect_response_encode(&in, bytes, sizeof bytes);
	memset(in.reason + 6, 0, RECORD_REASON_MAX - 6);
	cr_assert_eq(connect_response_encode(&in, again, sizeof again), length);
	cr_assert_arr_eq(bytes, again, (size_t)length);
	memset(in.reason, 'x', RECORD_REASON_MAX);
	length = connect_response_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(connect_response_decode(bytes, (size_t)length, &out, NULL), 0);
	cr_assert_eq(strlen(out.reason), RECORD_REASON_MAX - 1);
}

Test(record, no_room_is_emsgsize_and_nothing_is_written_past_it)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn();
	int length = mn_record_encode(&in, bytes, sizeof bytes);

	for (int room = 0; room < length; room++) {
		uint8_t *small = malloc((size_t)room + 1);

		cr_assert_eq(mn_record_encode(&in, small, (size_t)room), -EMSGSIZE);
		free(small);
	}
	cr_assert_eq(mn_record_encode(&in, bytes, (size_t)length), length);
}

Test(record, every_truncation_and_every_flipped_bit_is_refused)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn(), out;
	size_t length = (size_t)mn_record_encode(&in, bytes, sizeof bytes);

	for (size_t cut = 0; cut < length; cut++)
		cr_assert_eq(mn_record_decode(bytes, cut, &out, NULL), -EBADMSG);
	cr_assert_eq(mn_record_decode(bytes, length + 1, &out, NULL), -EBADMSG);
	for (size_t bit = 0; bit < length * 8; bit++) {
		int wanted = bit / 16 == 2 ? -EPROTONOSUPPORT : -EBADMSG;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(mn_record_decode(bytes, length, &out, NULL), wanted, "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

Test(record, another_version_is_told)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn(), out;
	size_t length = (size_t)mn_record_encode(&in, bytes, sizeof bytes);
	uint32_t version = 0;

	store_le16(bytes + 4, 77);
	cr_assert_eq(mn_record_decode(bytes, length, &out, &version), -EPROTONOSUPPORT);
	cr_assert_eq(version, 77);
}

Test(record, one_kind_is_not_taken_for_another)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in = mn();
	struct connect_request request;
	size_t length = (size_t)mn_record_encode(&in, bytes, sizeof bytes);

	cr_assert_eq(connect_request_decode(bytes, length, &request, NULL), -EBADMSG);
}

Test(record, fields_out_of_range_are_refused_with_a_right_checksum)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct mn_record in, out;
	size_t length;

	in = mn();
	in.incarnation = 0;
	length = (size_t)mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(mn_record_decode(bytes, length, &out, NULL), -EBADMSG);
	in = mn();
	in.region_bytes = UINT64_MAX;
	mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(mn_record_decode(bytes, length, &out, NULL), -EBADMSG);
	in = mn();
	in.address.qpn = 1 << 24;
	mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(mn_record_decode(bytes, length, &out, NULL), -EBADMSG);
	in = mn();
	in.address.mtu = 6;
	mn_record_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(mn_record_decode(bytes, length, &out, NULL), -EBADMSG);
}

Test(record, a_map_must_name_its_owners_as_members_in_order)
{
	static struct shard_map in, out;
	uint8_t bytes[RECORD_BYTES_MAX];
	size_t length;

	in = map(3);
	in.owner[4095] = 999;
	length = (size_t)shard_map_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(shard_map_decode(bytes, length, &out, NULL), -EBADMSG);
	in = map(3);
	in.members[1] = in.members[0];
	shard_map_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(shard_map_decode(bytes, length, &out, NULL), -EBADMSG);
	in = map(3);
	in.epoch = 0;
	shard_map_encode(&in, bytes, sizeof bytes);
	cr_assert_eq(shard_map_decode(bytes, length, &out, NULL), -EBADMSG);
	in = map(3);
	shard_map_encode(&in, bytes, sizeof bytes);
	store_le32(bytes + 20 + 12, SHARD_MEMBERS_MAX + 1);
	mend(bytes, length);
	cr_assert_eq(shard_map_decode(bytes, length, &out, NULL), -EBADMSG);
}

Test(record, a_reason_with_an_escape_sequence_is_refused)
{
	uint8_t bytes[RECORD_BYTES_MAX];
	struct connect_response in = { .reason = "\033[2J" }, out;
	size_t length = (size_t)connect_response_encode(&in, bytes, sizeof bytes);

	cr_assert_eq(connect_response_decode(bytes, length, &out, NULL), -EBADMSG);
}

Test(record, a_new_member_takes_its_share_and_moves_nothing_else)
{
	static const uint32_t members[] = { 1, 2, 3, 4 };
	uint32_t taken = 0;

	for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
		uint32_t before = shard_choose(shard, members, 3), after = shard_choose(shard, members, 4);

		cr_assert(after == before || after == 4);
		taken += after == 4;
	}
	cr_assert(taken > SHARD_COUNT / 4 - 200 && taken < SHARD_COUNT / 4 + 200, "%u", taken);
}
