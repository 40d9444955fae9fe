/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/options.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 8192, ARGS_MAX = 16 };

struct outcome {
	struct mn_options options;
	int rc;
	char out[TEXT_MAX], err[TEXT_MAX];
};

/* args: up to ARGS_MAX words, NULL at the end. */
static void parse(struct outcome *outcome, const char *const *args)
{
	char *argv[ARGS_MAX + 2] = {(char *)"farkv-mn"};
	int argc = 1;
	FILE *out, *err;

	memset(outcome, 0, sizeof *outcome);
	out = fmemopen(outcome->out, TEXT_MAX - 1, "w");
	err = fmemopen(outcome->err, TEXT_MAX - 1, "w");
	cr_assert(out && err);
	for (; *args; args++)
		argv[argc++] = (char *)*args;
	outcome->rc = mn_options_parse(&outcome->options, argc, argv, out, err);
	fclose(out);
	fclose(err);
}

#define PARSE(outcome, ...) parse(outcome, (const char *const[]){__VA_ARGS__, NULL})

static void clear_environment(void)
{
	/* clang-format off */
	static const char *const names[] = {
		"CLUSTER", "MEMCACHED", "ID", "SIZE", "EXPECTED_KEYS", "DEVICE", "GID_INDEX",
		"MTU", "SERVICE_LEVEL", "TRAFFIC_CLASS", "REGION_PATH", "EPHEMERAL", "HUGEPAGES",
		"SECRET_FILE", "MEMCACHED_TIMEOUT_MS", "FENCE_AFTER_MS", "LOG_LEVEL",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char name[64];

		snprintf(name, sizeof name, "FARKV_%s", names[i]);
		unsetenv(name);
	}
}

TestSuite(mn_options, .init = clear_environment);

Test(mn_options, defaults_are_usable)
{
	struct outcome o;

	parse(&o, (const char *const[]){NULL});
	cr_assert_eq(o.rc, 0);
	cr_assert_str_eq(o.options.cluster, "default");
	cr_assert_str_eq(o.options.memcached, "127.0.0.1:11211");
	cr_assert_eq(o.options.size_bytes, UINT64_C(1) << 30);
	cr_assert_eq(o.options.id, 1);
	cr_assert_eq(o.options.fence_after_ms, 2000);
	cr_assert_eq(o.options.device.gid_index, -1);
	cr_assert_eq(o.options.pages, PAGES_AUTO);
	cr_assert_not(o.options.ephemeral);
	cr_assert_null(o.options.region_path);
}

Test(mn_options, every_option_is_taken)
{
	struct outcome o;

	PARSE(&o, "--cluster=c", "--memcached", "[::1]:7,h", "--id", "65535", "--size=3G",
	      "--expected-keys", "1000000", "--gid-index", "0", "--mtu", "1024",
	      "--service-level=15", "--traffic-class=255", "--ephemeral");
	cr_assert_eq(o.rc, 0, "%s", o.err);
	cr_assert_str_eq(o.options.cluster, "c");
	cr_assert_eq(o.options.id, 65535);
	cr_assert_eq(o.options.size_bytes, UINT64_C(3) << 30);
	cr_assert_eq(o.options.expected_keys, 1000000);
	cr_assert_eq(o.options.device.gid_index, 0);
	cr_assert_eq(o.options.device.mtu_bytes, 1024);
	cr_assert_eq(o.options.device.service_level, 15);
	cr_assert_eq(o.options.device.traffic_class, 255);
	cr_assert(o.options.ephemeral);
	PARSE(&o, "--device", "mlx5_0:2", "--region-path", "/x", "--hugepages", "1G",
	      "--secret-file", "/s", "--memcached-timeout-ms", "1", "--fence-after-ms", "100",
	      "--log-level", "debug");
	cr_assert_eq(o.rc, 0, "%s", o.err);
	cr_assert_str_eq(o.options.device.name, "mlx5_0:2");
	cr_assert_eq(o.options.pages, PAGES_1G);
	cr_assert_eq(o.options.log_level, LOG_LEVEL_DEBUG);
	cr_assert_eq(o.options.fence_after_ms, 100);
}

