#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Two memory nodes, several client processes at once: every value read is right.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
mn_start 2
records=20000 ops=40000
[ "$device" = softnic ] || records=1000 ops=2000

bench() {
	local name=$1
	shift
	"$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" \
		--records $records --threads 2 --depth 8 --value-bytes 200 --verify --json "$work/$name.json" \
		"$@" >"$work/$name.log" 2>&1
}
right() {
	local checked
	[ "$(jq .verify.wrong "$work/$1.json")" = 0 ] || fail "$1: $(jq -c .verify "$work/$1.json")"
	checked=$(jq .verify.checked "$work/$1.json")
	[ "$checked" -gt 0 ] || fail "$1: nothing was checked"
	ok "$1: $checked checked, none wrong, $(jq '.throughput_ops | floor' "$work/$1.json") op/s"
}

bench load --workload load || fail "load: exit status $?"
right load
for workload in a b c d f; do
	bench $workload --workload $workload --ops $ops || fail "workload $workload: exit status $?"
	right $workload
done

clients=()
for i in 1 2 3; do
	bench reader$i --workload c --ops $ops &
	clients+=("$!")
done
for pid in "${clients[@]}"; do
	wait "$pid" || fail "one of three clients: exit status $?"
done
for i in 1 2 3; do right reader$i; done

rc=0
bench e --workload e || rc=$?
[ $rc -eq 2 ] || fail "workload e: exit status $rc, expected 2"
grep -qi 'order' "$work/e.log" || fail "workload e: the reason is not given: $(cat "$work/e.log")"
ok "workload e is refused with the reason"
