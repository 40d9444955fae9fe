/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getaddrinfo may block for half a minute when a name server is away, and cannot be told to
 * hurry. So names go through getaddrinfo_a, which asks in a thread of the C library; when the deadline comes first,
 * the question stays with the address and the next call takes its answer.
 */
#include "fabric/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct address_lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[ADDRESS_HOST_MAX + 1];
	char port[8];
};

enum { ADDRESSES_TRIED_MAX = 8 };

uint64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t left_ms(uint64_t deadline_ms)
{
	uint64_t now = monotonic_ms();

	return deadline_ms > now ? deadline_ms - now : 0;
}

static const char *parse_port(const char *text, size_t length, uint16_t *port)
{
	unsigned value = 0;

	if (length == 0 || length > 5)
		return "a port is a number from 1 to 65535";
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return "a port is a number from 1 to 65535";
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value < 1 || value > UINT16_MAX)
		return "a port is a number from 1 to 65535";
	*port = (uint16_t)value;
	return NULL;
}

/* NULL, or what is wrong with the part. */
static const char *parse_one(const char *text, size_t length, struct address *address)
{
	const char *host = text, *after, *end = text + length, *fault;
	bool bracketed = length > 0 && text[0] == '[';
	size_t host_length;

	for (size_t i = 0; i < length; i++)
		if (text[i] <= 32 || text[i] > 126 || text[i] == '/')
			return "no blanks, slashes or control characters";
	if (bracketed) {
		host++;
		after = memchr(host, ']', length - 1);
		if (!after)
			return "a bracket is open";
		host_length = (size_t)(after++ - host);
	} else {
		after = memchr(text, ':', length);
		after = after ? after : end;
		host_length = (size_t)(after - host);
	}
	if (host_length == 0 || host_length > ADDRESS_HOST_MAX)
		return "a host of 1 to 255 characters is needed";
	memcpy(address->host, host, host_length);
	address->host[host_length] = 0;
	if (bracketed) {
		struct in6_addr unused;
		char plain[ADDRESS_HOST_MAX + 1];

		memcpy(plain, address->host, sizeof plain);
		plain[strcspn(plain, "%")] = 0; /* a scope may follow */
		if (inet_pton(AF_INET6, plain, &unused) != 1)
			return "no IPv6 address in brackets";
	} else if (after < end && memchr(after + 1, ':', (size_t)(end - after - 1))) {
		return "an IPv6 address goes in brackets: [ADDRESS]:PORT";
	}
	if (after < end) {
		if (*after != ':')
			return "\":PORT\" or nothing after the host";
		fault = parse_port(after + 1, (size_t)(end - after - 1), &address->port);
		if (fault)
			return fault;
	}
	snprintf(address->text, sizeof address->text, bracketed ? "[%s]:%u" : "%s:%u", address->host,
		 address->port);
	return NULL;
}

int address_parse_list(const char *text, uint16_t default_port, const struct logger *logger,
		       struct address *addresses, size_t capacity)
{
	const char *part = text;
	size_t count = 0;

	for (;;) {
		size_t length = strcspn(part, ",");
		const char *fault = "too many servers";

		if (count < capacity) {
			addresses[count] = (struct address){ .port = default_port };
			fault = parse_one(part, length, &addresses[count]);
		}
		if (fault) {
			log_line(logger, LOG_LEVEL_ERROR, "bad server \"%.*s\" in \"%.256s\": %s",
				 (int)(length > 256 ? 256 : length), part, text, fault);
			return -EINVAL;
		}
		count++;
		if (part[length] == 0)
			return (int)count;
		part += length + 1;
	}
}

static struct address_lookup *ask(const struct address *address)
{
	struct address_lookup *lookup = calloc(1, sizeof *lookup);
	struct gaicb *list[1];

	if (!lookup)
		return NULL;
	snprintf(lookup->host, sizeof lookup->host, "%s", address->host);
	snprintf(lookup->port, sizeof lookup->port, "%u", address->port);
	lookup->hints = (struct addrinfo){ .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	lookup->request.ar_name = lookup->host;
	lookup->request.ar_service = lookup->port;
	lookup->request.ar_request = &lookup->hints;
	list[0] = &lookup->request;
	if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
		free(lookup);
		return NULL;
	}
	return lookup;
}

