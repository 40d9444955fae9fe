/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake_farkv.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cn/farkv.h"

enum { ITEMS_MAX = 1 << 16, KEY_MAX = 64, VALUE_MAX = 1100 };

struct item {
	uint32_t key_len; /* 0: never used */
	bool present;
	bool has_before;
	char key[KEY_MAX];
	uint32_t value_len, before_len;
	char value[VALUE_MAX], before[VALUE_MAX];
};

struct table {
	pthread_mutex_t lock;
	uint64_t items, misses, turns;
	struct item slots[ITEMS_MAX];
};

struct pending {
	struct farkv_request request;
	struct farkv_result result;
	bool used, applied, late;
	char key[KEY_MAX];
	char value[VALUE_MAX];
};

struct farkv {
	uint32_t depth;
	uint64_t opened_ns;
};

struct farkv_session {
	struct farkv *store;
	uint64_t random;
	uint32_t in_flight;
	bool staged;
	struct farkv_session_stats stats;
	struct pending pending[];
};

struct fake_settings fake_settings;
static struct table *table;

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_farkv_reset(void)
{
	pthread_mutexattr_t attr;

	if (table)
		munmap(table, sizeof(*table));
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(table != MAP_FAILED);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&table->lock, &attr);
}

uint64_t fake_farkv_items(void)
{
	return table->items;
}

uint64_t fake_farkv_misses(void)
{
	return table->misses;
}

static struct item *item_find(const char *key, size_t key_len)
{
	uint64_t hash = 14695981039346656037u;
	struct item *item;

	for (size_t i = 0; i < key_len; i++)
		hash = (hash ^ (unsigned char)key[i]) * 1099511628211u;
	hash ^= hash >> 32;
	for (uint32_t i = 0; i < ITEMS_MAX; i++) {
		item = &table->slots[(hash + i) % ITEMS_MAX];
		if (item->key_len == 0) {
			item->key_len = (uint32_t)key_len;
			memcpy(item->key, key, key_len);
			return item;
		}
		if (item->key_len == key_len && memcmp(item->key, key, key_len) == 0)
			return item;
	}
	return NULL;
}

/* With the table locked: is it time to lie? */
static bool lying(enum fake_lie lie)
{
	return fake_settings.lie == lie && ++table->turns % fake_settings.lie_every == 0;
}

static void value_set(struct item *item, const struct pending *pending)
{
	memcpy(item->before, item->value, item->value_len);
	item->before_len = item->value_len;
	item->has_before = item->present;
	memcpy(item->value, pending->value, pending->request.value_len);
	item->value_len = (uint32_t)pending->request.value_len;
	table->items += !item->present;
	item->present = true;
}

static int get_apply(struct item *item, struct pending *pending)
{
	const char *value = item->value;
	uint32_t value_len = item->value_len;

	if (!item->present) {
		table->misses++;
		return FARKV_ENOTFOUND;
	}
	if (lying(FAKE_LIE_VANISHED))
		return FARKV_ENOTFOUND;
	if (item->has_before && lying(FAKE_LIE_STALE_READ)) {
		value = item->before;
		value_len = item->before_len;
	}
	for (uint32_t i = 0; i < ITEMS_MAX && fake_settings.lie == FAKE_LIE_WRONG_KEY; i++) {
		if (&table->slots[i] == item || !table->slots[i].present)
			continue;
		if (lying(FAKE_LIE_WRONG_KEY))
			value = table->slots[i].value;
		break;
	}
	pending->result.value_len = value_len;
	if (value_len > pending->request.buffer_bytes)
		return FARKV_ETOOSMALL;
	memcpy(pending->request.buffer, value, value_len);
	if (item->has_before && lying(FAKE_LIE_TORN))
		memcpy((char *)pending->request.buffer + value_len / 2,
		       item->before + value_len / 2, value_len / 2);
	return 0;
}

static int write_apply(struct item *item, struct pending *pending)
{
	switch (pending->request.op) {
	case FARKV_INSERT:
		if (item->present && !lying(FAKE_LIE_TWICE))
			return FARKV_EEXISTS;
		value_set(item, pending);
		return 0;
	case FARKV_UPDATE:
		if (!item->present)
			return FARKV_ENOTFOUND;
		if (lying(FAKE_LIE_LOST_UPDATE))
			return 0;
		value_set(item, pending);
		return lying(FAKE_LIE_VOID) ? FARKV_ETIMEDOUT : 0;
	case FARKV_DELETE:
		if (!item->present)
			return FARKV_ENOTFOUND;
		if (lying(FAKE_LIE_RISEN))
			return 0;
		item->present = false;
		table->items--;
		return 0;
	default:
		value_set(item, pending);
		return 0;
	}
}

static void apply(struct pending *pending)
{
	struct item *item;

	pthread_mutex_lock(&table->lock);
	item = item_find(pending->key, pending->request.key_len);
	if (!item)
		pending->result.status = FARKV_ENOSPC;
	else if (pending->request.op == FARKV_GET)
		pending->result.status = get_apply(item, pending);
	else
		pending->result.status = write_apply(item, pending);
	pthread_mutex_unlock(&table->lock);
	pending->applied = true;
}

