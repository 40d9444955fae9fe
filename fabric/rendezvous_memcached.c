/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous over memcached, with libmemcached and the text protocol.
 *
 * What libmemcached does not do by itself, and where this file does it:
 *
 * - A get that timed out, or that memcached answered with an error, may come back as "not found" (its fetch turns
 *   whatever ended the read into NOTFOUND when no value came). A caller who believed it would
 *   initialise what exists. So "not found" to a get is confirmed by a cas with a number that no value has:
 *   its answer is passed on as it came, NOT_FOUND or EXISTS, and it changes nothing. What is left must
 *   have come in time, on a connection that was not lost, without an error noted (is_answer).
 * - A failed server stays switched off for a while, and a connection that has lost step with its
 *   answers may be kept. So a handle that has seen a fault is thrown away; the next call makes a new one.
 * - Connecting resolves names without a bound. So addresses are resolved and tried with a deadline
 *   (address.h), and libmemcached gets numbers.
 *
 * There is one handle per server; a key's server is the one with the highest hash of (server, key). So keys
 * stay where they are when a server dies: an error for those keys, never another place for them.
 *
 * A connection that has been idle may be dead already (memcached restarted). Calls that can be
 * repeated without harm are, once, on a new connection, if the fault came quickly.
 */
#include "fabric/address.h"
#include "fabric/rendezvous_backend.h"

#include <errno.h>
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* memcached counts from 1; libmemcached has no room for 20 digits. */
#define NO_CAS ((uint64_t)INT64_MAX)

enum {
	SERVERS_MAX = 64,
	DEFAULT_PORT = 11211,
	TIMEOUT_MS_MAX = 600000,
	RELATIVE_TTL_MAX_S = 30 * 24 * 3600, /* memcached takes more for a date */
	INCREMENT_TRIES = 4,
	FETCH_TRIES = 4,
	QUIT_MS = 20, /* for libmemcached's polite goodbye */
};

struct server {
	struct address address;
	memcached_st *handle; /* owned; NULL until needed, and after a fault */
	int fault;            /* 0, or the last errno logged */
	char reason[ADDRESS_REASON_MAX];
};

struct memcached_end {
	struct rendezvous base;
	const struct logger *logger; /* borrowed */
	uint32_t timeout_ms;
	uint32_t server_count;
	struct server servers[]; /* server_count */
};

enum request_kind { REQUEST_GET, REQUEST_SET, REQUEST_ADD, REQUEST_SWAP, REQUEST_INCREMENT, REQUEST_REMOVE };

struct request {
	enum request_kind kind;
	const char *key;
	size_t key_length;
	const void *value;
	size_t value_length;
	time_t expires;
	uint64_t cas; /* in for SWAP, out for GET */
	void *out;
	size_t out_capacity, out_length;
	uint64_t counter;
	bool too_long; /* the value did not fit `out` */
};

static bool is_repeatable(enum request_kind kind)
{
	return kind == REQUEST_GET || kind == REQUEST_SET || kind == REQUEST_REMOVE;
}

static void drop_handle(struct server *server)
{
	if (!server->handle)
		return;
	memcached_behavior_set(server->handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, QUIT_MS);
	memcached_free(server->handle);
	server->handle = NULL;
}

static void set_timeouts(memcached_st *handle, uint64_t timeout_ms)
{
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, timeout_ms);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, timeout_ms);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_SND_TIMEOUT, timeout_ms * 1000);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_RCV_TIMEOUT, timeout_ms * 1000);
}

/* A handle whose server has just taken a connection. */
static int make_handle(struct server *server, uint64_t deadline_ms)
{
	char numeric[INET6_ADDRSTRLEN + 20];
	memcached_st *handle;
	int rc = address_reach(&server->address, deadline_ms, numeric, server->reason);

	if (rc)
		return rc;
	handle = memcached_create(NULL);
	if (!handle)
		return -ENOMEM;
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_NO_BLOCK, 1);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
	memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 0);
	if (memcached_server_add(handle, numeric, server->address.port) != MEMCACHED_SUCCESS) {
		memcached_free(handle);
		return -ENOMEM;
	}
	server->handle = handle;
	return 0;
}

