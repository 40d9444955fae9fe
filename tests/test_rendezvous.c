/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous twice: the same answers from memcached and from its twin; and what only
 * memcached can do wrong. Each test that needs memcached starts its own, on a free port.
 */
#include "fabric/rendezvous.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 400, BOUND_MS = TIMEOUT_MS * 3 / 2, START_TRIES = 500 };

/* What was logged. */
static char log_text[8192];
static unsigned log_lines;

static void keep_line(int level, const char *line, void *arg)
{
	size_t at = strlen(log_text);

	(void)arg;
	if (level <= LOG_LEVEL_WARNING)
		log_lines++;
	snprintf(log_text + at, sizeof log_text - at, "%s\n", line);
}

static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* A TCP socket on 127.0.0.1, or ::1; listening if so wanted. */
static int bound_socket(int family, bool listening, unsigned *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	void *address = family == AF_INET ? (void *)&four : (void *)&six;
	socklen_t size = family == AF_INET ? sizeof four : sizeof six;
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, address, size) < 0 || getsockname(fd, address, &size) < 0)
		return -1;
	if (listening)
		cr_assert_eq(listen(fd, 8), 0);
	*port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

static bool takes_connections(unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int rc = connect(fd, (struct sockaddr *)&address, sizeof address);

	close(fd);
	return rc == 0;
}

struct memcached {
	pid_t pid;
	unsigned port;
	char servers[64];
};

static void memcached_start(struct memcached *m, unsigned port)
{
	char text[8];

	if (port == 0)
		close(bound_socket(AF_INET, false, &port));
	m->port = port;
	snprintf(text, sizeof text, "%u", port);
	snprintf(m->servers, sizeof m->servers, "127.0.0.1:%u", port);
	m->pid = fork();
	if (m->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp("memcached", "memcached", "-u", "root", "-l", "127.0.0.1,::1", "-p", text, "-m", "16",
		       "-t", "1", (char *)NULL);
		_exit(127);
	}
	for (unsigned tries = 0; tries < START_TRIES && !takes_connections(port); tries++)
		sleep_ms(10);
	cr_assert(takes_connections(port), "memcached does not start");
}

static void memcached_stop(struct memcached *m)
{
	kill(m->pid, SIGCONT);
	kill(m->pid, SIGKILL);
	waitpid(m->pid, NULL, 0);
}

/* Returns when it has stopped: kill alone returns earlier. */
static void memcached_pause(struct memcached *m)
{
	int status;

	kill(m->pid, SIGSTOP);
	cr_assert_eq(waitpid(m->pid, &status, WUNTRACED), m->pid);
	cr_assert(WIFSTOPPED(status));
}

static void conformance(struct rendezvous *r)
{
	char value[16];
	size_t length = 99;
	uint64_t cas, later, counter;

	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ENOENT);
	cr_assert_eq(rendezvous_swap(r, "k", "x", 1, 0, 1), -ENOENT);
	cr_assert_eq(rendezvous_delete(r, "k"), 0);
	cr_assert_eq(rendezvous_add(r, "k", "one", 3, 0), 0);
	cr_assert_eq(rendezvous_add(r, "k", "two", 3, 0), -EEXIST);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, &cas), 0);
	cr_assert_eq(length, 3);
	cr_assert_eq(memcmp(value, "one", 3), 0);
	cr_assert_eq(rendezvous_get(r, "k", value, 2, &length, NULL), -EMSGSIZE);
	cr_assert_eq(rendezvous_get(r, "k", value, 3, &length, NULL), 0);
	cr_assert_eq(rendezvous_swap(r, "k", "three", 5, 100, cas), 0);
	cr_assert_eq(rendezvous_swap(r, "k", "four", 4, 100, cas), -EAGAIN);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, &later), 0);
	cr_assert_neq(cas, later);
	cr_assert_eq(length, 5);
	cr_assert_eq(rendezvous_set(r, "k", "", 0, 0), 0);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), 0);
	cr_assert_eq(length, 0);
	cr_assert_eq(rendezvous_set(r, "k", "\0\r\nEND\r\n", 8, 0), 0);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), 0);
	cr_assert_eq(length, 8);
	cr_assert_eq(memcmp(value, "\0\r\nEND\r\n", 8), 0);
	cr_assert_eq(rendezvous_delete(r, "k"), 0);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ENOENT);

	for (uint64_t i = 1; i <= 12; i++) {
		cr_assert_eq(rendezvous_increment(r, "c", 0, &counter), 0);
		cr_assert_eq(counter, i);
	}
	cr_assert_eq(rendezvous_get(r, "c", value, sizeof value, &length, NULL), 0);
	cr_assert_eq(length, 2);
	cr_assert_eq(memcmp(value, "12", 2), 0);
	cr_assert_eq(rendezvous_set(r, "c", "word", 4, 0), 0);
	cr_assert_eq(rendezvous_increment(r, "c", 0, &counter), -EPROTO);
}

