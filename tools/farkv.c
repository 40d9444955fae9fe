/* SPDX-License-Identifier: Apache-2.0 */
/*
 * farkv: the command-line client.
 *
 * Exit status: 0 done; 1 not found, or exists already; 2 usage; 3 unavailable, or any other failure
 * of the store.
 */
#include "cn/farkv.h"
#include "tools/fsck.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_UNAVAILABLE = 3, STAT_NODES_MAX = 256 };

struct command {
	const char *name;
	const char *arguments;
	const char *help;
	int words; /* arguments wanted */
	int (*run)(struct farkv_session *session, char **words);
};

static bool stat_json;

static const char usage_head[] =
	"usage: farkv [OPTION]... COMMAND [ARGUMENT]...\n"
	"\n"
	"Talk to a farkv cluster: a key-value store on disaggregated memory.\n"
	"\n"
	"Commands:\n";

static const char usage_options[] =
	"\n"
	"A VALUE of - is read from standard input, every byte of it.\n"
	"\n"
	"Options (environment: FARKV_CLUSTER and so on):\n"
	"  -c, --cluster NAME          cluster to open (default \"default\")\n"
	"  -m, --memcached HOST:PORT   where the cluster is published (default 127.0.0.1:11211)\n"
	"  -d, --device NAME[:PORT]    RDMA device; auto, softnic, or a name (default auto)\n"
	"  -g, --gid-index N           GID to use (default: routable RoCE v2 first)\n"
	"  -t, --timeout-ms N          for opening and for the operation\n"
	"  -s, --secret-file FILE      secret that seals the cluster's records\n"
	"  -v, --verbose               more log lines; twice: debug\n"
	"      --json                  stat: print JSON\n"
	"  -h, --help                  this text\n"
	"  -V, --version               version\n"
	"\n"
	"Exit status: 0 done; 1 not found or exists already; 2 usage; 3 unavailable or failed.\n";

static int exit_of(int error, const char *what)
{
	if (error == 0)
		return EXIT_DONE;
	fprintf(stderr, "farkv: %s: %s\n", what, farkv_strerror(error));
	if (error == FARKV_ENOTFOUND || error == FARKV_EEXISTS)
		return EXIT_NO;
	return error == FARKV_EINVAL ? EXIT_USAGE : EXIT_UNAVAILABLE;
}

static int run_get(struct farkv_session *session, char **words)
{
	static char value[FARKV_VALUE_MAX];
	size_t value_len = 0;
	int error = farkv_get(session, words[0], strlen(words[0]), value, sizeof value, &value_len);

	if (error)
		return exit_of(error, words[0]);
	if (fwrite(value, 1, value_len, stdout) != value_len ||
	    (isatty(1) && putchar('\n') == EOF) || fflush(stdout)) {
		fprintf(stderr, "farkv: writing the value: %s\n", strerror(errno));
		return EXIT_UNAVAILABLE;
	}
	return EXIT_DONE;
}

typedef int (*write_fn)(struct farkv_session *, const void *, size_t, const void *, size_t);

static int run_write(struct farkv_session *session, char **words, write_fn write)
{
	static char buffer[FARKV_VALUE_MAX + 1];
	const char *value = words[1];
	size_t value_len;

	if (strcmp(value, "-") == 0) {
		value_len = fread(buffer, 1, sizeof buffer, stdin);
		if (ferror(stdin)) {
			fprintf(stderr, "farkv: reading the value: %s\n", strerror(errno));
			return EXIT_UNAVAILABLE;
		}
		value = buffer;
	} else {
		value_len = strlen(value);
	}
	if (value_len > FARKV_VALUE_MAX) {
		fprintf(stderr, "farkv: the value is longer than %u bytes\n", FARKV_VALUE_MAX);
		return EXIT_USAGE;
	}
	return exit_of(write(session, words[0], strlen(words[0]), value, value_len), words[0]);
}

static int run_put(struct farkv_session *session, char **words)
{
	return run_write(session, words, farkv_put);
}

static int run_insert(struct farkv_session *session, char **words)
{
	return run_write(session, words, farkv_insert);
}

static int run_update(struct farkv_session *session, char **words)
{
	return run_write(session, words, farkv_update);
}

