/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/pages.h"

#include "layout/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/magic.h>

const struct pages_host pages_host = {
	.mounts = "/proc/mounts",
	.hugepages = "/sys/kernel/mm/hugepages",
	.meminfo = "/proc/meminfo",
	.shm = "/dev/shm",
};

enum { LINE_MAX_BYTES = 256, MEND_MAX = 128 };

#define PAGE_2M (UINT64_C(1) << 21)

#define REASON(...) snprintf(reason, PAGES_REASON_MAX, __VA_ARGS__)

static const char *page_name(uint64_t page_bytes, char buffer[SIZE_TEXT_MAX])
{
	return size_text(page_bytes, buffer);
}

/* A number alone in a file of sysfs; 0 where there is none. */
static uint64_t read_number(const char *dir, uint64_t page_bytes, const char *name, bool *there)
{
	char path[PATH_MAX], line[LINE_MAX_BYTES];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/hugepages-%" PRIu64 "kB/%s", dir, page_bytes / 1024, name);
	file = fopen(path, "re");
	if (there)
		*there = file != NULL;
	if (!file)
		return 0;
	if (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		if (parse_u64(line, &value))
			value = 0;
	}
	fclose(file);
	return value;
}

/* Bytes that dir/file holds now. */
static uint64_t held_bytes(const char *dir, const char *file)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path ||
	    stat(path, &st) != 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* The page size that the options of a hugetlbfs mount name; 0 = none named. */
static uint64_t mount_page_bytes(const struct mntent *mount)
{
	const char *option = strstr(mount->mnt_opts, "pagesize=");
	char text[SIZE_TEXT_MAX];
	uint64_t bytes;
	size_t length;

	if (!option)
		return 0;
	option += strlen("pagesize=");
	length = strcspn(option, ",");
	if (length >= sizeof text)
		return 0;
	memcpy(text, option, length);
	text[length] = '\0';
	return parse_size(text, &bytes) ? 0 : bytes;
}

/* 0; -ENOENT no hugetlbfs of such pages; -EACCES one, but not for us (its path is in dir). */
static int find_mount(const char *mounts, uint64_t page_bytes, char dir[PATH_MAX])
{
	struct mntent mount;
	char buffer[PATH_MAX + 1024];
	FILE *file = setmntent(mounts, "re");
	int rc = -ENOENT;

	if (!file)
		return -ENOENT;
	while (rc && getmntent_r(file, &mount, buffer, sizeof buffer)) {
		if (strcmp(mount.mnt_type, "hugetlbfs") != 0 ||
		    mount_page_bytes(&mount) != page_bytes || strlen(mount.mnt_dir) >= PATH_MAX)
			continue;
		strcpy(dir, mount.mnt_dir);
		rc = access(dir, W_OK | X_OK) == 0 ? 0 : -EACCES;
	}
	endmntent(file);
	return rc;
}

/* How to get `count` pages. */
static const char *mend(uint64_t page_bytes, uint64_t count, char text[MEND_MAX])
{
	if (page_bytes == PAGE_2M)
		snprintf(text, MEND_MAX, "sysctl vm.nr_hugepages=%" PRIu64, count);
	else
		snprintf(text, MEND_MAX,
			 "echo %" PRIu64 " > /sys/kernel/mm/hugepages/hugepages-%" PRIu64
			 "kB/nr_hugepages",
			 count, page_bytes / 1024);
	return text;
}

/* Enough pages? dir: where a file to be replaced may hold some, or "". */
static int check_free(const struct pages_host *host, uint64_t page_bytes, uint64_t size_bytes,
		      const char *dir, const char *file, char reason[PAGES_REASON_MAX])
{
	char name[SIZE_TEXT_MAX], how[MEND_MAX];
	bool there;
	uint64_t need = round_up(size_bytes, page_bytes) / page_bytes;
	uint64_t total = read_number(host->hugepages, page_bytes, "nr_hugepages", &there);
	uint64_t free_pages = read_number(host->hugepages, page_bytes, "free_hugepages", NULL);
	uint64_t reserved = read_number(host->hugepages, page_bytes, "resv_hugepages", NULL);
	uint64_t more = read_number(host->hugepages, page_bytes, "nr_overcommit_hugepages", NULL);
	uint64_t surplus = read_number(host->hugepages, page_bytes, "surplus_hugepages", NULL);
	uint64_t have = free_pages > reserved ? free_pages - reserved : 0;

	page_name(page_bytes, name);
	if (!there) {
		REASON("this kernel has no %s hugepages", name);
		return -ENOTSUP;
	}
	have += more > surplus ? more - surplus : 0;
	if (total == 0 && have == 0) {
		REASON("no %s hugepages are reserved (nr_hugepages = 0); %s", name,
		       mend(page_bytes, need, how));
		return -ENOSPC;
	}
	have += *dir ? held_bytes(dir, file) / page_bytes : 0;
	if (have < need) {
		REASON("not enough free %s hugepages: need %" PRIu64 ", have %" PRIu64 "; %s", name,
		       need, have, mend(page_bytes, total + need - have, how));
		return -ENOSPC;
	}
	return 0;
}

