/* SPDX-License-Identifier: Apache-2.0 */
#include "record_input.h"

FUZZ_RECORD(mn_record)
