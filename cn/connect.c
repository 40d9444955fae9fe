/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting one queue pair to a memory node: ticket, request, answer, readiness. Every wait ends
 * with the store's open time-out. Called with store->mutex held: the rendezvous is one thread's at
 * a time.
 */
#include "cn/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_POLL_FIRST_NS = 500000, ANSWER_POLL_CAP_NS = 10000000 };

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t random_word(void)
{
	uint64_t word = 0;

	/* At most 256 bytes are never cut short once the pool is up. */
	while (getrandom(&word, sizeof word, 0) != sizeof word)
		;
	return word;
}

static int wait_for_answer(struct farkv *store, struct node *node, uint64_t ticket, uint64_t nonce,
			   struct connect_response *response)
{
	uint64_t until = clock_now_ns() + (uint64_t)store->options.open_timeout_ms * 1000000;
	uint64_t pause = ANSWER_POLL_FIRST_NS;

	do {
		int error = cluster_read_response(&store->cluster, node->mn_id, ticket, response);

		if (error && error != -ENOENT)
			return error_of_errno(error);
		if (!error && response->nonce == nonce)
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
		pause = pause * 2 < ANSWER_POLL_CAP_NS ? pause * 2 : ANSWER_POLL_CAP_NS;
	} while (clock_now_ns() < until);
	log_line(&store->logger, LOG_LEVEL_ERROR,
		 "memory node %u did not answer within %u ms: is its process running? (its record "
		 "in memcached says it was)",
		 node->mn_id, store->options.open_timeout_ms);
	return FARKV_EUNAVAILABLE;
}

static int judge_answer(struct farkv *store, struct node *node,
			const struct connect_response *response)
{
	switch (response->status) {
	case CONNECT_OK:
		break;
	case CONNECT_INCARNATION:
		log_line(&store->logger, LOG_LEVEL_ERROR,
			 "memory node %u has been restarted: open the store again", node->mn_id);
		return FARKV_EUNAVAILABLE;
	default:
		log_line(&store->logger, LOG_LEVEL_ERROR, "memory node %u refused: %s", node->mn_id,
			 response->reason);
		return FARKV_EREFUSED;
	}
	if (response->incarnation != node->record.incarnation || response->client_id == 0 ||
	    response->client_id > UINT16_MAX ||
	    (node->client_id != 0 && response->client_id != node->client_id)) {
		log_line(&store->logger, LOG_LEVEL_ERROR, "memory node %u gave a senseless answer",
			 node->mn_id);
		return FARKV_EREFUSED;
	}
	return 0;
}

static int exchange(struct farkv *store, struct node *node, struct qp *qp)
{
	struct connect_request request = {
		.nonce = random_word(),
		.incarnation = node->record.incarnation,
		.client_id = node->client_id,
		.pid = (uint32_t)getpid(),
		.sq_depth = qp->sq_depth,
	};
	struct connect_response response;
	uint64_t ticket;
	int error;

	qp_endpoint(qp, &request.endpoint);
	error = cluster_take_ticket(&store->cluster, node->mn_id, &ticket);
	if (!error)
		error = cluster_write_request(&store->cluster, node->mn_id, ticket, &request);
	if (error)
		return error_of_errno(error);
	error = wait_for_answer(store, node, ticket, request.nonce, &response);
	if (!error)
		error = judge_answer(store, node, &response);
	if (error)
		return error;
	if (qp_connect(qp, &response.endpoint))
		return FARKV_EUNAVAILABLE;
	node->client_id = response.client_id;
	return error_of_errno(cluster_write_ready(&store->cluster, node->mn_id, ticket));
}

int connect_node(struct farkv *store, struct node *node, const struct qp_options *options,
		 struct qp **qp)
{
	int error;

	*qp = NULL;
	error = qp_create(store->device, options, (uint32_t)random_word() & 0xffffff, qp);
	if (error)
		return error_of_errno(error);
	error = exchange(store, node, *qp);
	if (error) {
		qp_destroy(*qp);
		*qp = NULL;
	}
	return error;
}
