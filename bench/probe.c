/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget table, measured.
 *
 * Two stores: one with an address cache ("cached" rows), one without ("cold" and "present" rows).
 * Neither has a helper thread, so that nothing is posted but by the calls below; reports of epochs
 * fall into farkv_poll and are counted. Each row is prepared, everything owed is flushed, and then
 * one operation runs between two readings of the client's and the device's counters; a flush and a
 * third reading give what it owed. Session numbers and units are taken beforehand: their allocation
 * is no part of the budget.
 */
#include "bench/probe.h"

#include "bench/tap.h"
#include "cn/session.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	KEY_BYTES = 16,
	COUNTED = 8,
	SETTLE_NS = 30000000,
	FIELDS = 8,
	PATIENT_QP_TIMEOUT = 18 /* a second: no repeats on a slow machine */
};

struct counts {
	uint64_t read, write, cas, faa, send, doorbells, cqes, inline_writes;
};

struct probe {
	struct farkv *store;
	struct farkv_session *session;
	const struct bench_options *options;
	json_t *out;
	unsigned wrong;
	bool packets_judged; /* in this row */
};

struct row {
	enum farkv_op op;
	const char *name, *state;
	bool cached;  /* in the store with a cache */
	bool present; /* the key is there beforehand */
	int status;
	uint64_t round_trips;
	struct counts budget; /* the contract; inline_writes is computed */
};

