/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's turn: take completions, wake what waits, post what is staged.
 *
 * A session belongs to one thread at a time. Its `busy` word is taken for the length of each public
 * call, uncontended but for one case: when the thread has gone away leaving owed work behind (which
 * pins an epoch), the store's helper thread takes the session for a turn. It does so only while no
 * operation is undelivered: done functions are never called from the helper.
 */
#include "cn/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_SCAN_NS = 500000, CLOSE_GRACE_NS = 1000000000, SESSIONS_MAX = 4096 };

uint64_t session_random(struct farkv_session *session)
{
	/* xorshift64*: jitter, nothing that needs more. */
	session->random ^= session->random >> 12;
	session->random ^= session->random << 25;
	session->random ^= session->random >> 27;
	return session->random * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static uint32_t take_completions(struct farkv_session *session)
{
	struct ibv_wc completions[COMPLETIONS_BATCH];
	int count = ibv_poll_cq(session->cq, COMPLETIONS_BATCH, completions);

	if (count < 0) {
		log_line(&session->store->logger, LOG_LEVEL_ERROR,
			 "polling the completion queue failed");
		for (uint32_t i = 0; i < session->store->node_count; i++)
			session->links[i].flow.broken = true;
		return 0;
	}
	for (int i = 0; i < count; i++) {
		uint16_t id = flow_id_of(&completions[i]);

		if (id < session->store->node_count && session->links[id].qp)
			flow_complete(&session->links[id].flow, &completions[i]);
	}
	return (uint32_t)count;
}

static void unlink_waiting(struct farkv_session *session, struct op *op)
{
	if (op->next == op) {
		session->waiting = NULL;
	} else {
		op->prev->next = op->next;
		op->next->prev = op->prev;
		if (session->waiting == op)
			session->waiting = op->next;
	}
	op->waiting = false;
}

/* Each waiting operation is looked at once a turn, in order of arrival. */
static void wake_waiting(struct farkv_session *session)
{
	struct op *last = session->waiting ? session->waiting->prev : NULL;
	struct op *op = session->waiting;

	while (op) {
		struct op *next = op == last ? NULL : op->next;
		bool late = session->now_ns >= op->deadline_ns && !op->locked;

		if (late || session->now_ns >= op->wake_ns) {
			unlink_waiting(session, op);
			op->resume(op);
		}
		op = next;
	}
}

/* Operations whose chain is out past their deadline: the caller is told, the chain goes on. */
static void scan_deadlines(struct farkv_session *session)
{
	if (session->now_ns - session->scanned_ns < DEADLINE_SCAN_NS || session->in_flight == 0)
		return;
	session->scanned_ns = session->now_ns;
	for (uint32_t i = 0; i < session->depth; i++) {
		struct op *op = &session->ops[i];

		if (op->active && !op->delivered && !op->waiting &&
		    session->now_ns >= op->deadline_ns)
			op_deliver(op, op->decisive ? FARKV_EUNKNOWN : FARKV_ETIMEDOUT);
	}
}

void session_poll(struct farkv_session *session, bool idle_work)
{
	uint32_t taken, batch;

	session->now_ns = clock_now_ns();
	taken = batch = take_completions(session);
	/* Bounded by what can be in flight; done functions stage, and staged work is not posted
	 * here. */
	while (batch == COMPLETIONS_BATCH)
		taken += batch = take_completions(session);
	for (uint32_t i = 0; i < session->store->node_count; i++)
		link_pay(&session->links[i]);
	wake_waiting(session);
	scan_deadlines(session);
	for (uint32_t i = 0; i < session->store->node_count; i++)
		link_turn(&session->links[i], taken == 0, idle_work);
	if (!session->store->helper_runs)
		for (uint32_t i = 0; i < session->store->node_count; i++)
			reporter_step(session->store->nodes[i], session->now_ns);
}

/* Opening and closing */

static size_t memory_needed(struct farkv_session *session, uint32_t mends)
{
	session->large_count =
		session->depth < LARGE_BUFFERS_MAX ? session->depth + 1 : LARGE_BUFFERS_MAX;
	session->large_bytes =
		size_class_bytes(size_class_of(block_bytes(FARKV_KEY_MAX, FARKV_VALUE_MAX)));
	return (size_t)session->depth * OP_AREA_BYTES + (size_t)mends * MEND_AREA_BYTES +
	       session->store->node_count * round_up(sizeof(struct link_area), LINE_BYTES) +
	       (size_t)session->large_count * session->large_bytes;
}

static int make_memory(struct farkv_session *session)
{
	uint32_t mends = 2 * session->depth, nodes = session->store->node_count;
	uint8_t *at;

	if (memory_alloc(session->store->device, memory_needed(session, mends), &session->memory))
		return FARKV_ENOMEM;
	session->ops = calloc(session->depth, sizeof *session->ops);
	session->mends = calloc(mends, sizeof *session->mends);
	session->links = calloc(nodes, sizeof *session->links);
	if (!session->ops || !session->mends || !session->links)
		return FARKV_ENOMEM;
	at = session->memory.bytes + (size_t)session->depth * OP_AREA_BYTES;
	for (uint32_t i = 0; i < mends; i++, at += MEND_AREA_BYTES) {
		session->mends[i].area = (uint64_t *)at;
		session->mends[i].next = session->free_mends;
		session->free_mends = &session->mends[i];
	}
	for (uint32_t i = 0; i < nodes; i++, at += round_up(sizeof(struct link_area), LINE_BYTES))
		session->links[i].area = (struct link_area *)at;
	session->large = at;
	session->large_free_mask = (uint32_t)bits_mask(session->large_count);
	for (uint32_t i = session->depth; i-- > 0;) {
		session->ops[i].session = session;
		session->ops[i].next = session->free_ops;
		session->free_ops = &session->ops[i];
	}
	return 0;
}

static int make_cq(struct farkv_session *session)
{
	struct farkv *store = session->store;
	/* Every work request may end in a completion when its queue pair fails. */
	uint64_t entries =
		(uint64_t)store->options.sq_depth * store->node_count + COMPLETIONS_BATCH;

	if (entries > (uint64_t)store->device->attr.max_cqe) {
		log_line(&store->logger, LOG_LEVEL_ERROR,
			 "a completion queue for %u memory nodes at sq_depth %u needs %llu "
			 "entries, the device has %d: "
			 "lower sq_depth",
			 store->node_count, store->options.sq_depth, (unsigned long long)entries,
			 store->device->attr.max_cqe);
		return FARKV_EINVAL;
	}
	session->cq = store->device->verbs->create_cq(
		store->device->context, (int)entries, session, NULL,
		(int)(session->tag % (uint32_t)store->device->context->num_comp_vectors));
	if (session->cq)
		return 0;
	log_line(&store->logger, LOG_LEVEL_ERROR,
		 "creating a completion queue of %llu entries failed: %s",
		 (unsigned long long)entries, strerror(errno));
	return FARKV_ENOMEM;
}

static void session_destroy(struct farkv_session *session)
{
	struct farkv *store = session->store;

	for (uint32_t i = 0; session->links && i < store->node_count; i++)
		link_close(&session->links[i]);
	if (session->cq)
		store->device->verbs->destroy_cq(session->cq);
	memory_free(&session->memory);
	free(session->links);
	free(session->mends);
	free(session->ops);
	free(session);
}

static void join_store(struct farkv *store, struct farkv_session *session)
{
	pthread_mutex_lock(&store->sessions_mutex);
	session->next = store->sessions;
	store->sessions = session;
	store->session_count++;
	pthread_mutex_unlock(&store->sessions_mutex);
}

static void leave_store(struct farkv *store, struct farkv_session *session)
{
	pthread_mutex_lock(&store->sessions_mutex);
	for (struct farkv_session **at = &store->sessions; *at; at = &(*at)->next)
		if (*at == session) {
			*at = session->next;
			break;
		}
	store->session_count--;
	pthread_mutex_unlock(&store->sessions_mutex);
}

static int session_make(struct farkv *store, struct farkv_session **out)
{
	struct farkv_session *session = calloc(1, sizeof *session);
	int error;

	if (!session)
		return FARKV_ENOMEM;
	session->store = store;
	session->fork_generation = fork_generation();
	session->depth = store->options.depth;
	session->tag = ++store->next_session_tag;
	session->now_ns = clock_now_ns();
	session->random =
		session->now_ns ^ (uint64_t)(uintptr_t)session ^ UINT64_C(0x9e3779b97f4a7c15);
	error = make_cq(session);
	if (!error)
		error = make_memory(session);
	for (uint32_t i = 0; !error && i < store->node_count; i++)
		error = link_open(session, store->nodes[i], &session->links[i], (uint16_t)i);
	if (error) {
		session_destroy(session);
		return error;
	}
	join_store(store, session);
	*out = session;
	return 0;
}

int farkv_session_open(struct farkv *store, struct farkv_session **session)
{
	int error;

	if (!store || !session)
		return FARKV_EINVAL;
	if (fork_crossed(store->fork_generation))
		return FARKV_EFORK;
	*session = NULL;
	pthread_mutex_lock(&store->mutex);
	error = session_make(store, session);
	pthread_mutex_unlock(&store->mutex);
	return error;
}

static bool session_owes(const struct farkv_session *session)
{
	for (uint32_t i = 0; i < session->store->node_count; i++) {
		const struct link *link = &session->links[i];

		if (!link->down &&
		    (link_owes(link, true) || flow_in_flight(&link->flow) > 0 || link->flow.broken))
			return true;
	}
	return session->zombies > 0;
}

/* Until nothing is owed or `until_ns` has passed. */
static void settle(struct farkv_session *session, uint64_t until_ns)
{
	do
		session_poll(session, true);
	while (session_owes(session) && session->now_ns < until_ns);
}

void session_enter(struct farkv_session *session)
{
	/* Acquire pairs with session_leave. The helper holds it for one non-blocking turn. */
	while (atomic_exchange_explicit(&session->busy, true, memory_order_acquire))
		sched_yield();
}

void session_leave(struct farkv_session *session)
{
	atomic_store_explicit(&session->busy, false, memory_order_release);
}

void session_turn_for_absent(struct farkv_session *session, uint64_t now_ns)
{
	if (atomic_exchange_explicit(&session->busy, true, memory_order_acquire))
		return;
	if (session->in_flight == 0 && now_ns - session->now_ns > ABSENT_NS &&
	    session_owes(session)) {
		uint64_t left = session->now_ns;

		session_poll(session, true);
		session->now_ns = left; /* still absent */
	}
	session_leave(session);
}

int farkv_session_close(struct farkv_session *session)
{
	struct farkv *store;

	if (!session)
		return 0;
	if (fork_crossed(session->fork_generation))
		return FARKV_EFORK;
	farkv_wait(session);
	session_enter(session);
	settle(session, clock_now_ns() + CLOSE_GRACE_NS);
	store = session->store;
	leave_store(store, session);
	pthread_mutex_lock(&store->mutex);
	session_destroy(session);
	pthread_mutex_unlock(&store->mutex);
	return 0;
}

/* The public calls */

int farkv_submit(struct farkv_session *session, const struct farkv_request *request)
{
	bool nested;
	int error;

	if (!session || !request)
		return FARKV_EINVAL;
	if (fork_crossed(session->fork_generation))
		return FARKV_EFORK;
	nested = session->polling; /* a done function submits: the session is entered already */
	if (!nested) {
		session_enter(session);
		session->now_ns = clock_now_ns();
		session->polling = true;
	}
	error = op_submit(session, request);
	if (!nested) {
		session->polling = false;
		session_leave(session);
	}
	return error;
}

static void turn(struct farkv_session *session, bool idle_work)
{
	session_enter(session);
	session->polling = true;
	session_poll(session, idle_work);
	session->polling = false;
	session_leave(session);
}

int farkv_poll(struct farkv_session *session)
{
	uint32_t delivered;

	if (!session)
		return FARKV_EINVAL;
	if (fork_crossed(session->fork_generation))
		return FARKV_EFORK;
	session->delivered = 0;
	turn(session, false);
	delivered = session->delivered;
	return (int)delivered;
}

int farkv_wait(struct farkv_session *session)
{
	if (!session)
		return FARKV_EINVAL;
	if (fork_crossed(session->fork_generation))
		return FARKV_EFORK;
	while (session->in_flight > 0)
		turn(session, false);
	return 0;
}

int farkv_flush(struct farkv_session *session)
{
	int error = farkv_wait(session);

	if (error)
		return error;
	session_enter(session);
	session->polling = true;
	settle(session,
	       session->now_ns + (uint64_t)session->store->options.op_timeout_ms * 1000000);
	session->polling = false;
	session_leave(session);
	return 0;
}

struct sync_result {
	struct farkv_result result;
	bool done;
};

static void sync_done(const struct farkv_result *result, void *arg)
{
	struct sync_result *sync = arg;

	sync->result = *result;
	sync->done = true;
}

static int run_sync(struct farkv_session *session, struct farkv_request *request, size_t *value_len)
{
	struct sync_result sync = {.done = false};
	int error;

	if (!session)
		return FARKV_EINVAL;
	request->done = sync_done;
	request->arg = &sync;
	/* EAGAIN here: asynchronous operations fill the session; they end by their deadlines. */
	while ((error = farkv_submit(session, request)) == FARKV_EAGAIN)
		turn(session, false);
	if (error)
		return error;
	while (!sync.done)
		turn(session, false);
	if (value_len)
		*value_len = sync.result.value_len;
	return sync.result.status;
}

int farkv_get(struct farkv_session *session, const void *key, size_t key_len, void *buffer,
	      size_t buffer_bytes, size_t *value_len)
{
	struct farkv_request request = {.op = FARKV_GET,
					.key = key,
					.key_len = key_len,
					.buffer = buffer,
					.buffer_bytes = buffer_bytes};

	return run_sync(session, &request, value_len);
}

static int write_sync(struct farkv_session *session, enum farkv_op op, const void *key,
		      size_t key_len, const void *value, size_t value_len)
{
	struct farkv_request request = {
		.op = op, .key = key, .key_len = key_len, .value = value, .value_len = value_len};

	return run_sync(session, &request, NULL);
}

int farkv_put(struct farkv_session *session, const void *key, size_t key_len, const void *value,
	      size_t value_len)
{
	return write_sync(session, FARKV_PUT, key, key_len, value, value_len);
}

int farkv_insert(struct farkv_session *session, const void *key, size_t key_len, const void *value,
		 size_t value_len)
{
	return write_sync(session, FARKV_INSERT, key, key_len, value, value_len);
}

int farkv_update(struct farkv_session *session, const void *key, size_t key_len, const void *value,
		 size_t value_len)
{
	return write_sync(session, FARKV_UPDATE, key, key_len, value, value_len);
}

int farkv_delete(struct farkv_session *session, const void *key, size_t key_len)
{
	return write_sync(session, FARKV_DELETE, key, key_len, NULL, 0);
}
