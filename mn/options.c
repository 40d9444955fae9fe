/* SPDX-License-Identifier: Apache-2.0 */
#include "mn/options.h"

#include "layout/region.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifndef FARKV_VERSION
#define FARKV_VERSION "0.1.0"
#endif

enum kind {
	KIND_STRING,
	KIND_U8,
	KIND_U32,
	KIND_U64,
	KIND_INT,
	KIND_SIZE,
	KIND_FLAG,
	KIND_PAGES,
	KIND_LEVEL,
	KIND_MTU
};

struct row {
	const char *name;
	const char *argument; /* for --help; NULL = takes none */
	const char *help;
	enum kind kind;
	size_t at; /* in struct mn_options */
	uint64_t min, max;
};

#define AT(field) offsetof(struct mn_options, field)

static const struct row rows[] = {
	{"cluster", "NAME", "the cluster this memory node belongs to (default: default)",
	 KIND_STRING, AT(cluster), 0, 0},
	{"memcached", "HOST:PORT[,..]", "where records are published (127.0.0.1:11211)",
	 KIND_STRING, AT(memcached), 0, 0},
	{"id", "N", "number of this memory node in the cluster, 1..65535 (1)", KIND_U32, AT(id), 1,
	 65535},
	{"size", "BYTES", "memory to give, with suffix K, M, G or T; 8M..1T (1G)", KIND_SIZE,
	 AT(size_bytes), REGION_BYTES_MIN, REGION_BYTES_MAX},
	{"expected-keys", "N", "size the index for so many keys (from --size: one per KiB)",
	 KIND_U64, AT(expected_keys), 1, REGION_BYTES_MAX / 64},
	{"device", "NAME[:PORT]",
	 "RDMA device; softnic = the software NIC; auto = the fastest active port, else the "
	 "software NIC (auto)",
	 KIND_STRING, AT(device.name), 0, 0},
	{"gid-index", "N", "GID of the port, 0..255 (a routable RoCE v2 one)", KIND_INT,
	 AT(device.gid_index), 0, 255},
	{"mtu", "BYTES", "256, 512, 1024, 2048 or 4096; never above the port's (the port's)",
	 KIND_MTU, AT(device.mtu_bytes), 256, 4096},
	{"service-level", "N", "InfiniBand service level, 0..15 (0)", KIND_U8,
	 AT(device.service_level), 0, 15},
	{"traffic-class", "N", "RoCE traffic class, 0..255 (0)", KIND_U8, AT(device.traffic_class),
	 0, 255},
	{"region-path", "DIR",
	 "directory of the region file; tmpfs or hugetlbfs (chosen by --hugepages)", KIND_STRING,
	 AT(region_path), 0, 0},
	{"ephemeral", NULL, "leave no region file behind", KIND_FLAG, AT(ephemeral), 0, 1},
	{"hugepages", "auto|2M|1G|none",
	 "auto = 2M where there are enough, else tmpfs, which one line says (auto)", KIND_PAGES,
	 AT(pages), 0, 0},
	{"secret-file", "FILE", "32 bytes or 64 hex digits that seal the cluster's records",
	 KIND_STRING, AT(secret_file), 0, 0},
	{"memcached-timeout-ms", "N", "longest wait for one answer of memcached, 1..60000 (1000)",
	 KIND_U32, AT(memcached_timeout_ms), 1, 60000},
	{"fence-after-ms", "N",
	 "a client that holds the epoch back so long is cut off, 100..3600000 (2000)", KIND_U32,
	 AT(fence_after_ms), 100, 3600000},
	{"log-level", "LEVEL", "error, warning, notice or debug, or 0..3 (notice)", KIND_LEVEL,
	 AT(log_level), 0, 3},
};

enum { ROWS = sizeof rows / sizeof *rows, VALUE_HELP = 1, VALUE_VERSION = 2, VALUE_ROWS = 256 };

static const char *const page_words[] = {"auto", "2M", "1G", "none"};
static const char *const level_words[] = {"error", "warning", "notice", "debug"};

