/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/argument.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "bench/number.h"
#include "bench/probe.h"

enum argument_kind {
	ARGUMENT_FLAG,
	ARGUMENT_TEXT,
	ARGUMENT_COUNT,
	ARGUMENT_SIZE,
	ARGUMENT_INT,
	ARGUMENT_REAL,
};

/* A row without a name is a heading of the help. */
struct argument {
	const char *name;
	enum argument_kind kind;
	size_t offset;
	double min, max;
	const char *operand;
	const char *help;
};

#define MEMBER(member) offsetof(struct bench_options, member)

static const struct argument arguments[] = {
	{NULL, ARGUMENT_FLAG, 0, 0, 0, NULL,
	 "The store (also by FARKV_CLUSTER, FARKV_DEPTH, ...; see farkv.h)"},
	{"cluster", ARGUMENT_TEXT, MEMBER(store.cluster), 0, 0, "NAME", "cluster to join"},
	{"memcached", ARGUMENT_TEXT, MEMBER(store.memcached), 0, 0, "HOST:PORT",
	 "memcached of the cluster; several by commas"},
	{"device", ARGUMENT_TEXT, MEMBER(store.device), 0, 0, "NAME",
	 "RDMA device, with :PORT if wanted, or auto"},
	{"gid-index", ARGUMENT_INT, MEMBER(store.gid_index), -1, 255, "N",
	 "GID index; -1 = routable RoCE v2 first"},
	{NULL, ARGUMENT_FLAG, 0, 0, 0, NULL, "What to run"},
	{"workload", ARGUMENT_TEXT, MEMBER(workload_name), 0, 0, "W",
	 "a, b, c, d, f, load, or a YCSB property file"},
	{"load", ARGUMENT_FLAG, MEMBER(load), 0, 0, NULL,
	 "the workload's load phase instead of its run"},
	{"records", ARGUMENT_COUNT, MEMBER(records), 1, (double)BENCH_RECORDS_MAX, "N",
	 "records loaded, or to load (100000)"},
	{"ops", ARGUMENT_COUNT, MEMBER(ops), 1, (double)BENCH_OPS_MAX, "N",
	 "operations of this process (100000)"},
	{"seconds", ARGUMENT_REAL, MEMBER(seconds), 0.001, BENCH_SECONDS_MAX, "S",
	 "stop after S seconds, or at --ops if that is sooner"},
	{"mix", ARGUMENT_TEXT, MEMBER(mix_text), 0, 0, "get=50,...",
	 "own mix of get, insert, update, delete, rmw; all of\nthem, inserts too, take keys among "
	 "the records"},
	{"dist", ARGUMENT_TEXT, MEMBER(dist_name), 0, 0, "D",
	 "zipfian (scrambled), uniform or latest"},
	{"theta", ARGUMENT_REAL, MEMBER(theta), 0, 2, "X",
	 "skew of zipfian and latest, 0 <= X < 2 (0.99)"},
	{"key-bytes", ARGUMENT_SIZE, MEMBER(key_bytes), BENCH_KEY_BYTES_MIN, BENCH_KEY_BYTES_MAX,
	 "B", "bytes of a key (23)"},
	{"value-bytes", ARGUMENT_SIZE, MEMBER(value_bytes), 0, FARKV_VALUE_MAX, "B",
	 "bytes of a value (1000)"},
	{"seed", ARGUMENT_COUNT, MEMBER(seed), 0, 0x1p63, "N", "seed of all that is drawn (1)"},
	{NULL, ARGUMENT_FLAG, 0, 0, 0, NULL, "How to run it"},
	{"threads", ARGUMENT_COUNT, MEMBER(threads), 1, BENCH_THREADS_MAX, "T",
	 "threads, one session each (1)"},
	{"depth", ARGUMENT_COUNT, MEMBER(depth), 1, 1024, "D",
	 "operations in flight per thread (64)"},
	{"batch", ARGUMENT_COUNT, MEMBER(batch), 1, 1024, "N",
	 "closed loop: refill once N of the depth are free (D/4)"},
	{"rate", ARGUMENT_REAL, MEMBER(rate), 0.001, BENCH_RATE_MAX, "OPS",
	 "open loop: start OPS per second, and count latency\nfrom the intended start"},
	{"clients", ARGUMENT_COUNT, MEMBER(clients), 1, 1 << 16, "N",
	 "N processes share the work: loads and new keys are\nsplit among them (1)"},
	{"client-id", ARGUMENT_COUNT, MEMBER(client_id), 0, (1 << 16) - 1, "I",
	 "which of them this is, 0..N-1 (0)"},
	{NULL, ARGUMENT_FLAG, 0, 0, 0, NULL, "What to check and to report"},
	{"verify", ARGUMENT_FLAG, MEMBER(verify), 0, 0, NULL,
	 "prove every value, version and absence read, and read\nevery record at the end"},
	{"verify-file", ARGUMENT_TEXT, MEMBER(verify_file), 0, 0, "PATH",
	 "share the proof with other processes that write the\nsame records, or with later runs on "
	 "the same store"},
	{"verbs", ARGUMENT_FLAG, MEMBER(verbs), 0, 0, NULL,
	 "print verbs, doorbells and completions per operation"},
	{"json", ARGUMENT_TEXT, MEMBER(json), 0, 0, "FILE",
	 "write the report as JSON; - is standard output"},
	{"probe", ARGUMENT_FLAG, MEMBER(probe), 0, 0, NULL,
	 "count the verbs of each operation, one at a time"},
	{"rounds", ARGUMENT_COUNT, MEMBER(rounds), 1, PROBE_ROUNDS_MAX, "N",
	 "probe: latencies taken of each operation (100)"},
	{"help", ARGUMENT_FLAG, MEMBER(help), 0, 0, NULL, "this text"},
	{"version", ARGUMENT_FLAG, MEMBER(version), 0, 0, NULL, "version and commit"},
};

