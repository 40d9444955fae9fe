/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What farkv-mn can be told: defaults < environment FARKV_<OPTION> < command line. Every number is
 * parsed strictly and checked against its range before anything else happens.
 */
#ifndef FARKV_MN_OPTIONS_H
#define FARKV_MN_OPTIONS_H

#include "fabric/device.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum pages_wanted { PAGES_AUTO, PAGES_2M, PAGES_1G, PAGES_NONE };

struct mn_options {
	const char *cluster; /* strings are borrowed from argv and the environment */
	const char *memcached;
	const char *region_path; /* NULL = chosen by `pages` */
	const char *secret_file; /* NULL = records travel unsealed */
	struct device_options device;
	uint64_t size_bytes;
	uint64_t expected_keys; /* 0 = from the size */
	uint32_t id;
	uint32_t memcached_timeout_ms;
	uint32_t fence_after_ms;
	uint32_t log_level; /* enum log_level */
	enum pages_wanted pages;
	bool ephemeral;
};

/* What mn_options_parse may return besides 0. */
enum { OPTIONS_DONE = 1 };

/*
 * 0 run; OPTIONS_DONE --help or --version was printed on `out`; -EINVAL: one line on `err` names
 * the option (or variable), its value and what is wanted.
 */
int mn_options_parse(struct mn_options *options, int argc, char **argv, FILE *out, FILE *err);

/* Decimal digits only, without sign or blanks. 0 or -EINVAL. */
int parse_u64(const char *text, uint64_t *value);
/* parse_u64 with one of the suffixes K M G T (powers of 1024), either case. 0 or -EINVAL. */
int parse_size(const char *text, uint64_t *value);
/* "2G", "513K", "4097": the shortest exact form. Returns buffer. */
enum { SIZE_TEXT_MAX = 24 };
const char *size_text(uint64_t bytes, char buffer[SIZE_TEXT_MAX]);

#endif