static void keys_and_sizes(struct rendezvous *r)
{
	static char big[RENDEZVOUS_VALUE_MAX + 1], back[RENDEZVOUS_VALUE_MAX];
	char key[RENDEZVOUS_KEY_MAX + 2];
	size_t length;

	memset(key, 'k', sizeof key);
	key[250] = 0;
	cr_assert_eq(rendezvous_set(r, key, "x", 1, 0), 0);
	cr_assert_eq(rendezvous_get(r, key, back, sizeof back, &length, NULL), 0);
	key[250] = 'k';
	key[251] = 0;
	cr_assert_eq(rendezvous_set(r, key, "x", 1, 0), -EINVAL);
	cr_assert_eq(rendezvous_get(r, key, back, sizeof back, &length, NULL), -EINVAL);
	cr_assert_eq(rendezvous_set(r, "", "x", 1, 0), -EINVAL);
	cr_assert_eq(rendezvous_set(r, "a b", "x", 1, 0), -EINVAL);
	cr_assert_eq(rendezvous_add(r, "a\nb", "x", 1, 0), -EINVAL);
	cr_assert_eq(rendezvous_swap(r, "a\177", "x", 1, 0, 1), -EINVAL);
	cr_assert_eq(rendezvous_delete(r, "\303\274"), -EINVAL);
	cr_assert_eq(rendezvous_increment(r, "a\r", 0, &(uint64_t){ 0 }), -EINVAL);
	key[250] = 0;
	cr_assert_eq(rendezvous_get(r, key, back, sizeof back, &length, NULL), 0, "still in step");

	memset(big, 'v', sizeof big);
	cr_assert_eq(rendezvous_set(r, "big", big, RENDEZVOUS_VALUE_MAX, 0), 0);
	cr_assert_eq(rendezvous_get(r, "big", back, sizeof back, &length, NULL), 0);
	cr_assert_eq(length, RENDEZVOUS_VALUE_MAX);
	cr_assert_eq(memcmp(big, back, length), 0);
	cr_assert_eq(rendezvous_set(r, "big", big, RENDEZVOUS_VALUE_MAX + 1, 0), -EMSGSIZE);
}

Test(rendezvous_twin, answers_as_memcached)
{
	struct rendezvous_twin *twin = rendezvous_twin_create();
	struct rendezvous *r;

	cr_assert_eq(rendezvous_twin_open(twin, &r), 0);
	conformance(r);
	keys_and_sizes(r);
	rendezvous_close(r);
	rendezvous_twin_destroy(twin);
}

Test(rendezvous_twin, two_ends_share_and_time_passes_when_told)
{
	struct rendezvous_twin *twin = rendezvous_twin_create();
	struct rendezvous *a, *b;
	char value[8];
	size_t length;

	cr_assert_eq(rendezvous_twin_open(twin, &a), 0);
	cr_assert_eq(rendezvous_twin_open(twin, &b), 0);
	cr_assert_eq(rendezvous_set(a, "k", "v", 1, 10), 0);
	cr_assert_eq(rendezvous_set(a, "forever", "v", 1, 0), 0);
	rendezvous_twin_advance(twin, 9);
	cr_assert_eq(rendezvous_get(b, "k", value, sizeof value, &length, NULL), 0);
	rendezvous_twin_advance(twin, 1);
	cr_assert_eq(rendezvous_get(b, "k", value, sizeof value, &length, NULL), -ENOENT);
	cr_assert_eq(rendezvous_get(b, "forever", value, sizeof value, &length, NULL), 0);
	rendezvous_twin_fail(twin, -ETIMEDOUT);
	cr_assert_eq(rendezvous_get(b, "forever", value, sizeof value, &length, NULL), -ETIMEDOUT);
	cr_assert_eq(rendezvous_get(b, "absent", value, sizeof value, &length, NULL), -ETIMEDOUT);
	rendezvous_twin_fail(twin, 0);
	cr_assert_eq(rendezvous_get(b, "forever", value, sizeof value, &length, NULL), 0);
	rendezvous_close(a);
	rendezvous_close(b);
	rendezvous_twin_destroy(twin);
}

