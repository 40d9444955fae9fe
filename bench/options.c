/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"

#include "bench/probe.h"

#include <inttypes.h>
#include <string.h>

#include "bench/argument.h"
#include "bench/value.h"

static bool refuse(char *error, const char *text)
{
	snprintf(error, BENCH_ERROR_BYTES, "%s", text);
	return false;
}

static bool workload_settle(struct bench_options *options, char *error)
{
	struct bench_workload *workload = &options->workload;
	char reason[BENCH_REASON_BYTES], why[BENCH_ERROR_BYTES];

	bench_workload_init(workload);
	if (options->workload_name &&
	    !bench_workload_choose(workload, options->workload_name, why)) {
		snprintf(error, BENCH_ERROR_BYTES, "--workload: %.480s", why);
		return false;
	}
	if (!options->workload_name && !options->mix_text)
		return refuse(error, "say what to run: --workload a|b|c|d|f|load|FILE, or --mix");
	workload->load |= options->load;
	if (workload->load && options->mix_text)
		return refuse(error, "--mix does not go with a load, which only inserts");
	if (workload->load && options->ops)
		return refuse(error, "--ops does not go with a load; --records says how many");
	if (options->mix_text) {
		if (!bench_mix_parse(options->mix_text, &workload->mix, reason)) {
			snprintf(error, BENCH_ERROR_BYTES, "--mix: %s", reason);
			return false;
		}
		workload->among_records = true;
	}
	if (workload->load)
		workload->mix = (struct bench_mix){{[BENCH_INSERT] = 1}};
	return true;
}

static bool dist_settle(struct bench_options *options, char *error)
{
	if (!options->dist_name)
		return true;
	for (enum bench_dist dist = BENCH_DIST_UNIFORM; dist <= BENCH_DIST_LATEST; dist++) {
		if (strcmp(options->dist_name, bench_dist_name(dist)) == 0) {
			options->workload.dist = dist;
			return true;
		}
	}
	snprintf(error, BENCH_ERROR_BYTES, "--dist \"%.64s\": not one of zipfian, uniform, latest",
		 options->dist_name);
	return false;
}

/* What the command line left open comes from the workload, then from the defaults. */
static void numbers_settle(struct bench_options *options)
{
	const struct bench_workload *workload = &options->workload;

	if (!options->records)
		options->records = workload->records ? workload->records : BENCH_RECORDS_DEFAULT;
	/* An end that the command line sets replaces both of the file's. */
	if (!options->ops && options->seconds == 0) {
		options->seconds = workload->seconds;
		options->ops = workload->load ? 0 : workload->ops;
	}
	if (!options->ops && !workload->load && options->seconds == 0)
		options->ops = BENCH_OPS_DEFAULT;
	if (options->rate == 0)
		options->rate = workload->rate;
	if (!options->threads)
		options->threads = workload->threads ? workload->threads : 1;
	if (options->value_bytes == UINT64_MAX)
		options->value_bytes = workload->value_bytes;
	if (options->theta < 0)
		options->theta = workload->theta;
	options->verify |= workload->verify || options->verify_file;
	if (!options->batch)
		options->batch = options->depth < 4 ? 1 : options->depth / 4;
	options->store.depth = (uint32_t)options->depth;
}

uint64_t bench_options_quota(const struct bench_options *options)
{
	if (options->workload.load)
		return options->records / options->clients +
		       (options->client_id < options->records % options->clients);
	return options->ops ? options->ops : UINT64_MAX;
}

uint64_t bench_options_inserts_max(const struct bench_options *options)
{
	const struct bench_workload *workload = &options->workload;

	if (workload->load || workload->among_records || workload->mix.share[BENCH_INSERT] <= 0)
		return 0;
	/* Without a count: 2^34, more than a day's at any rate. */
	return options->ops && options->ops < UINT64_C(1) << 34 ? options->ops : UINT64_C(1) << 34;
}

static bool consistent(struct bench_options *options, char *error)
{
	uint64_t numbers = options->records + bench_options_inserts_max(options) * options->clients;

	if (options->client_id >= options->clients)
		return refuse(error, "--client-id must be below --clients");
	if (options->verify && !options->verify_file && options->client_id >= options->records)
		return refuse(error, "more --clients than --records: nothing is left for this one");
	if (options->batch > options->depth)
		return refuse(error, "--batch must not be above --depth");
	if (options->verify && options->value_bytes < BENCH_VALUE_HEADER_BYTES) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "--verify needs --value-bytes of at least %d: values prove themselves",
			 BENCH_VALUE_HEADER_BYTES);
		return false;
	}
	bench_key_codec_init(&options->keys, options->key_bytes, options->workload.ordered);
	if (bench_key_capacity(&options->keys) < numbers) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "--key-bytes %" PRIu64 " keeps only %" PRIu64 " keys apart, but %" PRIu64
			 " may be needed: at least %zu",
			 options->key_bytes, bench_key_capacity(&options->keys), numbers,
			 bench_key_bytes_for(numbers));
		return false;
	}
	return true;
}

bool bench_options_parse(struct bench_options *options, int argc, char **argv,
			 char error[BENCH_ERROR_BYTES])
{
	memset(options, 0, sizeof(*options));
	if (farkv_options_init(&options->store) != 0)
		return refuse(error, "a FARKV_* variable is not valid; see above");
	options->depth = options->store.depth;
	options->clients = 1;
	options->rounds = PROBE_ROUNDS_DEFAULT;
	options->seed = 1;
	options->theta = -1;
	options->key_bytes = BENCH_KEY_BYTES_DEFAULT;
	options->value_bytes = UINT64_MAX;
	if (!bench_arguments_read(options, argc, argv, error))
		return false;
	if (options->help || options->version)
		return true;
	if (options->probe) {
		options->workload_name = options->workload_name ? options->workload_name : "c";
	}
	if (!workload_settle(options, error) || !dist_settle(options, error))
		return false;
	numbers_settle(options);
	return consistent(options, error);
}