static const struct row rows[] = {
	{FARKV_GET, "get", "cached", true, true, 0, 1, {1, 0, 0, 0, 0, 1, 1, 0}},
	{FARKV_GET, "get", "cold", false, true, 0, 2, {2, 0, 0, 0, 0, 2, 2, 0}},
	{FARKV_GET, "get", "absent", false, false, FARKV_ENOTFOUND, 1, {1, 0, 0, 0, 0, 1, 1, 0}},
	{FARKV_UPDATE, "update", "cached", true, true, 0, 1, {0, 1, 1, 0, 0, 1, 1, 0}},
	{FARKV_UPDATE, "update", "cold", false, true, 0, 3, {2, 1, 1, 0, 0, 3, 3, 0}},
	{FARKV_INSERT, "insert", "absent", true, false, 0, 2, {1, 3, 1, 0, 0, 2, 2, 0}},
	{FARKV_PUT, "put", "cached", true, true, 0, 1, {0, 1, 1, 0, 0, 1, 1, 0}},
	{FARKV_PUT, "put", "absent", true, false, 0, 2, {1, 3, 1, 0, 0, 2, 2, 0}},
	{FARKV_PUT, "put", "present", false, true, 0, 3, {2, 2, 2, 0, 0, 3, 3, 0}},
	{FARKV_DELETE, "delete", "cached", true, true, 0, 1, {0, 0, 1, 0, 0, 1, 1, 0}},
	{FARKV_DELETE, "delete", "cold", false, true, 0, 3, {2, 0, 1, 0, 0, 3, 3, 0}},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *const field_names[FIELDS] = {"read", "write",     "cas",  "faa",
						"send", "doorbells", "cqes", "inline_writes"};

static char value[FARKV_VALUE_MAX];
static char read_back[FARKV_VALUE_MAX];
static uint64_t latency_ns[PROBE_ROUNDS_MAX];

static uint64_t *field(struct counts *counts, unsigned i)
{
	uint64_t *fields[FIELDS] = {&counts->read, &counts->write,	  &counts->cas,
				    &counts->faa,  &counts->send,	  &counts->doorbells,
				    &counts->cqes, &counts->inline_writes};

	return fields[i];
}

struct reading {
	struct counts own, deferred, device;
	uint64_t round_trips, packets, repeats;
};

static struct counts of_flow(const struct flow_counts *c)
{
	return (struct counts){c->read, c->write,     c->cas,  c->faa,
			       c->send, c->doorbells, c->cqes, c->inline_writes};
}

static void add(struct counts *to, struct counts from)
{
	for (unsigned i = 0; i < FIELDS; i++)
		*field(to, i) += *field(&from, i);
}

static void subtract(struct counts *from, struct counts what)
{
	for (unsigned i = 0; i < FIELDS; i++)
		*field(from, i) -= *field(&what, i);
}

static struct reading take_reading(struct probe *probe)
{
	struct reading reading = {.own = of_flow(&probe->session->counts[0]),
				  .deferred = of_flow(&probe->session->counts[1]),
				  .round_trips = probe->session->stats.verbs.round_trips};
	struct tap_counts tap;

	/* Acknowledgements of the last packets are still on their way, and the kernel renews its
	 * counters every 10 ms. */
	if (tap_has_packets())
		nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
	tap_read(&tap);
	reading.device = (struct counts){tap.read, tap.write,	  tap.cas,  tap.faa,
					 tap.send, tap.doorbells, tap.cqes, tap.inline_writes};
	reading.packets = tap.packets;
	reading.repeats = tap.repeats;
	/* Reports of epochs go over queue pairs of their own; they are the client's too. */
	for (uint32_t i = 0; i < probe->store->node_count; i++)
		for (unsigned kind = 0; kind < 2; kind++)
			add(&reading.deferred,
			    of_flow(&probe->store->nodes[i]->reporter.counts[kind]));
	return reading;
}

static struct reading since(struct probe *probe, const struct reading *before)
{
	struct reading now = take_reading(probe);

	subtract(&now.own, before->own);
	subtract(&now.deferred, before->deferred);
	subtract(&now.device, before->device);
	now.round_trips -= before->round_trips;
	now.packets -= before->packets;
	now.repeats -= before->repeats;
	return now;
}

static int run_op(struct farkv_session *session, const struct row *row, const char *key,
		  size_t value_len)
{
	switch (row->op) {
	case FARKV_GET:
		return farkv_get(session, key, KEY_BYTES, read_back, sizeof read_back, NULL);
	case FARKV_PUT:
		return farkv_put(session, key, KEY_BYTES, value, value_len);
	case FARKV_INSERT:
		return farkv_insert(session, key, KEY_BYTES, value, value_len);
	case FARKV_UPDATE:
		return farkv_update(session, key, KEY_BYTES, value, value_len);
	case FARKV_DELETE:
		return farkv_delete(session, key, KEY_BYTES);
	}
	return FARKV_EINVAL;
}

static int prepare(struct farkv_session *session, const struct row *row, const char *key,
		   size_t value_len)
{
	int error;

	if (row->present) {
		error = farkv_put(session, key, KEY_BYTES, value, value_len);
	} else {
		error = farkv_delete(session, key, KEY_BYTES);
		error = error == FARKV_ENOTFOUND ? 0 : error;
	}
	return error ? error : farkv_flush(session);
}

static void complain(struct probe *probe, const struct row *row, const char *who, const char *what,
		     uint64_t found, uint64_t wanted)
{
	probe->wrong++;
	fprintf(stderr, "farkv-bench: %s %s: %s counts %llu %s, %llu wanted\n", row->name,
		row->state, who, (unsigned long long)found, what, (unsigned long long)wanted);
}

/* Client against contract; device against client, with what rode along. */
static void judge(struct probe *probe, const struct row *row, struct counts budget,
		  struct reading *r)
{
	struct counts all = r->own;

	add(&all, r->deferred);
	if (r->round_trips != row->round_trips)
		complain(probe, row, "the client", "round_trips", r->round_trips, row->round_trips);
	for (unsigned i = 0; i < FIELDS; i++) {
		if (*field(&r->own, i) != *field(&budget, i))
			complain(probe, row, "the client", field_names[i], *field(&r->own, i),
				 *field(&budget, i));
		if (*field(&r->device, i) != *field(&all, i))
			complain(probe, row, "the device", field_names[i], *field(&r->device, i),
				 *field(&all, i));
	}
	/* A round in which the port has repeated packets tells nothing about their number. */
	if (tap_has_packets() && r->repeats == 0) {
		probe->packets_judged = true;
		/* Request and answer (response or acknowledgement), each within one MTU; both ends
		 * are this port. */
		uint64_t packets = 2 * (all.read + all.write + all.cas + all.faa + all.send);

		if (r->packets != packets)
			complain(probe, row, "the port", "packets", r->packets, packets);
	}
}

static struct counts budget_of(struct probe *probe, const struct row *row)
{
	struct counts budget = row->budget;
	uint32_t granted = probe->session->links[0].qp->max_inline;

	budget.inline_writes = granted >= 8 ? budget.write : 0;
	/* Of the WRITEs of a mutation one is the block. */
	if (budget.inline_writes > 0 &&
	    block_bytes(KEY_BYTES, probe->options->value_bytes) > granted)
		budget.inline_writes--;
	return budget;
}

static json_t *counts_json(struct counts *counts)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < FIELDS; i++)
		json_object_set_new(object, field_names[i],
				    json_integer((json_int_t)*field(counts, i)));
	return object;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static json_t *latency_json(unsigned count)
{
	qsort(latency_ns, count, sizeof *latency_ns, compare_ns);
	return json_pack("{s:f, s:f}", "p50", (double)latency_ns[count / 2] / 1000, "p99",
			 (double)latency_ns[(uint64_t)count * 99 / 100] / 1000);
}

