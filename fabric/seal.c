/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever can read an rkey from memcached can write into the region it stands for, and whoever can
 * write there can send clients anywhere. With a secret, records are encrypted and authenticated
 * (XSalsa20-Poly1305); the nonce is random, 24 bytes, so that it never repeats in practice.
 */
#include "fabric/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t magic[4] = { 'F', 'K', 'S', '1' };

enum { FILE_BYTES_MAX = 80, NONCE_AT = sizeof magic, BOX_AT = NONCE_AT + crypto_secretbox_NONCEBYTES };

_Static_assert(SEAL_SECRET_BYTES == crypto_secretbox_KEYBYTES, "the secret is a secretbox key");
_Static_assert(SEAL_OVERHEAD_BYTES == BOX_AT + crypto_secretbox_MACBYTES, "what sealing adds");

/* 64 hex digits, with or without the end of a line. */
static int decode_hex(const char *text, size_t length, uint8_t secret[SEAL_SECRET_BYTES])
{
	size_t decoded = 0;

	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	if (length != 2 * SEAL_SECRET_BYTES)
		return -EINVAL;
	if (sodium_hex2bin(secret, SEAL_SECRET_BYTES, text, length, NULL, &decoded, NULL) != 0 ||
	    decoded != SEAL_SECRET_BYTES)
		return -EINVAL;
	return 0;
}

/* Fills `text` from the file: its length, or -errno. A file that fills it is too long to be a secret. */
static ssize_t read_secret(int fd, char text[FILE_BYTES_MAX])
{
	size_t length = 0;

	while (length < FILE_BYTES_MAX) {
		ssize_t n = read(fd, text + length, FILE_BYTES_MAX - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += (size_t)n;
	}
	return (ssize_t)length;
}

int seal_init(struct seal *seal, const char *path)
{
	char text[FILE_BYTES_MAX];
	struct stat status;
	ssize_t length;
	int fd, rc = 0;

	memset(seal, 0, sizeof *seal);
	if (!path)
		return 0;
	if (sodium_init() < 0)
		return -EIO;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0) {
		rc = -errno;
		goto close;
	}
	if (!S_ISREG(status.st_mode)) {
		rc = -EINVAL;
		goto close;
	}
	if (status.st_mode & (S_IRWXG | S_IRWXO)) {
		rc = -EACCES;
		goto close;
	}
	length = read_secret(fd, text);
	if (length < 0)
		rc = (int)length;
	else if (length == SEAL_SECRET_BYTES)
		memcpy(seal->secret, text, SEAL_SECRET_BYTES);
	else
		rc = decode_hex(text, (size_t)length, seal->secret);
	seal->has_secret = rc == 0;
	sodium_memzero(text, sizeof text);
	if (rc)
		seal_wipe(seal);
close:
	close(fd);
	return rc;
}

void seal_wipe(struct seal *seal)
{
	if (seal)
		sodium_memzero(seal, sizeof *seal);
}

int seal_close(const struct seal *seal, const void *record, size_t length, void *out, size_t capacity,
	       size_t *out_length)
{
	uint8_t *sealed = out;
	size_t overhead = seal->has_secret ? SEAL_OVERHEAD_BYTES : 0;

	if (length > SIZE_MAX - overhead || capacity < length + overhead)
		return -EMSGSIZE;
	*out_length = length + overhead;
	if (!seal->has_secret) {
		if (length)
			memcpy(out, record, length);
		return 0;
	}
	memcpy(sealed, magic, sizeof magic);
	randombytes_buf(sealed + NONCE_AT, crypto_secretbox_NONCEBYTES);
	crypto_secretbox_easy(sealed + BOX_AT, record, length, sealed + NONCE_AT, seal->secret);
	return 0;
}

int seal_open(const struct seal *seal, const void *sealed, size_t length, void *out, size_t capacity,
	      size_t *out_length)
{
	const uint8_t *bytes = sealed;
	bool is_sealed = length >= sizeof magic && memcmp(sealed, magic, sizeof magic) == 0;
	size_t overhead = is_sealed ? SEAL_OVERHEAD_BYTES : 0;

	if (is_sealed && !seal->has_secret)
		return -ENOKEY;
	if (!is_sealed && seal->has_secret)
		return -EPERM;
	if (length < overhead)
		return -EBADMSG;
	if (capacity < length - overhead)
		return -EMSGSIZE;
	*out_length = length - overhead;
	if (!is_sealed) {
		if (length)
			memcpy(out, sealed, length);
		return 0;
	}
	if (crypto_secretbox_open_easy(out, bytes + BOX_AT, length - BOX_AT, bytes + NONCE_AT,
				       seal->secret) != 0)
		return -EBADMSG;
	return 0;
}
