/* SPDX-License-Identifier: Apache-2.0 */
#include "layout/bucket.h"
#include "layout/counter.h"
#include "layout/directory.h"
#include "mn/region.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A directory on tmpfs, and a made-up host around it. */
static char dir[64], hugepages[80], mounts[80], meminfo[80];
static struct pages_host host;
static char logged[4096];

static void keep_log(int level, const char *line, void *arg)
{
	size_t at = strlen(logged);

	(void)arg;
	snprintf(logged + at, sizeof logged - at, "%d:%s\n", level, line);
}

static const struct logger logger = {.write = keep_log, .level = LOG_LEVEL_DEBUG};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert(file, "%s: %s", path, strerror(errno));
	fputs(text, file);
	fclose(file);
}

/* nr < 0: the kernel has no such pages. */
static void set_hugepages(unsigned kib, int nr, int free_pages, int reserved)
{
	char path[160], text[32];

	snprintf(path, sizeof path, "%s/hugepages-%ukB", hugepages, kib);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/hugepages-%ukB/nr_hugepages", hugepages, kib);
	snprintf(text, sizeof text, "%d\n", nr);
	write_file(path, text);
	snprintf(path, sizeof path, "%s/hugepages-%ukB/free_hugepages", hugepages, kib);
	snprintf(text, sizeof text, "%d\n", free_pages);
	write_file(path, text);
	snprintf(path, sizeof path, "%s/hugepages-%ukB/resv_hugepages", hugepages, kib);
	snprintf(text, sizeof text, "%d\n", reserved);
	write_file(path, text);
}

static void set_mount(const char *where, const char *pagesize)
{
	char text[256];

	snprintf(text, sizeof text,
		 "proc /proc proc rw 0 0\nhuge %s hugetlbfs rw,relatime,pagesize=%s 0 0\n", where,
		 pagesize);
	write_file(mounts, text);
}

static void set_up(void)
{
	snprintf(dir, sizeof dir, "/dev/shm/farkv-test-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(hugepages, sizeof hugepages, "%s/hp", dir);
	mkdir(hugepages, 0700);
	snprintf(mounts, sizeof mounts, "%s/mounts", dir);
	snprintf(meminfo, sizeof meminfo, "%s/meminfo", dir);
	write_file(mounts, "proc /proc proc rw 0 0\n");
	write_file(meminfo, "MemTotal: 999 kB\nMemAvailable: 1000000 kB\n");
	host = (struct pages_host){
		.mounts = mounts, .hugepages = hugepages, .meminfo = meminfo, .shm = dir};
	logged[0] = '\0';
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	cr_expect_eq(system(command), 0);
}

TestSuite(mn_region, .init = set_up, .fini = tear_down);

static struct mn_options options_of(uint64_t size_bytes)
{
	return (struct mn_options){
		.cluster = "test", .id = 3, .size_bytes = size_bytes, .pages = PAGES_NONE};
}

static int open_region(const struct mn_options *options, struct region *region)
{
	static const struct seal seal;

	return region_open(options, &host, &seal, REGION_NODE_UNKNOWN, &logger, region);
}

Test(mn_region, B14_odd_sizes_are_mapped_whole_and_unmapped_whole_200_times)
{
	const uint64_t sizes[] = {REGION_BYTES_MIN, REGION_BYTES_MIN + 1, REGION_BYTES_MIN + 4095,
				  (11 << 20) + 1};
	unsigned long before = 0, after = 0;

	for (unsigned i = 0; i < 200; i++) {
		struct mn_options options = options_of(sizes[i % 4]);
		struct region region;
		FILE *statm;
		unsigned long pages;

		cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
		cr_assert(region.region_bytes == options.size_bytes &&
			  region.region_bytes <= region.mapped_bytes);
		cr_assert(region.mapped_bytes % region.page_bytes == 0 &&
			  region.mapped_bytes - region.region_bytes < region.page_bytes);
		cr_assert_eq(region.superblock.geometry.region_bytes, options.size_bytes);
		region.bytes[region.region_bytes - 1] = 1;
		region_close(&region, true);
		statm = fopen("/proc/self/statm", "r");
		cr_assert(statm && fscanf(statm, "%lu", &pages) == 1);
		fclose(statm);
		if (i == 20)
			before = pages;
		after = pages;
		logged[0] = '\0';
	}
	cr_assert_leq(after, before + 16, "address space grew from %lu to %lu pages", before,
		      after);
}

Test(mn_region, the_file_is_private_named_after_cluster_and_id_and_formatted)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct superblock superblock;
	struct region region;
	struct stat st;
	char path[160];

	cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
	snprintf(path, sizeof path, "%s/farkv-test-3.region", dir);
	cr_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 &&
		  st.st_size == (off_t)region.mapped_bytes);
	cr_assert_geq(st.st_blocks * 512, st.st_size, "every page is there");
	cr_assert_eq(superblock_decode(region.bytes, &superblock), 0);
	cr_assert(superblock.mn_id == 3 && superblock.incarnation != 0 &&
		  superblock.incarnation == region.superblock.incarnation);
	region_close(&region, false);
	cr_assert_eq(stat(path, &st), 0, "it survives");
}

