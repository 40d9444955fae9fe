/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/choice.h"

#include <assert.h>

/* As YCSB does: room for twice the inserts that are expected, so that few draws miss. */
static uint64_t domain_for(const struct bench_options *options)
{
	const struct bench_mix *mix = &options->workload.mix;
	double expected;

	if (!options->ops || bench_options_inserts_max(options) == 0)
		return options->records;
	expected = (double)options->ops * mix->share[BENCH_INSERT] / bench_mix_sum(mix) * 2;
	return options->records + (uint64_t)expected;
}

void bench_chooser_init(struct bench_chooser *chooser, const struct bench_options *options,
			struct bench_window *window, uint64_t thread)
{
	*chooser = (struct bench_chooser){
		.options = options,
		.window = window,
		.thread = thread,
	};
	bench_random_seed(&chooser->random, options->seed,
			  options->client_id * BENCH_THREADS_MAX + thread);
	bench_generator_init(&chooser->generator, options->workload.dist, domain_for(options),
			     options->theta);
}

uint64_t bench_insert_number(const struct bench_options *options, uint64_t index)
{
	return options->records + index * options->clients + options->client_id;
}

/* A record, or a key whose insert is acknowledged. */
static uint64_t existing_choose(struct bench_chooser *chooser)
{
	const struct bench_options *options = chooser->options;
	uint64_t settled = bench_window_settled(chooser->window);
	uint64_t item = bench_generator_next(&chooser->generator, options->records + settled,
					     &chooser->random);

	/* Inserts that failed are passed over towards the older ones; ends at the records. */
	while (item >= options->records &&
	       !bench_window_present(chooser->window, item - options->records))
		item--;
	return item < options->records ? item
				       : bench_insert_number(options, item - options->records);
}

/* Without a common table, each process may judge only what it alone writes. */
static uint64_t own_number(const struct bench_options *options, uint64_t number)
{
	if (!options->verify || options->verify_file || options->clients == 1 ||
	    number >= options->records)
		return number;
	number = number - number % options->clients + options->client_id;
	return number < options->records ? number : number - options->clients;
}

static bool load_choose(struct bench_chooser *chooser, struct bench_choice *choice)
{
	const struct bench_options *options = chooser->options;
	uint64_t turn = chooser->loads++ * options->threads + chooser->thread;

	choice->op = BENCH_INSERT;
	choice->number = turn * options->clients + options->client_id;
	return choice->number < options->records;
}

bool bench_chooser_next(struct bench_chooser *chooser, struct bench_choice *choice)
{
	const struct bench_options *options = chooser->options;
	const struct bench_workload *workload = &options->workload;

	choice->index = UINT64_MAX;
	if (workload->load)
		return load_choose(chooser, choice);
	choice->op = bench_mix_choose(&workload->mix, &chooser->random);
	if (choice->op == BENCH_INSERT && !workload->among_records) {
		choice->index = bench_window_take(chooser->window);
		if (choice->index == UINT64_MAX)
			return false;
		choice->number = bench_insert_number(options, choice->index);
		return true;
	}
	choice->number = existing_choose(chooser);
	if (choice->op != BENCH_GET)
		choice->number = own_number(options, choice->number);
	return true;
}
