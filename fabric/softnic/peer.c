/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/softnic/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x43494e54464f5331)
enum {
	VERSION = 1,
	PATH_BYTES = 256,
	WATCH_PAUSE_MS = 1000,
	MARK_WAIT_MS = 2000,
	SPINS = 1000,
	CLAIM_TURNS = 100
};

/* Peers of this process, one per slot; replaced when a slot has been taken by somebody else. */
static struct peer *_Atomic peers[SOFTNIC_SLOTS];
/* Recursive: burying a dead context looks for its initiators. */
static pthread_mutex_t peers_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_t watcher;
static bool watcher_runs;
static int watcher_wake = -1; /* an eventfd: there is a new peer to watch */
static struct peer *retired;  /* contexts closed by this process */

static void directory(char path[PATH_BYTES])
{
	const char *given = getenv("SOFTNIC_DIR");

	if (given && *given)
		snprintf(path, PATH_BYTES - 40, "%s", given);
	else
		snprintf(path, PATH_BYTES - 40, "/dev/shm/softnic-%u", (unsigned)getuid());
}

static void file_name(char path[PATH_BYTES], uint32_t slot)
{
	char base[PATH_BYTES];

	directory(base);
	snprintf(path, PATH_BYTES, "%.200s/context-%u", base, slot);
}

static void channel_name(char path[PATH_BYTES], uint32_t slot, uint32_t channel)
{
	char base[PATH_BYTES];

	directory(base);
	snprintf(path, PATH_BYTES, "%.200s/channel-%u-%u", base, slot, channel);
}

static bool lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(fd, F_SETLK, &lock) == 0;
}

