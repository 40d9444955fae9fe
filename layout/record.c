/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record is read from memcached, which anybody on the network may have written. So a decoder
 * bounds every length before it is used, checks the checksum before it looks at a field, wants the
 * payload used up to the last byte, and refuses every field out of range. What is left has exactly one
 * encoding: decode, then encode, gives the same bytes (tests/fuzz leans on that).
 */
#include "layout/record.h"

#include "layout/bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <xxhash.h>

#define RECORD_MAGIC UINT32_C(0x52564b46) /* "FKVR" */

enum { HEADER_BYTES = 20, ENDPOINT_BYTES = 32, LINK_LAYER_MAX = 2, MTU_MAX = 5 };

enum record_kind {
	RECORD_MN = 1,
	RECORD_SHARD_MAP = 2,
	RECORD_CONNECT_REQUEST = 3,
	RECORD_CONNECT_RESPONSE = 4,
};

_Static_assert(SHARD_COUNT == 1 << 12, "shard_of_hash takes the upper 12 bits");
_Static_assert(RECORD_BYTES_MAX >= HEADER_BYTES + 16 + (SHARD_MEMBERS_MAX + SHARD_COUNT) * 4,
	       "the largest record fits");
_Static_assert(RECORD_BYTES_MAX >= HEADER_BYTES + ENDPOINT_BYTES + 28 + RECORD_REASON_MAX,
	       "an answer fits");

/* Where the next field goes, or comes from; `failed` once there is no room, or nothing left. */
struct cursor {
	uint8_t *out;
	const uint8_t *in;
	size_t at, end;
	bool failed;
};

static bool take(struct cursor *c, size_t bytes)
{
	if (c->failed || c->end - c->at < bytes) {
		c->failed = true;
		return false;
	}
	c->at += bytes;
	return true;
}

static void put_bytes(struct cursor *c, const void *from, size_t bytes)
{
	if (take(c, bytes))
		memcpy(c->out + c->at - bytes, from, bytes);
}

static void put_u8(struct cursor *c, uint8_t v)
{
	put_bytes(c, &v, 1);
}

static void put_u16(struct cursor *c, uint16_t v)
{
	if (take(c, 2))
		store_le16(c->out + c->at - 2, v);
}

static void put_u32(struct cursor *c, uint32_t v)
{
	if (take(c, 4))
		store_le32(c->out + c->at - 4, v);
}

static void put_u64(struct cursor *c, uint64_t v)
{
	if (take(c, 8))
		store_le64(c->out + c->at - 8, v);
}

static void get_bytes(struct cursor *c, void *to, size_t bytes)
{
	if (take(c, bytes))
		memcpy(to, c->in + c->at - bytes, bytes);
	else
		memset(to, 0, bytes);
}

static uint8_t get_u8(struct cursor *c)
{
	return take(c, 1) ? c->in[c->at - 1] : 0;
}

static uint16_t get_u16(struct cursor *c)
{
	return take(c, 2) ? load_le16(c->in + c->at - 2) : 0;
}

static uint32_t get_u32(struct cursor *c)
{
	return take(c, 4) ? load_le32(c->in + c->at - 4) : 0;
}

static uint64_t get_u64(struct cursor *c)
{
	return take(c, 8) ? load_le64(c->in + c->at - 8) : 0;
}

static struct cursor encode_begin(void *out, size_t capacity)
{
	struct cursor c = { .out = out, .end = capacity };

	take(&c, HEADER_BYTES);
	return c;
}

static int encode_end(struct cursor *c, enum record_kind kind)
{
	uint32_t payload_bytes = (uint32_t)(c->at - HEADER_BYTES);

	if (c->failed)
		return -EMSGSIZE;
	store_le32(c->out, RECORD_MAGIC);
	store_le16(c->out + 4, RECORD_VERSION);
	store_le16(c->out + 6, (uint16_t)kind);
	store_le32(c->out + 8, payload_bytes);
	store_le64(c->out + 12, XXH3_64bits(c->out + HEADER_BYTES, payload_bytes));
	return (int)c->at;
}

/*
 * The version comes before checksum and kind: the first eight bytes are the same in all versions, the rest may
 * not be.
 */
static int decode_begin(const void *in, size_t length, enum record_kind kind, uint32_t *version,
			struct cursor *c)
{
	const uint8_t *bytes = in;

	if (length < HEADER_BYTES || length > RECORD_BYTES_MAX || load_le32(bytes) != RECORD_MAGIC)
		return -EBADMSG;
	if (version)
		*version = load_le16(bytes + 4);
	if (load_le16(bytes + 4) != RECORD_VERSION)
		return -EPROTONOSUPPORT;
	if (load_le16(bytes + 6) != kind || load_le32(bytes + 8) != length - HEADER_BYTES)
		return -EBADMSG;
	if (load_le64(bytes + 12) != XXH3_64bits(bytes + HEADER_BYTES, length - HEADER_BYTES))
		return -EBADMSG;
	*c = (struct cursor){ .in = bytes, .at = HEADER_BYTES, .end = length };
	return 0;
}