static void report_row(struct probe *probe, const struct row *row, struct reading *own,
		       struct reading *owed, unsigned rounds)
{
	json_t *object = counts_json(&own->own);

	add(&owed->deferred, own->deferred);
	json_object_set_new(object, "op", json_string(row->name));
	json_object_set_new(object, "state", json_string(row->state));
	json_object_set_new(object, "round_trips", json_integer((json_int_t)own->round_trips));
	json_object_set_new(object, "device", counts_json(&own->device));
	json_object_set_new(object, "deferred", counts_json(&owed->deferred));
	json_object_set_new(object, "latency_us", latency_json(rounds));
	json_array_append_new(probe->out, object);
	printf("%-7s %-8s %5llu", row->name, row->state, (unsigned long long)own->round_trips);
	for (unsigned i = 0; i < FIELDS; i++)
		printf(" %9llu", (unsigned long long)*field(&own->own, i));
	putchar('\n');
}

static void make_key(char key[32], const struct row *row, unsigned round)
{
	snprintf(key, 32, "probe-%02u-%07u", (unsigned)(row - rows), round % 10000000);
}

static int check_status(const struct row *row, int status)
{
	if (status == row->status)
		return 0;
	fprintf(stderr, "farkv-bench: %s %s: %s\n", row->name, row->state, farkv_strerror(status));
	return status ? status : FARKV_EUNKNOWN;
}

/* One row, COUNTED times with fresh keys: every time the same. 0 or a negative FARKV_E*. */
static int probe_counts(struct probe *probe, const struct row *row, struct reading *own,
			struct reading *owed)
{
	size_t value_len = probe->options->value_bytes;
	struct counts budget = budget_of(probe, row);
	int status = 0;

	probe->packets_judged = !tap_has_packets();
	for (unsigned round = 0; round < COUNTED && !status; round++) {
		struct reading before;
		char key[32];

		make_key(key, row, round);
		status = prepare(probe->session, row, key, value_len);
		if (status)
			return status;
		before = take_reading(probe);
		status = check_status(row, run_op(probe->session, row, key, value_len));
		*own = since(probe, &before);
		before = take_reading(probe);
		farkv_flush(probe->session);
		*owed = since(probe, &before);
		judge(probe, row, budget, own);
	}
	if (!probe->packets_judged)
		complain(probe, row, "the port", "rounds without repeated packets", 0, 1);
	return status;
}

