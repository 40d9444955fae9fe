/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures: of a session, and of the memory nodes.
 */
#include "cn/session.h"

#include <string.h>

static void copy_counts(struct farkv_verbs *verbs, const struct flow_counts *counts)
{
	verbs->read = counts->read;
	verbs->write = counts->write;
	verbs->cas = counts->cas;
	verbs->faa = counts->faa;
	verbs->send = counts->send;
	verbs->doorbells = counts->doorbells;
	verbs->cqes = counts->cqes;
	verbs->inline_writes = counts->inline_writes;
}

void farkv_session_stats(const struct farkv_session *session, struct farkv_session_stats *stats)
{
	*stats = session->stats;
	copy_counts(&stats->verbs, &session->counts[0]);
	copy_counts(&stats->deferred, &session->counts[1]);
}

struct stat_read {
	struct flow_waiter waiter;
	int status;
	bool done;
};

static void stat_done(struct flow_waiter *waiter, int status)
{
	struct stat_read *read = (struct stat_read *)waiter;

	read->status = status;
	read->done = true;
}

/* READs all counter lines with the session's own queue pair. */
static int read_counters(struct link *link, uint8_t *lines)
{
	struct farkv_session *session = link->session;
	struct stat_read read = {.waiter.done = stat_done};
	uint64_t until = clock_now_ns() + (uint64_t)session->store->options.op_timeout_ms * 1000000;
	uint8_t *into = link->area->counters;

	while (!flow_reserve(&link->flow, 1)) {
		if (link->flow.broken || clock_now_ns() > until)
			return FARKV_EUNAVAILABLE;
		session_poll(session, false);
	}
	flow_read(&link->flow, into, COUNTER_LINES * LINE_BYTES,
		  geometry_counter(&link->node->super.geometry, 0), FLOW_DEFERRED);
	flow_await(&link->flow, &read.waiter);
	/* The waiter is on our stack: a broken queue pair is drained and calls it too. */
	while (!read.done) {
		session_poll(session, false);
		if (clock_now_ns() > until)
			link->flow.broken = true;
	}
	if (read.status)
		return FARKV_EUNAVAILABLE;
	memcpy(lines, into, COUNTER_LINES * LINE_BYTES);
	return 0;
}

static uint64_t sum_stripes(const uint8_t *lines, unsigned first)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < COUNTER_STRIPES; i++)
		sum += load_le64(lines + (first + i) * LINE_BYTES);
	return sum;
}

static void fill(const struct node *node, const struct link *link, const uint8_t *lines,
		 struct farkv_mn_stats *stats)
{
	const struct geometry *g = &node->super.geometry;
	struct load load;
	uint64_t used = load_le64(lines + COUNTER_UNITS * LINE_BYTES);

	load_decode(lines + COUNTER_LOAD * LINE_BYTES, &load);
	*stats = (struct farkv_mn_stats){
		.mn_id = node->mn_id,
		.connected = !atomic_load(&node->reporter.down),
		.incarnation = node->super.incarnation,
		.region_bytes = g->region_bytes,
		.units_total = g->unit_count,
		.units_used = used < g->unit_count ? used : g->unit_count,
		.items = (int64_t)sum_stripes(lines, COUNTER_ITEMS),
		.commits = sum_stripes(lines, COUNTER_COMMITS),
		.sessions = load_le64(lines + COUNTER_SESSIONS * LINE_BYTES),
		.epoch = load.epoch,
		.safe_epoch = load.safe_epoch,
		.index_segments = UINT64_C(1) << node->depth,
		.max_inline = link->qp ? link->qp->max_inline : 0,
		.is_softnic = node->store->device->softnic,
	};
	memcpy(stats->device, node->store->device->name, sizeof stats->device);
	stats->device[sizeof stats->device - 1] = '\0';
}

int farkv_stat(struct farkv_session *session, struct farkv_mn_stats *stats, size_t *count)
{
	uint8_t lines[COUNTER_LINES * LINE_BYTES];
	size_t room = *count;
	int error = 0;

	if (fork_crossed(session->fork_generation))
		return FARKV_EFORK;
	farkv_wait(session);
	*count = session->store->node_count;
	session_enter(session);
	for (uint32_t i = 0; i < session->store->node_count && i < room && !error; i++) {
		error = read_counters(&session->links[i], lines);
		if (!error)
			fill(session->store->nodes[i], &session->links[i], lines, &stats[i]);
	}
	session_leave(session);
	return error;
}
