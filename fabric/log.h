/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines with levels, to a callback. The function that first knows of a fault logs it. */
#ifndef FARKV_FABRIC_LOG_H
#define FARKV_FABRIC_LOG_H

/* Same values as farkv_log_level in farkv.h. */
enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARNING = 1, LOG_LEVEL_NOTICE = 2, LOG_LEVEL_DEBUG = 3 };

struct logger {
	void (*write)(int level, const char *line, void *arg); /* NULL = stderr, "farkv: level: line" */
	void *arg;
	int level; /* lines above this level are dropped */
};

/* One line, without a newline, at most 1023 bytes. A NULL logger drops it. Thread-safe. */
void log_line(const struct logger *logger, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
