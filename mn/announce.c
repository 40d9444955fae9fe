/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/announce.h"

#include "mn/clock.h"
#include "mn/tickets.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	RENEW_MS = CLUSTER_RECORD_TTL_S * 1000 / 3,
	POLL_OPEN_MS = 2,      /* a request or an answer is under way */
	POLL_BUSY_MS = 5,      /* for BUSY_MS after a hand-shake has moved */
	POLL_IDLE_MS = 50,     /* a look at memcached costs some 100 us of a core */
	POLL_TROUBLE_MS = 500, /* memcached is away */
	BUSY_MS = 60,
	ROUND_MS = 250,
	RING = 2 * TICKETS_MAX, /* a ticket has one event and one answer under way at most, and
				   READY or EXPIRED after it */
};

struct answer {
	uint64_t ticket;
	struct connect_response response;
};

struct announce {
	struct cluster cluster;
	const struct logger *logger; /* borrowed */
	pthread_t thread;
	bool started;
	uint32_t mn_id;
	int main_fd; /* wakes the main thread */
	int wake_fd; /* wakes ours */

	pthread_mutex_t mutex; /* guards the following */
	struct announce_event events[RING];
	struct answer answers[TICKETS_MAX];
	uint32_t event_head, event_count, answer_head, answer_count;
	struct endpoint address;
	bool readdressed;
	bool stopping;

	/* The thread's own, once it runs. */
	struct mn_record record;
	uint64_t predecessor; /* dead: no rival */
	struct shard_map map;
	struct tickets tickets;
	uint64_t renew_at_ms, moved_at_ms;
	bool trouble;  /* memcached is away; said once */
	bool conflict; /* another process publishes as this node; said once */
	bool unowned;  /* the map gives this node no shard; said once */
};

static bool is_trouble(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -EPROTO || rc == -ENOMEM;
}

static void wake(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof one);

	(void)n; /* the counter is full: it is awake already */
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof count);

	(void)n; /* non-blocking: nothing there is fine */
}

int announce_create(const char *cluster, const char *secret_file, uint32_t mn_id,
		    struct rendezvous *rendezvous, const struct logger *logger,
		    struct announce **announce)
{
	struct announce *a = calloc(1, sizeof *a);
	uint64_t last;
	int rc;

	if (!a)
		return -ENOMEM;
	a->logger = logger;
	a->mn_id = mn_id;
	pthread_mutex_init(&a->mutex, NULL);
	a->main_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = a->main_fd < 0 || a->wake_fd < 0 ? -errno : 0;
	if (!rc)
		rc = cluster_init(&a->cluster, cluster, rendezvous, secret_file, logger);
	/* Tickets from before our start are not for us: their clients know another incarnation. */
	if (!rc)
		rc = cluster_read_tickets(&a->cluster, mn_id, &last);
	if (rc) {
		announce_destroy(a);
		return rc;
	}
	tickets_init(&a->tickets, last);
	*announce = a;
	return 0;
}

const struct seal *announce_seal(const struct announce *announce)
{
	return &announce->cluster.seal;
}

/* Does somebody else publish as this node? -ENOENT and unreadable records are no such proof. */
static int look_for_rival(struct announce *a)
{
	struct mn_record found;
	int rc = cluster_read_mn(&a->cluster, a->mn_id, &found);
	bool rival = rc == 0 && found.incarnation != a->record.incarnation &&
		     found.incarnation != a->predecessor;

	if (rival && !a->conflict) {
		uint64_t now = clock_real_ms();

		log_line(a->logger, a->started ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
			 "memcached holds a record of memory node %" PRIu32
			 ", incarnation %016" PRIx64 ", published %" PRIu64
			 " s ago, that is not ours; if that farkv-mn still runs, stop it: two with "
			 "one --id lose data",
			 a->mn_id, found.incarnation,
			 now > found.published_ms ? (now - found.published_ms) / 1000 : 0);
	}
	a->conflict = rival;
	return is_trouble(rc) ? rc : 0;
}

static int publish(struct announce *a, bool *owns_shards)
{
	int rc = look_for_rival(a);

	if (!rc)
		rc = cluster_join_map(&a->cluster, a->mn_id, &a->map, owns_shards);
	if (rc)
		return rc;
	a->record.published_ms = clock_real_ms();
	return cluster_publish_mn(&a->cluster, &a->record);
}

/* Passes an event to the main thread. */
static void tell(struct announce *a, const struct announce_event *event)
{
	pthread_mutex_lock(&a->mutex);
	assert(a->event_count < RING);
	a->events[(a->event_head + a->event_count++) % RING] = *event;
	pthread_mutex_unlock(&a->mutex);
	wake(a->main_fd);
}