Test(mn_region, an_old_region_is_formatted_anew_and_one_notice_says_so)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region first, second;
	uint8_t *old;
	uint64_t incarnation;
	int fd;

	cr_assert_eq(open_region(&options, &first), 0);
	incarnation = first.superblock.incarnation;
	fd = open(first.path, O_RDONLY);
	region_close(&first, false);
	old = malloc(SUPERBLOCK_BYTES);
	cr_assert_eq(open_region(&options, &second), 0);
	cr_assert(second.superblock.incarnation != incarnation);
	cr_assert(strstr(logged, "formatted anew") &&
			  strchr(logged, '\n') == logged + strlen(logged) - 1,
		  "%s", logged);
	cr_assert_eq(pread(fd, old, SUPERBLOCK_BYTES, 0), SUPERBLOCK_BYTES,
		     "who has the old file open keeps it");
	close(fd);
	free(old);
	region_close(&second, true);
}

Test(mn_region, a_region_that_is_served_is_refused_and_the_process_named)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region mine, other;
	int pipes[2], status;
	char byte, pid[32];
	pid_t child;

	cr_assert_eq(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		if (open_region(&options, &mine) || write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	cr_assert_eq(open_region(&options, &other), -EBUSY);
	snprintf(pid, sizeof pid, "process %d", (int)child);
	cr_assert(strstr(logged, pid), "%s", logged);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	cr_assert_eq(open_region(&options, &other), 0, "the lock dies with its process: %s",
		     logged);
	region_close(&other, true);
}

Test(mn_region, an_ephemeral_region_has_no_name_once_it_is_open)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;
	struct stat st;

	options.ephemeral = true;
	cr_assert_eq(open_region(&options, &region), 0);
	cr_assert(stat(region.path, &st) != 0 && errno == ENOENT);
	region.bytes[12345] = 1;
	region_close(&region, true);
}

Test(mn_region, a_link_or_a_strangers_file_is_not_followed)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;
	char path[160], target[160];

	snprintf(path, sizeof path, "%s/farkv-test-3.region", dir);
	snprintf(target, sizeof target, "%s/precious", dir);
	write_file(target, "precious");
	cr_assert_eq(symlink(target, path), 0);
	cr_assert_lt(open_region(&options, &region), 0);
	cr_assert_eq(access(target, F_OK), 0);
	unlink(path);
	mkdir(path, 0700);
	cr_assert_lt(open_region(&options, &region), 0);
}

Test(mn_region, too_large_for_the_machine_is_refused_before_any_page_is_taken)
{
	struct mn_options options = options_of(64 << 20);
	struct region region;

	write_file(meminfo, "MemAvailable: 1000 kB\n");
	cr_assert_eq(open_region(&options, &region), -ENOSPC);
	cr_assert(strstr(logged, "MemAvailable") && strstr(logged, "67108864"), "%s", logged);
}

Test(mn_region, more_keys_than_fit_are_refused)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;

	options.expected_keys = 1 << 30;
	cr_assert_eq(open_region(&options, &region), -EINVAL);
	cr_assert(strstr(logged, "--expected-keys") && strstr(logged, "--size"), "%s", logged);
}

