/* SPDX-License-Identifier: Apache-2.0 */
/* farkv-mn: takes memory, registers it, publishes it, and sleeps. */
#include "fabric/device.h"
#include "fabric/rendezvous.h"
#include "mn/announce.h"
#include "mn/options.h"
#include "mn/region.h"
#include "mn/server.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAULT = 1, EXIT_USAGE = 2, EXIT_MEMCACHED = 3 };

/* All that a memory node is made of, in the order in which it is made. */
struct node {
	struct mn_options options;
	struct logger logger;
	struct device *device;
	struct rendezvous *rendezvous;
	struct announce *announce;
	struct region region;
	struct server server;
	bool has_region, has_server;
};

/* Before any thread exists, so that all inherit it; the event loop takes the signals from a
 * descriptor. */
static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void write_log(int level, const char *line, void *arg)
{
	static const char *const names[] = {"error", "warning", "notice", "debug"};

	(void)arg;
	fprintf(stderr, "farkv-mn: %s: %s\n", names[level & 3], line);
}

static int status_of_memcached(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -EPROTO || rc == -EAGAIN
		       ? EXIT_MEMCACHED
		       : EXIT_FAULT;
}

/* The NUMA node next to the device. */
static int device_node(const struct device *device)
{
	char path[160];
	int node = REGION_NODE_UNKNOWN;
	FILE *file;

	if (device->softnic)
		return node;
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/numa_node", device->name);
	file = fopen(path, "re");
	if (!file)
		return node;
	if (fscanf(file, "%d", &node) != 1)
		node = REGION_NODE_UNKNOWN;
	fclose(file);
	return node;
}

/* True where every server is on this host. */
static bool is_loopback(const char *servers)
{
	for (const char *at = servers; *at; at += strcspn(at, ","), at += *at == ',') {
		if (strncmp(at, "127.", 4) != 0 && strncmp(at, "localhost", 9) != 0 &&
		    strncmp(at, "[::1]", 5) != 0 && *at != '/')
			return false;
	}
	return true;
}

static int open_rendezvous(struct node *node)
{
	const struct mn_options *options = &node->options;
	int rc = rendezvous_open(options->memcached, options->memcached_timeout_ms, &node->logger,
				 &node->rendezvous);

	if (rc == -EINVAL)
		return EXIT_USAGE;
	if (rc)
		return status_of_memcached(rc);
	rc = announce_create(options->cluster, options->secret_file, options->id, node->rendezvous,
			     &node->logger, &node->announce);
	if (!rc && !announce_seal(node->announce)->has_secret && !is_loopback(options->memcached))
		log_line(&node->logger, LOG_LEVEL_WARNING,
			 "records with remote keys go unsealed to %s: whoever reads them can "
			 "write this memory; give --secret-file",
			 options->memcached);
	return rc ? status_of_memcached(rc) : 0;
}

static int node_open(struct node *node)
{
	struct mn_record record;
	bool owns_shards;
	int rc;

	if (cluster_check_name(node->options.cluster, &node->logger))
		return EXIT_USAGE;
	rc = open_rendezvous(node);
	if (rc)
		return rc;
	rc = device_open(&node->options.device, &node->logger, &node->device);
	if (rc)
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAULT;
	rc = region_open(&node->options, &pages_host, announce_seal(node->announce),
			 device_node(node->device), &node->logger, &node->region);
	if (rc)
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAULT;
	node->has_region = true;
	node->has_server = true;
	if (server_create(&node->server, &node->options, &node->logger, node->device,
			  &node->region))
		return EXIT_FAULT;
	server_record(&node->server, &record);
	rc = announce_start(node->announce, &record, node->region.replaced, &owns_shards);
	return rc ? status_of_memcached(rc) : 0;
}

/* In reverse order; each part accepts not having been made. */
static void node_close(struct node *node, bool started)
{
	announce_destroy(node->announce); /* first: nobody new finds us while we go */
	if (node->has_server)
		server_destroy(&node->server);
	if (node->has_region)
		region_close(&node->region, node->options.ephemeral || !started);
	device_close(node->device);
	rendezvous_close(node->rendezvous);
}

static void print_ready(const struct node *node)
{
	printf("ready cluster=%s mn=%" PRIu32 " device=%s:%u gid=%d region=%" PRIu64
	       " pages=%s incarnation=%016" PRIx64 "\n",
	       node->options.cluster, node->options.id, node->device->name, node->device->port,
	       node->device->gid_index, node->region.region_bytes, region_page_name(&node->region),
	       node->region.superblock.incarnation);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct node node;
	int rc = mn_options_parse(&node.options, argc, argv, stdout, stderr);

	if (rc)
		return rc == OPTIONS_DONE ? EXIT_SUCCESS : EXIT_USAGE;
	if (sodium_init() < 0) {
		fputs("farkv-mn: libsodium does not start\n", stderr);
		return EXIT_FAULT;
	}
	node.logger = (struct logger){.write = write_log, .level = (int)node.options.log_level};
	block_signals();
	rc = node_open(&node);
	if (rc == 0) {
		print_ready(&node);
		rc = server_run(&node.server, node.announce) ? EXIT_FAULT : EXIT_SUCCESS;
		log_line(&node.logger, LOG_LEVEL_NOTICE, "memory node %" PRIu32 " stops",
			 node.options.id);
		node_close(&node, true);
	} else {
		node_close(&node, false);
	}
	return rc;
}
