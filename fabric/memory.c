/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/device.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void explain(struct device *device, size_t size_bytes, int error)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if ((error == ENOMEM || error == EAGAIN) && limit.rlim_cur != RLIM_INFINITY)
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "%s: registering %zu bytes failed: the memlock limit (RLIMIT_MEMLOCK, ulimit -l) is %llu bytes; raise it "
			 "above %zu bytes (ulimit -l unlimited, LimitMEMLOCK=infinity in a unit file) or grant CAP_IPC_LOCK",
			 device->name, size_bytes, (unsigned long long)limit.rlim_cur, size_bytes);
	else
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: registering %zu bytes failed: %s", device->name, size_bytes,
			 strerror(error));
}

int memory_register(struct device *device, void *bytes, size_t size_bytes, int access, struct memory *memory)
{
	memset(memory, 0, sizeof *memory);
	if (!bytes || size_bytes == 0) {
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: no bytes to register", device->name);
		return -EINVAL;
	}
	errno = 0;
	memory->mr = device->verbs->reg_mr(device->pd, bytes, size_bytes, access);
	if (!memory->mr) {
		int error = errno ? errno : ENOMEM;

		explain(device, size_bytes, error);
		return error == EFAULT || error == EOPNOTSUPP ? -error : -ENOMEM;
	}
	memory->device = device;
	memory->bytes = bytes;
	memory->size_bytes = size_bytes;
	return 0;
}

int memory_alloc(struct device *device, size_t size_bytes, struct memory *memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t rounded = (size_bytes + page - 1) / page * page;
	void *bytes;
	int error;

	memset(memory, 0, sizeof *memory);
	if (size_bytes == 0) {
		log_line(device->logger, LOG_LEVEL_ERROR, "%s: no bytes to register", device->name);
		return -EINVAL;
	}
	bytes = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED) {
		log_line(device->logger, LOG_LEVEL_ERROR, "allocating %zu bytes failed: %s", size_bytes, strerror(errno));
		return -ENOMEM;
	}
	error = memory_register(device, bytes, rounded, IBV_ACCESS_LOCAL_WRITE, memory);
	if (error) {
		munmap(bytes, rounded);
		return error;
	}
	memory->owned = true;
	return 0;
}

void memory_free(struct memory *memory)
{
	if (!memory)
		return;
	/* Pages that the device may still write to are better lost than given to somebody else. */
	if (memory->mr && memory->device->verbs->dereg_mr(memory->mr) != 0) {
		log_line(memory->device->logger, LOG_LEVEL_WARNING, "%s keeps %zu registered bytes; they stay allocated",
			 memory->device->name, memory->size_bytes);
		memory->owned = false;
	}
	if (memory->owned)
		munmap(memory->bytes, memory->size_bytes);
	memset(memory, 0, sizeof *memory);
}
