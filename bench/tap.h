/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting at the device, apart from what the client believes: the software NIC's own counters, or,
 * on any other device, what passes context->ops, and the packets that the port has sent.
 */
#ifndef FARKV_BENCH_TAP_H
#define FARKV_BENCH_TAP_H

#include "fabric/device.h"

struct tap_counts {
	uint64_t read, write, cas, faa, send, doorbells, cqes, inline_writes;
	uint64_t packets; /* sent_pkts of the port; 0 where the device has no such counter */
	uint64_t repeats; /* what the port counts as retries, duplicates and gaps */
};

/* Wraps the context's post_send and poll_cq. One device at a time. */
void tap_attach(struct device *device);
void tap_detach(void);
/* What has passed since tap_attach. On the software NIC: what its engine has executed. */
void tap_read(struct tap_counts *counts);
/* Whether the device tells its sent packets. */
bool tap_has_packets(void);

#endif