const char *farkv_strerror(int error)
{
	return error == 0 ? "no error" : "an error of the fake";
}

const char *farkv_version(void)
{
	return "0.0.0-fake";
}

int farkv_options_init_sized(struct farkv_options *options, size_t struct_bytes)
{
	memset(options, 0, struct_bytes);
	options->struct_bytes = struct_bytes;
	options->cluster = "fake";
	options->device = "auto";
	options->depth = 64;
	return 0;
}

int farkv_open(const struct farkv_options *options, struct farkv **store)
{
	if (!table)
		fake_farkv_reset();
	*store = calloc(1, sizeof(**store));
	(*store)->depth = options->depth;
	(*store)->opened_ns = clock_ns();
	return 0;
}

int farkv_close(struct farkv *store)
{
	free(store);
	return 0;
}

int farkv_session_open(struct farkv *store, struct farkv_session **session)
{
	static _Atomic uint64_t seeds;

	*session = calloc(1, sizeof(**session) + store->depth * sizeof(struct pending));
	(*session)->store = store;
	(*session)->random = ++seeds * 0x9e3779b97f4a7c15u + clock_ns();
	return 0;
}

int farkv_session_close(struct farkv_session *session)
{
	if (!session)
		return 0;
	farkv_wait(session);
	free(session);
	return 0;
}

int farkv_submit(struct farkv_session *session, const struct farkv_request *request)
{
	struct pending *pending = session->pending;

	if (request->key_len > KEY_MAX || request->value_len > VALUE_MAX)
		return FARKV_EINVAL;
	if (session->in_flight >= session->store->depth)
		return FARKV_EAGAIN;
	while (pending->used)
		pending++;
	memset(pending, 0, offsetof(struct pending, key));
	pending->request = *request;
	pending->used = true;
	pending->result.op = request->op;
	pending->result.round_trips = 1;
	memcpy(pending->key, request->key, request->key_len);
	if (request->value_len > 0)
		memcpy(pending->value, request->value, request->value_len);
	session->in_flight++;
	session->staged = true;
	session->stats.verbs.round_trips++;
	if (request->op == FARKV_GET)
		session->stats.verbs.read++;
	else
		session->stats.verbs.cas++;
	return 0;
}

static uint64_t roll(struct farkv_session *session)
{
	session->random ^= session->random << 13;
	session->random ^= session->random >> 7;
	session->random ^= session->random << 17;
	return session->random >> 20;
}

static bool frozen(const struct farkv_session *session)
{
	uint64_t age_ns = clock_ns() - session->store->opened_ns;

	return fake_settings.freeze_ns > 0 && age_ns >= fake_settings.freeze_at_ns &&
	       age_ns < fake_settings.freeze_at_ns + fake_settings.freeze_ns;
}

/* The outcome is unknown: answered before it happened, and it may happen later. */
static bool unknown_answer(struct farkv_session *session, struct pending *pending)
{
	if (fake_settings.lie != FAKE_LIE_UNKNOWN || pending->request.op == FARKV_GET ||
	    roll(session) % fake_settings.lie_every != 0)
		return false;
	pending->late = true;
	pending->result.status = FARKV_EUNKNOWN;
	return true;
}

/* One step of one operation; 1 when it was answered. */
static int step(struct farkv_session *session, struct pending *pending)
{
	struct farkv_result result;
	farkv_done_fn done = pending->request.done;
	void *arg = pending->request.arg;

	if (!pending->applied && roll(session) % 2 == 0)
		return 0;
	if (pending->late) { /* answered already; happens or not */
		if (roll(session) % 2 == 0)
			apply(pending);
		pending->used = false;
		session->in_flight--;
		return 0;
	}
	if (!pending->applied && unknown_answer(session, pending)) {
		done(&pending->result, arg);
		return 1;
	}
	if (!pending->applied) {
		apply(pending);
		return 0;
	}
	if (roll(session) % 2 == 0)
		return 0;
	pending->used = false;
	session->in_flight--;
	result = pending->result;
	done(&result, arg);
	return 1;
}

int farkv_poll(struct farkv_session *session)
{
	int answered = 0;

	if (frozen(session))
		return 0;
	session->stats.verbs.doorbells += session->staged;
	session->staged = false;
	for (uint32_t i = 0; i < session->store->depth; i++) {
		if (session->pending[i].used)
			answered += step(session, &session->pending[i]);
	}
	session->stats.verbs.cqes += answered > 0;
	return answered;
}

int farkv_wait(struct farkv_session *session)
{
	while (session->in_flight > 0)
		farkv_poll(session);
	return 0;
}

int farkv_flush(struct farkv_session *session)
{
	return farkv_wait(session);
}

void farkv_session_stats(const struct farkv_session *session, struct farkv_session_stats *stats)
{
	*stats = session->stats;
}

int farkv_stat(struct farkv_session *session, struct farkv_mn_stats *stats, size_t *count)
{
	(void)session;
	memset(stats, 0, sizeof(*stats));
	stats->is_softnic = 1;
	memcpy(stats->device, "fake", 5);
	*count = 1;
	return 0;
}