Test(rendezvous, memcached_conforms)
{
	struct memcached m;
	struct rendezvous *r;

	memcached_start(&m, 0);
	cr_assert_eq(rendezvous_open(m.servers, TIMEOUT_MS, &logger, &r), 0);
	conformance(r);
	keys_and_sizes(r);
	cr_assert(strstr(log_text, "answers, but"), "%s", log_text);
	rendezvous_close(r);
	memcached_stop(&m);
}

Test(rendezvous, ttl_runs_out)
{
	struct memcached m;
	struct rendezvous *r;
	char value[8];
	size_t length;

	memcached_start(&m, 0);
	cr_assert_eq(rendezvous_open(m.servers, TIMEOUT_MS, &logger, &r), 0);
	cr_assert_eq(rendezvous_set(r, "k", "v", 1, 1), 0);
	cr_assert_eq(rendezvous_set(r, "long", "v", 1, 40 * 24 * 3600), 0);
	sleep_ms(2200);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ENOENT);
	cr_assert_eq(rendezvous_get(r, "long", value, sizeof value, &length, NULL), 0,
		     "a TTL above 30 days is no date of 1970");
	rendezvous_close(r);
	memcached_stop(&m);
}

/* Each call must fail with `wanted` within the bound. */
static void every_call_fails(struct rendezvous *r, int wanted)
{
	char value[8];
	size_t length;
	uint64_t counter;

	for (unsigned call = 0; call < 6; call++) {
		uint64_t before = now_ms(), took;
		int rc = call == 0 ? rendezvous_get(r, "there", value, sizeof value, &length, NULL) :
			 call == 1 ? rendezvous_get(r, "absent", value, sizeof value, &length, NULL) :
			 call == 2 ? rendezvous_set(r, "there", "v", 1, 0) :
			 call == 3 ? rendezvous_add(r, "there", "v", 1, 0) :
			 call == 4 ? rendezvous_increment(r, "counter", 0, &counter) :
				     rendezvous_delete(r, "absent");

		took = now_ms() - before;
		cr_assert_eq(rc, wanted, "call %u: %d (%s)", call, rc, strerror(-rc));
		cr_assert_leq(took, BOUND_MS, "call %u took %lu ms", call, (unsigned long)took);
	}
}

/* B22; libmemcached issue 67 */
Test(rendezvous, a_stopped_memcached_is_a_timeout_and_never_not_found)
{
	struct memcached m;
	struct rendezvous *used, *fresh;
	char value[8];
	size_t length;
	uint64_t before;

	memcached_start(&m, 0);
	cr_assert_eq(rendezvous_open(m.servers, TIMEOUT_MS, &logger, &used), 0);
	cr_assert_eq(rendezvous_open(m.servers, TIMEOUT_MS, &logger, &fresh), 0);
	cr_assert_eq(rendezvous_set(used, "there", "v", 1, 0), 0);
	memcached_pause(&m);
	every_call_fails(used, -ETIMEDOUT);
	every_call_fails(fresh, -ETIMEDOUT);
	cr_assert_eq(log_lines, 2, "once per change of state: %s", log_text);
	cr_assert(strstr(log_text, m.servers) && strstr(log_text, "timed out"), "%s", log_text);

	kill(m.pid, SIGCONT);
	sleep_ms(50);
	cr_assert_eq(rendezvous_get(used, "there", value, sizeof value, &length, NULL), 0);
	cr_assert_eq(rendezvous_get(used, "absent", value, sizeof value, &length, NULL), -ENOENT);
	cr_assert_eq(rendezvous_get(fresh, "there", value, sizeof value, &length, NULL), 0);
	cr_assert_eq(value[0], 'v');
	cr_assert(strstr(log_text, "answers again"), "%s", log_text);

	memcached_pause(&m);
	before = now_ms();
	rendezvous_close(used);
	cr_assert_leq(now_ms() - before, BOUND_MS, "closing does not wait either");
	rendezvous_close(fresh);
	memcached_stop(&m);
}

