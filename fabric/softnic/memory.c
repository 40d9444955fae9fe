/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory regions. A region that peers may touch must be memory that they can map: shared mappings
 * of files are exported as they are, private and anonymous pages are moved into a memfd at the same
 * address. A region without remote access stays where it is: only its owner's process touches it.
 */
#include "fabric/softnic/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	FDS_MAX = 4096,
	KEY_SHIFT = 10
};

struct mapping {
	uint64_t low, high, offset;
	unsigned long inode;
	char permissions[8];
	char path[256];
};

/* The mapping that holds `address`. */
static bool find_mapping(uint64_t address, struct mapping *mapping)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0) {
		unsigned long long low, high, offset;
		int at = 0;

		if (sscanf(line, "%llx-%llx %7s %llx %*s %lu %n", &low, &high, mapping->permissions,
			   &offset, &mapping->inode, &at) < 5 ||
		    address < low || address >= high)
			continue;
		*mapping = (struct mapping){
			.low = low, .high = high, .offset = offset, .inode = mapping->inode};
		sscanf(line, "%*s %7s", mapping->permissions);
		line[strcspn(line, "\n")] = '\0';
		snprintf(mapping->path, sizeof mapping->path, "%.255s", line + at);
		found = true;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

static int find_fd(unsigned long inode, struct stat *stat)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (fstat(fd, stat) == 0 && stat->st_ino == inode && S_ISREG(stat->st_mode))
			return fd;
	return -1;
}

/* Fills in how peers reach the pages. */
static int export_shared(struct shared_mr *mr, uint64_t address, uint64_t length,
			 const struct mapping *mapping)
{
	struct stat stat_buffer;

	if (address + length > mapping->high)
		return EINVAL;
	mr->file_offset = mapping->offset + (address - mapping->low);
	mr->fd = find_fd(mapping->inode, &stat_buffer);
	mr->path[0] = '\0';
	if (strlen(mapping->path) < sizeof mr->path && stat(mapping->path, &stat_buffer) == 0 &&
	    stat_buffer.st_ino == mapping->inode)
		snprintf(mr->path, sizeof mr->path, "%.199s", mapping->path);
	else if (mr->fd < 0)
		return EOPNOTSUPP;
	else
		fstat(mr->fd, &stat_buffer);
	mr->device = stat_buffer.st_dev;
	mr->inode = stat_buffer.st_ino;
	return 0;
}

/* Moves whole pages into a memfd under the same address. */
static int move_pages(uint64_t address, uint64_t length, int *fd)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), low = address & ~(page - 1);
	uint64_t bytes = (address + length - low + page - 1) & ~(page - 1);
	void *copy;
	int error = 0;

	*fd = memfd_create("softnic", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
		return errno;
	copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (copy == MAP_FAILED)
		return errno;
	memcpy(copy, (void *)(uintptr_t)low, bytes);
	munmap(copy, bytes);
	if (mmap((void *)(uintptr_t)low, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd,
		 0) == MAP_FAILED)
		error = errno;
	return error;
}

static int make_remote(struct soft_mr *own, struct shared_mr *mr, uint64_t address, uint64_t length)
{
	struct mapping mapping;
	int error;

	if (!find_mapping(address, &mapping))
		return EFAULT;
	if (mapping.permissions[0] != 'r' || mapping.permissions[1] != 'w')
		return EFAULT;
	if (mapping.permissions[3] == 's' && mapping.inode != 0 &&
	    export_shared(mr, address, length, &mapping) == 0)
		return 0;
	error = move_pages(address, length, &own->fd);
	if (!error && !find_mapping(address, &mapping))
		error = EFAULT;
	return error ? error : export_shared(mr, address, length, &mapping);
}

static bool readable(const void *address, size_t length)
{
	uint64_t end = (uint64_t)(uintptr_t)address + length;
	struct mapping mapping;

	for (uint64_t at = (uint64_t)(uintptr_t)address; at < end; at = mapping.high)
		if (!find_mapping(at, &mapping) || mapping.permissions[0] != 'r')
			return false;
	return true;
}

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct soft_context *context = context_of(pd->context);
	struct soft_mr *own = calloc(1, sizeof *own);
	struct shared_mr *mr = NULL;
	uint32_t index;
	int error = 0;

	if (!own)
		return NULL;
	own->fd = -1;
	if (length == 0 || (uint64_t)(uintptr_t)address + length < length ||
	    ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	     !(access & IBV_ACCESS_LOCAL_WRITE)))
		error = EINVAL;
	else if (!readable(address, length))
		error = EFAULT;
	pthread_mutex_lock(&context->mutex);
	for (index = 1;
	     !error && index < SOFTNIC_MRS && atomic_load(&context->shared->mrs[index].key) != 0;
	     index++)
		;
	if (!error && index == SOFTNIC_MRS)
		error = ENOMEM;
	if (!error) {
		mr = &context->shared->mrs[index];
		mr->fd = -1;
		mr->path[0] = '\0';
		mr->address = (uint64_t)(uintptr_t)address;
		mr->length = length;
		mr->access = (uint32_t)access;
		mr->pd = ((struct soft_pd *)pd)->number;
		if (access & REMOTE)
			error = make_remote(own, mr, mr->address, length);
	}
	if (!error) {
		own->index = index;
		own->ibv = (struct ibv_mr){.context = pd->context,
					   .pd = pd,
					   .addr = address,
					   .length = length,
					   .handle = index};
		/* A key is an index and a generation that differs from the last one of that place.
		 */
		own->ibv.lkey = own->ibv.rkey = (++context->next_key << KEY_SHIFT) | index;
		atomic_store(&mr->key, own->ibv.rkey);
		((struct soft_pd *)pd)->users++;
	}
	pthread_mutex_unlock(&context->mutex);
	if (!error)
		return &own->ibv;
	if (own->fd >= 0)
		close(own->fd);
	free(own);
	errno = error;
	return NULL;
}

int soft_dereg_mr(struct ibv_mr *ibv)
{
	struct soft_mr *own = (struct soft_mr *)ibv;
	struct soft_context *context = context_of(ibv->context);

	atomic_store(&context->shared->mrs[own->index].key,
		     UINT32_MAX); /* nobody may begin, and the place is not free yet */
	peer_wait_all(context->shared);
	atomic_store(&context->shared->mrs[own->index].key, 0);
	((struct soft_pd *)ibv->pd)->users--;
	if (own->fd >= 0)
		close(own->fd);
	free(own);
	return 0;
}

bool memory_covers(const struct shared_mr *mr, uint64_t address, uint64_t bytes)
{
	/* Differences, not sums: those would wrap. */
	return address >= mr->address && bytes <= mr->length &&
	       address - mr->address <= mr->length - bytes;
}

enum ibv_wc_status memory_check_local(struct soft_context *context, uint32_t pd,
				      const struct ibv_sge *sge, bool write)
{
	const struct shared_mr *mr = &context->shared->mrs[sge->lkey & ((1u << KEY_SHIFT) - 1)];

	if (atomic_load_explicit(&mr->key, memory_order_acquire) != sge->lkey || mr->pd != pd ||
	    sge->lkey == 0 || !memory_covers(mr, sge->addr, sge->length))
		return IBV_WC_LOC_PROT_ERR;
	return write && !(mr->access & IBV_ACCESS_LOCAL_WRITE) ? IBV_WC_LOC_ACCESS_ERR
							       : IBV_WC_SUCCESS;
}
