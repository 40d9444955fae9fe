/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status manual: one row for every ibv_wc_status and every ibv_event_type. The log lines,
 * `farkv doctor` and the manual page are made from these tables.
 */
#ifndef FARKV_FABRIC_STATUS_H
#define FARKV_FABRIC_STATUS_H

#include "fabric/log.h"

#include <infiniband/verbs.h>

enum status_action {
	STATUS_NOTHING,    /* fine, or told only for information */
	STATUS_FLUSHED,    /* look for the first error of the same QP */
	STATUS_RECONNECT,  /* rebuild the QP, resolve what was in flight */
	STATUS_FAIL,       /* our own fault or the configuration's: fail the operation, say so */
	STATUS_DEVICE_GONE /* nothing on this device can go on */
};

struct status_row {
	int code; /* ibv_wc_status or ibv_event_type */
	const char *name;
	const char *meaning;
	const char *causes;
	const char *check;  /* what to look at */
	const char *farkv;  /* what farkv does */
	enum status_action action;
};

/* Never NULL: unknown codes have a row of their own. Thread-safe. */
const struct status_row *status_of_wc(enum ibv_wc_status status);
const struct status_row *status_of_event(enum ibv_event_type event);
size_t status_wc_rows(const struct status_row **rows);
size_t status_event_rows(const struct status_row **rows);
/* One line: name, wr_id, qp_num, vendor_err, meaning, what to check. */
void status_log_wc(const struct logger *logger, const struct ibv_wc *wc);

#endif