static void set_trouble(struct announce *a, bool trouble)
{
	if (trouble && !a->trouble)
		log_line(a->logger, LOG_LEVEL_WARNING,
			 "memcached is away: connected clients are served on, new ones cannot "
			 "connect; trying again");
	if (!trouble && a->trouble)
		log_line(a->logger, LOG_LEVEL_NOTICE,
			 "memcached is back: memory node %" PRIu32 " is published again", a->mn_id);
	a->trouble = trouble;
}

static void set_unowned(struct announce *a, bool owns_shards)
{
	if (!owns_shards && !a->unowned)
		log_line(a->logger, LOG_LEVEL_WARNING,
			 "memory node %" PRIu32 " owns no shard: clients have opened the cluster "
			 "without it, and moving shards is not built yet",
			 a->mn_id);
	a->unowned = !owns_shards;
}

static int renew(struct announce *a, uint64_t now)
{
	bool owns_shards = true;
	int rc = publish(a, &owns_shards);

	if (rc == 0) {
		set_trouble(a, false);
		set_unowned(a, owns_shards);
		a->renew_at_ms = now + RENEW_MS;
	} else if (!is_trouble(rc)) {
		a->renew_at_ms =
			now + POLL_TROUBLE_MS; /* contention or a foreign record: logged below us */
		rc = 0;
	}
	return rc;
}

static void take_answers(struct announce *a, uint64_t now)
{
	pthread_mutex_lock(&a->mutex);
	while (a->answer_count) {
		const struct answer *answer = &a->answers[a->answer_head];

		tickets_answer(&a->tickets, answer->ticket, &answer->response, now);
		a->answer_head = (a->answer_head + 1) % TICKETS_MAX;
		a->answer_count--;
		a->moved_at_ms = now;
	}
	if (a->readdressed) {
		a->record.address = a->address;
		a->readdressed = false;
		a->renew_at_ms = now;
	}
	pthread_mutex_unlock(&a->mutex);
}

static int read_counter(struct announce *a, uint64_t now)
{
	uint64_t counter, passed_over, before = a->tickets.last;
	bool restarted;
	int rc = cluster_read_tickets(&a->cluster, a->mn_id, &counter);

	if (rc)
		return rc;
	passed_over = tickets_observe(&a->tickets, counter, now, &restarted);
	if (passed_over)
		log_line(a->logger, LOG_LEVEL_WARNING,
			 "%" PRIu64 " hand-shakes passed over: more than %d at once", passed_over,
			 TICKETS_MAX);
	if (restarted)
		a->renew_at_ms = now; /* memcached has lost our record too */
	if (a->tickets.last != before)
		a->moved_at_ms = now;
	return 0;
}

static int step_wanted(struct announce *a, struct ticket *ticket, uint64_t now)
{
	struct announce_event event = {.kind = ANNOUNCE_CONNECT, .ticket = ticket->number};
	int rc = cluster_read_request(&a->cluster, a->mn_id, ticket->number, &event.request);

	if (is_trouble(rc))
		return rc;
	if (rc == 0 && ticket_asked(&a->tickets, ticket, event.request.nonce))
		tell(a, &event);
	else if ((rc && rc != -ENOENT) || now >= ticket->deadline_ms)
		ticket_done(&a->tickets, ticket); /* unreadable (logged), or its client is gone */
	else
		ticket_postpone(ticket, now);
	return 0;
}

static int step_answered(struct announce *a, struct ticket *ticket, uint64_t now)
{
	int rc = cluster_write_response(&a->cluster, a->mn_id, ticket->number, &ticket->response);

	if (is_trouble(rc))
		return rc;
	ticket_written(&a->tickets, ticket, now);
	return 0;
}

static int step_waiting(struct announce *a, struct ticket *ticket, uint64_t now)
{
	struct announce_event event = {.kind = ANNOUNCE_READY,
				       .ticket = ticket->number,
				       .qpn = ticket->response.endpoint.qpn};

	if (!cluster_is_ready(&a->cluster, a->mn_id, ticket->number)) {
		if (now < ticket->deadline_ms) {
			ticket_postpone(ticket, now);
			return 0;
		}
		event.kind = ANNOUNCE_EXPIRED;
	}
	tell(a, &event);
	ticket_done(&a->tickets, ticket);
	return 0;
}

static int step_tickets(struct announce *a, uint64_t now)
{
	int rc = 0;

	for (unsigned i = 0; a->tickets.count && !rc && i < TICKETS_MAX; i++) {
		struct ticket *ticket = &a->tickets.slots[i];

		if (clock_ms() - now > ROUND_MS)
			break; /* memcached has become slow: the rest after the next look at the
				  counter */
		if (ticket->state == TICKET_NONE || ticket->state == TICKET_ASKED ||
		    now < ticket->look_at_ms)
			continue;
		if (ticket->state == TICKET_WANTED)
			rc = step_wanted(a, ticket, now);
		else if (ticket->state == TICKET_ANSWERED)
			rc = step_answered(a, ticket, now);
		else
			rc = step_waiting(a, ticket, now);
	}
	return rc;
}

