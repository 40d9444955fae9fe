/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory node as this process knows it: record, superblock, directory.
 */
#include "cn/store.h"

#include "layout/bucket.h"
#include "layout/directory.h"
#include "layout/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_CHUNK = 65536 };

static int check_superblock(struct node *node, int error)
{
	const struct logger *logger = &node->store->logger;

	switch (error) {
	case 0:
		break;
	case -ENODATA:
		log_line(logger, LOG_LEVEL_ERROR,
			 "memory node %u: the device READs zeros and reports success; the IOMMU of "
			 "that host is most likely not in "
			 "passthrough mode (boot it with iommu=pt)",
			 node->mn_id);
		return FARKV_ECORRUPT;
	case -EPROTONOSUPPORT:
		log_line(logger, LOG_LEVEL_ERROR,
			 "memory node %u has layout version %u, this library has %d", node->mn_id,
			 node->super.layout_version, LAYOUT_VERSION);
		return FARKV_EVERSION;
	default:
		log_line(logger, LOG_LEVEL_ERROR,
			 "memory node %u: what is READ at its base is no superblock of farkv",
			 node->mn_id);
		return FARKV_ECORRUPT;
	}
	if (node->super.incarnation == node->record.incarnation &&
	    node->super.mn_id == node->mn_id && node->super.cluster_id == node->record.cluster_id &&
	    node->super.geometry.region_bytes <= node->record.region_bytes)
		return 0;
	log_line(logger, LOG_LEVEL_ERROR,
		 "memory node %u: its superblock is not the one its record speaks of: %s",
		 node->mn_id,
		 node->super.incarnation != node->record.incarnation ? "another incarnation"
								     : "another region");
	return FARKV_EUNAVAILABLE;
}

static int read_all(struct node *node, uint64_t offset, uint8_t *into, uint64_t bytes)
{
	int error = 0;

	for (uint64_t at = 0; !error && at < bytes; at += READ_CHUNK)
		error = reporter_read(
			node, offset + at, into + at,
			(uint32_t)(bytes - at < READ_CHUNK ? bytes - at : READ_CHUNK));
	return error;
}

static int read_directory(struct node *node)
{
	const struct geometry *g = &node->super.geometry;
	struct directory_header header;
	uint8_t line[LINE_BYTES];
	int error = reporter_read(node, g->directory_offset, line, sizeof line);

	if (error)
		return error;
	if (!directory_header_decode(line, g->max_depth, &header)) {
		log_line(&node->store->logger, LOG_LEVEL_ERROR,
			 "memory node %u: its directory is unreadable", node->mn_id);
		return FARKV_ECORRUPT;
	}
	node->depth = header.depth;
	node->directory = malloc((size_t)8 << node->depth);
	if (!node->directory)
		return FARKV_ENOMEM;
	return read_all(node, geometry_directory_entry(g, 0), (uint8_t *)node->directory,
			UINT64_C(8) << node->depth);
}

bool node_locate(const struct node *node, uint64_t h, uint64_t *bucket_offset, unsigned *depth)
{
	struct directory_entry entry;
	uint64_t segment;

	if (!directory_entry_unpack(le64toh(node->directory[place_suffix(h, node->depth)]), &entry))
		return false;
	segment = entry.segment * SEGMENT_BYTES;
	if (segment < node->super.geometry.heap_offset ||
	    segment + SEGMENT_BYTES > node->super.geometry.region_bytes)
		return false;
	*bucket_offset = segment + place_bucket(h) * BUCKET_BYTES;
	*depth = entry.depth;
	return true;
}

static int read_region(struct node *node)
{
	uint8_t block[SUPERBLOCK_BYTES], line[LINE_BYTES];
	struct load load;
	int error = reporter_read(node, 0, block, sizeof block);

	if (!error)
		error = check_superblock(node, superblock_decode(block, &node->super));
	if (!error)
		error = read_directory(node);
	if (!error)
		error = reporter_read(node, geometry_counter(&node->super.geometry, COUNTER_LOAD),
				      line, sizeof line);
	if (error)
		return error;
	load_decode(line, &load);
	epoch_init(&node->epoch, &load);
	if (node->client_id >= node->super.geometry.client_count)
		return FARKV_ECORRUPT;
	node->local_locks = calloc(LOCAL_LOCKS, sizeof *node->local_locks);
	node->unit_owner = calloc(node->super.geometry.unit_count, sizeof *node->unit_owner);
	return node->local_locks && node->unit_owner ? 0 : FARKV_ENOMEM;
}

static int read_record(struct node *node)
{
	struct farkv *store = node->store;
	int error = cluster_read_mn(&store->cluster, node->mn_id, &node->record);

	if (error == -ENOENT) {
		log_line(&store->logger, LOG_LEVEL_ERROR,
			 "memory node %u belongs to cluster \"%s\" but has published nothing: "
			 "start it",
			 node->mn_id, store->cluster.name);
		return FARKV_EUNAVAILABLE;
	}
	if (error)
		return error_of_errno(error);
	if (node->record.layout_version == LAYOUT_VERSION)
		return 0;
	log_line(&store->logger, LOG_LEVEL_ERROR,
		 "memory node %u has layout version %u, this library has %d", node->mn_id,
		 node->record.layout_version, LAYOUT_VERSION);
	return FARKV_EVERSION;
}

int node_open(struct farkv *store, uint32_t mn_id, uint32_t index, struct node **out)
{
	struct node *node = calloc(1, sizeof *node);
	int error;

	if (!node)
		return FARKV_ENOMEM;
	node->store = store;
	node->mn_id = mn_id;
	node->index = index;
	pthread_mutex_init(&node->mutex, NULL);
	error = read_record(node);
	if (!error)
		error = reporter_open(node);
	if (!error)
		error = read_region(node);
	if (error) {
		node_close(node);
		return error;
	}
	*out = node;
	return 0;
}

void node_close(struct node *node)
{
	if (!node)
		return;
	if (node->client_id != 0)
		reporter_goodbye(node);
	reporter_close(node);
	while (node->spare_heaps) {
		struct heap *heap = node->spare_heaps;

		node->spare_heaps = heap->next;
		heap_free(heap);
		free(heap);
	}
	free(node->directory);
	free(node->local_locks);
	free(node->unit_owner);
	pthread_mutex_destroy(&node->mutex);
	free(node);
}
