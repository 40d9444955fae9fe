/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/argument.h"
#include "bench/number.h"
#include "bench/options.h"

static struct bench_options options;
static char error[BENCH_ERROR_BYTES];

/* The options follow --workload c; NULL ends them. */
static bool parse_two(const char *first, const char *second)
{
	char *argv[] = {"farkv-bench", "--workload", "c", (char *)first, (char *)second, NULL};
	int argc = first ? (second ? 5 : 4) : 3;

	error[0] = '\0';
	return bench_options_parse(&options, argc, argv, error);
}

static bool parse_line(const char *line)
{
	static char copy[400];
	char *argv[40] = {"farkv-bench"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	error[0] = '\0';
	return bench_options_parse(&options, argc, argv, error);
}

struct numeric {
	const char *name;
	const char *good[3];
	bool zero_is_valid, huge_is_valid, suffix_is_valid;
};

static const struct numeric numerics[] = {
	{"--records", {"1", "2147483648", "4294967296"}, false, false, false},
	{"--ops", {"1", "100", "4294967296"}, false, true, false},
	{"--seconds", {"1", "0.5", "10"}, false, false, false},
	{"--threads", {"1", "3", "1024"}, false, false, false},
	{"--depth", {"1", "16", "1024"}, false, false, false},
	{"--batch", {"1", "16", "64"}, false, false, false},
	{"--theta", {"0", "1.0", "1.999"}, true, false, false},
	{"--key-bytes", {"17", "23", "1K"}, false, false, true},
	{"--value-bytes", {"0", "1k", "64K"}, true, false, true},
	{"--rate", {"1", "0.5", "1000000"}, false, false, false},
	{"--seed", {"0", "1", "4294967297"}, true, true, false},
	{"--clients", {"1", "2", "16"}, false, false, false},
	{"--client-id", {"0", "0", "0"}, true, false, false},
	{"--gid-index", {"0", "-1", "255"}, true, false, false},
};

Test(bench_options, every_number_is_parsed_strictly)
{
	static const char *const never[] = {"",
					    "x",
					    "1x",
					    " 1",
					    "1 ",
					    "+1",
					    "0x10",
					    "1e3",
					    "--1",
					    "18446744073709551616",
					    "99999999999999999999999"};
	const struct numeric *of;

	for (size_t i = 0; i < sizeof(numerics) / sizeof(*numerics); i++) {
		of = &numerics[i];
		for (int j = 0; j < 3; j++)
			cr_expect(parse_two(of->name, of->good[j]), "%s %s: %s", of->name,
				  of->good[j], error);
		for (size_t j = 0; j < sizeof(never) / sizeof(*never); j++)
			cr_expect_not(parse_two(of->name, never[j]), "%s \"%s\"", of->name,
				      never[j]);
		cr_expect_eq(parse_two(of->name, "0"), of->zero_is_valid, "%s 0", of->name);
		cr_expect_eq(parse_two(of->name, "4294967297"), of->huge_is_valid, "%s 2^32+1",
			     of->name);
		cr_expect_eq(parse_two(of->name, "1k"), of->suffix_is_valid, "%s 1k", of->name);
		if (strcmp(of->name, "--gid-index") != 0)
			cr_expect_not(parse_two(of->name, "-1"), "%s -1", of->name);
		cr_expect_not(parse_two(of->name, NULL), "%s without a value", of->name);
		cr_expect_not(parse_two(of->name, "-2"), "%s -2", of->name);
	}
}

Test(bench_options, numbers_are_not_truncated)
{
	cr_assert(parse_two("--ops", "4294967297"));
	cr_expect_eq(options.ops, 4294967297);
	cr_assert(parse_two("--value-bytes=2k", NULL));
	cr_expect_eq(options.value_bytes, 2048);
}

Test(bench_options, defaults_are_ycsbs_sizes)
{
	cr_assert(parse_two(NULL, NULL));
	cr_expect_eq(options.value_bytes, 1000);
	cr_expect_eq(options.keys.key_bytes, 23);
	cr_expect_eq(options.theta, 0.99);
	cr_expect_eq(options.threads, 1);
	cr_expect_eq(options.records, 100000);
	cr_expect_eq(options.ops, 100000);
	cr_assert(parse_two("--seconds", "3"));
	cr_expect_eq(options.ops, 0);
	cr_expect_eq(bench_options_quota(&options), UINT64_MAX);
}

Test(bench_options, unknown_options_are_refused_with_a_hint)
{
	cr_expect_not(parse_two("--recods", "5"));
	cr_expect_not_null(strstr(error, "--records"), "%s", error);
	cr_expect_not(parse_two("--frobnicate", NULL));
	cr_expect_null(strstr(error, "did you mean"));
	cr_expect_not(parse_two("records", NULL));
	cr_expect_not(parse_two("--", NULL));
	cr_expect_not(parse_two("--verify=1", NULL));
	cr_expect_not(parse_two("--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				NULL));
}

Test(bench_options, contradictions_are_refused)
{
	static const char *const lines[] = {
		"",
		"--records 5",
		"--workload load --ops 5",
		"--workload load --mix get=1",
		"--workload a --client-id 1",
		"--workload a --clients 4 --client-id 4",
		"--workload a --depth 4 --batch 5",
		"--workload a --verify --value-bytes 39",
		"--workload c --key-bytes 8 --records 8193",
		"--workload d --key-bytes 8 --records 8000 --ops 200",
		"--mix get=0",
		"--mix",
		"--mix get",
		"--mix get=1,",
		"--mix scan=1",
		"--mix get=-1",
		"--mix got=1",
		"--workload c --dist zipf",
		"--workload nonesuch",
		"--workload a --verify --records 3 --clients 5 --client-id 4",
		"--workload a --theta 2"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		cr_expect_not(parse_line(lines[i]), "%s", lines[i]);
		cr_expect_neq(error[0], '\0');
	}
	cr_expect(parse_line("--workload c --key-bytes 8 --records 8192"));
}

Test(bench_options, workload_e_is_refused_with_the_reason)
{
	cr_expect_not(parse_line("--workload e"));
	cr_expect_not_null(strstr(error, "order"), "%s", error);
}

Test(bench_options, mixes_are_among_the_records)
{
	cr_assert(parse_line("--mix get=50,insert=20,update=20,delete=10 --records 1000"), "%s",
		  error);
	cr_expect(options.workload.among_records);
	cr_expect_eq(options.workload.mix.share[BENCH_DELETE], 10);
	cr_expect_eq(bench_options_inserts_max(&options), 0);
}

Test(bench_options, loads_are_split_among_clients_exactly)
{
	uint64_t sum = 0;
	char line[100];

	for (int i = 0; i < 7; i++) {
		snprintf(line, sizeof(line),
			 "--workload load --records 100 --clients 7 --client-id %d", i);
		cr_assert(parse_line(line));
		sum += bench_options_quota(&options);
	}
	cr_expect_eq(sum, 100);
}

Test(bench_options, help_names_every_option_without_more)
{
	char *argv[] = {"farkv-bench", "--help"}, text[8192] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");

	cr_assert(bench_options_parse(&options, 2, argv, error));
	cr_expect(options.help);
	bench_arguments_help(file);
	fclose(file);
	for (size_t i = 0; i < sizeof(numerics) / sizeof(*numerics); i++)
		cr_expect_not_null(strstr(text, numerics[i].name));
}
