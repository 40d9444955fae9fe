/* SPDX-License-Identifier: Apache-2.0 */
#include "cn/cache.h"

#include <criterion/criterion.h>
#include <string.h>

static struct cache_entry entry_of(uint64_t n)
{
	return (struct cache_entry){.control = n,
				    .offset = n * 64,
				    .slot_offset = n * 8,
				    .stamp = n,
				    .node = 1,
				    .size_class = 3};
}

Test(cache, finds_what_was_put_and_nothing_else)
{
	struct cache *cache = cache_create(1 << 20);
	struct cache_entry put = entry_of(7), found;

	cache_put(cache, 42, "key", 3, &put);
	cr_assert(cache_find(cache, 42, "key", 3, &found));
	cr_assert_eq(found.control, 7);
	cr_assert_eq(found.offset, 7 * 64);
	cr_assert_eq(found.slot_offset, 56);
	cr_assert_eq(found.stamp, 7);
	cr_assert_eq(found.node, 1);
	cr_assert_eq(found.size_class, 3);
	cr_assert_not(cache_find(cache, 43, "key", 3, &found));
	cache_destroy(cache);
}

Test(cache, same_hash_other_key_is_not_found)
{
	struct cache *cache = cache_create(1 << 20);
	struct cache_entry put = entry_of(7), found;

	cache_put(cache, 42, "1234567", 7, &put);
	cr_assert_not(cache_find(cache, 42, "123456", 6, &found));
	cr_assert_not(cache_find(cache, 42, "12345678", 8, &found));
	cr_assert_not(cache_find(cache, 42, "1234567\0", 8, &found),
		      "a longer key of equal prefix");
	cache_destroy(cache);
}

Test(cache, keys_of_every_length_class)
{
	struct cache *cache = cache_create(4 << 20);
	static const size_t lengths[] = {1, 8, 31, 32, 33, 127, 128, 129, 1023, 1024};
	char key[1024];
	struct cache_entry found;

	memset(key, 'k', sizeof key);
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		struct cache_entry put = entry_of(i + 1);

		cache_put(cache, i, key, lengths[i], &put);
		cr_assert(cache_find(cache, i, key, lengths[i], &found), "length %zu", lengths[i]);
		cr_assert_eq(found.control, i + 1);
	}
	cache_destroy(cache);
}

Test(cache, drop_spares_a_newer_instance)
{
	struct cache *cache = cache_create(1 << 20);
	struct cache_entry old = entry_of(7), new = entry_of(8), found;

	cache_put(cache, 42, "key", 3, &old);
	cache_put(cache, 42, "key", 3, &new);
	cache_drop(cache, 42, "key", 3, 7);
	cr_assert(cache_find(cache, 42, "key", 3, &found));
	cr_assert_eq(found.control, 8);
	cache_drop(cache, 42, "key", 3, 8);
	cr_assert_not(cache_find(cache, 42, "key", 3, &found));
	cache_destroy(cache);
}

Test(cache, one_of_no_bytes_holds_nothing)
{
	struct cache *cache = cache_create(0);
	struct cache_entry put = entry_of(7), found;

	cache_put(cache, 42, "key", 3, &put);
	cr_assert_not(cache_find(cache, 42, "key", 3, &found));
	cache_drop(cache, 42, "key", 3, 7);
	cache_destroy(cache);
}

Test(cache, stays_in_its_bytes_under_many_keys)
{
	struct cache *cache = cache_create(1 << 16);
	struct cache_entry found;
	unsigned hits = 0;

	for (uint64_t n = 1; n < 20000; n++) {
		struct cache_entry put = entry_of(n);

		cache_put(cache, n * UINT64_C(0x9e3779b97f4a7c15), &n, sizeof n, &put);
	}
	for (uint64_t n = 1; n < 20000; n++)
		if (cache_find(cache, n * UINT64_C(0x9e3779b97f4a7c15), &n, sizeof n, &found)) {
			cr_assert_eq(found.control, n);
			hits++;
		}
	cr_assert_gt(hits, 100);
	cr_assert_lt(hits, 65536 / 64);
	cache_destroy(cache);
}
