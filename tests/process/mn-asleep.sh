#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Memory nodes sleep while clients work: during the gets, both together use under 1 % of a core.
. "$(dirname "$0")/lib.sh"
only_on softnic # an emulated kernel charges its Soft-RoCE work to whoever runs
memcached_start
mn_start 1
mn_start 2
# A million gets take a second, in which opening the store would weigh as much as they do.
records=10000 ops=10000000
bench=("$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device"
	--records $records --value-bytes 100 --threads 2 --depth 16)
run_seconds=150
run "${bench[@]}" --workload load
exits 0 "load"

# All threads, in nanoseconds: the clock's ticks are too coarse.
busy_ns() { cat /proc/"${mn_pid[1]}"/task/*/schedstat /proc/"${mn_pid[2]}"/task/*/schedstat | awk '{ n += $1 } END { printf "%d\n", n }'; }
sleep 1 # the load's own beat has died down
before=$(busy_ns) start=${EPOCHREALTIME/./}
run "${bench[@]}" --workload c --ops $ops --json "$work/c.json"
exits 0 "gets"
used_us=$((($(busy_ns) - before) / 1000)) us=$((${EPOCHREALTIME/./} - start))
[ $((used_us * 100)) -lt "$us" ] || fail "memory nodes used $used_us us of $us us"
ok "memory nodes used $used_us us of $us us"