static int run_delete(struct farkv_session *session, char **words)
{
	return exit_of(farkv_delete(session, words[0], strlen(words[0])), words[0]);
}

static void print_stat(const struct farkv_mn_stats *s)
{
	printf("memory node %u\n", s->mn_id);
	printf("  device         %s%s\n", s->device, s->is_softnic ? " (software NIC)" : "");
	printf("  incarnation    %016llx\n", (unsigned long long)s->incarnation);
	printf("  region         %llu bytes\n", (unsigned long long)s->region_bytes);
	printf("  units          %llu of %llu handed out (64 KiB each)\n",
	       (unsigned long long)s->units_used, (unsigned long long)s->units_total);
	printf("  items          %lld\n", (long long)s->items);
	printf("  commits        %llu\n", (unsigned long long)s->commits);
	printf("  sessions       %llu ever\n", (unsigned long long)s->sessions);
	printf("  epoch          %llu (safe %llu)\n", (unsigned long long)s->epoch,
	       (unsigned long long)s->safe_epoch);
	printf("  index          %llu segments of 4 KiB\n", (unsigned long long)s->index_segments);
	printf("  inline         up to %u bytes\n", s->max_inline);
}

static json_t *stat_as_json(const struct farkv_mn_stats *s)
{
	double per_key = s->items > 0 ? (double)s->index_segments * 4096 / (double)s->items : 0;

	return json_pack(
		"{s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:f}", "mn",
		(int)s->mn_id, "device", s->device, "softnic", (int)s->is_softnic, "incarnation",
		(json_int_t)s->incarnation, "region_bytes", (json_int_t)s->region_bytes,
		"units_total", (json_int_t)s->units_total, "units_used", (json_int_t)s->units_used,
		"items", (json_int_t)s->items, "commits", (json_int_t)s->commits, "sessions",
		(json_int_t)s->sessions, "epoch", (json_int_t)s->epoch, "safe_epoch",
		(json_int_t)s->safe_epoch, "index_segments", (json_int_t)s->index_segments,
		"max_inline", (int)s->max_inline, "index_bytes_per_key", per_key);
}

