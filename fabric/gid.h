/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a port's GIDs to use. On Ethernet an index stands for an address and a RoCE version; the first
 * entries are usually link-local and RoCE v1, which no router passes.
 */
#ifndef FARKV_FABRIC_GID_H
#define FARKV_FABRIC_GID_H

#include "fabric/device.h"

enum { GID_TEXT_MAX = 64 };

/* How well a GID serves on Ethernet, higher is better; 0 = not at all. */
unsigned gid_rank(const struct ibv_gid_entry *entry);
/* "RoCE v2 ::ffff:10.0.0.1" */
void gid_format(const struct ibv_gid_entry *entry, char text[GID_TEXT_MAX]);
/*
 * Sets gid and gid_index of a device whose context, port and port_attr are there, from options.gid_index. An
 * InfiniBand port with no index given is addressed by LID: zero GID, unless the port demands a GRH. -EINVAL: no such
 * index, or none that serves; the log names the index and the valid ones.
 */
int gid_choose(struct device *device);

#endif