/* *found is owned by the caller: freeaddrinfo. */
static int resolve(struct address *address, uint64_t deadline_ms, struct addrinfo **found,
		   char reason[ADDRESS_REASON_MAX])
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	const struct gaicb *list[1];
	char port[8];
	uint64_t left;
	int rc;

	snprintf(port, sizeof port, "%u", address->port);
	if (getaddrinfo(address->host, port, &hints, found) == 0)
		return 0;
	if (!address->lookup)
		address->lookup = ask(address);
	if (!address->lookup) {
		snprintf(reason, ADDRESS_REASON_MAX, "the resolver has no resources");
		return -ECONNREFUSED;
	}
	list[0] = &address->lookup->request;
	rc = gai_error(&address->lookup->request);
	while (rc == EAI_INPROGRESS && (left = left_ms(deadline_ms)) > 0) {
		struct timespec wait = { .tv_sec = (time_t)(left / 1000),
					 .tv_nsec = (long)(left % 1000) * 1000000 };

		gai_suspend(list, 1, &wait); /* a signal may cut it short */
		rc = gai_error(&address->lookup->request);
	}
	if (rc == EAI_INPROGRESS) {
		snprintf(reason, ADDRESS_REASON_MAX, "the resolver does not answer");
		return -ETIMEDOUT;
	}
	*found = address->lookup->request.ar_result;
	free(address->lookup);
	address->lookup = NULL;
	if (rc == 0 && *found)
		return 0;
	snprintf(reason, ADDRESS_REASON_MAX, "the name cannot be resolved: %s", gai_strerror(rc));
	return -ECONNREFUSED;
}

/* Connects and closes again. 0 or a positive errno. */
static int try_connect(const struct addrinfo *candidate, uint64_t timeout_ms)
{
	int fd = socket(candidate->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint64_t deadline_ms = monotonic_ms() + timeout_ms;
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0, n = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, candidate->ai_addr, candidate->ai_addrlen) == 0)
		goto close;
	error = errno;
	if (error != EINPROGRESS)
		goto close;
	do {
		n = poll(&wait, 1, (int)left_ms(deadline_ms));
	} while (n < 0 && errno == EINTR && left_ms(deadline_ms) > 0);
	error = ETIMEDOUT;
	if (n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
close:
	close(fd);
	return error;
}

int address_reach(struct address *address, uint64_t deadline_ms, char numeric[INET6_ADDRSTRLEN + 20],
		  char reason[ADDRESS_REASON_MAX])
{
	struct addrinfo *found = NULL, *candidate;
	unsigned count = 0;
	int error = ECONNREFUSED, rc;

	rc = resolve(address, deadline_ms, &found, reason);
	if (rc)
		return rc;
	for (candidate = found; candidate && count < ADDRESSES_TRIED_MAX; candidate = candidate->ai_next)
		count++;
	/* Each gets its share of the time left, so that a dead first address does not eat it all. */
	for (candidate = found; candidate && count > 0; candidate = candidate->ai_next, count--) {
		error = try_connect(candidate, left_ms(deadline_ms) / count);
		if (error == 0)
			break;
	}
	if (error == 0 && getnameinfo(candidate->ai_addr, candidate->ai_addrlen, numeric,
				      INET6_ADDRSTRLEN + 20, NULL, 0, NI_NUMERICHOST) != 0)
		error = EAFNOSUPPORT;
	freeaddrinfo(found);
	if (error == 0)
		return 0;
	snprintf(reason, ADDRESS_REASON_MAX, "%s", strerror(error));
	return error == ETIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED;
}

void address_clear(struct address *address)
{
	struct address_lookup *lookup = address->lookup;

	address->lookup = NULL;
	if (!lookup)
		return;
	/* The C library's thread still writes to a question that it cannot take back: that one is left to it. */
	if (gai_cancel(&lookup->request) == EAI_NOTCANCELED)
		return;
	if (gai_error(&lookup->request) == 0 && lookup->request.ar_result)
		freeaddrinfo(lookup->request.ar_result);
	free(lookup);
}
