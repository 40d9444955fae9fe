/* SPDX-License-Identifier: Apache-2.0 */
/* Holds threads back until all of them exist, or sends them home. */
#ifndef FARKV_BENCH_GATE_H
#define FARKV_BENCH_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct bench_gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool decided;
	bool open;
};

void bench_gate_init(struct bench_gate *gate);
void bench_gate_destroy(struct bench_gate *gate);
/* Waits for the decision; whether to go in. */
bool bench_gate_pass(struct bench_gate *gate);
void bench_gate_decide(struct bench_gate *gate, bool open);

#endif