/* Latencies, without the pauses that counting at the device needs. The flush before has reported
 * epochs as well. */
static int probe_latency(struct probe *probe, const struct row *row)
{
	size_t value_len = probe->options->value_bytes;
	int status = 0;

	for (unsigned round = 0; round < probe->options->rounds && !status; round++) {
		char key[32];
		uint64_t began;

		make_key(key, row, COUNTED + round);
		status = prepare(probe->session, row, key, value_len);
		if (status)
			return status;
		began = clock_now_ns();
		status = run_op(probe->session, row, key, value_len);
		latency_ns[round] = clock_now_ns() - began;
		status = check_status(row, status);
		farkv_flush(probe->session);
	}
	return status;
}

static int probe_row(struct probe *probe, const struct row *row)
{
	struct reading own = {0}, owed = {0};
	int error = probe_counts(probe, row, &own, &owed);

	if (!error)
		error = probe_latency(probe, row);
	if (!error)
		report_row(probe, row, &own, &owed, (unsigned)probe->options->rounds);
	return error;
}

/* Takes the session number and a unit of the class at every memory node, so that no row pays for
 * them. */
static int warm(struct probe *probe)
{
	int error = 0;

	for (unsigned i = 0; i < 64 && !error; i++) {
		char key[32]; /* its first KEY_BYTES count */

		snprintf(key, sizeof key, "probe-warm-%05u", i);
		error = farkv_put(probe->session, key, KEY_BYTES, value,
				  probe->options->value_bytes);
		if (!error)
			error = farkv_delete(probe->session, key, KEY_BYTES);
	}
	return error ? error : farkv_flush(probe->session);
}

static int probe_open(struct probe *probe, bool cached)
{
	struct farkv_options options = probe->options->store;
	int error;

	options.helper_thread = 0;
	if (!getenv("FARKV_QP_TIMEOUT"))
		options.qp_timeout = PATIENT_QP_TIMEOUT;
	if (!cached)
		options.cache_bytes = 0;
	error = farkv_open(&options, &probe->store);
	if (error)
		return error;
	error = farkv_session_open(probe->store, &probe->session);
	if (error)
		farkv_close(probe->store);
	return error;
}

static int probe_store(struct probe *probe, bool cached)
{
	int error = probe_open(probe, cached);

	if (error)
		return error;
	error = warm(probe);
	tap_attach(probe->store->device);
	for (unsigned i = 0; i < ROWS && !error; i++)
		if (rows[i].cached == cached)
			error = probe_row(probe, &rows[i]);
	tap_detach();
	farkv_session_close(probe->session);
	farkv_close(probe->store);
	return error;
}

static int write_json(const char *path, json_t *out)
{
	int error = 0;

	if (path && strcmp(path, "-") == 0)
		error = json_dumpf(out, stdout, JSON_INDENT(2));
	else if (path)
		error = json_dump_file(out, path, JSON_INDENT(2));
	if (error)
		fprintf(stderr, "farkv-bench: writing %s failed\n", path);
	return error;
}

int bench_probe(const struct bench_options *options)
{
	struct probe probe = {.options = options, .out = json_array()};
	int error;

	printf("%-7s %-8s %5s", "op", "state", "trips");
	for (unsigned i = 0; i < FIELDS; i++)
		printf(" %9s", i == FIELDS - 1 ? "inline" : field_names[i]);
	putchar('\n');
	memset(value, 'v', sizeof value);
	error = probe_store(&probe, true);
	if (!error)
		error = probe_store(&probe, false);
	if (error)
		fprintf(stderr, "farkv-bench: probe: %s\n", farkv_strerror(error));
	else
		puts(probe.wrong
			     ? "the counts differ from the contract"
			     : "every count is the contract's, at the client and at the device");
	if (write_json(options->json, probe.out))
		probe.wrong++;
	json_decref(probe.out);
	return error ? 3 : probe.wrong > 0;
}
