/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-shake's records, one function per record and direction. Nothing here waits for a peer: a record that is not
 * there yet is -ENOENT, and the caller, who knows its deadline, asks again. Each call is bounded by the
 * rendezvous' time-out.
 *
 * A ticket is drawn before its request is written, so the memory node may see a ticket without a request; it looks
 * again until the request's time is up. Requests, answers and the readiness mark expire by themselves. The counter
 * of tickets does not: a counter that began anew would hand out numbers of requests still lying there.
 */
#include "fabric/cluster_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof "farkv::mn:4294967295:ready:18446744073709551615" - 1 + CLUSTER_NAME_MAX <=
	       RENDEZVOUS_KEY_MAX, "the longest key of the longest name can be sent");
_Static_assert(RECORD_BYTES_MAX + SEAL_OVERHEAD_BYTES <= RENDEZVOUS_VALUE_MAX, "the largest record can be sent");

enum { SEALED_BYTES_MAX = RECORD_BYTES_MAX + SEAL_OVERHEAD_BYTES };

int cluster_check_name(const char *name, const struct logger *logger)
{
	size_t length = name ? strlen(name) : 0;

	if (length < 1 || length > CLUSTER_NAME_MAX) {
		log_line(logger, LOG_LEVEL_ERROR,
			 "a cluster's name has 1 to %d bytes (memcached's keys end at %d), this one has %zu",
			 CLUSTER_NAME_MAX, RENDEZVOUS_KEY_MAX, length);
		return -EINVAL;
	}
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c >= 33 && c <= 126 && c != ':')
			continue;
		log_line(logger, LOG_LEVEL_ERROR,
			 "byte %zu of the cluster's name is 0x%02x: only printable ASCII without blanks and colons",
			 i + 1, c);
		return -EINVAL;
	}
	return 0;
}

int cluster_init(struct cluster *cluster, const char *name, struct rendezvous *rendezvous,
		 const char *secret_file, const struct logger *logger)
{
	int rc = cluster_check_name(name, logger);

	memset(cluster, 0, sizeof *cluster);
	if (rc)
		return rc;
	rc = seal_init(&cluster->seal, secret_file);
	if (rc) {
		log_line(logger, LOG_LEVEL_ERROR, "cluster secret %s: %s", secret_file,
			 rc == -EACCES ? "it may not be read, or others than its owner may (chmod 600)" :
			 rc == -EINVAL ? "the file holds neither 32 raw bytes nor 64 hex digits" :
			 strerror(-rc));
		return rc;
	}
	cluster->rendezvous = rendezvous;
	cluster->logger = logger;
	cluster->id = XXH3_64bits(name, strlen(name));
	snprintf(cluster->name, sizeof cluster->name, "%s", name);
	return 0;
}

void cluster_wipe(struct cluster *cluster)
{
	if (cluster)
		seal_wipe(&cluster->seal);
}

struct cluster_key cluster_key(const struct cluster *cluster, const char *suffix, ...)
{
	struct cluster_key key;
	va_list arguments;
	int length = snprintf(key.text, sizeof key.text, "farkv:%s:", cluster->name);

	va_start(arguments, suffix);
	vsnprintf(key.text + length, sizeof key.text - (size_t)length, suffix, arguments);
	va_end(arguments);
	return key;
}

int cluster_judge(const struct cluster *cluster, const char *key, int rc, uint32_t version)
{
	if (rc == -EPROTONOSUPPORT)
		log_line(cluster->logger, LOG_LEVEL_ERROR,
			 "%s has record version %" PRIu32 ", this program knows version %d: run the same version of "
			 "farkv on all nodes and clients", key, version, RECORD_VERSION);
	else if (rc == -EBADMSG)
		log_line(cluster->logger, LOG_LEVEL_ERROR, "%s is damaged, or no record of farkv", key);
	return rc;
}

