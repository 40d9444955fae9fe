/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures were measured on. */
#ifndef FARKV_BENCH_MACHINE_H
#define FARKV_BENCH_MACHINE_H

struct bench_machine {
	char host[72];
	char kernel[136];
	char processor[128];
	long processors;
};

void bench_machine_read(struct bench_machine *machine);
/* The commit this program was built from, or "unknown". */
const char *bench_commit(void);

#endif