Test(mn_region, B13_without_hugepages_auto_falls_back_with_the_true_reason)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;

	options.pages = PAGES_AUTO;
	set_hugepages(2048, 0, 0, 0);
	set_mount(dir, "2M");
	cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
	cr_assert(strstr(logged, "tmpfs") && strstr(logged, "nr_hugepages = 0"), "%s", logged);
	region_close(&region, true);
	logged[0] = '\0';
	set_hugepages(2048, 8, 5, 2);
	cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
	cr_assert(strstr(logged, "need 4, have 3"), "%s", logged);
	region_close(&region, true);
	logged[0] = '\0';
	set_hugepages(2048, 8, 8, 0);
	set_mount("/nowhere", "1024M");
	cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
	cr_assert(strstr(logged, "no hugetlbfs of 2M pages is mounted"), "%s", logged);
	region_close(&region, true);
}

Test(mn_region, B13_named_hugepages_are_refused_with_reason_and_mend)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;

	options.pages = PAGES_2M;
	set_hugepages(2048, 0, 0, 0);
	cr_assert_eq(open_region(&options, &region), -ENOSPC);
	cr_assert(strstr(logged, "sysctl vm.nr_hugepages=4"), "%s", logged);
	logged[0] = '\0';
	options.pages = PAGES_1G;
	cr_assert_eq(open_region(&options, &region), -ENOTSUP);
	cr_assert(strstr(logged, "1G"), "%s", logged);
	logged[0] = '\0';
	set_hugepages(1048576, 1, 1, 0);
	cr_assert_eq(open_region(&options, &region), -ENOENT);
	cr_assert(strstr(logged, "mount -t hugetlbfs -o pagesize=1G"), "%s", logged);
}

Test(mn_region, a_path_that_contradicts_the_pages_is_refused)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;

	options.region_path = dir;
	options.pages = PAGES_2M;
	cr_assert_eq(open_region(&options, &region), -EINVAL);
	cr_assert(strstr(logged, "not a hugetlbfs of 2M pages"), "%s", logged);
	options.pages = PAGES_AUTO;
	cr_assert_eq(open_region(&options, &region), 0, "%s", logged);
	region_close(&region, true);
	options.region_path = "/nowhere/at/all";
	cr_assert_eq(open_region(&options, &region), -ENOENT);
}

Test(mn_region, a_failed_open_leaves_nothing_behind)
{
	struct mn_options options = options_of(REGION_BYTES_MIN);
	struct region region;
	struct stat st;
	char path[160];

	/* The made-up hugetlbfs is full in truth: fallocate fails, and auto goes on to the other
	 * place. */
	options.pages = PAGES_AUTO;
	options.size_bytes = UINT64_C(1) << 40;
	set_hugepages(2048, 1 << 20, 1 << 20, 0);
	set_mount(dir, "2M");
	cr_assert_eq(open_region(&options, &region), -ENOSPC, "%s", logged);
	cr_assert(strstr(logged, "fallocate") && strstr(logged, "the kernel refused the pages"),
		  "%s", logged);
	snprintf(path, sizeof path, "%s/farkv-test-3.region", dir);
	cr_assert_neq(stat(path, &st), 0);
}

Test(mn_region, names_are_fit_for_files)
{
	char name[NAME_MAX + 1], other[NAME_MAX + 1], cluster[181];

	region_file_name("a/b%", 7, name);
	cr_assert_str_eq(name, "farkv-a%2fb%25-7.region");
	memset(cluster, '/', 180);
	cluster[180] = '\0';
	region_file_name(cluster, 65535, name);
	cr_assert(strlen(name) < NAME_MAX && !strchr(name, '/'));
	cluster[179] = 'x';
	region_file_name(cluster, 65535, other);
	cr_assert_str_neq(name, other);
	memset(cluster, 'n', 180);
	region_file_name(cluster, 1, name);
	cr_assert_eq(strlen(name), strlen("farkv--1.region") + 180);
}

Test(mn_region, the_hash_seed_is_the_clusters_and_the_secrets)
{
	struct seal open = {.has_secret = 0},
		    sealed = {.has_secret = 1, .secret = "0123456789abcdef0123456789abcde"};

	cr_assert_eq(cluster_hash_seed("a", &open), cluster_hash_seed("a", &open));
	cr_assert_neq(cluster_hash_seed("a", &open), cluster_hash_seed("b", &open));
	cr_assert_neq(cluster_hash_seed("a", &open), cluster_hash_seed("a", &sealed));
}