static bool is_open(const struct tickets *tickets)
{
	for (unsigned i = 0; tickets->count && i < TICKETS_MAX; i++)
		if (tickets->slots[i].state == TICKET_WANTED ||
		    tickets->slots[i].state == TICKET_ANSWERED)
			return true;
	return false;
}

static int poll_interval(const struct announce *a, uint64_t now)
{
	if (now - a->moved_at_ms >= BUSY_MS)
		return POLL_IDLE_MS;
	return is_open(&a->tickets) ? POLL_OPEN_MS : POLL_BUSY_MS;
}

/* One round; how long to sleep after it. */
static int round_trip(struct announce *a)
{
	uint64_t now = clock_ms();
	int rc = 0;

	take_answers(a, now);
	if (a->trouble || now >= a->renew_at_ms)
		rc = renew(a, now);
	if (!rc)
		rc = read_counter(a, now); /* first: it tells "away" from "not there", which
					      cluster_is_ready cannot */
	if (!rc)
		rc = step_tickets(a, now);
	if (is_trouble(rc)) {
		set_trouble(a, true);
		tickets_extend(&a->tickets, clock_ms() - now + POLL_TROUBLE_MS);
		return POLL_TROUBLE_MS;
	}
	return poll_interval(a, now);
}

static bool must_stop(struct announce *a)
{
	bool stopping;

	pthread_mutex_lock(&a->mutex);
	stopping = a->stopping;
	pthread_mutex_unlock(&a->mutex);
	return stopping;
}

static void *announce_main(void *arg)
{
	struct announce *a = arg;

	while (!must_stop(a)) {
		struct pollfd wait = {.fd = a->wake_fd, .events = POLLIN};

		if (poll(&wait, 1, round_trip(a)) > 0)
			drain(a->wake_fd);
	}
	/* A memcached that is known to be away is not waited for once more: the record ends with
	 * its TTL. */
	if (!a->trouble && cluster_withdraw_mn(&a->cluster, a->mn_id, a->record.incarnation) == 0)
		cluster_leave_map(&a->cluster, a->mn_id);
	return NULL;
}

int announce_start(struct announce *announce, const struct mn_record *record, uint64_t predecessor,
		   bool *owns_shards)
{
	int rc;

	announce->record = *record;
	announce->predecessor = predecessor;
	rc = publish(announce, owns_shards);
	if (rc)
		return rc;
	set_unowned(announce, *owns_shards);
	announce->renew_at_ms = clock_ms() + RENEW_MS;
	announce->conflict = false; /* ours is there now: another one from here on is alive */
	announce->started = true;
	rc = -pthread_create(&announce->thread, NULL, announce_main, announce);
	if (rc) {
		announce->started = false;
		cluster_withdraw_mn(&announce->cluster, announce->mn_id, record->incarnation);
		log_line(announce->logger, LOG_LEVEL_ERROR,
			 "cannot start the rendezvous thread: %s", strerror(-rc));
	}
	return rc;
}

int announce_fd(const struct announce *announce)
{
	return announce->main_fd;
}

bool announce_take(struct announce *announce, struct announce_event *event)
{
	bool there;

	pthread_mutex_lock(&announce->mutex);
	there = announce->event_count > 0;
	if (there) {
		*event = announce->events[announce->event_head];
		announce->event_head = (announce->event_head + 1) % RING;
		announce->event_count--;
	} else {
		drain(announce->main_fd); /* under the mutex: nothing was told since */
	}
	pthread_mutex_unlock(&announce->mutex);
	return there;
}

void announce_answer(struct announce *announce, uint64_t ticket,
		     const struct connect_response *response)
{
	struct answer *answer;

	pthread_mutex_lock(&announce->mutex);
	assert(announce->answer_count < TICKETS_MAX);
	answer = &announce->answers[(announce->answer_head + announce->answer_count++) %
				    TICKETS_MAX];
	answer->ticket = ticket;
	answer->response = *response;
	pthread_mutex_unlock(&announce->mutex);
	wake(announce->wake_fd);
}

void announce_readdress(struct announce *announce, const struct endpoint *address)
{
	pthread_mutex_lock(&announce->mutex);
	announce->address = *address;
	announce->readdressed = true;
	pthread_mutex_unlock(&announce->mutex);
	wake(announce->wake_fd);
}

void announce_stop(struct announce *announce)
{
	if (!announce->started)
		return;
	pthread_mutex_lock(&announce->mutex);
	announce->stopping = true;
	pthread_mutex_unlock(&announce->mutex);
	wake(announce->wake_fd);
	pthread_join(announce->thread, NULL);
	announce->started = false;
}

void announce_destroy(struct announce *announce)
{
	if (!announce)
		return;
	announce_stop(announce);
	if (announce->main_fd >= 0)
		close(announce->main_fd);
	if (announce->wake_fd >= 0)
		close(announce->wake_fd);
	pthread_mutex_destroy(&announce->mutex);
	free(announce);
}
