/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/status.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char log_text[2048];
static int log_level = -1;

static void keep_line(int level, const char *line, void *arg)
{
	(void)arg;
	log_level = level;
	snprintf(log_text, sizeof log_text, "%s", line);
}

static void assert_full(const struct status_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *texts[] = { rows[i].name, rows[i].meaning, rows[i].causes, rows[i].check,
					rows[i].farkv };

		cr_assert_eq(rows[i].code, (int)i, "row %zu has its own code", i);
		for (size_t t = 0; t < 5; t++) {
			cr_assert_not_null(texts[t], "row %zu, text %zu", i, t);
			cr_assert_gt(strlen(texts[t]), 3, "row %zu, text %zu", i, t);
			cr_assert_null(strchr(texts[t], '\n'));
		}
		for (size_t other = 0; other < i; other++)
			cr_assert_neq(strcmp(rows[i].name, rows[other].name), 0);
	}
}

Test(status, every_completion_status_has_its_own_row)
{
	const struct status_row *rows;
	size_t count = status_wc_rows(&rows);

	cr_assert_eq(count, IBV_WC_TM_RNDV_INCOMPLETE + 1);
	assert_full(rows, count);
	for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
		cr_assert_eq(status_of_wc((enum ibv_wc_status)status)->code, status);
}

Test(status, every_event_has_its_own_row)
{
	const struct status_row *rows;
	size_t count = status_event_rows(&rows);

	cr_assert_eq(count, IBV_EVENT_WQ_FATAL + 1);
	assert_full(rows, count);
	for (int event = IBV_EVENT_CQ_ERR; event <= IBV_EVENT_WQ_FATAL; event++)
		cr_assert_eq(status_of_event((enum ibv_event_type)event)->code, event);
}

Test(status, unknown_codes_have_a_row_too)
{
	static const int codes[] = { -1, 24, 1000, 0x7fffffff };

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		cr_assert_str_eq(status_of_wc((enum ibv_wc_status)codes[i])->name, "unknown status");
		cr_assert_str_eq(status_of_event((enum ibv_event_type)codes[i])->name, "unknown event");
	}
}

Test(status, names_are_those_of_the_headers)
{
	cr_assert_str_eq(status_of_wc(IBV_WC_RETRY_EXC_ERR)->name, "IBV_WC_RETRY_EXC_ERR");
	cr_assert_str_eq(status_of_event(IBV_EVENT_GID_CHANGE)->name, "IBV_EVENT_GID_CHANGE");
}

Test(status, actions_that_the_protocol_leans_on)
{
	cr_assert_eq(status_of_wc(IBV_WC_SUCCESS)->action, STATUS_NOTHING);
	cr_assert_eq(status_of_wc(IBV_WC_WR_FLUSH_ERR)->action, STATUS_FLUSHED);
	cr_assert_eq(status_of_wc(IBV_WC_RETRY_EXC_ERR)->action, STATUS_RECONNECT);
	cr_assert_eq(status_of_wc(IBV_WC_LOC_PROT_ERR)->action, STATUS_FAIL);
	cr_assert_eq(status_of_wc(IBV_WC_FATAL_ERR)->action, STATUS_DEVICE_GONE);
	cr_assert_eq(status_of_event(IBV_EVENT_DEVICE_FATAL)->action, STATUS_DEVICE_GONE);
	cr_assert_eq(status_of_event(IBV_EVENT_SRQ_LIMIT_REACHED)->action, STATUS_NOTHING);
}

Test(status, a_failed_completion_makes_one_line_with_what_can_be_trusted)
{
	static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };
	struct ibv_wc wc = { .wr_id = 0x1234, .status = IBV_WC_RETRY_EXC_ERR, .vendor_err = 0x81,
			     .qp_num = 0x11 };

	status_log_wc(&logger, &wc);
	cr_assert_eq(log_level, LOG_LEVEL_ERROR);
	cr_assert(strstr(log_text, "IBV_WC_RETRY_EXC_ERR (12): wr_id 0x1234 qp 0x000011 vendor_err 0x81"), "%s",
		  log_text);
	cr_assert(strstr(log_text, "no acknowledgement") && strstr(log_text, "ping"), "%s", log_text);
	wc.status = IBV_WC_WR_FLUSH_ERR;
	status_log_wc(&logger, &wc);
	cr_assert_eq(log_level, LOG_LEVEL_DEBUG, "a flush is not the fault itself");
	status_log_wc(NULL, &wc);
}

Test(status, no_line_is_cut)
{
	static const struct logger logger = { .write = keep_line, .level = LOG_LEVEL_DEBUG };

	for (int status = 0; status <= IBV_WC_TM_RNDV_INCOMPLETE + 1; status++) {
		struct ibv_wc wc = { .wr_id = UINT64_MAX, .status = (enum ibv_wc_status)status,
				     .vendor_err = UINT32_MAX, .qp_num = 0xffffff };

		status_log_wc(&logger, &wc);
		cr_assert(strstr(log_text, status_of_wc(wc.status)->farkv), "%d: %s", status, log_text);
	}
}