enum { ARGUMENTS = sizeof(arguments) / sizeof(*arguments), NAME_MAX_BYTES = 32 };

static const struct argument *argument_find(const char *name, size_t length)
{
	for (int i = 0; i < ARGUMENTS; i++) {
		if (arguments[i].name && strlen(arguments[i].name) == length &&
		    memcmp(arguments[i].name, name, length) == 0)
			return &arguments[i];
	}
	return NULL;
}

/* Levenshtein's distance; b is an option's name. */
static unsigned int distance(const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b);
	unsigned int row[NAME_MAX_BYTES], diagonal, above, cost;

	for (size_t j = 0; j <= b_length; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= a_length; i++) {
		diagonal = row[0];
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= b_length; j++) {
			above = row[j];
			cost = diagonal + (a[i - 1] != b[j - 1]);
			if (above + 1 < cost)
				cost = above + 1;
			if (row[j - 1] + 1 < cost)
				cost = row[j - 1] + 1;
			row[j] = cost;
			diagonal = above;
		}
	}
	return row[b_length];
}

static bool unknown(const char *text, size_t length, char *error)
{
	const char *nearest = NULL;
	unsigned int best = 4, far;

	for (int i = 0; i < ARGUMENTS && length < NAME_MAX_BYTES; i++) {
		if (!arguments[i].name)
			continue;
		far = distance(text, length, arguments[i].name);
		if (far < best && far < strlen(arguments[i].name)) {
			best = far;
			nearest = arguments[i].name;
		}
	}
	snprintf(error, BENCH_ERROR_BYTES, "no such option: --%.*s%s%s%s",
		 length > 64 ? 64 : (int)length, text, nearest ? "; did you mean --" : "",
		 nearest ? nearest : "", nearest ? "?" : "");
	return false;
}