static int decode_end(const struct cursor *c, bool in_range)
{
	return !c->failed && c->at == c->end && in_range ? 0 : -EBADMSG;
}

static void put_endpoint(struct cursor *c, const struct endpoint *endpoint)
{
	put_u32(c, endpoint->qpn);
	put_u32(c, endpoint->psn);
	put_bytes(c, endpoint->gid, sizeof endpoint->gid);
	put_u16(c, endpoint->lid);
	put_u8(c, endpoint->link_layer);
	put_u8(c, endpoint->port);
	put_u8(c, endpoint->mtu);
	put_u8(c, endpoint->max_dest_rd_atomic);
	put_u8(c, endpoint->max_rd_atomic);
	put_u8(c, endpoint->is_softnic);
}

/* A zeroed endpoint is in range: an answer that refuses has none. qp_connect wants more. */
static bool get_endpoint(struct cursor *c, struct endpoint *endpoint)
{
	endpoint->qpn = get_u32(c);
	endpoint->psn = get_u32(c);
	get_bytes(c, endpoint->gid, sizeof endpoint->gid);
	endpoint->lid = get_u16(c);
	endpoint->link_layer = get_u8(c);
	endpoint->port = get_u8(c);
	endpoint->mtu = get_u8(c);
	endpoint->max_dest_rd_atomic = get_u8(c);
	endpoint->max_rd_atomic = get_u8(c);
	endpoint->is_softnic = get_u8(c);
	return endpoint->qpn < 1u << 24 && endpoint->psn < 1u << 24 &&
	       endpoint->link_layer <= LINK_LAYER_MAX && endpoint->mtu <= MTU_MAX &&
	       endpoint->is_softnic <= 1;
}

int mn_record_encode(const struct mn_record *record, void *out, size_t capacity)
{
	struct cursor c = encode_begin(out, capacity);

	put_u32(&c, record->mn_id);
	put_u32(&c, record->layout_version);
	put_u64(&c, record->incarnation);
	put_u64(&c, record->cluster_id);
	put_u64(&c, record->region_base);
	put_u64(&c, record->region_bytes);
	put_u32(&c, record->rkey);
	put_u32(&c, record->features);
	put_endpoint(&c, &record->address);
	put_u64(&c, record->published_ms);
	return encode_end(&c, RECORD_MN);
}

int mn_record_decode(const void *in, size_t length, struct mn_record *record, uint32_t *version)
{
	struct cursor c;
	bool in_range;
	int rc = decode_begin(in, length, RECORD_MN, version, &c);

	if (rc)
		return rc;
	memset(record, 0, sizeof *record);
	record->mn_id = get_u32(&c);
	record->layout_version = get_u32(&c);
	record->incarnation = get_u64(&c);
	record->cluster_id = get_u64(&c);
	record->region_base = get_u64(&c);
	record->region_bytes = get_u64(&c);
	record->rkey = get_u32(&c);
	record->features = get_u32(&c);
	in_range = get_endpoint(&c, &record->address);
	record->published_ms = get_u64(&c);
	in_range = in_range && record->incarnation != 0 &&
		   record->region_base <= UINT64_MAX - record->region_bytes;
	return decode_end(&c, in_range);
}