int cluster_get(struct cluster *cluster, const char *key, uint8_t *record, size_t capacity, size_t *length,
		uint64_t *cas)
{
	uint8_t sealed[SEALED_BYTES_MAX];
	size_t sealed_length;
	int rc = rendezvous_get(cluster->rendezvous, key, sealed, sizeof sealed, &sealed_length, cas);

	if (rc == -EMSGSIZE)
		return cluster_judge(cluster, key, -EBADMSG, 0);
	if (rc)
		return rc;
	rc = seal_open(&cluster->seal, sealed, sealed_length, record, capacity, length);
	switch (rc) {
	case 0:
		break;
	case -ENOKEY:
		log_line(cluster->logger, LOG_LEVEL_ERROR,
			 "%s is sealed with a cluster secret, and we have none: give the secret file", key);
		break;
	case -EPERM:
		log_line(cluster->logger, LOG_LEVEL_ERROR,
			 "%s is not sealed although we have a cluster secret: not of our cluster, or forged", key);
		break;
	case -EBADMSG:
		log_line(cluster->logger, LOG_LEVEL_ERROR,
			 "%s does not open with our cluster secret: another secret, damaged, or forged", key);
		break;
	default:
		rc = cluster_judge(cluster, key, -EBADMSG, 0);
	}
	return rc;
}

int cluster_seal(const struct cluster *cluster, const uint8_t *record, int encoded, uint8_t *out,
		 size_t *length)
{
	if (encoded < 0)
		return encoded;
	return seal_close(&cluster->seal, record, (size_t)encoded, out, SEALED_BYTES_MAX, length);
}

/* Seals and sets. */
static int put(struct cluster *cluster, const char *key, const uint8_t *record, int encoded, uint32_t ttl_s)
{
	uint8_t sealed[SEALED_BYTES_MAX];
	size_t length;
	int rc = cluster_seal(cluster, record, encoded, sealed, &length);

	return rc ? rc : rendezvous_set(cluster->rendezvous, key, sealed, length, ttl_s);
}

int cluster_publish_mn(struct cluster *cluster, const struct mn_record *record)
{
	struct cluster_key key = cluster_key(cluster, "mn:%" PRIu32, record->mn_id);
	uint8_t bytes[RECORD_BYTES_MAX];

	return put(cluster, key.text, bytes, mn_record_encode(record, bytes, sizeof bytes),
		   CLUSTER_RECORD_TTL_S);
}

int cluster_read_mn(struct cluster *cluster, uint32_t mn_id, struct mn_record *record)
{
	struct cluster_key key = cluster_key(cluster, "mn:%" PRIu32, mn_id);
	uint8_t bytes[RECORD_BYTES_MAX];
	uint32_t version = 0;
	size_t length;
	int rc = cluster_get(cluster, key.text, bytes, sizeof bytes, &length, NULL);

	if (rc)
		return rc;
	rc = mn_record_decode(bytes, length, record, &version);
	if (rc)
		return cluster_judge(cluster, key.text, rc, version);
	if (record->mn_id == mn_id && record->cluster_id == cluster->id)
		return 0;
	log_line(cluster->logger, LOG_LEVEL_ERROR,
		 "%s is the record of memory node %" PRIu32 " of cluster %016" PRIx64 ", not of ours (%016" PRIx64 ")",
		 key.text, record->mn_id, record->cluster_id, cluster->id);
	return -EBADMSG;
}

/*
 * Between look and delete a successor might publish; it publishes again every few seconds. The region's lock keeps
 * two nodes of one id from running at once in the first place.
 */
int cluster_withdraw_mn(struct cluster *cluster, uint32_t mn_id, uint64_t incarnation)
{
	struct mn_record record;
	int rc = cluster_read_mn(cluster, mn_id, &record);

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	if (record.incarnation != incarnation)
		return 0;
	return rendezvous_delete(cluster->rendezvous, cluster_key(cluster, "mn:%" PRIu32, mn_id).text);
}