/* Reads up to the end of the answer, so that the connection is in step whatever came. */
static memcached_return_t get(memcached_st *handle, struct request *request)
{
	memcached_return_t got;
	memcached_result_st result, *found;
	bool any = false;

	got = memcached_mget(handle, &request->key, &request->key_length, 1);
	if (got != MEMCACHED_SUCCESS)
		return got;
	if (!memcached_result_create(handle, &result))
		return MEMCACHED_MEMORY_ALLOCATION_FAILURE;
	for (unsigned tries = 0; tries < FETCH_TRIES; tries++) {
		found = memcached_fetch_result(handle, &result, &got);
		if (!found)
			break;
		any = true;
		request->out_length = memcached_result_length(found);
		request->cas = memcached_result_cas(found);
		request->too_long = request->out_length > request->out_capacity;
		if (!request->too_long && request->out_length)
			memcpy(request->out, memcached_result_value(found), request->out_length);
	}
	memcached_result_free(&result);
	if (any)
		return got == MEMCACHED_END || got == MEMCACHED_NOTFOUND || got == MEMCACHED_SUCCESS ?
		       MEMCACHED_SUCCESS : got;
	return got == MEMCACHED_END || got == MEMCACHED_SUCCESS ? MEMCACHED_NOTFOUND : got;
}

/* Whether "not found" is memcached's word and not libmemcached's for a read that came to nothing. */
static bool is_answer(memcached_st *handle)
{
	memcached_return_t last = memcached_last_error(handle);

	return (last == MEMCACHED_SUCCESS || last == MEMCACHED_NOTFOUND || last == MEMCACHED_END) &&
	       memcached_last_error_errno(handle) == 0 &&
	       !memcached_server_get_last_disconnect(handle);
}

/* A get found nothing: is there nothing? If the key is there after all, it may have just come: get it. */
static memcached_return_t get_confirmed(memcached_st *handle, struct request *request)
{
	memcached_return_t got = MEMCACHED_PROTOCOL_ERROR, there;

	for (unsigned tries = 0; tries < FETCH_TRIES; tries++) {
		got = get(handle, request);
		if (got != MEMCACHED_NOTFOUND || !is_answer(handle))
			return got;
		there = memcached_cas(handle, request->key, request->key_length, "", 0, 0, 0, NO_CAS);
		if (there != MEMCACHED_DATA_EXISTS)
			return there;
	}
	return MEMCACHED_PROTOCOL_ERROR;
}

static memcached_return_t perform(memcached_st *handle, struct request *r)
{
	switch (r->kind) {
	case REQUEST_GET:
		return get_confirmed(handle, r);
	case REQUEST_SET:
		return memcached_set(handle, r->key, r->key_length, r->value, r->value_length,
				     r->expires, 0);
	case REQUEST_ADD:
		return memcached_add(handle, r->key, r->key_length, r->value, r->value_length,
				     r->expires, 0);
	case REQUEST_SWAP:
		return memcached_cas(handle, r->key, r->key_length, r->value, r->value_length,
				     r->expires, 0, r->cas);
	case REQUEST_INCREMENT:
		return memcached_increment(handle, r->key, r->key_length, 1, &r->counter);
	case REQUEST_REMOVE:
		return memcached_delete(handle, r->key, r->key_length, 0);
	}
	return MEMCACHED_INVALID_ARGUMENTS;
}

static int translate_fault(memcached_st *handle, memcached_return_t got, bool late)
{
	memcached_return_t last = memcached_last_error(handle);
	int error = memcached_last_error_errno(handle);

	if (got == MEMCACHED_NOTFOUND || got == MEMCACHED_SOME_ERRORS || got == MEMCACHED_FAILURE)
		got = last;
	if (got == MEMCACHED_TIMEOUT || last == MEMCACHED_TIMEOUT || error == ETIMEDOUT || late)
		return -ETIMEDOUT;
	switch (got) {
	case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
	case MEMCACHED_MEMORY_ALLOCATION_FAILURE:
		return -ENOMEM;
	case MEMCACHED_SUCCESS: /* of `last`: the connection went, and nothing was noted */
	case MEMCACHED_END:
	case MEMCACHED_NOTFOUND:
	case MEMCACHED_ERRNO:
	case MEMCACHED_CONNECTION_FAILURE:
	case MEMCACHED_HOST_LOOKUP_FAILURE:
	case MEMCACHED_WRITE_FAILURE:
	case MEMCACHED_READ_FAILURE:
	case MEMCACHED_SERVER_MARKED_DEAD:
	case MEMCACHED_SERVER_TEMPORARILY_DISABLED:
		return -ECONNREFUSED;
	default:
		return -EPROTO;
	}
}

