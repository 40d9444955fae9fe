/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequentially consistent throughout: a thread sets its bit before it looks at `settled`, so of
 * two threads that settle neighbours at once, the later one in that order moves past both.
 */
#include "bench/window.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic uint64_t *bitmap_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool bit_get(const _Atomic uint64_t *bitmap, uint64_t index)
{
	return atomic_load(&bitmap[index / 64]) >> index % 64 & 1;
}

static void bit_set(_Atomic uint64_t *bitmap, uint64_t index)
{
	atomic_fetch_or(&bitmap[index / 64], UINT64_C(1) << index % 64);
}

bool bench_window_init(struct bench_window *window, uint64_t max)
{
	memset(window, 0, sizeof(*window));
	window->max = max;
	if (max == 0)
		return true;
	window->bitmap_bytes = (max / 64 + 1) * 8;
	window->answered = bitmap_map(window->bitmap_bytes);
	window->present = bitmap_map(window->bitmap_bytes);
	if (window->answered && window->present)
		return true;
	bench_window_destroy(window);
	return false;
}

void bench_window_destroy(struct bench_window *window)
{
	if (window->answered)
		munmap(window->answered, window->bitmap_bytes);
	if (window->present)
		munmap(window->present, window->bitmap_bytes);
	memset(window, 0, sizeof(*window));
}

uint64_t bench_window_take(struct bench_window *window)
{
	uint64_t index = atomic_load(&window->taken);

	do {
		if (index >= window->max)
			return UINT64_MAX;
	} while (!atomic_compare_exchange_weak(&window->taken, &index, index + 1));
	return index;
}

void bench_window_settle(struct bench_window *window, uint64_t index, bool present)
{
	uint64_t settled;

	assert(index < atomic_load(&window->taken));
	if (present)
		bit_set(window->present, index);
	bit_set(window->answered, index);
	settled = atomic_load(&window->settled);
	/* Ends at the first unanswered index; at most `taken` steps by all threads together. */
	while (settled < window->max && bit_get(window->answered, settled)) {
		if (atomic_compare_exchange_weak(&window->settled, &settled, settled + 1))
			settled++;
	}
}

uint64_t bench_window_settled(const struct bench_window *window)
{
	return atomic_load(&window->settled);
}

bool bench_window_present(const struct bench_window *window, uint64_t index)
{
	return bit_get(window->present, index);
}