int parse_u64(const char *text, uint64_t *value)
{
	uint64_t total = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(total, (uint64_t)10, &total) ||
		    __builtin_add_overflow(total, (uint64_t)(*text - '0'), &total))
			return -EINVAL;
	}
	*value = total;
	return 0;
}

int parse_size(const char *text, uint64_t *value)
{
	static const char suffixes[] = "KMGT";
	char digits[24];
	size_t length = strlen(text);
	const char *suffix =
		length ? strchr(suffixes, toupper((unsigned char)text[length - 1])) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	uint64_t number;

	if (suffix)
		length--;
	if (length == 0 || length >= sizeof digits)
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (parse_u64(digits, &number) || number > UINT64_MAX >> shift)
		return -EINVAL;
	*value = number << shift;
	return 0;
}

const char *size_text(uint64_t bytes, char buffer[SIZE_TEXT_MAX])
{
	static const char suffixes[] = " KMGT";
	unsigned step = 0;

	while (step < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		step++;
	}
	if (step)
		snprintf(buffer, SIZE_TEXT_MAX, "%" PRIu64 "%c", bytes, suffixes[step]);
	else
		snprintf(buffer, SIZE_TEXT_MAX, "%" PRIu64, bytes);
	return buffer;
}

static int find_word(const char *const *words, unsigned count, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (strcasecmp(words[i], text) == 0)
			return (int)i;
	return -EINVAL;
}

/* Puts a number into the field; 0 or -EINVAL. */
static int set_number(const struct row *row, const char *text, void *field)
{
	uint64_t number;

	if (row->kind == KIND_SIZE ? parse_size(text, &number) : parse_u64(text, &number))
		return -EINVAL;
	if (number < row->min || number > row->max)
		return -EINVAL;
	if (row->kind == KIND_MTU && (number & (number - 1)))
		return -EINVAL;
	switch (row->kind) {
	case KIND_U8:
		*(uint8_t *)field = (uint8_t)number;
		break;
	case KIND_INT:
		*(int *)field = (int)number;
		break;
	case KIND_U64:
	case KIND_SIZE:
		*(uint64_t *)field = number;
		break;
	default:
		*(uint32_t *)field = (uint32_t)number;
	}
	return 0;
}

/* text: NULL for a flag on the command line. */
static int set_field(struct mn_options *options, const struct row *row, const char *text)
{
	void *field = (char *)options + row->at;
	int word;

	switch (row->kind) {
	case KIND_STRING:
		*(const char **)field = text;
		return *text ? 0 : -EINVAL;
	case KIND_FLAG:
		if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
			return -EINVAL;
		*(bool *)field = !text || *text == '1';
		return 0;
	case KIND_PAGES:
		word = find_word(page_words, 4, text);
		if (word >= 0)
			*(enum pages_wanted *)field = (enum pages_wanted)word;
		return word < 0 ? word : 0;
	case KIND_LEVEL:
		word = find_word(level_words, 4, text);
		if (word < 0)
			return set_number(row, text, field);
		*(uint32_t *)field = (uint32_t)word;
		return 0;
	default:
		return set_number(row, text, field);
	}
}

static void complain(const struct row *row, const char *source, const char *text, FILE *err)
{
	char min[SIZE_TEXT_MAX], max[SIZE_TEXT_MAX];

	fprintf(err, "farkv-mn: %s '%s': ", source, text ? text : "");
	switch (row->kind) {
	case KIND_STRING:
		fprintf(err, "must not be empty\n");
		break;
	case KIND_FLAG:
		fprintf(err, "must be 0 or 1\n");
		break;
	case KIND_PAGES:
		fprintf(err, "must be auto, 2M, 1G or none\n");
		break;
	case KIND_LEVEL:
		fprintf(err, "must be error, warning, notice or debug, or 0..3\n");
		break;
	case KIND_MTU:
		fprintf(err, "must be 256, 512, 1024, 2048 or 4096\n");
		break;
	case KIND_SIZE:
		fprintf(err, "must be a size %s..%s, digits and K, M, G or T\n",
			size_text(row->min, min), size_text(row->max, max));
		break;
	default:
		fprintf(err, "must be a whole number %" PRIu64 "..%" PRIu64 "\n", row->min,
			row->max);
	}
}

