/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/record_input.h"

FUZZ_RECORD(connect_request)
