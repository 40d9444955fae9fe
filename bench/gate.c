/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gate.h"

void bench_gate_init(struct bench_gate *gate)
{
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->changed, NULL);
	gate->decided = false;
	gate->open = false;
}

void bench_gate_destroy(struct bench_gate *gate)
{
	pthread_cond_destroy(&gate->changed);
	pthread_mutex_destroy(&gate->lock);
}

bool bench_gate_pass(struct bench_gate *gate)
{
	bool open;

	pthread_mutex_lock(&gate->lock);
	while (!gate->decided)
		pthread_cond_wait(&gate->changed, &gate->lock);
	open = gate->open;
	pthread_mutex_unlock(&gate->lock);
	return open;
}

void bench_gate_decide(struct bench_gate *gate, bool open)
{
	pthread_mutex_lock(&gate->lock);
	gate->decided = true;
	gate->open = open;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}
