/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address cache: full key -> where its instance was last seen. Shared by the sessions of a
 * process, of fixed size, without locks: an entry is guarded by a sequence word; a reader that
 * meets a writer misses, a writer that meets a writer gives up. An entry is a hint: what it leads
 * to is checked by the reader of the block.
 */
#ifndef FARKV_CN_CACHE_H
#define FARKV_CN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

struct cache_entry {
	uint64_t control;     /* the LIVE word: names the instance */
	uint64_t offset;      /* of the block */
	uint64_t slot_offset; /* of the slot that leads to it */
	uint64_t stamp;	      /* cn/epoch.h */
	uint32_t node;	      /* index of the memory node in the store */
	uint8_t size_class;
};

/* bytes 0: a cache that never holds anything. NULL: no memory. */
struct cache *cache_create(uint64_t bytes);
void cache_destroy(struct cache *cache);

/* All thread-safe. hash: 64 bits of the key's hash. */
bool cache_find(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
		struct cache_entry *entry);
void cache_put(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
	       const struct cache_entry *entry);
/* Drops the key's entry if it still names the instance `control`. */
void cache_drop(struct cache *cache, uint64_t hash, const void *key, size_t key_len,
		uint64_t control);

#endif
