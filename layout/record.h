/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that memory nodes and clients publish to each other through the rendezvous.
 *
 * On the wire each is: magic u32, record version u16, kind u16, payload bytes u32, XXH3_64 of
 * the payload u64, payload; little-endian, packed field by field in the order below.
 */
#ifndef FARKV_LAYOUT_RECORD_H
#define FARKV_LAYOUT_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
	RECORD_VERSION = 1,
	SHARD_COUNT = 4096,
	SHARD_MEMBERS_MAX = 256,
	RECORD_REASON_MAX = 160,
	/* Room for any encoded record. */
	RECORD_BYTES_MAX = 20 + 16 + SHARD_MEMBERS_MAX * 4 + SHARD_COUNT * 4,
};

/* One end of a queue pair. */
struct endpoint {
	uint32_t qpn;              /* 24 bits */
	uint32_t psn;              /* 24 bits */
	uint8_t gid[16];           /* zero on an InfiniBand link without GRH */
	uint16_t lid;              /* 0 on Ethernet */
	uint8_t link_layer;        /* IBV_LINK_LAYER_* */
	uint8_t port;
	uint8_t mtu;               /* enum ibv_mtu */
	uint8_t max_dest_rd_atomic; /* READs and atomics it can serve at once */
	uint8_t max_rd_atomic;      /* READs and atomics it may have in flight */
	uint8_t is_softnic;
};

struct mn_record {
	uint32_t mn_id;
	uint32_t layout_version;
	uint64_t incarnation;   /* never 0 */
	uint64_t cluster_id;    /* XXH3_64 of the cluster's name */
	uint64_t region_base;   /* virtual address in the MN */
	uint64_t region_bytes;
	uint32_t rkey;
	uint32_t features;
	struct endpoint address; /* qpn and psn are 0: only where the MN can be met */
	uint64_t published_ms;   /* CLOCK_REALTIME */
};

struct shard_map {
	uint64_t epoch;  /* 0 = no map */
	uint32_t sealed; /* 1: clients have opened the cluster; shards do not move by themselves */
	uint32_t member_count;
	uint32_t members[SHARD_MEMBERS_MAX]; /* MN ids, ascending */
	uint32_t owner[SHARD_COUNT];         /* MN ids */
};

struct connect_request {
	struct endpoint endpoint;
	uint64_t nonce;       /* random; the answer repeats it */
	uint64_t incarnation; /* of the MN record that the client read */
	uint32_t client_id;   /* 0 = give me one; else the one this process was given */
	uint32_t old_qpn;     /* 0, or our QP on the MN's side which this one replaces */
	uint32_t pid;         /* for messages */
	uint32_t sq_depth;
};

enum connect_status {
	CONNECT_OK = 0,
	CONNECT_REFUSED = 1,      /* reason[] says why */
	CONNECT_INCARNATION = 2,  /* the MN has restarted: read its record again */
	CONNECT_FENCED = 3,       /* the client id named has been fenced or is not known */
};

struct connect_response {
	struct endpoint endpoint;
	uint64_t nonce;
	uint64_t incarnation;
	uint32_t client_id;
	uint32_t status; /* enum connect_status */
	uint32_t sq_depth;
	char reason[RECORD_REASON_MAX]; /* terminated */
};

/* Shard of a key's high hash half. */
static inline uint32_t shard_of_hash(uint64_t hash_high)
{
	return (uint32_t)(hash_high >> 52);
}

/* Highest-random-weight owner of a shard among the members; member_count >= 1. */
uint32_t shard_choose(uint32_t shard, const uint32_t *members, uint32_t member_count);

/*
 * encode: writes at most `capacity` bytes, returns the length or -EMSGSIZE.
 * decode: 0; -EBADMSG truncated, malformed, checksum, or a field out of range;
 * -EPROTONOSUPPORT another record version, which *version (may be NULL) tells.
 */
int mn_record_encode(const struct mn_record *record, void *out, size_t capacity);
int mn_record_decode(const void *in, size_t length, struct mn_record *record, uint32_t *version);
int shard_map_encode(const struct shard_map *map, void *out, size_t capacity);
int shard_map_decode(const void *in, size_t length, struct shard_map *map, uint32_t *version);
int connect_request_encode(const struct connect_request *request, void *out, size_t capacity);
int connect_request_decode(const void *in, size_t length, struct connect_request *request,
			   uint32_t *version);
int connect_response_encode(const struct connect_response *response, void *out, size_t capacity);
int connect_response_decode(const void *in, size_t length, struct connect_response *response,
			    uint32_t *version);

#endif
