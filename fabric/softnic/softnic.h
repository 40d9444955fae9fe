/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software NIC tells beyond verbs: counts made by its engine, not by its callers.
 */
#ifndef FARKV_SOFTNIC_H
#define FARKV_SOFTNIC_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Work requests taken by the engine, by kind; doorbells = posts of at least one of them. */
struct softnic_counters {
	uint64_t read, write, cas, faa, send, write_with_imm;
	uint64_t doorbells, cqes_generated, cqes_polled, inline_writes;
};

/* Since the context was opened. Thread-safe; each count is whole, they are not of one moment. */
void softnic_counters(const struct ibv_context *context, struct softnic_counters *counters);

#endif