Test(rendezvous, answers_that_come_too_late_are_not_taken_for_others)
{
	struct memcached m;
	struct rendezvous *r;
	char value[8];
	size_t length;

	memcached_start(&m, 0);
	cr_assert_eq(rendezvous_open(m.servers, 50, &logger, &r), 0);
	cr_assert_eq(rendezvous_set(r, "a", "A", 1, 0), 0);
	cr_assert_eq(rendezvous_set(r, "b", "B", 1, 0), 0);
	for (unsigned i = 0; i < 10; i++) {
		memcached_pause(&m);
		cr_assert_eq(rendezvous_get(r, "a", value, sizeof value, &length, NULL), -ETIMEDOUT);
		kill(m.pid, SIGCONT);
		sleep_ms(20);
		cr_assert_eq(rendezvous_get(r, "b", value, sizeof value, &length, NULL), 0);
		cr_assert_eq(value[0], 'B');
	}
	rendezvous_close(r);
	memcached_stop(&m);
}

Test(rendezvous, a_closed_port_is_refused_at_once)
{
	struct rendezvous *r;
	char servers[64];
	unsigned port;
	uint64_t before;
	int fd = bound_socket(AF_INET, false, &port);

	snprintf(servers, sizeof servers, "127.0.0.1:%u", port);
	cr_assert_eq(rendezvous_open(servers, TIMEOUT_MS, &logger, &r), 0);
	before = now_ms();
	every_call_fails(r, -ECONNREFUSED);
	cr_assert_lt(now_ms() - before, TIMEOUT_MS);
	cr_assert_eq(log_lines, 1, "%s", log_text);
	cr_assert(strstr(log_text, servers) && strstr(log_text, "cannot be reached"), "%s", log_text);
	rendezvous_close(r);
	close(fd);
}

Test(rendezvous, a_restarted_memcached_is_used_again_and_gets_report_absence_only_then)
{
	struct memcached m;
	struct rendezvous *r;
	char value[8];
	size_t length;
	unsigned port;

	memcached_start(&m, 0);
	port = m.port;
	cr_assert_eq(rendezvous_open(m.servers, TIMEOUT_MS, &logger, &r), 0);
	cr_assert_eq(rendezvous_set(r, "k", "v", 1, 0), 0);
	memcached_stop(&m);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ECONNREFUSED);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ECONNREFUSED);
	memcached_start(&m, port);
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), -ENOENT);
	cr_assert_eq(rendezvous_set(r, "k", "v", 1, 0), 0);
	memcached_stop(&m);
	memcached_start(&m, port);
	cr_assert_eq(rendezvous_set(r, "k", "w", 1, 0), 0, "a dead connection is replaced");
	cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), 0);
	rendezvous_close(r);
	memcached_stop(&m);
}

/* A server that answers whatever it is asked with `answer`; with "" it hangs up. One connection at a time. */
static pid_t serve(int fd, const char *answer)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int peer = accept(fd, NULL, NULL);
		char request[512];

		while (read(peer, request, sizeof request) > 0 && *answer)
			if (send(peer, answer, strlen(answer), MSG_NOSIGNAL) < 0)
				break;
		close(peer);
	}
}

