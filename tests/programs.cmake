# SPDX-License-Identifier: Apache-2.0
# Test programs with their own main(), one line each:
#   plain_test(NAME [SOURCE FILE] [ARGS ...] [LABELS ...] [TIMEOUT seconds])
plain_test(softnic_processes)
