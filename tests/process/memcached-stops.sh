#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A running benchmark does not notice that memcached has gone; and what memcached holds are the published records.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
bench=("$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device")
records=2000
[ "$device" = softnic ] || records=200
run "${bench[@]}" --workload load --records $records
exits 0 "load"
[ -n "$(mn_record 1)" ] || fail "memcached holds the memory node's record"
[ -n "$(memcached_keys | grep -x "farkv:$cluster:map")" ] || fail "memcached holds the shard map"
ok "memcached holds the published records"
"${bench[@]}" --workload a --records $records --seconds 8 --depth 8 --verify --json "$work/a.json" >"$work/bench.log" 2>&1 &
client=$!
processes+=("$client")
sleep 3
kill -KILL "$memcached_pid"
rc=0
wait "$client" || rc=$?
[ $rc -eq 0 ] || fail "the benchmark ends with status $rc"
jq -e '[.ops[].errors] | add == 0' "$work/a.json" >/dev/null || fail "it has seen errors: $(jq -c .ops "$work/a.json")"
jq -e '.verify.wrong == 0' "$work/a.json" >/dev/null || fail "$(jq -c .verify "$work/a.json")"
ok "the benchmark went on, without an error"
kill -0 "${mn_pid[1]}" || fail "the memory node has gone on, too"