static struct shared_context *map_file(int fd)
{
	void *map = mmap(NULL, sizeof(struct shared_context), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

void peer_wait_executing(struct shared_context *shared, uint32_t qp_index)
{
	uint32_t dest = atomic_load(&shared->qps[qp_index].dest);
	struct peer *initiator = dest ? peer_find(qpn_slot(dest)) : NULL;
	struct shared_qp *qp;

	if (!initiator)
		return;
	qp = &initiator->shared->qps[qpn_index(dest)];
	for (unsigned turn = 0; atomic_load(&qp->executing) && peer_alive(initiator); turn++) {
		if (turn < SPINS)
			sched_yield();
		else
			pause_ns(1000000);
		if (turn > SPINS + MARK_WAIT_MS && kill(initiator->shared->pid, 0) != 0 &&
		    errno == ESRCH)
			return;
	}
}

void peer_wait_all(struct shared_context *shared)
{
	for (uint32_t i = 0; i < SOFTNIC_QPS; i++)
		if (atomic_load(&shared->qps[i].state) != IBV_QPS_RESET)
			peer_wait_executing(shared, i);
}

static void remove_files(uint32_t slot)
{
	char path[PATH_BYTES];

	for (uint32_t channel = 0; channel <= SOFTNIC_CHANNELS; channel++) {
		channel_name(path, slot, channel);
		unlink(path);
	}
	file_name(path, slot);
	unlink(path);
	directory(path);
	if (!getenv("SOFTNIC_DIR"))
		rmdir(path); /* only when it is empty; a directory that was given stays its giver's
			      */
}

/* The owner's lock is free: it is dead. Takes everything of it out of service. */
static void bury(struct shared_context *shared, uint32_t slot)
{
	atomic_store(&shared->dead, 1);
	peer_wait_all(shared);
	remove_files(slot);
}

/* Looks at one slot's file. 1: free for us, locked, *fd open; 0: taken by a living one; -1: errno.
 */
static int try_slot(uint32_t slot, int *fd)
{
	char path[PATH_BYTES];
	struct shared_context *shared;
	struct stat named, opened;
	struct peer *known = atomic_load(&peers[slot]);

	/* A process's own locks never conflict, and closing its file would drop them: own slots are
	 * known. */
	if (known && known->own)
		return 0;
	file_name(path, slot);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0)
		return -1;
	if (!lock_file(*fd)) {
		close(*fd);
		return 0;
	}
	if (stat(path, &named) || fstat(*fd, &opened) || named.st_ino != opened.st_ino) {
		close(*fd); /* removed meanwhile: look again */
		return try_slot(slot, fd);
	}
	if (opened.st_size == 0)
		return 1;
	shared = map_file(*fd);
	if (shared) {
		if (opened.st_size >= (off_t)sizeof *shared && shared->magic == MAGIC)
			bury(shared, slot);
		else
			remove_files(slot);
		munmap(shared, sizeof *shared);
	}
	close(*fd);
	return try_slot(slot, fd);
}

static void init_locks(struct shared_context *shared, uint32_t rq)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->rqs[rq].lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void shared_rq_init(struct shared_context *shared, uint32_t rq);

void shared_rq_init(struct shared_context *shared, uint32_t rq)
{
	struct shared_rq *of = &shared->rqs[rq];

	init_locks(shared, rq);
	atomic_store(&of->posted, 0);
	atomic_store(&of->pushed, 0);
	atomic_store(&of->popped, 0);
}

static void drain_wake(void)
{
	uint64_t times;

	while (read(watcher_wake, &times, sizeof times) == sizeof times)
		;
}

static void wake_watcher(void)
{
	uint64_t once = 1;

	if (watcher_wake >= 0 && write(watcher_wake, &once, sizeof once) < 0)
		return; /* it is full: a wake-up is due anyway */
}

/*
 * Of a peer without a pidfd, for want of descriptors or of the system call: only ESRCH proves a
 * death.
 */
static bool has_no_process(const struct peer *peer)
{
	return peer->pidfd < 0 && kill(peer->shared->pid, 0) != 0 && errno == ESRCH;
}

/* Deaths of peers: the pidfds of all of them in one poll; a peer without one is asked after once a
 * second. */
static void *watch(void *arg)
{
	static struct pollfd fds[SOFTNIC_SLOTS + 1];
	static uint32_t slots[SOFTNIC_SLOTS];

	(void)arg;
	for (;;) {
		nfds_t count = 0;

		for (uint32_t slot = 0; slot < SOFTNIC_SLOTS; slot++) {
			struct peer *peer = atomic_load(&peers[slot]);

			if (!peer || peer->own || !peer_alive(peer))
				continue;
			if (has_no_process(peer))
				atomic_store(&peer->shared->dead, 1);
			if (peer->pidfd < 0)
				continue;
			slots[count] = slot;
			fds[count++] = (struct pollfd){.fd = peer->pidfd, .events = POLLIN};
		}
		fds[count] = (struct pollfd){.fd = watcher_wake, .events = POLLIN};
		if (poll(fds, count + 1, WATCH_PAUSE_MS) <= 0)
			continue;
		if (fds[count].revents)
			drain_wake();
		for (nfds_t i = 0; i < count; i++) {
			struct peer *peer = atomic_load(&peers[slots[i]]);

			if (fds[i].revents && peer && peer->pidfd == fds[i].fd)
				atomic_store(&peer->shared->dead, 1);
		}
	}
	return NULL;
}

static void start_watcher(void)
{
	sigset_t all, before;

	if (watcher_runs)
		return;
	watcher_wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watcher_runs = pthread_create(&watcher, NULL, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (watcher_runs)
		pthread_detach(watcher);
}

static void forget_in_child(void)
{
	/* The child has no watcher, and its parent's contexts are not its own: the parent's locks
	 * did not come along. */
	watcher_runs = false;
	for (uint32_t slot = 0; slot < SOFTNIC_SLOTS; slot++)
		atomic_store(&peers[slot], NULL);
}

static struct peer *new_peer(struct shared_context *shared, uint32_t slot, bool own)
{
	struct peer *peer = calloc(1, sizeof *peer);

	if (!peer)
		return NULL;
	peer->shared = shared;
	peer->slot = slot;
	peer->own = own;
	peer->pidfd = own ? -1 : (int)syscall(SYS_pidfd_open, shared->pid, 0);
	pthread_mutex_init(&peer->mutex, NULL);
	for (unsigned i = 0; i <= SOFTNIC_CHANNELS; i++)
		peer->channels[i] = -1;
	return peer;
}

/*
 * Buries all that are dead. Before a slot is claimed: burying looks for initiators in other slots'
 * files, and one of them could be the one just claimed, empty yet, and closing it would drop our
 * lock.
 */
static void sweep(void)
{
	for (uint32_t s = 1; s < SOFTNIC_SLOTS; s++) {
		char path[PATH_BYTES];
		int fd;

		file_name(path, s);
		if (access(path, F_OK) != 0 || try_slot(s, &fd) != 1)
			continue;
		unlink(path); /* empty: made, and locked, by try_slot */
		close(fd);
	}
}

static struct shared_context *claim_locked(uint32_t *slot, int *lock_fd)
{
	static bool fork_watched;
	struct shared_context *shared;
	char path[PATH_BYTES];
	int found = 0;

	if (!fork_watched)
		fork_watched = pthread_atfork(NULL, NULL, forget_in_child) == 0;
	directory(path);
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return NULL;
	sweep();
	/* Slot 0 is not used: its queue pairs would have the special numbers 0 and 1. */
	for (uint32_t s = 1; s < SOFTNIC_SLOTS && found == 0; s++) {
		int free_slot = try_slot(s, lock_fd);

		if (free_slot < 0)
			return NULL;
		if (free_slot == 1)
			found = (int)s;
	}
	if (found == 0) {
		errno = EMFILE;
		return NULL;
	}
	*slot = (uint32_t)found;
	if (ftruncate(*lock_fd, sizeof *shared) != 0 || !(shared = map_file(*lock_fd))) {
		int error = errno;

		close(*lock_fd);
		remove_files(*slot);
		errno = error;
		return NULL;
	}
	shared->version = VERSION;
	shared->slot = *slot;
	shared->pid = getpid();
	shared->magic = MAGIC;
	atomic_store(&peers[*slot], new_peer(shared, *slot, true));
	start_watcher();
	return shared;
}

struct shared_context *peer_claim(uint32_t *slot, int *lock_fd)
{
	struct shared_context *shared;

	pthread_mutex_lock(&peers_mutex);
	/* The last one to leave removes the directory, perhaps between our making it and our using
	 * it. */
	for (unsigned turn = 0; turn < CLAIM_TURNS; turn++) {
		shared = claim_locked(slot, lock_fd);
		if (shared || errno != ENOENT)
			break;
	}
	pthread_mutex_unlock(&peers_mutex);
	return shared;
}

void peer_release(struct shared_context *shared, uint32_t slot, int lock_fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct peer *peer;

	atomic_store(&shared->dead, 1);
	peer_wait_all(shared);
	pthread_mutex_lock(&peers_mutex);
	/* The struct stays, and the page with `dead`: somebody in this process may be looking at
	 * them. */
	peer = atomic_exchange(&peers[slot], NULL);
	peer->next_retired = retired;
	retired = peer;
	munmap((uint8_t *)shared + page, sizeof *shared / page * page - page);
	remove_files(slot);
	close(lock_fd);
	pthread_mutex_unlock(&peers_mutex);
}

static struct peer *find_locked(uint32_t slot)
{
	char path[PATH_BYTES];
	struct shared_context *shared;
	struct peer *peer = atomic_load(&peers[slot]);
	struct stat stat;
	int fd;

	if (peer && peer_alive(peer))
		return peer;
	file_name(path, slot);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &stat) != 0 || stat.st_size < (off_t)sizeof *shared) {
		close(fd); /* being made */
		return NULL;
	}
	shared = map_file(fd);
	close(fd); /* not a file of our own: no lock of ours is dropped */
	if (!shared)
		return NULL;
	if (shared->magic != MAGIC || shared->version != VERSION || atomic_load(&shared->dead)) {
		munmap(shared, sizeof *shared);
		return NULL;
	}
	peer = new_peer(shared, slot, false);
	if (!peer)
		return NULL;
	if (has_no_process(peer)) {
		atomic_store(&shared->dead, 1);
		free(peer);
		return NULL;
	}
	atomic_store(&peers[slot], peer);
	wake_watcher();
	return peer;
}

