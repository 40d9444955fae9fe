/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server is: a host by name or number, and a port; and which of the addresses behind the name
 * answers. Everything that may wait has a deadline, the resolver too.
 */
#ifndef FARKV_FABRIC_ADDRESS_H
#define FARKV_FABRIC_ADDRESS_H

#include "fabric/log.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ADDRESS_HOST_MAX = 255,
	ADDRESS_TEXT_MAX = ADDRESS_HOST_MAX + 10, /* "[HOST]:PORT", terminated */
	ADDRESS_REASON_MAX = 128,
};

struct address {
	char host[ADDRESS_HOST_MAX + 1];
	uint16_t port;
	char text[ADDRESS_TEXT_MAX]; /* as in messages */
	struct address_lookup *lookup; /* owned: a question the resolver has not answered yet */
};

/*
 * HOST[:PORT][,HOST[:PORT]...]; host names, IPv4, IPv6 in brackets. Fills at most `capacity` addresses and returns how
 * many; -EINVAL with the bad part in the log.
 */
int address_parse_list(const char *text, uint16_t default_port, const struct logger *logger,
		       struct address *addresses, size_t capacity);
/*
 * Finds the first address behind the name that takes a TCP connection, as a number, before deadline_ms
 * (monotonic_ms). -ETIMEDOUT, -ECONNREFUSED; reason says more.
 */
int address_reach(struct address *address, uint64_t deadline_ms, char numeric[INET6_ADDRSTRLEN + 20],
		  char reason[ADDRESS_REASON_MAX]);
/* Lets go of a pending question. */
void address_clear(struct address *address);

uint64_t monotonic_ms(void);

#endif
