/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a store, and its helper thread.
 */
#include "cn/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HELPER_PAUSE_NS = 1000000, HELPER_IDLE_PAUSE_NS = 10000000 };

const char *options_check(const struct farkv_options *options, char *reason, size_t reason_bytes);

/* Grows in each forked child: what was made before the fork carries a smaller number. */
static unsigned forks;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

unsigned fork_generation(void)
{
	pthread_once(&fork_once, watch_forks);
	return forks;
}

bool fork_crossed(unsigned generation)
{
	return generation != forks;
}

static bool any_node_active(struct farkv *store)
{
	for (uint32_t i = 0; i < store->node_count; i++)
		if (atomic_load(&store->nodes[i]->epoch.reported) != EPOCH_IDLE)
			return true;
	return false;
}

static void turn_absent_sessions(struct farkv *store, uint64_t now_ns)
{
	pthread_mutex_lock(&store->sessions_mutex);
	for (struct farkv_session *session = store->sessions; session; session = session->next)
		session_turn_for_absent(session, now_ns);
	pthread_mutex_unlock(&store->sessions_mutex);
}

static void *helper_main(void *arg)
{
	struct farkv *store = arg;

	while (!atomic_load_explicit(&store->stop, memory_order_relaxed)) {
		long pause = any_node_active(store) ? HELPER_PAUSE_NS : HELPER_IDLE_PAUSE_NS;
		uint64_t now = clock_now_ns();

		for (uint32_t i = 0; i < store->node_count; i++)
			reporter_step(store->nodes[i], now);
		turn_absent_sessions(store, now);
		nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
	}
	return NULL;
}

static int start_helper(struct farkv *store)
{
	sigset_t all, before;
	int error;

	/* The program's signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&store->helper, NULL, helper_main, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	store->helper_runs = error == 0;
	return error ? FARKV_ENOMEM : 0;
}

static void write_log(int level, const char *line, void *arg)
{
	struct farkv *store = arg;

	store->options.log((enum farkv_log_level)level, line, store->options.log_arg);
}

static int open_device(struct farkv *store)
{
	const struct farkv_options *o = &store->options;
	struct device_options options = {
		.name = o->device,
		.gid_index = o->gid_index,
		.mtu_bytes = o->mtu,
		.service_level = (uint8_t)o->service_level,
		.traffic_class = (uint8_t)o->traffic_class,
		.qp_timeout = (uint8_t)o->qp_timeout,
		.qp_retries = (uint8_t)o->qp_retries,
		.qp_rnr_retries = (uint8_t)o->qp_rnr_retries,
		.max_inline = o->max_inline,
	};
	int error = device_open(&options, &store->logger, &store->device);

	return error == -EINVAL ? FARKV_ENODEVICE : error_of_errno(error);
}

static int open_rendezvous(struct farkv *store)
{
	int error = cluster_check_name(store->options.cluster, &store->logger);

	if (!error)
		error = rendezvous_open(store->options.memcached, store->options.open_timeout_ms,
					&store->logger, &store->rendezvous);
	if (!error)
		error = cluster_init(&store->cluster, store->options.cluster, store->rendezvous,
				     store->options.secret_file, &store->logger);
	return error ? (error == -ENOENT ? FARKV_EINVAL : error_of_errno(error)) : 0;
}

static int read_map(struct farkv *store)
{
	int error = cluster_read_map(&store->cluster, true, &store->map);

	if (error == -ENOENT)
		log_line(&store->logger, LOG_LEVEL_ERROR,
			 "memcached at %s knows no cluster \"%s\": start its memory nodes "
			 "(farkv-mn --cluster %s)",
			 store->options.memcached, store->options.cluster, store->options.cluster);
	return error_of_errno(error);
}

static int node_index(const struct farkv *store, uint32_t mn_id)
{
	for (uint32_t i = 0; i < store->node_count; i++)
		if (store->nodes[i]->mn_id == mn_id)
			return (int)i;
	return -1;
}

/* A memory node for each owner in the map; members without shards are not connected. */
static int open_nodes(struct farkv *store)
{
	store->nodes = calloc(STORE_NODES_MAX, sizeof(struct node *));
	if (!store->nodes)
		return FARKV_ENOMEM;
	for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
		int at = node_index(store, store->map.owner[shard]);

		if (at < 0) {
			int error;

			if (store->node_count == UINT8_MAX)
				return FARKV_EINVAL;
			error = node_open(store, store->map.owner[shard], store->node_count,
					  &store->nodes[store->node_count]);
			if (error)
				return error;
			at = (int)store->node_count++;
		}
		store->node_of_shard[shard] = (uint8_t)at;
	}
	for (uint32_t i = 1; i < store->node_count; i++)
		if (store->nodes[i]->super.hash_seed != store->nodes[0]->super.hash_seed) {
			log_line(&store->logger, LOG_LEVEL_ERROR,
				 "memory nodes %u and %u hash with different seeds: they were not "
				 "started for one cluster",
				 store->nodes[0]->mn_id, store->nodes[i]->mn_id);
			return FARKV_ECORRUPT;
		}
	return 0;
}

static void store_destroy(struct farkv *store)
{
	if (store->helper_runs) {
		atomic_store(&store->stop, true);
		pthread_join(store->helper, NULL);
	}
	for (uint32_t i = 0; i < store->node_count; i++)
		node_close(store->nodes[i]);
	free(store->nodes);
	cache_destroy(store->cache);
	device_close(store->device);
	rendezvous_close(store->rendezvous);
	pthread_mutex_destroy(&store->mutex);
	pthread_mutex_destroy(&store->sessions_mutex);
	explicit_bzero(&store->cluster, sizeof store->cluster);
	free(store);
}

static int store_open(struct farkv *store)
{
	char reason[256];
	int error;

	if (options_check(&store->options, reason, sizeof reason)) {
		log_line(&store->logger, LOG_LEVEL_ERROR, "%s", reason);
		return FARKV_EINVAL;
	}
	error = open_rendezvous(store);
	if (!error)
		error = read_map(store);
	if (!error)
		error = open_device(store);
	if (error)
		return error;
	store->cache = cache_create(store->options.cache_bytes);
	if (!store->cache)
		return FARKV_ENOMEM;
	error = open_nodes(store);
	if (!error && store->options.helper_thread)
		error = start_helper(store);
	return error;
}

int farkv_open(const struct farkv_options *options, struct farkv **out)
{
	struct farkv *store;
	int error;

	if (!options || !out || options->struct_bytes != sizeof *options)
		return FARKV_EINVAL;
	*out = NULL;
	store = calloc(1, sizeof *store);
	if (!store)
		return FARKV_ENOMEM;
	store->options = *options;
	store->logger.level = (int)options->log_level;
	if (options->log) {
		store->logger.write = write_log;
		store->logger.arg = store;
	}
	store->fork_generation = fork_generation();
	pthread_mutex_init(&store->mutex, NULL);
	pthread_mutex_init(&store->sessions_mutex, NULL);
	error = store_open(store);
	if (error) {
		store_destroy(store);
		return error;
	}
	*out = store;
	return 0;
}

int farkv_close(struct farkv *store)
{
	bool busy;

	if (!store)
		return 0;
	if (fork_crossed(store->fork_generation))
		return FARKV_EFORK;
	pthread_mutex_lock(&store->sessions_mutex);
	busy = store->session_count > 0;
	pthread_mutex_unlock(&store->sessions_mutex);
	if (busy)
		return FARKV_EBUSY;
	store_destroy(store);
	return 0;
}
