/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three tables by key length (up to 32, 128 and 1024 bytes), each of sets of four entries. An entry
 * is an array of atomic words:
 *
 *   0 sequence (odd: being written)   1 hash    2 key length | class | node
 *   3 control  4 offset  5 slot offset  6 stamp    7.. the key
 *
 * Reader: load sequence (acquire), copy what is needed (relaxed), fence (acquire), load sequence
 * again; equal and even means that the copy is of one writing. Writer: CAS the sequence to odd
 * (acquire), fence (release), store the words (relaxed), store the next even sequence (release).
 * The sequence is 64 bits: it does not come round.
 */
#include "cn/cache.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WAYS = 4, TABLES = 3, HEAD_WORDS = 7, KEY_WORDS_MAX = 1024 / 8 };

static const uint32_t table_key_bytes[TABLES] = {32, 128, 1024};
/* Of the bytes given: most keys are short. */
static const uint32_t table_share[TABLES] = {70, 20, 10};

struct table {
	_Atomic uint64_t *words;
	uint64_t sets;
	uint32_t stride; /* words in an entry */
};

struct cache {
	struct table tables[TABLES];
	void *map;
	size_t map_bytes;
};

struct cache *cache_create(uint64_t bytes)
{
	struct cache *cache = calloc(1, sizeof *cache);
	uint8_t *at;

	if (!cache || bytes == 0)
		return cache;
	cache->map_bytes = bytes;
	cache->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cache->map == MAP_FAILED) {
		free(cache);
		return NULL;
	}
	at = cache->map;
	for (unsigned t = 0; t < TABLES; t++) {
		struct table *table = &cache->tables[t];
		uint64_t share = bytes / 100 * table_share[t] & ~UINT64_C(63);

		table->stride = HEAD_WORDS + table_key_bytes[t] / 8;
		table->words = (_Atomic uint64_t *)at;
		table->sets = share / (table->stride * 8 * WAYS);
		at += share;
	}
	return cache;
}

void cache_destroy(struct cache *cache)
{
	if (!cache)
		return;
	if (cache->map)
		munmap(cache->map, cache->map_bytes);
	free(cache);
}

static struct table *table_for(struct cache *cache, size_t key_len)
{
	unsigned t = 0;

	while (t < TABLES - 1 && key_len > table_key_bytes[t])
		t++;
	return cache->tables[t].sets > 0 ? &cache->tables[t] : NULL;
}

static _Atomic uint64_t *set_of(struct table *table, uint64_t hash)
{
	/* The high half of the product spreads the hash over any number of sets. */
	uint64_t set =
		(uint64_t)((unsigned __int128)(hash * UINT64_C(0x9e3779b97f4a7c15)) * table->sets >>
			   64);

	return table->words + set * WAYS * table->stride;
}

static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit((_Atomic uint64_t *)word, memory_order_relaxed);
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t key_word(const uint8_t *key, size_t key_len, size_t at)
{
	uint64_t word = 0;

	memcpy(&word, key + at, key_len - at < 8 ? key_len - at : 8);
	return word;
}

static bool key_matches(const _Atomic uint64_t *entry, uint64_t hash, const uint8_t *key,
			size_t key_len)
{
	if (get(entry + 1) != hash || (get(entry + 2) & 0xffff) != key_len)
		return false;
	for (size_t at = 0; at < key_len; at += 8)
		if (get(entry + HEAD_WORDS + at / 8) != key_word(key, key_len, at))
			return false;
	return true;
}

static bool read_entry(_Atomic uint64_t *words, uint64_t hash, const uint8_t *key, size_t key_len,
		       struct cache_entry *entry)
{
	uint64_t sequence = atomic_load_explicit(words, memory_order_acquire), packed;

	if (sequence == 0 || sequence & 1 || !key_matches(words, hash, key, key_len))
		return false;
	packed = get(words + 2);
	entry->size_class = (uint8_t)(packed >> 16);
	entry->node = (uint32_t)(packed >> 32);
	entry->control = get(words + 3);
	entry->offset = get(words + 4);
	entry->slot_offset = get(words + 5);
	entry->stamp = get(words + 6);
	atomic_thread_fence(memory_order_acquire);
	return get(words) == sequence && entry->control != 0;
}

bool cache_find(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
		struct cache_entry *entry)
{
	struct table *table = table_for(cache, key_len);
	_Atomic uint64_t *set;

	if (!table)
		return false;
	set = set_of(table, hash);
	for (unsigned way = 0; way < WAYS; way++)
		if (read_entry(set + way * table->stride, hash, key, key_len, entry))
			return true;
	return false;
}

/* False: another writer is at it. */
static bool lock_entry(_Atomic uint64_t *words, uint64_t *sequence)
{
	*sequence = get(words);
	if (*sequence & 1 ||
	    !atomic_compare_exchange_strong_explicit(words, sequence, *sequence + 1,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	atomic_thread_fence(memory_order_release);
	return true;
}

static void unlock_entry(_Atomic uint64_t *words, uint64_t sequence)
{
	atomic_store_explicit(words, sequence + 2, memory_order_release);
}

/* The key's own way, else an unused one, else the one with the oldest stamp. */
static unsigned choose_way(struct table *table, _Atomic uint64_t *set, uint64_t hash,
			   const uint8_t *key, size_t key_len)
{
	unsigned chosen = 0;
	uint64_t oldest = UINT64_MAX;

	for (unsigned way = 0; way < WAYS; way++) {
		_Atomic uint64_t *words = set + way * table->stride;
		uint64_t stamp = get(words + 3) == 0 ? 0 : get(words + 6);

		if (get(words) != 0 && key_matches(words, hash, key, key_len))
			return way;
		if (stamp < oldest) {
			oldest = stamp;
			chosen = way;
		}
	}
	return chosen;
}

void cache_put(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
	       const struct cache_entry *entry)
{
	struct table *table = table_for(cache, key_len);
	_Atomic uint64_t *set, *words;
	uint64_t sequence;

	if (!table)
		return;
	set = set_of(table, hash);
	words = set + choose_way(table, set, hash, key, key_len) * table->stride;
	if (!lock_entry(words, &sequence))
		return;
	put(words + 1, hash);
	put(words + 2, (uint64_t)entry->node << 32 | (uint64_t)entry->size_class << 16 | key_len);
	put(words + 3, entry->control);
	put(words + 4, entry->offset);
	put(words + 5, entry->slot_offset);
	put(words + 6, entry->stamp);
	for (size_t at = 0; at < key_len; at += 8)
		put(words + HEAD_WORDS + at / 8, key_word(key, key_len, at));
	unlock_entry(words, sequence);
}

void cache_drop(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
		uint64_t control)
{
	struct table *table = table_for(cache, key_len);
	_Atomic uint64_t *set;
	uint64_t sequence;

	if (!table)
		return;
	set = set_of(table, hash);
	for (unsigned way = 0; way < WAYS; way++) {
		_Atomic uint64_t *words = set + way * table->stride;

		if (!key_matches(words, hash, key, key_len) || get(words + 3) != control)
			continue;
		if (!lock_entry(words, &sequence))
			return;
		if (key_matches(words, hash, key, key_len) && get(words + 3) == control)
			put(words + 3, 0);
		unlock_entry(words, sequence);
		return;
	}
}