/* 0, a domain result, or a fault. late: more time has gone than there was. */
static int translate(memcached_st *handle, const struct request *request, memcached_return_t got, bool late)
{
	switch (got) {
	case MEMCACHED_SUCCESS:
	case MEMCACHED_STORED:
	case MEMCACHED_DELETED:
		return request->too_long ? -EMSGSIZE : 0;
	case MEMCACHED_NOTFOUND:
		if (!late && is_answer(handle))
			return -ENOENT;
		break;
	case MEMCACHED_DATA_EXISTS:
		return request->kind == REQUEST_SWAP ? -EAGAIN : -EEXIST;
	case MEMCACHED_NOTSTORED:
		if (request->kind == REQUEST_ADD)
			return -EEXIST;
		break;
	default:
		break;
	}
	return translate_fault(handle, got, late);
}

static bool is_fault(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -EPROTO || rc == -ENOMEM;
}

/* Logs a change of the server's state: once per fault of a new kind, and once when it is over. */
static void note(const struct memcached_end *end, struct server *server, int rc)
{
	const char *name = server->address.text;
	int fault = is_fault(rc) ? rc : 0;

	if (fault == server->fault)
		return;
	server->fault = fault;
	if (fault == 0)
		log_line(end->logger, LOG_LEVEL_NOTICE, "memcached %s answers again", name);
	else if (fault == -ETIMEDOUT)
		log_line(end->logger, LOG_LEVEL_ERROR, "memcached %s timed out: no answer within %u ms%s%s", name,
			 end->timeout_ms, server->reason[0] ? ": " : "", server->reason);
	else if (fault == -ECONNREFUSED)
		log_line(end->logger, LOG_LEVEL_ERROR, "memcached %s cannot be reached: %s; is it running there?",
			 name, server->reason[0] ? server->reason : "the connection is lost");
	else if (fault == -ENOMEM)
		log_line(end->logger, LOG_LEVEL_ERROR, "memcached %s, or this process, is out of memory: %s", name,
			 server->reason);
	else
		log_line(end->logger, LOG_LEVEL_ERROR, "%s answers, but not as memcached should: %s", name,
			 server->reason);
}

static int attempt(const struct memcached_end *end, struct server *server, struct request *request,
		   uint64_t start_ms)
{
	uint64_t deadline_ms = start_ms + end->timeout_ms, now_ms, left_ms;
	memcached_return_t got;
	int rc = 0;

	server->reason[0] = 0;
	if (!server->handle)
		rc = make_handle(server, deadline_ms);
	if (rc)
		return rc;
	now_ms = monotonic_ms();
	left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
	if (left_ms < end->timeout_ms / 4 + 1)
		left_ms = end->timeout_ms / 4 + 1;
	set_timeouts(server->handle, left_ms);
	request->too_long = false;
	got = perform(server->handle, request);
	rc = translate(server->handle, request, got, monotonic_ms() >= now_ms + left_ms);
	if (is_fault(rc)) {
		const char *message = memcached_last_error_message(server->handle);

		snprintf(server->reason, sizeof server->reason, "%s",
			 message ? message : memcached_strerror(server->handle, got));
		drop_handle(server);
	}
	return rc;
}

static struct server *server_of(struct memcached_end *end, const struct request *request)
{
	struct server *chosen = &end->servers[0];
	uint64_t key = XXH3_64bits(request->key, request->key_length), highest = 0;

	for (uint32_t i = 0; i < end->server_count; i++) {
		struct server *server = &end->servers[i];
		uint64_t weight = XXH3_64bits_withSeed(server->address.text,
						       strlen(server->address.text), key);

		if (i == 0 || weight > highest) {
			chosen = server;
			highest = weight;
		}
	}
	return chosen;
}

