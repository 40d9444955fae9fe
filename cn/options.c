/* SPDX-License-Identifier: Apache-2.0 */
#include "cn/farkv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number_option {
	const char *name;
	size_t at;	/* in struct farkv_options */
	uint32_t bytes; /* 4 or 8 */
	int64_t low, high, standard;
};

#define NUMBER(field, low, high, standard)                                                         \
	{                                                                                          \
		NAME_##field, offsetof(struct farkv_options, field),                               \
			sizeof(((struct farkv_options *)0)->field), low, high, standard            \
	}

#define NAME_gid_index	     "FARKV_GID_INDEX"
#define NAME_mtu	     "FARKV_MTU"
#define NAME_service_level   "FARKV_SERVICE_LEVEL"
#define NAME_traffic_class   "FARKV_TRAFFIC_CLASS"
#define NAME_qp_timeout	     "FARKV_QP_TIMEOUT"
#define NAME_qp_retries	     "FARKV_QP_RETRIES"
#define NAME_qp_rnr_retries  "FARKV_QP_RNR_RETRIES"
#define NAME_max_inline	     "FARKV_MAX_INLINE"
#define NAME_sq_depth	     "FARKV_SQ_DEPTH"
#define NAME_signal_interval "FARKV_SIGNAL_INTERVAL"
#define NAME_depth	     "FARKV_DEPTH"
#define NAME_open_timeout_ms "FARKV_OPEN_TIMEOUT_MS"
#define NAME_op_timeout_ms   "FARKV_OP_TIMEOUT_MS"
#define NAME_cache_bytes     "FARKV_CACHE_BYTES"
#define NAME_helper_thread   "FARKV_HELPER_THREAD"
#define NAME_log_level	     "FARKV_LOG_LEVEL"

static const struct number_option numbers[] = {
	NUMBER(gid_index, -1, 65535, -1),
	NUMBER(mtu, 0, 4096, 0),
	NUMBER(service_level, 0, 15, 0),
	NUMBER(traffic_class, 0, 255, 0),
	NUMBER(qp_timeout, 0, 31, 14),
	NUMBER(qp_retries, 0, 7, 6),
	NUMBER(qp_rnr_retries, 0, 7, 7),
	NUMBER(max_inline, 0, 4096, 220),
	NUMBER(sq_depth, 16, 16384, 256),
	NUMBER(signal_interval, 1, 32, 32),
	NUMBER(depth, 1, 1024, 64),
	NUMBER(open_timeout_ms, 1, 3600000, 5000),
	NUMBER(op_timeout_ms, 1, 3600000, 2000),
	NUMBER(cache_bytes, 0, INT64_MAX, 64 << 20),
	NUMBER(helper_thread, 0, 1, 1),
	NUMBER(log_level, 0, 3, FARKV_LOG_WARNING),
};

enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static void store_number(struct farkv_options *options, const struct number_option *option,
			 int64_t value)
{
	char *at = (char *)options + option->at;

	if (option->bytes == 8)
		memcpy(at, &(uint64_t){(uint64_t)value}, 8);
	else
		memcpy(at, &(uint32_t){(uint32_t)value}, 4);
}

static int64_t load_number(const struct farkv_options *options, const struct number_option *option)
{
	const char *at = (const char *)options + option->at;
	uint64_t wide = 0;
	uint32_t narrow;
	int32_t sign;

	if (option->bytes == 8) {
		memcpy(&wide, at, 8);
		return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
	}
	if (option->low < 0) {
		memcpy(&sign, at, 4);
		return sign;
	}
	memcpy(&narrow, at, 4);
	return narrow;
}

/* The variable's value where it is set, parses and is in range. */
static int read_variable(struct farkv_options *options, const struct number_option *option)
{
	const char *text = getenv(option->name);
	char *end;
	long long value;

	if (!text)
		return 0;
	errno = 0;
	value = strtoll(text, &end, 10);
	if ((*text != '-' && (*text < '0' || *text > '9')) || errno || end == text || *end ||
	    value < option->low || value > option->high) {
		fprintf(stderr,
			"farkv: error: %s=\"%s\": a number from %lld to %lld is wanted; using "
			"%lld\n",
			option->name, text, (long long)option->low, (long long)option->high,
			(long long)option->standard);
		return FARKV_EINVAL;
	}
	store_number(options, option, value);
	return 0;
}

static void read_text(const char **field, const char *name, const char *standard)
{
	const char *text = getenv(name);

	*field = text && *text ? text : standard;
}

int farkv_options_init_sized(struct farkv_options *options, size_t struct_bytes)
{
	int error = 0;

	if (!options || struct_bytes != sizeof *options)
		return FARKV_EINVAL;
	memset(options, 0, sizeof *options);
	options->struct_bytes = sizeof *options;
	read_text(&options->cluster, "FARKV_CLUSTER", "default");
	read_text(&options->memcached, "FARKV_MEMCACHED", "127.0.0.1:11211");
	read_text(&options->device, "FARKV_DEVICE", "auto");
	read_text(&options->secret_file, "FARKV_SECRET_FILE", NULL);
	for (size_t i = 0; i < NUMBERS; i++) {
		store_number(options, &numbers[i], numbers[i].standard);
		if (read_variable(options, &numbers[i]))
			error = FARKV_EINVAL;
	}
	return error;
}

/* The first option out of range, or NULL. Internal: cn/store.c. */
const char *options_check(const struct farkv_options *options, char *reason, size_t reason_bytes);

const char *options_check(const struct farkv_options *options, char *reason, size_t reason_bytes)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		int64_t value = load_number(options, &numbers[i]);

		if (value >= numbers[i].low && value <= numbers[i].high)
			continue;
		snprintf(reason, reason_bytes, "%s is %lld: from %lld to %lld is wanted",
			 numbers[i].name, (long long)value, (long long)numbers[i].low,
			 (long long)numbers[i].high);
		return reason;
	}
	if (options->signal_interval > options->sq_depth / 2) {
		snprintf(reason, reason_bytes,
			 "signal_interval %u is above half of sq_depth %u: the send queue would "
			 "fill with "
			 "work requests that no completion retires",
			 options->signal_interval, options->sq_depth);
		return reason;
	}
	if (options->mtu != 0 && (options->mtu < 256 || (options->mtu & (options->mtu - 1)))) {
		snprintf(reason, reason_bytes, "mtu %u: 0, 256, 512, 1024, 2048 or 4096 is wanted",
			 options->mtu);
		return reason;
	}
	return NULL;
}