int cluster_read_tickets(struct cluster *cluster, uint32_t mn_id, uint64_t *ticket)
{
	struct cluster_key key = cluster_key(cluster, "mn:%" PRIu32 ":tickets", mn_id);
	char text[24];
	size_t length, digits;
	uint64_t value = 0;
	int rc = rendezvous_get(cluster->rendezvous, key.text, text, sizeof text - 1, &length, NULL);

	*ticket = 0;
	if (rc == -ENOENT)
		return 0;
	if (rc && rc != -EMSGSIZE)
		return rc;
	text[rc ? 0 : length] = 0;
	digits = strspn(text, "0123456789");
	/* memcached pads a counter that has become shorter with blanks. */
	if (digits == 0 || digits > 20 || text[digits + strspn(text + digits, " ")] != 0)
		return cluster_judge(cluster, key.text, -EBADMSG, 0);
	for (size_t i = 0; i < digits; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return cluster_judge(cluster, key.text, -EBADMSG, 0);
	*ticket = value;
	return 0;
}

int cluster_take_ticket(struct cluster *cluster, uint32_t mn_id, uint64_t *ticket)
{
	return rendezvous_increment(cluster->rendezvous,
				    cluster_key(cluster, "mn:%" PRIu32 ":tickets", mn_id).text, 0, ticket);
}

static struct cluster_key ticket_key(const struct cluster *cluster, uint32_t mn_id, const char *what,
				     uint64_t ticket)
{
	return cluster_key(cluster, "mn:%" PRIu32 ":%s:%" PRIu64, mn_id, what, ticket);
}

int cluster_write_request(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			  const struct connect_request *request)
{
	uint8_t bytes[RECORD_BYTES_MAX];

	return put(cluster, ticket_key(cluster, mn_id, "req", ticket).text, bytes,
		   connect_request_encode(request, bytes, sizeof bytes), CLUSTER_TICKET_TTL_S);
}

int cluster_read_request(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			 struct connect_request *request)
{
	struct cluster_key key = ticket_key(cluster, mn_id, "req", ticket);
	uint8_t bytes[RECORD_BYTES_MAX];
	uint32_t version = 0;
	size_t length;
	int rc = cluster_get(cluster, key.text, bytes, sizeof bytes, &length, NULL);

	if (rc)
		return rc;
	rc = connect_request_decode(bytes, length, request, &version);
	return cluster_judge(cluster, key.text, rc, version);
}

int cluster_write_response(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			   const struct connect_response *response)
{
	uint8_t bytes[RECORD_BYTES_MAX];

	return put(cluster, ticket_key(cluster, mn_id, "rsp", ticket).text, bytes,
		   connect_response_encode(response, bytes, sizeof bytes), CLUSTER_TICKET_TTL_S);
}

int cluster_read_response(struct cluster *cluster, uint32_t mn_id, uint64_t ticket,
			  struct connect_response *response)
{
	struct cluster_key key = ticket_key(cluster, mn_id, "rsp", ticket);
	uint8_t bytes[RECORD_BYTES_MAX];
	uint32_t version = 0;
	size_t length;
	int rc = cluster_get(cluster, key.text, bytes, sizeof bytes, &length, NULL);

	if (rc)
		return rc;
	rc = connect_response_decode(bytes, length, response, &version);
	return cluster_judge(cluster, key.text, rc, version);
}

int cluster_write_ready(struct cluster *cluster, uint32_t mn_id, uint64_t ticket)
{
	static const uint8_t mark[] = { '1' };

	return put(cluster, ticket_key(cluster, mn_id, "ready", ticket).text, mark, sizeof mark,
		   CLUSTER_TICKET_TTL_S);
}

bool cluster_is_ready(struct cluster *cluster, uint32_t mn_id, uint64_t ticket)
{
	uint8_t mark[16];
	size_t length;

	return cluster_get(cluster, ticket_key(cluster, mn_id, "ready", ticket).text, mark, sizeof mark,
			   &length, NULL) == 0;
}
