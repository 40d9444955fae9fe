#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# B3: a memory node is killed with operations in flight: each operation ends exactly once, with an error that
# says so or an honest "unknown"; no get succeeds with garbage; nothing hangs.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
bench=("$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" --records 500 --value-bytes 200)
export FARKV_QP_TIMEOUT=10 FARKV_QP_RETRIES=3 # a dead peer is noticed within a second
run "${bench[@]}" --workload load
exits 0 "load"
"${bench[@]}" --mix get=40,update=40,insert=10,delete=10 --seconds 60 --ops 100000000 --depth 32 --verify \
	--json "$work/mixed.json" >"$work/bench.log" 2>&1 &
client=$!
processes+=("$client")
sleep 3
kill -KILL "${mn_pid[1]}"
# The operations fail; the client goes on failing and can be stopped.
sleep 5
kill -0 "$client" 2>/dev/null && kill -INT "$client"
end_within 30 "$client" || fail "the client hangs after its memory node has died"
rc=0
wait "$client" || rc=$?
[ $rc -lt 128 ] || [ $rc -eq 130 ] || fail "the client was killed by signal $((rc - 128))"
ok "the client ends by itself, with status $rc"
[ -s "$work/mixed.json" ] || fail "there is a report"
jq -e '.verify.wrong == 0' "$work/mixed.json" >/dev/null || fail "$(jq -c .verify "$work/mixed.json")"
ok "no get has returned what was never written"
jq -e '[.ops[].errors] | add > 0' "$work/mixed.json" >/dev/null || fail "the operations in flight have failed"
ok "errors by kind: $(jq -c .errors_by_kind "$work/mixed.json")"