static bool value_apply(const struct argument *argument, struct bench_options *options,
			const char *value, char *reason)
{
	void *member = (char *)options + argument->offset;
	int64_t number;

	switch (argument->kind) {
	case ARGUMENT_FLAG:
		*(bool *)member = true;
		return true;
	case ARGUMENT_TEXT:
		if (*value == '\0') {
			snprintf(reason, BENCH_REASON_BYTES, "the text is empty");
			return false;
		}
		*(const char **)member = value;
		return true;
	case ARGUMENT_COUNT:
		return bench_number_count(value, (uint64_t)argument->min, (uint64_t)argument->max,
					  member, reason);
	case ARGUMENT_SIZE:
		return bench_number_size(value, (uint64_t)argument->min, (uint64_t)argument->max,
					 member, reason);
	case ARGUMENT_INT:
		if (!bench_number_signed(value, (int64_t)argument->min, (int64_t)argument->max,
					 &number, reason))
			return false;
		*(int *)member = (int)number;
		return true;
	case ARGUMENT_REAL:
		return bench_number_real(value, argument->min, argument->max, member, reason);
	}
	return false;
}

/* Reads argv[*index], and the next where that is its value. */
static bool argument_read(struct bench_options *options, int argc, char **argv, int *index,
			  char *error)
{
	const char *text = argv[*index], *equals, *value = NULL;
	const struct argument *argument;
	char reason[BENCH_REASON_BYTES];
	size_t length;

	if (strcmp(text, "-h") == 0)
		text = "--help";
	if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
		snprintf(error, BENCH_ERROR_BYTES, "not an option: \"%.64s\"", text);
		return false;
	}
	text += 2;
	equals = strchr(text, '=');
	length = equals ? (size_t)(equals - text) : strlen(text);
	argument = argument_find(text, length);
	if (!argument)
		return unknown(text, length, error);
	if (argument->kind == ARGUMENT_FLAG && equals) {
		snprintf(error, BENCH_ERROR_BYTES, "--%s takes no value", argument->name);
		return false;
	}
	if (argument->kind != ARGUMENT_FLAG) {
		value = equals ? equals + 1 : argv[++*index];
		if (*index >= argc) {
			snprintf(error, BENCH_ERROR_BYTES, "--%s needs a value: %s", argument->name,
				 argument->operand);
			return false;
		}
	}
	if (value_apply(argument, options, value, reason))
		return true;
	snprintf(error, BENCH_ERROR_BYTES, "--%s \"%.64s\": %s", argument->name, value, reason);
	return false;
}

bool bench_arguments_read(struct bench_options *options, int argc, char **argv,
			  char error[BENCH_ERROR_BYTES])
{
	for (int i = 1; i < argc; i++) {
		if (!argument_read(options, argc, argv, &i, error))
			return false;
	}
	return true;
}

static void row_print(FILE *out, const struct argument *argument)
{
	const char *line = argument->help, *end;
	char left[48];

	if (!argument->name) {
		fprintf(out, "\n%s:\n", argument->help);
		return;
	}
	snprintf(left, sizeof(left), "--%s%s%s", argument->name, argument->operand ? " " : "",
		 argument->operand ? argument->operand : "");
	for (;; line = end + 1) {
		end = strchrnul(line, '\n');
		fprintf(out, "  %-22s  %.*s\n", left, (int)(end - line), line);
		left[0] = '\0';
		if (*end == '\0')
			break;
	}
}

void bench_arguments_help(FILE *out)
{
	fputs("Usage: farkv-bench --workload W [OPTION...]\n"
	      "Loads a farkv cluster with YCSB's workloads, checks what it answers, and reports.\n",
	      out);
	for (int i = 0; i < ARGUMENTS; i++)
		row_print(out, &arguments[i]);
	fputs("\nExamples:\n"
	      "  farkv-bench --workload load --records 1000000 --threads 2\n"
	      "  farkv-bench --workload a --records 1000000 --seconds 30 --threads 2 --verify\n"
	      "  farkv-bench --mix get=50,insert=20,update=20,delete=10 --records 1000 --verify\n"
	      "\n"
	      "Counts take no suffix; sizes take K, M or G (1K = 1024). A workload's settings come "
	      "from\n"
	      "its property file, and the command line overrides them. Workload E is refused: a "
	      "hash\n"
	      "index has no key order, so there are no scans.\n"
	      "\n"
	      "Exit status: 0 done, 1 wrong answers or unexpected errors, 2 usage, 3 the store is\n"
	      "unavailable, 130 interrupted.\n",
	      out);
}
