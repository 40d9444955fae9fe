/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/op.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[BENCH_OPS] = {"get", "insert", "update", "rmw", "delete", "scan"};

const char *bench_op_name(enum bench_op op)
{
	assert(op < BENCH_OPS);
	return names[op];
}

double bench_mix_sum(const struct bench_mix *mix)
{
	double sum = 0;

	for (int op = 0; op < BENCH_OPS; op++)
		sum += mix->share[op];
	return sum;
}

enum bench_op bench_mix_choose(const struct bench_mix *mix, struct bench_random *random)
{
	double left = bench_random_real(random) * bench_mix_sum(mix);
	enum bench_op last = BENCH_OPS;

	for (int op = 0; op < BENCH_OPS; op++) {
		if (mix->share[op] <= 0)
			continue;
		if (left < mix->share[op])
			return (enum bench_op)op;
		left -= mix->share[op];
		last = (enum bench_op)op;
	}
	assert(last != BENCH_OPS);
	return last; /* rounding */
}

static bool item_parse(const char *text, size_t length, struct bench_mix *mix, char *reason)
{
	const char *equals = memchr(text, '=', length);
	size_t name_length = equals ? (size_t)(equals - text) : length;
	char number[40];

	for (int op = 0; op < BENCH_OPS; op++) {
		if (strlen(names[op]) != name_length || memcmp(names[op], text, name_length) != 0)
			continue;
		if (!equals || length - name_length > sizeof(number))
			break;
		memcpy(number, equals + 1, length - name_length - 1);
		number[length - name_length - 1] = '\0';
		return bench_number_real(number, 0, 1e9, &mix->share[op], reason);
	}
	snprintf(reason, BENCH_REASON_BYTES,
		 "\"%.*s\" is not one of get=, insert=, update=, rmw=, delete= with a number",
		 length > 40 ? 40 : (int)length, text);
	return false;
}

bool bench_mix_parse(const char *text, struct bench_mix *mix, char reason[BENCH_REASON_BYTES])
{
	struct bench_mix read = {{0}};
	const char *comma;

	for (;; text = comma + 1) {
		comma = strchrnul(text, ',');
		if (!item_parse(text, (size_t)(comma - text), &read, reason))
			return false;
		if (*comma == '\0')
			break;
	}
	if (read.share[BENCH_SCAN] > 0) {
		snprintf(reason, BENCH_REASON_BYTES, "no scans: a hash index has no key order");
		return false;
	}
	if (bench_mix_sum(&read) <= 0) {
		snprintf(reason, BENCH_REASON_BYTES, "all proportions are 0");
		return false;
	}
	*mix = read;
	return true;
}