static int run_stat(struct farkv_session *session, char **words)
{
	static struct farkv_mn_stats stats[STAT_NODES_MAX];
	size_t count = STAT_NODES_MAX;
	int error = farkv_stat(session, stats, &count);

	(void)words;
	if (error)
		return exit_of(error, "stat");
	if (stat_json) {
		json_t *nodes = json_array();

		for (size_t i = 0; i < count; i++)
			json_array_append_new(nodes, stat_as_json(&stats[i]));
		json_dumpf(nodes, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(nodes);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < count; i++)
		print_stat(&stats[i]);
	return EXIT_DONE;
}

static int fsck_files(int count, char **paths)
{
	struct fsck_report r;
	int status = EXIT_DONE;

	for (int i = 0; i < count; i++) {
		if (fsck_region(paths[i], &r)) {
			status = EXIT_UNAVAILABLE;
			continue;
		}
		printf("%s: %llu segments, %llu keys, %llu bytes, %llu FORWARDs and %llu DEAD "
		       "tails owed, %llu problems\n",
		       paths[i], (unsigned long long)r.segments, (unsigned long long)r.keys,
		       (unsigned long long)r.bytes, (unsigned long long)r.followed,
		       (unsigned long long)r.dead_tails, (unsigned long long)r.problems);
		if (r.problems > 0 && status == EXIT_DONE)
			status = EXIT_NO;
	}
	return status;
}

static const struct command commands[] = {
	{"get", "KEY", "write the value to standard output", 1, run_get},
	{"put", "KEY VALUE", "insert or replace", 2, run_put},
	{"insert", "KEY VALUE", "only if the key is absent", 2, run_insert},
	{"update", "KEY VALUE", "only if the key is present", 2, run_update},
	{"del", "KEY", "delete", 1, run_delete},
	{"stat", "", "what the memory nodes hold", 0, run_stat},
};

static void print_help(void)
{
	fputs(usage_head, stdout);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		printf("  %-7s %-10s %s\n", commands[i].name, commands[i].arguments,
		       commands[i].help);
	printf("  %-7s %-10s %s\n", "fsck", "FILE...",
	       "check region files, with no client at work");
	fputs(usage_options, stdout);
}

static int usage(const char *format, const char *word)
{
	fprintf(stderr, "farkv: ");
	fprintf(stderr, format, word);
	fprintf(stderr, "\nTry: farkv --help\n");
	return EXIT_USAGE;
}

static bool parse_number(const char *text, long low, long high, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(text, &end, 10);
	/* strtol would skip leading spaces and take a plus sign. */
	if (*text != '-' && (*text < '0' || *text > '9'))
		return false;
	return errno == 0 && end != text && *end == '\0' && *number >= low && *number <= high;
}

/* 0, or an exit status + 1. */
static int parse_options(int argc, char **argv, struct farkv_options *options)
{
	static const struct option longs[] = {
		{"cluster", required_argument, NULL, 'c'},
		{"memcached", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		{"gid-index", required_argument, NULL, 'g'},
		{"timeout-ms", required_argument, NULL, 't'},
		{"secret-file", required_argument, NULL, 's'},
		{"verbose", no_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	long number;
	int letter;

	/* '+': options end at the command, so that keys and values may begin with a dash. */
	while ((letter = getopt_long(argc, argv, "+c:m:d:g:t:s:vjhV", longs, NULL)) != -1) {
		switch (letter) {
		case 'c':
			options->cluster = optarg;
			break;
		case 'm':
			options->memcached = optarg;
			break;
		case 'd':
			options->device = optarg;
			break;
		case 's':
			options->secret_file = optarg;
			break;
		case 'g':
			if (!parse_number(optarg, -1, 65535, &number))
				return 1 + usage("--gid-index \"%s\": a number from -1 to 65535 is "
						 "wanted",
						 optarg);
			options->gid_index = (int)number;
			break;
		case 't':
			if (!parse_number(optarg, 1, 3600000, &number))
				return 1 + usage("--timeout-ms \"%s\": a number from 1 to 3600000 "
						 "is wanted",
						 optarg);
			options->open_timeout_ms = options->op_timeout_ms = (uint32_t)number;
			break;
		case 'v':
			options->log_level += options->log_level < FARKV_LOG_DEBUG;
			break;
		case 'j':
			stat_json = true;
			break;
		case 'h':
			print_help();
			return 1 + EXIT_DONE;
		case 'V':
			printf("farkv %s\n", farkv_version());
			return 1 + EXIT_DONE;
		default:
			return 1 + usage("%s", "unknown option, or one that lacks its argument");
		}
	}
	return 0;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int check_words(const struct command *command, int words, char **at)
{
	size_t key_len;

	if (words == 1 && command->words == 0 && strcmp(at[0], "--json") == 0)
		stat_json = true;
	else if (words != command->words)
		return usage("%s: wrong number of arguments", command->name);
	if (command->words == 0)
		return 0;
	key_len = strlen(at[0]);
	if (key_len < 1 || key_len > FARKV_KEY_MAX)
		return usage("%s: a key has 1 to 1024 bytes", command->name);
	return 0;
}

static int run(const struct command *command, const struct farkv_options *options, char **words)
{
	struct farkv *store;
	struct farkv_session *session;
	int status, error = farkv_open(options, &store);

	if (error)
		return exit_of(error, "opening the store");
	error = farkv_session_open(store, &session);
	if (error) {
		farkv_close(store);
		return exit_of(error, "opening a session");
	}
	status = command->run(session, words);
	farkv_session_close(session);
	farkv_close(store);
	return status;
}

int main(int argc, char **argv)
{
	struct farkv_options options;
	const struct command *command;
	int status;

	if (farkv_options_init(&options))
		return EXIT_USAGE;
	/* One operation at a time: little memory to register. */
	options.depth = 1;
	options.cache_bytes = 0;
	status = parse_options(argc, argv, &options);
	if (status)
		return status - 1;
	if (optind == argc)
		return usage("%s", "no command");
	if (strcmp(argv[optind], "fsck") == 0 && argc - optind > 1)
		return fsck_files(argc - optind - 1, argv + optind + 1);
	command = find_command(argv[optind]);
	if (!command)
		return usage("unknown command \"%s\"", argv[optind]);
	status = check_words(command, argc - optind - 1, argv + optind + 1);
	if (status)
		return status;
	return run(command, &options, argv + optind + 1);
}
