/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that no backend may skip: memcached cuts its input at blanks and ends of lines, so that a key with one of
 * these, or an overlong one, would leave the connection out of step with its answers.
 */
#include "fabric/rendezvous_backend.h"

#include <errno.h>
#include <stdbool.h>

static bool is_key(const char *key)
{
	size_t length = 0;

	for (; key[length]; length++)
		if (length == RENDEZVOUS_KEY_MAX || key[length] < 33 || key[length] > 126)
			return false;
	return length > 0;
}

static int check(const char *key, size_t length)
{
	if (!is_key(key))
		return -EINVAL;
	return length > RENDEZVOUS_VALUE_MAX ? -EMSGSIZE : 0;
}

void rendezvous_close(struct rendezvous *rendezvous)
{
	if (rendezvous)
		rendezvous->backend->close(rendezvous);
}

int rendezvous_get(struct rendezvous *rendezvous, const char *key, void *value, size_t capacity,
		   size_t *length, uint64_t *cas)
{
	uint64_t unused;
	int rc = check(key, 0);

	return rc ? rc : rendezvous->backend->get(rendezvous, key, value, capacity, length,
						  cas ? cas : &unused);
}

int rendezvous_set(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		   uint32_t ttl_s)
{
	int rc = check(key, length);

	return rc ? rc : rendezvous->backend->store(rendezvous, RENDEZVOUS_SET, key, value, length,
						    ttl_s, 0);
}

int rendezvous_add(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		   uint32_t ttl_s)
{
	int rc = check(key, length);

	return rc ? rc : rendezvous->backend->store(rendezvous, RENDEZVOUS_ADD, key, value, length,
						    ttl_s, 0);
}

int rendezvous_swap(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		    uint32_t ttl_s, uint64_t cas)
{
	int rc = check(key, length);

	return rc ? rc : rendezvous->backend->store(rendezvous, RENDEZVOUS_SWAP, key, value, length,
						    ttl_s, cas);
}

int rendezvous_increment(struct rendezvous *rendezvous, const char *key, uint32_t ttl_s, uint64_t *value)
{
	int rc = check(key, 0);

	return rc ? rc : rendezvous->backend->increment(rendezvous, key, ttl_s, value);
}

int rendezvous_delete(struct rendezvous *rendezvous, const char *key)
{
	int rc = check(key, 0);

	if (!rc)
		rc = rendezvous->backend->remove(rendezvous, key);
	return rc == -ENOENT ? 0 : rc;
}
