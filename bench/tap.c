/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/tap.h"

#include "fabric/softnic/softnic.h"

#include <stdio.h>
#include <string.h>

static struct {
	struct device *device;
	struct tap_counts counts;
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
} tap;

static void count_request(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		tap.counts.read++;
		break;
	case IBV_WR_RDMA_WRITE:
		tap.counts.write++;
		tap.counts.inline_writes += (wr->send_flags & IBV_SEND_INLINE) != 0;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		tap.counts.cas++;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		tap.counts.faa++;
		break;
	default:
		tap.counts.send++;
		break;
	}
}

static int tapped_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	tap.counts.doorbells++;
	for (struct ibv_send_wr *at = wr; at; at = at->next)
		count_request(at);
	return tap.post_send(qp, wr, bad_wr);
}

static int tapped_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int taken = tap.poll_cq(cq, count, wc);

	if (taken > 0)
		tap.counts.cqes += (uint64_t)taken;
	return taken;
}

void tap_attach(struct device *device)
{
	memset(&tap, 0, sizeof tap);
	tap.device = device;
	tap.post_send = device->context->ops.post_send;
	tap.poll_cq = device->context->ops.poll_cq;
	device->context->ops.post_send = tapped_post_send;
	device->context->ops.poll_cq = tapped_poll_cq;
}

void tap_detach(void)
{
	if (!tap.device)
		return;
	tap.device->context->ops.post_send = tap.post_send;
	tap.device->context->ops.poll_cq = tap.poll_cq;
	tap.device = NULL;
}

static bool read_counter(const char *name, uint64_t *counter)
{
	char path[256];
	unsigned long long value = 0;
	FILE *file;
	bool ok;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/hw_counters/%s",
		 tap.device->name, tap.device->port, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	ok = fscanf(file, "%llu", &value) == 1;
	fclose(file);
	*counter = value;
	return ok;
}

bool tap_has_packets(void)
{
	uint64_t packets;

	return !tap.device->softnic && read_counter("sent_pkts", &packets);
}

/* Each stands for packets that were sent again. */
static uint64_t read_repeats(void)
{
	static const char *const names[] = {"duplicate_request", "out_of_seq_request",
					    "rcvd_seq_err", "completer_retry_err"};
	uint64_t sum = 0;

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		uint64_t value = 0;

		if (read_counter(names[i], &value))
			sum += value;
	}
	return sum;
}

void tap_read(struct tap_counts *counts)
{
	struct softnic_counters engine;

	*counts = tap.counts;
	counts->packets = 0;
	counts->repeats = 0;
	if (!tap.device->softnic) {
		read_counter("sent_pkts", &counts->packets);
		counts->repeats = read_repeats();
		return;
	}
	softnic_counters(tap.device->context, &engine);
	counts->read = engine.read;
	counts->write = engine.write;
	counts->cas = engine.cas;
	counts->faa = engine.faa;
	counts->send = engine.send;
	counts->doorbells = engine.doorbells;
	counts->cqes = engine.cqes_polled;
	counts->inline_writes = engine.inline_writes;
}
