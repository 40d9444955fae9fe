/* SPDX-License-Identifier: Apache-2.0 */
/* YCSB's workloads and property files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "bench/property.h"
#include "bench/workload.h"

static struct bench_workload workload;
static char error[BENCH_ERROR_BYTES];

static bool read_text(const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	bool good;

	bench_workload_init(&workload);
	good = bench_workload_read(&workload, file, NULL, error);
	fclose(file);
	return good;
}

/* workloads/workloada of YCSB 0.17.0, its comments shortened. */
static const char workload_a[] = "# Copyright (c) 2010 Yahoo! Inc. All rights reserved.\n"
				 "\n"
				 "# Yahoo! Cloud System Benchmark\n"
				 "#   Read/update ratio: 50/50\n"
				 "\n"
				 "recordcount=1000\n"
				 "operationcount=1000\n"
				 "workload=site.ycsb.workloads.CoreWorkload\n"
				 "\n"
				 "readallfields=true\n"
				 "\n"
				 "readproportion=0.5\n"
				 "updateproportion=0.5\n"
				 "scanproportion=0\n"
				 "insertproportion=0\n"
				 "\n"
				 "requestdistribution=zipfian\n"
				 "\n";

Test(bench_workload, original_files_are_accepted)
{
	cr_assert(read_text(workload_a), "%s", error);
	cr_expect_eq(workload.records, 1000);
	cr_expect_eq(workload.ops, 1000);
	cr_expect_eq(workload.mix.share[BENCH_GET], 0.5);
	cr_expect_eq(workload.mix.share[BENCH_UPDATE], 0.5);
	cr_expect_eq(workload.dist, BENCH_DIST_ZIPFIAN);
	cr_expect_eq(workload.value_bytes, 1000);
	cr_expect_not(workload.ordered);
}

Test(bench_workload, all_of_our_properties_are_read)
{
	cr_assert(read_text("workload = com.yahoo.ycsb.workloads.CoreWorkload\r\n"
			    "! another comment\n"
			    "   # and another\n"
			    "recordcount:7\n"
			    "operationcount 9\n"
			    "readproportion=0\nupdateproportion=0.0\n"
			    "insertpropor\\\n   tion=0.25\n"
			    "readmodifywriteproportion=.75   \n"
			    "requestdistribution=la\\\n\ttest\n"
			    "fieldcount=4\nfieldlength=25\ninsertorder=ordered\nzeropadding=8\n"
			    "threadcount=3\ntarget=100\nmaxexecutiontime=5\ndataintegrity=true\n"
			    "some.other.binding=1"),
		  "%s", error);
	cr_expect_eq(workload.records, 7);
	cr_expect_eq(workload.ops, 9);
	cr_expect_eq(workload.mix.share[BENCH_GET], 0);
	cr_expect_eq(workload.mix.share[BENCH_INSERT], 0.25);
	cr_expect_eq(workload.mix.share[BENCH_RMW], 0.75);
	cr_expect_eq(workload.dist, BENCH_DIST_LATEST);
	cr_expect_eq(workload.value_bytes, 100);
	cr_expect(workload.ordered);
	cr_expect(workload.verify);
	cr_expect_eq(workload.threads, 3);
	cr_expect_eq(workload.rate, 100);
	cr_expect_eq(workload.seconds, 5);
}

Test(bench_workload, what_cannot_be_run_is_refused)
{
	static const char *const texts[] = {"scanproportion=0.95",
					    "recordcount=0",
					    "recordcount=-1",
					    "recordcount=4294967297",
					    "recordcount=",
					    "operationcount=1k",
					    "requestdistribution=exponential",
					    "fieldlengthdistribution=zipfian",
					    "insertstart=100",
					    "workload=site.ycsb.workloads.TimeSeriesWorkload",
					    "readproportion=0\nupdateproportion=0",
					    "readproportion=nan",
					    "insertorder=random",
					    "fieldcount=100\nfieldlength=1000",
					    "threadcount=0"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		cr_expect_not(read_text(texts[i]), "%s", texts[i]);
		cr_expect_neq(error[0], '\0');
	}
	cr_expect_not(read_text("scanproportion=1"));
	cr_expect_not_null(strstr(error, "order"));
	cr_expect(read_text("scanproportion=0"));
}

Test(bench_workload, core_workloads_have_ycsbs_mixes)
{
	static const struct {
		const char *name;
		double get, update, insert, rmw;
		enum bench_dist dist;
	} wanted[] = {
		{"a", 0.5, 0.5, 0, 0, BENCH_DIST_ZIPFIAN},
		{"B", 0.95, 0.05, 0, 0, BENCH_DIST_ZIPFIAN},
		{"c", 1, 0, 0, 0, BENCH_DIST_ZIPFIAN},
		{"d", 0.95, 0, 0.05, 0, BENCH_DIST_LATEST},
		{"f", 0.5, 0, 0, 0.5, BENCH_DIST_ZIPFIAN},
		{"load", 0, 0, 1, 0, BENCH_DIST_ZIPFIAN},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		cr_assert(bench_workload_choose(&workload, wanted[i].name, error), "%s", error);
		cr_expect_eq(workload.mix.share[BENCH_GET], wanted[i].get);
		cr_expect_eq(workload.mix.share[BENCH_UPDATE], wanted[i].update);
		cr_expect_eq(workload.mix.share[BENCH_INSERT], wanted[i].insert);
		cr_expect_eq(workload.mix.share[BENCH_RMW], wanted[i].rmw);
		cr_expect_eq(workload.dist, wanted[i].dist);
		cr_expect_eq(workload.load, i == 5);
	}
	cr_expect_not(bench_workload_choose(&workload, "E", error));
	cr_expect_not(bench_workload_choose(&workload, "", error));
	cr_expect_not(bench_workload_choose(&workload, "/nonesuch", error));
}

Test(bench_workload, mixes_are_drawn_in_proportion)
{
	struct bench_mix mix;
	struct bench_random random;
	int drawn[BENCH_OPS] = {0};
	char reason[BENCH_REASON_BYTES];

	cr_assert(bench_mix_parse("get=40,update=30,delete=20,rmw=10", &mix, reason));
	bench_random_seed(&random, 1, 0);
	for (int i = 0; i < 100000; i++)
		drawn[bench_mix_choose(&mix, &random)]++;
	cr_expect(abs(drawn[BENCH_GET] - 40000) < 800);
	cr_expect(abs(drawn[BENCH_UPDATE] - 30000) < 800);
	cr_expect(abs(drawn[BENCH_DELETE] - 20000) < 800);
	cr_expect(abs(drawn[BENCH_RMW] - 10000) < 800);
	cr_expect_eq(drawn[BENCH_INSERT] + drawn[BENCH_SCAN], 0);
}

static char seen[1000];

static bool note(const char *name, const char *value, void *arg)
{
	(void)arg;
	snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "[%s|%s]", name, value);
	return true;
}

Test(bench_workload, property_files_follow_javas_rules)
{
	static const char text[] =
		"a=b\n c : d \nkey\\ with\\=signs = x\\ty\\u0041\\\\\nempty\n=nameless\n"
		"long=one\\\n  two\\\n\n#no\\\nlast=3\nback=slash\\\\\nend=\\";
	FILE *file = fmemopen((void *)text, sizeof(text) - 1, "r");

	cr_assert(bench_property_read(file, note, NULL));
	cr_expect_str_eq(seen, "[a|b][c|d][key with=signs|x\tyA\\][empty|][|nameless][long|onetwo]"
			       "[last|3][back|slash\\][end|]");
	fclose(file);
}