static int set_from(struct mn_options *options, const struct row *row, const char *source,
		    const char *text, FILE *err)
{
	int rc = set_field(options, row, text);

	if (rc)
		complain(row, source, text, err);
	return rc;
}

static void variable_name(const struct row *row, char name[64])
{
	int length = snprintf(name, 64, "FARKV_%s", row->name);

	for (int i = 6; i < length; i++)
		name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
}

static int read_environment(struct mn_options *options, FILE *err)
{
	for (unsigned i = 0; i < ROWS; i++) {
		char name[64];
		const char *text;
		int rc;

		variable_name(&rows[i], name);
		text = getenv(name);
		rc = text ? set_from(options, &rows[i], name, text, err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

static void print_help(FILE *out)
{
	fputs("Usage: farkv-mn [OPTION...]\n"
	      "Gives a region of this machine's memory to a farkv cluster and publishes how to "
	      "reach it. Clients do\n"
	      "everything else with one-sided RDMA: this process sleeps while they work.\n\n",
	      out);
	for (unsigned i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		fprintf(out, "  %-28s %s\n", left, rows[i].help);
	}
	fputs("  --help                       this text\n"
	      "  --version                    the version\n\n"
	      "Defaults are in parentheses. Each option can be set as an environment variable, "
	      "--fence-after-ms as\n"
	      "FARKV_FENCE_AFTER_MS; the command line wins. One line beginning `ready` is printed "
	      "once clients can\n"
	      "connect; SIGTERM or SIGINT withdraws the record and ends the process.\n\n"
	      "Exit status: 0 stopped by a signal; 1 no device, memory or region; 2 usage; 3 "
	      "memcached.\n\n"
	      "Example: two memory nodes on one machine, on whatever device there is:\n"
	      "  farkv-mn --id 1 --size 2G --ephemeral &\n"
	      "  farkv-mn --id 2 --size 2G --ephemeral &\n",
	      out);
}

static void options_init(struct mn_options *options)
{
	memset(options, 0, sizeof *options);
	device_options_init(&options->device);
	options->cluster = "default";
	options->memcached = "127.0.0.1:11211";
	options->size_bytes = UINT64_C(1) << 30;
	options->id = 1;
	options->memcached_timeout_ms = 1000;
	options->fence_after_ms = 2000;
	options->log_level = LOG_LEVEL_NOTICE;
	options->pages = PAGES_AUTO;
}

static int read_command_line(struct mn_options *options, int argc, char **argv, FILE *out,
			     FILE *err)
{
	struct option longs[ROWS + 3] = {0};
	int value;

	for (int i = 0; i < ROWS; i++)
		longs[i] = (struct option){rows[i].name,
					   rows[i].argument ? required_argument : no_argument, NULL,
					   VALUE_ROWS + i};
	longs[ROWS] = (struct option){"help", no_argument, NULL, VALUE_HELP};
	longs[ROWS + 1] = (struct option){"version", no_argument, NULL, VALUE_VERSION};
	optind = 0;
	opterr = 0;
	while ((value = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		char source[64];

		if (value == VALUE_HELP) {
			print_help(out);
			return OPTIONS_DONE;
		}
		if (value == VALUE_VERSION) {
			fprintf(out, "farkv-mn %s (layout %d)\n", FARKV_VERSION, LAYOUT_VERSION);
			return OPTIONS_DONE;
		}
		if (value < VALUE_ROWS) {
			fprintf(err,
				value == ':' ? "farkv-mn: %s needs a value; see --help\n"
					     : "farkv-mn: %s: no such option, or a value it does "
					       "not take; see --help\n",
				argv[optind - 1]);
			return -EINVAL;
		}
		snprintf(source, sizeof source, "--%s", rows[value - VALUE_ROWS].name);
		if (set_from(options, &rows[value - VALUE_ROWS], source, optarg, err))
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(err, "farkv-mn: '%s': takes options only; see --help\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

int mn_options_parse(struct mn_options *options, int argc, char **argv, FILE *out, FILE *err)
{
	int rc;

	options_init(options);
	rc = read_environment(options, err);
	return rc ? rc : read_command_line(options, argc, argv, out, err);
}
