/* SPDX-License-Identifier: Apache-2.0 */
#include "record_input.h"

FUZZ_RECORD(shard_map)
