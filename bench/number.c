/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(char *reason, const char *text)
{
	snprintf(reason, BENCH_REASON_BYTES, "%s", text);
	return false;
}

/* Reads digits from *text on; false with a reason when there are none or they overflow. */
static bool digits_read(const char **text, uint64_t *number, char *reason)
{
	const char *at = *text;
	uint64_t sum = 0;

	if (*at < '0' || *at > '9')
		return refuse(reason,
			      **text == '\0' ? "the number is empty" : "not a whole number");
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum))
			return refuse(reason, "the number is too large");
	}
	*text = at;
	*number = sum;
	return true;
}

static bool range_check(uint64_t number, uint64_t min, uint64_t max, char *reason)
{
	if (number >= min && number <= max)
		return true;
	snprintf(reason, BENCH_REASON_BYTES, "%" PRIu64 " is not in %" PRIu64 "..%" PRIu64, number,
		 min, max);
	return false;
}

bool bench_number_count(const char *text, uint64_t min, uint64_t max, uint64_t *number,
			char reason[BENCH_REASON_BYTES])
{
	uint64_t read;

	if (!digits_read(&text, &read, reason))
		return false;
	if (*text != '\0')
		return refuse(reason, "not a whole number; counts take no suffix");
	if (!range_check(read, min, max, reason))
		return false;
	*number = read;
	return true;
}

bool bench_number_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes,
		       char reason[BENCH_REASON_BYTES])
{
	static const char suffixes[] = "kKMG";
	static const unsigned int shifts[] = {10, 10, 20, 30};
	const char *suffix;
	uint64_t read, scaled;

	if (!digits_read(&text, &read, reason))
		return false;
	scaled = read;
	if (*text != '\0') {
		suffix = strchr(suffixes, *text);
		if (!suffix || text[1] != '\0')
			return refuse(reason, "not a size; the suffixes are K, M and G");
		scaled = read << shifts[suffix - suffixes];
		if (scaled >> shifts[suffix - suffixes] != read)
			return refuse(reason, "the size is too large");
	}
	if (!range_check(scaled, min, max, reason))
		return false;
	*bytes = scaled;
	return true;
}

bool bench_number_signed(const char *text, int64_t min, int64_t max, int64_t *number,
			 char reason[BENCH_REASON_BYTES])
{
	bool negative = *text == '-';
	uint64_t read;
	int64_t value;

	if (negative)
		text++;
	if (!digits_read(&text, &read, reason))
		return false;
	if (*text != '\0')
		return refuse(reason, "not a whole number");
	if (read > INT64_MAX)
		return refuse(reason, "the number is too large");
	value = negative ? -(int64_t)read : (int64_t)read;
	if (value < min || value > max) {
		snprintf(reason, BENCH_REASON_BYTES, "%" PRId64 " is not in %" PRId64 "..%" PRId64,
			 value, min, max);
		return false;
	}
	*number = value;
	return true;
}

bool bench_number_real(const char *text, double min, double max, double *number,
		       char reason[BENCH_REASON_BYTES])
{
	size_t length = strlen(text);
	double read;
	char *end;

	if (length == 0)
		return refuse(reason, "the number is empty");
	if (length > 32 || strspn(text, "0123456789.") != length ||
	    strcspn(text, "0123456789") == length)
		return refuse(reason, "not a decimal number");
	read = strtod(text, &end);
	if (*end != '\0')
		return refuse(reason, "not a decimal number");
	if (!(read >= min && read < max)) {
		snprintf(reason, BENCH_REASON_BYTES, "%g is not in [%g, %g)", read, min, max);
		return false;
	}
	*number = read;
	return true;
}
