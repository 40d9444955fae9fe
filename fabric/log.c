/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *level_name(int level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error";
	case LOG_LEVEL_WARNING:
		return "warning";
	case LOG_LEVEL_NOTICE:
		return "notice";
	default:
		return "debug";
	}
}

/* errno is the caller's: it often logs between a call and its return. */
void log_line(const struct logger *logger, enum log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	int saved_errno = errno;
	va_list arguments;

	if (!logger || (int)level > logger->level)
		return;
	va_start(arguments, format);
	if (vsnprintf(line, sizeof line, format, arguments) < 0)
		line[0] = 0;
	va_end(arguments);
	if (logger->write)
		logger->write((int)level, line, logger->arg);
	else
		fprintf(stderr, "farkv: %s: %s\n", level_name((int)level), line);
	errno = saved_errno;
}
