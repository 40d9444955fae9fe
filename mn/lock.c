/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/lock.h"

#include "layout/region.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	LOCK_TRIES = 8, /* the name may change hands between open and flock */
	REGION_MODE = 0600,
};

/* The process that holds a flock on this file, from /proc/locks; 0 = not known. */
static long lock_holder(const struct stat *st)
{
	char line[256];
	long holder = 0;
	FILE *file = fopen("/proc/locks", "re");

	if (!file)
		return 0;
	while (!holder && fgets(line, sizeof line, file)) {
		unsigned major_number, minor_number;
		unsigned long inode;
		long pid;

		if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_number,
			   &minor_number, &inode) == 4 &&
		    inode == st->st_ino && makedev(major_number, minor_number) == st->st_dev)
			holder = pid;
	}
	fclose(file);
	return holder;
}

static uint64_t read_incarnation(int fd)
{
	uint8_t bytes[SUPERBLOCK_BYTES];
	struct superblock superblock;

	if (pread(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes ||
	    superblock_decode(bytes, &superblock))
		return 0;
	return superblock.incarnation;
}

static int report_busy(const char *path, const struct stat *st, const struct logger *logger)
{
	long pid = lock_holder(st);

	if (pid > 0)
		log_line(logger, LOG_LEVEL_ERROR,
			 "region file %s is served by process %ld; stop it, or give another --id, "
			 "--cluster or --region-path",
			 path, pid);
	else
		log_line(logger, LOG_LEVEL_ERROR,
			 "region file %s is served by another process; stop it, or give another "
			 "--id, --cluster or --region-path",
			 path);
	return -EBUSY;
}

/* Removes the file that is there. 0 removed, or gone by itself; -EAGAIN it changed hands; else
 * logged. */
static int remove_old(const char *path, const struct logger *logger, bool *replaced,
		      uint64_t *incarnation)
{
	struct stat st, named;
	int rc = 0, fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0) {
		rc = -errno;
		log_line(logger, LOG_LEVEL_ERROR, "region file %s: %s", path, strerror(-rc));
		return rc;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		log_line(logger, LOG_LEVEL_ERROR,
			 "region file %s is not a regular file of uid %u; remove it", path,
			 (unsigned)geteuid());
		rc = -EPERM;
	} else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		rc = report_busy(path, &st, logger);
	} else if (stat(path, &named) != 0 || named.st_ino != st.st_ino ||
		   named.st_dev != st.st_dev) {
		rc = -EAGAIN;
	} else {
		*incarnation = read_incarnation(fd);
		*replaced = true;
		rc = unlink(path) == 0 ? 0 : -errno;
		if (rc)
			log_line(logger, LOG_LEVEL_ERROR, "region file %s: unlink: %s", path,
				 strerror(-rc));
	}
	close(fd);
	return rc;
}

int lock_new_file(const char *path, const struct logger *logger, int *fd, bool *replaced,
		  uint64_t *incarnation)
{
	*replaced = false;
	*incarnation = 0;
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		int rc = remove_old(path, logger, replaced, incarnation);

		if (rc == -EAGAIN)
			continue;
		if (rc)
			return rc;
		*fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, REGION_MODE);
		if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		rc = -errno;
		if (*fd >= 0)
			close(*fd); /* somebody else was quicker: it is theirs */
		if (rc != -EEXIST && rc != -EWOULDBLOCK) {
			log_line(logger, LOG_LEVEL_ERROR, "region file %s: %s", path,
				 strerror(-rc));
			return rc;
		}
	}
	log_line(logger, LOG_LEVEL_ERROR, "region file %s: other processes keep taking the name",
		 path);
	return -EBUSY;
}