int pages_find_hugetlb(const struct pages_host *host, uint64_t page_bytes, uint64_t size_bytes,
		       const char *file, struct pages_place *place, char reason[PAGES_REASON_MAX])
{
	char name[SIZE_TEXT_MAX], dir[PATH_MAX] = "";
	int found = find_mount(host->mounts, page_bytes, dir);
	int rc = check_free(host, page_bytes, size_bytes, dir, file, reason);

	if (rc)
		return rc;
	page_name(page_bytes, name);
	if (found == -ENOENT)
		REASON("no hugetlbfs of %s pages is mounted; mkdir -p /dev/hugepages%s; mount -t "
		       "hugetlbfs -o pagesize=%s none "
		       "/dev/hugepages%s",
		       name, page_bytes == PAGE_2M ? "" : name, name,
		       page_bytes == PAGE_2M ? "" : name);
	else if (found)
		REASON("hugetlbfs %.300s is not writable for uid %u", dir, (unsigned)geteuid());
	if (found)
		return found;
	*place = (struct pages_place){.page_bytes = page_bytes, .hugetlb = true};
	strcpy(place->dir, dir);
	return 0;
}

/* Memory that can be had without swapping; UINT64_MAX where the kernel does not say. */
static uint64_t available_bytes(const char *meminfo)
{
	char line[LINE_MAX_BYTES];
	uint64_t kib = UINT64_MAX / 1024;
	FILE *file = fopen(meminfo, "re");

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	fclose(file);
	return kib * 1024;
}

/* Room for a file of ordinary pages in dir? */
static int check_room(const struct pages_host *host, const char *dir, uint64_t size_bytes,
		      const char *file, char reason[PAGES_REASON_MAX])
{
	uint64_t held = held_bytes(dir, file), room, memory;
	struct statfs fs;

	if (statfs(dir, &fs) != 0) {
		int rc = -errno;

		REASON("%.300s: %s", dir, strerror(-rc));
		return rc;
	}
	if (access(dir, W_OK | X_OK) != 0) {
		REASON("%.300s is not writable for uid %u", dir, (unsigned)geteuid());
		return -EACCES;
	}
	room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize + held;
	if ((fs.f_blocks || fs.f_type != TMPFS_MAGIC) && room < size_bytes) {
		REASON("%.200s has %" PRIu64 " bytes free, the region needs %" PRIu64 "%s%.100s",
		       dir, room, size_bytes,
		       fs.f_type == TMPFS_MAGIC ? "; mount -o remount,size=... " : "",
		       fs.f_type == TMPFS_MAGIC ? dir : "");
		return -ENOSPC;
	}
	memory = available_bytes(host->meminfo);
	memory = memory > UINT64_MAX - held ? memory : memory + held;
	if (memory < size_bytes) {
		REASON("the region needs %" PRIu64 " bytes of memory, the machine has %" PRIu64
		       " available (MemAvailable); give a smaller --size",
		       size_bytes, memory);
		return -ENOSPC;
	}
	return 0;
}

int pages_find_tmpfs(const struct pages_host *host, uint64_t size_bytes, const char *file,
		     struct pages_place *place, char reason[PAGES_REASON_MAX])
{
	int rc = check_room(host, host->shm, size_bytes, file, reason);

	if (rc)
		return rc;
	*place = (struct pages_place){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	snprintf(place->dir, sizeof place->dir, "%s", host->shm);
	return 0;
}

int pages_find_in(const struct pages_host *host, const char *dir, enum pages_wanted wanted,
		  uint64_t size_bytes, const char *file, struct pages_place *place,
		  char reason[PAGES_REASON_MAX])
{
	static const uint64_t wanted_bytes[] = {
		[PAGES_2M] = PAGE_2M, [PAGES_1G] = UINT64_C(1) << 30};
	char name[SIZE_TEXT_MAX];
	struct statfs fs;
	bool hugetlb;
	uint64_t page_bytes;
	int rc;

	if (strlen(dir) >= sizeof place->dir) {
		REASON("--region-path is longer than %zu bytes", sizeof place->dir - 1);
		return -ENAMETOOLONG;
	}
	if (statfs(dir, &fs) != 0) {
		rc = -errno;
		REASON("--region-path %.300s: %s", dir, strerror(-rc));
		return rc;
	}
	hugetlb = fs.f_type == HUGETLBFS_MAGIC;
	page_bytes = hugetlb ? (uint64_t)fs.f_bsize : (uint64_t)sysconf(_SC_PAGESIZE);
	if ((wanted == PAGES_2M || wanted == PAGES_1G) &&
	    (!hugetlb || page_bytes != wanted_bytes[wanted])) {
		REASON("--region-path %.200s is not a hugetlbfs of %s pages; mount one there: "
		       "mount -t hugetlbfs -o "
		       "pagesize=%s none DIR",
		       dir, wanted == PAGES_2M ? "2M" : "1G", wanted == PAGES_2M ? "2M" : "1G");
		return -EINVAL;
	}
	if (wanted == PAGES_NONE && hugetlb) {
		REASON("--region-path %.200s is a hugetlbfs of %s pages, against --hugepages none",
		       dir, page_name(page_bytes, name));
		return -EINVAL;
	}
	if (hugetlb && access(dir, W_OK | X_OK) != 0) {
		REASON("%.300s is not writable for uid %u", dir, (unsigned)geteuid());
		return -EACCES;
	}
	rc = hugetlb ? check_free(host, page_bytes, size_bytes, dir, file, reason)
		     : check_room(host, dir, size_bytes, file, reason);
	if (rc)
		return rc;
	*place = (struct pages_place){.page_bytes = page_bytes, .hugetlb = hugetlb};
	strcpy(place->dir, dir);
	return 0;
}
