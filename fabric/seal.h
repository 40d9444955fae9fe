/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing of published records with the cluster secret (libsodium secretbox).
 * sealed = "FKS1" | nonce 24 | box. Without a secret a record travels as it is.
 */
#ifndef FARKV_FABRIC_SEAL_H
#define FARKV_FABRIC_SEAL_H

#include <stddef.h>
#include <stdint.h>

enum { SEAL_SECRET_BYTES = 32, SEAL_OVERHEAD_BYTES = 4 + 24 + 16 };

struct seal {
	uint8_t secret[SEAL_SECRET_BYTES];
	int has_secret;
};

/*
 * path NULL = no secret. The file holds 32 raw bytes or 64 hex digits. -ENOENT; -EINVAL neither of these; -EACCES may
 * not be read, or others than its owner may; -EIO.
 */
int seal_init(struct seal *seal, const char *path);
void seal_wipe(struct seal *seal); /* zeroes the secret; accepts NULL */
/* *out_length <= length + SEAL_OVERHEAD_BYTES. -EMSGSIZE no room. */
int seal_close(const struct seal *seal, const void *record, size_t length, void *out, size_t capacity,
	       size_t *out_length);
/* -EBADMSG forged or another secret; -ENOKEY sealed and we have no secret; -EPERM unsealed although we have one; -EMSGSIZE. */
int seal_open(const struct seal *seal, const void *sealed, size_t length, void *out, size_t capacity,
	      size_t *out_length);

#endif
