/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/verify_table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER_BYTES = 4096,
	RING_FEW = 64, /* events remembered per key, by the number of records */
	RING_SOME = 8,
	RING_MANY = 4,
	RECORDS_FEW = 1 << 16,
	RECORDS_SOME = 1 << 20,
	SPINS = 100,	     /* before the lock's next try gives the processor away */
	SPINS_ALIVE = 20000, /* before looking whether the holder lives */
};

static const uint64_t table_magic = 0x31666576766b7246u;

struct header {
	uint64_t magic;
	uint32_t ring;
	uint32_t record_bytes;
	uint32_t run;
	uint32_t unused;
};

static uint32_t ring_for(uint64_t records)
{
	if (records <= RECORDS_FEW)
		return RING_FEW;
	return records <= RECORDS_SOME ? RING_SOME : RING_MANY;
}

static bool fail(char *error, const char *path, const char *why)
{
	snprintf(error, BENCH_ERROR_BYTES, "the verify table%s%.200s: %s", path ? " " : "",
		 path ? path : "", why);
	return false;
}

static void shape_set(struct bench_verify_table *table, uint32_t ring)
{
	table->ring = ring;
	table->record_bytes =
		(uint32_t)(sizeof(struct bench_key_model) + ring * sizeof(struct bench_event));
}

/* With the file locked: reads its header or writes one, and makes it large enough. */
static bool file_prepare(struct bench_verify_table *table, int fd, const char *path, char *error)
{
	struct header header = {table_magic, table->ring, table->record_bytes, table->run, 0};
	struct stat stat;
	size_t bytes;

	if (fstat(fd, &stat) != 0)
		return fail(error, path, strerror(errno));
	if (stat.st_size == 0) {
		if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
			return fail(error, path, strerror(errno));
	} else {
		if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
		    header.magic != table_magic)
			return fail(error, path, "the file is not a verify table");
		if (header.ring < 1 || header.ring > RING_FEW)
			return fail(error, path, "the file is damaged");
		shape_set(table, header.ring);
		table->run = header.run;
	}
	bytes = HEADER_BYTES + table->numbers * table->record_bytes;
	if ((size_t)stat.st_size < bytes && ftruncate(fd, (off_t)bytes) != 0)
		return fail(error, path, strerror(errno));
	return true;
}

static bool file_open(struct bench_verify_table *table, const char *path, int *file, char *error)
{
	bool good;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return fail(error, path, strerror(errno));
	if (flock(fd, LOCK_EX) != 0) {
		close(fd);
		return fail(error, path, strerror(errno));
	}
	good = file_prepare(table, fd, path, error);
	flock(fd, LOCK_UN);
	if (!good)
		close(fd);
	*file = fd;
	return good;
}

bool bench_verify_table_open(struct bench_verify_table *table, const char *path, uint64_t records,
			     uint64_t numbers, uint32_t run, char error[BENCH_ERROR_BYTES])
{
	int flags = path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = -1;
	void *memory;

	assert(run != 0 && numbers >= 1);
	memset(table, 0, sizeof(*table));
	shape_set(table, ring_for(records));
	table->numbers = numbers;
	table->run = run;
	table->holder = (uint32_t)getpid();
	if (path && !file_open(table, path, &fd, error))
		return false;
	table->memory_bytes = HEADER_BYTES + numbers * table->record_bytes;
	memory = mmap(NULL, table->memory_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd,
		      0);
	if (fd >= 0)
		close(fd);
	if (memory == MAP_FAILED)
		return fail(error, path, strerror(errno));
	table->memory = memory;
	return true;
}

void bench_verify_table_close(struct bench_verify_table *table)
{
	if (table->memory)
		munmap(table->memory, table->memory_bytes);
	table->memory = NULL;
}

static bool holder_dead(uint32_t holder)
{
	return kill((pid_t)holder, 0) != 0 && errno == ESRCH;
}

struct bench_key_model *bench_verify_table_lock(const struct bench_verify_table *table,
						uint64_t number)
{
	struct bench_key_model *key;
	uint32_t seen;

	assert(number < table->numbers);
	key = (void *)(table->memory + HEADER_BYTES + number * table->record_bytes);
	/* Ends: a holder keeps the lock for some hundred instructions, or is found dead. */
	for (uint64_t spins = 1;; spins++) {
		seen = 0;
		if (atomic_compare_exchange_weak_explicit(&key->lock, &seen, table->holder,
							  memory_order_acquire,
							  memory_order_relaxed))
			return key;
		if (spins % SPINS_ALIVE == 0 && seen != 0 && holder_dead(seen) &&
		    atomic_compare_exchange_strong_explicit(&key->lock, &seen, table->holder,
							    memory_order_acquire,
							    memory_order_relaxed)) {
			key->unchecked = 1;
			return key;
		}
		if (spins % SPINS == 0)
			sched_yield();
	}
}

void bench_verify_table_unlock(struct bench_key_model *key)
{
	atomic_store_explicit(&key->lock, 0, memory_order_release);
}
