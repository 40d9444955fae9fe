#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# B1: unsignaled work requests never fill the send queue: an impossible signal interval is refused, and a small
# queue with everything in flight loses nothing.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
bench() {
	run "$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" "$@"
}

export FARKV_SQ_DEPTH=16 FARKV_SIGNAL_INTERVAL=32
kv get x
exits 2 "a signal interval above half of the send queue is refused"
says 'signal_interval' "it says so"

export FARKV_SIGNAL_INTERVAL=8
records=2000 ops=1000000
[ "$device" = softnic ] || ops=5000
bench --workload load --records $records --depth 256 --threads 1
exits 0 "load with a send queue of 16"
bench --workload a --records $records --ops $ops --threads 1 --depth 256 --verify --json "$work/a.json"
exits 0 "mixed operations with 256 in flight over a send queue of 16"
jq -e '[.ops[].errors] | add == 0' "$work/a.json" >/dev/null || fail "errors: $(jq -c .ops "$work/a.json")"
jq -e --argjson ops $ops '[.ops[].count] | add >= $ops' "$work/a.json" >/dev/null || fail "operations are missing"
ok "every operation is accounted for"
