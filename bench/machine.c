/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef FARKV_COMMIT
#define FARKV_COMMIT "unknown"
#endif

static void processor_read(char *processor, size_t bytes)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];
	const char *colon;

	snprintf(processor, bytes, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(processor, bytes, "%s", colon + 1 + strspn(colon + 1, " "));
		break;
	}
	if (file)
		fclose(file);
}

void bench_machine_read(struct bench_machine *machine)
{
	struct utsname name;

	memset(machine, 0, sizeof(*machine));
	if (uname(&name) == 0) {
		snprintf(machine->host, sizeof(machine->host), "%s", name.nodename);
		snprintf(machine->kernel, sizeof(machine->kernel), "%s %s", name.sysname,
			 name.release);
	}
	processor_read(machine->processor, sizeof(machine->processor));
	machine->processors = sysconf(_SC_NPROCESSORS_ONLN);
}

const char *bench_commit(void)
{
	return FARKV_COMMIT;
}