static void expect_of_server(const char *answer, int wanted)
{
	struct rendezvous *r;
	char servers[64];
	unsigned port;
	int fd = bound_socket(AF_INET, true, &port);
	pid_t pid = serve(fd, answer);

	snprintf(servers, sizeof servers, "127.0.0.1:%u", port);
	cr_assert_eq(rendezvous_open(servers, TIMEOUT_MS, &logger, &r), 0);
	every_call_fails(r, wanted);
	rendezvous_close(r);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

Test(rendezvous, a_server_that_hangs_up_is_refused)
{
	expect_of_server("", -ECONNREFUSED);
}

Test(rendezvous, a_server_that_is_no_memcached_is_named)
{
	expect_of_server("HTTP/1.1 400 Bad Request\r\n\r\n", -EPROTO);
	cr_assert(strstr(log_text, "not as memcached should"), "%s", log_text);
}

Test(rendezvous, an_error_of_the_server_is_an_error)
{
	expect_of_server("SERVER_ERROR out of order\r\n", -EPROTO);
}

Test(rendezvous, a_server_out_of_memory_says_so)
{
	expect_of_server("SERVER_ERROR out of memory storing object\r\n", -ENOMEM);
}

Test(rendezvous, a_name_that_does_not_resolve_is_bounded)
{
	struct rendezvous *r;
	char value[8];
	size_t length;
	uint64_t before = now_ms();
	int rc;

	cr_assert_eq(rendezvous_open("no-such-host.invalid:11211", TIMEOUT_MS, &logger, &r), 0);
	rc = rendezvous_get(r, "k", value, sizeof value, &length, NULL);
	cr_assert(rc == -ECONNREFUSED || rc == -ETIMEDOUT, "%d", rc);
	cr_assert_leq(now_ms() - before, BOUND_MS);
	cr_assert(strstr(log_text, "no-such-host.invalid:11211"), "%s", log_text);
	rendezvous_close(r);
}

Test(rendezvous, host_names_and_ipv6_and_several_servers)
{
	struct memcached a, b;
	struct rendezvous *r;
	char servers[160], key[16], value[8];
	size_t length;
	unsigned port, failed = 0;
	int fd = bound_socket(AF_INET6, false, &port);

	memcached_start(&a, 0);
	memcached_start(&b, 0);
	snprintf(servers, sizeof servers, "localhost:%u", a.port);
	cr_assert_eq(rendezvous_open(servers, TIMEOUT_MS, &logger, &r), 0);
	cr_assert_eq(rendezvous_set(r, "k", "v", 1, 0), 0, "%s", log_text);
	rendezvous_close(r);
	if (fd >= 0) {
		close(fd);
		snprintf(servers, sizeof servers, "[::1]:%u", a.port);
		cr_assert_eq(rendezvous_open(servers, TIMEOUT_MS, &logger, &r), 0);
		cr_assert_eq(rendezvous_get(r, "k", value, sizeof value, &length, NULL), 0, "%s", log_text);
		rendezvous_close(r);
	}
	snprintf(servers, sizeof servers, "%s,%s", a.servers, b.servers);
	cr_assert_eq(rendezvous_open(servers, TIMEOUT_MS, &logger, &r), 0);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(key, sizeof key, "key%u", i);
		cr_assert_eq(rendezvous_set(r, key, "v", 1, 0), 0);
	}
	memcached_stop(&b);
	for (unsigned i = 0; i < 64; i++) {
		int rc;

		snprintf(key, sizeof key, "key%u", i);
		rc = rendezvous_get(r, key, value, sizeof value, &length, NULL);
		cr_assert(rc == 0 || rc == -ECONNREFUSED, "%d: a dead server's keys go nowhere else", rc);
		failed += rc != 0;
	}
	cr_assert(failed > 10 && failed < 54, "%u of 64 keys were on the dead server", failed);
	rendezvous_close(r);
	memcached_stop(&a);
}

Test(rendezvous, server_lists_are_checked)
{
	static const char *const bad[] = { "", "a,,b", "a,", "a:", "a:0", "a:65536", "a:12x", "::1", "fe80::1:11211",
					   "[::1", "[::1]x", "[]:1", "[nonsense]:1", "a b", "a:1:2", ":11211",
					   "/tmp/socket" };
	static const char *const good[] = { "a", "a:1", "a,b:2,[::1],[::1]:3", "10.0.0.1:65535",
					    "[fe80::1%lo]:11211" };
	struct rendezvous *r;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		log_text[0] = 0;
		cr_assert_eq(rendezvous_open(bad[i], TIMEOUT_MS, &logger, &r), -EINVAL, "%s", bad[i]);
		cr_assert(strstr(log_text, "bad server"), "%s: %s", bad[i], log_text);
	}
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		cr_assert_eq(rendezvous_open(good[i], TIMEOUT_MS, &logger, &r), 0, "%s", good[i]);
		rendezvous_close(r);
	}
	cr_assert_eq(rendezvous_open("a", 0, &logger, &r), -EINVAL);
	rendezvous_close(NULL);
}
