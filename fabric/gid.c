/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	TABLE_MAX = 1024, /* entries looked at */
	LIST_BYTES = 640, /* of valid indices in a log line */
	RANK_ROCE_V1 = 1,
	RANK_LINK_LOCAL = 2, /* RoCE v2 */
	RANK_ROUTABLE = 3,   /* RoCE v2 */
};

static bool is_mapped_ipv4(const uint8_t *raw)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(raw, prefix, sizeof prefix) == 0;
}

static bool is_zero(const union ibv_gid *gid)
{
	static const uint8_t zero[16];

	return memcmp(gid->raw, zero, sizeof zero) == 0;
}

/* Not on this link only: not fe80::/10, not 169.254/16, not multicast or a loopback address. */
static bool is_routable(const uint8_t *raw)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	if (is_mapped_ipv4(raw))
		return raw[12] != 127 && raw[12] != 0 && raw[12] < 224 &&
		       !(raw[12] == 169 && raw[13] == 254);
	return raw[0] != 0xff && !(raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80) &&
	       memcmp(raw, loopback, sizeof loopback) != 0;
}

unsigned gid_rank(const struct ibv_gid_entry *entry)
{
	if (is_zero(&entry->gid))
		return 0;
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return RANK_ROCE_V1;
	return is_routable(entry->gid.raw) ? RANK_ROUTABLE : RANK_LINK_LOCAL;
}

void gid_format(const struct ibv_gid_entry *entry, char text[GID_TEXT_MAX])
{
	char address[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, entry->gid.raw, address, sizeof address);
	snprintf(text, GID_TEXT_MAX, "%s %s", entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" :
		 entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB", address);
}

static int table_entries(const struct device *device)
{
	int entries = device->port_attr.gid_tbl_len;

	return entries > TABLE_MAX ? TABLE_MAX : entries;
}

static bool read_entry(const struct device *device, int index, struct ibv_gid_entry *entry)
{
	memset(entry, 0, sizeof *entry);
	return index >= 0 && index < table_entries(device) &&
	       device->verbs->query_gid_entry(device->context, device->port, (uint32_t)index, entry) == 0 &&
	       !is_zero(&entry->gid);
}

/* "0 (RoCE v1 fe80::1), 1 (...)", cut where the line is full. */
static void list_valid(const struct device *device, char *list, size_t capacity)
{
	size_t at = 0;

	snprintf(list, capacity, "none");
	for (int i = 0; i < table_entries(device); i++) {
		struct ibv_gid_entry entry;
		char text[GID_TEXT_MAX];

		if (!read_entry(device, i, &entry))
			continue;
		if (capacity - at < GID_TEXT_MAX + 32) {
			snprintf(list + at, capacity - at, ", ...");
			return;
		}
		gid_format(&entry, text);
		at += (size_t)snprintf(list + at, capacity - at, "%s%d (%s)", at ? ", " : "", i, text);
	}
}

static void use(struct device *device, int index, const struct ibv_gid_entry *entry)
{
	char text[GID_TEXT_MAX];

	device->gid = entry->gid;
	device->gid_index = index;
	gid_format(entry, text);
	log_line(device->logger, LOG_LEVEL_DEBUG, "%s port %u: GID index %d (%s)", device->name, device->port,
		 index, text);
}

static int choose_given(struct device *device, int index)
{
	char list[LIST_BYTES];
	struct ibv_gid_entry entry;

	if (read_entry(device, index, &entry)) {
		use(device, index, &entry);
		return 0;
	}
	list_valid(device, list, sizeof list);
	log_line(device->logger, LOG_LEVEL_ERROR, "%s port %u has no GID at index %d; valid: %s", device->name,
		 device->port, index, list);
	return -EINVAL;
}

static int choose_best(struct device *device)
{
	struct ibv_gid_entry entry, best_entry;
	unsigned best_rank = 0;
	int best = -1;

	for (int i = 0; i < table_entries(device); i++) {
		if (!read_entry(device, i, &entry) || gid_rank(&entry) <= best_rank)
			continue;
		best = i;
		best_entry = entry;
		best_rank = gid_rank(&entry);
	}
	if (best < 0) {
		log_line(device->logger, LOG_LEVEL_ERROR,
			 "%s port %u has no GID: has its network interface an IP address, and is it up?",
			 device->name, device->port);
		return -EINVAL;
	}
	if (best_rank < RANK_ROUTABLE)
		log_line(device->logger, LOG_LEVEL_DEBUG, "%s port %u has no routable RoCE v2 GID",
			 device->name, device->port);
	use(device, best, &best_entry);
	return 0;
}

int gid_choose(struct device *device)
{
	memset(&device->gid, 0, sizeof device->gid);
	device->gid_index = 0;
	if (device->options.gid_index >= 0)
		return choose_given(device, device->options.gid_index);
	if (device->options.gid_index != -1) {
		log_line(device->logger, LOG_LEVEL_ERROR, "%d is no GID index: 0 and up, or -1 to choose",
			 device->options.gid_index);
		return -EINVAL;
	}
	if (device->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		return choose_best(device);
	return device->port_attr.flags & IBV_QPF_GRH_REQUIRED ? choose_given(device, 0) : 0;
}
