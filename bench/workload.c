/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/workload.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "bench/property.h"

#define NO_SCANS "a hash index has no key order, so farkv has no range scans"

struct core {
	char letter;
	enum bench_dist dist;
	double get, update, insert, rmw;
};

static const struct core cores[] = {
	{'a', BENCH_DIST_ZIPFIAN, 0.5, 0.5, 0, 0}, {'b', BENCH_DIST_ZIPFIAN, 0.95, 0.05, 0, 0},
	{'c', BENCH_DIST_ZIPFIAN, 1, 0, 0, 0},	   {'d', BENCH_DIST_LATEST, 0.95, 0, 0.05, 0},
	{'f', BENCH_DIST_ZIPFIAN, 0.5, 0, 0, 0.5},
};

enum property_kind {
	PROPERTY_SHARE,
	PROPERTY_COUNT,
	PROPERTY_REAL,
	PROPERTY_FIELDS,
	PROPERTY_DIST,
	PROPERTY_TEXT, /* must be `text` */
	PROPERTY_ORDER,
	PROPERTY_VERIFY,
	PROPERTY_ACCEPT, /* means nothing to a store of whole values */
};

struct property {
	const char *name;
	enum property_kind kind;
	size_t offset;
	double max;
	const char *text;
};

#define MEMBER(member) offsetof(struct bench_workload, member)

static const struct property properties[] = {
	{"workload", PROPERTY_TEXT, 0, 0, "CoreWorkload"},
	{"recordcount", PROPERTY_COUNT, MEMBER(records), (double)BENCH_RECORDS_MAX, NULL},
	{"operationcount", PROPERTY_COUNT, MEMBER(ops), (double)BENCH_OPS_MAX, NULL},
	{"threadcount", PROPERTY_COUNT, MEMBER(threads), BENCH_THREADS_MAX, NULL},
	{"target", PROPERTY_REAL, MEMBER(rate), BENCH_RATE_MAX, NULL},
	{"maxexecutiontime", PROPERTY_REAL, MEMBER(seconds), BENCH_SECONDS_MAX, NULL},
	{"readproportion", PROPERTY_SHARE, BENCH_GET, 0, NULL},
	{"updateproportion", PROPERTY_SHARE, BENCH_UPDATE, 0, NULL},
	{"insertproportion", PROPERTY_SHARE, BENCH_INSERT, 0, NULL},
	{"readmodifywriteproportion", PROPERTY_SHARE, BENCH_RMW, 0, NULL},
	{"scanproportion", PROPERTY_SHARE, BENCH_SCAN, 0, NULL},
	{"requestdistribution", PROPERTY_DIST, 0, 0, NULL},
	{"fieldcount", PROPERTY_FIELDS, 0, 0, NULL},
	{"fieldlength", PROPERTY_FIELDS, 1, 0, NULL},
	{"fieldlengthdistribution", PROPERTY_TEXT, 0, 0, "constant"},
	{"insertorder", PROPERTY_ORDER, 0, 0, NULL},
	{"dataintegrity", PROPERTY_VERIFY, 0, 0, NULL},
	{"insertstart", PROPERTY_TEXT, 0, 0, "0"},
	{"zeropadding", PROPERTY_ACCEPT, 0, 0, NULL},
	{"readallfields", PROPERTY_ACCEPT, 0, 0, NULL},
	{"writeallfields", PROPERTY_ACCEPT, 0, 0, NULL},
	{"readallfieldsbyname", PROPERTY_ACCEPT, 0, 0, NULL},
	{"minscanlength", PROPERTY_ACCEPT, 0, 0, NULL},
	{"maxscanlength", PROPERTY_ACCEPT, 0, 0, NULL},
	{"scanlengthdistribution", PROPERTY_ACCEPT, 0, 0, NULL},
	{"table", PROPERTY_ACCEPT, 0, 0, NULL},
	{"fieldnameprefix", PROPERTY_ACCEPT, 0, 0, NULL},
};

struct reading {
	struct bench_workload *workload;
	uint64_t fields[2]; /* count, bytes each */
	FILE *notes;
	char *error;
};

void bench_workload_init(struct bench_workload *workload)
{
	*workload = (struct bench_workload){
		.dist = BENCH_DIST_ZIPFIAN,
		.theta = 0.99,
		.value_bytes = BENCH_VALUE_BYTES_DEFAULT,
	};
}

static bool dist_apply(struct bench_workload *workload, const char *value, char *reason)
{
	for (enum bench_dist dist = BENCH_DIST_UNIFORM; dist <= BENCH_DIST_LATEST; dist++) {
		if (strcmp(value, bench_dist_name(dist)) == 0) {
			workload->dist = dist;
			return true;
		}
	}
	snprintf(reason, BENCH_REASON_BYTES, "not one of uniform, zipfian, latest");
	return false;
}

/* workload=site.ycsb.workloads.CoreWorkload: the class's last part counts. */
static bool text_check(const char *value, const char *wanted, char *reason)
{
	const char *dot = strrchr(value, '.');

	if (strcmp(dot ? dot + 1 : value, wanted) == 0)
		return true;
	snprintf(reason, BENCH_REASON_BYTES, "only %s is supported", wanted);
	return false;
}

