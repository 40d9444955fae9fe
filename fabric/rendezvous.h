/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small records by key, shared by the cluster: memcached, or an in-memory twin for tests.
 * Every call is bounded by the time-out given at open. Not thread-safe: one per thread.
 *
 * Errors of all calls: -EINVAL the key has 0 or more than 250 bytes, or bytes outside 33..126;
 * -ETIMEDOUT memcached did not answer in time; -ECONNREFUSED it cannot be reached;
 * -EPROTO it answered with an error or nonsense; -ENOMEM it, or we, are out of memory; -EMSGSIZE a value of more than
 * RENDEZVOUS_VALUE_MAX bytes. A time-out is never reported as "not
 * there". Each call logs the fault with the server's name, once per change of state.
 */
#ifndef FARKV_FABRIC_RENDEZVOUS_H
#define FARKV_FABRIC_RENDEZVOUS_H

#include "fabric/log.h"

#include <stddef.h>
#include <stdint.h>

enum { RENDEZVOUS_KEY_MAX = 250, RENDEZVOUS_VALUE_MAX = 65536 };

struct rendezvous;
struct rendezvous_twin; /* the shared state of an in-memory rendezvous; thread-safe */

/* servers: HOST:PORT[,HOST:PORT...], host names, IPv4, [IPv6]:PORT; the port may be left out (11211). -EINVAL names the bad part. */
int rendezvous_open(const char *servers, uint32_t timeout_ms, const struct logger *logger,
		    struct rendezvous **rendezvous);
struct rendezvous_twin *rendezvous_twin_create(void);
void rendezvous_twin_destroy(struct rendezvous_twin *twin);
int rendezvous_twin_open(struct rendezvous_twin *twin, struct rendezvous **rendezvous);
/* The twin's time stands still but for this: what has a TTL expires by it. */
void rendezvous_twin_advance(struct rendezvous_twin *twin, uint32_t seconds);
/* From now on every call fails with `fault` (-ETIMEDOUT, -ECONNREFUSED, ...), until 0 is given. */
void rendezvous_twin_fail(struct rendezvous_twin *twin, int fault);
void rendezvous_close(struct rendezvous *rendezvous); /* accepts NULL */

/* -ENOENT not there; -EMSGSIZE longer than capacity. *cas (may be NULL) for rendezvous_swap. */
int rendezvous_get(struct rendezvous *rendezvous, const char *key, void *value, size_t capacity,
		   size_t *length, uint64_t *cas);
/* ttl_s: seconds, 0 = for ever. */
int rendezvous_set(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		   uint32_t ttl_s);
/* -EEXIST it is there already. */
int rendezvous_add(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		   uint32_t ttl_s);
/* -EAGAIN it has changed since the get that gave `cas`; -ENOENT it is gone. */
int rendezvous_swap(struct rendezvous *rendezvous, const char *key, const void *value, size_t length,
		    uint32_t ttl_s, uint64_t cas);
/* Adds 1 to a decimal counter, which starts so that the first call yields 1. *value: after. */
int rendezvous_increment(struct rendezvous *rendezvous, const char *key, uint32_t ttl_s, uint64_t *value);
/* 0 also where it was not there. */
int rendezvous_delete(struct rendezvous *rendezvous, const char *key);

#endif