struct peer *peer_find(uint32_t slot)
{
	struct peer *peer;

	if (slot == 0 || slot >= SOFTNIC_SLOTS)
		return NULL;
	peer = atomic_load(&peers[slot]);
	if (peer && peer_alive(peer))
		return peer;
	pthread_mutex_lock(&peers_mutex);
	peer = find_locked(slot);
	pthread_mutex_unlock(&peers_mutex);
	return peer;
}

static int open_mr_file(struct peer *peer, const struct shared_mr *mr)
{
	char path[64];
	struct stat stat;
	int fd = mr->path[0] ? open(mr->path, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_dev == mr->device &&
	    stat.st_ino == mr->inode)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", peer->shared->pid, mr->fd);
	fd = mr->fd >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_dev == mr->device &&
	    stat.st_ino == mr->inode)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static struct mapped_mr *map_mr(struct peer *peer, uint32_t index, uint32_t key)
{
	const struct shared_mr *mr = &peer->shared->mrs[index];
	struct mapped_mr *mapped = calloc(1, sizeof *mapped);
	uint64_t lead = mr->file_offset % (2u << 20); /* hugepages map at their own alignment */
	int fd;

	if (!mapped)
		return NULL;
	mapped->key = key;
	if (peer->own) {
		mapped->bytes = (uint8_t *)(uintptr_t)mr->address;
		return mapped;
	}
	fd = open_mr_file(peer, mr);
	if (fd >= 0) {
		struct stat stat;

		if (fstat(fd, &stat) == 0 && stat.st_blksize > 2 << 20)
			lead = mr->file_offset % (uint64_t)stat.st_blksize;
		mapped->map_bytes = lead + mr->length;
		mapped->map = mmap(NULL, mapped->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   (off_t)(mr->file_offset - lead));
		close(fd);
		if (mapped->map != MAP_FAILED) {
			madvise(mapped->map, mapped->map_bytes, MADV_DONTFORK);
			mapped->bytes = (uint8_t *)mapped->map + lead;
			return mapped;
		}
	}
	free(mapped);
	return NULL;
}

