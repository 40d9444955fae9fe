/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/seal.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

/* A file of the caller's only, with these bytes. */
static void secret_file(const void *bytes, size_t length)
{
	int fd;

	snprintf(path, sizeof path, "/tmp/farkv-seal-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, length), (ssize_t)length);
	close(fd);
}

static int init_from(const void *bytes, size_t length, struct seal *seal)
{
	int rc;

	secret_file(bytes, length);
	rc = seal_init(seal, path);
	unlink(path);
	return rc;
}

static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

Test(seal, secrets_are_32_bytes_or_64_digits)
{
	static const uint8_t raw[32] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
					 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };
	char text[128];
	struct seal seal;

	cr_assert_eq(init_from(raw, 32, &seal), 0);
	cr_assert(seal.has_secret);
	cr_assert_arr_eq(seal.secret, raw, 32);
	cr_assert_eq(init_from(hex, 64, &seal), 0);
	cr_assert_arr_eq(seal.secret, raw, 32);
	snprintf(text, sizeof text, "%s\n", hex);
	cr_assert_eq(init_from(text, 65, &seal), 0);
	cr_assert_arr_eq(seal.secret, raw, 32);
	snprintf(text, sizeof text, "%s\r\n", hex);
	cr_assert_eq(init_from(text, 66, &seal), 0);
	seal_wipe(&seal);
	cr_assert_eq(seal.secret[31], 0);
	cr_assert_not(seal.has_secret);
	seal_wipe(NULL);
}

Test(seal, other_files_are_refused_and_leave_no_secret)
{
	static const size_t lengths[] = { 0, 1, 31, 33, 63, 66, 100 };
	char text[128];
	struct seal seal;

	memset(text, 'a', sizeof text);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		cr_assert_eq(init_from(text, lengths[i], &seal), -EINVAL, "%zu bytes", lengths[i]);
		cr_assert_not(seal.has_secret);
	}
	memcpy(text, hex, 64);
	text[63] = 'g';
	cr_assert_eq(init_from(text, 64, &seal), -EINVAL);
	cr_assert_eq(seal.secret[0] | seal.secret[1] | seal.secret[2], 0);
	cr_assert_eq(seal_init(&seal, "/nonexistent/secret"), -ENOENT);
	cr_assert_eq(seal_init(&seal, "/dev/zero"), -EINVAL);
}

Test(seal, a_file_that_others_may_read_is_refused)
{
	static const mode_t modes[] = { 0640, 0604, 0660, 0602, 0777 };
	struct seal seal;

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		secret_file(hex, 64);
		chmod(path, modes[i]);
		cr_assert_eq(seal_init(&seal, path), -EACCES, "%o", (unsigned)modes[i]);
		chmod(path, 0400);
		cr_assert_eq(seal_init(&seal, path), 0);
		unlink(path);
	}
}

Test(seal, without_a_secret_records_pass)
{
	struct seal seal;
	uint8_t out[16];
	size_t length;

	cr_assert_eq(seal_init(&seal, NULL), 0);
	cr_assert_eq(seal_close(&seal, "record", 6, out, sizeof out, &length), 0);
	cr_assert_eq(length, 6);
	cr_assert_eq(memcmp(out, "record", 6), 0);
	cr_assert_eq(seal_open(&seal, "record", 6, out, 5, &length), -EMSGSIZE);
	cr_assert_eq(seal_open(&seal, "record", 6, out, 6, &length), 0);
	cr_assert_eq(length, 6);
	cr_assert_eq(seal_close(&seal, "record", 6, out, 5, &length), -EMSGSIZE);
}

Test(seal, sealed_records_open_and_no_two_are_alike)
{
	struct seal seal;
	uint8_t a[128], b[128], out[64];
	size_t length, opened;

	cr_assert_eq(init_from(hex, 64, &seal), 0);
	cr_assert_eq(seal_close(&seal, "record", 6, a, sizeof a, &length), 0);
	cr_assert_eq(length, 6 + SEAL_OVERHEAD_BYTES);
	cr_assert_eq(memcmp(a, "FKS1", 4), 0);
	cr_assert_null(memmem(a, length, "record", 6));
	cr_assert_eq(seal_close(&seal, "record", 6, b, sizeof b, &length), 0);
	cr_assert_neq(memcmp(a, b, length), 0);
	cr_assert_eq(seal_open(&seal, a, length, out, sizeof out, &opened), 0);
	cr_assert_eq(opened, 6);
	cr_assert_eq(memcmp(out, "record", 6), 0);
	cr_assert_eq(seal_open(&seal, a, length, out, 5, &opened), -EMSGSIZE);
	cr_assert_eq(seal_close(&seal, "record", 6, a, 6 + SEAL_OVERHEAD_BYTES - 1, &length), -EMSGSIZE);
	cr_assert_eq(seal_close(&seal, "", 0, a, sizeof a, &length), 0);
	cr_assert_eq(seal_open(&seal, a, length, out, 0, &opened), 0);
	cr_assert_eq(opened, 0);
}

Test(seal, what_was_touched_cut_or_sealed_by_others_does_not_open)
{
	struct seal seal, other, none;
	uint8_t sealed[128], out[64];
	size_t length, opened;

	cr_assert_eq(init_from(hex, 64, &seal), 0);
	other = seal;
	other.secret[0] ^= 1;
	cr_assert_eq(seal_init(&none, NULL), 0);
	cr_assert_eq(seal_close(&seal, "record", 6, sealed, sizeof sealed, &length), 0);
	for (size_t i = 4; i < length; i++) {
		sealed[i] ^= 0x80;
		cr_assert_eq(seal_open(&seal, sealed, length, out, sizeof out, &opened), -EBADMSG);
		sealed[i] ^= 0x80;
	}
	for (size_t cut = 4; cut < length; cut++)
		cr_assert_eq(seal_open(&seal, sealed, cut, out, sizeof out, &opened), -EBADMSG);
	for (size_t cut = 0; cut < 4; cut++)
		cr_assert_eq(seal_open(&seal, sealed, cut, out, sizeof out, &opened), -EPERM);
	cr_assert_eq(seal_open(&other, sealed, length, out, sizeof out, &opened), -EBADMSG);
	cr_assert_eq(seal_open(&none, sealed, length, out, sizeof out, &opened), -ENOKEY);
	cr_assert_eq(seal_open(&seal, "plain record", 12, out, sizeof out, &opened), -EPERM);
}
