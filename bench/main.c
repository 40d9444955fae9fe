/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "bench/argument.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/probe.h"
#include "bench/report.h"
#include "bench/runner.h"

enum {
	EXIT_DONE = 0,
	EXIT_WRONG = 1,
	EXIT_USAGE = 2,
	EXIT_UNAVAILABLE = 3,
	EXIT_INTERRUPTED = 130,
};

static _Atomic int stop_requested;

/* The second one kills: the handler is reset. */
static void stop_request(int number)
{
	(void)number;
	atomic_store(&stop_requested, 1);
}

static void signals_set(void)
{
	struct sigaction action = {.sa_handler = stop_request, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Before the run: a report that cannot be written should not cost one. */
static bool json_open(const struct bench_options *options, FILE **json)
{
	*json = NULL;
	if (!options->json)
		return true;
	*json = strcmp(options->json, "-") == 0 ? stdout : fopen(options->json, "we");
	if (*json)
		return true;
	fprintf(stderr, "farkv-bench: %s: %s\n", options->json, strerror(errno));
	return false;
}

static bool json_close(FILE *json, const struct bench_options *options,
		       const struct bench_result *result, bool ran)
{
	bool good = true;

	if (!json)
		return true;
	if (ran)
		good = bench_report_json(json, options, result);
	if (json != stdout && fclose(json) != 0)
		good = false;
	if (!good)
		fprintf(stderr, "farkv-bench: %s: %s\n", options->json, strerror(errno));
	return good;
}

static int run_and_report(const struct bench_options *options)
{
	/* With the JSON on standard output, the table makes room for it. */
	FILE *text = options->json && strcmp(options->json, "-") == 0 ? stderr : stdout;
	static struct bench_result result;
	int exit_status = EXIT_DONE;
	bool ran;
	FILE *json;

	if (!json_open(options, &json))
		return EXIT_USAGE;
	ran = bench_run(options, &stop_requested, &result) == 0;
	if (ran)
		bench_report_print(text, options, &result);
	if (!ran)
		exit_status = EXIT_UNAVAILABLE;
	else if (!bench_result_good(&result))
		exit_status = EXIT_WRONG;
	else if (result.interrupted)
		exit_status = EXIT_INTERRUPTED;
	if (!json_close(json, options, &result, ran) && exit_status == EXIT_DONE)
		exit_status = EXIT_WRONG;
	bench_result_free(&result);
	return exit_status;
}

int main(int argc, char **argv)
{
	static struct bench_options options;
	char error[BENCH_ERROR_BYTES];

	if (!bench_options_parse(&options, argc, argv, error)) {
		fprintf(stderr, "farkv-bench: %s\nTry farkv-bench --help.\n", error);
		return EXIT_USAGE;
	}
	if (options.help) {
		bench_arguments_help(stdout);
		return EXIT_DONE;
	}
	if (options.version) {
		printf("farkv-bench %s (%s)\n", farkv_version(), bench_commit());
		return EXIT_DONE;
	}
	if (options.probe)
		return bench_probe(&options);
	signals_set();
	return run_and_report(&options);
}