static bool shard_map_is_member(const struct shard_map *map, uint32_t mn_id)
{
	uint32_t low = 0, high = map->member_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (map->members[middle] < mn_id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < map->member_count && map->members[low] == mn_id;
}

static bool shard_map_in_range(const struct shard_map *map)
{
	if (map->epoch == 0 || map->sealed > 1)
		return false;
	for (uint32_t i = 1; i < map->member_count; i++)
		if (map->members[i - 1] >= map->members[i])
			return false;
	for (uint32_t i = 0; i < SHARD_COUNT; i++)
		if (!shard_map_is_member(map, map->owner[i]))
			return false;
	return true;
}

int shard_map_encode(const struct shard_map *map, void *out, size_t capacity)
{
	struct cursor c = encode_begin(out, capacity);

	assert(map->member_count >= 1 && map->member_count <= SHARD_MEMBERS_MAX);
	put_u64(&c, map->epoch);
	put_u32(&c, map->sealed);
	put_u32(&c, map->member_count);
	for (uint32_t i = 0; i < map->member_count; i++)
		put_u32(&c, map->members[i]);
	for (uint32_t i = 0; i < SHARD_COUNT; i++)
		put_u32(&c, map->owner[i]);
	return encode_end(&c, RECORD_SHARD_MAP);
}

int shard_map_decode(const void *in, size_t length, struct shard_map *map, uint32_t *version)
{
	struct cursor c;
	int rc = decode_begin(in, length, RECORD_SHARD_MAP, version, &c);

	if (rc)
		return rc;
	memset(map, 0, sizeof *map);
	map->epoch = get_u64(&c);
	map->sealed = get_u32(&c);
	map->member_count = get_u32(&c);
	if (map->member_count < 1 || map->member_count > SHARD_MEMBERS_MAX) {
		map->member_count = 0;
		return -EBADMSG;
	}
	for (uint32_t i = 0; i < map->member_count; i++)
		map->members[i] = get_u32(&c);
	for (uint32_t i = 0; i < SHARD_COUNT; i++)
		map->owner[i] = get_u32(&c);
	return decode_end(&c, shard_map_in_range(map));
}

int connect_request_encode(const struct connect_request *request, void *out, size_t capacity)
{
	struct cursor c = encode_begin(out, capacity);

	put_endpoint(&c, &request->endpoint);
	put_u64(&c, request->nonce);
	put_u64(&c, request->incarnation);
	put_u32(&c, request->client_id);
	put_u32(&c, request->old_qpn);
	put_u32(&c, request->pid);
	put_u32(&c, request->sq_depth);
	return encode_end(&c, RECORD_CONNECT_REQUEST);
}

int connect_request_decode(const void *in, size_t length, struct connect_request *request,
			   uint32_t *version)
{
	struct cursor c;
	bool in_range;
	int rc = decode_begin(in, length, RECORD_CONNECT_REQUEST, version, &c);

	if (rc)
		return rc;
	memset(request, 0, sizeof *request);
	in_range = get_endpoint(&c, &request->endpoint);
	request->nonce = get_u64(&c);
	request->incarnation = get_u64(&c);
	request->client_id = get_u32(&c);
	request->old_qpn = get_u32(&c);
	request->pid = get_u32(&c);
	request->sq_depth = get_u32(&c);
	in_range = in_range && request->client_id <= UINT16_MAX && request->old_qpn < 1u << 24;
	return decode_end(&c, in_range);
}

/* A reason goes to logs and terminals: no control characters; zeros from the end on. */
static bool reason_in_range(const char reason[RECORD_REASON_MAX])
{
	size_t length = strnlen(reason, RECORD_REASON_MAX);

	if (length == RECORD_REASON_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)reason[i] < 32 || reason[i] == 127)
			return false;
	for (size_t i = length; i < RECORD_REASON_MAX; i++)
		if (reason[i] != 0)
			return false;
	return true;
}

int connect_response_encode(const struct connect_response *response, void *out, size_t capacity)
{
	struct cursor c = encode_begin(out, capacity);
	size_t reason_bytes = strnlen(response->reason, RECORD_REASON_MAX - 1);
	char reason[RECORD_REASON_MAX] = { 0 };

	memcpy(reason, response->reason, reason_bytes);
	put_endpoint(&c, &response->endpoint);
	put_u64(&c, response->nonce);
	put_u64(&c, response->incarnation);
	put_u32(&c, response->client_id);
	put_u32(&c, response->status);
	put_u32(&c, response->sq_depth);
	put_bytes(&c, reason, sizeof reason);
	return encode_end(&c, RECORD_CONNECT_RESPONSE);
}

int connect_response_decode(const void *in, size_t length, struct connect_response *response,
			    uint32_t *version)
{
	struct cursor c;
	bool in_range;
	int rc = decode_begin(in, length, RECORD_CONNECT_RESPONSE, version, &c);

	if (rc)
		return rc;
	memset(response, 0, sizeof *response);
	in_range = get_endpoint(&c, &response->endpoint);
	response->nonce = get_u64(&c);
	response->incarnation = get_u64(&c);
	response->client_id = get_u32(&c);
	response->status = get_u32(&c);
	response->sq_depth = get_u32(&c);
	get_bytes(&c, response->reason, sizeof response->reason);
	in_range = in_range && response->client_id <= UINT16_MAX &&
		   response->status <= CONNECT_FENCED && reason_in_range(response->reason);
	return decode_end(&c, in_range);
}

uint32_t shard_choose(uint32_t shard, const uint32_t *members, uint32_t member_count)
{
	uint32_t chosen = 0;
	uint64_t highest = 0;

	assert(member_count >= 1);
	for (uint32_t i = 0; i < member_count; i++) {
		uint8_t pair[8];
		uint64_t weight;

		store_le32(pair, shard);
		store_le32(pair + 4, members[i]);
		weight = XXH3_64bits(pair, sizeof pair);
		if (i == 0 || weight > highest || (weight == highest && members[i] < chosen)) {
			chosen = members[i];
			highest = weight;
		}
	}
	return chosen;
}
