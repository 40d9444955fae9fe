/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous in memory, for tests and the simulation: same answers as memcached, no waits, and a clock that
 * the test moves, so that a run repeats exactly.
 */
#include "fabric/rendezvous_backend.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct entry *next;
	uint64_t cas;
	uint64_t expires_s; /* 0 = never */
	size_t length;
	char key[RENDEZVOUS_KEY_MAX + 1];
	uint8_t value[];
};

struct rendezvous_twin {
	pthread_mutex_t mutex; /* guards all below */
	struct entry *entries;
	uint64_t last_cas;
	uint64_t now_s;
	int fault;
};

struct twin_end {
	struct rendezvous base;
	struct rendezvous_twin *twin; /* borrowed */
};

static struct rendezvous_twin *lock(struct rendezvous *rendezvous)
{
	struct rendezvous_twin *twin = ((struct twin_end *)rendezvous)->twin;

	pthread_mutex_lock(&twin->mutex);
	return twin;
}

static int unlock(struct rendezvous_twin *twin, int rc)
{
	if (twin->fault)
		rc = twin->fault;
	pthread_mutex_unlock(&twin->mutex);
	return rc;
}

/* Where the pointer to the entry stands; expired entries go on the way. */
static struct entry **find(struct rendezvous_twin *twin, const char *key)
{
	struct entry **at = &twin->entries;

	while (*at) {
		struct entry *entry = *at;

		if (entry->expires_s && entry->expires_s <= twin->now_s) {
			*at = entry->next;
			free(entry);
		} else if (strcmp(entry->key, key) == 0) {
			break;
		} else {
			at = &entry->next;
		}
	}
	return at;
}

/* Puts a new entry in the place of what is there. */
static int place(struct rendezvous_twin *twin, struct entry **at, const char *key, const void *value,
		 size_t length, uint32_t ttl_s)
{
	struct entry *old = *at, *entry = malloc(sizeof *entry + length);

	if (!entry)
		return -ENOMEM;
	entry->next = old ? old->next : NULL;
	entry->cas = ++twin->last_cas;
	entry->expires_s = ttl_s ? twin->now_s + ttl_s : 0;
	entry->length = length;
	snprintf(entry->key, sizeof entry->key, "%s", key);
	if (length)
		memcpy(entry->value, value, length);
	free(old);
	*at = entry;
	return 0;
}

static int twin_get(struct rendezvous *rendezvous, const char *key, void *value, size_t capacity,
		    size_t *length, uint64_t *cas)
{
	struct rendezvous_twin *twin = lock(rendezvous);
	struct entry *entry = *find(twin, key);

	if (twin->fault)
		return unlock(twin, 0);
	if (!entry)
		return unlock(twin, -ENOENT);
	if (entry->length > capacity)
		return unlock(twin, -EMSGSIZE);
	if (entry->length)
		memcpy(value, entry->value, entry->length);
	*length = entry->length;
	*cas = entry->cas;
	return unlock(twin, 0);
}

static int twin_store(struct rendezvous *rendezvous, enum rendezvous_store kind, const char *key,
		      const void *value, size_t length, uint32_t ttl_s, uint64_t cas)
{
	struct rendezvous_twin *twin = lock(rendezvous);
	struct entry **at = find(twin, key);

	if (twin->fault)
		return unlock(twin, 0);
	if (kind == RENDEZVOUS_ADD && *at)
		return unlock(twin, -EEXIST);
	if (kind == RENDEZVOUS_SWAP && !*at)
		return unlock(twin, -ENOENT);
	if (kind == RENDEZVOUS_SWAP && (*at)->cas != cas)
		return unlock(twin, -EAGAIN);
	return unlock(twin, place(twin, at, key, value, length, ttl_s));
}

static int twin_increment(struct rendezvous *rendezvous, const char *key, uint32_t ttl_s, uint64_t *value)
{
	struct rendezvous_twin *twin = lock(rendezvous);
	struct entry **at = find(twin, key);
	char text[24] = "0";
	uint64_t expires_s;
	int rc;

	if (twin->fault)
		return unlock(twin, 0);
	if (*at && (*at)->length >= sizeof text)
		return unlock(twin, -EPROTO);
	if (*at)
		snprintf(text, sizeof text, "%.*s", (int)(*at)->length, (const char *)(*at)->value);
	if (text[0] == 0 || strspn(text, "0123456789") != strlen(text))
		return unlock(twin, -EPROTO);
	*value = strtoull(text, NULL, 10) + 1;
	snprintf(text, sizeof text, "%" PRIu64, *value);
	/* As in memcached, the TTL is that of the first call. */
	expires_s = *at ? (*at)->expires_s : ttl_s ? twin->now_s + ttl_s : 0;
	rc = place(twin, at, key, text, strlen(text), 0);
	if (!rc)
		(*at)->expires_s = expires_s;
	return unlock(twin, rc);
}

static int twin_remove(struct rendezvous *rendezvous, const char *key)
{
	struct rendezvous_twin *twin = lock(rendezvous);
	struct entry **at = find(twin, key), *entry = *at;

	if (twin->fault)
		return unlock(twin, 0);
	if (!entry)
		return unlock(twin, -ENOENT);
	*at = entry->next;
	free(entry);
	return unlock(twin, 0);
}

static void twin_close(struct rendezvous *rendezvous)
{
	free(rendezvous);
}

static const struct rendezvous_backend twin_backend = {
	.close = twin_close,
	.get = twin_get,
	.store = twin_store,
	.increment = twin_increment,
	.remove = twin_remove,
};

struct rendezvous_twin *rendezvous_twin_create(void)
{
	struct rendezvous_twin *twin = calloc(1, sizeof *twin);

	if (twin && pthread_mutex_init(&twin->mutex, NULL) != 0) {
		free(twin);
		return NULL;
	}
	return twin;
}

void rendezvous_twin_destroy(struct rendezvous_twin *twin)
{
	if (!twin)
		return;
	while (twin->entries) {
		struct entry *entry = twin->entries;

		twin->entries = entry->next;
		free(entry);
	}
	pthread_mutex_destroy(&twin->mutex);
	free(twin);
}

int rendezvous_twin_open(struct rendezvous_twin *twin, struct rendezvous **rendezvous)
{
	struct twin_end *end = calloc(1, sizeof *end);

	if (!end)
		return -ENOMEM;
	end->base.backend = &twin_backend;
	end->twin = twin;
	*rendezvous = &end->base;
	return 0;
}

void rendezvous_twin_advance(struct rendezvous_twin *twin, uint32_t seconds)
{
	pthread_mutex_lock(&twin->mutex);
	twin->now_s += seconds;
	pthread_mutex_unlock(&twin->mutex);
}

void rendezvous_twin_fail(struct rendezvous_twin *twin, int fault)
{
	assert(fault <= 0);
	pthread_mutex_lock(&twin->mutex);
	twin->fault = fault;
	pthread_mutex_unlock(&twin->mutex);
}