static int call(struct rendezvous *rendezvous, struct request *request)
{
	struct memcached_end *end = (struct memcached_end *)rendezvous;
	uint64_t start_ms = monotonic_ms();
	struct server *server;
	bool reused;
	int rc;

	request->key_length = strlen(request->key);
	server = server_of(end, request);
	reused = server->handle != NULL;
	rc = attempt(end, server, request, start_ms);
	if (rc == -ECONNREFUSED && reused && is_repeatable(request->kind) &&
	    monotonic_ms() < start_ms + end->timeout_ms / 2)
		rc = attempt(end, server, request, start_ms);
	note(end, server, rc);
	return rc;
}

static time_t expiry(uint32_t ttl_s)
{
	return ttl_s > RELATIVE_TTL_MAX_S ? time(NULL) + (time_t)ttl_s : (time_t)ttl_s;
}

static int end_get(struct rendezvous *rendezvous, const char *key, void *value, size_t capacity,
		   size_t *length, uint64_t *cas)
{
	struct request request = { .kind = REQUEST_GET, .key = key, .out = value,
				   .out_capacity = capacity };
	int rc = call(rendezvous, &request);

	if (rc)
		return rc;
	*length = request.out_length;
	*cas = request.cas;
	return 0;
}

static int end_store(struct rendezvous *rendezvous, enum rendezvous_store kind, const char *key,
		     const void *value, size_t length, uint32_t ttl_s, uint64_t cas)
{
	struct request request = {
		.kind = kind == RENDEZVOUS_ADD ? REQUEST_ADD :
			kind == RENDEZVOUS_SWAP ? REQUEST_SWAP : REQUEST_SET,
		.key = key,
		.value = value,
		.value_length = length,
		.expires = expiry(ttl_s),
		.cas = cas,
	};

	return call(rendezvous, &request);
}

/* The text protocol's incr does not create; whoever adds the counter has drawn 1. */
static int end_increment(struct rendezvous *rendezvous, const char *key, uint32_t ttl_s, uint64_t *value)
{
	int rc = -EPROTO;

	for (unsigned tries = 0; tries < INCREMENT_TRIES; tries++) {
		struct request request = { .kind = REQUEST_INCREMENT, .key = key };

		rc = call(rendezvous, &request);
		*value = request.counter;
		if (rc != -ENOENT)
			return rc;
		*value = 1;
		rc = end_store(rendezvous, RENDEZVOUS_ADD, key, "1", 1, ttl_s, 0);
		if (rc != -EEXIST)
			return rc;
	}
	return -EPROTO; /* it comes and goes */
}

static int end_remove(struct rendezvous *rendezvous, const char *key)
{
	struct request request = { .kind = REQUEST_REMOVE, .key = key };

	return call(rendezvous, &request);
}

static void end_close(struct rendezvous *rendezvous)
{
	struct memcached_end *end = (struct memcached_end *)rendezvous;

	for (uint32_t i = 0; i < end->server_count; i++) {
		drop_handle(&end->servers[i]);
		address_clear(&end->servers[i].address);
	}
	free(end);
}

static const struct rendezvous_backend memcached_backend = {
	.close = end_close,
	.get = end_get,
	.store = end_store,
	.increment = end_increment,
	.remove = end_remove,
};

int rendezvous_open(const char *servers, uint32_t timeout_ms, const struct logger *logger,
		    struct rendezvous **rendezvous)
{
	struct memcached_end *end;
	struct address *addresses;
	int count, rc = 0;

	if (!servers || timeout_ms < 1 || timeout_ms > TIMEOUT_MS_MAX) {
		log_line(logger, LOG_LEVEL_ERROR, "memcached needs a server and a time-out of 1 to %d ms",
			 TIMEOUT_MS_MAX);
		return -EINVAL;
	}
	addresses = calloc(SERVERS_MAX, sizeof *addresses);
	if (!addresses)
		return -ENOMEM;
	count = address_parse_list(servers, DEFAULT_PORT, logger, addresses, SERVERS_MAX);
	if (count < 0) {
		rc = count;
		goto out;
	}
	end = calloc(1, sizeof *end + (size_t)count * sizeof end->servers[0]);
	if (!end) {
		rc = -ENOMEM;
		goto out;
	}
	end->base.backend = &memcached_backend;
	end->logger = logger;
	end->timeout_ms = timeout_ms;
	end->server_count = (uint32_t)count;
	for (int i = 0; i < count; i++)
		end->servers[i].address = addresses[i];
	*rendezvous = &end->base;
out:
	free(addresses);
	return rc;
}