Test(mn_options, B53_bad_numbers_are_usage_errors_that_name_flag_value_and_range)
{
	static const char *const flags[] = {"--id",
					    "--size",
					    "--expected-keys",
					    "--gid-index",
					    "--mtu",
					    "--service-level",
					    "--traffic-class",
					    "--memcached-timeout-ms",
					    "--fence-after-ms",
					    "--log-level"};
	static const char *const zero_is_right[] = {"--gid-index", "--service-level",
						    "--traffic-class", "--log-level"};
	static const char *const values[] = {"0",    "-1", "4294967297", "18446744073709551617",
					     "text", "",   "1k",	 " 1",
					     "1 ",   "+1", "0x10",	 "1.5",
					     "1e3"};
	struct outcome o;

	for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
		for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
			bool right = false;

			for (size_t z = 0; v == 0 && z < 4; z++)
				right |= strcmp(flags[f], zero_is_right[z]) == 0;
			/* 2^32+1 is a size, and a number of keys, like any other. */
			right |= v == 2 && (strcmp(flags[f], "--size") == 0 ||
					    strcmp(flags[f], "--expected-keys") == 0);
			PARSE(&o, flags[f], values[v]);
			cr_assert_eq(o.rc, right ? 0 : -EINVAL, "%s '%s': %d", flags[f], values[v],
				     o.rc);
			if (right)
				continue;
			cr_assert(strstr(o.err, flags[f]) && strstr(o.err, values[v]) &&
					  strstr(o.err, "must be"),
				  "%s", o.err);
			cr_assert_eq(strchr(o.err, '\n'), o.err + strlen(o.err) - 1, "one line: %s",
				     o.err);
		}
}

Test(mn_options, the_environment_is_read_and_the_command_line_wins)
{
	struct outcome o;

	setenv("FARKV_SIZE", "16M", 1);
	setenv("FARKV_FENCE_AFTER_MS", "500", 1);
	setenv("FARKV_EPHEMERAL", "1", 1);
	PARSE(&o, "--size", "32M");
	cr_assert_eq(o.rc, 0, "%s", o.err);
	cr_assert_eq(o.options.size_bytes, 32 << 20);
	cr_assert_eq(o.options.fence_after_ms, 500);
	cr_assert(o.options.ephemeral);
	setenv("FARKV_FENCE_AFTER_MS", "soon", 1);
	PARSE(&o, "--size", "32M");
	cr_assert_eq(o.rc, -EINVAL);
	cr_assert(strstr(o.err, "FARKV_FENCE_AFTER_MS") && strstr(o.err, "soon") &&
			  strstr(o.err, "100..3600000"),
		  "%s", o.err);
}

Test(mn_options, unknown_and_incomplete_options_are_named)
{
	struct outcome o;

	PARSE(&o, "--sise=1");
	cr_assert(o.rc == -EINVAL && strstr(o.err, "--sise"), "%s", o.err);
	PARSE(&o, "--size");
	cr_assert(o.rc == -EINVAL && strstr(o.err, "--size"), "%s", o.err);
	PARSE(&o, "stray");
	cr_assert(o.rc == -EINVAL && strstr(o.err, "stray"), "%s", o.err);
	PARSE(&o, "--hugepages", "4M");
	cr_assert(o.rc == -EINVAL && strstr(o.err, "4M") && strstr(o.err, "none"), "%s", o.err);
	PARSE(&o, "--mtu", "1000");
	cr_assert(o.rc == -EINVAL && strstr(o.err, "1000") && strstr(o.err, "2048"), "%s", o.err);
	PARSE(&o, "--cluster", "");
	cr_assert_eq(o.rc, -EINVAL);
}

Test(mn_options, help_and_version_go_to_the_output)
{
	struct outcome o;

	PARSE(&o, "--help");
	cr_assert(o.rc == OPTIONS_DONE && strstr(o.out, "--fence-after-ms") && !*o.err);
	PARSE(&o, "--version");
	cr_assert(o.rc == OPTIONS_DONE && strncmp(o.out, "farkv-mn ", 9) == 0);
}

Test(mn_options, sizes_are_read_and_written_exactly)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {{"0", 0},
		     {"1", 1},
		     {"1K", 1024},
		     {"3m", 3 << 20},
		     {"5G", UINT64_C(5) << 30},
		     {"1T", UINT64_C(1) << 40},
		     {"16777215T", UINT64_C(16777215) << 40}};
	static const char *const bad[] = {
		"", "K", "-1K", "1KB", "1 K", "16777216T", "99999999999999999999", "1.5G"};
	char text[SIZE_TEXT_MAX];
	uint64_t bytes;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		cr_assert(parse_size(sizes[i].text, &bytes) == 0 && bytes == sizes[i].bytes, "%s",
			  sizes[i].text);
		cr_assert(parse_size(size_text(bytes, text), &bytes) == 0 &&
				  bytes == sizes[i].bytes,
			  "%s", text);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_assert_eq(parse_size(bad[i], &bytes), -EINVAL, "%s", bad[i]);
}