uint8_t *peer_map_mr(struct peer *peer, uint32_t index, uint32_t key)
{
	struct mapped_mr *mapped = atomic_load_explicit(&peer->mrs[index], memory_order_acquire);

	if (mapped && mapped->key == key)
		return mapped->bytes;
	pthread_mutex_lock(&peer->mutex);
	mapped = atomic_load(&peer->mrs[index]);
	if (!mapped || mapped->key != key) {
		/* What was there is of an earlier registration; others may still read through it,
		 * so it stays mapped. */
		mapped = map_mr(peer, index, key);
		if (mapped)
			atomic_store_explicit(&peer->mrs[index], mapped, memory_order_release);
	}
	pthread_mutex_unlock(&peer->mutex);
	return mapped ? mapped->bytes : NULL;
}

void peer_wake(struct peer *peer, uint32_t channel, uint64_t record)
{
	char path[PATH_BYTES];

	if (peer->channels[channel] < 0) {
		pthread_mutex_lock(&peer->mutex);
		if (peer->channels[channel] < 0) {
			channel_name(path, peer->slot, channel);
			peer->channels[channel] = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		}
		pthread_mutex_unlock(&peer->mutex);
	}
	/* A full FIFO holds thousands of events that nobody has fetched; a missing one, a channel
	 * that is gone. */
	if (peer->channels[channel] >= 0 &&
	    write(peer->channels[channel], &record, sizeof record) < 0)
		return;
}

int peer_open_channel(uint32_t slot, uint32_t channel)
{
	char path[PATH_BYTES];

	channel_name(path, slot, channel);
	unlink(path);
	if (mkfifo(path, 0600) != 0)
		return -1;
	return open(path, O_RDWR | O_CLOEXEC); /* both ends: never an end of file */
}

void peer_close_channel(uint32_t slot, uint32_t channel, int fd)
{
	char path[PATH_BYTES];

	channel_name(path, slot, channel);
	unlink(path);
	close(fd);
}
