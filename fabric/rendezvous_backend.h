/* SPDX-License-Identifier: Apache-2.0 */
/* What a rendezvous is made of. Keys and lengths have been checked when a backend sees them. */
#ifndef FARKV_FABRIC_RENDEZVOUS_BACKEND_H
#define FARKV_FABRIC_RENDEZVOUS_BACKEND_H

#include "fabric/rendezvous.h"

enum rendezvous_store { RENDEZVOUS_SET, RENDEZVOUS_ADD, RENDEZVOUS_SWAP };

struct rendezvous_backend {
	void (*close)(struct rendezvous *rendezvous);
	int (*get)(struct rendezvous *rendezvous, const char *key, void *value, size_t capacity,
		   size_t *length, uint64_t *cas);
	/* cas: of RENDEZVOUS_SWAP. */
	int (*store)(struct rendezvous *rendezvous, enum rendezvous_store kind, const char *key,
		     const void *value, size_t length, uint32_t ttl_s, uint64_t cas);
	int (*increment)(struct rendezvous *rendezvous, const char *key, uint32_t ttl_s,
			 uint64_t *value);
	/* -ENOENT where it was not there. */
	int (*remove)(struct rendezvous *rendezvous, const char *key);
};

/* The first member of each backend's own struct. */
struct rendezvous {
	const struct rendezvous_backend *backend;
};

#endif