static bool share_apply(struct bench_workload *workload, size_t op, const char *value, char *reason)
{
	if (!bench_number_real(value, 0, 1e9, &workload->mix.share[op], reason))
		return false;
	if (op != BENCH_SCAN || workload->mix.share[op] <= 0)
		return true;
	snprintf(reason, BENCH_REASON_BYTES, NO_SCANS);
	return false;
}

static bool order_apply(struct bench_workload *workload, const char *value, char *reason)
{
	workload->ordered = strcmp(value, "ordered") == 0;
	if (workload->ordered || strcmp(value, "hashed") == 0)
		return true;
	snprintf(reason, BENCH_REASON_BYTES, "not one of hashed, ordered");
	return false;
}

static bool property_apply(struct reading *reading, const struct property *property,
			   const char *value, char *reason)
{
	struct bench_workload *workload = reading->workload;
	void *member = (char *)workload + property->offset;

	switch (property->kind) {
	case PROPERTY_SHARE:
		return share_apply(workload, property->offset, value, reason);
	case PROPERTY_COUNT:
		return bench_number_count(value, 1, (uint64_t)property->max, member, reason);
	case PROPERTY_REAL:
		return bench_number_real(value, 0, property->max, member, reason);
	case PROPERTY_FIELDS:
		return bench_number_count(value, 1, 65536, &reading->fields[property->offset],
					  reason);
	case PROPERTY_DIST:
		return dist_apply(workload, value, reason);
	case PROPERTY_TEXT:
		return text_check(value, property->text, reason);
	case PROPERTY_ORDER:
		return order_apply(workload, value, reason);
	case PROPERTY_VERIFY:
		workload->verify = strcmp(value, "true") == 0;
		return true;
	case PROPERTY_ACCEPT:
		break;
	}
	return true;
}

static bool property_found(const char *name, const char *value, void *arg)
{
	struct reading *reading = arg;
	char reason[BENCH_REASON_BYTES];

	for (size_t i = 0; i < sizeof(properties) / sizeof(*properties); i++) {
		if (strcmp(properties[i].name, name) != 0)
			continue;
		if (property_apply(reading, &properties[i], value, reason))
			return true;
		snprintf(reading->error, BENCH_ERROR_BYTES, "%s=%.100s: %s", name, value, reason);
		return false;
	}
	if (reading->notes)
		fprintf(reading->notes, "farkv-bench: property %s is ignored\n", name);
	return true;
}

bool bench_workload_read(struct bench_workload *workload, FILE *file, FILE *notes,
			 char error[BENCH_ERROR_BYTES])
{
	struct reading reading = {
		.workload = workload, .fields = {10, 100}, .notes = notes, .error = error};

	/* CoreWorkload's own defaults. */
	workload->dist = BENCH_DIST_UNIFORM;
	workload->mix = (struct bench_mix){{[BENCH_GET] = 0.95, [BENCH_UPDATE] = 0.05}};
	error[0] = '\0';
	if (!bench_property_read(file, property_found, &reading)) {
		if (error[0] == '\0')
			snprintf(error, BENCH_ERROR_BYTES, "%s", strerror(errno));
		return false;
	}
	if (bench_mix_sum(&workload->mix) <= 0) {
		snprintf(error, BENCH_ERROR_BYTES, "all proportions are 0");
		return false;
	}
	workload->value_bytes = reading.fields[0] * reading.fields[1];
	if (workload->value_bytes <= 65536)
		return true;
	snprintf(error, BENCH_ERROR_BYTES, "fieldcount * fieldlength is above 65536 bytes");
	return false;
}

static bool file_choose(struct bench_workload *workload, const char *path, char *error)
{
	char inner[BENCH_ERROR_BYTES];
	FILE *file = fopen(path, "re");
	bool good;

	if (!file) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "%.200s is not one of a, b, c, d, f, load, and as a property file: %s",
			 path, strerror(errno));
		return false;
	}
	good = bench_workload_read(workload, file, stderr, inner);
	fclose(file);
	if (!good)
		snprintf(error, BENCH_ERROR_BYTES, "%.120s: %.350s", path, inner);
	return good;
}

bool bench_workload_choose(struct bench_workload *workload, const char *name,
			   char error[BENCH_ERROR_BYTES])
{
	bench_workload_init(workload);
	if (strcasecmp(name, "e") == 0) {
		snprintf(error, BENCH_ERROR_BYTES, "workload E is range scans: " NO_SCANS);
		return false;
	}
	if (strcmp(name, "load") == 0) {
		workload->load = true;
		workload->mix.share[BENCH_INSERT] = 1;
		return true;
	}
	for (size_t i = 0; i < sizeof(cores) / sizeof(*cores); i++) {
		if (name[0] == '\0' || name[1] != '\0' || (name[0] | 32) != cores[i].letter)
			continue;
		workload->dist = cores[i].dist;
		workload->mix.share[BENCH_GET] = cores[i].get;
		workload->mix.share[BENCH_UPDATE] = cores[i].update;
		workload->mix.share[BENCH_INSERT] = cores[i].insert;
		workload->mix.share[BENCH_RMW] = cores[i].rmw;
		return true;
	}
	return file_choose(workload, name, error);
}
